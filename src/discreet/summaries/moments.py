"""Sums of whole numbers that counts, sums, means and variances follow from: of rows, and of the rows in groups."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass
from discreet.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ValueMoment:
    """What is summed of a value x within a public range, and what the sums say.

    With t = (x - low)/(high - low), from 0 to 1, a row adds to
        "count":     1
        "sum":       t and 1 - t
        "mean":      t and 1 - t
        "variance":  (1 - t)^2, 2 t (1 - t) and t^2
    None of these parts is negative, and those of a row add up to 1: so one row moves the parts together by 1 in l1, and
    by at most 1 in l2, whatever its value is. (A number and a value from -1 to 1 would move them by 2.) Parts are whole
    numbers of steps, and those of a row add up to `one` exactly.

    "signed" is the sum alone, x/max(|low|, |high|), where nobody has to know how many rows there are; "split" are its
    positive and its negative part; a row has one of them.

    Args:
        kind: One of the above.
        low: Smaller values count as this one.
        high: Larger values count as this one.
        finest: How many steps 1 has, at most. Whole numbers in a range of whole numbers are not rounded, if they fit.
    """

    kind: str
    low: float = 0.0
    high: float = 1.0
    finest: int = 2**30

    PARTS: ClassVar[dict[str, int]] = {"count": 1, "signed": 1, "split": 2, "sum": 2, "mean": 2, "variance": 3}

    def __post_init__(self) -> None:
        if self.kind not in self.PARTS:
            raise ParameterError(f"kind must be one of {', '.join(self.PARTS)}, not {self.kind!r}")
        for end in (self.low, self.high):
            if isinstance(end, bool) or not isinstance(end, (int, float, np.number)) or not math.isfinite(end):
                raise ParameterError("the range must be two finite numbers, LOW and HIGH")
        if not self.low < self.high or not math.isfinite(float(self.high) - float(self.low)):
            raise ParameterError(f"the range must have LOW < HIGH, got {self.low:g} to {self.high:g}")
        if not 1e-150 < float(self.high) - float(self.low) < 1e150 or self.largest > 1e150:
            raise ParameterError("the ends of the range must be below 1e150 and clearly different")

    @property
    def parts(self) -> int:
        """How many numbers a row adds to."""
        return self.PARTS[self.kind]

    @property
    def one(self) -> int:
        """How many steps 1 has."""
        if self.kind == "count":
            return 1
        if self.kind == "variance":
            return self.root**2
        return _steps(self.largest if self.kind in ("signed", "split") else self.wide, self.finest)

    @property
    def root(self) -> int:
        """How many steps 1 has where they are squared."""
        return _steps(self.wide, math.isqrt(self.finest))

    @property
    def wide(self) -> float:
        """high - low."""
        return float(self.high) - float(self.low)

    @property
    def largest(self) -> float:
        """The larger of |low| and |high|."""
        return max(abs(float(self.low)), abs(float(self.high)))

    def entries(self, values: Array) -> Counts:
        """What every value adds, in whole numbers: a row of `parts` numbers for each. Not for NaN."""
        if self.kind == "count":
            return np.ones((len(values), 1), np.int64)
        cut, one = np.clip(values, self.low, self.high), self.one
        if self.kind in ("signed", "split"):
            signed = np.rint(cut * (one / self.largest)).astype(np.int64)
            parts = [signed] if self.kind == "signed" else [np.maximum(signed, 0), np.maximum(-signed, 0)]
            return np.transpose(np.stack(parts))
        t = np.clip((cut - self.low) / self.wide, 0.0, 1.0)
        if self.kind != "variance":
            upper = np.rint(t * one).astype(np.int64)
            return np.transpose(np.stack([upper, one - upper]))
        root = self.root  # (root - j)^2 + 2 j (root - j) + j^2 = root^2
        j = np.rint(t * root).astype(np.int64)
        return np.transpose(np.stack([(root - j) ** 2, 2 * j * (root - j), j**2]))

    def total(self, values: Array) -> Counts:
        """The sum of the entries of some thousand values."""
        if self.kind not in ("sum", "mean"):
            return np.asarray(self.entries(values).sum(axis=0))
        # As in `entries`, in place; what is cut to the range is from 0 to 1 then, and sums of whole floats are exact.
        t = np.maximum(values, self.low)
        np.minimum(t, self.high, out=t)
        t -= self.low
        t /= self.wide
        t *= self.one
        upper = int(np.rint(t, out=t).sum())
        return np.array([upper, self.one * len(values) - upper], np.int64)

    @property
    def rounding(self) -> float:
        """By how much rounding of values moves a mean or a variance at most."""
        if self.kind == "mean":
            return self.wide / (2 * self.one)
        # |Var X - Var Y| <= (sd X + sd Y) d where |X - Y| <= d
        return self.wide**2 * 1.01 / (2 * self.root) if self.kind == "variance" else 0.0

    def answer(self, sums: Array) -> Array:
        """What sums say, in rows of `parts` numbers in units of 1, with noise or without."""
        if self.kind == "count":
            return sums[:, 0]
        if self.kind == "signed":
            return np.asarray(sums[:, 0] * self.largest)
        if self.kind == "split":
            return np.asarray((sums[:, 0] - sums[:, 1]) * self.largest)
        if self.kind == "sum":
            return np.asarray(self.high * sums[:, 0] + self.low * sums[:, 1])
        sums = np.maximum(sums, 0.0)
        number = np.sum(sums, axis=1)
        safe = np.where(number > 0.0, number, 1.0)
        if self.kind == "mean":
            return np.asarray(
                np.where(number > 0.0, self.low + self.wide * sums[:, 0] / safe, self.low + self.wide / 2)
            )
        return np.asarray(np.where(number > 0.0, self.wide**2 * _spread(sums[:, 0], sums[:, 1], sums[:, 2], safe), 0.0))

    def within(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """The least and the largest answer, where every part is between these bounds."""
        if self.kind in ("count", "signed"):
            worth = 1.0 if self.kind == "count" else self.largest
            return lower[:, 0] * worth, upper[:, 0] * worth
        if self.kind in ("sum", "split"):
            ends = (self.high, self.low) if self.kind == "sum" else (self.largest, -self.largest)
            weights = np.array(ends, np.float64)
            falling = weights < 0.0
            least, most = np.where(falling, upper, lower), np.where(falling, lower, upper)
            return np.asarray(least @ weights), np.asarray(most @ weights)
        lower, upper = np.maximum(lower, 0.0), np.maximum(upper, 0.0)
        if self.kind == "mean":
            least, most = _share(lower[:, 0], upper[:, 1], 0.0), _share(upper[:, 0], lower[:, 1], 1.0)
            return self.low + self.wide * least, self.low + self.wide * most
        least, most = _spreads(lower, upper)
        return self.wide**2 * least, self.wide**2 * most

    def ends(self, values: Array) -> Array:
        """Answers cut to what they can be."""
        if self.kind == "mean":
            return np.clip(values, self.low, self.high)
        if self.kind == "variance":
            return np.clip(values, 0.0, self.wide**2 / 4)
        return np.clip(values, 0.0 if self.low >= 0 else -np.inf, 0.0 if self.high <= 0 else np.inf)


def _steps(width: float, most: int) -> int:
    """As many steps as fit; where the width is a whole number, whole numbers are whole steps."""
    return int(width) * (most // int(width)) if 1.0 <= width <= most and float(width).is_integer() else most


def _share(part: Array, rest: Array, nothing: float) -> Array:
    """part/(part + rest), and `nothing` where there is none."""
    total = part + rest
    return np.asarray(np.where(total > 0.0, part / np.where(total > 0.0, total, 1.0), nothing))


def _spread(a: Any, b: Any, c: Any, number: Any = None) -> Any:
    """The variance of t: with n = a + b + c its mean is (b/2 + c)/n and that of t^2 is c/n, so (a c - b^2/4)/n^2."""
    number = np.maximum(a + b + c, 1e-300) if number is None else number
    return np.clip((a * c - b * b / 4.0) / number / number, 0.0, 0.25)


def _spreads(lower: Array, upper: Array) -> tuple[Array, Array]:
    """The least and the largest `_spread` where each part is between bounds.

    It falls as b grows. As a grows it rises up to a = b + c + b^2/(2 c) and falls from there, and the same with c: so
    it is least in a corner, and largest where a or c is at an end and the other is at its best.
    """
    (a0, b0, c0), (a1, b1, c1) = lower.T, upper.T
    least = np.minimum.reduce([_spread(a, b1, c) for a in (a0, a1) for c in (c0, c1)])

    def best(other: Array, low: Array, high: Array) -> Array:
        top = b0 + other + b0 * b0 / (2.0 * np.maximum(other, 1e-300))
        return np.asarray(np.clip(top, low, high))

    largest = [_spread(a, b0, best(a, c0, c1)) for a in (a0, a1)]
    largest += [_spread(best(c, a0, a1), b0, c) for c in (c0, c1)]
    even = (b0 <= 0.0) & (np.maximum(a0, c0) <= np.minimum(a1, c1)) & (np.minimum(a1, c1) > 0.0)
    nothing = lower.sum(axis=1) <= 0.0  # of no rows, or of one, anything can be said
    return np.where(nothing, 0.0, least), np.where(even | nothing, 0.25, np.maximum.reduce(largest))


@dataclass(frozen=True, repr=False)
class GroupSums:
    """Sums over rows in groups, one row of `ValueMoment.parts` whole numbers for each. NOT private.

    Anyone who counts (this machine, DuckDB, Spark) makes one; what is drawn from it is `central.RowMoments`'s.

    Attributes:
        sums: int64, a row for every group; of no groups, one row.
        keys: What says the groups, as `events.keys` has them; None without any.
    """

    sums: Counts
    keys: pa.Array | None = None

    def __add__(self, other: GroupSums) -> GroupSums:
        """The sums of the rows of both; groups are in the order of their keys."""
        if self.keys is None or other.keys is None:
            found = self if self.keys is not None else other
            return GroupSums(self.sums + other.sums) if found.keys is None else found  # one of them has no rows
        from discreet.events.values import joined_keys

        keys, places = joined_keys(self.keys, other.keys)
        sums = np.zeros((len(keys), self.sums.shape[1]), np.int64)
        np.add.at(sums, places, np.concatenate([self.sums, other.sums]))
        return GroupSums(sums, keys)

    def in_order(self) -> GroupSums:
        """The same, with groups in the order of their keys."""
        return self if self.keys is None else self + GroupSums(self.sums[:0], self.keys[:0])

    def __repr__(self) -> str:
        return "GroupSums() [NOT PRIVATE]"
