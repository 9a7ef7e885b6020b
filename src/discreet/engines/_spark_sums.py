"""What Spark adds up in its own code, before Python sees anything: `added_up` says which questions of which columns.

Rows that a question cannot tell apart become one row with their number, and values become sums of the whole numbers
that one machine adds up for each (`ValueMoment`). The code of one machine then goes through these few rows
(`_spark_tasks.CountedRows`, `CountSums`): nulls, keys and what cannot be an item are decided there and nowhere else.

It is done where the result is the same to the last bit:

- Columns are grouped where values that Spark calls equal are the same bytes: text, bytes, whole numbers, booleans,
  dates, times, decimals. Floats are not (-0.0 and 0.0, and all NaN, are equal to Spark).
- Values are whole numbers or floats. Java's doubles are those of NumPy: +, -, *, / and rint round once, to even. What
  is added up are whole numbers, in two halves, so that nothing overflows and no row can make a query fail. Decimals
  are not: Arrow and Java need not round them to the same float.
- What a row is worth follows from this row alone, so a condition (`where`), a public table (`lookup`) and a span of
  time are left to Python: these columns have about as many different values as there are rows.

The schema and the question decide it, never the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from discreet._data_class import dataclass, replace
from discreet.engines import _spark_tasks as tasks
from discreet.engines._spark_jobs import partitions_for
from discreet.engines.group_sums import group_sums
from discreet.engines.person_sums import PersonRows
from discreet.summaries.moments import ValueMoment

if TYPE_CHECKING:
    from discreet.engines._spark_rows import SparkRows

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_VALUES = (*_WHOLE, T.FloatType, T.DoubleType)
_ITEMS = (T.StringType, T.BinaryType, *_WHOLE)
_KEYS = (*_ITEMS, T.BooleanType, T.DateType, T.DecimalType, T.TimestampType, T.TimestampNTZType)


@dataclass(frozen=True)
class AddedUp:
    """Rows that Spark adds up.

    Attributes:
        frame: What it makes of them, lazy.
        task: What Python finds in it.
        few: Whether public numbers say that the driver has room for it.
    """

    frame: Any
    task: tasks.CountPart | tasks.CountSums
    few: bool = False


def added_up(rows: SparkRows, count: Callable[..., Any]) -> AddedUp | None:
    """How Spark adds up rows for what `count` finds in them; None where Python has to see each."""
    wanted = rows.wanted
    if wanted.where is not None or rows.frame.lookup is not None or wanted.pairing is not None or wanted.times:
        return None
    if wanted.every is not None and not _are(rows, wanted.by[:1], T.DateType):
        return None
    of, words = (count.func, count.keywords) if isinstance(count, partial) else (count, {})
    if of is tasks.number_of:
        return _number(rows) if _are(rows, rows.item_columns, *_ITEMS) else None
    value = rows.item_columns[0] if wanted.numbers else wanted.value
    keys = [
        *(() if wanted.numbers else rows.item_columns),
        *wanted.by,
        *(() if wanted.user is None else (wanted.user,)),
    ]
    if not _are(rows, keys, *_KEYS) or (value is not None and not _are(rows, [value], *_VALUES)):
        return None
    if of is tasks.listed and value is None and wanted.user is None:
        frame, reading = rows.counted()
        return AddedUp(frame, tasks.CountPart(reading, count))
    if of in (group_sums, PersonRows.of):
        return _sums(rows, of, keys, value, words["moment"])
    return None


def _are(rows: SparkRows, names: Sequence[str], *kinds: type) -> bool:
    """Whether all of these columns are of one of these types."""
    schema = rows.frame.dataframe.schema
    return all(type(schema[name].dataType) in kinds for name in names)


def _number(rows: SparkRows) -> AddedUp:
    """How many rows there are; of a column how many have nothing, an item, or one that is too long."""
    frame, reading = rows.selected()
    reading = reading.counting()
    if not rows.item_columns:
        frame, reading = frame.select(), replace(reading, schema=pa.schema([reading.schema.field(1)]))
    else:
        item = F.col("v0")
        kind = rows.frame.dataframe.schema[rows.item_columns[0]].dataType
        like = F.lit("0")
        if not isinstance(kind, _WHOLE):
            most = rows.max_key_bytes
            like = F.when(F.octet_length(item) > most, F.repeat(like, F.lit(most + 1))).otherwise(like)
        frame = frame.select(F.when(item.isNotNull(), like).cast(kind).alias("v0"))
    found = frame.groupBy(*frame.columns).agg(F.count("*").alias("n"))
    return AddedUp(found, tasks.CountPart(reading, tasks.number_of), few=True)


# ---- sums of values --------------------------------------------------------------------------------------------------


def _sums(rows: SparkRows, of: Any, keys: list[str], value: str | None, moment: ValueMoment) -> AddedUp:
    """The sums of groups, or of what people have in groups."""
    frame, reading = rows.selected()
    place = {name: f"v{at}" for at, name in enumerate(reading.schema.names)}
    columns = [F.col(place[name]) for name in keys]
    number = F.lit(1.0) if value is None else F.col(place[value]).cast("double")
    there = number.isNotNull() & ~F.isnan(number)
    entries = [F.when(there, entry) for entry in _entries(moment, number)]
    made = frame.select(
        *columns,
        there.alias("there"),
        number.isNull().alias("none"),
        *(entry.alias(f"e{at}") for at, entry in enumerate(entries)),
    )
    halves = [half(f"e{at}") for at in range(len(entries)) for half in (_upper, _lower)]
    added = made.groupBy(*(place[name] for name in keys)).agg(
        *(total.alias(f"s{at}") for at, total in enumerate((F.count_if("there"), F.count_if("none"), *halves)))
    )
    user = rows.wanted.user
    if user is not None and len(keys) > 1:  # otherwise a person has one row
        added = added.repartition(partitions_for(added), place[user])
    return AddedUp(added, tasks.CountSums(_of_numbers(reading, keys, value), of, moment), few=not keys)


def _of_numbers(reading: tasks.Reading, keys: list[str], value: str | None) -> tasks.Reading:
    """How rows of sums are read: these columns, then the values, which are the numbers of the rows."""
    if value is None:
        value = reading.unused_name
        reading = replace(reading, wanted=replace(reading.wanted, value=value))
    schema = pa.schema([*map(reading.schema.field, keys), pa.field(value, pa.float64())])
    return replace(reading, schema=schema)


def _upper(column: str) -> Any:
    return F.coalesce(F.sum(F.shiftright(column, tasks.HALF)), F.lit(0))


def _lower(column: str) -> Any:
    return F.coalesce(F.sum(F.col(column).bitwiseAND(F.lit((1 << tasks.HALF) - 1))), F.lit(0))


def _entries(moment: ValueMoment, number: Any) -> list[Any]:
    """What a value adds, as `ValueMoment.entries` says, in whole numbers; without the part that the others leave."""
    if moment.kind == "count":
        return []
    low, high = F.lit(float(moment.low)), F.lit(float(moment.high))
    cut = F.least(F.greatest(number, low), high)
    if moment.kind in ("signed", "split"):
        signed = F.rint(cut * F.lit(moment.one / moment.largest)).cast("long")
        zero = F.lit(0).cast("long")
        return [signed] if moment.kind == "signed" else [F.greatest(signed, zero), F.greatest(-signed, zero)]
    t = F.least(F.greatest((cut - low) / F.lit(moment.wide), F.lit(0.0)), F.lit(1.0))
    if moment.kind != "variance":
        return [F.rint(t * F.lit(float(moment.one))).cast("long")]
    root = F.lit(moment.root).cast("long")
    j = F.rint(t * F.lit(float(moment.root))).cast("long")
    return [(root - j) * (root - j), 2 * j * (root - j)]
