"""Ticks in a ledger: a copy of a state never publishes a second version of a tick, and a restored one pays again."""

import copy
import uuid

import numpy as np
import pytest

import discreet as dc
from discreet.errors import LedgerError, OldStateError
from discreet.noise import seeded_source
from discreet.privacy.steps import Steps

BUDGET = dc.Budget(1.0, 1e-6)


def counter(**options):
    return dc.continual.Counter(8, BUDGET, **options)


def counters(**options):
    return dc.continual.Counter(8, BUDGET, size=3, **options)


def unknown_horizon(**options):
    return dc.continual.Counter(None, BUDGET, **options)


def hitters(**options):
    return dc.continual.HeavyHitters(8, BUDGET, 16, **options)


def histogram(**options):
    return dc.continual.Histogram(8, BUDGET, max_items_per_event=1, **options)


def sparse(**options):
    return dc.continual.Histogram(8, BUDGET, universe=["a", "b", "c"], k=1, mechanism="sparse", **options)


def events(made):
    if isinstance(made, dc.continual.Counter):
        return 50 if made.size is None else [50, 20, 0]
    return ["a"] * 50 + ["b"] * 20


def shown(release):
    if release is None or isinstance(release, int):
        return release
    return release.tolist() if isinstance(release, np.ndarray) else release.to_payload()


@pytest.fixture
def account(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(4.0, 1e-4))
    return ledger.account("rows")


@pytest.fixture(params=[counter, counters, unknown_horizon, hitters, histogram, sparse])
def make(request):
    return request.param


def charges(account):
    return [event.charge_id for event in account.history() if event.kind == "charge"]


def test_a_copy_is_refused_before_anything_is_drawn(make, account):
    made = make(ledger=account)
    made.step(events(made))
    old = made.to_bytes()
    made.step(events(made))
    made.step(events(made))
    with pytest.raises(OldStateError, match=r"state is at step 1, and step 3 was published") as refused:
        type(made).from_bytes(old, ledger=account)
    assert (refused.value.tick, refused.value.known) == (1, 3)
    assert len(charges(account)) == 1


def test_of_two_copies_that_race_one_publishes(make, account):
    """The second looks before the first stores, and draws: what it drew is not handed out, now or later."""
    made = make(ledger=account)
    made.step(events(made))
    state = made.to_bytes()
    twin = type(made).from_bytes(state, ledger=account)
    published = []

    def meanwhile(release):
        published.append(shown(made.step(events(made))))

    with pytest.raises(OldStateError, match="another version of step 2"):
        twin.step(events(twin), save=meanwhile)
    with pytest.raises(OldStateError):
        _ = twin.last
    with pytest.raises(OldStateError):
        twin.step(events(twin))
    with pytest.raises(OldStateError, match="another version of step 2"):
        type(made).from_bytes(twin.to_bytes(), ledger=account)
    assert shown(made.last) == published[0]
    assert type(made).from_bytes(made.to_bytes(), ledger=account).tick == 2


def test_a_tick_that_was_saved_and_not_registered_is_registered_later(make, account):
    class CrashError(Exception):
        pass

    made, kept = make(ledger=account), []

    def crash(release):
        kept.append((made.to_bytes(), shown(release)))
        raise CrashError

    for tick in (1, 2):
        with pytest.raises(CrashError):
            made.step(events(made), save=crash)
        assert (account.last_step(made.charge_id) or Steps("")).number == tick - 1
        made = type(made).from_bytes(kept[-1][0], ledger=account)
        assert shown(made.last) == kept[-1][1]
        assert account.last_step(made.charge_id).number == tick
    assert len(charges(account)) == 1


def test_a_restored_state_hands_out_what_was_published_and_pays_again(make, account):
    made = make(ledger=account)
    states, published = [made.to_bytes()], [None]
    for _ in range(4):
        published.append(shown(made.step(events(made))))
        states.append(made.to_bytes())
    for behind in (0, 2):
        known = len(published) - 1
        again = type(made).from_bytes(states[behind], ledger=account, restored=True)
        assert again.charge_id not in charges(account)
        # Saved and read before it goes on: the charge is that of the state.
        again = type(made).from_bytes(again.to_bytes(), ledger=account)
        for tick in range(behind + 1, known + 1):
            assert shown(again.step(events(again))) == published[tick]
            again = type(made).from_bytes(again.to_bytes(), ledger=account)
            assert again.tick == tick
        published.append(shown(again.step(events(again))))
        # Nobody else goes on there: neither the newest state of the first run, nor the old ones, nor any copy.
        for state in states:
            with pytest.raises(OldStateError):
                type(made).from_bytes(state, ledger=account)
        assert shown(type(made).from_bytes(again.to_bytes(), ledger=account).last) == published[-1]
    assert len(charges(account)) == 3


def test_a_restored_state_that_drew_another_version_takes_the_published_one(account):
    made = counter(ledger=account)
    made.step(50)
    twin = counter().from_bytes(made.to_bytes(), ledger=account)
    with pytest.raises(OldStateError):
        twin.step(50, save=lambda _: made.step(50))
    made.step(50)
    third = made.last
    again = counter().from_bytes(twin.to_bytes(), ledger=account, restored=True)
    assert again.last == total_of(account, made.charge_id, 2)
    assert again.step(50) == third
    again.step(50)
    assert len(charges(account)) == 2


def total_of(account, charge_id, number):
    return int.from_bytes(account.step(charge_id, number).payload, "little", signed=True)


def test_a_state_that_is_up_to_date_is_not_charged_again(make, account):
    made = make(ledger=account)
    made.step(events(made))
    again = type(made).from_bytes(made.to_bytes(), ledger=account, restored=True)
    again.step(events(again))
    assert len(charges(account)) == 1


def test_restored_when_the_budget_is_used_up(tmp_path):
    ledger = dc.Ledger(tmp_path / "small.sqlite")
    ledger.grant("rows", BUDGET)
    account = ledger.account("rows")
    made = counter(ledger=account)
    old = made.to_bytes()
    made.step(50)
    again = counter().from_bytes(old, ledger=account, restored=True)
    with pytest.raises(dc.BudgetExceededError):
        again.step(50)
    made.step(50)  # nothing was claimed


def test_what_needs_a_ledger(account):
    made = counter(ledger=account)
    made.step(50)
    with pytest.raises(dc.ParameterError, match="a ledger knows the steps of this state"):
        counter().from_bytes(made.to_bytes())
    with pytest.raises(dc.ParameterError, match="second run"):
        counter().from_bytes(counter().to_bytes(), restored=True)


def test_a_state_begun_without_a_ledger_may_be_given_one(account):
    made = counter()
    made.step(50)
    made = counter().from_bytes(made.to_bytes(), ledger=account)
    made.step(50)
    made.step(50)
    assert account.last_step(made.charge_id).number == 2


@pytest.mark.parametrize("ticks", [0, 1, 2])
@pytest.mark.parametrize("restored", [False, True])
def test_another_ledger_is_refused(make, account, tmp_path, ticks, restored):
    """It knows nothing of what was published: the ticks would be drawn a second time, and paid for elsewhere."""
    made = make(ledger=account)
    for _ in range(ticks):
        made.step(events(made))
    other = dc.Ledger(tmp_path / "other.sqlite")
    other.grant("rows", dc.Budget(4.0, 1e-4))
    with pytest.raises(LedgerError, match="another ledger"):
        type(made).from_bytes(made.to_bytes(), ledger=other.account("rows"), restored=restored)
    with pytest.raises(dc.ParameterError, match="ledger"):
        type(made).from_bytes(made.to_bytes(), restored=restored)
    assert not charges(other.account("rows"))
    # The same ledger may be elsewhere.
    moved = dc.Ledger((tmp_path / "ledger.sqlite").rename(tmp_path / "moved.sqlite")).account("rows")
    again = type(made).from_bytes(made.to_bytes(), ledger=moved)
    again.step(events(again))
    assert len(charges(moved)) == 1


def test_states_of_before_know_their_ledger_by_its_charge(account, tmp_path):
    made = counter(ledger=account)
    made.step(50)
    made._steps.ledger = None  # as they were saved
    other = dc.Ledger(tmp_path / "other.sqlite")
    other.grant("rows", BUDGET)
    with pytest.raises(LedgerError, match="another ledger"):
        counter().from_bytes(made.to_bytes(), ledger=other.account("rows"))
    assert counter().from_bytes(made.to_bytes(), ledger=account).step(50) is not None


def test_an_old_copy_of_the_ledger_is_refused(account, tmp_path):
    made = counter(ledger=account)
    made.step(50)
    made.step(50)
    ahead = copy.deepcopy(made._steps)
    ahead.number, ahead.token, ahead.previous = 4, uuid.uuid4().hex, uuid.uuid4().hex
    with pytest.raises(LedgerError, match="ledger is an old copy"):
        ahead.look(account, 4, b"")


def test_the_level_of_sparse_is_drawn_anew_in_a_second_run(account):
    budget = dc.Budget(1e-2, 1e-6)
    made = dc.continual.Histogram(8, budget, universe=["a", "b", "c"], k=1, mechanism="sparse", ledger=account)
    made.step(["a"])
    old = made.to_bytes()
    made.step(["a"])
    # Its scale is beyond 100, so that 10 draws are all the same with a probability below 1e-18.
    levels = {int(type(made).from_bytes(old, ledger=account, restored=True)._scheme.level_noise[0]) for _ in range(10)}
    assert len(levels) > 1


RENEWED = {
    "tree": lambda source: dc.continual.Counter(16, RHO, method="tree", size=1000, source=source),
    "square-root": lambda source: dc.continual.Counter(16, RHO, method="square-root", size=1000, source=source),
    "blt": lambda source: dc.continual.Counter(16, RHO, method="blt", size=1000, source=source),
    "unknown horizon": lambda source: dc.continual.Counter(None, RHO, size=1000, source=source),
    "known domain": lambda source: dc.continual.Histogram(
        16, RHO, universe=range(1000), max_items_per_event=1, source=source
    ),
    "unknown domain": lambda source: dc.continual.Histogram(
        16, dc.Budget(1.0, 1e-6), max_items_per_event=1, source=source
    ),
}
RHO = dc.Budget.zcdp(0.01)


@pytest.mark.parametrize("name", RENEWED)
def test_the_noise_of_a_second_run_has_the_law_of_the_first_and_none_of_its_noise(name):
    """1,000 counters; the deviations below have probabilities far below 1e-6, and the source is seeded."""
    made = RENEWED[name](seeded_source(7))
    each = 300  # of every item at every tick, so that none is below the cut
    many = [each] * 1000 if isinstance(made, dc.continual.Counter) else np.tile(np.arange(1000), each)

    def noise():
        last = made.step(many)
        values = last if isinstance(last, np.ndarray) else last.counts[np.argsort(np.array(last.items, np.int64))]
        return values - each * made.tick

    for _ in range(5):
        before = noise()
        assert len(before) == 1000
    made._renew()
    after = noise()
    assert len(after) == 1000
    assert abs(after.std() / made.error(6) - 1) < 0.15
    assert abs(np.corrcoef(before, after)[0, 1]) < 0.18


def test_a_ledger_keeps_no_release_that_is_not_private(make, account):
    for wrong in ({"source": seeded_source(1), "ledger": account}, {"ledger": "ledger.sqlite"}):
        with pytest.raises(dc.ParameterError, match=r"seeded|account"):
            make(**wrong)
    made, seeded = make(), make(source=seeded_source(1))
    for each in (made, seeded):
        each.step(events(each))
    for data, wrong in (
        (made.to_bytes(), {"source": seeded_source(1), "ledger": account}),
        (made.to_bytes(), {"ledger": "ledger.sqlite"}),
        (seeded.to_bytes(), {"ledger": account}),
    ):
        with pytest.raises(dc.ParameterError, match=r"seeded|account"):
            type(made).from_bytes(data, **wrong)
    assert not charges(account)


def test_a_state_does_not_go_on_from_a_past_that_was_not_published(account):
    """A copy may go over the step that another published, if both had the same past; one with another past may not."""
    made = counter(ledger=account, charge_id="c")
    made.step(1)
    made.step(2)
    first, second = account.step("c", 1), account.step("c", 2)
    copied = Steps("c", 2, uuid.uuid4().hex, first.token)
    assert copied.settle(account) == second.payload
    forged = Steps("c", 2, uuid.uuid4().hex, uuid.uuid4().hex)
    with pytest.raises(LedgerError, match="it cannot be continued"):
        forged.settle(account)


def test_a_step_that_was_not_registered_needs_its_release(account):
    """A state that is a step ahead of the ledger hands it in; one that has nothing to hand in has an old ledger."""
    made = counter(ledger=account, charge_id="c")
    made.step(1)
    first = account.step("c", 1)
    ahead = Steps("c", 2, uuid.uuid4().hex, first.token, account.ledger_identity)
    with pytest.raises(LedgerError, match="the ledger is an old copy; use the newer one"):
        ahead.look(account, 2, None)
    assert account.last_step("c") == first
    ahead.look(account, 2, b"drawn and saved")
    assert account.last_step("c").payload == b"drawn and saved"
    far = Steps("c", 4, uuid.uuid4().hex, uuid.uuid4().hex, account.ledger_identity)
    with pytest.raises(LedgerError, match="after 4 steps of charge 'c' and the ledger knows 2"):
        far.look(account, 4, b"two more")
