"""The offset release of Misra-Gries in shards: the same mechanism on every shard, and no more noise."""

from __future__ import annotations

from array import array
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from discreet._data_class import dataclass, field
from discreet.central._base import Drawn, Mechanism
from discreet.central.offset import Offset
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.noise.source import offset_draw
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.checks import whole_number
from discreet.releases.error_model import ErrorModel, Noise
from discreet.summaries import ShardedMisraGries, Summary


@dataclass(frozen=True)
class ShardedOffset(Mechanism):
    """The offset release of each shard of a Misra-Gries sketch, every one with the whole budget.

    Unit: one event added or removed, or up to m events of a user (`User(m)`). Not `Replace`: it touches two shards.
    Guarantee: (epsilon, delta), by parallel composition over disjoint items.
    Noise: that of `Offset` on every shard s: a0_s = alpha_s + Z_s and v_x = c_x + alpha_s + Z_x, all Z discrete Laplace
        of scale m/epsilon.
    Threshold: x is published iff v_x - a0_s >= 1 + t, with the t of `Offset`.
    Error: f <= c + alpha_s <= f + n_s/(capacity+1) with n_s the events of shard s; never more than with one sketch.
    Argument: docs/privacy/shards.md.

    Args:
        capacity: The counters of every shard.
        shards: How many shards; public.
    """

    name: ClassVar[str] = "offset release of Misra-Gries in shards"
    reference: ClassVar[str] = "this package, docs/privacy/shards.md; parallel composition of offset releases"
    accepts: ClassVar[tuple[type[Summary], ...]] = (ShardedMisraGries,)

    budget: Budget
    capacity: int
    shards: int
    unit: Unit = field(default_factory=Event)

    def __post_init__(self) -> None:
        whole_number("shards", self.shards)
        _ = self.of_one_shard

    def empty_summary(self, max_key_bytes: int) -> ShardedMisraGries:
        return ShardedMisraGries(self.capacity, self.shards, max_key_bytes=max_key_bytes)

    @cached_property
    def of_one_shard(self) -> Offset:
        """The mechanism that each shard is released with."""
        return Offset(self.budget, self.capacity, self.unit)

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the discrete Laplace noises: m/epsilon, exactly."""
        return self.of_one_shard.scale

    @cached_property
    def threshold(self) -> int:
        return self.of_one_shard.threshold

    @cached_property
    def error_model(self) -> ErrorModel:
        return ErrorModel(
            Noise("laplace", self.scale, self.capacity * self.shards),
            offset_noise=Noise("laplace", self.scale, self.shards),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"parallel composition over disjoint items: every item belongs to one of {self.shards} shards by a keyed "
            "hash, whatever the stream, so one event changes one of them",
            *super().assumptions,
        )

    def check(self, summary: Any) -> None:
        super().check(summary)
        if summary.shards != self.shards:
            raise ParameterError(
                f"the mechanism was made for {self.shards} shards, but the summary has {summary.shards}"
            )

    def draw(self, summary: ShardedMisraGries, source: RandomSource) -> Drawn:
        raw = summary.not_private_counts()
        drawn, shards, counters, first = [], array("q"), raw.held_counts, 0
        for shard, (size, alpha) in enumerate(zip(summary.not_private_sizes, summary.not_private_offsets, strict=True)):
            part = counters[first : first + size]
            drawn.append(offset_draw(part, alpha, self.scale, self.threshold, source))
            shards.extend([shard] * size)
            first += size
        return Drawn(
            raw,
            memoryview(b"".join(noisy for _, noisy, _ in drawn)).cast("q"),
            memoryview(b"".join(kept for _, _, kept in drawn)).cast("?"),
            shards=memoryview(shards),
            shard_offsets=[a0 for a0, _, _ in drawn],
        )
