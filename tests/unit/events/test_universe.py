"""The one universe: what it is made of, where items stand, how it is described."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import DataError, IncompatibleSummaryError, ParameterError
from discreet.events.universe import (
    Universe,
    as_written,
    item_written,
    universe_written,
    vectors_written,
    votes_written,
)

LISTS = {"string": ["b", "a", "\u00fc"], "binary": [b"\xff", b""], "int64": [5, -3], "uint64": [2**64 - 1, 0]}


def test_the_public_names_are_one_class():
    assert dc.central.Universe is Universe


@pytest.mark.parametrize("kind", LISTS)
def test_lists_of_every_kind(kind):
    items = LISTS[kind]
    universe = Universe(items)
    assert (universe.kind, universe.size, universe.first) == (kind, len(items), None)
    places = np.arange(len(items))[::-1]
    assert universe.items(places) == items[::-1] == universe.take(places).to_pylist()
    assert universe.positions(universe.take(places)).tolist() == places.tolist()
    assert [universe.place(item) for item in items] == list(range(len(items)))
    assert universe.place("elsewhere") == -1


@pytest.mark.parametrize("column", [
    pa.array(["b", "a"]), pa.chunked_array([["b"], ["a"]]), pa.array(["b", "a"]).dictionary_encode(),
    np.array(["b", "a"]),
    ("b", "a"), iter(["b", "a"]), {"b": 1, "a": 2}.keys(), [np.str_("b"), np.str_("a")],
])  # fmt: skip
def test_a_list_comes_in_any_form(column):
    assert Universe(column) == Universe(["b", "a"])
    assert Universe(column if not hasattr(column, "__next__") else ["b", "a"]).elements == ("b", "a")


@pytest.mark.parametrize("given", [
    range(0), range(0, 10, 2), range(2**65), range(-1, 2**63 + 1), range(-(2**63), 2**63), [], ["a", "a"], ["a", 1],
    [None], [1.5], [True], [1, True], [-1, 2**63], [2**64], ["\ud800"], [["a"]], "abc", "integers", b"ab", 7, None,
    {"a": 1}, np.array([1.5]), pa.array([1, None]),
])  # fmt: skip
def test_what_is_no_universe(given):
    with pytest.raises(ParameterError, match="universe"):
        Universe(given)


def test_sizes_ranges_and_kinds_without_a_bound():
    assert Universe.of(4) == Universe(range(4))
    made = Universe(range(-2, 3))
    assert Universe.of(made) is made
    assert made.words([2, -2]).tolist() == [4, 0]
    assert made.positions(pa.array([2, 7, -2])).tolist() == [4, -1, 0]
    assert Universe(range(2**63, 2**64)).positions(pa.array([2**63 + 1, 1], pa.uint64())).tolist() == [1, -1]
    assert Universe.of("integers").words([-1]).tolist() == [2**64 - 1]
    for name, item in (("strings", "x"), ("bytes", b"x")):
        universe = Universe.of(name)
        assert not universe.bounded
        assert universe.words([item])[0] < 2**61
        for refused in (lambda: universe.items([0]), lambda: universe.place("x")):  # noqa: B023 (called at once)
            with pytest.raises(ParameterError, match="unbounded"):
                refused()
    with pytest.raises(ParameterError, match="unbounded universe is one of"):
        Universe.of("words")


def test_items_of_several_kinds_and_signs():
    universe = Universe(["a", "b"])
    mixed = dc.MisraGries(8)
    mixed.update(["b", 1, b"a"])
    items = mixed.not_private_counts().items
    assert sorted(universe.positions(items).tolist()) == [-1, -1, 1]
    assert sorted(Universe(range(2)).positions(items).tolist()) == [-1, -1, 1]
    assert universe.positions(pa.array([1, 2])).tolist() == [-1, -1]  # no row decides whether there is an error
    for typed in (pa.array([1]), pa.array([b"a"]), pa.array([True]), pa.array([1]).dictionary_encode()):
        with pytest.raises(IncompatibleSummaryError, match="use one kind for both"):
            universe.refuse_type(typed.type)
    for typed in (pa.array(["a"]), pa.array(["a"]).dictionary_encode(), pa.nulls(1)):
        universe.refuse_type(typed.type)
    assert Universe([2**64 - 1, 3]).positions(pa.array([3, -1])).tolist() == [1, -1]
    assert Universe([-1, 3]).positions(pa.array([3, 2**64 - 1], pa.uint64())).tolist() == [1, -1]


@pytest.mark.parametrize("items", [[2**70], [-(2**70)], [4], pa.array([2**64 - 1], pa.uint64())])
def test_numbers_outside_a_list(items):
    with pytest.raises(DataError, match="outside the universe"):
        Universe([1, 2]).words(items)


@pytest.mark.parametrize("items", [["a"], [1.0], [True], pa.array(["a"]), pa.array([1.5])])
def test_items_of_another_kind_than_a_list(items):
    with pytest.raises(DataError, match="another kind"):
        Universe([1, 2]).words(items)


def test_nulls():
    for column in ([None, 2], pa.array([None, 2])):
        assert Universe([1, 2]).words(column, nulls="skip").tolist() == [1]
        with pytest.raises(DataError, match="nulls"):
            Universe([1, 2]).words(column)


@pytest.mark.parametrize("universe", [
    *map(Universe, LISTS.values()), Universe(range(-5, 9)), *map(Universe.of, ("integers", "strings", "bytes")),
])  # fmt: skip
def test_descriptions(universe):
    assert Universe.from_dict(json.loads(json.dumps(universe.to_dict()))) == universe
    assert pickle.loads(pickle.dumps(universe)) == universe
    assert hash(universe) == hash(pickle.loads(pickle.dumps(universe)))


def test_descriptions_are_as_they_always_were():
    assert Universe(range(3, 9)).to_dict() == {"kind": "int64", "first": 3, "size": 6}
    assert Universe([b"\xff"]).to_dict() == {"kind": "binary", "items": ["ff"]}
    assert Universe.of("strings").to_dict() == {"kind": "string"}
    assert Universe(range(3, 9)).outline() == {"size": 6, "kind": "integer", "first": 3}
    assert Universe(["a"]).outline() == {"size": 1, "kind": "string", "first": None}


def test_an_outline_forgets_a_list():
    universe = Universe.from_outline(**Universe(["secret", "b"]).outline())
    assert (universe.size, universe.kind, universe.elements) == (2, "string", None)
    assert Universe.from_outline(6, "integer", 3) == Universe(range(3, 9))
    for wrong in ((0, "string", None), (1, "other", None), (1, "string", 0), (2**64, "integer", 0), (1, [], None)):
        with pytest.raises(ParameterError):
            Universe.from_outline(*wrong)


def test_no_item_is_shown():
    for universe in (Universe(["secret"]), Universe.from_outline(1, "string", None)):
        assert "secret" not in repr(universe) + str(universe)
    assert str(Universe(range(2, 4))) == "2 integers from 2"
    assert repr(Universe(range(2, 4))) == "Universe(range(2, 4))"
    assert str(Universe.of("bytes")) == "all binary items"


def test_the_numbers_beside_a_range_are_outside():
    universe = Universe(range(-2, 3))
    assert [universe.place(item) for item in (-3, -2, 2, 3)] == [-1, 0, 4, -1]
    assert universe.positions(pa.array([-3, -2, 2, 3])).tolist() == [-1, 0, 4, -1]
    for outside in (-3, 3):
        with pytest.raises(DataError, match="outside the universe"):
            universe.words(np.array([outside]))


@pytest.mark.parametrize("number", [1, 1024, 1025])
def test_a_text_that_is_not_utf8_is_outside_however_many_rows_there_are(number):
    column = pa.array([b"a"] * (number - 1) + [b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(DataError, match="outside the universe"):
        Universe.of(["a", "b"]).words(column)


def test_a_universe_in_one_word(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("ann\n\nbob\n")
    assert universe_written("10") == Universe.of(range(10))
    assert universe_written("-3:4") == Universe.of(range(-3, 4))
    assert universe_written("strings").size is None
    assert universe_written(str(names)).elements == ("ann", "", "bob")
    assert universe_written(str(names), empty_lines=False).elements == ("ann", "bob")
    with pytest.raises(dc.ParameterError, match="or a file"):
        universe_written(str(tmp_path / "missing"))


def test_items_are_written_as_the_universe_has_them():
    numbers, names = Universe.of(range(10)), Universe.of(["7", "ann"])
    assert item_written("7", numbers) == 7
    assert item_written("7", names) == "7"
    with pytest.raises(dc.ParameterError):
        item_written("seven", numbers)
    text, integers = pa.array(["7", "8"]), pa.array([7, 8])
    assert [part.to_pylist() for part in as_written(text, numbers)] == [[7, 8]]
    assert [part.to_pylist() for part in as_written(integers, numbers)] == [[7, 8]]
    assert [part.to_pylist() for part in as_written(integers, names)] == [["7", "8"]]
    assert [part.to_pylist() for part in as_written(text, None)] == [["7", "8"]]


@pytest.mark.parametrize("length", [1, 2, 5, 64])
def test_only_what_is_no_number_is_left_out(length):
    """Whatever stands beside it."""
    numbers = Universe.of(range(100))
    for place in range(length):
        rows = [str(i) for i in range(length)]
        rows[place] = "secret"
        kept = [item for part in as_written(pa.array(rows), numbers, "skip") for item in part.to_pylist()]
        assert kept == [i for i in range(length) if i != place]
        with pytest.raises(dc.DataError) as caught:
            list(as_written(pa.array(rows), numbers))
        assert "secret" not in str(caught.value)


VOTES = {
    "0:1": (0, 1), "9:0": (9, 0), "1:2": (1, 0), "1:": (1, 0), "1:1:1": (1, 0), "09:1": (9, 1),
    "0" * 30 + "7:1": (7, 1), "0" * 5000 + "7:1": (7, 1), "0" * 5000 + ":0": (0, 0),
    "10:1": None, "0" * 9 + "12345:1": None, "1" * 30 + ":1": None, "9" * 5000 + ":1": None, "-1:1": None, ":1": None,
    "1": None, "": None, " 1:1": None, "1 :1": None, "\u00b3:1": None, "\u0663:1": None, "1_0:1": None, "+1:1": None,
}  # fmt: skip


@pytest.mark.parametrize("text", VOTES, ids=lambda text: ascii(text)[-40:])
def test_a_vote_is_read_by_itself(text):
    """Places are public: what has none is no vote, and none is beyond the vector, however it is written."""
    given = ["3:1", text, "4:0"]
    expected = [(3, 1), *([] if VOTES[text] is None else [VOTES[text]]), (4, 0)]
    assert list(zip(*votes_written(given, 10, "skip"), strict=True)) == expected
    if VOTES[text] is not None and text.endswith((":0", ":1")) and text.count(":") == 1:
        assert list(zip(*votes_written(given, 10, "error"), strict=True)) == expected
    else:
        with pytest.raises(DataError, match="a place below 10 and a bit 0 or 1") as refused:
            votes_written(given, 10, "error")
        assert text not in str(refused.value) or len(text) < 2


@pytest.mark.parametrize("text", ["", "01", "0101", "0a1", "012", " 01", "01\n", "\u0660\u0661\u0660"], ids=ascii)
def test_a_text_that_is_no_vector_is_one_of_zeros(text):
    assert vectors_written(["101", text, "110"], 3, "skip").tolist() == [[1, 0, 1], [0, 0, 0], [1, 1, 0]]
    with pytest.raises(DataError, match="is not written as 3 characters 0 and 1"):
        vectors_written(["101", text], 3, "error")


@pytest.mark.parametrize("many", [1, 2, 3, 64])
def test_one_row_that_is_no_number_leaves_out_itself_alone(many):
    for place in range(many):
        rows = [str(row) for row in range(many)]
        rows[place] = "x"
        kept = [item for part in as_written(pa.array(rows), Universe.of(100), "skip") for item in part.to_pylist()]
        assert kept == [row for row in range(many) if row != place]


@pytest.mark.parametrize("universe", [Universe.of(4), Universe(range(-3, 5)), Universe(["b"]), Universe([b"\xff"])])
def test_what_a_state_keeps_of_a_universe(universe):
    """Of a range all of it, of a list its size and kind."""
    kept = json.loads(json.dumps(universe.outline()))
    again = Universe.from_outline(kept["size"], kept["kind"], kept["first"])
    assert again.outline() == kept
    if universe.first is not None:
        assert again == universe
        assert again.items([0]) == [universe.first]
    described = json.loads(json.dumps(universe.to_dict()))
    assert Universe.from_dict(described) == universe


@pytest.mark.parametrize(
    "given",
    [
        (0, "integer", 0), (2**63 + 1, "string", None), ("4", "integer", 0), (4, "number", 0), (4, None, 0),
        (4, "string", 0), (4, "integer", "0"), (None, "integer", 0),
    ],
)  # fmt: skip
def test_a_state_that_keeps_no_universe_is_refused(given):
    with pytest.raises(ParameterError):
        Universe.from_outline(*given)


def test_a_word_has_as_many_bits_as_places_need():
    sizes = {1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 1024: 10, 1025: 11, 2**63: 63}
    assert {size: Universe.of(range(size)).word_bits for size in sizes} == sizes
    assert [Universe.of(kind).word_bits for kind in ("integers", "strings", "bytes")] == [64, 61, 61]


@pytest.mark.parametrize("many", [3, 3000])
def test_places_of_few_items_are_those_of_many(many):
    """Nulls and items that are not listed stand nowhere, also where pyarrow looks them up."""
    universe = Universe(["a", "b"])
    column = pa.array(["b", None, "z"] * (many // 3))
    assert universe.positions(column).tolist() == [1, -1, -1] * (many // 3)
    numbers = Universe([7, -1])
    assert numbers.positions(pa.array([2**63, 7, None] * (many // 3), pa.uint64())).tolist() == [-1, 0, -1] * (
        many // 3
    )
    bounded = Universe(range(5, 8))
    assert bounded.positions(pa.array([4, 5, 7, 8, None] * many)).tolist() == [-1, 0, 2, -1, -1] * many
    for items in ([8], [4], [-1]):
        with pytest.raises(DataError, match="an item is outside the universe"):
            bounded.words(items)


def test_an_item_of_several_dimensions_has_as_many_cells():
    from types import SimpleNamespace

    product = SimpleNamespace(universes=[Universe(["a,b", "c"]), Universe.of(9)])
    assert item_written('"a,b",7', product) == ("a,b", 7)
    for wrong in ("c", "c,1,2", ""):
        with pytest.raises(ParameterError, match="each item needs 2 values, separated by commas"):
            item_written(wrong, product)
    with pytest.raises(ParameterError, match="write items as integers"):
        item_written("c,x", product)
