"""Many local reports without their senders: what a report costs whoever sees the reports in random order.

A report of a local protocol is epsilon_0-DP by itself. If whoever collects the reports forgets who sent which, and
when, and hands on only the multiset of n of them, then one person hides among the others, too.

Argument (Feldman, McMillan, Talwar 2021, Theorem 3.1). Let x, x' be two answers of one person, R the randomiser. As R
is epsilon_0-DP, R(y) >= e^-eps0 (R(x) + R(x'))/2 for every answer y. So every other report is with probability
e^-eps0 a clone: drawn from R(x) or from R(x') by a fair coin. Let C ~ Bin(n - 1, e^-eps0) be the clones and A ~
Bin(C, 1/2) those of the first kind. R(x) and R(x') are the same post-processing of a bit that is 1 with probability p
= e^eps0/(e^eps0 + 1), or 1 - p. Hence the two multisets are post-processings of

    P = (A + D, C + 1 - A - D),    Q = (A + 1 - D, C - A + D),    D ~ Bernoulli(p)

and what is lost between P and Q bounds what is lost between the multisets. Given C = c, with m = c + 1, the ratio of
P to Q grows with the first count a and is e^eps or more from a = m t on, t = (p e^eps - (1 - p))/((2p - 1)(e^eps +
1)). So with b the law of Bin(c, 1/2), S its upper tail and a0 = ceil(m t),

    delta(eps; c) = sum over a >= a0 of P - e^eps Q = (p - e^eps (1 - p)) b(a0 - 1) - (e^eps - 1) S(a0).

One more clone adds a fair coin to what is seen, which is a post-processing: delta(eps; c) does not grow with c. Runs
of values of C are therefore charged by their smallest, and what lies far below the mean by 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.errors import ParameterError
from discreet.privacy.budget import Budget
from discreet.privacy.checks import positive_number, probability, whole_number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["shuffled", "shuffled_closed_form", "shuffled_delta"]

_RUNS = 4096
_SLACK = 1e-6  # of the library's tails, which are better than that (tests compare them with exact ones)


def shuffled(epsilon_local: float, reports: int, delta: float) -> Budget:
    """What one person loses in `reports` shuffled reports, each of them epsilon_local-DP by itself.

    Unit: one person's answer replaced by another. Rests on: whoever publishes or looks sees the reports without who
    sent them, when, and in which order; the others are honest (reports made up by liars hide nobody: count only the
    honest). Without that trust the promise of every report by itself still holds.

    Args:
        epsilon_local: Of one report; one report a person.
        reports: How many there are, at least.
        delta: The probability that the promise fails.

    Returns:
        Budget(epsilon, delta) with the smaller of the closed and the numerical bound, rounded up; never more than
        epsilon_local, which holds anyway.
    """
    local, n, most = _checked(epsilon_local, reports, delta)
    best = min(local, shuffled_closed_form(local, n, most))
    low, high = 0.0, best  # delta(high) is within the budget: by the theorem, or as every report by itself
    if shuffled_delta(local, n, best) <= most:
        for _ in range(60):
            middle = (low + high) / 2
            if high - low <= 1e-6 * high:
                break
            if shuffled_delta(local, n, middle) <= most:
                high = middle
            else:
                low = middle
    return Budget(high, most)


def shuffled_closed_form(epsilon_local: float, reports: int, delta: float) -> float:
    """Theorem 3.1 in closed form; infinite where it does not apply (epsilon_local above ln(n/(16 ln(2/delta))))."""
    local, n, most = _checked(epsilon_local, reports, delta)
    if n <= 16 * math.log(2 / most) or local > math.log(n / (16 * math.log(2 / most))):
        return math.inf
    grown = math.exp(local)
    inner = 8 * math.sqrt(grown * math.log(4 / most) / n) + 8 * grown / n
    return math.log1p((grown - 1) / (grown + 1) * inner) * (1 + 1e-12)


def shuffled_delta(epsilon_local: float, reports: int, epsilon: float) -> float:
    """The delta that goes with an epsilon: the divergence of P and Q, rounded up."""
    import numpy as np
    from scipy.stats import binom

    local, n, _ = _checked(epsilon_local, reports, 0.5)
    if epsilon >= local:
        return 0.0
    clones = binom(n - 1, math.exp(-local))
    # Far below the mean (Chernoff: exp(-15^2/2) and less) everything is lost; above it nobody looks closer.
    spread = 15 * math.sqrt(max((n - 1) * math.exp(-local), 1.0)) + 120
    first = max(0, math.floor(clones.mean() - spread))
    last = min(n - 1, math.ceil(clones.mean() + spread))
    starts = np.unique(np.linspace(first, last, min(_RUNS, last - first + 1)).astype(np.int64))
    below = np.append(clones.cdf(starts - 1), 1.0)  # P[C < start]; the last run goes on for ever
    masses = np.clip(np.diff(below), 0.0, None)
    lost = float(below[0]) + float(masses @ _delta_given(local, epsilon, starts))
    return min(1.0, lost * (1 + _SLACK) + 1e-300)


def _delta_given(local: float, epsilon: float, c: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """delta(eps; c) of the module's argument, rounded up."""
    import numpy as np
    from scipy.stats import binom

    p = 1 / (1 + math.exp(-local))
    grown = math.exp(epsilon)
    threshold = (p * grown - (1 - p)) / ((2 * p - 1) * (grown + 1))
    a = np.ceil((c + 1) * threshold).astype(np.int64)
    found = np.zeros(len(c))
    # Any a gives at most the sum from the best one on, so take the largest of those beside it: rounding is harmless.
    for beside in (a - 1, a, a + 1):
        gain = (p - grown * (1 - p)) * binom.pmf(beside - 1, c, 0.5) * (1 + _SLACK)
        loss = (grown - 1) * binom.sf(beside - 1, c, 0.5) * (1 - _SLACK)
        found = np.maximum(found, gain - loss)
    return np.clip(found, 0.0, 1.0)


def _checked(epsilon_local: float, reports: int, delta: float) -> tuple[float, int, float]:
    local = positive_number("epsilon_local", epsilon_local)
    if local > 50:
        raise ParameterError(f"epsilon_local must be at most 50, not {epsilon_local!r}: such a report hides nothing")
    return local, whole_number("reports", reports, 1, 2**53), probability("delta", delta)
