"""What the audits of releases that are histograms share: scores, what leaks beside the noise, runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from discreet.central import Mechanism
from discreet.noise import system_source
from discreet.privacy import User
from discreet.privacy.calibration.zcdp import zcdp_epsilon
from discreet.published import TrackedOracle
from discreet.releases.release import Release
from discreet_audit.exact import Published, published
from discreet_audit.findings import Finding
from discreet_audit.laws import NoiseLaw
from discreet_audit.registry import Effort
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import ScoredPair, measure

__all__ = ["CountOf", "HistogramAudit", "Listed", "Raised", "claim", "in_order", "items_of", "lowered", "shown_by"]

M = TypeVar("M", bound=Mechanism)
_NOTHING = -(10**6)  # noise that hides every counter


def claim(mechanism: Mechanism) -> tuple[float, float]:
    """(epsilon, delta) that the mechanism promises; of rho, by the tight conversion at a delta that shows in runs."""
    promised = mechanism.guarantee
    if promised.epsilon is None:
        return zcdp_epsilon(promised.rho or 0.0, 1e-2), 1e-2
    return promised.epsilon, promised.delta


def items_of(mechanism: Mechanism) -> int:
    """How many events one unit of privacy may have."""
    return mechanism.unit.limit if isinstance(mechanism.unit, User) else 1


def shown_by(release: Release) -> dict[Any, int]:
    """The counts by item."""
    return dict(zip(release.items, release.counts.tolist(), strict=True))


def in_order(release: Release) -> bool:
    """Whether the order says nothing that the items and counts do not: by count, then by item."""
    rows = list(zip(release.counts.tolist(), release.items, strict=True))
    return rows == sorted(rows, key=lambda row: (-row[0], row[1]))


# ---- scores of what is published ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountOf:
    """The count of one item; very low if it is not listed."""

    item: Any

    def __call__(self, shown: Published) -> float:
        return float(dict(shown.counts).get(repr(self.item), -(10**18)))


@dataclass(frozen=True)
class Listed:
    """Whether one of these items is listed."""

    keys: frozenset[Any]

    def __call__(self, shown: Published) -> float:
        return float(any(item in map(repr, self.keys) for item, _ in shown.counts))


@dataclass(frozen=True)
class Raised:
    """The counts of some items, less a part of all counts: Gaussian noise with a part in common, taken out again.

    With a of k counters one higher and sigma^2/sigma'^2 = r it is the likelihood ratio if the part is a/(k+r).
    """

    keys: frozenset[Any]
    part: float

    def __call__(self, shown: Published) -> float:
        names = {repr(key) for key in self.keys}
        raised = sum(count for item, count in shown.counts if item in names)
        return raised - self.part * sum(count for _, count in shown.counts)


def lowered(level: int, shown: Published) -> float:
    """How many listed items are below a level: with Laplace noise, the likelihood ratio of all being one lower."""
    return float(sum(count < level for _, count in shown.counts))


def sum_of(shown: Published) -> float:
    """The published offset, or minus all that is listed: both grow when every counter falls."""
    return float(shown.offset) if shown.offset is not None else -float(sum(count for _, count in shown.counts))


# ---- the checks --------------------------------------------------------------------------------------------------


class HistogramAudit(Generic[M]):
    """What is checked of every release that is a histogram. Streams are lists of whole numbers."""

    hiding = _NOTHING
    """Noise with which one event is not shown."""

    def filled(self, mechanism: M, stream: Sequence[int]) -> Any:
        """The summary of a stream."""
        raise NotImplementedError

    def streams(self, mechanism: M) -> Sequence[Sequence[int]]:
        """An item far above the cut, some items, nothing, and one event."""
        raise NotImplementedError

    def scored_pairs(self, mechanism: M, effort: Effort) -> Iterator[ScoredPair]:
        """The pairs that the runs are made on, with what tells them apart."""
        raise NotImplementedError

    def runs(self, mechanism: M, pair: ScoredPair, effort: Effort) -> int:
        """How often each of the two is released."""
        raise NotImplementedError

    def pair(self, mechanism: M, name: str, first: Sequence[int], second: Sequence[int], score: Any) -> ScoredPair:
        """Two neighbouring streams."""
        return ScoredPair(name, self.filled(mechanism, first), self.filled(mechanism, second), score)

    def statistical(self, mechanism: M, effort: Effort) -> Iterator[Finding]:
        """Order, repetition, the empty stream; lower bounds on epsilon on the worst kinds of pairs.

        What is drawn is scored, without the last step, which sorts and describes it: more runs in the same time.
        """
        heavy, more, empty, one = (self.filled(mechanism, stream) for stream in self.streams(mechanism))
        yield _plumbing(mechanism, heavy, more, empty, one, self.hiding)
        epsilon, delta = claim(mechanism)
        release = partial(_drawn, mechanism)
        for pair in self.scored_pairs(mechanism, effort):
            runs = self.runs(mechanism, pair, effort)
            bound = measure(release, pair, delta, runs)
            yield Finding("statistical", pair.name, "epsilon", epsilon, bound, 1, f"{runs} runs of each")


def _drawn(mechanism: Mechanism, summary: Any) -> Published:
    return published(mechanism, summary, system_source())


def several(capacity: int | None) -> list[int]:
    """A stream with as many items as fit, up to three, twice each."""
    return [item for item in (2, 1, 0)[: capacity or 3] for _ in range(2)]


def _plumbing(mechanism: Mechanism, summary: Any, more: Any, empty: Any, one: Any, hiding: int) -> Finding:
    """What leaks beside the noise: order, repeated noise, a changed summary, metadata of the empty stream."""
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
    if isinstance(summary, TrackedOracle):
        return summary.not_private_cells().tobytes(), summary.not_private_counts().to_dict()
    return [part.to_bytes() for part in summary] if isinstance(summary, list) else summary.to_bytes()
