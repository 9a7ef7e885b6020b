"""How many different items there are, exactly, in bounded memory: what does not fit goes to a private folder.

Items are held in an exact summary. When that takes more than its room, its items are written as fingerprints of 128
bits under a secret key drawn for this count, in parts by their first bits, and the summary begins anew; in the end the
different fingerprints of each part are counted.

**Privacy.** The answer is the number of different values of a function of the items, which does not depend on the
data. One row more changes it by one or not at all, whatever the key: the sensitivity is that of the exact count.

**Error.** Two items have the same fingerprint with a probability of about 2^-128, so the number is that of the items
except for a probability of about n^2/2^129 (2^-69 for a billion). A sketch would need less memory (about 10 kB), but be
off by about a percent, which is far more than the noise: the interval of the release holds for the exact number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from discreet import _native
from discreet._later import np, pa
from discreet.engines.private_folder import PrivateFolder, remove_left_over
from discreet.errors import DiscreetError
from discreet.events.assembly import Rows
from discreet.summaries import ExactCounts

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint64]

ROOM = 96 * 2**20
"""Bytes that items may take in memory. A table that grows is there twice; it is looked at when it grew by an eighth."""
_PARTS = 256
_TEXT, _BYTES, _INTEGER, _LARGE = range(4)


class Prints:
    """Fingerprints of 128 bits, under secret keys that are drawn here."""

    def __init__(self) -> None:
        self._seeds = [[int.from_bytes(os.urandom(8), "little") for _ in range(2)] for _ in range(4)]  # of each kind

    def of(self, kind: int, items: pa.Array) -> Words:
        """Two words an item; items of different kinds are different items."""
        words = (np.frombuffer(_native.key_hashes(items, seed), np.uint64) for seed in self._seeds[kind])
        return np.stack(list(words), axis=1)


class DifferentItems:
    """Counts the different items of columns. NOT PRIVATE. To be used in a `with` statement."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._summary = ExactCounts()
        self._looked_at = 0  # items that are there when their memory is looked at again
        self._folder: PrivateFolder | None = None
        self._parts: list[IO[bytes]] = []

    def __enter__(self) -> DifferentItems:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for part in self._parts:
            part.close()
        if self._folder is not None:
            self._folder.remove()

    def __repr__(self) -> str:
        return "DifferentItems() [NOT PRIVATE]"

    @cached_property
    def _prints(self) -> Prints:
        return Prints()

    def update(self, column: Any, nulls: str) -> None:
        """Take a column; rows that cannot be items are left out."""
        self._summary.update(column, nulls=nulls, bad_items="skip")
        if len(self._summary) > self._looked_at:  # which goes through all items
            self._looked_at = len(self._summary) * 9 // 8
            if self._summary.memory_bytes > self._room:
                self._write()

    def count(self) -> int:
        """How many there were."""
        if self._folder is None:
            return len(self._summary)
        self._write()
        return sum(map(self._count_part, self._parts))

    def _write(self) -> None:
        if self._folder is None:
            remove_left_over()
            self._folder = PrivateFolder()
            self._parts = [open(self._folder.path / str(part), "w+b") for part in range(_PARTS)]  # noqa: SIM115
        items, self._summary, self._looked_at = self._summary.not_private_counts().items, ExactCounts(), 0
        try:
            for some in _by_kind(items):
                self._write_prints(self._prints.of(*some))
        except OSError as error:
            raise DiscreetError(
                f"data that does not fit in memory cannot be written to disk: {error.strerror}"
            ) from None

    def _write_prints(self, prints: Words) -> None:
        part_of = (prints[:, 0] >> np.uint64(56)).astype(np.uint8)
        prints = prints[np.argsort(part_of, kind="stable")]
        ends = np.cumsum(np.bincount(part_of, minlength=_PARTS))
        for part, some in zip(self._parts, np.split(prints, ends[:-1]), strict=True):
            part.write(some.tobytes())

    @staticmethod
    def _count_part(part: IO[bytes]) -> int:
        part.flush()
        part.seek(0)
        first, second = np.fromfile(part, np.uint64).reshape(-1, 2).T
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
        return int(len(order) > 0) + int(np.count_nonzero((first[1:] != first[:-1]) | (second[1:] != second[:-1])))


def different_items(found: Rows) -> int:
    """How many different items rows have, in bounded memory. NOT private."""
    with DifferentItems() as different:
        for column in found.items():
            different.update(column, found.nulls)
        return different.count()


def _by_kind(items: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    """The items of each kind. A number is the same item in a column of int64 and of uint64."""
    if pa.types.is_union(items.type):
        codes = np.asarray(items.type_codes)
        for code in range(items.type.num_fields):
            places = pa.array(np.asarray(items.offsets)[codes == code])
            yield from _by_kind(items.field(code).take(places))
    elif pa.types.is_uint64(items.type):
        large = np.asarray(items) >= np.uint64(2**63)
        yield _INTEGER, items.filter(pa.array(~large))
        yield _LARGE, items.filter(pa.array(large))
    elif pa.types.is_integer(items.type):
        yield _INTEGER, items
    else:
        is_text = pa.types.is_string(items.type) or pa.types.is_large_string(items.type)
        yield _TEXT if is_text else _BYTES, items
