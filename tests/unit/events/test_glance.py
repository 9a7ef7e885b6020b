"""What a first look at a file finds out: its columns, and how it is written."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

import discreet as dc
from discreet.events.glance import glance

LINE = '192.0.2.1 - - [10/Oct/2026:13:55:36 -0700] "GET /a HTTP/1.1" 200 23'
CASES = {
    "plain.csv": ("a,b,a,\n1,2,3,4\n", ["a", "b"], {}),
    "odd.csv": ("a;b\n1;2\n", ["a", "b"], {"delimiter": ";"}),
    "tabs.csv": ("a\tb\n1\t2\n", ["a", "b"], {"delimiter": "tab"}),
    "rows.jsonl": ('{"a": 1, "b": {"c": 2}}\n', ["a", "b.c"], {}),
    "deep.jsonl": ('{"a": {"b": {"c": 1, "d": {}}, "e": [{"f": 1}]}, "g": null}\n', ["a.b.c", "a.e", "g"], {}),
    "pipes.csv": ("a|b|c\n1|2|3\n", ["a", "b", "c"], {"delimiter": "|"}),
    "blank.csv": ("\n  \na,b\n1,2\n", ["a", "b"], {}),
    "unnamed.csv": ("a,,b\n1,2,3\n", ["a", "b"], {}),
    "one.csv": ("a\n1\n", ["a"], {}),
    "marked.csv": ("\ufeffa,b\n1,2\n", ["a", "b"], {}),
    "common.log": (LINE + "\n", ["ip", "time", "method", "path", "status", "bytes"], {"format": "common"}),
    "combined.log": (
        LINE + ' "-" "curl"\n',
        ["ip", "time", "method", "path", "status", "bytes", "referrer", "agent"],
        {"format": "combined"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_columns_and_how_they_are_written(tmp_path, name):
    text, columns, found = CASES[name]
    (tmp_path / name).write_text(text)
    assert glance(str(tmp_path / name)) == (columns, found)


@pytest.mark.parametrize(
    ("text", "says"), [("\n\n", "is empty"), ('{"a": 1\n', "is not JSON lines"), ("word\n", "has no column names")]
)
def test_what_has_no_columns_is_refused(tmp_path, text, says):
    (tmp_path / "some.txt").write_text(text)
    with pytest.raises(dc.DataError, match=says):
        glance(str(tmp_path / "some.txt"))


def test_an_encoding_and_a_delimiter_that_are_said_are_used(tmp_path):
    (tmp_path / "a.csv").write_bytes("größe;b\n1;2\n".encode("cp1252"))
    assert glance(str(tmp_path / "a.csv"), encoding="cp1252") == (["größe", "b"], {"delimiter": ";"})
    assert glance(str(tmp_path / "a.csv"), encoding="cp1252", delimiter=";") == (["größe", "b"], {})
    assert glance(str(tmp_path / "a.csv"), encoding="cp1252", delimiter=",") == (["größe;b"], {})


def test_nothing_stays_open(tmp_path):
    for name, text in (("a.csv", "a,b\n"), ("a.jsonl", "{}"), ("a.txt", ""), ("b.jsonl", "{")):
        (tmp_path / name).write_text(text)
        with suppress(dc.DataError):
            glance(str(tmp_path / name))
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    assert not [link for link in links if os.path.lexists(link) and str(tmp_path) in os.readlink(link)]
