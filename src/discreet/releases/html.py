"""A release as a notebook shows it: a table with bars and intervals. Everything shown was published."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet._bars import amount, between, guarantee_html, interval_bar, reach
from discreet.privacy.checks import numbered
from discreet.releases.formats import COUNT_HEADINGS, NONE_PASSED, foremost, foremost_rows, none_passed
from discreet.releases.labels import cut, readable, short

if TYPE_CHECKING:
    from discreet.releases.release import Release

MOST = 25
"""Rows that are shown."""

_LONGEST = 44
_CELL = "padding:.15em .7em;border:0;background:transparent"


def as_html(release: Release, confidence: float = 0.95, most: int = MOST, of_page: bool = False) -> str:
    """The first rows, what is left of them in words, and the promise; of a page, which says it for all, without it."""
    shown = foremost(release, most)
    rows = shown.rows(confidence)
    many = len(release.names)
    right = reach([row.count for row in rows], [row.upper for row in rows])
    body, place = [], 0
    told, empty = foremost_rows(shown, confidence, most)
    cells = [row[:many] for row in told]
    shorter = [short(column, _LONGEST) if many > 1 else cut(column, _LONGEST) for column in zip(*cells, strict=True)]
    for texts, labels in zip(cells, zip(*shorter, strict=True), strict=True):
        items = [
            f"<bdi>{html.escape(label)}</bdi>"
            if label == text
            else f'<bdi title="{html.escape(text, quote=True)}">{html.escape(label)}</bdi>'
            for text, label in zip(texts, labels, strict=True)
        ]
        begins = bool(release.by) and texts[0] != ""
        if release.by and texts[len(release.by)] == NONE_PASSED:
            body.append(_row(items, "", None, begins))
            continue
        row = rows[place]
        body.append(_row(items, interval_bar(row.count, row.lower, row.upper, right), row, begins))
        place += 1
    rest = release.rest(confidence)
    if rest is not None:
        total = (None, rest.value, rest.lower, rest.upper)
        body.append(_row(["<i>everything else</i>", *[""] * (many - 1)], "", total))
    headings = (*release.names, "", COUNT_HEADINGS[release.counted], f"{100 * confidence:.4g}% interval")
    head = "".join(
        f'<{tag} style="{_CELL};border-bottom:1px solid;text-align:{"left" if place <= many else "right"}">'
        f"{html.escape(readable(text))}</{tag}>"
        for place, text in enumerate(headings)
        for tag in ["th" if text else "td"]  # bars have no heading
    )
    below = [] if rows else [none_passed(release)]
    if len(release) > len(rows):
        which = (
            "are in the JSON and CSV of this report." if of_page else "head(k), to_pandas() and to_csv() have them all."
        )
        below.append(f"{len(release) - len(rows):,} more{'' if of_page else ':'} {which}")
    below += [f"In {numbered(empty, 'group')} no item passed."] if empty else []
    below += release.notes()
    table = (
        f'<table style="border-collapse:collapse;border:0;color:inherit"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>"
    )
    notes = "".join(f'<div style="max-width:46em;margin-top:.4em">{html.escape(text)}</div>' for text in below)
    promise = "" if of_page else guarantee_html(release.guarantee.sentence(), release.guarantee.seeded)
    return f'<div style="color:inherit;line-height:1.4">{table if body else ""}{notes}{promise}</div>'


def table_html(above: str, headings: Sequence[str], rows: Sequence[Sequence[str]], below: str = "") -> str:
    """A plain table for a notebook, between two lines of text; cells that are numbers are on the right."""

    columns = list(zip(*rows, strict=True)) or [()] * len(headings)
    sides = [
        "right" if any(column) and all(not text or text[:1].isdigit() for text in column) else "left"
        for column in columns
    ]

    def cells(tag: str, texts: Sequence[str], style: str) -> str:
        return "".join(
            f'<{tag} style="{_CELL};{style}text-align:{side}">{html.escape(text)}</{tag}>'
            for text, side in zip(texts, sides, strict=True)
        )

    body = "".join(f"<tr>{cells('td', row, '')}</tr>" for row in rows)
    head = f"<tr>{cells('th', headings, 'border-bottom:1px solid;')}</tr>"
    lines = ["".join(f"<div>{html.escape(line)}</div>" for line in text.splitlines()) for text in (above, below)]
    table = f'<table style="border-collapse:collapse;border:0;color:inherit">{head}{body}</table>'
    return f'<div style="color:inherit;line-height:1.4">{lines[0]}{table}{lines[1]}</div>'


def _row(items: list[str], bar: str, row: Any, begins: bool = False) -> str:
    """A row of the table; of None, without numbers. What `begins` a group has a line above it."""
    number = f"{_CELL};text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
    numbers = ("", "") if row is None else (amount(row[1]), between(row[2], row[3]))
    above = ";border-top:1px solid #8886" if begins else ""
    cells = "".join(f'<td style="{_CELL};text-align:left;white-space:pre">{item}</td>' for item in items)
    return (
        f'<tr style="background:transparent{above}">{cells}<td style="{_CELL};width:16em">{bar}</td>'
        f'<td style="{number}">{numbers[0]}</td><td style="{number};opacity:.8">{numbers[1]}</td></tr>'
    )
