"""People counted exactly by DuckDB: files and tables of any order, on all cores, out of core under a memory limit."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet import _native
from discreet.errors import DataError, DiscreetError, ParameterError
from discreet.events.items import Item, is_polars_objects, item_of, library, read
from discreet.events.published import items_array
from discreet.summaries._base import DEFAULT_MAX_KEY_BYTES, wrap_counters
from discreet.summaries.people import LENGTH, MOST_ROWS, Counts, People

try:
    import duckdb
except ImportError as error:
    raise ImportError("counting people needs DuckDB: pip install duckdb") from error

__all__ = ["DuckPeople", "as_arrow", "people_of_batches", "people_of_table"]

_ROWS_AT_ONCE = 1 << 18
_SIZES = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_OWN_SHARE = 0.4  # of the memory: for the names; DuckDB has the rest
_FOLDER = "discreet-people-"
_TAGGED = {b"discreet": b"with kinds"}


class DuckPeople(People):
    """People and their items in tables of DuckDB. NOT private. Close it, or use it in a `with` statement.

    Made by `people_of_batches` and `people_of_table`. Rows may come in any order; what is returned depends neither on
    it nor on the number of threads.
    """

    def __init__(self, memory: str | None = None, threads: int | None = None, *, rows: bool = False) -> None:
        most = None if memory is None else _bytes_of(memory)
        self._rows = rows
        self._folder = _PrivateFolder()
        self._chosen: bytes | None = None
        self._connection = duckdb.connect(":memory:", config={"temp_directory": str(self._folder.path)})
        self._run("SET preserve_insertion_order = false; SET autoinstall_known_extensions = false")
        if most is not None:
            with _translated(memory):
                self._run(f"SET memory_limit = '{int((1 - _OWN_SHARE) * most)}B'")
        if threads is not None:
            self._run(f"SET threads = {int(threads)}")
        self._memory, self._most = memory, most
        self._users, self._items = _Numbers("people"), _Numbers("items")

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

    def _run(self, sql: str) -> Any:
        return self._connection.execute(sql)

    def _counts(self, sql: str) -> dict[str, Counts]:
        """Columns of whole numbers; through Arrow, as NumPy's own way would load pandas."""
        table = self._connection.sql(sql).to_arrow_table()
        return {name: np.asarray(table.column(name).to_numpy(), np.int64) for name in table.column_names}

    def _first(self, sql: str) -> Any:
        return self._run(sql).fetchall()[0][0]

    def read(self, batches: Iterable[tuple[pa.Array, pa.Array]], nulls: str) -> None:
        """Group rows of people and items, given in columns: one row of a table for every person and item."""
        problem: list[DiscreetError] = []
        rows = self._numbered(batches, nulls)
        first = next(rows, None)
        if first is None:
            first = pa.record_batch({"u": pa.array([], pa.int64()), "i": pa.array([], pa.int64())})

        def guarded() -> Iterator[pa.RecordBatch]:
            # DuckDB turns an exception of its source into one of its own; ours is kept.
            try:
                for batch in chain([first], rows):
                    yield batch.cast(first.schema)
            except DiscreetError as error:
                problem.append(error)
                raise

        self._connection.register("source", pa.RecordBatchReader.from_batches(first.schema, guarded()))
        try:
            with _translated(self._memory, problem):
                # Taken in first: what comes from a stream is grouped by one thread, a table by all.
                self._run("CREATE TEMP TABLE numbered AS SELECT u, i FROM source")
                self._run("CREATE TEMP TABLE pairs AS SELECT u, i, count(*) AS n FROM numbered GROUP BY ALL")
                self._run("DROP TABLE numbered")
        finally:
            with suppress(duckdb.Error):
                self._connection.unregister("source")

    def _numbered(self, batches: Iterable[tuple[pa.Array, pa.Array]], nulls: str) -> Iterator[pa.RecordBatch]:
        with ThreadPoolExecutor(1) as both:
            for users, items in batches:
                if nulls != "skip" and (users.null_count or items.null_count):
                    raise DataError('the columns of people and items have nulls; nulls="skip" leaves those rows out')
                u, i = both.submit(self._users.numbers, users), self._items.numbers(items)  # on two cores
                batch = pa.record_batch({"u": u.result(), "i": i})
                self._check_memory()
                yield batch.drop_null() if batch.column(0).null_count or batch.column(1).null_count else batch

    def _check_memory(self) -> None:
        """What is numbered stays in memory; the rest is DuckDB's, which has a limit of its own."""
        if self._most is not None and self._users.bytes + self._items.bytes > _OWN_SHARE * self._most:
            raise DiscreetError(
                f"the memory limit of {self._memory} is too small: the names of people and items alone need more"
            )

    def discovery_weights(self, most_items: int) -> Counts:
        weight = f"trunc({LENGTH - 1} / sqrt({{}}))::BIGINT"
        with _translated(self._memory):
            self._run("CREATE OR REPLACE TEMP TABLE person AS SELECT u, count(*) AS d FROM pairs GROUP BY u")
            parts = [
                f"SELECT i, {weight.format('d::DOUBLE')} AS w FROM pairs JOIN person USING (u) WHERE d <= {most_items}"
            ]
            if self._first(f"SELECT count(*) FROM person WHERE d > {most_items}"):
                # Which items of a person take part depends on that person and a fresh key alone: on the items
                # themselves, and not on their numbers, which depend on everybody's rows.
                keys = self._items.keys()
                if keys is not None:
                    self._connection.register("keys", keys)
                    self._run("CREATE OR REPLACE TEMP TABLE item_key AS SELECT * FROM keys")
                    self._connection.unregister("keys")
                key, joined = f"hash(i, {secrets.randbits(62)})", ""
                if keys is not None:
                    key, joined = "key", "JOIN item_key USING (i)"
                ranked = (
                    f"SELECT i, row_number() OVER (PARTITION BY u ORDER BY {key}, i) AS r FROM pairs "
                    f"JOIN person USING (u) {joined} WHERE d > {most_items}"
                )
                parts.append(
                    f"SELECT i, {weight.format(f'{most_items}::DOUBLE')} AS w FROM ({ranked}) WHERE r <= {most_items}"
                )
            # In the order of the items, so that a place does not depend on how the work was split.
            self._run(
                "CREATE OR REPLACE TEMP TABLE items AS SELECT i, h, row_number() OVER (ORDER BY i) - 1 AS place FROM "
                f"(SELECT i, sum(w)::BIGINT AS h FROM ({' UNION ALL '.join(parts)}) GROUP BY i)"
            )
            return self._counts("SELECT h FROM items ORDER BY place")["h"]

    def items(self, places: Counts) -> pa.Array:
        with self._wanted(places):
            found = self._counts("SELECT items.i FROM wanted JOIN items USING (place) ORDER BY wanted.index")["i"]
        return self._items.values(found)

    def lengths(self, places: Counts, weights: Counts) -> tuple[Counts, Counts]:
        self._choose(places, weights)
        with _translated(self._memory):
            found = self._counts(
                f"SELECT least(q, {2**62})::BIGINT AS q, count(*) AS people FROM long GROUP BY 1 ORDER BY 1"
            )
        return found["q"], found["people"]

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        self._choose(places, weights)
        entry = f"trunc({LENGTH - 1}::DOUBLE * v / greatest(sqrt(q::DOUBLE), {float(longest)!r}::DOUBLE))::BIGINT"
        with _translated(self._memory):
            found = self._counts(
                f"SELECT index, sum({entry})::BIGINT AS s FROM chosen JOIN long USING (u) GROUP BY index"
            )
        sums = np.zeros(len(places), np.int64)
        sums[found["index"]] = found["s"]
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
    tagged = data.schema.field(column).metadata == _TAGGED
    columns = (_columns(batch, column, user) for batch in _batches_of(data))
    return _counted(columns, user is None, rows, nulls, memory, threads, tagged=tagged)


def _batches_of(data: pa.Table | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches; the reader of a query or of another library may fail, with words that quote the data."""
    batches = data if isinstance(data, pa.RecordBatchReader) else iter(data.to_batches(_ROWS_AT_ONCE))
    while (batch := read(data, lambda: next(batches, None))) is not None:
        yield batch


def _columns(batch: pa.RecordBatch, column: str, user: str | None) -> tuple[pa.Array | None, pa.Array]:
    return None if user is None else batch.column(user), batch.column(column)


def people_of_batches(
    batches: Iterator[pa.RecordBatch],
    *,
    rows: bool = False,
    nulls: str = "error",
    memory: str | None = None,
    threads: int | None = None,
) -> DuckPeople:
    """People from the batches of `events.open_stream`: with a column "user", or with lists, one row a person."""
    first = next(batches, None)
    if first is None:
        return _counted(iter(()), False, rows, nulls, memory, threads)
    user = "user" if "user" in first.schema.names else None
    columns = (_columns(batch, "item", user) for batch in chain([first], batches))
    return _counted(columns, user is None, rows, nulls, memory, threads)


def _counted(
    columns: Iterator[tuple[pa.Array | None, pa.Array]],
    lists: bool,
    rows: bool,
    nulls: str,
    memory: str | None,
    threads: int | None,
    *,
    tagged: bool = False,
) -> DuckPeople:
    people = DuckPeople(memory, threads, rows=rows)
    people._items.tagged = tagged
    try:
        people.read(_of_lists(columns, nulls) if lists else columns, nulls)
    except BaseException:
        people.close()
        raise
    return people


def _of_lists(columns: Iterator[tuple[Any, pa.Array]], nulls: str) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Rows of people and items from columns of lists: the number of the row is the person."""
    before = 0
    for _, lists in columns:
        if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
            raise DataError("without a column of people the items must come in lists, one row a person")
        if lists.null_count:
            if nulls != "skip":
                raise DataError('the column of lists has nulls; nulls="skip" leaves those rows out')
            lists = lists.filter(lists.is_valid())  # what a null list refers to is nobody's
        owners = pc.add(pc.list_parent_indices(lists).cast(pa.int64()), before)
        yield owners, lists.flatten()
        before += len(lists)


class _Numbers:
    """A column of values as whole numbers, and back: integers as they are, texts and bytes by an interner.

    Other scalars (dates, booleans, decimals) are taken as text.
    """

    def __init__(self, role: str) -> None:
        self._role = role
        self._interner = _native.Interner(DEFAULT_MAX_KEY_BYTES, secrets.randbits(64))
        self._integers: pa.DataType | None = None
        self.tagged = False  # values are written with their kinds, see `objects_as_arrow`

    @property
    def bytes(self) -> int:
        """Memory that is in use."""
        return self._interner.bytes

    def numbers(self, column: pa.Array) -> pa.Array:
        """int64 or int32, null for rows without a value and for values that cannot be items."""
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_integer(kind):
            if self._interner.size:
                raise DataError(f"the {self._role} are numbers after texts or bytes")
            self._integers = pa.uint64() if pa.types.is_uint64(kind) else self._integers or pa.int64()
            plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            return plain.view(pa.int64()) if pa.types.is_uint64(kind) else plain.cast(pa.int64())
        if self._integers is not None and not pa.types.is_null(kind):
            raise DataError(f"the {self._role} are texts or bytes after numbers")
        if pa.types.is_floating(kind):
            # One missing value makes floats of whole numbers in pandas: it would decide how all are published.
            raise DataError(
                f"the {self._role} are floats, which whole numbers become: give whole numbers (in pandas, with "
                'missing values, .astype("Int64")) or texts'
            )
        if pa.types.is_nested(kind):
            raise DataError(f"the column of {self._role} must hold single values, not nested ones")
        texts = any(is_text(kind) for is_text in _TEXTS)
        if not texts and not pa.types.is_null(kind):
            column = read(column, lambda: column.cast(pa.string()))
        numbers = np.frombuffer(self._interner.number(column), np.int32)
        return pa.array(numbers, mask=numbers < 0) if numbers.min(initial=0) < 0 else pa.array(numbers)

    def keys(self) -> pa.Table | None:
        """(number, keyed hash of the value); None where the numbers are the values."""
        if self._integers is not None:
            return None
        hashes = np.frombuffer(self._interner.hashes(), np.uint64)
        return pa.table({"i": np.arange(len(hashes), dtype=np.int64), "key": hashes})

    def values(self, numbers: Counts) -> pa.Array:
        """The values with these numbers."""
        if self._integers is not None:
            return pa.array(numbers).view(self._integers)
        values = wrap_counters(self._interner.keys(numbers.tolist())).items
        return items_array(_untagged(value) for value in values.to_pylist()) if self.tagged else values


_TEXTS = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary),
    *(pa.types.is_fixed_size_binary, pa.types.is_string_view, pa.types.is_binary_view),
)


def _bytes_of(memory: str) -> int:
    """A size such as "2GB" in bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B)", memory.strip(), re.IGNORECASE)
    if found is None:
        raise ParameterError(f"memory must be a size such as 2GB or 512MiB, not {memory!r}")
    return int(float(found[1]) * _SIZES[found[2].upper()])


def as_arrow(table: Any) -> Any:
    """What DuckDB can read in one go: an Arrow table or a reader."""
    if isinstance(table, (pa.Table, pa.RecordBatchReader)):
        return table
    try:
        if isinstance(table, dict):
            return pa.table(table)
        if hasattr(table, "collect") and not hasattr(table, "__arrow_c_stream__"):
            table = table.collect()  # a lazy frame
        if isinstance(table, pa.RecordBatch):
            return pa.table(table)
        if library(table) == "pandas":
            return pa.Table.from_pandas(table, preserve_index=False)
        if hasattr(table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(table)
        failed = "pass an Arrow table, a data frame, a DuckDB relation or a dict of columns"
    except MemoryError:
        raise
    except Exception as error:  # which may quote what could not be read
        failed = f"it has no columns that Arrow can read ({type(error).__name__})"
    raise DataError(f"people are counted in a table of columns, not in a {type(table).__name__}: {failed}")


def names_of_objects(table: Any) -> list[Any]:
    """The columns of a table that may hold Python objects: a dict, or a frame of pandas or polars. Empty for others."""
    if isinstance(table, dict):
        return list(table)
    frame = library(table) in ("pandas", "polars") and len(getattr(table, "shape", ())) == 2
    return list(table.columns) if frame else []


def objects_as_arrow(table: Any, wanted: Sequence[str]) -> pa.Table | None:
    """The wanted columns of a data frame or dict of Python objects of several kinds; None for any other table.

    What Arrow makes of objects depends on each of them: one of bytes makes all text bytes, one float all numbers
    floats. So each is written with its kind. Rows that cannot be items are left out (docs/privacy/errors.md).
    """
    names = names_of_objects(table)
    if any(names.count(name) != 1 for name in wanted):
        return None
    columns = [_objects_of(table[name]) for name in wanted]
    tagged = [None if values is None else _tags(values) for values in columns]
    if all(tags is None for tags in tagged):
        # Without the other columns, whose objects may be anything.
        if library(table) == "pandas":
            return as_arrow(table[list(wanted)])
        given = zip(wanted, columns, strict=True)
        return as_arrow({name: table[name] if values is None else values for name, values in given})
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
    if is_polars_objects(column):
        return list(column.to_list())
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
    if text is None or len(text) > DEFAULT_MAX_KEY_BYTES:
        return None
    return (b"t" if isinstance(item, str) else b"b") + text


def _untagged(value: bytes) -> Item:
    kind, rest = value[:1], value[1:]
    return int(rest) if kind == b"i" else rest.decode() if kind == b"t" else rest


@contextmanager
def _translated(memory: str | None, ours: Sequence[DiscreetError] = ()) -> Iterator[None]:
    """DuckDB's errors as ours, without their texts, which may quote the data; one of `ours` comes first."""
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
    raise (ours[0] if ours else problem) from None


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
