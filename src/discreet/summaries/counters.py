"""Summaries that count items: what every one shares, and those of exact counts and of a fixed number of counters.

Batches go in, states come out, and names say what is not private.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from discreet import _native
from discreet._data_class import dataclass
from discreet._later import np, pa
from discreet.errors import DataError, IncompatibleSummaryError, ParameterError
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, Item, is_arrow, item_of, listed, prepare_column, read, rules
from discreet.events.values import as_arrow, mixed_array, published_type, taken
from discreet.privacy.checks import whole_number
from discreet.privacy.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from discreet._native import BadItems, MadeColumn

Counts: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

MAX_CAPACITY = 2**30
_MAX_KEY_BYTES = 2**30


@dataclass(repr=False, eq=False)
class RawCounts:
    """Items and counts as the summary holds them. NOT PRIVATE: for mechanisms, audits and tests.

    Attributes:
        held_items: The items, as an Arrow array or in plain memory.
        held_counts: The counts, as a NumPy array or in plain memory.
    """

    held_items: pa.Array | _native.PlainItems
    held_counts: Counts | memoryview

    @property
    def items(self) -> pa.Array:
        """The items as an Arrow array."""
        return as_arrow(self.held_items)

    @property
    def counts(self) -> Counts:
        """The counts as a NumPy array."""
        return np.asarray(self.held_counts)

    def items_at(self, places: Any) -> Any:
        """The items at these places, as they are held."""
        held = self.held_items
        return held.at(places) if isinstance(held, _native.PlainItems) else taken(held, places)

    def published_at(self, places: Any) -> Any:
        """The items at these places, which leave, in a type that depends on them alone."""
        items = self.held_items if len(places) == len(self.held_items) else self.items_at(places)
        return items.as_published() if isinstance(items, _native.PlainItems) else published_type(items)

    def to_dict(self) -> dict[Item, int]:
        """A plain dictionary; not private either."""
        return dict(zip(self.held_items.to_pylist(), self.held_counts.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.held_counts)

    def __reduce__(self) -> tuple[Any, ...]:
        return RawCounts, (self.items, self.counts)

    def __repr__(self) -> str:
        return "RawCounts(NOT PRIVATE)"


def wrap_counters(raw: tuple[str, bytes, bytes, bytes, bytes]) -> RawCounts:
    """Native counters (key kind, values, offsets, counts, tags) as items and numbers; nothing of it is copied."""
    kind, values, offsets, counts, tags = raw
    numbers = memoryview(counts).cast("q")
    if kind == "none":
        return RawCounts(_native.PlainItems("string", b"", bytes(8)), numbers)
    if kind != "mixed":
        ends = b"" if kind in ("int64", "uint64") else offsets
        return RawCounts(_native.PlainItems(kind, values, ends), numbers)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    items = pa.Array.from_buffers(pa.large_binary(), len(numbers), buffers)
    codes = np.frombuffer(tags, np.uint8)
    text, raw_bytes, integers, large = (items.filter(pa.array(codes == tag)) for tag in range(4))
    words = (np.frombuffer(b"".join(part.to_pylist()), np.int64) for part in (integers, large))
    signed, unsigned = (pa.array(part.view(kind)) for part, kind in zip(words, ("int64", "uint64"), strict=True))
    return RawCounts(mixed_array(codes, [text.cast(pa.large_string()), raw_bytes, signed, unsigned]), numbers)


class ValuesSeen:
    """Values of any kind that may be an item, by numbers in the order of their first appearance. NOT private."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._native = _native.Interner(DEFAULT_MAX_KEY_BYTES, int.from_bytes(os.urandom(8), "little"), True)

    def __len__(self) -> int:
        return self._native.size

    def of(self, column: Any, nulls: str) -> Counts:
        """The number of every row; -1 for a null that is skipped, and for what cannot be an item."""
        skip, prepared = rules(nulls)[0], prepare_column(column)
        if not is_arrow(prepared) and not isinstance(prepared, np.ndarray):
            prepared = listed(prepared, self._role)
            if not skip and any(value is None for value in prepared):
                raise DataError(f'the {self._role} have nulls; pass nulls="skip" to leave those rows out')
            # The native reader drops objects that cannot be items; here each row must keep its place.
            skip, prepared = True, [None if value is None else item_of(value) for value in prepared]
        try:
            return np.frombuffer(self._native.number(prepared, skip), np.int32).astype(np.int64)
        except DataError as error:
            raise DataError(f"{self._role}: {error}") from None

    def raw(self) -> tuple[str, bytes, bytes, bytes, bytes]:
        """All values as raw counters, by number."""
        return self._native.keys(range(self._native.size))

    def column(self) -> pa.Array:
        """All values, by number."""
        return wrap_counters(self._native.keys(range(self._native.size))).items


class Summary:
    """A summary of a stream. NOT PRIVATE: publish it only through a release.

    Keys are integers (int64 or uint64), strings or bytes, and keys of different kinds are different: 1, "1" and b"1"
    are three. A batch that cannot be taken raises `DataError` and leaves the summary as it was. Updates release the
    GIL; one summary may be updated from several threads.
    """

    _native_class: ClassVar[Any]
    _native: Any

    @staticmethod
    def _check_common(max_key_bytes: int, seed: int | None, *capacity: int) -> tuple[int, ...]:
        """Validated: the capacity, if there is one, max_key_bytes, and the seed.

        The seed is by default drawn once, independently of any stream.
        """
        counters = [whole_number("capacity", given, 1, MAX_CAPACITY) for given in capacity]
        most = whole_number("max_key_bytes", max_key_bytes, 1, _MAX_KEY_BYTES)
        return (
            *counters,
            most,
            int.from_bytes(os.urandom(8), "little") if seed is None else whole_number("seed", seed, 0, 2**64 - 1),
        )

    @classmethod
    def _wrap(cls, native: Any) -> Self:
        summary = object.__new__(cls)
        summary._native = native
        return summary

    def update(self, data: Any, *, nulls: str = "error", bad_items: str = "skip") -> None:
        """Add a batch of events, in order.

        Args:
            data: An Arrow, NumPy, pandas or polars column of integers, strings or bytes (anything with
                ``__arrow_c_stream__`` or ``__arrow_c_array__``), or an iterable of int, str or bytes.
            nulls: "error" refuses a batch with nulls, "skip" leaves them out.
            bad_items: What becomes of rows that cannot be items: longer than `max_key_bytes`, not Unicode, numbers
                beyond 64 bits, or other objects. "skip" leaves them out, so that no single row can prevent a release;
                "error" refuses the batch, which is outside every guarantee (docs/privacy/errors.md). A batch of nothing
                but other objects is refused either way.
        """
        self._native.update(prepare_column(data), *rules(nulls, bad_items))

    def checked(self, data: Any, *, nulls: str = "error", bad_items: str = "skip") -> Any:
        """The batch, checked and hashed, for `update` with the same rules: any thread may do so while another counts.

        Nothing is counted by it. Columns are not copied: they must stay as they are until they are counted. A batch
        whose bad items were skipped is refused where they are errors. Summaries that do not know a quicker way give
        the data back.
        """
        if not hasattr(self._native, "checked"):
            return data
        return self._native.checked(prepare_column(data), *rules(nulls, bad_items))

    def hash_made(self, made: MadeColumn) -> None:
        """Keep the hashes of its items with a column, for who counts it: any thread may do so that has it alone."""
        if hasattr(self._native, "hash_made"):
            self._native.hash_made(made)

    def merge(self, other: Self) -> None:
        """Add another summary of the same kind and size; `other` stays as it is.

        Refused with `IncompatibleSummaryError` if the two have counted some of the same events: see `lineage`.
        """
        if type(other) is not type(self):
            raise IncompatibleSummaryError(f"cannot merge {type(other).__name__} into {type(self).__name__}")
        self._native.merge(other._native)

    def estimate(self, item: Item) -> Estimate:
        """The frequency of an item with bounds that hold for every stream. Not private."""
        raise ParameterError("use one of the summary classes, not the bare Summary")

    def not_private_counts(self) -> RawCounts:
        """All stored items and their counters, in an order that does not depend on the stream. Not private."""
        return wrap_counters(self._native.counters())

    @property
    def total(self) -> int:
        """The number of events seen. Not private."""
        return int(self._native.total)

    @property
    def key_type(self) -> str | None:
        """ "int64", "uint64", "string", "binary", or "mixed" if there were several; None before the first."""
        kind: str = self._native.key_kind
        return None if kind == "none" else kind

    @property
    def was_merged(self) -> bool:
        """Whether another summary was ever merged into this one; some mechanisms need one that was not."""
        return bool(self._native.merged)

    @property
    def lineage(self) -> tuple[int, ...]:
        """A random name for every stream that was counted: one, and after merges those of all parts.

        Drawn with the first events and kept by copies and states: summaries with a name in common have events in
        common. Merging them, or releasing them side by side, is refused.
        """
        return tuple(self._native.lineage)

    @property
    def max_key_bytes(self) -> int:
        """The longest string or bytes key that is an item."""
        return int(self._native.max_key_bytes)

    @property
    def seed(self) -> int:
        """The seed of the hash functions, drawn independently of the stream."""
        return int(self._native.seed)

    @property
    def memory_bytes(self) -> int:
        """Bytes held by the tables and their keys."""
        return int(self._native.memory_bytes)

    def __len__(self) -> int:
        return int(self._native.size)

    def to_bytes(self) -> bytes:
        """The whole state. Not private."""
        state: bytes = self._native.to_bytes()
        return state

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Restore a state; it continues exactly where it was. Raises `CorruptStateError` for anything else."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise ParameterError(f"a state is bytes, not {type(data).__name__}")
        return cls._wrap(cls._native_class.from_bytes(bytes(data)))

    def copy(self) -> Self:
        """An independent summary with the same state."""
        if hasattr(self._native, "copy"):
            return self._wrap(self._native.copy())
        return type(self).from_bytes(self.to_bytes())

    def _describe(self) -> str:
        return ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._describe()}) [NOT PRIVATE]"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).from_bytes, (self.to_bytes(),))


def update_all(summaries: Iterable[Summary], prepared: Any, how: tuple[bool, BadItems]) -> None:
    """Add a prepared column, which can be read more than once, to several summaries, by what `rules` made of a rule."""
    for summary in summaries:
        summary._native.update(prepared, *how)


class CounterSummary(Summary):
    """A summary with a fixed number of counters. NOT PRIVATE."""

    def __init__(self, capacity: int, *, max_key_bytes: int = DEFAULT_MAX_KEY_BYTES, seed: int | None = None) -> None:
        self._native = self._native_class(*self._check_common(max_key_bytes, seed, capacity))

    @property
    def capacity(self) -> int:
        """The number of counters; in shards, of every shard."""
        return int(self._native.capacity)

    def _describe(self) -> str:
        return f"capacity={self.capacity}"


class DecrementedCounters(CounterSummary):
    """Counters of which all lose one when there is no room for another key. NOT PRIVATE."""

    @property
    def not_private_offset(self) -> int:
        """Alpha: how often all counters were decremented (and, after a merge, by how much). Not private."""
        return int(self._native.decrements)

    def estimate(self, item: Item) -> Estimate:
        """The counter of an item: its events (or the users with it) lie between it and it plus alpha. Not private."""
        count, _ = self._native.count(item)
        return Estimate(count, count, count + self.not_private_offset)


class ExactCounts(Summary):
    """The exact count of every item; memory grows with the number of distinct items. NOT PRIVATE."""

    _native_class = _native.ExactCounts

    def __init__(self, *, max_key_bytes: int = DEFAULT_MAX_KEY_BYTES, seed: int | None = None) -> None:
        self._native = _native.ExactCounts(*self._check_common(max_key_bytes, seed))

    def estimate(self, item: Item) -> Estimate:
        """The exact count. Not private."""
        count, _ = self._native.count(item)
        return Estimate(count, count, count)


class MisraGries(DecrementedCounters):
    """At most `capacity` counters; each loses at most n/(capacity+1). NOT PRIVATE.

    Follows Algorithm 1 of [LT]: counters that reach zero keep their key until it is replaced, and the one replaced
    is the smallest in an order of the keys that does not depend on the stream (their hash under `seed`).

    Error bound: for every item, f - n/(k+1) <= c <= f.
    """

    _native_class = _native.MisraGries

    def update_counts(self, items: Any, counts: Any) -> None:
        """Add `counts[i]` events in a row of the i-th item: the same state as that many single events, but quickly.

        For batches whose order means nothing. `items` is a column without nulls that is not a dictionary.
        """
        numbers = read(counts, lambda: np.asarray(counts))
        if (
            numbers.ndim != 1
            or not (np.can_cast(numbers.dtype, np.int64) or len(numbers) == 0)
            or numbers.dtype == bool
        ):
            raise DataError("the numbers of occurrences must be one column of whole numbers that fit into int64")
        column = prepare_column(items)
        if hasattr(column, "__len__") and len(column) != len(numbers):
            raise DataError(f"every item needs a number of occurrences, but there are {len(numbers)} numbers")
        self._native.update_counts(column, np.ascontiguousarray(numbers, np.int64))


class SpaceSaving(CounterSummary):
    """At most `capacity` counters; each exceeds the truth by at most n/capacity. NOT PRIVATE.

    Follows Algorithm 2 of [SS]: a new item takes over the counter of the most recently seen item among those with
    the smallest count.

    Error bound: for every tracked item, f <= C <= f + n/k; an untracked item has f <= n/k.
    """

    _native_class = _native.SpaceSaving

    @property
    def not_private_untracked_bound(self) -> int:
        """The largest frequency an item without a counter can have. Not private."""
        return int(self._native.untracked_bound)

    def estimate(self, item: Item) -> Estimate:
        """The counter of an item (0 without one): it never underestimates a tracked item. Not private."""
        count, tracked = self._native.count(item)
        bound = self.not_private_untracked_bound
        if not tracked:
            return Estimate(0, 0, bound)
        return Estimate(count, max(count - bound, 0), count)
