"""Sums, means and variances through whole numbers: without noise they are those of the values, cut to the range."""

import numpy as np
import pyarrow as pa
import pytest

from discreet.summaries.moments import GroupSums, ValueMoment

RANGES = [(0.0, 1.0), (-3.0, 5.0), (2.0, 4.0), (-4.0, -1.0), (0.0, 100.0), (-1.0, 0.0)]


def values(low, high):
    chance = np.random.default_rng(1)
    inside = chance.uniform(low, high, 200)
    return np.concatenate([inside, [low - 7, high + 7, low, high, (low + high) / 2]])


def answer(moment, given):
    return float(moment.answer(moment.total(given)[None, :] / moment.one)[0])


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_an_answer_without_noise_is_that_of_the_values(low, high):
    given = values(low, high)
    cut = np.clip(given, low, high)
    close = {"rel": 1e-6, "abs": 1e-6}
    assert answer(ValueMoment("count"), given) == len(given)
    assert answer(ValueMoment("sum", low, high), given) == pytest.approx(cut.sum(), **close)
    assert answer(ValueMoment("signed", low, high), given) == pytest.approx(cut.sum(), **close)
    assert answer(ValueMoment("split", low, high), given) == pytest.approx(cut.sum(), **close)
    for kind, true in (("mean", cut.mean()), ("variance", cut.var())):
        moment = ValueMoment(kind, low, high)
        assert abs(answer(moment, given) - true) <= moment.rounding + 1e-9 * moment.wide**2
        assert 0.0 < moment.rounding < 1e-3 * moment.wide**2
    assert ValueMoment("sum", low, high).rounding == 0.0


@pytest.mark.parametrize("kind", ["count", "sum", "signed", "split", "mean", "variance"])
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_every_row_adds_as_much_and_totals_are_sums_of_entries(kind, low, high):
    moment, given = ValueMoment(kind, low, high), values(low, high)
    entries = moment.entries(given)
    assert entries.shape == (len(given), moment.parts)
    assert moment.total(given).tolist() == entries.sum(axis=0).tolist()
    if kind not in ("signed", "split"):
        assert (entries >= 0).all()
        assert set(entries.sum(axis=1).tolist()) == {moment.one}
    assert np.abs(entries).sum(axis=1).max() <= moment.one
    assert (moment.wide, moment.largest) == (high - low, max(abs(low), abs(high)))


@pytest.mark.parametrize("kind", ["count", "sum", "signed", "split", "mean", "variance"])
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_answers_lie_between_the_answers_of_bounds(kind, low, high):
    moment = ValueMoment(kind, low, high)
    sums = moment.total(values(low, high))[None, :] / moment.one
    for off in (0.0, 0.5, 20.0):
        least, most = moment.within(sums - off, sums + off)
        assert least[0] - 1e-9 <= moment.answer(sums)[0] <= most[0] + 1e-9
        chance = np.random.default_rng(2)
        for _ in range(50):
            other = sums + chance.uniform(-off, off, sums.shape)
            if kind in ("mean", "variance") and (other <= 0).any():
                continue
            assert least[0] - 1e-6 <= moment.answer(other)[0] <= most[0] + 1e-6
        if not off:
            assert most[0] - least[0] <= 1e-6 * (1 + abs(most[0]))


def test_answers_are_cut_to_what_they_can_be():
    far = np.array([-1e9, 0.0, 1e9])
    inf = np.inf
    for kind, low, high, ends in (
        ("mean", -1.0, 3.0, (-1.0, 3.0)),
        ("variance", -1.0, 3.0, (0.0, 4.0)),
        ("sum", 0.0, 3.0, (0.0, inf)),
        ("sum", -2.0, 0.0, (-inf, 0.0)),
        ("sum", -2.0, 3.0, (-inf, inf)),
        ("count", 0.0, 1.0, (0.0, inf)),
    ):
        cut = ValueMoment(kind, low, high).ends(far)
        assert cut.tolist() == np.clip(far, *ends).tolist(), kind


def test_nobody_at_all_has_an_answer_in_the_middle():
    nothing = np.zeros((1, 2))
    assert ValueMoment("mean", 2.0, 6.0).answer(nothing)[0] == 4.0
    assert ValueMoment("variance", 2.0, 6.0).answer(np.zeros((1, 3)))[0] == 0.0


def test_whole_numbers_in_a_range_of_whole_numbers_are_not_rounded():
    for low, high in ((0, 7), (-5, 9), (0, 1000)):
        moment = ValueMoment("sum", low, high)
        given = np.arange(low, high + 1).astype(float)
        entries = moment.entries(given)
        assert (entries[:, 0] * (high - low) == (given - low) * moment.one).all()
    assert ValueMoment("sum", 0.0, 1.0).one <= 2**30
    assert ValueMoment("sum", 0.0, 1.0, finest=16).one <= 16


def test_groups_are_in_the_order_of_their_keys_whoever_counted_them():
    """In which order they came says which rows came first."""
    sums = np.array([[1, 10], [2, 20], [3, 30]])
    for keys in (["c", "a", "b"], ["b", "c", "a"], ["a", "b", "c"]):
        found = GroupSums(sums, pa.array(keys)).in_order()
        expected = sorted(zip(keys, sums.tolist(), strict=True))
        assert list(zip(found.keys.to_pylist(), found.sums.tolist(), strict=True)) == expected
        twice = GroupSums(sums, pa.array(keys)) + GroupSums(sums, pa.array(keys[::-1]))
        assert twice.keys.to_pylist() == ["a", "b", "c"]
        assert twice.sums.sum(axis=0).tolist() == [12, 120]
    bare = GroupSums(sums[:1])
    assert (bare.in_order().keys, bare.in_order().sums.tolist()) == (None, [[1, 10]])
