"""Columns of people, items and values as whole numbers: what both ways of counting people work on."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import _native
from discreet.errors import DataError
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, is_amount, read
from discreet.events.values import without_kinds
from discreet.summaries.counters import wrap_counters
from discreet.summaries.people import Counts, ValueRange

Columns = tuple["pa.Array | None", "pa.Array | None", "pa.Array | None"]
"""People, items, and what is to be summed, without nulls: as `events.assembly.Rows.owned` gives them."""
Numbered = npt.NDArray[np.int32]

_AHEAD = 1 << 18  # rows that are read while those before are numbered


class NumberedRows(NamedTuple):
    """Rows in numbers. A negative number is a row to leave out; integers may come as they are, in Arrow."""

    users: Numbered | pa.Array
    items: Numbered | pa.Array
    values: Counts | None

    def __len__(self) -> int:
        return len(self.users)


def numbered(
    columns: Iterator[Columns], users: Numbers, items: Numbers, values: ValueRange | None
) -> Iterator[NumberedRows]:
    """The columns in numbers, in their order: one thread for people, one for items, while this one reads."""
    from concurrent.futures import ThreadPoolExecutor

    waiting: deque[tuple[object, ...]] = deque()

    def first() -> NumberedRows:
        u, i, steps = waiting.popleft()
        return NumberedRows(u.result(), i.result(), steps)  # type: ignore[attr-defined,arg-type]

    one, other = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
    try:
        for who, what, amounts in columns:
            assert who is not None
            assert what is not None
            steps = None
            if values is not None:
                assert amounts is not None
                steps, missing = _steps(amounts, values)
                if missing is not None:
                    who, what, steps = who.filter(~missing), what.filter(~missing), steps[~missing]
            waiting.append((one.submit(users.numbers, who), other.submit(items.numbers, what), steps))
            while len(waiting) > max(1, min(4, _AHEAD // max(1, len(who)))):
                yield first()
        while waiting:
            yield first()
    finally:
        # Rows that nobody wants any more may be dropped by the garbage collector, in the middle of whatever runs then:
        # to wait there for a thread can be to wait for oneself.
        for threads in (one, other):
            threads.shutdown(wait=False, cancel_futures=True)


def _steps(amounts: pa.Array, values: ValueRange) -> tuple[Counts, npt.NDArray[np.bool_] | None]:
    """Values in steps of the range, and which rows have none (null, or not a number)."""
    plain = plain_numbers(amounts)
    missing = np.isnan(plain)
    if not missing.any():
        return values.steps(plain), None
    return values.steps(np.where(missing, 0.0, plain)), missing


def plain_numbers(amounts: pa.Array) -> npt.NDArray[np.float64]:
    """Values as floats; NaN where there is none."""
    kind = amounts.type
    if not is_amount(kind) and not pa.types.is_null(kind):
        raise DataError("the column of values must hold numbers")
    plain = amounts if pa.types.is_float64(kind) else read(amounts, lambda: amounts.cast(pa.float64(), safe=False))
    found: npt.NDArray[np.float64] = plain.to_numpy(zero_copy_only=False)
    return found


def with_numbers(amounts: pa.Array, *others: pa.Array | None) -> tuple[Any, ...]:
    """Values as floats, and the other columns, of the rows that have a number.

    One without (NaN) is no row of the question: its person and its group are not looked at.
    """
    values = plain_numbers(amounts)
    there = ~np.isnan(values)
    if there.all():
        return (values, *others)
    return (values[there], *(None if column is None else column.filter(there) for column in others))


def _fresh_seed() -> int:
    return int.from_bytes(os.urandom(8), "little")  # as `secrets` does, which takes longer to load


class Numbers:
    """A column of values as whole numbers, and back.

    Scalars that are neither integers nor texts nor bytes (dates, booleans, decimals) are taken as text. `seed` is the
    key of the hashes, by default a fresh one.
    """

    def __init__(
        self, role: str, *, tagged: bool = False, max_bytes: int = DEFAULT_MAX_KEY_BYTES, seed: int | None = None
    ) -> None:
        self._role = role
        self._seed = _fresh_seed() if seed is None else seed
        # A kind takes a byte.
        self._texts = _native.Interner(max(max_bytes, DEFAULT_MAX_KEY_BYTES + tagged), self._seed)
        self._whole = _native.IntegerInterner(self._seed)
        self._integers: pa.DataType | None = None
        self._as_they_are = False
        self._known = np.zeros(0, np.int64)
        self._tagged = tagged  # values are written with their kinds, see `events.values`

    @property
    def bytes(self) -> int:
        """Memory that is in use, half as much again for a table that grows."""
        return int(1.5 * (self._texts.bytes + self._whole.bytes))

    def numbers(self, column: pa.Array) -> Numbered | pa.Array:
        """A number for every row; negative for rows without a value and for values that cannot be items."""
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_integer(kind):
            if self._texts.size:
                raise DataError(
                    f"the {self._role} are numbers, but were texts or bytes before; write all of them as texts"
                )
            self._integers = pa.uint64() if pa.types.is_uint64(kind) else self._integers or pa.int64()
            plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            plain = plain.view(pa.int64()) if pa.types.is_uint64(kind) else plain.cast(pa.int64())
            return plain if self._as_they_are else np.frombuffer(self._whole.number(plain), np.int32)
        if self._integers is not None and not pa.types.is_null(kind):
            raise DataError(f"the {self._role} are texts or bytes, but were numbers before; write all of them as texts")
        if pa.types.is_floating(kind):
            # One missing value makes floats of whole numbers in pandas: it would decide how all are published.
            raise DataError(
                f"the {self._role} are floats, which whole numbers become: give whole numbers (in pandas, with "
                'missing values, .astype("Int64")) or texts'
            )
        if pa.types.is_nested(kind):
            raise DataError(f"the column of {self._role} must hold single values, not nested ones")
        texts = any(is_text(kind) for is_text in _TEXTS)
        if not texts and not pa.types.is_null(kind):
            column = read(column, lambda: column.cast(pa.string()))
        return np.frombuffer(self._texts.number(column), np.int32)

    @property
    def are_texts(self) -> bool:
        """Whether the values are texts or bytes, as far as any came."""
        return self._integers is None

    def keep_integers(self) -> None:
        """From here on integers are passed on as they are: their numbers would not fit in memory."""
        self._as_they_are = True

    def forget_integers(self) -> None:
        """Free what numbers of integers took; none may be in use any more."""
        if self._whole.size:
            self._whole = _native.IntegerInterner(self._seed)
            self._known = np.zeros(0, np.int64)

    def integers(self) -> Counts:
        """The 64 bits of the integers, by number."""
        if len(self._known) != self._whole.size:
            self._known = np.frombuffer(self._whole.values(), np.int64)
        return self._known

    def hashes(self) -> npt.NDArray[np.uint64]:
        """A keyed hash of every value, by number."""
        return np.frombuffer((self._texts if self.are_texts else self._whole).hashes(), np.uint64)

    def values(self, numbers: Counts) -> pa.Array:
        """The values with these numbers; of integers that are kept as they are, these."""
        if self._integers is not None:
            known = numbers if self._as_they_are else self.integers()[numbers]
            return pa.array(known).view(self._integers)
        values = wrap_counters(self._texts.keys(numbers.tolist())).items
        return without_kinds(values) if self._tagged else values


_TEXTS = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary),
    *(pa.types.is_fixed_size_binary, pa.types.is_string_view, pa.types.is_binary_view),
)
