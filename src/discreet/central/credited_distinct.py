"""How many different values people have, each person credited with a few of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.central.noisy_count import NoisyCount
from discreet.errors import ParameterError
from discreet.privacy import Unit, User
from discreet.privacy.checks import whole_number
from discreet.summaries.people import Counts, each_once

Numbers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class CreditedDistinct(NoisyCount):
    """The number of different values that can be credited to people, at most m to each, with noise.

    Unit: a person with all of their rows (`User()`).
    Guarantee: epsilon, rho, or (epsilon, delta), as the budget says.
    Noise: discrete Laplace of scale m/epsilon, or discrete Gaussian with sigma^2 = m^2/(2 rho); of (epsilon, delta) the
        one with the smaller variance.
    Threshold: none.
    Error: the noise, and what crediting leaves out: values are credited each to one of the people who have it, at most
        m to a person and as many as possible (a largest matching). The result is at most the number of values, and
        equal to it iff every set S of values is shared by at least |S|/m people. So the lower bound holds for the
        truth; nothing finite that is private bounds what one person alone may have, so the upper bound is infinite.
    Argument: with one more person the largest matching grows by at most m, and never shrinks;
        docs/privacy/counting.md. Its size depends on who has what alone, not on any order.

    Args:
        max_items: m, public. With 1 the noise is least; more is for people with many values that nobody else has.
    """

    unit: Unit = field(default_factory=User)
    counted: str = "values"
    max_items: int = 1

    def __post_init__(self) -> None:
        whole_number("max_items", self.max_items)
        if self.unit != User():
            raise ParameterError("credited values protect dc.User(): a person with all of their rows")
        super().__post_init__()

    @property
    def sensitivity(self) -> int:
        """m: one more person is credited with this many values at most."""
        return self.max_items

    @property
    def name(self) -> str:
        return f"noisy count of values, at most {self.max_items} credited to a person"

    def count_of(self, people: Numbers, values: Numbers) -> int:
        """How many values can be credited. NOT private.

        Args:
            people: For every row whose it is, as a number from 0.
            values: For every row its value, as a number from 0.
        """
        return credited(people, values, self.max_items)

    def _upper(self, upper: float) -> float:
        return math.inf


def credited(people: Numbers, values: Numbers, most: int) -> int:
    """How many values can be credited, each to one of the people who have it, at most this many to each. NOT
    private."""
    return credited_in_turn(people, values, (most,))[most]


def credited_in_turn(people: Numbers, values: Numbers, several: Sequence[int]) -> dict[int, int]:
    """The same for several numbers in ascending order; where all values are credited, more of them cannot be."""
    found: dict[int, int] = {}
    pairs = each_once(people.astype(np.int64) << 32 | values.astype(np.int64))  # numbers are below 2^31
    owners, owned = pairs >> 32, pairs & 0xFFFFFFFF
    different = int(np.count_nonzero(np.bincount(owned))) if len(owned) else 0
    taken = 0
    for most in several:
        # Anyone who has room for all of their values has it for every larger number.
        more, owners, owned = _taken_in_full(owners, owned, np.full(_size(owners), most, np.int64))
        taken += more
        found[most] = taken + _largest(owners, owned, most)
        if found[most] == different:
            return found | dict.fromkeys((each for each in several if each > most), different)
    return found


def _size(numbers: Counts) -> int:
    return int(numbers.max(initial=-1)) + 1


def _taken_in_full(people: Counts, values: Counts, room: Counts) -> tuple[int, Counts, Counts]:
    """How many values those can take who have room for all that they have, and the pairs of the other values."""
    easy = (np.bincount(people, minlength=len(room)) <= room)[people]
    theirs = np.zeros(_size(values), np.bool_)
    theirs[values[easy]] = True
    left = ~theirs[values]
    return int(np.count_nonzero(theirs)), people[left], values[left]


def _largest(people: Counts, values: Counts, most: int) -> int:
    """The size of a largest matching of different pairs in which a person has room for `most` values.

    Two kinds of values can be decided at once, and in most data nothing is left then. Anyone who has room for all of
    their values takes them: from any largest matching, moving these values here makes one of the same size. A value
    that one person alone has is theirs while there is room: a largest matching without it has another value there
    instead.
    """
    taken, room = 0, np.full(_size(people), most, np.int64)
    while len(people):
        before = len(people)
        more, people, values = _taken_in_full(people, values, room)
        alone = (np.bincount(values) == 1)[values]
        if len(people) == before and not alone.any():
            return taken + _by_flow(people, values, room)
        credits = np.minimum(np.bincount(people[alone], minlength=len(room)), room)
        taken, room = taken + more + int(credits.sum()), room - credits
        left = ~alone & (room > 0)[people]
        people, values = people[left], values[left]
    return taken


def _by_flow(people: Counts, values: Counts, room: Counts) -> int:
    """The same by a flow: from a source to people, as much as they have room for, to their values, each 1 to a sink."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching, maximum_flow

    who, people = np.unique(people, return_inverse=True)
    what, values = np.unique(values, return_inverse=True)
    many, different = len(who), len(what)
    if (room[who] == 1).all():
        has = csr_array((np.ones(len(people), np.int8), (people, values)), shape=(many, different))
        return int(np.count_nonzero(maximum_bipartite_matching(has, perm_type="column") >= 0))
    source, sink = many + different, many + different + 1
    start = np.concatenate([np.full(many, source), people, many + np.arange(different)])
    end = np.concatenate([np.arange(many), many + values, np.full(different, sink)])
    through = np.concatenate([np.minimum(room[who], different), np.ones(len(people) + different)]).astype(np.int32)
    return int(maximum_flow(csr_array((through, (start, end)), shape=(sink + 1, sink + 1)), source, sink).flow_value)
