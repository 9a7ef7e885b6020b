"""A party that pays: charged before anything is drawn, stored before anybody sees it, one message for one charge."""

import pytest

import discreet as dc
from discreet.multiparty import HadamardResponse, Hierarchy, IndependentSketches
from discreet.noise import seeded_source
from discreet.published import MergedMisraGries

ROUNDS = [
    IndependentSketches("r", dc.Budget(1.0), 10),
    HadamardResponse("r", dc.Budget(1.0), "strings"),
    MergedMisraGries("r", dc.Budget(1.0), ["a", "b"]),
    Hierarchy("r", dc.Budget(1.0), 100, "HadamardResponse"),
]
ROUND = ROUNDS[0]


@pytest.fixture
def account(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(1.5))
    return ledger.account("rows")


@pytest.fixture
def no_draw(monkeypatch):
    def refuse(*_):
        raise AssertionError("something random was drawn")

    for kind in {type(round_) for round_ in ROUNDS}:
        monkeypatch.setattr(kind, "_encode", refuse)


def items_of(round_):
    return ["a", "b", "a"] if round_ in ROUNDS[1:3] else [1, 2, 1]


def charges(account):
    return [event for event in account.history() if event.kind == "charge"]


@pytest.mark.parametrize("round_", ROUNDS, ids=lambda round_: type(round_).__name__)
def test_a_charge_has_one_message(round_, account):
    party = round_.party(7)
    message = party.encode(items_of(round_), ledger=account)
    assert party.payment == "charged"
    assert party.encode(items_of(round_), ledger=account) == message  # the same party
    again = round_.party(7)
    assert again.encode(items_of(round_)[:1], ledger=account) == message  # another process, other items
    assert again.payment == "replayed"
    (charge,) = charges(account)
    assert charge.charge_id == party.charge_id
    assert account.spent().epsilon == 1.0
    aggregator = round_.aggregator(max_reports=None)
    aggregator.receive(message)
    assert aggregator.has(7)
    with pytest.raises(dc.ParameterError, match="already sent its message"):
        again.encode(items_of(round_))  # without the ledger nobody would know
    with pytest.raises(dc.ParameterError, match="already sent its message"):
        again.encode(items_of(round_), ledger=account, charge_id="another")
    assert len(charges(account)) == 1


@pytest.mark.parametrize("round_", ROUNDS, ids=lambda round_: type(round_).__name__)
def test_without_budget_nothing_is_drawn(round_, account, no_draw):
    account.charge(dc.Budget(1.0), "before", mechanism="m", unit=dc.Replace())
    with pytest.raises(dc.BudgetExceededError):
        round_.party(1).encode(items_of(round_), ledger=account)
    assert len(charges(account)) == 1


def test_what_is_refused_is_refused_before_the_charge(account):
    for wrong in ([11], ["a"], [None], 3):
        with pytest.raises(dc.DataError):
            ROUND.party(1).encode(wrong, ledger=account)
    few = IndependentSketches("r", dc.Budget(1.0), 10, max_items=2)
    with pytest.raises(dc.ParameterError):
        few.party(1).encode([1, 2, 3], ledger=account)
    with pytest.raises(dc.ParameterError, match="seeded"):
        ROUND.party(1, source=seeded_source(1)).encode([1], ledger=account)
    with pytest.raises(dc.ParameterError, match="account"):
        ROUND.party(1).encode([1], ledger="ledger.sqlite")
    with pytest.raises(dc.ParameterError, match="ledger"):
        ROUND.party(1).encode([1], charge_id="monday")
    assert not charges(account)


def test_a_crash_between_charge_and_store_costs_nothing_more(account, monkeypatch):
    class CrashError(Exception):
        pass

    def crash(*_):
        raise CrashError

    party = ROUND.party(1)
    with monkeypatch.context() as broken:
        broken.setattr(type(account), "store", crash)
        with pytest.raises(CrashError):
            party.encode([1], ledger=account)
    assert len(charges(account)) == 1
    message = party.encode([1], ledger=account)  # nobody saw the first
    assert party.payment == "charged before"
    assert ROUND.party(1).encode([1], ledger=account) == message
    assert len(charges(account)) == 1


def test_of_two_that_race_one_speaks(account, monkeypatch):
    fast, slow, heard = ROUND.party(1), ROUND.party(1), []
    draw = type(slow)._draw

    def overtaken(party, words):
        if party is slow:
            heard.append(fast.encode([1], ledger=account))
        return draw(party, words)

    monkeypatch.setattr(type(slow), "_draw", overtaken)
    assert slow.encode([2], ledger=account) == heard[0]
    assert len(charges(account)) == 1


def test_a_named_charge_stands_for_one_message(account):
    message = ROUND.party(1).encode([1], ledger=account, charge_id="monday")
    assert ROUND.party(1).encode([1], ledger=account, charge_id="monday") == message
    for other in (ROUND.party(2), IndependentSketches("s", dc.Budget(1.0), 10).party(1)):
        with pytest.raises(dc.LedgerError):
            other.encode([1], ledger=account, charge_id="monday")


def test_parties_and_rounds_are_charged_for_themselves(account):
    ROUND.party(1).encode([1], ledger=account)
    for other in (ROUND.party(2), IndependentSketches("s", dc.Budget(1.0), 10).party(1)):
        with pytest.raises(dc.BudgetExceededError):
            other.encode([1], ledger=account)


def test_an_account_of_another_unit_does_not_pay(account, no_draw):
    account.charge(dc.Budget(0.1), "before", mechanism="m", unit=dc.Event())
    with pytest.raises(dc.LedgerError, match="unit"):
        ROUND.party(1).encode([1], ledger=account)


def test_a_stream_begins_once(account):
    stream = dc.multiparty.Stream("s", dc.Budget(1.0), universe=10, epoch_steps=1, horizon=64, columns=4)
    party, kept = stream.party(3, ledger=account), []

    class CrashError(Exception):
        pass

    def crash():
        kept.append(party.to_bytes())
        raise CrashError

    with pytest.raises(CrashError):
        party.begin(save=crash)
    party.begin(save=lambda: kept.append(party.to_bytes()))  # not used yet: nothing more is charged
    assert len(charges(account)) == 1
    with pytest.raises(dc.ParameterError, match="already started the stream"):
        stream.party(3, ledger=account).begin(save=crash)
    assert stream.restore_party(kept[-1], ledger=account).feed([1]) is not None
    with pytest.raises(dc.BudgetExceededError):
        stream.party(4, ledger=account).begin(save=crash)
    poor = stream.party(4, ledger=account)
    for _ in range(2):
        with pytest.raises(dc.BudgetExceededError):
            poor.feed([1])
    assert len(charges(account)) == 1
    with pytest.raises(dc.ParameterError, match="seeded"):
        stream.party(5, ledger=account, source=seeded_source(1))


def test_every_round_protocol_parameter_and_party_has_a_charge_of_its_own():
    """One charge pays for one message: what is another message for a receiver is another charge, too."""
    universe, more = [1, 2, 3], dc.Budget(2.0)
    rounds = [
        *ROUNDS,
        HadamardResponse("r", dc.Budget(1.0), universe),
        HadamardResponse("r", more, universe),
        HadamardResponse("s", dc.Budget(1.0), universe),
        HadamardResponse("r", dc.Budget(1.0), [*universe, 4]),
        HadamardResponse("r", dc.Budget(1.0), universe, shuffled=10),
        dc.multiparty.LocalHashing("r", dc.Budget(1.0), universe),
        dc.multiparty.LocalSketch("r", dc.Budget(1.0), universe, columns=4),
        dc.multiparty.LocalSketch("r", dc.Budget(1.0), universe, columns=8),
        Hierarchy("r", dc.Budget(1.0), 100, "LocalHashing"),
    ]
    ids = [round_.charge_id(number) for round_ in rounds for number in (0, 1, 7)]
    assert len({*ids}) == len(ids)
    again = HadamardResponse("r", dc.Budget(1.0), tuple(universe))
    assert again.charge_id(7) == HadamardResponse("r", dc.Budget(1.0), universe).charge_id(7)


@pytest.mark.parametrize(
    "round_",
    [
        HadamardResponse("r", dc.Budget(1.0), 10),
        dc.multiparty.LocalHashing("r", dc.Budget(1.0), 10),
        Hierarchy("r", dc.Budget(1.0), 100, "HadamardResponse"),
        dc.multiparty.GridHierarchy("r", dc.Budget(1.0), (9, 9), "HadamardResponse"),
    ],
    ids=lambda round_: type(round_).__name__,
)
def test_reports_beyond_the_last_number_are_refused_before_the_charge(round_, account):
    """Every report has a number of its own, and no aggregator takes one of more than 63 bits."""
    item = (1, 2) if isinstance(round_, dc.multiparty.GridHierarchy) else 1
    for number, items in ((2**63 - 1, 2), (2**63 - 3, 4)):
        with pytest.raises(dc.ParameterError, match="number below"):
            round_.party(number).encode([item] * items, ledger=account)
    assert not charges(account)
    aggregator = round_.aggregator(max_reports=3)
    for number, items in ((2**63 - 1, 1), (2**63 - 4, 3)):
        assert aggregator.receive(round_.party(number).encode([item] * items))
    assert aggregator.numbers == [(2**63 - 4, 4)]
