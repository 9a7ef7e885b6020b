"""release, top_k and plan: what they return, refuse, charge and store."""

import pyarrow as pa
import pytest

import discreet as dc

BUDGET = dc.Budget(1.0, 1e-6)


def filled(capacity=16):
    sketch = dc.MisraGries(capacity)
    sketch.update(["cats"] * 1000 + ["dogs"] * 500 + ["axolotl"])
    return sketch


def test_release_lists_what_is_frequent_and_hides_what_is_rare():
    histogram = dc.release(filled(), BUDGET)
    assert histogram.items == ["cats", "dogs"]
    assert histogram.guarantee.epsilon == 1.0
    assert histogram.guarantee.delta == 1e-6
    assert histogram.guarantee.chosen_because


def test_top_k_takes_a_column():
    assert dc.top_k(pa.array(["a"] * 500 + ["b"] * 300 + ["c"] * 200), k=2, budget=BUDGET).items == ["a", "b"]


def test_a_repeated_charge_id_returns_the_stored_release(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("searches", BUDGET)
    account = ledger.account("searches")
    first = dc.release(filled(), BUDGET, ledger=account, charge_id="monday")
    again = dc.release(filled(), BUDGET, ledger=account, charge_id="monday")
    assert again.to_payload() == first.to_payload()
    with pytest.raises(dc.BudgetExceededError):
        dc.release(filled(), BUDGET, ledger=account)
