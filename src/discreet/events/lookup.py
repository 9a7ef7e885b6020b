"""A public table that says more of a row: the country of an address, the category of a product, the section of a page.

    countries = Lookup.of("countries.csv", on="ip_prefix")   # read and checked at once, before any row of the data
    countries.over(where("country = 'de'"))                  # a `Rowwise`: readers see the columns of both

Every row of the data gets the columns of at most one row of the table, the one with its key, or nulls. What it gets
depends on this row and on what is public, so rows stay rows and the guarantee is what it was. The keys of the table are
unique, or it is refused: a key that was there twice would make two rows of one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet._data_class import dataclass, field
from discreet.errors import DataError, ParameterError
from discreet.events.files import FileRows, Files
from discreet.events.inputs import open_input
from discreet.events.items import choose, kind_of, without_views

if TYPE_CHECKING:
    from discreet._native import CellCondition
    from discreet.events.row_query import Bound, Mask, Rowwise


@dataclass(frozen=True)
class Lookup:
    """A public table with one row a key.

    Attributes:
        table: What a release calls it: the name of its file, or "table".
        on: The column of the keys, in the table and in the data.
        digest: Of all that is in it, in hexadecimal; the order of its rows does not matter.
        columns: The others, in the order of the keys.
    """

    table: str
    on: str
    digest: str
    keys: pa.Array = field(repr=False, compare=False)
    columns: dict[str, pa.Array] = field(repr=False, compare=False)

    @classmethod
    def of(cls, given: Any, on: str) -> Lookup:
        """A file (CSV, TSV, Parquet, Arrow) or a table of any library.

        Raises:
            DataError: For keys that are missing or not unique, and for a table without other columns.
        """
        if isinstance(given, Lookup):
            return given
        if isinstance(given, (str, os.PathLike)):
            name, found = os.path.basename(os.fspath(given)), _read(os.fspath(given))
        else:
            from discreet.events.tables import as_arrow

            read = as_arrow(given)
            name, found = "table", read if isinstance(read, pa.Table) else read.read_all()
        names = found.schema.names
        choose(names, [on], name)
        if len({*names}) < len(names) or len(names) < 2:
            raise DataError(f"{name}: a lookup needs {on!r} and other columns, all with different names")
        columns = {each: _whole(found.column(each)) for each in names}
        keys = _as_keys(columns.pop(on), name, on)
        if keys.null_count:
            raise DataError(f"{name} has rows without {on!r}: every row of a lookup needs a key")
        if len(pc.unique(keys)) < len(keys):
            raise DataError(f"{name} has several rows with the same {on!r}; the keys of a lookup must be unique")
        order = pc.sort_indices(keys)
        rows = [keys.take(order).to_pylist(), *(columns[each].take(order).to_pylist() for each in sorted(columns))]
        told = json.dumps([on, sorted(columns), rows], default=repr, ensure_ascii=False)
        return cls(name, on, hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest(), keys, columns)

    def to_dict(self) -> dict[str, str]:
        """What a release says of it, and a charge id stands for."""
        return {"table": self.table, "digest": self.digest}

    def over(self, query: Rowwise | None) -> _Looked:
        """The rows of a query, or all, for which the columns of the table are columns of the input."""
        return _Looked(self, query)

    def as_texts(self) -> Lookup:
        """The same with every column as text, as growing inputs have them; DataError for lists and the like."""
        try:
            texts = {name: column.cast(pa.string()) for name, column in self.columns.items()}
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise DataError(f"{self.table}: its columns must be texts, numbers, times or booleans here") from None
        return Lookup(self.table, self.on, self.digest, self.keys, texts)

    def found(self, keys: Any, names: Sequence[str]) -> list[pa.Array]:
        """These columns for the keys of rows; null where there is no such key."""
        places = pc.index_in(_as_keys(_whole(keys), "the data", self.on), value_set=self.keys)
        return [self.columns[name].take(places) for name in names]


class _Looked:
    """A query of rows with more columns: see `row_query.Rowwise`.

    Attributes:
        text: As it was given, and what the table holds.
        names: The columns of the result, where the query says them.
    """

    def __init__(self, lookup: Lookup, query: Rowwise | None) -> None:
        self._lookup, self._query = lookup, query
        self.text = f"{'' if query is None else query.text} (with {lookup.table}, {lookup.digest})"
        self.names: list[str] | None = getattr(query, "names", None)

    def bound(self, wanted: Sequence[str | None]) -> _LookedBound:
        return _LookedBound(self._lookup, None if self._query is None else self._query.bound(wanted), wanted)


class _LookedBound:
    """See `row_query.Bound`. Rows without a match are left out where a column of the table is asked about."""

    of_text: CellCondition | None = None

    def __init__(self, lookup: Lookup, inner: Bound | None, wanted: Sequence[str | None]) -> None:
        self._lookup, self._inner = lookup, inner
        self._needs = list(dict.fromkeys(wanted)) if inner is None else list(inner.reads)
        own = [name for name in self._needs if name not in lookup.columns]
        self.reads: Sequence[str | None] = own if lookup.on in own else [*own, lookup.on]
        places = [self._needs.index(name) for name in wanted] if inner is None else inner.taken
        self._places = list(places)
        self._asked = [self._needs[at] for at in places if at is not None and self._needs[at] in lookup.columns]
        self.taken: Sequence[int | None] = [
            None if at is None or self._needs[at] in lookup.columns else self.reads.index(self._needs[at])
            for at in places
        ]
        self.selects = bool(self._asked) or (inner is not None and inner.selects)
        self.looks_at: Sequence[int] = range(len(self.reads))

    def _all(self, columns: Sequence[Any]) -> list[Any]:
        """The columns that the query reads, of both."""
        more = [str(name) for name in self._needs if name in self._lookup.columns]
        found = dict(zip(more, self._lookup.found(columns[self.reads.index(self._lookup.on)], more), strict=True))
        return [found[str(name)] if name in found else columns[self.reads.index(name)] for name in self._needs]

    def keeps(self, columns: Sequence[pa.Array | None]) -> tuple[Mask, Mask]:
        every = self._all(columns)
        if self._inner is not None and self._inner.selects:
            keep, failed = self._inner.keeps(every)
        else:
            keep, failed = np.ones(len(every[0]), np.bool_), np.zeros(len(every[0]), np.bool_)
        for name in self._asked:
            keep = keep & np.asarray(every[self._needs.index(name)].is_valid(), np.bool_)
        return keep, failed

    def computes(self, columns: Sequence[pa.Array]) -> tuple[list[pa.Array], Mask]:
        every = self._all(columns)
        computed: list[pa.Array] = []
        failed = np.zeros(len(every[0]), np.bool_)
        if self._inner is not None and None in self._places:
            computed, failed = self._inner.computes(every)
        made = iter(computed)
        each = [
            next(made) if place is None else every[place]
            for place, taken in zip(self._places, self.taken, strict=True)
            if taken is None
        ]
        return each, failed


def _read(path: str) -> pa.Table:
    open_input(path).close()  # one file, and no pattern
    files = Files([path])
    names = files.column_names()
    if not names:
        raise ParameterError(f"{path} has no column names; a lookup must be CSV, TSV, Parquet or Arrow")
    if len({*names}) < len(names):
        raise DataError(f"{os.path.basename(path)}: the columns of a lookup need names that are all different")
    rows = files.rows(names, nulls="skip", bad_rows="error")
    assert isinstance(rows, FileRows)
    parts = [pa.table(dict(zip(names, arrays, strict=True))) for arrays in rows.columns_read()]
    return pa.concat_tables(parts) if parts else pa.table({name: pa.array([], pa.string()) for name in names})


def _whole(column: Any) -> pa.Array:
    """A column in one piece, of plain values."""
    found = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) and column.num_chunks else column
    if isinstance(found, pa.ChunkedArray):
        found = pa.array([], found.type)
    return without_views(found.dictionary_decode() if pa.types.is_dictionary(found.type) else found)


def _as_keys(column: pa.Array, source: str, on: str) -> pa.Array:
    """Keys as text: a whole number by its digits, so that 7 in Parquet is 7 in CSV."""
    if kind_of(column.type, lists=False) not in ("text", "integer") and not pa.types.is_null(column.type):
        raise DataError(f"{source}: keys must be text or whole numbers; {on!r} is {column.type}")
    return column.cast(pa.large_string())


def of_table(lookup: Lookup, table: Any, asked: Sequence[str]) -> Any:
    """A table of any library with the columns of both; without rows that lack a match in a column that is `asked`."""
    from discreet.events.row_query import column_of_objects, kept, plain_schema
    from discreet.events.tables import as_arrow, batches_of_arrow, names_of_objects

    more, needed = list(lookup.columns), [name for name in asked if name in lookup.columns]

    def matched(found: Sequence[pa.Array]) -> Mask:
        there = [np.asarray(found[more.index(name)].is_valid(), np.bool_) for name in needed]
        return np.logical_and.reduce(there) if there else np.ones(len(found[0]), np.bool_)

    names = names_of_objects(table)
    if names:
        found = lookup.found(column_of_objects(table, lookup.on), more)
        columns = {name: table[name] for name in names if name not in more and names.count(name) == 1}
        columns |= dict(zip(more, found, strict=True))
        good = matched(found)
        return columns if good.all() else {name: kept(column, good) for name, column in columns.items()}
    data = as_arrow(table)
    choose(data.schema.names, [lookup.on])
    own = [each for each in plain_schema(data.schema) if each.name not in more]
    schema = pa.schema([*own, *((name, lookup.columns[name].type) for name in more)])

    def batches() -> Any:
        for batch in batches_of_arrow(data):
            found = lookup.found(batch.column(lookup.on), more)
            arrays = [*(without_views(batch.column(each.name)) for each in own), *found]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema).filter(pa.array(matched(found)))

    lookup.found(pa.array([], data.schema.field(lookup.on).type), more)  # keys of another type are refused at once
    return pa.RecordBatchReader.from_batches(schema, batches())
