"""The laws a table is drawn from: coins for "not seen" and "seen", and shifts of counters.

Every probability is a whole number of 2^-64 and is drawn exactly. Rounding goes to the private side: the ratio of two
probabilities of one value is at most e^epsilon as the number it is, checked with enclosures and not in floating point.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from discreet._data_class import dataclass
from discreet.errors import ParameterError
from discreet.noise.enclosure import exp_minus
from discreet.noise.response import keep_probability

ONE = 1 << 64
_BITS = 192


@dataclass(frozen=True)
class Response:
    """Randomised response: an entry is 1 with probability unseen/2^64 before its element came, seen/2^64 after.

    "tight": 1/(1 + e^eps) and e^eps/(1 + e^eps), the widest pair there is. "paper": D0 = 1/2 and D1 = 1/2 + eps/4
    ([PAN] section 3; the ratio 1 - eps/2 of the zeros is at least e^-eps for eps <= 3/2).
    """

    unseen: int
    seen: int

    @staticmethod
    @lru_cache(maxsize=1024)
    def of(name: str, epsilon: Fraction) -> Response:
        if name == "paper":
            if epsilon > Fraction(3, 2):
                raise ParameterError(
                    "the paper's D0 and D1 need an epsilon of at most 1.5 for each cell; response='tight' takes any"
                )
            pair = Response(ONE // 2, (2 + epsilon) * ONE // 4)
        elif name == "tight":
            # e^eps / (1 + e^eps) = 1 / (1 + q), rounded down; its complement is then rounded up.
            _, q = exp_minus(epsilon, _BITS)
            seen = min((ONE << _BITS) // ((1 << _BITS) + q), ONE - 1)
            pair = Response(ONE - seen, seen)
        else:
            raise ParameterError(f"response must be 'tight' or 'paper', not {name!r}")
        if pair.seen <= pair.unseen:
            raise ParameterError("epsilon is too small: the two coins are the same to 64 bits")
        return pair

    def after(self, rounds: int) -> tuple[Fraction, Fraction]:
        """P[1] of an entry not seen and of one seen, after this many announced intrusions.

        Each sends a bit through the response once more: p -> p seen + (1 - p) unseen, and the gap shrinks by itself.
        """
        p0 = base0 = Fraction(self.unseen, ONE)
        p1 = base1 = Fraction(self.seen, ONE)
        for _ in range(rounds):
            p0, p1 = (p * base1 + (1 - p) * base0 for p in (p0, p1))
        return p0, p1


def gap_of(response: str, epsilon: float, rounds: int) -> float:
    """The gap between the coins after this many announced intrusions, in floating point, for sizing."""
    gap = math.tanh(epsilon / 2) if response == "tight" else min(epsilon, 1.5) / 4
    return max(gap, 1e-300) ** (1 + rounds)


def response_weights(k: int, epsilon: Fraction) -> list[int]:
    """k-ary randomised response: shift 0 with probability e^eps/(e^eps + k - 1), the others equally likely."""
    keep = int(keep_probability(k, epsilon) * ONE)
    return _checked([keep] + [(ONE - keep) // (k - 1)] * (k - 1), epsilon)


def paper_weights(k: int, epsilon: Fraction) -> list[int]:
    """[PAN] Figure 5: shift i with probability proportional to e^(-eps i/(k-1))."""
    # A little less than epsilon, so that rounding to 2^-64 stays within it.
    each = epsilon * (1 - Fraction(1, 2**32)) / (k - 1)
    terms = [exp_minus(each * i, _BITS)[0] for i in range(k)]
    total = sum(terms)
    weights = [term * ONE // total for term in terms]
    for i in range(ONE - sum(weights)):
        weights[-1 - i % k] += 1
    return _checked(weights, epsilon)


def _checked(weights: list[int], epsilon: Fraction) -> list[int]:
    _, q = exp_minus(epsilon, _BITS)
    if min(weights) <= 0 or sum(weights) != ONE or max(weights) * q > min(weights) << _BITS:
        raise ParameterError("epsilon is too small or k too large for a law in units of 2**-64")
    return weights


def square_threshold(prime: int, epsilon: Fraction) -> int:
    """The chance, in units of 2^-64, that a shift is a nonzero square modulo a prime = 3 (mod 4).

    The (p-1)/2 squares have probability h each and the (p+1)/2 others l each, with h/l <= e^eps.
    """
    _, q = exp_minus(epsilon, _BITS)
    squares, others = (prime - 1) // 2, (prime + 1) // 2
    # h squares = 1 / (1 + q others / squares), rounded down
    threshold = (ONE * squares << _BITS) // ((squares << _BITS) + q * others)
    if threshold * others <= (ONE - threshold) * squares:
        raise ParameterError("epsilon is too small for a law in units of 2**-64")
    return min(threshold, ONE - 1)


def square_law(prime: int, epsilon: Fraction) -> list[Fraction]:
    """The probability of each shift for `square_threshold`."""
    squares = {i * i % prime for i in range(1, prime)}
    chance = Fraction(square_threshold(prime, epsilon), ONE)
    h, low = chance / len(squares), (1 - chance) / (prime - len(squares))
    return [h if i in squares else low for i in range(prime)]
