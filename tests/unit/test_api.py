"""release, top_k and plan: what they return, refuse, charge and store."""

import json
import math
import threading
import weakref
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet import central, published
from discreet.central import Mechanism, Offset
from discreet.central._base import split_off_total
from discreet.noise import seeded_source
from discreet.questions import MECHANISMS
from discreet.questions.choose import published_from

BUDGET = dc.Budget(1.0, 1e-6)


def filled(capacity=16):
    sketch = dc.MisraGries(capacity)
    sketch.update(["cats"] * 1000 + ["dogs"] * 500 + ["axolotl"])
    return sketch


@pytest.fixture
def account(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("searches", dc.Budget(10.0, 1e-4))
    return ledger.account("searches")


# ---- release ---------------------------------------------------------------------------------------------------------


def test_release_lists_what_is_frequent_and_hides_what_is_rare():
    histogram = dc.release(filled(), BUDGET)
    assert histogram.items == ["cats", "dogs"]
    assert (histogram.guarantee.epsilon, histogram.guarantee.delta) == (1.0, 1e-6)
    assert histogram.guarantee.unit == dc.Event()
    assert not histogram.guarantee.seeded


def test_auto_says_what_it_picked_and_why():
    guarantee = dc.release(filled(), BUDGET).guarantee
    assert guarantee.mechanism == Offset.name
    assert "one noise a count" in guarantee.chosen_because


def test_what_the_reason_says_of_the_offset_release_is_so():
    small, large = (Offset(BUDGET, capacity=capacity) for capacity in (1, 2**16))
    assert small.threshold == large.threshold
    assert small.error_model.shared is None
    assert dc.release(filled(), BUDGET).offset is not None


def exact():
    counts = dc.ExactCounts()
    counts.update(["cats"] * 1000 + ["dogs"] * 500 + ["axolotl"])
    return counts


def merged():
    sketch = filled()
    sketch.merge(filled())
    return sketch


def users(capacity=16):
    sketch = dc.UserMisraGries(capacity, 3)
    sketch.update([["cats", "dogs"], ["cats"]] * 500)
    return sketch


def saving(capacity=16):
    sketch = dc.SpaceSaving(capacity)
    sketch.update(["cats"] * 1000 + ["dogs"] * 500 + ["axolotl"])
    return sketch


def merged_saving():
    sketch = saving()
    sketch.merge(saving())
    return sketch


def linear(kind, depth):
    sketch = kind(4096, depth, tracked=16)
    sketch.update(["cats"] * 1000 + ["dogs"] * 500 + ["axolotl"])
    return sketch


def count_min():
    return linear(dc.CountMin, 15)


def count_sketch():
    return linear(dc.CountSketch, 31)


def streams():
    return [filled(), filled()]


@pytest.mark.parametrize(
    ("summary", "unit", "expected"),
    [
        (filled, dc.Event(), central.Offset),
        (filled, dc.User(2), central.Offset),
        (merged, dc.Event(), central.Merged),
        (merged, dc.User(2), central.Merged),
        (users, dc.User(3), central.UserSketch),
        (saving, dc.Event(), published.PrivateSpaceSaving),
        (saving, dc.User(2), published.PrivateSpaceSaving),
        (streams, dc.Event(), central.Summed),
        (count_min, dc.Event(), central.CountMinHeavyHitters),
        (count_sketch, dc.User(2), central.CountSketchHeavyHitters),
        (exact, dc.Event(), central.Stability),
        (exact, dc.User(4), central.Stability),
    ],
)
def test_auto_picks_by_summary_and_unit(summary, unit, expected):
    histogram = dc.release(summary(), dc.Budget(2.0, 1e-6), unit=unit)
    assert histogram.guarantee.mechanism == expected.name
    assert histogram.guarantee.unit == unit
    assert histogram.guarantee.chosen_because
    assert histogram.items == ["cats", "dogs"]


SUMMARIES = {
    "user": users,
    "space_saving": saving,
    "stability": exact,
    "summed": streams,
    "count_min": count_min,
    "count_sketch": count_sketch,
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_named_mechanism_releases_its_summary(name, account):
    summary = SUMMARIES.get(name, filled)()
    unit = dc.User(3) if name == "user" else dc.Event()
    histogram = dc.release(summary, dc.Budget(4.0, 1e-6), name, unit, account, total_share=0.2, charge_id="one")
    assert set(histogram.items) == {"cats", "dogs"}
    assert histogram.guarantee.epsilon == 4.0
    assert dc.Release.from_payload(histogram.to_payload()).to_payload() == histogram.to_payload()
    again = dc.release(summary, dc.Budget(4.0, 1e-6), name, unit, account, total_share=0.2, charge_id="one")
    assert again.to_payload() == histogram.to_payload()
    truth = 0 if name == "user" else 2 if name == "summed" else 1
    rest = histogram.rest(1 - 1e-9)
    assert rest.lower <= truth <= rest.upper


def test_a_pure_budget_works_over_a_known_universe():
    budget = dc.Budget(1.0)
    mechanism = central.ReducedMisraGries(budget, capacity=16, universe=["cats", "dogs", "axolotl", "newt"])
    histogram = dc.release(filled(), budget, mechanism, total_share=0.1)
    assert histogram.items[:2] == ["cats", "dogs"]
    assert (histogram.guarantee.epsilon, histogram.guarantee.delta) == (1.0, 0.0)
    with pytest.raises(dc.ParameterError, match="universe"):
        dc.release(filled(), budget)


def test_the_length_of_a_stream_is_private_unless_said():
    noisy = dc.release(saving(), BUDGET)
    assert noisy.offset is not None
    assert "spent on the length" in " ".join(noisy.guarantee.assumptions)
    with pytest.raises(dc.ParameterError, match="a public number"):
        dc.release(saving(), BUDGET, length="public")
    declared = dc.release(saving(), BUDGET, length=1501)
    assert declared.guarantee.assumptions == ("the length of the stream is public",)
    with pytest.raises(dc.IncompatibleSummaryError, match="longer"):
        dc.release(saving(), BUDGET, length=1500)


@pytest.mark.parametrize(
    "mechanism", ["offset", Offset, Offset(BUDGET, capacity=16)], ids=["name", "class", "instance"]
)
def test_a_mechanism_by_name_class_or_instance(mechanism):
    histogram = dc.release(filled(), BUDGET, mechanism)
    assert histogram.guarantee.mechanism == Offset.name
    assert histogram.threshold == Offset(BUDGET, capacity=16).threshold


def test_an_instance_brings_its_unit():
    mechanism = Offset(BUDGET, capacity=16, unit=dc.User(3))
    assert dc.release(filled(), BUDGET, mechanism).guarantee.unit == dc.User(3)
    with pytest.raises(dc.ParameterError, match="protects"):
        dc.release(filled(), BUDGET, mechanism, dc.Event())


def test_an_instance_made_for_another_budget_is_refused():
    with pytest.raises(dc.ParameterError, match="made for"):
        dc.release(filled(), dc.Budget(2.0, 1e-6), Offset(BUDGET, capacity=16))


def test_an_empty_summary_gives_a_valid_empty_release():
    histogram = dc.release(dc.MisraGries(8), BUDGET, total_share=0.1)
    assert len(histogram) == 0
    assert histogram.items == []
    assert histogram.guarantee.epsilon == 1.0
    assert histogram.to_dict()["items"] == []
    assert dc.Release.from_payload(histogram.to_payload()).to_payload() == histogram.to_payload()


def test_one_counter_is_enough():
    sketch = dc.MisraGries(1)
    sketch.update([7] * 1000)
    assert dc.release(sketch, BUDGET).items == [7]


def test_metadata_of_two_different_streams_is_the_same():
    """Everything but items, counts, offset and total must be a function of public parameters."""

    def metadata(sketch):
        fields = json.loads(dc.release(sketch, BUDGET, total_share=0.2).to_payload())
        return {key: value for key, value in fields.items() if key not in ("items", "counts", "offset", "total")}

    long = dc.MisraGries(16)
    long.update([str(i % 100) for i in range(5000)])
    assert metadata(dc.MisraGries(16)) == metadata(filled()) == metadata(long)


def test_a_summary_may_be_released_again_with_fresh_noise():
    """Twenty counts with noise of scale 100 are equal twice with probability below 1e-40."""
    sketch = dc.MisraGries(32)
    sketch.update([i for i in range(20) for _ in range(10_000)])
    budget = dc.Budget(0.01, 1e-6)
    one, two = (dc.release(sketch, budget) for _ in range(2))
    assert dict(zip(one.items, one.counts, strict=True)) != dict(zip(two.items, two.counts, strict=True))


def test_a_seeded_release_says_so():
    first, second = (dc.release(filled(), BUDGET, source=seeded_source(1)) for _ in range(2))
    assert first.to_payload() == second.to_payload()
    assert first.guarantee.seeded
    assert "NOT PRIVATE" in repr(first)


def test_a_release_is_of_one_moment(monkeypatch):
    """Events that arrive while noise is drawn are in all parts of the release or in none."""
    sketch = filled()
    seen = {}
    publish = Offset._publish

    def slow(self, summary, source):
        before = summary.total
        sketch.update(["dogs"] * 10_000)
        seen["steady"] = summary.total == before
        return publish(self, summary, source)

    monkeypatch.setattr(Offset, "_publish", slow)
    histogram = dc.release(sketch, dc.Budget(10.0, 1e-6), total_share=0.5)
    assert seen["steady"]
    assert histogram.items[0] == "cats"
    assert histogram.total < 5000


def test_releases_while_other_threads_update(account):
    sketch = filled()
    stop = threading.Event()

    def update():
        while not stop.is_set():
            sketch.update(["cats", "dogs"] * 50)

    writer = threading.Thread(target=update)
    writer.start()
    try:
        releases = [dc.release(sketch, BUDGET, ledger=account) for _ in range(5)]
    finally:
        stop.set()
        writer.join()
    assert all(set(histogram.items) == {"cats", "dogs"} for histogram in releases)
    assert [event.kind for event in account.history()].count("charge") == 5


# ---- the total -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 1 / 3, 0.9, 1e-9, 1 - 1e-12])
@pytest.mark.parametrize("epsilon", [1.0, 0.1, 1.1, 1e-5, 3.0000001])
def test_the_parts_never_cost_more_than_the_whole(epsilon, share):
    rest, noise = split_off_total(dc.Budget(epsilon, 1e-6), share, dc.Event())
    assert Fraction(rest.epsilon) + 1 / noise.scale <= Fraction(epsilon)
    assert Fraction(rest.epsilon) + 1 / noise.scale >= Fraction(epsilon) * (1 - Fraction(1, 10**15))
    assert rest.delta == 1e-6


def test_the_total_of_users_has_more_noise():
    _, noise = split_off_total(dc.Budget(1.0, 1e-6), 0.25, dc.User(5))
    assert noise.scale == 20


def test_the_total_under_zcdp_is_gaussian():
    rest, noise = split_off_total(dc.Budget.zcdp(0.3), 0.1, dc.User(2))
    rho = Fraction(2 * 2) / (2 * noise.scale**2)
    assert noise.law == "gaussian"
    assert Fraction(rest.rho) + rho <= Fraction(0.3)
    assert float(Fraction(rest.rho) + rho) == pytest.approx(0.3)


def test_everything_else(account):
    histogram = dc.release(filled(), dc.Budget(2.0, 1e-6), ledger=account, total_share=0.5)
    assert histogram.guarantee.epsilon == 2.0
    assert "stream's length" in " ".join(histogram.guarantee.assumptions)
    assert histogram.threshold == Offset(dc.Budget(1.0, 1e-6), capacity=16).threshold
    assert histogram.total_noise.scale == 1
    rest = histogram.rest(1 - 1e-9)
    assert rest.lower <= 1 <= rest.upper
    assert abs(histogram.total - 1501) < 60  # exp(-60)
    charge = next(event for event in account.history() if event.kind == "charge")
    assert charge.details["budget"]["epsilon"] == 2.0


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, math.nan, "0.1", True])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(dc.ParameterError, match="total_share"):
        dc.release(filled(), BUDGET, total_share=share)


# ---- the ledger ------------------------------------------------------------------------------------------------------


def test_a_repeated_charge_id_returns_the_stored_release(account):
    """A fresh release of these 22 items equals the first with probability below 1e-12 (0.28 for each noise)."""
    sketch = filled(64)
    sketch.update([f"item {i}" for i in range(20)] * 500)
    first = dc.release(sketch, BUDGET, ledger=account, charge_id="monday")
    changed = sketch.copy()
    changed.update(["zebra"] * 9999)
    again = dc.release(changed, BUDGET, ledger=account, charge_id="monday")
    assert again.to_payload() == first.to_payload()
    assert account.spent().epsilon == 1.0
    assert dc.release(sketch, BUDGET, ledger=account).to_payload() != first.to_payload()
    assert [event.kind for event in account.history()].count("charge") == 2


def test_a_charge_id_stands_for_one_request(account):
    """Other k, other words about the source: not the release of something else. The payment says what happened."""
    column = ["cats"] * 300 + ["dogs"] * 200
    asked = {"k": 2, "budget": BUDGET, "ledger": account, "charge_id": "monday", "request": "monday.csv"}
    first = dc.top_k(column, **asked)
    assert first.payment == "charged"
    again = dc.top_k(column, **asked)
    assert (again.payment, again.to_json()) == ("replayed", first.to_json())
    for other in ({"k": 1}, {"request": "tuesday.csv"}, {"request": None}, {"nulls": "skip"}):
        with pytest.raises(dc.LedgerError, match="another request"):
            dc.top_k(column, **{**asked, **other})
    assert dc.top_k(column, 2, BUDGET).payment is None


def test_a_failed_draw_says_which_charge_it_left(account, monkeypatch):
    """And the charge is good for one release: drawn then, not charged again."""
    monkeypatch.setattr(dc.Release, "to_payload", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        dc.release(filled(), BUDGET, ledger=account, charge_id="monday")
    if hasattr(caught.value, "__notes__"):
        assert "monday" in caught.value.__notes__[0]
    monkeypatch.undo()
    assert dc.release(filled(), BUDGET, ledger=account, charge_id="monday").payment == "charged before"
    assert [event.kind for event in account.history()] == ["grant", "charge", "release"]


def test_a_charge_id_stands_for_one_column_of_lists(account):
    table = {"tags": [["x"]] * 300, "others": [["y"]] * 300}
    whole = dc.Budget(0.1, 1e-6)
    dc.top_k(table, 3, whole, column="tags", unit=dc.User(), ledger=account, charge_id="people")
    with pytest.raises(dc.LedgerError, match="another request"):
        dc.top_k(table, 3, whole, column="others", unit=dc.User(), ledger=account, charge_id="people")


def test_a_charge_id_stands_for_one_rule_of_bad_items(account):
    asked = {"ledger": account, "charge_id": "rule"}
    dc.top_k(["x"] * 300, 3, dc.Budget(0.1, 1e-9), **asked)
    with pytest.raises(dc.LedgerError, match="another request"):
        dc.top_k(["x"] * 300, 3, dc.Budget(0.1, 1e-9), bad_rows="error", **asked)


def test_rules_that_people_do_not_have_are_refused():
    people = {"what": ["x", 1.5], "who": [1, 2]}
    with pytest.raises(dc.ParameterError, match="bad_rows error works with files"):
        dc.top_k(people, 3, dc.Budget(1.0, 1e-6), column="what", user="who", bad_rows="error")
    with pytest.raises(dc.ParameterError, match="bad_rows error works with files"):
        dc.top_k([["x"], [1.5]], 3, dc.Budget(1.0, 1e-6), unit=dc.User(), bad_rows="error")


def test_a_charge_id_stands_for_one_release(account):
    dc.release(filled(), BUDGET, ledger=account, charge_id="monday")
    for other in (
        lambda: dc.release(filled(), dc.Budget(0.5, 1e-6), ledger=account, charge_id="monday"),
        lambda: dc.release(filled(), BUDGET, unit=dc.User(2), ledger=account, charge_id="monday"),
        lambda: dc.release(filled(), BUDGET, ledger=account, charge_id="monday", total_share=0.1),
    ):
        with pytest.raises(dc.LedgerError):
            other()


@pytest.mark.parametrize(("first", "other"), [(None, 2), (2, 3)])
def test_a_charge_id_stands_for_one_number_of_parts_per_user(account, first, other):
    asked = {"budget": BUDGET, "unit": dc.User(2), "ledger": account, "charge_id": "parts"}
    sketch = dc.UserMisraGries(2, 2)
    sketch.update([[1, 2]] * 1000)
    dc.release(sketch, parts_per_user=first, **asked)
    with pytest.raises(dc.LedgerError, match="parts_per_user"):
        dc.release(sketch, parts_per_user=other, **asked)
    assert dc.release(sketch, parts_per_user=first, **asked).payment == "replayed"


def test_a_refused_charge_draws_nothing(tmp_path, monkeypatch):
    ledger = dc.Ledger(tmp_path / "small.sqlite")
    ledger.grant("searches", dc.Budget(1.5, 1e-5))
    account = ledger.account("searches")
    dc.release(filled(), BUDGET, ledger=account)
    monkeypatch.setattr(Offset, "_publish", lambda *_: pytest.fail("noise was drawn"))
    before = ledger.history()
    with pytest.raises(dc.BudgetExceededError):
        dc.release(filled(), BUDGET, ledger=account)
    assert ledger.history() == before


def test_the_charge_is_on_disk_before_noise_is_drawn(account, monkeypatch):
    publish = Offset._publish
    kinds = []

    def watch(self, summary, source):
        kinds.extend(event.kind for event in account.history())
        return publish(self, summary, source)

    monkeypatch.setattr(Offset, "_publish", watch)
    dc.release(filled(), BUDGET, ledger=account)
    assert kinds == ["grant", "charge"]
    assert [event.kind for event in account.history()] == ["grant", "charge", "release"]


def test_what_was_counted_is_checked_before_it_is_paid_for(account):
    """A stream that is longer than was said is refused when it was read, and costs nothing."""
    mechanism = published.PrivateSpaceSaving(BUDGET, 16, stream_length=10)
    with pytest.raises(dc.IncompatibleSummaryError, match="longer than stream_length"):
        dc.top_k(["cats"] * 11, 5, BUDGET, mechanism=mechanism, ledger=account)
    assert [event.kind for event in account.history()] == ["grant"]


def test_sums_of_sketches_are_not_for_one_stream_of_rows(account):
    def rows():
        raise AssertionError("nothing is read")
        yield

    with pytest.raises(dc.IncompatibleSummaryError, match="takes a list of MisraGries"):
        dc.top_k(rows(), 5, BUDGET, mechanism=central.Summed(BUDGET, 16, sketches=2), ledger=account)
    assert [event.kind for event in account.history()] == ["grant"]


class Crash(BaseException):
    """Stands for a process that dies."""


@pytest.mark.parametrize("where", ["charge", "draw", "payload", "store"])
def test_a_crash_may_waste_budget_but_publishes_nothing_uncharged(account, monkeypatch, where):
    def crash(*args, **kwargs):
        raise Crash

    target = {
        "charge": (dc.Account, "pay"),
        "draw": (Offset, "_publish"),
        "payload": (dc.Release, "to_payload"),
        "store": (dc.Account, "store"),
    }[where]
    with monkeypatch.context() as patch:
        patch.setattr(*target, crash)
        with pytest.raises(Crash):
            dc.release(filled(), BUDGET, ledger=account, charge_id="monday")
    kinds = [event.kind for event in account.history()]
    assert kinds == ["grant"] if where == "charge" else ["grant", "charge"]
    release = dc.release(filled(), BUDGET, ledger=account, charge_id="monday")
    assert [event.kind for event in account.history()] == ["grant", "charge", "release"]
    assert dc.release(filled(), BUDGET, ledger=account, charge_id="monday").to_payload() == release.to_payload()


def test_a_crash_after_storing_returns_the_stored_release(account, monkeypatch):
    stored = []
    store = dc.Account.store

    def crash(self, charge_id, payload):
        stored.append(store(self, charge_id, payload))
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(dc.Account, "store", crash)
        with pytest.raises(Crash):
            dc.release(filled(), BUDGET, ledger=account, charge_id="monday")
    assert dc.release(filled(), BUDGET, ledger=account, charge_id="monday").to_payload() == stored[0]


def test_the_loser_of_a_race_returns_the_stored_release(account, monkeypatch):
    """Another process stores its release between our charge and our store."""
    winner = []
    publish = Offset._publish

    def late(self, summary, source):
        drawn = publish(self, summary, source)
        monkeypatch.setattr(Offset, "_publish", publish)
        winner.append(dc.release(filled(), BUDGET, ledger=account, charge_id="monday"))
        return drawn

    monkeypatch.setattr(Offset, "_publish", late)
    loser = dc.release(filled(), BUDGET, ledger=account, charge_id="monday")
    assert loser.to_payload() == winner[0].to_payload()
    assert [event.kind for event in account.history()] == ["grant", "charge", "release"]


BAD_RELEASES = {
    "no summary": (dc.ParameterError, lambda a: dc.release({"cats": 3}, BUDGET, ledger=a)),
    "no budget": (dc.ParameterError, lambda a: dc.release(filled(), 1.0, ledger=a)),
    "no delta": (dc.ParameterError, lambda a: dc.release(filled(), dc.Budget(1.0), ledger=a)),
    "zcdp": (dc.ParameterError, lambda a: dc.release(filled(), dc.Budget.zcdp(0.1), ledger=a)),
    "epsilon 0": (dc.ParameterError, lambda a: dc.release(filled(), dc.Budget(0.0, 1e-6), ledger=a)),
    "epsilon nan": (dc.ParameterError, lambda a: dc.release(filled(), dc.Budget(math.nan, 1e-6), ledger=a)),
    "delta 1": (dc.ParameterError, lambda a: dc.release(filled(), dc.Budget(1.0, 1.0), ledger=a)),
    "tiny epsilon": (dc.ParameterError, lambda a: dc.release(filled(), dc.Budget(1e-17, 1e-6), ledger=a)),
    "tiny share": (dc.ParameterError, lambda a: dc.release(filled(), BUDGET, ledger=a, total_share=1e-17)),
    "unknown name": (dc.ParameterError, lambda a: dc.release(filled(), BUDGET, "magic", ledger=a)),
    "no mechanism": (dc.ParameterError, lambda a: dc.release(filled(), BUDGET, 7, ledger=a)),
    "no unit": (dc.ParameterError, lambda a: dc.release(filled(), BUDGET, unit="event", ledger=a)),
    "wrong unit": (dc.ParameterError, lambda a: dc.release(filled(), BUDGET, unit=dc.Replace(), ledger=a)),
    "unused length": (dc.ParameterError, lambda a: dc.release(filled(), BUDGET, ledger=a, length=10)),
    "seeded": (dc.ParameterError, lambda a: dc.release(filled(), BUDGET, ledger=a, source=seeded_source(1))),
    "no source": (dc.ParameterError, lambda a: dc.release(filled(), BUDGET, ledger=a, source=1)),
    "bad charge id": (dc.ParameterError, lambda a: dc.release(filled(), BUDGET, ledger=a, charge_id="")),
    "other capacity": (
        dc.ParameterError,
        lambda a: dc.release(filled(), BUDGET, Offset(BUDGET, capacity=8), ledger=a),
    ),
    "merged": (dc.IncompatibleSummaryError, lambda a: dc.release(merged(), BUDGET, "offset", ledger=a)),
    "users as events": (dc.IncompatibleSummaryError, lambda a: dc.release(users(), BUDGET, ledger=a)),
    "no summaries": (dc.ParameterError, lambda a: dc.release([], BUDGET, ledger=a)),
    "not summaries": (dc.ParameterError, lambda a: dc.release([filled(), 3], BUDGET, ledger=a)),
    "other summaries": (dc.IncompatibleSummaryError, lambda a: dc.release([filled(), saving()], BUDGET, ledger=a)),
    "two capacities": (dc.ParameterError, lambda a: dc.release([filled(), filled(8)], BUDGET, ledger=a)),
    "several to one": (dc.DiscreetError, lambda a: dc.release([filled()], BUDGET, "offset", ledger=a)),
    "one to several": (dc.DiscreetError, lambda a: dc.release(filled(), BUDGET, "summed", ledger=a)),
    "untracked": (dc.IncompatibleSummaryError, lambda a: dc.release(dc.CountMin(64, 5), BUDGET, ledger=a)),
    "merged saving": (dc.IncompatibleSummaryError, lambda a: dc.release(merged_saving(), BUDGET, ledger=a)),
    "a word for the length": (dc.ParameterError, lambda a: dc.release(saving(), BUDGET, length="x", ledger=a)),
    "wrong summary": (
        dc.IncompatibleSummaryError,
        lambda a: dc.release(dc.SpaceSaving(4), BUDGET, Offset(BUDGET, capacity=4), ledger=a),
    ),
    "k": (dc.ParameterError, lambda a: dc.top_k(["a"], 0, BUDGET, ledger=a)),
    "top_k without delta": (dc.ParameterError, lambda a: dc.top_k(["a"], 1, dc.Budget(1.0), ledger=a)),
    "nulls": (dc.ParameterError, lambda a: dc.top_k(["a"], 1, BUDGET, nulls="maybe", ledger=a)),
    "a null": (dc.DataError, lambda a: dc.top_k([None, "a"], 1, BUDGET, ledger=a)),
    "other objects": (dc.DataError, lambda a: dc.top_k([1.5, 2.5], 1, BUDGET, ledger=a)),
    "one bad item": (dc.DataError, lambda a: dc.top_k(["cats", 1.5], 1, BUDGET, bad_rows="error", ledger=a)),
    "bad items": (dc.ParameterError, lambda a: dc.top_k(["a"], 1, BUDGET, bad_rows="drop", ledger=a)),
    "a counter": (dc.DataError, lambda a: dc.top_k(Counter(["cats"]), 1, BUDGET, ledger=a)),
    "a mapping": (dc.DataError, lambda a: dc.top_k({"cats": ["a"]}, 1, BUDGET, unit=dc.User(2), ledger=a)),
    "one string": (dc.DataError, lambda a: dc.top_k("aaaa", 1, BUDGET, grouped=False, ledger=a)),
    "no column": (dc.DataError, lambda a: dc.top_k(7, 1, BUDGET, ledger=a)),
    "floats": (dc.DataError, lambda a: dc.top_k(pd.Series([1.0, None]), 1, BUDGET, ledger=a)),
    "a table": (dc.DataError, lambda a: dc.top_k(pa.table({"a": [1], "b": [2]}), 1, BUDGET, ledger=a)),
    "a frame": (dc.DataError, lambda a: dc.top_k(pd.DataFrame({"a": [1], "b": [2]}), 1, BUDGET, ledger=a)),
    "lists as events": (dc.ParameterError, lambda a: dc.top_k(pa.array([["a"]]), 1, BUDGET, ledger=a)),
    "items as lists": (dc.DataError, lambda a: dc.top_k(["a", "b"], 1, BUDGET, unit=dc.User(2), ledger=a)),
    "items as lists of users": (
        dc.DataError,
        lambda a: dc.top_k(["a", "b"], 1, BUDGET, mechanism="user", unit=dc.User(2), ledger=a),
    ),
    "items and lists": (dc.DataError, lambda a: dc.top_k([["a"], "cats"], 1, BUDGET, unit=dc.User(2), ledger=a)),
    "objects as lists": (
        dc.DataError,
        lambda a: dc.top_k(pd.Series(["cats"], dtype=object), 1, BUDGET, unit=dc.User(2), ledger=a),
    ),
    "a null list": (dc.DataError, lambda a: dc.top_k([["cats"], None], 1, BUDGET, unit=dc.User(2), ledger=a)),
    "a null in a list": (dc.DataError, lambda a: dc.top_k([["cats", None]], 1, BUDGET, unit=dc.User(2), ledger=a)),
    "flat items by users": (
        dc.IncompatibleSummaryError,
        lambda a: dc.top_k(np.array(["a"]), 1, BUDGET, unit=dc.User(2), mechanism="user", ledger=a),
    ),
    "users with other bounds": (
        dc.IncompatibleSummaryError,
        lambda a: dc.release(users(), BUDGET, unit=dc.User(2), ledger=a),
    ),
    "merged users as events": (dc.IncompatibleSummaryError, lambda a: dc.release(users(), BUDGET, "merged", ledger=a)),
    "capacity": (dc.ParameterError, lambda a: dc.top_k(["a"], 1, BUDGET, capacity=0, ledger=a)),
    "length": (dc.ParameterError, lambda a: dc.top_k(["a"], 1, BUDGET, length=-1, ledger=a)),
}


@pytest.mark.parametrize("name", BAD_RELEASES)
def test_bad_input_has_a_typed_error_and_charges_nothing(account, name):
    error, call = BAD_RELEASES[name]
    before = account.history()
    with pytest.raises(error) as caught:
        call(account)
    assert "cats" not in str(caught.value)
    assert account.history() == before


def test_a_ledger_is_not_an_account(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("searches", BUDGET)
    with pytest.raises(dc.ParameterError, match=r"account\(name\)"):
        dc.release(filled(), BUDGET, ledger=ledger)
    with pytest.raises(dc.ParameterError, match="charge_id"):
        dc.release(filled(), BUDGET, charge_id="monday")


# ---- top_k -----------------------------------------------------------------------------------------------------------

WORDS = ["a"] * 500 + ["b"] * 300 + ["c"] * 200


@pytest.mark.parametrize(
    "column",
    [
        lambda: WORDS,
        lambda: iter(WORDS),
        lambda: pa.array(WORDS),
        lambda: pa.array(WORDS).dictionary_encode(),
        lambda: pa.chunked_array([WORDS[:100], WORDS[100:]]),
        lambda: np.array(WORDS),
        lambda: np.array(WORDS, dtype=object),
        lambda: pd.Series(WORDS),
        lambda: pl.Series(WORDS),
        lambda: pa.table({"word": WORDS}),
        lambda: pa.record_batch({"word": WORDS}),
        lambda: pa.table({"word": WORDS}).to_reader(max_chunksize=64),
        lambda: (batch for batch in pa.table({"word": WORDS}).to_batches(max_chunksize=64)),
        lambda: [pl.Series(WORDS), np.array(WORDS), pd.Series(WORDS)],
    ],
)
def test_top_k_takes_columns_and_batches_of_them(column):
    histogram = dc.top_k(column(), k=2, budget=dc.Budget(5.0, 1e-6))
    assert histogram.items == ["a", "b"]


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in ("user", "summed")])
def test_top_k_by_any_mechanism(name):
    histogram = dc.top_k(WORDS * 20, 2, dc.Budget(4.0, 1e-6), mechanism=name, capacity=64)
    assert histogram.items == ["a", "b"]
    assert histogram.guarantee.mechanism == MECHANISMS[name].name


def test_top_k_lists_fewer_when_fewer_pass():
    histogram = dc.top_k(["a"] * 500 + ["rare"], 100, BUDGET)
    assert histogram.items == ["a"]
    assert dc.top_k([], 100, BUDGET).items == []
    assert dc.top_k(iter([]), 100, BUDGET).items == []


def test_top_k_skips_nulls_when_told():
    assert dc.top_k([None, *WORDS], 1, BUDGET, nulls="skip").items == ["a"]


def test_top_k_holds_one_batch_at_a_time():
    made = []

    def batch():
        array = pa.array(WORDS)
        made.append(weakref.ref(array))
        return array

    def batches():
        for _ in range(5):
            assert all(reference() is None for reference in made)
            yield batch()

    assert dc.top_k(batches(), 1, BUDGET).items == ["a"]
    assert len(made) == 5


def test_top_k_refuses_before_it_reads():
    def batches():
        pytest.fail("data were read")
        yield pa.array(WORDS)

    class Column:
        def __iter__(self):
            return batches()

    with pytest.raises(dc.ParameterError, match="delta"):
        dc.top_k(Column(), 1, dc.Budget(1.0))


def test_an_error_in_the_middle_of_the_data_charges_nothing(account):
    def batches():
        yield pa.array(WORDS)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dc.top_k(batches(), 1, BUDGET, ledger=account)
    assert [event.kind for event in account.history()] == ["grant"]


def test_top_k_pays_and_retries_through_the_ledger(account):
    first = dc.top_k(WORDS, 2, BUDGET, ledger=account, charge_id="monday", total_share=0.1)
    again = dc.top_k(WORDS, 2, BUDGET, ledger=account, charge_id="monday", total_share=0.1)
    assert first.to_payload() == again.to_payload()
    with pytest.raises(dc.LedgerError, match="another request"):
        dc.top_k(WORDS, 1, BUDGET, ledger=account, charge_id="monday", total_share=0.1)
    assert first.everything_else.value == first.total - first.counts.sum()
    assert account.spent().epsilon == 1.0


def test_a_flat_column_of_users_is_protected_by_group_privacy():
    histogram = dc.top_k(np.array(WORDS), 2, dc.Budget(2.0, 1e-6), unit=dc.User(3))
    assert histogram.items[0] == "a"
    assert histogram.guarantee.unit == dc.User(3)
    assert histogram.error_model.noise.scale == Fraction(3, 2)
    assert dc.top_k(WORDS, 2, dc.Budget(2.0, 1e-6), unit=dc.User(3), grouped=False).items[0] == "a"


def test_what_top_k_chooses_does_not_depend_on_the_data():
    """Metadata for no data, little data and much data: equal but for what noise protects."""

    def metadata(column, **options):
        fields = json.loads(dc.top_k(column, 10, BUDGET, **options).to_payload())
        del fields["asked"]["time"]  # of the question, which was another one
        return {key: value for key, value in fields.items() if key not in ("items", "counts", "offset", "total")}

    assert metadata([]) == metadata(WORDS) == metadata(WORDS * 50)
    assert metadata(iter([])) == metadata([pa.array(WORDS)] * 3)
    for m in (2, 500):
        unit = dc.User(m)
        assert metadata([], unit=unit) == metadata([["a", "b"]] * 300, unit=unit) == metadata([[]], unit=unit)
        assert metadata(iter([]), unit=unit) == metadata([pa.array([["a"]] * 300)], unit=unit)


BASKETS = [["bread", "milk"], ["bread"], ["milk", "eggs", "bread"], []] * 1000


@pytest.mark.parametrize(
    "column",
    [
        lambda: BASKETS,
        lambda: iter(BASKETS),
        lambda: [tuple(basket) for basket in BASKETS],
        lambda: [set(basket) for basket in BASKETS],
        lambda: pa.array(BASKETS),
        lambda: pa.array(BASKETS, pa.large_list(pa.string())),
        lambda: pa.array(BASKETS, pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        lambda: pa.array(BASKETS)[2:],
        lambda: pa.chunked_array([BASKETS[:7], BASKETS[7:]]),
        lambda: pl.Series(BASKETS),
        lambda: pd.Series(BASKETS),
        lambda: [pa.array(BASKETS[:7]), pa.array(BASKETS[7:])],
        lambda: pa.table({"basket": BASKETS}).to_reader(max_chunksize=100),
    ],
)
@pytest.mark.parametrize(("m", "mechanism"), [(3, central.Offset), (300, central.UserSketch)])
def test_lists_of_users(column, m, mechanism):
    histogram = dc.top_k(column(), 2, dc.Budget(4.0, 1e-6), unit=dc.User(m))
    assert histogram.items == ["bread", "milk"]
    assert histogram.guarantee.mechanism == mechanism.name
    assert histogram.guarantee.unit == dc.User(m)
    lower, upper = histogram.bounds(1 - 1e-9)
    assert (lower <= [3000, 2000]).all()
    assert (upper >= [3000, 2000]).all()


def test_lists_go_to_what_publishes_more():
    """The switch comes where the plan says so, for the mechanisms' own capacities."""
    for m in (1, 10, 40, 80, 1000):
        flat, grouped = (published_from(name, 10, BUDGET, dc.User(m), None, None) for name in ("offset", "user"))
        picked = dc.top_k([], 10, BUDGET, unit=dc.User(m)).guarantee.mechanism
        assert picked == (central.Offset if flat <= grouped else central.UserSketch).name


def test_nulls_in_lists_are_skipped_when_told():
    column = pa.array([["a", None], None, ["a"]] * 500)
    for m in (2, 300):
        assert dc.top_k(column, 1, dc.Budget(4.0, 1e-6), unit=dc.User(m), nulls="skip").items == ["a"]


def test_a_declared_length_makes_upper_bounds_finite():
    column = pa.array(BASKETS)
    for length, finite in ((None, False), (10_000, True)):
        histogram = dc.top_k(column, 2, dc.Budget(4.0, 1e-6), unit=dc.User(300), length=length)
        assert np.isfinite(histogram.bounds()[1]).all() == finite
    assert "public" in " ".join(histogram.guarantee.assumptions)


# ---- plan ------------------------------------------------------------------------------------------------------------


def test_plan_meets_the_mechanism():
    plan = dc.plan(10**7, dc.Budget(1.0, 1e-9), 4096)
    row = plan.row("offset")
    assert row.threshold == 25
    assert row.summary_error == 10**7 // 4097
    assert row.noise_error == Offset(dc.Budget(1.0, 1e-9), capacity=4096).error_bound(0.05)
    assert row.published_from >= row.threshold + row.noise_error + row.summary_error
    assert row.memory_bytes > 4096 * 40


def test_every_item_from_the_planned_frequency_on_is_published():
    """300 releases of 20 items at exactly the planned frequency: all items of at least 95 percent of them are listed.

    Seeded. The stream is the worst one for the sketch that is easily built: the others come in turn, after them.
    """
    budget, capacity = dc.Budget(1.0, 1e-6), 40
    frequency, length = 0, 0
    for _ in range(30):  # the frequency depends on the length, which depends on the frequency
        length = 20 * frequency + 3000
        frequency = dc.plan(length, budget, capacity).row("offset").published_from
    assert frequency < 200
    sketch = dc.MisraGries(capacity)
    sketch.update([f"top{i}" for i in range(20) for _ in range(frequency)])
    sketch.update([f"rare{i}" for i in range(3000)])
    assert sketch.total <= length
    source = seeded_source(3)
    complete = sum(len(dc.release(sketch, budget, source=source)) >= 20 for _ in range(300))
    assert complete >= 0.95 * 300


def test_plan_chooses_a_capacity_and_says_why():
    few = dc.plan(10**6, BUDGET, k=10)
    assert few.capacity == 2**16
    assert "default" in few.capacity_because
    assert dc.plan(500, BUDGET, k=10).capacity == 500
    assert dc.plan(10**9, BUDGET, k=10_000).capacity == 2**19
    assert dc.plan(10**6, BUDGET, capacity=7).capacity_because == "given"


def test_memory_is_a_number_of_counters():
    plan = dc.plan(10**9, BUDGET, memory="256MB")
    assert plan.capacity == 2**18
    assert "256MB" in plan.capacity_because
    assert plan.row("offset").memory_bytes < 256e6 / 3
    assert dc.plan(10**9, BUDGET, memory="256MB", published=True).row("space_saving").capacity in (2**17, 2**18)
    assert plan.row("count_min").capacity == dc.plan(10**9, BUDGET).row("count_min").capacity  # its cells cost noise
    assert dc.plan(10**9, BUDGET, memory="2GB").capacity > plan.capacity
    top = dc.top_k(["a"] * 500, 5, BUDGET, memory="256MB", source=seeded_source(1))
    assert top.asked.parameters["capacity"] == 2**18
    shards = dc.top_k(["a"] * 500, 5, BUDGET, memory="256MB", workers=2, source=seeded_source(1))
    assert shards.asked.parameters["capacity"] == 2**17
    assert dc.top_k(["a"] * 500, 5, BUDGET, source=seeded_source(1)).asked.parameters["capacity"] == 2**16


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"capacity": 64}, "cannot be combined with capacity"),
        ({"mechanism": "chan"}, "noise grows"),
        ({"mechanism": "count_min"}, "noise grows with the counters"),
        ({"mechanism": dc.central.Offset(BUDGET, 64)}, "ready-made"),
        ({"memory": "10MB"}, "at least 160MB"),
        ({"memory": "much"}, "2GB or 512MiB"),
    ],
)
def test_memory_is_for_counters_that_cost_no_noise(options, says):
    with pytest.raises(dc.ParameterError, match=says):
        dc.top_k(["a"], 5, BUDGET, **{"memory": "256MB", **options})
    if "memory" in options or "capacity" in options:
        with pytest.raises(dc.ParameterError):
            dc.plan(10**6, BUDGET, **{"memory": "256MB", **options})


def test_a_default_capacity_takes_memory_only_as_items_come():
    small, large = dc.MisraGries(2**16), dc.MisraGries(2**16)
    small.update(np.arange(1000))
    large.update(np.arange(2**16))
    assert small.memory_bytes < large.memory_bytes / 10


def test_plan_formats():
    plan = dc.plan(10**6, dc.Budget(0.5, 1e-9), unit=dc.User(3))
    out = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert out["unit"]["max_items"] == 3
    assert {row["mechanism"] for row in out["mechanisms"]} == {row.mechanism for row in plan.rows}
    assert plan.to_arrow().num_rows == len(plan)
    assert "offset" in str(plan)
    assert "listed from" in str(plan)


def test_the_papers_own_mechanisms_are_planned_when_asked_for():
    usual, all_of_them = dc.plan(10**6, BUDGET), dc.plan(10**6, BUDGET, published=True)
    own = {"pmg", "textbook", "chan", "space_saving"}
    assert {row.mechanism for row in all_of_them.rows} - {row.mechanism for row in usual.rows} == own
    assert [row for row in all_of_them.rows if row.mechanism not in own] == list(usual.rows)


def test_plan_says_what_does_not_apply():
    plan = dc.plan(10**6, dc.Budget(1.0), published=True)
    assert "delta" in plan.not_applicable["offset"]
    with pytest.raises(dc.ParameterError, match="delta"):
        plan.row("offset")
    with pytest.raises(dc.ParameterError, match="magic"):
        plan.row("magic")
    assert set(plan.not_applicable) | {row.mechanism for row in plan.rows} == set(MECHANISMS)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"length": -1}, "length"),
        ({"length": 1.5}, "length"),
        ({"budget": 1.0}, "budget"),
        ({"capacity": 0}, "capacity"),
        ({"k": 0}, "k must"),
        ({"unit": "event"}, "unit"),
        ({"confidence": 1}, "confidence"),
    ],
)
def test_plan_refuses(arguments, what):
    with pytest.raises(dc.ParameterError, match=what):
        dc.plan(**{"length": 1000, "budget": BUDGET, **arguments})


def test_names_are_those_of_their_classes():
    assert all(issubclass(kind, Mechanism) for kind in MECHANISMS.values())
    assert len(set(MECHANISMS.values())) == len(MECHANISMS)


# ---- data that is not here -----------------------------------------------------------------------------------------

SparkFrame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe", "collect": lambda self: [["s"]]})
PURE = dc.Budget(1.0)
QUESTIONS = {
    "top_k": lambda data: dc.top_k(data, 3, BUDGET),
    "top_k of a table": lambda data: dc.top_k(data, 3, BUDGET, column="x", user="u"),
    "top_k where": lambda data: dc.top_k(data, 3, BUDGET, column="x", where="x = 1"),
    "count": lambda data: dc.count(data, PURE),
    "count of people": lambda data: dc.count(data, PURE, user="u"),
    "distinct": lambda data: dc.distinct(data, PURE, column="x"),
    "histogram": lambda data: dc.histogram(data, PURE, universe=["a"]),
    "histogram of a table": lambda data: dc.histogram(data, PURE, column="x", universe=["a"], user="u", max_items=1),
    "quantiles": lambda data: dc.quantiles(data, PURE, column="x", range=(0, 1)),
    "quantiles of a column": lambda data: dc.quantiles(data, PURE, range=(0, 1)),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_name_of_a_file_and_what_is_no_frame_of_spark_are_refused_with_what_to_call(question):
    for path in ("visits.csv", b"visits.csv", Path("visits.csv")):
        with pytest.raises(dc.DataError, match=r"dc\.read\(") as raised:
            QUESTIONS[question](path)
        assert "visits" not in str(raised.value)  # it might be an item
    with pytest.raises(dc.ParameterError, match=r"expected a Spark data frame, not DataFrame.*\.to_spark\(\)"):
        QUESTIONS[question](SparkFrame())  # one of pandas on Spark, or a column
