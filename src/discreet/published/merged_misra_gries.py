"""PDCH: Misra-Gries sketches with noise in proportion to their size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from discreet._data_class import dataclass
from discreet.errors import MessageError
from discreet.events.universe import Words
from discreet.multiparty._base import USUAL_MAX_ITEMS, Round, known
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.party_sketches import check_scales, noise_reach
from discreet.multiparty.wire import Entries, Heard, Message, number_at, read_entries, write_entries
from discreet.noise import RandomSource
from discreet.noise.places import noisy_places
from discreet.privacy.checks import whole_number
from discreet.summaries import MisraGries


@known
@dataclass(frozen=True)
class MergedMisraGries(Round):
    """The counters of a Misra-Gries sketch with noise on every item of the universe; those above a cut are added up.

    Unit: one item replaced; n_i public. Guarantee: pure epsilon. Removing an item lowers one counter by 1 or raises all
        k by 1 ([LT] Lemma 8), and adding one the reverse, so a replacement moves the counters by k + 1 in l1 at most.
    Noise: discrete Laplace of scale (k + 1)/epsilon on every item.
    Message: the items above the public cut, in the order of the universe, with their noisy counters.
    Estimate: the sum of what was sent. Biased: a party leaves out up to n_i/(k+1) and the cut, and what
        passes the cut by chance is added.
    The baseline of Chan, Li, Shi, Xu (2012) that [MDP] sections 3.1 and 5 compare with (PMG, PDCH).
    Argument: docs/privacy/multiparty.md.
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
        return int(self.universe.size)

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
            raise MessageError("message continues after its last entry", "format")
        return sent

    def _each(self, heard: Heard, words: Words) -> Iterator[tuple[Numbers, Numbers]]:
        noise = np.full(len(words), counter_variance(self.scale))  # also of an item that was not sent: it decided that
        for _, sent in heard:
            yield counts_of(sent, words), noise

    def _bias(self, heard: Heard) -> tuple[float, float]:
        lost = sum(message.items / (self.capacity + 1) + self.cut for message, _ in heard)
        return float(lost), len(heard) * added_by_the_cut(self.scale, self.cut)


# ---- counters above a cut --------------------------------------------------------------------------------------------


def usual_cut(scale: Fraction, size: int) -> int:
    """The smallest for which one item of count 0 at most passes it, on average: size q^cut/(1 + q) <= 1."""
    s = float(scale)
    return max(1, math.ceil(s * math.log(size / (1 + math.exp(-1 / s)))))


def counters_above(
    sketch: MisraGries, size: int, scale: Fraction, cut: int, bound: int, source: RandomSource
) -> Entries:
    """The items of a universe whose counters, with discrete Laplace noise on every item, are at least the cut."""
    raw = sketch.not_private_counts()
    places = np.asarray(raw.items).astype(np.int64) if len(raw) else np.zeros(0, np.int64)
    found, noisy = noisy_places(source, size, places, raw.counts, scale, cut)
    order = np.argsort(found)
    return found[order], np.minimum(noisy, bound)[order]


def write_counters(entries: Entries, cut: int) -> bytes:
    """Counters by what they have beyond the cut."""
    places, counters = entries
    return write_entries(places, counters - cut)


def read_counters(data: memoryview, size: int, cut: int, bound: int) -> tuple[Entries, memoryview]:
    """The inverse, and what follows."""
    places, beyond, rest = read_entries(data, size, bound - cut)
    if (beyond < 0).any():
        raise MessageError("message has a count below the cut", "range")
    return (places, beyond + cut), rest


def counts_of(entries: Entries, words: Words) -> Numbers:
    """What was sent of each word; 0 for what was not."""
    return number_at(entries, words.astype(np.int64)).astype(np.float64)


def counter_variance(scale: Fraction) -> float:
    """2 scale^2, that of the continuous law: a little more than the noise has, so that intervals hold for one counter.

    They reach t = scale log(1/beta) at least. Discrete noise is above t with probability q^(floor(t) + 1)/(1 + q) <=
    beta/(1 + q); a count is above its interval, to which the cut is added, with q times that: what is hidden is below
    the cut by 1.
    """
    return 2 * float(scale) ** 2


def added_by_the_cut(scale: Fraction, cut: int) -> float:
    """The most by which what is sent of an item is too high, on average.

    Of a count c < cut that is q^(cut - c) (cut + q/(1 - q))/(1 + q) - c, which is convex in c; of cut + s it is q^s
    times that of the cut, q (1/(1 - q) - cut)/(1 + q). So the most is at 0, cut - 1 or cut.
    """
    q = math.exp(-1 / float(scale))
    beyond = q / -math.expm1(-1 / float(scale))

    def of(count: int) -> float:
        return float(q ** (cut - count) * (cut + beyond) / (1 + q) - count)

    return max(0.0, of(0), of(cut - 1), q * (1 + beyond - cut) / (1 + q))
