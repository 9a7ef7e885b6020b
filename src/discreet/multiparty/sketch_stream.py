"""Frequencies over a whole stream, or over its last w steps, from parties that report as they go ([MDP] section 4).

Time has steps; at each a party has one item, or nothing. `epoch_steps` = b steps are an epoch and 2^l epochs a block of
level l. A party answers for a sampled step at once, by Hadamard randomised response, and sends a noisy count sketch of
every block when it is complete. The count up to a step is a sum over few blocks, and samples of what they leave open.

Unit: the item of one party at one step is replaced by another, or by nothing; all that the party ever sends together is
epsilon-DP. `block_stream` has the split of the budget; docs/privacy/multiparty.md has the argument.

**`HierarchicalStream`** adds heavy hitters of large universes, quantiles and ranges over time: a block has a sketch for
every level of intervals (a *track*), each with noise of its own. A sampled step is answered for one track, a public
function of the party and the step, with the whole epsilon_sample; the paper splits it over the tracks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass
from discreet.events.universe import Words
from discreet.multiparty._base import known
from discreet.multiparty.block_stream import BlockStream, StreamAggregator, StreamEstimates
from discreet.multiparty.estimates import Estimates, Numbers
from discreet.multiparty.levels import IntervalQuestions, Levels, Strings, levels_of, ordered_universe
from discreet.multiparty.packets import Block, Shape
from discreet.multiparty.party_sketches import Cells, check_rows, estimates, laplace_variance, with_noise
from discreet.multiparty.wire import MAX_CELLS
from discreet.noise import RandomSource
from discreet.privacy import Guarantee
from discreet.privacy.checks import whole_number
from discreet.summaries import CountSketch

if TYPE_CHECKING:
    from discreet.events.universe import Universe


class HierarchicalStreamAggregator(StreamAggregator):
    """Receives packets as that of a `Stream` does; `at(time)` answers about the intervals."""

    protocol: HierarchicalStream

    def at(self, time: int | None = None) -> Moment:
        """What is known of the window that ends with a step, or of all since the beginning.

        By default up to `time`, the last step that half of the parties told about. After more messages ask for a new
        one: a moment keeps its total.
        """
        return Moment(self, *self._span(time))


class Moment(IntervalQuestions):
    """Counts, ranges, heavy hitters and quantiles of the steps (since, time], of what the parties told about.

    Nobody says at how many steps something arrived, so the total is an estimate, too: the sum over the coarsest
    intervals, at least 0 and at most the steps that were told about.
    """

    def __init__(self, aggregator: HierarchicalStreamAggregator, since: int, time: int) -> None:
        self.since, self.time = since, time
        self._aggregator = aggregator

    @property
    def _ordered(self) -> tuple[Universe | Strings, Levels]:
        stream = self._aggregator.protocol
        return stream.universe, stream.intervals

    @property
    def guarantee(self) -> Guarantee:
        """What the messages of a party promise."""
        return self._aggregator.guarantee

    def estimate(self, items: Any) -> StreamEstimates:
        """Unbiased counts of items, and whom they are from (`coverage`, `absent`)."""
        return self._aggregator.estimate(items, self.time)

    def interval_counts(self, level: int, intervals: npt.ArrayLike) -> Estimates:
        """Unbiased counts of intervals of a level, by their numbers."""
        level = whole_number("level", level, 0, self._aggregator.protocol.tracks - 1)
        span = self._aggregator._span(self.time)  # refused when some of it was forgotten since
        return self._aggregator._counts(level, np.asarray(intervals, np.uint64), *span)

    @cached_property
    def _coarsest(self) -> Estimates:
        levels = self._ordered[1]
        return self.interval_counts(0, levels.children(np.zeros(0, np.int64), 0))

    @property
    def told(self) -> int:
        """The steps that parties told about, all together: there are no more items."""
        return sum(voice.spans.count(self.since, self.time) for voice in self._aggregator._voices.values())

    @property
    def total(self) -> float:
        """How many items there are, about."""
        return min(max(float(self._coarsest.values.sum()), 0.0), float(self.told))

    @property
    def total_deviation(self) -> float:  # type: ignore[override]
        """At most: estimates of one level come from the same messages and may err together."""
        return float(np.sqrt(self._coarsest.variances).sum())

    def __repr__(self) -> str:
        return f"Moment(steps {self.since + 1} to {self.time}, {self.guarantee.sentence()})"


@known
@dataclass(frozen=True)
class Stream(BlockStream):
    """The public parameters of one stream; everybody has the same.

    Argument: docs/privacy/multiparty.md.

    Args:
        round_id: Names the stream; the hash functions follow from it.
        budget: A pure epsilon for all that a party ever sends.
        universe: As for the one-shot protocols.
        epoch_steps: b, the steps of an epoch: what is newer than the last complete epoch is estimated from one sample
            in b. With 1 nothing is sampled, and the blocks have the whole budget.
        horizon: The last step of the stream; for counts since the beginning.
        window: w, for counts of the last w steps, at least one epoch; the stream may then go on for ever. With neither
            a window nor a horizon counts are since the beginning, and the stream is as long as it will be.
        rows: Rows of a sketch, odd. One is best for a sum over many parties, unless few items dominate.
        columns: Columns of the sketch of one epoch; 2^l times as many for a block of level l. By default
            sqrt(levels), rounded up, as in the paper; 4 where the length is not known.
        sample_share: The share of epsilon for the samples. With 0 nothing is sampled, the blocks have the whole budget,
            and steps outside whole epochs are left out of the counts ([MDP] Corollary 1; best for a single party).
    """

    epoch_steps: int = 1
    horizon: int | None = None
    window: int | None = None
    rows: int = 1
    columns: int | None = None
    sample_share: float = 0.5

    family: ClassVar[int] = 33
    name: ClassVar[str] = "samples of steps and sketches of dyadic blocks"

    def _check_blocks(self) -> None:
        check_rows(self.rows)
        if self.columns is None:
            object.__setattr__(self, "columns", 4 if self.doubling else math.isqrt(self.levels - 1) + 1)
        whole_number("columns", self.columns, 1, MAX_CELLS)

    @property
    def _epoch_cells(self) -> int:
        return self.rows * (self.columns or 1)

    @property
    def scale(self) -> Fraction:
        """Of the discrete Laplace noise on every cell of a sketch; if the length is not known, in the last phase.

        A phase of fewer levels has as much less noise: a step is in fewer blocks.
        """
        return 2 * self.rows / self.epsilon_level

    def width(self, level: int) -> int:
        """The columns of the sketch of a block."""
        assert self.columns is not None
        return self.columns << level

    @cached_property
    def shape(self) -> Shape:
        """The sizes of blocks, and their noise."""
        levels = self.levels
        return Shape(
            self.epoch_steps,
            tuple(self.tracks * self.rows * self.width(level) for level in range(levels)),
            tuple(self.scale * Fraction(1 + level, levels) for level in range(levels)),
            self.samples,
            self.doubling,
        )

    # ---- the sketches of a block -----------------------------------------------------------------------------------

    def summary(self, number: int, block: Block, track: int) -> CountSketch:
        """An empty sketch of a party's block. NOT PRIVATE."""
        return CountSketch(self.width(block.level), self.rows, seed=self.block_seed(number, block, track))

    def read_summary(self, data: bytes) -> CountSketch:
        """A sketch from its state."""
        return CountSketch.from_bytes(data)

    def form(self, summary: CountSketch) -> tuple[int, ...]:
        """Its seed, width and depth."""
        return summary.seed, summary.width, summary.depth

    def release(self, summaries: list[CountSketch], block: Block, source: RandomSource) -> Cells:
        """The cells of all sketches, with noise."""
        cells = np.concatenate([sketch.not_private_cells().ravel() for sketch in summaries])
        return with_noise(cells, self.shape.scale(block), self.shape.bound(block), source)

    def block_counts(self, number: int, block: Block, told: Cells, track: int, words: Words) -> tuple[Numbers, float]:
        """The median row for every word, and its variance."""
        width, seed = self.width(block.level), self.block_seed(number, block, track)
        size, noise = self.rows * width, laplace_variance(self.shape.scale(block))
        return estimates(told[track * size : (track + 1) * size], width, self.rows, seed, noise, words)


@known
@dataclass(frozen=True)
class HierarchicalStream(Stream):
    """A `Stream` of an ordered universe that is cut into intervals, these into parts, and so on.

    Unit: the item of one party at one step is replaced by another, or by nothing. Guarantee: pure epsilon for all that
        a party ever sends. Follows [MDP] sections 3.4 and 4.
    Argument: docs/privacy/multiparty.md.

    Args:
        universe: An ordered one: a size, a range, a list in its order, or `Strings(alphabet, max_length)`.
        branching: The parts of an interval (16); of strings, the characters that a level adds (1).
    """

    branching: int | None = None

    family: ClassVar[int] = 34
    name: ClassVar[str] = "samples of steps and sketches of dyadic blocks, at each level of intervals"
    read_universe = staticmethod(ordered_universe)
    _listener: ClassVar[type[Any]] = HierarchicalStreamAggregator

    @cached_property
    def intervals(self) -> Levels:
        """The levels of intervals, from the coarsest down; a track each."""
        return levels_of(self.universe, self.branching)

    @property
    def tracks(self) -> int:
        """A sketch for each level of intervals."""
        return len(self.intervals)

    def _assumptions(self) -> tuple[str, ...]:
        sample = ("; a sampled step is answered for at one of them",) if self.samples else ()
        return ("".join((f"sketches of {self.tracks} level(s) of intervals share what a block spends", *sample)),)

    def nodes(self, words: Words, track: int) -> Words:
        """The intervals that items lie in."""
        return self.intervals.nodes(words, track)

    def order(self, track: int) -> int:
        """The bits of an interval's number."""
        return (self.intervals.count(track) - 1).bit_length()

    def track_of(self, number: int, steps: Words) -> npt.NDArray[np.int64]:
        """SplitMix64 at these steps, from a seed of the party: every track is as likely, in whatever rhythm."""
        z = np.uint64(self._public_seed(8, number)) + steps.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        tracks: npt.NDArray[np.int64] = ((z ^ (z >> np.uint64(31))) % np.uint64(self.tracks)).astype(np.int64)
        return tracks

    if TYPE_CHECKING:

        def aggregator(self, expected: Iterable[int] = ()) -> HierarchicalStreamAggregator: ...

        def restore(self, data: bytes) -> HierarchicalStreamAggregator: ...
