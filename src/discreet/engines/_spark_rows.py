"""A data frame of Spark as events: executors read and count its rows as one machine does, the driver adds up.

What a question asks for, what it refuses, which rows are bad and which have no value is decided by the code that reads
tables on one machine (`events.tables`): on the driver for a table of the same columns without rows, on executors for
batches of rows. A question counts parts of the rows there (`Rows.gathered`); nothing random happens on executors.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type

from discreet._data_class import replace
from discreet.engines import _spark_tasks as tasks
from discreet.engines._spark_jobs import collected, partitions_for, raise_problem, secret_key, tree
from discreet.engines._spark_people import SparkPeople
from discreet.engines._spark_plans import PLANS
from discreet.engines._spark_sketches import Sketches
from discreet.engines._spark_sums import added_up
from discreet.errors import DataError, ParameterError
from discreet.events.assembly import Events, Found, Rows, Wanted
from discreet.events.items import kind_of
from discreet.events.lookup import Lookup
from discreet.events.tables import Tables
from discreet.events.universe import Universe
from discreet.privacy.checks import whole_number
from discreet.summaries import ExactCounts


class Frame(Events):
    """The rows of a Spark data frame.

        dc.count(dataframe, budget)      # is dc.count(Frame(dataframe), budget)

    Args:
        dataframe: A data frame, which is not a streaming one.
        plan: How sketches of rows are made, for `top_k` of rows: "auto", "shuffle" or "merge" (docs/engines.md).
        partitions: How many sketches; by default as many as the cluster runs tasks at once, at least 2. Public.
        shuffle_limit: For "auto": the most bytes that a shuffle may move; by default 128 GiB a partition.
    """

    def __init__(
        self,
        dataframe: Any,
        *,
        plan: str = "auto",
        partitions: int | None = None,
        shuffle_limit: int | None = None,
    ) -> None:
        if not isinstance(dataframe, DataFrame):
            kind = type(dataframe).__name__
            raise ParameterError(f"expected a Spark data frame, not {kind}; convert pandas on Spark with .to_spark()")
        if dataframe.isStreaming:
            raise ParameterError("a streaming data frame is released batch by batch; use engines.spark_streaming.Ticks")
        if plan not in PLANS:
            raise ParameterError(f"plan must be one of {', '.join(PLANS)}, not {plan!r}")
        self.dataframe, self.plan = dataframe, plan
        self.partitions = None if partitions is None else whole_number("partitions", partitions, 1, 2**20)
        self.shuffle_limit = None if shuffle_limit is None else whole_number("shuffle_limit", shuffle_limit, 0)
        given = {"plan": plan, "partitions": partitions, "shuffle_limit": shuffle_limit}
        self.lookup: Lookup | None = None
        self.described = {name: value for name, value in given.items() if value not in (None, "auto")}

    def __repr__(self) -> str:
        return "Frame(NOT PRIVATE)"

    @property
    def session(self) -> Any:
        """Spark's."""
        return self.dataframe.sparkSession

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns in Arrow; of types that it does not have, a type that no question takes."""
        return pa.schema([(field.name, _arrow(field.dataType)) for field in self.dataframe.schema.fields])

    @property
    def _here(self) -> Tables:
        here = Tables(self.schema.empty_table())
        return here if self.lookup is None else here.with_lookup(self.lookup)

    def with_lookup(self, lookup: Lookup) -> Frame:
        same = copy(self)
        same.lookup = lookup
        return same

    def says_lists(self, column: str | None = None) -> bool | None:
        return self._here.says_lists(column)

    def makes_keys(self, columns: Sequence[str]) -> bool:
        return self._here.makes_keys(columns)

    def all_rows(self, **rules: Any) -> Rows:
        return SparkRows(self, Wanted(**rules), whole=True)

    def rows_wanted(self, wanted: Wanted) -> SparkRows:
        return SparkRows(self, wanted)

    def columns(self, names: Sequence[str]) -> list[Any]:
        """Columns by their names, which Spark itself takes without regard to case, and with dots inside."""
        for name in names:
            kind = self.dataframe.schema[name].dataType
            if isinstance(kind, T.StringType) and not kind.isUTF8BinaryCollation():
                raise ParameterError(
                    f"column {name!r} has the collation {kind.collation}, under which different texts are equal; "
                    "convert it to one spelling, such as F.lower(...) collated UTF8_BINARY"
                )
        return [F.col(f"c{self.schema.names.index(name)}").alias(f"v{place}") for place, name in enumerate(names)]

    def select(self, columns: Sequence[Any]) -> Any:
        """These columns of the data frame."""
        return self.dataframe.toDF(*(f"c{place}" for place in range(len(self.schema)))).select(*columns)


def _arrow(kind: Any) -> pa.DataType:
    try:
        return to_arrow_type(kind, timezone="UTC")
    except Exception:  # of types that Arrow does not have
        return pa.struct([])


class SparkRows(Rows):
    """Rows of a data frame, which executors count. They do not come to the driver."""

    def __init__(self, frame: Frame, wanted: Wanted, *, whole: bool = False) -> None:
        super().__init__(wanted)
        self.frame, self.wanted, self._whole, self.elsewhere = frame, wanted, whole, self
        here = self._none_of_them()
        self.keys, self.tagged, self.item_type = here.keys, here.tagged, here.item_type
        self.max_key_bytes = here.max_key_bytes

    def _none_of_them(self) -> Rows:
        """The same rows where there are none: it says what one machine says, from the schema alone."""
        reading = tasks.Reading(self.frame.schema, self.wanted, self._whole, self.frame.lookup)
        return reading.rows_of(self.frame.schema.empty_table())

    def __iter__(self) -> Any:
        raise DataError("this question is not supported on Spark; fetch the rows with dataframe.toArrow()")

    @property
    def _named(self) -> list[str]:
        """The columns that are read, each once, those of the items first."""
        wanted = self.wanted
        asked = [*self.item_columns, *wanted.by, *(name for name in (wanted.user, wanted.value) if name is not None)]
        names = self.frame.schema.names
        if wanted.where is not None:
            reads = [str(name) for name in wanted.where.bound([]).reads]
            asked += [name if name in names else name.partition(".")[0] for name in reads]
        if wanted.pairing is not None:
            asked.append(wanted.pairing.time)
        lookup = self.frame.lookup
        if lookup is not None:
            asked = [*(name for name in asked if name not in lookup.columns), lookup.on]
        return list(dict.fromkeys(asked))

    @property
    def item_columns(self) -> list[str]:
        """The columns of the items."""
        wanted = self.wanted
        return [] if self._whole or wanted.only_groups else list(wanted.columns or self.frame.schema.names)

    @property
    def spark_type(self) -> str:
        """What Spark calls the type of the items."""
        if self.keys is not None and not self.keys.are_items:
            return "binary"
        kind = self.item_type
        if kind is not None and pa.types.is_list(kind):
            kind = kind.value_type
        known = None if kind is None else kind_of(kind, lists=False)
        if known is None:
            raise DataError(f"the column is of type {kind}; items must be texts, bytes or whole numbers")
        return {"text": "string", "bytes": "binary", "integer": "bigint"}[known]

    def selected(self) -> tuple[Any, tasks.Reading]:
        """The columns that are read, called v0, v1, ..., and how executors read them."""
        named = self._named
        frame = self.frame.select(self.frame.columns(named) or [F.lit(True).alias("v0")])
        fields = [self.frame.schema.field(name) for name in named] or [pa.field("row", pa.bool_())]
        return frame, tasks.Reading(pa.schema(fields), self.wanted, self._whole, self.frame.lookup)

    def chosen(self, apart: str | None, many: int | None = None) -> tuple[Any, tasks.Reading]:
        """The columns that are read, in partitions that have nothing in common, and how executors read them."""
        frame, reading = self.selected()
        many = many or partitions_for(frame)
        place = {name: f"v{place}" for place, name in enumerate(reading.schema.names)}
        if apart == "user" and self.wanted.user is not None:
            if self.wanted.user not in place:
                raise ParameterError("on Spark, user cannot come from the lookup; join it into the data frame first")
            # All rows of a person go to the partition that the person alone decides. There they are sorted by a hash
            # of the person, and those of a person by one of their items: what comes first is up to this person.
            whose = F.col(place[self.wanted.user])
            looked_up = [] if self.frame.lookup is None else [self.frame.lookup.on]
            items = dict.fromkeys([*self.item_columns, *self.wanted.by, *looked_up])
            which = [F.col(place[name]) for name in items if name in place]
            placed = frame.repartition(many, whose).select(F.xxhash64(secret_key(), whose).alias("h"), "*")
            ordered = placed.sortWithinPartitions("h", F.xxhash64(secret_key(), whose, *which))
            return ordered, replace(reading, crowds=True)
        if apart == "item":
            frame = frame.dropDuplicates() if _comparable(reading.schema) else frame
            if not {*self.item_columns} <= {*place}:  # rows with one item may have different keys in a lookup
                return frame.repartition(1), reading
            return frame.repartition(many, *(place[name] for name in self.item_columns)), reading
        return frame.coalesce(many), reading

    def counted(self) -> tuple[Any, tasks.Reading]:
        """Different rows, and how often each occurs."""
        frame, reading = self.selected()
        if _comparable(reading.schema):
            frame = frame.groupBy(*frame.columns).agg(F.count("*").alias("n"))
        else:
            frame = frame.withColumn("n", F.lit(1).cast("long"))
        return frame, reading.counting()

    def gathered(self, count: Callable[[Rows], Found], apart: str | None = None) -> Found:
        found: Found = count(self._none_of_them())  # which refuses what the schema says
        summed = added_up(self, count)
        if summed is not None and summed.few:
            found = summed.task.found(iter(collected(summed.frame).to_batches()))
            return found
        if summed is not None:
            frame, task = summed.frame, summed.task
        else:
            frame, reading = self.chosen(apart)
            task = tasks.CountPart(reading, count)
        parts = frame.mapInArrow(task, tasks.PARTS)
        rows = collected(tree(parts, partitions_for(frame)).select("state", "problem")).to_pylist()
        for row in rows:
            raise_problem(row["problem"])
        return reduce(tasks.added, (pickle.loads(row["state"]) for row in rows), None) if rows else found

    def number(self) -> int:
        return self.gathered(tasks.number_of)

    def feed(self, summary: Any, max_items: int | None = None) -> None:
        """Count exactly, or one by one the items of a public list. What is counted comes to the driver."""
        if isinstance(summary, ExactCounts):
            summary.merge(self.gathered(partial(tasks.exact_counts, max_key_bytes=summary.max_key_bytes)))
            return
        universe = self.wanted.universe
        if universe is None:
            iter(self)  # which is refused
        found = self.gathered(partial(tasks.listed, universe=universe))
        places = sorted(found)
        summary.update_counts(universe.take(places), np.array([found[place] for place in places], np.int64))

    def listed_counts(self, universe: Universe) -> tasks.Counts:
        """How many rows have each item of a public list, as `Histogram` counts them."""
        self._none_of_them().items()  # which refuses lists
        if self.item_type is not None:
            universe.refuse_type(self.item_type)
        found = self.gathered(partial(tasks.listed, universe=universe))
        assert universe.size is not None  # of a histogram
        counts = np.zeros(universe.size, np.int64)
        counts[list(found)] = list(found.values())
        return counts

    # ---- what `Top` asks of rows that are elsewhere ------------------------------------------------------------------

    def people(self, **words: Any) -> SparkPeople:
        """The people of rows; `words` are those of `people_of`."""
        return SparkPeople(self, **words)

    def sketches(self, *given: Any, **words: Any) -> Sketches:
        """Sketches of the rows."""
        return Sketches(self, *given, **words)


def _comparable(schema: pa.Schema) -> bool:
    """Whether Spark groups by all of these columns."""
    return not any(pa.types.is_map(field.type) for field in schema)
