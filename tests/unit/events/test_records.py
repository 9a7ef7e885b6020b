"""Cutting bytes into records: at the same places however the bytes come, each byte looked at once."""

import csv
import io
import random
import re

import numpy as np
import pytest

from discreet import _native
from discreet.events import inputs
from discreet.events.text import Cutter


def cut(text, delimiter, sizes):
    """(record or what is wrong with it, its end) of every record, for pieces of these sizes in turn."""
    cutter, found, at, turn = Cutter(delimiter or ",", delimiter and '"'), [], 0, 0
    cuts = []
    while at < len(text):
        size = sizes[turn % len(sizes)]
        cuts += cutter.cut(text[at : at + size])
        at, turn = at + size, turn + 1
    cuts += cutter.finish()
    for part in cuts:
        if part.trouble is not None:
            found.append((part.trouble, part.end))
            continue
        assert part.data == text[part.start : part.end]
        for record in records_of(part.data, delimiter):
            found.append((record, (found[-1][1] if found else 0) + len(record)))
        assert found[-1][1] == part.end
    return found


def records_of(data, delimiter):
    """Whole records, of which the last may do without its newline."""
    if delimiter is None:
        return re.findall(rb"[^\n]*\n|[^\n]+$", data)
    ends = np.frombuffer(_native.record_ends(data, ord(delimiter), 0)[0], np.int64).tolist()
    ends += [len(data)] if ends[-1:] != [len(data)] else []
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def random_text(chance):
    return "".join(
        chance.choice(['"', '"', ",", "\n", "a", "\r\n", "é"]) for _ in range(chance.randint(0, 60))
    ).encode()


def test_records_of_delimited_text_are_those_of_the_csv_module():
    for seed in range(300):
        chance = random.Random(seed)
        rows = [
            ["".join(chance.choice('",\na ') for _ in range(chance.randint(0, 4))) for _ in range(3)] for _ in range(5)
        ]
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        whole = cut(text.getvalue().encode(), ",", [chance.randint(1, 9)])
        assert [next(csv.reader([record.decode()])) for record, _ in whole] == rows


@pytest.mark.parametrize("delimiter", [None, ",", "\t"])
def test_pieces_change_nothing(delimiter, monkeypatch):
    for seed in range(200):
        chance = random.Random(seed)
        text = random_text(chance)
        monkeypatch.setattr(inputs, "LONGEST_RECORD", chance.choice([5, 17, 1000]))
        whole = cut(text, delimiter, [1000])
        assert cut(text, delimiter, [1]) == whole
        assert cut(text, delimiter, [chance.randint(1, 9), chance.randint(1, 9)]) == whole
        assert [end for _, end in whole] == sorted({end for _, end in whole})
        assert not whole or whole[-1][1] == len(text)


def test_what_is_too_long_is_passed_over_and_the_rest_is_read(monkeypatch):
    monkeypatch.setattr(inputs, "LONGEST_RECORD", 10)
    found = cut(b"a\n" + b"x" * 10 + b"\nb\n" + b"y" * 9 + b"\n", None, [4])
    assert [record for record, _ in found] == [b"a\n", "a line of more than 64 MiB", b"b\n", b"y" * 9 + b"\n"]
    # A quote that is never closed costs the line that it is in.
    found = cut(b'a\n"x\n' + b"1\n" * 10, ",", [3])
    assert [record for record, _ in found] == [b"a\n", "a line of more than 64 MiB", *[b"1\n"] * 10]
    found = cut(b'a\n"x\n1\n2', ",", [3])
    assert [record for record, _ in found] == [b"a\n", "a quoted cell that does not end", b"1\n", b"2"]


def test_every_byte_is_looked_at_once(monkeypatch):
    seen = 0
    real = _native.record_bounds

    def counted(text, *how):
        nonlocal seen
        seen += len(text)
        return real(text, *how)

    monkeypatch.setattr(_native, "record_bounds", counted)
    text = b'1,"open\n' + b"2,3\n" * 50_000
    cutter = Cutter(",", '"')
    for at in range(0, len(text), 1000):
        assert not list(cutter.cut(text[at : at + 1000]))
    assert seen == len(text)
    bad, rest = cutter.finish()
    assert bad.trouble == "a quoted cell that does not end"
    assert seen <= 2 * len(text) - 8
    assert len(records_of(rest.data, ",")) == 50_000
