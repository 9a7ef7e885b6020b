"""Statistical evidence: draws of two neighbours' releases, and a delta below which the truth is unlikely to be.

It sees the compiled samplers and everything else that runs, and it can convict, not acquit: a lower bound above delta
means that the promise is broken, one below means that this pair and these views did not show it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from scipy.stats import beta

__all__ = ["divergence_lower_bound"]

View = Callable[[Hashable], Hashable]


def lowest_chance(successes: int, trials: int, failure: float) -> float:
    """Below the probability of a success, with this chance of being wrong (Clopper and Pearson 1934)."""
    return 0.0 if successes == 0 else float(beta.ppf(failure, successes, trials - successes + 1))


def divergence_lower_bound(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    epsilon: float,
    views: Sequence[View] = (lambda output: output,),
    failure: float = 1e-6,
) -> float:
    """A lower bound of the hockey-stick divergence at epsilon of two laws, from independent draws of each.

    For every view the first half of the draws chooses the event (the values that are more than e^epsilon times as
    frequent), the second half measures it. Wrong with probability `failure` at most.
    """
    factor, largest = math.exp(epsilon), 0.0
    for view in views:
        halves = [(draws[: len(draws) // 2], draws[len(draws) // 2 :]) for draws in (first, second)]
        (chosen, _), (reference, _) = halves
        p, q = Counter(map(view, chosen)), Counter(map(view, reference))
        event = {value for value, n in p.items() if n * len(reference) > factor * q[value] * len(chosen)}
        hits = [sum(view(output) in event for output in measured) for _, measured in halves]
        each = failure / (2 * len(views))
        at_least = lowest_chance(hits[0], len(halves[0][1]), each)
        at_most = 1.0 - lowest_chance(len(halves[1][1]) - hits[1], len(halves[1][1]), each)
        largest = max(largest, at_least - factor * at_most)
    return largest
