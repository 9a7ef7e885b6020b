"""Accounts of person-days: charges about one day add up, charges about others do not. Ends, renewals, who and why."""

import datetime

import pytest

import discreet as dc
from discreet.privacy.ledger import accounts, event_log
from discreet.privacy.spans import Calendar, Period

DAY = dc.User(per="1d")
NIGHT = dc.Budget(1.0, 1e-9)


@pytest.fixture
def path(ledger_path):
    return ledger_path


@pytest.fixture
def ledger(path):
    ledger = dc.Ledger(path)
    ledger.grant("readers", dc.Budget(4.0, 1e-7), unit=DAY)
    return ledger


@pytest.fixture
def account(ledger):
    return ledger.account("readers")


@pytest.fixture
def at(monkeypatch):
    """Sets the ledger's clock."""

    def set_clock(moment):
        now = datetime.datetime.fromisoformat(moment).replace(tzinfo=datetime.timezone.utc)
        for module in (accounts, event_log):
            monkeypatch.setattr(module, "utc_now", lambda: now)

    return set_clock


def test_other_days_do_not_add_up(account, ledger):
    for day in range(1, 31):
        account.charge(dc.Budget(3.0, 1e-8), unit=DAY, period=f"2026-11-{day:02}")
    assert account.spent().epsilon == 3.0
    assert account.statement().about == "2026-11-01 to 2026-11-30"
    assert len(account._balance().pieces) == 1  # what is the same on many days is kept once
    with pytest.raises(
        dc.BudgetExceededError, match=r"cannot pay epsilon=2 about 2026-11-15: .* spent epsilon=3"
    ) as caught:
        account.charge(dc.Budget(2.0), unit=DAY, period="2026-11-15")
    assert (caught.value.about, caught.value.spent.epsilon) == ("2026-11-15", 3.0)
    account.charge(dc.Budget(1.0), unit=DAY, period="2026-11-15")  # late rows: a second charge about the day
    account.charge(dc.Budget(4.0), unit=DAY, period="2026-12-01")
    ledger.verify()


def test_a_charge_about_many_days_is_one_about_each(account):
    account.charge(dc.Budget(3.0), unit=DAY, period="2026-11-10")
    with pytest.raises(dc.BudgetExceededError, match="about 2026-11-10:"):
        account.charge(dc.Budget(2.0), unit=DAY, period=("2026-11-01", "2026-11-30"))
    account.charge(dc.Budget(1.0), unit=DAY, period=("2026-11-01", "2026-11-30"))
    spent = {
        day: account.statement(f"2026-{day}").spent.epsilon for day in ("10-31", "11-01", "11-10", "11-30", "12-01")
    }
    assert spent == {"10-31": 0.0, "11-01": 1.0, "11-10": 4.0, "11-30": 1.0, "12-01": 0.0}
    assert account.statement("2026-11-10").remaining.epsilon == 0.0
    assert account.statement("2026-11-11").remaining.epsilon == 3.0
    assert account.statement("2026-11-10").charges == 2


BERLIN = dc.User(per="1d", zone="Europe/Berlin")
TAKEN = {
    dc.User(): [],
    dc.User(3): [dc.User()],
    DAY: [],
    BERLIN: [],
    dc.User(per="1w"): [],
    dc.User(2, per="1d"): [DAY],
    dc.Event(): [],
    dc.Event(per="1d"): [],
    dc.Element(): [],
    dc.Replace(): [],
}
"""The table of docs/ledger.md: what an account takes beside its own unit."""


@pytest.mark.parametrize("unit", TAKEN, ids=repr)
def test_an_account_takes_what_covers_its_unit_and_nothing_else(path, unit):
    ledger = dc.Ledger(path)
    ledger.grant("it", dc.Budget(1.0), unit=unit)
    account = ledger.account("it")
    for asked in TAKEN:
        call = {"unit": asked, "period": None if asked.spans is None else "2026-11-16"}
        for operation in (account.check, account.charge):
            if asked in (unit, *TAKEN[unit]):
                operation(dc.Budget(0.125), **call)
            else:
                with pytest.raises(dc.ChargeConflictError, match="has one unit") as caught:
                    operation(dc.Budget(0.125), **call)
                assert caught.value.differences == {"unit": (unit.details(), asked.details())}
    assert account.statement().charges == 1 + len(TAKEN[unit])


@pytest.mark.parametrize("fullest", ["2026-11-01", "2026-11-10", "2026-11-30"])
def test_a_check_and_a_charge_look_at_every_day(account, fullest):
    """The first, one in the middle, the last: what one of them cannot pay is refused, and the day is named."""
    account.charge(dc.Budget(3.0), unit=DAY, period=fullest)
    account.charge(dc.Budget(0.5), unit=DAY, period=("2026-11-05", "2026-11-20"))
    month = {"unit": DAY, "period": ("2026-11-01", "2026-11-30")}
    left = 4.0 - account.statement(fullest).spent.epsilon
    for operation in (account.check, account.charge, lambda budget, **more: account.begin("c", budget, **more)):
        with pytest.raises(dc.BudgetExceededError, match=f"about {fullest}:") as caught:
            operation(dc.Budget(left + 0.25), **month)
        assert (caught.value.about, caught.value.remaining.epsilon) == (fullest, left)
    account.check(dc.Budget(left), **month)
    account.charge(dc.Budget(left), **month)
    with pytest.raises(dc.BudgetExceededError, match=f"about {fullest}:"):
        account.check(dc.Budget(0.25), **month)


@pytest.mark.parametrize("order", [(10, 12, 14), (14, 10, 12), (12, 10, 14)])
def test_days_between_days_that_were_charged_the_same_are_free(account, ledger, order):
    for day in order:
        account.charge(NIGHT, unit=DAY, period=f"2026-11-{day}")
    spent = {day: account.statement(f"2026-11-{day:02}").spent.epsilon for day in range(9, 16)}
    assert spent == {9: 0.0, 10: 1.0, 11: 0.0, 12: 1.0, 13: 0.0, 14: 1.0, 15: 0.0}
    account.charge(NIGHT, unit=DAY, period=("2026-11-11", "2026-11-13"))
    assert [account.statement(f"2026-11-{day}").spent.epsilon for day in range(10, 16)] == [1, 1, 2, 1, 1, 0]
    account.charge(dc.Budget(4.0, 1e-8), unit=DAY, period="2026-11-15")
    ledger.verify()


@pytest.mark.parametrize("accounting", ["tight", "basic", "zcdp"])
def test_every_accounting_is_done_day_by_day(path, accounting):
    ledger = dc.Ledger(path)
    ledger.grant("days", dc.Budget(1.0, 1e-6), unit=DAY, accounting=accounting)
    ledger.grant("all", dc.Budget(1.0, 1e-6), accounting=accounting)
    days, whole = ledger.account("days"), ledger.account("all")
    small = dc.Budget(0.09, 1e-9)
    for number in range(7):
        whole.charge(small, unit=dc.User())
        for day in (1, 2, 3):
            days.charge(small, unit=DAY, period=f"2026-11-0{day}", charge_id=f"{number} {day}")
    for ours, plain in ((days.statement("2026-11-02"), whole.statement()), (days.statement(), whole.statement())):
        assert (ours.spent, ours.remaining) == (plain.spent, plain.remaining)
    fits = 0
    while fits < 100:
        try:
            whole.charge(small, unit=dc.User())
        except dc.BudgetExceededError:
            break
        days.charge(small, unit=DAY, period="2026-11-02")
        fits += 1
    with pytest.raises(dc.BudgetExceededError, match="2026-11-02"):
        days.charge(small, unit=DAY, period="2026-11-02")
    days.charge(small, unit=DAY, period="2026-11-03")
    ledger.verify()


@pytest.mark.parametrize(
    "unit",
    [
        dc.User(),
        dc.User(3),
        dc.Event(),
        dc.User(per="1w"),
        dc.User(per="24h"),
        dc.User(per="1d", zone="Europe/Berlin"),
    ],
)
def test_other_units_do_not_add_up_with_days(account, unit):
    """Days of another zone overlap two of these, and a person may be in both."""
    with pytest.raises(dc.ChargeConflictError, match="has one unit"):
        account.charge(
            NIGHT, unit=unit, period=None if unit.spans is None else "2026-11-09" + "T00:00" * ("h" in unit.per)
        )
    assert account.spent().epsilon == 0.0


def test_days_of_events_are_those_of_one_calendar(path):
    """An event late in the evening in UTC is one of the next day in Berlin: two charges about it must add up."""
    ledger, day = dc.Ledger(path), dc.Event(per="1d")
    ledger.grant("rows", dc.Budget(1.0), unit=day)
    ledger.grant("all", dc.Budget(1.0), unit=dc.Event())
    rows = ledger.account("rows")
    rows.charge(dc.Budget(1.0), unit=day, period="2026-11-15")
    rows.charge(dc.Budget(1.0), unit=day, period="2026-11-16")
    for unit, period in ((dc.Event(per="1d", zone="Europe/Berlin"), "2026-11-16"), (dc.Event(), None)):
        with pytest.raises(dc.ChargeConflictError, match="has one unit"):
            rows.charge(dc.Budget(0.5), unit=unit, period=period)
    with pytest.raises(dc.ChargeConflictError, match="has one unit"):
        ledger.account("all").charge(dc.Budget(0.5), unit=day, period="2026-11-16")


def test_days_need_an_account_of_days_and_a_period(ledger, account):
    ledger.grant("people", dc.Budget(4.0, 1e-7))
    with pytest.raises(dc.ChargeConflictError, match="granted without a unit"):
        ledger.account("people").charge(NIGHT, unit=DAY, period="2026-11-15")
    with pytest.raises(dc.ParameterError, match="name the one that the release is about"):
        account.charge(NIGHT, unit=DAY)
    with pytest.raises(dc.ParameterError, match="period needs a unit"):
        ledger.account("people").charge(NIGHT, unit=dc.User(), period="2026-11-15")
    account.charge(NIGHT, unit=DAY, period="2026-11-15")
    with pytest.raises(dc.LedgerError, match="one unit"):
        ledger.grant("readers", dc.Budget(5.0, 1e-7), unit=dc.User())
    with pytest.raises(dc.ParameterError, match="does not tell days apart"):
        ledger.account("people").statement("2026-11-15")
    assert account.unit == DAY


def test_a_bounded_pair_is_covered_by_what_is_not_bounded(path):
    ledger = dc.Ledger(path)
    ledger.grant("bounded", dc.Budget(4.0), unit=dc.User(3, per="1d"))
    ledger.account("bounded").charge(dc.Budget(1.0), unit=DAY, period="2026-11-15")
    assert ledger.account("bounded").spent().epsilon == 1.0


def test_a_repeated_id_is_for_one_period(account):
    assert account.begin("night", NIGHT, unit=DAY, period="2026-11-15") is None
    account.store("night", b"release")
    assert account.begin("night", NIGHT, unit=DAY, period="2026-11-15") == b"release"
    with pytest.raises(dc.ChargeConflictError, match="period"):
        account.begin("night", NIGHT, unit=DAY, period="2026-11-16")


def test_a_smaller_grant_must_hold_for_every_day(ledger, account):
    account.charge(dc.Budget(3.0), unit=DAY, period="2026-11-15")
    account.charge(dc.Budget(1.0), unit=DAY, period="2026-11-16")
    with pytest.raises(dc.LedgerError, match="has spent more"):
        ledger.grant("readers", dc.Budget(2.0, 1e-7))
    ledger.grant("readers", dc.Budget(3.0, 1e-7))
    assert account.unit == DAY


def test_ten_years_of_nights_stay_one_piece(path, monkeypatch):
    """3,650 charges folded as the ledger folds them: the balance does not grow, and no day has spent more than one."""
    from discreet.privacy.ledger.balance import Balance

    balance = Balance().after("grant", {"budget": {"epsilon": 4.0, "delta": 1e-7, "rho": None}, "unit": DAY.details()})
    name = "2026-01-01"
    for _ in range(3650):
        after = DAY.spans.after(name)
        details = {"budget": NIGHT.to_dict(), "unit": DAY.details(), "period": Period(name, after).to_dict()}
        balance, name = balance.after("charge", details), after
    assert (balance.charges, len(balance.pieces), balance.fullest(Period("", "~"))[0].epsilon) == (3650, 1, 1.0)
    assert Balance.from_dict(balance.to_dict()) == balance


def test_an_end(ledger, account, at):
    at("2026-11-18")
    ledger.grant("readers", dc.Budget(4.0, 1e-7), until="2026-12-31")
    at("2026-12-31T23:59:59")
    account.begin("last", NIGHT, unit=DAY, period="2026-12-30")
    at("2027-01-01")
    with pytest.raises(dc.BudgetExceededError, match="until 2026-12-31, and today is 2027-01-01"):
        account.charge(NIGHT, unit=DAY, period="2026-12-31")
    with pytest.raises(dc.BudgetExceededError, match="until 2026-12-31"):
        account.check(NIGHT, unit=DAY, period="2026-12-31")
    assert account.begin("last", NIGHT, unit=DAY, period="2026-12-30") is None  # it was charged before
    assert account.store("last", b"release") == b"release"
    ledger.grant("readers", dc.Budget(4.0, 1e-7), until=datetime.date(2027, 12, 31))
    account.charge(NIGHT, unit=DAY, period="2026-12-31")
    with pytest.raises(dc.ParameterError, match="a date as in"):
        ledger.grant("readers", dc.Budget(4.0, 1e-7), until="next year")


@pytest.mark.parametrize(
    "terms",
    [
        {"until": "2026-12-31"},
        {"renews": "90d", "different_people": True},
        {"unit": DAY},
        {"unit": dc.User(per="1w", zone="Europe/Berlin"), "until": "2027-01-31"},
        {"accounting": "basic", "until": "2026-12-31"},
        {"accounting": "zcdp", "delta_share": 0.5, "renews": "4w", "different_people": True},
    ],
)
def test_a_new_grant_keeps_what_it_does_not_speak_of(path, terms):
    """Who raises a budget says nothing of its end, its unit or its accounting: none of them is given up by that."""
    ledger = dc.Ledger(path)
    ledger.grant("kept", dc.Budget(1.0, 1e-7), **terms, approver="A. Lovelace")
    before = ledger.account("kept").statement()
    for budget in (dc.Budget(2.0, 2e-7), dc.Budget(3.0, 3e-7)):
        ledger.grant("kept", budget, reason="more")
        after = ledger.account("kept").statement()
        kept = ("until", "renews", "adaptive", "accounting", "origin")
        assert [getattr(after.limit, each) for each in kept] == [getattr(before.limit, each) for each in kept]
        assert (after.unit, after.granted) == (before.unit, budget)
        shares = [None if each.limit.filter is None else each.limit.filter.delta_share for each in (before, after)]
        assert shares[0] == shares[1] == terms.get("delta_share")
        assert (after.limit.approver, after.limit.reason) == (None, "more")  # those of this grant alone


def test_a_budget_that_renews_is_for_other_people(path, at):
    """No two releases that are closer than the time are forgotten of each other, wherever a window begins."""
    ledger = dc.Ledger(path)
    with pytest.raises(dc.ParameterError, match="different_people"):
        ledger.grant("visitors", dc.Budget(1.0), renews="90d")
    for bad in ("1mo", "6h", "soon"):
        with pytest.raises(dc.ParameterError, match="renews"):
            ledger.grant("visitors", dc.Budget(1.0), renews=bad, different_people=True)
    with pytest.raises(dc.ParameterError, match="cannot be combined with person-day accounts"):
        ledger.grant("visitors", dc.Budget(1.0), unit=DAY, renews="90d", different_people=True)
    at("2026-01-01")
    ledger.grant("visitors", dc.Budget(1.0), renews="90d", different_people=True)
    visitors = ledger.account("visitors")
    visitors.charge(dc.Budget(0.75), unit=dc.User())
    at("2026-03-31")  # 89 days later
    with pytest.raises(dc.BudgetExceededError):
        visitors.charge(dc.Budget(0.5), unit=dc.User())
    visitors.charge(dc.Budget(0.25), unit=dc.User())
    at("2026-04-01")  # 90 days after the first
    assert visitors.spent().epsilon == 0.25
    with pytest.raises(dc.BudgetExceededError):
        visitors.charge(dc.Budget(1.0), unit=dc.User())
    visitors.charge(dc.Budget(0.75), unit=dc.User())
    assert visitors.assumptions == (
        "nobody is in the data of two releases of the account that are made 90d or more apart",
    )
    with pytest.raises(dc.LedgerError, match="its renewal cannot change"):
        ledger.grant("visitors", dc.Budget(1.0), renews="30d", different_people=True)
    ledger.grant("visitors", dc.Budget(2.0))
    assert visitors.statement("2026-06-29").spent.epsilon == 1.0 - 0.25
    ledger.verify()


def test_the_history_says_who_and_why(ledger, account):
    ledger.grant("readers", dc.Budget(5.0, 1e-7), approver="A. Lovelace", reason="weekly figures")
    ledger.grant("readers", dc.Budget(5.0, 1e-7))  # the same again
    ledger.grant("readers", dc.Budget(5.0, 1e-7), approver="A. Lovelace", reason="weekly figures")
    account.charge(NIGHT, unit=DAY, period="2026-11-15")
    events = account.history()
    assert [event.kind for event in events] == ["grant", "grant", "charge"]
    assert (events[1].details["approver"], events[1].details["reason"]) == ("A. Lovelace", "weekly figures")
    assert all(set(event.details["who"]) == {"user", "host"} and event.details["who"]["user"] for event in events)
    ledger.grant("readers", dc.Budget(6.0, 1e-7))  # another grant has other reasons
    assert "reason" not in account.history()[-1].details


def test_spans_are_those_of_groups_over_time():
    """Seeded: the span of a moment by the ledger's calendar is the group that it is counted in."""
    import random

    import pyarrow as pa

    from discreet.events.times import Every

    rng, minute = random.Random(1), datetime.timedelta(minutes=1)  # before 2037, where Arrow's zones end
    moments = [
        datetime.datetime(1960, 1, 1, tzinfo=datetime.timezone.utc) + rng.randrange(77 * 365 * 1440) * minute
        for _ in range(300)
    ]
    column = pa.array(moments, pa.timestamp("s", "UTC"))
    for text in ("1d", "3d", "1w", "2w", "1mo", "3mo", "12mo", "1h", "6h", "90m", "7s"):
        for zone in (None, "Europe/Berlin", "America/St_Johns", "Pacific/Apia"):
            if zone is not None and text[-1] not in "dwo":
                with pytest.raises(dc.ParameterError, match="zone needs spans of days"):
                    Calendar(text, zone)
                continue
            spans = Calendar(text, zone)
            groups = Every(text, zone).spans(column, "x")[0].to_pylist()
            named = [spans.name(moment) for moment in moments]
            shown = [group.isoformat().replace("+00:00", "Z") for group in groups]
            assert named == shown
            for name in named:
                assert spans.name(spans._parsed(name)) == name < spans.after(name) == spans.named(spans.after(name))
                assert spans._before(spans.after(name)) == name


def test_periods_are_made_of_whole_spans():
    weeks = Calendar("1w")
    assert weeks.period("2026-11-09") == Period("2026-11-09", "2026-11-16")
    assert weeks.told(weeks.period(("2026-11-09", "2026-11-16"))) == "2026-11-09 to 2026-11-16"
    with pytest.raises(dc.ParameterError, match="it is in the one of 2026-11-09"):
        weeks.period("2026-11-15")
    hours = Calendar("1h")
    assert hours.period("2026-11-15T13:00+01:00") == Period("2026-11-15T12:00:00Z", "2026-11-15T13:00:00Z")
    for bad in ("2026-11-15", "2026-11-15T12:30", 3, None, ("2026-11-15T12:00",) * 3):
        with pytest.raises(dc.ParameterError):
            hours.period(bad)
    for bad in ("2026-11-31", "9999-12-31", datetime.datetime(2026, 11, 15)):
        with pytest.raises(dc.ParameterError):
            Calendar("1d").period(bad)
    assert Calendar("1d").period(datetime.date(2026, 11, 15)) == Period("2026-11-15", "2026-11-16")
    for text, bad in (("1mo", "9999-12-01"), ("5mo", "0001-01-01"), ("1w", "9999-12-27"), ("1h", "9999-12-31T23:00Z")):
        with pytest.raises(dc.ParameterError, match="must be within the years 1 to 9999"):
            Calendar(text).period(bad)
    assert Calendar("1mo").period("9999-11-01") == Period("9999-11-01", "9999-12-01")
    assert dc.User(per="01d", zone="UTC") == DAY
    for bad in ({"per": "1y"}, {"per": "0d"}, {"zone": "Europe/Berlin"}, {"per": "1d", "zone": "Mars"}):
        with pytest.raises(dc.ParameterError):
            dc.User(**bad)


def test_an_account_that_renews_tells_days_apart_before_its_first_charge(path, at):
    at("2026-01-01")
    ledger = dc.Ledger(path)
    ledger.grant("visitors", dc.Budget(1.0), renews="2d", different_people=True)
    visitors = ledger.account("visitors")
    assert (visitors.statement("2026-06-29").spent.epsilon, visitors.statement("2026-06-29").remaining.epsilon) == (
        0,
        1,
    )
    visitors.charge(dc.Budget(0.5))
    spent = [visitors.statement(f"2026-01-0{day}").spent.epsilon for day in (1, 2, 3)]
    assert spent == [0.5, 0.5, 0.0]
    with pytest.raises(dc.ParameterError, match="period must be a date as in"):
        visitors.statement("soon")


@pytest.mark.parametrize(
    ("renews", "still", "over"), [("2w", "2026-01-14", "2026-01-15"), ("3d", "2026-01-03", "2026-01-04")]
)
def test_a_budget_renews_after_weeks_or_days(path, at, renews, still, over):
    at("2026-01-01")
    ledger = dc.Ledger(path)
    ledger.grant("visitors", dc.Budget(1.0), renews=renews, different_people=True)
    visitors = ledger.account("visitors")
    visitors.charge(dc.Budget(1.0), unit=dc.User())
    at(still)
    with pytest.raises(dc.BudgetExceededError):
        visitors.charge(dc.Budget(0.5), unit=dc.User())
    at(over)
    visitors.charge(dc.Budget(1.0), unit=dc.User())


def test_an_account_that_renews_pays_for_nothing_that_goes_on(tmp_path):
    """A stream publishes after its charge was forgotten: what counts then would be too little."""
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("guests", dc.Budget(4.0, 1e-6), renews="90d", different_people=True)
    account = ledger.account("guests")
    counter = dc.continual.Counter(horizon=400, budget=dc.Budget(1.0, 1e-6), ledger=account, charge_id="a year")
    with pytest.raises(dc.ParameterError, match="renews and cannot pay for a running continual release"):
        counter.step(3)
    with pytest.raises(dc.ParameterError, match="renews"):
        dc.pan.DistinctCount(budget=dc.Budget(1.0), ledger=account, charge_id="state")
    assert [event.kind for event in ledger.history()] == ["grant"]
