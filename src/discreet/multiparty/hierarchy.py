"""Heavy hitters of large universes, quantiles, ranges: a frequency protocol at each level of intervals ([MDP] 3.4)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass, field
from discreet.errors import MessageError, ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import Round, known, known_protocol
from discreet.multiparty.aggregator import Aggregator, Limits, liars_among
from discreet.multiparty.estimates import ConsistentEstimates, Estimates, Liars
from discreet.multiparty.levels import HasParts, IntervalQuestions, Levels, Strings, levels_of, ordered_universe
from discreet.multiparty.local_protocol import LocalProtocol
from discreet.multiparty.wire import Heard, Message, pack_parts, read_varint, unpack_parts, varint
from discreet.noise import RandomSource
from discreet.privacy import Budget
from discreet.privacy.checks import whole_number
from discreet.releases.simplex import on_simplex

if TYPE_CHECKING:
    from discreet.events.universe import Universe

_ENOUGH = 20
"""From this many addends on their spread tells the variance of a sum: the quantiles of Student's law are then within
those of `Estimates.bounds`, which has room for a Laplace law."""


class LevelAggregator(Aggregator, HasParts):
    """Hears a message for every level, and counts the parts of each."""

    protocol: LevelProtocol

    def __init__(self, protocol: Round, limits: Limits) -> None:
        super().__init__(protocol, limits)
        self._ready: dict[int, tuple[int, Heard]] = {}

    def interval_counts(self, level: int, intervals: npt.ArrayLike) -> Estimates:
        """Unbiased counts of intervals of a level, by their numbers.

        If reports were spread over the levels, the level's are a random n_l of all n: n/n_l times their counts, and the
        variance of that choice, f (n - f)/(n - 1) (n - n_l)/n_l, is added.
        """
        level = whole_number("level", level, 0, len(self.protocol.levels) - 1)
        nodes = np.asarray(intervals, np.uint64)
        protocol, heard = self.protocol.by_level[level], self._heard_at(level)
        values, variances = protocol._estimates(heard, nodes)
        bias = protocol._bias(heard)
        if self.protocol.local:
            n, here = self.total, sum(message.items for message, _ in heard)
            if here == 0:
                variances = np.full(len(nodes), float(n) ** 2)  # nothing is known of this level
            else:
                values, variances = values * (n / here), variances * (n / here) ** 2
                count = np.clip(values, 0.0, n)
                variances = variances + count * (n - count) / max(n - 1, 1) * (n - here) / here
        return Estimates(values, variances, self.guarantee, *bias)

    def sum_variance(self, level: int, intervals: npt.ArrayLike, counts: Estimates) -> float:
        """The variance of the sum of these counts of a level, at most: from how much what the parties add differs.

        Items that are asked for together may collide together, as hash functions are pairwise independent and no more.
        But parties have functions and noise of their own, and reports too: with 20 addends or more their spread is
        taken, which has the differences of their true counts in it. It is no less than the counts' own variances
        together, and no more than if they all erred together, as is assumed of fewer addends.
        """
        together, nodes = super().sum_variance(level, intervals, counts), np.asarray(intervals, np.uint64)
        if len(nodes) < 2:
            return together
        protocol, heard = self.protocol.by_level[level], self._heard_at(level)
        addends = protocol._addends(heard, nodes) if heard else np.zeros(0)
        if len(addends) < _ENOUGH:
            return together
        here = sum(message.items for message, _ in heard)
        scale = self.total / here if self.protocol.local and here else 1.0
        spread = len(addends) * float(np.var(addends, ddof=1)) * scale**2
        return min(max(spread, float(counts.variances.sum())), together)

    def _heard_at(self, level: int) -> Heard:
        """What was heard about a level, in the form that is quickest to work with."""
        everything = self._to_show()
        known = self._ready.get(level)
        if known is None or known[0] != len(everything):
            protocol = self.protocol.by_level[level]
            heard = [content[level] for _, content in everything if content[level] is not None]
            self._ready[level] = known = len(everything), protocol._consolidated(heard)
        return known[1]

    def _counts(self, words: Words) -> Estimates:
        return self.interval_counts(len(self.protocol.levels) - 1, words)

    def liars(self, items: Any, share: float = 0.01) -> Liars:
        """How far each estimate would move if this many of the parties (of local protocols: reports) had not been
        heard.

        Of sampled reports an estimate is n/n_l times a sum over those of the last level, and liars choose their level:
        without m of them the factor is from (n - m)/n_l to n/(n_l - m), and the sum moves by what m reports add.
        """
        words, level = self.protocol.universe.words(items), len(self.protocol.levels) - 1
        protocol, heard, count = self.protocol.by_level[level], self._heard_at(level), liars_among(share, self.parties)
        too_high, too_low = protocol._estimates(heard, words, count)
        if self.protocol.local and count:
            n, here = self.total, sum(message.items for message, _ in heard)
            if count >= here:  # without them nothing is known of the level
                too_high = too_low = np.full(len(words), float(n))
            else:
                sums, _ = protocol._estimates(heard, words)
                small, large = (n - count) / here, n / (here - count)
                least, most = sums - too_high, sums + too_low
                too_high = n / here * sums - np.where(least > 0, small, large) * least
                too_low = np.where(most > 0, large, small) * most - n / here * sums
        return Liars(share, count, too_high, too_low)


class HierarchyAggregator(LevelAggregator, IntervalQuestions):
    """Hears the messages of a `Hierarchy`, and answers questions about its intervals."""

    protocol: Hierarchy

    @property
    def _ordered(self) -> tuple[Universe | Strings, Levels]:
        return self.protocol.universe, self.protocol.levels

    def _consistent(self, words: Words) -> ConsistentEstimates:
        """By the same non-negative measure as `quantile`: the parts of an interval have its own count."""
        counts, last = self._counts(words), len(self.protocol.levels) - 1
        known: dict[tuple[int, int], dict[int, float]] = {}
        values = np.array([self._mass(last, int(word), known) for word in words])
        total = float(self.total)
        return ConsistentEstimates(values, counts.variances, counts.guarantee, unbiased=counts.values, total=total)

    def _mass(self, level: int, node: int, known: dict[tuple[int, int], dict[int, float]]) -> float:
        """The count of an interval in the measure; `known` are the parts of intervals that were computed already."""
        widths = self.protocol.levels.widths
        above = node * widths[level] // widths[level - 1] if level else 0
        if (level, above) not in known:
            mass = self._mass(level - 1, above, known) if level else float(self.total)
            nodes, counts = self._parts(above, level)
            known[level, above] = dict(zip(nodes.tolist(), on_simplex(counts.values, mass).tolist(), strict=True))
        return known[level, above][node]


FIRST_COMPOSED = 32
"""The families from here on are made of other protocols."""


@dataclass(frozen=True)
class LevelProtocol(Round):
    """A protocol of its own at every level of a decomposition of the universe: what is sent, and what it spends."""

    protocol: str = "IndependentSketches"
    branching: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    _listener: ClassVar[type[Any]] = LevelAggregator

    def _check(self) -> None:
        if not isinstance(self.options, dict):
            raise ParameterError("options must be a dictionary of the protocol's parameters")
        if "shuffled" in self.options:
            raise ParameterError("reports about levels cannot be shuffled; shuffled works with single local protocols")
        if self.by_level[0].family >= FIRST_COMPOSED:
            raise ParameterError(f"{self.protocol} does not estimate frequencies in one round")

    @cached_property
    def levels(self) -> Any:
        """Levels of parts of the universe: every word is in one part of each, and parts of the last are single words.

        It has a length, the `count` of a level's parts, and says in which `nodes` of a level words lie.
        """
        raise ParameterError("use one of the protocols, not the bare LevelProtocol")

    @property
    def local(self) -> bool:
        """Whether every item is a report, which goes to one level instead of all."""
        return self._oracle.local

    @property
    def _oracle(self) -> Round:
        return self.by_level[0]

    @cached_property
    def by_level(self) -> tuple[Round, ...]:
        """The protocol of each level, from the coarsest down."""
        kind = cast("type[Round]", known_protocol(self.protocol))  # which `_check` sees to
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

    def _check_items(self, items: int, own: bool = False) -> None:
        self.by_level[0]._check_items(items, own)  # all levels have the same limits

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
            raise MessageError("message has a different number of reports than it states", "size")
        return opened

    if TYPE_CHECKING:

        def aggregator(self, **limits: Any) -> LevelAggregator: ...

        def restore(self, data: bytes, **limits: Any) -> LevelAggregator: ...


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
    Argument: docs/privacy/multiparty.md.

    Args:
        universe: An ordered one: a size, a range, a list in its order, or `Strings(alphabet, max_length)`.
        protocol: The name of the protocol of every level: "IndependentSketches", "Separation", "HadamardResponse", ...
        branching: The parts of an interval (16); of strings, the characters that a level adds (1).
        options: The protocol's own parameters, the same at every level.
    """

    family: ClassVar[int] = FIRST_COMPOSED
    name: ClassVar[str] = "a frequency protocol at each level of intervals"
    read_universe = staticmethod(ordered_universe)
    _listener: ClassVar[type[Any]] = HierarchyAggregator

    @cached_property
    def levels(self) -> Levels:
        """The intervals."""
        return levels_of(self.universe, self.branching)

    if TYPE_CHECKING:

        def aggregator(self, **limits: Any) -> HierarchyAggregator: ...

        def restore(self, data: bytes, **limits: Any) -> HierarchyAggregator: ...


def _share(budget: Budget, parts: int) -> Budget:
    """The largest float that, taken `parts` times, stays within the budget."""
    assert budget.epsilon is not None
    share = budget.epsilon / parts
    while Fraction(share) * parts > Fraction(budget.epsilon):
        share = math.nextafter(share, 0.0)
    return Budget(share)
