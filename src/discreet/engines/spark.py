"""Releases of a Spark column: executors summarise, the driver draws the noise once, executors name what passed.

A task may run twice: Spark retries what failed, copies what is slow, and makes again what it lost. So no task draws
noise. Executors keep the items of their sketches and send counters; the driver charges the ledger, draws from the
system's source, and asks for the items at the positions that are published. Of the items of the stream only those reach
the driver, and the release is drawn once, whatever is run again. docs/engines.md has the argument.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any
from warnings import warn

import numpy as np
import pyarrow as pa

from discreet.central import Mechanism, Summed, UserSketch
from discreet.central.capacity import counters_cost_no_noise
from discreet.central.prepared import Prepared, prepare_people
from discreet.engines import _spark_tasks as tasks
from discreet.engines._spark_jobs import collected
from discreet.engines._spark_plans import (
    PLANS,
    SparkPlan,
    choose_plan,
    needs_users,
    parallelism,
    secret_key,
    spark_plans,
)
from discreet.errors import DataError, DiscreetError, ParameterError
from discreet.events.values import published_type
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.charge_terms import question_of
from discreet.privacy.checks import whole_number
from discreet.privacy.ledger import Account
from discreet.releases.payment import Payer, is_stored
from discreet.releases.release import Release
from discreet.summaries import RawCounts
from discreet.summaries._base import DEFAULT_MAX_KEY_BYTES

try:
    from pyspark import StorageLevel
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql import types as T  # noqa: N812
except ImportError as error:
    raise ImportError("discreet.engines.spark needs PySpark 4 and Java 17: pip install 'discreet[spark]'") from error

__all__ = ["PLANS", "SparkPlan", "choose_plan", "release", "spark_plans", "top_k"]

_FAN_IN = 16  # sketches that one task merges
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_FRACTIONS = (T.FloatType, T.DoubleType)
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"  # JSON has milliseconds by default, and leaves null fields out
_AS_JSON = {"timestampFormat": _TIME, "timestampNTZFormat": _TIME, "timeZone": "UTC", "ignoreNullFields": "false"}
_KINDS = {"string": pa.large_string(), "binary": pa.large_binary(), "long": pa.int64()}


def _also_in_former_words(*places: str) -> Callable[[Callable[..., Release]], Callable[..., Release]]:
    """Let a function take its arguments also as the version before had them, in these places, and say so."""
    names = {"user_column": "user", "stream_length": "length"}

    def decorate(function: Callable[..., Release]) -> Callable[..., Release]:
        @wraps(function)
        def call(dataframe: Any, *given: Any, **words: Any) -> Release:
            former = [name for name in names if name in words]
            if former or (given and isinstance(given[0], str)):
                told = ", ".join(f"{name} is now called {names[name]}" for name in former) or "give column by its name"
                warn(f"spark.{function.__name__}: {told}", DeprecationWarning, stacklevel=2)
            if given and isinstance(given[0], str):
                words, given = {**dict(zip(places, given, strict=False)), **words}, ()
            return function(dataframe, *given, **{names.get(name, name): value for name, value in words.items()})

        return call

    return decorate


@_also_in_former_words("column", "k", "budget", "plan", "unit")
def top_k(
    dataframe: Any,
    k: int,
    budget: Budget,
    *,
    column: str,
    user: str | None = None,
    unit: Unit | None = None,
    max_items: int | None = None,
    count: str = "users",
    pairs: bool | int | None = None,
    plan: str = "auto",
    capacity: int | None = None,
    memory: str | None = None,
    partitions: int | None = None,
    length: int | None = None,
    shuffle_limit: int | None = None,
    nulls: str = "error",
    ledger: Account | None = None,
    charge_id: str | None = None,
    source: RandomSource | None = None,
) -> Release:
    """The most frequent items of a column, privately: at most k of them, largest noisy count first.

    With `user` people are hidden, each with all of their rows, by the mechanism of `discreet.top_k(..., user=...)`:
    data frame operations count, the driver charges and draws. The rest is about rows, and users in one pass.

    The contract, the guarantee and the result are those of `discreet.top_k`. The column is read once, by one job; a
    second, small one fetches the items that are published.

    *Shuffle*: items are counted as by `groupBy`, go to partitions by a keyed hash, each partition has one sketch, and
    each sketch is released with the whole budget (`central.ShardedOffset`). *Merge*: each partition is
    summarised where it is, sketches are merged in a tree or added up, and the result is released
    (`central.Merged`, `Summed`, for users' sets `UserSketch`). *Auto* compares what they publish and
    what they move, from public numbers, and says in `guarantee.chosen_because` what it found; see `choose_plan`.

    Args:
        dataframe: A Spark data frame.
        k: How many items to list at most.
        budget: What the release may spend.
        column: Column of strings, bytes or whole numbers; or of arrays of them, one row a user.
        user: Column that says whose row it is: hides people, and nobody has to say how many items they have. With
            `unit=User(m)` sketches count instead: of a user's different items a uniform random sample of m, each once.
        unit: Whose presence is hidden; `Event()` by default. `User(m)` without `user` is group privacy: the caller sees
            to it that no user has more than m rows.
        max_items: As for `discreet.top_k`; so is `count`.
        pairs: Refused: Spark does not count what people have together.
        plan: "auto", "shuffle" or "merge".
        capacity: The counters of each sketch; by default chosen from public numbers: 65,536, which take memory as items
            come, of up to 256 sketches.
        memory: In place of `capacity`: a size such as "2GB" for the Python process of a task; a sketch has as many
            counters as it has room for. For plans whose noise does not grow with them.
        partitions: How many sketches; by default as many as the cluster runs tasks at once, at least 2. Public.
        length: A public number, at least as many as there are events. See docs/privacy/units.md.
        shuffle_limit: For "auto": the most bytes that a shuffle may move; by default 128 GiB a partition.
        nulls: "error" refuses nulls, "skip" leaves rows with them out.
        ledger: The account that pays, after the column was read and before noise is drawn.
        charge_id: Names the charge. Repeating an id returns the release stored under it and reads nothing. If the
            cluster fails after the charge, a repetition with the same id is not charged again.
        source: For tests and audits only. A release made with a seeded source is NOT private and says so.
    """
    k = whole_number("k", k)
    if pairs:
        raise ParameterError(
            "pairs are not counted on Spark: write the columns of people and items to Parquet, and give that to "
            "discreet.top_k, which counts on disk what does not fit in memory"
        )
    question = question_of(
        "top on Spark", column=column, k=k, plan=plan, unit=None if unit is None else unit.to_dict(), user=user,
        max_items=max_items, count=count, capacity=capacity, memory=memory, partitions=partitions, nulls=nulls,
        length=length, shuffle_limit=shuffle_limit,
    )  # fmt: skip
    payer = Payer(ledger, charge_id, source)
    stored: Release | None = payer.stored(budget, question)
    if stored is not None:
        return stored
    if user is not None and unit in (None, User()):
        if plan != "auto" or any(value is not None for value in (capacity, memory, partitions, length)):
            raise ParameterError(
                "user hides people without sketches: leave out plan, capacity, memory, partitions and length, or give "
                "unit=dc.User(m)"
            )
        return _top_k_of_people(dataframe, column, user, k, budget, max_items, count, nulls, payer, question)
    if max_items is not None or count != "users":
        raise ParameterError("max_items and count are for people: give user, the column that says whose row it is")
    request = _Request.checked(
        dataframe, column, k, budget, plan, unit, user=user, capacity=capacity, memory=memory,
        partitions=partitions, nulls=nulls, length=length, shuffle_limit=shuffle_limit,
    )  # fmt: skip
    return request.run(payer, k, question).head(k)


def _top_k_of_people(
    dataframe: Any,
    column: str,
    user: str,
    k: int,
    budget: Budget,
    max_items: int | None,
    count: str,
    nulls: str,
    payer: Payer,
    question: Mapping[str, object],
) -> Release:
    from discreet.engines._spark_people import SparkPeople

    if not (hasattr(dataframe, "mapInArrow") and hasattr(dataframe, "schema")):
        raise ParameterError(f"dataframe must be a Spark DataFrame, not {type(dataframe).__name__}")
    prepared = prepare_people(k, budget, max_items=max_items, count=count)
    kind, nested = item_type(dataframe, column)
    if nested:
        raise ParameterError("a column of arrays has one row a person: explode it, with a column that names the person")
    rows_of = dataframe.select(_whose(dataframe, user).alias("u"), F.col(_quoted(column)).cast(kind).alias("i"))
    said = {"columns": {"item": column, "user": user}, "nulls": nulls, "count": count, "max_items": max_items}
    with SparkPeople(rows_of, _KINDS[kind], nulls, rows=count == "rows") as people:
        prepared.mechanism.check(people)
        drawn: Release = payer.pay(
            prepared.bill(question), lambda: prepared.draw(people, payer.drawn_from), {"k": k, **said}
        )
        return drawn


@_also_in_former_words("column", "budget", "plan", "unit")
def release(
    dataframe: Any,
    budget: Budget,
    *,
    column: str,
    user: str | None = None,
    unit: Unit | None = None,
    plan: str = "auto",
    capacity: int | None = None,
    memory: str | None = None,
    partitions: int | None = None,
    length: int | None = None,
    shuffle_limit: int | None = None,
    nulls: str = "error",
    ledger: Account | None = None,
    charge_id: str | None = None,
    source: RandomSource | None = None,
) -> Release:
    """Everything of a column that passes the threshold, as a private histogram. The arguments are those of `top_k`."""
    request = _Request.checked(
        dataframe, column, 100, budget, plan, unit, user=user, capacity=capacity, memory=memory,
        partitions=partitions, nulls=nulls, length=length, shuffle_limit=shuffle_limit,
    )  # fmt: skip
    question = question_of(
        "release on Spark", column=column, plan=plan, unit=None if unit is None else unit.to_dict(),
        user=user, nulls=nulls, length=length, shuffle_limit=shuffle_limit,
        sizes=request.sizes,
    )  # fmt: skip
    return request.run(Payer(ledger, charge_id, source), None, question)


@dataclass(frozen=True)
class _Request:
    """A release that was checked: nothing was read, paid or drawn."""

    dataframe: Any
    column: str
    kind: str  # of the items, in Spark's words
    nested: bool
    budget: Budget
    unit: Unit
    user: str | None
    nulls: str
    plan: SparkPlan
    sizes: dict[str, object]  # what was said of capacity, partitions and memory

    @classmethod
    def checked(
        cls,
        dataframe: Any,
        column: str,
        k: int,
        budget: Budget,
        plan: str,
        unit: Unit | None,
        *,
        user: str | None = None,
        capacity: int | None = None,
        memory: str | None = None,
        partitions: int | None = None,
        nulls: str = "error",
        length: int | None = None,
        shuffle_limit: int | None = None,
    ) -> _Request:
        if not (hasattr(dataframe, "mapInArrow") and hasattr(dataframe, "schema")):
            raise ParameterError(f"dataframe must be a Spark DataFrame, not {type(dataframe).__name__}")
        if getattr(dataframe, "isStreaming", False):
            raise ParameterError("a streaming data frame is released batch by batch: use engines.spark_streaming.Ticks")
        as_budget(budget)
        unit = Event() if unit is None else unit
        if not isinstance(unit, (Event, User)):
            raise ParameterError(f"unit must be dc.Event() or dc.User(m) on Spark, not {type(unit).__name__}")
        if plan not in PLANS:
            raise ParameterError(f"plan must be one of {', '.join(PLANS)}, not {plan!r}")
        if nulls not in ("error", "skip"):
            raise ParameterError(f"nulls must be 'error' or 'skip', not {nulls!r}")
        kind, nested = item_type(dataframe, column)
        if user is not None:
            _field(dataframe, user)
        if nested and user is not None:
            raise ParameterError("a column of arrays has one row a user: leave user out")
        if nested and plan == "shuffle":
            raise ParameterError("a column of arrays is released by the merge plan; explode it and name the user")
        users = nested or user is not None
        if users:
            needs_users(unit)
        sizes: dict[str, object] = {"capacity": capacity, "partitions": partitions}
        if memory is not None:
            sizes["memory"] = memory
        if partitions is None:
            partitions = parallelism(dataframe.sparkSession)
        plans = spark_plans(
            budget, k=k, unit=unit, length=length, partitions=partitions, capacity=capacity, memory=memory,
            users=users,
        )  # fmt: skip
        if shuffle_limit is not None:
            shuffle_limit = whole_number("shuffle_limit", shuffle_limit, 0)
        chosen = choose_plan("merge" if nested else plan, plans, shuffle_limit)
        if nested and plan == "auto":
            chosen = dataclasses.replace(chosen, because="merge plan: a column of arrays has one row a user")
        if memory is not None and not counters_cost_no_noise(type(chosen.mechanism)):
            raise ParameterError(
                "memory says how many counters there are where they cost no noise: give capacity for sketches of users"
            )
        return cls(dataframe, column, kind, nested, budget, unit, user, nulls, chosen, sizes)

    def run(self, payer: Payer, k: int | None, question: Mapping[str, object]) -> Release:
        """Read, charge, draw, fetch the names, store, return."""
        bounded = self.user is not None or (self.nested and isinstance(self.plan.mechanism, UserSketch))
        prepared = Prepared(self.plan.mechanism, self.budget, bounded=bounded)
        bill = prepared.bill(question, ", on Spark" if k is None else f", on Spark, the {k} largest")
        if is_stored(payer.account, payer.charge_id):
            stored: Release = payer.pay(bill, _never, {})
            return stored
        held = self._held().persist(self._storage())
        try:
            withheld = Withheld.collected(held, self.plan)
            columns = {"item": self.column, "user": self.user}
            said = {**prepared.chosen, "nulls": self.nulls, "partitions": self.plan.partitions}
            drawn: Release = payer.pay(
                bill,
                lambda: self._published(held, withheld, payer.drawn_from, k),
                {"k": k, "columns": columns, **said},
            )
            return drawn
        finally:
            held.unpersist()

    def _storage(self) -> Any:
        """A sketch is small and costs a pass over the data: where there is a second machine, it has a copy."""
        master = str(self.dataframe.sparkSession.conf.get("spark.master", ""))
        alone = master == "local" or master.startswith("local[")
        return StorageLevel.MEMORY_AND_DISK if alone else StorageLevel.MEMORY_AND_DISK_2

    def _held(self) -> Any:
        """The frame of summaries, one row each, with their items; lazy."""
        plan, mechanism = self.plan, self.plan.mechanism
        m = self.unit.limit if isinstance(self.unit, User) else None
        sets = isinstance(mechanism, UserSketch)
        recipe = tasks.Recipe(plan.capacity, secrets.randbits(63), self.nulls, m if sets else None, sample=self.nested)
        rows = self._rows(m, sets)
        if plan.plan == "shuffle":
            counted = rows.groupBy("item").agg(F.count("*").alias("n")).where(usable("item", self.kind, self.nulls))
            # Each item goes to the shard, and takes the place in it, that a keyed hash of it says. An explicit number
            # of partitions: adaptive execution neither joins nor splits them.
            keyed = counted.withColumn("key", F.xxhash64(secret_key(), F.col("item")))
            shards = keyed.repartition(plan.partitions, "key").sortWithinPartitions("key", "item").select("item", "n")
            return shards.mapInArrow(tasks.HoldShard(recipe), tasks.HELD)
        parts = rows.coalesce(plan.partitions).mapInArrow(tasks.SketchPart(recipe), tasks.PARTS)
        if isinstance(mechanism, Summed):
            return parts.repartition(1).mapInArrow(tasks.HoldSummed(recipe), tasks.HELD)
        groups = plan.partitions
        while (groups := -(-groups // _FAN_IN)) > 1:
            parts = parts.repartition(groups, F.col("part")).mapInArrow(tasks.MergeParts(recipe), tasks.PARTS)
        return parts.repartition(1).mapInArrow(tasks.HoldMerged(recipe), tasks.HELD)

    def _rows(self, m: int | None, sets: bool) -> Any:
        """One column, `item`: the rows themselves, at most m of a user, or a user's set."""
        value = F.col(_quoted(self.column))
        if self.nested:
            return self.dataframe.select(value.cast(T.ArrayType(_spark_type(self.kind))).alias("item"))
        value = value.cast(self.kind)
        if self.user is None:
            return self.dataframe.select(value.alias("item"))
        user = F.col(_quoted(self.user))
        # A row without a user becomes a null item, so that there is one place where nulls are noticed.
        pairs = self.dataframe.select(user.alias("user"), F.when(user.isNotNull(), value).alias("item"))
        if self.nulls == "skip":
            pairs = pairs.where(F.col("item").isNotNull())
        # All rows of a user go to the partition that the user alone decides; nothing below moves them again. With an
        # explicit number of partitions: adaptive execution joins others by their sizes, which every row changes.
        pairs = pairs.repartition(self.plan.partitions, "user").dropDuplicates()
        # A random order of each user's items: a hash with a secret key. Which items stay depends on this user's alone.
        hashed = F.xxhash64(secret_key(), F.col("user"), F.col("item"))
        order = Window.partitionBy("user").orderBy(hashed, F.col("item"))
        kept = (F.row_number().over(order) <= F.lit(m)) | F.col("item").isNull()
        capped = pairs.withColumn("kept", kept).where("kept")
        if not sets:
            return capped.select("item")
        missing = F.max(F.col("item").isNull())
        lists = capped.groupBy("user").agg(F.collect_list("item").alias("items"), missing.alias("missing"))
        # By user: grouping leaves them in an order that depends on how many there are.
        ordered = lists.sortWithinPartitions("user")
        return ordered.select(F.when(~F.col("missing"), F.col("items")).alias("item"))

    def _assumed(self) -> tuple[str, ...]:
        """What the guarantee rests on beside the mechanism: streams that are neighbours, row by row."""
        if self.plan.plan == "shuffle":
            return ()  # an item's shard, and its place in it, are functions of the item
        if self.user is not None:
            return ()  # a user's partition, and the order of users in it, are functions of the user
        return ("which rows Spark reads together, and in which order, does not depend on another row's presence",)

    def _published(self, held: Any, withheld: Withheld, source: RandomSource, k: int | None) -> Release:
        drawn = withheld.draw(source)
        if k is not None and len(drawn) > k:
            # All that tie with the k-th: the order of equal counts is by item, which the driver does not know yet.
            drawn = drawn.head(int(np.count_nonzero(drawn.counts >= drawn.counts[k - 1])))
        guarantee = dataclasses.replace(
            drawn.guarantee,
            assumptions=(*drawn.guarantee.assumptions, *self._assumed()),
            chosen_because=self.plan.because,
        )
        items = withheld.names(held, np.array(drawn.items, np.int64), self.kind)
        return drawn.with_items(items).with_guarantee(guarantee)


def _never() -> Release:
    raise DiscreetError("the ledger lost the release that is stored under this charge id")


@dataclass(frozen=True)
class Withheld:
    """Summaries of which the driver knows the counters, and a position for each item. NOT PRIVATE.

    It has what mechanisms read of a summary, with positions for items: noise does not depend on what an item is called.
    """

    mechanism: Mechanism
    counts: list[np.ndarray[Any, np.dtype[np.int64]]]
    not_private_offsets: list[int]
    digests: list[bytes]

    @classmethod
    def collected(cls, held: Any, plan: SparkPlan) -> Withheld:
        """Run the job that reads the data. Items stay where they are."""
        rows = collected(held.select("shard", "shift", "counts", "digest", "problem")).to_pylist()
        for row in rows:
            if row["problem"] is not None:
                _raise(row["problem"])
        shards = plan.partitions if plan.plan == "shuffle" else 1
        by_shard = {row["shard"]: row for row in rows}
        if len(by_shard) != len(rows) or not set(by_shard) <= set(range(shards)):
            # An item in two sketches would be paid for once and released twice.
            raise DiscreetError("Spark split or joined the partitions of the plan, which the guarantee does not cover")
        empty = {"shift": 0, "counts": b"", "digest": b""}
        found = [by_shard.get(shard, empty) for shard in range(shards)]
        return cls(
            plan.mechanism,
            [np.frombuffer(row["counts"], "<i8").astype(np.int64) for row in found],
            [row["shift"] for row in found],
            [row["digest"] for row in found],
        )

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
        if isinstance(self.mechanism, Summed):
            return self.mechanism.publish_entries(self.not_private_counts(), source)
        return self.mechanism._publish(self, source)

    def names(self, held: Any, positions: np.ndarray[Any, np.dtype[np.int64]], kind: str) -> pa.Array:
        """The items at the positions that are published, from the executors that hold them."""
        shards = np.searchsorted(self._starts, positions, side="right") - 1
        local = positions - self._starts[shards]
        # Every shard that holds something is compared, whether or not it publishes: otherwise it would depend on the
        # draw whether a summary that was made again is noticed, and a repetition would draw again.
        wanted = {shard: (digest, local[shards == shard]) for shard, digest in enumerate(self.digests) if digest}
        finder = tasks.FindNames(wanted, _KINDS[kind])
        named_as = "bigint" if kind == "long" else kind
        found = collected(
            held.select("shard", "digest", "items").mapInArrow(
                finder, f"shard int, position long, item {named_as}, problem string"
            )
        )
        if found.column("problem").null_count < len(found):
            raise DiscreetError(
                "Spark lost a summary after it was charged for and made it again from rows in another order. Nothing "
                "was published: repeat the call; with the same charge_id it is not charged again"
            )
        if not len(positions):
            return published_type(pa.array([], pa.large_string()))
        named = dict(
            zip(
                zip(found.column("shard").to_pylist(), found.column("position").to_pylist(), strict=True),
                found.column("item").to_pylist(),
                strict=True,
            )
        )
        if len(set(named.values())) != len(positions):
            raise DiscreetError("the shards are not disjoint, or Spark lost some of them; nothing was published")
        return pa.array([named[int(s), int(p)] for s, p in zip(shards, local, strict=True)], _KINDS[kind])


def _raise(problem: str) -> None:
    kind, _, message = problem.partition(": ")
    raise {"DataError": DataError, "ParameterError": ParameterError}.get(kind, DiscreetError)(message)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _field(dataframe: Any, name: object) -> Any:
    if isinstance(name, (list, tuple)):
        raise ParameterError(
            "on Spark items come in one column: put several into one, such as F.to_json(F.struct('country', 'url'))"
        )
    fields = [field for field in dataframe.schema.fields if field.name == name]
    if len(fields) != 1:
        there = ", ".join(repr(field.name) for field in dataframe.schema.fields)
        raise ParameterError(f"the data frame has {len(fields)} columns named {name!r}; there are {there}")
    return fields[0]


def _whose(dataframe: Any, user: str) -> Any:
    """The column that says whose a row is, as text, bytes or a whole number: equal for the rows of one person alone.

    Equal as Spark groups: 0.0 is -0.0, and times differ by a microsecond.
    """
    kind, column = _field(dataframe, user).dataType, F.col(_quoted(user))
    for inner in _inside(kind):
        if isinstance(inner, T.StringType) and not inner.isUTF8BinaryCollation():
            raise ParameterError(
                f"column {user!r} has the collation {inner.collation}, by which different texts are one person: give "
                "a column with one text a person, such as F.lower(...) collated UTF8_BINARY"
            )
        if isinstance(inner, (T.MapType, T.VariantType)) or (isinstance(inner, _FRACTIONS) and inner is not kind):
            raise ParameterError(
                f"column {user!r} holds {inner.simpleString()}, of which one value may be written in two ways: give a "
                "column with one text or whole number a person"
            )
    if isinstance(kind, (T.StringType, T.BinaryType, *_WHOLE)):
        return column
    value = F.when(column == 0, F.lit(0.0)).otherwise(column) if isinstance(kind, _FRACTIONS) else column
    whose = F.to_json(F.struct(value.alias("u")), _AS_JSON)
    if any(isinstance(inner, T.StringType) for inner in _inside(kind)):
        # JSON writes all bytes that are no Unicode as one letter: they follow it as they are.
        plain = F.struct(value).cast("string")
        whose = F.when(F.is_valid_utf8(plain), whose).otherwise(F.concat(whose, plain)).cast("binary")
    return F.when(column.isNotNull(), whose)


def _inside(kind: Any) -> Iterator[Any]:
    """A type and all that it is made of; a map is not looked into."""
    yield kind
    if isinstance(kind, T.ArrayType):
        yield from _inside(kind.elementType)
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            yield from _inside(field.dataType)


def _spark_type(kind: str) -> Any:
    return {"string": T.StringType(), "binary": T.BinaryType(), "long": T.LongType()}[kind]


def usable(column: str, kind: str, nulls: str) -> Any:
    """Whether a row has an item, as `Summary.update` sees it. A null is left to whoever refuses it."""
    item = F.col(column)
    fits = F.lit(True) if kind == "long" else F.octet_length(item) <= DEFAULT_MAX_KEY_BYTES
    if kind == "string":
        fits = fits & F.is_valid_utf8(item)
    return item.isNotNull() & fits if nulls == "skip" else item.isNull() | fits


def item_type(dataframe: Any, column: str) -> tuple[str, bool]:
    """("string", "binary" or "long", whether they come in arrays) of a column of items."""
    given = _field(dataframe, column).dataType
    nested = isinstance(given, T.ArrayType)
    inner = given.elementType if nested else given
    if isinstance(inner, T.StringType):
        return "string", nested
    if isinstance(inner, T.BinaryType):
        return "binary", nested
    if isinstance(inner, _WHOLE):
        return "long", nested
    raise DataError(f"column {column!r} is of type {given.simpleString()}; items are strings, bytes or whole numbers")
