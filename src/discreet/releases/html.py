"""A release as a notebook shows it: a table with bars and intervals. Everything shown was published."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from discreet.privacy.bars import amount, between, guarantee_html, interval_bar, reach
from discreet.releases.labels import cut, readable

if TYPE_CHECKING:
    from discreet.releases.release import Release

__all__ = ["as_html"]

MOST = 25
"""Rows that are shown."""

_LONGEST = 44
_CELL = "padding:.15em .7em;border:0;background:transparent"
_COUNTED = {"events": "count", "people": "people", "rows": "rows", "sums": "sum of values"}


def as_html(release: Release, confidence: float = 0.95) -> str:
    """The first rows, what is left of them in words, and the promise."""
    shown = release.head(MOST)
    rows = shown.rows(confidence)
    texts = [readable(row.item) for row in rows]
    right = reach([row.count for row in rows], [row.upper for row in rows])
    body = [
        _row(_item(text, short), interval_bar(row.count, row.lower, row.upper, right), row)
        for text, short, row in zip(texts, cut(texts, _LONGEST), rows, strict=True)
    ]
    rest = release.rest(confidence)
    if rest is not None:
        body.append(_row("<i>everything else</i>", "", (None, rest.value, rest.lower, rest.upper)))
    name = "item" if release.asked is None else str(release.asked.columns.get("item", "item"))
    headings = (name, "", _COUNTED[release.counted], f"{100 * confidence:g}% interval")
    head = "".join(
        f'<th style="{_CELL};border-bottom:1px solid;text-align:{"left" if place < 2 else "right"}">'
        f"{html.escape(readable(text))}</th>"
        for place, text in enumerate(headings)
    )
    below = [] if rows else ["No item passed the threshold."]
    if len(release) > len(rows):
        below.append(f"{len(release) - len(rows):,} more: head(k), to_pandas() and to_csv() have them all.")
    below += release.notes()
    table = (
        f'<table style="border-collapse:collapse;border:0;color:inherit"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>"
    )
    notes = "".join(f'<div style="max-width:46em;margin-top:.4em">{html.escape(text)}</div>' for text in below)
    promise = guarantee_html(release.guarantee.sentence(), release.guarantee.seeded)
    return f'<div style="color:inherit;line-height:1.4">{table if body else ""}{notes}{promise}</div>'


def _item(text: str, short: str) -> str:
    whole = f' title="{html.escape(text, quote=True)}"' if short != text else ""
    return f"<bdi{whole}>{html.escape(short)}</bdi>"


def _row(item: str, bar: str, row: Any) -> str:
    _, count, lower, upper = row
    number = f"{_CELL};text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
    return (
        f'<tr style="background:transparent"><td style="{_CELL};text-align:left;'
        f'white-space:pre">{item}</td><td style="{_CELL};width:16em">{bar}</td>'
        f'<td style="{number}">{amount(count)}</td><td style="{number};opacity:.8">{between(lower, upper)}</td></tr>'
    )
