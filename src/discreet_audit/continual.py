"""The rows of `discreet.continual`: running counts, different people, heavy hitters, histograms.

A continual release is audited as the joint law of all its ticks. A row for a new mechanism is a subclass of
`OverTimeAudit`. Where its noise is correlated over ticks, `moved_by_an_event` has what an event costs; where it is a
tree of nodes, that is the nodes of an event times what one node costs.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial, reduce
from itertools import chain, combinations, combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.continual import Counter, DistinctCount, HeavyHitters, Histogram, one_shot
from discreet.continual.anatomy import (
    EPOCHS,
    Continual,
    CorrelatedNoise,
    Doubling,
    EachTick,
    Factor,
    Factored,
    Hidden,
    Meta,
    Restarted,
    Scheme,
    Sparse,
    Tree,
    epoch_of,
    event_counts,
)
from discreet.noise import RandomSource, seeded_source, system_source
from discreet.privacy import Budget, Event, User
from discreet.privacy.calibration.composition import repeated_delta
from discreet.privacy.calibration.zcdp import zcdp_delta, zcdp_rho
from discreet.releases.release import Release
from discreet.summaries import MisraGries
from discreet_audit.central import CounterAudit, Counters, EntriesAudit, counters_of, in_order, lemma_8_state, shown_by
from discreet_audit.closed_forms import (
    NoiseLaw,
    gaussian_delta,
    gaussian_split_delta,
    independent,
    merge_ratios,
    normal_tail,
    threshold_delta,
)
from discreet_audit.core import (
    SLACK,
    Audit,
    Effort,
    Finding,
    Twin,
    altered,
    checked,
    claim,
    faults,
    largest,
    never,
    register,
    twin,
)
from discreet_audit.exact import OutputLaw, ScriptedSource, WeakenedSource, law_of, least_whole, worst_pair
from discreet_audit.statistical import FALSE_ALARM, epsilon_lower_bound, measure_outputs

# ---- exact laws at small horizons: what an event moves, and what shows an item that must be hidden -------------------
# `path_shifts` runs the proof of docs/privacy/correlated-noise.md on the shipped recurrences: given noises of a stream
# it finds those that make a neighbour publish the same at every tick. The other functions are closed forms and sums.

Integers = npt.NDArray[np.int64]
OneShots = Meta | Restarted


def path_shifts(factor: Factor, paths: npt.NDArray[np.bool_], z: Sequence[int]) -> Integers:
    """z - z', a column for each of `paths`: z' lets a stream with one unit more, which counts at the ticks of that
    column (an event at its own and all later ones), publish what z did.

    The l2-norm of a column is what privacy rests on: it must be at most `factor.sensitivity`.
    """
    given, number = ScriptedSource(), paths.shape[1]
    plain, moved = factor.start(1), factor.start(number)
    shifts = np.zeros(paths.shape, np.int64)
    for tick, value in enumerate(z, 1):
        given.each = np.array([value], np.int64)
        wanted = factor.advance(plain, tick, Fraction(1), given) - np.where(paths[tick - 1], factor.lattice, 0)
        # The noise of a tick is its own z and what the ticks before left: learn that with z = 0, then ask for the rest.
        given.each = np.zeros(number, np.int64)
        left = factor.advance({name: array.copy() for name, array in moved.items()}, tick, Fraction(1), given)
        given.each = wanted - left
        factor.advance(moved, tick, Fraction(1), given)
        shifts[tick - 1] = value - given.each
    return shifts


def worst_norm(factor: Factor, tries: int, events: Sequence[int] = (), changes: int = 1) -> tuple[float, int]:
    """The largest l2-norm of `path_shifts` over random noises, and how many pairs of streams were compared.

    All events of a short horizon; 32 of a long one, of which the first 4096 ticks are run. Of people who come and go,
    `changes` times at most: all of up to 10 ticks, else those who do so as evenly as they can, and 200 by chance.
    """
    ticks = min(factor.horizon, 4096)
    some = {*np.geomspace(1, ticks, min(ticks, 32)).round().astype(int).tolist(), ticks}
    when = events or (range(1, ticks + 1) if ticks <= 64 else sorted(some))
    paths = comings_and_goings(ticks, changes) if changes > 1 else np.arange(1, ticks + 1)[:, None] >= np.array([*when])
    noises = (np.random.default_rng(seed).integers(-(2**30), 2**30, ticks).tolist() for seed in range(tries))
    norms = (np.linalg.norm(path_shifts(factor, paths, z), axis=0).max() for z in noises)
    return float(max(norms)), tries * paths.shape[1]


def comings_and_goings(ticks: int, changes: int) -> npt.NDArray[np.bool_]:
    """Columns of ticks at which a person counts who comes or goes this often, or less."""
    if ticks <= 10:
        paths = np.array(list(product((False, True), repeat=ticks))).T
        few = (np.diff(paths.astype(int), axis=0, prepend=0) != 0).sum(axis=0) <= changes
        return np.asarray(paths[:, few])
    rng = np.random.default_rng(1)
    evenly = [np.arange(number) * ticks // number for number in range(1, min(changes, ticks) + 1)]
    chance = [np.sort(rng.choice(ticks, min(changes, ticks), replace=False)) for _ in range(200)]
    at = np.arange(ticks)[:, None]
    return np.stack([(at >= places).sum(axis=1) % 2 == 1 for places in (*evenly, *chance)], axis=1)


def event_delta(noise: CorrelatedNoise, norm: float, items: int, epsilon: float) -> float:
    """delta at epsilon when an event moves the noises of `items` counters by `norm` (in lattice steps) each.

    A tree moves some nodes by 1: the exact law of discrete Gaussians. A lattice has thousands of steps a count, where
    the law of the loss is that of a continuous Gaussian except for a part in a thousand, which is added.
    """
    sigma = noise.sigma
    if noise.factor.lattice == 1 and float(norm * norm).is_integer():
        law = NoiseLaw("gaussian", sigma, 1e-30)
        return gaussian_split_delta(law, 0, round(norm * norm) * items, 10**9, epsilon)
    return gaussian_delta(epsilon, math.sqrt(items) * norm / float(sigma)) * (1.0 + 1e-3)


def shown_by_one_event(correlated: CorrelatedNoise, cuts: Sequence[int]) -> float:
    """sum_t P[1 + N_t >= cuts[t-1]]: bounds the chance that an item of one event is ever shown.

    The noise of a tree's tick is that of the nodes of its digits; on a lattice it is a Gaussian, see `event_delta`.
    """
    return math.fsum(noise_passes([(correlated, tick)], cut - 1) for tick, cut in enumerate(cuts, 1))


def noise_passes(parts: Sequence[tuple[CorrelatedNoise, int]], least: int) -> float:
    """P[the noises together are at least `least`], each at its tick: independent, and each rounded to whole counts."""
    squares = [(noise.factor.row_squares(t), float(noise.sigma) / noise.factor.lattice) for noise, t in parts]
    spread = math.sqrt(sum(rows * step**2 for rows, step in squares))
    rounded = sum(noise.factor.lattice > 1 for noise, _ in parts)
    if not rounded:
        return _table(spread).shown(least)
    return normal_tail((least - 0.5 * rounded) / spread)  # halves are rounded up


@lru_cache(maxsize=256)
def _table(spread: float) -> NoiseLaw:
    return NoiseLaw("gaussian", spread, 1e-30)


def doubled(factor: Doubling, sigma: Fraction, tick: int) -> list[tuple[CorrelatedNoise, int]]:
    """The noises of a tick without a horizon: that of its epoch, and that of the totals of the epochs before."""
    epoch, first = epoch_of(tick)
    inside, over = factor.noises(epoch, sigma)
    return [(inside, tick - first + 1), *([(over, epoch)] if epoch else [])]


def shown_in_any_epoch(factor: Doubling, sigma: Fraction, cut: Callable[[int], int], whole: int) -> list[float]:
    """For every epoch there may be, `shown_by_one_event` of its ticks; `whole` epochs tick by tick.

    Of a later one some of its ticks are looked at: as many times the largest chance of them as it has ticks.
    """
    out = []
    for epoch in range(EPOCHS):
        first = 2**epoch
        ticks = range(first, 2 * first) if epoch < whole else {first, first + 1, first + first // 3, 2 * first - 1}
        chances = [noise_passes(doubled(factor, sigma, tick), cut(tick) - 1) for tick in ticks]
        out.append(math.fsum(chances) if epoch < whole else first * max(chances))
    return out


def difference_tail(noise: NoiseLaw, shift: int) -> float:
    """P[Z - Z' >= shift] for two independent noises, and what their tables leave out."""
    inside = math.fsum(noise.at(z) * noise.shown(z + shift) for z in range(-noise.reach, noise.reach + 1))
    return inside + 2.0 * noise.left_out


def choice_rho(tau: float) -> float:
    """The exact zCDP of one choice with odds exp(2 h/tau), when an event raises the counts of any set of items.

    Only whether the chosen item is of the set tells two neighbours apart, so the laws are p and p e/(1 - p + p e) with
    e = exp(2/tau); the largest D_alpha/alpha over p, alpha and both directions.
    """
    logit = np.linspace(-12.0, 12.0, 481)[:, None]
    order = np.array([1.0 + 2.0**e for e in range(-8, 9)])[None, :]
    ways = []
    for one, two in ((logit, logit + 2.0 / tau), (logit + 2.0 / tau, logit)):
        inside = -np.logaddexp(0.0, -one) * order + np.logaddexp(0.0, -two) * (order - 1.0)
        outside = -np.logaddexp(0.0, one) * order + np.logaddexp(0.0, two) * (order - 1.0)
        ways.append(float((np.logaddexp(inside, outside) / ((order - 1.0) * order)).max()))
    return max(ways)


def above_threshold_losses(level: NoiseLaw, query: NoiseLaw) -> tuple[float, float]:
    """The exact losses of a run of AboveThreshold over queries that one event raises by 0 or 1 each.

    By how much (in logarithms) the event makes an outcome more likely, and less likely, at most. The run stops at the
    first query with q + Z > Z_0. Of the queries before the stop many are alike, which is what forces Z_0 up; the worst
    of a range of distances, of numbers of queries, and of which of them the event raises.
    """
    reach = level.reach

    def stops(before: int, many: int, last: int) -> float:
        """P[none of `many` queries of value `before` passes, and then one of value `last` does]."""
        return math.fsum(
            level.at(z) * query.hidden(z + 1 - before) ** many * query.shown(z + 1 - last)
            for z in range(-reach, reach + 1)
        )

    more = less = 0.0
    for many in (0, 1, 30, 1000):
        for last in (-2 * query.reach // 5, -query.reach // 5, 0, query.reach // 10):
            base = stops(0, many, last)
            for up, up_last in ((1, 0), (0, 1), (1, 1)):
                moved = stops(up, many, last + up_last)
                if base > 1e-12 and moved > 1e-12:
                    more, less = max(more, math.log(moved / base)), max(less, math.log(base / moved))
    return more, less


def item_shown(tree: Tree, sigma: float, cuts: Sequence[int], count: int, reach: int) -> float:
    """The chance that an item of a constant count passes cuts[t-1] at some tick t, summed over all node noises.

    For horizons of a few ticks: every tick draws one noise, and all their values are gone through.
    """
    z = np.array(list(itertools.product(range(-reach, reach + 1), repeat=len(cuts))), np.int64)
    weight = np.exp(-(z**2) / (2.0 * sigma * sigma)).prod(axis=1)
    state, given, shown = tree.start(len(z)), ScriptedSource(), np.zeros(len(z), bool)
    for tick, cut in enumerate(cuts, 1):
        given.each = z[:, tick - 1]
        shown |= count + tree.advance(state, tick, Fraction(1), given) >= cut
    return float(weight[shown].sum() / weight.sum())


def stop_is_beaten(limit: int, shift: float, tau: float) -> float:
    """The chance that one of `limit` items, each `shift` below the stop of UnkGumb, is drawn ahead of it.

    The stop is first with odds 1 against limit exp(-2 shift/tau).
    """
    odds = limit * math.exp(-2.0 * shift / tau)
    return odds / (1.0 + odds)


# ---- what all releases over time share: claims, repetition and restarts, twins ---------------------------------------

HIGH = 10**6  # noise that shows everything; its negative hides everything
TRIED = 7  # epochs that are run through: 127 ticks


def claimed_rho(mechanism: Continual, delta_share: float = 1.0) -> float:
    """The zCDP that the claim leaves for the noise: rho, or what converts to this share of delta."""
    guarantee = mechanism.guarantee
    if guarantee.epsilon is None:
        return float(guarantee.rho or 0.0)
    return zcdp_rho(guarantee.epsilon, guarantee.delta * delta_share)


def first_ticks(mechanism: Continual, most: int) -> int:
    return min(mechanism.horizon or most, most)


def over_time(mechanism: Any) -> str:
    """What a label says of the time that a mechanism looks at."""
    window = getattr(mechanism, "window", None)
    return ("" if window is None else f", window of {window}") + ("" if mechanism.horizon else ", any horizon")


def side_by_side(effort: Effort) -> int:
    """Independent counters that run side by side in a statistical check."""
    return min(25 * effort.runs, 400_000)


def moved_by_an_event(noise: CorrelatedNoise, items: int, effort: Effort) -> tuple[float, float, int]:
    """(norm, rho, pairs): how far the shipped recurrence lets one event move the independent noises, and its cost.

    A discrete Gaussian moved by integers has D_a = a norm^2/(2 sigma^2) exactly, for whole orders a.
    """
    norm, pairs = worst_norm(noise.factor, 3 if effort.length <= 0 else 20, noise.enters, noise.changes)
    return norm, items * norm * norm / (2.0 * float(noise.sigma) ** 2), pairs


Ways = Sequence[tuple[str, Sequence[CorrelatedNoise]]]
"""For every way in which an event can come, the noises that hide it."""


def noises_of_an_event(factor: Factor, sigma: Fraction, effort: Effort, changes: int = 1) -> Ways:
    """The ways of one event; without a horizon, for the first epochs."""
    if not isinstance(factor, Doubling):
        return [("", [CorrelatedNoise(factor, sigma, changes=changes)])]
    epochs = (*range(TRIED), *(() if effort.length <= 0 else (9,)))
    return [(f", epoch of {2**e} ticks", factor.noises(e, sigma)) for e in epochs]


def shifts_of_an_event(
    ways: Ways, effort: Effort, what: str = "l2-shift of a counter by one event", totals: str = ", totals"
) -> Iterator[Finding]:
    """The shift of the independent noises that hides one event, in the shipped recurrence, against the declared one."""
    for name, noises in ways:
        for noise, part in zip(noises, ("", totals), strict=False):
            norm, _, pairs = moved_by_an_event(noise, 1, effort)
            declared = noise.factor.sensitivity_to(noise.changes) * SLACK
            yield checked(f"{what}{name}{part}", "sensitivity", declared, norm, pairs)


def cost_of_an_event(
    factor: Factor, sigma: Fraction, items: int, effort: Effort, changes: int = 1
) -> tuple[float, float, int]:
    """(norm, rho, pairs) of `moved_by_an_event`: without a horizon, of all noises of its epoch and for the worst epoch.

    The recurrences of the first epochs are run; of all others there may be, what they declare to be moved is counted.
    """
    if not isinstance(factor, Doubling):
        return moved_by_an_event(CorrelatedNoise(factor, sigma, changes=changes), items, effort)
    worst, tried = 0.0, 0
    for _, noises in noises_of_an_event(factor, sigma, effort):
        moved = [moved_by_an_event(noise, items, effort) for noise in noises]
        worst, tried = max(worst, sum(rho for _, rho, _ in moved)), tried + sum(pairs for *_, pairs in moved)
    for epoch in range(TRIED, EPOCHS):
        declared = [(noise.factor.sensitivity / float(noise.sigma)) ** 2 for noise in factor.noises(epoch, sigma)]
        worst = max(worst, items * sum(declared) / 2.0)
    return float(np.sqrt(2.0 * worst / items)) * float(sigma), worst, tried


def variance_as_stated(what: str, noise: npt.ArrayLike, error: float, detail: str) -> Finding:
    """How far the variance of n noises is off, relative to that of the stated error.

    They are normal except for rounding, so the deviation is sqrt(2/n). Of n >= 500, 7.5 of them are exceeded with a
    probability below 5e-10: exp(-n/2 (x - ln(1 + x))), and less below.
    """
    found = np.asarray(noise, np.float64)
    n = found.size
    limit, off = 7.5 * float(np.sqrt(2.0 / n)), abs(float((found**2).mean()) / error**2 - 1.0)
    return checked(what, "relative variance", limit, off, 1, detail)


def _in_counts(noise: CorrelatedNoise, z: Sequence[int]) -> int:
    """The latest noise in counts that the shipped recurrence makes of these independent ones."""
    state, given, latest = noise.factor.start(1), ScriptedSource(), np.zeros(1, np.int64)
    for tick, value in enumerate(z, 1):
        given.each = np.array([value], np.int64)
        latest = noise.factor.advance(state, tick, Fraction(1), given)
    return int(noise.factor.to_counts(latest)[0])


class WrittenNoise:
    """Independent noises that the audit writes, and what the recurrences make of them, tick by tick."""

    def __init__(self) -> None:
        self.source = ScriptedSource()
        self.sigmas: list[Fraction] = []
        """What should have been asked for."""
        self._run: list[int] = []  # of the epoch, or of all ticks
        self._totals: list[int] = []  # of the epochs before

    def noise(self, z: int, parts: Sequence[tuple[CorrelatedNoise, int]]) -> int:
        """The noise of the next tick in counts, if z is drawn for it: `parts` are as those of `doubled`."""
        self.source.each = np.array([z])
        (inside, where), *over = parts
        if where == 1:
            self._run = []
            self._totals += [z] * len(over)
            self.sigmas += [noise.sigma for noise, _ in over]
        self._run.append(z)
        self.sigmas.append(inside.sigma)
        return _in_counts(inside, self._run) + sum(_in_counts(part, self._totals) for part, _ in over)


def told_apart(what: str, mechanism: Continual, run: Callable[[int], npt.ArrayLike], runs: int, ticks: int) -> Finding:
    """Runs of the compiled code with an event (`run(1)`) and without (`run(0)`), as rows of numbers."""
    epsilon, delta = claim(mechanism)
    detail = f"{runs} runs of each, {ticks} ticks, delta={delta:g}"
    return checked(what, "epsilon", epsilon, measure_outputs(run(1), run(0), delta), 1, detail)


def published_counts(made: Any, first: Any, ticks: int, size: int) -> npt.NDArray[np.float64]:
    """The published counts of items 0, 1, ... at every tick, when all events come at the first."""
    shown = np.zeros((ticks, size))
    for tick in range(ticks):
        release = made.step(first if tick == 0 else [])
        shown[tick, np.asarray(release.items, np.int64)] = release.counts
    return shown


class OverTimeAudit(Audit):
    """What all of them check, and how a mechanism that was used is audited: as a new one would be."""

    def prepare(self, mechanism: Any) -> Any:
        """Before its first tick."""
        return mechanism.anew() if mechanism.tick else mechanism

    def plumbing(
        self,
        make: Callable[[RandomSource | None], Any],
        streams: tuple[Any, Any, Any],
        public: Iterable[Any],
        wide: bool,
        fresh: int = 0,
        tick: int = 1,
    ) -> Finding:
        """Repetition, order, restarts, metadata.

        Args:
            make: The mechanism with noise from this source.
            streams: The events of a tick, all of equal counts; other events for the same tick; those of restarts.
            public: What is public beside the counts, for two streams that must not be told apart by it.
            wide: Whether the noise is so wide that equal noises would not happen, by a chance below 1e-15.
            fresh: How many more releases are compared, where one has too few counts to tell.
            tick: The first tick that publishes something.
        """

        def begun() -> Any:
            new = make(None)
            for _ in range(tick - 1):
                new.step([])
            return new

        made = begun()
        first = made.step(streams[0], tick=tick)
        shown, restored = _plain(first), type(made).from_bytes(made.to_bytes()).last
        repeated = (made.step(streams[1], tick=tick) for _ in range(30))
        others = [begun().step(streams[0]) for _ in range(fresh)]
        listed = [release for release in (first, *others) if isinstance(release, Release)]
        noises = [tuple(_published(release)) for release in others] if others else _published(first)
        one_stream, other_stream = public
        one, restarted = make(seeded_source(3)), seeded_source(3)
        two, anew = make(restarted), False
        for _ in range(first_ticks(made, 5)):
            two = type(two).from_bytes(two.to_bytes(), source=restarted)
            anew |= _plain(one.step(streams[2])) != _plain(two.step(streams[2]))
        again = "a tick that was published is published again with other noise"
        found: dict[str, object] = {
            again: any(_plain(release) != shown for release in chain([restored], repeated)),
            "the order of the items is not that of the counts": not all(map(in_order, listed)),
            "all counts have the same noise": wide and (others or len(noises) >= 40) and len(set(noises)) == 1,
            "streams can be told apart without looking at counts": one_stream != other_stream,
            "a restart changes what is drawn": anew,
            "a release does not say where its noise came from": made.guarantee.seeded or not one.guarantee.seeded,
        }
        return faults(f"{'order, ' if isinstance(first, Release) else ''}repetition, restart, metadata", found)


def _published(release: Any) -> list[int]:
    return list((release.counts if isinstance(release, Release) else np.atleast_1d(release)).tolist())


def _plain(release: Any) -> Any:
    return release.to_payload() if isinstance(release, Release) else np.asarray(release).tolist()


# ---- sabotage --------------------------------------------------------------------------------------------------------


class FreshNoise(EachTick):
    """NOT PRIVATE: the noise of a single release, drawn anew at every tick."""

    name = "fresh"
    sensitivity = 1.0

    def sensitivity_to(self, changes: int) -> float:
        return 1.0


def unsplit(factor: Any) -> None:
    """NOT PRIVATE: the totals of epochs spend all there is, beside the epochs."""
    right = factor.noises

    def noises(epoch: int, sigma: Fraction) -> tuple[CorrelatedNoise, CorrelatedNoise]:
        inside, over = right(epoch, sigma)
        return inside, CorrelatedNoise(over.factor, over.factor.sigma(1.0 / (2.0 * float(sigma) ** 2)), over.enters)

    factor.noises = noises


def broken(mechanism: Continual, name: str, kind: str = "exact", /, **changes: Callable[..., Any]) -> Twin:
    """A twin as `altered` makes it, that is made anew with these members in its class."""
    made = altered(mechanism, name, kind, **changes)
    return replace(made, mechanism=made.mechanism.anew())


def drawn_again(mechanism: Any) -> Twin:
    """A tick that is asked for again is drawn again, from the state before it."""
    kind = type(mechanism)

    def step(right: Any, made: Any, given: Any, tick: int | None = None, **options: Any) -> Any:
        if tick is not None and tick == made.tick:
            return kind.from_bytes(made.before).step(made.given)
        made.before, made.given = made.to_bytes(), given
        return right(given, tick, **options)

    return broken(mechanism, "other noise for a tick asked for again", "statistical", step=step)


# ---- running counts: what one event moves behind the noise of all ticks, and what the ticks show ---------------------


def _groups(counter: Counter, groups: int, source: Any = None) -> Counter:
    """This many groups of as many counters as an event may count for, each a run of its own."""
    return counter.anew(source, size=groups * counter.max_items_per_event)


class CounterOverTimeAudit(OverTimeAudit):
    def label(self, counter: Counter) -> str:
        return f"{type(counter).__name__}, {counter.method}{over_time(counter)}"

    def structure(self, counter: Counter, effort: Effort) -> Iterator[Finding]:
        """The shift of the independent noises that hides one event, in the shipped recurrence, for every tick."""
        yield from shifts_of_an_event(counter.noises_of_an_event(), effort, "l2-shift by one event, ", "")

    def exact(self, counter: Counter, effort: Effort) -> Iterator[Finding]:
        """What an event costs in all releases together, and the code against the law."""
        epsilon, items, ways = counter.guarantee.epsilon, counter.max_items_per_event, counter.noises_of_an_event()
        moved = [[moved_by_an_event(noise, items, effort) for noise in noises] for _, noises in ways]
        worst = max(sum(rho for _, rho, _ in each) for each in moved)
        tried = sum(pairs for each in moved for _, _, pairs in each)
        yield checked("one event in all ticks", "rho", claimed_rho(counter) * SLACK, worst, tried)
        if epsilon is not None:
            (noise, *others), ((norm, _, _), *_) = ways[-1][1], moved[-1]
            delta = zcdp_delta(worst, epsilon) if others else event_delta(noise, norm, items, epsilon)
            yield checked("one event in all ticks", "delta", counter.guarantee.delta, delta, tried)
        yield self.conforms(counter)

    def fed(self, counter: Any, rng: np.random.Generator) -> Iterator[tuple[Any, int]]:
        """What is given at one tick after the other, and what is true then."""
        total = 0
        while True:
            x = int(rng.integers(0, 9))
            total += x
            yield (x if counter.size is None else np.full(counter.size, x)), total

    def conforms(self, counter: Any) -> Finding:
        """With written noise, every tick must publish what is true and what the recurrence makes of that noise."""
        ticks = first_ticks(counter, 40 if counter.horizon else 15)
        rng, written, wrong = np.random.default_rng(5), WrittenNoise(), 0
        made, noises = counter.anew(written.source), [noise for _, noise in counter.noises_of_an_event()]
        for t, (given, truth) in zip(range(1, ticks + 1), self.fed(counter, rng), strict=False):
            epoch, first = (0, 1) if counter.horizon is not None else epoch_of(t)
            run, *totals = noises[epoch]
            parts = [(run, t - first + 1), *((each, epoch) for each in totals if epoch)]
            noise = written.noise(int(rng.integers(-(10**7), 10**7)), parts)
            wrong += bool(np.any(np.asarray(made.step(given)) != truth + noise))
        drawn = [(draw.law, draw.scale, draw.size) for draw in written.source.draws]
        wrong += drawn != [("gaussian", sigma, getattr(made, "size", None) or 1) for sigma in written.sigmas]
        return never("the code draws and adds what the law says", wrong, 0, f"{ticks} ticks")

    def statistical(self, counter: Counter, effort: Effort) -> Iterator[Finding]:
        """Many independent groups of counters, each a run of its own, with and without an event at the first tick."""

        def public(x: int) -> Any:
            other = _groups(counter, 1)
            other.step(np.full(other.size or 1, x))
            return repr(other), other.error(1), other.guarantee

        def run(event: int) -> Any:
            made = _groups(counter, runs)
            shown = [made.step(np.full(runs * items, event if t == 0 else 0)) for t in range(ticks)]
            return np.array(shown).reshape(ticks, runs, items).sum(axis=2).T

        runs, items, ticks = side_by_side(effort), counter.max_items_per_event, first_ticks(counter, 12)
        first, ones = counter.noises_of_an_event()[0][1][0], np.ones(200 * items, np.int64)
        make, wide = partial(_groups, counter, 200), first.sigma >= first.factor.lattice
        yield self.plumbing(make, (0 * ones, ones, ones), map(public, (0, 10**6)), wide)
        yield told_apart("an event at the first tick", counter, run, runs, ticks)

    def coupled(self, counter: Counter, effort: Effort) -> Iterator[Finding]:
        """The same noise for random streams and for those with one event more."""
        groups, items = effort.released_pairs, counter.max_items_per_event
        ticks = first_ticks(counter, 50 if counter.horizon else 20)
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
        yield checked("l2-change of a tick's totals", "sensitivity", math.sqrt(items), float(moved), groups)

    def twins(self, counter: Counter) -> Iterator[Twin]:
        yield _less_noise(counter, "half the noise", lambda factor: 2.0)
        if counter.horizon is None or _norm(counter.noises_of_an_event()[0][1][0].factor) > 1.1:
            yield _less_noise(counter, "noise for one tick alone", _norm)
            fresh = lambda right, _, horizon, share: FreshNoise(horizon)  # noqa: E731
            yield broken(counter, "noise anew at every tick", factor_for=fresh)
        yield drawn_again(counter)


def _norm(factor: Factor) -> float:
    return float(factor.sensitivity / factor.lattice)


def _less_noise(counter: Any, name: str, by: Callable[[Factor], float]) -> Twin:
    """This many times less noise."""

    def weakened(right: Any, _: Any, *given: Any) -> Factor:
        factor: Any = right(*given)
        original, less = factor.sigma, Fraction(by(factor))
        factor.sigma = lambda rho, items=1, changes=1: original(rho, items, changes) / less
        return factor  # type: ignore[no-any-return]

    return broken(counter, name, factor_for=weakened)


class DistinctOverTimeAudit(CounterOverTimeAudit):
    """The four checks of a `DistinctCount`: structure and exact cost are those of one event of a running total.

    In a window they are those of a person who comes and goes.
    """

    def fed(self, counter: Any, rng: np.random.Generator) -> Iterator[tuple[Any, int]]:
        """Rows of people, and the number of different ones."""
        rows: list[list[int]] = []
        while True:
            rows.append(rng.integers(0, 30, 9).tolist())
            yield rows[-1], _people_there(counter, rows)

    def statistical(self, counter: Any, effort: Effort) -> Iterator[Finding]:
        """Runs with a person more, who comes at every tick; in a window at every second visit's time."""

        def public(number: int) -> Any:
            other = counter.anew()
            other.step(range(number))
            return repr(other), other.error(1), other.guarantee

        noise, streams = counter.noises_of_an_event()[0][1][0], (range(50), range(99), range(20, 70))
        wide = noise.sigma >= 8 * noise.factor.lattice
        yield self.plumbing(counter.anew, streams, map(public, (0, 10**4)), wide, fresh=40)
        runs, ticks, apart = effort.runs, first_ticks(counter, 6), 1 if counter.window is None else counter.window + 1

        def run(person: int) -> Any:
            made = [counter.anew() for _ in range(runs)]
            return np.array([[one.step([7] * (person * (t % apart == 0))) for t in range(ticks)] for one in made])

        what = "a person who comes at every tick" if apart == 1 else "a person who comes as often as they can"
        yield told_apart(what, counter, run, runs, ticks)

    def coupled(self, counter: Any, effort: Effort) -> Iterator[Finding]:
        """The same noise for random rows of people, and with all rows of one person more."""
        rng = np.random.default_rng(2)

        def moved(_: int) -> list[int]:
            stream = rng.integers(0, 9, (first_ticks(counter, 6), 5)).tolist()
            more = [[*people, *[9] * int(rng.integers(0, 3))] for people in stream]
            one, two = counter.anew(seeded_source(9)), counter.anew(seeded_source(9))
            return [abs(int(two.step(b) - one.step(a))) for a, b in zip(stream, more, strict=True)]

        pairs = [moved(pair) for pair in range(effort.released_pairs // 5)]
        yield largest("change of the number by a person", 1, map(max, pairs))
        if counter.window is not None:
            changes = (sum(a != b for a, b in zip([0, *path], path, strict=False)) for path in pairs)
            yield largest("how often a person changes it", counter.changes, changes)

    def twins(self, counter: Any) -> Iterator[Twin]:
        changes = counter.changes

        def step(right: Any, made: Any, users: Any = (), tick: int | None = None, **more: Any) -> Any:
            return right([f"{person} {made.tick}" for person in users], tick, **more)

        yield from super().twins(counter)
        if counter.window != 1:  # else they do
            yield broken(counter, "a person counts at every tick", "coupled", step=step)
        if changes > 1 and not isinstance(counter.factor, EachTick):
            by = lambda factor: factor.sensitivity_to(changes) / factor.sensitivity  # noqa: E731
            yield _less_noise(counter, "noise for people who never leave", by)
        yield from any_visits(counter)


def any_visits(mechanism: Any) -> Iterator[Twin]:
    """People are counted again however often they come back."""
    if mechanism.max_visits is not None:
        limitless = lambda right, _: twin(right(), "", visits=None).mechanism  # noqa: E731
        yield broken(mechanism, "visits without a limit", "coupled", new_people=limitless)


def _people_there(counter: Any, rows: Sequence[Sequence[int]]) -> int:
    """How many people the documentation says count at the latest of these ticks."""
    window, now = counter.window or len(rows), len(rows)
    there = 0
    for person in {person for people in rows for person in people}:
        inside = [any(person in people for people in rows[max(0, t - window) : t]) for t in range(1, now + 1)]
        visits = sum(b and not a for a, b in zip([False, *inside], inside, strict=False))
        there += inside[-1] and (counter.max_visits is None or visits <= counter.max_visits)
    return there


# ---- heavy hitters: a tree of sketches, each released once -----------------------------------------------------------

Nodes = dict[tuple[int, int], Counters]


class HittersOverTimeAudit(OverTimeAudit):
    def label(self, hitters: HeavyHitters) -> str:
        return f"HeavyHitters, {hitters.mechanism}{over_time(hitters)}"

    def structure(self, hitters: HeavyHitters, effort: Effort) -> Iterator[Finding]:
        """Every short stream over two ticks: which released sketches one event changes, and how."""
        kind: Any = type(hitters)
        wrong, most, pairs = _short_streams(
            kind, hitters.mechanism, hitters.window is not None, _in_epochs(hitters), effort.length > 0
        )
        yield never("LT Lemma 8 in every released node", wrong, pairs)
        yield checked("released nodes that one event changes", "sensitivity", 2, most, pairs)
        if (known := hitters.discovered) is not None:
            yield _one_way(hitters)
            if _in_epochs(hitters):
                yield from shifts_of_an_event(noises_of_an_event(known.factor, known.sigma, effort), effort)

    def exact(self, hitters: HeavyHitters, effort: Effort) -> Iterator[Finding]:
        """The exact delta of one node, and of as many as one event is in."""
        whole, most = claim(hitters)
        for name, L, plan in self._plans(hitters):
            if hitters.discovered is not None:
                delta, what = _nodes_delta(plan, whole, L), f"{L} nodes of Gaussian noise{name}"
                yield checked(what, "delta", most, delta)
                continue
            k = hitters.capacity if hitters.mechanism == "chan" else 1  # how much of the noise one event may cost
            epsilon = float(k / Fraction(plan.scale))
            delta, pairs = self._node_delta(hitters, plan, epsilon, effort)
            total = repeated_delta(whole, epsilon, delta, L)
            detail = f"a node: epsilon {epsilon:.4g}, delta {delta:.4g}"
            yield checked(f"worst pair of a node, {L} nodes composed{name}", "delta", most, total, pairs, detail)
        if (known := hitters.discovered) is not None:
            norm, rho, pairs = cost_of_an_event(known.factor, known.sigma, 1, effort)
            claimed = claimed_rho(hitters) * SLACK
            yield checked("counters of public items", "rho", claimed, rho, pairs, f"norm {norm:.6g}")
        yield self._conforms(hitters)

    def _plans(self, hitters: HeavyHitters) -> Iterator[tuple[str, int, Any]]:
        """(name, nodes that hold one event, their noise and cut): of all ticks, or of the epochs there may be."""
        if not _in_epochs(hitters):
            yield "", self._nodes_of_an_event(hitters), hitters
            return
        seen = set()
        for epoch in range(EPOCHS):
            plan = hitters.plan(2**epoch)
            if (plan.levels, plan.scale, plan.threshold) not in seen:  # else as an epoch before
                seen.add((plan.levels, plan.scale, plan.threshold))
                yield f", epoch of {2**epoch} ticks", plan.levels, plan

    def _node_delta(self, hitters: HeavyHitters, plan: Any, epsilon: float, effort: Effort) -> tuple[float, int]:
        claim = SimpleNamespace(epsilon=epsilon, delta=hitters.guarantee.delta)
        node: Any = SimpleNamespace(
            capacity=hitters.capacity, threshold=plan.threshold, scale=plan.scale, unit=Event(), guarantee=claim,
            universe=None,
        )  # fmt: skip
        noise = NoiseLaw("laplace", plan.scale, min(1e-16, hitters.guarantee.delta * 1e-8))
        if hitters.mechanism == "offset":
            worst, tried, _ = CounterAudit("misra-gries", zeros=True, shared="published").worst(node, noise, effort)
            return worst, tried
        pairs = EntriesAudit(reduces=False).pairs(node, effort)
        both = [threshold_delta(one, noise, plan.threshold, epsilon) for p in pairs for one in (p, p.swapped)]
        return max(both), len(both)

    def _nodes_of_an_event(self, hitters: HeavyHitters) -> int:
        """How many released nodes hold one event, for some ticks at which it may come."""
        largest = hitters.every * hitters.base ** (hitters.levels - 1)
        ticks, most = first_ticks(hitters, min(largest, 400)), 0
        for when in {1, ticks}:
            nodes = _nodes(hitters.anew(ScriptedSource()), [[0] * (t == when) for t in range(1, ticks + 1)])
            most = max(most, sum(state.total > 0 for state in nodes.values()))
        return most if ticks >= largest else max(most, hitters.levels)  # the largest nodes are too long to run

    def _conforms(self, hitters: HeavyHitters) -> Finding:
        """A tick shows the sum of the nodes that cover it; of a node, the counters from its cut on with their noise."""
        wrong = 0
        offset = hitters.mechanism != "chan"
        law = "gaussian" if hitters.discovered is not None else "laplace"
        firsts = [2**epoch for epoch in range(4)] if _in_epochs(hitters) else [1]
        for first, around in product(firsts, range(-2, 3)):
            plan = hitters.plan(first) if _in_epochs(hitters) else hitters
            source = ScriptedSource(3 if offset else 0, plan.threshold + around - 1 + (3 if offset else 0))
            made = hitters.anew(source)
            for _ in range(first - 1):
                made.step([])
            source.draws.clear()
            release = _first_node(made, [0])
            drawn = [draw for draw in source.draws if draw.size != 0]  # an epoch begins for no counters, too
            # Offset: v - a0 = 1 + each - 3, so that the cut is met when `around` is 0.
            wrong += (release.items == [0]) != (around >= 0)
            wrong += any((draw.law, draw.scale) != (law, plan.scale) for draw in drawn)
            wrong += len(drawn) != (2 if offset else 1)
        # With noise that shows everything, a tick has the counts of all ticks (or of the window).
        made = hitters.anew(ScriptedSource(0, HIGH))
        for tick in range(1, first_ticks(hitters, 9) + 1) if hitters.discovered is None else ():
            release = made.step([7] * tick)
            first = 1 if hitters.window is None else max(1, tick - hitters.window + 1)
            count = int(release.counts[0]) % HIGH
            wrong += release.items != [7] or count != sum(range(first, tick + 1))
        return never("the code draws and shows what the law says", wrong)

    def statistical(self, hitters: HeavyHitters, effort: Effort) -> Iterator[Finding]:
        """All counters are runs of their own: their noises are independent, and far above the cut all are shown."""

        def public(events: list[int]) -> Any:
            other = hitters.anew(ScriptedSource(0, -HIGH))
            return other.step(events).to_payload(), repr(other)

        stream = np.repeat(np.arange(min(hitters.capacity, 20)), 3 * hitters.threshold + 20)
        streams, wide, every = (stream, [0], stream), hitters.scale >= 1, hitters.every
        yield self.plumbing(hitters.anew, streams, map(public, ([], [5])), wide, fresh=12, tick=every)
        ticks, k = first_ticks(hitters, max(4, hitters.base) * hitters.every), hitters.capacity
        # The offset's noise moves the cut of all counters: stay so far above that it does not matter.
        high = max(plan.threshold + math.ceil(30 * float(plan.scale)) for plan in _first_plans(hitters, ticks))
        together = hitters.mechanism == "chan"  # one event may lower all counters, and the noise is for that
        times = min(effort.runs, 20_000) if together else max(2, min(6 * effort.runs // k, 10**7 // (high * k)))

        def run(event: int) -> Any:
            first = np.repeat(np.arange(k), high + (0 if together else event))
            first = np.append(first, np.full(event, k)) if together else first
            rows = [published_counts(hitters.anew(), first, ticks, k + 1)[:, :k].T for _ in range(times)]
            return np.array(rows).sum(axis=1) if together else np.concatenate(rows)

        what, runs = ("every counter lower", times) if together else ("one counter higher", times * k)
        yield told_apart(what, hitters, run, runs, ticks)
        if hitters.discovered is not None and (hitters.horizon is None or hitters.horizon > hitters.every):

            def later(event: int) -> Any:
                return np.concatenate([_after_the_first(hitters, high, event) for _ in range(times)])

            yield told_apart("one event of a public item", hitters, later, times * k, every + 1)
        if hitters.discovered is not None and _in_epochs(hitters):
            yield from _counters_of_epochs(hitters, high)

    def coupled(self, hitters: HeavyHitters, effort: Effort) -> Iterator[Finding]:
        """Large random streams and the same with one event more, through the sketches of all nodes."""
        rng, k, items = np.random.default_rng(6), hitters.capacity, 4 * hitters.capacity + 10
        ticks, pairs = first_ticks(hitters, 8), max(5, effort.released_pairs // 5)
        weights = 1.0 / np.arange(1, items + 1)
        weights /= weights.sum()
        found = []
        for _ in range(pairs):
            stream = [rng.choice(items, 20 * min(k, 100), p=weights) for _ in range(ticks)]
            when = int(rng.integers(0, ticks))
            more = [np.append(batch, rng.integers(0, items)) if t == when else batch for t, batch in enumerate(stream)]
            hides = ScriptedSource(0, -HIGH if hitters.discovered is not None else 0)
            one, two = (_nodes(hitters.anew(hides), given) for given in (stream, more))
            found.append(_compared(one, two, k))
        wrong, most = sum(wrong for wrong, _ in found), max(changed for _, changed in found)
        yield never("large random streams keep LT Lemma 8", wrong, pairs)
        levels = max(plan.levels for plan in _first_plans(hitters, ticks))
        yield checked("released nodes that one event changes", "sensitivity", levels, most, pairs)
        if _in_epochs(hitters):
            yield _in_one_epoch(hitters)

    def twins(self, hitters: HeavyHitters) -> Iterator[Twin]:
        def planned(name: str, change: Callable[[Any], Any]) -> Twin:
            return broken(hitters, name, plan=lambda right, _, span: change(right(span)))

        yield planned("half the noise", lambda plan: replace(plan, scale=plan.scale / 2))
        yield planned("cut one lower", lambda plan: replace(plan, threshold=plan.threshold - 1))
        yield drawn_again(hitters)
        if hitters.discovered is not None:
            yield _made_otherwise(hitters, "half the noise of counters", _with("sigma", lambda sigma: sigma / 2))
            yield _both_ways(hitters)
        if hitters.levels > 1 or _in_epochs(hitters):
            # Every node spends what all of them may: its scale and its cut are those of the whole budget.
            whole = type(hitters)(1, hitters.budget, hitters.capacity, mechanism=hitters.mechanism, base=2)
            paid = {"scale": whole.scale, "threshold": whole.threshold}
            yield planned("the budget at every level", lambda plan: replace(plan, **paid))
        if hitters.mechanism == "chan" and hitters.capacity > 1:
            yield planned("noise for one counter", lambda plan: replace(plan, scale=plan.scale / hitters.capacity))
        if _in_epochs(hitters):
            if hitters.discovered is not None:
                what = "all of rho for the totals of epochs, too"
                yield _made_otherwise(hitters, what, lambda known: unsplit(known.factor))
            if _left_open(hitters):
                yield _lives_on(hitters)


def _in_epochs(hitters: HeavyHitters) -> bool:
    """Without a horizon ticks are in epochs, each with nodes of its own; a window needs none."""
    return hitters.horizon is None and hitters.window is None


def _first_plans(hitters: HeavyHitters, ticks: int) -> list[Any]:
    """What has the levels, the noise and the cut of the nodes of these ticks."""
    return [hitters.plan(2**e) for e in range(ticks.bit_length())] if _in_epochs(hitters) else [hitters]


def _left_open(hitters: HeavyHitters) -> list[int]:
    """The epochs, of those that are run through, that end inside of a node."""
    plans = [(epoch, hitters.plan(2**epoch)) for epoch in range(TRIED - 1)]
    return [epoch for epoch, plan in plans if 2**epoch % (plan.every * plan.base ** (plan.levels - 1))]


def _in_one_epoch(hitters: HeavyHitters) -> Finding:
    """One event, in the first tick of an epoch or in the last: it is in nodes of its epoch alone, one of each level."""
    wrong = tried = 0
    for epoch, last in product(range(TRIED - 1), (False, True)):
        when = 2 ** (epoch + last) - last
        hides = ScriptedSource(0, -HIGH)
        nodes = _nodes(hitters.anew(hides), [[7] * (tick == when) for tick in range(1, 2 ** (epoch + 2))])
        held = [first for (first, _), state in nodes.items() if state.total > 0]
        wrong += not held or len(held) > hitters.plan(2**epoch).levels
        wrong += any(epoch_of(first)[0] != epoch for first in held)
        tried += 1
    return never("an event is in nodes of its epoch alone", int(wrong), tried)


def _counters_of_epochs(hitters: HeavyHitters, high: int) -> Iterator[Finding]:
    """The noise of the counters of public items, in the first epochs and on both sides of the end of one."""
    known, k = hitters.discovered, hitters.capacity
    assert known is not None
    times, after = -(-500 // k), (2, 3, 4, 7, 8)
    noises: dict[int, list[Any]] = {tick: [] for tick in after}
    for _ in range(times):
        shown = published_counts(hitters.anew(), np.repeat(np.arange(k), high), max(after), k)
        for tick in after:
            noises[tick].append(shown[tick - 1] - shown[0])  # at the first tick there are nodes only
    for tick, found in noises.items():
        error, detail = known.factor.error(tick, known.sigma), f"{times * k} items at tick {tick}"
        yield variance_as_stated("noise of public items in an epoch", found, error, detail)


def _nodes(made: Any, stream: Sequence[Any]) -> Nodes:
    """The state of every sketch at its release."""
    nodes: Nodes = {}
    release = made.release_node

    def record(sketch: Any, first: int, last: int) -> Any:
        nodes[first, last] = counters_of(sketch)
        return release(sketch, first, last)

    made.release_node = record
    for batch in stream:
        made.step(batch)
    return nodes


def _compared(first: Nodes, second: Nodes, k: int) -> tuple[int, int]:
    """(nodes that break Lemma 8, nodes that differ) when the second stream has one event more."""
    if first.keys() != second.keys():
        return 1, len(first)
    changed = [(second[key], first[key]) for key in first if first[key] != second[key]]
    return sum(lemma_8_state(more, less, k) is None for more, less in changed), len(changed)


def _first_node(made: Any, events: Any) -> Any:
    """The release with which the first node ends, when all events come at the first tick."""
    release = made.step(events)
    for _ in range(made.every - 1):
        release = made.step([])
    return release


def _nodes_delta(nodes: Any, epsilon: float, L: int) -> float:
    """delta of L nodes: places that differ by 1, and keys of count 1 and 0 that one of two sketches stores alone."""
    noise, t = NoiseLaw("gaussian", nodes.scale, 1e-30), nodes.threshold - 1
    shown = difference_tail(noise, t) + difference_tail(noise, t + 1)
    places = gaussian_split_delta(noise, 0, L, 10**9, epsilon)
    return places + (1.0 + math.exp(epsilon)) * L * shown


def _one_way(hitters: HeavyHitters) -> Finding:
    """An event of an item that is public is in its counter and in no node; all others are in nodes alone."""
    made, many = hitters.anew(ScriptedSource()), 3 * hitters.threshold
    ticks = first_ticks(hitters, 4 * hitters.every)
    assert made.discovered is not None
    # Item 7 is public when the first node ends, with noise of 0; item 8 never is.
    rare = [8] * (hitters.capacity > 1)  # one counter alone would have to choose
    stream = [[7] * (many if tick <= hitters.every else 5) + rare for tick in range(1, ticks + 1)]
    nodes = _nodes(made, stream)
    wrong = 8 in made.discovered.index or 7 not in made.discovered.index
    if not wrong:
        wrong = int(made.discovered.since[made.discovered.index[7]]) != 5 * (ticks - hitters.every)
    for (first, last), state in nodes.items():
        held = {item: count + state.offset for item, count in state.counts}
        wrong |= held.get(7, 0) > (many * hitters.every if first <= hitters.every else 0)
        wrong |= held.get(8, 0) != (last - first + 1) * len(rare)
    return never("events of public items are in one counter, not in nodes", int(wrong), len(nodes))


def _after_the_first(hitters: HeavyHitters, high: int, event: int) -> Any:
    """What counters add to the counts of items that are public from the first tick, one event each at the second."""
    made, k = hitters.anew(), hitters.capacity
    shown = np.zeros((2, k))
    releases = (_first_node(made, np.repeat(np.arange(k), high)), made.step(np.repeat(np.arange(k), event)))
    for counts, release in zip(shown, releases, strict=True):
        counts[np.asarray(release.items, np.int64)] = release.counts
    return (shown[1] - shown[0])[:, None]


def _made_otherwise(hitters: HeavyHitters, name: str, change: Callable[[Any], None]) -> Twin:
    """A twin whose counters of public items are changed when it is made."""

    def init(right: Any, made: Any, *args: Any, **options: Any) -> None:
        right(*args, **options)
        change(made.discovered)

    return broken(hitters, name, __init__=init)


def _lives_on(hitters: HeavyHitters) -> Twin:
    """Sketches are not begun anew with an epoch: an event is in nodes of the next one, too."""

    def new_sketches(right: Any, made: Any) -> Any:
        new = right()
        if made.tick:
            old = [made.kept[min(level, len(made.kept) - 1)].to_bytes() for level in range(len(new))]
            new = [MisraGries.from_bytes(state) for state in old]
        made.kept = new
        return new

    return broken(hitters, "sketches live on into the next epoch", "coupled", new_sketches=new_sketches)


def _both_ways(hitters: HeavyHitters) -> Twin:
    def take(right: Any, made: Any, raw: Any) -> None:
        found, made.discovered = made.discovered, None  # all events to the nodes
        right(raw)
        made.discovered = found
        right(raw)

    return broken(hitters, "events of public items in nodes too", "structure", take=take)


@lru_cache(maxsize=16)
def _short_streams(
    kind: Callable[..., Any], mechanism: str, window: bool, epochs: bool, longer: bool
) -> tuple[int, int, int]:
    """(violations, most changed nodes, pairs) over all streams of two ticks of up to two events of three items.

    Without a horizon three ticks, which are two epochs, of up to one event each.
    """
    most, horizon, number = (2, None, 3) if epochs else (3, 2, 2)
    ticks = [list(batch) for size in range(most + longer) for batch in combinations_with_replacement(range(3), size)]
    found = []
    for k in (1, 2):
        template = kind(horizon, Budget(1.0, 0.1), k, 2 if window else None, base=2, mechanism=mechanism)
        states = {
            key: _nodes(template.anew(ScriptedSource()), [ticks[i] for i in key])
            for key in product(range(len(ticks)), repeat=number)
        }
        for key, tick, item in product(states, range(number), range(3)):
            more = sorted([*ticks[key[tick]], item])
            if more in ticks:
                other = (*key[:tick], ticks.index(more), *key[tick + 1 :])
                found.append(_compared(states[key], states[other], k))
    return sum(wrong for wrong, _ in found), max(changed for _, changed in found), len(found)


# ---- histograms, of events and of people: the four settings of [CO], each by the noise its scheme draws --------------
# Scales, cuts and the number of nodes that hold an event are read from what the scheme does with written noise. A
# person with m items costs what an event of m items costs, so the checks of histograms of events are made of histograms
# of people, too, with a new person for every event. What is added for people is what events cannot do: come again, with
# the same items and with others, at other ticks.

Runs = tuple[int, int, Callable[[int], Any]]
_TICKS = 6
_ITEMS = 12
_LATE = 100
_ITEM_PASSES = "items of one event pass the cut"
_CONFORMS = "the code draws and shows what the law says"


def _rank(size: int) -> Callable[[], Integers]:
    return lambda: np.arange(size)


@dataclass(frozen=True)
class Node:
    """What a node of a tree of one-shot releases draws: the noise of its counts and of its cut, and its choices.

    ``shift`` is the least noise that shows an item of one event (None over a known domain), ``tau`` that of choices.
    """

    law: str
    scale: Fraction
    choices: int
    tau: float
    shift: int | None
    limit: int


def node_of(scheme: Meta, known: bool) -> Node:
    """The numbers of the scheme's node, from its behaviour."""

    def released(items: int, noise: int) -> tuple[int, ScriptedSource]:
        source = ScriptedSource(0, noise)
        return len(scheme.release(np.ones(items, np.int64), _rank(items), source)[0]), source

    _, many = released(2000, HIGH)
    counts = next(draw for draw in reversed(many.draws) if draw.law != "choice")
    choice = next((draw for draw in many.draws if draw.law == "choice"), None)
    if choice is not None:
        # The stop is the last score; those before it are items of count 1, and so is the largest left out.
        shift = None if known else int(released(1, 0)[1].scores[0][-1]) - 1
        limit = len(many.scores[0]) - 1
        return Node(counts.law, counts.scale, choice.size or 0, float(4 / choice.scale), shift, limit)
    shift = None if known else least_whole(lambda noise: released(1, noise)[0] > 0, HIGH)
    return Node(counts.law, counts.scale, 0, math.inf, shift, 0)


def _every_tree(scheme: OneShots, change: Callable[[Meta], None]) -> None:
    """Change the tree of the scheme: without a horizon, that of every epoch as it is made."""
    if isinstance(scheme, Meta):
        change(scheme)
        return
    make = scheme.make

    def changed(ticks: int) -> Meta:
        tree = make(ticks)
        change(tree)
        return tree

    scheme.make, scheme.inner = changed, changed(1)


def _copied(scheme: Any) -> Any:
    """The same scheme before its first tick, with a state of its own."""
    made = copy.copy(scheme)
    if isinstance(made, Restarted):
        made.inner = made.make(1)
    return made


def _watch(scheme: OneShots, seen: Callable[[Integers, Any], None], released: Any = None) -> None:
    """Have every node's counts and what it publishes looked at; `released` is published in its place."""

    def watched(tree: Meta) -> None:
        release = tree.release

        def record(counts: Integers, rank: Any, source: RandomSource) -> Any:
            published = release(counts, rank, source) if released is None else released
            seen(counts, published)
            return published

        tree.release = record

    _every_tree(scheme, watched)


def nodes_of_an_event(scheme: OneShots, ticks: int) -> dict[int, int]:
    """The most nodes that are released with one event in them, by its epoch (0: of all); at one of some ticks."""
    epochs = isinstance(scheme, Restarted)
    some = np.arange(1, ticks + 1) if epochs else np.geomspace(1, ticks, min(ticks, 64)).round().astype(int)
    when = np.unique(some)
    held, nothing, made = np.zeros(len(when), np.int64), np.zeros(0, np.int64), _copied(scheme)
    _watch(made, lambda counts, _: np.add(held, counts != 0, out=held), (nothing, nothing))
    for tick in range(1, ticks + 1):
        made.step(np.zeros(len(when), np.int64), (when == tick).astype(np.int64), tick, _rank(1), system_source())
    if not epochs:
        return {0: int(held.max())}
    return {e: int(held[2**e - 1 : 2 ** (e + 1) - 1].max()) for e in range(ticks.bit_length())}


def _trees(scheme: OneShots, horizon: int | None) -> list[tuple[str, Meta, int]]:
    """(name, tree, nodes that hold one event): of the scheme, or of each of some epochs."""
    ticks = min(horizon or 2**TRIED - 1, 4096)
    held = nodes_of_an_event(scheme, ticks)
    if isinstance(scheme, Meta):
        return [("", scheme, held[0])]
    # An epoch that is too long to run has what its levels say.
    later = {epoch: scheme.make(2**epoch).levels for epoch in (12, EPOCHS - 1)}
    return [(f", epoch of {2**e} ticks", scheme.make(2**e), L) for e, L in {**held, **later}.items()]


def _anew(histogram: Histogram, items: int, source: RandomSource | None = None) -> Histogram:
    """Over items 0, 1, ... where the domain is known."""
    return histogram.anew(source, **({"universe": range(items)} if histogram.domain_is_known else {}))


def _begun(histogram: Histogram, tick: int) -> Histogram:
    """Before this tick, with nothing in those before it."""
    made = histogram.anew()
    for _ in range(tick - 1):
        made.step([])
    return made


def _column(items: int, times: int) -> pa.Array:
    """Each of the items 0, 1, ... this many times, an event each."""
    return pa.array(np.repeat(np.arange(items), times))


class HistogramOverTimeAudit(OverTimeAudit):
    def label(self, histogram: Histogram) -> str:
        domain = "known" if histogram.domain_is_known else "unknown"
        items = "D=any" if histogram.most_items is None else f"D={histogram.most_items}"
        people = items.replace("D", "people, m") if isinstance(histogram.unit, User) else items
        weights = "" if histogram.max_weight == 1 else f", weights to {histogram.max_weight}"
        return f"Histogram, {domain}, {people}, {histogram.mechanism}{weights}{over_time(histogram)}"

    def structure(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """One event raises at most D counts by one; it is in one node a level, or moves the noises by a known shift."""
        most, scheme = histogram.most_items, histogram.scheme
        wrong, pairs = _events_move(None if most is None else min(most, 3), histogram.domain_is_known)
        yield never("one event raises at most D counts, by one", wrong, pairs)
        if isinstance(scheme, OneShots):
            for name, tree, held in _trees(scheme, histogram.horizon):
                yield checked(f"released nodes with one event in them{name}", "sensitivity", tree.levels, held, 64)
        else:
            counters: Any = scheme
            ways = noises_of_an_event(counters.factor, counters.sigma, effort, histogram.changes)
            yield from shifts_of_an_event(ways, effort)

    def exact(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """What an event costs in all ticks together, and the code against the law."""
        scheme = histogram.scheme
        if isinstance(scheme, Sparse):
            yield from self._exact_sparse(histogram, effort)
        elif isinstance(scheme, OneShots):
            for name, tree, held in _trees(scheme, histogram.horizon):
                yield from self._exact_tree(histogram, tree, held, name)
            yield self._tree_conforms(histogram)
        else:
            yield from self._exact_counters(histogram, scheme, effort)

    def _exact_counters(self, histogram: Histogram, scheme: Any, effort: Effort) -> Iterator[Finding]:
        guarantee, items, horizon = histogram.guarantee, histogram.most_items or 1, histogram.horizon or 1
        hidden, epochs, heavy = isinstance(scheme, Hidden), isinstance(scheme.factor, Doubling), histogram.max_weight
        noise, moved, shown = CorrelatedNoise(scheme.factor, scheme.sigma), items * heavy**2, 0.0
        norm, rho, pairs = cost_of_an_event(scheme.factor, scheme.sigma, moved, effort, histogram.changes)
        claimed = claimed_rho(histogram, 0.5 if hidden else 1.0) * SLACK
        yield checked(f"the counters of {items} items in all ticks", "rho", claimed, rho, pairs)
        half, hiding = guarantee.delta / 2.0, "delta of hidden items"
        if hidden and epochs:
            lower = lambda tick: scheme.cut(tick) - heavy + 1  # noqa: E731
            every = shown_in_any_epoch(scheme.factor, scheme.sigma, lower, 8 + effort.length)
            shown = items * math.fsum(every)
            shares = math.fsum(2**e * scheme.factor.tick_share(2**e) for e in range(EPOCHS))
            yield checked("what all epochs together may spend", "share of delta", 1.0, shares, EPOCHS)
            what = f"{_ITEM_PASSES}, in all epochs there may be"
            yield checked(what, hiding, half, shown, items, f"{len(every)} epochs")
        elif hidden:
            # The cuts of all ticks, or those of the first ticks and what they must be multiplied with.
            cuts = [scheme.cut(tick) for tick in range(1, min(horizon, 4096) + 1)]
            shown = items * (horizon / len(cuts)) * shown_by_one_event(noise, [cut - heavy + 1 for cut in cuts])
            yield checked(_ITEM_PASSES, hiding, half, shown, items)
            if isinstance(scheme.factor, Tree) and horizon <= 3 and scheme.sigma <= 2:
                reach = math.ceil(6 * scheme.sigma)
                ever = items * item_shown(scheme.factor, float(scheme.sigma), cuts, heavy, reach)
                yield checked("the same, every noise", hiding, half, ever, items)
        if (epsilon := guarantee.epsilon) is not None:
            delta = zcdp_delta(rho, epsilon) if epochs else event_delta(noise, norm, moved, epsilon)
            yield checked("one event in all ticks", "delta", guarantee.delta, delta + shown, pairs)
        yield self._counters_conform(histogram, hidden)

    def _counters_conform(self, histogram: Histogram, hidden: bool) -> Finding:
        """With written noise: what is shown is the count with that noise, and for new items only from the cut on.

        Without a horizon over the first epochs: counts have the noises of the epoch and of totals.
        """
        written, heavy = WrittenNoise(), 5 * _lattice(histogram.scheme)
        made = _anew(histogram, 5, written.source)
        scheme: Any = made.scheme
        epochs = isinstance(scheme.factor, Doubling)
        wrong, counts, before = 0, np.zeros(5, np.int64), np.zeros(5, bool)
        for tick in range(1, (9 if epochs else first_ticks(histogram, 3)) + 1):
            z = -heavy * 2**tick  # so that all noise before is less, and the counts are around the cut again
            alone = CorrelatedNoise(scheme.factor, scheme.sigma), tick
            parts = doubled(scheme.factor, scheme.sigma, tick) if epochs else [alone]
            noise, cut = written.noise(z, parts), scheme.cut(tick) if hidden else 20
            # Five items whose noisy counts are brought around the cut, in steps of one.
            wanted = cut - noise + np.arange(5) - 2
            batch, counts = np.repeat(np.arange(5), np.maximum(wanted - counts, 0)), np.maximum(counts, wanted)
            release = made.step(batch)
            visible = (counts + noise >= cut) | (not hidden) | (before & made.keep_discovered)
            before |= visible
            wrong += shown_by(release) != {i: int(counts[i] + noise) for i in np.flatnonzero(visible)}
            wrong += hidden and release.threshold != cut
        asked = [(draw.law, draw.scale) for draw in written.source.draws]
        law = [("gaussian", sigma) for sigma in written.sigmas]
        wrong += asked != law if epochs else {*asked} != {*law}  # trees draw several times for items that come late
        return never(_CONFORMS + (", in every epoch" if epochs else ""), int(wrong))

    def _exact_tree(self, histogram: Histogram, scheme: Meta, L: int, name: str) -> Iterator[Finding]:
        guarantee, known, most = histogram.guarantee, histogram.domain_is_known, histogram.most_items
        node = node_of(scheme, known)
        noise = NoiseLaw(node.law, node.scale, 1e-30)
        changed = node.choices if most is None else most  # published counts of a node that one event raises
        hidden = 0.0
        if node.shift is not None:
            stopped = stop_is_beaten(node.limit, node.shift, node.tau) if most is None else 0.0
            hidden = L * stopped if most is None else L * most * difference_tail(noise, node.shift)
            if node.law == "gaussian":
                half = guarantee.delta / 2.0 * SLACK
                yield checked(f"{_ITEM_PASSES}{name}", "delta of hidden items", half, hidden, L)
        composed, epsilon = f"{L} nodes composed{name}", guarantee.epsilon
        if node.law == "laplace" and epsilon is not None:
            total = repeated_delta(epsilon, float(changed / node.scale), hidden / L, L)
            yield checked(composed, "delta", guarantee.delta, total, L)
        else:
            rho = L * changed / (2.0 * float(node.scale) ** 2)
            if node.choices:
                rho += L * node.choices * choice_rho(node.tau)
            claimed = claimed_rho(histogram, 1.0 if known else 0.5) * SLACK
            yield checked(f"counts and choices of {L} nodes{name}", "rho", claimed, rho, L)
            if epsilon is not None:
                counts = gaussian_split_delta(noise, 0, L * changed, 10**9, epsilon)
                delta = zcdp_delta(rho, epsilon) if node.choices else counts
                yield checked(composed, "delta", guarantee.delta, delta + hidden, L)
        if not known and float(node.scale) <= 2.0 and L <= 3 and node.limit <= 3:
            yield self._enumerated(histogram, scheme, node, L)

    def _enumerated(self, histogram: Histogram, scheme: Meta, node: Node, L: int) -> Finding:
        """Every branch of a node's own code on a few small histograms; L nodes with the same event in each."""
        most, high = histogram.most_items or 2, (node.shift or 0) + 1

        def released(counts: tuple[int, ...], source: RandomSource) -> Any:
            where, noisy = scheme.release(np.array(counts, np.int64), _rank(len(counts)), source)
            return tuple(sorted(zip(where.tolist(), noisy.tolist(), strict=True)))

        def law(counts: tuple[int, ...]) -> OutputLaw:
            return law_of(partial(released, counts), 1e-6)

        events = chain.from_iterable(combinations(range(2), size) for size in range(1, most + 1))
        tiny = list(product(((0, 0), (1, 0), (high, 0), (high, 1)), events))
        pairs = [(base, tuple(c + (i in event) for i, c in enumerate(base))) for base, event in tiny]
        epsilon, delta = histogram.guarantee.epsilon or 0.0, histogram.guarantee.delta
        both_ways = [*pairs, *((more, base) for base, more in pairs)]
        worst, tried = worst_pair(both_ways, law, lambda one, two: _composed(one, two, L, epsilon))
        return checked(f"every branch of the code, {L} nodes", "delta", delta, worst, tried, "least delta")

    def _tree_conforms(self, histogram: Histogram) -> Finding:
        """A tick shows the sum of the nodes of its digits, each as its one-shot mechanism published it.

        Without a horizon the nodes of earlier epochs stay.
        """
        source, right = ScriptedSource(0, HIGH), histogram.scheme
        assert isinstance(right, OneShots)
        nodes: list[Any] = []
        made = _anew(histogram, 3, source)
        scheme: Any = made.scheme
        _watch(scheme, lambda _, published: nodes.append(published))
        wrong, last = 0, first_ticks(made, 2 * (made.base or 2) + 5)
        nodes_of = {first: node_of(tree, histogram.domain_is_known) for first, tree in _first_trees(right, last)}
        kept: list[tuple[int, Any]] = []  # the last tick of a node in use, and what it published
        for tick in range(1, last + 1):
            source.draws.clear()
            shown = made.step([[0], [tick % 3]])
            first, span = (1, made.horizon) if made.horizon else (epoch_of(tick)[1],) * 2
            tree: Meta = scheme.inner if isinstance(scheme, Restarted) else scheme
            inside, base, size = tick - first + 1, tree.base, 1
            while inside % (size * base) == 0 and size * base <= span:
                size *= base
            kept = [(last, part) for last, part in kept if last <= tick - size] + [(tick, nodes[-1])]
            expected: dict[Any, int] = {}
            items = list(made.not_private_counts())
            for _, (where, noisy) in kept:
                for place, count in zip(where.tolist(), noisy.tolist(), strict=True):
                    expected[items[place]] = expected.get(items[place], 0) + count
            best = sorted(expected.items(), key=lambda pair: (-pair[1], pair[0]))[: histogram.k]
            wrong += shown_by(shown) != dict(best)
            draws = list(source.draws)
            node = nodes_of[first]
            wrong += any(draw.law not in ("choice", node.law) for draw in draws)
            wrong += any(draw.law == node.law and draw.scale != node.scale for draw in draws)
        return never(_CONFORMS, wrong)

    def _exact_sparse(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """Theorem 4 of [CO] part by part: choices, counters, and runs of AboveThreshold by their exact loss."""
        s, k, scheme = histogram.switches, histogram.k or 1, histogram.scheme
        assert isinstance(scheme, Sparse)
        source, noise = self._switching(histogram), CorrelatedNoise(scheme.factor, scheme.sigma)
        choices = [draw for draw in source.draws if draw.law == "choice"]
        laplace = [draw for draw in source.draws if draw.law == "laplace"]
        _, counters, pairs = moved_by_an_event(noise, (s + 1) * k, effort)
        parts = {"choices": (s + 1) * k * choice_rho(float(4 / choices[0].scale)), "counters": counters}
        if s:
            levels, queries = ({d.scale for d in laplace if (d.size == 1) is one} for one in (True, False))
            # Losses within a range r are r^2/8-zCDP.
            losses = above_threshold_losses(*(NoiseLaw("laplace", min(scales), 1e-12) for scales in (levels, queries)))
            parts["AboveThreshold"] = s * sum(losses) ** 2 / 8.0
            # A part of its own: among many choices and counters it would not be seen. It is reached, except for what
            # the tables leave out.
            share = claimed_rho(histogram) * (1.0 - 2 * k / (2 * k + 0.25)) * (1.0 + 1e-5)
            yield checked("runs of AboveThreshold", "rho", share, parts["AboveThreshold"], 0)
        detail = ", ".join(f"{name} {value:.4g}" for name, value in parts.items())
        what, rho, guarantee = "choices, counters, AboveThreshold", sum(parts.values()), histogram.guarantee
        yield checked(what, "rho", claimed_rho(histogram) * SLACK, rho, pairs, detail)
        if guarantee.epsilon is not None:
            yield checked(what, "delta", guarantee.delta, zcdp_delta(rho, guarantee.epsilon), pairs)
        # Every choice draws one level noise, and there are no more choices than are paid for.
        ticks = first_ticks(histogram, s + 4)
        wrong = len(choices) != min(s + 1, ticks) or sum(draw.size == 1 for draw in laplace) != len(choices)
        wrong = wrong or any(draw.size != k for draw in choices)
        yield never("choices are as many as paid for", int(wrong), 0, f"{ticks} ticks")

    def _switching(self, histogram: Histogram) -> ScriptedSource:
        """What sparseGumb draws when at every tick another item is far ahead."""
        scheme, source, k = histogram.make_scheme(), ScriptedSource(), histogram.k or 1
        ticks = first_ticks(histogram, histogram.switches + 4)
        total = np.zeros(k + ticks + 2, np.int64)
        for tick in range(1, ticks + 1):
            added = np.zeros_like(total)
            # Of items that never occurred the first fill the k places; this one is behind them.
            added[k + tick] = (histogram.margin + 10**6) * 2 ** min(tick, 20) * tick
            total = total + added
            scheme.step(total, added, tick, _rank(len(total)), source)
        return source

    def statistical(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled code with and without an event at the first tick."""
        epsilon, delta = claim(histogram)
        scheme, most, k = histogram.scheme, histogram.most_items, histogram.k
        # No more items than are looked at: of equal ones beyond, none would be shown.
        limit, wide = histogram.limit or 40, histogram.error(1) >= 1.0
        if isinstance(scheme, OneShots):
            limit = node_of(_first_trees(scheme, 1)[0][1], histogram.domain_is_known).limit or limit

        def public(events: list[list[int]]) -> Any:
            other = _anew(histogram, 40, ScriptedSource(0, -HIGH * _lattice(scheme)))
            release = other.step(events)
            shown = (len(release), release.guarantee) if histogram.domain_is_known else release.to_payload()
            return shown, repr(other), other.error(1)

        streams = (stream := _column(min(40, limit), 10**4)), stream, [[0, 1], [2]] * 50
        yield self.plumbing(partial(_anew, histogram, 40), streams, map(public, ([], [[1]])), wide)
        if k is None and (isinstance(scheme, Factored) or histogram.limit is None):
            what, (runs, ticks, run) = f"{most} counts higher", self._side_by_side(histogram, effort)
        else:
            what, (runs, ticks, run) = f"{k or 1} of {(k or 1) + 1} items higher", self._one_by_one(histogram, effort)
        yield told_apart(what, histogram, run, runs, ticks)
        if isinstance(scheme, Hidden) and most is not None:
            runs, ticks = side_by_side(effort) // 10, first_ticks(histogram, _TICKS)
            shown = published_counts(histogram.anew(), _column(runs * most, 1), ticks, runs * most)
            groups = int(shown.any(axis=0).reshape(runs, most).any(axis=1).sum())
            # Nothing at all is shown of the stream without them.
            bound = epsilon_lower_bound((groups, runs), (0, runs), delta, FALSE_ALARM)
            yield checked("items of one event appear", "epsilon", epsilon, bound, 1, f"{runs} runs")
            yield from self._late_items(histogram, scheme, effort)
            if isinstance(scheme.factor, Doubling):
                yield from self._at_the_cut(histogram, scheme, effort)

    def _late_items(self, histogram: Histogram, scheme: Hidden, effort: Effort) -> Iterator[Finding]:
        """Items that come late have noise as if it ran from the start, or the noise tells since when they are counted.

        Without a horizon also on both sides of the end of an epoch.
        """
        ticks = range(2, first_ticks(histogram, _TICKS) + 1)
        if not ticks:
            return
        # Where most of the noise is of ticks before; and past the first ticks, where the noise need not be run through.
        some = {max(ticks, key=scheme.error), first_ticks(histogram, _LATE)}
        if isinstance(scheme.factor, Doubling):
            some |= {7, 8}  # the last of an epoch and the first of the next
        for tick in sorted(some):
            high = scheme.cut(tick) + math.ceil(20 * scheme.error(tick))
            items = max(500, min(side_by_side(effort) // 4, 10**6 // high))
            made, detail = _begun(histogram, tick), f"{items} items of tick {tick}"
            noise = made.step(_column(items, high)).counts - high
            yield variance_as_stated("items that come late have all noise", noise, scheme.error(tick), detail)
            if tick in (1, 7) and isinstance(scheme.factor, Doubling):
                noise = made.step([]).counts - high
                yield variance_as_stated("and in the next epoch", noise, scheme.error(tick + 1), detail)

    def _at_the_cut(self, histogram: Histogram, scheme: Hidden, effort: Effort) -> Iterator[Finding]:
        """Of items whose count is the cut as many are shown as have no negative noise, on both sides of an epoch's end.

        Noise is symmetric. A share of n items is off by more than the limit with probability 1e-9 (Hoeffding).
        """
        for tick in (1, 3, 4, 7, 8):
            cut, error = scheme.cut(tick), scheme.error(tick)
            items = max(500, min(side_by_side(effort) // 4, 10**6 // cut))
            share = len(_begun(histogram, tick).step(_column(items, cut))) / items
            law = 0.5 + 0.5 / (error * math.sqrt(2.0 * math.pi))
            limit = math.sqrt(math.log(2.0 / FALSE_ALARM) / (2 * items)) + 0.01 / max(error, 1.0)
            what, detail = "items at the cut are shown as the law says", f"{items} items at tick {tick}"
            yield checked(what, "difference of shares", limit, abs(share - law), 1, detail)

    def _side_by_side(self, histogram: Histogram, effort: Effort) -> Runs:
        """Every D items are a run of their own: their noises are independent, and far above any cut all are shown."""
        scheme, most = histogram.scheme, histogram.most_items or 1
        ticks, high = first_ticks(histogram, _TICKS), 0
        if not histogram.domain_is_known:
            cut = 0
            if isinstance(scheme, Hidden):
                cut = max(scheme.cut(tick) for tick in range(1, ticks + 1))
            elif isinstance(scheme, OneShots):
                cut = max((node_of(tree, False).shift or 0) + 1 for _, tree in _first_trees(scheme, ticks))
            high = cut + math.ceil(20 * max(scheme.error(t) for t in range(1, ticks + 1)))
        runs = max(500, min(side_by_side(effort) // 4, 10**6 // (most * (high + 1))))

        def run(event: int) -> Any:
            first = _column(runs * most, high + event)
            shown = published_counts(_anew(histogram, runs * most), first, ticks, runs * most)
            return shown.reshape(ticks, runs, most).sum(axis=2).T

        return runs, ticks, run

    def _one_by_one(self, histogram: Histogram, effort: Effort) -> Runs:
        """The scheme alone, many times: k + 1 items, of which the event has the first k."""
        pristine, source, k = histogram.make_scheme(), system_source(), histogram.k or 1
        runs, ticks, items = effort.runs, first_ticks(histogram, 2), k + 1
        trees = _first_trees(pristine, ticks) if isinstance(pristine, OneShots) else []
        high = 2 * max([node_of(tree, histogram.domain_is_known).shift or 0 for _, tree in trees], default=0) + 20

        def run(event: int) -> Any:
            total, rows = np.full(items, high), np.zeros((runs, ticks, items))
            total[:k] += event
            for seen in rows:
                scheme = _copied(pristine)
                for tick in range(1, ticks + 1):
                    added = total if tick == 1 else np.zeros_like(total)
                    where, noisy = scheme.step(total, added, tick, _rank(items), source)
                    # Being listed tells two histograms apart as well as the count does: a step of one sigma.
                    seen[tick - 1, where] = noisy - high + 2.0 * scheme.error(1)
            return rows.reshape(runs, -1)

        return runs, ticks, run

    def coupled(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """Random streams of sets of items, and the same with one event more: how far apart is what gets the noise?"""
        rng, most, scheme = np.random.default_rng(4), histogram.most_items, histogram.scheme
        ticks, what, levels = first_ticks(histogram, _TICKS), self.by_a_unit, 1
        if isinstance(scheme, OneShots):
            what, levels = "l2-change of the nodes", max(tree.levels for _, tree in _first_trees(scheme, ticks))
        moved = (_moved(histogram, *self.random_neighbours(rng, ticks)) for _ in range(effort.released_pairs // 5))
        yield largest(what, math.sqrt((most or _ITEMS) * levels * histogram.changes) * SLACK, moved)

    by_a_unit = "l2-change of a tick's counts"

    def random_neighbours(self, rng: np.random.Generator, ticks: int) -> tuple[Any, Any]:
        """A stream of sets of items, and the same with an event more."""
        sets = ((rng.integers(0, 5) for _ in range(30)) for _ in range(ticks))
        stream = [[rng.choice(_ITEMS, size, replace=False).tolist() for size in sizes] for sizes in sets]
        more = [list(events) for events in stream]
        when = int(rng.integers(0, ticks))
        event = rng.choice(_ITEMS, rng.integers(1, 6), replace=False).tolist()
        more[when].insert(int(rng.integers(0, 31)), event)
        return stream, more

    def twins(self, histogram: Histogram) -> Iterator[Twin]:
        scheme, most, heavy = histogram.scheme, histogram.most_items, histogram.max_weight
        changed = partial(changed_scheme, histogram)
        yield changed("half the noise", _weaker(2.0))
        yield drawn_again(histogram)
        if most is not None and most > 1:
            yield changed("noise for one item of an event", _weaker(math.sqrt(most)))
        if heavy > 1:
            yield changed("noise for a weight of one", _weaker(heavy))
            if isinstance(scheme, Hidden):
                lower = _with("cut", lambda cut: lambda tick: cut(tick) - heavy + 1)
                yield changed("cut for a weight of one", lower)
        if isinstance(scheme, Restarted) or (isinstance(scheme, Meta) and scheme.levels > 1):
            whole = lambda tree: _weaker_tree(tree, math.sqrt(tree.levels))  # noqa: E731
            yield changed("the budget at every level", lambda made: _every_tree(made, whole))
        if isinstance(scheme, OneShots) and not histogram.domain_is_known:
            yield changed("cut one lower", _weaker(cut=1))
            first_tree = scheme if isinstance(scheme, Meta) else scheme.make(1)
            node = node_of(first_tree, False)
            if node.choices:
                # [CO] Theorem 3: delta for 2 k items, where all that are looked at may be of one event.
                p = histogram.guarantee.delta / 2.0 / first_tree.levels
                less = (node.shift or 0) - one_shot.gumbel_shift(Fraction(node.tau), p, 2 * node.choices)
                if less > 0:
                    yield changed("stop for 2k items (CO Thm 3)", _weaker(cut=less))
        if isinstance(scheme, Hidden):
            # One lower, where the cut has nothing to spare; a tree's is for its worst tick.
            if scheme.factor.lattice > 1:
                yield changed("cut one lower", _with("cut", lambda cut: lambda tick: cut(tick) - 1))
            else:
                yield changed("half the cut", _with("cut", lambda cut: lambda tick: 1 + cut(tick) // 2))
            if _lattice(scheme) > 1 and scheme.factor.horizon > _LATE:
                late = _with("factor.join", lambda join: lambda n, t, sigma, s: join(n, t, sigma / 1000, s))
                yield changed("late items without the noise before", late, "statistical")
        elif isinstance(scheme, Sparse):
            quiet = lambda step: lambda *given: step(*given[:-1], WeakenedSource(given[-1], 2, laws=("laplace",)))  # noqa: E731
            yield changed("half the noise of AboveThreshold", _with("step", quiet))
            yield changed("choices without a limit", _with("left", lambda _: np.array([2**40], np.int64)))
        elif isinstance(scheme, Factored):
            yield changed("noise anew at every tick", _fresh)
        if isinstance(scheme, Factored) and isinstance(scheme.factor, Doubling):
            yield changed("all of rho for the totals of epochs, too", lambda made: unsplit(made.factor))
            if isinstance(scheme, Hidden):
                every = _with("factor.tick_share", lambda _: lambda tick: 1.0 / epoch_of(tick)[1])
                yield changed("delta not shared by the epochs", every)


def changed_scheme(histogram: Histogram, name: str, change: Callable[[Any], None], kind: str = "exact") -> Twin:
    """A twin whose schemes are changed as they are made."""

    def make_scheme(right: Any, _: Any) -> Scheme:
        scheme: Scheme = right()
        change(scheme)
        return scheme

    return broken(histogram, name, kind, make_scheme=make_scheme)


def _weaker(by: float = 1.0, cut: int = 0) -> Callable[[Any], None]:
    def change(scheme: Any) -> None:
        if isinstance(scheme, OneShots):
            _every_tree(scheme, lambda tree: _weaker_tree(tree, by, cut))
        else:
            scheme.sigma = scheme.sigma / Fraction(by)

    return change


def _weaker_tree(tree: Meta, by: float, cut: int = 0) -> None:
    release = tree.release
    tree.release = lambda counts, rank, source: release(counts, rank, WeakenedSource(source, by, cut))


def _with(member: str, make: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A change: a member of a scheme (`factor.join`: of its factor) becomes what `make` makes of it."""

    def change(scheme: Any) -> None:
        *path, name = member.split(".")
        owner = reduce(getattr, path, scheme)
        setattr(owner, name, make(getattr(owner, name)))

    return change


def _fresh(scheme: Any) -> None:
    scheme.sigma = scheme.sigma / Fraction(scheme.factor.sensitivity)
    scheme.factor = FreshNoise(min(scheme.factor.horizon, 127))
    scheme.state = scheme.factor.start(scheme.state[next(iter(scheme.state))].shape[-1])


def _lattice(scheme: Any) -> int:
    """The finest steps of a count in which noise is drawn."""
    factor = getattr(scheme, "factor", None)
    if isinstance(factor, Doubling):
        return max(factor.totals.lattice, *(factor.of_epoch(epoch).lattice for epoch in range(4)))
    return getattr(factor, "lattice", 1)


def _first_trees(scheme: OneShots, ticks: int) -> list[tuple[int, Meta]]:
    """(first tick, tree) of the epochs of these ticks, or of all."""
    if isinstance(scheme, Meta):
        return [(1, scheme)]
    return [(2**epoch, scheme.make(2**epoch)) for epoch in range(ticks.bit_length())]


def _noised(histogram: Histogram, stream: Any) -> list[dict[Any, int]]:
    """The counts that get noise, at every tick: all of them, or those of the node that is released.

    A tick has events, or rows of people: tuples.
    """
    made = _anew(histogram, _ITEMS, seeded_source(1))
    parts: list[dict[Any, int]] = []
    if tree := isinstance(made.scheme, OneShots):
        counted = made.not_private_counts
        _watch(made.scheme, lambda counts, _: parts.append(dict(zip(counted(), counts.tolist(), strict=True))))
    for events in stream:
        if events and isinstance(events[0], tuple):
            made.step([item for _, item in events], users=[person for person, _ in events])
        else:
            made.step(events)
        if not tree:
            parts.append(made.not_private_counts())
    return parts


def _moved(histogram: Histogram, stream: Any, more: Any) -> float:
    """How far what gets noise for the second stream is apart, in l2; infinite where a count falls or jumps.

    Of counts every change by the unit is counted; in a window a count may fall. A node has counts of its own.
    """
    alone = isinstance(histogram.scheme, OneShots)
    before: dict[Any, int] = {}
    changes = 0
    for plain, raised in zip(_noised(histogram, stream), _noised(histogram, more), strict=True):
        now = {item: raised.get(item, 0) - plain.get(item, 0) for item in {*plain, *raised}}
        least = before if histogram.window is None else {}
        if not all(least.get(item, 0) <= now[item] <= 1 for item in now):
            return math.inf
        changes += sum(now[item] != before.get(item, 0) for item in now)
        before = {} if alone else now
    return math.sqrt(changes)


def _composed(first: OutputLaw, second: OutputLaw, times: int, epsilon: float) -> float:
    """A lower bound of the divergence at epsilon of `times` independent outputs of each law."""
    outputs, factor = {**first.mass, **second.mass}, math.exp(epsilon)
    p, q = (np.array([law.mass.get(output, 0.0) for output in outputs]) for law in (first, second))
    return max(0.0, independent([merge_ratios(p, q)] * times, factor) - factor * times * second.missing)


@lru_cache(maxsize=16)
def _events_move(most: int | None, known: bool) -> tuple[int, int]:
    """(wrong, pairs): whether one event more raises at most `most` counts, by one, for all short events."""
    events = [list(event) for length in range(4) for event in product(range(3), repeat=length)]
    wrong = tried = 0

    def counted(given: list[list[int]]) -> dict[int, int]:
        items, counts = event_counts(given, most, {0, 1} if known else None)
        return dict(zip(items.to_pylist(), counts.tolist(), strict=True))

    for base in ([], [[0]], [[2, 1, 0]], [[0, 0, 1], [2]]):
        plain = counted(base)
        for event, where in product(events, range(len(base) + 1)):
            more = counted([*base[:where], event, *base[where:]])
            moved = [more.get(x, 0) - plain.get(x, 0) for x in range(3)]
            wrong += not set(moved) <= {0, 1} or sum(moved) > (3 if most is None else most)
            wrong += known and moved[2] != 0
            tried += 1
    return wrong, tried


# ---- people ----------------------------------------------------------------------------------------------------------

Rows = Sequence[tuple[int, int]]  # people and items, of one tick


class _NewPeople:
    """Where nobody says whose the rows are, every event is a new person's; the rest is the class that comes next."""

    tick: int

    def step(self, events: Any = (), tick: int | None = None, *, users: Any = None, **more: Any) -> Any:
        if users is None:
            owners = np.arange(len(events))
            if not isinstance(events, np.ndarray | pa.Array):
                sets = [list(event) if isinstance(event, Iterable) else [event] for event in events]
                owners = np.repeat(owners, [len(event) for event in sets]).astype(np.int64)
                events = [item for event in sets for item in event]
            users = owners + (self.tick << 32)
        return super().step(events, tick, users=users, **more)  # type: ignore[misc]


class _PeopleOverTimeAudit(HistogramOverTimeAudit):
    def prepare(self, histogram: Any) -> Any:
        """Before its first tick, and able to take events."""
        kind: Any = type(histogram)
        if not issubclass(kind, _NewPeople):
            kind = type(f"Events{kind.__name__}", (_NewPeople, kind), {})
        return kind(histogram.horizon, histogram.budget, **histogram.parameters)

    def structure(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """All rows of a person raise at most m counts by one, each from one tick on; and the shift of a counter."""
        wrong, pairs = _people_move(type(histogram), min(histogram.most_items or 1, 3), histogram.domain_is_known)
        yield never("a person raises at most m counts, by one", wrong, pairs)
        yield from list(super().structure(histogram, effort))[1:]

    by_a_unit = "l2-change of all counts by a person"

    def random_neighbours(self, rng: np.random.Generator, ticks: int) -> tuple[Any, Any]:
        """Rows of people, and the same with all rows of one person more."""
        stream = [_rows(rng, 0, 9, 30) for _ in range(ticks)]
        return stream, [_mixed(rng, rows, _rows(rng, 9, 10, int(rng.integers(0, 6)))) for rows in stream]

    def twins(self, histogram: Histogram) -> Iterator[Twin]:
        most = histogram.most_items or 1

        def told(name: str, user: Callable[[Any, int, int], str]) -> Twin:
            def step(right: Any, made: Any, events: Any = (), tick: int | None = None, *, users: Any = None) -> Any:
                if users is not None:
                    users = [user(person, made.tick, row) for row, person in enumerate(users)]
                return right(events, tick, users=users)

            return broken(histogram, name, "coupled", step=step)

        yield from super().twins(histogram)
        yield told("a person counts at every row", lambda person, tick, row: f"{person} {tick} {row}")
        yield told("m items a tick", lambda person, tick, row: f"{person} {tick}")
        if isinstance(histogram.scheme, Hidden) and most > 1:
            half = histogram.guarantee.delta / 2.0

            def for_one(scheme: Any) -> None:
                factor = scheme.factor
                scheme.cut = lambda tick: 1 + factor.hiding_shift(tick, scheme.sigma, half * factor.tick_share(tick))

            yield changed_scheme(histogram, "delta not divided by m", for_one)
        scheme: Any = histogram.scheme
        if histogram.changes > 1 and not isinstance(scheme.factor, EachTick | Doubling):
            by = scheme.factor.sensitivity_to(histogram.changes) / scheme.factor.sensitivity
            yield changed_scheme(histogram, "noise for people who never leave", _weaker(by))
        yield from any_visits(histogram)


def _rows(rng: np.random.Generator, first: int, last: int, number: int) -> Rows:
    """This many rows of these people; some items are of many."""
    return [(int(rng.integers(first, last)), int(rng.integers(0, _ITEMS) ** 2 // _ITEMS)) for _ in range(number)]


def _mixed(rng: np.random.Generator, rows: Rows, more: Rows) -> Rows:
    """The rows with more of them somewhere in between, each in its order."""
    places = np.sort(rng.integers(0, len(rows) + 1, len(more)))
    out = list(rows)
    for place, added in reversed(list(zip(places.tolist(), more, strict=True))):
        out.insert(place, added)
    return out


@lru_cache(maxsize=16)
def _people_move(kind: type[Histogram], most: int, known: bool) -> tuple[int, int]:
    """(wrong, pairs) over tiny streams of two ticks: three rows of one person, and one of another among them."""
    histogram = kind(2, Budget(1.0, 0.1), range(_ITEMS) if known else None, mechanism="tree", unit=User(most))
    wrong = tried = 0
    for items, other, place in product(product(range(3), repeat=3), range(2), range(4)):
        rows = [(1, item) for item in items]
        rows.insert(place, (2, other))
        stream = rows[:2], rows[2:]
        alone = [[row for row in part if row[0] == 2] for part in stream]
        wrong += _moved(histogram, alone, stream) > math.sqrt(most) * SLACK
        tried += 1
    return wrong, tried


_KNOWN = tuple(range(6))
# So much that a node has noise of about 1, whose branches can all be gone through.
_PLENTY = Budget(4.0, 0.02)


_events, _people = HistogramOverTimeAudit(), _PeopleOverTimeAudit()

register(Counter, lambda: (
    Counter(16, Budget.zcdp(0.5)),
    Counter(7, Budget(1.0, 0.02), method="tree", base=2),
    Counter(1000, Budget(1.0, 1e-9), method="blt", size=8, max_items_per_event=2),
    Counter(12, Budget.zcdp(2.0), method="square-root"),
    Counter(None, Budget.zcdp(0.5)),
), CounterOverTimeAudit())  # fmt: skip
register(DistinctCount, lambda: (
    DistinctCount(16, Budget.zcdp(0.5)),
    DistinctCount(7, Budget(1.0, 0.02), method="tree", base=2),
    DistinctCount(40, Budget.zcdp(0.5), window=2, max_visits=1),
    DistinctCount(9, Budget(1.0, 0.02), window=1),
    DistinctCount(10, Budget.zcdp(2.0), window=2, method="tree", base=2),
), DistinctOverTimeAudit())  # fmt: skip
register(HeavyHitters, lambda: (
    HeavyHitters(3, Budget(2.0, 0.02), 64, base=2),
    HeavyHitters(64, Budget(1.0, 1e-6), 256),
    HeavyHitters(3, Budget(2.0, 0.02), 64, base=2, mechanism="offset"),
    HeavyHitters(365, Budget(1.0, 1e-6), 256, mechanism="offset"),
    HeavyHitters(9, Budget(2.0, 0.02), 32, window=3, base=2),
    HeavyHitters(3, Budget(2.0, 0.02), 3, mechanism="chan", base=2),
    HeavyHitters(None, Budget(2.0, 0.02), 64, base=3),
    HeavyHitters(None, Budget(1.0, 1e-6), 256),
    HeavyHitters(None, Budget(2.0, 0.02), 64, mechanism="offset", base=3),
), HittersOverTimeAudit())  # fmt: skip
register(Histogram, lambda: (
    Histogram(120, Budget(1.0, 0.02), None, 1),
    Histogram(3, _PLENTY, None, 1, mechanism="tree", base=2),
    Histogram(3, _PLENTY, None, 2, mechanism="meta", base=2),
    Histogram(3, _PLENTY, None, 1, mechanism="limit", base=2),
    Histogram(3, Budget(6.0, 1e-3), None, None, 2, mechanism="meta", base=2, limit=40),
    Histogram(8, Budget(1.0, 0.02), None, 2, max_weight=3),
    Histogram(16, Budget.zcdp(0.5), _KNOWN, 3),
    Histogram(7, Budget.zcdp(0.5), _KNOWN, 1, mechanism="tree", base=2),
    Histogram(7, Budget.zcdp(2.0), _KNOWN, 2, mechanism="meta", base=2),
    Histogram(3, Budget.zcdp(2.0), _KNOWN, None, 1, mechanism="meta", base=2),
    Histogram(20, Budget.zcdp(2.0), _KNOWN, None, 1, mechanism="sparse", switches=1),
    Histogram(8, Budget(1.0, 0.02), unit=User(3)),
    Histogram(3, _PLENTY, mechanism="tree", base=2, unit=User(1)),
    Histogram(16, Budget.zcdp(0.5), _KNOWN, unit=User(3)),
    Histogram(None, Budget(1.0, 0.02), None, 1),
    Histogram(None, _PLENTY, None, 2, mechanism="tree", base=2),
    Histogram(None, _PLENTY, None, 2, mechanism="meta", base=3),
    Histogram(None, Budget.zcdp(0.5), _KNOWN, 3),
    Histogram(None, Budget(1.0, 0.02), unit=User(3)),
    Histogram(30, Budget(1.0, 0.02), unit=User(3), window=3, max_visits=1),
    Histogram(9, Budget.zcdp(0.5), _KNOWN, unit=User(2), window=3),
), lambda histogram: _people if isinstance(histogram.unit, User) else _events)  # fmt: skip
