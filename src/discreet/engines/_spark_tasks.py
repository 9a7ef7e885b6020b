"""What executors run. Each task takes Arrow batches and yields rows that hold summaries; nothing here is random noise.

A task that fails for its data says so in a row, `problem`, instead of raising: Spark would run it four times and write
a trace to its logs. Messages hold no items.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import DiscreetError
from discreet.summaries import MisraGries, RawCounts, UserMisraGries

__all__ = [
    *("HELD", "PARTS", "FindNames", "HoldMerged", "HoldShard", "HoldSummed", "MergeParts", "Recipe", "SketchPart"),
    *("read_items", "written"),
]

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
Sketch = MisraGries | UserMisraGries


@dataclass(frozen=True)
class Recipe:
    """How to make a summary: the same on every executor, and drawn once, so that a repeated task repeats its result."""

    capacity: int
    seed: int
    nulls: str
    max_items: int | None = None
    sample: bool = False

    def sketch(self, batches: Batches) -> Sketch:
        """The summary of the first column of all batches."""
        made: Sketch
        if self.max_items is None:
            made = MisraGries(self.capacity, seed=self.seed)
        else:
            oversized = "sample" if self.sample else "error"
            made = UserMisraGries(self.capacity, self.max_items, oversized=oversized, seed=self.seed)
        for batch in batches:
            made.update(batch.column(0), nulls=self.nulls)
        return made

    def counted(self, batches: Batches) -> MisraGries:
        """The summary of items and how often each occurs: of that many events of the first, then of the second..."""
        made = MisraGries(self.capacity, seed=self.seed)
        for batch in batches:
            made.update_counts(batch.column(0), batch.column(1).to_numpy())
        return made

    def load(self, state: bytes) -> Sketch:
        """A summary that another task made."""
        return (MisraGries if self.max_items is None else UserMisraGries).from_bytes(state)


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def _row(schema: pa.Schema, **values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{name: values.get(name) for name in schema.names}], schema)


def _reporting(schema: pa.Schema, work: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The rows of the work, or one that says what is wrong with the data."""
    try:
        yield from work()
    except DiscreetError as error:
        yield _row(schema, problem=f"{type(error).__name__}: {error}")


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
    return _row(_HELD, shard=shard, shift=shift, counts=counts, items=items, digest=digest)


@dataclass(frozen=True)
class HoldShard:
    """The shuffle plan: a partition has its items, each once with its count, in an order of their own.

    One sketch of them is all that is kept. It is a function of the rows: the same whenever it is made again.
    """

    recipe: Recipe

    def __call__(self, batches: Batches) -> Batches:
        def work() -> Batches:
            sketch = self.recipe.counted(batches)
            yield _held(_partition(), sketch.not_private_offset, sketch.not_private_counts())

        return _reporting(_HELD, work)


@dataclass(frozen=True)
class SketchPart:
    """The merge plan, first stage: a sketch of the rows of a partition."""

    recipe: Recipe

    def __call__(self, batches: Batches) -> Batches:
        def work() -> Batches:
            yield _row(_PARTS, part=_partition(), state=self.recipe.sketch(batches).to_bytes())

        return _reporting(_PARTS, work)


def _from_parts(
    schema: pa.Schema, recipe: Recipe, batches: Batches, work: Callable[[list[Sketch], int], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Work on the sketches of several tasks, by the number of their part: the order of merges is a fixed one."""

    def loaded() -> Batches:
        rows = [row for batch in batches for row in batch.to_pylist()]
        problem = next((row["problem"] for row in rows if row["problem"] is not None), None)
        if problem is not None:
            yield _row(schema, problem=problem)
            return
        rows.sort(key=lambda row: int(row["part"]))
        yield from work([recipe.load(row["state"]) for row in rows], rows[0]["part"] if rows else 0)

    return _reporting(schema, loaded)


def _merged(sketches: list[Sketch]) -> Sketch:
    first = sketches[0]
    for other in sketches[1:]:
        first.merge(other)  # type: ignore[arg-type]
    return first


@dataclass(frozen=True)
class MergeParts:
    """The merge plan, a level of the tree: the sketches of a group become one."""

    recipe: Recipe

    def __call__(self, batches: Batches) -> Batches:
        def work(sketches: list[Sketch], part: int) -> Batches:
            if sketches:
                yield _row(_PARTS, part=part, state=_merged(sketches).to_bytes())

        return _from_parts(_PARTS, self.recipe, batches, work)


@dataclass(frozen=True)
class HoldMerged:
    """The merge plan, the root of the tree."""

    recipe: Recipe

    def __call__(self, batches: Batches) -> Batches:
        def work(sketches: list[Sketch], part: int) -> Batches:
            merged = _merged([*sketches, self.recipe.sketch(iter(()))])
            yield _held(0, merged.not_private_offset, merged.not_private_counts())

        return _from_parts(_HELD, self.recipe, batches, work)


@dataclass(frozen=True)
class HoldSummed:
    """The merge plan with reduced sketches: their entries are added up, item by item."""

    recipe: Recipe

    def __call__(self, batches: Batches) -> Batches:
        def work(sketches: list[Sketch], part: int) -> Batches:
            from discreet.central.summed_entries import summed_entries  # here: it loads the calibration, too

            yield _held(0, 0, summed_entries([*sketches, self.recipe.sketch(iter(()))]))  # type: ignore[list-item]

        return _from_parts(_HELD, self.recipe, batches, work)


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
                    yield _row(schema, problem="changed")
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
