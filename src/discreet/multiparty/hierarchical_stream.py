"""Heavy hitters of large universes, quantiles and ranges over time: a stream at each level of intervals ([MDP] 3.4, 4).

As in a `Stream` a party sends a noisy sketch of every block of time when it is complete, and here one for every level
of intervals (a *track*): of the intervals that its items lie in. And it answers for a sampled step at once, for one
track, which is a public function of the party and the step.

Privacy unit: as of a `Stream`. A step is in one block of each level of time, whose `tracks` sketches have noise of
their own, and it is sampled at most once, for one track, so

    epsilon = epsilon_sample + levels * tracks * epsilon_level        (exact fractions)

The paper splits the budget of the samples over the tracks, too. To ask for one track a step has the same number of
samples for each track, and the whole epsilon_sample: much better, as the variance of an answer grows like 1/epsilon^2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.events.universe import Words
from discreet.multiparty._base import known
from discreet.multiparty.ordered import Levels, levels_of, ordered_universe
from discreet.multiparty.stream import Stream

if TYPE_CHECKING:
    from discreet.multiparty.hierarchical_stream_aggregator import HierarchicalStreamAggregator

__all__ = ["HierarchicalStream"]


@known
@dataclass(frozen=True)
class HierarchicalStream(Stream):
    """A `Stream` of an ordered universe that is cut into intervals, these into parts, and so on.

    Unit: the item of one party at one step is replaced by another, or by nothing. Guarantee: pure epsilon for all that
        a party ever sends. Follows [MDP] sections 3.4 and 4.

    Args:
        universe: An ordered one: a size, a range, a list in its order, or `Strings(alphabet, max_length)`.
        branching: The parts of an interval (16); of strings, the characters that a level adds (1).
    """

    branching: int | None = None

    family: ClassVar[int] = 34
    name: ClassVar[str] = "samples of steps and sketches of dyadic blocks, at each level of intervals"
    read_universe = staticmethod(ordered_universe)

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

    def aggregator(  # type: ignore[override]
        self, expected: Iterable[int] = ()
    ) -> HierarchicalStreamAggregator:
        """An aggregator; `expected` parties are listed as absent until they are heard."""
        from discreet.multiparty.hierarchical_stream_aggregator import HierarchicalStreamAggregator

        return HierarchicalStreamAggregator(self, expected)

    def restore(self, data: bytes) -> HierarchicalStreamAggregator:  # type: ignore[override]
        """An aggregator that goes on from its state."""
        from discreet.multiparty.hierarchical_stream_aggregator import HierarchicalStreamAggregator

        return HierarchicalStreamAggregator._restored(self, data)
