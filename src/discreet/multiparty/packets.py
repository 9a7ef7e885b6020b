"""What a party of a stream sends: a span of time, the answers for its sampled steps, and the blocks that ended in it.

Steps are numbered from 1, as in section 4.1 of [MDP]. Epoch e holds the steps e*b + 1 to (e+1)*b. Block (level, j) has
the epochs j * 2^level to (j+1) * 2^level - 1, so every step lies in exactly one block of each level. This is public.

Payload; a number is 7 bits a byte, lowest first:

    after, to - after   numbers: the steps (after, to] that the packet tells about
    after - joined      number: the party began after step `joined`; a block that began before has later items only
    samples             number: how many steps were sampled
                        for each, a number: how many steps after the one before it (the first: after `after`)
                        their answers, one bit each
    blocks              what is told of every block that ended in the span, as the stream's `Shape` writes it

Which blocks there are follows from the span, and how many cells their sketches have from their level, so neither is
sent, and a packet that cannot have that many is refused before anything is made of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass
from discreet.errors import DataError, MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty.party_sketches import noise_reach, read_cells
from discreet.multiparty.wire import MAX_CELLS, read_varint, varint


@dataclass(frozen=True, order=True)
class Block:
    """2^level epochs from number j * 2^level on."""

    level: int
    j: int

    @property
    def first(self) -> int:
        """Its first epoch."""
        return self.j << self.level

    @property
    def end(self) -> int:
        """The epoch after its last."""
        return (self.j + 1) << self.level

    @property
    def halves(self) -> tuple[Block, Block]:
        """The two blocks of the level below; for level 1 and up."""
        return Block(self.level - 1, 2 * self.j), Block(self.level - 1, 2 * self.j + 1)


def levels_for(epochs: int) -> int:
    """How many levels are kept when at most `epochs` complete epochs are ever asked for together: max(1, ceil(log2)).

    A level above would have blocks of `epochs` or more: never needed, since two blocks of the level below do, and a
    level costs its share of the budget.
    """
    return max(1, (epochs - 1).bit_length())


def block_cover(
    first: int, end: int, levels: int, known: Callable[[Block], bool], told: Sequence[int]
) -> Iterator[Block]:
    """The known blocks that cover the epochs from `first` to before `end`, as few as possible.

    Where a block is not known its halves are tried, down to single epochs; what is left out is covered by nothing.
    At most 2 * levels blocks if all are known. `told` are epochs in order; every known block has one or more of them:
    where there are none nothing is looked for, so anyone who tells of two epochs far apart makes no work in between.
    """

    def parts(block: Block) -> Iterator[Block]:
        place = bisect_left(told, block.first)
        if place == len(told) or told[place] >= block.end:
            return
        if known(block):
            yield block
        elif block.level:
            for half in block.halves:
                yield from parts(half)

    while first < end:
        level = levels - 1
        while first % (1 << level) or first + (1 << level) > end:
            level -= 1
        yield from parts(Block(level, first >> level))
        first += 1 << level


class Spans:
    """A set of steps, kept as disjoint spans (after, to]: which steps a party has told about."""

    def __init__(self, spans: list[tuple[int, int]] | None = None) -> None:
        self._spans = sorted(spans or [])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._spans)

    def overlaps(self, after: int, to: int) -> bool:
        """Whether any step of (after, to] is in the set."""
        place = bisect_right(self._spans, after, key=lambda span: span[1])
        return place < len(self._spans) and self._spans[place][0] < to

    def add(self, after: int, to: int) -> None:
        """Add (after, to], which must not overlap; spans that touch become one."""
        spans = self._spans
        place = bisect_left(spans, after, key=lambda span: span[0])
        if place < len(spans) and spans[place][0] == to:
            _, to = spans.pop(place)
        if place and spans[place - 1][1] == after:
            place -= 1
            after, _ = spans.pop(place)
        spans.insert(place, (after, to))

    def count(self, after: int, to: int) -> int:
        """How many steps of (after, to] are in the set."""
        first = bisect_right(self._spans, after, key=lambda span: span[1])
        end = bisect_left(self._spans, to, first, key=lambda span: span[0])
        return sum(min(to, span[1]) - max(after, span[0]) for span in self._spans[first:end])

    def forget(self, before: int) -> None:
        """Drop the steps up to `before`."""
        self._spans = [(max(start, before), end) for start, end in self._spans if end > before]


MAX_TIME = 2**48
MAX_BLOCKS = 2**16
"""Most blocks of one packet."""


@dataclass(frozen=True)
class Shape:
    """What the parameters say about packets: an epoch's steps, how many cells a block has by level, and their noise;
    whether there are samples. A block is told by all cells of its sketches, in the code of all noisy cells.

    `scales` has that of the noise where there are one level, two, ... of blocks. If the stream's length is not known
    (`doubling`), there are the more of them the later it is; else always all.
    """

    epoch_steps: int
    cells: tuple[int, ...]
    scales: tuple[Fraction, ...]
    samples: bool = True
    doubling: bool = False

    def levels(self, epoch: int) -> int:
        """How many levels of blocks there are at an epoch.

        When nobody knows how many epochs there will be, phase p has the 2^p from number 2^p on, as many as all before
        it (the first has epoch 0, too), and is a stream of known length: it has the levels of 2^p epochs. Its blocks
        are those of the same grid, and no block lies in two phases.
        """
        most = len(self.cells)
        return min(most, levels_for(1 << max(0, epoch.bit_length() - 1))) if self.doubling else most

    def scale(self, block: Block) -> Fraction:
        """Of the noise on a block's cells."""
        return self.scales[self.levels(block.first) - 1]

    def bound(self, block: Block) -> int:
        """What a cell has at most: its block's items, and noise that is larger once in 2^64 draws."""
        return (self.epoch_steps << block.level) + self._reaches[self.levels(block.first) - 1]

    @cached_property
    def _reaches(self) -> tuple[int, ...]:
        return tuple(map(noise_reach, self.scales))

    def write(self, blocks: Mapping[Block, Any]) -> bytes:
        """What is told of blocks, as bytes."""
        return _native.write_integers(np.concatenate([np.zeros(0, np.int64), *blocks.values()]))

    def read(self, data: bytes, ended: Sequence[Block], count: int) -> dict[Block, Any]:
        """The inverse, of blocks that have this many cells together; `MessageError` or `DataError` for anything
        else."""
        # The largest block's bound is the largest, and the least noise has the most zeros.
        most, least = max(map(self.bound, ended), default=0), min(map(self.scale, ended), default=self.scales[0])
        cells = read_cells(data, count, most, least)
        blocks, first = {}, 0
        for block in ended:
            part = cells[first : first + self.cells[block.level]]
            if np.abs(part).max() > self.bound(block):
                raise MessageError("packet has a cell beyond what its block can hold", "range")
            blocks[block] = part
            first += len(part)
        return blocks

    def stretches(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The epochs from `first` to before `end` in stretches with as many levels, which each (first, end, levels)."""
        while first < end:
            levels = self.levels(first)
            last = min(end, 2 << levels) if self.doubling and levels < len(self.cells) else end
            yield first, last, levels
            first = last


@dataclass(frozen=True)
class Packet:
    """One message, read; `answers` are the bits for `steps`, in their order.

    `blocks` has what is told of each: the noisy cells of its sketches, or the noisy counters that pass a cut.
    """

    after: int
    to: int
    joined: int
    steps: Words
    answers: npt.NDArray[np.uint8]
    blocks: dict[Block, Any]


def closed_blocks(after: int, to: int, shape: Shape) -> Iterator[Block]:
    """The blocks that end within the steps (after, to], in the order in which they are sent."""
    for ended in range(after // shape.epoch_steps + 1, to // shape.epoch_steps + 1):
        for level in range(shape.levels(ended - 1)):
            if ended % (1 << level) == 0:
                yield Block(level, (ended >> level) - 1)


def write_packet(packet: Packet, shape: Shape) -> bytes:
    """The payload of a packet."""
    gaps = np.diff(packet.steps, prepend=np.uint64(packet.after)).tolist()
    numbers = [packet.after, packet.to - packet.after, packet.after - packet.joined, len(gaps), *gaps]
    answers = np.packbits(packet.answers).tobytes()
    return b"".join(map(varint, numbers)) + answers + shape.write(packet.blocks)


def read_packet(payload: bytes, shape: Shape) -> Packet:
    """The inverse; `MessageError` for anything else."""
    numbers, at = [], 0
    for _ in range(4):
        number, at = read_varint(payload, at)
        numbers.append(number)
    after, length, age, samples = numbers
    to, joined = after + length, after - age
    if not 0 <= joined <= after < to <= MAX_TIME:
        raise MessageError("packet has times that are out of range", "range")
    if samples > len(payload):
        raise MessageError("packet has more samples than bytes", "size")
    try:
        count = check_size(after, to, shape)
    except ParameterError as error:
        raise MessageError(f"packet is not one that a party sends: {error}", "size") from None
    steps, answers, at = _samples(payload, at, after, to, samples)
    if samples and not shape.samples:
        raise MessageError("packet has samples, but nothing is sampled", "range")
    try:
        blocks = shape.read(payload[at:], list(closed_blocks(after, to, shape)), count)
    except MessageError:
        raise
    except DataError as error:
        raise MessageError(str(error), "range") from None
    return Packet(after, to, joined, steps, answers, blocks)


def _samples(payload: bytes, at: int, after: int, to: int, samples: int) -> tuple[Words, npt.NDArray[np.uint8], int]:
    steps, step = [], after
    for _ in range(samples):
        gap, at = read_varint(payload, at)
        step += gap
        if gap < 1 or step > to:
            raise MessageError("packet has samples that are out of order or out of its span", "range")
        steps.append(step)
    size = -(-samples // 8)
    bits = np.unpackbits(np.frombuffer(payload[at : at + size], np.uint8))
    if len(bits) != 8 * size or bits[samples:].any():
        raise MessageError("packet has the wrong number of answers", "format")
    return np.array(steps, np.uint64), bits[:samples], at + size


def check_size(after: int, to: int, shape: Shape) -> int:
    """How many cells the blocks of a span have together; `ParameterError` for more than one packet may have."""
    first, last = after // shape.epoch_steps, to // shape.epoch_steps
    cells = blocks = 0
    for begin, end, levels in shape.stretches(first, last):
        ended = [(end >> level) - (begin >> level) for level in range(levels)]
        blocks += sum(ended)
        cells += sum(number * size for number, size in zip(ended, shape.cells, strict=False))
    if cells > MAX_CELLS or blocks > MAX_BLOCKS:
        raise ParameterError(
            f"too many steps for one message (at most {MAX_BLOCKS} blocks and {MAX_CELLS} cells); send them in "
            "smaller batches"
        )
    return cells
