"""What is in the memory of a pan-private estimator and what a release counts, against `tests.reference.pan_laws`.

Every cell of a table of the compiled estimator is read, after no, one, two, ... occurrences of all elements, and
compared with the law of one cell (the draws are seeded). A release without its noise must be what the laws count of
these very cells, and the noise must hide all that one element can move in it. Nothing is asked of `element_laws`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.reference import pan_laws as laws

import discreet as dc
from discreet.noise import seeded_source

PAN, ENTRIES, SHARE = dc.pan, 3000, Fraction(1, 4)


class Table:
    """An estimator, its cells (for each of its tables of the same modulus, with the share of entries), its counts."""

    def __init__(self, make, cells, counts, most=3, announced=0):
        self.make, self.cells, self.counts, self.most, self.announced = make, cells, counts, most, announced

    def estimator(self, seed, **more):
        options = {"budget": dc.Budget(2.0), "output_share": float(SHARE), **more}
        options |= {"announced_intrusions": self.announced} if self.announced else {}
        return self.make(source=seeded_source(seed), **options)

    @property
    def epsilons(self):
        return laws.split(2.0, 1 + self.announced, 1, SHARE)


TABLES = {
    "density": Table(lambda **o: PAN.Density(ENTRIES, **o), lambda e: [laws.bit(e)], laws.ones),
    "cropped mean": Table(lambda **o: PAN.CroppedMean(ENTRIES, 3, **o), lambda e: [laws.bit(e, 3)], laws.ones, 4),
    "modular, response": Table(
        lambda **o: PAN.ModularIncidence(ENTRIES, 4, shift="response", **o),
        lambda e: [laws.shifted("response", 4, e)], laws.residues(4),
    ),
    "modular, squares": Table(
        lambda **o: PAN.ModularIncidence(ENTRIES, 7, shift="squares", **o),
        lambda e: [laws.shifted("squares", 7, e)], laws.residues(7),
    ),
    "modular, paper's shift": Table(
        lambda **o: PAN.ModularIncidence(ENTRIES, 3, shift="paper", **o),
        lambda e: [laws.shifted("paper", 3, e)], laws.residues(3),
    ),
    "incidence, squares": Table(
        lambda **o: PAN.Incidence(ENTRIES, 1, max_count=6, **o),
        lambda e: [laws.shifted("squares", 7, e)], lambda state: laws.square_and_zero(7, 1)(state)[:1],
    ),
    "incidence, after an intrusion": Table(
        lambda **o: PAN.Incidence(ENTRIES, 1, max_count=6, **o),
        lambda e: [laws.shifted("squares", 7, e)], laws.square_and_zero(7, 1), 2, 1,
    ),
    "density, after an intrusion": Table(
        lambda **o: PAN.Density(ENTRIES, **o), lambda e: [laws.bit(e)], laws.ones, 2, 1
    ),
    "cropped mean, after an intrusion": Table(
        lambda **o: PAN.CroppedMean(ENTRIES, 3, **o), lambda e: [laws.bit(e, 3)], laws.ones, 2, 1
    ),
}  # fmt: skip


def memory(made):
    """Of every entry the state of its cell, as `pan_laws` writes it."""
    return [
        ((counters[0] if counters else 0, found[0], 0) if found else counters[0],)
        for counters, found in made.seen_by_intruder()
    ]


def released(made, monkeypatch):
    """What a release counts without its noise, and the scales of the noise."""
    counts, scales = [], []

    def counted(self, source, size, read):
        scales.extend([self.noise_scale] * size)
        counts.extend(np.atleast_1d(read(np.zeros(size, np.int64))).tolist())
        return read(np.zeros(size, np.int64))

    monkeypatch.setattr(type(made), "counted", counted)
    made.release()
    monkeypatch.undo()
    return counts, scales


def unlikely(seen, law):
    """The chance of counts at least this far from the law; neighbouring states of one chance are told apart."""
    states = sorted(law)
    assert {*seen} <= {*states}
    whole = sum(seen.values())
    return chisquare([seen[state] for state in states], [float(law[state]) * whole for state in states]).pvalue


def without_announcements(law):
    """States without the number of announcements, which is public."""
    found = {}
    for (looks, _), chance in law.items():
        state = tuple((part[0], part[1], 0) if isinstance(part, tuple) else part for part in looks[-1])
        found[state] = found.get(state, 0) + chance
    return found


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_has_the_law_and_a_release_counts_what_is_there(name, monkeypatch):
    table = TABLES[name]
    state, output = table.epsilons
    cells = table.cells(float(state))
    for n in range(table.most):
        made = table.estimator(40 + n)
        assert (made.epsilon_state, made.epsilon_output) == pytest.approx((float(state), float(output)), abs=1e-15)
        history = ["x"] * n
        for _ in range(n):
            made.update(np.arange(ENTRIES))
        if table.announced:
            made.announce_intrusion()
            made.update(np.arange(ENTRIES))
            history += ["announce", "x"]
        entries = memory(made)  # the last release erases it
        law = without_announcements(laws.transcript(cells, lambda _: (), (*history, "look")))
        assert unlikely(Counter(entries), law) > 1e-4
        louder = table.cells(1.5 * float(state))
        wrong = without_announcements(laws.transcript(louder, lambda _: (), (*history, "look")))
        assert table.announced or unlikely(Counter(entries), wrong) < 1e-6
        counts, scales = released(made, monkeypatch)
        told = [sum(each) for each in zip(*(table.counts(entry) for entry in entries), strict=True)]
        assert counts == told
        assert len(counts) == len(scales)
        moved = laws.moved_at_most(cells, table.counts)
        assert all(moved / scale <= output for scale in scales)
        assert any(moved / scale == output for scale in scales)
    # And together: within epsilon for all that an element may do, and not with half of the noise.
    if not table.announced:
        frames = [("look", "output"), ("output", "look")]
        assert laws.worst_loss(cells, table.counts, scales, frames, 3) <= 2.0 * (1 + 1e-9)
        quiet = [scale / 6 for scale in scales]
        assert laws.worst_loss(cells, table.counts, quiet, frames, 3) > 2.0


def test_the_paper_s_coins():
    """D0 = 1/2, D1 = 1/2 + eps/4, within eps."""
    made = PAN.Density(ENTRIES, budget=dc.Budget(1.0), response="paper", source=seeded_source(3))
    epsilon = made.epsilon_state
    cell = ("bit", Fraction(1, 2), Fraction(1, 2) + Fraction(epsilon) / 4, 1, 1)
    for n in range(2):
        if n:
            made.update(np.arange(ENTRIES))
        law = without_announcements(laws.transcript([cell], lambda _: (), (*["x"] * n, "look")))
        assert unlikely(Counter(memory(made)), law) > 1e-4
    assert laws.worst_loss([cell], lambda _: (), (), [("look",)], 2) <= epsilon


@pytest.mark.parametrize("method", ["two_tables", "counters"])
def test_tables_of_a_heavy_fraction(method, monkeypatch):
    """Every element is in one table: of k or of floor(k/(1 + rho)); or of 1, 2, 4, ... up to the largest count.

    The first counts ones in each table. The second counts signs where a counter is in [floor(k/(1 + rho)), k), in the
    tables that have these counters.
    """
    state, output = laws.split(2.0, 1, 1, SHARE)
    more = {"rho": 1.0} if method == "two_tables" else {"rho": 2.0, "max_count": 4}
    sizes = {4: 4000, 2: 2000} if method == "two_tables" else {4: 2000, 2: 2000, 1: 2000}  # in proportion; evenly
    k = 4 if method == "two_tables" else 3
    for n in (0, 1, 3):
        made = PAN.HeavyFraction(6000, k, budget=dc.Budget(2.0), method=method, output_share=0.25,
                                 source=seeded_source(5), **more)  # fmt: skip
        for _ in range(n):
            made.update(np.arange(6000))
        entries, first, told = memory(made), 0, []
        for modulus, size in sizes.items():
            own = entries[first : first + size]
            cell = laws.bit(float(state), modulus)
            law = without_announcements(laws.transcript([cell], lambda _: (), (*["x"] * n, "look")))
            assert unlikely(Counter(own), law) > 1e-4
            counted = laws.ones if method == "two_tables" else laws.sign_below(3, 1)
            told += [sum(counted(entry)[0] for entry in own)] if method == "two_tables" or modulus >= k else []
            first += size
        counts, scales = released(made, monkeypatch)
        assert counts == told
        assert set(scales) == {(1 if method == "two_tables" else 2) / output}
        assert laws.moved_at_most([laws.bit(1.0, 4)], counted) == (1 if method == "two_tables" else 2)


def test_the_ladder_of_tables(monkeypatch):
    """Every element is in every table with its part of epsilon; noise is for the sum of all weights."""
    made = PAN.HeavyFraction(
        ENTRIES, 2, budget=dc.Budget(2.0), method="ladder", max_count=2, output_share=0.25, source=seeded_source(5)
    )
    state, output = laws.split(2.0, 1, 1, SHARE)
    bits_of = np.array([found for _, found in made.seen_by_intruder()])
    tables = bits_of.shape[1]
    unseen = 1 - laws.bit(float(state) / tables)[2]
    assert np.abs(bits_of.mean(axis=0) - float(unseen)).max() < 4.5 * (0.25 / ENTRIES) ** 0.5
    assert not np.abs(bits_of.mean(axis=0) - float(laws.bit(float(state))[1])).max() < 4.5 * (0.25 / ENTRIES) ** 0.5
    (count,), (scale,) = released(made, monkeypatch)
    # The weights of the tables, from what a release counts of three states of the memory.
    sums, weights = [], []
    for seed in range(tables + 2):
        other = PAN.HeavyFraction(ENTRIES, 2, budget=dc.Budget(2.0), method="ladder", max_count=2, output_share=0.25,
                                  source=seeded_source(seed))  # fmt: skip
        weights.append(np.array([found for _, found in other.seen_by_intruder()]).sum(axis=0))
        sums.append(released(other, monkeypatch)[0][0])
    solved, *_ = np.linalg.lstsq(np.array(weights, float), np.array(sums, float), rcond=None)
    assert np.allclose(solved, np.rint(solved), atol=1e-3 * np.abs(solved).max())
    moved = int(np.abs(np.rint(solved)).sum())
    assert count == int(bits_of.sum(axis=0) @ np.rint(solved))
    assert moved <= scale * output <= moved * (1 + 1e-3)


@pytest.mark.parametrize("announced", [0, 1])
def test_primes_of_an_incidence(announced, monkeypatch):
    """Counters of an element share epsilon, and each histogram has noise for 2 in every table."""
    options = {"budget": dc.Budget(2.0), "output_share": 0.25, "announced_intrusions": announced}
    made = PAN.Incidence(ENTRIES, 1, max_count=6, method="primes", source=seeded_source(5), **options)
    state, output = laws.split(2.0, 1 + announced, 1, SHARE)
    if announced:
        made.announce_intrusion()
    entries = [counters for counters, _ in made.seen_by_intruder()]
    tables = len(entries[0])
    for table in range(tables):
        seen = Counter((each[table],) for each in entries)
        prime = max(seen)[0] + 1
        cell = laws.shifted("response", prime, float(state) / tables)
        history = ("announce", "look") if announced else ("look",)
        law = without_announcements(laws.transcript([cell], lambda _: (), history))
        assert unlikely(seen, law) > 1e-4
    counts, scales = released(made, monkeypatch)
    told = list(itertools.chain(*([sum(each[table] == at for each in entries)
                                   for at in range(max(each[table] for each in entries) + 1)]
                                  for table in range(tables))))  # fmt: skip
    assert counts == told
    assert set(scales) == {2 * tables / output}


@pytest.mark.parametrize("kind", ["distinct count", "occurrences"])
def test_buckets(kind, monkeypatch):
    """Before anything came, and where so much came that every bucket of the first level was seen."""
    epsilons, buckets = laws.split(2.0, 1, 1, SHARE), 1024
    state, output = epsilons
    options = {"budget": dc.Budget(2.0), "output_share": 0.25, "buckets": buckets, "levels": 8}
    make = (lambda seed: PAN.DistinctCount(source=seeded_source(seed), **options)) if kind == "distinct count" else (
        lambda seed: PAN.Occurrences(3, source=seeded_source(seed), **options))  # fmt: skip
    modulus = 1 if kind == "distinct count" else 3
    statistic = laws.ones if modulus == 1 else laws.signs_by_counter(3)
    cell = laws.bit(float(state), modulus)
    for n, seed in ((0, 3), (3, 4)):
        made = make(seed)
        for _ in range(n):
            made.update(np.arange(40_000))
        entries = memory(made)
        first = entries if n == 0 else entries[:buckets]
        law = without_announcements(laws.transcript([cell], lambda _: (), (*["x"] * n, "look")))
        assert unlikely(Counter(first), law) > 1e-4
        counts, scales = released(made, monkeypatch)
        told = []
        for level in range(8):
            own = entries[level * buckets : (level + 1) * buckets]
            told += [sum(each) for each in zip(*map(statistic, own), strict=True)]
        assert counts == told
        moved = laws.moved_at_most([cell], statistic)
        assert set(scales) == {moved / output}
