"""What is checked of every release that is a histogram, and scores that tell two of them apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from discreet.noise import system_source
from discreet.releases.release import Release
from discreet_audit.exact import published
from discreet_audit.findings import Finding
from discreet_audit.laws import NoiseLaw
from discreet_audit.sources import ScriptedSource

__all__ = [
    "AnyShown",
    "CountOf",
    "HeavyKey",
    "Listed",
    "Lowered",
    "Raised",
    "plumbing",
    "recorded",
    "several",
    "sum_of",
]

Recorded = tuple[tuple[tuple[str, int], ...], int | None]
"""What a release shows: (repr of the item, count), sorted, and the offset."""

_NOTHING = -(10**6)  # noise that hides every counter


@dataclass(frozen=True)
class HeavyKey:
    """The published count of one item; very low if it is not listed."""

    item: Any

    def __call__(self, release: Release) -> float:
        for item, count in zip(release.items, release.counts.tolist(), strict=True):
            if item == self.item:
                return float(count)
        return -1e18


@dataclass(frozen=True)
class AnyShown:
    """Whether one of these items is in a histogram."""

    keys: frozenset[Any]

    def __call__(self, release: Release) -> float:
        return float(any(item in self.keys for item in release.items))


def recorded(mechanism: Any) -> Callable[[Any], Recorded]:
    """The release without its last step, which sorts and wraps what is published: many more runs in the same time."""
    source = system_source()

    return lambda summary: cast(Recorded, published(mechanism, summary, source))


@dataclass(frozen=True)
class CountOf:
    """The count of one item; very low if it is not listed."""

    item: Any

    def __call__(self, shown: Recorded) -> float:
        return float(dict(shown[0]).get(repr(self.item), -(10**18)))


@dataclass(frozen=True)
class Listed:
    """Whether one of these items is listed."""

    keys: frozenset[Any]

    def __call__(self, shown: Recorded) -> float:
        return float(any(item in map(repr, self.keys) for item, _ in shown[0]))


@dataclass(frozen=True)
class Lowered:
    """How many listed items are below a level: with Laplace noise, the likelihood ratio of all being one lower."""

    level: int

    def __call__(self, shown: Recorded) -> float:
        return float(sum(count < self.level for _, count in shown[0]))


@dataclass(frozen=True)
class Raised:
    """The counts of some items, less a part of all counts: Gaussian noise with a part in common, taken out again.

    With a of k counters one higher and sigma^2/sigma'^2 = r it is the likelihood ratio if the part is a/(k+r).
    """

    keys: frozenset[Any]
    part: float

    def __call__(self, shown: Recorded) -> float:
        names = {repr(key) for key in self.keys}
        return sum(count for item, count in shown[0] if item in names) - self.part * sum(c for _, c in shown[0])


def sum_of(shown: Recorded) -> float:
    """The published offset, or minus all that is listed: both grow when every counter falls."""
    return float(shown[1]) if shown[1] is not None else -float(sum(count for _, count in shown[0]))


def in_order(release: Release) -> bool:
    """Whether the order says nothing that the items and counts do not: by count, then by item."""
    rows = list(zip(release.counts.tolist(), release.items, strict=True))
    return rows == sorted(rows, key=lambda row: (-row[0], row[1]))


def several(capacity: int | None) -> list[int]:
    """A stream with as many items as fit, up to three, twice each."""
    return [item for item in (2, 1, 0)[: capacity or 3] for _ in range(2)]


def plumbing(mechanism: Any, summary: Any, more: Any, empty: Any, one: Any, hiding: int = _NOTHING) -> Finding:
    """What leaks beside the noise: order, repeated noise, a changed summary, metadata of the empty stream.

    Args:
        mechanism: The mechanism.
        summary: A summary with an item far above the cut.
        more: A summary of the stream `several`.
        empty: The empty summary.
        one: The summary of one event.
        hiding: Noise with which one event is not shown.
    """
    wrong = []
    before = _state(summary)
    # So many that all of them having the same noise is a chance of 1e-10, if they are few enough.
    noise = mechanism.error_model.noise
    equal = NoiseLaw(noise.law, noise.scale).at(0)
    repeats = math.ceil(math.log(1e-10) / math.log(equal)) + 1 if equal < 0.995 else 0
    releases = [mechanism(summary) for _ in range(max(repeats, 20))]
    # Noise that grows and noise that falls along the summary's own order: one of them shows any other order.
    steps = [10**6 * place for place in range(1, 5)]
    scripted = [mechanism(more, ScriptedSource(0, each)) for each in (steps, steps[::-1])]
    if not all(in_order(release) for release in (*releases, *scripted)):
        wrong.append("the order of the items is not that of the counts")
    # A release that has nothing to show may repeat itself.
    visible = any(len(release) or release.offset is not None for release in releases)
    if repeats and visible and len({(release.offset, *release.counts.tolist()) for release in releases}) == 1:
        wrong.append("repeated releases have the same noise")
    if _state(summary) != before:
        wrong.append("releasing changes the summary")
    # With noise that hides every counter, the empty stream and one event must look alike, metadata included. A noisy
    # length or offset is published too: the event may move it by one, for which the noise on it makes up.
    hidden = mechanism(empty, ScriptedSource(0, hiding)).to_payload()
    shifts = (0,) if mechanism.error_model.offset_noise is None else (0, -1, 1)
    if all(mechanism(one, ScriptedSource(shift, hiding)).to_payload() != hidden for shift in shifts):
        wrong.append("the empty stream can be told from one event without looking at counts")
    if any(release.guarantee.seeded for release in releases) or not scripted[0].guarantee.seeded:
        wrong.append("a release does not say where its noise came from")
    return Finding(
        "statistical", "order, repetition, empty stream, metadata", "violations", 0, len(wrong), 1, "; ".join(wrong)
    )


def _state(summary: Any) -> Any:
    return [part.to_bytes() for part in summary] if isinstance(summary, list) else summary.to_bytes()
