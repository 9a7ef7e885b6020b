"""What people write: universes in one word, items in lines of text."""

import pyarrow as pa
import pytest

import discreet as dc
from discreet.events.literals import as_written, item_written, universe_written
from discreet.events.universe import Universe


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
