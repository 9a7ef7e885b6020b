"""From the options of a release to the release in its place: paid for, written, drawn, explained."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

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

    from discreet.cli.options import Paying
    from discreet.events.stores import StoredFile, Url
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import LedgerEvent
    from discreet.questions.data import Data

_ENDINGS = {".json": "json", ".csv": "csv", ".parquet": "parquet", ".txt": "table", "": "table"}
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
    output: Path | Url | None
    plot: Path | Url | None = None
    explain: bool = False
    endings: Mapping[str, str] = field(default_factory=lambda: _ENDINGS)

    @property
    def written_as(self) -> str:
        """The format: as asked for, or as the output's name says."""
        format = self.format
        if format is None:
            format = by_ending(self.output, self.endings, "--output") if self.output is not None else "table"
        if format == "parquet" and self.output is None and sys.stdout.isatty():
            raise ParameterError("Parquet cannot be printed; give --output")
        return format

    def with_confidence(self, confidence: float) -> Place:
        """The same, for an answer whose intervals were made with this confidence."""
        return replace(self, confidence=confidence)

    def at(self, endpoint: str) -> Place:
        """The same in a store at this endpoint."""
        from discreet.events.stores import Url, at_endpoint

        moved = {
            name: Url(at_endpoint(url, endpoint))
            for name, url in (("output", self.output), ("plot", self.plot))
            if isinstance(url, Url)
        }
        return replace(self, **moved)  # type: ignore[arg-type]

    def refuse_pictures(self) -> None:
        """Refuse what lists have, and numbers have not."""
        if self.written_as == "parquet" or self.plot is not None:
            raise ParameterError(
                "--format parquet and --plot need a list of items or groups (--by, --every). Write a number, "
                "quantiles or a report as a table, '.json' or '.csv'"
            )

    def check(self, kept: Callable[[], Iterable[str | Path | None]]) -> None:
        """Before anything is read: a probability, and nothing overwritten that the command reads or keeps."""
        from discreet.privacy.checks import probability

        probability("confidence", self.confidence)
        if self.output is None and self.plot is None:
            return
        others = [other for other in kept() if other is not None]
        for name, path, beside in (("--output", self.output, self.plot), ("--plot", self.plot, None)):
            if path is not None:
                refuse_same_file(name, path, [*others, *([beside] if beside is not None else [])])


EXPLAIN = options.flag("--explain", "Also explain what the release promises.")
_WRITTEN = (
    options.option(
        "--format",
        "How to write the release; by default as the output's name says, or a table.",
        options.choice("table", "json", "csv", "parquet"),
    ),
    options.option("--output -o", "Write the release to this file.", options.PATH_OR_URL),
    options.option("--plot", "Also draw a picture to this file: .png, .svg or .pdf.", options.PATH_OR_URL),
    EXPLAIN,
)
place = options.gathers(
    "place", Place, options.confidence("Probability with which all intervals hold together."), *_WRITTEN
)
answer_place = options.gathers(  # of one number, or of a few; their confidence is a word of the question
    "place", functools.partial(Place, 0.95), *_WRITTEN
)


def publish(
    place: Place,
    paying: Paying,
    budget: Budget,
    draw: Callable[[Callable[[], None]], Any],
    remarks: Callable[[Any], list[str]] = lambda answer: [],
) -> None:
    """Draw a release and write it to its place.

    Args:
        place: Where it goes. That it can be written there is tried before anything is read.
        paying: Who pays.
        budget: What it costs.
        draw: Reads, charges and draws: a function of a function to be called when all is read. From then on nothing
            is interrupted.
        remarks: What a reader should know beside the guarantee and what the release says itself.
    """
    from discreet.releases.formats import formats_of

    format, charge_id = place.written_as, paying.charge_id
    # What must not be interrupted goes on until the temporary files are gone.
    with ExitStack() as protected, ExitStack() as cleanup:
        target: Any = cleanup.enter_context(_file_at(place.output)) if place.output is not None else None
        picture: Any = cleanup.enter_context(_picture(place.plot)) if place.plot is not None else None

        def reading_is_over() -> None:
            """What follows is charged, and must not be lost to a Ctrl-C; by the id it can be had again in any case."""
            if charge_id is not None:  # said before the charge is made, for a command that is killed
                remark(f"charge id {charge_id}: with --charge-id {charge_id} the same command gives the same release")
            protected.enter_context(uninterrupted(last=True))

        release = draw(reading_is_over)
        if charge_id is not None:
            options.tell_payment(paying, _PAYMENTS[release.payment], budget)
        with nullcontext() if charge_id is None else _kept_for_later(charge_id):
            is_text = format == "table" and target is None  # people read it on standard output
            written = formats_of(release)[format](release, place.confidence, table_width() if is_text else None)
            notes = getattr(release, "notes", ())
            told = [*(notes() if callable(notes) else notes), *remarks(release)]
            _write(written, target, told, is_text)
            if picture is not None:
                drawing, kind = release.plot(confidence=place.confidence), picture.path.suffix.lower()[1:]
                picture.fill(lambda file: drawing.savefig(file, dpi=150, format=kind))
            if place.explain:
                _explain(release, is_text)


def publish_answer(
    question: Any,
    data: Data,
    budget: Budget,
    place: Place,
    paying: Paying,
    remarks: Callable[[Any, Any], list[str]] = lambda release, question: [],
) -> None:
    """Ask a question of data, and publish the answer; `remarks` are about the answer and the question."""
    from discreet.questions.answer import answer, charge_id_of
    from discreet.releases.payment import Payer

    if paying.ledger is not None and paying.given_id is None:
        paying.given_id = charge_id_of(question, data, budget)

    def draw(reading_is_over: Callable[[], None]) -> Any:
        data.when_read.append(reading_is_over)
        return answer(question, data, budget, Payer(paying.payer, paying.charge_id))

    publish(place, paying, budget, draw, lambda release: [*remarks(release, question), *data.remarks])


def publish_stored(place: Place, charge: LedgerEvent, payload: bytes, ledger: Path | None) -> None:
    """Publish what a ledger stores, whatever was asked for: a release, a count, quantiles or a report."""
    from discreet.privacy.budget import Budget
    from discreet.releases.payment import answer_of, kind_of_answer, with_payment

    place.check(lambda: [ledger])
    kind = kind_of_answer(payload)
    if kind not in ("histogram", "estimate", "quantiles", "groups", "report"):
        raise ParameterError(
            f"charge {charge.charge_id!r} paid for a stream, a state or a message, not for a single release. See "
            "what it published with `discreet ledger export`"
        )
    if kind == "estimate":  # its interval was made with the confidence that was asked for
        place = place.with_confidence(charge.details.get("question", {}).get("confidence", place.confidence))
    if kind not in ("histogram", "groups"):
        place.refuse_pictures()
    if kind == "report" and place.written_as == "csv" and place.output is None:
        raise ParameterError("CSV writes one file per question; give --output")
    answer = with_payment(answer_of(payload), "replayed")
    publish(place, options.Paying(), Budget.from_dict(charge.details["budget"]), lambda _: answer)


def _write(written: Any, target: AtomicFile | StoredFile | None, remarks: list[str], is_text: bool) -> None:
    from discreet.releases.formats import paragraph

    if isinstance(written, Mapping):  # a file for each of several, beside the one that was named
        assert target is not None
        for name, text in written.items():
            with _file_at(target.path.with_name(f"{target.path.stem}-{name}{target.path.suffix}")) as file:
                file.write(text.encode())
                remark(f"wrote {file.path!s}")
        return
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
def _kept_for_later(charge_id: str) -> Iterator[None]:
    """A release that was paid for and cannot be written (a full disk) says how it can be had, quietly or not."""
    try:
        yield
    except DiscreetError as error:
        again = f"it is charged and kept in the ledger: the same command with --charge-id {charge_id} gives it again"
        kind = TryAgainError if isinstance(error, TryAgainError) else DiscreetError
        raise kind(f"{error}; {again}") from error


def _file_at(path: Path | Url) -> AtomicFile | StoredFile:
    """A file that appears when it is complete."""
    if not isinstance(path, str):
        return AtomicFile(path)
    from discreet.events.stores import StoredFile

    return StoredFile(path)


def _picture(path: Path | Url) -> AtomicFile | StoredFile:
    by_ending(path, {".png": "png", ".svg": "svg"}, "--plot")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise DiscreetError("plots need matplotlib; install it with pip install 'discreet[plot]'")
    return _file_at(path)


def _explain(release: Any, to_output: bool) -> None:
    from discreet.releases.explain import explained

    promised = release.guarantee.to_dict()
    text = "\n" + (release.explain() if hasattr(release, "explain") else explained(promised))
    if to_output:
        write_standard_output(f"{text}\n".encode())
    else:
        print(text, file=sys.stderr)
