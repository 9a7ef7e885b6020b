"""The commands that ask a question of files (`top`, `count`, `distinct`, ...), and the way of a release to its place.

A command is made from the words of its question. What is added here is the same for all of them: which files, how they
are read, what it costs, who pays, where the answer goes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import click

from discreet._data_class import dataclass, field, replace
from discreet.cli import options
from discreet.cli.options import Paying
from discreet.cli.output import remark, show_progress, table_width, write_standard_output
from discreet.cli.process import uninterrupted
from discreet.errors import DiscreetError, ParameterError, TryAgainError
from discreet.questions import kind_of
from discreet.questions.words import from_text, words_of
from discreet.storage import AtomicFile

if TYPE_CHECKING:
    from pathlib import Path

    from discreet.events.stores import StoredFile, Url
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import LedgerEvent
    from discreet.questions.answer import Data
    from discreet.questions.question import Question
    from discreet.releases.release import Release

_ENDINGS = {".json": "json", ".csv": "csv", ".parquet": "parquet", ".txt": "table", "": "table"}
_PAYMENTS = {
    "charged": "charged to",
    "charged before": "drawn for a charge made before, not charged again to",
    "replayed": "replayed, not charged to",
    None: "paid by",
}


# ---- where a release goes --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a release goes, and how it is written there; without a format, as the output's name says."""

    confidence: float
    format: str | None
    output: Path | Url | None
    plot: Path | Url | None = None
    explain: bool = False
    endings: Mapping[str, str] = field(default_factory=lambda: _ENDINGS)

    def at(self, endpoint: str) -> Place:
        """The same in a store at this endpoint."""
        from discreet.events.stores import Url, at_endpoint

        moved = {
            name: Url(at_endpoint(url, endpoint))
            for name, url in (("output", self.output), ("plot", self.plot))
            if isinstance(url, Url)
        }
        return replace(self, **moved)  # type: ignore[arg-type]


EXPLAIN = options.flag("--explain", "Also explain what the release promises.")
_WRITTEN = (
    options.option(
        "--format",
        "How to write the release; by default as the output's name says, or a table.",
        options.choice("table", "json", "csv", "parquet"),
    ),
    options.option("--output -o", "Write the release to this file.", options.PATH_OR_URL),
    options.option("--plot", "Also draw a picture to this file: .png or .svg.", options.PATH_OR_URL),
    EXPLAIN,
)
PLACE: Any = options.Gathered(
    "place", Place, options.confidence("Probability with which all intervals hold together."), *_WRITTEN
)
_ANSWER_PLACE = options.Gathered(  # of one number, or of a few; their confidence is a word of the question
    "place", partial(Place, 0.95), *_WRITTEN
)


def publish(
    question: Any,
    data: Data,
    budget: Budget,
    place: Place,
    paying: Paying,
    kept: Iterable[Any] = (),
) -> None:
    """Ask a question of data, and write the answer to its place.

    Args:
        question: What is asked.
        data: Of what.
        budget: What it costs.
        place: Where it goes. That it can be written there is tried before anything is read.
        paying: Who pays.
        kept: What must not be overwritten, beside the data and the ledger.
    """
    from discreet.questions.answer import answer, charge_id_of
    from discreet.releases.payment import Payer

    kind = "report" if question.name == "report" else "list" if question.only_shown or question.grouped_by else "number"
    if paying.ledger is not None and paying.given_id is None:
        paying.given_id = charge_id_of(question, data, budget)
    # What must not be interrupted goes on until the temporary files are gone.
    with ExitStack() as protected, ExitStack() as cleanup:
        target = _opened(place, kind, lambda: [*data.kept(), paying.ledger, *kept], cleanup)
        charge_id = paying.charge_id

        def reading_is_over() -> None:
            """What follows is charged, and must not be lost to a Ctrl-C; by the id it can be had again in any case."""
            for told in (told for rows in data.read_rows[:1] for told in rows.remarks):  # others read the same
                remark(told)
            if charge_id is not None:  # said before the charge is made, for a command that is killed
                remark(f"charge id {charge_id}: with --charge-id {charge_id} the same command gives the same release")
            protected.enter_context(uninterrupted(last=True))

        data.when_read.append(reading_is_over)
        release = answer(question, data, budget, Payer(paying.payer, charge_id))
        if charge_id is not None:
            paying.tell(_PAYMENTS[release.payment], budget)
        remarks = [*(_of_top(release, question) if question.name == "top" else ()), *data.remarks]
        with nullcontext() if charge_id is None else _kept_for_later(charge_id):
            _write(release, place, *target, remarks)


def publish_stored(place: Place, charge: LedgerEvent, payload: bytes, ledger: Path | None) -> None:
    """Publish what a ledger stores, whatever was asked for: a release, a count, quantiles or a report."""
    from discreet.releases.payment import answer_of, changed, kind_of_answer

    kind = kind_of_answer(payload)
    if kind not in ("histogram", "estimate", "quantiles", "groups", "report"):
        raise ParameterError(
            f"charge {charge.charge_id!r} paid for a stream, a state or a message, not for a single release. See "
            "what it published with `discreet ledger export`"
        )
    if kind == "estimate":  # its interval was made with the confidence that was asked for
        asked = charge.details.get("question", {})
        place = replace(place, confidence=asked.get("confidence", place.confidence))
    kind = "list" if kind in ("histogram", "groups") else "report" if kind == "report" else "number"
    with ExitStack() as cleanup:
        target = _opened(place, kind, lambda: [ledger], cleanup)
        _write(changed(answer_of(payload), payment="replayed"), place, *target, [])


def _opened(place: Place, kind: str, kept: Callable[[], Iterable[Any]], cleanup: ExitStack) -> tuple[str, Any, Any]:
    """(the format, the file, that of the picture) of a list, a number or a report, before anything is read."""
    from discreet.privacy.checks import probability

    probability("confidence", place.confidence)
    format = place.format or ("table" if place.output is None else _by_ending(place.output, place.endings, "--output"))
    if format == "parquet" and place.output is None and sys.stdout.isatty():
        raise ParameterError("Parquet cannot be printed; give --output")
    if kind != "list" and (format == "parquet" or place.plot is not None):
        raise ParameterError(
            "--format parquet and --plot need a list of items or groups (--by, --every). Write a number, "
            "quantiles or a report as a table, '.json' or '.csv'"
        )
    if kind == "report" and format == "csv" and place.output is None:
        raise ParameterError("CSV writes one file per question; give --output, such as report.csv")
    if place.output is None and place.plot is None:
        return format, None, None
    others = [each for each in kept() if each is not None]
    for option, path, beside in (("--output", place.output, place.plot), ("--plot", place.plot, None)):
        if path is not None:
            _refuse_same_file(option, path, others if beside is None else [*others, beside])
    target = None if place.output is None else cleanup.enter_context(_file_at(place.output))
    if place.plot is None:
        return format, target, None
    _by_ending(place.plot, {".png": "png", ".svg": "svg"}, "--plot")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise DiscreetError("plots need matplotlib; install it with pip install 'discreet[plot]'")
    return format, target, cleanup.enter_context(_file_at(place.plot))


def _by_ending(path: Path | Url, known: Mapping[str, str], option: str) -> str:
    """What a file is written as, by the ending of its name."""
    ending = path.suffix.lower()
    if ending not in known:
        *others, last = (repr(name) for name in known if name)
        raise ParameterError(f"{option} {str(path)!r} ends in {ending!r}; it can be {', '.join(others)} or {last}")
    return known[ending]


def _refuse_same_file(option: str, path: Path | Url, others: Iterable[Any]) -> None:
    """A command must not overwrite what it reads."""
    for other in others:
        with suppress(OSError):
            if path == other or (path.is_file() and os.path.samefile(path, other)):
                raise ParameterError(
                    f"{option} {str(path)!r} would overwrite a file that this command reads or "
                    f"keeps; choose another name"
                )


def _file_at(path: Path | Url) -> AtomicFile | StoredFile:
    """A file that appears when it is complete."""
    if not isinstance(path, str):
        return AtomicFile(path)
    from discreet.events.stores import StoredFile

    return StoredFile(path)


@contextmanager
def _kept_for_later(charge_id: str) -> Iterator[None]:
    """A release that was paid for and cannot be written (a full disk) says how it can be had, quietly or not."""
    try:
        yield
    except DiscreetError as error:
        again = f"it is charged and kept in the ledger: the same command with --charge-id {charge_id} gives it again"
        kind = TryAgainError if isinstance(error, TryAgainError) else DiscreetError
        raise kind(f"{error}; {again}") from error


def _write(release: Any, place: Place, format: str, target: Any, picture: Any, remarks: list[str]) -> None:
    """Write a release, with what it says of itself and these remarks: below a text, or for the operator."""
    from discreet.releases.formats import formats_of, notes_of, paragraph

    is_text = format == "table" and target is None  # people read it on standard output
    width = table_width() if is_text else None
    written: Any = formats_of(release)[format](release, place.confidence, width)
    told = [*notes_of(release), *remarks]
    if isinstance(written, Mapping):  # a file for each of several, beside the one that was named
        for name, text in written.items():
            with _file_at(target.path.with_name(f"{target.path.stem}-{name}{target.path.suffix}")) as file:
                file.write(text.encode())
                remark(f"wrote {file.path!s}")
    else:
        if is_text:
            written = "".join([str(written), *(paragraph(text) + "\n" for text in told)])
        data = written.encode() if isinstance(written, str) else written
        (write_standard_output if target is None else target.write)(data)
        for text in () if is_text else told:
            remark(text)
    if picture is not None:
        drawing, kind = release.plot(confidence=place.confidence), picture.path.suffix.lower()[1:]
        picture.fill(lambda file: drawing.savefig(file, dpi=150, format=kind))
    if place.explain:
        from discreet.releases.explain import explained

        own = release.explain() if hasattr(release, "explain") else explained(release.guarantee.to_dict())
        if is_text:
            write_standard_output(f"\n{own}\n".encode())
        else:
            print(f"\n{own}", file=sys.stderr)


# ---- the commands ----------------------------------------------------------------------------------------------------

_FIRST = ("column", "user", "k")


@cache
def command_of(name: str) -> click.Command:
    """The command of a question."""
    kind = kind_of(name)
    words = [each for each in words_of(kind) if not each.in_python_only]
    words.sort(key=lambda each: _FIRST.index(each.name) if each.name in _FIRST else len(_FIRST))
    asked = [option for each in words for option in options.of_word(each)]
    made: Any = options.command(
        options.FILES, *asked, *options.ENDS, *options.READING.values(), options.BUDGET,
        PLACE if kind.only_shown else _ANSWER_PLACE, options.PAYING_BY_NAME, options.QUIET, options.HELP_ALL,
        name=name, cls=options.QuestionCommand, help=f"{kind.asks}\n\nNoise hides each person (--user), or each row.",
    )(partial(_run, kind))  # fmt: skip
    made.example = kind.example
    made.advanced = options.SELDOM.union(each.name for each in words if each.advanced)
    return made  # type: ignore[no-any-return]


def previewed(name: str, arguments: list[str]) -> list[str]:
    """What a command would cost, and how exact it would be: nothing is read, spent or written."""
    from discreet.questions.plans import preview

    given = command_of(name).make_context(name, list(arguments)).params
    budget = options.budget_of(*(given[word] for word in ("epsilon", "delta", "rho")))
    return preview(_asked(kind_of(name), given), budget)


def _asked(kind: type[Question], given: dict[str, Any]) -> Question:
    """The question, of the values of all options."""
    first, last = given["from"], given["until"]
    if (first is None) != (last is None) or (first is not None and given["period"]):
        raise ParameterError("give --period, or both --from and --until")
    if first is not None:
        given = {**given, "period": ((first, last),)}
    return kind(**from_text(kind, given))


def _run(
    kind: type[Question], budget: Budget, place: Place, paying: Paying, files: tuple[str, ...], **given: Any
) -> None:
    """Ask, and publish the answer."""
    from discreet.questions.answer import read

    how = {word: given[str(option.name)] for word, option in options.READING.items()}
    data, question = read(*files, watch=show_progress, **how), _asked(kind, given)
    if how["endpoint"] is not None:
        place = place.at(how["endpoint"])
    if not kind.only_shown:
        place = replace(place, confidence=question.confidence)  # type: ignore[attr-defined]
    lists = [path for name in ("groups", "universe", "lookup") for path in given.get(name, ())]
    publish(question, data, budget, place, paying, lists)


def _of_top(release: Release, question: Any) -> list[str]:
    """What a reader should know beside the guarantee: who is hidden, what is missing, why the list is short."""
    from discreet.privacy.guarantee import User
    from discreet.questions.question import ROW
    from discreet.releases.formats import needed

    told, unit = [], release.guarantee.unit
    if release.counted != "events" and isinstance(unit, User) and unit.max_items is not None:
        told.append(f"People with more than {unit.max_items} items are hidden, too.")
    if release.counted == "events" and question.unit is None and unit == ROW:
        told.append(
            "It hides one row: a person with many rows can put their own text on this list. --user hides people "
            "(--unit row says that you know)."
        )
    listed = len(release)
    if listed < (1 if release.by else question.k):  # of groups, some always have fewer
        what = {None: "item", 2: "pair", 3: "triple"}[question.pairs]
        some = f"{listed} of at most {question.k} {what}s are listed" if listed else f"No {what} passed the threshold"
        told.append(f"{some}: {needed(release)}.")
    return told
