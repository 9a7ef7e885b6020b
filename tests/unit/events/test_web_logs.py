"""Logs of web servers: the C++ reader against a regular expression, odd lines, and every line by itself."""

import datetime
import random
import re

import numpy as np
import pytest
from tests.rows import open_stream

import discreet as dc
from discreet.events.live_input import LiveInput
from discreet.events.text import LOG_COLUMNS, ROW, WebLog

LINE = (
    '203.0.113.9 - ann [10/Oct/2000:13:55:36 -0700] "GET /a%20b?q=1 HTTP/1.1" 200 2326 "https://example.org/" "Moz/5"'
)
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
AFTER_TIME = re.compile(rf"[^\]]*\] {_QUOTED} (\d{{3}}) (\d+|-)(?: {_QUOTED} {_QUOTED})?(?: .*)?", re.DOTALL | re.ASCII)


def cells_of(line):
    """ip, status, bytes, referrer and agent; None if the line is bad. The last two may be None each."""
    ip, _, rest = line.partition(" ")
    opened = rest.find(" [", 2)
    match = AFTER_TIME.fullmatch(rest[opened + 2 :]) if ip and opened >= 0 else None
    return match and [ip, match[2], "0" if match[3] == "-" else match[3], match[4], match[5]]


def columns_of(lines, format="combined", wanted=None):
    rows = WebLog(format, "log", wanted or LOG_COLUMNS[format]).rows("".join(f"{line}\n" for line in lines).encode())
    return rows, [column.to_pylist() for column in rows.columns]


def test_the_columns_everyone_knows():
    _, found = columns_of([LINE])
    assert dict(zip(LOG_COLUMNS["combined"], (column[0] for column in found), strict=True)) == {
        "ip": "203.0.113.9",
        "time": "2000-10-10T20:55:36Z",
        "method": "GET",
        "path": "/a%20b?q=1",
        "status": "200",
        "bytes": "2326",
        "referrer": "https://example.org/",
        "agent": "Moz/5",
    }
    _, found = columns_of([LINE], "common")
    assert [column[0] for column in found] == [
        "203.0.113.9", "2000-10-10T20:55:36Z", "GET", "/a%20b?q=1", "200", "2326"
    ]  # fmt: skip


# What a line gives in the columns path, bytes and agent; None for a bad one.
ODD = {
    LINE + ' "10.0.0.1" 0.003': ("/a%20b?q=1", "2326", "Moz/5"),
    LINE.replace("2326", "-"): ("/a%20b?q=1", "0", "Moz/5"),
    LINE.replace("GET /a%20b?q=1 HTTP/1.1", "GET /a b HTTP/1.1"): ("/a b", "2326", "Moz/5"),
    LINE.replace("GET /a%20b?q=1 HTTP/1.1", "GET /old"): ("/old", "2326", "Moz/5"),
    LINE.replace("GET /a%20b?q=1 HTTP/1.1", "GET  HTTP/1.1"): None,
    LINE.replace("Moz/5", r"a \"b\" \\"): ("/a%20b?q=1", "2326", r"a \"b\" \\"),
    LINE.replace("Moz/5", "-"): ("/a%20b?q=1", "2326", "-"),
    LINE.replace("- ann", "- ann [x] smith"): None,  # the time is what is in the first brackets after a blank
    LINE.replace("- ann", "- ann x]"): ("/a%20b?q=1", "2326", "Moz/5"),
    LINE.replace("203.0.113.9", "host.example.org"): ("/a%20b?q=1", "2326", "Moz/5"),
    LINE.replace("203.0.113.9", "2001:db8::1"): ("/a%20b?q=1", "2326", "Moz/5"),
    LINE.replace("GET /a%20b?q=1 HTTP/1.1", "-"): None,
    LINE.replace("GET /a%20b?q=1 HTTP/1.1", r"\x16\x03\x01"): None,
    LINE.replace("GET /a%20b?q=1 HTTP/1.1", ""): None,
    LINE.replace(" 200 ", " 20 "): None,
    LINE.replace(" 200 ", " 2000 "): None,
    LINE.replace(" 2326 ", " 23x "): None,
    LINE.replace('"Moz/5"', '"Moz/5'): None,
    LINE.replace('"Moz/5"', '"Moz/5"x'): None,
    LINE.replace('"Moz/5"', r'"Moz/5\"'): None,
    LINE.replace(' "https://example.org/" "Moz/5"', ""): None,
    LINE.replace("203.0.113.9 ", " "): None,
    LINE.replace("[", "("): None,
    "x": None,
    "[": None,
    '"': None,
    "\0" * 50: None,
}


def test_odd_lines():
    for line, expected in ODD.items():
        rows, found = columns_of([line, LINE], wanted=["path", "bytes", "agent"])
        good = [expected] if expected else []
        assert list(zip(*found, strict=True)) == [*good, ("/a%20b?q=1", "2326", "Moz/5")], line
        assert rows.kinds.tolist() == [ROW if expected else 3, ROW]


def test_a_request_that_is_none_is_bad_only_where_it_is_wanted():
    line = LINE.replace("GET /a%20b?q=1 HTTP/1.1", r"\x16\x03")
    assert columns_of([line], wanted=["ip", "status"])[1] == [["203.0.113.9"], ["200"]]
    assert columns_of([line], wanted=["method"])[1] == [[]]


TIMES = {
    "10/Oct/2000:13:55:36 -0700": "2000-10-10T20:55:36Z",
    "01/Jan/1970:00:00:00 +0000": "1970-01-01T00:00:00Z",
    "01/Jan/2000:00:30:00 +0100": "1999-12-31T23:30:00Z",
    "29/Feb/2000:23:59:60 +0000": "2000-03-01T00:00:00Z",
    "29/Feb/1900:00:00:00 +0000": None,
    "31/Apr/2000:00:00:00 +0000": None,
    "00/Jan/2000:00:00:00 +0000": None,
    "01/Jan/0001:00:00:00 +0100": None,
    "31/Dec/9999:23:00:00 -0200": None,
    "01/Jan/0001:00:00:00 +0000": "0001-01-01T00:00:00Z",
    "10/Foo/2000:13:55:36 -0700": None,
    "10/anF/2000:13:55:36 -0700": None,
    "10/Oct/2000:24:00:00 +0000": None,
    "10/Oct/2000:13:55:36": None,
    "10/Oct/2000 13:55:36 +0000": None,
}


def test_times():
    for written, expected in TIMES.items():
        _, found = columns_of([LINE.replace("10/Oct/2000:13:55:36 -0700", written)] * 2, wanted=["time"])
        assert found == [[expected] * 2 if expected else []], written


def test_times_as_the_calendar_has_them():
    chance, lines, expected = random.Random(3), [], []
    for _ in range(3000):
        zone = datetime.timezone(datetime.timedelta(minutes=chance.randrange(-1439, 1440)))
        seconds = chance.randrange(-62135510400, 253402214400)
        moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
        local = moment.astimezone(zone)
        month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][local.month - 1]
        clock = f"{local.hour:02}:{local.minute:02}:{local.second:02}"
        written = f"{local.day:02}/{month}/{local.year:04}:{clock} {local.strftime('%z')}"
        lines.append(LINE.replace("10/Oct/2000:13:55:36 -0700", written))
        expected.append(f"{moment.year:04}-{moment.month:02}-{moment.day:02}T{moment:%H:%M:%S}Z")
    assert columns_of(lines, wanted=["time"])[1] == [expected]


def test_the_reader_agrees_with_a_regular_expression():
    """Lines with a few characters changed (seeded): the same are bad, and the others have the same columns."""
    chance, lines = random.Random(11), []
    for _ in range(6000):
        line = list(chance.choice([line for line in ODD if "\0" not in line]))
        for _ in range(chance.choice([0, 1, 1, 2])):
            line[chance.randrange(len(line))] = chance.choice(' "\\[]-x09')
        lines.append("".join(line))
    for format in ("combined", "common"):
        wanted = [name for name in LOG_COLUMNS[format] if name not in ("time", "method", "path")]
        rows, found = columns_of(lines, format, wanted)
        expected = []
        for line in lines:
            cells = cells_of(line)
            if cells and (format == "common" or cells[3] is not None):
                expected.append(cells[: len(wanted)])
        assert list(map(list, zip(*found, strict=True))) == expected
        assert len(expected) > 1000
        assert np.count_nonzero(rows.kinds == 3) > 1000


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_files_and_inputs_that_grow_give_the_same(tmp_path, end):
    path = tmp_path / "access.log"
    lines = [LINE, "", "nonsense", *ODD, LINE]
    path.write_bytes(b"\xef\xbb\xbf" + end.join(lines).encode() + b"\n\xff" + LINE.encode())
    stream = open_stream(path, column="path", user_column="ip", format="combined", bad_rows="skip")
    found = [item for batch in stream for item in batch.column("item").to_pylist()]
    good = [expected[0] for expected in ODD.values() if expected]
    assert found == ["/a%20b?q=1", *good, "/a%20b?q=1"]
    assert stream.bad_rows == 1 + sum(expected is None for expected in ODD.values()) + 1
    assert stream.first_bad_row.startswith("line 3: ")
    rows = LiveInput(str(path), "combined", "path", "time", needs_items=True, user_column="ip")
    rows.open(0)
    batches = [*rows.available(), *rows.rest()]
    rows.close()
    assert [item for batch in batches for item in batch.values.column("item").to_pylist()] == found
    assert {time for batch in batches for time in batch.times.tolist()} == {971211336.0}


def test_what_is_refused(tmp_path):
    path = tmp_path / "access.log"
    path.write_text(LINE + "\n")
    for column, format, words in (
        ("agent", "common", "no column 'agent'"),
        ("url", "combined", "its columns are 'ip', 'time'"),
        (None, "combined", "name the column"),
        ("path", None, "'combined'"),
    ):
        with pytest.raises(dc.DataError, match=words) as caught:
            list(open_stream(path, column=column, format=format))
        assert "203.0" not in str(caught.value)
    path.write_text(LINE + "\n" + LINE[:-1])
    with pytest.raises(dc.DataError, match=r"combined log format \(line 2\)") as caught:
        list(open_stream(path, column="ip", format="combined"))
    assert "203.0" not in str(caught.value)
