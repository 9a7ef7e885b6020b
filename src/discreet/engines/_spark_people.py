"""People counted by Spark: data frame operations for sizes, vectors and sums, in whole numbers."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from discreet.errors import DataError
from discreet.summaries._base import DEFAULT_MAX_KEY_BYTES
from discreet.summaries.people import LENGTH, MOST_ROWS, Counts, People

__all__ = ["SparkPeople"]


class SparkPeople(People):
    """People and their items in data frames. NOT private. Close it, or use it in a `with` statement.

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
        self._chosen: tuple[bytes, Any, Any] | None = None
        if not pa.types.is_integer(kind):
            rows_of = rows_of.filter(F.col("i").isNull() | (F.octet_length("i") <= DEFAULT_MAX_KEY_BYTES))
        pairs = rows_of.groupBy("u", "i").agg(F.count("*").alias("n"))
        self._pairs = self._keep(pairs)
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
        # A hash of the item, and of all of the person's: people with other items choose anew.
        keyed = self._pairs.withColumn("h", F.xxhash64("i", F.lit(self._key)))
        owners = keyed.groupBy("u").agg(F.count("*").alias("d"), F.expr("bit_xor(h)").alias("own"))
        sized = keyed.join(owners, "u")
        ranked = sized.filter(F.col("d") > most_items).withColumn(
            "r", F.row_number().over(Window.partitionBy("u").orderBy(F.xxhash64("h", "own"), "i"))
        )
        part = (
            sized.filter(F.col("d") <= most_items)
            .select("i", "d")
            .union(ranked.filter(F.col("r") <= most_items).select("i", F.lit(most_items).alias("d")))
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
        _, long = self._vectors(places, weights)
        found = long.groupBy(F.least(F.col("q"), F.lit(float(2**62))).cast("long").alias("q")).count().toArrow()
        found = found.sort_by("q")
        return (np.asarray(found.column(name).to_numpy(), dtype=np.int64) for name in ("q", "count"))  # type: ignore[return-value]

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        chosen, long = self._vectors(places, weights)
        length = F.greatest(F.sqrt(F.col("q")), F.lit(float(longest)))
        entry = F.floor(F.lit(float(LENGTH - 1)) * F.col("v").cast("double") / length).cast("long")
        found = chosen.join(long, "u").groupBy("index").agg(F.sum(entry).alias("s")).toArrow()
        sums = np.zeros(len(places), np.int64)
        sums[found.column("index").to_numpy()] = found.column("s").to_numpy()
        return sums

    def _vectors(self, places: Counts, weights: Counts) -> tuple[Any, Any]:
        """The entries of the vectors over these items, and every person's squared length, a whole number."""
        asked = places.tobytes() + weights.tobytes()
        if self._chosen is None or self._chosen[0] != asked:
            session = self._pairs.sparkSession
            wanted = pa.table({"i": self.items(places), "index": np.arange(len(places)), "weight": weights})
            value = F.least("n", F.lit(MOST_ROWS)) * F.col("weight") if self._rows else F.col("weight")
            chosen = self._keep(
                self._pairs.join(F.broadcast(session.createDataFrame(wanted)), "i").select(
                    "u", "index", value.alias("v")
                )
            )
            squares = (F.col("v").cast("decimal(19,0)") * F.col("v").cast("decimal(19,0)")).cast("decimal(38,0)")
            long = self._keep(chosen.groupBy("u").agg(F.sum(squares).cast("double").alias("q")))
            self._chosen = (asked, chosen, long)
        return self._chosen[1:]
