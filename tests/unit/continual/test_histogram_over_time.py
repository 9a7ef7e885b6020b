"""Histograms over ticks: the four settings, their noise, their cuts, their states."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.continual import Histogram, one_shot
from discreet.continual._events import event_counts
from discreet.continual._factors import Buffered, SquareRoot, Tree
from discreet.noise import seeded_source
from discreet.privacy.calibration.gaussian import discrete_gaussian_tail

BUDGET = dc.Budget(1.0, 1e-6)
PLENTY = dc.Budget(5000.0, 0.5)
ITEMS = [f"item {i}" for i in range(12)]
SETTINGS = [
    (domain, most, mechanism)
    for domain, most, names in (
        (ITEMS, 3, ("factorised", "tree", "meta")),
        (ITEMS, None, ("meta", "sparse")),
        (None, 3, ("factorised", "tree", "meta", "limit")),
        (None, None, ("meta",)),
    )
    for mechanism in names
]


def make(domain, most, mechanism, budget=BUDGET, horizon=20, **more):
    k = None if most is not None else 4
    return Histogram(horizon, budget, domain, most, k, mechanism=mechanism, **more)


def ticks(count, seed=1):
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 13)
    return [
        [rng.choice(ITEMS, rng.integers(0, 4), replace=False, p=weights / weights.sum()).tolist() for _ in range(50)]
        for _ in range(count)
    ]


@pytest.mark.parametrize(("domain", "most", "mechanism"), SETTINGS)
def test_with_plenty_of_budget_the_counts_are_right(domain, most, mechanism):
    histogram = make(domain, most, mechanism, PLENTY, source=seeded_source(1), switches=5)
    exact = dict.fromkeys(ITEMS, 0)
    for events in ticks(20):
        for event in events:
            for item in event:
                exact[item] += 1
        result = histogram.step(events)
        shown = dict(zip(result.items, result.counts.tolist(), strict=True))
        assert set(shown) <= set(ITEMS)
        for item, count in shown.items():
            # Nodes in which an item is not among the k largest lack its count.
            low = 0 if mechanism == "meta" and most is None else exact[item] - 25
            assert low <= count <= exact[item] + 25
    assert {"item 0", "item 1"} <= set(shown)
    if mechanism in ("factorised", "tree") or (domain and mechanism == "meta" and most):
        assert len(shown) == 12
    assert shown["item 0"] >= 0.7 * exact["item 0"]


@pytest.mark.parametrize(("domain", "most", "mechanism"), SETTINGS)
def test_a_restart_changes_nothing(domain, most, mechanism):
    def run(restarts):
        source = seeded_source(4)
        histogram = make(domain, most, mechanism, dc.Budget(20.0, 1e-3), source=source, switches=3)
        out = []
        for t, events in enumerate(ticks(20), 1):
            if t in restarts:
                histogram = Histogram.from_bytes(histogram.to_bytes(), source=source)
            out.append(histogram.step(events).to_payload())
        return out

    assert run([]) == run([1, 2, 9, 16, 20])


@pytest.mark.parametrize(("domain", "most", "mechanism"), SETTINGS)
def test_an_empty_stream_and_repeated_ticks(domain, most, mechanism):
    histogram = make(domain, most, mechanism)
    first = histogram.step([], tick=1)
    assert histogram.step([["item 1"]], tick=1) is first
    if domain is None:
        assert first.items == []
    assert Histogram.from_bytes(histogram.to_bytes()).step([], tick=1).to_payload() == first.to_payload()
    assert first.guarantee.trust == "continual"
    assert first.guarantee.delta == 1e-6
    assert "item" not in repr(histogram)


def test_events_are_sets_of_at_most_d_items():
    lists = [["a", "b", "a", "c"], [], ["c", "b"], ["b"]]
    for events in (lists, pa.array(lists, pa.list_(pa.string())), pa.chunked_array([pa.array(lists)])):
        for most, expected in (
            (None, {"a": 1, "b": 3, "c": 2}),
            (2, {"a": 1, "b": 3, "c": 1}),
            (1, {"a": 1, "b": 1, "c": 1}),
        ):
            items, counts = event_counts(events, most)
            assert dict(zip(items.to_pylist(), counts.tolist(), strict=True)) == expected
    items, counts = event_counts(lists, 1, {"b", "c"})
    assert dict(zip(items.to_pylist(), counts.tolist(), strict=True)) == {"b": 2, "c": 1}
    assert event_counts(np.array([3, 3, 5]), 1)[1].tolist() in ([2, 1], [1, 2])
    mixed, counts = event_counts([["a", b"a", 1.5, 1], ["\ud800", 1, "a"], [True], [2**70]], 3)
    assert dict(zip(mixed.to_pylist(), counts.tolist(), strict=True)) == {"a": 2, b"a": 1, 1: 2}
    invalid = pa.ListArray.from_arrays(
        pa.array([0, 2, 3], pa.int32()),
        pa.Array.from_buffers(pa.string(), 3, pa.array([b"a", b"\xff", b"a"]).buffers()),
    )
    items, counts = event_counts(invalid, 2)
    assert (items.to_pylist(), counts.tolist()) == (["a"], [2])
    for bad in ("text", 5, [["a"], 3], [["red"]] * 3 + ["blue"], ["blue", ["red"]], [{"a": 1}], pa.array(["a", None])):
        with pytest.raises(dc.DataError):
            event_counts(bad, None)


def test_known_noise_is_that_of_a_counter():
    domain = list(range(3000))
    for mechanism, method in (("factorised", "auto"), ("tree", "tree"), ("meta", "tree")):
        histogram = Histogram(16, dc.Budget.zcdp(0.5), domain, 4, mechanism=mechanism, source=seeded_source(2))
        counter = dc.continual.Counter(16, dc.Budget.zcdp(0.5), method=method, size=9, max_items_per_event=4)
        for t in range(1, 17):
            counts = histogram.step([[7]]).counts
            assert histogram.error(t) == pytest.approx(counter.error(t), rel=1e-9)
            # 3000 noises: 6 standard deviations of their variance, below 1e-8.
            assert float((counts.astype(float) ** 2).mean()) == pytest.approx(
                counter.error(t) ** 2, rel=6 * math.sqrt(2 / 3000), abs=1.0
            )


@pytest.mark.parametrize(
    ("factor", "ticks"),
    [(Tree(40, 3), (1, 5, 26)), (Buffered(40), (1, 5, 26)), (Buffered(365), (64, 131))],
    ids=["tree", "blt", "blt by its law"],
)
def test_joining_late_has_the_law_of_having_run_from_the_start(factor, ticks):
    """Variances and covariances of 6000 states; 6 standard errors each, below 1e-7 for all."""
    sigma, source = Fraction(10**4), seeded_source(3)
    for tick in ticks:
        late = factor.join(6000, tick, sigma, source)
        start = factor.start(6000)
        for t in range(1, tick + 1):
            factor.advance(start, t, sigma, source)
        a, b = (np.concatenate([np.atleast_2d(v) for v in state.values()]).astype(float) for state in (late, start))
        one, other = np.cov(a), np.cov(b)
        scale = np.sqrt(np.outer(np.diag(other), np.diag(other))) + 1e-9
        assert (np.abs(one - other) <= 6 * math.sqrt(2 * 2 / 6000) * scale + 1e-6).all()


def test_late_items_at_a_late_tick_have_all_noise():
    """2000 items that come at tick 101 of 200, where noise is drawn by its law, and the change to the tick after.

    Seeded, and six standard errors of the variances.
    """
    items = 2000
    early, late = (Histogram(200, dc.Budget(1.0, 1e-6), None, 1, source=seeded_source(9)) for _ in range(2))
    high = 2 * late.scheme.cut(200)
    events = pa.array(np.repeat(np.arange(items), high))
    early.step(events)
    for _ in range(99):
        late.step([])
        early.step([])
    late.step([])
    shown = []
    for histogram, given in ((early, []), (late, events)):
        one, two = histogram.step(given).counts.astype(float) - high, histogram.step([]).counts.astype(float) - high
        shown.append((one, two))
    width = 6 * math.sqrt(2 / items)
    for one, two in shown:
        assert len(one) == len(two) == items
        assert (one**2).mean() == pytest.approx(late.error(101) ** 2, rel=width)
        assert (two**2).mean() == pytest.approx(late.error(102) ** 2, rel=width)


@pytest.mark.parametrize("factor", [Tree(64, 2), Buffered(64), Buffered(300)], ids=["tree", "blt", "blt by its law"])
def test_cut_hides_with_the_stated_probability(factor):
    """400 000 noises against a tail of 0.01: never more, and for the factorised noise nothing to spare."""
    rho, source = 0.05, seeded_source(6)
    sigma = factor.sigma(rho)
    for tick in (200,) if factor.horizon > 64 else (1, 23, 63):
        shift = factor.hiding_shift(tick, sigma, 0.01)
        noise = (
            factor.to_counts(factor.join(400_000, tick, sigma, source)["levels"].sum(axis=0))
            if isinstance(factor, Tree)
            else factor.to_counts(factor.join(400_000, tick, sigma, source)["noise"])
        )
        share = float((noise >= shift).mean())
        assert share <= 0.01 + 6 * math.sqrt(0.01 / 400_000)
        if isinstance(factor, Buffered):
            assert float((noise >= shift - 2).mean()) > 0.01


@pytest.mark.parametrize("probability", [1e-3, 1e-9, 1e-200])
@pytest.mark.parametrize("sigma", [1, 15, 17, 3000, 10**6])
def test_the_cut_of_one_tick_against_the_exact_tail(sigma, probability):
    """Also where the noise is no wider than a few lattice steps, and for tails beyond what a Gaussian is close to."""
    factor = Buffered(1)
    shift = factor.hiding_shift(1, Fraction(sigma), probability)
    least = shift * factor.lattice - factor.lattice // 2  # rounded to whole counts, halves up
    assert discrete_gaussian_tail(float(sigma), least) <= probability
    if probability >= 1e-150:  # with Chernoff's bound there is room
        assert shift == 1 or discrete_gaussian_tail(float(sigma), least - 2 * factor.lattice) > probability


def test_the_coefficients_of_the_noise_are_at_most_one():
    """What the argument for the cut takes for granted: b_0 = 1, and no other is larger."""
    for horizon in (1, 2, 5, 64, 365, 2**14, 2**24):
        weights, gaps = Buffered(horizon)._rows
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1)
        assert gaps.min() >= 0
        assert gaps.max() <= 1
    assert (SquareRoot(1000).coefficients <= 2**40).all()


def test_ours_needs_two_fifths_of_the_threshold_of_unkbase():
    horizon = 2**14
    ours = Histogram(horizon, BUDGET, None, 1)
    theirs = Histogram(horizon, BUDGET, None, 1, mechanism="tree", base=2)
    worst = max(ours._scheme.cut(t) for t in (1, 100, horizon))
    assert worst <= 0.40 * theirs._scheme.cut(1)
    assert worst <= 0.50 * Histogram(horizon, BUDGET, None, 1, mechanism="tree")._scheme.cut(1)


@pytest.mark.parametrize(("horizon", "base"), [(256, None), (2**14, None), (2**14, 2)])
def test_ours_discovers_earlier(horizon, base):
    """Every item that UnkBase discovers in the first 150 ticks, sooner; benchmarks/continual.py runs all 2^14."""
    weights = 1 / np.arange(1, 301)
    found = {}
    for mechanism in ("factorised", "tree"):
        options = {"base": base} if mechanism == "tree" else {}
        histogram = Histogram(
            horizon, BUDGET, None, 1, mechanism=mechanism, keep_discovered=True, source=seeded_source(1), **options
        )
        rng = np.random.default_rng(1)
        first = {}
        for t in range(1, 151):
            for item in histogram.step(rng.choice(300, 200, p=weights / weights.sum())).items:
                first.setdefault(item, t)
        found[mechanism] = first
    assert len(found["tree"]) >= 5
    assert set(found["tree"]) < set(found["factorised"])
    assert all(found["factorised"][item] < t for item, t in found["tree"].items())


def test_discovered_items_may_stay():
    for keep in (False, True):
        histogram = Histogram(64, BUDGET, None, 1, keep_discovered=keep, source=seeded_source(9))
        cut = histogram._scheme.cut(1)
        sizes = [len(histogram.step(np.repeat(np.arange(400), cut if t == 0 else 0))) for t in range(12)]
        assert sizes[0] > 100
        assert (sizes == sorted(sizes)) is keep


def test_shifts_of_the_one_shot_cuts():
    for probability in (1e-3, 1e-8):
        shift = one_shot.gauss_shift(Fraction(5), probability)
        z = np.arange(-200, 201)
        p = np.exp(-(z**2) / 50.0)
        p /= p.sum()
        both = np.convolve(p, p)
        tails = both[::-1].cumsum()[::-1]
        middle = len(z) - 1
        assert tails[middle + shift] <= probability < 1.001 * tails[middle + shift - 1]
        shift = one_shot.gumbel_shift(Fraction(7), probability, 1)
        assert 1 / (1 + math.exp(2 * shift / 7)) <= probability <= 1 / (1 + math.exp(2 * (shift - 1.01) / 7))
        shift = one_shot.laplace_shift(Fraction(3), probability)
        q = math.exp(-1 / 3)
        p = (1 - q) / (1 + q) * q ** np.abs(z)
        tails = np.convolve(p, p)[::-1].cumsum()[::-1]
        assert tails[middle + shift] <= probability < 1.001 * tails[middle + shift - 1]


def test_unknown_domains_break_ties_by_the_items():
    """Counts 3, 2, 2, 2 and room for two: the second is the smallest item, wherever it stands."""
    rank = lambda: np.array([3, 2, 0, 1])  # noqa: E731
    top, rest = one_shot._top(np.array([3, 2, 2, 2]), rank, 2)
    assert top.tolist() == [0, 2]
    assert rest == 2
    assert one_shot._top(np.array([3, 0, 2, 0]), rank, 2)[1] == 0


def test_sparse_switches_at_most_s_times():
    rng = np.random.default_rng(3)
    histogram = Histogram(
        200, dc.Budget.zcdp(50.0), ITEMS, None, 1, mechanism="sparse", switches=2, source=seeded_source(1)
    )
    seen = []
    for t in range(200):
        favourite = ITEMS[t // 25 % 12]
        seen.append(histogram.step([[favourite]] * int(30 * 2 ** (t // 25)) + [[rng.choice(ITEMS)]]).items[0])
    assert sum(a != b for a, b in pairwise(seen)) == 2
    # Theorem 4, corrected: (2k + 1/4)/(2 tau^2) = rho.
    assert float(histogram._scheme._tau2) == pytest.approx(math.sqrt(3 * 2.25 / (2 * 50.0)))


@pytest.mark.parametrize(
    "arguments",
    [
        {"budget": dc.Budget(1.0)},
        {"budget": dc.Budget.zcdp(1.0)},
        {"max_items_per_event": None},
        {"mechanism": "sparse"},
        {"domain": []},
        {"domain": ["a", "a"]},
        {"domain": [["a"]]},
        {"k": 0},
        {"base": 1},
        {"horizon": 0},
    ],
)
def test_parameters_are_checked(arguments):
    with pytest.raises(dc.ParameterError):
        Histogram(**{"horizon": 16, "budget": BUDGET, "max_items_per_event": 1, **arguments})


def test_items_of_another_kind_are_counted_apart():
    for mechanism in ("factorised", "meta"):
        histogram = Histogram(16, dc.Budget(1e6, 1e-6), None, 1, mechanism=mechanism)
        histogram.step(["a"] * 500)
        histogram.step([b"a"] * 400 + [1] * 300)
        histogram = Histogram.from_bytes(histogram.to_bytes())
        published = histogram.step(["\ud800"])
        assert published.items == ["a", b"a", 1]
        assert np.abs(published.counts - [500, 400, 300]).max() < 50
        assert Histogram.from_bytes(histogram.to_bytes()).last.items == published.items
    histogram = Histogram(16, BUDGET, None, 1)
    histogram.step(["a"])
    # Of a known domain they are items like any others outside it.
    assert set(Histogram(16, BUDGET, [1, 2], 1).step(["a"]).items) == {1, 2}
    assert histogram.tick == 1


def test_damaged_states():
    histogram = make(None, 3, "factorised")
    histogram.step([["a"]])
    data = histogram.to_bytes()
    for position in range(0, len(data), 13):
        broken = bytearray(data)
        broken[position] ^= 0x11
        with pytest.raises(dc.CorruptStateError):
            Histogram.from_bytes(bytes(broken))


@pytest.mark.parametrize("library", ["list", "arrow", "chunked", "numpy", "pandas"])
def test_a_domain_from_any_library(library):
    import pandas as pd

    items = ["a", "b", "c"]
    domain = {
        "list": items,
        "arrow": pa.array(items),
        "chunked": pa.chunked_array([items]),
        "numpy": np.array(items),
        "pandas": pd.Series(items),
    }[library]
    histogram = Histogram(4, BUDGET, universe=domain, max_items_per_event=1)
    assert {*histogram.step(["a"] * 500).items} <= {*items}


def test_sets_of_any_size_count_what_is_listed():
    """Of unknown items: once listed, an item is counted whatever else an event has; a state goes on as it was."""
    made = Histogram(6, dc.Budget(8.0, 1e-3), None, None, 2, mechanism="factorised", source=seeded_source(1))
    made.step([["a"]] * 400)
    crowd = [f"x{i}" for i in range(30)]
    again = Histogram.from_bytes(made.to_bytes())
    for one in (made, again):
        one.step([[*crowd, "a"]] * 100)
        assert one.not_private_counts()["a"] == 500
        assert sum(one.not_private_counts().values()) == 600
        assert "last tick published" in str(one.guarantee.assumptions)
    assert made.last.bounds()[1][0] == float("inf")
    with pytest.raises(dc.errors.ParameterError, match="one of auto, meta, sparse"):
        Histogram(6, dc.Budget(8.0, 1e-3), ["a"], None, 2, mechanism="factorised")


def test_the_old_name_of_the_universe_still_works():
    old, new = (Histogram(4, BUDGET, **{name: ["a", "b"]}, max_items_per_event=1) for name in ("domain", "universe"))
    assert old.parameters == new.parameters
    assert new.parameters["universe"] == ["a", "b"]
    with pytest.raises(dc.ParameterError, match="two names of one argument"):
        Histogram(4, BUDGET, ["a"], 1, domain=["a"])
