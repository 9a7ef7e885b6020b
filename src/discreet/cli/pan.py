"""`discreet pan`: estimates whose working state may fall into anyone's hands."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.interrupts import uninterrupted
from discreet.cli.options import LOCK_WAIT_SECONDS, BadRows, InputFormat, Quiet, TextFormat
from discreet.cli.output import note_left_out, table_text
from discreet.errors import DataError, ParameterError

if TYPE_CHECKING:
    from discreet.pan import PanEstimate
    from discreet.storage import StateFile

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Estimates whose working state is private: one look at the memory or the state file, and what is printed, "
    "stay within epsilon.",
)

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE...]", help="Files or patterns; '-' is standard input. None: the state alone.", show_default=False
    ),
]
Column = Annotated[
    str | None, typer.Option(help="The column of the items; by default the only one.", show_default=False)
]
UniverseText = Annotated[
    str | None,
    typer.Option(
        "--universe",
        help="All elements that may occur: N for 0 to N-1, A:B for A to B-1, or a file with one element a line "
        "(empty lines are left out).",
        show_default=False,
    ),
]
Epsilon = Annotated[
    float | None, typer.Option(help="The whole budget: one look at the state, and all releases.", show_default=False)
]
SampleSize = Annotated[
    int | None, typer.Option(help="How many elements get an entry; by default 100,000.", show_default=False)
]
State = Annotated[
    Path | None,
    typer.Option(help="Keep the state in this file: it is made, or continued. Safe to keep.", show_default=False),
]
Release = Annotated[
    bool, typer.Option("--release", help="With --state: also publish an estimate, from one of the planned releases.")
]
Releases = Annotated[int | None, typer.Option(help="How many releases epsilon covers.", show_default="1")]
Announced = Annotated[int | None, typer.Option(help="How many announced intrusions epsilon covers.", show_default="0")]
Announce = Annotated[
    bool, typer.Option("--announce-intrusion", help="The state was seen: re-randomise it before anything is read.")
]
Confidence = Annotated[float | None, typer.Option(help="Of the interval.", show_default="0.95")]
Nulls = Annotated[bool, typer.Option("--skip-nulls", help="Leave rows without a value out; else they are an error.")]
Bad = Annotated[
    BadRows,
    typer.Option(
        "--bad-rows",
        help="Rows that cannot be read are left out (their number is told to you alone), or an error.",
    ),
]
Format = Annotated[TextFormat, typer.Option("--format", help="How to print the estimate.")]


@dataclass
class Run:
    """The options that all estimators share."""

    files: list[str] | None
    column: str | None
    epsilon: float | None
    state: Path | None
    release: bool
    releases: int | None
    announced_intrusions: int | None
    announce: bool
    confidence: float | None
    skip_nulls: bool
    bad_rows: BadRows
    input_format: str | None
    format: TextFormat
    quiet: bool

    def __call__(self, kind: str, make: Callable[[dict[str, Any]], Any], own: dict[str, Any]) -> None:
        """Make or load the estimator, feed it, write the state, print the release."""
        import discreet.pan

        cls = getattr(discreet.pan, kind)
        if self.state is None:
            if self.release:
                raise ParameterError("--release is for --state; without a state an estimate is always printed")
            self._work(kind, self._make(make), None)
        else:
            from discreet.storage import locked

            # One use after the other: a second release from what the first one read would be drawn for nothing.
            with locked(self.state, wait_seconds=LOCK_WAIT_SECONDS) as kept:
                self._work(kind, self._load(cls, own, kept.read()) if kept.exists else self._make(make), kept)

    def _work(self, kind: str, estimator: Any, kept: StateFile | None) -> None:
        """Feed the estimator, release if that is wanted, replace the state as a whole, and print the release.

        The old file is zeroed: two states of different times tell more than one.
        """
        if self.announce:
            estimator.announce_intrusion()
        self._feed(estimator)
        with uninterrupted():
            estimate = estimator.release() if self.release or kept is None else None
            if kept is not None:
                kept.replace(estimator.to_bytes(), erase=True)
            if estimate is not None:
                _show(kind, estimate, estimator._settings.confidence, self.format)

    def _make(self, make: Callable[[dict[str, Any]], Any]) -> Any:
        if self.epsilon is None:
            raise ParameterError("a budget is needed: --epsilon")
        from discreet.privacy.budget import Budget

        options: dict[str, Any] = {
            "releases": self.releases,
            "announced_intrusions": self.announced_intrusions,
            "confidence": self.confidence,
        }
        given = {name: value for name, value in options.items() if value is not None}
        return make({"budget": Budget(self.epsilon), **given})

    def _load(self, cls: Any, own: dict[str, Any], data: bytes) -> Any:
        estimator = cls.from_bytes(data)
        settings = estimator._settings
        stored = {
            "epsilon": settings.epsilon,
            "releases": settings.releases,
            "announced-intrusions": settings.announced_intrusions,
            "confidence": settings.confidence,
            **estimator._parameters(),
        }
        asked = {
            "epsilon": self.epsilon,
            "releases": self.releases,
            "announced-intrusions": self.announced_intrusions,
            "confidence": self.confidence,
            **own,
        }
        for name, value in asked.items():
            if value is not None and value != stored[name]:
                raise ParameterError(f"the state was made with another --{name.replace('_', '-')}; leave it out")
        return estimator

    def _feed(self, estimator: Any) -> None:
        from discreet.cli.progress import ReadingProgress
        from discreet.events.stream import open_stream

        if not self.files:
            if self.state is None:
                raise ParameterError("give files to read ('-' is standard input), or --state")
            return
        stream = open_stream(
            self.files,
            column=self.column,
            format=self.input_format,
            nulls="skip" if self.skip_nulls else "error",
            bad_rows=self.bad_rows.value,
        )
        rows, fitting, fit = 0, 0, _fitting(estimator, self.bad_rows)
        with ReadingProgress(stream.bytes_total, self.quiet) as progress:
            for batch in stream:
                items = batch.column("item")
                rows += len(items)
                for part in fit(items):
                    fitting += len(part)
                    estimator.update(part)
                progress.update(rows, stream.bytes_read)
        note_left_out(stream.bad_rows + rows - fitting, self.quiet)


def _fitting(estimator: Any, bad_rows: BadRows) -> Callable[[Any], Iterator[Any]]:
    """Items as the elements of the universe are written: numbers in a text file are text, in a table they are not."""
    universe = getattr(estimator, "universe", None)
    if universe is None:
        return lambda items: iter((items,))
    return (lambda items: _as_integers(items, bad_rows)) if universe.has_numbers else _as_text


def _as_text(items: Any) -> Iterator[Any]:
    import pyarrow as pa

    yield items.cast(pa.string()) if pa.types.is_integer(items.type) else items


def _as_integers(items: Any, bad_rows: BadRows) -> Iterator[Any]:
    """Lines of text as the integers they are written as.

    Which line is none depends on that line alone: halves are tried until it is by itself.
    """
    import pyarrow as pa

    if not (pa.types.is_string(items.type) or pa.types.is_large_string(items.type)):
        yield items
        return
    try:
        yield items.cast(pa.int64())
    except pa.ArrowInvalid:
        if bad_rows is BadRows.error:
            raise DataError("the universe has integers, and an item is not written as one") from None
        half = len(items) // 2
        if half:
            yield from _as_integers(items[:half], bad_rows)
            yield from _as_integers(items[half:], bad_rows)


def _universe(text: str | None) -> Any:
    if text is None:
        return None
    first, colon, last = text.partition(":")
    with suppress(ValueError):
        return range(int(first), int(last)) if colon else range(int(first))
    path = Path(text)
    if not path.is_file():
        raise ParameterError("--universe must be N, A:B or a file with one element a line")
    return list(_lines(path))


def _lines(path: Path) -> Iterator[str]:
    from discreet.events.stream import open_stream

    for batch in open_stream([str(path)], format="text"):
        yield from filter(None, batch.column("item").to_pylist())


def _described(universe: Any) -> dict[str, Any] | None:
    if universe is None:
        return None
    from discreet.events.universe import Universe

    return Universe.of(universe).outline()


def _needed(universe: Any) -> Any:
    if universe is None:
        raise ParameterError("--universe is needed to start: N, A:B or a file with one element a line")
    return universe


def _required(name: str, value: Any) -> Any:
    if value is None:
        raise ParameterError(f"--{name} is needed to start")
    return value


def _show(kind: str, estimate: PanEstimate, confidence: float, format: TextFormat) -> None:
    assert estimate.guarantee is not None
    if format is TextFormat.json:
        upper = estimate.upper if estimate.upper != float("inf") else None
        numbers = {"value": estimate.value, "lower": estimate.lower, "upper": upper, "confidence": confidence}
        print(json.dumps({"estimator": kind, **numbers, "guarantee": estimate.guarantee.to_dict()}))
        return
    rows = [(kind, f"{estimate.value:,.6g}", f"{estimate.lower:,.6g} to {estimate.upper:,.6g}")]
    heading = ["estimator", "estimate", f"{100 * confidence:g}% interval"]
    sentence = textwrap.fill(estimate.guarantee.sentence(), 100)
    sys.stdout.write(f"{table_text(heading, rows, right=[1, 2])}{sentence}\n")


@app.command("density")
def density(
    files: Files = None,
    column: Column = None,
    universe: UniverseText = None,
    epsilon: Epsilon = None,
    sample_size: SampleSize = None,
    state: State = None,
    release: Release = False,
    releases: Releases = None,
    announced_intrusions: Announced = None,
    announce_intrusion: Announce = False,
    confidence: Confidence = None,
    skip_nulls: Nulls = False,
    bad_rows: Bad = BadRows.skip,
    input_format: InputFormat = None,
    format: Format = TextFormat.table,
    quiet: Quiet = False,
) -> None:
    """The fraction of a universe that occurs."""
    elements = _universe(universe)
    run = Run(files, column, epsilon, state, release, releases, announced_intrusions, announce_intrusion, confidence,
              skip_nulls, bad_rows, input_format, format, quiet)  # fmt: skip

    def make(options: dict[str, Any]) -> Any:
        from discreet.pan import Density

        return Density(_needed(elements), sample_size=sample_size, **options)

    run("Density", make, {"universe": _described(elements), "sample_size": sample_size})


@app.command("distinct")
def distinct(
    files: Files = None,
    column: Column = None,
    epsilon: Epsilon = None,
    buckets: Annotated[
        int | None, typer.Option(help="Buckets of a level; more are more accurate.", show_default="16384")
    ] = None,
    state: State = None,
    release: Release = False,
    releases: Releases = None,
    announced_intrusions: Announced = None,
    announce_intrusion: Announce = False,
    confidence: Confidence = None,
    skip_nulls: Nulls = False,
    bad_rows: Bad = BadRows.skip,
    input_format: InputFormat = None,
    format: Format = TextFormat.table,
    quiet: Quiet = False,
) -> None:
    """The number of distinct items, of any universe."""
    run = Run(files, column, epsilon, state, release, releases, announced_intrusions, announce_intrusion, confidence,
              skip_nulls, bad_rows, input_format, format, quiet)  # fmt: skip

    def make(options: dict[str, Any]) -> Any:
        from discreet.pan import DistinctCount

        return DistinctCount(**options) if buckets is None else DistinctCount(buckets=buckets, **options)

    run("DistinctCount", make, {"buckets": buckets})


@app.command("cropped-mean")
def cropped_mean(
    files: Files = None,
    t: Annotated[int | None, typer.Option("-t", "--t", help="Where a count is cropped.", show_default=False)] = None,
    column: Column = None,
    universe: UniverseText = None,
    epsilon: Epsilon = None,
    sample_size: SampleSize = None,
    state: State = None,
    release: Release = False,
    releases: Releases = None,
    announced_intrusions: Announced = None,
    announce_intrusion: Announce = False,
    confidence: Confidence = None,
    skip_nulls: Nulls = False,
    bad_rows: Bad = BadRows.skip,
    input_format: InputFormat = None,
    format: Format = TextFormat.table,
    quiet: Quiet = False,
) -> None:
    """How often elements occur on average, each counted at most t times."""
    elements = _universe(universe)
    run = Run(files, column, epsilon, state, release, releases, announced_intrusions, announce_intrusion, confidence,
              skip_nulls, bad_rows, input_format, format, quiet)  # fmt: skip

    def make(options: dict[str, Any]) -> Any:
        from discreet.pan import CroppedMean

        return CroppedMean(_needed(elements), _required("t", t), sample_size=sample_size, **options)

    run("CroppedMean", make, {"universe": _described(elements), "sample_size": sample_size, "t": t})


@app.command("heavy-fraction")
def heavy_fraction(
    files: Files = None,
    k: Annotated[int | None, typer.Option("-k", "--k", help="How often is heavy.", show_default=False)] = None,
    rho: Annotated[
        float | None, typer.Option(help="Counts between k/(1+rho) and k may count in part.", show_default="1")
    ] = None,
    column: Column = None,
    universe: UniverseText = None,
    epsilon: Epsilon = None,
    sample_size: SampleSize = None,
    state: State = None,
    release: Release = False,
    releases: Releases = None,
    announced_intrusions: Announced = None,
    announce_intrusion: Announce = False,
    confidence: Confidence = None,
    skip_nulls: Nulls = False,
    bad_rows: Bad = BadRows.skip,
    input_format: InputFormat = None,
    format: Format = TextFormat.table,
    quiet: Quiet = False,
) -> None:
    """The fraction of a universe that occurs at least k times."""
    elements = _universe(universe)
    run = Run(files, column, epsilon, state, release, releases, announced_intrusions, announce_intrusion, confidence,
              skip_nulls, bad_rows, input_format, format, quiet)  # fmt: skip

    def make(options: dict[str, Any]) -> Any:
        from discreet.pan import HeavyFraction

        factor = 1.0 if rho is None else rho
        return HeavyFraction(_needed(elements), _required("k", k), rho=factor, sample_size=sample_size, **options)

    run("HeavyFraction", make, {"universe": _described(elements), "sample_size": sample_size, "k": k, "rho": rho})


@app.command("incidence")
def incidence(
    files: Files = None,
    t: Annotated[int | None, typer.Option("-t", "--t", help="How often exactly.", show_default=False)] = None,
    column: Column = None,
    universe: UniverseText = None,
    epsilon: Epsilon = None,
    sample_size: SampleSize = None,
    state: State = None,
    release: Release = False,
    releases: Releases = None,
    announced_intrusions: Announced = None,
    announce_intrusion: Announce = False,
    confidence: Confidence = None,
    skip_nulls: Nulls = False,
    bad_rows: Bad = BadRows.skip,
    input_format: InputFormat = None,
    format: Format = TextFormat.table,
    quiet: Quiet = False,
) -> None:
    """The fraction of a universe that occurs exactly t times."""
    elements = _universe(universe)
    run = Run(files, column, epsilon, state, release, releases, announced_intrusions, announce_intrusion, confidence,
              skip_nulls, bad_rows, input_format, format, quiet)  # fmt: skip

    def make(options: dict[str, Any]) -> Any:
        from discreet.pan import Incidence

        return Incidence(_needed(elements), _required("t", t), sample_size=sample_size, **options)

    run("Incidence", make, {"universe": _described(elements), "sample_size": sample_size, "t": t})
