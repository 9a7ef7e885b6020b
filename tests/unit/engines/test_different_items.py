"""The number of different items: the same in memory and out of core, and in bounded memory."""

import random
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.engines import different
from discreet.engines.different import ROOM, DifferentItems
from discreet.errors import DiscreetError

SMALL = 1 << 16


def columns(chance):
    """Items of all kinds, in columns of several types; many of them come again and again."""
    for _ in range(40):
        numbers = [chance.randrange(3000) for _ in range(chance.randrange(1, 400))]
        yield chance.choice(
            [
                lambda: pa.array([f"item {n}" for n in numbers]),  # noqa: B023 (called at once)
                lambda: pa.array([str(n) for n in numbers], pa.large_string()),  # noqa: B023
                lambda: pa.array([str(n).encode() for n in numbers]),  # noqa: B023
                lambda: pa.array(numbers),  # noqa: B023
                lambda: pa.array(numbers, pa.uint64()),  # noqa: B023
                lambda: pa.array([2**64 - 1 - n for n in numbers], pa.uint64()),  # noqa: B023
                lambda: pa.array([-1 - n for n in numbers]),  # noqa: B023
                lambda: pa.array([f"item {n}" for n in numbers]).dictionary_encode(),  # noqa: B023
                lambda: [n if n % 2 else str(n) for n in numbers],  # noqa: B023
            ]
        )()


def of_items(column):
    values = column.to_pylist() if isinstance(column, pa.Array) else column
    return {(type(value), value) for value in values}


@pytest.mark.parametrize("seed", range(3))
def test_out_of_core_is_as_in_memory(seed):
    given = list(columns(random.Random(seed)))
    truth = len(set().union(*map(of_items, given)))
    for room in (ROOM, SMALL):
        with DifferentItems(room) as found:
            for column in given:
                found.update(column, "error")
            assert (found._folder is not None) == (room < ROOM)
            assert found.count() == truth


def test_nothing_is_left_on_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with DifferentItems(1) as found:
        found.update(["a", "b"], "error")
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        assert not any(path.read_bytes() == b"a" for path in folder.iterdir())
    assert list(tmp_path.iterdir()) == []
    with DifferentItems(1) as found:
        found.update(["a", "b"], "error")
        with pytest.raises(dc.DataError, match="null"):
            found.update(pa.array(["a", None]), "error")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error_without_items(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "secret")

    with DifferentItems(1) as found:
        found.update(["a"], "error")
        monkeypatch.setattr(found, "_write_prints", full)
        with pytest.raises(DiscreetError, match="cannot be written to disk: No space left on device") as caught:
            found.update(["secret"], "error")
        assert "secret" not in str(caught.value)


def test_one_row_changes_the_number_by_one_at_most():
    """Whatever the key is: the number of different fingerprints is a count of different values."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        items = rng.integers(0, 50, 60).astype(str).tolist()
        found = []
        with DifferentItems(1) as one, DifferentItems(1) as other:
            other._prints = one._prints
            for each, rows in ((one, items), (other, items[:-1])):
                each.update(rows, "error")
                found.append(each.count())
        assert found[0] - found[1] in (0, 1)


def test_memory_does_not_grow_with_the_number_of_items():
    """Two million strings of 40 bytes would take 400 MB; with room for 16 MB the process grows by less than 120."""
    script = """
import resource, sys
import numpy as np, pyarrow as pa
import discreet as dc
from discreet.engines.different import DifferentItems
def batch(first):
    return pa.array([f"{n:040}" for n in range(first, first + 50_000)])
with DifferentItems(1 << 24) as found:
    found.update(batch(0), "error")
    found._write()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for first in range(0, 2_000_000, 50_000):
        found.update(batch(first), "error")
    assert found.count() == 2_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600)
    assert int(done.stdout) < 120 * 1024


def test_the_question_goes_out_of_core(monkeypatch, tmp_path):
    from discreet.engines import different

    monkeypatch.setattr(different.DifferentItems.__init__, "__defaults__", (SMALL,))
    table = pa.table({"url": [f"/{n % 40_000}" for n in range(100_000)], "visitor": [n % 7 for n in range(100_000)]})
    found = dc.distinct(table, dc.Budget(50.0), column="url")
    assert abs(found.value - 40_000) <= 2  # off by more with a probability of exp(-150)
    assert abs(dc.count(table, dc.Budget(50.0), user="visitor").value - 7) <= 2


def test_a_number_is_the_same_in_every_column_that_holds_it():
    """2^63 is the first that no int64 holds; below it a number of either column is one item."""
    ends = [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
    with DifferentItems() as different:
        different.update(pa.array(ends, pa.uint64()), "error")
        assert different.count() == len(ends)
    with DifferentItems() as different:
        different.update(pa.array(ends, pa.uint64()), "error")
        different.update(pa.array([0, 1, 2**63 - 1, -1, -(2**63)], pa.int64()), "error")
        different.update(pa.array(ends, pa.uint64()), "error")
        assert different.count() == len(ends) + 2  # -1 and -2^63, which has the bits of 2^63


@pytest.mark.parametrize("word", [0, 1])
def test_items_whose_prints_have_one_half_in_common_are_two(monkeypatch, word):
    """All 128 bits tell items apart: half of them would take some of a few billion for one."""

    def half(self, kind, items):
        found = np.zeros((len(items), 2), np.uint64)
        found[:, word] = [int(text) for text in items.to_pylist()]
        return found

    monkeypatch.setattr(different.Prints, "of", half)
    with different.DifferentItems(room=0) as items:
        for _ in range(2):
            items.update(pa.array([str(number) for number in range(700)]), "error")
        assert items.count() == 700
