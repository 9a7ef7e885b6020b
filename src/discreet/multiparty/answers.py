"""What an aggregator is asked, and its answers as plain data: for JSON, for tables, for a service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet._version import __version__
from discreet.errors import DataError, ParameterError
from discreet.multiparty._stream import BlockStream
from discreet.multiparty.aggregator import MOST_LISTED
from discreet.multiparty.grid_hierarchy import GridHierarchy
from discreet.multiparty.hierarchical_stream import HierarchicalStream
from discreet.multiparty.hierarchy import Hierarchy
from discreet.privacy.checks import probability
from discreet.releases.formats import intervals, paragraph, table_text

if TYPE_CHECKING:
    from discreet.multiparty._base import Protocol
    from discreet.multiparty.estimates import Estimates
    from discreet.multiparty.stream_aggregator import StreamEstimates
    from discreet.privacy.guarantee import Guarantee

__all__ = ["Questions", "answers_text"]


@dataclass(frozen=True)
class Questions:
    """What is asked.

    Attributes:
        items: Estimate these items.
        top: The so many items with the largest estimates, of a bounded universe.
        share: With levels, or of a stream whose blocks name items: all items that make up at least this share.
        quantiles: With levels: these quantiles.
        ranges: With levels: how many items are within these bounds, both included.
        time: Of a stream: at this step.
        liars: How far this share of the parties could have moved each estimate.
        consistent: Counts that could be, of a round: none negative, and with the total.
    """

    items: tuple[Any, ...] = ()
    top: int | None = None
    share: float | None = None
    quantiles: tuple[float, ...] = ()
    ranges: tuple[tuple[Any, Any], ...] = ()
    time: int | None = None
    liars: float | None = None
    consistent: bool = False

    def check(self, protocol: Protocol) -> None:
        """Refuse what the protocol cannot answer."""
        levels = isinstance(protocol, (Hierarchy, HierarchicalStream))
        if self.share is not None and not (levels or protocol.names_items):
            raise ParameterError("a share needs a round with levels, of one dimension, or a stream that names items")
        if self.quantiles and not levels:
            raise ParameterError("quantiles need a round with levels, of one dimension")
        if self.ranges and not levels and not isinstance(protocol, GridHierarchy):
            raise ParameterError("ranges need a round with levels")
        if self.consistent and isinstance(protocol, BlockStream):
            raise ParameterError("how many items a stream has is not known, so nothing is made consistent")
        if self.time is not None and not isinstance(protocol, BlockStream):
            raise ParameterError("a time is for streams")
        if self.liars is not None:
            probability("liars", self.liars)
            if not self.items and self.top is None:
                raise ParameterError("what liars could have moved is told of items, or of the top")
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
            is_stream = isinstance(protocol, BlockStream)
            at = (self.time,) if is_stream else ()
            how = {"consistent": True} if self.consistent else {}
            counts = aggregator.estimate(items, *at, **how)
            rows = _rows(items, counts, confidence)
            if self.liars is not None:
                lies = aggregator.liars(items, self.liars, *at)
                found["liars"] = {"share": lies.share, "count": lies.count}
                for row, high, low in zip(rows, lies.too_high.tolist(), lies.too_low.tolist(), strict=True):
                    row.update(too_high=high, too_low=low)
            if self.consistent:
                found["consistent"] = True
            found["estimates"] = rows if self.top is None else sorted(rows, key=lambda row: -row["count"])[: self.top]
            if is_stream:
                found.update(_told(counts))
        asked = aggregator
        if isinstance(protocol, HierarchicalStream):
            asked = aggregator.at(self.time)
            found.update(_told(asked.estimate([])))
        if self.share is not None:
            at = (self.time,) if protocol.names_items else ()
            hitters = asked.heavy_hitters(self.share, *at)
            if at:
                found.update(_told(hitters.estimates))
            found["heavy_hitters"] = _rows(hitters.items, hitters.estimates, confidence)
            found["complete"] = hitters.complete
        if self.quantiles:
            found["quantiles"] = []
            for share in self.quantiles:
                place = asked.quantile(share, confidence)
                row = {"share": share, "value": place.value, "lower": place.lower, "upper": place.upper}
                found["quantiles"].append(row)
        if self.ranges:
            found["ranges"] = []
            for low, high in self.ranges:
                count = asked.range_count(low, high, confidence)
                row = {"low": low, "high": high, "count": count.value, "lower": count.lower, "upper": count.upper}
                found["ranges"].append(row)
        return {**found, "guarantee": aggregator.guarantee.to_dict(), "version": __version__}


def _told(counts: StreamEstimates) -> dict[str, Any]:
    """Which steps are counted, and which share of them each party told about."""
    coverage = {str(number): part for number, part in counts.coverage.items()}
    return {"since": counts.since, "time": counts.time, "coverage": coverage}


def _rows(items: Any, counts: Estimates, confidence: float) -> list[dict[str, Any]]:
    lower, upper = counts.bounds(confidence)
    columns = (items, counts.values.tolist(), lower.tolist(), upper.tolist())
    return [
        {"item": item, "count": count, "lower": low, "upper": high}
        for item, count, low, high in zip(*columns, strict=True)
    ]


def answers_text(found: dict[str, Any], guarantee: Guarantee, confidence: float, width: int | None = None) -> str:
    """Answers, and what was heard, for people."""
    heard, interval = found["messages"], f"{100 * confidence:g}% interval"
    lines: list[str] = []

    def table(name: str, heading: str, label: Callable[[dict[str, Any]], Any]) -> None:
        rows = found.get(name)
        if rows is not None:
            between = intervals([row["lower"] for row in rows], [row["upper"] for row in rows])
            cells = [(label(row), f"{row['count']:,.0f}", ends) for row, ends in zip(rows, between, strict=True)]
            lines.append(table_text([heading, "estimate", interval], cells, (1, 2), width).rstrip("\n"))

    table("estimates", "item", lambda row: row["item"])
    if found.get("consistent"):
        lines.append(
            "Estimates are the nearest possible counts; the intervals are those of the unbiased ones, and hold."
        )
    if "liars" in found:
        most = [max(row[end] for row in found["estimates"]) for end in ("too_high", "too_low")]
        lines.append(
            f"If {found['liars']['count']:,} of them lied ({100 * found['liars']['share']:g}%), an estimate is at most "
            f"{most[0]:,.0f} too high or {most[1]:,.0f} too low for that."
        )
    table("heavy_hitters", "item", lambda row: row["item"])
    if not found.get("complete", True):
        lines.append("This share is within the noise, or what was left out: items that reach it may be missing.")
    if "quantiles" in found:
        rows = [(f"{row['share']:g}", row["value"], f"{row['lower']} to {row['upper']}") for row in found["quantiles"]]
        lines.append(table_text(["quantile", "item", interval], rows, (), width).rstrip("\n"))
    table("ranges", "range", lambda row: f"{row['low']} to {row['high']}")
    if "coverage" in found:
        lines.append(f"Steps {found['since'] + 1} to {found['time']}.")
        missing = {number: part for number, part in found["coverage"].items() if part < 1}
        lines += [f"Party {number} told about {100 * part:.0f}% of them." for number, part in missing.items()]
    rejected = f", {len(heard['rejected'])} rejected" if heard["rejected"] else ""
    repeated = f", {heard['repeated']} repeated" if heard["repeated"] else ""
    if "shown" in found:
        lines.append(f"{found['shown']:,} reports are shown, in whole batches; the others wait for theirs.")
    lines.append(f"{found['parties']} parties, {found['bytes']:,} bytes{repeated}{rejected}.")
    return "\n".join([*lines, paragraph(guarantee.sentence())])
