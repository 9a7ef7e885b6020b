"""What leaves, as a table for people, JSON, CSV or Parquet; and the tables themselves."""

from __future__ import annotations

import io
import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.privacy.checks import numbered
from discreet.releases.labels import cut, printable, readable, short

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.privacy.estimate import Estimate
    from discreet.privacy.guarantee import Guarantee
    from discreet.releases.release import Release, Row

_GAP = "   "
_NARROWEST = 8  # of a column that is folded


def as_table(release: Release, confidence: float = 0.95, width: int | None = None) -> str:
    """Items, counts and intervals for people, and what the release promises."""
    names, found = release.names, release.rows(confidence)
    rows = table_rows(release, names, found)
    rest = None if release.total is None else release.rest(confidence)
    if rest is not None:
        nothing = [""] * (len(names) - 1)
        rows.append(["(everything else)", *nothing, f"{int(rest.value):,}", intervals([rest.lower], [rest.upper])[0]])
    headings = [*names, COUNT_HEADINGS[release.counted], f"{100 * confidence:g}% interval"]
    table = table_text(headings, rows, (len(names), len(names) + 1), width)
    return f"{table}{paragraph(release.guarantee.sentence())}\n"


def table_rows(
    release: Release, names: Sequence[str], listed: Sequence[Row], cell: Callable[[Any], str] | None = None
) -> list[list[Any]]:
    """The cells of a table for people: the columns of the items, count and interval. A group is named in its first row.

    `cell` makes texts of the items, for tables that do not do so themselves. Groups of a public list without a
    published item have a row that says so.
    """
    items, numbers, lower, upper = zip(*listed, strict=True) if listed else ((), (), (), ())
    columns: list[Any] = [items] if len(names) == 1 else list(zip(*items, strict=True)) or [()] * len(names)
    if cell is not None:
        columns = [map(cell, column) for column in columns]
    counts = [f"{count:,}" for count in numbers]
    rows = [list(row) for row in zip(*columns, counts, intervals(lower, upper), strict=True)]
    if not release.by:
        return rows
    told: list[list[Any]] = []
    many, place = len(release.by), 0
    for group, found in release.groups.items():
        parts = list(group) if many > 1 else [group]
        parts = parts if cell is None else list(map(cell, parts))
        if not len(found):
            told.append([*parts, NONE_PASSED, *[""] * (len(names) - many - 1), "", ""])
        for index in range(len(found)):
            told.append([*(parts if index == 0 else [""] * many), *rows[place][many:]])
            place += 1
    return told


NONE_PASSED = "(no item passed)"
COUNT_HEADINGS = {"events": "estimate", "people": "people", "rows": "rows", "weights": "sum", "sums": "sum"}
"""What stands above the counts in a table for people."""
_COUNTS_OF = {"people": "counts of people", "rows": "counts of rows", "weights": "sums of weights"}
_COUNTS_OF["sums"] = "sums of values"


def foremost(release: Release, most: int) -> Release:
    """About `most` rows to show: of groups, the first of each."""
    shown = release.head(max(1, most // max(len(release.groups), 1)) if release.by else most)
    return shown.first(most) if len(shown) > most else shown


def foremost_rows(shown: Release, confidence: float, most: int) -> tuple[list[list[Any]], int]:
    """The rows of what `foremost` chose, and how many groups without an item have none, because all were too many."""
    rows = table_rows(shown, shown.names, shown.rows(confidence), readable)
    if not shown.by or len(rows) <= most:
        return rows, 0
    told = [row for row in rows if row[len(shown.by)] != NONE_PASSED]
    return told, len(rows) - len(told)


def as_text(release: Release, confidence: float = 0.95, most: int = 10) -> str:
    """How many rows there are and what is promised, and the first rows: what Python shows."""
    of = numbered(len(release), "item")
    if release.by:
        of += f" in {numbered(len(release.groups), 'group')}"
    if release.counted != "events":
        of += f", {_COUNTS_OF[release.counted]}"
    first = f"Release({of}; {release.guarantee.sentence()})"
    if not len(release) and not release.groups:
        return f"{first}\n{none_passed(release)}"
    shown = foremost(release, most)
    rows, empty = foremost_rows(shown, confidence, most)
    names = release.names
    many = len(names)
    columns = list(zip(*rows, strict=True)) or [()] * (many + 2)
    cells = [short(column, 60) if many > 1 else cut(column, 60) for column in columns[:many]]
    headings = [*names, COUNT_HEADINGS[release.counted], f"{100 * confidence:g}% interval"]
    table = table_text(headings, list(zip(*cells, *columns[many:], strict=True)), (many, many + 1))
    more = [f"... and {len(release) - len(shown):,} more"] if len(release) > len(shown) else []
    more += [f"In {numbered(empty, 'group')} no item passed."] if empty else []
    more += [] if len(release) else [none_passed(release)]
    return f"{first}\n{table}{chr(10).join(more)}".rstrip("\n")


def needed(release: Release) -> str:
    """How frequent an item must be to be listed, in words."""
    from discreet.releases.explain import pairs_are_listed

    cut = math.ceil(release.threshold or 0)
    if release.counted == "events":
        rows = f"{numbered(cut, 'row')}{' more than the offset' if release.offset is not None else ''}"
        return f"an item needs about {rows}; with twice the epsilon, about half as many"
    many = math.ceil(math.sqrt(50) * (release.threshold or 0))
    which = "each of its items" if pairs_are_listed(release.guarantee.mechanism) else "an item"
    people = f"{cut:,} people if they have no other items, or {many:,} if each of them has 50"
    return f"{which} needs about {people}; with twice the epsilon, about half as many"


def none_passed(release: Release) -> str:
    """What to say of an empty list."""
    return f"No item passed the threshold{'' if release.threshold is None else f': {needed(release)}'}."


def csv_writer(file: io.StringIO, lineterminator: str = "\r\n") -> Any:
    """A `csv.writer` for any text.

    Python 3.10 takes NUL for the escape character if none is set, and then refuses to write a NUL. The one set here is
    half of a surrogate pair, which no text contains: nothing is ever escaped.
    """
    import csv

    return csv.writer(file, lineterminator=lineterminator, escapechar="\ud800")


def csv_text(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Rows below their names."""
    text = io.StringIO(newline="")
    csv_writer(text, lineterminator="\n").writerows([names, *rows])
    return text.getvalue()


def parquet_of(table: pa.Table, told: dict[str, Any], but: str) -> bytes:
    """A table as Parquet; all else that is told, `but` its rows, is in the metadata "discreet", as JSON."""
    import pyarrow.parquet

    sink, rest = io.BytesIO(), {name: value for name, value in told.items() if name != but}
    pyarrow.parquet.write_table(table.replace_schema_metadata({"discreet": json.dumps(rest)}), sink)
    return sink.getvalue()


FORMATS: dict[str, Callable[[Release, float, int | None], str | bytes]] = {
    "table": as_table,
    "json": lambda release, confidence, width: release.to_json(confidence) + "\n",
    "csv": lambda release, confidence, width: release.to_csv(None, confidence),
    "parquet": lambda release, sure, width: parquet_of(release.to_arrow(sure), release.to_dict(sure), "items"),
}
"""How a release is written: a name, and the function of the release, the confidence and the width of a table."""


def formats_of(answer: Any) -> Mapping[str, Callable[[Any, float, int | None], str | bytes]]:
    """How an answer is written, by the name of the format."""
    if hasattr(answer, "error_model"):
        return FORMATS
    return _COUNT_FORMATS if hasattr(answer, "value") else _OWN_FORMATS


def notes_of(answer: Any) -> Sequence[str]:
    """What an answer says of itself beside its numbers and its guarantee: what is missing in it, say."""
    notes = getattr(answer, "notes", ())
    found: Sequence[str] = notes() if callable(notes) else notes
    return found


def described(answer: Any, confidence: float) -> dict[str, Any]:
    """An answer as JSON has it."""
    told: dict[str, Any] = json.loads(formats_of(answer)["json"](answer, confidence, None))
    return told


_OWN_FORMATS: Mapping[str, Callable[[Any, float, int | None], str | bytes]] = {
    "table": lambda answer, confidence, width: answer.to_table(width),
    "json": lambda answer, confidence, width: answer.to_json() + "\n",
    "csv": lambda answer, confidence, width: answer.to_csv(),
    "html": lambda answer, confidence, width: answer.to_html(),
    "parquet": lambda answer, confidence, width: answer.to_parquet(),
}
"""Of answers that have a confidence of their own."""

_OF = r"noisy (?:(?:count|number) (?:of|over) (rows|people)|(sum|mean|variance))\b"  # names of mechanisms


def _counted(estimate: Estimate) -> str:
    """What a number is of, or what it is."""
    found = re.match(_OF, estimate.guarantee.mechanism) if estimate.guarantee is not None else None
    return "values" if found is None else found[1] or found[2]


def _count_table(estimate: Estimate, confidence: float, width: int | None) -> str:
    from discreet.releases.estimate_table import figure

    numbers = (estimate.value, estimate.lower, estimate.upper)
    whole = _counted(estimate) in ("rows", "people", "values")
    value, lower, upper = (figure(int(each) if whole and math.isfinite(each) else float(each)) for each in numbers)
    headings = [_counted(estimate), f"{100 * confidence:g}% interval"]
    promised = estimate.guarantee.sentence() if estimate.guarantee is not None else ""
    row = value, f"{lower} to {upper}"
    return f"{table_text(headings, [row], (0, 1), width)}{paragraph(promised)}\n"


def _count_json(estimate: Estimate, confidence: float, width: int | None) -> str:
    return json.dumps({"number_of": _counted(estimate), **describe_estimate(estimate, confidence)}) + "\n"


def _count_csv(estimate: Estimate, confidence: float, width: int | None) -> str:
    numbers = (estimate.value, estimate.lower, estimate.upper)
    cells = ["" if math.isinf(each) else str(int(each) if float(each).is_integer() else each) for each in numbers]
    of = _counted(estimate)
    return f"{'count' if of in ('rows', 'people', 'values') else of},lower,upper\n{','.join(cells)}\n"


_COUNT_FORMATS = {"table": _count_table, "json": _count_json, "csv": _count_csv}


def describe_estimate(estimate: Any, confidence: float) -> dict[str, Any]:
    """An estimate of one value or of several, JSON-ready: an infinite bound is null."""
    from discreet.releases.estimate_table import plain

    told = {name: getattr(estimate, name, None) for name in ("value", "values", "lower", "upper")}
    promised = None if estimate.guarantee is None else estimate.guarantee.to_dict()
    numbers = {
        name: [plain(one) for one in each] if isinstance(each, tuple) else plain(each)
        for name, each in told.items()
        if each is not None
    }
    asked = getattr(estimate, "asked", None) or {}
    missing = estimate.missing() if hasattr(estimate, "missing") else {}
    return {**numbers, **missing, "confidence": confidence, "guarantee": promised, **asked}


def estimate_table(name: str, estimate: Any, confidence: float, width: int | None = None) -> str:
    """An estimate of one value, or of several (by place, or 0, 1, 2 and so on), for people; and what it promises."""
    if hasattr(estimate, "value"):
        heading, numbers = "estimator", [(name, estimate.value, estimate.lower, estimate.upper)]
    else:
        places = getattr(estimate, "places", None) or map(str, range(len(estimate.values)))
        heading, numbers = name, list(zip(places, estimate.values, estimate.lower, estimate.upper, strict=True))
    rows = [(what, f"{value:,.6g}", f"{low:,.6g} to {high:,.6g}") for what, value, low, high in numbers]
    text = table_text([heading, "estimate", f"{100 * confidence:g}% interval"], rows, (1, 2), width)
    return text if estimate.guarantee is None else f"{text}{paragraph(estimate.guarantee.sentence())}\n"


def tick_text(result: dict[str, Any], horizon: int | None, guarantee: Guarantee, width: int | None = None) -> str:
    """The release of a tick for people: what was counted, how far off it may be, and what is promised."""
    when = f", from {result['start']} to {result['end']}" if "end" in result else ""
    lines = [f"Tick {result['tick']}{'' if horizon is None else f' of {horizon}'}{when}."]
    covers = result.get("covers")  # a release of an older state does not say it
    if covers is not None:
        first, last = covers["first_tick"], covers["last_tick"]
        some = f"ticks {first} to {last} together" if first < last else f"tick {last} alone"
        lines.append(f"Counts are of {some}{'' if first > 1 else ', all so far'}.")
    if "items" in result:
        shown = result["items"]
        between = intervals([row["lower"] for row in shown], [row["upper"] for row in shown])
        rows = [(row["item"], f"{row['count']:,}", ends) for row, ends in zip(shown, between, strict=True)]
        people = result.get("counted") == "people"
        cut = f" of about {result['threshold']:,} people" if people and result.get("threshold") else ""
        headings = ["item", "people" if people else "estimate", f"{result['confidence']:.0%} interval"]
        table = table_text(headings, rows, (1, 2), width)
        lines += ["", table if rows else f"No item passed the threshold{cut}.\n"]
    else:
        spread = math.ceil(1.96 * result["standard_deviation"])
        number, of = (result["people"], "different people") if "people" in result else (result["total"], "rows")
        low, high = max(0, number - spread), number + spread
        lines += ["", f"{number:,} {of}; 95% interval {low:,} to {high:,}.", ""]
    lines += _risen(result["increase"], width) if "increase" in result else []
    return "\n".join(lines) + "\n" + paragraph(guarantee.sentence())


def _risen(risen: dict[str, Any], width: int | None) -> list[str]:
    """How much a tick rose, for people."""
    since, sure = f"Since tick {risen['since']}", f"{risen['confidence']:.0%} interval"
    if "value" in risen:
        return [f"{since}: {risen['value']:,}; {sure} {risen['lower']:,} to {risen['upper']:,}.", ""]
    rows = risen["items"]
    between = intervals([row["lower"] for row in rows], [row["upper"] for row in rows])
    cells = [(row["item"], f"{row['increase']:,}", ends) for row, ends in zip(rows, between, strict=True)]
    table = table_text(["item", "increase", sure], cells, (1, 2), width)
    return [f"{since}:", "", table if cells else "No item was listed at both ticks.\n"]


paragraph = textwrap.TextWrapper(100).fill
"""A text in lines of at most 100 characters."""


def intervals(lower: Iterable[float | None], upper: Iterable[float | None]) -> list[str]:
    """Intervals of counts for people; None or infinity where a bound is not known."""
    lows = ["?" if low is None or math.isinf(low) else f"{low:,.0f}" for low in lower]
    highs = ["?" if high is None or math.isinf(high) else f"{high:,.0f}" for high in upper]
    return [f"{low} to {high}" for low, high in zip(lows, highs, strict=True)]


# ---- tables ----------------------------------------------------------------------------------------------------------


def table_text(
    headings: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[int] = (), width: int | None = None
) -> str:
    """A table; columns in `right` are aligned to the right. The others are folded where `width` asks for it."""
    columns = [
        [cell if type(cell) is str and cell.isprintable() else printable(cell) for cell in (heading, *column)]
        for heading, column in zip(headings, list(zip(*rows, strict=True)) or [()] * len(headings), strict=True)
    ]
    sizes = [[len(text) if text.isascii() else sum(map(_cell, text)) for text in column] for column in columns]
    widths = [max(each) for each in sizes]
    head = 1
    if width is not None and sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        columns, head = _folded(columns, widths, [place for place in range(len(widths)) if place not in right], width)
        sizes = [[sum(map(_cell, text)) for text in column] for column in columns]
    aligned = [
        [" " * (most - size) + cell if place in right else cell + " " * (most - size)
         for cell, size in zip(column, own, strict=True)]
        for place, (column, own, most) in enumerate(zip(columns, sizes, widths, strict=True))
    ]  # fmt: skip
    lines = [_GAP.join(row).rstrip() for row in zip(*aligned, strict=True)]
    lines.insert(head, "─" * (sum(widths) + len(_GAP) * (len(widths) - 1)))
    return "\n".join(lines) + "\n"


def _cell(character: str) -> int:
    """How many cells of a terminal it takes."""
    import unicodedata

    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _folded(
    columns: Sequence[Sequence[str]], widths: list[int], foldable: Sequence[int], width: int
) -> tuple[list[list[str]], int]:
    """Cells that are too wide, in several lines; and how many lines the headings take.

    The widest columns are made narrower until the table fits, or all are as narrow as can be read.
    """
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        widest = max(foldable, key=lambda place: widths[place], default=None)
        if widest is None or widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    lines: list[list[str]] = [[] for _ in columns]
    head = 0
    for row in zip(*columns, strict=True):
        parts = [_parts(cell, width) for cell, width in zip(row, widths, strict=True)]
        most = max(map(len, parts))
        head = head or most
        for column, part in zip(lines, parts, strict=True):
            column += part + [""] * (most - len(part))
    return lines, head


def _parts(text: str, width: int) -> list[str]:
    parts, room = [""], width
    for character in text:
        size = _cell(character)
        if size > room:
            parts.append("")
            room = width
        parts[-1] += character
        room -= size
    return parts
