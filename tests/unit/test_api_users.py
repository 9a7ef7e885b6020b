"""Lists of users as a stream of items: what each user contributes depends on that user alone."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.events.samples import items_of_users
from discreet.noise import seeded_source
from discreet.questions.choose import prepare_rows, published_from


def flat(users, max_items, source=None, nulls="error"):
    parts = items_of_users(users, max_items, nulls, source or seeded_source(1))
    return [item for part in parts for item in (part if isinstance(part, list) else part.to_pylist())]


def test_distinct_items_in_the_order_of_the_list():
    assert flat([["b", "a", "b"], [], ["c", "b"]], 3) == ["b", "a", "c", "b"]
    assert flat([[3, 1, 3], [2**63 + 1]], 3) == [3, 1, 2**63 + 1]
    assert flat([[b"x"], {b"y"}], 3) == [b"x", b"y"]
    assert flat([], 3) == flat([[], []], 3) == []


LISTS = st.lists(st.lists(st.integers(0, 5), max_size=5), max_size=8)


@settings(deadline=None)
@given(LISTS, LISTS, st.lists(st.integers(0, 5), max_size=5))
def test_one_user_more_inserts_its_items_and_changes_nothing_else(before, after, user):
    """The neighbours of group privacy: order and dictionary codes must not depend on other users."""
    own = flat([user], 5)
    assert flat([*before, user, *after], 5) == flat(before, 5) + own + flat(after, 5)
    assert own == list(dict.fromkeys(user))


@settings(deadline=None)
@given(LISTS, st.integers(1, 5))
def test_at_most_so_many_items_of_a_user(users, most):
    items = flat([[f"{number}:{item}" for item in user] for number, user in enumerate(users)], most)
    owners = Counter(item.partition(":")[0] for item in items)
    assert owners == {str(n): min(most, len(set(user))) for n, user in enumerate(users) if user}
    assert len(set(items)) == len(items)


def test_the_sample_is_uniform():
    """20000 users with 4 items of which 2 count: each of the 6 pairs 3333 times, within 6 standard deviations."""
    items = flat([["a", "b", "c", "d", "a"]] * 20_000, 2)
    pairs = Counter(zip(items[::2], items[1::2], strict=True))
    assert set(pairs) == {(x, y) for x in "abcd" for y in "abcd" if x < y}
    assert all(abs(count - 20_000 / 6) < 6 * 53 for count in pairs.values())


def test_slices_nulls_and_arrow():
    column = pa.array([["x"], ["a", None], None, ["b"]])[1:]
    assert flat(column, 2, nulls="skip") == ["a", "b"]
    with pytest.raises(dc.DataError, match="nulls"):
        flat(column, 2)
    assert flat(pa.chunked_array([[["a"]], [["b", "a"]]]), 2) == ["a", "b", "a"]


def test_null_lists_over_items():
    """A null list may stand over items in the buffers below it: they are nobody's."""
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 4, 5]), pa.array(["a", "b", "hidden", "c", "d"]))
    null = pa.Array.from_buffers(lists.type, 3, [pa.py_buffer(b"\x05"), lists.buffers()[1]], children=[lists.values])
    assert null.to_pylist() == [["a", "b"], None, ["d"]]
    assert flat(null, 2, nulls="skip") == ["a", "b", "d"]
    fixed = pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, 4]), 2)
    fixed = pa.Array.from_buffers(fixed.type, 2, [pa.py_buffer(b"\x02")], children=[fixed.values])
    assert flat(fixed, 2, nulls="skip") == [3, 4]


def test_kinds_and_bad_items_of_one_user_concern_that_user_alone():
    assert flat([["a", b"a", 1], ["a", True, 1.5], [2**70]], 9)[:5] == ["a", b"a", 1, "a", True]


@pytest.mark.parametrize("users", [[["a"], "bc"], [["a"], 7], [["a"], {"bc": 1}], [["a"], b"bc"]])
def test_what_is_not_lists_of_items_is_refused_without_quoting_it(users):
    with pytest.raises(dc.DataError) as caught:
        flat(users, 2)
    assert "bc" not in str(caught.value)


def test_people_in_lists_are_assumed_to_have_one_each():
    """Nothing says whose a list is: who has two counts twice. A column of people says it."""
    lists = [["a"]] * 300
    for column in (lists, pa.array(lists)):
        release = dc.top_k(column, 3, dc.Budget(1.0, 1e-6), unit=dc.User())
        assert release.guarantee.assumptions == ("every person is one list",)
    table = {"who": list(range(300)), "what": ["a"] * 300}
    assert dc.top_k(table, 3, dc.Budget(1.0, 1e-6), column="what", user="who").guarantee.assumptions == ()


def test_people_in_batches_of_lists_and_in_one_column_are_the_same():
    batch = pa.record_batch({"tags": [["a", "b"]] * 50})
    for people in (
        pa.RecordBatchReader.from_batches(batch.schema, iter([batch] * 10)),
        iter([batch.column(0)] * 10),
        [batch] * 10,
        pa.chunked_array([batch.column(0)] * 10),
        iter([["a", "b"]] * 500),
    ):
        release = dc.top_k(people, 3, dc.Budget(2.0, 1e-6), unit=dc.User())
        assert sorted(release.items) == ["a", "b"]
        assert abs(int(release.counts[0]) - 500) < 100
    empty = pa.RecordBatchReader.from_batches(batch.schema, iter(()))
    assert dc.top_k(empty, 3, dc.Budget(2.0, 1e-6), unit=dc.User()).items == []


@pytest.mark.parametrize("most", [1, 2, 8, 64])
def test_lists_of_people_are_counted_by_what_publishes_more(most):
    """Group privacy for few items of a person, the user-level sketch for many: the lower of the two counts decides."""
    given = 10, dc.Budget(1.0, 1e-6), dc.User(most)
    offset, sketch = (published_from(name, *given, None, 10**6) for name in ("offset", "user"))
    summary = prepare_rows(True, *given, "auto", length=10**6).mechanism.empty_summary(100)
    assert isinstance(summary, dc.UserMisraGries) == (sketch < offset)
    assert (sketch < offset) == (most > 8)


def test_a_total_hides_all_lists_that_a_mechanism_allows():
    unit, budget = dc.User(3), dc.Budget(2.0, 1e-6)
    scales = []
    for parts in (1, 2):
        made = dc.central.UserSketch(budget, 64, unit, parts_per_user=parts)
        given = {"mechanism": made, "unit": unit, "total_share": 0.5, "source": seeded_source(1)}
        scales.append(dc.top_k([["a", "b"]] * 50, 5, budget, grouped=True, **given).total_noise.scale)
    assert scales == [3, 6]


def test_a_mechanism_that_refuses_its_summary_is_not_charged(tmp_path):
    class Refusing(dc.central.Offset):
        def check(self, summary):
            raise dc.IncompatibleSummaryError("not this one")

    budget, ledger = dc.Budget(1.0, 1e-6), dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(4.0, 1e-5))
    with pytest.raises(dc.IncompatibleSummaryError, match="not this one"):
        dc.top_k(["a"] * 50, 5, budget, mechanism=Refusing(budget, 64), ledger=ledger.account("rows"))
    assert ledger.account("rows").statement().charges == 0


@pytest.mark.parametrize("mechanism", ["user", "offset"])
@pytest.mark.parametrize("values", [["page 1", "page 2"], ["page 1", 2], [b"page", "page"]], ids=str)
def test_sketches_of_people_publish_values_as_they_are(mechanism, values):
    """Python's objects are told apart by their kinds while they are counted; a kind is no part of what is published."""
    table = {"who": [f"visitor {n % 500}" for n in range(3000)], "page": [values[n % 2] for n in range(3000)]}
    words = {"column": "page", "user": "who", "max_items": 2, "mechanism": mechanism}
    top = dc.top_k(table, 5, dc.Budget(4.0, 1e-6), **words, source=seeded_source(3))
    assert {*top.items} == {*values}
    longest = {**table, "page": ["x" * 4096] * 3000}  # a kind takes none of its room
    assert {*dc.top_k(longest, 5, dc.Budget(4.0, 1e-6), **words, source=seeded_source(3)).items} == {"x" * 4096}
