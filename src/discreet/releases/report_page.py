"""A report as a page that stands alone: no script, no other host; for screens of any width, dark ones, and paper."""

from __future__ import annotations

import datetime
import html
from typing import TYPE_CHECKING, Any

from discreet._bars import amount, between, interval_bar, reach
from discreet.releases.estimate_table import figure
from discreet.releases.explain import explanation, factor_of, spent
from discreet.releases.formats import notes_of
from discreet.releases.html import as_html
from discreet.releases.labels import readable
from discreet.releases.line_chart import Point, line_chart
from discreet.releases.release import Release

if TYPE_CHECKING:
    from discreet.releases.report_release import ReportPart, ReportRelease

_ROWS = 25  # of a table that is shown at once
_MOST = 1000  # of one that is opened

_SPANS = {"1h": "hour", "1d": "day", "1w": "week", "1mo": "month", "1y": "year"}

_STYLE = """
:root{color-scheme:light dark;--text:#1c2430;--ground:#fff;--quiet:#5a6472;--line:#d5dae1;--card:#f5f7fa;--warn:#b3261e;
--c0:#1f6fb5;--c1:#b4530a;--c2:#2d7d46;--c3:#8a3ea8;--c4:#a8323c}
@media(prefers-color-scheme:dark){:root{--text:#e6e9ee;--ground:#14181f;--quiet:#a3adba;--line:#39424f;--card:#1d232d;
--warn:#ff8a80;--c0:#6db3f2;--c1:#f0a35e;--c2:#78cf92;--c3:#d29bea;--c4:#f28b94}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{margin:0 0 .3rem;font-size:1.9rem;line-height:1.2}h2{margin:0 0 .2rem;font-size:1.25rem}
p{max-width:46rem}.quiet{color:var(--quiet);margin:0 0 .8rem}.warn{color:var(--warn);font-weight:600}
section{border-top:1px solid var(--line);padding:1.3rem 0;break-inside:avoid-page}
.number{font-size:2.4rem;font-weight:600;line-height:1.2}
.bar{max-width:30rem}.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.plain th,.plain td{padding:.25em .8em;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
.plain .n{text-align:right;white-space:nowrap}
td>bdi{white-space:pre-wrap;overflow-wrap:anywhere}
.chart{display:block;width:100%;height:auto;max-width:52rem;font:12px system-ui,sans-serif;fill:var(--quiet)}
.grid{stroke:var(--line)}.line{fill:none;stroke-width:2}.band{opacity:.18}.band.many{opacity:.09}
.line.c0{stroke:var(--c0)}.line.c1{stroke:var(--c1)}.line.c2{stroke:var(--c2)}.line.c3{stroke:var(--c3)}
.line.c4{stroke:var(--c4)}.band.c0,.dot.c0{fill:var(--c0)}.band.c1,.dot.c1{fill:var(--c1)}
.band.c2,.dot.c2{fill:var(--c2)}.band.c3,.dot.c3{fill:var(--c3)}.band.c4,.dot.c4{fill:var(--c4)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;margin:.4rem 0;padding:0;font-size:.9rem}
details{margin-top:.8rem}summary{cursor:pointer;color:var(--quiet)}pre{white-space:pre-wrap;font:inherit}
@media(max-width:36rem){main{padding:1rem .8rem 2rem}h1{font-size:1.5rem}
.wide td,.wide th{padding:.2em .35em!important;width:auto!important;font-size:.85rem}
.wide td:has(>span[role=img]){display:none}.wide thead td{display:none}.chart{font-size:22px}}
@media print{body{font-size:11pt}main{max-width:none;padding:0}details{display:none}.promise{break-before:auto}}
"""


def page(report: ReportRelease) -> str:
    """The whole page."""
    title = html.escape(report.title)
    when = "" if report.asked is None else f"Made {_date(report.asked.time)} with discreet {report.asked.version}."
    sections = "".join(_section(report, part) for part in report.parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><main>"
        f"<header><h1>{title}</h1>{_promise_in_short(report)}</header>{sections}{_promise(report)}"
        f'<footer class="quiet">{html.escape(when)}</footer></main></body></html>\n'
    )


def fragment(report: ReportRelease) -> str:
    """The same for a notebook: answers one below the other, and the promise."""
    answers = "".join(
        f'<h3 style="margin:1em 0 .2em">{html.escape(part.title)}</h3>{_answer(report, part)}' for part in report.parts
    )
    return (
        f'<div style="color:inherit;line-height:1.4"><h2>{html.escape(report.title)}</h2>{answers}'
        f'<div style="margin-top:1em">{_promise_in_short(report)}</div></div>'
    )


def _section(report: ReportRelease, part: ReportPart) -> str:
    heading = f'<h2>{html.escape(part.title)}</h2><p class="quiet">{html.escape(_asked(part))}</p>'
    points = _series(part.answer, report.each_confidence)
    chart = line_chart(part.title, points) if points else ""
    table = f'<div class="wide">{_answer(report, part)}</div>'
    if chart:
        table = f"<details><summary>The numbers as a table</summary>{table}</details>"
    return f"<section>{heading}{chart}{table}</section>"


def _answer(report: ReportRelease, part: ReportPart) -> str:
    """The numbers of an answer with bars and intervals."""
    answer, confidence = part.answer, report.each_confidence
    if isinstance(answer, Release):
        return as_html(answer, confidence, _MOST if answer.by else _ROWS, of_page=True)
    if hasattr(answer, "value"):
        bar = interval_bar(answer.value, answer.lower, answer.upper, reach([answer.value], [answer.upper]))
        between_ = html.escape(between(answer.lower, answer.upper))
        return (
            f'<div class="number">{amount(answer.value)}</div><div class="bar">{bar}</div>'
            f'<div class="quiet">{between_}</div>{_notes(answer)}'
        )
    return _estimates(answer)


def _estimates(answer: Any) -> str:
    """Estimates one below the other: keys, a bar where values are numbers, value, interval."""
    rows = answer.cells
    plain = all(isinstance(number, (int, float)) for row in rows for number in row[-3:])
    right = reach([row[-3] for row in rows], [row[-1] for row in rows]) if plain else 1.0
    body, before = [], ()
    for *keys, value, lower, upper in rows:
        told = ["" if keys[:-1] and key == old else _key(name, key) for name, key, old in
                zip(answer.names, keys, before or [None] * len(keys), strict=True)]  # fmt: skip
        before = (*keys[:-1], None)
        bar = f'<td style="width:16em">{interval_bar(value, lower, upper, right)}</td>' if plain else ""
        between_ = between(lower, upper) if plain else f"{figure(lower)} to {figure(upper)}"
        body.append(
            f"<tr>{''.join(f'<td><bdi>{html.escape(each)}</bdi></td>' for each in told)}{bar}"
            f'<td class="n"><b>{figure(value)}</b></td><td class="n">{html.escape(between_)}</td></tr>'
        )
    head = "".join(f"<th>{html.escape(readable(name))}</th>" for name in answer.names)
    head += f'{"<td></td>" if plain else ""}<th class="n">{answer.value_heading}</th><th class="n">interval</th>'
    return f'<table class="plain"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>{_notes(answer)}'


def _notes(answer: Any) -> str:
    return "".join(f"<p>{html.escape(text)}</p>" for text in notes_of(answer))


def _key(name: str, key: Any) -> str:
    if name == "quantile" and isinstance(key, float):
        return "half are below" if key == 0.5 else f"{100 * key:g} % are below"
    return readable(key)


def _series(answer: Any, confidence: float) -> dict[str, list[Point]]:
    """The lines of an answer whose first groups are spans of time; none of any other."""
    if isinstance(answer, Release) and answer.by:
        rows = [(*item, *numbers) for item, *numbers in answer.rows(confidence)]
    elif hasattr(answer, "cells"):
        rows = answer.cells
    else:
        return {}
    found: dict[str, list[Point]] = {}
    for time, *rest, value, lower, upper in rows:
        if not isinstance(time, datetime.date) or not isinstance(value, (int, float)):
            return {}
        found.setdefault(" · ".join(map(readable, rest)), []).append(Point(time, value, lower, upper))
    return found


def _asked(part: ReportPart) -> str:
    """What was asked, in words."""
    said = part.question
    column = said.get("column") or said.get("value")
    names = column if isinstance(column, list) else [column] if column else []
    what = {
        "top": f"The most frequent values of {' and '.join(map(str, names))}, at most {said.get('k')}",
        "count": "How many people there are" if said.get("user") else "How many rows there are",
        "distinct": f"How many different values {' and '.join(map(str, names))} has",
        "histogram": f"How often every listed value of {' and '.join(map(str, names))} occurs",
        "quantiles": f"Below which values of {' and '.join(map(str, names))} shares of the data lie",
    }.get(str(said["kind"]), f"The {said['kind']} of {' and '.join(map(str, names))}")
    if said["kind"] == "distinct" and names and names[0] == said.get("user"):
        what = "How many people there are"
    by = said.get("by")
    groups = [*([] if by is None else [by] if isinstance(by, str) else by)]
    each = [*groups, *([_SPANS.get(said["every"], said["every"])] if "every" in said else [])]
    more = f", for every {' and '.join(each)}" if each else ""
    where = f", of rows where {said['where']}" if said.get("where") else ""
    counted = {"people": " Counts are people.", "rows": " Counts are rows of people."}
    return f"{what}{more}{where}.{counted.get(getattr(part.answer, 'counted', ''), '')}"


def _whose(report: ReportRelease) -> tuple[str, str]:
    person = report.guarantee.unit.to_dict()["name"] == "User"
    if report.guarantee.unit.spans is not None:
        return f"what any one person did within {report.guarantee.unit.spans.describe()}", "what they did then"
    return ("any one person", "their rows") if person else ("any one row", "it")


def _promise_in_short(report: ReportRelease) -> str:
    if report.guarantee.seeded:
        return f'<p class="warn">{html.escape(report.guarantee.sentence())}</p>'
    whom, _ = _whose(report)
    return (
        f'<p class="quiet">Random noise in every number hides {whom}. All intervals on this page hold together with a '
        f"probability of {100 * report.confidence:g} %.</p>"
    )


def _promise(report: ReportRelease) -> str:
    """What is promised, and what was spent."""
    guarantee = report.guarantee.to_dict()
    rows = "".join(
        f'<tr><td>{html.escape(part.title)}</td><td class="n">{100 * part.question["share"]:.1f} %</td>'
        f"<td>{html.escape(_budget(part.budget))}</td></tr>"
        for part in report.parts
    )
    head = '<tr><th>question</th><th class="n">share</th><th>given to its mechanism</th></tr>'
    words = "".join(f"<pre>{html.escape(text)}</pre>" for text in explanation(guarantee))
    whole, each = report.guarantee.epsilon, [part.budget.epsilon for part in report.parts]
    pooled = ""
    if whole is not None and sum(one or 0.0 for one in each) > whole * (1.0 + 1e-9):
        pooled = (
            " The epsilons below add up to more than that: answers with Gaussian noise reveal less together than the "
            "sum of their epsilons says."
        )
    return (
        '<section class="promise"><h2>What is promised</h2>'
        f"{_meaning(report, guarantee)}<h2>What was spent</h2>"
        f"<p>Everything on this page together: {html.escape(_budget(report.guarantee))}.{pooled}</p>"
        f'<div class="wide"><table class="plain"><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
        f"<details><summary>In detail</summary>{words}</details></section>"
    )


def _budget(spends: Any) -> str:
    """What is spent, for people."""
    if spends.epsilon is None:
        return f"rho = {spends.rho:.3g} (zCDP)"
    return f"epsilon = {spends.epsilon:.3g}" + (f", delta = {spends.delta:.3g}" if spends.delta else "")


def _meaning(report: ReportRelease, guarantee: dict[str, Any]) -> str:
    if report.guarantee.seeded:
        return f'<p class="warn">{html.escape(report.guarantee.sentence())}</p>'
    whom, what = _whose(report)
    delta = spent(guarantee)[1]
    more = f", and by at most {delta:g} more" if delta else ""
    least = 100 * report.each_confidence
    return (
        f"<p>Whatever somebody concludes from this page, they would have concluded nearly the same without the data of "
        f"{whom}: with or without {what}, the chances of everything on it differ by a factor of at most "
        f"{factor_of(guarantee)}{more}. That holds whatever else they know. Facts about everybody together can still "
        f"be learned, which is what the page is for.</p>"
        f"<p>An interval says how far the noise may have moved a number. The intervals of one question hold together "
        f"with {least:.4g} %, all of the page with {100 * report.confidence:g} %. What is not listed may still have "
        f"occurred.</p>"
    )


def _date(time: str) -> str:
    moment = datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
    return f"{moment.day} {moment:%B %Y}"
