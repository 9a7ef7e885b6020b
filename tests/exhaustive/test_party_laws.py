"""What parties say, against laws of their own: `tests.reference.party_laws`.

Every message is opened, and the law of what it says is that of all that its party may draw. What the public hash
functions make of an item is taken from a party without noise, and must be what such functions make: one cell a row.
Twins: half of the noise, a response that is more often true, one lower in a cut, a level that is not paid for.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.reference import party_laws as laws
from tests.reference.branches import Silent, law_of
from tests.reference.counter_laws import apart, noise
from tests.reference.misra_gries import misra_gries, stored
from tests.reference.sabotage import cut_one_lower, half_the_noise, sabotaged

import discreet as dc
from discreet.multiparty import (
    GridHierarchy,
    HadamardResponse,
    HierarchicalStream,
    Hierarchy,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
    Separation,
    Stream,
)
from discreet.noise import RandomSource
from discreet.pan.responses import Response
from discreet.published import InnerProductCounter, MergedMisraGries, MergedMisraGriesStream, MergedSketch

APART = 1e-5


class Truthful(Silent, RandomSource):
    """No noise, true answers, all steps sampled."""

    def bernoulli(self, probability, size=None):
        return np.ones(size, np.int64)


def law_said(protocol, items, read, cutoff=1e-7):
    def run(source):
        return read(protocol.open(protocol.party(0, source=source).encode(items))[1])

    return law_of(run, cutoff, RandomSource)


def same(told, law):
    return apart(told.mass, law) <= told.missing + APART


def check(protocol, items, law, read, twins, cutoff=1e-7):
    assert same(law_said(protocol, items, read, cutoff), law)
    for twin in twins:
        assert not same(law_said(twin, items, read, cutoff), law)


def values(reports):
    return tuple(reports.values.tolist())


def flat(cells):
    return tuple(np.asarray(cells).ravel().tolist())


def one_cell_each(vectors, rows=1):
    """Of each item one entry of 1 or -1 in every row, and none else: what moves by 2 a row in l1."""
    assert all(sorted(map(abs, vector)) == [0] * (len(vector) - rows) + [1] * rows for vector in vectors)
    return vectors


# ---- reports ---------------------------------------------------------------------------------------------------------


def without_noise(protocol, items, read):
    return read(protocol.open(protocol.party(0, source=Truthful()).encode(items))[1])


@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_hadamard_response(epsilon):
    made = HadamardResponse("r", dc.Budget(epsilon), 4)
    for number in range(3):  # of the reports of a party
        truth = [without_noise(made, [*[0] * number, x], values)[number] for x in range(4)]
        assert laws.is_a_row_of_hadamard(truth)
    items = [2, 0, 3]
    truths = without_noise(made, items, values)
    law = laws.reports(truths, 2, epsilon)
    truer = sabotaged(made, keep=lambda keep: keep + Fraction(1, 50))
    check(made, items, law, values, [truer])
    # A bit that is not a row of the matrix would be a function of the item all the same: privacy is the response's.
    assert not laws.is_a_row_of_hadamard([1, 0, 0, 0])


@pytest.mark.parametrize("epsilon", [0.3, 1.5, 3.0])
def test_local_hashing(epsilon):
    made = LocalHashing("r", dc.Budget(epsilon), 5)
    g = laws.best_buckets(epsilon)
    assert made.buckets == g
    items = [2, 4]
    truths = without_noise(made, items, values)
    law = laws.reports(truths, g, epsilon)
    truer = sabotaged(made, keep=lambda keep: keep + (1 - keep) / 20)
    check(made, items, law, values, [truer])


def test_a_row_of_one_item():
    for epsilon in (0.5, 2.0, 5.0):
        assert LocalSketch("r", dc.Budget(epsilon), 3).columns == laws.row_of_one(epsilon)
    made = LocalSketch("r", dc.Budget(4.0), 3, columns=2)
    read = lambda reports: flat(reports.values)  # noqa: E731
    for item in range(3):
        (cells,) = one_cell_each([without_noise(made, [item], read)])
        law = laws.cells_law(cells, noise("laplace", laws.sketch_scale(Fraction(4), 1)))
        check(made, [item], law, read, [half_the_noise(made)])


@pytest.mark.parametrize("kind", [HadamardResponse, LocalHashing])
@pytest.mark.parametrize(("epsilon", "reports", "delta"), [(1.0, 40, 1e-3), (2.0, 60, 1e-4), (4.0, 30, 1e-2)])
def test_shuffled_reports_cost_no_less_than_a_batch_shows(kind, epsilon, reports, delta):
    """What is stated covers a batch in which all have one public function; half of it does not."""
    made = kind("r", dc.Budget(epsilon), 2, shuffled=reports)
    g = 2 if kind is HadamardResponse else laws.best_buckets(epsilon)
    keep = math.exp(epsilon) / (math.exp(epsilon) + g - 1)
    stated = made.shuffled_budget(delta)
    assert stated.epsilon <= epsilon
    assert laws.shuffled_delta(g, keep, reports, stated.epsilon) <= delta
    assert laws.shuffled_delta(g, keep, reports, stated.epsilon / 2) > delta or stated.epsilon == epsilon
    assert laws.shuffled_delta(g, keep, reports, 0.3 * stated.epsilon) > delta


# ---- sketches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "rows"),
    [
        (IndependentSketches("r", dc.Budget(4.0), 3, items_per_column=1.0, max_items=4), 1),
        (IndependentSketches("r", dc.Budget(9.0), 3, items_per_column=4.0, rows=3, max_items=4), 3),
        (MergedSketch("r", dc.Budget(9.0), 3, columns=1, rows=3), 3),
        (MergedSketch("r", dc.Budget(4.0), 3, columns=2, rows=1), 1),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "domain") else str(value),
)
def test_sketches_of_parties(made, rows):
    epsilon = Fraction(made.budget.epsilon)
    scale = laws.sketch_scale(epsilon, rows)
    assert made.scale == scale
    for items in ([1, 2], [0, 0]):
        if isinstance(made, IndependentSketches):
            assert made.width(len(items)) == laws.width(2, Fraction(made.items_per_column))
        # A party of [x, x, ..., x] has the cells of x as often as it has items.
        size = len(items)
        each = [tuple(c // size for c in without_noise(made, [item] * size, flat)) for item in items]
        cells = laws.summed_cells(one_cell_each(each, rows), len(each[0]))
        check(made, items, laws.cells_law(cells, noise("laplace", scale)), flat, [half_the_noise(made)])


def entries(content):
    sent = zip(content.places.tolist(), content.counts.tolist(), strict=True)
    return tuple(sent), content.width, flat(content.cells)


@pytest.mark.parametrize("items", [[0], [0, 0], [0, 1]], ids=str)
def test_heavy_and_light_items_apart(items):
    options = {"threshold": 1, "items_per_entry": 2, "items_per_column": 1.0, "max_items": 4}
    made = Separation("r", dc.Budget(20.0), 2, separation_share=0.5, **options)
    counts = {j: items.count(j) for j in set(items)}

    def sketch(light, columns):
        """The cells of light items, by the public functions, which a party without noise shows."""
        words = np.array([j for j, count in light.items() for _ in range(count)], np.uint64)
        cells = made.light_cells(words, np.zeros(0, np.int64), columns, 0)
        return tuple(cells.tolist())

    for columns, item in itertools.product((1, 2), range(2)):
        one_cell_each([sketch({item: 1}, columns)])
    law = laws.separation_law(counts, 2, (Fraction(10), Fraction(10)), 1, 2, Fraction(1), sketch)
    twins = [sabotaged(made, **{name: lambda scale: scale / 2}) for name in ("heavy_scale", "light_scale")]
    twins += [sabotaged(made, separation_scale=lambda scale: scale * 2), sabotaged(made, threshold=lambda t: t - 1)]
    check(made, items, law, entries, twins if items == [0] else [], 1e-8)


def numbered(content):
    places, counters = content
    return tuple(zip(np.asarray(places).tolist(), np.asarray(counters).tolist(), strict=True))


@pytest.mark.parametrize(("capacity", "items"), [(1, [0, 0, 0, 1]), (2, [0, 0, 1]), (2, [0, 0, 0, 1, 2])])
def test_counters_of_parties(capacity, items):
    made = MergedMisraGries("r", dc.Budget(6.0), 3, capacity=capacity)
    scale = Fraction(laws.replacement(capacity, len(items) + 9), 6)
    assert (made.scale, made.cut) == (scale, laws.usual_cut(scale, 3))
    for epsilon, universe in ((0.1, 10), (1.0, 10**6), (3.0, 2)):
        other = MergedMisraGries("r", dc.Budget(epsilon), universe, capacity=4)
        assert other.cut == laws.usual_cut(Fraction(5) / Fraction(epsilon), universe)
    counters = stored(misra_gries(items, capacity))
    law = laws.counters_law(counters, 3, scale, made.cut)
    check(made, items, law, numbered, [half_the_noise(made), cut_one_lower(made)])


# ---- levels ----------------------------------------------------------------------------------------------------------


def all_levels(read):
    return lambda content: tuple(None if each is None else read(each[1]) for each in content)


SKETCHED = {"protocol": "IndependentSketches", "branching": 2}
INTERVALS = Hierarchy("r", dc.Budget(9.0), 4, **SKETCHED, options={"items_per_column": 1.0})
BOXES = GridHierarchy("r", dc.Budget(9.0), [4, 2], **SKETCHED, options={"items_per_column": 1.0, "max_items": 4})
OF_INTERVALS = [(x, laws.prefixes(x, 4, 2)) for x in range(4)]
OF_BOXES = [
    ((x, y), [*itertools.product(laws.prefixes(x, 4, 2), laws.prefixes(y, 2, 2))])
    for x, y in itertools.product(range(4), range(2))
]


@pytest.mark.parametrize(("made", "known"), [(INTERVALS, OF_INTERVALS), (BOXES, OF_BOXES)], ids=["intervals", "boxes"])
def test_every_level_is_paid_for(made, known):
    """One cell of each level, the same for items of one interval; noise of 2L/epsilon on all of them."""
    levels = len(known[0][1])
    assert len(made.levels) == levels
    cells = {item: without_noise(made, [item], all_levels(flat)) for item, _ in known}
    of_interval = {}
    for item, intervals in known:
        for level, interval in enumerate(intervals):
            (own,) = one_cell_each([cells[item][level]])
            assert of_interval.setdefault((level, interval), own) == own
    two = 2 if made is INTERVALS else 1
    items = [known[0][0], known[-1][0]][:two]
    doubled = [without_noise(made, [item] * two, all_levels(flat)) for item in items]
    sums = [
        laws.summed_cells([tuple(c // two for c in each[level]) for each in doubled], len(doubled[0][level]))
        for level in range(levels)
    ]
    table = noise("laplace", levels * laws.sketch_scale(Fraction(9), 1))
    assert all(protocol.scale >= levels * laws.sketch_scale(Fraction(9), 1) for protocol in made.by_level)
    law = laws.together([laws.cells_law(each, table) for each in sums])
    read = all_levels(flat)
    unpaid = sabotaged(made, by_level=lambda by: tuple(half_the_noise(protocol) for protocol in by))
    if made is INTERVALS:  # four cells of two levels: their law is wide, so one level at a time
        told = law_said(made, items, lambda content: (read(content)[0],))
        assert same(told, laws.together([laws.cells_law(sums[0], table)]))
    else:
        check(made, items, law, read, [unpaid])


def test_a_report_is_about_one_level():
    """Which it is says nothing, and there it has the whole epsilon: a split would be seen."""
    made = Hierarchy("r", dc.Budget(1.2), 4, protocol="HadamardResponse", branching=2)

    def read(content):
        (level,) = [level for level, said in enumerate(content) if said is not None]
        return level, values(content[level][1])

    class Level(Truthful):
        """True answers about a level."""

        def uniform_integers(self, high, size=None):
            assert high == 2
            return np.full(size, self.level)

    for item in range(4):
        truths = []
        for level in range(2):
            source = Level()
            source.level = level
            content = made.open(made.party(0, source=source).encode([item]))[1]
            assert read(content)[0] == level
            truths.append(read(content)[1])
        law = laws.level_of_reports(2, [laws.reports(truth, 2, 1.2) for truth in truths])
        check(made, [item], law, read, [sabotaged(made, by_level=lambda by: tuple(
            sabotaged(protocol, keep=lambda keep: keep + Fraction(1, 50)) for protocol in by))])  # fmt: skip


# ---- streams ---------------------------------------------------------------------------------------------------------


def packet_of(stream, items, source):
    packet = stream.open(stream.party(0, source=source).feed(items))[1]
    answers = tuple(zip(packet.steps.tolist(), packet.answers.tolist(), strict=True))
    blocks = {(block.level, block.j): told for block, told in packet.blocks.items()}
    return answers, blocks


def sent(stream, items, cutoff=1e-7):
    def run(source):
        answers, blocks = packet_of(stream, items, source)
        return answers, tuple((key, numbered(told) if isinstance(told, tuple) else flat(told))
                              for key, told in sorted(blocks.items()))  # fmt: skip

    return law_of(run, cutoff, RandomSource)


STREAMS = {
    "samples and blocks": (
        Stream("r", dc.Budget(9.0), 3, epoch_steps=2, horizon=2, rows=1, columns=1, sample_share=1 / 3),
        [1, None],
    ),
    "two levels": (Stream("r", dc.Budget(30.0), 2, epoch_steps=1, horizon=3, rows=1, columns=1), [0, 1]),
    "nothing arrives": (Stream("r", dc.Budget(8.0), 2, epoch_steps=2, horizon=4, rows=1, columns=1,
                               sample_share=0.5), [None, None]),
    "intervals": (HierarchicalStream("r", dc.Budget(12.0), 4, epoch_steps=2, horizon=2, rows=1, columns=1,
                                     sample_share=0.25, branching=2), [3, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_all_that_a_stream_sends(name):
    made, items = STREAMS[name]
    steps, epoch, epsilon = len(items), made.epoch_steps, Fraction(made.budget.epsilon)
    tracks = 2 if isinstance(made, HierarchicalStream) else 1
    levels = laws.levels_of(-(-made.horizon // epoch))
    assert made.levels == levels
    share = Fraction(made.sample_share) if epoch > 1 else Fraction(0)
    scale = laws.sketch_scale(laws.block_epsilon(epsilon, share, levels, tracks), 1)
    rate = min(Fraction(1), Fraction(tracks, epoch)) if share else Fraction(0)
    answers, blocks = packet_of(made, items, Truthful())
    truths = [None if item is None else dict(answers).get(step) for step, item in enumerate(items, 1)]
    assert [*sorted(blocks)] == [(level, index) for level, index, _ in laws.blocks_of(steps, epoch, levels)]
    for level, index, inside in laws.blocks_of(steps, epoch, levels):
        held = sum(items[step] is not None for step in inside)
        assert np.abs(blocks[level, index]).sum() <= held * tracks  # two that meet may cancel

    def law(epsilon_s=float(share * epsilon), scale=scale):
        table = noise("laplace", scale)
        cells = [
            laws.mapped(laws.cells_law(flat(blocks[key]), table), lambda t, k=key: (k, t)) for key in sorted(blocks)
        ]
        return laws.together([laws.samples_law(truths if share else [], rate, epsilon_s), laws.together(cells)])

    told = sent(made, items)
    assert same(told, law())
    assert not same(told, law(scale=scale / 2))  # a party that draws half of what it should
    if share and any(item is not None for item in items):
        assert not same(told, law(epsilon_s=1.2 * float(share * epsilon)))


@pytest.mark.parametrize(("capacity", "items"), [(1, [0, 0]), (2, [0, 0])])
def test_counters_over_a_stream(capacity, items):
    """One block of two steps; with two counters they are exact, and a replacement moves 2, not 3."""
    made = MergedMisraGriesStream("r", dc.Budget(6.0), 3, epoch_steps=2, horizon=2, capacity=capacity, sample_share=0.0)
    scale = Fraction(laws.replacement(capacity, 2), 6)
    law = laws.counters_law(stored(misra_gries(items, capacity)), 3, scale, laws.usual_cut(scale, 3))
    law = laws.mapped(law, lambda told: ((), (((0, 0), told),)))
    assert same(sent(made, items), law)

    class TooQuiet(MergedMisraGriesStream):
        def sensitivity(self, level):
            return Fraction(super().sensitivity(level)) / 2

    options = {"epoch_steps": 2, "horizon": 2, "capacity": capacity, "sample_share": 0.0}
    assert not same(sent(TooQuiet("r", dc.Budget(6.0), 3, **options), items), law)


def test_votes_and_inner_products():
    votes, vectors = [(0, 1), (1, 0), (0, 1), (0, 0)], [(1, 0), (1, 1)]

    def run(source, wrong=None):
        made = InnerProductCounter(2, budget=dc.Budget(1.1), source=source)
        made.response = wrong or made.response
        made.vote(*map(list, zip(*votes, strict=True)))
        made.update(vectors)
        ones, _, count = made.answers
        return tuple(ones), count

    law = laws.inner_product_law(votes, vectors, 2, 1.1)
    assert same(law_of(run, 0.0, RandomSource), law)
    truer = Response.of("tight", Fraction(13, 10))
    assert not same(law_of(lambda source: run(source, truer), 0.0, RandomSource), law)
    assert math.fsum(law.values()) == pytest.approx(1.0)
