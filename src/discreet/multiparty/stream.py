"""Frequencies over a whole stream, or over its last w steps, from parties that report as they go ([MDP] section 4).

Time has steps; at each a party has one item, or nothing. `epoch_steps` = b steps are an epoch and 2^l epochs a block of
level l. A party answers for a sampled step at once, by Hadamard randomised response, and sends a noisy count sketch of
every block when it is complete. The count up to a step is a sum over few blocks, and samples of what they leave open.

Privacy unit: the item of one party at one step is replaced by another, or by nothing; all that the party ever sends
together is epsilon-DP. A step is in one block of each level and is sampled at most once, so

    epsilon = epsilon_sample + levels * epsilon_level        (exact fractions)

with randomised response at epsilon_sample and discrete Laplace noise of scale 2 rows/epsilon_level on every cell. If
nobody knows how long the stream will be, it is cut into phases, each as long as all before it together; a step is in
one of them, and `levels` are those of its phase. docs/privacy/multiparty.md has the argument.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from discreet.errors import ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import MAX_CELLS, known
from discreet.multiparty._sketches import Cells, estimates, laplace_variance, with_noise
from discreet.multiparty._stream import BlockStream
from discreet.multiparty.epochs import Block
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.packets import Shape
from discreet.noise import RandomSource
from discreet.privacy.checks import whole_number
from discreet.summaries import CountSketch

__all__ = ["Stream"]


@known
@dataclass(frozen=True)
class Stream(BlockStream):
    """The public parameters of one stream; everybody has the same.

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
        if whole_number("rows", self.rows, 1, 255) % 2 == 0:
            raise ParameterError(f"rows must be odd, so that they have a median, not {self.rows}")
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
