"""What every summary shares: batches in, states out, and names that say what is not private."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.errors import DataError, IncompatibleSummaryError, ParameterError
from discreet.privacy.checks import whole_number
from discreet.privacy.estimate import Estimate

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from typing_extensions import Self

__all__ = ["DEFAULT_MAX_KEY_BYTES", "MAX_CAPACITY", "Item", "RawCounts", "Summary"]

Item = int | str | bytes

DEFAULT_MAX_KEY_BYTES = 4096
MAX_CAPACITY = 2**30
_MAX_KEY_BYTES = 2**30


def prepare_column(data: Any) -> Any:
    """Turn what the native reader does not know into what it does: Arrow, a contiguous array, or an iterable."""
    if data is None:
        raise DataError("expected a column or an iterable of items, got None")
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return data
    module = type(data).__module__.partition(".")[0]
    if module == "pandas":
        return _from_pandas(data)
    if module == "numpy" and hasattr(data, "dtype") and hasattr(data, "ndim"):
        import numpy as np

        if isinstance(data, np.ma.MaskedArray) and data.ndim == 1 and data.dtype.kind in "iuSUO":
            return data.tolist()  # masked elements become None
        if data.ndim != 1 or data.dtype.kind not in "iuSU":
            return data.tolist() if data.ndim == 1 and data.dtype.kind in "OT" else _refuse_array(data)
        return np.ascontiguousarray(data, dtype=data.dtype.newbyteorder("="))
    return data


def _from_pandas(data: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.Array.from_pandas(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        # The message may quote the data.
        kind = type(error).__name__
    raise DataError(
        f"the pandas {type(data).__name__} cannot be read as one column ({kind}); are its items of one kind?"
    )


def _refuse_array(data: Any) -> Any:
    raise DataError(
        f"the array has {data.ndim} dimensions of {data.dtype.name}; allowed is one dimension of integers, "
        "strings, bytes or Python objects"
    )


def skip_nulls(nulls: str) -> bool:
    """Check the `nulls` argument of update."""
    if nulls not in ("error", "skip"):
        raise ParameterError(f"nulls must be 'error' or 'skip', not {nulls!r}")
    return nulls == "skip"


@dataclass(frozen=True, slots=True, repr=False)
class RawCounts:
    """Items and counts as the summary holds them. NOT PRIVATE: for mechanisms, audits and tests."""

    items: pa.Array
    counts: np.ndarray[Any, np.dtype[np.int64]]

    def to_dict(self) -> dict[Item, int]:
        """A plain dictionary; not private either."""
        return dict(zip(self.items.to_pylist(), self.counts.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        return "RawCounts(NOT PRIVATE)"


def wrap_counters(raw: tuple[str, bytes, bytes, bytes]) -> RawCounts:
    """Native counters (key kind, values, offsets, counts) as Arrow items and a NumPy array."""
    import numpy as np
    import pyarrow as pa

    kind, values, offsets, counts = raw
    numbers = np.frombuffer(counts, dtype=np.int64)
    if kind in ("int64", "uint64"):
        return RawCounts(pa.array(np.frombuffer(values, dtype=kind)), numbers)
    arrow_type = pa.large_binary() if kind == "binary" else pa.large_string()
    if kind == "none":
        return RawCounts(pa.array([], type=arrow_type), numbers)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    return RawCounts(pa.Array.from_buffers(arrow_type, len(numbers), buffers), numbers)


class Summary:
    """A summary of a stream. NOT PRIVATE: publish it only through a release.

    Keys are integers (int64 or uint64), strings or bytes; the first batch decides which. A batch that cannot be
    taken raises `DataError` and leaves the summary as it was. Updates release the GIL; one summary may be updated
    from several threads.
    """

    _native_class: ClassVar[Any]
    _native: Any

    @staticmethod
    def _check_common(max_key_bytes: int, seed: int | None) -> tuple[int, int]:
        """Validated max_key_bytes, and the seed: by default drawn once, independently of any stream."""
        most = whole_number("max_key_bytes", max_key_bytes, 1, _MAX_KEY_BYTES)
        return most, secrets.randbits(64) if seed is None else whole_number("seed", seed, 0, 2**64 - 1)

    @classmethod
    def _wrap(cls, native: Any) -> Self:
        summary = object.__new__(cls)
        summary._native = native
        return summary

    def update(self, data: Any, *, nulls: str = "error") -> None:
        """Add a batch of events, in order.

        Args:
            data: An Arrow, NumPy, pandas or polars column of integers, strings or bytes (anything with
                ``__arrow_c_stream__`` or ``__arrow_c_array__``), or an iterable of int, str or bytes.
            nulls: "error" refuses a batch with nulls, "skip" leaves them out.
        """
        self._native.update(prepare_column(data), skip_nulls(nulls))

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
        """ "int64", "uint64", "string" or "binary"; None before the first batch."""
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
        """The longest string or bytes key that is accepted."""
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
        return type(self).from_bytes(self.to_bytes())

    def _describe(self) -> str:
        return ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._describe()}) [NOT PRIVATE]"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).from_bytes, (self.to_bytes(),))
