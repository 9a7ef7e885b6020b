"""What one party's messages say: their laws, written out from docs/privacy/multiparty.md and the papers.

Nothing of the package is imported here, and nothing of its audit. A law is {what is said: probability}. Hash functions
are public: what they make of an item is given to the laws, as bits, buckets, or cells (a row of them for each item).

[MDP] Huang, Qiu, Yi, Cormode. [LT] Lebeda and Tetek. [PAN] Dwork, Naor, Pitassi, Rothblum, Yekhanin.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.reference.counter_laws import Law, Table, add, at_least, least, noise


def together(laws: Sequence[Law]) -> Law:
    """Independent parts, as a tuple of what each says."""
    found: Law = {(): 1.0}
    for law in laws:
        found = {(*told, more): one * two for (told, one), (more, two) in itertools.product(found.items(), law.items())}
    return found


def mapped(law: Law, change: Callable[[Any], Any]) -> Law:
    found: Law = {}
    for told, chance in law.items():
        add(found, change(told), chance)
    return found


# ---- randomised response: HRR and OLH --------------------------------------------------------------------------------


def response(truth: int, choices: int, epsilon: float) -> Law:
    """The truth with e^epsilon/(e^epsilon + g - 1), every other choice with 1/(e^epsilon + g - 1)."""
    whole = math.exp(epsilon) + choices - 1
    return {choice: (math.exp(epsilon) if choice == truth else 1.0) / whole for choice in range(choices)}


def reports(truths: Sequence[int], choices: int, epsilon: float) -> Law:
    """A report for each item, each by itself."""
    return together([response(truth, choices, epsilon) for truth in truths])


def shuffled_delta(choices: int, keep: float, reports: int, epsilon: float) -> float:
    """Of reports in an unknown order, one is replaced: delta of how many there are of each answer, at an epsilon.

    All have the same public function, g choices; of the others some say what one of the two items says, in any number.
    A lower bound for all others, which may say other things.
    """
    other = (1 - keep) / (choices - 1)
    worst = 0.0
    for ones in range(reports):
        # (reports that say the first choice, reports that say the second): the rest say something else.
        counts: dict[tuple[int, int], float] = {(0, 0): 1.0}
        for first in [True] * ones + [False] * (reports - 1 - ones):
            a, b = (keep, other) if first else (other, keep)
            longer: dict[tuple[int, int], float] = {}
            for (x, y), chance in counts.items():
                for key, p in (((x + 1, y), a), ((x, y + 1), b), ((x, y), 1 - a - b)):
                    longer[key] = longer.get(key, 0.0) + chance * p
            counts = longer
        both = []
        for a, b in ((keep, other), (other, keep)):
            law: dict[tuple[int, int], float] = {}
            for (x, y), chance in counts.items():
                for key, p in (((x + 1, y), a), ((x, y + 1), b), ((x, y), 1 - a - b)):
                    law[key] = law.get(key, 0.0) + chance * p
            both.append(law)
        for one, two in (both, both[::-1]):
            worst = max(worst, math.fsum(max(0.0, p - math.exp(epsilon) * two.get(key, 0.0)) for key, p in one.items()))
    return worst


def is_a_row_of_hadamard(bits: Sequence[int]) -> bool:
    """Whether the bits are the parities of r & x, x = 0, 1, ..., for some r ([MDP] 2.1)."""
    size = 1 << (len(bits) - 1).bit_length()
    return any(all(bit == (r & x).bit_count() % 2 for x, bit in enumerate(bits)) for r in range(size))


def best_buckets(epsilon: float) -> int:
    """g beside e^epsilon + 1 with the least variance q (1 - q)/(p - q)^2 of a report about another item, q = 1/g."""

    def variance(g: int) -> float:
        p, q = math.exp(epsilon) / (math.exp(epsilon) + g - 1), 1 / g
        return q * (1 - q) / (p - q) ** 2

    return min((math.floor(math.exp(epsilon) + 1), math.ceil(math.exp(epsilon) + 1)), key=variance)


# ---- sketches --------------------------------------------------------------------------------------------------------

Cells = Sequence[int]


def summed_cells(items: Sequence[Cells], size: int) -> list[int]:
    """One row after the other, sign times count of every item in its cells."""
    return [sum(cells[place] for cells in items) for place in range(size)]


def cells_law(cells: Cells, table: Table) -> Law:
    """Noise on every cell, also on those that are 0."""
    return together([{cell + z: chance for z, chance in table.items()} for cell in cells])


def sketch_scale(epsilon: Fraction, rows: int) -> Fraction:
    """A replacement moves a row by 2 in l1, the sketch by 2R."""
    return 2 * rows / epsilon


def row_of_one(epsilon: float) -> int:
    """[MDP] 3.2: s = ceil((e^(eps/2) - 1)^2/e^(eps/2)) columns."""
    root = math.exp(epsilon / 2)
    return max(1, math.ceil((root - 1) ** 2 / root))


def width(items: int, per_column: Fraction) -> int:
    return max(1, math.ceil(items / per_column))


def separation_law(
    counts: Mapping[int, int],
    universe: int,
    epsilons: tuple[Fraction, Fraction],
    threshold: int,
    per_entry: int,
    per_column: Fraction,
    sketch: Callable[[Mapping[int, int], int], Cells],
) -> Law:
    """[MDP] 3.3 as docs/privacy/multiparty.md corrects it: {(entries, width, cells): chance}, one row of cells.

    `epsilons` are e_s and e_r; `sketch(counts of light items, width)` their cells.
    """
    first, again = (noise("laplace", 2 / epsilon) for epsilon in epsilons)
    n, found = sum(counts.values()), {}
    for chosen in itertools.product((False, True), repeat=universe):
        heavy = [j for j in range(universe) if chosen[j]]
        passing = [at_least(first, threshold + 1 - counts.get(j, 0)) for j in range(universe)]
        chance = math.prod(p if is_in else 1 - p for p, is_in in zip(passing, chosen, strict=True))
        light = {j: count for j, count in counts.items() if j not in heavy}
        for noisy in itertools.product(*({counts.get(j, 0) + z: p for z, p in again.items()}.items() for j in heavy)):
            values = [value for value, _ in noisy]
            columns = width(min(max(n - sum(values), 0), n), per_column)
            sent = [sampled(j, value, per_entry) for j, value in zip(heavy, values, strict=True)]
            each = chance * math.prod(p for _, p in noisy)
            if each < 1e-12:
                continue
            for entries, one in together(sent).items():
                told = tuple(entry for entry in entries if entry is not None)
                key = told, columns
                found[key, chosen] = found.get((key, chosen), 0.0) + each * one
        # The cells given the width: the same whatever the noise of the heavy items was.
        for (told, columns), chosen_here in [key for key in found if key[1] == chosen]:
            share = found.pop(((told, columns), chosen_here))
            for cells, two in cells_law(sketch(light, columns), again).items():
                add(found, (told, columns, cells), share * two)
    return found


def sampled(item: int, value: int, per_entry: int) -> Law:
    """Step 4: sent with probability min(1, |x^|/L), as x^, or as sign * L where |x^| < L."""
    chance = min(1.0, abs(value) / per_entry)
    told = value if abs(value) >= per_entry else int(math.copysign(per_entry, value))
    return {None: 1.0} if not chance else {(item, told): chance, **({None: 1 - chance} if chance < 1 else {})}


# ---- Misra-Gries of a party ------------------------------------------------------------------------------------------


def usual_cut(scale: Fraction, universe: int) -> int:
    """The least cut that one item of count 0 at most passes on average: u q^cut/(1 + q) <= 1; 1 at least."""
    q = math.exp(-1 / float(scale))
    return max(1, least(lambda cut: universe * q**cut / (1 + q) <= 1))


def replacement(counters: int, most_items: int) -> int:
    """How far a replacement moves k counters in l1: k + 1 ([LT] Lemma 8); 2 where there is always one free."""
    return 2 if counters >= most_items else counters + 1


def counters_law(counters: Mapping[int, int], universe: int, scale: Fraction, cut: int) -> Law:
    """Noise on every item of the universe, and those at the cut or above: {((item, number), ...): chance}."""
    table, parts = noise("laplace", scale), []
    for item in range(universe):
        told: Law = {}
        for z, chance in table.items():
            value = counters.get(item, 0) + z
            add(told, (item, value) if value >= cut else None, chance)
        parts.append(told)
    return mapped(together(parts), lambda entries: tuple(entry for entry in entries if entry is not None))


# ---- levels ----------------------------------------------------------------------------------------------------------


def prefixes(item: int, size: int, branching: int) -> list[int]:
    """The interval of each level, from the coarsest down: ceil(log_d u) levels."""
    levels = 1
    while branching**levels < size:
        levels += 1
    return [item // branching ** (levels - 1 - level) for level in range(levels)]


def level_of_reports(levels: int, by_level: Sequence[Law]) -> Law:
    """A report goes to one level, drawn before the item is looked at, with the whole epsilon there."""
    return {(level, told): p / levels for level in range(levels) for told, p in by_level[level].items()}


# ---- streams ---------------------------------------------------------------------------------------------------------


def blocks_of(steps: int, epoch: int, levels: int) -> list[tuple[int, int, range]]:
    """(level, index, steps) of all blocks that are complete after so many steps: 2^l epochs each."""
    found = []
    for level in range(levels):
        wide = epoch << level
        found += [(level, i, range(i * wide, (i + 1) * wide)) for i in range(steps // wide)]
    return found


def levels_of(epochs: int) -> int:
    """max(1, ceil(log2 m)) for m epochs, counted."""
    levels = 1
    while 2**levels < epochs:
        levels += 1
    return levels


def block_epsilon(epsilon: Fraction, sample_share: Fraction, levels: int, tracks: int = 1) -> Fraction:
    """What one sketch of a block has: a step is in one block of each level, and in one sketch of it a track."""
    return epsilon * (1 - sample_share) / (levels * tracks)


def samples_law(truths: Sequence[int | None], rate: Fraction, epsilon: float) -> Law:
    """{((step, answer), ...): chance}: each step by itself, and of nothing a fair coin."""
    parts = []
    for step, truth in enumerate(truths, 1):
        answer = {0: 0.5, 1: 0.5} if truth is None else response(truth, 2, epsilon)
        parts.append({None: 1 - float(rate), **{(step, bit): float(rate) * p for bit, p in answer.items()}})
    return mapped(together(parts), lambda told: tuple(each for each in told if each is not None))


# ---- the counter of [PAN] section 7 ----------------------------------------------------------------------------------


def inner_product_law(
    votes: Sequence[tuple[int, int]], vectors: Sequence[Sequence[int]], length: int, epsilon: float
) -> Law:
    """{(answers of 1 for each position, answers of 1 to <V, X>): chance}; V_i is the majority of the answers."""
    found: Law = {}
    for answers, one in together([response(bit, 2, epsilon) for _, bit in votes]).items():
        ones, cast = [0] * length, [0] * length
        for (position, _), answer in zip(votes, answers, strict=True):
            ones[position] += answer
            cast[position] += 1
        V = [int(2 * a > b) for a, b in zip(ones, cast, strict=True)]
        products = [sum(v * x for v, x in zip(V, X, strict=True)) % 2 for X in vectors]
        for told, two in together([response(product, 2, epsilon) for product in products]).items():
            add(found, (tuple(ones), sum(told)), one * two)
    return found
