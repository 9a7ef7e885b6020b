"""Exact laws of one party's message on tiny universes, from the code that makes it.

All inputs of a few items are encoded by the protocol itself. Protocols that add noise to a vector are run with noise
that the audit decides, which shows the vector and the scale that was asked for; the loss of two inputs is then the sum
of |difference|/scale, met by noise far out. Answers by randomised response are enumerated byte for byte. For the
separation of heavy and light items the law of the choice is enumerated; given it, the rest is noise on vectors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.multiparty import Separation
from discreet.multiparty.party_seam import Message, Protocol, Reports
from discreet.published import MergedMisraGries
from discreet_audit.exact import Branches, EnumeratedSource, OutputLaw, law_of, ratio_loss, worst_pair
from discreet_audit.sources import Draw, ScriptedSource

__all__ = [
    "SMALL_SEPARATION",
    "UNIVERSE",
    "additive_loss",
    "cells_of",
    "counter_sensitivity",
    "entries_loss",
    "inputs",
    "message_loss",
    "neighbours",
    "noise_is_added",
    "other_scales",
    "separation_loss",
    "separation_messages",
    "tiny",
]

Input = tuple[int, ...]
Cells = npt.NDArray[np.int64]
Shown = tuple[Cells, list[Draw]]
Law = dict[tuple[int, ...], float]
UNIVERSE = 4
SMALL_SEPARATION: dict[str, Any] = {"items_per_column": 1.0, "items_per_entry": 2, "threshold": 1, "max_items": 64}


def tiny(protocol: Any, size: int = UNIVERSE, **changes: Any) -> Any:
    """The same protocol over a few items; a twin stays a twin."""
    return replace(protocol, universe=size, **changes)


def inputs(size: int, length: int) -> Iterator[Input]:
    """Every sequence of so many items."""
    return itertools.product(range(size), repeat=length)


def neighbours(size: int, length: int) -> Iterator[tuple[Input, Input]]:
    """Every pair of sequences that differ in one item."""
    for first in inputs(size, length):
        for place, item in itertools.product(range(length), range(size)):
            if item < first[place]:
                yield first, (*first[:place], item, *first[place + 1 :])


def cells_of(opened: tuple[Message, Any]) -> Cells:
    """The numbers of a message in one row: of a sketch, or of all reports."""
    content = opened[1]
    return np.asarray(content.values if isinstance(content, Reports) else content, np.int64).ravel()


def _shown(protocol: Protocol, items: Sequence[int], noise: int | Sequence[int] = 0, number: int = 0) -> Shown:
    """The numbers of a message whose noise is given, and the draws that were asked for."""
    source = ScriptedSource(each=noise)
    return cells_of(protocol.open(protocol.party(number, source=source).encode(list(items)))), source.draws


# ---- noise on a vector -----------------------------------------------------------------------------------------------


def _distance(first: Shown, second: Shown) -> float:
    (one, draws), (other, again) = first, second
    scales = {draw.scale for draw in (*draws, *again)}
    if len(one) != len(other) or len(scales) != 1 or [d.size for d in draws] != [d.size for d in again]:
        return math.inf
    return float(np.abs(one - other).sum() / scales.pop())


def additive_loss(protocol: Protocol, length: int) -> tuple[float, int]:
    """The largest loss over all neighbouring inputs and a few parties, and how many pairs there were."""
    found = [
        worst_pair(neighbours(UNIVERSE, length), partial(_shown, protocol, noise=0, number=number), _distance)
        for number in range(4)
    ]
    return max(loss for loss, _ in found), sum(pairs for _, pairs in found)


def noise_is_added(protocol: Any, length: int) -> int:
    """How many inputs there are of which the message is not the vector plus the noise that was drawn, cell by cell."""
    wrong, noise = 0, (1, -2, 0, 3, -1)
    for given in inputs(UNIVERSE, length):
        plain, draws = _shown(protocol, given, 0)
        noisy, _ = _shown(protocol, given, noise)
        right = sum(draw.size or 0 for draw in draws) == len(plain) == len(noisy)
        wrong += not (right and np.array_equal(noisy - plain, np.resize(noise, len(plain))))
    return wrong


# ---- randomised response ---------------------------------------------------------------------------------------------


def message_loss(protocol: Protocol, size: int, length: int, number: int = 0) -> tuple[float, int]:
    """The largest |log ratio| of the probabilities of a message, byte for byte, over all neighbouring inputs."""

    def law(given: Input) -> OutputLaw:
        return law_of(lambda source: protocol.party(number, source=source).encode(list(given)))

    return worst_pair(neighbours(size, length), law, ratio_loss)


# ---- entries above a cut ---------------------------------------------------------------------------------------------


def counter_sensitivity(protocol: MergedMisraGries, pairs: Iterable[tuple[Input, Input]]) -> int:
    """How far what neighbouring inputs send lies apart in l1, with equal noise that lets every counter pass.

    From the messages themselves, through the real kernel: whatever else were mixed into them counts, too.
    """
    level = protocol.cut

    def counters(items: Input) -> dict[int, int]:
        message = protocol.party(0, source=ScriptedSource(each=level)).encode(list(items))
        places, values = protocol.open(message)[1]
        return dict(zip(places.tolist(), (values - level).tolist(), strict=True))

    def apart(one: dict[int, int], other: dict[int, int]) -> int:
        return sum(abs(one.get(x, 0) - other.get(x, 0)) for x in {*one, *other})

    return int(worst_pair(pairs, counters, apart)[0])


def entries_loss(protocol: Any, capacity: int) -> tuple[float, int]:
    """The loss of a noisy Misra-Gries sketch: the l1-distance of its counters over the scale that the code asks for."""
    small = tiny(protocol, 4, capacity=capacity)
    pairs = list(neighbours(4, capacity + 1))
    source = ScriptedSource()
    small.party(0, source=source).encode([0] * 3)
    scales = {draw.scale for draw in source.draws}
    return float(counter_sensitivity(small, pairs) / min(scales)), len(pairs)


# ---- separation ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _grouped_laplace(scale: Fraction, low: int, high: int) -> Branches:
    """Discrete Laplace noise of which all below `low` is taken for low and all above `high` for high. Exact."""
    q = math.exp(-1 / scale)

    def at_least(t: int) -> float:
        return q**t / (1 + q) if t >= 1 else 1 - q ** (1 - t) / (1 + q)

    values = tuple(range(low, high + 1))
    masses = [at_least(v) - at_least(v + 1) for v in values]
    masses[0], masses[-1] = 1 - at_least(low + 1), at_least(high)
    return values, tuple(masses), tuple([1.0] * len(values))


class _GroupedSource(EnumeratedSource):
    """Every branch of noise that is only compared with a cut."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__(0.0)
        self._range = low, high

    def discrete_laplace(self, scale: Any, size: Any = None) -> Any:
        return self._take(_grouped_laplace(Fraction(scale), *self._range), size)


def _choice_law(protocol: Separation, given: Input) -> Law:
    found, counts = np.unique(np.array(given, np.int64), return_counts=True)
    assert protocol.threshold is not None
    source = _GroupedSource(protocol.threshold - len(given), protocol.threshold + 1)
    law: Law = {}
    for probability in source:
        chosen = tuple(protocol.choose(found, counts, source).tolist())
        law[chosen] = law.get(chosen, 0.0) + probability()
    return {chosen: p for chosen, p in law.items() if p}


def separation_loss(protocol: Separation, pairs: Iterable[tuple[Input, Input]]) -> float:
    """The largest loss of (choice, heavy counts, cells), of which a message is a function, over pairs of neighbours.

    Given the choice, the heavy counts and the cells (for any width) are vectors with independent noise. That a message
    is no more than a function of the three is what `separation_messages` checks.
    """

    def loss(one: tuple[Input, Law], other: tuple[Input, Law]) -> float:
        (first, p), (second, q), worst = one, other, 0.0
        for chosen in p.keys() | q.keys():
            if not p.get(chosen) or not q.get(chosen):
                return math.inf
            heavy = sum(abs(first.count(x) - second.count(x)) for x in chosen)
            given_choice = heavy / protocol.heavy_scale + _light_loss(protocol, first, second, chosen)
            worst = max(worst, abs(math.log(p[chosen] / q[chosen])) + float(given_choice))
        return worst

    return worst_pair(pairs, lambda given: (given, _choice_law(protocol, given)), loss)[0]


def _light_loss(protocol: Separation, first: Input, second: Input, chosen: tuple[int, ...]) -> Fraction:
    heavy = np.array(chosen, np.int64)
    worst = 0
    for number, width in itertools.product((0, 1), range(1, protocol.width(len(first)) + 1)):
        one, other = (
            protocol.light_cells(np.array(given, np.uint64), heavy, width, number) for given in (first, second)
        )
        worst = max(worst, int(np.abs(one - other).sum()))
    return worst / protocol.light_scale


class _ChosenNoise(ScriptedSource):
    """Gives these arrays of noise in turn, and counts the draws that are not of their sizes."""

    def __init__(self, noises: Sequence[Any]) -> None:
        super().__init__()
        self._noises, self.unexpected = list(noises), 0

    def discrete_laplace(self, scale: Any, size: Any = None) -> Any:
        """The next of them."""
        noise = self._noises.pop(0) if self._noises else ()
        if size is None or len(noise) != size:
            self.unexpected += 1
            return super().discrete_laplace(scale, size)
        return np.asarray(noise, np.int64)


def separation_messages(protocol: Any, pairs: Sequence[tuple[Input, Input]]) -> int:
    """Pairs of neighbours whose messages differ although choice, noisy heavy counts and noisy cells are the same.

    The noise makes up for what the two inputs differ in. Then all fields of a message must be the same, byte for byte:
    the width of the sketch, say, must follow the noisy counts and not the true ones.
    """
    wrong = 0
    for (first, second), shift in itertools.product(pairs, (-2, 1)):
        heavy = sorted(set(first) & set(second))
        target = np.arange(1, len(heavy) + 1) + shift
        width = protocol.width(min(max(len(first) - int(target.sum()), 0), len(first)))
        messages = set()
        for given in (first, second):
            found = sorted(set(given))
            light = protocol.light_cells(np.array(given, np.uint64), np.array(heavy, np.int64), width, 0)
            source = _ChosenNoise(
                (
                    [1000 if item in heavy else -1000 for item in found],
                    target - np.array([given.count(item) for item in heavy], np.int64),
                    np.arange(len(light)) % 3 - light,
                )
            )
            messages.add(protocol.party(0, source=source).encode(list(given)))
            wrong += source.unexpected
        wrong += len(messages) > 1
    return wrong


def other_scales(protocol: Any) -> int:
    """Draws of the code that are not of the three scales that the law is written with."""
    small, source = tiny(protocol, 4, **SMALL_SEPARATION), ScriptedSource()
    small.party(0, source=source).encode([0, 0, 0, 1, 2])
    allowed = [small.separation_scale] * 2 + [small.heavy_scale, small.light_scale]
    return sum(draw.scale != scale for draw, scale in zip(source.draws, allowed, strict=True))
