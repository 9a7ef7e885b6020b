import json
import math
import random
import sys

import pytest

import discreet as dc
from discreet.central import Offset
from discreet.errors import LedgerError, ParameterError
from discreet.noise import seeded_source
from discreet.releases.payment import Bill, Payer, begin, check_payer, is_stored, pay_and_draw

BUDGET = dc.Budget(1.0, 1e-6)


@pytest.fixture
def account(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger")
    ledger.grant("a", dc.Budget(3.0, 3e-6))
    return ledger.account("a")


def bill(**request):
    return Bill(BUDGET, "a mechanism", dc.Event(), request or None)


def as_bytes(value):
    return json.dumps(value).encode()


def pay(account, charge_id, draw, of=None):
    return pay_and_draw(account, charge_id, of or bill(), draw, to_payload=as_bytes, from_payload=json.loads)


def test_without_an_account_it_is_only_drawn():
    assert pay(None, None, lambda: 7) == (7, None)


def test_it_is_charged_before_it_is_drawn_and_stored_before_it_is_returned(account):
    def draw():
        assert [event.kind for event in account.history()] == ["grant", "charge"]
        return 7

    assert pay(account, "c", draw) == (7, "charged")
    assert [event.kind for event in account.history()] == ["grant", "charge", "release"]


def test_repeating_an_id_replays_and_draws_nothing(account):
    pay(account, "c", lambda: random.random())
    assert is_stored(account, "c")
    first, how = pay(account, "c", lambda: pytest.fail("drawn again"))
    assert (first, how) == (pay(account, "c", lambda: 0)[0], "replayed")


def test_without_an_id_every_call_is_a_charge_of_its_own(account):
    assert [pay(account, None, lambda: 1)[1] for _ in range(2)] == ["charged", "charged"]
    assert account.statement().charges == 2


def test_an_error_after_the_charge_says_that_the_id_is_good_for_another_attempt(account):
    def fails():
        raise RuntimeError

    with pytest.raises(RuntimeError) as caught:
        pay(account, "c", fails)
    if sys.version_info >= (3, 11):
        assert "'c' is good for one release" in caught.value.__notes__[0]
    assert not is_stored(account, "c")
    assert pay(account, "c", lambda: 7) == (7, "charged before")
    assert account.statement().charges == 1


def test_what_another_process_stored_first_is_what_is_returned(account):
    def draw():
        account.store("c", as_bytes("theirs"))
        return "ours"

    assert pay(account, "c", draw)[0] == "theirs"


def test_an_id_stands_for_one_request(account):
    pay(account, "c", lambda: 7, bill(file="one"))
    assert pay(account, "c", lambda: 8, bill(file="one")) == (7, "replayed")
    with pytest.raises(LedgerError, match="another request"):
        pay(account, "c", lambda: 8, bill(file="two"))


def test_the_ledger_keeps_a_digest_of_the_request_and_not_the_request(account):
    pay(account, "c", lambda: 7, bill(file="names.csv"))
    details = account.history()[1].details
    assert details["request"] == bill(file="names.csv").digest
    assert "names" not in str(details)


def test_what_is_returned_is_what_is_stored(account):
    sketch = dc.MisraGries(64)
    sketch.update(["a"] * 500 + ["b"] * 300)
    mechanism = Offset(BUDGET, 64)
    drawn = Payer(account, "c").pay(bill(), lambda: mechanism(sketch), {})
    again = Payer(account, "c").pay(bill(), lambda: mechanism(sketch), {})
    assert (drawn.payment, again.payment) == ("charged", "replayed")
    assert drawn.to_payload() == again.to_payload()
    assert drawn.to_dict() == again.to_dict()
    assert (drawn.guarantee, drawn.error_model) == (again.guarantee, again.error_model)
    assert drawn.to_arrow().equals(again.to_arrow())


def test_what_goes_on_is_charged_once_for_one_token(account):
    assert begin(account, "c", bill(), b"mine")
    assert not begin(account, "c", bill(), b"mine")
    with pytest.raises(LedgerError, match="'c' paid for another stream; restore"):
        begin(account, "c", bill(), b"another", what="stream")
    assert account.statement().charges == 1


def test_a_state_is_saved_between_the_charge_and_its_use(account):
    def save():
        assert account.statement().charges == 1
        assert not is_stored(account, "c")

    assert begin(account, "c", bill(), b"mine", save=save)


def test_what_died_before_its_state_was_saved_begins_again_at_no_cost(account):
    def dies():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin(account, "c", bill(), b"first", save=dies)
    assert begin(account, "c", bill(), b"second")
    assert account.statement().charges == 1


def test_payers_that_cannot_pay_are_refused(account):
    check_payer(account, "c", None)
    check_payer(None, None, seeded_source(1))
    for arguments in (
        ("ledger.sqlite", None, None),
        (None, "c", None),
        (None, None, 1),
        (account, "c", seeded_source(1)),
    ):
        with pytest.raises(ParameterError):
            check_payer(*arguments)


def test_a_stored_number_is_read_as_it_was():
    """With what is missing in it, which a replay must say, too; and without an upper end where it has none."""
    promise = dc.count({"a": [1, 2, 3]}, dc.Budget(1.0)).guarantee
    lacks = dc.Estimate(0.25, 0.1, 0.4, promise)
    asked = dc.count({"a": [1, 2, 3]}, dc.Budget(1.0)).asked
    number = dc.Estimate(7, 3, math.inf, promise, asked=asked, left_out=lacks, notes=("one note", "another"))
    again = dc.Estimate.from_payload(number.to_payload())
    assert (again.value, again.lower, again.upper) == (7, 3, math.inf)
    assert again.left_out is not None
    assert (again.left_out.value, again.left_out.lower, again.left_out.upper) == (0.25, 0.1, 0.4)
    assert again.notes == ("one note", "another")
    assert again.guarantee == promise
    assert again.asked == asked
