"""What streams are expected to achieve, from public numbers alone, before anything is sent: which epochs to take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.errors import ParameterError
from discreet.events.universe import Universe
from discreet.multiparty._plan import PlannedProtocol, RoundPlan, _bits, _Model
from discreet.multiparty._sketches import laplace_variance
from discreet.multiparty.epochs import block_cover
from discreet.multiparty.hierarchical_stream import HierarchicalStream
from discreet.multiparty.ordered import levels_of
from discreet.multiparty.stream import Stream
from discreet.privacy import Budget
from discreet.privacy.checks import positive_number, whole_number

__all__ = ["plan_stream"]

_ENVELOPE = 34  # header, numbers, checksum, and those of a packet
_MOMENTS = 24  # at which the error is computed
_SHOWN = 8  # streams
_SHARE = 0.01  # of an item, for what is missing where nothing is sampled


def plan_stream(
    parties: int,
    steps: int,
    epsilon: float,
    bytes_per_party: float,
    *,
    window: bool = False,
    universe_size: int = 2**20,
    branching: int | None = None,
    zipf: float = 1.2,
) -> RoundPlan:
    """The expected error of streams with epochs of several lengths, with and without samples, and which to take.

    Longer epochs are fewer levels, so less noise on the blocks, and more weight on each sample; without samples the
    open epoch is missing. The error is the mean standard deviation of an estimate over the time, for a Zipf law as in
    `plan`; without samples what is missing of an item that makes up 1 percent is added. Everything here is public.

    Args:
        parties: How many there are.
        steps: The length of the stream, or of the window.
        epsilon: What all that a party ever sends may tell about one of its steps.
        bytes_per_party: How much a party may send in so many steps.
        window: Whether counts are of the last steps, for ever, and not since the beginning.
        universe_size: How many different items there may be.
        branching: The parts of an interval, for a `HierarchicalStream`; None for a `Stream`.
        zipf: The exponent of the law that is assumed; more is more skewed.
    """
    parties, steps = whole_number("parties", parties, 1, 2**40), whole_number("steps", steps, 1, 2**40)
    limit, size = (
        positive_number("bytes_per_party", bytes_per_party),
        whole_number("universe_size", universe_size, 1, 2**62),
    )
    law = _Model(
        parties, parties * steps, positive_number("epsilon", epsilon), limit, size, positive_number("zipf", zipf)
    )
    squares = float((law.shares() ** 2).sum())
    own: dict[str, Any] = {"window" if window else "horizon": steps}
    kind: type[Stream] = Stream
    if branching is not None:
        kind, own["branching"] = HierarchicalStream, branching
        levels_of(Universe.of(size), branching)
    rows = []
    for epochs in (2**i for i in range(min(steps.bit_length(), 17))):
        for share in (0.5, 0.0) if steps // epochs > 1 else (0.5,):
            found = None
            for columns in (2**i for i in range(21)):
                given = {**own, "epoch_steps": steps // epochs, "columns": columns, "sample_share": share}
                try:
                    stream = kind("plan", Budget(epsilon), size, **given)
                except ParameterError:  # too many cells
                    break
                row = _row(stream, given, steps, parties, squares, limit)
                if found is not None and (not row.fits or row.error > 0.99 * found.error):
                    break
                found = row
            if found is not None:
                rows.append(found)
    if not rows:
        raise ParameterError("no stream can be made with this epsilon: it is too small")
    rows.sort(key=lambda row: (not row.fits, row.error))
    fitting = [row for row in rows if row.fits][:_SHOWN]
    return RoundPlan(tuple(fitting or sorted(rows, key=lambda row: row.bytes_per_party)[:_SHOWN]))


def _row(
    stream: Stream, given: dict[str, Any], steps: int, parties: int, squares: float, limit: float
) -> PlannedProtocol:
    sizes = [_collisions(stream, level, squares) for level in range(stream.levels)]
    noise, epochs = laplace_variance(stream.scale), steps // stream.epoch_steps
    blocks = [epochs >> level for level in range(stream.levels)]
    cells = sum(n * stream.shape.cells[level] * _bits(noise + sizes[level]) for level, n in enumerate(blocks))
    samples = steps * float(stream.sample_rate) if stream.samples else 0.0
    size = _ENVELOPE * (epochs + samples) + cells / 8 + samples * 1.2
    errors = [
        math.sqrt(parties * variance) + parties * _SHARE * missing
        for variance, missing in _moments(stream, steps, [noise + of_level for of_level in sizes])
    ]
    return PlannedProtocol(type(stream), given, stream.epsilon, float(np.mean(errors)), size, size <= limit)


def _collisions(stream: Stream, level: int, squares: float) -> float:
    """F2/width of a block."""
    items = stream.epoch_steps << level
    return (items**2 * squares + items) / stream.width(level)


def _moments(stream: Stream, steps: int, blocks: list[float]) -> Iterator[tuple[float, float]]:
    """At several moments the variance of a party's part of an estimate, and how many of its steps are missing."""
    b = stream.epoch_steps
    for moment in range(1, 1 + _MOMENTS):
        since = 0 if stream.window is None else steps * moment // _MOMENTS
        time = since + (steps * moment // _MOMENTS if stream.window is None else steps)
        first, end = -(-since // b), time // b
        cover = block_cover(first, end, stream.levels, lambda _: True, range(first, end))
        variance = sum(blocks[block.level] for block in cover)
        # Moments are any: half an epoch is open at the end, and of a window at the beginning.
        unsure = b / 2 * (1 if stream.window is None else 2) if b > 1 else 0.0
        if stream.samples:
            c = float(1 / (2 * stream.keep - 1))
            yield variance + unsure * max(b, stream.tracks) * c * c, 0.0
        else:
            yield variance, unsure
