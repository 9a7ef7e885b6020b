"""What questions about rows and people publish, and what one unit adds to it.

Counts, lists, different values, bad rows, quantiles, sums, items of people. Written out from docs/privacy (counting,
errors, quantiles, sums, people, pairs).

Nothing of the package is imported here, and nothing of its audit. A law is {what is published: probability}.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.reference.counter_laws import Law, Table, add, noise

# ---- counting.md -----------------------------------------------------------------------------------------------------


def least_scale(epsilon: Fraction, numbers: int, height: int = 1) -> Fraction:
    """Laplace noise for this many numbers that move by this much: the l1-distance over epsilon."""
    return numbers * height / epsilon


def least_square(rho: Fraction, numbers: int, height: int = 1) -> Fraction:
    """sigma^2 for the same: the squared l2-distance over 2 rho."""
    return numbers * height**2 / (2 * rho)


def numbers_law(counts: Sequence[int], law: str, scale: Fraction) -> Law:
    """Every number with noise of its own."""
    found: Law = {}
    for noises in itertools.product(noise(law, scale).items(), repeat=len(counts)):
        told = tuple(count + z for count, (z, _) in zip(counts, noises, strict=True))
        add(found, told, math.prod(chance for _, chance in noises))
    return found


def listed_of_people(people: Sequence[Sequence[Any]], universe: Sequence[Any], m: int) -> list[int]:
    """Of a person the first m different listed items of their rows count, each once."""
    counts = dict.fromkeys(universe, 0)
    for rows in people:
        for item in list(dict.fromkeys(row for row in rows if row in counts))[:m]:
            counts[item] += 1
    return list(counts.values())


def most_credited(people: Sequence[Sequence[Any]], m: int) -> int:
    """The most values that can be credited, each to one person, m to a person at most: by trying every way."""
    values = sorted({value for person in people for value in person})
    best = 0
    for owners in itertools.product([None, *range(len(people))], repeat=len(values)):
        fits = all(who is None or value in people[who] for value, who in zip(values, owners, strict=True))
        if fits and all(owners.count(who) <= m for who in range(len(people))):
            best = max(best, sum(who is not None for who in owners))
    return best


def chosen_credit_law(credited: Mapping[int, int], epsilon: Fraction) -> Law:
    """How many to credit, chosen privately with a fifth of epsilon, and the number: {(m, number): chance}."""
    first, rest = epsilon / 5, epsilon * 4 / 5
    w, t = 3 / rest, Fraction(108, 10) / first
    u = {m: f - w * m for m, f in credited.items()}
    score = {m: min(((u[m] - t * m) - (u[k] - t * k)) / (m + k) for k in credited) for m in credited}
    whole = {m: math.floor(1024 * s) for m, s in score.items()}
    weight = {m: math.exp(float(first) * (s - max(whole.values())) / (2 * 1024)) for m, s in whole.items()}
    found: Law = {}
    for m, f in credited.items():
        for z, chance in noise("laplace", m / rest).items():
            add(found, (m, f + z), chance * weight[m] / sum(weight.values()))
    return found


# ---- errors.md, "A test of bad rows" ---------------------------------------------------------------------------------


def bad_rows(bad: int, good: int, share: Fraction) -> int:
    """S = (q - p) bad - p good, for a share of p/q."""
    return (share.denominator - share.numerator) * bad - share.numerator * good


def bad_people(people: Sequence[Sequence[bool]], groups: Sequence[int], share: Fraction) -> int:
    """The same for groups of people: good if any of its rows could be read, bad if it has others alone."""
    rows: dict[int, list[bool]] = {}
    for group, readable in zip(groups, people, strict=True):
        rows.setdefault(group, []).extend(readable)
    good = sum(any(each) for each in rows.values())
    return bad_rows(sum(bool(each) for each in rows.values()) - good, good, share)


def refusal_law(statistic: int, law: str, scale: Fraction, cut: int) -> Law:
    """Refused if S + Z > cut."""
    refused = math.fsum(chance for z, chance in noise(law, scale).items() if statistic + z > cut)
    return {True: refused, False: 1 - refused}


# ---- quantiles.md ----------------------------------------------------------------------------------------------------


def votes(rows: Sequence[int], bins: int, m: int) -> list[int]:
    """W n_i votes in bin i of a person with n <= m rows, floor(W m n_i/n) of one with more."""
    W, n = 2**24, len(rows)
    return [math.floor(W * min(Fraction(1), Fraction(m, max(n, 1))) * rows.count(i)) for i in range(bins)]


def nodes(leaves: Sequence[int], branching: int, levels: int) -> list[int]:
    """What lies in every node: level by level from the top, from left to right."""
    full = [*leaves, *[0] * (branching**levels - len(leaves))]
    found = []
    for level in range(1, levels + 1):
        wide = branching ** (levels - level)
        found += [sum(full[first : first + wide]) for first in range(0, len(full), wide)]
    return found


# ---- sums.md ---------------------------------------------------------------------------------------------------------


def parts(kind: str, value: Fraction, low: Fraction, high: Fraction) -> list[Fraction]:
    """What a row adds to its group."""
    t = (min(max(value, low), high) - low) / (high - low)
    return {
        "count": [Fraction(1)],
        "sum": [t, 1 - t],
        "mean": [t, 1 - t],
        "variance": [(1 - t) ** 2, 2 * t * (1 - t), t**2],
    }[kind]


def convolved(table: Table, times: int) -> Table:
    """The law of the sum of this many independent noises."""
    found: Table = {0: 1.0}
    for _ in range(times):
        longer: dict[int, float] = {}
        for (a, p), (b, q) in itertools.product(found.items(), table.items()):
            if p * q > 1e-22:
                longer[a + b] = longer.get(a + b, 0.0) + p * q
        found = longer
    return found


def least_unlikely(table: Table, most: float) -> int:
    """The least T with P[Z >= T] <= most."""
    tail, place = 0.0, max(table)
    while tail + table.get(place, 0.0) <= most:
        tail += table.get(place, 0.0)
        place -= 1
    return place + 1


def groups_law(sums: Mapping[Any, Sequence[int]], law: str, scale: Fraction, cut: int | None) -> Law:
    """Noise on every part of the groups that occur, and a group is shown iff its noisy parts add up to the cut."""
    found: Law = {(): 1.0}
    for group, own in sums.items():
        longer: Law = {}
        for (told, one), (noisy, two) in itertools.product(found.items(), numbers_law(own, law, scale).items()):
            shown = cut is None or sum(noisy) >= cut
            add(longer, (*told, (group, noisy)) if shown else told, one * two)
        found = longer
    return found


# ---- people: people.md, pairs.md, sums.md ----------------------------------------------------------------------------

L = 2**24


def cut_to_length(vector: Mapping[Any, int], longest: float) -> dict[Any, float]:
    """A person's vector v as L v/max(C, |v|), not yet cut to whole numbers."""
    length = math.sqrt(sum(x * x for x in vector.values()))
    return {item: L * x / max(longest, length) for item, x in vector.items()}


def first_look(items: Sequence[Any]) -> dict[Any, float]:
    """Step 1a: each of d different items has L/sqrt(d)."""
    different = list(dict.fromkeys(items))
    return {item: L / math.sqrt(len(different)) for item in different}


def days_of(rows: Sequence[tuple[Any, int, Any]], day: int | None = None) -> tuple[dict[Any, float], int]:
    """person-days.md: a pair of a person and a day is one vector; the sum of all, and how many pairs there are."""
    held: dict[tuple[Any, int], list[Any]] = {}
    for who, when, item in rows:
        if day is None or when == day:
            held.setdefault((who, when), []).append(item)
    return added_up([first_look(items) for items in held.values()]), len(held)


def aim(noisy: float, sigma: float, passed: bool) -> float:
    """Section 2: b = 1024 clip((n/sigma - 2)/0.75, 1/16, 1), the least for what passed."""
    return 64.0 if passed else 1024 * min(max((noisy / sigma - 2) / 0.75, 1 / 16), 1.0)


def second_look(items: Sequence[Any], aims: Mapping[Any, int]) -> dict[Any, float]:
    """Step 1b: L b/|b| on the same items."""
    return cut_to_length({item: aims[item] for item in dict.fromkeys(items)}, 0.0)


def pairs_of(items: Sequence[Any], discovered: Sequence[Any], size: int = 2) -> list[tuple[Any, ...]]:
    """pairs.md, step 2: the pairs of discovered items that a person has, each once."""
    return list(itertools.combinations(sorted(set(items) & set(discovered)), size))


def added_up(vectors: Sequence[Mapping[Any, float]]) -> dict[Any, float]:
    found: dict[Any, float] = {}
    for vector in vectors:
        for item, x in vector.items():
            found[item] = found.get(item, 0.0) + x
    return found


def normal_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def gaussian_delta(epsilon: float, mu: float) -> float:
    """delta_G(e; mu) = Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu)."""
    return normal_tail(epsilon / mu - mu / 2) - math.exp(epsilon) * normal_tail(epsilon / mu + mu / 2)


def passes_alone(d: int, sigmas: tuple[float, float], cuts: tuple[float, float], aimed: bool = True) -> float:
    """p_d of section 2: an item that one person alone has, of d; by Simpson's rule over the first noise."""
    (first, second), (cut, both) = sigmas, cuts
    own, places = L / math.sqrt(d), 4000

    def density(z: float) -> float:
        n = own + z * first
        b = aim(n, first, False)
        r = b / math.sqrt(b * b + (d - 1) * 64.0**2) if aimed else 1 / math.sqrt(d)
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * normal_tail((both - n - L * r) / second)

    low, high = -10.0, (cut - own) / first
    step = (high - low) / places
    weights = (1 if i in (0, places) else 4 if i % 2 else 2 for i in range(places + 1))
    below = math.fsum(weight * density(low + i * step) for i, weight in enumerate(weights)) * step / 3
    return normal_tail(high) + below


def people_delta(
    epsilon: float,
    mu: float,
    chances: Mapping[int, float],
    isolated: Callable[[int], Sequence[int]] = lambda d: range(d + 1),
) -> float:
    """Section 2: the larger of both directions, over d items of which j are isolated; `chances` are p_d."""
    worst = 0.0
    for d, p in chances.items():
        for j in isolated(d):
            pi = -math.expm1(j * math.log1p(-p))
            left = mu * math.sqrt(1 - Fraction(3, 10) * j / d)
            to = pi + (1 - pi) * gaussian_delta(epsilon - math.log1p(-pi), left)
            worst = max(worst, to, gaussian_delta(epsilon + math.log1p(-pi), left))
    return worst


# ---- reports.md ------------------------------------------------------------------------------------------------------


def several_counts_delta(scales: Sequence[Fraction], epsilon: float) -> float:
    """delta of numbers with Laplace noise of these scales, each of which one unit moves by 1: all of them together."""
    laws: list[Law] = [{(): 1.0}, {(): 1.0}]
    for scale in scales:
        table = noise("laplace", scale)
        for side, law in enumerate(laws):
            laws[side] = {(*told, z + side): p * q for told, p in law.items() for z, q in table.items()}
    return max(
        math.fsum(max(0.0, p - math.exp(epsilon) * two.get(told, 0.0)) for told, p in one.items())
        for one, two in (laws, laws[::-1])
    )
