"""Heavy items one by one, by importance sampling; the light ones in a count sketch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from discreet import _native
from discreet._data_class import dataclass
from discreet.errors import MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import USUAL_MAX_ITEMS, known
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.party_sketches import (
    Cells,
    SketchProtocol,
    check_scales,
    estimates,
    laplace_variance,
    read_cells,
    sketch_cells,
    width_of,
    with_noise,
)
from discreet.multiparty.wire import (
    MAX_CELLS,
    Heard,
    Message,
    number_at,
    read_entries,
    read_varint,
    varint,
    write_entries,
)
from discreet.noise import RandomSource
from discreet.noise.places import places_above
from discreet.noise.source import Integers
from discreet.privacy.checks import positive_number, probability, whole_number


@dataclass(frozen=True)
class _Content:
    """What a party says: the heavy items it sends, with their counts divided by the chance to be sent, and a sketch."""

    places: Integers
    counts: Integers
    width: int
    cells: Cells


@known
@dataclass(frozen=True)
class Separation(SketchProtocol):
    """A party's heavy items are sent with noisy counts, by importance sampling; its light items go into a count sketch.

    1. Heavy is every item of the universe whose count plus discrete Laplace noise of scale 2/e_s is above T. 2. A heavy
    item gets fresh noise of scale 2/e_r on its count, x^, and is sent with probability |x^|/items_per_entry, or
       certainly if that is above 1; what is sent is x^ divided by that probability.
    3. The light items go into a sketch of `rows` rows with noise of scale 2 rows/e_r on every cell, of a width that
    follows
       n_i - sum of all x^.

    Unit: one item replaced; n_i public. Guarantee: pure epsilon = e_s + e_r.
    Message: the sampled entries in the order of the universe, the width, the cells.
    Estimate: what was sent, or else the sketch's. Unbiased for one row, given any choice of the heavy items; see
        `IndependentSketches` for more.
    Variance: that of the noise, of the sampling (|x^| items_per_entry at most) or of collisions among the light items;
        estimated from the messages.
    Follows [MDP] section 3.3 without repetitions, corrected, as it loses 9/8 epsilon: docs/privacy/corrections.md and
    multiparty.md.
    """

    items_per_column: float = 16.0
    items_per_entry: int | None = None
    threshold: int | None = None
    separation_share: float = 0.4
    rows: int = 1
    max_items: int = USUAL_MAX_ITEMS

    family = 6
    name = "heavy and light items apart, importance sampling"
    needs_bounded = True

    def _check(self) -> None:
        per_column = positive_number("items_per_column", self.items_per_column)
        object.__setattr__(self, "items_per_column", per_column)
        if self.items_per_entry is None:
            object.__setattr__(self, "items_per_entry", max(1, math.ceil(per_column)))
        whole_number("items_per_entry", self.items_per_entry, 1, 2**40)
        object.__setattr__(self, "separation_share", probability("separation_share", self.separation_share))
        check_scales(self.separation_scale, self.heavy_scale)
        # How many items of count 0 are above a threshold T on average, if all are: size q^(T+1)/(1 + q). By default T
        # is the smallest for which that is 1 at most.
        scale = float(self.separation_scale)
        if self.threshold is None:
            usual = math.ceil(scale * math.log(self.universe.size / (1 + math.exp(-1 / scale))) - 1)
            object.__setattr__(self, "threshold", max(0, usual))
        share = math.exp(-(whole_number("threshold", self.threshold, 0, 2**60) + 1) / scale)
        if float(self.universe.size) * share / (1 + math.exp(-1 / scale)) > MAX_CELLS:
            raise ParameterError("threshold is so low that noise alone makes too many items heavy; raise it")
        self._check_sketch(self.separation_scale, self.light_scale)

    # ---- public numbers --------------------------------------------------------------------------------------------

    @property
    def separation_epsilon(self) -> Fraction:
        """e_s: the part of epsilon that chooses the heavy items."""
        return Fraction(self.separation_share) * self._exact_epsilon

    @property
    def separation_scale(self) -> Fraction:
        """Of the noise that chooses the heavy items."""
        return 2 / self.separation_epsilon

    @property
    def heavy_scale(self) -> Fraction:
        """Of the noise on a heavy item's count."""
        return 2 / (self._exact_epsilon - self.separation_epsilon)

    @property
    def light_scale(self) -> Fraction:
        """Of the noise on every cell."""
        return self.rows * self.heavy_scale

    def width(self, light: int) -> int:
        """The columns for this many light items."""
        return width_of(light, self.items_per_column)

    # ---- the party -------------------------------------------------------------------------------------------------

    def _encode(self, words: Words, number: int, source: RandomSource) -> bytes:
        n = len(words)
        found, counts = np.unique(words.astype(np.int64), return_counts=True)
        heavy = self.choose(found, counts, source)
        true = number_at((found, counts), heavy)
        noisy = with_noise(true, self.heavy_scale, self._bound(n, self.heavy_scale), source)
        width = self.width(min(max(n - int(noisy.sum()), 0), n))
        light = self.light_cells(words, heavy, width, number)
        cells = with_noise(light, self.light_scale, self._bound(n, self.light_scale), source)
        places, numbers = self._sampled(heavy, noisy, source)
        return write_entries(places, numbers) + varint(width) + _native.write_integers(cells)

    def choose(self, found: Integers, counts: Integers, source: RandomSource) -> Integers:
        """The heavy items, in the order of the universe."""
        assert self.threshold is not None
        return places_above(source, self.universe.size, found, counts, self.separation_scale, self.threshold + 1)

    def light_cells(self, words: Words, heavy: Integers, width: int, number: int) -> Cells:
        """The sketch of the items that are not heavy. NOT PRIVATE."""
        light = words[~np.isin(words, heavy.astype(np.uint64))]
        return sketch_cells(light, width, self.rows, self._seed(number))

    def _sampled(self, heavy: Integers, noisy: Integers, source: RandomSource) -> tuple[Integers, Integers]:
        """Those that are sent, and how: x^ is written as 0, 1, ... from items_per_entry on, negative as -1, -2, ..."""
        step = self.items_per_entry
        assert step is not None
        sent = source.uniform_integers(step, len(heavy)) < np.abs(noisy)
        beyond = np.maximum(np.abs(noisy) - step, 0)
        return heavy[sent], np.where(noisy >= 0, beyond, -beyond - 1)[sent]

    # ---- the aggregator --------------------------------------------------------------------------------------------

    def _decode(self, message: Message) -> _Content:
        assert self.items_per_entry is not None
        n = message.items
        bound = self._bound(n, self.heavy_scale)
        places, numbers, after = read_entries(
            memoryview(message.payload), self.universe.size, max(bound - self.items_per_entry, 0) + 1
        )
        rest = bytes(after)
        beyond = np.where(numbers >= 0, numbers, -numbers - 1)
        counts = np.where(numbers >= 0, 1, -1) * (beyond + self.items_per_entry)
        if (beyond > max(bound - self.items_per_entry, 0)).any():
            raise MessageError("message has a count outside what its party may send", "range")
        width, at = read_varint(rest, 0)
        if not 1 <= width <= self.width(n):
            raise MessageError("message has a wider sketch than its party may send", "range")
        cells = read_cells(rest[at:], width * self.rows, self._bound(n, self.light_scale), self.light_scale)
        return _Content(places, counts, width, cells)

    def _each(self, heard: Heard, words: Words) -> Iterator[tuple[Numbers, Numbers]]:
        asked, inverse = np.unique(words.astype(np.int64), return_inverse=True)
        noise, heavy_noise = laplace_variance(self.light_scale), laplace_variance(self.heavy_scale)
        step = self.items_per_entry
        assert step is not None
        for message, content in heard:
            seed = self._seed(message.number)
            part, spread = estimates(content.cells, content.width, self.rows, seed, noise, asked.astype(np.uint64))
            spreads = np.full(len(asked), spread)
            at = np.minimum(np.searchsorted(asked, content.places), len(asked) - 1)
            here = asked[at] == content.places
            part[at[here]] = content.counts[here]
            # An entry below the step was sent by chance. On average over that chance step^2 is |x^| step, the most that
            # sampling adds.
            spreads[at[here]] = heavy_noise + np.where(np.abs(content.counts[here]) <= step, float(step) ** 2, 0.0)
            yield part[inverse], spreads[inverse]
