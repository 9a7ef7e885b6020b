"""Events whose items have weights: what counts, what is refused, and what one event costs."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.continual import Histogram
from discreet.continual._events import weighted_counts
from discreet.noise import seeded_source
from discreet.releases import plot
from discreet.releases.explain import COUNTED
from discreet.releases.formats import COUNT_HEADINGS

BUDGET = dc.Budget(20.0, 1e-3)


def counted(events, weights, most=2, heaviest=5, domain=None):
    items, sums = weighted_counts(events, weights, most, heaviest, domain)
    return dict(zip(items, sums.tolist(), strict=True))


def test_what_counts():
    assert counted(["a", "b", "a"], [1, 2, 5]) == {"a": 6, "b": 2}
    assert counted(np.array([3, 3, 4]), np.array([1, 2, 5])) == {3: 3, 4: 5}
    assert counted(pa.array(["a", "b"]), pa.array([0, 4])) == {"a": 0, "b": 4}
    # Of a set the first two different items, each with the weight that it came with first.
    sets, weights = [["a", "b", "a", "c"], [], ["c"]], [[1, 2, 5, 5], [], [4]]
    for events, given in ((sets, weights), (pa.array(sets), pa.array(weights)), (iter(sets), map(iter, weights))):
        assert counted(events, given) == {"a": 1, "b": 2, "c": 4}
    assert counted(sets, weights, domain={"a": 0, "c": 1}) == {"a": 1, "c": 9}
    assert counted([["a", 1.5, "b"]], [[1, 2, 3]]) == {"a": 1, "b": 3}  # 1.5 is no item, and takes its weight along
    assert counted([], []) == {}


@pytest.mark.parametrize(
    ("events", "weights"),
    [
        (["a"], [6]),
        (["a"], [-1]),
        (["a"], [1.0]),
        (["a"], [True]),
        (["a"], [None]),
        (["a"], [1, 2]),
        (["a"], 3),
        ([["a", "b"]], [[1]]),
        ([["a", "b"]], [1]),
        ([["a"], ["b"]], [[1, 1], []]),
    ],
)
def test_bad_weights_are_errors_before_anything_counts(events, weights):
    histogram = Histogram(5, BUDGET, None, 2, max_weight=5)
    with pytest.raises(dc.DataError) as error:
        histogram.step(events, weights=weights)
    assert "'a'" not in str(error.value)
    with pytest.raises(dc.DataError):
        histogram.add(events, weights=weights)
    assert histogram.tick == 0
    assert histogram.not_private_counts() == {}


def test_an_item_is_what_it_is_without_weights():
    """Text that is none and long items are left out, and columns of other types refused, as wherever items count."""
    offsets, text = np.array([0, 2, 4], np.int32), b"\xff\xfeab"
    broken = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text)])
    assert counted(broken, [1, 2]) == {"ab": 2}
    assert counted(pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), broken), [[1], [2]]) == {"ab": 2}
    assert counted(pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), broken), [[1, 2]]) == {"ab": 2}
    for events in (["b", "x" * 9000], pa.array(["b", "x" * 9000])):
        assert counted(events, [1, 2]) == {"b": 1}
    assert counted([["x" * 9000, "b"]], [[1, 2]]) == {"b": 2}
    null = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    for events in (pa.array([1.5, 2.0]), pa.array([True, False]), pa.array([[1.5], [2.0]]), null, [{"a"}, {"b"}]):
        histogram = Histogram(5, BUDGET, None, 2, max_weight=5)
        nested = isinstance(events, list) or pa.types.is_list(events.type)
        with pytest.raises(dc.DataError):
            histogram.step(events, weights=[[1], [1]] if nested else [1, 1])
        assert histogram.not_private_counts() == {}


def test_what_is_refused():
    with pytest.raises(dc.ParameterError, match="max_weight"):
        Histogram(5, BUDGET, None, 1).step(["a"], weights=[1])
    for options in ({"k": 2}, {"max_items_per_event": 1, "mechanism": "meta"}, {"unit": dc.User(2)}):
        with pytest.raises(dc.ParameterError, match="weights"):
            Histogram(5, BUDGET, max_weight=3, **options)
    for wrong in (0, 1.5, 2**21):
        with pytest.raises(dc.ParameterError, match="max_weight"):
            Histogram(5, BUDGET, None, 1, max_weight=wrong)
    # Noise of a later epoch would overflow: said before anything is paid, not when that epoch begins.
    for domain in (None, ["a"]):
        with pytest.raises(dc.ParameterError, match="max_weight too large"):
            Histogram(None, dc.Budget(1.0, 1e-6), domain, 1, max_weight=2**16)
        heavy = Histogram(None, dc.Budget(1.0, 1e-6), domain, 1, max_weight=2**16, mechanism="tree")
        assert heavy.error(2**24 - 1) > heavy.error(1)
    assert Histogram(None, dc.Budget(1.0, 1e-6), None, 1, max_weight=60).error(2**24 - 1) > 0


def test_one_event_raises_at_most_d_counts_by_at_most_its_weight():
    """All short events beside others, wherever they stand."""
    events = [list(e) for n in range(4) for e in itertools.product("abc", repeat=n)]
    base = [["b", "a"], ["c"]]
    plain = counted(base, [[3, 3], [1]], 2, 3)
    for event in events:
        for weights in itertools.product(range(4), repeat=len(event)):
            more = counted([base[0], event, base[1]], [[3, 3], list(weights), [1]], 2, 3)
            moved = [more.get(x, 0) - plain.get(x, 0) for x in "abc"]
            assert all(0 <= change <= 3 for change in moved)
            assert sum(change > 0 for change in moved) <= 2


@pytest.mark.parametrize("mechanism", ["factorised", "tree"])
@pytest.mark.parametrize("horizon", [40, None])
def test_noise_and_cut_are_for_the_heaviest_event(mechanism, horizon):
    def made(heaviest):
        return Histogram(horizon, dc.Budget(1.0, 1e-6), None, 1, max_weight=heaviest, mechanism=mechanism)

    one, ten = made(1), made(10)
    assert ten.scheme.sigma == pytest.approx(10 * one.scheme.sigma, rel=1e-5)
    assert ten.error(30) == pytest.approx(10 * one.error(30), rel=0.01)
    assert ten.scheme.cut(30) == 10 + ten.scheme.factor.hiding_shift(
        30, ten.scheme.sigma, 0.5e-6 * ten.scheme.factor.tick_share(30)
    )
    known = Histogram(horizon, dc.Budget.zcdp(0.1), ["a"], 1, max_weight=10, mechanism=mechanism)
    plain = Histogram(horizon, dc.Budget.zcdp(0.1), ["a"], 1, mechanism=mechanism)
    assert known.error(7) == pytest.approx(10 * plain.error(7), rel=0.05)


def test_an_item_of_weight_0_has_a_count_of_0():
    histogram = Histogram(5, BUDGET, None, 1, max_weight=2, source=seeded_source(1))
    assert histogram.step(["a"], weights=[0]).error_model.lowest == 0


def test_weights_are_published_and_survive_a_restart():
    source = seeded_source(3)
    histogram = Histogram(5, BUDGET, None, 2, max_weight=50, source=source)
    histogram.step([["a", "b"]] * 100, weights=[[50, 20]] * 100)
    histogram.add(["a"] * 10, weights=[50] * 10)
    histogram = Histogram.from_bytes(histogram.to_bytes(), source=source)
    assert histogram.max_weight == 50
    release = histogram.step(["b"] * 9)  # 1 each
    assert histogram.not_private_counts() == {"a": 5500, "b": 2009}
    counts = dict(zip(release.items, release.counts.tolist(), strict=True))
    assert counts["a"] == pytest.approx(5500, abs=30 * histogram.error(2))


def test_a_release_says_that_weights_were_counted():
    histogram = Histogram(5, BUDGET, ["a", "b"], 2, max_weight=5, source=seeded_source(1))
    release = histogram.step([["a", "b"], ["a"]], weights=[[5, 1], [4]])
    assert release.counted == "weights"
    assert release.notes() == ["Counts are sums of the weights that events give the item."]
    for read in (dc.Release.from_json(release.to_json()), dc.Release.from_payload(release.to_payload())):
        assert read.counted == "weights"
    assert ">sum</th>" in release._repr_html_()
    assert Histogram(5, BUDGET, ["a"], 2, source=seeded_source(1)).step([["a"]]).counted == "events"


def test_every_kind_of_count_has_words():
    assert COUNT_HEADINGS.keys() == plot._COUNTED.keys() == COUNTED.keys()
