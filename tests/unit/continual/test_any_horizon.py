"""Histograms and heavy hitters without a horizon: restarts, ledgers, bounds, memory. Costs: tests/audit."""

import math

import pytest

import discreet as dc
from discreet.continual import HeavyHitters, Histogram
from discreet.errors import OldStateError
from discreet.noise import seeded_source

BUDGET = dc.Budget(20.0, 1e-3)
EVENTS = ["a"] * 400 + ["b"] * 250 + ["c"]
SETTINGS = {
    "unknown": (Histogram, {"max_items_per_event": 1}),
    "unknown, tree": (Histogram, {"max_items_per_event": 2, "mechanism": "tree", "keep_discovered": True}),
    "known": (Histogram, {"universe": ["a", "b", "c"], "max_items_per_event": 1}),
    "known, top k": (Histogram, {"universe": ["a", "b", "c"], "k": 2}),
    "unknown, top k": (Histogram, {"k": 2}),
    "limit": (Histogram, {"max_items_per_event": 1, "mechanism": "limit"}),
    "people": (Histogram, {"unit": dc.User(2)}),
    "hitters": (HeavyHitters, {"capacity": 16}),
    "hitters, added up": (HeavyHitters, {"capacity": 16, "mechanism": "offset"}),
    "window": (HeavyHitters, {"capacity": 16, "window": 3}),
}


def step(made, events=EVENTS):
    if made.unit != dc.Event():
        return made.step(events, users=[f"{made.tick} {i}" for i in range(len(events))])
    return made.step(events)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_restart_changes_nothing_in_any_epoch(name):
    kind, options = SETTINGS[name]

    def run(restarts):
        source = seeded_source(4)
        made, out = kind(None, BUDGET, source=source, **options), []
        for tick in range(1, 20):
            if tick in restarts:
                made = kind.from_bytes(made.to_bytes(), source=source)
            if name.startswith("hitters"):
                made.add(EVENTS[:9])
                if tick in restarts:  # in the open tick, which may be the first of an epoch
                    made = kind.from_bytes(made.to_bytes(), source=source)
            out.append(step(made).to_payload())
        return out

    assert run([]) == run([1, 2, 3, 4, 7, 8, 9, 16, 19])


@pytest.mark.parametrize("name", SETTINGS)
def test_counts_go_on_through_epochs(name):
    """All but a window count every tick; 30 standard deviations, seeded."""
    kind, options = SETTINGS[name]
    made = kind(None, BUDGET, source=seeded_source(7), **options)
    for _ in range(34):
        release = step(made)
    ticks = 3 if name == "window" else made.tick
    counts = dict(zip(release.items, release.counts.tolist(), strict=True))
    assert counts["a"] == pytest.approx(400 * ticks, abs=100 * math.sqrt(ticks))
    assert counts["b"] == pytest.approx(250 * ticks, abs=100 * math.sqrt(ticks))
    assert "any number" in repr(made)
    if "top k" not in name:
        for item, low, high in zip(release.items, *release.bounds(), strict=True):
            assert low <= {"a": 400, "b": 250, "c": 1}[item] * ticks <= high


@pytest.mark.parametrize("name", ["unknown", "known, top k", "hitters"])
def test_a_ledger_charges_once_and_refuses_old_states(name, tmp_path):
    kind, options = SETTINGS[name]
    ledger = dc.Ledger(tmp_path / "ledger.db")
    ledger.grant("data", dc.Budget(40.0, 2e-3))
    account = ledger.account("data")
    made = kind(None, BUDGET, ledger=account, **options)
    for _ in range(5):
        step(made)
    old = made.to_bytes()
    releases = [step(made).to_payload() for _ in range(4)]
    assert account.spent().epsilon == pytest.approx(20.0)
    with pytest.raises(OldStateError):
        kind.from_bytes(old, ledger=account)
    again = kind.from_bytes(old, ledger=account, restored=True)
    assert [step(again).to_payload() for _ in range(4)] == releases
    for _ in range(9):
        step(again)
    assert again.tick == 18
    assert account.spent().epsilon == pytest.approx(40.0)


def test_what_is_refused():
    for call, text in (
        (lambda: Histogram(None, BUDGET, ["a"], k=1, mechanism="sparse"), "sparse"),
        (lambda: Histogram(0, BUDGET, max_items_per_event=1), "horizon"),
        (lambda: HeavyHitters(None, BUDGET, every=3), "every"),
        (lambda: HeavyHitters(9, BUDGET, 64, memory="1GB"), "memory"),
        (lambda: HeavyHitters(9, BUDGET, memory="1MB"), "too small"),
        (lambda: HeavyHitters(9, BUDGET, memory="much"), "2GB"),
        (lambda: HeavyHitters(9, BUDGET, memory="1GB", mechanism="chan"), "chan"),
    ):
        with pytest.raises(dc.ParameterError, match=text):
            call()


def test_memory_decides_the_counters():
    small, large = (HeavyHitters(365, BUDGET, memory=memory).capacity for memory in ("200MB", "2GB"))
    assert small < large
    assert large & (large - 1) == 0
    assert HeavyHitters(None, BUDGET, memory="2GB").capacity == large  # of five levels at most
    assert HeavyHitters(365, BUDGET).capacity == 65_536
