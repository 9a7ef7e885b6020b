"""How many different values people have, each person credited with a few of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass, field
from discreet.central.noisy_count import NoisyCount
from discreet.errors import ParameterError
from discreet.privacy import Unit, User
from discreet.privacy.checks import whole_number
from discreet.summaries.people import Counts, each_once

Numbers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class CreditedDistinct(NoisyCount):
    """The number of different values that can be credited to people, at most m to each, with noise.

    Unit: a person with all of their rows (`User()`): with one more the number grows by at most m, and never shrinks.
    Guarantee: epsilon, rho, or (epsilon, delta), as the budget says.
    Noise: discrete Laplace of scale m/epsilon, or discrete Gaussian with sigma^2 = m^2/(2 rho) (`additive_noise`).
    Threshold: none.
    Error: the noise, and what crediting leaves out: each value is credited to one of the people who have it, as many as
        possible (a largest matching). So the lower bound holds for all values, and there is no upper one.
    Argument: docs/privacy/counting.md.

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
    """The same for several numbers in ascending order; where all values are credited, more of them cannot be.

    Most values are decided one after the other (`Credits`, which says why), and a flow decides what is left.
    """
    found: dict[int, int] = {}
    pairs = each_once(people.astype(np.int64) << 32 | values.astype(np.int64))  # numbers are below 2^31
    different = int(np.count_nonzero(np.bincount(pairs & 0xFFFFFFFF))) if len(pairs) else 0
    credits = _native.Credits(pairs)
    for most in several:
        decided, *left = credits.credited(min(most, 2**31))
        owners, owned, room = (np.frombuffer(part, np.int64) for part in left)
        found[most] = decided + (_by_flow(owners, owned, room) if len(owners) else 0)
        if found[most] == different:
            return found | dict.fromkeys((each for each in several if each > most), different)
    return found


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
