"""Parties and aggregators that live in files: what a party sends next, what an aggregator heard, and what it answers.

`Questions` are what may be asked of any aggregator, and their answers plain data: for JSON and for tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet._data_class import dataclass
from discreet._version import __version__
from discreet.errors import DataError, DiscreetError, MessageError, ParameterError, WordError
from discreet.events.universe import item_written, lines_of
from discreet.multiparty._base import Protocol, known_protocol, protocol_from_dict
from discreet.multiparty.aggregator import MOST_LISTED, Receiver
from discreet.multiparty.block_stream import BlockStream, StreamEstimates
from discreet.multiparty.estimates import Estimates
from discreet.multiparty.grid import GridHierarchy
from discreet.multiparty.hierarchy import Hierarchy
from discreet.multiparty.sketch_stream import HierarchicalStream
from discreet.multiparty.stream_party import StreamParty
from discreet.privacy.checks import numbered, probability
from discreet.releases.formats import intervals, paragraph, table_text
from discreet.storage import StateFile, locked

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger import Account

MOST_BYTES = 2**30
STREAMS = ("Stream", "HierarchicalStream")
Undisturbed = Callable[[], AbstractContextManager[None]]


def round_of(
    protocol: str,
    round_id: str,
    budget: Budget,
    universes: Sequence[Any],
    given: dict[str, Any],
    *,
    levels: bool = False,
    branching: int | None = None,
) -> Protocol:
    """A round by its protocol's name and parameters; with `levels` of intervals, of one universe or several."""
    try:
        if not levels:
            return known_protocol(protocol)(round_id, budget, universes[0], **given)
        if protocol in STREAMS:
            return HierarchicalStream(round_id, budget, universes[0], branching=branching, **given)
        if len(universes) > 1:
            return GridHierarchy(round_id, budget, tuple(universes), protocol, branching, given)
        return Hierarchy(round_id, budget, universes[0], protocol, branching, given)
    except TypeError:
        raise WordError(f"an {{option}} names no parameter of {protocol}") from None


def next_message(
    stream: BlockStream,
    number: int,
    state: Path,
    read: Callable[[], Any],
    until: int | None = None,
    *,
    ledger: Account | None = None,
    undisturbed: Undisturbed = nullcontext,
) -> tuple[bytes | None, int, int]:
    """The party goes on from its state: its next message (None if there is nothing to send), the first and last step.

    The state is on disk before the charge counts as used, so that after a crash the same call goes on; and before the
    message is handed out, so that noise is not drawn twice. All is told in one message, so that the state never holds
    one that was not handed on.

    `read` gives the items of the next steps when the state, which is NOT private, is locked; nothing arrives from the
    last of them to step `until`. The ledger pays once for all that the party will ever send, and `undisturbed` holds
    off interrupts from the charge on.
    """
    with locked(state) as kept:
        items = read()
        party = _restored(stream, number, kept, ledger) if kept.exists else stream.party(number, ledger=ledger)

        def save() -> None:
            kept.replace(party.to_bytes())

        with undisturbed():
            if ledger is not None and not kept.exists:
                party.begin(save=save)
            before = party.time
            return party.feed_until(items, until, save=save), before + 1, party.time


def last_message(stream: BlockStream, number: int, state: Path, *, ledger: Account | None = None) -> bytes | None:
    """What the party sent last, once more."""
    with locked(state) as kept:
        if not kept.exists:
            raise ParameterError(f"there is no state {str(state)!r}, so nothing was sent")
        return _restored(stream, number, kept, ledger).last_message


def _restored(stream: BlockStream, number: int, kept: StateFile, ledger: Account | None) -> StreamParty:
    party = stream.restore_party(kept.read(), ledger=ledger)
    if party.number != number:
        raise ParameterError(f"the state belongs to party {party.number}; give that number, or the state of this party")
    return party


def hear(
    protocol: Protocol,
    messages: Iterable[Path],
    state: Path | None = None,
    *,
    limits: dict[str, int] | None = None,
    wait_seconds: float = 0.0,
    undisturbed: Undisturbed = nullcontext,
) -> tuple[Any, dict[str, Any]]:
    """The aggregator after these message files, or directories of them, and what became of every one, JSON-ready.

    What cannot be verified, or speaks of more than it may, is left out and the rest goes on. With a state the
    aggregator goes on from it. `limits` are those of `Round.aggregator`. A shuffled round needs a state: what it
    shows are batches, and only what remembers them shows the same ones when another message has come.
    """
    limits = limits or {}
    if limits and isinstance(protocol, BlockStream):
        raise ParameterError("limits work with rounds only; a packet of a stream has one item per step")
    if state is None and getattr(protocol, "shuffled", None) is not None:
        raise ParameterError(
            "a shuffled round needs a state file to remember the batches it has shown. Without one, the answers before "
            "and after a report would reveal that report"
        )
    aggregator: Receiver
    if state is None:
        aggregator = protocol.aggregator(**limits)
        return aggregator, _hear(aggregator, messages)
    with locked(state, wait_seconds=wait_seconds) as kept:
        aggregator = protocol.restore(kept.read(), **limits) if kept.exists else protocol.aggregator(**limits)
        heard = _hear(aggregator, messages)
        with undisturbed():
            kept.replace(aggregator.to_bytes())
    return aggregator, heard


def _hear(aggregator: Receiver, messages: Iterable[Path]) -> dict[str, Any]:
    heard: dict[str, Any] = {"accepted": 0, "repeated": 0, "rejected": []}
    for path in _files(messages):
        try:
            heard["accepted" if aggregator.receive(bytes_of(path)) else "repeated"] += 1
        except DiscreetError as error:  # not a message, or a file that cannot be read
            reason = error.reason if isinstance(error, MessageError) else "file"
            heard["rejected"].append({"file": str(path), "reason": reason, "text": str(error)})
    return heard


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
        else:
            yield path


def protocol_of(round_file: Path) -> Protocol:
    """The protocol that a round's file describes."""
    try:
        values = json.loads(bytes_of(round_file))
    except ValueError:
        raise DataError(f"{str(round_file)!r} is not the JSON that `discreet party round` writes") from None
    return protocol_from_dict(values)


def bytes_of(path: Path) -> bytes:
    """All of a file, unless it is longer than any message or state."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DiscreetError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise DataError(f"{str(path)!r} is longer than any message or state")
    return data


@dataclass(frozen=True)
class Questions:
    """What is asked.

    Attributes:
        items: Estimate these items.
        top: This many items with the largest estimates, of a bounded universe.
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

    @classmethod
    def of(
        cls, protocol: Protocol, item: Sequence[str], items: Path | None, ranges: Sequence[str], **more: Any
    ) -> Questions:
        """What is asked in text: items, those of a file, and bounds LOW:HIGH, as the universe of the round has them."""
        bounds = [text.split(":", 1) for text in ranges]
        if any(len(ends) < 2 for ends in bounds):
            raise WordError("{range} must be LOW:HIGH")
        read = partial(item_written, universe=protocol.universe)
        listed = [*item, *(lines_of(items) if items is not None else [])]
        asked = cls(tuple(map(read, listed)), ranges=tuple((read(low), read(high)) for low, high in bounds), **more)
        asked.check(protocol)
        return asked

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
            raise ParameterError(
                "the number of items of a stream is not known, so its estimates cannot be made consistent"
            )
        if self.time is not None and not isinstance(protocol, BlockStream):
            raise ParameterError("a time works with streams only")
        if self.liars is not None:
            probability("liars", self.liars)
            if not self.items and self.top is None:
                raise ParameterError("liars work with items, or with the top")
        if self.top is not None:
            if self.items:
                raise ParameterError("ask for the top or for items, not both")
            size = protocol.universe.size
            if size is None or size > MOST_LISTED:
                raise ParameterError(f"the top needs a universe of at most {MOST_LISTED} items; or levels and a share")

    def report(
        self, protocol: Protocol, aggregator: Any, heard: Mapping[str, Any], confidence: float
    ) -> dict[str, Any]:
        """Of which round, what was `heard` and what is answered, JSON-ready."""
        return {
            "round_id": protocol.round_id,
            "protocol": type(protocol).__name__,
            "parties": aggregator.parties,
            **({"shown": aggregator.shown} if getattr(protocol, "shuffled", None) is not None else {}),
            "messages": heard,
            "bytes": aggregator.bytes_received,
            **self.answered(protocol, aggregator, confidence),
        }

    def answered(self, protocol: Protocol, aggregator: Any, confidence: float) -> dict[str, Any]:
        """The answers, JSON-ready, with the guarantee."""
        if aggregator.parties == 0:
            raise DataError("no message was accepted, so there is nothing to estimate")
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
        lines.append(f"Shown: {numbered(found['shown'], 'report')}, in whole batches; the others wait for theirs.")
    lines.append(f"{numbered(found['parties'], 'party')}, {numbered(found['bytes'], 'byte')}{repeated}{rejected}.")
    return "\n".join([*lines, paragraph(guarantee.sentence())])
