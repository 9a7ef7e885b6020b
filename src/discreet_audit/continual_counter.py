"""Auditing running counts: what one event moves behind the noise of all ticks, and what the ticks together show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.continual._factors import Factor, Tree
from discreet.noise import RandomSource, seeded_source
from discreet.privacy.calibration import zcdp_delta, zcdp_epsilon, zcdp_rho
from discreet_audit.continual_laws import event_delta, published_noise, worst_norm
from discreet_audit.findings import Finding
from discreet_audit.registry import Effort, Twin
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import measure_outputs

__all__ = ["CounterOverTimeAudit", "FreshNoise", "claimed_loss", "claimed_rho", "halved", "side_by_side", "tries"]

Integers = npt.NDArray[np.int64]
_SLACK = 1.0 + 1e-9  # of doubles, for costs that are met exactly
_DELTA = 0.01  # where a claim of rho is tested by runs
_TICKS = 12  # of a stream that is run many times


def claimed_rho(mechanism: Any, delta_share: float = 1.0) -> float:
    """The zCDP that the claim leaves for the noise: rho, or what converts to this share of delta."""
    guarantee = mechanism.guarantee
    if guarantee.rho is not None:
        return float(guarantee.rho)
    return zcdp_rho(guarantee.epsilon, guarantee.delta * delta_share)


def claimed_loss(mechanism: Any) -> tuple[float, float]:
    """(epsilon, delta) of the claim; what rho converts to at a delta that runs can see."""
    guarantee = mechanism.guarantee
    if guarantee.rho is not None:
        return zcdp_epsilon(guarantee.rho, _DELTA), _DELTA
    return guarantee.epsilon, guarantee.delta


def tries(effort: Effort) -> int:
    """Noise vectors for which the shift of every event is computed."""
    return 3 if effort.length <= 0 else 20


def side_by_side(effort: Effort) -> int:
    """Independent counters that run side by side in a statistical check."""
    return min(25 * effort.runs, 400_000)


def _last_noise(factor: Factor, z: Sequence[int]) -> Integers:
    return np.array(published_noise(factor, z)[-1:], np.int64)


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


def halved(factor: Factor, by: float = 2.0) -> Factor:
    """NOT PRIVATE: the factor with too little noise."""
    original = factor.sigma
    factor.sigma = lambda rho, items=1: original(rho, items) / Fraction(by)  # type: ignore[method-assign]
    return factor


class CounterOverTimeAudit:
    """The four checks of a `Counter`."""

    def anew(self, counter: Any, source: RandomSource | None = None, groups: int | None = None) -> Any:
        """A counter of the same class and claim before its first tick; with `groups` of as many counters as an event
        may count for."""
        method, base = counter._asked
        return type(counter)(
            counter.horizon,
            counter.budget,
            method=method,
            base=base,
            size=counter.size if groups is None else groups * counter.max_items_per_event,
            max_items_per_event=counter.max_items_per_event,
            source=source,
        )

    def prepare(self, counter: Any) -> Any:
        """A counter that was used is audited as a new one would be."""
        return self.anew(counter) if counter.tick else counter

    # ---- structure and exact ---------------------------------------------------------------------------------------

    def _runs(self, counter: Any) -> Iterator[tuple[list[tuple[Any, Sequence[int]]], str]]:
        """The noises that an event moves, with the ticks at which it can enter each."""
        if counter.horizon is not None:
            yield [(counter._run, ())], f"{counter._run.factor.name}, {counter.horizon} ticks"
            return
        for epoch in range(5):
            # In its epoch, and then, once, in the total of the epochs before.
            yield [(counter._new_epoch(2**epoch), ()), (counter._epochs, (epoch + 1,))], f"epoch of {2**epoch} ticks"

    def structure(self, counter: Any, effort: Effort) -> Iterator[Finding]:
        """The shift of the independent noises that hides one event, in the shipped recurrence, for every tick."""
        for runs, name in self._runs(counter):
            for run, events in runs:
                norm, pairs = worst_norm(run.factor, tries(effort), events)
                yield Finding("structure", f"l2-shift by one event, {name}", "sensitivity",
                              run.factor.sensitivity * _SLACK, norm, pairs)  # fmt: skip

    def exact(self, counter: Any, effort: Effort) -> Iterator[Finding]:
        """What an event costs in all releases together, and the code against the law."""
        guarantee, items = counter.guarantee, counter.max_items_per_event
        worst, worst_delta, tried = 0.0, 0.0, 0
        for runs, _ in self._runs(counter):
            rho = 0.0
            for run, events in runs:
                norm, pairs = worst_norm(run.factor, tries(effort), events)
                # A discrete Gaussian moved by integers: D_a = a norm^2/(2 sigma^2) exactly, for whole orders a.
                rho += items * norm * norm / (2.0 * float(run.sigma) ** 2)
                tried += pairs
            worst = max(worst, rho)
            if guarantee.rho is None and len(runs) > 1:
                worst_delta = zcdp_delta(worst, guarantee.epsilon)
            elif guarantee.rho is None:
                worst_delta = event_delta(runs[0][0].factor, runs[0][0].sigma, norm, items, guarantee.epsilon)
        yield Finding("exact", "one event in all ticks", "rho", claimed_rho(counter) * _SLACK, worst, tried)
        if worst_delta:
            yield Finding("exact", "one event in all ticks", "delta", guarantee.delta, worst_delta, tried)
        yield self._conforms(counter)

    def _conforms(self, counter: Any) -> Finding:
        """With written noise, every tick must publish the total and what the recurrence makes of that noise."""
        ticks = min(counter.horizon or 15, 40)
        rng = np.random.default_rng(5)
        source, wrong, total, before = ScriptedSource(), 0, 0, 0
        made = self.anew(counter, source, groups=1)
        z: list[int] = []  # of the current run
        epochs: list[int] = []  # of the totals of the epochs before
        laws = []
        for t in range(1, ticks + 1):
            given, x = int(rng.integers(-(10**7), 10**7)), int(rng.integers(0, 9))
            source.each = np.array([given])
            published = np.atleast_1d(made.step(np.full(made.size, x)))
            total += x
            if counter.horizon is None and t & (t - 1) == 0 and t > 1:  # a new epoch
                z = []
                epochs.append(given)
                before = int(made._epochs.factor.to_counts(_last_noise(made._epochs.factor, epochs))[0])
                laws.append(made._epochs.sigma)
            z.append(given)
            laws.append(made._run.sigma)
            noise = made._run.factor.to_counts(_last_noise(made._run.factor, z))
            wrong += not (published == total + before + noise).all()
        wrong += [(draw.law, draw.scale, draw.size) for draw in source.draws] != [
            ("gaussian", sigma, made.size) for sigma in laws
        ]
        return Finding(
            "exact", "the code draws and adds what the law says", "violations", 0, wrong, 0, f"{ticks} ticks"
        )

    # ---- statistical and coupled -----------------------------------------------------------------------------------

    def statistical(self, counter: Any, effort: Effort) -> Iterator[Finding]:
        """Many counters of the compiled code side by side, with and without an event at the first tick."""
        yield self._plumbing(counter)
        epsilon, delta = claimed_loss(counter)
        runs, items = side_by_side(effort), counter.max_items_per_event
        ticks = min(counter.horizon or _TICKS, _TICKS)
        outputs = []
        for event in (1, 0):
            made = self.anew(counter, groups=runs)
            shown = [made.step(np.full(made.size, event if t == 0 else 0)) for t in range(ticks)]
            outputs.append(np.array(shown).reshape(ticks, runs, items).sum(axis=2).T)
        bound = measure_outputs(outputs[0], outputs[1], delta)
        detail = f"{runs} runs of each, {ticks} ticks, delta={delta:g}"
        yield Finding("statistical", "an event at the first tick", "epsilon", epsilon, bound, 1, detail)

    def _plumbing(self, counter: Any) -> Finding:
        wrong = []
        made = self.anew(counter, groups=200)
        first = made.step(np.zeros(made.size, np.int64), tick=1)
        again = [made.step(np.ones(made.size, np.int64), tick=1), type(made).from_bytes(made.to_bytes()).last]
        if not all((first == repeated).all() for repeated in again):
            wrong.append("a tick that was published is published again with other noise")
        if made._run.sigma >= made._run.factor.lattice and len(set(first.tolist())) == 1:  # a chance below 1e-50
            wrong.append("all counters have the same noise")
        texts = []
        for x in (0, 10**6):
            other = self.anew(counter, groups=1)
            other.step(np.full(other.size, x))
            texts.append((repr(other), other.error(1), other.guarantee))
        if texts[0] != texts[1]:
            wrong.append("the metadata depends on the data")
        source, restarted = seeded_source(3), seeded_source(3)
        one, two = (self.anew(counter, s, groups=1) for s in (source, restarted))
        for _ in range(min(counter.horizon or 5, 5)):
            two = type(two).from_bytes(two.to_bytes(), source=restarted)
            if not (one.step(np.ones(one.size, np.int64)) == two.step(np.ones(one.size, np.int64))).all():
                wrong.append("a restart changes what is drawn")
                break
        if made.guarantee.seeded or not one.guarantee.seeded:
            wrong.append("a release does not say where its noise came from")
        return Finding("statistical", "repetition, restart, metadata", "violations", 0, len(wrong), 1, "; ".join(wrong))

    def coupled(self, counter: Any, effort: Effort) -> Iterator[Finding]:
        """The same noise for random streams and for those with one event more."""
        groups, items = effort.released_pairs, counter.max_items_per_event
        ticks = min(counter.horizon or 20, 50)
        rng = np.random.default_rng(2)
        x = rng.integers(0, 1000, (ticks, groups * items))
        more = x.copy()
        for group, when in enumerate(rng.integers(0, ticks, groups)):
            more[when, group * items : (group + 1) * items] += 1
        released = []
        for stream in (x, more):
            made = self.anew(counter, seeded_source(9), groups=groups)
            released.append(np.array([made.step(row) for row in stream]).reshape(ticks, groups, items))
        moved = np.sqrt(((released[1] - released[0]) ** 2).sum(axis=2)).max()
        yield Finding("coupled", "l2-change of a tick's totals", "sensitivity", math.sqrt(items), float(moved), groups)

    # ---- sabotage --------------------------------------------------------------------------------------------------

    def twins(self, counter: Any) -> Sequence[Twin]:
        """Half the noise, noise for one node or tick, noise anew at every tick, and for a tick asked for again."""
        kind = type(counter)

        def broken(name: str, first: str = "exact", **members: Any) -> Twin:
            made = type(f"NotPrivate{kind.__name__}", (kind,), members)
            return Twin(name, self.anew(self._as(counter, made)), first)

        def less(by: Any) -> Any:
            return lambda self, horizon, share: halved(kind.factor_for(self, horizon, share), by(self, horizon, share))

        def norm(self: Any, horizon: int, share: float) -> float:
            factor = kind.factor_for(self, horizon, share)
            return float(factor.sensitivity / factor.lattice)

        def again(self: Any, x: Any, tick: int | None = None) -> Any:
            if tick is not None and tick == self.tick:
                noise = self._source.discrete_gaussian(self._run.sigma / self._run.factor.lattice, len(self._total))
                return self._total + noise
            return kind.step(self, x, tick)

        found = [broken("half the noise", factor_for=less(lambda *_: 2.0))]
        if counter.horizon is None or norm(counter, counter.horizon, 1.0) > 1.1:
            found += [
                broken("noise for one tick alone", factor_for=less(norm)),
                broken("noise anew at every tick", factor_for=lambda self, horizon, share: FreshNoise(horizon)),
            ]
        return (*found, broken("other noise for a tick asked for again", "statistical", step=again))

    def _as(self, counter: Any, kind: type[Any]) -> Any:
        other: Any = object.__new__(kind)
        other.__dict__.update(counter.__dict__)
        return other
