"""What a charge id stands for: had again when the data are gone, refused for another question, one unit for people."""

import pyarrow as pa
import pytest

import discreet as dc

BUDGET, PURE = dc.Budget(1.0, 1e-6), dc.Budget(1.0)
TABLE = pa.table(
    {
        "who": [str(i // 4) for i in range(4000)],
        "what": ["abcd"[i % 4] for i in range(4000)],
        "day": [i % 2 for i in range(4000)],
        "ms": [i % 100 for i in range(4000)],
    }
)
LISTS = [["a", "b", "c"]] * 1000


class Gone:
    """Data that cannot be had any more: whoever looks at them fails."""

    def __getattribute__(self, name):
        if name == "__class__":
            return object.__getattribute__(self, name)
        raise AssertionError(f"the data were looked at: {name}")


QUESTIONS = {
    "rows": (TABLE, lambda data, **pay: dc.top_k(data, 3, BUDGET, column="what", **pay)),
    "a column": (TABLE["what"], lambda data, **pay: dc.top_k(data, 3, BUDGET, **pay)),
    "some rows": (TABLE, lambda data, **pay: dc.top_k(data, 3, BUDGET, column="what", where="ms < 50", **pay)),
    "groups": (TABLE, lambda data, **pay: dc.top_k(data, 3, BUDGET, column="what", by="day", **pay)),
    "shards": (TABLE, lambda data, **pay: dc.top_k(data, 3, BUDGET, column="what", workers=2, **pay)),
    "people": (TABLE, lambda data, **pay: dc.top_k(data, 3, BUDGET, column="what", user="who", **pay)),
    "people with few": (
        TABLE,
        lambda data, **pay: dc.top_k(data, 3, BUDGET, column="what", user="who", max_items=2, **pay),
    ),
    "people in groups": (
        TABLE,
        lambda data, **pay: dc.top_k(data, 3, BUDGET, column="what", user="who", by="day", **pay),
    ),
    "lists": (LISTS, lambda data, **pay: dc.top_k(data, 3, BUDGET, unit=dc.User(2), **pay)),
    "lists of people": (LISTS, lambda data, **pay: dc.top_k(data, 3, BUDGET, unit=dc.User(), **pay)),
    "count": (TABLE, lambda data, **pay: dc.count(data, PURE, **pay)),
    "count of people": (TABLE, lambda data, **pay: dc.count(data, PURE, user="who", where="ms < 50", **pay)),
    "distinct": (TABLE, lambda data, **pay: dc.distinct(data, PURE, column="what", **pay)),
    "distinct of people": (TABLE, lambda data, **pay: dc.distinct(data, PURE, column="what", user="who", **pay)),
    "histogram": (TABLE, lambda data, **pay: dc.histogram(data, PURE, column="what", universe=["a", "b"], **pay)),
    "histogram of people": (
        TABLE,
        lambda data, **pay: dc.histogram(
            data, PURE, column="what", universe=["a", "b"], user="who", max_items=2, **pay
        ),
    ),
    "quantiles": (TABLE, lambda data, **pay: dc.quantiles(data, PURE, [0.5], column="ms", range=(0, 100), **pay)),
    "quantiles of people": (
        TABLE,
        lambda data, **pay: dc.quantiles(data, PURE, [0.5], column="ms", range=(0, 100), user="who", **pay),
    ),
}


@pytest.fixture
def ledger(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger")
    ledger.grant("a", dc.Budget(100.0, 1e-3))
    return ledger


def told(answer):
    return answer.to_dict() if isinstance(answer, (dc.Release, dc.Quantiles)) else answer


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_release_is_had_again_when_the_data_are_gone(ledger, name):
    data, ask = QUESTIONS[name]
    first = ask(data, ledger=ledger.account("a"), charge_id="c")
    again = ask(Gone(), ledger=ledger.account("a"), charge_id="c")
    assert told(again) == told(first)
    assert getattr(again, "payment", "replayed") == "replayed"
    assert [event.kind for event in ledger.history("a")] == ["grant", "charge", "release"]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda **pay: dc.top_k(Gone(), 20, BUDGET, column="what", **pay), "k was 3 and is now 20"),
        (lambda **pay: dc.top_k(Gone(), 3, BUDGET, column="who", **pay), 'column was "what" and is now "who"'),
        (
            lambda **pay: dc.top_k(Gone(), 3, BUDGET, column="what", user="who", **pay),
            'user was not given and is .*"who"',
        ),
        (lambda **pay: dc.top_k(Gone(), 3, BUDGET, column="what", request="tuesday", **pay), "request differs"),
        (lambda **pay: dc.top_k(Gone(), 3, dc.Budget(0.5, 1e-6), column="what", **pay), "budget was .*epsilon=1.0"),
        (lambda **pay: dc.count(Gone(), BUDGET, **pay), 'question was "top" and is now "count"'),
    ],
)
def test_another_question_is_refused_before_the_data_are_looked_at(ledger, ask, message):
    """And says what differs: an hour of reading would have ended in the same refusal."""
    dc.top_k(TABLE, 3, BUDGET, column="what", request="monday", ledger=ledger.account("a"), charge_id="c")
    with pytest.raises(dc.ChargeConflictError, match=message):
        ask(ledger=ledger.account("a"), charge_id="c")


def test_the_question_of_a_mechanism_is_the_same_in_any_process(ledger):
    mechanism = dc.central.ReducedMisraGries(PURE, 64, universe=["a", "b", "c", "d"])
    pay = {"ledger": ledger.account("a"), "charge_id": "c"}
    first = dc.top_k(TABLE, 3, PURE, column="what", mechanism=mechanism, **pay)
    same = dc.central.ReducedMisraGries(PURE, 64, universe=["a", "b", "c", "d"])
    assert dc.top_k(Gone(), 3, PURE, column="what", mechanism=same, **pay).to_dict() == first.to_dict()
    other = dc.central.ReducedMisraGries(PURE, 32, universe=["a", "b", "c", "d"])
    with pytest.raises(dc.ChargeConflictError, match="mechanism"):
        dc.top_k(Gone(), 3, PURE, column="what", mechanism=other, **pay)


def test_people_are_the_same_with_any_memory_and_any_number_of_threads(ledger):
    pay = {"ledger": ledger.account("a"), "charge_id": "c", "column": "what", "user": "who"}
    first = dc.top_k(TABLE, 3, BUDGET, **pay)
    assert dc.top_k(Gone(), 3, BUDGET, **pay, memory="1GB", workers=2).to_dict() == first.to_dict()


def _sampled():
    sketch = dc.UserMisraGries(64, 2, oversized="sample")
    sketch.update(LISTS)
    return sketch


def _over_time(**pay):
    counts = dc.continual.Histogram(4, BUDGET, unit=dc.User(2), **pay)
    counts.step(TABLE["what"], users=TABLE["who"])


OF_PEOPLE = {
    **{name: QUESTIONS[name] for name in QUESTIONS if "people" in name or name == "lists"},
    "a sketch of samples": (None, lambda data, **pay: dc.release(_sampled(), BUDGET, unit=dc.User(2), **pay)),
    "counts over time": (None, lambda data, **pay: _over_time(**pay)),
    "people over time": (
        None,
        lambda data, **pay: dc.continual.DistinctCount(4, BUDGET, **pay).step(TABLE["who"]),
    ),
}


def test_everything_that_hides_all_of_a_person_is_one_account(ledger):
    """Whatever bounds what counts of them: User(2), User(3) and User() were refused beside each other."""
    account = ledger.account("a")
    for name, (data, ask) in OF_PEOPLE.items():
        ask(data, ledger=account, charge_id=name)
    dc.top_k(TABLE, 3, BUDGET, column="what", user="who", max_items=3, ledger=account)
    assert account.statement().charges == len(OF_PEOPLE) + 1
    assert ledger.verify()
    with pytest.raises(dc.ChargeConflictError, match="one event"):
        dc.top_k(TABLE, 3, BUDGET, column="what", ledger=account)


def _flat(**pay):
    return dc.top_k(TABLE, 3, BUDGET, column="what", unit=dc.User(2), grouped=False, **pay)


def _refusing(**pay):
    sketch = dc.UserMisraGries(64, 3)
    sketch.update(LISTS)
    return dc.release(sketch, BUDGET, unit=dc.User(3), **pay)


def _in_two_parts(**pay):
    return dc.release(_sampled(), BUDGET, unit=dc.User(2), parts_per_user=2, **pay)


@pytest.mark.parametrize("ask", [_flat, _refusing, _in_two_parts])
def test_a_bound_that_somebody_vouches_for_is_another_unit(ledger, ask):
    """Nobody is hidden who has more: what is added up for people does not take it, nor does it become theirs."""
    dc.count(TABLE, PURE, user="who", ledger=ledger.account("a"))
    with pytest.raises(dc.ChargeConflictError, match="one user with at most"):
        ask(ledger=ledger.account("a"))
    ledger.grant("vouched", dc.Budget(100.0, 1e-3))
    vouched = ledger.account("vouched")
    ask(ledger=vouched)
    dc.count(TABLE, PURE, user="who", ledger=vouched)  # which holds for them, too
    assert vouched.statement().charges == 2


@pytest.mark.parametrize("name", ["people with few", "lists"])
def test_a_charge_id_stands_for_how_many_items_of_a_person_count(ledger, name):
    data, ask = QUESTIONS[name]
    ask(data, ledger=ledger.account("a"), charge_id="c")
    asks = {
        "people with few": lambda **pay: dc.top_k(Gone(), 3, BUDGET, column="what", user="who", max_items=4, **pay),
        "lists": lambda **pay: dc.top_k(Gone(), 3, BUDGET, unit=dc.User(4), **pay),
    }
    with pytest.raises(dc.ChargeConflictError, match=r"was .*2.* and is now .*4"):
        asks[name](ledger=ledger.account("a"), charge_id="c")
    dc.release(_sampled(), BUDGET, unit=dc.User(2), ledger=ledger.account("a"), charge_id="sketch")
    other = dc.UserMisraGries(64, 3, oversized="sample")
    with pytest.raises(dc.ChargeConflictError, match="unit"):
        dc.release(other, BUDGET, unit=dc.User(3), ledger=ledger.account("a"), charge_id="sketch")


@pytest.mark.parametrize("word", ["where", "user", "nulls", "bad_rows"])
def test_a_charge_id_stands_for_every_word_of_a_count(ledger, word):
    """Another condition is another count: the one before would be the answer to a question nobody asked."""
    said = {"where": ("ms < 50", "ms < 99"), "user": (None, "who"), "nulls": ("error", "skip")}
    before, now = said.get(word, ("skip", "error"))
    dc.count(TABLE, PURE, **{word: before}, ledger=ledger.account("a"), charge_id="c")
    with pytest.raises(dc.ChargeConflictError, match=f"{word} was"):
        dc.count(Gone(), PURE, **{word: now}, ledger=ledger.account("a"), charge_id="c")


def test_a_charge_id_stands_for_its_files(ledger, tmp_path):
    pay = {"ledger": ledger.account("a"), "charge_id": "c"}
    for name in ("monday.csv", "tuesday.csv"):
        (tmp_path / name).write_text("what\na\nb\n")
    dc.count(dc.read(tmp_path / "monday.csv"), PURE, **pay)
    with pytest.raises(dc.ChargeConflictError, match="files"):
        dc.count(dc.read(tmp_path / "tuesday.csv"), PURE, **pay)


def test_an_account_that_cannot_pay_is_known_before_anything_is_read(ledger):
    def batches():
        raise AssertionError("the data were read")
        yield

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(dc.BudgetExceededError):
        dc.count(reader, dc.Budget(1000.0), ledger=ledger.account("a"))
