"""Heavy hitters over ticks: the tree, the window, the composition, states and bounds."""

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.continual import HeavyHitters
from discreet.noise import seeded_source
from discreet.privacy.accounting import Charge, Tally
from discreet.privacy.calibration.composition import repeated_delta, repeated_share
from discreet_audit.exact import ScriptedSource

BUDGET = dc.Budget(1.0, 1e-6)
# So much budget that no noise differs from 0 (but for a probability below 1e-100) and no cut hides a count of 2.
PLENTY = dc.Budget(5000.0, 0.5)


def ticks(count, seed=1, events=40):
    rng = np.random.default_rng(seed)
    return [rng.zipf(1.5, events) % 30 for _ in range(count)]


@pytest.mark.parametrize("base", [2, 3, 5, None])
@pytest.mark.parametrize("window", [None, 1, 4, 7, 30])
def test_nodes_add_up_to_the_ticks_they_should_cover(base, window):
    stream = ticks(30)
    hitters = HeavyHitters(30, PLENTY, 100, window, base=base, source=seeded_source(1))
    assert hitters.threshold <= 2
    released = []
    for t, items in enumerate(stream, 1):
        result = hitters.step(items)
        covered = stream[max(0, t - (window or 30)) : t]
        exact = Counter(int(i) for part in covered for i in part)
        nodes = hitters._cover(t)
        assert [tick for node in nodes for tick in range(node.first, node.last + 1)] == list(
            range(t - len(covered) + 1, t + 1)
        )
        assert len(nodes) <= 2 * (hitters.base - 1) * hitters.levels
        for item, count in zip(result.items, result.counts, strict=True):
            # A node shows an item it saw twice; of the others one occurrence each is missing.
            assert exact[item] - len(nodes) <= count <= exact[item]
        released += [node for node in hitters._nodes if node not in released]
    # What the accounting rests on: an event is in at most `levels` released nodes.
    for tick in range(1, 31):
        assert sum(node.first <= tick <= node.last for node in released) <= hitters.levels


def test_counters_by_default():
    assert HeavyHitters(10, BUDGET).capacity == 2**16
    assert HeavyHitters(10, BUDGET, mechanism="chan").capacity == 4096  # its noise grows with them


def test_composition_is_the_stated_sum():
    for n in (1, 2, 5, 9):
        for e0 in (0.05, 0.4, 2.0):
            for epsilon in (0.1, 1.0, 3.0):
                h = (
                    sum(
                        math.comb(n, j) * max(0.0, math.exp((n - j) * e0) - math.exp(epsilon + j * e0))
                        for j in range(n + 1)
                    )
                    / (1 + math.exp(e0)) ** n
                )
                expected = 1 - (1 - 1e-9) ** n * (1 - h)
                assert repeated_delta(epsilon, e0, 1e-9, n) == pytest.approx(expected, rel=1e-6, abs=1e-13)


def test_composition_against_the_ledgers_accounting():
    for n in (1, 3, 8, 15):
        each = repeated_share(1.0, 1e-6, n)
        assert each[0] >= 0.999 / n
        if n > 1:
            # The accounting rounds up; a budget a little larger fits what is within ours.
            assert Tally.of([Charge(*each)] * n).fits(dc.Budget(1.01, 1.05e-6))
            assert not Tally.of([Charge(1.1 * each[0], each[1])] * n).fits(dc.Budget(1.0, 1e-6))


def test_bounds_hold_with_a_small_capacity():
    """Bounds of 99.9 percent, ten releases: a right program fails with probability below 0.01 without the seed."""
    hitters = HeavyHitters(64, BUDGET, 64, source=seeded_source(3))
    rng = np.random.default_rng(5)
    weights = 1 / np.arange(1, 3001) ** 1.2
    truth = np.zeros(3000, np.int64)
    for t in range(1, 21):
        items = rng.choice(3000, 5000, p=weights / weights.sum())
        truth += np.bincount(items, minlength=3000)
        result = hitters.step(items)
        if t % 2 == 0:
            lower, upper = result.bounds(0.999)
            actual = truth[result.items]
            assert (lower <= actual).all()
            assert (actual <= upper).all()
    assert result.items[:3] == [0, 1, 2]


@pytest.mark.parametrize(
    ("horizon", "every", "looks"),
    [
        (365, None, [1, 2, 4, 5, 10, 15, 20]),
        (1000, None, [1, 2, 4, 8, 15]),
        (600, None, [1, 2, 4, 8, 9, 18]),
        (60, None, [*range(1, 21)]),
        (365, 5, [5, 10, 15, 20]),
        (20, 10, [10, 20]),
    ],
)
def test_when_items_are_looked_for(horizon, every, looks):
    """A new item in every tick is listed when its block ends, with all that it had, and not before."""
    hitters = HeavyHitters(horizon, dc.Budget(20.0, 1e-2), 100, every=every, source=seeded_source(8))
    counts = [len(hitters.step([f"new at {tick}"] * 400)) for tick in range(1, 21)]
    assert counts == [max((look for look in looks if look <= tick), default=0) for tick in range(1, 21)]


@pytest.mark.parametrize("horizon", [128, 200, 365, 720, 8760, 65_536])
def test_the_first_looks_cost_nothing(horizon):
    early = HeavyHitters(horizon, BUDGET)
    regular = HeavyHitters(horizon, BUDGET, every=early.every)
    assert (early.levels, early.scale, early.threshold) == (regular.levels, regular.scale, regular.threshold)


def test_a_restart_between_the_first_looks_changes_nothing():
    def run(restarts):
        source = seeded_source(4)
        hitters = HeavyHitters(600, dc.Budget(10.0, 1e-3), 10, source=source)
        out = []
        for t, items in enumerate(ticks(20), 1):
            if t in restarts:
                hitters = HeavyHitters.from_bytes(hitters.to_bytes(), source=source)
            out.append(hitters.step(items.tolist()).to_payload())
        return out

    # Counters of items that are public begin again with new noise, so only stops before the first are without a trace.
    assert run([]) == run([1])
    assert [len(release) for release in run([2, 3, 4, 5, 8, 9, 10, 12, 18, 20])] == [len(r) for r in run([2])]


@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("mechanism", ["offset", "chan"])
@pytest.mark.parametrize("kind", [int, str, bytes])
def test_a_restart_changes_nothing(window, mechanism, kind):
    def run(restarts):
        source = seeded_source(4)
        hitters = HeavyHitters(20, dc.Budget(30.0, 1e-3), 10, window, mechanism=mechanism, source=source)
        out = []
        for t, items in enumerate(ticks(20), 1):
            if t in restarts:
                hitters = HeavyHitters.from_bytes(hitters.to_bytes(), source=source)
            named = [{int: i, str: f"é{i}", bytes: bytes([255, i])}[kind] for i in items.tolist()]
            out.append(hitters.step(named).to_payload())
        return out

    assert run([]) == run([1, 2, 9, 16, 20])


def test_a_published_tick_is_returned_as_it_was():
    hitters = HeavyHitters(10, PLENTY, 10)
    first = hitters.step(["a"] * 9, tick=1)
    assert hitters.step(["b"] * 9, tick=1) is first
    restored = HeavyHitters.from_bytes(hitters.to_bytes())
    assert restored.step(["b"] * 9, tick=1).to_payload() == first.to_payload()
    assert restored.step(["a"] * 3, tick=2).counts.tolist() == [12]


def test_a_batch_that_is_refused_changes_nothing():
    hitters = HeavyHitters(10, PLENTY, 10, base=2)
    hitters.step(["a"] * 9)
    before = hitters.to_bytes()
    for bad in (5, "text", {"a": 1}, pa.array([["a"]])):
        with pytest.raises(dc.DataError):
            hitters.step(bad)
    hitters._paid = True
    assert hitters.to_bytes() == before
    with pytest.raises(dc.DataError):
        hitters.step(pa.array(["a", None]))
    assert hitters.step(pa.array(["a", None, "a"]), nulls="skip").counts.tolist() == [11]


def test_kinds_are_counted_apart_and_bad_rows_left_out():
    hitters = HeavyHitters(10, PLENTY, 10, base=2)
    hitters.step(["a"] * 9 + ["\ud800", 1.5, "x" * 5000])
    hitters.step([1.5])  # nothing but a row that is left out: a tick all the same
    hitters = HeavyHitters.from_bytes(hitters.to_bytes())
    published = hitters.step(["a", b"a", 1, b"a", 1, 1, 2**64 - 1] * 9)
    assert dict(zip(published.items, published.counts.tolist(), strict=True)) == {
        "a": 18,
        b"a": 18,
        1: 27,
        2**64 - 1: 9,
    }
    again = HeavyHitters.from_bytes(hitters.to_bytes())
    assert again.last.items == published.items
    assert again.step([]).items == published.items


def test_memory_is_levels_times_capacity():
    hitters = HeavyHitters(2**14, BUDGET, 256)
    rng = np.random.default_rng(1)
    for _ in range(70):
        hitters.step(rng.integers(0, 10**9, 2000))
    one = dc.MisraGries(256)
    one.update(rng.integers(0, 10**9, 2000))
    assert hitters.memory_bytes <= 2 * hitters.levels * one.memory_bytes
    assert all(len(sketch) <= 256 for sketch in hitters._sketches)


def test_the_offset_release_shows_more_than_the_baseline():
    rng = np.random.default_rng(2)
    weights = 1 / np.arange(1, 2001)
    shown = {}
    for mechanism in ("offset", "chan"):
        hitters = HeavyHitters(16, BUDGET, 100, mechanism=mechanism, source=seeded_source(1))
        for _ in range(8):
            shown[mechanism] = len(hitters.step(rng.choice(2000, 20000, p=weights / weights.sum())))
    assert shown["offset"] > 2 * shown["chan"]


def test_charge_and_guarantee(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("clicks", BUDGET)
    account = ledger.account("clicks")
    hitters = HeavyHitters(10, BUDGET, 10, ledger=account)
    result = hitters.step(["a"])
    hitters.step(["a"])
    assert len([event for event in account.history() if event.kind == "charge"]) == 1
    assert result.guarantee.trust == "continual"
    assert (result.guarantee.epsilon, result.guarantee.delta) == (1.0, 1e-6)
    with pytest.raises(dc.BudgetExceededError):
        HeavyHitters(10, BUDGET, 10, ledger=account).step(["a"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"budget": dc.Budget(1.0)},
        {"budget": dc.Budget.zcdp(0.1)},
        {"horizon": 0},
        {"window": 0},
        {"window": 17},
        {"capacity": 0},
        {"mechanism": "other"},
        {"base": 1},
    ],
)
def test_parameters_are_checked(arguments):
    with pytest.raises(dc.ParameterError):
        HeavyHitters(**{"horizon": 16, "budget": BUDGET, **arguments})


def test_damaged_states():
    hitters = HeavyHitters(4, PLENTY, 4)
    hitters.step(["a", "a"])
    data = hitters.to_bytes()
    for position in range(0, len(data), 11):
        broken = bytearray(data)
        broken[position] ^= 0x21
        with pytest.raises(dc.CorruptStateError):
            HeavyHitters.from_bytes(bytes(broken))
    with pytest.raises(dc.CorruptStateError):
        HeavyHitters.from_bytes(dc.continual.Counter(4, PLENTY).to_bytes())


def test_nothing_of_the_data_is_shown():
    hitters = HeavyHitters(4, BUDGET, 4)
    hitters.step(["secret"] * 77)
    assert "secret" not in repr(hitters)
    assert "77" not in repr(hitters)


def test_a_state_is_paid_for_by_the_ledger_that_it_goes_on_with(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    for name in ("first", "second"):
        ledger.grant(name, PLENTY)

    def charges(name):
        return len([event for event in ledger.history(name) if event.kind == "charge"])

    free = HeavyHitters(10, PLENTY, 10)
    free.step(["a"] * 9)
    paid = HeavyHitters.from_bytes(free.to_bytes(), ledger=ledger.account("first"))
    paid.step(["a"])
    assert charges("first") == 1
    for _ in range(2):  # and only once
        paid = HeavyHitters.from_bytes(paid.to_bytes(), ledger=ledger.account("first"))
        paid.step(["a"])
    assert charges("first") == 1
    with pytest.raises(dc.LedgerError, match="another ledger or account"):
        HeavyHitters.from_bytes(paid.to_bytes(), ledger=ledger.account("second"))
    assert (charges("first"), charges("second")) == (1, 0)


def test_events_that_are_added_as_they_come():
    """Counted as those of a step are, in however many pieces; kept by a state; refused at the end."""
    pieces = [["a"] * 5, iter(["b"] * 4), pa.chunked_array([["a", "c"], ["c"] * 4]), np.array(["a", "b"])]
    mechanism = HeavyHitters(2, PLENTY, 16)
    for piece in pieces:
        mechanism.add(piece)
    mechanism = HeavyHitters.from_bytes(mechanism.to_bytes())
    found = mechanism.step(["c"] * 3)
    assert dict(zip(found.items, found.counts.tolist(), strict=True)) == {"a": 7, "b": 5, "c": 8}
    with pytest.raises(dc.DataError):
        mechanism.add(["d", None])  # nothing of it is taken
    mechanism.add(pa.array(["d"] * 6 + [None]), nulls="skip")
    found = mechanism.step()
    assert dict(zip(found.items, found.counts.tolist(), strict=True))["d"] == 6
    with pytest.raises(dc.ParameterError, match="used up"):
        mechanism.add(["e"])


def test_a_counter_of_zero_is_not_shown_whatever_its_noise():
    hitters = HeavyHitters(4, BUDGET, 4, mechanism="chan", source=ScriptedSource(10**6, 10**6))
    assert len(hitters.step([1, 2, 3, 4, 5])) == 0
    assert hitters.step([5, 5]).items == [5]


def test_all_noises_of_all_listed_items_may_fail():
    """A noise for each of them, the shared one included: 1,000 items are off by more than one is."""
    hitters = HeavyHitters(64, dc.Budget(1.0, 1e-6), 256)
    one, many = (hitters.error_model(40, listed) for listed in (1, 1000))
    assert one.shared is not None
    assert many.shared is not None
    assert (one.shared.draws, many.shared.draws) == (1, 1000)
    assert (one.noise.draws, many.noise.draws) == (1, 1000)
    assert many.shared.bound(0.05) > 1.5 * one.shared.bound(0.05)


def test_what_is_told_of_items_is_in_order_not_in_that_of_a_set():
    hitters = dc.continual.HeavyHitters(40, dc.Budget(50.0, 1e-6), 16)
    for tick in range(12):
        release = hitters.step([f"i{item}" for item in range(tick + 1) for _ in range(50)])
        places = release.error_model.stretches.places
        assert list(places) == sorted(set(places))
    assert len(places) > 3


def test_what_was_published_of_another_draw_may_lack_on_both_sides():
    """A second run goes on from what was published. Where that was another draw, parts and counts say different things
    of what nodes held back: intervals are wider by that, once for each time it happened."""
    hitters = HeavyHitters(64, BUDGET, capacity=64, source=seeded_source(3))
    for _ in range(8):
        last = hitters.step(["a"] * 900 + ["b"] * 700)
    found = hitters.discovered
    assert set(last.items) == {"a", "b"}
    counts, _ = found.counts()
    published = dict(zip(found.index, counts.tolist(), strict=True))
    plain = hitters._listed(found).bounds()

    def again(changes, lacks):
        for item, change in changes.items():
            published[item] += change
        found.begin_again(dict(published), 40.0, 0.0)
        assert dict(zip(found.index, found.counts()[0].tolist(), strict=True)) == published
        assert found.carried_below == lacks
        release = hitters._listed(found)
        assert (release.error_model.summary_below, release.error_model.summary_above) == (lacks, lacks)
        return release

    again({}, 0.0)  # its own draw
    again({"a": 5}, 40.0)
    again({}, 40.0)
    release = again({"a": -5, "b": 1}, 80.0)
    for side, (before, after) in enumerate(zip(plain, release.bounds(), strict=True)):
        for item, change in (("a", 0), ("b", 1)):
            wider = after[release.items.index(item)] - before[last.items.index(item)]
            assert wider == pytest.approx(change + (80.0 if side else -80.0), abs=2.0)
