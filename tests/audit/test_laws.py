"""The audit's exact laws against closed forms and against laws written out outcome by outcome."""

import itertools
import math

import numpy as np
import pytest

from discreet.central.stability import stability_delta
from discreet.privacy.calibration.gaussian import discrete_gaussian_delta
from discreet.privacy.calibration.offset_cut import offset_delta
from discreet.privacy.calibration.tails import log_tail
from discreet_audit.closed_forms import (
    Key,
    NoiseLaw,
    StatePair,
    gaussian_split_delta,
    group_delta,
    pure_loss,
    threshold_delta,
)


def _brute_force(first, second, factor):
    return math.fsum(max(0.0, mass - factor * second.get(outcome, 0.0)) for outcome, mass in first.items())


def _law(values, noise, cut):
    """Every outcome of independent keys, as a dictionary."""
    law = {}
    z = range(-noise.reach, noise.reach + 1)
    for drawn in itertools.product(z, repeat=len(values)):
        shown = tuple(None if v is None or v + d < cut else v + d for v, d in zip(values, drawn, strict=True))
        law[shown] = law.get(shown, 0.0) + math.prod(noise.at(d) for d in drawn)
    return law


@pytest.mark.parametrize(("law", "scale"), [("laplace", 0.4), ("laplace", 3.0), ("gaussian", 0.7), ("gaussian", 4.0)])
def test_tables_of_noise(law, scale):
    noise = NoiseLaw(law, scale, 1e-15)
    z = np.arange(-noise.reach, noise.reach + 1)
    assert noise.mass.sum() == pytest.approx(1.0, abs=1e-13)
    expected = np.exp(-np.abs(z) / scale) if law == "laplace" else np.exp(-(z**2) / (2 * scale**2))
    assert noise.mass == pytest.approx(expected / expected.sum(), rel=1e-9, abs=1e-300)
    for cut in (-3, 0, 1, 5):
        assert noise.shown(cut) + noise.hidden(cut) == pytest.approx(1.0, abs=1e-13)
        assert noise.shown(cut) == pytest.approx(noise.mass[z >= cut].sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("keys", "cut"),
    [
        ((Key(2, 1),), 2),
        ((Key(1, None), Key(None, 0)), 2),
        ((Key(3, 2), Key(1, None)), 1),
        ((Key(None, 1, 2),), 2),
        ((Key(-1, 0),), 1),
    ],
)
def test_threshold_law_is_the_law_written_out(keys, cut):
    noise = NoiseLaw("laplace", 0.5, 1e-4)
    spread = [Key(key.first, key.second) for key in keys for _ in range(key.times)]
    one, two = (_law([getattr(key, side) for key in spread], noise, cut) for side in ("first", "second"))
    for pair, expected in (
        (StatePair(keys), _brute_force(one, two, math.exp(1.0))),
        (StatePair(keys).swapped, _brute_force(two, one, math.exp(1.0))),
    ):
        # what the short table leaves out is added to ours
        assert expected - 1e-12 <= threshold_delta(pair, noise, cut, 1.0) <= expected + 1e-3


def test_worst_state_of_the_offset_release():
    """S6 in closed form, from the calibration."""
    pair = StatePair((Key(1, None), Key(0, None), Key(None, 0), Key(None, 0)))
    for epsilon, t in ((0.5, 3), (1.0, 5), (2.0, 12)):
        ours = threshold_delta(pair, NoiseLaw("laplace", 1 / epsilon, 1e-25), 1 + t, epsilon, shared=True)
        assert ours == pytest.approx(offset_delta(epsilon, t), rel=1e-10)


def test_worst_user_of_the_stability_histogram():
    noise = NoiseLaw("laplace", 3.0)
    for keys in ((Key(1, None),) * 3, (Key(3, None),)):
        assert threshold_delta(StatePair(keys), noise, 9, 1.0) <= stability_delta(1.0, 8, max_items=3) * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [1.6, 7.0])
@pytest.mark.parametrize("changes", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_gaussian_changes(sigma, changes, epsilon):
    """Against the calibration's series, also far out in the tail (delta below 1e-30 at the end)."""
    ours = gaussian_split_delta(NoiseLaw("gaussian", sigma), 0, changes, 10**6, epsilon)
    assert ours == pytest.approx(discrete_gaussian_delta(epsilon, sigma, changes=changes), rel=1e-8)


def test_gaussian_split_is_the_law_written_out():
    noise = NoiseLaw("gaussian", 0.9, 1e-13)
    common = (40, 39)  # far above the cut
    one, two = _law([common[0], 1], noise, 3), _law([common[1], None], noise, 3)
    expected = max(_brute_force(one, two, math.e), _brute_force(two, one, math.e))
    assert gaussian_split_delta(noise, 1, 1, 3, 1.0) == pytest.approx(expected, rel=1e-9)


def test_rounded_entries():
    """An entry that moves from 0 to `least` costs P[Z >= t]; one that moves by a share of it, at most that share."""
    noise = NoiseLaw("laplace", 3.0)
    whole = threshold_delta(StatePair((Key(3, 0),)), noise, 12, 1.0, least=3)
    assert whole == pytest.approx(math.exp(log_tail(1 / 3, 9)), rel=1e-9)
    assert threshold_delta(StatePair((Key(1, 0),)), noise, 12, 1.0, least=3) == pytest.approx(whole / 3, rel=1e-9)
    many = threshold_delta(StatePair((Key(1, 0, 3),)), noise, 12, 1.0, least=3)
    assert many == pytest.approx(1 - (1 - whole / 3) ** 3, rel=1e-9)


def test_pure_and_group():
    assert pure_loss(StatePair((Key(5, 3), Key(None, 1, 2))), 4) == 1.0
    assert group_delta(1e-3, 2.0, 2) == pytest.approx(1e-3 * (1 + math.e))
    assert group_delta(1e-3, 2.0, 1) == 1e-3
