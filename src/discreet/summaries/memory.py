"""How much memory may be used, and how many counters that is: public numbers both."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache

from discreet import summaries
from discreet._data_class import dataclass
from discreet.errors import ParameterError

COUNTERS = 2**16
"""Of a sketch whose noise does not grow with them: as many keep the sketch's own error small at no cost in speed, and
take memory only as items come."""
KEY_BYTES = 32
"""How long an item is taken to be, where nothing says it."""
SKETCH_MEMORY = 160 * 10**6
"""The least that sketches may be given: below, the libraries alone take more."""

_SIZES = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_OTHERS = 250 * 10**6  # of the memory: for the interpreter, the libraries and what is being read
_MOST_COUNTERS = 2**30


@dataclass(frozen=True)
class Memory:
    """How much a process may use: a size such as "2GB", or what the machine, or the container, has.

    `least` is what the libraries alone take; less is refused.
    """

    given: str | None = None
    least: int = 0

    def __post_init__(self) -> None:
        if self.given is not None and self.bytes < self.least:
            raise ParameterError(
                f"the memory limit of {self.given} is too small: this takes at least {self.least // 10**6}MB"
            )

    @property
    def bytes(self) -> int:
        if self.given is None:
            return int(0.8 * _memory_of_machine())
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B)", str(self.given).strip(), re.IGNORECASE)
        if found is None:
            raise ParameterError(f"memory must be a size such as 2GB or 512MiB, not {self.given!r}")
        return int(float(found[1]) * _SIZES[found[2].upper()])

    @property
    def room(self) -> int:
        """What data may take: rows with their names, or counters."""
        whole = self.bytes
        return max(whole - _OTHERS, whole // 3)


def _memory_of_machine() -> int:
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError), open(limit, encoding="ascii") as file:
            sizes.append(int(file.read()))
    return min(sizes)


def counters_in(room: int, kind: str = "MisraGries") -> int:
    """The largest power of two of counters that, full of items of 32 bytes, take at most half of this.

    The other half is for a table that grows, which is there twice for a moment, and for the release.
    """
    sample = 2**12
    counters = room * sample // (2 * bytes_when_full(kind, sample))
    return min(1 << max(counters, 1).bit_length() - 1, _MOST_COUNTERS)


@lru_cache(maxsize=64)
def bytes_when_full(kind: str, capacity: int) -> int:
    """What a summary of this class takes with this many items of 32 bytes."""
    keys = [b"%0*d" % (KEY_BYTES, key) for key in range(capacity)]
    if kind == "UserMisraGries":
        users = summaries.UserMisraGries(capacity, 1)
        users.update([[key] for key in keys])
        return users.memory_bytes
    summary: summaries.Summary = getattr(summaries, kind)(capacity)
    summary.update(keys)
    return summary.memory_bytes
