"""`discreet pan`: estimates whose working state may fall into anyone's hands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet._data_class import dataclass
from discreet._version import __version__
from discreet.cli import options
from discreet.cli.options import Paying, Source, flag, option
from discreet.cli.output import remark, table_width
from discreet.cli.process import uninterrupted
from discreet.errors import DataError, ParameterError
from discreet.privacy.checks import numbered

if TYPE_CHECKING:
    from discreet.published import InnerProductCounter


@click.group(cls=options.Group, no_args_is_help=True)
def pan() -> None:
    """Estimate with a state that is private itself.

    One look at the memory or the state file, and what is printed, stay within epsilon.
    """


def _items(source: Source, files: tuple[str, ...], peek: bool) -> Callable[[Any], None]:
    read = source.items(files, peek=peek) if files else None

    def feed(estimator: Any) -> None:
        for items in read(getattr(estimator, "universe", None)) if read is not None else ():
            estimator.update(items)

    return feed


def _votes_and_vectors(
    source: Source, files: tuple[str, ...], peek: bool, votes: tuple[str, ...]
) -> Callable[[InnerProductCounter], None]:
    """What feeds the counter: votes first, then vectors, which are in the files."""
    from discreet.events.universe import vectors_written, votes_written

    if votes and source.where is not None:
        raise ParameterError("--where and --sql need rows of one kind; read votes and vectors with two commands")
    if "-" in votes and "-" in files:
        raise ParameterError("standard input can hold votes or vectors, not both; give the other as files")
    read_votes, read_vectors = (_texts(source, names, peek) if names else () for names in (votes, files))

    def feed(counter: InnerProductCounter) -> None:
        for texts in read_votes:
            places, bits = votes_written(texts, counter.length, source.bad_rows)
            if places:
                counter.vote(places, bits)
        for texts in read_vectors:
            counter.update(vectors_written(texts, counter.length, source.bad_rows))

    return feed


def _texts(source: Source, files: tuple[str, ...], peek: bool) -> Iterator[list[str]]:
    """The rows of files, as text; what cannot be read at all is the empty text."""
    stream, read = source.batches(files, peek)

    def texts() -> Iterator[list[str]]:
        for batch in read:
            rows = batch.column("item").to_pylist()
            if not all(isinstance(row, str) for row in rows):
                raise DataError("votes and vectors must be text; the column has another type")
            yield rows
        if stream.bad_rows:
            bad = numbered(stream.bad_rows, "row")
            remark(f"counted {bad} that could not be read as zeros (not private: for your eyes alone)")
            yield [""] * stream.bad_rows

    return texts()


@dataclass(frozen=True)
class PanCommand:
    """An estimator on the command line."""

    command: str
    estimator: str  # its name in `discreet.pan`
    help: str
    own: tuple[click.Option, ...] = ()  # its parameters, by their names there
    needed: tuple[str, ...] = ()  # those without which nothing can start
    asked: tuple[str, ...] = ()  # those that a release may say, of a state that does not depend on them
    sampled: bool = True  # whether it holds entries for a sample of a universe
    package: str = "discreet.pan"
    planned: bool = True  # whether releases and announced intrusions are paid for beforehand
    read: tuple[str, ...] = ()  # options that say what else is read
    reads: Callable[..., Callable[[Any], None]] = _items  # from source, files, peek and these: what feeds the estimator


_PRODUCT = """How many vectors have an odd product with a voted one.

A row of FILE is a vector of 0s and 1s, written like 0110; a row of --votes is a vote for one of its places, written
PLACE:BIT, like 3:1, from place 0. Votes come first: the first vectors fix what was voted. The state tells nothing
about anyone beyond epsilon, however often it is looked at, and releases cost nothing more. How many rows there are,
and for which place each votes, is public; a vector that cannot be read counts as zeros, and so does a bit.
"""

KINDS = (
    PanCommand("density", "Density", "The fraction of a universe that occurs."),
    PanCommand(
        "distinct",
        "DistinctCount",
        "The number of distinct items, of any universe.",
        (option("--buckets", "Number of buckets of a level; more are more accurate. 16384 by default.", int),),
        sampled=False,
    ),
    PanCommand(
        "cropped-mean",
        "CroppedMean",
        "How often elements occur on average, cropped at t times.",
        (option("-t --t", "Crop counts here; a release from a state may use a smaller t.", int),),
        needed=("t",),
        asked=("t",),
    ),
    PanCommand(
        "heavy-fraction",
        "HeavyFraction",
        "The fraction of a universe that occurs k times or more.",
        (
            option(
                "-k --k",
                "Count elements with k occurrences or more; with --max-count, any k up to it at a release.",
                int,
            ),
            option("--rho", "Counts between k/(1+rho) and k may count in part; by default 1.", float),
            option("--max-count", "Largest number of occurrences; one state then answers for any k up to it.", int),
        ),
        asked=("k", "rho"),
    ),
    PanCommand(
        "incidence",
        "Incidence",
        "The fraction of a universe that occurs exactly t times.",
        (
            option("-t --t", "Count elements with exactly t occurrences; a release from a state may use any t.", int),
            option("--max-count", "Largest number of occurrences; useful with announced intrusions.", int),
        ),
        asked=("t",),
    ),
    PanCommand(
        "modular-incidence",
        "ModularIncidence",
        "The fractions of a universe by occurrences modulo k.",
        (option("-k --k", "Count occurrences modulo k.", int),),
        needed=("k",),
    ),
    PanCommand(
        "occurrences",
        "Occurrences",
        "How many items occur once, twice and more.",
        (
            option("--max-count", "Largest number of occurrences to tell apart: 2 to 64.", int),
            option("--buckets", "Number of buckets of a level; more are more accurate. 65536 by default.", int),
        ),
        needed=("max_count",),
        sampled=False,
    ),
    PanCommand(
        "inner-product",
        "InnerProductCounter",
        _PRODUCT,
        (
            option(
                "--votes", "Votes to read before the vectors, PLACE:BIT in every row.", multiple=True, metavar="FILE"
            ),
            option("--length", "Length of the vectors.", int),
            option(
                "--epsilon",
                "The budget: all looks at the state, and all releases. Smaller is stronger; 1 is common.",
                float,
            ),
        ),
        needed=("length",),
        sampled=False,
        package="discreet.published",
        planned=False,
        read=("votes",),
        reads=_votes_and_vectors,
    ),
)

_SAMPLED = (
    options.universe("All elements that may occur", " (empty lines are left out)"),
    option("--sample-size", "Number of elements with an entry; 100,000 by default.", int),
)
_PLANNED = (
    option(
        "--epsilon",
        "The whole budget: one look at the state, and all releases. Smaller is stronger; 1 is a common limit.",
        float,
    ),
    option("--releases", "Number of releases that epsilon covers; 1 by default.", int),
    option("--announced-intrusions", "Number of announced intrusions that epsilon covers; 0 by default.", int),
)
_EVERY = (
    option("--confidence", "Probability with which the interval holds; 0.95 by default.", float),
    options.path("--state", "File of the state: created, or continued. It is private itself."),
)
_RELEASE = flag("--release", "With --state: also publish an estimate.")
_USE = (
    flag("--release", "With --state: also publish an estimate, from one of the planned releases."),
    flag("--announce-intrusion", "Say that somebody saw the state: it is randomised anew before anything is read."),
)


def _run(
    kind: PanCommand,
    files: tuple[str, ...],
    source: Source,
    state: Path | None,
    release: bool,
    as_json: bool,
    paying: Paying,
    announce_intrusion: bool = False,
    **parameters: Any,
) -> None:
    """Make or load the estimator, feed it, release if that is wanted, replace the state as a whole, print the release.

    The old file is zeroed: two states of different times tell more than one.
    """
    from discreet.storage import locked

    also = {name: parameters.pop(name) for name in kind.read}
    asked = {name: value for name, value in parameters.items() if value is not None}
    if "universe" in asked:
        from discreet.events.universe import universe_written

        asked["universe"] = universe_written(asked["universe"], empty_lines=False)
    if state is None and release:
        raise ParameterError("--release needs --state; without a state the estimate is always printed")
    if state is None and not files:
        raise ParameterError("give files to read ('-' is standard input), or --state")
    publishes = release or state is None
    with ExitStack() as locks:
        # One use after the other: a second release from what the first one read would be drawn for nothing.
        lock = None if state is None else locked(state, wait_seconds=options.LOCK_WAIT_SECONDS)
        kept = None if lock is None else locks.enter_context(lock)
        data = kept.read() if kept is not None and kept.exists else None
        if data is None:
            _check_start(kind, asked, publishes)
        question = {name: asked.pop(name) for name in kind.asked if publishes and data is not None and name in asked}
        # Raw rows are in memory as briefly as can be: before a state only if a mistake in them would cost a charge.
        feed = kind.reads(source, files, data is None and paying.payer is not None, **also)
        begun = "a state was charged and nothing was released"
        with uninterrupted(f"{begun}; it goes on from its file" if kept else begun) if paying.payer else nullcontext():
            estimator = _estimator(kind, data, asked, question, paying)
            if paying.payer is not None and kept is not None:
                kept.replace(estimator.to_bytes(), erase=True)  # with its charge, before it sees any data
        if announce_intrusion:
            estimator.announce_intrusion()
        feed(estimator)
        with uninterrupted(last=True):
            estimate = estimator.release(**question) if publishes else None
            if kept is not None:
                kept.replace(estimator.to_bytes(), erase=True)
            if estimate is not None:
                _show(kind, estimator, estimate, as_json)


def _check_start(kind: PanCommand, asked: dict[str, Any], publishes: bool) -> None:
    if kind.sampled and "universe" not in asked:
        raise ParameterError("--universe is missing; give N, A:B or a file with one element per line")
    for name in ("epsilon", *kind.needed):
        if name not in asked:
            raise ParameterError(f"--{name.replace('_', '-')} is missing; the first run needs it")
    if publishes and kind.asked and kind.asked[0] not in asked:
        raise ParameterError(f"--{kind.asked[0]} is missing; a release needs it")


def _estimator(
    kind: PanCommand, data: bytes | None, asked: dict[str, Any], question: dict[str, Any], paying: Paying
) -> Any:
    """The estimator of a state, which can answer the question, or a new one: charged before it is drawn."""
    estimator = getattr(import_module(kind.package), kind.estimator)
    if data is not None:
        if paying.given_id is not None:
            raise ParameterError("this state has been charged already; leave --charge-id out")
        made = estimator.from_bytes(data)
        if "universe" in asked:
            asked["universe"] = asked["universe"].outline()
        stored = {**made.options, "epsilon": made.options["budget"].epsilon, **made.parameters}
        for name, value in asked.items():
            if value != stored[name]:
                raise ParameterError(f"the state was made with a different --{name.replace('_', '-')}; leave it out")
        if kind.asked:
            made.question(**question)  # before anything is read
        # Only now: a ledger that did not pay for the state is charged.
        return made if paying.payer is None else estimator.from_bytes(data, ledger=paying.payer)
    budget = options.budget_of(asked["epsilon"])
    given = {name: value for name, value in asked.items() if name != "epsilon"}
    made = estimator(budget=budget, ledger=paying.payer, charge_id=paying.charge_id, **given)
    paying.tell("charged to", budget)
    return made


def _show(kind: PanCommand, estimator: Any, estimate: Any, as_json: bool) -> None:
    from discreet.releases.formats import describe_estimate, estimate_table

    confidence = estimator.options["confidence"]
    voted = {"vector": "".join(map(str, estimator.vector))} if hasattr(estimator, "vector") else {}
    if as_json:
        told = {**describe_estimate(estimate, confidence), **voted, "version": __version__}
        print(json.dumps({"estimator": kind.estimator, **told}))
    else:
        sys.stdout.write(estimate_table(kind.estimator, estimate, confidence, table_width()))
        sys.stdout.writelines(f"The vector that was voted: {vector}\n" for vector in voted.values())


for _kind in KINDS:
    options.command(
        options.files("Files or patterns; '-' is standard input. None: the state alone."),
        options.reading(),
        *_kind.own,
        *(_SAMPLED if _kind.sampled else ()),
        *(_PLANNED if _kind.planned else ()),
        *_EVERY,
        *(_USE if _kind.planned else (_RELEASE,)),
        options.PAYING_BY_NAME,
        options.text_format("the estimate"),
        options.QUIET,
        name=_kind.command,
        group=pan,
        help=_kind.help,
    )(partial(_run, _kind))
