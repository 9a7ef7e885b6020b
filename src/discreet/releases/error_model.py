"""How far a published count may lie from the truth: noise of a known law plus the summary's own error.

Everything here is public: it is computed from parameters and from what was published, never from the data.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from discreet._data_class import dataclass, replace
from discreet.errors import ParameterError
from discreet.privacy.calibration.collisions import Collisions
from discreet.privacy.checks import probability
from discreet.privacy.plain_form import PlainForm

if TYPE_CHECKING:
    from discreet.noise import RandomSource

MOST_ITEMS = 2**63
"""As many items as a summary can hold: bounds grow with the logarithm."""
_Distance = Annotated[float, math.inf]


def chance_of_each(beta: float, draws: int) -> float:
    """How often one of this many independent intervals may fail, for all to hold with probability 1 - beta."""
    if not 0.0 < beta < 1.0:
        raise ParameterError(f"beta must be greater than 0 and less than 1, not {beta!r}")
    return -math.expm1(math.log1p(-beta) / draws)


@dataclass(frozen=True)
class Noise(PlainForm):
    """`draws` independent integer noises of one law: "laplace" (scale) or "gaussian" (sigma), times `step`.

    `step` is the size of a published count's unit in units of the noise: 1, or 1/(k+1) for the reduced sketch. With
    `terms` each of the noises is the sum of this many of that law, or of fewer.
    """

    law: str
    scale: Fraction
    draws: int = 1
    step: Fraction = Fraction(1)
    terms: int = 1
    added = frozenset({"terms"})

    def __post_init__(self) -> None:
        if self.law not in ("laplace", "gaussian"):
            raise ParameterError(f"law must be 'laplace' or 'gaussian', not {self.law!r}")
        if self.terms != 1 and (self.law != "laplace" or self.terms < 1):
            raise ParameterError("only Laplace noise needs a sum; a sum of Gaussians is Gaussian")

    def upper_tail(self, s: int) -> float:
        """P[Z >= s] of one draw, never understated."""
        if self.law == "laplace":
            from discreet.privacy.calibration.tails import upper_tail

            return upper_tail(float(1 / self.scale), s)
        from discreet.privacy.calibration.gaussian import discrete_gaussian_tail

        return discrete_gaussian_tail(float(self.scale), s)

    def bound(self, beta: float, tails: float = 2) -> float:
        """What no draw exceeds in absolute value, except with probability beta, in units of the published counts.

        It is the step times the smallest such whole number b, where a draw is taken to fail with probability `tails`
        times P[Z >= b+1]; of step 1 it is whole.
        """
        # P[all |Z| <= b] = (1 - 2 P[Z >= b+1])^draws >= 1 - beta
        most = chance_of_each(beta, self.draws) / tails
        if self.terms > 1:
            import numpy as np

            from discreet.privacy.calibration.tails import weighted_sum_reach

            sums = weighted_sum_reach(np.array([float(self.terms)]), np.ones(1), -math.log(most))
            reach = math.ceil(float(self.scale) * float(sums[0]))
        elif self.law == "laplace":
            from discreet.privacy.calibration.tails import laplace_reach

            reach = laplace_reach(float(1 / self.scale), most)
        else:
            from discreet.privacy.calibration.gaussian import gaussian_reach

            reach = gaussian_reach(float(self.scale), most)
        return reach if self.step == 1 else float(reach * self.step)

    @property
    def variance(self) -> float:
        """The variance of one draw, of step 1; of the Gaussian law, which is discrete, an upper bound."""
        if self.law == "gaussian":
            return float(self.scale) ** 2
        # 2 q/(1-q)^2 = 1/(2 sinh(1/(2 b))^2), q = exp(-1/b).
        return self.terms * 0.5 / math.sinh(min(0.5 / float(self.scale), 300.0)) ** 2

    def draw(self, source: RandomSource) -> int:
        """One draw, of step 1."""
        return source.discrete_laplace(self.scale) if self.law == "laplace" else source.discrete_gaussian(self.scale)


@dataclass(frozen=True)
class Scaling(PlainForm):
    """What scaling people down to a length C may have left out of counts, as far as private sums tell.

    For every j, of what is counted the true number f of an item is at most ratios[j] * (what is left of it) + lost[j].
    Why: let a person have e of the item, in a vector that is l long, l <= C_last. Scaling leaves e min(1, C/l) of it.
    For C_j >= C, e - C_j/C * e min(1, C/l) is at most e (1 - C_j/l) where l > C_j, and at most 0 elsewhere. So f is at
    most C_j/C times what is left, plus what scaling to C_j would lose, which `lost` has, with noise. At the last length
    nothing is lost.

    Attributes:
        ratios: C_j/C, from 1.
        lost: The sums over people of what scaling to C_j loses of one item at most, with noise; 0 at the last.
        noise: That of `lost`, except for the last; None where there is one length, and nothing is lost.
        people: How many people there are, with noise: the sum of as many numbers as `sizes` draws. What is left of an
            entry is rounded down, by less than two steps of a count's noise for every person.
        sizes: The noise of each of these numbers.
        in_steps: Whether `lost` is in steps of each count's noise, as of rows and values, of which one person may have
            more where the weight is small; else in people.
        covered: Of rows and values: a person who has no more of them in all is part of the true number in full;
            intervals are about people scaled down to it. None: everybody is, whatever they have.
    """

    ratios: tuple[float, ...]
    lost: tuple[float, ...]
    noise: Noise | None
    people: float
    sizes: Noise
    in_steps: bool = False
    covered: float | None = None

    def above(self, kept: Any, steps: Any, beta: float) -> Any:
        """The largest true numbers, given at most `kept` of them are left, except for a probability of beta."""
        import numpy as np

        people = self.people + self.sizes.draws * self.sizes.bound(0.01 * beta)
        kept = kept + 2.0 * max(people, 0.0) * steps
        around = 0.0 if self.noise is None else self.noise.bound(0.2 * beta, 1)
        upper = np.full(len(kept), np.inf)
        for place, (ratio, lost) in enumerate(zip(self.ratios, self.lost, strict=True)):
            most = max(lost + around, 0.0) if place + 1 < len(self.ratios) else 0.0
            upper = np.minimum(upper, ratio * kept + most * (steps if self.in_steps else 1.0))
        return np.ceil(upper)


class Stretch(NamedTuple):
    """A stretch of ticks that was released: its noisy offset a0, its cut 1 + t, and the noise on its counters.

    All of it is public. The noise has as many draws as items were released; it is None where that of the model counts
    it already.
    """

    offset: int
    cut: int
    noise: Noise | None = None

    def lacks(self, beta: float) -> float:
        """What items that it did not release may have in it, all of them except with probability beta.

        Such an item has f <= c + alpha = c + a0 - Z_0. If f > a0 + t + b and it was not released, then Z_x < -b. Nobody
        knows how many such items there are, but most of them would have been released. With P[Z < -b] = q/(n+1), n the
        number released, any of them fails with probability at most q/(1-q) (docs/privacy/continual.md, "Intervals of
        heavy hitters"). An item that is not stored has f <= a0 - Z_0, more than a0 + t + b with probability q at most.
        """
        around = 0.0
        if self.noise is not None:
            around = _sum_bound((self.noise.scale,), 1, beta / (2.0 + beta) / (self.noise.draws + 1))  # q/(n+1)
        return max(0.0, self.offset + self.cut - 1.0 + around)


@dataclass(frozen=True)
class Stretches(PlainForm):
    """For heavy hitters over time: which stretches of ticks released an item, and what it may have in the others.

    Attributes:
        released: The stretches that make up the ticks, in their order.
        places: Of items that the same stretches released: the noisy offset of these, and which of `released` they may
            have events in that are not in their counts. The release says at which place an item is.
        counters: Where items are counted after they were found: how many counters of sketches have got noise, listed or
            not. Else 0.
    """

    released: tuple[Stretch, ...] = ()
    places: tuple[tuple[int, tuple[int, ...]], ...] = ()
    counters: int = 0

    def __post_init__(self) -> None:
        if not all(0 <= at < len(self.released) for _, without in self.places for at in without):
            raise ParameterError("a place lacks stretches that are not there")

    def lacks(self, beta: float) -> list[float]:
        """What the items of every place may lack, all of them except with probability beta."""
        each = [stretch.lacks(beta / len(self.released)) for stretch in self.released]
        return [sum(each[at] for at in without) for _, without in self.places]


@lru_cache(maxsize=1024)  # ticks after another ask for the same
def _sum_bound(scales: tuple[Fraction, ...], draws: int, beta: float) -> float:
    """What none of `draws` sums of independent discrete Gaussians exceeds, except with probability beta."""
    from discreet.privacy.calibration.gaussian import gaussian_reach, sum_of_several

    sigma, kappa = sum_of_several(list(map(float, scales)))
    if kappa == math.inf:  # noises too small for one law
        each = chance_of_each(beta / len(scales), draws)
        return sum(gaussian_reach(float(scale), each) for scale in scales)
    return gaussian_reach(sigma, chance_of_each(beta, draws) / kappa)


@dataclass(frozen=True)
class ErrorModel(PlainForm):
    """What separates a published count from the true frequency f.

    count = (what the summary holds) + noise, with one draw of `noise` for every counter and, where a mechanism adds
    the same draw to all counters, one of `shared`. Without noise the summary's value lies in
    [f - summary_below, f + summary_above]; either may be infinite when no bound can be published. When the release
    publishes a noisy offset a0 = alpha + Z_0 (the offset release), `offset_noise` is its law and the summary's value
    is at most f + alpha, alpha <= a0 - Z_0. `collisions` bounds the error of a linear sketch, whose estimates then hold
    up to it. `lowest` is the smallest frequency a listed item can have: 1, or 0 for a mechanism over a known universe,
    which may list items that did not occur.

    `of_published`: the draws are those of the items that passed the cut, and not of all that got noise, whose number
    nobody may know. Then distances hold for what was published, and a lower end does where it lies above the cut.

    Why: given which items passed, their noises are still independent, each with the law of Z given Z >= s, where s is
    the cut minus the summary's value. An upper end fails with P[Z < -b | Z >= s] <= P[Z < -b]. A lower one, of an item
    from the cut on (s <= 0), with P[Z > b | Z >= s] <= P[Z > b]/P[Z >= 0] <= 2 P[Z > b]. An item from below the cut
    (s > 0) was listed for its noise alone, and count - b lies above the cut with probability P[Z > s + b | Z >= s],
    which is largest for s = 0 (the laws are log-concave): the same bound. So an interval fails with probability at most
    3 P[Z > b], whatever the data are.

    `scaling` is what people with long vectors have lost of their counts; distances above are then without it.

    `stretches`: what was released of stretches of ticks adds up, and items lack what they have in the others. Where
    items are counted after they were found, a listed one has the noise of the stretch where it was found and that of
    its counter, `shared`; the draws are then the items that are listed.
    """

    noise: Noise
    shared: Noise | None = None
    offset_noise: Noise | None = None
    summary_below: _Distance = 0.0
    summary_above: _Distance = 0.0
    lowest: int = 1
    collisions: Collisions | None = None
    of_published: bool = False
    scaling: Scaling | None = None
    stretches: Stretches | None = None
    added = frozenset({"of_published", "scaling", "stretches"})

    @property
    def of_all(self) -> ErrorModel:
        """The same for all items that got noise, however many they are."""
        if not self.of_published:
            return self
        return replace(self, noise=replace(self.noise, draws=MOST_ITEMS), of_published=False)

    def of_at_least(self, items: int) -> ErrorModel:
        """The same where at least this many items passed the cut: intervals that do not change while fewer do."""
        if not (self.of_published or self.stretches) or self.noise.draws >= items:
            return self
        return replace(self, noise=replace(self.noise, draws=items))

    @property
    def random_parts(self) -> int:
        """Among how many a chance of failing is divided: each noise, and the seed of a linear sketch."""
        return sum(part is not None for part in (self.noise, self.shared, self.offset_noise, self.collisions))

    @property
    def noise_scale(self) -> float:
        """The scale (Laplace) of each counter's noise, or the standard deviation (Gaussian) of all noise on a count."""
        own = float(self.noise.scale * self.noise.step)
        if self.shared is None or self.noise.law != "gaussian" or self.shared.law != "gaussian":
            return own
        return math.hypot(own, float(self.shared.scale * self.shared.step))

    def noise_bound(self, beta: float) -> float:
        """With probability 1 - beta the noise of a counter, with the one it shares, moves no count by more than this.

        Two Gaussians are one: Z_x + eta has at most kappa times the mass of a single law, and given eta the counters
        are independent, so that P[all within b] = E[h(eta)^draws] >= E[h(eta)]^draws.
        """
        tails = 3 if self.of_published else 2
        if self.shared is None:
            return float(self.noise.bound(beta, tails))
        probability("beta", beta)  # of which each has a half
        separately = float(self.noise.bound(beta / 2, tails) + self.shared.bound(beta / 2))
        laws = {self.noise.law, self.shared.law}
        if laws != {"gaussian"} or self.noise.step != self.shared.step or self.of_published:
            return separately
        from discreet.privacy.calibration.gaussian import sum_of_two

        sigma, kappa = sum_of_two(float(self.noise.scale), float(self.shared.scale))
        if kappa == math.inf:
            return separately
        return min(separately, float(replace(self.noise, scale=Fraction(sigma)).bound(beta, 2 * kappa)))

    def distances(self, confidence: float, offset: int | None = None) -> tuple[float, float]:
        """(below, above): with probability `confidence`, count - below <= f <= count + above for all items at once."""
        beta = 1.0 - probability("confidence", confidence)
        if self.stretches is not None and self.stretches.counters:
            return self._of_found(self.stretches.counters, beta / 3.0, 0 if offset is None else offset)
        if self.scaling is not None:  # the rest of what may fail is for `Scaling.above`
            beta *= 0.99 if self.scaling.noise is None else 0.79
        parts = self.random_parts
        around = self.noise_bound(beta * (1 if self.shared is None else 2) / parts)
        above_truth, below_truth = self.summary_above, self.summary_below
        if self.collisions is not None:
            mass = self.collisions.bound(beta / parts)
            above_truth += mass
            below_truth += mass if self.collisions.rule == "median" else 0.0
        if self.offset_noise is not None:
            if offset is None:
                raise ParameterError("this error model needs the published offset")
            above_truth += max(0.0, offset + self.offset_noise.bound(beta / parts))
        return around + above_truth, around + below_truth

    def _of_found(self, counters: int, beta: float, offset: int) -> tuple[float, float]:
        """Distances of an item that lacks nothing, found in a stretch of this offset and counted since.

        Its count is c + alpha + Z_x + N and what came since, with c <= f <= c + alpha and a0 = alpha + Z_0. It is
        listed because Z_x was high. So the upper end fails with probability P[Z_x + N < -b] at most, for each listed
        item by itself. The lower end, count - a0 - b, fails if Z_x - Z_0 + N > b: a union over all counters, listed or
        not.
        """
        own = (self.noise.scale, *(() if self.shared is None else (self.shared.scale,)))
        above = _sum_bound(own, self.noise.draws, beta)
        below = _sum_bound((self.noise.scale, *own), counters, beta)
        return max(0.0, below + offset) + self.summary_above, above + self.summary_below

    def of_places(self, confidence: float) -> list[tuple[float, float]]:
        """The distances of the items of every place of `stretches`."""
        assert self.stretches is not None
        ends = {
            offset: self.distances(confidence, offset) for offset in {offset for offset, _ in self.stretches.places}
        }
        both = zip(self.stretches.places, self.stretches.lacks((1.0 - confidence) / 3.0), strict=True)
        return [(ends[offset][0], ends[offset][1] + more) for (offset, _), more in both]
