"""A private histogram: what every release of counts returns."""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.errors import CorruptStateError, ParameterError
from discreet.events.published import item_order, items_array
from discreet.privacy.checks import probability, whole_number
from discreet.privacy.estimate import Estimate
from discreet.privacy.guarantee import Guarantee
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.explain import COUNTED

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["Histogram", "Release"]

Counts = npt.NDArray[np.int64]

PAYLOAD_VERSION = 1
PEOPLE_VERSION = 3  # with what was counted, what bounding left out, and noise of every item's own size
SHARDED_VERSION = 2  # with the shards and their offsets; a histogram without them is written as version 1
_ITEM_TYPES = ("int64", "uint64", "large_string", "large_binary", "mixed")


class Release:
    """Published items with noisy counts, largest first, equal counts by item.

    Every item with a count well above the threshold is there with high probability; there may be fewer items than
    were asked for; an item that did not occur is never there (except by a mechanism over a known universe, which says
    so in its guarantee). `guarantee` says what the release promises and hides.

    Attributes:
        counts: The noisy counts, int64, read-only.
        guarantee: What the release promises.
        threshold: The mechanism's cut. For the offset release an item is published iff count - offset >= threshold.
        offset: The noisy offset that the offset release publishes; None for the others, and where every shard has its
            own (see `offsets`).
        shards: For a release in shards: which one each item belongs to, int32, read-only. Otherwise None.
        shard_offsets: For a release in shards: the noisy offset of each. Otherwise None.
        total: The noisy length of the stream, when a share of the budget was spent on it; otherwise None.
        steps: Where items have noise of different sizes: how much of each item's count one unit of the noise is,
            float64, read-only. Otherwise None.
        counted: What a count is of: "events", "people" who have the item, "rows" of people, or "sums" of their
            values.
        left_out: Where contributions of people were bounded: the share of them that is missing in the counts, an
            `Estimate`. The bounds are for what was counted; the lower one holds for the truth, too. Otherwise None.
        error_model: The laws from which `bounds` follow. All of it is public.
    """

    def __init__(
        self,
        items: pa.Array,
        counts: Counts,
        guarantee: Guarantee,
        error_model: ErrorModel,
        *,
        threshold: int | float | None = None,
        offset: int | None = None,
        shards: npt.NDArray[np.int32] | None = None,
        shard_offsets: Sequence[int] | None = None,
        total: int | None = None,
        total_noise: Noise | None = None,
        steps: npt.NDArray[np.float64] | None = None,
        counted: str = "events",
        left_out: Estimate | None = None,
    ) -> None:
        if len(items) != len(counts):
            raise ParameterError("items and counts must have one length")
        if (shards is None) != (shard_offsets is None) or (shards is not None and offset is not None):
            raise ParameterError("a release in shards has the shard of every item and an offset for every shard")
        if shards is not None and shard_offsets is not None:
            shards = np.asarray(shards, dtype=np.int32)
            if len(shards) != len(counts) or not np.all((shards >= 0) & (shards < len(shard_offsets))):
                raise ParameterError("every item must belong to one of the shards")
        if (total is None) != (total_noise is None):
            raise ParameterError("a total needs the law of its noise, and only a total has one")
        if counted not in COUNTED:
            raise ParameterError(f"counted must be one of {', '.join(COUNTED)}, not {counted!r}")
        counts = np.asarray(counts, dtype=np.int64)
        # The order is a function of what is published: noisy count, then item.
        order = _sorted(items, counts)
        self._items = items.take(order)
        self._values: list[Any] | None = None
        self.counts: Counts = counts[order]
        self.counts.setflags(write=False)
        self.guarantee = guarantee
        self.error_model = error_model
        self.threshold = threshold
        self.offset = offset
        self.shards = None if shards is None else shards[order]
        if self.shards is not None:
            self.shards.setflags(write=False)
        self.shard_offsets = None if shard_offsets is None else tuple(int(a0) for a0 in shard_offsets)
        self.total = total
        self.total_noise = total_noise
        self.steps = None if steps is None else np.asarray(steps, dtype=np.float64)[order]
        if self.steps is not None:
            self.steps.setflags(write=False)
        self.counted = counted
        self.left_out = left_out
        # How a ledger paid for it: "charged", "charged before" (and drawn now), "replayed" (and not drawn again), or
        # None without a ledger. It is about this process, not part of what is published.
        self.payment: str | None = None

    @property
    def items(self) -> list[Any]:
        """The published items as Python values, in order."""
        if self._values is None:
            self._values = self._items.to_pylist()
        return list(self._values)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def offsets(self) -> Counts | None:
        """Of an offset release: the offset that belongs to each item. It is listed iff count - offset >= threshold."""
        if self.shards is not None:
            offsets: Counts = np.array(self.shard_offsets, dtype=np.int64)[self.shards]
            return offsets
        return None if self.offset is None else np.full(len(self), self.offset, dtype=np.int64)

    def with_guarantee(
        self, guarantee: Guarantee, *, total: int | None = None, total_noise: Noise | None = None
    ) -> Release:
        """The same rows under another guarantee; with the noisy length of the stream, if it is a part of it."""
        changed = copy.copy(self)
        changed.guarantee = guarantee
        if total_noise is not None:
            changed.total, changed.total_noise = total, total_noise
        return changed

    def head(self, k: int) -> Release:
        """The first k items: a function of the release, so it costs nothing."""
        return self._taken(slice(whole_number("k", k, 0)))

    def with_items(self, items: pa.Array) -> Release:
        """The same rows with other names: what stood for the items is replaced, and equal counts are put in order."""
        if len(items) != len(self):
            raise ParameterError("items and counts must have one length")
        changed = copy.copy(self)
        changed._items = items
        return changed._taken(_sorted(items, self.counts))

    def _taken(self, rows: slice | npt.NDArray[np.int64]) -> Release:
        """Some of the rows, or all in another order."""
        taken = copy.copy(self)
        taken._items = self._items[rows] if isinstance(rows, slice) else self._items.take(rows)
        taken._values = None
        for name in ("counts", "shards", "steps"):
            column = getattr(self, name)
            if column is not None:
                setattr(taken, name, column[rows])
                getattr(taken, name).setflags(write=False)
        return taken

    def bounds(self, confidence: float = 0.95) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """(lower, upper) for every item: with probability `confidence` all of them hold at once.

        They combine the noise and the summary's error, use the published offset, and hold although the items were
        selected by their noisy counts. An upper bound is infinite where nothing finite can be published. An item that
        is listed occurred at least once (unless the mechanism lists items of a known universe).
        """
        below: Any
        above: Any
        if self.shards is not None and self.shard_offsets is not None:
            # The law of the offsets' noise counts all of them, so that they hold at once.
            needed = {offset: self.error_model.distances(confidence, offset) for offset in {*self.shard_offsets}}
            below, above = np.array([needed[offset] for offset in self.shard_offsets])[self.shards].T
        else:
            below, above = self.error_model.distances(confidence, self.offset)
        if self.steps is not None:
            below, above = (np.ceil(side * self.steps + 0.5) for side in (below, above))  # counts are rounded
        lowest = float(self.error_model.lowest)
        lower = np.maximum(self.counts - below, lowest)
        if self.error_model.of_published and self.threshold is not None:
            lower = np.where(lower > self.threshold, lower, lowest)
        return lower, np.maximum(self.counts + above, lower)

    @property
    def everything_else(self) -> Estimate | None:
        """The number of events of all items that are not listed, at 95 percent confidence; None without a total."""
        return self.rest()

    def rest(self, confidence: float = 0.95) -> Estimate | None:
        """The number of events of all items that are not listed; None unless `total_share` was spent on the length.

        The value is the noisy total minus the listed counts, and at least 0, so the rows add up to the total. The
        interval holds by itself with probability `confidence`: half of what may fail goes to the total's noise, half
        to the bounds of the listed items.
        """
        if self.total is None or self.total_noise is None:
            return None
        half = (1.0 - probability("confidence", confidence)) / 2.0
        around = self.total_noise.bound_in_counts(half)
        lower, upper = self.bounds(1.0 - half)
        value = max(self.total - int(self.counts.sum()), 0)
        return Estimate(
            value,
            max(self.total - around - float(upper.sum()), 0.0),
            max(self.total + around - float(lower.sum()), float(value)),
            self.guarantee,
        )

    def notes(self) -> list[str]:
        """What was counted and what is missing, in plain sentences; nothing for counts of events."""
        if self.counted == "events":
            return []
        of = COUNTED[self.counted]
        told = [f"Counts are {of}. The intervals are for what was counted; their lower ends hold for the truth, too."]
        if self.left_out is not None:
            low, high = math.floor(100 * self.left_out.lower), math.ceil(100 * self.left_out.upper)
            about = "less than 1" if self.left_out.value < 0.01 else f"about {100 * self.left_out.value:.0f}"
            span = f" ({low} to {high} %)" if high > 1 else ""
            told.append(f"Counts are low by {about} %{span}: people with many items are counted in part.")
        return told

    def to_arrow(self, confidence: float = 0.95) -> pa.Table:
        """A table with item, count, lower and upper. Items of several kinds are written as in JSON, all as text."""
        import pyarrow as pa

        lower, upper = self.bounds(confidence)
        items = self._items
        if pa.types.is_union(items.type):
            items = pa.array(list(map(str, _plain(self.items))), pa.large_string())
        return pa.table({"item": items, "count": self.counts, "lower": lower, "upper": upper})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self, confidence: float = 0.95) -> pd.DataFrame:
        """A data frame with item, count, lower and upper."""
        return self.to_arrow(confidence).to_pandas()

    def columns(self, confidence: float = 0.95) -> dict[str, list[Any]]:
        """item, count, lower and upper, JSON-ready. Bytes are written as hexadecimal; an infinite bound is None."""
        lower, upper = self.bounds(confidence)
        return {
            "item": _plain(self.items),
            "count": self.counts.tolist(),
            "lower": _numbers(lower),
            "upper": _numbers(upper),
        }

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """A JSON-ready description. Bytes items are written as hexadecimal; an infinite bound as null."""
        columns = self.columns(confidence)
        if self.shards is not None:
            columns["shard"] = self.shards.tolist()
        out: dict[str, Any] = {
            "guarantee": self.guarantee.to_dict(),
            "threshold": self.threshold,
            "offset": self.offset,
            "confidence": confidence,
            "items": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        }
        if self.counted != "events":
            out["counted"] = self.counted
        if self.left_out is not None:
            out["left_out"] = _estimate_to_dict(self.left_out)
        if self.shard_offsets is not None:
            out["shard_offsets"] = list(self.shard_offsets)
        rest = self.rest(confidence)
        if rest is not None:
            lower, upper = _numbers(np.array([rest.lower, rest.upper]))
            out["total"] = self.total
            out["everything_else"] = {"count": int(rest.value), "lower": lower, "upper": upper}
        return out

    def to_json(self, confidence: float = 0.95) -> str:
        """The description as JSON text."""
        return json.dumps(self.to_dict(confidence), ensure_ascii=False, allow_nan=False)

    def to_payload(self) -> bytes:
        """Everything that was published, as bytes from which `from_payload` makes an equal histogram.

        This is what a ledger stores. Equal histograms have equal payloads.
        """
        import pyarrow as pa

        kind = "mixed" if pa.types.is_union(self._items.type) else str(self._items.type)
        if kind not in _ITEM_TYPES:
            raise ParameterError(f"items must be of type {', '.join(_ITEM_TYPES)}, not {kind}")
        values = self.items
        fields = {
            "release": "histogram",
            "version": PAYLOAD_VERSION,
            "guarantee": self.guarantee.to_dict(),
            "error_model": self.error_model.to_dict(),
            "threshold": self.threshold,
            "offset": self.offset,
            "total": self.total,
            "total_noise": None if self.total_noise is None else self.total_noise.to_dict(),
            "item_type": kind,
            "items": _plain(values),
            "counts": self.counts.tolist(),
        }
        if kind == "mixed":
            fields["item_kinds"] = [type(value).__name__ for value in values]
        if self.shards is not None and self.shard_offsets is not None:
            more = {"shards": self.shards.tolist(), "shard_offsets": list(self.shard_offsets)}
            fields = {**fields, "version": SHARDED_VERSION, **more}
        if self.counted != "events":
            more = {
                "counted": self.counted,
                "steps": None if self.steps is None else self.steps.tolist(),
                "left_out": None if self.left_out is None else _estimate_to_dict(self.left_out),
            }
            fields = {**fields, "version": PEOPLE_VERSION, **more}
        return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode("ascii")

    @classmethod
    def from_payload(cls, payload: bytes) -> Release:
        """The histogram of a payload; `CorruptStateError` for anything else."""
        import pyarrow as pa

        try:
            fields = json.loads(payload)
            version = fields["version"]
            sharded, people = version == SHARDED_VERSION, version == PEOPLE_VERSION
            if fields["release"] != "histogram" or version not in (PAYLOAD_VERSION, SHARDED_VERSION, PEOPLE_VERSION):
                raise CorruptStateError(
                    f"the payload is not a histogram of version {PAYLOAD_VERSION} to {PEOPLE_VERSION}"
                )
            kind = fields["item_type"]
            if kind not in _ITEM_TYPES:
                raise CorruptStateError("the payload has items of an unknown type")
            values = fields["items"]
            if kind == "large_binary":
                values = [bytes.fromhex(value) for value in values]
            guarantee = Guarantee.from_dict(fields["guarantee"])
            left_out = fields["left_out"] if people else None
            if kind == "mixed":
                kinds = fields["item_kinds"]
                array = items_array(
                    bytes.fromhex(value) if of == "bytes" else value for value, of in zip(values, kinds, strict=True)
                )
            else:
                array = pa.array(values, type=getattr(pa, kind)())
            return cls(
                array,
                np.array(fields["counts"], dtype=np.int64),
                guarantee,
                ErrorModel.from_dict(fields["error_model"]),
                threshold=fields["threshold"],
                offset=fields["offset"],
                shards=np.array(fields["shards"], dtype=np.int32) if sharded else None,
                shard_offsets=fields["shard_offsets"] if sharded else None,
                total=fields["total"],
                total_noise=None if fields["total_noise"] is None else Noise.from_dict(fields["total_noise"]),
                steps=np.array(fields["steps"], dtype=np.float64) if people and fields["steps"] is not None else None,
                counted=fields["counted"] if people else "events",
                left_out=None if left_out is None else Estimate(**left_out, guarantee=guarantee),
            )
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, pa.ArrowException):
            # Without the cause: it may quote an item.
            raise CorruptStateError("the payload is not a histogram this version can read") from None

    def plot(self, path: str | os.PathLike[str] | None = None, *, confidence: float = 0.95, most: int = 30) -> Any:
        """Bars with intervals for the first `most` items; written to `path` (png, svg, pdf) when given.

        Returns the matplotlib figure. Needs the `plot` extra.
        """
        from discreet.releases.plot import plot_histogram

        return plot_histogram(self, path, confidence=confidence, most=most)

    def __repr__(self) -> str:
        of = "items" if self.counted == "events" else f"items, counts of {self.counted}"
        return f"Release({len(self)} {of}; {self.guarantee.sentence()})"


Histogram = Release  # its name before there were histograms over time


def _estimate_to_dict(estimate: Estimate) -> dict[str, float]:
    return {"value": estimate.value, "lower": estimate.lower, "upper": estimate.upper}


def _sorted(items: pa.Array, counts: Counts) -> npt.NDArray[np.int64]:
    """Where the rows stand by noisy count, then item."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_union(items.type):
        values = items.to_pylist()
        return np.array(sorted(range(len(values)), key=lambda i: (-counts[i], item_order(values[i]))), np.int64)
    order = pc.sort_indices(
        pa.table({"item": items, "count": counts}), sort_keys=[("count", "descending"), ("item", "ascending")]
    )
    return np.asarray(order).astype(np.int64)


def _plain(items: list[Any]) -> list[Any]:
    """Items as JSON has them: bytes in hexadecimal."""
    return [item.hex() if isinstance(item, bytes) else item for item in items]


def _numbers(values: npt.NDArray[np.float64]) -> list[int | float | None]:
    """Bounds as JSON has them: whole ones without a point, an infinite one as null."""
    return [(int(x) if x.is_integer() else x) if math.isfinite(x) else None for x in values.tolist()]
