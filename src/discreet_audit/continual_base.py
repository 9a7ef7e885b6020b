"""What the audits of all releases over time share: claims, the checks of repetition and restarts, and twins.

A row for a new mechanism is a subclass of `OverTimeAudit` with the four checks and `twins`, and an entry in
`discreet_audit.continual`. Where its noise is correlated over ticks, `moved_by_an_event` has what an event costs; where
it is a tree of nodes, `nodes of an event` times what one node costs (`continual_histogram`, `continual_hitters`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.continual.anatomy import EPOCHS, Continual, CorrelatedNoise, Doubling, Factor, Tree
from discreet.noise import RandomSource, seeded_source
from discreet.privacy.calibration.zcdp import zcdp_epsilon, zcdp_rho
from discreet.releases.release import Release
from discreet_audit.continual_laws import worst_norm
from discreet_audit.findings import Finding
from discreet_audit.histograms import in_order
from discreet_audit.registry import Effort, Twin
from discreet_audit.sabotage import twin
from discreet_audit.statistical import measure_outputs

__all__ = ["FreshNoise", "OverTimeAudit", "broken", "drawn_again", "moved_by_an_event", "told_apart"]

Integers = npt.NDArray[np.int64]
C = TypeVar("C", bound=Continual)
SLACK = 1.0 + 1e-9  # of doubles, for costs that are met exactly
HIGH = 10**6  # noise that shows everything; its negative hides everything
TRIED = 7  # epochs that are run through: 127 ticks
_DELTA = 0.01  # where a claim of rho is tested by runs


def claimed_rho(mechanism: Continual, delta_share: float = 1.0) -> float:
    """The zCDP that the claim leaves for the noise: rho, or what converts to this share of delta."""
    guarantee = mechanism.guarantee
    if guarantee.epsilon is None:
        return float(guarantee.rho or 0.0)
    return zcdp_rho(guarantee.epsilon, guarantee.delta * delta_share)


def claimed_loss(mechanism: Continual) -> tuple[float, float]:
    """(epsilon, delta) of the claim; what rho converts to at a delta that runs can see."""
    guarantee = mechanism.guarantee
    if guarantee.epsilon is None:
        return zcdp_epsilon(guarantee.rho or 0.0, _DELTA), _DELTA
    return guarantee.epsilon, guarantee.delta


def first_ticks(mechanism: Continual, most: int) -> int:
    """So many ticks, or all there are."""
    return min(mechanism.horizon or most, most)


def side_by_side(effort: Effort) -> int:
    """Independent counters that run side by side in a statistical check."""
    return min(25 * effort.runs, 400_000)


def moved_by_an_event(noise: CorrelatedNoise, items: int, effort: Effort) -> tuple[float, float, int]:
    """(norm, rho, pairs): how far the shipped recurrence lets one event move the independent noises, and its cost.

    A discrete Gaussian moved by integers has D_a = a norm^2/(2 sigma^2) exactly, for whole orders a.
    """
    norm, pairs = worst_norm(noise.factor, 3 if effort.length <= 0 else 20, noise.enters)
    return norm, items * norm * norm / (2.0 * float(noise.sigma) ** 2), pairs


def noises_of_an_event(factor: Factor, sigma: Fraction, effort: Effort) -> list[tuple[str, list[CorrelatedNoise]]]:
    """For every way in which an event can come, the noises that hide it: without a horizon, for the first epochs."""
    if not isinstance(factor, Doubling):
        return [("", [CorrelatedNoise(factor, sigma)])]
    return [
        (f", epoch of {2**e} ticks", list(factor.noises(e, sigma)))
        for e in (*range(TRIED), *(() if effort.length <= 0 else (9,)))
    ]


def shifts_of_an_event(factor: Factor, sigma: Fraction, effort: Effort) -> Iterator[Finding]:
    """The shift of the independent noises that hides one event, in the shipped recurrence, against the declared one."""
    for name, noises in noises_of_an_event(factor, sigma, effort):
        for noise, part in zip(noises, ("", ", totals"), strict=False):
            norm, _, pairs = moved_by_an_event(noise, 1, effort)
            what, declared = f"l2-shift of a counter by one event{name}{part}", noise.factor.sensitivity * SLACK
            yield Finding("structure", what, "sensitivity", declared, norm, pairs)


def cost_of_an_event(factor: Factor, sigma: Fraction, items: int, effort: Effort) -> tuple[float, float, int]:
    """(norm, rho, pairs) of `moved_by_an_event`: without a horizon, of all noises of its epoch and for the worst epoch.

    The recurrences of the first epochs are run; of all others there may be, what they declare to be moved is counted.
    """
    if not isinstance(factor, Doubling):
        return moved_by_an_event(CorrelatedNoise(factor, sigma), items, effort)
    worst, tried = 0.0, 0
    for _, noises in noises_of_an_event(factor, sigma, effort):
        moved = [moved_by_an_event(noise, items, effort) for noise in noises]
        worst, tried = max(worst, sum(rho for _, rho, _ in moved)), tried + sum(pairs for *_, pairs in moved)
    for epoch in range(TRIED, EPOCHS):
        declared = [(noise.factor.sensitivity / float(noise.sigma)) ** 2 for noise in factor.noises(epoch, sigma)]
        worst = max(worst, items * sum(declared) / 2.0)
    return float(np.sqrt(2.0 * worst / items)) * float(sigma), worst, tried


def variance_is_off(noise: npt.ArrayLike, error: float) -> tuple[float, float]:
    """(limit, how far the variance of n noises is off, relative to what is stated).

    They are normal but for rounding, so the deviation is sqrt(2/n). Of n >= 500, 7.5 of them are exceeded with a
    probability below 5e-10: exp(-n/2 (x - ln(1 + x))), and less below.
    """
    found = np.asarray(noise, np.float64)
    n = found.size
    return 7.5 * float(np.sqrt(2.0 / n)), abs(float((found**2).mean()) / error**2 - 1.0)


def told_apart(what: str, mechanism: Continual, run: Callable[[int], npt.ArrayLike], detail: str) -> Finding:
    """Runs of the compiled code with an event (`run(1)`) and without (`run(0)`), as rows of numbers."""
    epsilon, delta = claimed_loss(mechanism)
    return Finding("statistical", what, "epsilon", epsilon, measure_outputs(run(1), run(0), delta), 1, detail)


def published_counts(made: Any, first: Any, ticks: int, size: int) -> npt.NDArray[np.float64]:
    """The published counts of items 0, 1, ... at every tick, when all events come at the first."""
    shown = np.zeros((ticks, size))
    for tick in range(ticks):
        release = made.step(first if tick == 0 else [])
        shown[tick, np.asarray(release.items, np.int64)] = release.counts
    return shown


class OverTimeAudit:
    """What all of them check, and how a mechanism that was used is audited: as a new one would be."""

    def prepare(self, mechanism: C) -> C:
        """Before its first tick."""
        return mechanism.anew() if mechanism.tick else mechanism

    def plumbing(
        self,
        make: Callable[[RandomSource | None], Any],
        streams: tuple[Any, Any, Any],
        apart: tuple[Any, Any],
        wide: bool,
        fresh: int = 0,
        tick: int = 1,
    ) -> Finding:
        """Repetition, order, restarts, metadata.

        Args:
            make: The mechanism with noise from this source.
            streams: The events of a tick, all of equal counts; other events for the same tick; those of restarts.
            apart: What is public beside the counts, for two streams that must not be told apart by it.
            wide: Whether the noise is so wide that equal noises would not happen, by a chance below 1e-15.
            fresh: How many more releases are compared, where one has too few counts to tell.
            tick: The first tick that publishes something.
        """

        def begun() -> Any:
            new = make(None)
            for _ in range(tick - 1):
                new.step([])
            return new

        wrong, made = [], begun()
        first = made.step(streams[0], tick=tick)
        shown, restored = _plain(first), type(made).from_bytes(made.to_bytes()).last
        again = (made.step(streams[1], tick=tick) for _ in range(30))
        if _plain(restored) != shown or any(_plain(repeated) != shown for repeated in again):
            wrong.append("a tick that was published is published again with other noise")
        others = [begun().step(streams[0]) for _ in range(fresh)]
        if not all(in_order(release) for release in (first, *others) if isinstance(release, Release)):
            wrong.append("the order of the items is not that of the counts")
        noises = [tuple(_counts(release)) for release in others] if others else _counts(first)
        if wide and (others or len(noises) >= 40) and len(set(noises)) == 1:
            wrong.append("all counts have the same noise")
        if apart[0] != apart[1]:
            wrong.append("streams can be told apart without looking at counts")
        one, restarted = make(seeded_source(3)), seeded_source(3)
        two = make(restarted)
        for _ in range(first_ticks(made, 5)):
            two = type(two).from_bytes(two.to_bytes(), source=restarted)
            if _plain(one.step(streams[2])) != _plain(two.step(streams[2])):
                wrong.append("a restart changes what is drawn")
                break
        if made.guarantee.seeded or not one.guarantee.seeded:
            wrong.append("a release does not say where its noise came from")
        check = f"{'order, ' if isinstance(first, Release) else ''}repetition, restart, metadata"
        return Finding("statistical", check, "violations", 0, len(wrong), 1, "; ".join(wrong))


def _counts(release: Any) -> list[int]:
    return list((release.counts if isinstance(release, Release) else np.atleast_1d(release)).tolist())


def _plain(release: Any) -> Any:
    return release.to_payload() if isinstance(release, Release) else np.asarray(release).tolist()


# ---- sabotage --------------------------------------------------------------------------------------------------------


class FreshNoise(Factor):
    """NOT PRIVATE: the noise of a single release, drawn anew at every tick."""

    name = "fresh"
    lattice = 1
    sensitivity = 1.0

    def row_squares(self, t: int) -> float:
        return 1.0

    def start(self, size: int) -> dict[str, Integers]:
        return {"noise": np.zeros(size, np.int64)}

    def advance(self, state: dict[str, Integers], tick: int, sigma: Fraction, source: RandomSource) -> Integers:
        return source.discrete_gaussian(sigma, len(state["noise"]))

    def join(self, size: int, tick: int, sigma: Fraction, source: RandomSource) -> dict[str, Integers]:
        return self.start(size)

    def hiding_shift(self, t: int, sigma: Fraction, probability: float) -> int:
        return Tree(1, 2).hiding_shift(t, sigma, probability)


def unsplit(factor: Any) -> None:
    """NOT PRIVATE: the totals of epochs spend all there is, beside the epochs."""
    right = factor.noises

    def noises(epoch: int, sigma: Fraction) -> tuple[CorrelatedNoise, CorrelatedNoise]:
        inside, over = right(epoch, sigma)
        return inside, CorrelatedNoise(over.factor, over.factor.sigma(1.0 / (2.0 * float(sigma) ** 2)), over.enters)

    factor.noises = noises


def broken(mechanism: Continual, name: str, kind: str = "exact", /, **members: Any) -> Twin:
    """A twin that is made anew, with these members in its class."""
    made = twin(mechanism, name, kind, **members)
    return replace(made, mechanism=made.mechanism.anew())


def drawn_again(mechanism: Any) -> Twin:
    """A tick that is asked for again is drawn again, from the state before it."""
    right = type(mechanism)

    def step(self: Any, given: Any, tick: int | None = None, **options: Any) -> Any:
        if tick is not None and tick == self.tick:
            return right.from_bytes(self.before).step(self.given)
        self.before, self.given = self.to_bytes(), given
        return right.step(self, given, tick, **options)

    return broken(mechanism, "other noise for a tick asked for again", "statistical", step=step)
