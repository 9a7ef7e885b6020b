"""Laws of mechanisms, written down from the papers in the plainest way: sums over all outcomes, to 30 digits.

Nothing of the package, and nothing of its audit, is imported here or may be: these are the second opinion that both are
compared with. Noise is cut where less than 1e-18 is left, so that sums are exact to far more digits than are compared.

    Z ~ discrete Laplace of scale b:  P[Z = z] = (1 - q)/(1 + q) q^|z|,  q = e^(-1/b)
    Z ~ discrete Gaussian of sigma:   P[Z = z] proportional to e^(-z^2/(2 sigma^2))
    delta at epsilon of two laws:     sum over outcomes of (P - e^epsilon Q)_+
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import mpmath

mpmath.mp.dps = 30
Real = Any  # of mpmath
Law = dict[Any, Real]
Pmf = Callable[[int], Real]


def laplace(scale: Fraction) -> Pmf:
    q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return lambda z: (1 - q) / (1 + q) * q ** abs(z)


def gaussian(sigma: Fraction) -> Pmf:
    twice = 2 * (mpmath.mpf(sigma.numerator) / sigma.denominator) ** 2
    whole = 1 + 2 * mpmath.nsum(lambda z: mpmath.exp(-(z**2) / twice), [1, mpmath.inf])
    return lambda z: mpmath.exp(-mpmath.mpf(z * z) / twice) / whole


def reach(pmf: Pmf, left: float = 1e-18) -> int:
    """Beyond this there is less than so much."""
    r = 1
    while pmf(r) * r > left:
        r *= 2
    return r


def tail(pmf: Pmf, at_least: int) -> Real:
    """P[Z >= at_least]."""
    if at_least <= 0:
        return 1 - tail(pmf, 1 - at_least)
    return mpmath.fsum(pmf(z) for z in range(at_least, at_least + reach(pmf) + 1))


def delta(first: Law, second: Law, epsilon: float) -> Real:
    """The larger of the two directions."""
    factor = mpmath.exp(mpmath.mpf(epsilon))

    def one(p: Law, q: Law) -> Real:
        return mpmath.fsum(max(chance - factor * q.get(outcome, 0), 0) for outcome, chance in p.items())

    return max(one(first, second), one(second, first))


def shifted(pmf: Pmf, by: int, epsilon: float) -> Real:
    """delta of one number that moves by so much."""
    r = reach(pmf) + by
    laws = ({z: pmf(z - s) for z in range(-r, r + 1)} for s in (0, by))
    return delta(*laws, epsilon)


# ---- one count alone in its data set ---------------------------------------------------------------------------------


def stability_delta(pmf: Pmf, threshold: int, epsilon: float, items: int = 1) -> Real:
    """[LT] Theorem 23 for one event, or a person with so many different items that nobody else has.

    An item that only one of the two streams has, once: shown with its count if 1 + Z >= threshold. In the other it has
    no law at all. Of items that both have, the shift by one, for as many as are not alone.
    """
    hidden = 1 - tail(pmf, threshold - 1)
    worst = mpmath.mpf(0)
    for alone in range(items + 1):
        common = items - alone
        r = reach(pmf) if common else 0
        below = hidden**alone
        if common == 0:
            worst = max(worst, 1 - below)
            continue
        # Outcomes with an item alone are impossible on the other side; the rest is the shift times `below`.
        sums: Law = {0: mpmath.mpf(1)}
        for _ in range(common):
            sums = with_one_more(sums, pmf, r)
        factor = mpmath.exp(mpmath.mpf(epsilon))
        # sum over losses l of P[l] max(1 - e^(epsilon - l - log below), 0), P being the law with the items alone.
        together = 1 - below
        for loss, chance in sums.items():
            together += below * chance * max(1 - factor * mpmath.exp(-mpmath.mpf(loss)) / below, 0)
        worst = max(worst, together)
    return worst


def with_one_more(sums: Law, pmf: Pmf, r: int) -> Law:
    """Losses added: one more number that moves by one."""
    more: dict[float, Real] = {}
    for z in range(-r, r + 1):
        loss = round(float(mpmath.log(pmf(z) / pmf(z - 1))), 9)
        more[loss] = more.get(loss, mpmath.mpf(0)) + pmf(z)
    found: Law = {}
    for (one, a), (two, b) in itertools.product(sums.items(), more.items()):
        key = round(one + two, 9)
        found[key] = found.get(key, mpmath.mpf(0)) + a * b
    return found


# ---- counters of a Misra-Gries sketch --------------------------------------------------------------------------------

# For every key of two neighbouring sketches its counters (None: not stored there), and how many more decrements the
# first has seen: `tests.reference.neighbours.signature`.
Pair = tuple[tuple[tuple[int | None, int | None], ...], int]


def offset_law(counters: Sequence[int | None], alpha: int, pmf: Pmf, threshold: int, r: int) -> Law:
    """The offset release (MECHANISMS, section 1): a0 = alpha + Z0, v = c + alpha + Z, shown if v - a0 >= threshold."""
    found: Law = {}
    for z0 in range(-r, r + 1):
        a0 = alpha + z0
        laws = [_shown(None if c is None else c + alpha, pmf, a0 + threshold, r) for c in counters]
        for outcome in itertools.product(*(law.items() for law in laws)):
            chance = pmf(z0)
            for _, each in outcome:
                chance *= each
            key = (a0, *(value for value, _ in outcome))
            found[key] = found.get(key, mpmath.mpf(0)) + chance
    return found


def shared_law(counters: Sequence[int | None], pmf: Pmf, threshold: int, r: int) -> Law:
    """[LT] Algorithm 2: c + eta + Z with one eta for all counters, shown if it is at least the threshold."""
    found: Law = {}
    for eta in range(-r, r + 1):
        laws = [_shown(None if c is None else c + eta, pmf, threshold, r) for c in counters]
        for outcome in itertools.product(*(law.items() for law in laws)):
            chance = pmf(eta)
            for _, each in outcome:
                chance *= each
            key = tuple(value for value, _ in outcome)
            found[key] = found.get(key, mpmath.mpf(0)) + chance
    return found


def _shown(value: int | None, pmf: Pmf, cut: int, r: int) -> Law:
    """The law of one published number; "" where it is hidden or not there."""
    if value is None:
        return {"": mpmath.mpf(1)}
    shown = {value + z: pmf(z) for z in range(max(cut - value, -r), r + 1)}
    return {"": 1 - mpmath.fsum(shown.values()), **shown}


def worst_of_counters(pairs: Iterable[Pair], law: Callable[[Sequence[int | None], int], Law], epsilon: float) -> Real:
    """The largest delta over neighbouring sketches."""
    worst = mpmath.mpf(0)
    for keys, decrements in pairs:
        first, second = [a for a, _ in keys], [b for _, b in keys]
        worst = max(worst, delta(law(first, decrements), law(second, 0), epsilon))
    return worst


# ---- noise that several counters share, people, messages -------------------------------------------------------------


def gaussian_distance_delta(distance: Real, epsilon: float) -> Real:
    """delta of two normal laws so many standard deviations apart (Balle, Wang 2018, Theorem 8)."""
    mu, e = mpmath.mpf(distance), mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


def gaussian_shifts(sigma: Fraction, places: int, epsilon: float) -> Real:
    """delta of discrete Gaussian noise where so many places move by 1, exactly: the loss is a function of their sum."""
    pmf, width = gaussian(sigma), mpmath.mpf(sigma.numerator) / sigma.denominator
    together = pmf
    for _ in range(places - 1):
        together = sum_of(together, pmf)
    r = reach(together)
    losses = ((together(s), (places - 2 * s) / (2 * width**2)) for s in range(-r, r + 1))
    return mpmath.fsum(p * max(0, 1 - mpmath.exp(epsilon - loss)) for p, loss in losses)


def repeated(each_epsilon: Real, each_delta: Real, times: int, epsilon: float) -> Real:
    """delta of so many releases in a row, each the worst that an (epsilon, delta) allows: outcome by outcome.

    One release tells all with probability delta; else it is a coin of odds e^epsilon, for or against.
    """
    e0, d0, e = mpmath.exp(mpmath.mpf(each_epsilon)), mpmath.mpf(each_delta), mpmath.exp(mpmath.mpf(epsilon))
    coins = {heads: math.comb(times, heads) for heads in range(times + 1)}
    over = (1 + e0) ** times
    apart = (number * max(e0**heads - e * e0 ** (times - heads), 0) / over for heads, number in coins.items())
    untold = (1 - d0) ** times
    return 1 - untold + untold * mpmath.fsum(apart)


def common_noise_distance(moved: int, counters: int, sigma: Fraction, shared: Fraction) -> Real:
    """So many of the counters move by 1 behind (Z_x + eta)/2: (u' S^-1 u)^(1/2), S = (sigma^2 I + shared^2 11')/4."""
    own, common = ((mpmath.mpf(s.numerator) / s.denominator) ** 2 for s in (sigma, shared))
    return 2 * mpmath.sqrt((moved - common * moved**2 / (own + counters * common)) / own)


def sum_of(first: Pmf, second: Pmf) -> Pmf:
    """The law of the sum of two independent noises."""
    r = max(reach(first), reach(second))
    one, two = ([pmf(z) for z in range(-r, r + 1)] for pmf in (first, second))
    found = {
        z: mpmath.fsum(one[x + r] * two[z - x + r] for x in range(max(-r, z - r), min(r, z + r) + 1))
        for z in range(-2 * r, 2 * r + 1)
    }
    return lambda z: found.get(z, mpmath.mpf(0))


def response_loss(keep: Fraction, choices: int) -> Real:
    """Randomised response that says the truth with probability `keep`, else one of the other choices, evenly."""
    other = (1 - keep) / (choices - 1)
    return mpmath.log(mpmath.mpf(keep.numerator) / keep.denominator) - mpmath.log(
        mpmath.mpf(other.numerator) / other.denominator
    )


def quantile_choice_law(
    line: Sequence[Fraction], shares: Sequence[Fraction], epsilon: float, height: int, parts: int
) -> dict[tuple[int, ...], float]:
    """Recursive choice: {chosen parts: probability}; `line` is what lies in each part of the range.

    The middle share comes first, by odds e^(-epsilon |left - q n|/(2 max(q, 1-q) height)), each half on its own side.
    """

    def law(asked: Sequence[Fraction], low: Fraction, high: Fraction, start: int, end: int) -> dict[Any, float]:
        if not asked:
            return {(): 1.0}
        middle = len(asked) // 2
        q = (asked[middle] - low) / (high - low)
        n, found, weights = sum(line[start:end]), {}, {}
        for p in range(start, end):
            off = abs(sum(line[start:p]) - q * n)
            if len(asked) == 1:  # the distance of the whole bin
                a, b = max(p - p % parts, start), min(p - p % parts + parts, end)
                off = max(sum(line[start:a]) - q * n, q * n - sum(line[start:b]), Fraction(0))
            weights[p] = math.exp(-epsilon * float(off) / (2 * float(max(q, 1 - q)) * height))
        for p, weight in weights.items() or {start: 1.0}.items():
            chance = weight / (sum(weights.values()) or 1.0)
            left = law(asked[:middle], low, asked[middle], start, p)
            right = law(asked[middle + 1 :], asked[middle], high, p, end)
            for (one, c1), (two, c2) in itertools.product(left.items(), right.items()):
                key = (*one, p, *two)
                found[key] = found.get(key, 0.0) + chance * c1 * c2
        return found

    return law(shares, Fraction(0), Fraction(1), 0, len(line))
