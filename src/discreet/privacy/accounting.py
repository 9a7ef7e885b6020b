"""What several releases cost together.

A `Charge` is what one release spends. `total_cost(charges, delta)` is the epsilon of all of them at a delta, and
`fits(charges, budget)` says whether they stay within a budget. Four bounds are computed, all valid, and the smallest
is returned:

* basic composition: epsilons and deltas add;
* zCDP: an epsilon-DP release is (epsilon^2/2)-zCDP, an (epsilon, delta)-DP one is so except for a probability of
  delta; rhos and deltas add, then the tight conversion ([BS16], [CKS20]);
* privacy loss distributions (`dp_accounting`): an (epsilon, delta) charge enters as the worst mechanism with that
  guarantee (for an epsilon alone that is discrete Laplace noise on a count, nothing is lost there), Gaussian noise as
  what it is;
* the last two, each on the charges it suits, the delta shared between them.

What it rests on: the data and queries of a release may depend on earlier releases, but the parameters (epsilon,
delta, rho) of the charges are not chosen by looking at what earlier releases published. For parameters chosen that
way ask with ``adaptive=True``: then (epsilon, delta) charges add up (basic composition is a privacy filter, Rogers et
al. 2016), rho charges add up against a zCDP budget (Feldman and Zrnic 2021), and nothing tighter is used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from discreet.errors import ParameterError
from discreet.privacy.budget import Budget
from discreet.privacy.calibration.zcdp import pure_rho, zcdp_epsilon
from discreet.privacy.rounding import rounded_up

__all__ = ["Charge", "compose", "fits", "total_cost"]

# Sums are exact. The limit may be passed by this factor, so that charges made as shares of a budget (0.1 and 0.9 of
# 1.1, each rounded to a float) still compose to it.
SLACK = Fraction(1, 10**12)
# Added to the delta of a privacy loss distribution: well above the error of the FFTs that compose it.
FFT_ERROR = 1e-12
_BINS = 1 << 16
_LARGEST_PLD_EPSILON = 100.0


@dataclass(frozen=True, slots=True)
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
            raise ParameterError("a charge has either an epsilon or a rho: one of them must be None")
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


def _sum(values: Iterable[float]) -> Fraction:
    return sum((Fraction(value) for value in values), Fraction(0))


def _within(total: Fraction, limit: float) -> bool:
    return total <= Fraction(limit) * (1 + SLACK)


def _rho(charge: Charge) -> float:
    if charge.rho is not None:
        return charge.rho
    assert charge.epsilon is not None
    return pure_rho(charge.epsilon) if charge.epsilon else 0.0


def _basic(charges: Sequence[Charge], delta: float) -> float:
    if any(charge.rho for charge in charges) or not _within(_sum(charge.delta for charge in charges), delta):
        return math.inf
    return rounded_up(_sum(charge.epsilon for charge in charges if charge.epsilon is not None))


def _concentrated(charges: Sequence[Charge], delta: float) -> float:
    left = Fraction(delta) - _sum(charge.delta for charge in charges)
    rho = rounded_up(_sum(_rho(charge) for charge in charges))
    if rho == 0.0:
        return 0.0 if left >= 0 else math.inf
    return zcdp_epsilon(rho, float(left)) if float(left) > 0.0 else math.inf


def _loss_distribution(charge: Charge, interval: float) -> Any:
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    if charge.noise == "gaussian" and charge.rho:
        return pld.from_gaussian_mechanism(
            1.0 / math.sqrt(2.0 * charge.rho), value_discretization_interval=interval, pessimistic_estimate=True
        )
    assert charge.epsilon is not None
    return pld.from_privacy_parameters(
        common.DifferentialPrivacyParameters(charge.epsilon, charge.delta), value_discretization_interval=interval
    )


def _interval(charges: Sequence[Charge]) -> float:
    """The grid of the losses: fine enough that rounding up costs little, and exact when all epsilons are equal."""
    sizes = [charge.epsilon if charge.rho is None else math.sqrt(2.0 * charge.rho) for charge in charges]
    known = [size for size in sizes if size]
    smallest = min(known)
    if all(charge.rho is None and charge.epsilon == smallest for charge in charges):
        return smallest
    coarse = sum(known) / _BINS
    return smallest / max(1, math.floor(smallest / coarse)) if smallest > coarse else coarse


@lru_cache(maxsize=256)
def _by_loss_distribution(counted: tuple[tuple[Charge, int], ...], delta: float) -> float:
    charges = [charge for charge, times in counted for _ in range(times)]
    if delta <= 2.0 * FFT_ERROR or any((c.epsilon or c.rho or 0.0) > _LARGEST_PLD_EPSILON for c in charges):
        return math.inf
    interval = _interval(charges)
    total: Any = None
    for charge, times in counted:
        one = _loss_distribution(charge, interval)
        several = one if times == 1 else one.self_compose(times)
        total = several if total is None else total.compose(several)
    return float(total.get_epsilon_for_delta(delta - FFT_ERROR)) * (1.0 + 1e-9)


def _suits_loss_distribution(charge: Charge) -> bool:
    return charge.rho is None or charge.noise == "gaussian"


def total_cost(charges: Sequence[Charge], delta: float, *, adaptive: bool = False) -> float:
    """The epsilon of all the charges together at `delta`; infinite when no epsilon is enough."""
    if not 0.0 <= delta < 1.0:
        raise ParameterError(f"delta must be at least 0 and less than 1, not {delta!r}")
    spent = [charge for charge in charges if charge.epsilon or charge.rho or charge.delta]
    if not spent:
        return 0.0
    best = _basic(spent, delta)
    if adaptive:
        if any(charge.rho for charge in spent):
            raise ParameterError("zCDP charges with adaptively chosen parameters need a zCDP budget")
        return best
    best = min(best, _concentrated(spent, delta))
    if len(spent) == 1 and spent[0].noise == "any":
        return best
    counted = Counter(charge for charge in spent if _suits_loss_distribution(charge))
    key = tuple(sorted(counted.items(), key=repr))
    others = [charge for charge in spent if not _suits_loss_distribution(charge)]
    if not key:
        return best
    if not others:
        return min(best, _by_loss_distribution(key, delta))
    for share in (0.5, 0.1, 0.9):
        parts = _by_loss_distribution(key, delta * share), _concentrated(others, delta * (1.0 - share))
        best = min(best, sum(parts) * (1.0 + 1e-9))
    return best


def compose(charges: Sequence[Charge], delta: float, *, adaptive: bool = False) -> Charge:
    """One charge that covers all of them: the total epsilon at `delta`."""
    epsilon = total_cost(charges, delta, adaptive=adaptive)
    if math.isinf(epsilon):
        raise ParameterError(f"the charges have no finite epsilon at delta={delta!r}: allow a larger delta")
    return Charge(epsilon=epsilon, delta=delta)


def fits(charges: Sequence[Charge], budget: Budget, *, adaptive: bool = False) -> bool:
    """Whether the charges together stay within the budget.

    Against a zCDP budget rhos add up (an epsilon-DP charge counts epsilon^2/2); a charge with a delta never fits one.
    """
    if budget.rho is not None:
        deltas = any(charge.delta for charge in charges)
        return not deltas and _within(_sum(_rho(charge) for charge in charges), budget.rho)
    assert budget.epsilon is not None
    limit = budget.epsilon * (1.0 + float(SLACK))
    # Sums first: most charges fit or fail by them, and then nothing heavy is imported.
    return _basic(charges, budget.delta) <= limit or total_cost(charges, budget.delta, adaptive=adaptive) <= limit
