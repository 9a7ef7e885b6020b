"""PDCH: Misra-Gries sketches with noise in proportion to their size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.errors import MessageError
from discreet.events.universe import Words
from discreet.multiparty._base import USUAL_MAX_ITEMS, Heard, Protocol, known
from discreet.multiparty._entries import (
    Entries,
    added_by_the_cut,
    counter_variance,
    counters_above,
    counts_of,
    read_counters,
    usual_cut,
    write_counters,
)
from discreet.multiparty._sketches import check_scales, noise_reach
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.messages import Message
from discreet.noise import RandomSource
from discreet.privacy.checks import whole_number
from discreet.summaries import MisraGries

__all__ = ["MergedMisraGries"]


@known
@dataclass(frozen=True)
class MergedMisraGries(Protocol):
    """The counters of a Misra-Gries sketch with noise on every item of the universe; those above a cut are added up.

    Unit: one item replaced; n_i public. Guarantee: pure epsilon. Removing an item lowers one counter by 1 or raises all
        k by 1 ([LT] Lemma 8), and adding one the reverse, so a replacement moves the counters by k + 1 in l1 at most.
    Noise: discrete Laplace of scale (k + 1)/epsilon on every item.
    Message: the items above the public cut, in the order of the universe, with their noisy counters.
    Estimate: the sum of what was sent. Biased: a party leaves out up to n_i/(k+1) and the cut, and what
        passes the cut by chance is added.
    The baseline of Chan, Li, Shi, Xu (2012) that [MDP] sections 3.1 and 5 compare with (PMG, PDCH).
    """

    capacity: int = 64
    max_items: int = USUAL_MAX_ITEMS

    family = 7
    name = "noisy Misra-Gries sketches (PDCH)"
    reference = "Chan, Li, Shi, Xu (2012): Differentially private continual monitoring of heavy hitters"
    unbiased = False
    needs_bounded = True

    def _check(self) -> None:
        whole_number("capacity", self.capacity, 1, 2**20)
        whole_number("max_items", self.max_items, 1, 2**40)
        check_scales(self.scale)

    @property
    def sensitivity(self) -> int:
        """How far a replacement moves the counters in l1."""
        return self.capacity + 1

    @property
    def scale(self) -> Fraction:
        """Of the discrete Laplace noise on every item."""
        return self.sensitivity / self._exact_epsilon

    @property
    def cut(self) -> int:
        """The smallest for which a party sends one item of count 0 at most, on average."""
        return usual_cut(self.scale, self._size)

    @property
    def _size(self) -> int:
        assert self.domain.size is not None
        return self.domain.size

    def _bound(self, items: int) -> int:
        return max(items + noise_reach(self.scale), self.cut)

    def _encode(self, words: Words, number: int, source: RandomSource) -> bytes:
        # The seed breaks ties; any order that does not depend on the items will do.
        sketch = MisraGries(self.capacity, seed=self._public_seed(8, number))
        if len(words):
            sketch.update(words)
        sent = counters_above(sketch, self._size, self.scale, self.cut, self._bound(len(words)), source)
        return write_counters(sent, self.cut)

    def _decode(self, message: Message) -> Entries:
        sent, rest = read_counters(memoryview(message.payload), self._size, self.cut, self._bound(message.items))
        if len(rest):
            raise MessageError("message goes on after its last entry", "format")
        return sent

    def _each(self, heard: Heard, words: Words) -> Iterator[tuple[Numbers, Numbers]]:
        noise = np.full(len(words), counter_variance(self.scale))  # also of an item that was not sent: it decided that
        for _, sent in heard:
            yield counts_of(sent, words), noise

    def _bias(self, heard: Heard) -> tuple[float, float]:
        lost = sum(message.items / (self.capacity + 1) + self.cut for message, _ in heard)
        return float(lost), len(heard) * added_by_the_cut(self.scale, self.cut)
