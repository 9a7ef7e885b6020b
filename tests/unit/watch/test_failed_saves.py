"""A tick whose state could not be saved is saved again as it was drawn, and is in the ledger before it is told."""

import pytest

import discreet as dc
from discreet.watch.tasks import Run, Total


@pytest.fixture
def account(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("a", dc.Budget(4.0, 1e-5))
    return ledger.account("a")


def test_the_next_call_saves_the_same_draw_and_the_ledger_has_it(account):
    task = Total(4)
    run = Run(task, task.new(dc.Budget(1.0, 1e-6), account, "totals"), lambda unit: "the ticks are public")
    run.begin()
    run.take(None, 7)
    drawn, kept = [], []

    def fails(release):
        drawn.append(release)
        raise OSError("the disk is full")

    for _ in range(2):
        with pytest.raises(OSError, match="full"):
            run.end(fails)
    assert account.last_step("totals") is None
    run.end(kept.append)
    assert drawn == [kept[0]] * 2
    assert account.last_step("totals").number == 1
    run.take(None, 5)
    run.end(kept.append)
    assert account.last_step("totals").number == 2
    assert run.mechanism.tick == 2
    assert not run.is_over
    for _ in range(2):
        run.end(kept.append)
    assert run.is_over
    assert account.statement().charges == 1
