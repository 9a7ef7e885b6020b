"""What the releases of counters, of entries and of cells show: all of it, written out from the papers and the proofs.

Nothing of the package is imported here, and nothing of its audit. A law is {what is shown: probability}. What is shown
is (rows, offset, offsets of shards), a row (item, number, shard), items by their `repr`: as `branches.shown` has it.
Numbers are floats, which are exact to 1e-12 here; noise is cut where less than 1e-13 is left.

[LT] Lebeda and Tetek, private Misra-Gries. [SS] Holland, private SpaceSaving. The pages are those of docs/privacy.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from tests.reference import naive_laws as naive

Table = dict[int, float]  # of a noise
Law = dict[Any, float]
Counts = Mapping[Any, int]


@cache
def noise(law: str, scale: Fraction) -> Table:
    """A noise of naive_laws in a table."""
    pmf = getattr(naive, law)(scale)
    r = naive.reach(pmf, 1e-13)
    return {z: float(pmf(z)) for z in range(-r, r + 1)}


def at_least(table: Table, cut: int) -> float:
    return math.fsum(chance for z, chance in table.items() if z >= cut)


def add(law: Law, outcome: Any, chance: float) -> None:
    law[outcome] = law.get(outcome, 0.0) + chance


def number(count: int, table: Table, cut: int) -> Law:
    """The law of count + noise where that is the cut or more; None where it is not shown."""
    found: Law = {}
    for z, chance in table.items():
        add(found, count + z if count + z >= cut else None, chance)
    return found


def rows_of(numbers: Mapping[Any, Law], shard: int = 0) -> Law:
    """Items with independent numbers: the law of the list of those that are shown."""
    found: Law = {(): 1.0}
    for item, law in numbers.items():
        longer: Law = {}
        for (rows, one), (value, two) in itertools.product(found.items(), law.items()):
            add(longer, rows if value is None else (*rows, (repr(item), value, shard)), one * two)
        found = longer
    return {tuple(sorted(rows)): chance for rows, chance in found.items()}


def apart(first: Mapping[Any, float], second: Mapping[Any, float]) -> float:
    """The total variation distance of two laws."""
    return math.fsum(abs(first.get(o, 0.0) - second.get(o, 0.0)) for o in {*first, *second}) / 2


def divergence(first: Law, second: Law, epsilon: float) -> float:
    """The larger delta of both directions."""
    ways = ((first, second), (second, first))
    return max(math.fsum(max(0.0, c - math.exp(epsilon) * q.get(o, 0.0)) for o, c in p.items()) for p, q in ways)


def least(holds: Callable[[int], bool]) -> int:
    """The smallest whole number from 0 on that holds; all larger ones do, too."""
    low, high = -1, 1
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# ---- tails of discrete Laplace noise, in closed form -----------------------------------------------------------------


def laplace_tail(rate: float, t: int) -> float:
    """P[Z >= t], Z of scale 1/rate."""
    q = math.exp(-rate)
    return q**t / (1 + q) if t > 0 else 1 - q ** (1 - t) / (1 + q)


def laplace_mass(rate: float, z: int) -> float:
    q = math.exp(-rate)
    return (1 - q) / (1 + q) * q ** abs(z)


def over_shared(rate: float, shown: Callable[[int], float]) -> float:
    """The mean of a chance over one noise that all share."""
    r = math.ceil(60 / rate)
    return math.fsum(laplace_mass(rate, z) * shown(z) for z in range(-r, r + 1))


def some(*chances: float) -> float:
    """The chance that one of several independent events happens."""
    return -math.expm1(math.fsum(math.log1p(-chance) if chance < 1 else -math.inf for chance in chances))


def steps_of_a_group(epsilon: float, delta: float, m: int) -> tuple[float, float]:
    """(epsilon, delta) of one of the m steps that make a user of m events: m e = epsilon, d sum of e^(i e) = delta."""
    e = epsilon / m
    return e, delta / math.fsum(math.exp(i * e) for i in range(m))


# ---- Misra-Gries -----------------------------------------------------------------------------------------------------


def offset_cut(epsilon: float, delta: float, m: int = 1) -> int:
    """offset-release.md: 1 + t, the least t with sum_d p(d) [1 - (1 - r(d+t)) (1 - r(d+t+1))] <= delta."""
    e, d = steps_of_a_group(epsilon, delta, m)
    both = lambda t: over_shared(e, lambda z: some(laplace_tail(e, z + t), laplace_tail(e, z + t + 1)))  # noqa: E731
    return 1 + least(lambda t: both(t) <= d)


def offset_law(counters: Counts, alpha: int, rate: Fraction, cut: int, shard: int = 0) -> Law:
    """offset-release.md: a0 = alpha + Z0 and v = c + alpha + Z, shown where v - a0 >= cut. {(rows, a0): chance}."""
    table, found = noise("laplace", 1 / rate), {}
    for z0, chance in table.items():
        a0 = alpha + z0
        for rows, each in rows_of({x: number(c + alpha, table, a0 + cut) for x, c in counters.items()}, shard).items():
            add(found, (rows, a0), chance * each)
    return found


def top_of_groups(counters: Mapping[tuple[Any, Any], int], alpha: int, rate: Fraction, cut: int, k: int) -> Law:
    """groups.md: pairs of a group and an item are items, and the k largest of each group are taken of the release.

    {((group, ((item, number), ...)), ...), a0): chance}; equal numbers in the order of the items.
    """
    named, found = {repr(pair): pair for pair in counters}, {}
    for (rows, a0), chance in offset_law(counters, alpha, rate, cut).items():
        groups: dict[Any, list[tuple[int, Any]]] = {}
        for pair, value, _ in rows:
            group, item = named[pair]
            groups.setdefault(group, []).append((-value, item))
        best = [(group, tuple((item, -value) for value, item in sorted(pairs)[:k])) for group, pairs in groups.items()]
        add(found, (tuple(sorted(best)), a0), chance)
    return found


def sharded_law(shards: Sequence[tuple[Counts, int]], rate: Fraction, cut: int) -> Law:
    """shards.md, section 1: every shard publishes by itself, with the whole budget."""
    laws = [offset_law(*shard, rate, cut, place) for place, shard in enumerate(shards)]
    found: Law = {}
    for parts in itertools.product(*(law.items() for law in laws)):
        rows = sorted(row for (shown, _), _ in parts for row in shown)
        add(found, (tuple(rows), None, tuple(a0 for (_, a0), _ in parts)), math.prod(chance for _, chance in parts))
    return found


def textbook_cut(epsilon: float, delta: float, k: int, m: int = 1) -> int:
    """[LT] section 5.1, exactly: 1 + t, the least t for which one of k keys of count 1 is shown with delta at most."""
    e, d = steps_of_a_group(epsilon, delta, m)
    return 1 + least(lambda t: over_shared(e, lambda z: some(*[laplace_tail(e, t - z)] * k)) <= d)


def textbook_law(counters: Counts, rate: Fraction, cut: int) -> Law:
    """[LT] section 5.1: c + Z0 + Z of the counters that are not 0."""
    table, found = noise("laplace", 1 / rate), {}
    for z0, chance in table.items():
        for rows, each in rows_of({x: number(c + z0, table, cut) for x, c in counters.items() if c}).items():
            add(found, (rows, None, ()), chance * each)
    return found


def noise_for_each_law(counters: Counts, law: str, scale: Fraction, cut: int, offset: int | None = None) -> Law:
    """[LT] Theorem 23, [SS] Algorithm 3, Chan et al.: c + Z where that is the cut (above the offset) or more."""
    table = noise(law, scale)
    rows = rows_of({x: number(c, table, cut + (offset or 0)) for x, c in counters.items() if c})
    return {(shown, offset, ()): chance for shown, chance in rows.items()}


def chan_cut(epsilon: float, delta: float, k: int) -> int:
    """1 + t, the least t for which one of k keys of count 1 is shown with delta at most, behind noise of scale k/e."""
    return 1 + least(lambda t: some(*[laplace_tail(epsilon / k, t)] * k) <= delta)


# ---- SpaceSaving -----------------------------------------------------------------------------------------------------


def space_saving_cut(epsilon: float, delta: float, n: int, k: int, m: int = 1) -> int:
    """central.md: floor((n-1)/k) + 1 + t, the least t with 1 - (1 - r(t)) (1 - r(t+1)) <= delta (state S4)."""
    e, d = steps_of_a_group(epsilon, delta, m)
    return (n - 1) // k + 1 + least(lambda t: some(laplace_tail(e, t), laplace_tail(e, t + 1)) <= d)


def space_saving_noisy_cut(counters: float, length: float, delta: float, k: int) -> int:
    """central.md, "Noisy length": 1 + t, over all noises of the length, in both directions."""
    r = math.ceil(60 / length)

    def mean(j: Callable[[int], int], first: int, t: int) -> float:
        """Of the chance that one of two keys is shown, over the noise z of the length."""
        tails = cache(lambda s: laplace_tail(counters, s))
        noises = range(-r, r + 1)
        return math.fsum(laplace_mass(length, z) * some(tails(t + first + j(z)), tails(t + 1 + j(z))) for z in noises)

    def delta_of(t: int) -> float:
        return max(mean(lambda z: (z + 1) // k, 0, t), mean(lambda z: z // k, 1, t))

    return 1 + least(lambda t: delta_of(t) <= delta)


def space_saving_noisy_law(counters: Counts, n: int, k: int, scales: tuple[Fraction, Fraction], cut: int) -> Law:
    """o = floor((n + Z_n)/k) is published, and C + Z where C + Z - o >= cut; scales of the counters, of the length."""
    found: Law = {}
    for z, chance in noise("laplace", scales[1]).items():
        for shown, each in noise_for_each_law(counters, "laplace", scales[0], cut, (n + z) // k).items():
            add(found, shown, chance * each)
    return found


# ---- entries ---------------------------------------------------------------------------------------------------------


def reduced(counters: Counts, k: int) -> dict[Any, int]:
    """[LT] Algorithm 3 in units of 1/(k+1): (k+1) (c - sum c/(k+1)), where it is positive."""
    total = sum(counters.values())
    return {x: (k + 1) * c - total for x, c in counters.items() if (k + 1) * c > total}


def summed(sketches: Iterable[Counts], k: int) -> dict[Any, int]:
    """[LT] section 7: reduced sketches, added up."""
    found: dict[Any, int] = {}
    for counters in sketches:
        for x, entry in reduced(counters, k).items():
            found[x] = found.get(x, 0) + entry
    return found


def reduced_moves(k: int) -> tuple[int, int]:
    """(l1, squared l2) of what one event moves, in the units of entries, by [LT] Lemma 8: all counters fall by 1, or
    one rises by 1. Tried on all counters up to 3."""
    moves = []
    for counters in itertools.product(range(4), repeat=k):
        others = [tuple(c - 1 for c in counters)] if min(counters) else []
        others += [tuple(c + (i == place) for i, c in enumerate(counters)) for place in range(k)]
        for after in others:
            one, two = (reduced(dict(enumerate(each)), k) for each in (counters, after))
            moves.append([abs(one.get(i, 0) - two.get(i, 0)) for i in range(k)])
    return max(map(sum, moves)), max(sum(move**2 for move in each) for each in moves)


def whole(value: int, unit: int) -> int:
    """An entry in counts, to the nearest whole number, halves up."""
    return math.floor(Fraction(value, unit) + Fraction(1, 2))


def listed_law(entries: Counts, universe: Sequence[Any], law: str, scale: Fraction, cut: int, most: int,
               unit: int = 1) -> Law:  # fmt: skip
    """central.md, "With a universe": noise on every item; of those at the cut or above the largest, ties by place."""
    table, found = noise(law, scale), {}
    for noises in itertools.product(table.items(), repeat=len(universe)):
        values = [(entries.get(x, 0) + z, x) for x, (z, _) in zip(universe, noises, strict=True)]
        passed = sorted((-value, place, x) for place, (value, x) in enumerate(values) if value >= cut)[:most]
        rows = tuple(sorted((repr(x), whole(-value, unit), 0) for value, _, x in passed))
        add(found, (rows, None, ()), math.prod(chance for _, chance in noises))
    return found


def reduced_law(entries: Counts, D: int, scale: Fraction, cut: int, unit: int) -> Law:
    """central.md, "Without": 0 < y < D becomes D with probability y/D, else nothing; then y + Z where it is the cut."""
    table = noise("laplace", scale)
    numbers = {}
    for x, y in entries.items():
        shown = number(max(y, D), table, cut)
        chance = min(1.0, y / D)
        told: Law = {None: 1 - chance}
        for value, each in shown.items():
            add(told, None if value is None else whole(value, unit), chance * each)
        numbers[x] = told
    return {(rows, None, ()): chance for rows, chance in rows_of(numbers).items()}


def reduced_cut(epsilon: float, delta: float, k: int, m: int = 1) -> int:
    """calibration.md: D + t, the least t >= D with P[Z >= t] <= delta, Z of scale D/epsilon, D = m (2 k - 1)."""
    D = m * (2 * k - 1)
    return D + max(D, least(lambda t: laplace_tail(epsilon / D, t) <= delta))


# ---- noise that counters share ---------------------------------------------------------------------------------------


def common_noise_law(counters: Counts, sigma: Fraction, shared: Fraction, threshold: int) -> Law:
    """central.md, "Noise that counters share": V = 2 c + Z + eta, shown from 2 T on as V/2, halves to the even."""
    table, found = noise("gaussian", sigma), {}
    for eta, chance in noise("gaussian", shared).items():
        numbers = {}
        for x, c in counters.items():
            told: Law = {}
            for v, each in number(2 * c + eta, table, 2 * threshold).items():
                add(told, None if v is None else round(Fraction(v, 2)), each)
            numbers[x] = told
        for rows, each in rows_of({x: law for x, law in numbers.items() if counters[x]}).items():
            add(found, (rows, None, ()), chance * each)
    return found


def common_noise_delta(k: int, sigma: Fraction, shared: Fraction, threshold: int, epsilon: float) -> float:
    """The worst of one step: of k counters some rise by 1 that both sketches hold, far above the cut, the others are
    keys that the first holds alone, with a count of 1; V itself is seen. Both directions."""
    each, both = noise("gaussian", sigma), noise("gaussian", shared)
    far, worst = 100_000, 0.0
    for common in range(k + 1):
        for rising in range(common + 1):
            laws: list[Law] = []
            for step in (1, 0):
                counts = [far + step * (i < rising) for i in range(common)]
                found: Law = {}
                for eta, chance in both.items():
                    numbers = [number(2 * c + eta, each, -far) for c in counts]
                    if step:
                        numbers += [number(2 + eta, each, 2 * threshold)] * (k - common)
                    for parts in itertools.product(*(law.items() for law in numbers)):
                        seen = tuple(v for v, _ in parts)
                        seen += () if step else (None,) * (k - common)
                        add(found, seen, chance * math.prod(c for _, c in parts))
                laws.append(found)
            worst = max(worst, divergence(*laws, epsilon))
    return worst


# ---- linear sketches -------------------------------------------------------------------------------------------------


def cells_law(
    cells: Sequence[Sequence[int]], places: Mapping[Any, Sequence[tuple[int, int]]], rule: str, law: str,
    scale: Fraction, cut: int,
) -> Law:  # fmt: skip
    """sketch-heavy-hitters.md: noise on every cell, once; an item is shown with the smallest (or the median) of sign
    times cell over its rows, where that is the cut or more. `places`: of each tracked item (column, sign) a row."""
    table, found = noise(law, scale), {}
    at = [(row, column) for row, line in enumerate(cells) for column in range(len(line))]
    for noises in itertools.product(table.items(), repeat=len(at)):
        noisy = {place: cells[place[0]][place[1]] + z for place, (z, _) in zip(at, noises, strict=True)}
        rows = []
        for x, where in places.items():
            told = [sign * noisy[row, column] for row, (column, sign) in enumerate(where)]
            value = min(told) if rule == "smallest" else int(statistics.median(told))
            if value >= cut:
                rows.append((repr(x), value, 0))
        add(found, (tuple(sorted(rows)), None, ()), math.prod(chance for _, chance in noises))
    return found


def hashing_fails(rule: str, width: int, depth: int, n: int, items: int, g: int, key_bytes: int) -> Fraction:
    """sketch-heavy-hitters.md, "Hashing": the chance that some of the items collides with more than g events in every
    row (in most rows), by Markov's inequality; texts that become one digest besides. Exactly."""
    if g >= n:
        return Fraction(0)
    p = Fraction(math.ceil(Fraction(2**32, width)), 2**32)
    q = min(Fraction(1), n * p / (g + 1))
    needed = depth if rule == "smallest" else (depth + 1) // 2
    row = sum(math.comb(depth, j) * q**j * (1 - q) ** (depth - j) for j in range(needed, depth + 1))
    digest = Fraction(math.ceil(Fraction(key_bytes, 7)) + 1, 2**61) ** 2
    return items * row + Fraction(items * (items - 1), 2) * digest


def largest_untracked(n: int, k: int, below: int, above: int) -> int:
    """The largest whole estimate that an untracked item may have: f + above, where k (f - below - above) + f <= n."""
    return least(lambda f: k * (f + 1 - below - above) + f + 1 > n) + above


def unreached(law: str, scale: Fraction, draws: int, failure: float) -> int:
    """The least t >= 1 with draws P[Z >= t] <= failure."""
    pmf = getattr(naive, law)(scale)
    return 1 + least(lambda t: draws * naive.tail(pmf, t + 1) <= failure)
