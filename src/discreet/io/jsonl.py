"""JSON lines: one object a line. A missing key is a null."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.json

from discreet.errors import DataError
from discreet.io.columns import checked, choose
from discreet.io.lines import blocks
from discreet.io.source import ByteSource

__all__ = ["read_json_lines"]

_TYPES: dict[type, pa.DataType] = {str: pa.string(), int: pa.int64()}


def _objects(block: bytes, name: str) -> Iterator[dict[str, Any]]:
    for line in block.splitlines():
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise DataError(f"{name} has a line that is not a JSON object")
        yield value


def _type_of(value: Any, name: str) -> pa.DataType:
    if isinstance(value, list):
        inner = next((element for element in value if element is not None), "")
        if type(inner) in _TYPES:
            return pa.list_(_TYPES[type(inner)])
    if type(value) in _TYPES:
        return _TYPES[type(value)]
    raise DataError(f"{name}: items must be text or whole numbers, or lists of these")


def _parse(block: bytes, schema: pa.Schema, name: str) -> pa.Table:
    try:
        return pa.json.read_json(
            pa.BufferReader(block),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowException as error:
        message = str(error)  # it may quote the line
    if "changed from" in message or "Failed of conversion" in message:
        raise DataError(f"{name} mixes types in one column; items must be all text or all whole numbers")
    raise DataError(f"{name} has a line that is not a JSON object")


def read_json_lines(source: ByteSource, column: str | None, user_column: str | None) -> Iterator[tuple[pa.Array, ...]]:
    """The wanted columns, block by block. The first value that is not null decides a column's type."""
    wanted: list[str] | None = None
    types: dict[str, pa.DataType] = {}
    for block in blocks(source):
        if not block.strip():
            continue
        if wanted is None:
            names = list(next(_objects(block, source.name)))
            # The keys of one line are not a schema: what is asked for by name may well come later.
            named = [name for name in (column, user_column) if name is not None]
            wanted = choose(list(dict.fromkeys([*names, *named])), column, user_column, source.name, show_names=False)
        missing = [name for name in wanted if name not in types]
        if missing:
            for line in _objects(block, source.name):
                types.update({n: _type_of(line[n], source.name) for n in missing if line.get(n) is not None})
                missing = [name for name in missing if name not in types]
                if not missing:
                    break
        schema = pa.schema([(name, types.get(name, pa.null())) for name in dict.fromkeys(wanted)])
        for batch in _parse(block, schema, source.name).to_batches():
            yield tuple(checked(batch, name, source.name) for name in wanted)
