"""Items whose names are public: what was found of them before, and exact counts from then on, with factorised noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.continual._doubling import Doubling
from discreet.continual._factors import Factor
from discreet.continual._state import items_of_plain, plain_items
from discreet.errors import CorruptStateError
from discreet.events.items import Item
from discreet.noise import RandomSource

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """What a release said of an item for the ticks `first` to `last`, and that release's offset. All public."""

    first: int
    last: int
    count: int
    offset: int


class Discovered:
    """Counters that begin when their items become public.

    An event of one of the items is in one counter, at one tick: rho-zCDP for all of them together, as for `Counter`.
    """

    def __init__(self, factor: Factor, rho: float) -> None:
        self.factor = factor
        self.sigma: Fraction = self.factor.sigma(rho)
        self.tick = 0
        self.index: dict[Item, int] = {}
        self.parts: list[Part] = []
        self.carried: Integers = np.zeros(0, np.int64)  # what the counters of a first run had published
        self.carried_error = 0.0  # the standard deviation of the noise in that
        self.carried_below = 0.0  # what it may lack
        self._clear()

    def _clear(self) -> None:
        self.since: Integers = np.zeros(0, np.int64)  # true counts after the item was found
        self.ages: Integers = np.zeros(0, np.int64)  # ticks of its counter
        self._noise = self.factor.state_like(0, self.tick)

    def __len__(self) -> int:
        return len(self.index)

    def take(self, items: Sequence[Item], counts: Integers) -> None:
        """Events of the next tick, of items that are known."""
        np.add.at(self.since, np.array([self.index[item] for item in items], np.int64), counts)

    def advance(self, tick: int, source: RandomSource) -> None:
        """The noise of the next tick."""
        self.tick = tick
        if len(self) or self._doubles:  # epochs begin for nobody, too
            self.factor.advance(self._noise, tick, self.sigma, source)
            self.ages += 1

    @property
    def _doubles(self) -> bool:
        return isinstance(self.factor, Doubling)

    def join(self, first: int, last: int, counts: dict[Item, int], offset: int) -> None:
        """A release of these ticks; what it says of an item replaces what a smaller one inside of it said.

        An item has one part: after the first that has it events go to its counter, so that others with the item contain
        the first.
        """
        for item, count in counts.items():
            part, place = Part(first, last, count, offset), self.index.setdefault(item, len(self.parts))
            self.parts[place : place + 1] = [part]
        self._grow(len(self.parts))

    def _grow(self, size: int) -> None:
        more = size - len(self.since)
        self.since, self.ages = (np.pad(array, (0, more)) for array in (self.since, self.ages))
        self.carried = np.pad(self.carried, (0, size - len(self.carried)))
        fresh = self.factor.state_like(more, self.tick)
        self._noise = {name: np.concatenate([old, fresh[name]], axis=-1) for name, old in self._noise.items()}

    def counts(self) -> tuple[Integers, Integers]:
        """(private count, how much of it came after the item was found) of every item.

        The first is its parts and the second, which is its counter with noise, after those of runs before.
        """
        followed = self.carried + self.since + self.factor.to_counts(self._noise["noise"])
        return np.array([part.count for part in self.parts], np.int64) + followed, followed

    def error(self, tick: int, oldest: int) -> float:
        """The standard deviation of the noise of a counter that has run for `oldest` ticks at that tick.

        Without a horizon no less than that.
        """
        of = tick if self._doubles else oldest
        return math.hypot(self.carried_error, self.factor.error(of, self.sigma) if oldest > 0 else 0.0)

    def begin_again(self, published: dict[Item, int], missing: float, error: float) -> None:
        """Begin counters with new noise. Beside its parts an item keeps what was published, whatever nodes say later.

        `missing` is what the published counts may lack. Parts lack the same, unless another draw was published. `error`
        is the standard deviation of the noise of the counters so far.
        """
        drawn, followed = self.counts()
        parts = drawn - followed
        if any(published.get(item, drawn[place]) != drawn[place] for item, place in self.index.items()):
            self.carried_below += missing
        for item, place in self.index.items():
            if item in published:
                self.carried[place] = published[item] - parts[place]
        self.carried_error = error
        size = len(self)
        self._clear()
        self._grow(size)

    def saved(self) -> tuple[dict[str, Any], dict[str, Integers]]:
        """The state: a part of the header, and arrays. Not private."""
        kind, items = plain_items(self.index)
        parts = [[astuple(part)] for part in self.parts]  # a list of one: there might have been more, once
        header = {"kind": kind, "items": items, "parts": parts, "carried": [self.carried_error, self.carried_below]}
        return header, {"since": self.since, "ages": self.ages, "carried": self.carried, **self._noise}

    def load(self, header: dict[str, Any], arrays: dict[str, Integers], tick: int) -> None:
        """The inverse of `saved`, at that tick."""
        self.tick = tick
        items = items_of_plain(header["kind"], header["items"])
        self.index = {item: place for place, item in enumerate(items)}
        self.parts = [Part(*map(int, part)) for (part,) in header["parts"]]
        self._noise = self.factor.loaded(arrays, len(items), tick)
        self.since, self.ages, self.carried = arrays["since"], arrays["ages"], arrays["carried"]
        self.carried_error, self.carried_below = map(float, header["carried"])
        one = (len(items),)
        if len(self.index) != len(items) or len(self.parts) != len(items):
            raise CorruptStateError("the state has counters of other items")
        if any(array.shape != one for array in (self.since, self.ages, self.carried)):
            raise CorruptStateError("the state has counters of another size")
