"""`discreet pan inner-product`: votes fix a vector, and the vectors with an odd inner product with it are counted."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet._version import __version__
from discreet.cli import options
from discreet.cli.interrupts import uninterrupted
from discreet.cli.options import Paying, Source, flag, option
from discreet.cli.output import batches, remark, table_width
from discreet.errors import DataError, ParameterError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from discreet.published import InnerProductCounter

__all__ = ["command"]

_HELP = """How many vectors have an odd product with a voted one.

A row of FILE is a vector of 0s and 1s, written like 0110; a row of --votes is a vote for one of its places, written
PLACE:BIT, like 3:1, from place 0. Votes come first: the first vectors fix what was voted. The state tells nothing
about anyone beyond epsilon, however often it is looked at, and releases cost nothing more. How many rows there are,
and for which place each votes, is public; a vector that cannot be read counts as zeros, and so does a bit.
"""


def _run(
    files: tuple[str, ...],
    source: Source,
    votes: tuple[str, ...],
    state: Path | None,
    release: bool,
    as_json: bool,
    paying: Paying,
    **given: float | None,
) -> None:
    """Make or load the counter, feed it, write the state, print the release."""
    from discreet.storage import locked

    if state is None and release:
        raise ParameterError("--release is for --state; without a state an estimate is always printed")
    if state is None and not files:
        raise ParameterError("give files of vectors to read ('-' is standard input), or --state")
    if votes and source.query is not None:
        raise ParameterError("--where and --sql are for rows of one kind: read votes and vectors by two commands")
    if "-" in votes and "-" in files:
        raise ParameterError("standard input has votes or vectors: give the others as files")
    asked = {name: value for name, value in given.items() if value is not None}

    with nullcontext() if state is None else locked(state, wait_seconds=options.LOCK_WAIT_SECONDS) as kept:
        data = kept.read() if kept is not None and kept.exists else None
        for name in ("length", "epsilon") if data is None else ():
            if name not in asked:
                raise ParameterError(f"--{name} is needed to start")
        peek = data is None and paying.payer is not None
        read_votes, read_vectors = (_texts(source, names, peek) if names else () for names in (votes, files))
        begun = "a counter was charged and nothing was released"
        with uninterrupted(begun) if paying.payer else nullcontext():
            counter = _counter(data, asked, paying)
            if paying.payer is not None and kept is not None:
                kept.replace(counter.to_bytes(), erase=True)
        for texts in read_votes:
            _vote(counter, texts, source.bad_rows)
        for texts in read_vectors:
            counter.update(_vectors(texts, counter.length, source.bad_rows))
        with uninterrupted(last=True):
            if kept is not None:
                kept.replace(counter.to_bytes(), erase=True)
            if release or kept is None:
                _show(counter, as_json)


def _counter(data: bytes | None, asked: dict[str, Any], paying: Paying) -> InnerProductCounter:
    """The counter of a state, or a new one, charged before anything is answered."""
    from discreet.published import InnerProductCounter

    if data is None:
        budget = options.budget_of(asked["epsilon"])
        own = {name: value for name, value in asked.items() if name != "epsilon"}
        made = InnerProductCounter(budget=budget, ledger=paying.payer, charge_id=paying.charge_id, **own)
        paying.told("charged to", budget)
        return made
    if paying.given_id is not None:
        raise ParameterError("--charge-id names the charge that begins a state: leave it out")
    made = InnerProductCounter.from_bytes(data)
    for name, value in asked.items():
        if value != getattr(made, name):
            raise ParameterError(f"the state was made with another --{name}; leave it out")
    return made if paying.payer is None else InnerProductCounter.from_bytes(data, ledger=paying.payer)


def _texts(source: Source, files: tuple[str, ...], peek: bool) -> Iterator[list[str]]:
    """The rows of files, as text; what cannot be read at all is the empty text."""
    stream = source.open(files)
    read = batches(stream, tell=False)
    first = list(islice(read, 1)) if peek else []

    def texts() -> Iterator[list[str]]:
        for batch in chain(first, read):
            rows = batch.column("item").to_pylist()
            if not all(isinstance(row, str) for row in rows):
                raise DataError("votes and vectors are read as text, and the column has another type")
            yield rows
        if stream.bad_rows:
            remark(f"{stream.bad_rows:,} rows could not be read and count as zeros (not private: for your eyes alone)")
            yield [""] * stream.bad_rows

    return texts()


def _vectors(texts: list[str], length: int, bad_rows: str) -> npt.NDArray[np.uint8]:
    """A row of bits for each text; zeros for one that is no vector."""
    import numpy as np

    rows = np.zeros((len(texts), length), np.uint8)
    for row, text in zip(rows, texts, strict=True):
        if len(text) == length and text.strip("01") == "":
            row[:] = np.frombuffer(text.encode(), np.uint8) - ord("0")
        elif bad_rows == "error":
            raise DataError(f"a vector is not written as {length} characters 0 and 1")
    return rows


def _vote(counter: InnerProductCounter, texts: list[str], bad_rows: str) -> None:
    """Count the votes. Places are public, so a row without one is no vote; a bit that is none is a vote of 0."""
    positions, bits = [], []
    for text in texts:
        place, colon, bit = text.partition(":")
        has_place = colon == ":" and place.isascii() and place.isdigit() and int(place[:9]) < counter.length
        if bad_rows == "error" and (not has_place or bit not in ("0", "1")):
            raise DataError(f"a vote is not written as PLACE:BIT, with a place below {counter.length} and a bit 0 or 1")
        if has_place:
            positions.append(int(place))
            bits.append(int(bit == "1"))
    if positions:
        counter.vote(positions, bits)


def _show(counter: InnerProductCounter, as_json: bool) -> None:
    from discreet.releases.formats import describe_estimate, estimate_table

    estimate, vector = counter.release(), "".join(map(str, counter.vector))
    if as_json:
        told = {**describe_estimate(estimate, counter.confidence), "vector": vector, "version": __version__}
        print(json.dumps({"estimator": "InnerProductCounter", **told}))
    else:
        sys.stdout.write(estimate_table("InnerProductCounter", estimate, counter.confidence, table_width()))
        sys.stdout.write(f"The vector that was voted: {vector}\n")


_OPTIONS = (
    option("--votes", "Votes to read before the vectors, PLACE:BIT in every row.", multiple=True, metavar="FILE"),
    option("--length", "How long the vectors are.", int),
    option(
        "--epsilon", "The budget: all looks at the state, and all releases. Smaller is stronger; 1 is common.", float
    ),
    option("--confidence", "Of the interval; by default 0.95.", float),
    option("--state", "Keep the state in this file: it is made, or continued. Safe to keep.", options.PATH),
    flag("--release", "With --state: also publish an estimate."),
)


def _command() -> click.Command:
    run = options.text_format("the estimate")(options.quiet(_run))
    run = options.takes(*_OPTIONS)(options.paying_by_name(run))
    run = options.files(help="Files of vectors; '-' is standard input. None: the state alone.")(options.reading()(run))
    return click.command("inner-product", help=_HELP)(run)


command = _command()
