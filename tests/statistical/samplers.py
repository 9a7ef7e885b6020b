"""The noise of whole releases, from the counts that they publish, against its exact law; and how draws are tested.

The audit trusts that the noise asked for is the noise drawn. Here the draws themselves are counted: those of whole
releases, and in sampler_groups.py those of the samplers. One test is made to see a
parameter that is a little off: the likelihood ratio of the laws with the parameter 1 % larger and 1 % smaller, the most
powerful there is. Chi-square over cells, and over pairs of consecutive draws, sees other faults.

The number of draws comes from the power: under a parameter that is 1 % off the mean of the likelihood ratio lies at
least `ALARM` of its standard deviations under the right law plus `MISS` of those under the wrong one away. So a right
sampler fails a test with probability 1e-10, and one that is 1 % off passes with 1e-9: one of all twins with 1e-7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tests.reference.noise_laws import Array, Cumulative, gaussian, laplace

from discreet.central import Mechanism, Offset, Stability
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Unit
from discreet.published import PrivateSpaceSaving
from discreet.summaries import ExactCounts, MisraGries, SpaceSaving, Summary
from discreet_audit.core import Audit, AuditCase, Effort, Finding, Twin, twin

Draw = Callable[[RandomSource, Fraction, int], npt.ArrayLike]

REJECT = 1e-10
"""The chance that a right sampler fails one test. Samplers and releases have fewer than 450 of them: 4.5e-8 in all."""
ALARM = 6.47  # standard deviations; both sides together have 1e-10
MISS = 6.0  # one side has 1e-9: a twin that is missed fails the audit, too
OFF = Fraction(1, 100)
_FEWEST = 200_000


@dataclass(frozen=True)
class Sampler:
    """One way to draw, with its exact law.

    Args:
        name: What is drawn.
        cumulative: P[X <= x] for an array of x and a parameter.
        draw: So many draws with a parameter, from a source.
        parameter: The one that is audited.
        ends: The values at which cells end; the last cell has everything above.
        draws: How many, for laws without a parameter that could be off.
        broken: The twin of such a law: its name, and how it draws.
        independent: Whether the draws come in an order that could show that they are not independent.
    """

    name: str
    cumulative: Cumulative
    draw: Draw
    parameter: Fraction
    ends: Array
    draws: int | None = None
    broken: tuple[str, Draw] | None = None
    independent: bool = True

    def law(self, factor: Fraction = Fraction(1)) -> Array:
        """The probability of each cell, with the parameter times a factor."""
        sums = self.cumulative(self.ends, float(self.parameter * factor))
        return np.maximum(np.diff(sums, prepend=0.0, append=1.0), 0.0)

    def scores(self) -> Array:
        """log of the ratio of the two laws with the parameter 1 % off; 0 where rounding would decide."""
        more, less = self.law(1 + OFF), self.law(1 - OFF)
        seen = (more > 1e-13) & (less > 1e-13)
        return np.where(seen, np.log(np.where(seen, more, 1.0) / np.where(seen, less, 1.0)), 0.0)

    def findings(self, effort: Effort) -> Iterator[Finding]:
        """Counts of draws against the law: the likelihood ratio, and chi-square of cells and of consecutive pairs."""
        count = (self.draws or draws_needed(self)) * (4 if effort.name == "full" else 1)
        drawn = np.asarray(self.draw(system_source(), self.parameter, count))
        cells, law = np.searchsorted(self.ends, drawn, side="left"), self.law()
        observed = np.bincount(cells, minlength=len(law)).astype(np.float64)
        impossible = float(observed[law == 0.0].sum())
        yield finding(f"{self.name}: values that the law does not have", "draws", 0.0, impossible, len(drawn))
        if self.draws is None:
            scores = self.scores()
            mean, spread = _moments(law, scores)
            away = abs(float(observed @ scores) - len(drawn) * mean) / (spread * math.sqrt(len(drawn)))
            yield finding(f"{self.name}: the parameter", "standard deviations", ALARM, away, len(drawn))
        yield _fit(f"{self.name}: each value as often as the law says", observed, law * len(drawn))
        if self.independent and len(law) > 1:
            # About six cells of equal probability, and all pairs of them.
            coarse = np.minimum((np.cumsum(law) - law / 2) * 6, 5).astype(np.int64)
            groups = np.bincount(coarse, weights=law, minlength=6)
            pairs = coarse[cells[: len(cells) // 2 * 2]].reshape(-1, 2)
            seen = np.bincount(pairs[:, 0] * 6 + pairs[:, 1], minlength=36).astype(np.float64)
            expected = np.multiply.outer(groups, groups).ravel() * len(pairs)
            yield _fit(f"{self.name}: consecutive draws are independent", seen, expected)

    def twin(self) -> tuple[str, Sampler]:
        """The same, 1 % off, or broken as it says itself."""
        if self.broken is not None:
            return self.broken[0], replace(self, draw=self.broken[1])

        return f"{self.name}: 1 % too small", replace(self, draw=less_by(self.draw, 1 - OFF))


def _moments(law: Array, scores: Array) -> tuple[float, float]:
    mean = float(law @ scores)
    return mean, math.sqrt(max(float(law @ scores**2) - mean**2, 0.0))


def draws_needed(sampler: Sampler) -> int:
    """So many that a parameter 1 % off is seen except with probability 1e-9."""
    scores, needed = sampler.scores(), 0.0
    mean, spread = _moments(sampler.law(), scores)
    for factor in (1 + OFF, 1 - OFF):
        other, other_spread = _moments(sampler.law(factor), scores)
        needed = max(needed, ((ALARM * spread + MISS * other_spread) / (other - mean)) ** 2)
    return max(_FEWEST, math.ceil(needed))


def finding(check: str, quantity: str, claimed: float, measured: float, count: float) -> Finding:
    """Of so many draws."""
    return Finding("statistical", check, quantity, claimed, measured, 0, f"{count:.0f} draws")


def _fit(check: str, observed: Array, expected: Array) -> Finding:
    """Chi-square; neighbouring cells are put together until 30 are expected in each."""
    from scipy.special import chdtri

    o, e = [0.0], [0.0]
    for seen, mean in zip(observed.tolist(), expected.tolist(), strict=True):
        if e[-1] >= 30.0:
            o.append(0.0)
            e.append(0.0)
        o[-1] += seen
        e[-1] += mean
    if e[-1] < 30.0 and len(e) > 1:
        o[-2:], e[-2:] = [o[-2] + o[-1]], [e[-2] + e[-1]]
    if len(e) == 1:
        return finding(check, "chi-square", 0.0, 0.0, o[0])
    statistic = sum((x - y) ** 2 / y for x, y in zip(o, e, strict=True))
    return finding(check, "chi-square", float(chdtri(len(e) - 1, REJECT)), statistic, sum(o))


def ends_to(high: float, low: float | None = None) -> Array:
    """All whole numbers from low (minus high by default) to high, or 1500 of them."""
    first, last = -math.ceil(high) if low is None else low, math.ceil(high)
    return np.unique(np.round(np.linspace(first, last, int(min(last - first + 1, 1500)))))


def less_by(draw: Draw, factor: Fraction) -> Draw:
    """Draws with the parameter times this."""
    return lambda source, parameter, count: draw(source, parameter * factor, count)


# ---- whole releases --------------------------------------------------------------------------------------------------


def _released(source: RandomSource, scale: Fraction, count: int) -> npt.ArrayLike:
    """The noise of a release of many counters, from the counts that it publishes."""
    sketch = MisraGries(count)
    sketch.update_counts(np.arange(count), np.full(count, 1000))
    release = Offset(Budget(float(1 / scale), 1e-6), capacity=count)(sketch)
    return release.counts - 1000


def _of_release(
    name: str,
    mechanism: Offset | Stability | PrivateSpaceSaving,
    summary: Summary,
    text: bool,
    larger: int = 100,
) -> Sampler:
    """The noise in the counts that a release publishes, whatever their size, their place and the kind of their items.

    Half of the items are far above the cut, and half `larger` times as far. 15 % too little noise must be seen.
    """
    items, noise = 2000, mechanism.error_model.noise
    low = int(mechanism.threshold + 15 * mechanism.scale) + 1
    truth = np.where(np.arange(items) % 2, larger * low, low)
    column = np.repeat(np.arange(items), truth)
    summary.update(pa.array([f"item {i}" for i in range(items)]).take(column) if text else column)

    def draw_by(made: Mechanism) -> Draw:
        def draw(source: RandomSource, scale: Fraction, count: int) -> npt.ArrayLike:
            found = []
            for _ in range(-(-count // items)):
                release = made(summary)
                places = [int(str(item).rpartition(" ")[2]) for item in release.items]
                found.append(release.counts - truth[places])
            return np.concatenate(found)

        return draw

    law, reach = (laplace, 17.0) if noise.law == "laplace" else (gaussian, 5.5)
    less = twin(mechanism, "", scale=mechanism.scale * Fraction(17, 20)).mechanism
    broken = (f"{name}: 15 % too little noise", draw_by(less))
    ends = ends_to(reach * float(noise.scale) + 2)
    return Sampler(name, law, draw_by(mechanism), Fraction(noise.scale), ends, 20_000, broken, False)


def _releases() -> Iterator[Sampler]:
    name, two = "offset release, a million counters", Fraction(2)
    yield Sampler(name, laplace, _released, two, ends_to(36), independent=False)
    budget = Budget(1.0, 0.02)
    yield _of_release("offset release", Offset(budget, capacity=2000), MisraGries(2000), False)
    yield _of_release("stability histogram", Stability(budget), ExactCounts(), False)
    # Half of the counters of a full SpaceSaving are below its cut: it has many more than it needs.
    room, length = 32_000, 1_500_000
    saving = PrivateSpaceSaving(budget, room, stream_length=length)
    yield _of_release("private SpaceSaving", saving, SpaceSaving(room), False, larger=10)
    gaussian = Stability(budget, noise="gaussian")
    yield _of_release("Gaussian stability histogram of texts", gaussian, ExactCounts(), True)
    yield _of_release("offset release of texts", Offset(budget, capacity=2000), MisraGries(2000), True)


class _Claim(NamedTuple):
    """Takes the place of a guarantee: a sampler promises a law, and no privacy by itself."""

    mechanism: str
    unit: Unit | None = None
    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None


@dataclass(frozen=True)
class Samplers:
    """Samplers that are reported together."""

    name: str
    members: tuple[Sampler, ...]

    @property
    def guarantee(self) -> _Claim:
        """The law."""
        return _Claim(f"what is drawn on this machine: {self.name}")


class SamplersAudit(Audit):
    """A law has no neighbours: what is drawn is all there is to check."""

    kinds = ("statistical",)

    def label(self, samplers: Samplers) -> str:
        return f"Samplers, {samplers.name}"

    def structure(self, mechanism: Any, effort: Effort) -> Iterable[Finding]:
        return ()

    exact = coupled = structure

    def statistical(self, samplers: Samplers, effort: Effort) -> Iterator[Finding]:
        for member in samplers.members:
            yield from member.findings(effort)

    def twins(self, samplers: Samplers) -> Sequence[Twin]:
        """Of each member, the same a little off or spoilt."""
        twins = (member.twin() for member in samplers.members)
        return [Twin(name, Samplers(samplers.name, (broken,)), "statistical") for name, broken in twins]


RELEASE_NOISE = AuditCase(Samplers, lambda: [Samplers("noise of whole releases", tuple(_releases()))], SamplersAudit())
