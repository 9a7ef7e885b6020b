"""A year of nightly jobs under one account, with a clock that the test sets: docs/days.md, "Publish every day"."""

import datetime
import random

import pytest

import discreet as dc
from discreet.privacy.ledger import accounts, event_log

DAY = dc.User(per="1d", zone="Europe/Berlin")
NIGHT, GRANT = dc.Budget(1.0), dc.Budget(2.0)
FIRST = datetime.date(2026, 1, 1)


@pytest.fixture
def clock(monkeypatch):
    """Sets the ledger's clock."""
    now = [datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)]
    for module in (accounts, event_log):
        monkeypatch.setattr(module, "utc_now", lambda: now[0])
    return lambda moment: now.__setitem__(0, moment)


def test_a_year_of_nights_under_one_account(tmp_path, clock):
    """Every night the day before: jobs started twice, logs that rotate, rows that come late, a grant that ends.

    Every release is paid, no day spends more than its grant, and the account is as small in the end as after one night.
    """
    rng = random.Random(7)
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("readers", GRANT, unit=DAY, until="2026-06-30")
    readers = ledger.account("readers")
    log, published, late = tmp_path / "yesterday.csv", {}, set()

    def job(day, **words):
        return dc.count(
            dc.read(log), NIGHT, user="visitor", unit=DAY, time="ts", period=day, ledger=readers, request=None, **words
        )

    for night in range(365):
        day = FIRST + datetime.timedelta(days=night)
        clock(datetime.datetime.combine(day, datetime.time(23, 30), datetime.timezone.utc))  # half past midnight there
        people = rng.randrange(50, 200)
        rows = [f"{number},{day}T12:00:00+01:00" for number in range(people)]
        rows += [f"{number},{day - datetime.timedelta(days=1)}T12:00:00+01:00" for number in range(30)]  # of before
        log.write_text("visitor,ts\n" + "\n".join(rows) + "\n")
        if day == datetime.date(2026, 7, 1):
            with pytest.raises(dc.BudgetExceededError, match="granted until 2026-06-30"):
                job(day)
            ledger.grant("readers", GRANT, until="2026-12-31", approver="A. Lovelace", reason="the second half")
        published[day] = job(day)
        assert abs(published[day].value - people) < 40  # fails with probability e^-40 each
        if night % 30 == 0:  # started twice, after the log was rotated away
            log.unlink()
            again = job(day)
            assert (again.payment, again.value) == ("replayed", published[day].value)
        if night % 50 == 9:  # rows of this day came late: a second release about it
            log.write_text("visitor,ts\n" + "\n".join(rows * 2) + "\n")
            assert job(day, charge_id=f"late {day}").payment == "charged"
            late.add(day)
            with pytest.raises(dc.BudgetExceededError, match=f"about {day}"):
                job(day, charge_id=f"later {day}")
    assert ledger.verify() == 2 + 2 * (365 + len(late))  # grants; a charge and a release each
    spent = {day: readers.statement(day).spent.epsilon for day in (FIRST, *sorted(late), max(published))}
    assert spent == {day: 2.0 if day in late else 1.0 for day in spent}
    assert readers.statement("2027-01-01").remaining.epsilon == 2.0
    assert len(readers._balance().pieces) == 2 * len(late) + 1  # what is alike is kept once
    charges = [event for event in readers.history() if event.kind == "charge"]
    assert {event.details["period"]["from"] for event in charges} == {day.isoformat() for day in published}
