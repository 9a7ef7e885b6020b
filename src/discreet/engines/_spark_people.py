"""People counted by Spark: rows move once, to their person; executors look at crowds, the driver adds up."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812

from discreet.engines import _spark_people_tasks as tasks
from discreet.engines._spark_jobs import collected, raise_problem
from discreet.engines._spark_tasks import ITEMS
from discreet.engines.exact_people import OpenPeople
from discreet.summaries.people import MOST_ROWS, MOST_STEPS, Counts, Holdings, ValueRange

if TYPE_CHECKING:
    from discreet.engines._spark_rows import SparkRows


class SparkPeople(OpenPeople):
    """People and their items on the executors of a cluster. NOT private. Close it, or use it in a `with` statement.

    Rows move once, to the partition of their person, and are sorted there by a hash of the person. Executors keep them
    as crowds, people with all of their rows in numbers (`_spark_people_tasks`), and every question is one look at the
    crowds. Sums do not depend on how many partitions or crowds there are.

    Nothing random happens on executors: which items of a person with too many take part is decided by a hash under a
    key that the driver draws once, so a task that runs again gives what it gave before. The driver holds every item
    that takes part, with its sum of weights: about 50 bytes and the item's own.
    """

    def __init__(self, found: SparkRows, *, rows: bool = False, value_range: ValueRange | None = None) -> None:
        """As `people_of`."""
        self._type, self._kind = found.spark_type, ITEMS[found.spark_type]
        self._most = MOST_STEPS if value_range is not None else MOST_ROWS if rows else 1
        self._key = secrets.randbits(62)
        self._names: pa.Array | None = None
        frame, reading = found.chosen("user")
        task = tasks.HoldCrowds(reading, value_range, self._most)
        self._crowds = frame.mapInArrow(task, tasks.CROWD).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            for row in collected(self._crowds.select("problem").where("problem is not null").limit(1)).to_pylist():
                raise_problem(row["problem"])
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return "SparkPeople() [NOT PRIVATE]"

    def close(self) -> None:
        """Let the cluster forget everything."""
        self._crowds.unpersist()

    def discovery_weights(self, most_items: int) -> Counts:
        table = self._weights(tasks.FindWeights(self._most, self._key, most_items, self._kind))
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
        found = self._crowds.mapInArrow(look, f"item {self._type}, weight long")
        return collected(found.groupBy("item").agg(F.sum("weight").alias("weight"))).sort_by("item")

    def items(self, places: Counts) -> pa.Array:
        assert self._names is not None
        return self._names.take(pa.array(places))

    def lengths(self, places: Counts, weights: Counts) -> tuple[Any, Counts]:
        look = tasks.FindLengths(self._most, self.items(places), weights)
        found = self._crowds.mapInArrow(look, "squared double, people long")
        table = collected(found.groupBy("squared").agg(F.sum("people").alias("people"))).sort_by("squared")
        return table.column("squared").to_numpy(), np.asarray(table.column("people").to_numpy(), np.int64)

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        look = tasks.FindSums(self._most, self.items(places), weights, longest)
        table = collected(self._crowds.mapInArrow(look, "place long, sum long"))
        sums = np.zeros(len(places), np.int64)
        np.add.at(sums, table.column("place").to_numpy(), table.column("sum").to_numpy())
        return sums

    def holdings(self, places: Counts) -> Iterator[Holdings]:
        look = tasks.FindHoldings(self._most, self.items(places), np.zeros(0, np.int64))
        for batch in collected(self._crowds.mapInArrow(look, "sizes binary, indices binary")).to_pylist():
            sizes, indices = (np.frombuffer(batch[name], "<i4").astype(np.int64) for name in ("sizes", "indices"))
            yield sizes, indices
