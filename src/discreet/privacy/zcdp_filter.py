"""Budgets chosen as one goes: rhos and deltas add up, under totals that were fixed before the first release.

Anyone who picks the next epsilon by looking at the last release may use sums alone. Sums of epsilons waste most of a
grant of many small releases; sums of rhos do not. A filter turns a grant of (epsilon, delta) into two totals, and
takes a release while the sums of both stay within them:

    sum rho_t <= rho,    sum delta_t <= delta_share * delta,    rho = the largest that converts to the rest of delta

It is valid for releases whose mechanisms and budgets are chosen from all earlier ones (Whitehouse, Ramdas, Rogers, Wu
2023, "Fully adaptive composition in differential privacy"; Feldman and Zrnic 2021 for Renyi divergences). Both totals
are fixed: a region with a bent edge, where unused rho pays for delta, is not valid, nor is a tight composition of what
was chosen. docs/privacy/adaptive-accounts.md has the whole argument.

The conversion from rho to (epsilon, delta) looks at one order a of the Renyi divergence. So does the filter: what a
release costs is its divergence of that order over a. Of Gaussian noise that is its rho, whatever a is. Of an epsilon it
is that of randomised response, less than epsilon tanh(epsilon/2) <= epsilon^2/2.
"""

from __future__ import annotations

import math
from fractions import Fraction

from discreet._data_class import dataclass
from discreet.errors import ParameterError
from discreet.privacy.accounting import Charge, Tally, is_within
from discreet.privacy.budget import Budget
from discreet.privacy.calibration.zcdp import best_order, rho_at_order
from discreet.privacy.plain_form import PlainForm
from discreet.privacy.rounding import SAFETY, largest_float, rounded_down

DELTA_SHARE = 0.25
"""Of the grant's delta, for the deltas of releases; the rest is for the conversion, which loses 2.4 % of rho by it."""


@dataclass(frozen=True)
class ZcdpFilter(PlainForm):
    """The totals of an account, as they were computed when it was granted.

    Attributes:
        order: The order of the Renyi divergence at which releases are charged, above 1.
        rho: What they may cost together.
        delta: What their deltas may add up to.
        delta_share: Which part of the grant's delta that is.
    """

    order: float
    rho: float
    delta: float
    delta_share: float

    @classmethod
    def of(cls, budget: Budget, delta_share: float = DELTA_SHARE, order: float | None = None) -> ZcdpFilter:
        """The filter of a grant of (epsilon, delta): at the order that leaves the most rho, unless one is given."""
        if budget.epsilon is None or budget.delta == 0.0:
            raise ParameterError(
                f"accounting 'zcdp' needs epsilon and delta > 0, not {budget}. Give the grant a delta, or grant a rho"
            )
        if isinstance(delta_share, bool) or not isinstance(delta_share, (int, float)) or not 0.0 <= delta_share < 1.0:
            raise ParameterError(f"delta_share must be at least 0 and less than 1, not {delta_share!r}")
        delta = rounded_down(Fraction(budget.delta) * Fraction(delta_share))
        left = rounded_down(Fraction(budget.delta) - Fraction(delta))
        order = best_order(budget.epsilon, left) if order is None else order
        rho = rho_at_order(order, budget.epsilon, left)
        if rho <= 0.0:
            raise ParameterError(f"{budget} is too small for accounting 'zcdp'; grant more, or use another accounting")
        return cls(order, rho, delta, float(delta_share))

    def cost(self, charge: Charge) -> Charge:
        """What a charge adds to the sums: its rho, and the delta that it has beside it."""
        if charge.rho is not None:
            return Charge(None, charge.delta, charge.rho)
        assert charge.epsilon is not None
        return Charge(None, charge.delta, response_rho(charge.epsilon, self.order))

    def pays(self, tally: Tally) -> bool:
        """Whether what `cost` gave for all charges stays within both totals."""
        return is_within(tally.total_rho, self.rho) and is_within(tally.total_delta, self.delta)

    def left(self, tally: Tally) -> tuple[float, float]:
        """(rho, delta): what may still be added. Rounded down."""
        unspent = Fraction(self.rho) - tally.total_rho, Fraction(self.delta) - tally.total_delta
        return rounded_down(unspent[0]), rounded_down(unspent[1])

    def largest_epsilon(self, rho: float) -> float:
        """The largest epsilon that costs at most rho, and may be charged."""
        return largest_float(lambda epsilon: response_rho(epsilon, self.order) <= rho, 1.0)

    def covers(self, other: ZcdpFilter) -> bool:
        """Whether everything that the other one lets through is let through here."""
        return self.order == other.order and self.rho >= other.rho and self.delta >= other.delta


def response_rho(epsilon: float, order: float) -> float:
    """The largest Renyi divergence of this order that an epsilon-DP mechanism can have, over the order. Rounded up.

    It is that of randomised response: for two neighbours every epsilon-DP mechanism is a function of it.

        log(cosh((a - 1/2) epsilon) / cosh(epsilon/2)) / (a (a - 1))  <=  epsilon tanh(epsilon/2)  <=  epsilon^2/2 .
    """
    a, x = order, epsilon
    if a * x < 30.0:
        # cosh A = cosh B + 2 sinh((A + B)/2) sinh((A - B)/2): nothing cancels where epsilon is small.
        log_ratio = math.log1p(2.0 * math.sinh(a * x / 2.0) * math.sinh((a - 1.0) * x / 2.0) / math.cosh(x / 2.0))
        rho = log_ratio / (a * (a - 1.0))
    else:
        rest = math.log1p(math.exp(-(2.0 * a - 1.0) * x)) - math.log1p(math.exp(-x))
        rho = x / a + rest / (a * (a - 1.0))
    return math.nextafter(rho * (1.0 + 1e3 * SAFETY), math.inf)
