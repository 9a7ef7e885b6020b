"""Rectangles in several dimensions: what is sent, and what is made of it. Noise is seeded, or so small that it is 0."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DataError, MessageError, ParameterError
from discreet.multiparty import GridHierarchy, Strings, protocol_from_dict
from discreet.multiparty.estimates import Estimates
from discreet.multiparty.grid import boxes_of, grid_universe
from discreet.multiparty.post import Questions
from discreet.multiparty.wire import Message, pack_parts, unpack_parts
from discreet.noise import seeded_source

EXACT = dc.Budget(100_000.0)  # noise is 0 but for a probability below e^-1000
WIDE = {"items_per_column": 0.01, "max_items": 10_000}  # collisions are rare, and fixed by the round


def heard(grid, tables, seed=0):
    aggregator = grid.aggregator(max_reports=None)
    for number, table in enumerate(tables):
        aggregator.receive(grid.party(number, source=seeded_source(seed + number)).encode(table))
    return aggregator


@pytest.fixture(scope="module")
def exact():
    rng = np.random.default_rng(5)
    tables = [np.c_[np.minimum(rng.zipf(1.3, 100), 39), rng.integers(-3, 27, 100)] for _ in range(3)]
    grid = GridHierarchy("exact", EXACT, (40, range(-3, 27)), branching=4, options=WIDE)
    return np.concatenate(tables), heard(grid, tables)


@pytest.mark.parametrize(
    ("sizes", "branching", "epsilon"),
    [((2, 2), 2, 1.0), ((100, 30), 4, 0.1), ((9, 9, 9), 3, 3.3), ((2**31, 2**31), 16, 1e-3)],
)
def test_the_combinations_share_the_budget_and_no_more(sizes, branching, epsilon):
    grid = GridHierarchy("r", dc.Budget(epsilon), sizes, branching=branching, options={"items_per_column": 100})
    spent = sum(Fraction(protocol.epsilon) for protocol in grid.by_level)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**12)) <= spent <= Fraction(epsilon)
    assert len(grid.levels) == np.prod([len(levels) for levels in grid.levels.dimensions]) == len(grid.by_level)
    assert len({protocol.round_id for protocol in grid.by_level}) == len(grid.levels)  # noise and hashes of their own


@pytest.mark.parametrize(
    ("universe", "widths"),
    [
        ((20, 4), [(16, 4, 1), (1,)]),
        ((2**31, 2**31), [tuple(16**n for n in reversed(range(8)))] * 2),  # 16 parts: 64 combinations
        ((20, Strings("ab", 2)), [(16, 4, 1), (3, 1)]),
    ],
)
def test_the_usual_parts(universe, widths):
    boxes = GridHierarchy("r", dc.Budget(1.0), universe, options={"items_per_column": 100}).levels
    assert [levels.widths for levels in boxes.dimensions] == widths


@pytest.mark.parametrize(("sizes", "branching"), [((5, 7), 2), ((9, 4), 3), ((4, 3, 2), 2)])
def test_every_rectangle_is_covered_once(sizes, branching):
    """All rectangles; boxes of a level hold the words whose node they are."""
    boxes = boxes_of(grid_universe(sizes), branching)
    words = np.arange(np.prod(sizes), dtype=np.uint64)
    places = np.array(np.unravel_index(words.astype(int), sizes))
    nodes = [boxes.nodes(words, level).astype(int) for level in range(len(boxes))]
    assert (nodes[-1] == words).all()
    for level, each in enumerate(nodes):
        assert each.max() == boxes.count(level) - 1
    rests = set()
    for sides in itertools.product(*(itertools.combinations(range(size + 1), 2) for size in sizes)):
        low, high = np.array(sides).T
        cover, rest = boxes.cover(low.tolist(), high.tolist())
        times = sum(np.bincount(part, minlength=len(words))[each] for part, each in zip(cover, nodes, strict=True))
        inside = ((places >= low[:, None]) & (places < high[:, None])).all(axis=0)
        assert (times == (inside ^ rest)).all()
        assert sum(map(len, cover)) <= boxes.most
        rests.add(rest)
    assert rests == {False, True}


@pytest.mark.parametrize(("low", "high"), [
    ((0, -3), (39, 26)), ((1, 0), (1, 0)), ((0, 2), (20, 9)), ((3, -3), (38, 26)), ((0, -2), (39, 26)),
    ((2, 5), (39, 5)),
])  # fmt: skip
def test_rectangles_without_noise(exact, low, high):
    items, aggregator = exact
    truth = np.sum(((items >= low) & (items <= high)).all(axis=1))
    assert aggregator.range_count(low, high).value == pytest.approx(truth, abs=4)


def test_items_without_noise(exact):
    items, aggregator = exact
    asked, counts = np.unique(items, axis=0, return_counts=True)
    assert np.mean(aggregator.estimate(asked).values == counts) > 0.9
    assert np.mean(aggregator.estimate([tuple(item) for item in asked.tolist()]).values == counts) > 0.9
    liars = aggregator.liars(asked[:3], 0.3)
    assert liars.count == 1
    assert (liars.too_high <= 1 + counts[:3]).all()


def test_the_rectangle_of_everything_is_public(exact):
    whole = exact[1].range_count((0, -3), (39, 26))
    assert (whole.value, whole.lower, whole.upper) == (300, 300, 300)


def test_the_interval_adds_deviations_within_a_combination_and_variances_across():
    grid = GridHierarchy("r", dc.Budget(2.0), (9, 9), branching=3, options={"items_per_column": 2.0})
    aggregator = heard(grid, [np.argwhere(np.ones((9, 9)))] * 3)
    # 3 to 6 by 3 to 5: the middle interval and one number, by the middle interval.
    coarse, fine = aggregator.interval_counts(0, [1 * 3 + 1]), aggregator.interval_counts(2, [6 * 3 + 1])
    found = aggregator.range_count((3, 3), (6, 5))
    assert found.value == pytest.approx(coarse.values.sum() + fine.values.sum())
    # 1 to 2 by 1 to 2: four items.
    pieces = aggregator.interval_counts(3, [10, 11, 19, 20])
    small = aggregator.range_count((1, 1), (2, 2))
    assert small.value == pytest.approx(pieces.values.sum())
    for estimate, variance in (
        (found, coarse.variances.sum() + fine.variances.sum()),
        (small, np.sqrt(pieces.variances).sum() ** 2),
    ):
        expected = Estimates(np.array([estimate.value]), np.array([variance]), aggregator.guarantee).bounds(0.95)
        assert (estimate.lower, estimate.upper) == pytest.approx((expected[0][0], expected[1][0]))


def test_bounds_cover():
    """Of 40 seeded runs 4 miss on average, and half a width is 1.6 deviations of the errors of these runs."""
    rng = np.random.default_rng(3)
    tables = [rng.binomial(30, 0.4, (100, 2)) for _ in range(5)]
    items, misses, errors, widths = np.concatenate(tables), 0, [], []
    true = np.sum(((items >= (8, 0)) & (items <= (11, 15))).all(axis=1))
    for run in range(40):
        grid = GridHierarchy(f"run {run}", dc.Budget(2.0), (31, 31), branching=4, options={"items_per_column": 1})
        found = heard(grid, tables, 100 * run).range_count((8, 0), (11, 15), 0.9)
        misses += not found.lower <= true <= found.upper
        errors.append(found.value - true)
        widths.append(found.upper - found.value)
    assert misses <= 8
    assert 1.4 < np.mean(widths) / np.std(errors) < 1.9
    assert abs(np.mean(errors)) < 0.6 * np.std(errors)  # of 40 errors without a bias this is almost four deviations


@pytest.mark.parametrize("protocol", ["HadamardResponse", "LocalHashing"])
def test_a_report_goes_to_one_combination_with_the_whole_budget(protocol):
    grid = GridHierarchy("local", dc.Budget(3.0), (16, 16), protocol=protocol, branching=4)
    assert {base.epsilon for base in grid.by_level} == {3.0}
    items = np.r_[np.full((6000, 2), 7), np.argwhere(np.ones((16, 16)))[np.arange(4000) % 256]]
    aggregator = heard(grid, [items])
    ((_, content),) = aggregator._heard
    sizes = [message.items for message, _ in content]
    assert sum(sizes) == len(items) == aggregator.total == aggregator.parties
    assert all(abs(size - 2500) < 6 * 44 for size in sizes)  # six standard deviations
    found = aggregator.estimate([(7, 7)])
    assert abs(found.values[0] - 6016) < 6 * np.sqrt(found.variances[0])
    box = aggregator.range_count((4, 4), (7, 7))
    assert box.lower - 500 < 6250 < box.upper + 500


def test_strings_and_lists():
    grid = GridHierarchy("mixed", EXACT, (["low", "middle", "high"], Strings("ab", 3)), options=WIDE)
    rows = [("low", "ab")] * 5 + [("middle", "ab")] * 3 + [("high", "b"), ("low", "")]
    aggregator = heard(grid, [rows, rows])
    assert aggregator.range_count(("low", "a"), ("middle", "abb")).value == 16
    assert aggregator.range_count(("middle", ""), ("high", "bbb")).value == 8
    assert grid.universe.items(grid.universe.words(rows)) == rows
    consistent = aggregator.estimate([("low", "ab"), ("high", "b"), ("middle", "b")], consistent=True)
    assert consistent.values == pytest.approx([10, 2, 0], abs=0.2)
    every = grid.universe.items(grid.universe.occupied())
    assert len(every) == len(set(every)) == 3 * 15
    assert aggregator.estimate(every, consistent=True).values.sum() == pytest.approx(20)


def test_consistent_counts_of_a_large_grid(exact):
    rng = np.random.default_rng(1)
    grid = GridHierarchy("large", dc.Budget(1.0), (2**16, 2**16), options={"items_per_column": 2.0})
    aggregator = heard(grid, [rng.integers(0, 9, (50, 2))])
    found = aggregator.estimate([(1, 1), (2**16 - 1, 5), (1, 1)], consistent=True).values
    assert (found >= 0).all()
    assert found[0] == found[2]
    assert found[:2].sum() <= 50 + 1e-9


@pytest.mark.parametrize("grid", [
    GridHierarchy("r", dc.Budget(1.0), (10, range(-5, 7)), options={"items_per_column": 3.0}),
    GridHierarchy("r", dc.Budget(1.0), (5, Strings("ab", 3), ["x", "y"]), protocol="HadamardResponse"),
])  # fmt: skip
def test_descriptions_and_states(grid):
    again = protocol_from_dict(grid.to_dict())
    assert again == grid
    assert (again.digest, again.round_digest) == (grid.digest, grid.round_digest)
    items = grid.universe.items([0, 1, 2, 2])
    aggregator = heard(grid, [items])
    restored = again.restore(aggregator.to_bytes())
    assert restored.estimate(items).values.tolist() == aggregator.estimate(items).values.tolist()
    everything = grid.universe.items([0, grid.universe.size - 1])
    assert restored.range_count(*everything).value == 4


@pytest.mark.parametrize("given", [
    {"protocol": "GridHierarchy"}, {"protocol": "Hierarchy"}, {"protocol": "Stream"}, {"options": {"colour": 3}},
    {"options": {"shuffled": 3}, "protocol": "HadamardResponse"}, {"branching": 1}, {"universe": 100},
    {"universe": None}, {"universe": (5,)}, {"universe": ()}, {"universe": (5, "integers")},
    {"universe": (2**40, 2**40)}, {"universe": (Strings("ab", 9), Strings("ab", 8))},
    {"universe": {"kind": "grid"}}, {"universe": (5, None)}, {"universe": (2**20, 2**20), "branching": 2},
    {"universe": (2**16, 2**16), "branching": 2**16},
])  # fmt: skip
def test_bad_parameters(given):
    with pytest.raises(ParameterError):
        GridHierarchy(**{"round_id": "r", "budget": dc.Budget(1.0), "universe": (9, 9), **given})


@pytest.mark.parametrize("items", [
    [1, 2], [(1,)], [(1, 2, 3)], ["ab"], [(1, 9)], [(-1, 0)], [(1, "a")], [(1, (2, 3))], [(1, None)], [None], (1, 2), 5,
    None, np.zeros((3, 3), int), np.zeros(4, int), np.zeros((2, 2, 2), int), {(1, 2): 3}, [[(1, 2)], [(1, 2)]],
    np.zeros((2, 2)),
])  # fmt: skip
def test_bad_items_cost_nothing(items):
    party = GridHierarchy("r", dc.Budget(1.0), (9, 9)).party(1, source=seeded_source(1))
    with pytest.raises(DataError):
        party.encode(items)
    party.encode([(1, 2), [3, 4]])  # it has not spoken


def test_items_with_nulls_are_left_out_as_a_whole():
    grid = GridHierarchy("r", dc.Budget(1.0), (9, 9))
    message = grid.party(1, source=seeded_source(1)).encode([(1, None), None, (3, 4), (None, 2)], nulls="skip")
    assert grid.open(message)[0].items == 1
    assert message == grid.party(1, source=seeded_source(1)).encode(np.array([[3, 4]]))
    with pytest.raises(ParameterError, match="nulls"):
        grid.universe.words([(1, 2)], "maybe")


def test_bad_questions(exact):
    aggregator = exact[1]
    with pytest.raises(ParameterError, match="dimension"):
        aggregator.range_count((5, 9), (6, 8))
    for low, high in ((1, 2), ((1,), (2,)), ((1, 2), (1, 2, 3)), ((1, 2), (40, 2))):
        with pytest.raises(DataError):
            aggregator.range_count(low, high)
    with pytest.raises(ParameterError):
        aggregator.range_count((1, 2), (1, 2), 1.0)
    with pytest.raises(ParameterError):
        aggregator.interval_counts(len(aggregator.protocol.levels), [0])
    for asked in (Questions(share=0.1), Questions(quantiles=(0.5,))):
        with pytest.raises(ParameterError, match="one dimension"):
            asked.check(aggregator.protocol)
    Questions(ranges=(((1, 2), (3, 4)),)).check(aggregator.protocol)


@pytest.mark.parametrize("protocol", ["IndependentSketches", "HadamardResponse"])
def test_messages_that_were_tampered_with(protocol):
    grid = GridHierarchy("r", dc.Budget(1.0), (9, 9), protocol=protocol, branching=3)
    aggregator = heard(grid, [[(1, 2), (3, 4), (5, 6)]])
    every = np.argwhere(np.ones((9, 9)))
    before = aggregator.estimate(every).values.tolist()
    payload = grid._encode(np.array([1, 2], np.uint64), 2, seeded_source(2))
    parts = list(unpack_parts(payload, 4))
    bad = [
        b"", pack_parts(parts[:3]), pack_parts([*parts, b""]), pack_parts([*parts[:3], b""]), payload + b"\0",
        pack_parts([*parts[:3], parts[3] + b"\0"]), pack_parts([b"", *parts[1:]]), payload[:-1],
    ]  # fmt: skip
    messages = [grid._pack(Message(2, 2, part)) for part in bad]
    messages += [grid._pack(Message(2, 30, payload)), grid._pack(Message(2, 2**62, payload))]
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(grid._pack(Message(2, 2, payload)))
        damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        messages.append(bytes(damaged))
    receipt = aggregator.receive_many(messages)
    assert receipt.accepted == 0
    assert len(receipt.rejected) == len(messages)
    assert aggregator.estimate(every).values.tolist() == before


def test_a_party_is_heard_once_and_a_liar_adds_what_its_items_allow():
    grid = GridHierarchy("r", dc.Budget(1.0), (9, 9), options={"max_items": 20})
    aggregator = heard(grid, [[(1, 2)] * 20])
    with pytest.raises(MessageError) as caught:
        aggregator.receive(grid.party(0).encode([(3, 3)]))
    assert caught.value.reason == "duplicate"
    with pytest.raises(ParameterError, match="max_items"):
        grid.party(1).encode([(1, 2)] * 21)
    for protocol in grid.by_level:
        assert protocol.max_items == 20
