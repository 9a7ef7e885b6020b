"""Structured Streaming: every micro-batch is a tick of a continual release, published exactly once."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.continual import HeavyHitters, Histogram
from discreet.engines._spark_jobs import collected
from discreet.engines.spark import Frame
from discreet.errors import CorruptStateError, DataError, DiscreetError, ParameterError
from discreet.events.items import kind_of
from discreet.releases.release import Release
from discreet.storage import StateFile, locked, open_state, seal_state

try:
    from pyspark.sql import functions as F  # noqa: N812
except ImportError as error:
    raise ImportError(
        "discreet.engines.spark_streaming needs PySpark 4; install it with pip install 'discreet[spark]'"
    ) from error

FAMILY = 160
_NAMES = (
    *("horizon", "capacity", "window", "mechanism", "base", "max_items_per_event", "k", "limit"),
    *("keep_discovered", "switches", "margin"),
)
_ASSUMED = "the batches are public: an event that is left out leaves its batch, with the other events, as it is"


class Ticks:
    """A function for `foreachBatch`: batch 0 is tick 1 of a continual release, batch 1 is tick 2, and so on.

        ticks = Ticks(dc.continual.HeavyHitters(365, budget), "query", "/safe/place/queries.state", publish)
        query = stream.writeStream.foreachBatch(ticks).option("checkpointLocation", ...).start()

    Of every batch the noise is drawn on the driver, then state and release are on disk, and only then is the release
    handed to `deliver`. Spark repeats a batch that it did not write down as done: then the stored release is handed
    out again, bit for bit, and the batch is not looked at. So `deliver` is called at least once for a batch, always
    with the same release, and anyone who overwrites by batch id has it exactly once.

    Args:
        mechanism: A `continual.HeavyHitters` or `continual.Histogram` as it is before its first tick. When the state
            file exists the release goes on from there; it must have been made with the same settings.
        column: The column of items; for a `Histogram` an array column has the set of items of an event in each row.
        state: The file that holds the state, on a disk that outlives the driver. NOT PRIVATE: it holds true counts.
        deliver: Called with the release and the batch id.
        nulls: "error" refuses a batch with nulls, "skip" leaves them out.
        restored: State and checkpoint are older copies of one time, and the newer ones are lost: go on as a second run,
            which the mechanism's ledger pays for; batches that were released are handed out as they were.

    With a ledger, a batch is registered there before it is delivered, and an old state is refused (`OldStateError`).
    """

    def __init__(
        self,
        mechanism: HeavyHitters | Histogram,
        column: str,
        state: str | os.PathLike[str],
        deliver: Callable[[Release, int], None],
        *,
        nulls: str = "error",
        restored: bool = False,
    ) -> None:
        if not isinstance(mechanism, (HeavyHitters, Histogram)):
            raise ParameterError(
                f"mechanism must be a continual.HeavyHitters or continual.Histogram, not {type(mechanism).__name__}"
            )
        if mechanism.tick:
            raise ParameterError("mechanism must be new, before its first tick; the state file remembers later ticks")
        if not callable(deliver):
            raise ParameterError(f"deliver must be callable, not {type(deliver).__name__}")
        if nulls not in ("error", "skip"):
            raise ParameterError(f"nulls must be 'error' or 'skip', not {nulls!r}")
        self._fresh = mechanism
        self._column = column
        self._path = Path(state)
        self._deliver = deliver
        self._nulls = nulls
        self._restored = restored
        self._current: tuple[bytes, HeavyHitters | Histogram] | None = (
            None  # what is on disk, and the same as an object
        )

    def __call__(self, batch: Any, batch_id: int) -> None:
        """Release one batch. Called by Spark."""
        frame = Frame(batch)
        nested = bool(frame.says_lists(self._column))
        kind = frame.schema.field(self._column).type
        if kind_of(kind) is None:
            raise DataError(f"column {self._column!r} is of type {kind}; items must be texts, bytes or whole numbers")
        if nested and isinstance(self._fresh, HeavyHitters):
            raise DataError("heavy hitters need one item per row; for arrays use a continual.Histogram")
        with locked(self._path) as kept:
            mechanism = self._open(_query_of(batch), kept)
            if batch_id + 1 == mechanism.tick:
                assert mechanism.last is not None
                release = mechanism.last
            elif batch_id != mechanism.tick:
                raise DiscreetError(
                    f"the state {str(self._path)!r} is after {mechanism.tick} batches, Spark is at batch {batch_id}: "
                    "state and checkpoint do not match, or one of them is an old copy"
                )
            else:
                release = self._step(mechanism, self._events(frame, nested), kept)
        self._deliver(release.with_guarantee(release.guarantee.assuming(_ASSUMED)), batch_id)

    def _step(self, mechanism: HeavyHitters | Histogram, events: pa.Array, kept: StateFile) -> Release:
        """One tick, on disk before it is returned. If anything fails, what is on disk counts and nothing was seen."""
        assert self._current is not None
        header, self._current = _split(self._current[0])[0], None
        release = mechanism.step(events, mechanism.tick + 1, save=lambda _: kept.replace(_joined(header, mechanism)))
        self._current = kept.read(), mechanism
        return release

    def _events(self, frame: Frame, nested: bool) -> pa.Array:
        """The events of a batch, each item counted on the executors."""
        column, batch = F.col("v0"), frame.select(frame.columns([self._column]))
        if nested:
            if self._nulls == "skip":
                column = F.filter(column, lambda item: item.isNotNull())
            lists = collected(batch.select(column.alias("item"))).column("item").combine_chunks()
            return lists.drop_null() if self._nulls == "skip" else lists
        counted = collected(batch.groupBy(column.alias("item")).count())
        if counted.column("item").null_count:
            if self._nulls == "error":
                raise DataError('the column has nulls; pass nulls="skip" to leave them out')
            counted = counted.filter(counted.column("item").is_valid())
        items = counted.column("item").combine_chunks()
        each = np.repeat(np.arange(len(items), dtype=np.int32), counted.column("count").to_numpy())
        return pa.DictionaryArray.from_arrays(pa.array(each), items)

    def _open(self, query: str | None, kept: StateFile) -> HeavyHitters | Histogram:
        """The mechanism as the state on disk has it; a first state is written before anything is charged."""
        fresh = self._fresh
        if not kept.exists:
            if query is not None and not fresh._charge_is_named:
                # Anyone who loses the state and starts again does not get a second release of the same batches.
                fresh._name_charge(f"spark-{query}-{_digest(self._settings())[:16]}")
            kept.replace(_joined({"settings": self._settings(), "query": query}, fresh))
        data = kept.read()
        if self._current is not None and self._current[0] == data:
            return self._current[1]
        header, state = _split(data)
        if header["settings"] != self._settings():
            raise ParameterError(f"the state {str(self._path)!r} belongs to a release with other settings")
        if None not in (query, header["query"]) and header["query"] != query:
            raise ParameterError(
                f"the state {str(self._path)!r} belongs to another query, or the checkpoint was deleted"
            )
        mechanism = type(fresh).from_bytes(state, ledger=fresh._ledger, source=fresh._source, restored=self._restored)
        if self._restored:
            kept.replace(_joined(header, mechanism))  # with the id of the second charge, before that is made
        self._current = kept.read(), mechanism
        return mechanism

    def _settings(self) -> dict[str, Any]:
        fresh = self._fresh
        domain = getattr(fresh, "_domain", None)
        return {
            "class": type(fresh).__name__,
            "column": self._column,
            "budget": str(fresh.budget),
            "domain": None if domain is None else _digest(domain.to_pylist()),
            **{name: getattr(fresh, name, None) for name in _NAMES},
        }

    def __repr__(self) -> str:
        return f"Ticks({self._fresh!r}, {self._column!r}, {str(self._path)!r})"


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def _joined(header: dict[str, Any], mechanism: HeavyHitters | Histogram) -> bytes:
    text = json.dumps(header, sort_keys=True).encode()
    return seal_state(FAMILY, 1, len(text).to_bytes(8, "little") + text + mechanism.to_bytes())


def _split(data: bytes) -> tuple[dict[str, Any], bytes]:
    _, payload = open_state(data, FAMILY, 1)
    length = int.from_bytes(payload[:8], "little")
    try:
        header = json.loads(payload[8 : 8 + length])
        _ = header["settings"], header["query"]
    except (ValueError, KeyError, TypeError):
        raise CorruptStateError("the state is not one of a streaming release") from None
    return header, payload[8 + length :]


def _query_of(batch: Any) -> str | None:
    """The id of the streaming query, which its checkpoint keeps; None where Spark does not tell."""
    context = getattr(batch.sparkSession, "_jsc", None) and batch.sparkSession.sparkContext
    found = context.getLocalProperty("sql.streaming.queryId") if context else None
    return None if found is None else str(found)
