"""What several releases cost together.

A `Charge` is what one release spends, a `Tally` all that was spent so far. `Tally.cost(delta)` is the epsilon of all
charges at a delta, and `Tally.fits(budget)` says whether they stay within a budget. Four bounds are computed, all
valid, and the smallest is returned:

* basic composition: epsilons and deltas add;
* zCDP: an epsilon-DP release is (epsilon^2/2)-zCDP, an (epsilon, delta)-DP one is so except for a probability of
  delta; rhos and deltas add, then the tight conversion ([BS16], [CKS20]);
* privacy loss distributions (`dp_accounting`): an (epsilon, delta) charge enters as the worst mechanism with that
  guarantee (for an epsilon alone that is discrete Laplace noise on a count, nothing is lost there), Gaussian noise as
  what it is;
* the last two, each on the charges it suits, the delta shared between them.

The worst (epsilon, delta) mechanism reveals everything with probability delta and is randomised response otherwise
(Kairouz, Oh, Viswanath 2015). So n charges reveal everything with probability m = 1 - prod(1 - delta_i) <= sum delta_i,
and otherwise they are randomised responses: at delta they cost what those cost at (delta - m)/(1 - m). The deltas need
nothing but a sum, Gaussians compose to one of the sum of their rhos, and the losses of n responses of one epsilon are
binomial. What is left is a set of epsilons with their numbers, and of those a tally keeps at most 64: beyond that a
neighbouring pair becomes the larger of the two, which costs more and so is safe. A tally therefore has one size
whatever was spent, and its sums are exact.

What it rests on: the data and queries of a release may depend on earlier releases, but the parameters (epsilon,
delta, rho) of the charges are not chosen by looking at what earlier releases published. For parameters chosen that
way ask with ``adaptive=True``: then (epsilon, delta) charges add up (basic composition is a privacy filter, Rogers et
al. 2016), rho charges add up against a zCDP budget (Feldman and Zrnic 2021), and nothing tighter is used. What is
tighter and valid for them is a filter of rhos, whose totals are fixed first: `zcdp_filter`.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

from discreet._data_class import dataclass, replace
from discreet.errors import ParameterError
from discreet.privacy.budget import Budget
from discreet.privacy.calibration.zcdp import pure_rho, zcdp_epsilon
from discreet.privacy.plain_form import PlainForm
from discreet.privacy.rounding import rounded_up

# Sums are exact. The limit may be passed by this factor, so that charges made as shares of a budget (0.1 and 0.9 of
# 1.1, each rounded to a float) still compose to it.
SLACK = Fraction(1, 10**12)
# Added to the delta of a privacy loss distribution: well above the error of the FFTs that compose it.
FFT_ERROR = 1e-12
# The largest loss that matters, in steps of the grid: every epsilon loses at most one step to it.
_BINS = 1 << 15
_LARGEST_PLD_EPSILON = 100.0
_MOST_EPSILONS = 64


@dataclass(frozen=True)
class Charge:
    """What one release spends: (epsilon, delta), or rho (zCDP) with epsilon None, perhaps with a delta beside it.

    ``noise="gaussian"`` says that the noise was continuous Gaussian, perhaps rounded afterwards, with
    rho = D^2/(2 sigma^2): its total is then exact. "any" is always right.
    """

    epsilon: float | None
    delta: float = 0.0
    rho: float | None = None
    noise: Literal["any", "gaussian"] = "any"

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise ParameterError("a charge has an epsilon or a rho, not both; leave one of them None")
        spent = self.epsilon if self.rho is None else self.rho
        assert spent is not None
        if not (math.isfinite(spent) and spent >= 0.0):
            raise ParameterError(f"a charge must be finite and at least 0, not {spent!r}")
        if not 0.0 <= self.delta < 1.0:
            raise ParameterError(f"the delta of a charge must be at least 0 and less than 1, not {self.delta!r}")
        if self.noise != "any" and (self.noise != "gaussian" or self.rho is None or self.delta):
            raise ParameterError(f"noise must be 'any', or 'gaussian' for a rho without a delta, not {self.noise!r}")

    @classmethod
    def of(cls, budget: Budget) -> Charge:
        """The charge that spends a whole budget."""
        return cls(epsilon=budget.epsilon, delta=budget.delta, rho=budget.rho)


@dataclass(frozen=True)
class Tally(PlainForm):
    """Charges added up: exact sums, and the epsilons as a set with numbers, rounded up where there are too many.

    ``epsilons`` has pairs (epsilon, how many), in order. ``epsilon``, ``delta`` and ``rho`` are the sums over the
    charges that have an epsilon (rho: epsilon^2/2 each), ``gaussian`` that over Gaussian noise, and ``other_rho`` and
    ``other_delta`` those over all other zCDP charges.
    """

    charges: int = 0
    epsilons: tuple[tuple[float, int], ...] = ()
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    gaussian: Fraction = Fraction(0)
    other_rho: Fraction = Fraction(0)
    other_delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, charges: Iterable[Charge]) -> Tally:
        """The tally of these charges."""
        tally = cls()
        for charge in charges:
            tally = tally.plus(charge)
        return tally

    def plus(self, charge: Charge) -> Tally:
        """With one more charge."""
        if not (charge.epsilon or charge.rho or charge.delta):
            return self
        one_more = self.charges + 1
        if charge.rho is None:
            assert charge.epsilon is not None
            return replace(
                self,
                charges=one_more,
                epsilons=_with_epsilon(self.epsilons, charge.epsilon) if charge.epsilon else self.epsilons,
                epsilon=self.epsilon + Fraction(charge.epsilon),
                delta=self.delta + Fraction(charge.delta),
                rho=self.rho + (Fraction(pure_rho(charge.epsilon)) if charge.epsilon else 0),
            )
        if charge.noise == "gaussian":
            return replace(self, charges=one_more, gaussian=self.gaussian + Fraction(charge.rho))
        return replace(
            self,
            charges=one_more,
            other_rho=self.other_rho + Fraction(charge.rho),
            other_delta=self.other_delta + Fraction(charge.delta),
        )

    @property
    def total_delta(self) -> Fraction:
        """The sum of all deltas."""
        return self.delta + self.other_delta

    @property
    def total_rho(self) -> Fraction:
        """The sum of all rhos, those of epsilons among them."""
        return self.rho + self.gaussian + self.other_rho

    def cost(self, delta: float, *, adaptive: bool = False, more: Charge | None = None) -> float:
        """The epsilon of all charges, and of `more`, at `delta`; infinite when no epsilon is enough.

        ``cost(delta, more=charge)`` may differ from ``plus(charge).cost(delta)`` in what is rounded up, and is much
        quicker when many are tried on one tally.
        """
        if not 0.0 <= delta < 1.0:
            raise ParameterError(f"delta must be at least 0 and less than 1, not {delta!r}")
        sums = self if more is None else self.plus(more)
        best = _basic(sums, delta)
        if adaptive:
            if sums.gaussian or sums.other_rho:
                raise ParameterError("zCDP charges with adaptively chosen parameters need a zCDP budget")
            return best
        best = min(best, _concentrated(sums.total_rho, sums.total_delta, delta))
        if sums.charges <= 1 and not sums.gaussian:
            return best
        if not (sums.epsilons or sums.gaussian):
            return best
        key = (self.epsilons, rounded_up(self.gaussian))
        if not (sums.other_rho or sums.other_delta):
            return min(best, _by_loss_distribution(key, more, sums.delta, delta))
        for share in (0.5, 0.1, 0.9):
            parts = (
                _by_loss_distribution(key, more, sums.delta, delta * share),
                _concentrated(sums.other_rho, sums.other_delta, delta * (1.0 - share)),
            )
            best = min(best, sum(parts) * (1.0 + 1e-9))
        return best

    def fits(self, budget: Budget, *, adaptive: bool = False, more: Charge | None = None) -> bool:
        """Whether all charges, and `more`, stay within the budget together.

        Against a zCDP budget rhos add up (an epsilon-DP charge counts epsilon^2/2); a charge with a delta never fits.
        """
        sums = self if more is None else self.plus(more)
        if budget.rho is not None:
            return not sums.total_delta and is_within(sums.total_rho, budget.rho)
        # Sums first: most charges fit by them, and then nothing heavy is imported or computed.
        if sums.fits_by_sums(budget, adaptive=adaptive):
            return True
        return self.cost(budget.delta, adaptive=adaptive, more=more) <= _limit(budget)

    def fits_by_sums(self, budget: Budget, *, adaptive: bool = False) -> bool:
        """Whether sums of epsilons and deltas, or of rhos, show that it fits. If not, it may fit nevertheless."""
        if budget.rho is not None:
            return self.fits(budget, adaptive=adaptive)
        if _basic(self, budget.delta) <= _limit(budget):
            return True
        return not adaptive and _concentrated(self.total_rho, self.total_delta, budget.delta) <= _limit(budget)


def _limit(budget: Budget) -> float:
    assert budget.epsilon is not None
    return budget.epsilon * (1.0 + float(SLACK))


def _with_epsilon(epsilons: tuple[tuple[float, int], ...], epsilon: float) -> tuple[tuple[float, int], ...]:
    """One more response of this epsilon. Of too many the two neighbours are joined whose squares grow least by it."""
    at = bisect_left(epsilons, (epsilon, 0))
    if at < len(epsilons) and epsilons[at][0] == epsilon:
        return (*epsilons[:at], (epsilon, epsilons[at][1] + 1), *epsilons[at + 1 :])
    several = [*epsilons[:at], (epsilon, 1), *epsilons[at:]]
    if len(several) > _MOST_EPSILONS:
        growth = [times * (above * above - low * low) for (low, times), (above, _) in pairwise(several)]
        least = growth.index(min(growth))
        (_, fewer), (above, times) = several[least : least + 2]
        several[least : least + 2] = [(above, fewer + times)]
    return tuple(several)


def is_within(total: Fraction, limit: float) -> bool:
    """Whether a sum stays within a limit, which shares of it, rounded to floats, may pass by a relative 1e-12."""
    return total <= Fraction(limit) * (1 + SLACK)


def _basic(tally: Tally, delta: float) -> float:
    if tally.gaussian or tally.other_rho or not is_within(tally.total_delta, delta):
        return math.inf
    return rounded_up(tally.epsilon)


def _concentrated(rho: Fraction, spent: Fraction, delta: float) -> float:
    left = Fraction(delta) - spent
    if rho == 0:
        return 0.0 if left >= 0 else math.inf
    return zcdp_epsilon(rounded_up(rho), float(left)) if float(left) > 0.0 else math.inf


def _interval(epsilons: Sequence[tuple[float, int]], gaussian: float) -> float:
    """The grid of the losses: exact for one epsilon (and for multiples of the smallest, if it is not too small).

    It reaches to 12 standard deviations above the mean, or to the largest loss that is possible.
    """
    if len(epsilons) == 1 and not gaussian:
        return epsilons[0][0]
    mean = math.fsum(times * epsilon * epsilon / 2.0 for epsilon, times in epsilons) + gaussian
    reach = mean + 12.0 * math.sqrt(2.0 * mean)
    if not gaussian:
        reach = min(reach, math.fsum(times * epsilon for epsilon, times in epsilons))
    coarse = reach / _BINS
    smallest = epsilons[0][0] if epsilons else 0.0
    return smallest / math.floor(smallest / coarse) if smallest > coarse else coarse


def _responses(epsilon: float, times: int, interval: float) -> Any:
    """The losses of this many randomised responses: (2 i - n) epsilon with i binomial, rounded up to the grid once."""
    import numpy as np
    from dp_accounting.pld import privacy_loss_distribution as pld
    from scipy import stats

    law = stats.binom(times, 1.0 / (1.0 + math.exp(-epsilon)))
    reach = 12.0 * float(law.std()) + 50.0
    low, high = max(0, math.floor(law.mean() - reach)), min(times, math.ceil(law.mean() + reach))
    successes = np.arange(low, high + 1)
    masses = law.pmf(successes)
    masses[0] += law.cdf(low - 1)  # the losses below count as this one, those above as infinite
    losses = np.ceil((2 * successes - times) * (epsilon / interval) - _FUZZ).astype(np.int64)
    cells = np.bincount(losses - losses[0], weights=masses)
    used = np.flatnonzero(cells)
    table = dict(zip((used + losses[0]).tolist(), cells[used].tolist(), strict=True))
    return pld.PrivacyLossDistribution.create_from_rounded_probability(table, float(law.sf(high)), interval)


# So much of a step of the grid is forgiven where a loss is a whole number of steps except for rounding; paid at the
# end.
_FUZZ = 1e-9


@lru_cache(maxsize=16)
def _composed(epsilons: tuple[tuple[float, int], ...], gaussian: float, interval: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    parts = [_responses(epsilon, times, interval) for epsilon, times in epsilons]
    if gaussian:
        parts.append(
            pld.from_gaussian_mechanism(
                1.0 / math.sqrt(2.0 * gaussian), value_discretization_interval=interval, pessimistic_estimate=True
            )
        )
    while len(parts) > 1:  # in pairs: only the last few are long
        pairs = [first.compose(second) for first, second in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[2 * len(pairs) :]]
    return parts[0]


def _by_loss_distribution(
    key: tuple[tuple[tuple[float, int], ...], float], more: Charge | None, spent: Fraction, delta: float
) -> float:
    """The epsilon at delta of the responses and Gaussians of a key, and of `more`, all of whose deltas sum to spent."""
    epsilons, gaussian = key
    extra = 0.0
    if more is not None and more.epsilon:
        extra = more.epsilon
    if more is not None and more.noise == "gaussian" and more.rho:
        gaussian += more.rho * (1.0 + 1e-15)
    if spent >= Fraction(delta):
        return math.inf
    left = float((Fraction(delta) - spent) / (1 - spent)) * (1.0 - 1e-15) - FFT_ERROR
    largest = max([*(epsilon for epsilon, _ in epsilons), gaussian, extra])
    if left <= FFT_ERROR or largest > _LARGEST_PLD_EPSILON:
        return math.inf
    if not (epsilons or gaussian):
        epsilons, extra = ((extra, 1),), 0.0
    interval = _interval(epsilons, gaussian)
    total = _composed(epsilons, gaussian, interval)
    if extra:
        total = total.compose(_responses(extra, 1, interval))
    return float(total.get_epsilon_for_delta(left)) * (1.0 + 1e-9) + (len(epsilons) + 1) * _FUZZ * interval


def is_loaded() -> bool:
    """Whether the library behind tight composition is in memory; it takes a second to load."""
    return "dp_accounting.pld.privacy_loss_distribution" in sys.modules


def load() -> None:
    """Load it now."""
    import dp_accounting.pld.privacy_loss_distribution  # noqa: F401
    import scipy.stats  # noqa: F401
