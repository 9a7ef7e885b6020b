"""What is published tick after tick, and how much noise hides one event or one person in all of it.

Written out from docs/privacy (continual, correlated-noise, people-over-time) and [CO], Rivera Cardoso and Rogers.
Nothing of the package is imported here, and nothing of its audit. A law is {what is published: probability}; noises
that are drawn one after the other are given as lists, and what must come out is computed from them in whole numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.reference.counter_laws import Law, add, noise

Counts = Mapping[Any, int]

# ---- the binary tree, and of any base: [CO] Algorithm 1 --------------------------------------------------------------


def tree_levels(horizon: int, base: int) -> int:
    """L_r = floor(log_r T) + 1."""
    found = 1
    while base**found <= horizon:
        found += 1
    return found


def best_base(horizon: int) -> int:
    """Equation (3): argmin (r - 1) L_r^2, of those that a node of all ticks can have."""
    return min(range(2, max(3, horizon + 1)), key=lambda r: ((r - 1) * tree_levels(horizon, r) ** 2, r))


def tree_nodes(t: int, base: int) -> list[tuple[int, int]]:
    """The nodes (first tick, last tick) that make up the ticks up to t, one after the other."""
    found, first, power = [], 1, 1
    while power * base <= t:
        power *= base
    while first <= t:
        if first + power - 1 <= t:
            found.append((first, first + power - 1))
            first += power
        else:
            power //= base
    return found


def tree_noise(t: int, base: int, z: Sequence[int]) -> int:
    """The sum of the noises of these nodes; a node's is drawn at its last tick (z has one for each tick)."""
    return sum(z[last - 1] for _, last in tree_nodes(t, base))


def tree_moved(horizon: int, base: int, changes: Sequence[int]) -> int:
    """Squared l2-norm of what these changes of the counts of all ticks move in the nodes of all ticks together."""
    nodes = {node for t in range(1, horizon + 1) for node in tree_nodes(t, base)}
    return sum(sum(changes[first - 1 : last]) ** 2 for first, last in nodes)


def tree_law(counts: Sequence[int], base: int, sigma: Fraction) -> Law:
    """{(total published at each tick): chance}."""
    table, found = noise("gaussian", sigma), {}
    for drawn in itertools.product(table.items(), repeat=len(counts)):
        z = [value for value, _ in drawn]
        told = tuple(sum(counts[:t]) + tree_noise(t, base, z) for t in range(1, len(counts) + 1))
        add(found, told, math.prod(chance for _, chance in drawn))
    return found


# ---- factors of the running sum: correlated-noise.md -----------------------------------------------------------------


def square_root(ticks: int) -> list[Fraction]:
    """f_0 = 1, f_j = f_(j-1) (2j - 1)/(2j), as multiples of 2^-40."""
    exact = [Fraction(1)]
    for j in range(1, ticks):
        exact.append(exact[-1] * (2 * j - 1) / (2 * j))
    return [Fraction(round(f * 2**40), 2**40) for f in exact]


def buffered(theta: Sequence[int], omega: Sequence[int], ticks: int) -> list[Fraction]:
    """c_0 = 1, c_j = sum of omega_i theta_i^(j-1), both multiples of 2^-40."""
    pairs = [(Fraction(w, 2**40), Fraction(th, 2**40)) for w, th in zip(omega, theta, strict=True)]
    return [Fraction(1), *(sum((w * th ** (j - 1) for w, th in pairs), Fraction(0)) for j in range(1, ticks))]


def rounding(c: Sequence[Fraction], z: Sequence[int], N: Sequence[int]) -> Fraction:
    """How far z_t - w_t, w_t = N_t - N_(t-1), is from the sum of c_j w_(t-j) at most: what roundings did."""
    w = [now - before for now, before in zip(N, [0, *N], strict=False)]
    return max(abs(z[t] - w[t] - sum((c[j] * w[t - j] for j in range(1, t + 1)), Fraction(0))) for t in range(len(w)))


def largest_move(c: Sequence[Fraction], changes: Sequence[int]) -> Fraction:
    """Squared l2-norm of C x for these changes of the counts of all ticks."""
    rows = (sum((c[t - s] * changes[s] for s in range(t + 1)), Fraction(0)) for t in range(len(changes)))
    return sum((row * row for row in rows), Fraction(0))


def needed_square(moved: Fraction | int, lattice: int, kappa: float, ticks: int, rho: float, items: int = 1) -> float:
    """sigma^2 = items (g |C x| + kappa sqrt(T))^2/(2 rho)."""
    return items * (lattice * math.sqrt(moved) + kappa * math.sqrt(ticks)) ** 2 / (2 * rho)


def to_counts(N: int, lattice: int) -> int:
    """Whole counts, halves up."""
    return math.floor(Fraction(N, lattice) + Fraction(1, 2))


def comings_and_goings(horizon: int, window: int | None, visits: int | None) -> Iterator[tuple[int, ...]]:
    """All ways in which one person changes the count of those who were there in the last `window` ticks."""
    for rows in itertools.product((0, 1), repeat=horizon):
        inside, seen = [], 0
        for t in range(horizon):
            here = any(rows[: t + 1]) if window is None else any(rows[max(0, t - window + 1) : t + 1])
            seen += here and not (inside and inside[-1][0])
            inside.append((here, here and (visits is None or seen <= visits)))
        counts = [int(counted) for _, counted in inside]
        yield tuple(now - before for now, before in zip(counts, [0, *counts], strict=False))


def people_there(ticks: Sequence[Sequence[Any]], window: int | None) -> list[int]:
    """How many different people so far, or in the last ticks."""
    return [
        len(
            {
                who
                for rows in (ticks[: t + 1] if window is None else ticks[max(0, t - window + 1) : t + 1])
                for who in rows
            }
        )
        for t in range(len(ticks))
    ]


def epoch(tick: int) -> tuple[int, int]:
    """Without a horizon: (e, first tick) of epochs of 1, 2, 4, ... ticks."""
    e = 0
    while 2 ** (e + 1) <= tick:
        e += 1
    return e, 2**e


# ---- one release of a histogram: [CO] Algorithms 5, 10, 11, 12 -------------------------------------------------------


def choices_law(scores: Mapping[Any, float], k: int, rate: float) -> Law:
    """k choices without replacement with odds e^(rate score): {(the chosen, in their order): chance}."""
    if not k or not scores:
        return {(): 1.0}
    most = max(scores.values())
    weights = {x: math.exp(rate * (score - most)) for x, score in scores.items()}
    found: Law = {}
    for x, weight in weights.items():
        left = {other: score for other, score in scores.items() if other != x}
        for rest, chance in choices_law(left, k - 1, rate).items():
            add(found, (x, *rest), chance * weight / sum(weights.values()))
    return found


def with_counts(chosen: Law, counts: Counts, sigma: Fraction) -> Law:
    """The chosen, each with a noisy count; in no order."""
    table, found = noise("gaussian", sigma), {}
    for items, chance in chosen.items():
        for noises in itertools.product(table.items(), repeat=len(items)):
            told = sorted((x, counts[x] + z) for x, (z, _) in zip(items, noises, strict=True))
            add(found, tuple(told), chance * math.prod(p for _, p in noises))
    return found


def known_gauss(counts: Counts, sigma: Fraction) -> Law:
    """KnownGauss: every count with noise."""
    return with_counts({tuple(counts): 1.0}, counts, sigma)


def known_gumbel(counts: Counts, k: int, tau: Fraction) -> Law:
    """KnownGumb: k choices with odds e^(2 h/tau), and counts with noise of tau."""
    return with_counts(choices_law(counts, k, 2 / float(tau)), counts, tau)


def largest(counts: Counts, limit: int | None) -> tuple[list[Any], int]:
    """The `limit` largest of those that occurred, and the largest count that is not among them. Without ties."""
    order = sorted((x for x in counts if counts[x] > 0), key=lambda x: -counts[x])
    if limit is None or len(order) <= limit:
        return order, 0
    return order[:limit], counts[order[limit]]


def unknown_noisy(counts: Counts, law: str, scale: Fraction, shift: int, limit: int | None) -> Law:
    """UnkGauss, or LimitDom with Laplace noise: shown iff h + Z >= h_(limit+1) + 1 + shift + Z'."""
    table, found = noise(law, scale), {}
    top, rest = largest(counts, limit)
    for z, chance in table.items():
        cut = rest + 1 + shift + z
        for noises in itertools.product(table.items(), repeat=len(top)):
            told = sorted((x, counts[x] + own) for x, (own, _) in zip(top, noises, strict=True))
            shown = tuple((x, value) for x, value in told if value >= cut)
            add(found, shown, chance * math.prod(p for _, p in noises))
    return found


def unknown_gumbel(counts: Counts, k: int, tau: Fraction, shift: int, limit: int) -> Law:
    """UnkGumb: k choices among the largest and a stop at h_(limit+1) + 1 + shift; what comes after the stop is not."""
    top, rest = largest(counts, limit)
    stop = object()
    scores = {**{x: counts[x] for x in top}, stop: rest + 1 + shift}
    chosen: Law = {}
    for picks, chance in choices_law(scores, min(k, len(scores)), 2 / float(tau)).items():
        before = picks[: picks.index(stop)] if stop in picks else picks
        add(chosen, before, chance)
    return with_counts(chosen, counts, tau)


def ahead_of_the_stop(items: int, shift: int, tau: Fraction) -> float:
    """The chance that the first to be drawn is one of these items, of the next largest count + 1, and not the stop."""
    law = choices_law({**dict.fromkeys(range(items), 0), "stop": shift}, 1, 2 / float(tau))
    return 1 - law["stop",]


def tree_of_releases(ticks: Sequence[Counts], base: int, release: Callable[[Counts], Law]) -> Law:
    """[CO] Algorithm 3: a node is released at its last tick, and a tick shows the sums of its nodes: {(ticks): chance}.

    What a node does not show of an item counts as 0, and an item is shown at a tick if one of its nodes shows it.
    """
    found: Law = {((), ()): 1.0}
    for t in range(1, len(ticks) + 1):
        first, last = tree_nodes(t, base)[-1]
        held: dict[Any, int] = {}
        for tick in ticks[first - 1 : last]:
            for x, n in tick.items():
                held[x] = held.get(x, 0) + n
        longer: Law = {}
        for ((nodes, told), chance), (shown, p) in itertools.product(found.items(), release(held).items()):
            released = (*nodes, (last, shown))
            sums: dict[Any, int] = {}
            for _, end in tree_nodes(t, base):
                for x, n in dict(released)[end]:
                    sums[x] = sums.get(x, 0) + n
            if chance * p > 1e-13:
                add(longer, (released, (*told, tuple(sorted(sums.items())))), chance * p)
        found = longer
    law: Law = {}
    for (_, told), chance in found.items():
        add(law, told, chance)
    return law


# ---- items that come from the stream: [CO] Algorithm 7 ---------------------------------------------------------------


def sum_tail(sigma: Fraction, times: int, at_least: int) -> float:
    """P[the sum of so many discrete Gaussians is this or more]."""
    table = noise("gaussian", sigma)
    law = {0: 1.0}
    for _ in range(times):
        longer: dict[int, float] = {}
        for (a, p), (b, q) in itertools.product(law.items(), table.items()):
            longer[a + b] = longer.get(a + b, 0.0) + p * q
        law = longer
    return math.fsum(p for z, p in law.items() if z >= at_least)


def hidden_law(counts: Sequence[int], base: int, sigma: Fraction, cuts: Sequence[int]) -> Law:
    """One item over all ticks, None where it is not shown; an item that has not come yet is never shown."""
    found: Law = {}
    for told, chance in tree_law([b - a for a, b in zip([0, *counts], counts, strict=False)], base, sigma).items():
        shown = (v if n and v >= cut else None for n, v, cut in zip(counts, told, cuts, strict=True))
        add(found, tuple(shown), chance)
    return found


# ---- [CO] Algorithm 4, sparseGumb ------------------------------------------------------------------------------------


def sparse_scales(rho: float, k: int, switches: int) -> tuple[float, float]:
    """(tau_1, tau_2): (2 k + 1/4)/(2 tau^2) = rho, tau_1^2 = s tau^2, tau_2^2 = (s + 1) tau^2."""
    square = (2 * k + (0.25 if switches else 0.0)) / (2 * rho)
    return math.sqrt(max(switches, 1) * square), math.sqrt((switches + 1) * square)


def sparse_run(
    totals: Sequence[Counts],
    switches: int,
    margin: int,
    choose: Callable[[Counts], Sequence[Any]],
    noisy: Callable[[int, Sequence[Any], Counts], list[int]],
    level: Callable[[], int],
    other: Callable[[Sequence[Any]], list[int]],
) -> list[dict[Any, int]]:
    """What every tick shows. `choose` chooses privately, `noisy` has counts of the chosen; `level`, `other` are noises.

    A new choice where one of the others, with noise, is above the least noisy count of the chosen + margin + level.
    """
    found, top, raised, left = [], [], 0, switches + 1
    for t, counts in enumerate(totals, 1):
        if t == 1:
            top, raised, left = choose(counts), level(), left - 1
        elif left > 0:
            others = [x for x in counts if x not in top]
            least = min(noisy(t, top, counts)) + margin + raised
            if any(counts[x] + z > least for x, z in zip(others, other(others), strict=True)):
                top, raised, left = choose(counts), level(), left - 1
        found.append(dict(zip(top, noisy(t, top, counts), strict=True)))
    return found
