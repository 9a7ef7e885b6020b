"""`discreet pan inner-product`: votes fix a vector, and the vectors with an odd inner product with it are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from discreet.cli.options import Source, flag, option
from discreet.cli.output import remark
from discreet.errors import DataError, ParameterError
from discreet.privacy.checks import numbered

if TYPE_CHECKING:
    from discreet.published import InnerProductCounter

HELP = """How many vectors have an odd product with a voted one.

A row of FILE is a vector of 0s and 1s, written like 0110; a row of --votes is a vote for one of its places, written
PLACE:BIT, like 3:1, from place 0. Votes come first: the first vectors fix what was voted. The state tells nothing
about anyone beyond epsilon, however often it is looked at, and releases cost nothing more. How many rows there are,
and for which place each votes, is public; a vector that cannot be read counts as zeros, and so does a bit.
"""


OPTIONS = (
    option("--votes", "Votes to read before the vectors, PLACE:BIT in every row.", multiple=True, metavar="FILE"),
    option("--length", "Length of the vectors.", int),
    option(
        "--epsilon", "The budget: all looks at the state, and all releases. Smaller is stronger; 1 is common.", float
    ),
)
RELEASE = flag("--release", "With --state: also publish an estimate.")


def votes_and_vectors(
    source: Source, files: tuple[str, ...], peek: bool, votes: tuple[str, ...]
) -> Callable[[InnerProductCounter], None]:
    """What feeds the counter: votes first, then vectors, which are in the files."""
    from discreet.events.literals import vectors_written, votes_written

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


def voted(estimator: Any) -> dict[str, str]:
    """The vector, where one is voted."""
    return {"vector": "".join(map(str, estimator.vector))} if hasattr(estimator, "vector") else {}


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
