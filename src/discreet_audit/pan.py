"""Rows of the pan-private estimators: looks at the compiled table, and exact joint laws of looks and outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import discreet_audit.inner_product  # noqa: F401  registers its row
from discreet.noise import seeded_source
from discreet.pan import CroppedMean, Density, DistinctCount, HeavyFraction, Incidence, ModularIncidence
from discreet.pan.responses import Response, response_weights
from discreet.privacy import Budget
from discreet_audit.findings import Finding
from discreet_audit.pan_laws import models_of, worst_loss
from discreet_audit.registry import Effort, Twin, row
from discreet_audit.sabotage import twin
from discreet_audit.sources import ScriptedSource, WeakenedSource
from discreet_audit.statistical import measure_outputs

__all__ = ["PanAudit"]

_SLACK = 1 + 1e-9  # of doubles, for losses that are met exactly


@dataclass(frozen=True)
class PanAudit:
    """The checks of one estimator.

    Args:
        few: The estimator's own arguments over three elements, with counters small enough to enumerate.
        asked: What a release of such an estimator is asked, by a number: other questions for other numbers.
    """

    few: Callable[[Any], dict[str, Any]]
    asked: Callable[[Any, int], dict[str, Any]] = lambda made, number: {}

    def small(self, estimator: Any, **source: Any) -> Any:
        """The same estimator, or twin, with the same epsilons over a few elements."""
        return type(estimator)(**self.few(estimator), **estimator.options, **source)

    def structure(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """In the compiled table an element changes its own cells and no other."""
        wrong, pairs = 0, 40
        for seed in range(pairs):
            made = self.small(estimator, source=seeded_source(seed))
            before = made.seen_by_intruder()
            made.update([seed % 3] * (1 + seed % 4))
            wrong += _differences(before, made.seen_by_intruder()) > 1
        yield Finding("structure", "cells changed by one element, other than its own", "violations", 0, wrong, pairs)

    def exact(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """The joint law of looks and outputs, for all neighbouring histories of a few occurrences."""
        made = self.small(estimator)
        state, output = made.settings.epsilon_state, made.settings.epsilon_output
        both = [("look", "output"), ("output", "look")]
        announced = "an announced intrusion, one look and one output"
        for name, claimed, frames, most in (
            ("one look", state, [("look",)], 3),
            ("one output", output, [("output",)], 3),
            ("one look and one output", state + output, both, max(2 + effort.length, 1)),
            (announced, 2 * state + output, [("announce", "look", "output")], 1),
        ):
            losses = [worst_loss(model, frames, most) for model in models_of(made, 1)]
            loss, (first, second) = max(losses, key=lambda pair: pair[0])
            detail = f"worst: {first} against {second}" if first else ""
            quantity = "epsilon with two looks" if name == announced else "epsilon"
            yield Finding("exact", name, quantity, float(claimed) * _SLACK, loss, len(frames), detail)

    def statistical(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """The state of fresh compiled tables, with and without an element."""
        few = len(self.small(estimator).seen_by_intruder()) <= 3
        runs = min(3 * effort.runs, 20_000) if few else effort.runs

        def looks(occurrences: int) -> list[list[float]]:
            rows = []
            for _ in range(runs):
                made = self.small(estimator)
                made.update([0] * occurrences)
                # Which cells are the element's, and what they tell, is learned from some of the runs.
                entries = made.seen_by_intruder()
                rows.append([float(v) for cells, bits in entries for v in (*bits, *(c == 0 for c in cells))])
            return rows

        bound = max(measure_outputs(looks(2), looks(0), 0.0), 0.0)
        claimed, detail = estimator.epsilon_state, f"{runs} runs of each"
        yield Finding("statistical", "an element that occurs", "epsilon", claimed, bound, 1, detail)

    def coupled(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """Equal randomness, and the element comes last: what it changes in the table, and in what is released of it."""
        most, spent, pairs = 0, 0.0, effort.released_pairs
        for seed in range(pairs):
            tables, outputs = [], []
            for extra in (0, 1 + seed % 4):  # up to once around the counters
                made = self.small(estimator, source=seeded_source(seed))
                made.update([1, 2, 1])
                if seed % 2:
                    made.announce_intrusion()
                made.update([0] * extra)
                tables.append(made.seen_by_intruder())
                outputs.append(_counts_over_scale(made, **self.asked(made, seed)))
            most = max(most, _differences(*tables))
            spent = max(spent, float(np.abs(outputs[0] - outputs[1]).sum()))
        yield Finding("coupled", "entries that one element moves", "sensitivity", 1, most, pairs)
        claimed = float(estimator.settings.epsilon_output) * _SLACK
        yield Finding("coupled", "counts it moves, over the scale of their noise", "epsilon", claimed, spent, pairs)


def _differences(first: list[Any], second: list[Any]) -> int:
    return sum(a != b for a, b in zip(first, second, strict=True))


def _counts_over_scale(estimator: Any, **asked: Any) -> Any:
    """Every count that the compiled table hands to a release, in units of the noise that the release asked for."""
    counts: list[int] = []
    silent, counted = ScriptedSource(), estimator.counted

    def watched(source: Any, size: int, read: Any, scale: Any = None) -> Any:
        taken = counted(silent, size, read, scale)
        counts.extend(np.atleast_1d(taken).tolist())
        return taken

    estimator.counted = watched
    estimator.release(**asked)
    scales = [float(draw.scale) for draw in silent.draws for _ in range(draw.size or 0)]
    return np.array(counts) / np.array(scales)


# ---- twins -----------------------------------------------------------------------------------------------------------


def _noise_over(factor: Callable[[Any], Fraction | int]) -> property:
    """Output noise that is this many times too small."""
    return property(lambda self: super(type(self), self).noise_scale / factor(self))


def _rescaled(estimator: Any) -> Fraction:
    p0, p1 = estimator.response.after(estimator.intrusions)
    return Fraction(1 / (p1 - p0))


def _quieter(self: Any, source: Any, size: int, read: Any, scale: Any = None) -> Any:
    """The right scale everywhere but where the noise is drawn."""
    return super(type(self), self).counted(WeakenedSource(source, 2), size, read, scale)


def _doubled_response(self: Any) -> Response:
    return Response.of("tight", 2 * self.settings.epsilon_state)


def _twins(estimator: Any) -> Sequence[Twin]:
    """Too little noise, drawn or declared; coins or shifts for twice epsilon; what the paper prints."""
    half = twin(estimator, "half the output noise", noise_scale=_noise_over(lambda made: 2))
    quieter = twin(estimator, "half the noise where it is drawn", "coupled", counted=_quieter)
    if estimator.parameters.get("method") == "primes":
        whole = {"prime_weights": lambda self, modulus, epsilon: response_weights(modulus, epsilon)}
        return half, quieter, twin(estimator, "counters that do not share epsilon (PAN Thm 5.1)", **whole)
    if hasattr(estimator, "shift_law"):
        doubled = {"shift_law": lambda self: self.shift_law_at(2 * self.settings.epsilon_state)}
        return half, quieter, twin(estimator, "a shift for twice epsilon", **doubled)
    printed = twin(estimator, "noise added after rescaling, as printed", noise_scale=_noise_over(_rescaled))
    coins = twin(estimator, "coins for twice epsilon", response=property(_doubled_response))
    return printed, half, quieter, coins


# ---- rows ------------------------------------------------------------------------------------------------------------


def _few_heavy(made: HeavyFraction) -> dict[str, Any]:
    k, method = min(made.k or 4, 4), made.parameters["method"]
    most = None if made.parameters["max_count"] is None else max(2, k)
    return {"universe": 3, "k": k, "rho": made.rho, "method": method, "max_count": most}


def _heavy_asked(made: HeavyFraction, number: int) -> dict[str, Any]:
    """Another k where it may be asked; another window of the counters where there is one table of them."""
    if made.parameters["method"] == "two_tables":
        return {}
    if made.parameters["max_count"] is None:
        return {"rho": (0.25, 1.0, 3.0, 8.0)[number % 4]}
    return {"k": 1 + number % made.parameters["k"]}


def _few_residues(made: ModularIncidence) -> dict[str, Any]:
    """The law of a smaller k stands for that of the same name."""
    return {
        "universe": 3,
        "k": min(made.k, 7),
        "shift": "response" if made.shift == "squares" and made.k < 7 else made.shift,
    }


def _few_counts(made: Incidence) -> dict[str, Any]:
    if made.parameters["method"] == "squares":
        return {"universe": 3, "t": min(made.t or 0, 6), "max_count": 6}
    # Two of the primes 2, 3, 5, 7, 11.
    return {"universe": 3, "t": min(made.t or 0, 2), "method": "primes", "max_count": 2, "primes": 2, "collision": 0.9}


class _IncidenceAudit(PanAudit):
    def small(self, estimator: Any, **source: Any) -> Any:
        """Primes are drawn: until they are few enough to enumerate."""
        while True:
            made = super().small(estimator, **source)
            if math.prod(made.moduli) <= 21:
                return made


_ONE, _THREE = Budget(1.0), Budget(3.0)

row(
    Density,
    lambda: (
        Density(1000, budget=_ONE),
        Density(3, budget=_THREE, releases=2),
        Density(9, budget=_ONE, response="paper"),
    ),
    PanAudit(lambda made: {"universe": 3}),
    _twins,
)
row(
    DistinctCount,
    lambda: (DistinctCount(budget=_ONE),),
    PanAudit(lambda made: {"buckets": 16, "levels": 8}),
    _twins,
)
row(
    CroppedMean,
    lambda: (CroppedMean(1000, 3, budget=_ONE), CroppedMean(1000, 100, budget=_THREE)),
    PanAudit(
        lambda made: {"universe": 3, "t": min(made.t, 4)},
        lambda made, number: {} if made.intrusions else {"t": 1 + number % made.t},
    ),
    _twins,
)
row(
    HeavyFraction,
    lambda: (
        HeavyFraction(1000, 4, budget=_ONE),
        HeavyFraction(1000, 4, budget=_ONE, method="two_tables"),
        HeavyFraction(1000, 2, budget=_THREE, method="ladder", max_count=2),
        HeavyFraction(1000, 4, budget=_ONE, max_count=100),
    ),
    PanAudit(_few_heavy, _heavy_asked),
    _twins,
)
row(
    ModularIncidence,
    lambda: (
        ModularIncidence(1000, 4, budget=_ONE),
        ModularIncidence(1000, 7, budget=_ONE, shift="squares"),
        ModularIncidence(1000, 3, budget=_THREE, shift="paper"),
    ),
    PanAudit(_few_residues),
    _twins,
)
row(
    Incidence,
    lambda: (Incidence(1000, 2, budget=_ONE), Incidence(1000, 2, budget=_ONE, method="primes", max_count=64)),
    _IncidenceAudit(_few_counts, lambda made, number: {"t": number % (1 + made.parameters["max_count"])}),
    _twins,
)
