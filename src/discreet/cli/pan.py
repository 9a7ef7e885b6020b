"""`discreet pan`: estimates whose working state may fall into anyone's hands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet._version import __version__
from discreet.cli import options, pan_product
from discreet.cli.interrupts import uninterrupted
from discreet.cli.options import Paying, Source, flag, option
from discreet.cli.output import table_width
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.storage import StateFile


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
        pan_product.HELP,
        pan_product.OPTIONS,
        needed=("length",),
        sampled=False,
        package="discreet.published",
        planned=False,
        read=("votes",),
        reads=pan_product.votes_and_vectors,
    ),
)

_SAMPLED = (
    options.universe("All elements that may occur", " (empty lines are left out)"),
    option("--sample-size", "Number of elements with an entry; 100,000 by default.", int),
)
_EPSILON = option(
    "--epsilon",
    "The whole budget: one look at the state, and all releases. Smaller is stronger; 1 is a common limit.",
    float,
)
_PLANNED = (
    option("--releases", "Number of releases that epsilon covers; 1 by default.", int),
    option("--announced-intrusions", "Number of announced intrusions that epsilon covers; 0 by default.", int),
)
_EVERY = (
    option("--confidence", "Probability with which the interval holds; 0.95 by default.", float),
    option("--state", "File of the state: created, or continued. It is private itself.", options.PATH),
)
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
    """Make or load the estimator, feed it, write the state, print the release."""
    also = {name: parameters.pop(name) for name in kind.read}
    asked = {name: value for name, value in parameters.items() if value is not None}
    if "universe" in asked:
        from discreet.events.literals import universe_written

        asked["universe"] = universe_written(asked["universe"], empty_lines=False)
    if state is None and release:
        raise ParameterError("--release needs --state; without a state the estimate is always printed")
    if state is None and not files:
        raise ParameterError("give files to read ('-' is standard input), or --state")

    def work(kept: StateFile | None) -> None:
        """Feed the estimator, release if that is wanted, replace the state as a whole, and print the release.

        The old file is zeroed: two states of different times tell more than one.
        """
        data = kept.read() if kept is not None and kept.exists else None
        publishes = release or kept is None
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

    if state is None:
        return work(None)
    from discreet.storage import locked

    # One use after the other: a second release from what the first one read would be drawn for nothing.
    with locked(state, wait_seconds=options.LOCK_WAIT_SECONDS) as kept:
        work(kept)
    return None


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
    options.tell_payment(paying, "charged to", budget)
    return made


def _show(kind: PanCommand, estimator: Any, estimate: Any, as_json: bool) -> None:
    from discreet.releases.formats import describe_estimate, estimate_table

    confidence, voted = estimator.options["confidence"], pan_product.voted(estimator)
    if as_json:
        told = {**describe_estimate(estimate, confidence), **voted, "version": __version__}
        print(json.dumps({"estimator": kind.estimator, **told}))
    else:
        sys.stdout.write(estimate_table(kind.estimator, estimate, confidence, table_width()))
        sys.stdout.writelines(f"The vector that was voted: {vector}\n" for vector in voted.values())


def _add(kind: PanCommand) -> None:
    run = options.text_format("the estimate")(options.quiet(partial(_run, kind)))
    run = options.paying_by_name(run)
    sampled, planned = _SAMPLED if kind.sampled else (), (_EPSILON, *_PLANNED) if kind.planned else ()
    use = _USE if kind.planned else (pan_product.RELEASE,)
    run = options.takes(*kind.own, *sampled, *planned, *_EVERY, *use)(run)
    run = options.files(help="Files or patterns; '-' is standard input. None: the state alone.")(options.reading()(run))
    pan.command(kind.command, help=kind.help)(run)


for _kind in KINDS:
    _add(_kind)
