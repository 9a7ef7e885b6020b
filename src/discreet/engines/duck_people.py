"""People that do not fit in memory: DuckDB groups their rows out of core, under a memory limit, on all cores."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.engines.exact_people import OpenPeople
from discreet.engines.numbers import NumberedRows, Numbers
from discreet.engines.private_folder import PrivateFolder
from discreet.errors import DataError, DiscreetError
from discreet.summaries.memory import Memory
from discreet.summaries.people import LENGTH, Counts, Holdings

try:
    import duckdb
except ImportError as error:
    raise ImportError("counting this many people needs DuckDB; install it with pip install duckdb") from error

_OWN_SHARE = 2 / 3  # of the memory, at most: for the names; DuckDB has the rest
_BATCH = 1 << 20  # rows that are fetched at once


class DuckPeople(OpenPeople):
    """People and their items in tables of DuckDB. NOT private.

    Rows may come in any order; what is returned depends neither on it nor on the number of threads.

    Args:
        memory: The limit.
        threads: How many; all cores by default.
        users, items: What numbered the rows.
        most: What an entry of a vector counts at most, before its weight; 1 for presence.
        summed: Whether rows have values, which are added up.
    """

    def __init__(
        self, memory: Memory, threads: int | None, users: Numbers, items: Numbers, most: int, summed: bool
    ) -> None:
        self._users, self._items, self._most, self._summed = users, items, most, summed
        self._memory = memory
        self._folder = PrivateFolder()
        self._chosen: bytes | None = None
        self._part = ""  # selects the pairs that take part in discovery
        self._connection = duckdb.connect(":memory:", config={"temp_directory": str(self._folder.path)})
        self._run("SET preserve_insertion_order = false; SET autoinstall_known_extensions = false")
        self._limit((1 - _OWN_SHARE) * memory.room)
        if threads is not None:
            self._run(f"SET threads = {int(threads)}")

    def __repr__(self) -> str:
        return "DuckPeople() [NOT PRIVATE]"

    def close(self) -> None:
        self._connection.close()
        self._folder.remove()

    def _limit(self, size: float) -> None:
        if self._memory.given is not None:
            with _translated(self._memory):
                self._run(f"SET memory_limit = '{int(size)}B'")

    def _run(self, sql: str) -> Any:
        return self._connection.execute(sql)

    def _counts(self, sql: str) -> dict[str, Counts]:
        """Columns of whole numbers; through Arrow, as NumPy's own way would load pandas."""
        table = self._connection.sql(sql).to_arrow_table()
        return {name: np.asarray(table.column(name).to_numpy(), np.int64) for name in table.column_names}

    def _first(self, sql: str) -> Any:
        return self._run(sql).fetchall()[0][0]

    def read(self, taken: deque[NumberedRows], coming: Iterator[NumberedRows]) -> None:
        """Group rows: those that were taken already, and those that are still to come."""
        self._users.keep_integers()
        self._items.keep_integers()
        problem: list[DiscreetError] = []
        names = ["u", "i", "v"] if self._summed else ["u", "i"]
        schema = pa.schema([(name, pa.int64()) for name in names])

        def batches() -> Iterator[pa.RecordBatch]:
            # DuckDB turns an exception of its source into one of its own; ours is kept.
            try:
                for rows in chain(_popped(taken), coming):
                    arrays = [_unnumbered(rows.users, self._users), _unnumbered(rows.items, self._items)]
                    if rows.values is not None:
                        arrays.append(pa.array(rows.values))
                    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
                    yield batch.drop_null() if any(array.null_count for array in arrays) else batch
                    self._check_memory()
            except DiscreetError as error:
                problem.append(error)
                raise

        self._connection.register("source", pa.RecordBatchReader.from_batches(schema, batches()))
        try:
            with _translated(self._memory, problem):
                # Taken in first: what comes from a stream is grouped by one thread, a table by all.
                self._run("CREATE TEMP TABLE numbered AS SELECT * FROM source")
                self._limit(self._memory.room - self._users.bytes - self._items.bytes)  # of names no more will come
                entry = "sum(v)::BIGINT" if self._summed else "count(*)"
                self._run(f"CREATE TEMP TABLE pairs AS SELECT u, i, {entry} AS n FROM numbered GROUP BY u, i")
                self._run("DROP TABLE numbered")
        finally:
            with suppress(duckdb.Error):
                self._connection.unregister("source")

    def _check_memory(self) -> None:
        """What is numbered stays in memory; the rest is DuckDB's, which has a limit of its own."""
        if self._memory.given is not None and self._users.bytes + self._items.bytes > _OWN_SHARE * self._memory.room:
            raise DiscreetError(
                f"the memory limit of {self._memory.given} is too small: the names of people and items alone "
                f"need more; raise it"
            )

    def discovery_weights(self, most_items: int) -> Counts:
        with _translated(self._memory):
            self._run("CREATE OR REPLACE TEMP TABLE person AS SELECT u, count(*) AS d FROM pairs GROUP BY u")
            pairs = f"SELECT u, i, d FROM pairs JOIN person USING (u) WHERE d <= {most_items}"
            if self._first(f"SELECT count(*) FROM person WHERE d > {most_items}"):
                # Which items of a person take part depends on that person and a fresh key alone: on the items
                # themselves, and not on their numbers, which depend on everybody's rows.
                key, joined = f"hash(i, {secrets.randbits(62)})", ""
                if self._items.are_texts:
                    hashes = self._items.hashes()
                    self._connection.register("keys", pa.table({"i": np.arange(len(hashes)), "key": hashes}))
                    self._run("CREATE OR REPLACE TEMP TABLE item_key AS SELECT * FROM keys")
                    self._connection.unregister("keys")
                    key, joined = "key", "JOIN item_key USING (i)"
                # With what the person's items hash to together: people with other items choose anew.
                keyed = f"SELECT u, i, d, {key} AS key FROM pairs JOIN person USING (u) {joined} WHERE d > {most_items}"
                salted = f"SELECT *, bit_xor(key) OVER (PARTITION BY u) AS own FROM ({keyed})"
                order = "row_number() OVER (PARTITION BY u ORDER BY hash(key, own), i)"
                self._run(
                    "CREATE OR REPLACE TEMP TABLE choice AS "
                    f"SELECT u, i, d FROM (SELECT *, {order} AS r FROM ({salted})) WHERE r <= {most_items}"
                )
                pairs = f"{pairs} UNION ALL SELECT u, i, d FROM choice"
            self._part = pairs
            weight = f"trunc({LENGTH - 1} / sqrt(least(d, {most_items})::DOUBLE))::BIGINT"
            # In the order of the items, so that a place does not depend on how the work was split.
            self._run(
                "CREATE OR REPLACE TEMP TABLE items AS SELECT i, h, row_number() OVER (ORDER BY i) - 1 AS place FROM "
                f"(SELECT i, sum({weight})::BIGINT AS h FROM ({pairs}) GROUP BY i)"
            )
            return self._counts("SELECT h FROM items ORDER BY place")["h"]

    def aimed_weights(self, most_items: int, aims: Counts) -> Counts:
        self._chosen = None
        with self._wanted(np.arange(len(aims)), aims):
            weighed = "SELECT i, index, weight FROM items JOIN wanted USING (place)"
            self._make_vectors(f"SELECT u, index, weight AS v FROM ({self._part}) JOIN ({weighed}) USING (i)")
        return self._sums(len(aims), 1.0)

    def items(self, places: Counts) -> pa.Array:
        with self._wanted(places):
            found = self._counts("SELECT items.i FROM wanted JOIN items USING (place) ORDER BY wanted.index")["i"]
        return self._items.values(found)

    def holdings(self, places: Counts) -> Iterator[Holdings]:
        with self._wanted(places):
            self._run(
                "CREATE OR REPLACE TEMP TABLE held AS SELECT u, index FROM pairs "
                "JOIN (SELECT i, index FROM items JOIN wanted USING (place)) USING (i)"
            )
        with _translated(self._memory):
            rest: tuple[Counts, Counts] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
            sql = "SELECT u, index FROM held ORDER BY u, index"
            for batch in self._connection.sql(sql).to_arrow_reader(_BATCH):
                columns = (np.asarray(batch.column(name), np.int64) for name in (0, 1))
                people, indices = (np.concatenate(parts) for parts in zip(rest, columns, strict=True))
                # The last person may go on in the next batch.
                start = int(np.searchsorted(people, people[-1])) if len(people) else 0
                rest = people[start:], indices[start:]
                if start:
                    yield _sizes(people[:start]), indices[:start]
            if len(rest[0]):
                yield _sizes(rest[0]), rest[1]

    def lengths(self, places: Counts, weights: Counts) -> tuple[npt.NDArray[np.float64], Counts]:
        self._choose(places, weights)
        with _translated(self._memory):
            sql = "SELECT q::DOUBLE AS q, count(*) AS people FROM long WHERE q > 0 GROUP BY 1 ORDER BY 1"
            found = self._connection.sql(sql).to_arrow_table()
        return found["q"].to_numpy(), found["people"].to_numpy().astype(np.int64)

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        self._choose(places, weights)
        return self._sums(len(places), longest)

    def _sums(self, size: int, longest: float) -> Counts:
        """The sums of the vectors for which there are tables, scaled."""
        entry = f"trunc({LENGTH - 1}::DOUBLE * v / greatest(sqrt(q::DOUBLE), {float(longest)!r}::DOUBLE))::BIGINT"
        with _translated(self._memory):
            found = self._counts(
                f"SELECT index, sum({entry})::BIGINT AS s FROM chosen JOIN long USING (u) WHERE q > 0 GROUP BY index"
            )
        sums = np.zeros(size, np.int64)
        sums[found["index"]] = found["s"]
        return sums

    def _choose(self, places: Counts, weights: Counts) -> None:
        """Make the tables of the vectors over these items, unless they are there."""
        asked = places.tobytes() + weights.tobytes()
        if self._chosen == asked:
            return
        value = f"least(n, {self._most}) * weight"
        with self._wanted(places, weights):
            weighed = "SELECT i, index, weight FROM items JOIN wanted USING (place)"
            self._make_vectors(f"SELECT u, index, {value} AS v FROM pairs JOIN ({weighed}) USING (i)")
        self._chosen = asked

    def _make_vectors(self, entries: str) -> None:
        """The tables of vectors: their entries, and every person's squared length."""
        self._run(f"CREATE OR REPLACE TEMP TABLE chosen AS {entries}")
        self._run(
            "CREATE OR REPLACE TEMP TABLE long AS SELECT u, sum(v::HUGEINT * v)::HUGEINT AS q FROM chosen GROUP BY u"
        )

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


def _sizes(people: Counts) -> Counts:
    """How many rows each person has, of people in order."""
    return np.diff(np.flatnonzero(np.diff(people, prepend=people[0] - 1, append=people[-1] + 1)))


def _popped(taken: deque[NumberedRows]) -> Iterator[NumberedRows]:
    while taken:
        yield taken.popleft()


def _unnumbered(column: npt.NDArray[np.int32] | pa.Array, numbers: Numbers) -> pa.Array:
    """Integers as they are, other values in numbers; null for rows to leave out."""
    if isinstance(column, pa.Array):
        numbers.forget_integers()  # batches come in order: no number of an integer follows
        return column
    integers = None if numbers.are_texts else numbers.integers()
    known = column if integers is None else integers[np.maximum(column, 0)] if len(integers) else np.zeros(len(column))
    return pa.array(known.astype(np.int64), mask=column < 0)


@contextmanager
def _translated(memory: Memory, ours: Sequence[DiscreetError] = ()) -> Iterator[None]:
    """DuckDB's errors as ours, without their texts, which may quote the data; one of `ours` comes first."""
    try:
        yield
        return
    except duckdb.OutOfMemoryException:
        problem: DiscreetError = DiscreetError(
            f"the memory limit of {memory.given or 'this machine'} is too small for these people; raise it"
        )
    except duckdb.IOException:
        problem = DataError("the files cannot be read, or the disk is full")
    except (duckdb.BinderException, duckdb.CatalogException):
        problem = DataError("the columns are missing, or their type does not fit people and items")
    except duckdb.Error as error:
        problem = DataError(f"DuckDB could not count these people ({type(error).__name__})")
    raise (ours[0] if ours else problem) from None
