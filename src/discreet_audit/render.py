"""The report of an audit as Markdown or HTML, with the plot of claimed against measured epsilon."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path

import discreet
from discreet.errors import ParameterError
from discreet.privacy import User
from discreet_audit.core import KINDS, AuditReport, Finding

HEADINGS = ("mechanism", "unit", "claimed", "exact, lower bound", "pairs tried", "twins caught", "result")


def unit_words(report: AuditReport) -> str:
    """The unit in a word or two."""
    unit = report.unit
    if isinstance(unit, User):
        return "person" if unit.max_items is None else f"user of {unit.max_items}"
    return type(unit).__name__.lower()


def summary_rows(reports: Sequence[AuditReport]) -> list[tuple[str, ...]]:
    """One row of text for every report, under `HEADINGS`."""
    return [
        (
            report.mechanism,
            unit_words(report),
            report.claim,
            report.measured,
            f"{report.pairs:,}",
            f"{sum(twin.caught for twin in report.twins)} of {len(report.twins)}",
            "ok" if report.passed else "FAILED",
        )
        for report in reports
    ]


def plot(reports: Sequence[AuditReport]) -> bytes:
    """A picture (PNG): for every mechanism the claimed epsilon, what runs prove of it, and exact over claimed delta."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ParameterError(
            "a report with plots needs matplotlib; install it with pip install 'discreet[plot]'"
        ) from error

    names = [f"{report.mechanism}\n{unit_words(report)}, {report.claim}" for report in reports]
    places = list(range(len(reports)))
    figure = Figure(figsize=(11, 1.6 + 0.46 * len(reports)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    left.scatter([r.tested_epsilon or 0.0 for r in reports], places, marker="|", s=220, color="black", label="claimed")
    left.barh(
        places, [max(r.lower_bound or 0.0, 0.0) for r in reports], color="#4878a8", height=0.55, label="proved by runs"
    )
    exact = [(r.exact_epsilon, place) for r, place in zip(reports, places, strict=True) if r.exact_epsilon is not None]
    left.scatter([e for e, _ in exact], [p for _, p in exact], marker="x", color="#c05020", label="exact", zorder=3)
    left.set_xlabel("epsilon")
    left.set_yticks(places, names, fontsize=7)
    left.invert_yaxis()
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=3, fontsize=8)
    ratios = [(r.exact_delta / r.delta, p) for r, p in zip(reports, places, strict=True) if r.exact_delta and r.delta]
    right.barh([p for _, p in ratios], [ratio for ratio, _ in ratios], color="#4878a8", height=0.55)
    right.axvline(1.0, color="black", linewidth=1)
    right.set_xlabel("exact delta over claimed delta")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _intro(reports: Sequence[AuditReport], effort: str) -> str:
    passed = sum(report.passed for report in reports)
    twins = [twin for report in reports for twin in report.twins]
    return (
        f"discreet {discreet.__version__}, {effort} audit: {passed} of {len(reports)} configurations passed, "
        f"{sum(twin.caught for twin in twins)} of {len(twins)} broken twins were caught, "
        f"{sum(report.pairs for report in reports):,} neighbouring pairs were tried."
    )


_MEANING = (
    "claimed: the guarantee of the mechanism as configured. delta=...: the largest exact divergence at the claimed "
    "epsilon over all neighbouring pairs found. eps>=...: what runs of the compiled release prove (Clopper-Pearson; "
    "the chance of a false alarm in the whole audit is below 1e-6). A broken twin is a sabotaged version of the "
    "mechanism that the same checks must reject."
)


_DETAILS = ("kind", "check", "quantity", "claimed", "measured", "pairs", "result")


Section = tuple[str, Sequence[str], Sequence[str], Sequence[Sequence[str]]]
"""A heading, paragraphs, and a table with its headings."""


def _sections(reports: Sequence[AuditReport], effort: str) -> list[Section]:
    """The summary, and a section for every report."""
    summary = "Privacy audit", (_intro(reports, effort), _MEANING), HEADINGS, summary_rows(reports)
    return [summary, *((_title(each), (each.description + ".",), _DETAILS, _detail_rows(each)) for each in reports)]


def markdown_report(reports: Sequence[AuditReport], effort: str, path: Path) -> str:
    """Markdown; the picture is written beside it."""
    picture = path.with_suffix(".png")
    picture.write_bytes(plot(reports))
    lines: list[str] = []
    for title, texts, headings, rows in _sections(reports, effort):
        summary = not lines
        lines += [f"# {title}" if summary else f"## {title}", "", *(line for text in texts for line in (text, ""))]
        lines += [f"![claimed and measured]({picture.name})", ""] if summary else []
        lines += ["| " + " | ".join(cells) + " |" for cells in (headings, ["---"] * len(headings), *rows)]
        lines.append("")
    return "\n".join(lines)


def html_report(reports: Sequence[AuditReport], effort: str) -> str:
    """One HTML page with the picture inside."""

    def cell(text: str) -> str:
        return f"<td{' class=' + repr(text) if text == 'FAILED' else ''}>{html.escape(text)}</td>"

    picture = base64.b64encode(plot(reports)).decode()
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Privacy audit</title>",
        "<style>body{font:15px/1.5 sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}table{border-collapse:"
        "collapse;margin:1rem 0}td,th{border-bottom:1px solid #ccc;padding:.25rem .7rem;text-align:left}"
        ".FAILED{color:#b00020;font-weight:bold}img{max-width:100%}</style>",
    ]
    for place, (title, texts, headings, rows) in enumerate(_sections(reports, effort)):
        level = "h2" if place else "h1"
        parts.append(f"<{level}>{html.escape(title)}</{level}>" + "".join(f"<p>{html.escape(t)}</p>" for t in texts))
        if not place:
            parts.append(f"<img alt='claimed and measured epsilon' src='data:image/png;base64,{picture}'>")
        head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
        body = "".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in rows)
        parts.append(f"<table><tr>{head}</tr>{body}</table>")
    return "\n".join(parts) + "\n</html>\n"


def _title(report: AuditReport) -> str:
    return f"{report.mechanism}: {unit_words(report)}, {report.claim}"


def _detail_rows(report: AuditReport) -> list[tuple[str, ...]]:
    def cells(kind: str, check: str, found: Finding | None, passed: bool, pairs: int = 0) -> tuple[str, ...]:
        numbers = ("", "", "") if found is None else (found.quantity, f"{found.claimed:.6g}", f"{found.measured:.6g}")
        return (kind, check, *numbers, f"{pairs:,}" if pairs else "", "ok" if passed else "FAILED")

    rows = []
    for found in (finding for kind in KINDS for finding in report.of(kind)):
        detail = f" ({found.detail})" if found.detail else ""
        rows.append(cells(found.kind, found.check + detail, found, found.passed, found.pairs))
    for twin in report.twins:
        by = twin.caught_by
        how = f"caught by {by.kind}: {by.check}" if by else "not caught"
        rows.append(cells("sabotage", f"{twin.name}: {how}", by, twin.caught))
    return rows
