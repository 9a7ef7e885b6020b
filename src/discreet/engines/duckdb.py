"""People counted exactly by DuckDB: files and tables of any order, on all cores, out of core under a memory limit."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import DataError, DiscreetError, ParameterError
from discreet.events.items import Item, item_of, read
from discreet.privacy.published import items_array
from discreet.summaries.people import LENGTH, Counts, People

try:
    import duckdb
except ImportError as error:
    raise ImportError("counting people needs DuckDB: pip install duckdb") from error

__all__ = ["DuckPeople", "as_arrow", "people_of_batches", "people_of_table"]

MAX_KEY_BYTES = 4096
MOST_ROWS = 2**20
"""Of the rows that one person has with one item at most so many count."""
_MEMORY = re.compile(r"\d+(\.\d+)?\s*[KMGT]i?B", re.IGNORECASE)
_FOLDER = "discreet-people-"
_TAGGED = {b"discreet": b"with kinds"}


class DuckPeople(People):
    """People and their items in tables of DuckDB. NOT private. Close it, or use it in a `with` statement.

    Made by `people_of_batches` and `people_of_table`. Rows may come in any order; what is returned depends neither on
    it nor on the number of threads.
    """

    def __init__(self, memory: str | None = None, threads: int | None = None, *, rows: bool = False) -> None:
        if memory is not None and not _MEMORY.fullmatch(memory.strip()):
            raise ParameterError(f"memory must be a size such as 2GB or 512MiB, not {memory!r}")
        self._rows = rows
        self._folder = _PrivateFolder()
        self._chosen: bytes | None = None
        self._tagged = False  # items are written with their kinds
        self._connection = duckdb.connect(":memory:", config={"temp_directory": str(self._folder.path)})
        self._run("SET preserve_insertion_order = false; SET autoinstall_known_extensions = false")
        if memory is not None:
            with _translated(memory):
                self._run(f"SET memory_limit = '{memory.strip()}'")
        if threads is not None:
            self._run(f"SET threads = {int(threads)}")
        self._memory = memory

    def __repr__(self) -> str:
        return "DuckPeople() [NOT PRIVATE]"

    def __enter__(self) -> DuckPeople:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget everything, on disk too."""
        self._connection.close()
        self._folder.remove()

    def _run(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(sql, values) if values else self._connection.execute(sql)

    def _first(self, sql: str) -> Any:
        return self._run(sql).fetchall()[0][0]

    def read(self, source: str, item: str, user: str | None, nulls: str) -> None:
        """Group the rows of a table expression: one row for every person and item. Without `user` a row is a person."""
        with _translated(self._memory):
            if user is None:
                source = f"(SELECT row_number() OVER () AS person, unnest({item}) AS thing FROM {source})"
                item, user = "thing", "person"
            described = self._run(f"DESCRIBE SELECT {item} AS x, {user} AS y FROM {source}").fetchall()
            kind, whose = (str(row[1]) for row in described)
            for role, found in (("items", kind), ("people", whose)):
                if found.endswith("]") or found.startswith(("STRUCT", "MAP", "UNION")):
                    raise DataError(f"the column of {role} must hold single values, not nested ones")
            thing, fits, self._type = _item_expression(kind, item)
            if self._tagged:
                fits = "true"  # those that are too long were left out already
            self._run(
                f"CREATE TEMP TABLE pairs AS SELECT {user} AS u, {thing} AS i, count(*) AS n FROM {source} "
                f"WHERE {fits} GROUP BY ALL"
            )
            missing = "FROM pairs WHERE u IS NULL OR i IS NULL"
            if self._first(f"SELECT count(*) {missing}"):
                if nulls != "skip":
                    raise DataError('the columns of people and items have nulls; nulls="skip" leaves those rows out')
                self._run(f"DELETE {missing}")

    def discovery_weights(self, most_items: int) -> Counts:
        weight = f"trunc({LENGTH - 1} / sqrt({{}}))::BIGINT"
        with _translated(self._memory):
            self._run("CREATE OR REPLACE TEMP TABLE person AS SELECT u, count(*) AS d FROM pairs GROUP BY u")
            parts = [
                f"SELECT i, {weight.format('d::DOUBLE')} AS w FROM pairs JOIN person USING (u) WHERE d <= {most_items}"
            ]
            if self._first(f"SELECT count(*) FROM person WHERE d > {most_items}"):
                # Which items of a person take part depends on that person and a fresh key alone.
                ranked = (
                    f"SELECT i, row_number() OVER (PARTITION BY u ORDER BY hash(i, {secrets.randbits(62)}), i) AS r "
                    f"FROM pairs JOIN person USING (u) WHERE d > {most_items}"
                )
                parts.append(
                    f"SELECT i, {weight.format(f'{most_items}::DOUBLE')} AS w FROM ({ranked}) WHERE r <= {most_items}"
                )
            # In the order of the items, so that a place does not depend on how the work was split.
            self._run(
                "CREATE OR REPLACE TEMP TABLE items AS SELECT i, h, row_number() OVER (ORDER BY i) - 1 AS place FROM "
                f"(SELECT i, sum(w)::BIGINT AS h FROM ({' UNION ALL '.join(parts)}) GROUP BY i)"
            )
            return _column(self._run("SELECT h FROM items ORDER BY place"))

    def items(self, places: Counts) -> pa.Array:
        with self._wanted(places):
            found = self._run("SELECT items.i FROM wanted JOIN items USING (place) ORDER BY wanted.index").fetchall()
        if self._tagged:
            return items_array(_untagged(bytes(item)) for (item,) in found)
        return pa.array([item for (item,) in found], self._type)

    def lengths(self, places: Counts, weights: Counts) -> tuple[Counts, Counts]:
        self._choose(places, weights)
        with _translated(self._memory):
            found = self._run(
                f"SELECT least(q, {2**62})::BIGINT AS q, count(*) AS people FROM long GROUP BY 1 ORDER BY 1"
            ).fetchnumpy()
        return found["q"].astype(np.int64), found["people"].astype(np.int64)

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        self._choose(places, weights)
        entry = f"trunc({LENGTH - 1}::DOUBLE * v / greatest(sqrt(q::DOUBLE), {float(longest)!r}::DOUBLE))::BIGINT"
        with _translated(self._memory):
            found = self._run(
                f"SELECT index, sum({entry})::BIGINT AS s FROM chosen JOIN long USING (u) GROUP BY index"
            ).fetchnumpy()
        sums = np.zeros(len(places), np.int64)
        sums[found["index"].astype(np.int64)] = found["s"]
        return sums

    def _choose(self, places: Counts, weights: Counts) -> None:
        """Make the tables of the vectors over these items: their entries, and every person's squared length."""
        asked = places.tobytes() + weights.tobytes()
        if self._chosen == asked:
            return
        value = f"least(n, {MOST_ROWS}) * weight" if self._rows else "weight"
        with self._wanted(places, weights):
            self._run(
                f"CREATE OR REPLACE TEMP TABLE chosen AS SELECT u, index, {value} AS v FROM pairs "
                "JOIN (SELECT i, index, weight FROM items JOIN wanted USING (place)) USING (i)"
            )
            self._run(
                "CREATE OR REPLACE TEMP TABLE long AS "
                "SELECT u, sum(v::HUGEINT * v)::HUGEINT AS q FROM chosen GROUP BY u"
            )
        self._chosen = asked

    @contextmanager
    def _wanted(self, places: Counts, weights: Counts | None = None) -> Iterator[None]:
        weights = np.ones_like(places) if weights is None else weights
        index = np.arange(len(places), dtype=np.int64)
        self._connection.register("wanted", pa.table({"place": places, "index": index, "weight": weights}))
        try:
            with _translated(self._memory):
                yield
        finally:
            self._connection.unregister("wanted")


def people_of_table(
    table: Any,
    column: str,
    user: str | None = None,
    *,
    rows: bool = False,
    nulls: str = "error",
    memory: str | None = None,
    threads: int | None = None,
) -> DuckPeople:
    """People from a table: Arrow (also a reader), pandas, polars, a DuckDB relation, or a dict of columns.

    Args:
        column: The column of the items; without `user` it holds lists, one row a person.
        user: The column that says whose row it is.
        rows: Whether vectors say how often a person has an item, instead of whether.
        nulls: "error" or "skip", for rows without a person or an item.
        memory: A size such as "2GB"; what does not fit goes to a private folder on disk.
        threads: How many; all cores by default.
    """
    wanted = [name for name in (column, user) if name is not None]
    data = objects_as_arrow(table, wanted) if user is not None else None
    data = as_arrow(table) if data is None else data
    names = list(data.schema.names)
    for name in (column, user):
        if name is not None and names.count(name) != 1:
            there = "more than one column" if name in names else "no column"
            raise DataError(f"the table has {there} {name!r}; its columns are {', '.join(map(repr, names))}")
    people = DuckPeople(memory, threads, rows=rows)
    people._tagged = data.schema.field(column).metadata == _TAGGED
    try:
        people._connection.register("source", data)
        people.read("source", _quoted(column), None if user is None else _quoted(user), nulls)
        people._connection.unregister("source")
    except BaseException:
        people.close()
        raise
    return people


def people_of_batches(
    batches: Iterator[pa.RecordBatch],
    *,
    rows: bool = False,
    nulls: str = "error",
    memory: str | None = None,
    threads: int | None = None,
) -> DuckPeople:
    """People from the batches of `discreet.io.open_stream`: with a column "user", or with lists, one row a person."""
    reader = _reader(batches)
    user = "user" if "user" in reader.schema.names else None
    return people_of_table(reader, "item", user, rows=rows, nulls=nulls, memory=memory, threads=threads)


def _reader(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    """The batches as one reader; the first one says of which kind items and users are."""
    first = next(batches, None)
    if first is None:
        empty = pa.schema([("item", pa.large_string()), ("user", pa.large_string())])
        return pa.RecordBatchReader.from_batches(empty, iter(()))
    schema = pa.schema([(field.name, _plain_type(field.type)) for field in first.schema])

    def plain() -> Iterator[pa.RecordBatch]:
        yield _cast(first, schema)
        for batch in batches:
            yield _cast(batch, schema)

    return pa.RecordBatchReader.from_batches(schema, plain())


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.large_binary()
    return kind


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([batch.column(field.name).cast(field.type) for field in schema], schema=schema)


def as_arrow(table: Any) -> Any:
    """What DuckDB can read in one go: an Arrow table or a reader."""
    if isinstance(table, (pa.Table, pa.RecordBatchReader)):
        return table
    failed = "it has no columns that Arrow can read"
    with suppress(pa.ArrowException, TypeError, ValueError):
        if isinstance(table, dict):
            return pa.table(table)
        if hasattr(table, "collect") and not hasattr(table, "__arrow_c_stream__"):
            table = table.collect()  # a lazy frame
        if isinstance(table, pa.RecordBatch):
            return pa.table(table)
        if type(table).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(table, preserve_index=False)
        if hasattr(table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(table)
        failed = "pass an Arrow table, a data frame, a DuckDB relation or a dict of columns"
    raise DataError(f"people are counted in a table of columns, not in a {type(table).__name__}: {failed}")


def objects_as_arrow(table: Any, wanted: Sequence[str]) -> pa.Table | None:
    """The wanted columns of a data frame or dict of Python objects of several kinds; None for any other table.

    What Arrow makes of objects depends on each of them: one of bytes makes all text bytes, one float all numbers
    floats. So each is written with its kind. Rows that cannot be items are left out (docs/privacy/errors.md).
    """
    pandas = type(table).__module__.partition(".")[0] == "pandas" and getattr(table, "ndim", 1) == 2
    names = list(table.keys()) if pandas or isinstance(table, dict) else []
    if any(names.count(name) != 1 for name in wanted):
        return None
    columns = [_objects_of(table[name]) for name in wanted]
    tagged = [None if values is None else _tags(values) for values in columns]
    if all(tags is None for tags in tagged):
        # Without the other columns, whose objects may be anything.
        return as_arrow(table[list(wanted)] if pandas else {name: table[name] for name in wanted})
    fields, arrays, kept = [], [], None
    for name, values, tags in zip(wanted, columns, tagged, strict=True):
        if tags is None:
            array = read(table, lambda: pa.array(table[name] if values is None else values))  # noqa: B023 (called at once)
            fields.append(pa.field(name, array.type))
        else:
            there = np.array(
                [value is None or tag is not None for value, tag in zip(values or (), tags, strict=True)], bool
            )
            kept = there if kept is None or len(kept) != len(there) else kept & there
            array = pa.array(tags, pa.large_binary())
            fields.append(pa.field(name, array.type, metadata=_TAGGED))
        arrays.append(array)
    assert kept is not None
    if len({len(array) for array in arrays}) > 1:
        return None  # which as_arrow refuses
    if len(kept) and not kept.any():
        raise DataError("no row of the table has items (and people) that are int, str or bytes")
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields)).filter(pa.array(kept))


def _objects_of(column: Any) -> list[Any] | None:
    """The objects of a column that has no type but theirs; None for any other."""
    if isinstance(column, (list, tuple)):
        return list(column)
    kind = getattr(getattr(column, "dtype", None), "categories", column)
    if str(getattr(kind, "dtype", "")) != "object":
        return None
    missing = column.isna().tolist() if hasattr(column, "isna") else [False] * len(column)
    return [None if gone else value for value, gone in zip(column.tolist(), missing, strict=True)]


def _tags(values: list[Any]) -> list[bytes | None] | None:
    """The objects with their kinds; None if all are items of one kind, which Arrow reads as they are."""
    tags = [_tag(value) for value in values]
    kinds = {tag[:1] for tag in tags if tag is not None}
    odd = any(tag is None and value is not None for value, tag in zip(values, tags, strict=True))
    large = kinds == {b"i"} and any(isinstance(item := item_of(value), int) and item >= 2**63 for value in values)
    return tags if odd or large or len(kinds) > 1 else None


def _tag(value: Any) -> bytes | None:
    """An item with its kind in front, or None if it cannot be one."""
    item = item_of(value)
    if isinstance(item, int):
        return b"i" + str(item).encode()
    text = item.encode() if isinstance(item, str) else item
    if text is None or len(text) > MAX_KEY_BYTES:
        return None
    return (b"t" if isinstance(item, str) else b"b") + text


def _untagged(value: bytes) -> Item:
    kind, rest = value[:1], value[1:]
    return int(rest) if kind == b"i" else rest.decode() if kind == b"t" else rest


def _item_expression(kind: str, name: str) -> tuple[str, str, pa.DataType]:
    """(what is counted, which rows are, its type): numbers, text and bytes as they are, other scalars as text."""
    if kind == "BLOB":
        return name, f"octet_length({name}) <= {MAX_KEY_BYTES} OR {name} IS NULL", pa.large_binary()
    if kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"):
        return name, "true", pa.int64()
    if kind == "UBIGINT":
        return name, "true", pa.uint64()
    text = name if kind == "VARCHAR" else f"CAST({name} AS VARCHAR)"
    return text, f"strlen({text}) <= {MAX_KEY_BYTES} OR {name} IS NULL", pa.large_string()


def _column(result: Any) -> Counts:
    found = result.fetchnumpy()
    return np.asarray(next(iter(found.values())), dtype=np.int64)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _translated(memory: str | None) -> Iterator[None]:
    """DuckDB's errors as ours, without their texts, which may quote the data."""
    try:
        yield
        return
    except duckdb.OutOfMemoryException:
        problem: DiscreetError = DiscreetError(
            f"the memory limit of {memory or 'this machine'} is too small for these people; give more"
        )
    except duckdb.IOException:
        problem = DataError("the files cannot be read, or the disk is full")
    except (duckdb.BinderException, duckdb.CatalogException):
        problem = DataError("the columns are not there, or of a type that people and items cannot have")
    except duckdb.Error as error:
        problem = DataError(f"DuckDB could not count these people ({type(error).__name__})")
    raise problem from None


class _PrivateFolder:
    """A folder for what does not fit in memory: only its owner may look, and what a crash left is removed.

    Whoever uses a folder holds a lock on it; one that nobody holds is left over.
    """

    def __init__(self) -> None:
        base = Path(tempfile.gettempdir())
        for old in base.glob(f"{_FOLDER}*"):
            with suppress(OSError):
                if old.stat().st_uid == os.getuid() and (lock := _locked(old)) is not None:
                    shutil.rmtree(old, ignore_errors=True)
                    os.close(lock)
        self.path = Path(tempfile.mkdtemp(prefix=_FOLDER))
        self._lock = _locked(self.path)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _locked(folder: Path) -> int | None:
    """A lock on a folder, or None if another process has it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
