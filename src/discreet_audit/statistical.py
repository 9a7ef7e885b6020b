"""Lower bounds on epsilon from runs of the compiled release.

If a release is (epsilon, delta)-DP then P[A in E] <= e^epsilon P[B in E] + delta for every event E, so

    epsilon >= log( (P[A in E] - delta) / P[B in E] ),

and with a lower confidence bound of the first and an upper one of the second probability (Clopper, Pearson) the right
side is a lower bound on epsilon that is wrong with a probability the caller chooses. The event is chosen on runs of
its own, so that choosing it costs no confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet_audit.core import Finding, checked

FALSE_ALARM = 1e-9
"""The chance that one confidence bound is wrong. A full audit makes fewer than 900: 9e-7 in all, below 1e-6."""

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ScoredPair:
    """Two neighbouring inputs and a number that tells their releases apart: larger for the first.

    ``score`` is made of what is published alone.
    """

    name: str
    first: Any
    second: Any
    score: Callable[[Any], float]


def clopper_pearson(successes: int, trials: int, error: float) -> tuple[float, float]:
    """(lower, upper): each is on its side of the probability except with probability `error`."""
    from scipy.special import betaincinv

    k, n = successes, trials
    lower = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, error))
    # 1 - error would be rounded: by symmetry take the lower bound of the failures.
    upper = 1.0 if k == n else 1.0 - float(betaincinv(n - k, k + 1, error))
    return lower, upper


def epsilon_lower_bound(first: tuple[int, int], second: tuple[int, int], delta: float, error: float) -> float:
    """log((p - delta)/q) from (successes, trials) of the two; -inf where nothing is proved. Wrong with 2 * error."""
    p = clopper_pearson(*first, error)[0] - delta
    q = clopper_pearson(*second, error)[1]
    return math.log(p / q) if p > 0.0 else -math.inf


def best_cut(first: Scores, second: Scores, delta: float) -> tuple[float, float]:
    """The cuts with the largest bounds: for "score at least" in favour of first, "below" in favour of second."""
    cuts = np.unique(np.concatenate([first, second]))
    if len(cuts) > 64:
        cuts = np.unique(np.quantile(cuts, np.linspace(0.0, 1.0, 64), method="nearest"))
    best = [(-math.inf, cuts[0]), (-math.inf, cuts[0])]
    for cut in cuts:
        above = [(int((scores >= cut).sum()), len(scores)) for scores in (first, second)]
        below = [(n - k, n) for k, n in above]
        for side, (one, two) in enumerate(((above[0], above[1]), (below[1], below[0]))):
            # A milder confidence than that of the result: it only chooses.
            best[side] = max(best[side], (epsilon_lower_bound(one, two, delta, 1e-3), cut))
    return float(best[0][1]), float(best[1][1])


def measure(release: Callable[[Any], Any], pair: ScoredPair, delta: float, runs: int) -> float:
    """The larger of two lower bounds on epsilon (both directions); wrong with probability 4 FALSE_ALARM at most."""
    pilot = max(200, runs // 4)

    def scores(summary: Any, count: int) -> Scores:
        return np.array([pair.score(release(summary)) for _ in range(count)], dtype=np.float64)

    pilots = scores(pair.first, pilot), scores(pair.second, pilot)
    return max(
        bound for *_, bound in bounds_both_ways(pilots, (scores(pair.first, runs), scores(pair.second, runs)), delta)
    )


def proved(
    check: str, claimed: tuple[float, float], pair: tuple[Any, Any], run: Callable[[Any], Any], score: Any, runs: int
) -> Finding:
    """`measure` of a pair as a finding, against the epsilon and at the delta that are claimed."""
    epsilon, delta = claimed
    bound = measure(run, ScoredPair(check, *pair, score), delta, runs)
    return checked(check, "epsilon", epsilon, bound, 1, f"{runs} runs of each")


def bounds_both_ways(
    pilots: tuple[Scores, Scores], scores: tuple[Scores, Scores], delta: float, error: float = FALSE_ALARM
) -> list[tuple[tuple[int, int], tuple[int, int], float]]:
    """The event is chosen on the pilots and tested on the others: (successes, trials) of the two, and the bound, in
    both directions. One of the two is wrong with probability 4 error at most."""
    up, down = best_cut(*pilots, delta)
    first, second = scores
    found = []
    for one, two in ((first >= up, second >= up), (second < down, first < down)):
        counts = (int(one.sum()), len(one)), (int(two.sum()), len(two))
        found.append((*counts, epsilon_lower_bound(*counts, delta, error)))
    return found


def measure_outputs(first: npt.ArrayLike, second: npt.ArrayLike, delta: float) -> float:
    """The same for outputs that are rows of numbers: independent rows, as many columns as there are ticks, say.

    A fifth of the rows chooses the event, and before that the weights of the columns: those of the linear function
    that separates the two best (Fisher), which for Gaussian noise is the likelihood ratio.
    """
    one, two = np.atleast_2d(np.asarray(first, np.float64)), np.atleast_2d(np.asarray(second, np.float64))
    pilot = len(one) // 5
    spread = np.atleast_2d(np.cov(one[:pilot].T) + np.cov(two[:pilot].T))
    spread += np.eye(len(spread)) * (1e-9 * spread.trace() + 1e-9)
    weights = np.linalg.solve(spread, one[:pilot].mean(axis=0) - two[:pilot].mean(axis=0))
    scores = one @ weights, two @ weights
    chosen, others = (scores[0][:pilot], scores[1][:pilot]), (scores[0][pilot:], scores[1][pilot:])
    return max(bound for *_, bound in bounds_both_ways(chosen, others, delta))
