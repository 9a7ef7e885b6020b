"""People counted by Spark: data frame operations for sizes, vectors and sums, in whole numbers."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from discreet.engines._spark_plans import parallelism
from discreet.errors import DataError
from discreet.summaries._base import DEFAULT_MAX_KEY_BYTES
from discreet.summaries.people import LENGTH, MOST_ROWS, Counts, People

__all__ = ["SparkPeople"]


_PARTITION_BYTES = 2**25


def _partitions(rows_of: Any) -> int:
    """As many as the estimated size asks for: from one for each task that runs at once to those Spark shuffles with.

    Adaptive execution would leave a kept frame in 200 of any size: as many tiny tasks whenever it is looked at.
    """
    most = int(rows_of.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    try:
        size = int(str(rows_of._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except AttributeError:  # Spark Connect does not tell
        return most
    return min(most, max(parallelism(rows_of.sparkSession), size // _PARTITION_BYTES))


class SparkPeople(People):
    """People and their items in data frames. NOT private. Close it, or use it in a `with` statement.

    Rows move once, to the partition of their person; what is asked of a person is computed there, from what is kept.
    Sums do not depend on how many partitions there are.

    Nothing random happens on executors: which items of a person with too many take part is decided by a hash under a
    key that the driver draws once, so a task that runs again gives what it gave before. The driver holds every item
    that takes part, with its sum of weights: about 50 bytes and the item's own.
    """

    def __init__(self, rows_of: Any, kind: pa.DataType, nulls: str, *, rows: bool) -> None:
        """`rows_of` has the columns u and i; `kind` is the Arrow type of i."""
        self._rows, self._kind = rows, kind
        self._key = secrets.randbits(62)
        self._kept: list[Any] = []
        self._names: pa.Array | None = None
        self._chosen: tuple[bytes, Any] | None = None
        if not pa.types.is_integer(kind):
            rows_of = rows_of.filter(F.col("i").isNull() | (F.octet_length("i") <= DEFAULT_MAX_KEY_BYTES))
        moved = rows_of.repartition(_partitions(rows_of), "u")
        pairs = moved.groupBy("u", "i").agg(F.count("*").alias("n")) if rows else moved.dropDuplicates()
        items = F.count("i").over(Window.partitionBy("u"))
        self._pairs = self._keep(pairs.withColumn("d", items))
        missing = F.col("u").isNull() | F.col("i").isNull()
        if not self._pairs.filter(missing).isEmpty():
            if nulls != "skip":
                self.close()
                raise DataError('the columns of people and items have nulls; nulls="skip" leaves those rows out')
            self._pairs = self._pairs.filter(~missing)

    def __repr__(self) -> str:
        return "SparkPeople() [NOT PRIVATE]"

    def __enter__(self) -> SparkPeople:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the cluster forget everything."""
        for frame in self._kept:
            frame.unpersist()
        self._kept = []

    def _keep(self, frame: Any) -> Any:
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(kept)
        return kept

    def discovery_weights(self, most_items: int) -> Counts:
        person = Window.partitionBy("u")
        # A hash of the item, and of all of the person's: people with other items choose anew.
        many = self._pairs.filter(F.col("d") > most_items).withColumn("h", F.xxhash64("i", F.lit(self._key)))
        order = F.xxhash64("h", F.expr("bit_xor(h)").over(person))
        ranked = many.withColumn("o", order).withColumn("r", F.row_number().over(person.orderBy("o", "i")))
        part = (
            self._pairs.filter(F.col("d") <= most_items)
            .select("i", "d")
            .union(ranked.filter(F.col("r") <= most_items).select("i", F.lit(most_items).cast("long").alias("d")))
        )
        weight = F.floor(F.lit(float(LENGTH - 1)) / F.sqrt(F.col("d").cast("double"))).cast("long")
        table = part.select("i", weight.alias("w")).groupBy("i").agg(F.sum("w").alias("h")).toArrow()
        # In the order of the items, so that nothing depends on which task was done first.
        table = table.sort_by("i")
        self._names = table.column("i").combine_chunks().cast(self._kind)
        return np.asarray(table.column("h").to_numpy(), dtype=np.int64)

    def items(self, places: Counts) -> pa.Array:
        assert self._names is not None
        return self._names.take(pa.array(places))

    def lengths(self, places: Counts, weights: Counts) -> tuple[Counts, Counts]:
        found = self._vectors(places, weights).groupBy("q", "entries").count().toArrow()
        squared = np.minimum(found.column("q").to_numpy(), 2.0**62).astype(np.int64)
        values, back = np.unique(squared, return_inverse=True)
        people = np.zeros(len(values), np.int64)
        np.add.at(people, back, found.column("count").to_numpy() // found.column("entries").to_numpy())
        return values, people

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        length = F.greatest(F.sqrt(F.col("q")), F.lit(float(longest)))
        entry = F.floor(F.lit(float(LENGTH - 1)) * F.col("v").cast("double") / length).cast("long")
        found = self._vectors(places, weights).groupBy("index").agg(F.sum(entry).alias("s")).toArrow()
        sums = np.zeros(len(places), np.int64)
        sums[found.column("index").to_numpy()] = found.column("s").to_numpy()
        return sums

    def _vectors(self, places: Counts, weights: Counts) -> Any:
        """The entries v of the vectors over these items; with each its person's squared length, a whole number, and
        how many entries that person has.
        """
        asked = places.tobytes() + weights.tobytes()
        if self._chosen is None or self._chosen[0] != asked:
            session = self._pairs.sparkSession
            wanted = pa.table(
                {"i": self.items(places), "index": np.arange(len(places), dtype=np.int32), "weight": weights}
            )
            value = F.least("n", F.lit(MOST_ROWS)) * F.col("weight") if self._rows else F.col("weight")
            chosen = self._pairs.join(F.broadcast(session.createDataFrame(wanted)), "i").select(
                "u", "index", value.alias("v")
            )
            largest = (MOST_ROWS if self._rows else 1) * int(weights.max(initial=0))
            fits = largest**2 * len(places) < 2**63  # else whole numbers of any size
            v = F.col("v") if fits else F.col("v").cast("decimal(19,0)")
            square = v * v if fits else (v * v).cast("decimal(38,0)")
            person = Window.partitionBy("u")
            squared = F.sum(square).over(person).cast("double").alias("q")
            kept = chosen.select("index", "v", squared, F.count("*").over(person).cast("int").alias("entries"))
            self._chosen = asked, self._keep(kept)
        return self._chosen[1]
