"""Who has rows that can be read, and who has none, in bounded memory: for a test of bad rows (`central.bad_share`)."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import _native
from discreet.events.columns import kind_of

_GROUPS = 1 << 22


class BadPeople:
    """People in groups by a hash under a fresh key. NOT PRIVATE.

    Far fewer people than groups are counted one by one, nearly; of more, a group is good if one of them is. Whatever
    the hash does, a person is in one group.
    """

    def __init__(self, groups: int = _GROUPS) -> None:
        self._key = secrets.randbits(64)
        self._good, self._bad = np.zeros(groups, np.bool_), np.zeros(groups, np.bool_)

    def mark(self, users: pa.Array, good: bool) -> None:
        """These people have a row that can be read, or one that cannot."""
        users = users.drop_null()
        if kind_of(users.type, lists=False) is None:
            users = users.cast(pa.string())
        hashes = np.frombuffer(_native.key_hashes(users, self._key), np.uint64)
        self.mark_groups(hashes % len(self._good), good)

    def mark_groups(self, groups: npt.NDArray[Any], good: bool) -> None:
        """The same of groups."""
        (self._good if good else self._bad)[groups] = True

    def counts(self) -> tuple[int, int]:
        """(groups of people all of whose rows are bad, other groups)."""
        good = int(np.count_nonzero(self._good))
        return int(np.count_nonzero(self._bad & ~self._good)), good
