"""How many different values people have, each person credited with a few of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.central.noisy_count import NoisyCount
from discreet.errors import ParameterError
from discreet.privacy import Unit, User
from discreet.privacy.checks import whole_number

__all__ = ["CreditedDistinct", "credited"]

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
        """m: one more person is credited with so many values at most."""
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
    """How many values can be credited, each to one of the people who have it, at most so many to each. NOT private."""
    if not len(people):
        return 0
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching, maximum_flow

    many, different = int(people.max()) + 1, int(values.max()) + 1
    who, what = np.divmod(np.unique(people.astype(np.int64) * different + values), different)
    if most == 1:
        has = csr_array((np.ones(len(who), np.int8), (who, what)), shape=(many, different))
        return int(np.count_nonzero(maximum_bipartite_matching(has, perm_type="column") >= 0))
    # A flow from a source to people, at most `most` to each, to their values, and from each value 1 to a sink.
    source, sink = many + different, many + different + 1
    start = np.concatenate([np.full(many, source), who, many + np.arange(different)])
    end = np.concatenate([np.arange(many), many + what, np.full(different, sink)])
    room = np.ones(len(start), np.int32)
    room[:many] = min(most, different)
    return int(maximum_flow(csr_array((room, (start, end)), shape=(sink + 1, sink + 1)), source, sink).flow_value)
