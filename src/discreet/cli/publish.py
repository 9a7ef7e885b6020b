"""From the options of a release to the release in its place: paid for, written, drawn, explained."""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import options
from discreet.cli.interrupts import uninterrupted
from discreet.cli.output import (
    by_ending,
    refuse_same_file,
    remark,
    table_width,
    write_standard_output,
)
from discreet.errors import DiscreetError, ParameterError, TryAgainError
from discreet.storage import AtomicFile

if TYPE_CHECKING:
    from pathlib import Path

    from discreet.central.chosen_distinct import ChosenDistinct
    from discreet.central.noisy_count import NoisyCount
    from discreet.cli.options import Paying
    from discreet.privacy.budget import Budget
    from discreet.privacy.estimate import Estimate
    from discreet.privacy.ledger import LedgerEvent
    from discreet.releases.quantile_list import Quantiles
    from discreet.releases.release import Release

__all__ = [
    "QUANTILE_FORMATS",
    "Place",
    "answer_place",
    "place",
    "publish",
    "publish_again",
    "publish_count",
    "publish_count_again",
    "publish_stored",
    "replayed_quantiles",
    "replayed_release",
]

_ENDINGS = {".json": "json", ".csv": "csv", ".parquet": "parquet", ".txt": "table", "": "table"}
_ENDINGS_OF_NUMBERS = {ending: format for ending, format in _ENDINGS.items() if format != "parquet"}
_PAYMENTS = {
    "charged": "charged to",
    "charged before": "drawn for a charge made before, not charged again to",
    "replayed": "replayed, not charged to",
    None: "paid by",
}


@dataclass(frozen=True)
class Place:
    """Where a release goes, and how it is written there."""

    confidence: float
    format: str | None
    output: Path | None
    plot: Path | None = None
    explain: bool = False
    endings: Mapping[str, str] = field(default_factory=lambda: _ENDINGS)

    @property
    def written_as(self) -> str:
        """The format: as asked for, or as the output's name says."""
        format = self.format
        if format is None:
            format = by_ending(self.output, self.endings, "--output") if self.output is not None else "table"
        if format == "parquet" and self.output is None and sys.stdout.isatty():
            raise ParameterError("Parquet is not for a terminal: give --output")
        return format

    def check(self, kept: Iterable[str | Path | None]) -> None:
        """Before anything is read: a probability, and nothing overwritten that the command reads or keeps."""
        from discreet.privacy.checks import probability

        probability("confidence", self.confidence)
        others = [other for other in kept if other is not None]
        for name, path, beside in (("--output", self.output, self.plot), ("--plot", self.plot, None)):
            if path is not None:
                refuse_same_file(name, path, [*others, *([beside] if beside is not None else [])])


def _format(*formats: str) -> click.Option:
    told = "How to write the release; by default as the output's name says, or a table."
    return options.option("--format", told, options.choice(*formats))


_CONFIDENCE = options.confidence("The intervals hold together with this probability.")
_OUTPUT = options.option("--output -o", "Write the release to this file.", options.PATH)
_EXPLAIN = options.flag("--explain", "Explain what the release promises.")

place = options.gathers(
    "place",
    Place,
    _CONFIDENCE,
    _format("table", "json", "csv", "parquet"),
    _OUTPUT,
    options.option("--plot", "Also draw it: a file that ends in .png or .svg.", options.PATH),
    _EXPLAIN,
)

answer_place = options.gathers(  # of one number, or of a few
    "place",
    functools.partial(Place, endings=_ENDINGS_OF_NUMBERS),
    _CONFIDENCE,
    _format("table", "json", "csv"),
    _OUTPUT,
    _EXPLAIN,
)


def publish(
    place: Place,
    paying: Paying,
    budget: Budget,
    draw: Callable[[Callable[[], None]], Any],
    remarks: Callable[[Any], list[str]] = lambda answer: [],
    formats: Mapping[str, Callable[[Any, float, int | None], str | bytes]] | None = None,
) -> None:
    """Draw a release and write it to its place.

    Args:
        place: Where it goes. That it can be written there is tried before anything is read.
        paying: Who pays.
        budget: What it costs.
        draw: Reads, charges and draws: a function of a function to be called when all is read. From then on nothing
            is interrupted.
        remarks: What a reader should know beside the guarantee.
        formats: How to write it; by default as a `Release` is written.
    """
    from discreet.releases.formats import FORMATS

    write = FORMATS if formats is None else formats
    format, charge_id = place.written_as, paying.charge_id
    # What must not be interrupted goes on until the temporary files are gone.
    with ExitStack() as protected, ExitStack() as cleanup:
        target = cleanup.enter_context(AtomicFile(place.output)) if place.output is not None else None
        picture = cleanup.enter_context(_picture(place.plot)) if place.plot is not None else None

        def reading_is_over() -> None:
            """What follows is charged, and must not be lost to a Ctrl-C; by the id it can be had again in any case."""
            _tell_charge_id(charge_id)
            protected.enter_context(uninterrupted(last=True))

        release = draw(reading_is_over)
        paying.told(_PAYMENTS[release.payment], budget)
        with _kept_for_later(charge_id):
            is_text = format == "table" and target is None  # people read it on standard output
            written = write[format](release, place.confidence, table_width() if is_text else None)
            _write(written, target, remarks(release), is_text)
            if picture is not None:
                drawing, kind = release.plot(confidence=place.confidence), picture.path.suffix.lower()[1:]
                picture.fill(lambda file: drawing.savefig(file, dpi=150, format=kind))
            if place.explain:
                _explain(release, is_text)


def publish_again(
    place: Place,
    paying: Paying,
    budget: Budget,
    question: Mapping[str, object],
    from_payload: Callable[[bytes], Any],
    files: Sequence[str] = (),
    remarks: Callable[[Any], list[str]] = lambda answer: [],
    formats: Mapping[str, Callable[[Any, float, int | None], str | bytes]] | None = None,
) -> bool:
    """Publish what is stored under the charge id that was given, if the same was asked. Nothing is read for it.

    `files` are not read, and must not be overwritten; the others are as for `publish` and `stored_answer`.
    """
    if paying.payer is None or paying.given_id is None:
        return False
    from discreet.releases.payment import stored_answer

    answer = stored_answer(paying.payer, paying.given_id, budget, question, from_payload)
    if answer is None:
        return False
    import glob

    named = [path for pattern in files for path in (pattern, *glob.glob(pattern, recursive=True))]
    place.check([*named, paying.ledger])
    publish(place, paying, budget, lambda reading_is_over: answer, remarks, formats)
    return True


def _tell_charge_id(charge_id: str | None) -> None:
    """Before the charge is made, for a command that is killed."""
    if charge_id is not None:
        remark(f"charge id {charge_id}: with --charge-id {charge_id} the same command gives the same release")


def publish_count(
    what: str,
    place: Place,
    paying: Paying,
    mechanism: NoisyCount | ChosenDistinct,
    read: Callable[[], Any],
    request: dict[str, object],
    told: Mapping[str, Any],
    question: Mapping[str, object],
    lists: bool = False,
) -> None:
    """Read, pay for a count, draw it and publish it.

    Args:
        what: What the number is of, for the table.
        place: Where it goes.
        paying: Who pays.
        mechanism: What draws the noise.
        read: Counts. Nothing is charged before it has returned.
        request: What was asked for, for the ledger.
        told: The same, for the answer: see `Source.told`.
        question: The same, as the charge id stands for it: see `options.question`.
        lists: Whether people come as lists.
    """
    from discreet.api.counting import pay_for_count
    from discreet.releases.asked import Asked, now

    asked = Asked.of(now(), **told)
    if paying.payer is not None and paying.given_id is None:
        paying.payer.check(mechanism.budget)  # before reading, which may take long

    def draw(reading_is_over: Callable[[], None]) -> _PublishedCount:
        found = read()
        reading_is_over()
        paid = pay_for_count(
            mechanism, found, request, paying.payer, paying.charge_id, told=asked, question=question, lists=lists
        )
        return _PublishedCount(what, *paid)

    publish(place, paying, mechanism.budget, draw, formats=_COUNT_FORMATS)


def replayed_release(payload: bytes) -> Release:
    """A release that is stored in a ledger, at most as many items as were asked for."""
    from discreet.releases.release import Release

    release = Release.from_payload(payload)
    if release.asked is not None and release.asked.k is not None:
        release = release.head(release.asked.k)
    release.payment = "replayed"
    return release


def publish_count_again(
    what: str,
    place: Place,
    paying: Paying,
    budget: Budget,
    question: Mapping[str, object],
    files: Sequence[str] = (),
) -> bool:
    """`publish_again` of a count."""
    from discreet.api.counting import estimate_from_payload

    def from_payload(payload: bytes) -> _PublishedCount:
        return _PublishedCount(what, estimate_from_payload(payload), "replayed")

    return publish_again(place, paying, budget, question, from_payload, files, formats=_COUNT_FORMATS)


def publish_stored(place: Place, charge: LedgerEvent, payload: bytes, ledger: Path) -> None:
    """Publish what a ledger stores, whatever was asked for: a release, a count or quantiles."""
    from discreet.privacy.budget import Budget

    place.check([ledger])
    kind = _kind_stored(payload)
    formats: Mapping[str, Callable[[Any, float, int | None], str | bytes]] | None = None
    answer: Any
    if kind == "histogram":
        answer = replayed_release(payload)
    elif kind == "estimate":
        from discreet.api.counting import estimate_from_payload

        # Its interval was made with the confidence that was asked for.
        place = replace(place, confidence=charge.details.get("question", {}).get("confidence", place.confidence))
        what = _COUNTED.get(charge.details["mechanism"], "values")
        answer, formats = _PublishedCount(what, estimate_from_payload(payload), "replayed"), _COUNT_FORMATS
    elif kind == "quantiles":
        answer, formats = replayed_quantiles(payload), QUANTILE_FORMATS
    else:
        raise ParameterError(
            f"charge {charge.charge_id!r} paid for no single release: a stream, a state or a message. `discreet ledger "
            "export` has what it published"
        )
    if formats is not None and (place.written_as not in formats or place.plot is not None):
        raise ParameterError("a count and quantiles are written as table, json or csv, and not drawn")

    def remarks(answer: Any) -> list[str]:
        return answer.notes() if kind == "histogram" else []

    publish(
        place,
        options.Paying(None, None),
        Budget.from_dict(charge.details["budget"]),
        lambda _: answer,
        remarks,
        formats,
    )


def _kind_stored(payload: bytes) -> object:
    try:
        stored = json.loads(payload)
    except ValueError:
        return None
    return stored.get("release") if isinstance(stored, dict) else None


def replayed_quantiles(payload: bytes) -> Quantiles:
    """Quantiles that are stored in a ledger."""
    from discreet.releases.quantile_list import Quantiles

    return replace(Quantiles.from_payload(payload), payment="replayed")


QUANTILE_FORMATS: Mapping[str, Callable[[Any, float, int | None], str | bytes]] = {
    "table": lambda answer, confidence, width: answer.to_table(width),
    "json": lambda answer, confidence, width: answer.to_json() + "\n",
    "csv": lambda answer, confidence, width: answer.to_csv(),
}
_COUNTED = {f"noisy count of {what}": what for what in ("rows", "people")}  # by the name of `NoisyCount`


@dataclass(frozen=True)
class _PublishedCount:
    """A count as it is published here: of what, and how it was paid."""

    what: str
    estimate: Estimate
    payment: str | None

    def explain(self) -> str:
        from discreet.releases.explain import explained

        return explained(self.estimate.guarantee.to_dict()) if self.estimate.guarantee is not None else ""

    def as_table(self, confidence: float, width: int | None) -> str:
        from discreet.releases.formats import intervals, paragraph, table_text

        estimate = self.estimate
        row = self.what, f"{int(estimate.value):,}", intervals([estimate.lower], [estimate.upper])[0]
        headings = ["counted", "estimate", f"{100 * confidence:g}% interval"]
        promised = estimate.guarantee.sentence() if estimate.guarantee is not None else ""
        return f"{table_text(headings, [row], (1, 2), width)}{paragraph(promised)}\n"

    def as_json(self, confidence: float, width: int | None) -> str:
        from discreet.releases.formats import describe_estimate

        return json.dumps({"number_of": self.what, **describe_estimate(self.estimate, confidence)}) + "\n"

    def as_csv(self, confidence: float, width: int | None) -> str:
        estimate = self.estimate
        upper = "" if math.isinf(estimate.upper) else f"{estimate.upper:g}"
        return f"counted,estimate,lower,upper\n{self.what},{estimate.value:.0f},{estimate.lower:g},{upper}\n"


_COUNT_FORMATS = {"table": _PublishedCount.as_table, "json": _PublishedCount.as_json, "csv": _PublishedCount.as_csv}


def _write(written: str | bytes, target: AtomicFile | None, remarks: list[str], is_text: bool) -> None:
    from discreet.releases.formats import paragraph

    if is_text:
        written = "".join([str(written), *(paragraph(text) + "\n" for text in remarks)])
    data = written.encode() if isinstance(written, str) else written
    if target is not None:
        target.write(data)
    else:
        write_standard_output(data)
    if not is_text:
        for text in remarks:
            remark(text)


@contextmanager
def _kept_for_later(charge_id: str | None) -> Iterator[None]:
    """A release that was paid for and cannot be written (a full disk) says how it can be had, quietly or not."""
    try:
        yield
    except DiscreetError as error:
        if charge_id is None:
            raise
        again = f"it is charged and kept in the ledger: the same command with --charge-id {charge_id} gives it again"
        kind = TryAgainError if isinstance(error, TryAgainError) else DiscreetError
        raise kind(f"{error}; {again}") from error


def _picture(path: Path) -> AtomicFile:
    by_ending(path, {".png": "png", ".svg": "svg"}, "--plot")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise DiscreetError("plots need matplotlib: install discreet[plot]")
    return AtomicFile(path)


def _explain(release: Any, to_output: bool) -> None:
    text = "\n" + release.explain()
    if to_output:
        write_standard_output(f"{text}\n".encode())
    else:
        print(text, file=sys.stderr)
