"""A pan-private state that is paid for: charged before it is drawn, once, and for all that its budget covers."""

from fractions import Fraction

import pytest

import discreet as dc
from discreet import _native
from discreet.noise import seeded_source

PAN = dc.pan
BUDGET = dc.Budget(1.0)

MAKERS = {
    "density": lambda **o: PAN.Density(10, **o),
    "listed": lambda **o: PAN.Density(["a", "b"], sample_size=1, **o),
    "distinct": lambda **o: PAN.DistinctCount(buckets=16, **o),
    "mean": lambda **o: PAN.CroppedMean(10, 3, **o),
    "heavy": lambda **o: PAN.HeavyFraction(10, 3, **o),
    "ladder": lambda **o: PAN.HeavyFraction(10, 3, method="ladder", max_count=8, **o),
    "incidence": lambda **o: PAN.Incidence(10, 1, **o),
    "primes": lambda **o: PAN.Incidence(10, 1, method="primes", max_count=8, primes=2, **o),
    "modular": lambda **o: PAN.ModularIncidence(10, 5, **o),
    "products": lambda **o: dc.published.InnerProductCounter(4, **o),
}
TABLES = {name: make for name, make in MAKERS.items() if name != "products"}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


@pytest.fixture
def account(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("elements", dc.Budget(1.5))
    return ledger.account("elements")


@pytest.fixture
def no_draw(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something random was drawn")

    monkeypatch.setattr("discreet.pan._base.fresh_source", refuse)
    for name in ("of_range", "of_integers", "of_strings", "of_hashes"):
        monkeypatch.setattr(f"discreet.pan._cells._native.PanTable.{name}", refuse, raising=False)


def charges(account):
    return [event for event in account.history() if event.kind == "charge"]


def test_the_whole_budget_is_charged_once(make, account):
    made = make(budget=BUDGET, ledger=account, charge_id="monday")
    (charge,) = charges(account)
    assert charge.charge_id == "monday"
    assert charge.details["unit"]["name"] == type(made.guarantee.unit).__name__
    assert account.spent().epsilon == 1.0
    again = type(made).from_bytes(made.to_bytes())  # paid for: it needs no ledger to go on
    again.release()
    type(made).from_bytes(again.to_bytes(), ledger=account).release()
    assert len(charges(account)) == 1


def test_an_intrusion_too_many_is_refused_before_it_is_paid_for(tmp_path):
    ledger = dc.Ledger(tmp_path / "much.sqlite")
    ledger.grant("elements", dc.Budget(100.0))
    account = ledger.account("elements")
    made = PAN.Density(5, budget=BUDGET, ledger=account, announced_intrusions=15)
    for _ in range(16):
        made.announce_intrusion()
    spent, before = account.spent(), made.to_bytes()
    for state in (made, PAN.Density.from_bytes(before, ledger=account)):
        with pytest.raises(dc.ParameterError, match="16"):
            state.announce_intrusion()
        assert state.to_bytes() == before
    assert account.spent() == spent
    assert len(charges(account)) == 2


def test_a_second_state_is_not_paid_for(make, account):
    make(budget=BUDGET, ledger=account, charge_id="monday")
    with pytest.raises(dc.LedgerError, match="another state"):
        make(budget=BUDGET, ledger=account, charge_id="monday")
    with pytest.raises(dc.BudgetExceededError):
        make(budget=BUDGET, ledger=account)


def test_without_budget_nothing_is_drawn(make, account, no_draw):
    with pytest.raises(dc.BudgetExceededError):
        make(budget=dc.Budget(2.0), ledger=account)
    assert not charges(account)


def test_the_charge_is_there_before_the_state_is_drawn(account, monkeypatch):
    for name, make in TABLES.items():
        seen = []
        with monkeypatch.context() as watched:
            watched.setattr(
                "discreet.pan._base.fresh_source",
                lambda name=name, seen=seen: seen.append([c.charge_id for c in charges(account)]) or seeded_source(1),
            )
            make(budget=dc.Budget(0.1), ledger=account, charge_id=name)
        assert seen
        assert all(name in ids for ids in seen)


def test_what_is_refused_is_refused_before_the_charge(make, account):
    for wrong in (
        {"source": seeded_source(1)},
        {"ledger": "ledger.sqlite"},
        {"confidence": 2.0},
        {"budget": dc.Budget(1e-30)},
        {"budget": dc.Budget(1.0, 1e-9)},
        {"budget": dc.Budget.zcdp(0.1)},
        {"budget": 1.0},
    ):
        with pytest.raises(dc.ParameterError):
            make(**{"budget": BUDGET, "ledger": account, **wrong})
    with pytest.raises(dc.ParameterError, match="ledger"):
        make(budget=BUDGET, charge_id="monday")
    assert not charges(account)


@pytest.mark.parametrize("wrong", [
    {"budget": dc.Budget(1e-16)}, {"budget": dc.Budget(1e-16), "output_share": 0.5}, {"response": "fair"},
    {"budget": dc.Budget(1.4), "response": "paper", "output_share": 1e-9}, {"releases": 0}, {"output_share": 1.0},
    {"budget": dc.Budget(1e-9), "output_share": 1e-9},
])  # fmt: skip
@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_cannot_be_drawn_or_read_is_refused_before_the_charge(name, wrong, account):
    if wrong.get("response") == "paper" and name != "ladder":
        wrong = {**wrong, "budget": dc.Budget(4.0)}
    if wrong.get("response") == "paper" and name in ("incidence", "primes", "modular"):
        return  # no bits, and no coins
    with pytest.raises((dc.ParameterError, dc.BudgetExceededError)):
        TABLES[name](**{"budget": BUDGET, "ledger": account, **wrong})
    assert not charges(account)


class CrashError(Exception):
    pass


def test_a_crash_between_charge_and_state_costs_nothing_more(account, monkeypatch):
    def crash(*_):
        raise CrashError

    for point in ("discreet.pan._base.fresh_source", "discreet.privacy.ledger.Account.store"):
        with monkeypatch.context() as broken:
            broken.setattr(point, crash)
            with pytest.raises(CrashError):
                PAN.Density(10, budget=BUDGET, ledger=account, charge_id="monday")
        assert len(charges(account)) == 1
    PAN.Density(10, budget=BUDGET, ledger=account, charge_id="monday").release()
    assert len(charges(account)) == 1


def test_one_of_two_that_race_is_paid_for(account, monkeypatch):
    build = PAN.Density._build

    def overtaken(self, source):
        monkeypatch.setattr(PAN.Density, "_build", build)
        PAN.Density(10, budget=BUDGET, ledger=account, charge_id="monday")
        return build(self, source)

    monkeypatch.setattr(PAN.Density, "_build", overtaken)
    with pytest.raises(dc.LedgerError, match="another state"):
        PAN.Density(10, budget=BUDGET, ledger=account, charge_id="monday")
    assert len(charges(account)) == 1


@pytest.mark.parametrize("name", TABLES)
def test_looks_and_releases_within_the_budget_cost_nothing_more(name, account):
    made = TABLES[name](budget=BUDGET, ledger=account, releases=3, announced_intrusions=2)
    s = made.settings
    assert 3 * s.epsilon_state + 3 * s.epsilon_output == Fraction(s.epsilon) == 1
    for _ in range(2):
        made.announce_intrusion()
    for _ in range(4):
        made.release()
    assert made.guarantee.epsilon == 1.0
    assert len(charges(account)) == 1


@pytest.mark.parametrize("name", TABLES)
def test_an_intrusion_beyond_the_plan_is_charged_first(name, account):
    made = TABLES[name](budget=BUDGET, ledger=account, charge_id="monday", announced_intrusions=1, output_share=0.5)
    made.announce_intrusion()
    kept = made.to_bytes()
    made.announce_intrusion()  # epsilon_state = 1/4
    assert [charge.charge_id for charge in charges(account)] == ["monday", "monday-intrusion-2"]
    assert account.spent().epsilon == pytest.approx(1.25)
    assert made.guarantee.epsilon == account.spent().epsilon
    with pytest.raises(dc.ParameterError, match="ledger=account"):
        type(made).from_bytes(kept).announce_intrusion()
    restored = type(made).from_bytes(kept, ledger=account)  # as after a crash: it is paid for already
    restored.announce_intrusion()
    assert len(charges(account)) == 2
    restored.announce_intrusion()
    assert account.spent().epsilon == pytest.approx(1.5)
    before = restored.to_bytes()
    with pytest.raises(dc.BudgetExceededError):
        restored.announce_intrusion()
    assert restored.to_bytes() == before  # nothing was drawn


def test_a_state_can_be_paid_for_later_and_elsewhere(make, account, tmp_path):
    made = make(budget=BUDGET)
    assert type(made).from_bytes(made.to_bytes()).to_bytes() == made.to_bytes()  # as it always was
    paid = type(made).from_bytes(made.to_bytes(), ledger=account)
    assert account.spent().epsilon == 1.0
    other = dc.Ledger(tmp_path / "other.sqlite")
    other.grant("elements", dc.Budget(1.0))
    type(made).from_bytes(paid.to_bytes(), ledger=other.account("elements"))
    assert other.account("elements").spent().epsilon == 1.0
    assert len(charges(account)) == 1
    seeded = make(budget=BUDGET, source=seeded_source(1))
    with pytest.raises(dc.ParameterError, match="seeded"):
        type(made).from_bytes(seeded.to_bytes(), ledger=account)


@pytest.mark.parametrize("name", TABLES)
def test_who_pays_later_pays_for_every_look(name, account, tmp_path):
    """What the state promises is what the ledger has: not the planned budget alone."""
    made = TABLES[name](budget=BUDGET, announced_intrusions=1, output_share=0.5)
    for _ in range(3):
        made.announce_intrusion()
    assert made.guarantee.epsilon == 1.5
    paid = type(made).from_bytes(made.to_bytes(), ledger=account)
    assert account.spent().epsilon == made.guarantee.epsilon
    type(made).from_bytes(paid.to_bytes(), ledger=account)
    assert len(charges(account)) == 3
    other = dc.Ledger(tmp_path / "other.sqlite")
    other.grant("elements", BUDGET)
    with pytest.raises(dc.BudgetExceededError):
        type(made).from_bytes(paid.to_bytes(), ledger=other.account("elements"))


def test_an_account_of_another_unit_does_not_pay(account, no_draw):
    account.charge(dc.Budget(0.1), "before", mechanism="m", unit=dc.Event())
    with pytest.raises(dc.LedgerError, match="unit"):
        PAN.Density(10, budget=BUDGET, ledger=account)


def test_for_accuracy_pays_too(account):
    made = PAN.Density.for_accuracy(0.2, 0.05, 1.0, universe=10**6, ledger=account, charge_id="monday")
    assert [charge.charge_id for charge in charges(account)] == ["monday"]
    assert made.guarantee.epsilon == 1.0


def test_a_state_with_a_broken_charge_is_corrupt(account):
    import json
    import struct

    from discreet.storage import open_state, seal_state

    made = PAN.Density(10, budget=BUDGET, ledger=account)
    _, payload = open_state(made.to_bytes(), made.family, 2)
    (length,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4 : 4 + length])
    assert len(header["charge"]) == 2
    for wrong in (["a"], "ab", [1, 2], {}):
        text = json.dumps({**header, "charge": wrong}).encode()
        data = seal_state(made.family, 2, struct.pack("<I", len(text)) + text + bytes(payload[4 + length :]))
        with pytest.raises(dc.CorruptStateError):
            PAN.Density.from_bytes(data)
    assert isinstance(made._table, _native.PanTable)


def test_an_intrusion_after_the_last_release_is_refused_and_costs_nothing(account):
    made = PAN.Density(10, budget=BUDGET, ledger=account, output_share=0.75)
    made.release()
    with pytest.raises(dc.ParameterError, match="erased"):
        made.announce_intrusion()
    assert account.spent().epsilon == 1.0


# ---- copies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_copies_publish_one_version_of_a_release(name, account):
    made = TABLES[name](budget=BUDGET, ledger=account, releases=2)
    kept = made.to_bytes()
    first, second = made.release(), made.release()
    copy = type(made).from_bytes(kept, ledger=account)
    for release in (first, second):
        again = copy.release()
        assert again == release
    assert copy._table.erased
    assert len(charges(account)) == 1


def test_a_copy_that_is_asked_something_else_is_refused(account):
    made = PAN.Incidence(10, budget=BUDGET, ledger=account, releases=2)
    kept = made.to_bytes()
    made.release(t=1)
    copy = PAN.Incidence.from_bytes(kept, ledger=account)
    with pytest.raises(dc.OldStateError, match="another question"):
        copy.release(t=2)
    assert copy.to_bytes() == kept  # nothing was drawn
    assert copy.release(t=1) == made.last


def test_of_two_copies_that_race_one_publishes(account, monkeypatch):
    made = PAN.Density(10, budget=BUDGET, ledger=account)
    faster = PAN.Density.from_bytes(made.to_bytes(), ledger=account)
    read = PAN.Density._read

    def overtaken(self, source):
        monkeypatch.setattr(PAN.Density, "_read", read)
        faster.release()
        return read(self, source)

    monkeypatch.setattr(PAN.Density, "_read", overtaken)
    assert made.release() == faster.last


def test_a_release_that_was_registered_and_not_saved_is_made_again(account, monkeypatch):
    """As after a crash between the ledger and the state's file."""
    made = PAN.Density(10, budget=BUDGET, ledger=account)
    kept = made.to_bytes()
    estimate = made.release()
    with monkeypatch.context() as broken:
        broken.setattr(PAN.Density, "_read", lambda *_: pytest.fail("drawn twice"))
        assert PAN.Density.from_bytes(kept, ledger=account).release() == estimate


def test_releases_without_the_account_are_not_known_to_it(account):
    """What was released without the ledger is the state's own knowledge, as it says."""
    made = PAN.Density(10, budget=BUDGET, ledger=account, releases=3)
    kept = made.to_bytes()
    alone = PAN.Density.from_bytes(kept)
    alone.release()
    PAN.Density.from_bytes(alone.to_bytes(), ledger=account).release()  # its second
    with pytest.raises(dc.OldStateError, match="0 releases, but a copy of it made 2"):
        PAN.Density.from_bytes(kept, ledger=account).release()
