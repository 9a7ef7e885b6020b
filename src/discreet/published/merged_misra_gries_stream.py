"""PDCH over a stream: noisy Misra-Gries sketches of dyadic blocks of epochs.

Time, blocks, levels, phases and samples are those of a `Stream`; what is told of a block is a Misra-Gries sketch of its
items, with noise on every item of the universe, as a `MergedMisraGries` message tells of all items of a party. A
replacement moves the k counters of a block by k + 1 in l1 at most, by 2 where they are exact, and a step is in one
block of each level:

    epsilon = epsilon_sample + levels * epsilon_level        (exact fractions)

with discrete Laplace noise of scale (k + 1)/epsilon_level, or 2/epsilon_level. docs/privacy/multiparty.md has it in
full.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet._data_class import dataclass, replace
from discreet.errors import CorruptStateError, MessageError
from discreet.events.universe import Words
from discreet.multiparty._base import known
from discreet.multiparty.block_stream import BlockStream, StreamAggregator
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.levels import HeavyItems
from discreet.multiparty.packets import Block, Shape
from discreet.multiparty.party_sketches import check_scales, noise_reach
from discreet.multiparty.wire import MAX_CELLS, Entries
from discreet.noise import RandomSource
from discreet.privacy.checks import probability, whole_number
from discreet.published.merged_misra_gries import (
    MergedMisraGries,
    added_by_the_cut,
    counter_variance,
    counters_above,
    counts_of,
    read_counters,
    usual_cut,
    write_counters,
)
from discreet.summaries import MisraGries


@dataclass(frozen=True)
class CounterShape(Shape):
    """Blocks that are told by the counters that pass a cut.

    `cells` are the counters of a block's sketch, `scales` the noise for a sensitivity of 1.

    Attributes:
        size: How many items the universe has.
        sensitivities: How far a replacement moves the counters of a block in l1, by level.
    """

    size: int = 1
    sensitivities: tuple[int, ...] = ()

    def scale(self, block: Block) -> Fraction:
        """Of the noise on every item: s/epsilon_level, s the sensitivity of the block's counters."""
        return self.sensitivities[block.level] * super().scale(block)

    def cut(self, block: Block) -> int:
        """The least noisy counter that is sent."""
        return usual_cut(self.scale(block), self.size)

    def bound(self, block: Block) -> int:
        """What a counter has at most: its block's items, and noise that is larger once in 2^64 draws."""
        return max((self.epoch_steps << block.level) + noise_reach(self.scale(block)), self.cut(block))

    def write(self, blocks: Mapping[Block, Entries]) -> bytes:
        """The entries of each block after those of another."""
        return b"".join(write_counters(entries, self.cut(block)) for block, entries in blocks.items())

    def read(self, data: bytes, ended: Sequence[Block], count: int) -> dict[Block, Entries]:
        """The inverse; `MessageError` or `DataError` for anything else."""
        blocks, rest = {}, memoryview(data)
        for block in ended:
            blocks[block], rest = read_counters(rest, self.size, self.cut(block), self.bound(block))
        if len(rest):
            raise MessageError("packet continues after its last block", "format")
        return blocks


class MergedMisraGriesStreamAggregator(StreamAggregator):
    """Receives packets as that of a `Stream` does; `heavy_hitters` needs no list of items."""

    protocol: MergedMisraGriesStream

    def heavy_hitters(self, share: float, time: int | None = None, *, confidence: float = 0.95) -> HeavyItems:
        """The items that make up at least this share of the steps told about, of those that a block told of.

        How many steps had an item nobody says, so the share is one of all steps in the window that ends with step
        `time`, or since the beginning. `complete` is False if an item that is not listed may have as much: what it
        lacks was below cuts, lost by all counters, or in steps without a block, whose samples name no items.
        """
        share = probability("share", share)
        since, time = self._span(time)
        told, unsure, sent = 0, 0, [np.zeros(0, np.int64)]
        for voice in self._voices.values():
            blocks, spans = self._parts(voice, since, time)
            told += voice.spans.count(since, time)
            unsure += self._unsure(voice, spans)
            sent += [voice.blocks[block].blocks[block][0] for block in blocks]
        words = np.unique(np.concatenate(sent)).astype(np.uint64)
        # Of all items alike as much may be missing: the last is asked for to know it where nobody sent any.
        counts = self._counts(0, np.append(words, np.uint64(0)), since, time)
        most = counts.bounds(confidence)[1]
        # Nobody asked for the samples of an item that nobody sent: it may have had all of their steps.
        most[-1] += (unsure if self.protocol.samples else 0) - counts.values[-1]
        threshold = share * told
        order = np.argsort(-counts.values[:-1], kind="stable")
        order = order[counts.values[order] >= max(threshold, 1)]
        chosen = replace(counts, values=counts.values[order], variances=counts.variances[order])
        complete = bool((np.delete(most, order) < threshold).all())
        return HeavyItems(self.protocol.universe.items(words[order]), chosen, threshold, complete)


@known
@dataclass(frozen=True)
class MergedMisraGriesStream(BlockStream):
    """A stream of which the counters of Misra-Gries sketches are told, those above a cut: items need not be listed.

    Unit: the item of one party at one step is replaced by another, or by nothing. Guarantee: pure epsilon for all that
        a party ever sends; the noise is in the module's docstring.
    Estimate: the sum of what was sent of the blocks that cover the time. Biased: of every party and block up to
        steps/(k + 1) and the cut are left out.
    Chan, Li, Shi, Xu (2012), with which [MDP] section 5 compares streams (PDCH).
    Argument: docs/privacy/multiparty.md.

    Args:
        round_id, budget, epoch_steps, horizon, window: As for a `Stream`.
        universe: A bounded one: a size, a range or a list.
        capacity: Counters of an epoch's sketch, 2^l times as many of a block of level l; no more than steps of the
            block, or items of the universe. With `epoch_steps` or more of them counters are exact, and there is least
            noise, for more memory of a party.
        sample_share: The share of epsilon for samples of steps, as those of a `Stream`. With 0 the steps outside whole
            epochs are left out of the counts.
    """

    epoch_steps: int = 1
    horizon: int | None = None
    window: int | None = None
    capacity: int = 64
    sample_share: float = 0.0

    family: ClassVar[int] = 35
    name: ClassVar[str] = "noisy Misra-Gries sketches of dyadic blocks (PDCH)"
    reference: ClassVar[str] = MergedMisraGries.reference
    unbiased: ClassVar[bool] = False
    needs_bounded: ClassVar[bool] = True
    names_items: ClassVar[bool] = True
    _listener: ClassVar[type[Any]] = MergedMisraGriesStreamAggregator

    def _check_blocks(self) -> None:
        whole_number("capacity", self.capacity, 1, MAX_CELLS)
        check_scales(max(self.shape.sensitivities) * self.scale)

    @property
    def _size(self) -> int:
        return int(self.universe.size)

    @property
    def _epoch_cells(self) -> int:
        return min(self.capacity, self.epoch_steps)

    def counters(self, level: int) -> int:
        """How many counters the sketch of a block has."""
        return min(self._epoch_cells << level, self._size)

    def sensitivity(self, level: int) -> int:
        """How far a replacement moves the counters of a block in l1."""
        return 2 if self._is_exact(level) else self.counters(level) + 1

    def _is_exact(self, level: int) -> bool:
        """Whether an item never finds all counters of a block taken by others."""
        return self.counters(level) >= min(self.epoch_steps << level, self._size)

    @property
    def scale(self) -> Fraction:
        """Of the discrete Laplace noise, for a sensitivity of 1; if the length is not known, in the last phase."""
        return 1 / self.epsilon_level

    @cached_property
    def shape(self) -> CounterShape:
        """The sizes of blocks, and their noise."""
        levels = range(self.levels)
        return CounterShape(
            self.epoch_steps,
            tuple(map(self.counters, levels)),
            tuple(self.scale * Fraction(1 + level, self.levels) for level in levels),
            self.samples,
            self.doubling,
            self._size,
            tuple(map(self.sensitivity, levels)),
        )

    # ---- the sketch of a block -------------------------------------------------------------------------------------

    def summary(self, number: int, block: Block, track: int) -> MisraGries:
        """An empty sketch of a party's block. NOT PRIVATE. The seed breaks ties, and depends on no item."""
        return MisraGries(self.counters(block.level), seed=self.block_seed(number, block, track))

    def read_summary(self, data: bytes) -> MisraGries:
        """A sketch from its state."""
        sketch = MisraGries.from_bytes(data)
        raw = sketch.not_private_counts()
        if len(raw) and (sketch.key_type != "uint64" or int(np.asarray(raw.items).max()) >= self._size):
            raise CorruptStateError("the state has items outside the universe")
        return sketch

    def form(self, summary: MisraGries) -> tuple[int, ...]:
        """Its seed and capacity."""
        return summary.seed, summary.capacity

    def release(self, summaries: list[MisraGries], block: Block, source: RandomSource) -> Entries:
        """The counters that pass the cut, with noise on every item."""
        (sketch,), shape = summaries, self.shape
        return counters_above(sketch, self._size, shape.scale(block), shape.cut(block), shape.bound(block), source)

    def block_counts(self, number: int, block: Block, told: Entries, track: int, words: Words) -> tuple[Numbers, float]:
        """What was sent, and the noise's variance, also of an item that was not sent: it decided that."""
        return counts_of(told, words), counter_variance(self.shape.scale(block))

    def bias(self, block: Block) -> tuple[float, float]:
        """What all counters lost and the cut left out, at most; and what passes the cut by chance, on average."""
        level, cut = block.level, self.shape.cut(block)
        lost = 0.0 if self._is_exact(level) else (self.epoch_steps << level) / (self.counters(level) + 1)
        return lost + cut, added_by_the_cut(self.shape.scale(block), cut)

    if TYPE_CHECKING:

        def aggregator(self, expected: Iterable[int] = ()) -> MergedMisraGriesStreamAggregator: ...

        def restore(self, data: bytes) -> MergedMisraGriesStreamAggregator: ...
