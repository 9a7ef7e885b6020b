"""Messages and states in files, and what an aggregator answers."""

import json

import pytest

import discreet as dc
from discreet.multiparty.post import Questions, hear, last_message, next_message

BUDGET = dc.Budget(40.0)


@pytest.fixture
def protocol():
    return dc.published.MergedSketch("a", BUDGET, 100, columns=64)


def test_what_can_be_heard_is_heard_and_the_rest_is_named(protocol, tmp_path):
    (tmp_path / "sent").mkdir()
    for number in range(3):
        (tmp_path / "sent" / f"{number}").write_bytes(protocol.party(number).encode([7] * 50))
    (tmp_path / "sent" / ".hidden").write_bytes(b"")
    (tmp_path / "bad").write_bytes(b"nonsense")
    everything = [tmp_path / "sent", tmp_path / "bad", tmp_path / "missing"]
    aggregator, heard = hear(protocol, everything)
    assert (aggregator.parties, heard["accepted"]) == (3, 3)
    assert [row["file"] for row in heard["rejected"]] == [str(tmp_path / "bad"), str(tmp_path / "missing")]
    assert heard["rejected"][1]["reason"] == "file"
    state = tmp_path / "heard"
    for place in ("0", "1"):
        aggregator, _ = hear(protocol, [tmp_path / "sent" / place], state)
    assert aggregator.parties == 2
    answers = Questions(top=1).answered(protocol, aggregator, 0.99)
    assert answers["estimates"][0]["item"] == 7
    assert answers["guarantee"]["epsilon"] == 40.0
    json.dumps(answers)


def test_questions_that_a_protocol_cannot_answer_are_refused(protocol):
    aggregator = protocol.aggregator()
    for wrong in (
        Questions(share=0.1),
        Questions(quantiles=(0.5,)),
        Questions(ranges=((1, 2),)),
        Questions(time=3),
        Questions(top=3, items=(1,)),
    ):
        with pytest.raises(dc.ParameterError):
            wrong.check(protocol)
    with pytest.raises(dc.ParameterError):
        Questions(top=3).check(dc.multiparty.LocalHashing("a", dc.Budget(1.0), "strings"))
    with pytest.raises(dc.DataError, match="nothing to estimate"):
        Questions(items=(1,)).answered(protocol, aggregator, 0.95)


def test_a_party_of_a_stream_goes_on_from_its_file(tmp_path):
    stream = dc.multiparty.Stream("a", dc.Budget(1000.0), 100, epoch_steps=1, window=50, columns=32)
    state = tmp_path / "0.state"
    with pytest.raises(dc.ParameterError, match="nothing was sent"):
        last_message(stream, 0, state)
    first, begin, end = next_message(stream, 0, state, lambda: [1, 2, 3])
    assert (begin, end) == (1, 3)
    assert last_message(stream, 0, state) == first
    _, begin, end = next_message(stream, 0, state, lambda: [], until=9)
    assert (begin, end) == (4, 9)
    for wrong in (lambda: next_message(stream, 1, state, list), lambda: last_message(stream, 1, state)):
        with pytest.raises(dc.ParameterError, match="party 0"):
            wrong()
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("a", dc.Budget(1000.0))
    account, paid = ledger.account("a"), tmp_path / "1.state"
    with pytest.raises(dc.DataError):
        next_message(stream, 1, paid, _unreadable, ledger=account)
    assert (account.spent().epsilon, paid.exists()) == (0.0, False)
    for _ in range(2):
        next_message(stream, 1, paid, lambda: [5], ledger=account)
    assert account.spent().epsilon == pytest.approx(1000.0)


def _unreadable():
    raise dc.DataError("not a column")
