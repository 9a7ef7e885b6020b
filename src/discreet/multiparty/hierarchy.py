"""Heavy hitters of large universes, quantiles, ranges: a frequency protocol at each level of intervals ([MDP] 3.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.errors import MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import Protocol, known, known_protocol
from discreet.multiparty._local import LocalProtocol
from discreet.multiparty.messages import Message, pack_parts, read_varint, unpack_parts, varint
from discreet.multiparty.ordered import Decomposition, Levels, levels_of, ordered_universe
from discreet.noise import RandomSource
from discreet.privacy import Budget

if TYPE_CHECKING:
    from discreet.multiparty.hierarchy_aggregator import HierarchyAggregator, LevelAggregator

__all__ = ["Hierarchy", "LevelProtocol"]


FIRST_COMPOSED = 32
"""The families from here on are made of other protocols."""


@dataclass(frozen=True)
class LevelProtocol(Protocol):
    """A protocol of its own at every level of a decomposition of the universe: what is sent, and what it spends."""

    protocol: str = "IndependentSketches"
    branching: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def _check(self) -> None:
        if not isinstance(self.options, dict):
            raise ParameterError("options must be a dictionary of the protocol's parameters")
        if "shuffled" in self.options:
            raise ParameterError("reports about levels are not shuffled: shuffled is for single local protocols")
        if self.by_level[0].family >= FIRST_COMPOSED:
            raise ParameterError(f"{self.protocol} does not estimate frequencies in one round")

    @cached_property
    def levels(self) -> Decomposition:
        """The parts of the universe, level by level."""
        raise ParameterError("use one of the protocols, not the bare LevelProtocol")

    @property
    def local(self) -> bool:
        """Whether every item is a report, which goes to one level instead of all."""
        return self.by_level[0].local

    @cached_property
    def by_level(self) -> tuple[Protocol, ...]:
        """The protocol of each level, from the coarsest down."""
        kind = known_protocol(self.protocol)
        budget = self.budget if issubclass(kind, LocalProtocol) else _share(self.budget, len(self.levels))
        try:
            return tuple(
                kind(f"{self.round_id}/level {level}", budget, self.levels.count(level), **self.options)
                for level in range(len(self.levels))
            )
        except TypeError:
            raise ParameterError(f"options has a parameter that {self.protocol} does not take") from None

    def _assumptions(self) -> tuple[str, ...]:
        levels = len(self.levels)
        if self.local:
            return (f"a report is about one of {levels} levels, drawn at random, and spends the whole epsilon there",)
        return (f"{levels} level(s) spend epsilon {self.by_level[0].epsilon:.6g} each, by {self.by_level[0].name}",)

    def _check_items(self, items: int) -> None:
        self.by_level[0]._check_items(items)  # all levels have the same limits

    def _covered(self, message: Message) -> list[tuple[int, int]]:
        return [(message.number, message.items if self.local else 1)]

    def _encode(self, words: Words, number: int, source: RandomSource) -> bytes:
        if not self.local:
            return pack_parts(
                protocol._encode(self.levels.nodes(words, level), number, source)
                for level, protocol in enumerate(self.by_level)
            )
        chosen = source.uniform_integers(len(self.levels), len(words))
        parts = []
        for level, protocol in enumerate(self.by_level):
            mine = self.levels.nodes(words[chosen == level], level)
            parts.append(varint(len(mine)) + (protocol._encode(mine, number, source) if len(mine) else b""))
        return pack_parts(parts)

    def _decode(self, message: Message) -> list[tuple[Message, Any] | None]:
        """For each level its message and what that says; None where no report went."""
        parts = unpack_parts(message.payload, len(self.levels))
        if len(parts) != len(self.levels):
            raise MessageError(f"message has {len(parts)} levels, expected {len(self.levels)}", "size")
        opened: list[tuple[Message, Any] | None] = []
        total = 0
        for protocol, part in zip(self.by_level, parts, strict=True):
            items, at = read_varint(part, 0) if self.local else (message.items, 0)
            total += items
            if not items and self.local:
                if at != len(part):
                    raise MessageError("message has reports where it says there are none", "size")
                opened.append(None)
                continue
            inner = Message(message.number, items, part[at:], message.seeded)
            if self.local and (total > message.items or protocol._covered(inner) != [(message.number, items)]):
                raise MessageError("message has reports of other numbers than it says", "range")
            opened.append((inner, protocol._decode(inner)))
        if self.local and total != message.items:
            raise MessageError("message has another number of reports than it says", "size")
        return opened

    if TYPE_CHECKING:

        def aggregator(
            self, *, max_items: int | None = None, max_reports: int | None = 1, minimum_reports: int = 0
        ) -> LevelAggregator: ...


@known
@dataclass(frozen=True)
class Hierarchy(LevelProtocol):
    """The universe is cut into intervals, these into parts, and so on; every level counts by a protocol of its own.

    Unit: one item replaced; n_i public. Guarantee: pure epsilon.
    Budget: of parties with many items each level has epsilon/levels, as an item is in one interval of every level and
        the levels' noises are independent. With a local protocol a report goes to one level, drawn before the item is
        looked at, with the whole epsilon: much better than a split, as the variance of a report grows like 1/epsilon^2.
    Estimates: a level's, which are unbiased; of sampled reports, times (all reports)/(those of the level).
    Follows [MDP] section 3.4.

    Args:
        universe: An ordered one: a size, a range, a list in its order, or `Strings(alphabet, max_length)`.
        protocol: The name of the protocol of every level: "IndependentSketches", "Separation", "HadamardResponse", ...
        branching: The parts of an interval (16); of strings, the characters that a level adds (1).
        options: The protocol's own parameters, the same at every level.
    """

    family: ClassVar[int] = FIRST_COMPOSED
    name: ClassVar[str] = "a frequency protocol at each level of intervals"
    read_universe = staticmethod(ordered_universe)

    @cached_property
    def levels(self) -> Levels:
        """The intervals."""
        return levels_of(self.universe, self.branching)

    if TYPE_CHECKING:

        def aggregator(
            self, *, max_items: int | None = None, max_reports: int | None = 1, minimum_reports: int = 0
        ) -> HierarchyAggregator: ...

        def restore(
            self, data: bytes, *, max_items: int | None = None, max_reports: int | None = 1, minimum_reports: int = 0
        ) -> HierarchyAggregator: ...

    def _listener(self) -> type[HierarchyAggregator]:
        from discreet.multiparty.hierarchy_aggregator import HierarchyAggregator

        return HierarchyAggregator


def _share(budget: Budget, parts: int) -> Budget:
    """The largest float that, taken `parts` times, stays within the budget."""
    assert budget.epsilon is not None
    share = budget.epsilon / parts
    while Fraction(share) * parts > Fraction(budget.epsilon):
        share = math.nextafter(share, 0.0)
    return Budget(share)
