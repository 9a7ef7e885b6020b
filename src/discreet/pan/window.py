"""Reading a bit together with its counter: how many elements occurred more than u times, for any u, from one table.

A cell of the cropped mean is a bit and a counter modulo t that starts anywhere. After n occurrences the counter is at
some u, and it passed 0 if and only if n > u. So among the elements whose counter is at u the bits are a density
estimator for "occurred more than u times"; the table is made without knowing which u will be asked.

    S = sum over entries with low <= counter < high of +1 for a 1 and -1 for a 0,    W = E[number of such entries]
    E[S]/W = 2 (p0 + gap f) - 1,    f = mean over the universe of min(max(n - low, 0), high - low)/(high - low)

Any change of one element's cells moves S by at most 2, so discrete Laplace noise of scale 2/epsilon_output makes it
private; W is public. What announced intrusions leave of the ramp is in docs/privacy/pan.md, "Heavy elements after an
announced intrusion".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from discreet._data_class import dataclass
from discreet.pan.element_law import ElementLaw
from discreet.pan.intervals import signs_bound

if TYPE_CHECKING:
    from fractions import Fraction

    from discreet.noise import RandomSource
    from discreet.pan._cells import Sampled


@dataclass(frozen=True)
class Window:
    """The entries whose counter is from `low` to `high` - 1, of the tables with a modulus of at least `high`."""

    moduli: tuple[int, ...]
    sizes: tuple[int, ...]  # how many entries have each modulus
    low: int
    high: int

    @property
    def _parts(self) -> list[tuple[int, float]]:
        """Moduli of the tables that are read, and how many of their entries are in the window on average."""
        tables = zip(self.moduli, self.sizes, strict=True)
        return [(t, size * (self.high - self.low) / t) for t, size in tables if t >= self.high]

    @property
    def expected(self) -> float:
        """W: how many entries are in it on average, whatever occurred."""
        return sum(part for _, part in self._parts)

    def reach_after(self, intrusions: int) -> tuple[float, float]:
        """(c, d) with d r <= g <= c + (1 - c) r for every element, r its ramp, after this many announced intrusions.

        Attained, for one table: by `low` occurrences in the first epoch, and by `high` of which the last epoch has
        low + s and the others have as many each, with the best s.
        """
        if intrusions == 0:
            return 0.0, 1.0
        c = d = 0.0
        width = self.high - self.low
        for t, part in self._parts:
            s = min(max((intrusions * (width - t) + width) / (intrusions + 1), 0.0), width)
            unseen = (1 - s / width) * (1 - (width - s) / (intrusions * t)) ** intrusions
            c, d = c + part * self.low / t, d + part * (1 - unseen)
        return c / self.expected, d / self.expected

    def bound(self, gap: float, scale: Fraction, beta: float) -> float:
        """The fraction is this close to the truth except with probability beta."""
        return signs_bound(self.expected, scale, beta) / (2 * self.expected * gap)

    def read(self, estimator: Sampled, source: RandomSource) -> tuple[float, float, float]:
        """The fraction f with the ends of the interval of the ramp, none of them cut."""
        scale, (p0, gap) = estimator.noise_scale, estimator._chances()
        total = estimator.counted(source, 1, partial(estimator._table.noisy_signs, 0, self.low, self.high))
        f = ((total / self.expected + 1) / 2 - p0) / gap
        reach = self.bound(gap, scale, estimator.settings.beta)
        c, d = self.reach_after(estimator.intrusions)
        return f, (f - reach - c) / (1 - c), (f + reach) / d

    def law(self, estimator: Sampled, modulus: int) -> ElementLaw:
        """Of an element in the table with this modulus."""

        def sign(cells: tuple[tuple[int, int], ...]) -> tuple[float, ...]:
            ((counter, bit),) = cells
            inside = modulus >= self.high and self.low <= counter < self.high
            return (float(inside * (2 * bit - 1)),)

        scale = estimator.noise_scale * 2 / estimator._sensitivity(0)  # of signs, whatever is asked by default
        return ElementLaw((estimator._bit(modulus),), sign, (scale,), pairs=True)
