"""Rows that cannot be read, by a public rule: what a bad row is depends on that row alone.

So that nobody can stop a release with one row, bad rows are left out by default, as if they were not there. Leaving a
row out changes nothing about any other: streams that differ in one row still differ in one row, or in none.
"""

from __future__ import annotations

from discreet.errors import DataError

__all__ = ["LONGEST_ITEM", "BadRows"]

LONGEST_ITEM = 4096  # bytes, as the summaries take them by default


class BadRows:
    """What becomes of them: an error, or left out and counted. The number is NOT PRIVATE, for the operator alone."""

    def __init__(self, skip: bool) -> None:
        self.skip = skip
        self.count = 0

    def found(self, number: int, reason: str) -> None:
        """Some rows are bad, for a reason that tells nothing about what is in them."""
        if number and not self.skip:
            raise DataError(reason)
        self.count += number
