"""A frequency oracle that somebody brings, and the items it estimates highest."""

from __future__ import annotations

import copy
import math
import secrets
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass
from discreet.errors import DataError, DiscreetError, IncompatibleSummaryError, ParameterError
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, Item
from discreet.events.values import item_order, items_array
from discreet.privacy.checks import whole_number
from discreet.privacy.estimate import Estimate
from discreet.summaries.counters import MAX_CAPACITY, ExactCounts, RawCounts, Summary

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
_MOST = 2**31


class FrequencyOracle(Protocol):
    """What `OracleHeavyHitters` asks of an object: whole numbers in cells, and estimates that are made from cells.

    Its hash functions are fixed when it is made, by a seed that does not depend on the stream. All of what is said here
    the guarantee rests on; `dc.audit.check` of the mechanism tries it on small streams.

    Attributes:
        changes: An event changes at most this many cells,
        height: by at most so much each, wherever it stands in the stream and however that is cut into batches.
        gain: (1 if there is none.) If no cell changes by more than z, no estimate changes by more than gain times z.
    """

    changes: int
    height: int

    def update(self, items: Sequence[Item], counts: npt.NDArray[np.int64]) -> None:
        """Count a batch: different items (int, str or bytes), and how often each of them occurred."""

    def cells(self) -> npt.NDArray[np.int64]:
        """All that the estimates are computed from, as integers; always of one shape."""

    def estimate(self, items: Sequence[Item], cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The frequencies of items as whole numbers, from these cells (which have noise in a release) and nothing else.

        Not from what was counted: only then is a release as private as its noisy cells.
        """

    def error(self, length: int, items: int, failure: float) -> tuple[int, int]:
        """(below, above): frequency - below <= estimate <= frequency + above, from the cells without noise.

        For a stream of at most `length` events and this many items, fixed without the seed: all at once, after every
        batch, except with probability at most `failure` over the seed. It does not fall when `length` grows.
        """


@dataclass(frozen=True)
class OracleStatement:
    """What an oracle says of itself, checked; public."""

    changes: int
    height: int
    gain: int
    shape: tuple[int, ...]

    @classmethod
    def of(cls, oracle: Any) -> OracleStatement:
        """Read from an oracle; `ParameterError` if it lacks something."""
        for name in ("update", "cells", "estimate", "error"):
            if not callable(getattr(oracle, name, None)):
                raise ParameterError(f"a frequency oracle has a method {name}; {type(oracle).__name__} has none")
        numbers = {}
        for name in ("changes", "height", "gain"):
            if not hasattr(oracle, name) and name != "gain":
                raise ParameterError(
                    f"a frequency oracle states {name}, a whole number; {type(oracle).__name__} does not"
                )
            numbers[name] = whole_number(f"{name} of the oracle", getattr(oracle, name, 1), 1, _MOST)
        shape = asked(oracle, "cells").shape
        statement = cls(**numbers, shape=shape)
        if not 1 <= statement.cells <= _MOST:
            raise ParameterError(f"an oracle has 1 to 2**31 cells, not {statement.cells}")
        return statement

    @property
    def cells(self) -> int:
        """How many cells it has."""
        return math.prod(self.shape)


def asked(oracle: Any, method: str, *arguments: Any) -> npt.NDArray[np.int64]:
    """What a method of an oracle returns, as 64-bit integers in an array of their own; DataError if it is none."""
    given: npt.NDArray[Any] = guarded(oracle, method, *arguments, then=np.asarray)
    if given.dtype.kind not in "iu" or given.dtype == np.uint64:
        raise DataError(f"{method} of an oracle returns integers of at most 64 bits, not {given.dtype.name}")
    return given.astype(np.int64)


def guarded(oracle: Any, method: str, *arguments: Any, then: Callable[[Any], Any] | None = None) -> Any:
    """A call of an oracle's method; what it raises may quote items, so its words do not pass.

    Only `error` is asked without items: what it says of its parameters in an error of ours, may be read.
    """

    def call() -> Any:
        given = getattr(oracle, method)(*arguments)
        return given if then is None else then(given)

    return _without_words(call, f"{method} of the oracle failed", DiscreetError if method == "error" else MemoryError)


def _without_words(call: Callable[[], T], failed: str, passing: type[Exception] = MemoryError) -> T:
    try:
        return call()
    except (passing, MemoryError):
        raise
    except Exception as error:
        kind = type(error).__name__
    # Not in the handler: there the exception would stay attached to this one.
    raise DataError(f"{failed} ({kind})")


class TrackedOracle(Summary):
    """A frequency oracle and the `tracked` items it estimates highest. NOT PRIVATE. Algorithm 4 of [SS].

    Batches are counted by the oracle; then every item of the batch that is estimated higher than the lowest of the
    tracked ones takes its place. The recorded estimate of an item is that after the last batch it was in.

    Made by `OracleHeavyHitters.track`. Neither merged nor stored: the state of the oracle is its owner's.
    """

    def __init__(self, oracle: FrequencyOracle, tracked: int) -> None:
        self.statement = OracleStatement.of(oracle)
        self._tracked = whole_number("tracked", tracked, 1, MAX_CAPACITY)
        self._oracle: Any = oracle
        self._recorded: dict[Item, int] = {}
        self._total = 0
        self._failed = False
        self._lineage = (secrets.randbits(63),)
        self._lock = threading.Lock()

    @property
    def _native(self) -> Any:
        raise ParameterError("an oracle of your own does not tell this; ask the object that you passed")

    def update(self, data: Any, *, nulls: str = "error", bad_items: str = "skip") -> None:
        """Add a batch of events, as `Summary.update`. If the oracle fails in it, what it holds is not known any more.

        Then this and every later call is a DataError, and nothing can be released.
        """
        batch = ExactCounts()
        batch.update(data, nulls=nulls, bad_items=bad_items)
        raw = batch.not_private_counts()
        items: list[Item] = raw.items.to_pylist()
        if not items:
            return
        with self._lock:
            self._refuse_failed()
            self._failed = True
            guarded(self._oracle, "update", list(items), raw.counts.copy())
            estimates = self._estimates(items, self._cells())
            self._record(dict(zip(items, estimates.tolist(), strict=True)))
            self._total += int(raw.counts.sum())
            self._failed = False

    def _record(self, batch: dict[Item, int]) -> None:
        """Keep the highest; of equal ones those that were tracked before."""
        recorded = {item: batch.get(item, estimate) for item, estimate in self._recorded.items()}
        recorded.update(batch)
        if len(recorded) > self._tracked:
            kept = sorted(recorded, key=lambda item: -recorded[item])[: self._tracked]
            recorded = {item: recorded[item] for item in kept}
        self._recorded = recorded

    def _refuse_failed(self) -> None:
        if self._failed:
            raise DataError("the oracle failed while it counted a batch: what it holds is not known")

    def _cells(self) -> npt.NDArray[np.int64]:
        cells = asked(self._oracle, "cells")
        if cells.shape != self.statement.shape:
            raise DataError(f"an oracle's cells keep their shape: they were {self.statement.shape}, now {cells.shape}")
        return cells

    def _estimates(self, items: list[Item], cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The oracle's estimates from these cells; DataError unless it gives the same twice and leaves the cells."""
        given = cells.copy()
        first, second = (asked(self._oracle, "estimate", list(items), given) for _ in range(2))
        if first.shape != (len(items),):
            raise DataError("estimate of an oracle returns one number for every item")
        if not (np.array_equal(first, second) and np.array_equal(cells, given)):
            raise DataError("estimate of an oracle must return the same for the same cells, and leave them as they are")
        return first

    def estimates_from(self, items: Sequence[Item], cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """What the oracle estimates from other cells: as private as those are, if it keeps to its statement."""
        with self._lock:
            self._refuse_failed()
            return self._estimates(list(items), cells)

    def not_private_cells(self) -> npt.NDArray[np.int64]:
        """A copy of the cells. Not private."""
        with self._lock:
            self._refuse_failed()
            return self._cells()

    def not_private_counts(self) -> RawCounts:
        """The tracked items and their recorded estimates, in an order that does not depend on the stream."""
        with self._lock:
            self._refuse_failed()
            recorded = dict(self._recorded)
        items = sorted(recorded, key=item_order)
        return RawCounts(items_array(items), np.array([recorded[item] for item in items], np.int64))

    def estimate(self, item: Item) -> Estimate:
        """The oracle's estimate; that it errs is not taken into account. Not private."""
        (value,) = self.estimates_from([item], self.not_private_cells()).tolist()
        return Estimate(value, value, value)

    @property
    def capacity(self) -> int:
        """How many items are tracked: k-tilde of the paper."""
        return self._tracked

    @property
    def total(self) -> int:
        """The number of events seen. Not private."""
        return self._total

    @property
    def was_merged(self) -> bool:
        """Never: merging is refused."""
        return False

    @property
    def lineage(self) -> tuple[int, ...]:
        """A random name, kept by copies."""
        return self._lineage

    @property
    def max_key_bytes(self) -> int:
        """The longest string or bytes that is an item."""
        return DEFAULT_MAX_KEY_BYTES

    def __len__(self) -> int:
        return len(self._recorded)

    def copy(self) -> Self:
        """An independent one with the same state: the oracle is copied deeply."""
        with self._lock:
            self._refuse_failed()
            same = object.__new__(type(self))
            same.__dict__.update(self.__dict__)
            same._oracle = _without_words(lambda: copy.deepcopy(self._oracle), "the oracle cannot be copied")
            same._recorded, same._lock = dict(self._recorded), threading.Lock()
        return same

    def merge(self, other: Self) -> NoReturn:
        """Refused: the argument is for the candidates of one stream."""
        raise IncompatibleSummaryError("an oracle of your own cannot be merged; merge the streams, and count them")

    def to_bytes(self) -> NoReturn:
        """Refused: only its owner knows how the oracle is stored."""
        raise ParameterError("the state of your own oracle cannot be stored here; store it yourself")

    def __reduce__(self) -> NoReturn:
        self.to_bytes()

    def _describe(self) -> str:
        return f"{type(self._oracle).__name__}, tracked={self._tracked}"
