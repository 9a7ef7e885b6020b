"""Heavy hitters that are discovered and then counted: calibration, the two ways of an event, states, bounds."""

import math

import numpy as np
import pytest

import discreet as dc
from discreet.continual import HeavyHitters
from discreet.errors import CorruptStateError, ParameterError
from discreet.noise import seeded_source
from discreet.privacy.calibration.discovery import discovery_calibration, discovery_delta
from discreet.summaries import MisraGries

BUDGET = dc.Budget(1.0, 1e-6)


def masses(sigma):
    z = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    weights = np.exp(-(z**2) / (2 * sigma**2))
    return z, weights / weights.sum()


@pytest.mark.parametrize(
    ("epsilon", "delta", "sketches"), [(1.0, 1e-3, 1), (1.0, 1e-3, 3), (0.3, 0.01, 2), (4.0, 0.02, 2)]
)
def test_delta_is_that_of_a_direct_sum_and_the_cut_is_the_smallest(epsilon, delta, sketches):
    sigma, t = discovery_calibration(epsilon, delta, sketches)
    z, p = masses(sigma)
    together = np.array([1.0])
    for _ in range(sketches):
        together = np.convolve(together, p)
    moved = np.pad(together, (sketches, 0)) - math.exp(epsilon) * np.pad(together, (0, sketches))
    shown = sum(
        mass * (p[z >= t + offset].sum() + p[z >= t + 1 + offset].sum()) for offset, mass in zip(z, p, strict=True)
    )
    direct = moved[moved > 0].sum() + (1 + math.exp(epsilon)) * sketches * shown
    stated = discovery_delta(epsilon, sigma, t, sketches)
    assert direct * (1 - 1e-9) <= stated <= direct * 1.01
    assert stated <= delta < discovery_delta(epsilon, sigma, t - 1, sketches)


def stream(ticks, events, items=2000, seed=1):
    weights = 1.0 / np.arange(1, items + 1)
    rng = np.random.default_rng(seed)
    return [rng.choice(items, events, p=weights / weights.sum()) for _ in range(ticks)]


def test_many_more_items_are_found_than_by_adding_up_nodes():
    ticks = stream(64, 1000)
    truth = np.bincount(np.concatenate(ticks), minlength=2000)
    found = {}
    for mechanism in ("discover", "offset"):
        hitters = HeavyHitters(64, BUDGET, mechanism=mechanism, source=seeded_source(1))
        for tick in ticks:
            release = hitters.step(tick)
        error = np.abs(release.counts - truth[release.items]).mean()
        found[mechanism] = len(release), error, len(hitters.to_bytes())
    assert HeavyHitters(64, BUDGET).mechanism == "discover"
    assert found["discover"][0] > 2 * found["offset"][0]
    assert found["discover"][1] < found["offset"][1] / 3
    assert found["discover"][2] < 2**20


def test_bounds_hold_for_all_items_at_all_ticks():
    """At confidence 1 - 1e-9 for a tick: a chance below 1e-6 in all."""
    for seed in range(4):
        ticks, held = stream(40, 1500, seed=seed), 0
        hitters = HeavyHitters(40, BUDGET, 64, every=2, base=3)
        truth = np.zeros(2000, np.int64)
        for tick in ticks:
            truth += np.bincount(tick, minlength=2000)
            release = hitters.step(tick)
            lower, upper = release.bounds(1 - 1e-9)
            assert np.all(lower <= truth[release.items])
            assert np.all(truth[release.items] <= upper)
            held += len(release)
        assert held > 200


def test_events_of_public_items_go_past_the_sketches():
    hitters = HeavyHitters(16, BUDGET, 8, every=1, base=2, source=seeded_source(5))
    hitters.step(["a"] * 2000 + ["b"])
    assert list(hitters.discovered.index) == ["a"]
    for _ in range(3):
        hitters.add(["a"] * 10 + ["b"])
        hitters.step(["a"] * 100)
    assert hitters.discovered.since.tolist() == [330]
    assert abs(hitters.last["a"].count - 2330) < 300
    assert hitters.discovered.parts[0].last == 4  # the largest node that has said something


def test_a_restart_changes_nothing_and_a_second_run_shares_no_noise(tmp_path):
    ticks, last = stream(12, 3000), []
    for restart in (False, True):
        source = seeded_source(3)
        hitters = HeavyHitters(12, BUDGET, 100, every=2, source=source)
        for tick in ticks:
            hitters.step(tick)
            if restart:
                hitters = HeavyHitters.from_bytes(hitters.to_bytes(), source=source)
        last.append(hitters.last.to_payload())
    assert last[0] == last[1]
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("a", dc.Budget(4.0, 1e-3))
    account = ledger.account("a")
    hitters = HeavyHitters(12, BUDGET, 100, every=1, ledger=account)
    hitters.step(ticks[0])
    hitters.step(ticks[1])
    old = hitters.to_bytes()
    known = hitters.step(ticks[2])
    again = HeavyHitters.from_bytes(old, ledger=account, restored=True)
    assert again.discovered.since.sum() == 0  # counters begin again from what was published
    assert again.step(ticks[2]).to_payload() == known.to_payload()
    again.step(ticks[3])
    assert len([event for event in ledger.history("a") if event.kind == "charge"]) == 2


def test_states_of_other_counters_are_corrupt():
    hitters = HeavyHitters(12, BUDGET, 100, every=1)
    hitters.step(["a"] * 5000)
    state = hitters.to_bytes()
    hitters.discovered.since = np.zeros(7, np.int64)
    with pytest.raises(CorruptStateError):
        HeavyHitters.from_bytes(hitters.to_bytes())
    assert HeavyHitters.from_bytes(state).last.items == ["a"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"window": 3, "mechanism": "discover"}, "window"),
        ({"mechanism": "offset", "every": 2}, "every"),
        ({"every": 0}, "every"),
        ({"every": 13}, "every"),
        ({"mechanism": "find"}, "discover"),
    ],
)
def test_what_cannot_be_is_refused(options, says):
    with pytest.raises(ParameterError, match=says):
        HeavyHitters(12, BUDGET, **options)


def test_the_usual_choice():
    assert HeavyHitters(12, BUDGET, window=3).mechanism == "offset"
    assert HeavyHitters(12, dc.Budget(30.0, 1e-3)).mechanism == "offset"
    usual = HeavyHitters(365, BUDGET)
    assert (usual.every, usual.base, usual.levels, usual.threshold) == (5, 4, 4, 70)


def test_a_second_run_keeps_what_counters_had_published_when_larger_nodes_end(tmp_path):
    """Bounds at confidence 1 - 1e-9 for a tick: a chance below 1e-6 in all."""
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("a", dc.Budget(4.0, 1e-3))
    account = ledger.account("a")
    hitters = HeavyHitters(16, BUDGET, 100, every=1, base=2, ledger=account)
    for _ in range(5):
        hitters.step(["a"] * 1000)  # at the first tick in a node, then in its counter
    old = hitters.to_bytes()
    hitters.step(["a"] * 1000)
    again = HeavyHitters.from_bytes(old, ledger=account, restored=True)
    widths = []
    for tick in range(6, 17):  # nodes of the ticks 1 to 8 and 1 to 16 end, and have the first tick of "a" alone
        release = again.step(["a"] * 1000)
        lower, upper = release.bounds(1 - 1e-9)
        assert lower[0] <= 1000 * tick <= upper[0]
        widths.append(release.error_model.shared.scale)
        again = HeavyHitters.from_bytes(again.to_bytes(), ledger=account)
    assert widths[1] > hitters.error_model(6).shared.scale > 0  # with the noise of what was published before


@pytest.mark.parametrize("mixed", [False, True])
def test_events_that_are_added_stay_in_their_order_wherever_calls_end(mixed):
    """An event more moves the ends of all blocks after it. The sketches must see one inserted event all the same."""
    events = [f"t{n}" if mixed and n % 2 else n for n in np.random.default_rng(2).zipf(1.3, 3000) % 60]
    states = []
    for size in (3000, 100, 37):
        hitters = HeavyHitters(16, BUDGET, 8, every=1, base=2, source=seeded_source(5))
        hitters.step(["public"] * 2000)
        assert list(hitters.discovered.index) == ["public"]
        for start in range(0, len(events), size):
            hitters.add([*events[start : start + size], "public"])
        assert hitters.discovered.since.tolist() == [math.ceil(len(events) / size)]
        states.append(hitters._sketches[0])
    plain = MisraGries(8, seed=hitters._seed)
    plain.update(events)
    assert plain.not_private_offset > 0
    for state in states:
        assert state.not_private_counts().to_dict() == plain.not_private_counts().to_dict()
        assert state.not_private_offset == plain.not_private_offset


def test_a_delta_that_no_cut_can_have_is_refused():
    """Its share of an event is below the smallest number: no cut is large enough that anything could be said of it."""
    with pytest.raises(ParameterError, match="delta is too small for epsilon"):
        discovery_calibration(600.0, 1e-200, 1)


@pytest.mark.parametrize("epsilon", [600.0, 700.0, 800.0, 1e6])
def test_what_hides_at_a_large_epsilon_is_enough_for_a_larger_one(epsilon):
    """From 710 on an epsilon has no exponential."""
    assert discovery_calibration(epsilon, 1e-6, 3) == discovery_calibration(600.0, 1e-6, 3)
