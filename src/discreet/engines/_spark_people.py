"""People counted by Spark: rows move once, to their person; executors look at crowds, the driver adds up."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812

from discreet.engines import _spark_people_tasks as tasks
from discreet.engines._spark_jobs import collected
from discreet.engines._spark_plans import parallelism, secret_key
from discreet.errors import DataError
from discreet.summaries.people import Counts, People

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
    """People and their items on the executors of a cluster. NOT private. Close it, or use it in a `with` statement.

    Rows move once, to the partition of their person, and are sorted there by a hash of the person. Executors keep them
    as crowds, people with all of their rows in numbers (`_spark_people_tasks`), and every question is one look at the
    crowds. Sums do not depend on how many partitions or crowds there are.

    Nothing random happens on executors: which items of a person with too many take part is decided by a hash under a
    key that the driver draws once, so a task that runs again gives what it gave before. The driver holds every item
    that takes part, with its sum of weights: about 50 bytes and the item's own.
    """

    def __init__(self, rows_of: Any, kind: pa.DataType, nulls: str, *, rows: bool) -> None:
        """`rows_of` has the columns u and i; `kind` is the Arrow type of i."""
        self._rows, self._kind = rows, kind
        self._key = secrets.randbits(62)
        self._names: pa.Array | None = None
        # The hash is not sent, but made again where the rows arrive. Sorting by one number is fast.
        moved = rows_of.repartition(_partitions(rows_of), "u")
        placed = moved.select(F.xxhash64(secret_key(), F.col("u")).alias("h"), "u", "i").sortWithinPartitions("h")
        self._crowds = placed.mapInArrow(tasks.Crowds(nulls, rows), tasks.CROWD).persist(StorageLevel.MEMORY_AND_DISK)

    def __repr__(self) -> str:
        return "SparkPeople() [NOT PRIVATE]"

    def __enter__(self) -> SparkPeople:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the cluster forget everything."""
        self._crowds.unpersist()

    def discovery_weights(self, most_items: int) -> Counts:
        table = self._weights(tasks.FindWeights(self._rows, self._key, most_items, self._kind))
        refused = table.filter(table.column("item").is_null()).column("weight")
        if len(refused):
            raise DataError(tasks.REFUSED[min(refused[0].as_py(), 1)])
        self._names = table.column("item").combine_chunks().cast(self._kind)
        return np.asarray(table.column("weight").to_numpy(), dtype=np.int64)

    def aimed_weights(self, most_items: int, aims: Counts) -> Counts:
        least = int(aims.min(initial=1 << 62))
        more = np.flatnonzero(aims > least)  # few of them: only these go to the executors
        look = tasks.AimWeights(self._key, most_items, self._kind, self.items(more), aims[more], least)
        # Everything that took part has a weight again, and is in the same place.
        return np.asarray(self._weights(look).column("weight").to_numpy(), dtype=np.int64)

    def _weights(self, look: tasks.FindWeights | tasks.AimWeights) -> pa.Table:
        """Items and weights, in the order of the items: nothing depends on which task was done first."""
        found = self._crowds.mapInArrow(look, f"item {_spark_name(self._kind)}, weight long")
        return collected(found.groupBy("item").agg(F.sum("weight").alias("weight"))).sort_by("item")

    def items(self, places: Counts) -> pa.Array:
        assert self._names is not None
        return self._names.take(pa.array(places))

    def lengths(self, places: Counts, weights: Counts) -> tuple[Any, Counts]:
        look = tasks.FindLengths(self._rows, self.items(places), weights)
        found = self._crowds.mapInArrow(look, "squared double, people long")
        table = collected(found.groupBy("squared").agg(F.sum("people").alias("people"))).sort_by("squared")
        return table.column("squared").to_numpy(), np.asarray(table.column("people").to_numpy(), np.int64)

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        look = tasks.FindSums(self._rows, self.items(places), weights, longest)
        table = collected(self._crowds.mapInArrow(look, "place long, sum long"))
        sums = np.zeros(len(places), np.int64)
        np.add.at(sums, table.column("place").to_numpy(), table.column("sum").to_numpy())
        return sums


def _spark_name(kind: pa.DataType) -> str:
    return "bigint" if pa.types.is_integer(kind) else "binary" if pa.types.is_large_binary(kind) else "string"
