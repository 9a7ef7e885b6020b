"""A glance at a file: which columns it has, and what its first line tells of how it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from discreet.errors import DataError
from discreet.events.files import Files
from discreet.events.inputs import open_input
from discreet.events.text import LOG_COLUMNS, dialect_of

_LOG = re.compile(r'\S+ \S+ \S+ \[\d{2}/\w{3}/\d{4}:[^\]]+\] "')
_QUOTES_OF_COMBINED = 6
_DELIMITERS = {";": ";", "\t": "tab", "|": "|"}
_PEEKED = 1 << 16


def glance(
    path: str, *, format: str | None = None, delimiter: str | None = None, encoding: str | None = None
) -> tuple[list[str], dict[str, str]]:
    """(the columns of a file, what was found out of how it is written: its "format" or its "delimiter")."""
    source: Any = open_input(path, encoding)
    try:
        begin = bytes(source.peek(_PEEKED)) if hasattr(source, "peek") else b"a table"
    finally:
        source.close()
    # The first line that is not blank; of a binary format whatever stands there.
    line = next((line for line in begin.decode("utf-8", "replace").splitlines() if line.strip()), "").strip()
    names = _named(path, format, delimiter, encoding)
    if not line:
        raise DataError(f"{path} is empty, or does not begin with a line of text")
    if names is None and _LOG.match(line):
        log = "combined" if line.count('"') >= _QUOTES_OF_COMBINED else "common"
        return list(LOG_COLUMNS[log]), {"format": log}
    if names is None and line.startswith("{"):
        try:
            return list(_keys(json.loads(line))), {}
        except ValueError:
            raise DataError(f"{path} is not JSON lines: its first line is not a whole object") from None
    found = {}
    if names is not None and len(names) == 1 and delimiter is None:
        other = max(_DELIMITERS, key=names[0].count)
        if other in names[0]:
            found["delimiter"] = _DELIMITERS[other]
            names = _named(path, format, found["delimiter"], encoding)
    names = [name for name in dict.fromkeys(names or ()) if name]
    if not names:
        raise DataError(
            f"{path} has no column names; give a file with a header line, JSON lines, the log of a web server, "
            "Parquet or Arrow. Lines of text need no columns: `discreet top` counts them as they are"
        )
    return names, found


def _named(path: str, format: str | None, delimiter: str | None, encoding: str | None) -> list[str] | None:
    return Files(path, format=format, dialect=dialect_of(delimiter=delimiter), encoding=encoding).column_names()


def _keys(value: dict[str, Any], before: str = "") -> Iterator[str]:
    """The keys of an object of JSON lines, those inside of others with a dot."""
    for name, each in value.items():
        yield from _keys(each, f"{before}{name}.") if isinstance(each, dict) else [f"{before}{name}"]
