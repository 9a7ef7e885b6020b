"""What an aggregator is asked, and its answers as plain data: for JSON, for tables, for a service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError, ParameterError
from discreet.multiparty.hierarchy import Hierarchy
from discreet.multiparty.stream import Stream

if TYPE_CHECKING:
    from discreet.multiparty._base import Protocol
    from discreet.multiparty.estimates import Estimates

__all__ = ["Questions"]

MOST_LISTED = 2**20


@dataclass(frozen=True)
class Questions:
    """What is asked.

    Attributes:
        items: Estimate these items.
        top: The so many items with the largest estimates, of a bounded universe.
        share: With levels: all items that make up at least this share.
        quantiles: With levels: these quantiles.
        ranges: With levels: how many items are within these bounds, both included.
        time: Of a stream: at this step.
    """

    items: tuple[Any, ...] = ()
    top: int | None = None
    share: float | None = None
    quantiles: tuple[float, ...] = ()
    ranges: tuple[tuple[Any, Any], ...] = ()
    time: int | None = None

    def check(self, protocol: Protocol) -> None:
        """Refuse what the protocol cannot answer."""
        if (self.share is not None or self.quantiles or self.ranges) and not isinstance(protocol, Hierarchy):
            raise ParameterError("a share, quantiles and ranges need a round with levels")
        if self.time is not None and not isinstance(protocol, Stream):
            raise ParameterError("a time is for streams")
        if self.top is not None:
            if self.items:
                raise ParameterError("ask either for the top, or for items")
            size = protocol.universe.size
            if size is None or size > MOST_LISTED:
                raise ParameterError(f"the top needs a universe of at most {MOST_LISTED} items; or levels and a share")

    def answered(self, protocol: Protocol, aggregator: Any, confidence: float) -> dict[str, Any]:
        """The answers, JSON-ready, with the guarantee."""
        if aggregator.parties == 0:
            raise DataError("no message could be taken, so there is nothing to estimate")
        found: dict[str, Any] = {}
        items = self.items if self.top is None else protocol.universe.items(range(protocol.universe.size or 0))
        if len(items):
            is_stream = isinstance(protocol, Stream)
            counts = aggregator.estimate(items, self.time) if is_stream else aggregator.estimate(items)
            rows = _rows(items, counts, confidence)
            found["estimates"] = rows if self.top is None else sorted(rows, key=lambda row: -row["count"])[: self.top]
            if is_stream:
                found.update(since=counts.since, time=counts.time)
                found["coverage"] = {str(number): part for number, part in counts.coverage.items()}
        if self.share is not None:
            hitters = aggregator.heavy_hitters(self.share)
            found["heavy_hitters"] = _rows(hitters.items, hitters.estimates, confidence)
            found["complete"] = hitters.complete
        if self.quantiles:
            found["quantiles"] = []
            for share in self.quantiles:
                place = aggregator.quantile(share, confidence)
                row = {"share": share, "value": place.value, "lower": place.lower, "upper": place.upper}
                found["quantiles"].append(row)
        if self.ranges:
            found["ranges"] = []
            for low, high in self.ranges:
                count = aggregator.range_count(low, high, confidence)
                row = {"low": low, "high": high, "count": count.value, "lower": count.lower, "upper": count.upper}
                found["ranges"].append(row)
        return {**found, "guarantee": aggregator.guarantee.to_dict()}


def _rows(items: Any, counts: Estimates, confidence: float) -> list[dict[str, Any]]:
    lower, upper = counts.bounds(confidence)
    columns = (items, counts.values.tolist(), lower.tolist(), upper.tolist())
    return [
        {"item": item, "count": count, "lower": low, "upper": high}
        for item, count, low, high in zip(*columns, strict=True)
    ]
