"""What executors run. Each task takes Arrow batches and yields rows that hold summaries; nothing here is random noise.

A task that fails for its data says so in a row, `problem`, instead of raising: Spark would run it four times and write
a trace to its logs. Messages hold no items.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from discreet._data_class import dataclass, replace
from discreet.engines._spark_jobs import raise_problem
from discreet.engines.pairs import Pairs
from discreet.errors import DiscreetError
from discreet.events.assembly import Rows, Wanted
from discreet.events.lookup import Lookup
from discreet.events.tables import TableRows, Tables
from discreet.events.universe import Universe
from discreet.summaries import ExactCounts, MisraGries, RawCounts, UserMisraGries
from discreet.summaries.moments import ValueMoment

ITEMS = {"string": pa.large_string(), "binary": pa.large_binary(), "bigint": pa.int64()}
"""The types of items in Spark, and those in which summaries have them."""
PARTS = "part int, state binary, problem string"
HELD = "shard int, shift long, counts binary, items binary, digest binary, problem string"
_PARTS = pa.schema([("part", pa.int32()), ("state", pa.binary()), ("problem", pa.string())])
_HELD = pa.schema(
    [
        ("shard", pa.int32()),
        ("shift", pa.int64()),
        ("counts", pa.binary()),
        ("items", pa.binary()),
        ("digest", pa.binary()),
        ("problem", pa.string()),
    ]
)

Batches = Iterator[pa.RecordBatch]
Counts = np.ndarray[Any, np.dtype[np.int64]]
Values = np.ndarray[Any, np.dtype[np.float64]]


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def row_of(schema: pa.Schema, **values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{name: values.get(name) for name in schema.names}], schema)


def reporting(schema: pa.Schema, batches: Batches, work: Callable[[], Batches]) -> Batches:
    """The rows of the work on batches, or one that says what is wrong with the data."""
    try:
        yield from work()
    except DiscreetError as error:
        yield row_of(schema, problem=f"{type(error).__name__}: {error}")
        for _ in batches:  # Spark waits until they are taken
            pass


# ---- questions whose counts add up -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """How rows are read: on executors, and on the driver where there are none.

    Attributes:
        schema: The columns, as they are called in the data frame.
        wanted: What is asked of them.
        whole: Whether nothing is asked but how many there are.
        lookup: A public table that has more columns.
        crowds: Whether a hash of the person comes first, and rows are in its order.
        counted: Whether every row stands for as many as its last column says, which is its value (`CountedRows`).
    """

    schema: pa.Schema
    wanted: Wanted
    whole: bool = False
    lookup: Lookup | None = None
    crowds: bool = False
    counted: bool = False

    def parts(self, batches: Batches) -> Iterator[Rows]:
        """The rows of a task, all of them or a crowd of people at a time; each is to be gone through."""
        for part in Crowds(batches) if self.crowds else (batches,):
            plain = pa.RecordBatchReader.from_batches(self.schema, map(self._plain, part))
            yield self._numbered(plain) if self.counted else self.rows_of(plain)

    def rows_of(self, data: pa.Table | pa.RecordBatchReader) -> Rows:
        """Rows of a table as one machine reads them."""
        wanted, events = self.wanted, Tables(data, self.lookup)
        if self.whole:
            return events.all_rows(where=wanted.where, nulls=wanted.nulls, bad_rows=wanted.bad_rows)
        return events.rows_wanted(wanted)

    @property
    def unused_name(self) -> str:
        """What no column is called."""
        longest: str = max(self.schema.names, key=len)
        return longest + "#"

    def counting(self) -> Reading:
        """The same of different rows, with the number of each after the other columns."""
        return replace(self, schema=self.schema.append(pa.field(self.unused_name, pa.int64())), counted=True)

    def _numbered(self, plain: pa.RecordBatchReader) -> CountedRows:
        """Rows with their number, assembled in full also where a summary would look at items by itself."""
        wanted, number = self.wanted, self.schema.names[-1]
        if self.whole:
            return CountedRows(plain, Wanted((number,), numbers=True))
        events = Tables(plain, self.lookup)._rows_of(None, [*wanted.columns, *wanted.by])
        keyed = events.makes_keys(wanted.columns)
        events = events._rows_of(wanted.where, [])
        rows = CountedRows(events._data, replace(wanted, where=None, value=number), keyed)
        rows._assembler.check_text = True
        return rows

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = batch.columns[int(self.crowds) :]
        return pa.RecordBatch.from_arrays(
            [
                column if column.type == field.type else column.cast(field.type)
                for column, field in zip(columns, self.schema, strict=True)
            ],
            schema=self.schema,
        )


class CountedRows(TableRows):
    """Rows each of which stands for as many equal ones as its value says."""

    def number(self) -> int:
        return sum(int(batch.column("value").to_numpy().sum()) for batch in self)


class Crowds:
    """Batches in the order of a hash of the person, their first column, as crowds: people with all of their rows.

    A crowd ends where the hash changes, after this many rows or bytes: nobody is in two of them. Its batches are read
    when they are asked for, and all must be before the next crowd is.
    """

    ROWS = 1 << 19
    BYTES = 1 << 28

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._rest: pa.RecordBatch | None = None

    def __iter__(self) -> Iterator[Batches]:
        while (batch := self._rest or next(self._batches, None)) is not None:
            crowd = self._crowd(batch)
            yield crowd
            for _ in crowd:  # whatever was not asked for
                pass

    def _crowd(self, batch: pa.RecordBatch | None) -> Batches:
        rows, size, last = 0, 0, None
        self._rest = None
        while batch is not None:
            hashes = batch.column(0).to_numpy()
            if rows >= self.ROWS or size >= self.BYTES:
                # Up to where the hash changes for the first time the rows belong to people of this crowd.
                first = int(np.argmax(hashes != last)) if len(hashes) and hashes[-1] != last else len(hashes)
                yield batch.slice(0, first)
                if first < len(hashes):
                    self._rest = batch.slice(first)
                    return
            else:
                yield batch
                last = hashes[-1] if len(hashes) else last
            rows, size = rows + batch.num_rows, size + batch.nbytes
            batch = next(self._batches, None)


def added(one: Any, other: Any) -> Any:
    """What was found in two parts, together."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, dict):
        return one | {key: added(one.get(key), found) for key, found in other.items()}
    if hasattr(one, "merge"):
        one.merge(other)
        return one
    return one + other


@dataclass(frozen=True)
class CountPart:
    """What is found in the rows of a task."""

    reading: Reading
    count: Callable[..., Any]

    def found(self, batches: Batches) -> Any:
        """It, of these batches."""
        return reduce(added, map(self.count, self.reading.parts(batches)), None)

    def __call__(self, batches: Batches) -> Batches:
        def work() -> Batches:
            yield row_of(_PARTS, part=_partition(), state=pickle.dumps(self.found(batches)))

        return reporting(_PARTS, batches, work)


# ---- rows that Spark added up (`_spark_sums`) ------------------------------------------------------------------------

HALF = 16  # bits of a number in the lower of the two halves that are added up


@dataclass(frozen=True)
class CountSums(CountPart):
    """What is found in rows that have sums in place of values.

    Batches have the columns of the reading, the last of them (the value) left out; then of how many rows the value is a
    number, and of how many there is none; then the halves of the sums. The code that counts rows goes through these,
    with the number of such a row for its value, and finds in `SumsOfRows` what it adds.
    """

    moment: ValueMoment

    def found(self, batches: Batches) -> Any:
        parts = list(batches)
        if not parts:
            return self.count(self.reading.rows_of(self.reading.schema.empty_table()), moment=self.moment)
        fields = list(self.reading.schema)[:-1]
        every = pa.Table.from_batches(parts)
        keys = [every.column(at).cast(field.type) for at, field in enumerate(fields)]
        there, none, *halves = (every.column(at).to_numpy() for at in range(len(fields), every.num_columns))
        numbers = np.where(there > 0, np.arange(len(there)), np.nan)
        table = pa.table([*keys, pa.array(numbers)], schema=self.reading.schema)
        empty = pa.table([*keys, pa.nulls(len(there), pa.float64())], schema=self.reading.schema)
        rows = self.reading.rows_of(pa.concat_tables([table, empty.filter(pa.array(none > 0))]))
        return self.count(rows, moment=SumsOfRows.of(self.moment, there, halves)).in_order()


@dataclass(frozen=True)
class SumsOfRows:
    """In place of a `ValueMoment`: values are the numbers of rows of sums, which say what they add."""

    kind: str
    sums: Counts

    @classmethod
    def of(cls, moment: ValueMoment, there: Counts, halves: list[Counts]) -> SumsOfRows:
        """Of halves, upper and lower; the parts of a value that Spark did not add up are what is left of `one`."""
        sums = [(upper << HALF) + lower for upper, lower in zip(halves[::2], halves[1::2], strict=True)]
        if len(sums) < moment.parts:
            sums.append(there * moment.one - np.sum(sums, axis=0, dtype=np.int64))
        return cls(moment.kind, np.stack(sums, axis=1))

    @property
    def parts(self) -> int:
        return int(self.sums.shape[1])

    def entries(self, values: Values) -> Counts:
        return self.sums[values.astype(np.int64)]

    def total(self, values: Values) -> Counts:
        return np.asarray(self.entries(values).sum(axis=0))


def _founds(batches: Batches) -> list[tuple[int, Any]]:
    """What was found in parts, by the number of the part: the order in which they are added is a fixed one."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    for row in rows:
        raise_problem(row["problem"])
    return [(row["part"], pickle.loads(row["state"])) for row in sorted(rows, key=lambda row: int(row["part"]))]


class AddParts:
    """What was found in the parts of a group, together: a level of a tree."""

    def __call__(self, batches: Batches) -> Batches:
        def work() -> Batches:
            if parts := _founds(batches):
                found = reduce(added, (found for _, found in parts))
                yield row_of(_PARTS, part=parts[0][0], state=pickle.dumps(found))

        return reporting(_PARTS, batches, work)


def number_of(rows: Rows) -> int:
    """How many there are."""
    return rows.number()


def exact_counts(rows: Rows, max_key_bytes: int) -> ExactCounts:
    """The counts of all items."""
    summary = ExactCounts(max_key_bytes=max_key_bytes)
    rows.feed(summary)
    return summary


def listed(rows: Rows, universe: Universe) -> dict[int, int]:
    """The places in a public list of the items of rows, and how many rows each has; of those in the list."""
    if isinstance(rows, CountedRows):
        parts = [(batch.column("item"), batch.column("value").to_numpy()) for batch in rows]
    else:
        raw = exact_counts(rows, rows.max_key_bytes).not_private_counts()
        parts = [(raw.items, raw.counts)]
    found = dict[int, int]()
    for items, counts in parts:
        places = universe.positions(items)
        for place, number in zip(places[places >= 0].tolist(), counts[places >= 0].tolist(), strict=True):
            found[place] = found.get(place, 0) + number
    return found


# ---- sketches --------------------------------------------------------------------------------------------------------


def written(items: pa.Array) -> bytes:
    """Items as bytes, to be kept on executors."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("item", items.type)])) as writer:
        writer.write_batch(pa.record_batch([items], names=["item"]))
    found: bytes = sink.getvalue().to_pybytes()
    return found


def read_items(state: Any) -> pa.Array:
    """What was written, as one array."""
    return pa.ipc.open_stream(state).read_all().column("item").combine_chunks()


def _held(shard: int, shift: int, raw: RawCounts) -> pa.RecordBatch:
    """Counters for the driver, items to be kept here until it asks for some, and what binds the two together."""
    counts, items = np.ascontiguousarray(raw.counts, "<i8").tobytes(), written(raw.items)
    digest = hashlib.sha256(b"%d %d %d|" % (shard, shift, len(counts)) + counts + items).digest()
    return row_of(_HELD, shard=shard, shift=shift, counts=counts, items=items, digest=digest)


@dataclass(frozen=True)
class CountItems:
    """The shuffle plan, first stage: items and how often they occur, as far as the rows of a task tell.

    Attributes:
        reading: Rows, that have their number as a value; or of people.
        kind: The type of the items.
        most: Of people: of the different items of a person this many count, once each, those that come first.
    """

    reading: Reading
    kind: pa.DataType
    most: int | None

    def __call__(self, batches: Batches) -> Batches:
        kind = self.kind
        schema = pa.schema([("item", kind), ("n", pa.int64()), ("problem", pa.string())])

        def work() -> Batches:
            for rows in self.reading.parts(batches):
                for items, counts in self._of_rows(rows) if self.most is None else self._of_people(rows, self.most):
                    columns = [items.cast(kind), counts, pa.nulls(len(items), pa.string())]
                    yield pa.record_batch(columns, schema=schema)

        return reporting(schema, batches, work)

    def _of_rows(self, rows: Rows) -> Iterator[tuple[pa.Array, pa.Array]]:
        return ((batch.column("item"), batch.column("value")) for batch in rows)

    def _of_people(self, rows: Rows, most: int) -> Iterator[tuple[pa.Array, pa.Array]]:
        pairs = Pairs(rows)
        values = pairs.values()
        items, counts = np.unique(pairs.first_of(np.ones(len(values), bool), most)[1], return_counts=True)
        yield values.take(pa.array(items)), pa.array(counts.astype(np.int64))


@dataclass(frozen=True)
class Recipe:
    """How to make a sketch: the same on every executor, and drawn once, so that a repeated task repeats its result."""

    capacity: int
    seed: int
    max_key_bytes: int
    max_items: int | None

    def empty(self) -> MisraGries | UserMisraGries:
        """A sketch of nothing."""
        how = {"max_key_bytes": self.max_key_bytes, "seed": self.seed}
        if self.max_items is None:
            return MisraGries(self.capacity, **how)
        return UserMisraGries(self.capacity, self.max_items, oversized="sample", **how)

    def feed(self, sketch: Any, rows: Rows) -> None:
        """Count rows; of people each one's items together."""
        if self.max_items is None or not rows.of_people:
            rows.feed(sketch, self.max_items)
            return
        pairs = Pairs(rows)
        values = pairs.values()
        people, items = pairs.first_of(np.ones(len(values), bool), self.max_items)
        ends = np.cumsum([0, *np.bincount(people)])
        sketch.update(pa.LargeListArray.from_arrays(pa.array(ends), values.take(pa.array(items))))


@dataclass(frozen=True)
class SketchPart:
    """The merge plan, first stage: a sketch of the rows of a task.

    One sketch of all of its crowds: where these end depends on how many rows there are.
    """

    reading: Reading
    recipe: Recipe

    def __call__(self, batches: Batches) -> Batches:
        def work() -> Batches:
            sketch = self.recipe.empty()
            for rows in self.reading.parts(batches):
                self.recipe.feed(sketch, rows)
            yield row_of(_PARTS, part=_partition(), state=pickle.dumps(sketch))

        return reporting(_PARTS, batches, work)


@dataclass(frozen=True)
class HoldShard:
    """The shuffle plan: a partition has its items, with their counts, in an order of their own.

    One sketch of them is all that is kept. It is a function of the rows: the same whenever it is made again.
    """

    recipe: Recipe

    def __call__(self, batches: Batches) -> Batches:
        def work() -> Batches:
            sketch = MisraGries(self.recipe.capacity, max_key_bytes=self.recipe.max_key_bytes, seed=self.recipe.seed)
            for batch in batches:
                for problem in batch.column("problem").drop_null().to_pylist():
                    raise_problem(problem)
                sketch.update_counts(batch.column("item"), batch.column("n").to_numpy())
            yield _held(_partition(), sketch.not_private_offset, sketch.not_private_counts())

        return reporting(_HELD, batches, work)


@dataclass(frozen=True)
class HoldMerged:
    """The merge plan, the root of the tree."""

    recipe: Recipe

    def __call__(self, batches: Batches) -> Batches:
        def work() -> Batches:
            merged = reduce(added, [*(sketch for _, sketch in _founds(batches)), self.recipe.empty()])
            yield _held(0, merged.not_private_offset, merged.not_private_counts())

        return reporting(_HELD, batches, work)


@dataclass(frozen=True)
class HoldSummed:
    """The merge plan with reduced sketches: their entries are added up, item by item."""

    recipe: Recipe

    def __call__(self, batches: Batches) -> Batches:
        def work() -> Batches:
            from discreet.central.summed_entries import summed_entries  # here: it loads the calibration, too

            sketches: list[Any] = [*(sketch for _, sketch in _founds(batches)), self.recipe.empty()]
            yield _held(0, 0, summed_entries(sketches))

        return reporting(_HELD, batches, work)


@dataclass(frozen=True)
class FindNames:
    """The items at the positions that were published: `wanted` has, for a shard, the digest and the positions.

    If Spark lost the shard and made it again, its rows may have come in another order and its sketch may be another
    one. Then the positions mean nothing and the digest differs.
    """

    wanted: dict[int, tuple[bytes, np.ndarray[Any, np.dtype[np.int64]]]]
    kind: pa.DataType

    def __call__(self, batches: Batches) -> Batches:
        schema = pa.schema(
            [("shard", pa.int32()), ("position", pa.int64()), ("item", self.kind), ("problem", pa.string())]
        )
        for batch in batches:
            for row in batch.to_pylist():
                digest, positions = self.wanted.get(row["shard"], (None, np.zeros(0, np.int64)))
                if row["digest"] != digest:
                    yield row_of(schema, problem="changed")
                    continue
                if not len(positions):
                    continue
                items = read_items(row["items"])
                size = len(positions)
                yield pa.record_batch(
                    [
                        pa.array(np.full(size, row["shard"], np.int32)),
                        pa.array(positions),
                        items.take(pa.array(positions)).cast(self.kind),
                        pa.nulls(size, pa.string()),
                    ],
                    schema=schema,
                )
