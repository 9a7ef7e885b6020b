"""Misra-Gries over sets, one set a user."""

from __future__ import annotations

from typing import Any

from discreet import _native
from discreet.errors import ParameterError
from discreet.events.items import DEFAULT_MAX_KEY_BYTES, prepare_lists, rules
from discreet.privacy.checks import whole_number
from discreet.summaries.counters import MAX_CAPACITY, DecrementedCounters


class UserMisraGries(DecrementedCounters):
    """At most `capacity` counters over the sets of users, each with at most `max_items_per_user` items. NOT PRIVATE.

    Follows Algorithm 4 (PAMG) of [LT]: a user raises the counters of all its distinct items by one and causes at
    most one decrement of all counters, so that adding or removing a user changes every counter by at most one, all
    in the same direction (Lemma 27).

    Error bound: for every item, f - floor(N/(k+1)) <= c <= f, where N counts the distinct items of all users.

    Args:
        capacity: The number of counters.
        max_items_per_user: The most distinct items a user may have; at most `capacity`.
        oversized: What to do with a user that has more: "error", or "sample" to keep a uniform random sample of
            `max_items_per_user` of its distinct items, drawn from the system's random source.
    """

    _native_class = _native.UserMisraGries

    def __init__(
        self,
        capacity: int,
        max_items_per_user: int,
        *,
        oversized: str = "error",
        max_key_bytes: int = DEFAULT_MAX_KEY_BYTES,
        seed: int | None = None,
    ) -> None:
        capacity = whole_number("capacity", capacity, 1, MAX_CAPACITY)
        most = whole_number("max_items_per_user", max_items_per_user, 1, capacity)
        if oversized not in ("error", "sample"):
            raise ParameterError(f"oversized must be 'error' or 'sample', not {oversized!r}")
        self._native = _native.UserMisraGries(
            capacity, most, oversized == "sample", *self._check_common(max_key_bytes, seed)
        )

    def update(self, data: Any, *, nulls: str = "error", bad_items: str = "skip") -> None:
        """Add users, one list of items each.

        Args:
            data: An Arrow list column (anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``), or an iterable
                of iterables. An item that a user has several times counts once.
            nulls: "error" refuses a batch with null users or items, "skip" leaves them out.
            bad_items: As for the other summaries. A row that is no list of items is refused.
        """
        self._native.update(prepare_lists(data), *rules(nulls, bad_items), _native.RandomSource())

    @property
    def max_items_per_user(self) -> int:
        """The most distinct items a user may have."""
        return int(self._native.max_items)

    @property
    def samples(self) -> bool:
        """Whether a sample of a user with more items counts, so that nobody has more than that in here."""
        return bool(self._native.sample)

    @property
    def not_private_users(self) -> int:
        """The number of users seen that had at least one item. Not private."""
        return int(self._native.users)

    def _describe(self) -> str:
        return f"capacity={self.capacity}, max_items_per_user={self.max_items_per_user}"
