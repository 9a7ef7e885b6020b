"""Auditing running counts: what one event moves behind the noise of all ticks, and what the ticks together show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.continual import Counter
from discreet.continual.anatomy import CorrelatedNoise, Factor
from discreet.noise import seeded_source
from discreet.privacy.calibration.zcdp import zcdp_delta
from discreet_audit import continual_base as shared
from discreet_audit import continual_laws as laws
from discreet_audit.findings import Finding
from discreet_audit.registry import Effort, Twin
from discreet_audit.sources import ScriptedSource

__all__ = ["CounterOverTimeAudit", "in_counts"]


def _groups(counter: Counter, groups: int, source: Any = None) -> Counter:
    """So many groups of as many counters as an event may count for, each a run of its own."""
    return counter.anew(source, size=groups * counter.max_items_per_event)


class CounterOverTimeAudit(shared.OverTimeAudit):
    """The four checks of a `Counter`."""

    def structure(self, counter: Counter, effort: Effort) -> Iterator[Finding]:
        """The shift of the independent noises that hides one event, in the shipped recurrence, for every tick."""
        for name, noises in counter.noises_of_an_event():
            for noise in noises:
                norm, _, pairs = shared.moved_by_an_event(noise, 1, effort)
                what, declared = f"l2-shift by one event, {name}", noise.factor.sensitivity * shared.SLACK
                yield Finding("structure", what, "sensitivity", declared, norm, pairs)

    def exact(self, counter: Counter, effort: Effort) -> Iterator[Finding]:
        """What an event costs in all releases together, and the code against the law."""
        epsilon, items = counter.guarantee.epsilon, counter.max_items_per_event
        worst, delta, tried = 0.0, 0.0, 0
        for _, noises in counter.noises_of_an_event():
            moved = [shared.moved_by_an_event(noise, items, effort) for noise in noises]
            worst = max(worst, sum(rho for _, rho, _ in moved))
            tried += sum(pairs for _, _, pairs in moved)
            if epsilon is not None:
                alone = laws.event_delta(noises[0], moved[0][0], items, epsilon)
                delta = alone if len(noises) == 1 else zcdp_delta(worst, epsilon)
        yield Finding(
            "exact", "one event in all ticks", "rho", shared.claimed_rho(counter) * shared.SLACK, worst, tried
        )
        if delta:
            yield Finding("exact", "one event in all ticks", "delta", counter.guarantee.delta, delta, tried)
        yield self.conforms(counter)

    def conforms(self, counter: Counter) -> Finding:
        """With written noise, every tick must publish the total and what the recurrence makes of that noise."""
        ticks, rng, source = (
            shared.first_ticks(counter, 40 if counter.horizon else 15),
            np.random.default_rng(5),
            ScriptedSource(),
        )
        made, wrong, total, before = _groups(counter, 1, source), 0, 0, 0
        noises = [noise for _, noise in counter.noises_of_an_event()]
        z: list[int] = []  # of the current run
        epochs: list[int] = []  # of the totals of the epochs before
        laws = []
        for t in range(1, ticks + 1):
            given, x = int(rng.integers(-(10**7), 10**7)), int(rng.integers(0, 9))
            source.each = np.array([given])
            published = made.step(np.full(made.size or 1, x))
            total += x
            epoch = 0 if counter.horizon is not None else t.bit_length() - 1
            run, *totals = noises[epoch]
            if totals and epoch and t == 2**epoch:
                z = []
                epochs.append(given)
                before = in_counts(totals[0], epochs)
                laws.append(totals[0].sigma)
            z.append(given)
            laws.append(run.sigma)
            wrong += not (published == total + before + in_counts(run, z)).all()
        drawn = [(draw.law, draw.scale, draw.size) for draw in source.draws]
        wrong += drawn != [("gaussian", sigma, made.size) for sigma in laws]
        what = "the code draws and adds what the law says"
        return Finding("exact", what, "violations", 0, wrong, 0, f"{ticks} ticks")

    def statistical(self, counter: Counter, effort: Effort) -> Iterator[Finding]:
        """Many independent groups of counters, each a run of its own, with and without an event at the first tick."""
        yield self._plumbing(counter)
        runs, items, ticks = shared.side_by_side(effort), counter.max_items_per_event, shared.first_ticks(counter, 12)

        def run(event: int) -> Any:
            made = _groups(counter, runs)
            shown = [made.step(np.full(runs * items, event if t == 0 else 0)) for t in range(ticks)]
            return np.array(shown).reshape(ticks, runs, items).sum(axis=2).T

        detail = f"{runs} runs of each, {ticks} ticks, delta={shared.claimed_loss(counter)[1]:g}"
        yield shared.told_apart("an event at the first tick", counter, run, detail)

    def _plumbing(self, counter: Counter) -> Finding:
        size, texts = 200 * counter.max_items_per_event, []
        for x in (0, 10**6):
            other = _groups(counter, 1)
            other.step(np.full(other.size or 1, x))
            texts.append((repr(other), other.error(1), other.guarantee))
        first = counter.noises_of_an_event()[0][1][0]
        streams = np.zeros(size, np.int64), np.ones(size, np.int64), np.ones(size, np.int64)
        wide = first.sigma >= first.factor.lattice
        return self.plumbing(lambda source: _groups(counter, 200, source), streams, (texts[0], texts[1]), wide)

    def coupled(self, counter: Counter, effort: Effort) -> Iterator[Finding]:
        """The same noise for random streams and for those with one event more."""
        groups, items = effort.released_pairs, counter.max_items_per_event
        ticks = shared.first_ticks(counter, 50 if counter.horizon else 20)
        rng = np.random.default_rng(2)
        x = rng.integers(0, 1000, (ticks, groups * items))
        more = x.copy()
        for group, when in enumerate(rng.integers(0, ticks, groups)):
            more[when, group * items : (group + 1) * items] += 1
        released = []
        for stream in (x, more):
            made = _groups(counter, groups, seeded_source(9))
            released.append(np.array([made.step(row) for row in stream]).reshape(ticks, groups, items))
        moved = np.sqrt(((released[1] - released[0]) ** 2).sum(axis=2)).max()
        yield Finding("coupled", "l2-change of a tick's totals", "sensitivity", math.sqrt(items), float(moved), groups)

    def twins(self, counter: Counter) -> Sequence[Twin]:
        """Half the noise, noise for one node or tick, noise anew at every tick, and for a tick asked for again."""
        right = type(counter).factor_for

        def less(by: Callable[[Factor], float]) -> Callable[[Any, int, float], Factor]:
            return lambda self, horizon, share: _weakened(right(self, horizon, share), by)

        found = [shared.broken(counter, "half the noise", factor_for=less(lambda factor: 2.0))]
        if counter.horizon is None or _norm(counter.noises_of_an_event()[0][1][0].factor) > 1.1:
            fresh = {"factor_for": lambda self, horizon, share: shared.FreshNoise(horizon)}
            found.append(shared.broken(counter, "noise for one tick alone", factor_for=less(_norm)))
            found.append(shared.broken(counter, "noise anew at every tick", **fresh))
        return (*found, shared.drawn_again(counter))


def in_counts(noise: CorrelatedNoise, z: Sequence[int]) -> int:
    """The latest noise that the recurrence makes of these independent ones."""
    return int(noise.factor.to_counts(np.array(laws.published_noise(noise.factor, z)[-1:], np.int64))[0])


def _norm(factor: Factor) -> float:
    return float(factor.sensitivity / factor.lattice)


def _weakened(factor: Factor, by: Callable[[Factor], float]) -> Factor:
    """NOT PRIVATE: the factor with too little noise."""
    original, less = factor.sigma, Fraction(by(factor))
    factor.sigma = lambda rho, items=1: original(rho, items) / less  # type: ignore[method-assign]
    return factor
