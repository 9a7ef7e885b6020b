"""What rounds and streams are expected to achieve, from public numbers alone, before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from discreet._data_class import dataclass, replace
from discreet.errors import ParameterError, WordError
from discreet.events.universe import Universe
from discreet.multiparty._base import Protocol
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.hadamard_response import HadamardResponse
from discreet.multiparty.hierarchy import Hierarchy
from discreet.multiparty.levels import levels_of
from discreet.multiparty.local_hashing import LocalHashing
from discreet.multiparty.local_protocol import USUAL_DELTA, LocalProtocol
from discreet.multiparty.local_sketch import LocalSketch
from discreet.multiparty.packets import block_cover
from discreet.multiparty.party_sketches import IndependentSketches, laplace_variance
from discreet.multiparty.separation import Separation
from discreet.multiparty.sketch_stream import HierarchicalStream, Stream
from discreet.multiparty.wire import MAX_CELLS
from discreet.privacy import Budget, shuffled
from discreet.privacy.checks import positive_number, whole_number
from discreet.privacy.rounding import figure_up

_ENVELOPE = 28  # header, two numbers, checksum
_PACKET = 34  # the same of a stream, and the numbers of a packet
_MEDIAN_OF_3 = 0.449  # its variance over that of one, for normal variables
_LISTED = 20_000  # items of the assumed distribution that are written out
_MOMENTS = 24  # of a stream, at which its error is computed
_SHOWN = 8  # streams
_SHARE = 0.01  # of an item, for what is missing where nothing is sampled


@dataclass(frozen=True)
class PlannedProtocol:
    """One protocol with parameters that fit.

    ``error`` is the expected standard deviation of an estimate, in counts over all parties, for an item that is no
    party's heavy one; of a stream what is missing is added. ``bytes_per_party`` is what a message is expected to have.
    """

    kind: type[Protocol]
    parameters: dict[str, Any]
    epsilon: float
    error: float
    bytes_per_party: float
    fits: bool

    def protocol(self, round_id: str, universe: Any) -> Protocol:
        """A round of it."""
        return self.kind(round_id, Budget(self.epsilon), universe, **self.parameters)


@dataclass(frozen=True)
class RoundPlan:
    """What may be chosen, side by side: what fits first, the smallest error first.

    ``reports`` are those of a local protocol, which has one for every item; None where there is no single round.
    """

    rows: tuple[PlannedProtocol, ...]
    reports: int | None = None

    @property
    def pick(self) -> PlannedProtocol:
        """The one with the smallest error among those that fit; if none does, the one with the shortest messages."""
        if self.rows[0].fits:
            return self.rows[0]
        return min(self.rows, key=lambda row: row.bytes_per_party)

    @property
    def local(self) -> PlannedProtocol:
        """The local protocol with the smallest error, of those that fit if any does."""
        return next(row for row in self.rows if issubclass(row.kind, LocalProtocol))

    @cached_property
    def shuffled(self) -> Budget:
        """What the reports of that one lose in one shuffled batch, if the collector forgets their senders."""
        protocol = self.local.protocol("plan", 2)
        assert isinstance(protocol, LocalProtocol)
        return shuffled(min(protocol.epsilon, 50.0), self.reports or 0, USUAL_DELTA, choices=protocol._choices)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        rows = [
            {"protocol": row.kind.__name__, "error": row.error, "bytes_per_party": row.bytes_per_party}
            | {"fits": row.fits, "parameters": row.parameters}
            for row in self.rows
        ]
        told = {"epsilon": self.rows[0].epsilon, "protocols": rows, "pick": self.pick.kind.__name__}
        if self.reports is not None:
            worth = {"protocol": self.local.kind.__name__, "reports": self.reports}
            told["shuffled"] = worth | {"epsilon": self.shuffled.epsilon, "delta": self.shuffled.delta}
        return told

    def __str__(self) -> str:
        lines = [f"{'protocol':<22}{'error':>12}{'bytes/party':>13}  parameters"]
        for row in self.rows:
            mark = "" if row.fits else "  (does not fit)"
            numbers = ", ".join(f"{name}={_shown(value)}" for name, value in row.parameters.items())
            lines.append(f"{row.kind.__name__:<22}{row.error:>12,.0f}{row.bytes_per_party:>13,.0f}  {numbers}{mark}")
        if self.reports is not None:
            worth = f"epsilon {figure_up(self.shuffled.epsilon or 0.0)} at delta {self.shuffled.delta:g}"
            lines.append(f"Of {self.local.kind.__name__}, {self.reports:,} reports in one shuffled batch: {worth},")
            lines.append(f"if the collector forgets who sent them; {self.rows[0].epsilon:g} in any case.")
        return "\n".join(lines)


def _best_first(rows: Iterable[PlannedProtocol]) -> list[PlannedProtocol]:
    return sorted(rows, key=lambda row: (not row.fits, row.error))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{name}={_shown(inner)}" for name, inner in value.items()) + ")"
    return str(value) if isinstance(value, str) else f"{value:g}"


def plan(
    parties: int,
    total: int | None = None,
    epsilon: float | None = None,
    bytes_per_party: float = 1000.0,
    *,
    steps: int | None = None,
    window: bool = False,
    universe_size: int = 2**20,
    branching: int | None = None,
    zipf: float = 1.2,
) -> RoundPlan:
    """The expected error of each protocol for messages of a given size, and which to take.

    Errors of sketches depend on how skewed the items are, which is not known: they are computed for a Zipf law, with
    equal parties that all draw from it. Everything here is public; nothing is computed from data.

    With `steps` in place of `total` it is about a stream: epochs of several lengths, with and without samples. Longer
    epochs are fewer levels, so less noise on the blocks, and more weight on each sample; without samples the open epoch
    is missing. The error is then the mean standard deviation of an estimate over the time; without samples what is
    missing of an item that makes up 1 percent is added.

    Args:
        parties: How many there are.
        total: How many items they have together, about.
        epsilon: What all that a party ever sends may tell about one of its items, or steps.
        bytes_per_party: How long messages may be on average; of a stream, all messages of this many steps together.
        steps: The length of the stream, or of the window.
        window: Whether counts of a stream are of the last steps, for ever, and not since the beginning.
        universe_size: How many different items there may be, for the protocols that need a bounded universe.
        branching: The parts of an interval, for a `Hierarchy` of each protocol or a `HierarchicalStream`; None for
            items alone.
        zipf: The exponent of the law that is assumed; more is more skewed.
    """
    if (total is None) == (steps is None):
        raise WordError("give {total} for a round, or {steps} for a stream")
    if window and steps is None:
        raise WordError("{window} needs {steps}; only streams have a window")
    model = _Model(
        whole_number("parties", parties, 1, 2**40),
        whole_number("total", total, 1, 2**50) if steps is None else parties * whole_number("steps", steps, 1, 2**40),
        positive_number("epsilon", epsilon),
        positive_number("bytes_per_party", bytes_per_party),
        whole_number("universe_size", universe_size, 1, 2**62),
        positive_number("zipf", zipf),
    )
    if steps is not None:
        return _of_streams(model, steps, window, branching)
    return _of_rounds(model) if branching is None else _of_levels(model, branching)


def _of_rounds(model: _Model) -> RoundPlan:
    best: dict[type[Protocol], PlannedProtocol] = {}
    for row in _best_first([*model.local(), *model.sketches(), *model.separated()]):
        best.setdefault(row.kind, row)
    return RoundPlan(tuple(best.values()), model.total)


def _of_levels(model: _Model, branching: int) -> RoundPlan:
    """The same for a `Hierarchy` of each protocol: the expected error of an item's count, of all levels' messages.

    Parties with many items split epsilon and bytes over the levels; of a local protocol a level has its share of the
    reports, and counts from that are as many times larger. Fewer levels (a larger `branching`) err less, and take
    longer to search; a range has the error of up to 2 (branching - 1) intervals a level.
    """
    levels, epsilon = len(levels_of(Universe.of(model.universe), branching)), model.epsilon
    whole = _of_rounds(model)
    split = _of_rounds(replace(model, epsilon=epsilon / levels, limit=model.limit / levels))
    rows = []
    for row in [*whole.rows, *split.rows]:
        local = issubclass(row.kind, LocalProtocol)
        if local != (row.epsilon == whole.rows[0].epsilon) and levels > 1:
            continue
        own = {"protocol": row.kind.__name__, "branching": branching, "options": row.parameters}
        error, size = (math.sqrt(levels), 1) if local else (1.0, levels)
        rows.append(PlannedProtocol(Hierarchy, own, epsilon, error * row.error, size * row.bytes_per_party, row.fits))
    best = {row.parameters["protocol"]: row for row in rows}
    return RoundPlan(tuple(_best_first(best.values())))


def _of_streams(law: _Model, steps: int, window: bool, branching: int | None) -> RoundPlan:
    """The same for epochs of several lengths, with and without samples."""
    squares = float((law.shares() ** 2).sum())
    own: dict[str, Any] = {"window" if window else "horizon": steps}
    kind: type[Stream] = Stream
    if branching is not None:
        kind, own["branching"] = HierarchicalStream, branching
        levels_of(Universe.of(law.universe), branching)
    rows = []
    for epochs in (2**i for i in range(min(steps.bit_length(), 17))):
        for share in (0.5, 0.0) if steps // epochs > 1 else (0.5,):
            found = None
            for columns in (2**i for i in range(21)):
                given = {**own, "epoch_steps": steps // epochs, "columns": columns, "sample_share": share}
                try:
                    stream = kind("plan", Budget(law.epsilon), law.universe, **given)
                except ParameterError:  # too many cells
                    break
                row = _row(stream, given, steps, squares, law)
                if not math.isfinite(row.error):
                    break
                if found is not None and (not row.fits or row.error > 0.99 * found.error):
                    break
                found = row
            if found is not None:
                rows.append(found)
    if not rows:
        raise ParameterError("this epsilon is too small for any stream; use a larger one")
    rows = _best_first(rows)
    fitting = [row for row in rows if row.fits][:_SHOWN]
    return RoundPlan(tuple(fitting or sorted(rows, key=lambda row: row.bytes_per_party)[:_SHOWN]))


@dataclass(frozen=True)
class _Model:
    """What is assumed: how many parties have how many items, what a message may tell, and how long it may be."""

    parties: int
    total: int
    epsilon: float
    limit: float
    universe: int
    zipf: float

    @property
    def items(self) -> float:
        """Of a party."""
        return self.total / self.parties

    def shares(self) -> Numbers:
        """The shares of the most frequent items; what is beyond those written out collides like noise and is small."""
        ranks = np.arange(1, min(self.universe, _LISTED) + 1, dtype=np.float64)
        weights = ranks**-self.zipf
        beyond = 0.0
        if self.universe > _LISTED:
            a = 1 - self.zipf
            last = math.log(self.universe / _LISTED) if a == 0 else (self.universe**a - _LISTED**a) / a
            beyond = float(last)
        shares: Numbers = weights / (weights.sum() + beyond)
        return shares

    def _row(self, kind: type[Protocol], variance: float, size: float, **own: Any) -> PlannedProtocol:
        return PlannedProtocol(kind, own, self.epsilon, math.sqrt(variance), size, size <= self.limit)

    def _largest(self, size: Callable[[int], float]) -> int:
        """The most columns whose message fits; 1 if none does."""
        low, high = 1, MAX_CELLS // 64
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if size(middle) <= self.limit else (low, middle - 1)
        return low

    def _most_items(self, width: int, rows: int) -> int:
        """Sixteen times as many items as a party has on average, unless more of them would be too many cells."""
        times = min(16.0, (MAX_CELLS // max(width * rows, 1) - 1) or 1)
        return max(1, math.ceil(times * self.items))

    # ---- protocol by protocol --------------------------------------------------------------------------------------

    def local(self) -> Iterator[PlannedProtocol]:
        """Every item is a report."""
        budget, n = Budget(self.epsilon), self.items
        hadamard = HadamardResponse("plan", budget, 2)
        c = float(1 / (2 * hadamard.keep - 1))
        yield self._row(HadamardResponse, self.total * c * c, _ENVELOPE + n / 8)
        hashing = LocalHashing("plan", budget, 2)
        rate, _ = hashing._rates(hashing.buckets)
        yield self._row(LocalHashing, self.total * rate, _ENVELOPE + n * hashing._width / 8)
        sketch = LocalSketch("plan", budget, 2)
        noise = laplace_variance(sketch.scale)
        bits = sketch._cells * _bits(noise + 1 / sketch._cells)
        yield self._row(LocalSketch, self.total * (noise + 1 / sketch._cells), _ENVELOPE + n * bits / 8)

    def sketches(self) -> Iterator[PlannedProtocol]:
        """A sketch of each party."""
        return map(self._sketches, (1, 3))

    def _sketches(self, rows: int) -> PlannedProtocol:
        counts = self.items * self.shares()
        squares = float((counts**2).sum() + self.items)
        noise = laplace_variance(2 * rows / self.epsilon)

        def size(width: int) -> float:
            return _ENVELOPE + rows * width * _bits(noise + squares / width) / 8

        width = self._largest(size)
        variance = self.parties * _of_rows(rows, noise, squares, counts, width)
        own = {"items_per_column": self.items / width, "rows": rows, "max_items": self._most_items(width, rows)}
        return self._row(IndependentSketches, variance, size(width), **own)

    def separated(self) -> Iterator[PlannedProtocol]:
        """Heavy items apart."""
        return map(self._separated, (0.25, 0.4, 0.5))

    def _separated(self, share: float) -> PlannedProtocol:
        made = Separation("plan", Budget(self.epsilon), self.universe, separation_share=share)
        assert made.threshold is not None
        counts = self.items * self.shares()
        heavy = _chance_above(made.threshold + 1 - counts, float(made.separation_scale))
        light = max(self.items - float((counts * heavy).sum()), 0.0)
        squares = float((counts**2 * (1 - heavy)).sum() + light)
        noise = laplace_variance(made.heavy_scale)

        def size(width: int) -> float:
            step = max(1.0, light / width)  # from which on an entry is sent certainly
            entries = float((heavy * np.minimum(counts / step, 1.0)).sum()) + min(1.0, math.sqrt(noise) / step)
            of_entries = entries * (math.log2(self.universe) + 4) / 8
            return 4 + _ENVELOPE + of_entries + width * _bits(noise + squares / width) / 8

        width = self._largest(size)
        variance = self.parties * (noise + squares / width)
        own = {"items_per_column": max(light / width, self.items / MAX_CELLS), "separation_share": share}
        most = self._most_items(max(width, math.ceil(self.items / own["items_per_column"])), 1)
        return self._row(Separation, variance, size(width), **own, max_items=most)


def _bits(variance: float) -> float:
    """What a cell of this variance takes: the entropy of a Laplace variable, and a quarter of a bit for the code."""
    return max(1.1, math.log2(2 * math.e * math.sqrt(variance / 2)) + 0.25) if variance > 0 else 1.1


def _chance_above(t: Numbers, scale: float) -> Numbers:
    """P[Z >= t] of discrete Laplace noise, for any real t."""
    q = math.exp(-1 / scale)
    up = np.exp(-np.maximum(t, 0.0) / scale) / (1 + q)
    down = 1 - np.exp(-np.maximum(1 - t, 0.0) / scale) / (1 + q)
    return np.where(t >= 1, up, np.maximum(down, 0.0))


def _of_rows(rows: int, noise: float, squares: float, counts: Numbers, width: int) -> float:
    """The variance of the median row: normal errors, or two of three rows that two large items fall into by chance."""
    if rows == 1:
        return noise + squares / width
    factor = _MEDIAN_OF_3 * 3 / rows
    ordered = np.sort(counts)[::-1]
    both = float((ordered**2 * (2 * np.arange(len(ordered)) + 1)).sum())  # sum over pairs of the smaller one squared
    rare = 1.5 / width**2 * both if rows == 3 else 5.0 / width**3 * both * max(1.0, math.log(len(ordered)))
    return factor * noise + min(factor * squares / width, rare)


# ---- streams ---------------------------------------------------------------------------------------------------------


def _row(stream: Stream, given: dict[str, Any], steps: int, squares: float, law: _Model) -> PlannedProtocol:
    sizes = [_collisions(stream, level, squares) for level in range(stream.levels)]
    noise, epochs = laplace_variance(stream.scale), steps // stream.epoch_steps
    blocks = [epochs >> level for level in range(stream.levels)]
    cells = sum(n * stream.shape.cells[level] * _bits(noise + sizes[level]) for level, n in enumerate(blocks))
    samples = steps * float(stream.sample_rate) if stream.samples else 0.0
    size = _PACKET * (epochs + samples) + cells / 8 + samples * 1.2
    errors = [
        math.sqrt(law.parties * variance) + law.parties * _SHARE * missing
        for variance, missing in _moments(stream, steps, [noise + of_level for of_level in sizes])
    ]
    return PlannedProtocol(type(stream), given, stream.epsilon, float(np.mean(errors)), size, size <= law.limit)


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
