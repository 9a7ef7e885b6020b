"""Sketches of a data frame: executors summarise, the driver draws the noise once, executors name what passed.

A task may run twice: Spark retries what failed, copies what is slow, and makes again what it lost. So no task draws
noise. Executors keep the items of their sketches and send counters; the driver charges the ledger, draws from the
system's source, and asks for the items at the positions that are published. Of the items of the stream only those reach
the driver, and the release is drawn once, whatever is run again. docs/engines.md has the argument.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812

from discreet._data_class import dataclass, replace
from discreet.central import Mechanism, Summed, UserSketch
from discreet.central._base import Prepared, counters_cost_no_noise
from discreet.engines import _spark_tasks as tasks
from discreet.engines._spark_jobs import collected, parallelism, raise_problem, secret_key, tree
from discreet.engines._spark_plans import SparkPlan, choose_plan, spark_plans
from discreet.errors import DiscreetError, ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit, User
from discreet.releases.release import Release
from discreet.summaries import RawCounts

if TYPE_CHECKING:
    from discreet.engines._spark_rows import SparkRows

_NAMED = {"offset": "shuffle", "user": "merge"}


class Sketches:
    """A release of sketches that was checked: nothing was read, paid or drawn.

    *Shuffle*: items are counted as by `groupBy`, go to partitions by a keyed hash, each partition has one sketch, and
    each sketch is released with the whole budget (`central.ShardedOffset`). *Merge*: each partition is summarised where
    it is, sketches are merged in a tree or added up, and the result is released (`central.Merged`, `Summed`, for users'
    sets `UserSketch`). *Auto* compares what they publish and what they move, from public numbers (`choose_plan`).

    Args:
        rows: The rows.
        k: How many items may be listed in all.
        budget: What the release may spend.
        unit: Whose presence is hidden.
        capacity, memory, length: As for `discreet.top_k`.
        lists: Whether each row is the list of a person's items.
        named: The mechanism, where one was asked for: "offset" or "user".
    """

    def __init__(
        self,
        rows: SparkRows,
        k: int,
        budget: Budget,
        unit: Unit,
        *,
        capacity: int | None = None,
        memory: str | None = None,
        length: int | None = None,
        lists: bool = False,
        named: object = "auto",
    ) -> None:
        if not isinstance(unit, (Event, User)):
            raise ParameterError(f"unit must be dc.Event() or dc.User(m) on Spark, not {type(unit).__name__}")
        if lists and not isinstance(unit, User):
            raise ParameterError("each row of a column of arrays is one person; pass unit=dc.User()")
        frame = rows.frame
        plan = frame.plan if named == "auto" else _NAMED.get(str(named))
        if plan is None or (named == "user" and not (lists or rows.of_people)):
            raise ParameterError("on Spark, mechanism must be 'offset', or 'user' for sampled items of people")
        if lists and plan == "shuffle":
            raise ParameterError("a column of arrays needs the merge plan; for others, explode it and name the user")
        users = lists or rows.of_people
        plans = spark_plans(
            budget, k=k, unit=unit, length=length, partitions=frame.partitions or parallelism(frame.session),
            capacity=capacity, memory=memory, users=users,
        )  # fmt: skip
        chosen = choose_plan("merge" if lists else plan, plans, frame.shuffle_limit)
        if lists and plan == "auto":
            chosen = replace(chosen, because="merge plan: a column of arrays has one row a user")
        if memory is not None and not counters_cost_no_noise(type(chosen.mechanism)):
            raise ParameterError(
                "memory cannot be used with sketches of users, whose noise grows with the counters; give capacity"
            )
        self.plan, self._rows, self._of_people = chosen, rows, rows.of_people
        self._most = unit.limit if users and isinstance(unit, User) else None
        sets = isinstance(chosen.mechanism, UserSketch)
        self.prepared = Prepared(chosen.mechanism, budget, because=chosen.because, bounded=rows.of_people or sets)

    def count(self) -> Withheld:
        """Run the job that reads the data. Items stay where they are."""
        held = self.held().persist(self._storage())
        try:
            return Withheld.collected(held, self.plan)
        except BaseException:
            held.unpersist()
            raise

    def _storage(self) -> Any:
        """A sketch is small and costs a pass over the data: where there is a second machine, it has a copy."""
        master = str(self._rows.frame.session.conf.get("spark.master", ""))
        alone = master == "local" or master.startswith("local[")
        return StorageLevel.MEMORY_AND_DISK if alone else StorageLevel.MEMORY_AND_DISK_2

    def held(self) -> Any:
        """The frame of summaries, one row each, with their items; lazy."""
        plan, rows = self.plan, self._rows
        sets = self._most if isinstance(plan.mechanism, UserSketch) else None
        recipe = tasks.Recipe(plan.capacity, secrets.randbits(63), rows.max_key_bytes, sets)
        people = self._of_people
        if plan.plan == "shuffle":
            frame, reading = rows.chosen("user", plan.partitions) if people else rows.counted()
            task = tasks.CountItems(reading, tasks.ITEMS[rows.spark_type], self._most if people else None)
            counted = frame.mapInArrow(task, f"item {rows.spark_type}, n long, problem string")
            # Each item goes to the shard, and takes the place in it, that a keyed hash of it says. An explicit number
            # of partitions: adaptive execution neither joins nor splits them.
            keyed = counted.withColumn("key", F.xxhash64(secret_key(), F.col("item")))
            shards = keyed.repartition(plan.partitions, "key").sortWithinPartitions("key", "item")
            return shards.select("item", "n", "problem").mapInArrow(tasks.HoldShard(recipe), tasks.HELD)
        # An explicit number of partitions: adaptive execution joins others by their sizes, which every row changes.
        frame, reading = rows.chosen("user" if people else None, plan.partitions)
        parts = frame.mapInArrow(tasks.SketchPart(reading, recipe), tasks.PARTS)
        if isinstance(plan.mechanism, Summed):
            return parts.repartition(1).mapInArrow(tasks.HoldSummed(recipe), tasks.HELD)
        return tree(parts, plan.partitions, 1).mapInArrow(tasks.HoldMerged(recipe), tasks.HELD)

    def _assumed(self) -> tuple[str, ...]:
        """What the guarantee rests on beside the mechanism: streams that are neighbours, row by row."""
        if self.plan.plan == "shuffle" or self._of_people:
            return ()  # where an item, or a user, goes and comes in order is a function of it
        return ("which rows Spark reads together, and in which order, does not depend on another row's presence",)

    def draw(self, found: Withheld, source: RandomSource, k: int | None) -> Release:
        """The release, of the k largest and all that tie with the last of them."""
        drawn = found.draw(source)
        if k is not None and len(drawn) > k:
            # The order of equal counts is by item, which the driver does not know yet.
            drawn = drawn.head(int(np.count_nonzero(drawn.counts >= drawn.counts[k - 1])))
        guarantee = drawn.guarantee.assuming(*self._assumed(), chosen_because=self.plan.because)
        items = found.names(np.array(drawn.items, np.int64), self._rows.spark_type)
        return drawn.with_items(items).with_guarantee(guarantee)


@dataclass(frozen=True)
class Withheld:
    """Summaries of which the driver knows the counters, and a position for each item. NOT PRIVATE.

    It has what mechanisms read of a summary, with positions for items: noise does not depend on what an item is called.
    """

    held: Any
    mechanism: Mechanism
    counts: list[np.ndarray[Any, np.dtype[np.int64]]]
    not_private_offsets: list[int]
    digests: list[bytes]

    @classmethod
    def collected(cls, held: Any, plan: SparkPlan) -> Withheld:
        """What summaries say without their items."""
        rows = collected(held.select("shard", "shift", "counts", "digest", "problem")).to_pylist()
        for row in rows:
            raise_problem(row["problem"])
        shards = plan.partitions if plan.plan == "shuffle" else 1
        by_shard = {row["shard"]: row for row in rows}
        if len(by_shard) != len(rows) or not set(by_shard) <= set(range(shards)):
            # An item in two sketches would be paid for once and released twice.
            raise DiscreetError(
                "Spark split or joined partitions of the plan, which the guarantee does not "
                "cover; nothing was published"
            )
        empty = {"shift": 0, "counts": b"", "digest": b""}
        found = [by_shard.get(shard, empty) for shard in range(shards)]
        return cls(
            held,
            plan.mechanism,
            [np.frombuffer(row["counts"], "<i8").astype(np.int64) for row in found],
            [row["shift"] for row in found],
            [row["digest"] for row in found],
        )

    def close(self) -> None:
        """Let the cluster forget them."""
        self.held.unpersist()

    @property
    def _starts(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.cumsum([0, *(len(part) for part in self.counts)])

    @property
    def not_private_sizes(self) -> list[int]:
        """How many counters each sketch has. Not private."""
        return [len(part) for part in self.counts]

    def not_private_counts(self) -> RawCounts:
        """All counters, with positions for items. Not private."""
        counts = np.concatenate(self.counts)
        return RawCounts(pa.array(np.arange(len(counts), dtype=np.int64)), counts)

    def draw(self, source: RandomSource) -> Release:
        """The release, with positions for items: the only place where noise is drawn."""
        entries = isinstance(self.mechanism, Summed)
        return self.mechanism._publish(self.not_private_counts() if entries else self, source)

    def names(self, positions: np.ndarray[Any, np.dtype[np.int64]], spark_type: str) -> pa.Array:
        """The items at the positions that are published, from the executors that hold them."""
        shards = np.searchsorted(self._starts, positions, side="right") - 1
        local = positions - self._starts[shards]
        # Every shard that holds something is compared, whether or not it publishes: otherwise it would depend on the
        # draw whether a summary that was made again is noticed, and a repetition would draw again.
        wanted = {shard: (digest, local[shards == shard]) for shard, digest in enumerate(self.digests) if digest}
        finder = tasks.FindNames(wanted, tasks.ITEMS[spark_type])
        said = f"shard int, position long, item {spark_type}, problem string"
        found = collected(self.held.select("shard", "digest", "items").mapInArrow(finder, said))
        if found.column("problem").null_count < len(found):
            raise DiscreetError(
                "Spark lost a summary after the charge and rebuilt it from rows in another order. Nothing was "
                "published. Repeat the call with the same charge_id; it is not charged again"
            )
        rows = found.to_pylist()
        named = {(row["shard"], row["position"]): row["item"] for row in rows}
        if len(set(named.values())) != len(positions):
            raise DiscreetError("the shards are not disjoint, or Spark lost some of them; nothing was published")
        items = [named[int(s), int(p)] for s, p in zip(shards, local, strict=True)]
        return pa.array(items, tasks.ITEMS[spark_type] if items else pa.large_string())
