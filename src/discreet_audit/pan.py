"""Rows for the pan-private estimators: looks at the compiled table, and exact joint laws of looks and outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

import discreet_audit.inner_product  # noqa: F401  registers its row
from discreet.noise import seeded_source
from discreet.pan import CroppedMean, Density, DistinctCount, HeavyFraction, Incidence, ModularIncidence
from discreet.pan.responses import Response, response_weights
from discreet.privacy import Budget
from discreet_audit.findings import Finding
from discreet_audit.pan_laws import History, models_of, worst_loss
from discreet_audit.registry import AuditCase, Effort, Twin, register
from discreet_audit.statistical import measure_outputs

__all__ = ["PanAudit"]

_SLACK = 1 + 1e-9  # of doubles, for losses that are met exactly


def _options(estimator: Any, **changes: Any) -> dict[str, Any]:
    s = estimator._settings
    given = {
        "budget": Budget(s.epsilon),
        "confidence": s.confidence,
        "releases": s.releases,
        "announced_intrusions": s.announced_intrusions,
        "response": s.response,
        "output_share": s.share,
    }
    return {**given, **changes}


@dataclass(frozen=True)
class PanAudit:
    """The checks of one estimator.

    Args:
        small: The same estimator with the same epsilons over a few elements, with counters small enough to enumerate.
        elements: How many elements it then has; for DistinctCount any.
    """

    small: Callable[..., Any]
    elements: int = 3

    def structure(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """In the compiled table an element changes its own cells and no other."""
        wrong, pairs = 0, 40
        for seed in range(pairs):
            made = self.small(estimator, source=seeded_source(seed))
            before = _entries(made)
            made.update([seed % self.elements] * (1 + seed % 4))
            wrong += sum(a != b for a, b in zip(before, _entries(made), strict=True)) > 1
        yield Finding("structure", "cells changed by one element, other than its own", "violations", 0, wrong, pairs)

    def exact(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """The joint law of looks and outputs, for all neighbouring histories of a few occurrences."""
        made = self.small(estimator)
        state, output = made._settings.epsilon_state, made._settings.epsilon_output
        claims: dict[str, tuple[Fraction, list[History], int]] = {
            "one look": (state, [("look",)], 3),
            "one output": (output, [("output",)], 3),
            "one look and one output": (state + output, [("look", "output"), ("output", "look")], 2 + effort.length),
            "an announced intrusion, one look and one output": (
                2 * state + output,
                [("announce", "look", "output")],
                1,
            ),
        }
        for name, (claimed, frames, most) in claims.items():
            losses = [worst_loss(model, frames, max(most, 1)) for model in models_of(made, 1)]
            loss, (first, second) = max(losses, key=lambda pair: pair[0])
            detail = f"worst: {first} against {second}" if first else ""
            quantity = "epsilon with two looks" if "announced" in name else "epsilon"
            yield Finding("exact", name, quantity, float(claimed) * _SLACK, loss, len(frames), detail)

    def statistical(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """The state of fresh compiled tables, with and without an element."""

        def looks(occurrences: int, runs: int) -> list[list[float]]:
            rows = []
            for _ in range(runs):
                made = self.small(estimator)
                made.update([0] * occurrences)
                # Which cells are the element's, and what they tell, is learned from some of the runs.
                rows.append([float(v) for cells, bits in _entries(made) for v in (*bits, *(c == 0 for c in cells))])
            return rows

        few = len(_entries(self.small(estimator))) <= self.elements
        runs = min(3 * effort.runs, 20_000) if few else effort.runs
        bound = max(measure_outputs(looks(2, runs), looks(0, runs), 0.0), 0.0)
        claimed, detail = float(estimator._settings.epsilon_state), f"{runs} runs of each"
        yield Finding("statistical", "an element that occurs", "epsilon", claimed, bound, 1, detail)

    def coupled(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """Equal randomness, and the element comes last: what it changes in the table, and in what is released of it."""
        most, spent, pairs = 0, 0.0, effort.released_pairs
        for seed in range(pairs):
            tables, outputs = [], []
            for extra in (0, 1 + seed % 3):
                made = self.small(estimator, source=seeded_source(seed))
                made.update([1, 2, 1])
                if seed % 2:
                    made.announce_intrusion()
                made.update([0] * extra)
                tables.append(_entries(made))
                outputs.append(_counts_over_scale(made))
            most = max(most, sum(a != b for a, b in zip(*tables, strict=True)))
            spent = max(spent, float(np.abs(outputs[0] - outputs[1]).sum()))
        yield Finding("coupled", "entries that one element moves", "sensitivity", 1, most, pairs)
        claimed = float(estimator._settings.epsilon_output) * _SLACK
        yield Finding("coupled", "counts it moves, over the scale of their noise", "epsilon", claimed, spent, pairs)


def _entries(estimator: Any) -> list[Any]:
    """The cells of every entry, as an intruder reads them."""
    layers = [estimator._table.seen_by_intruder(layer) for layer in range(estimator._table.layers)]
    entries = []
    for i in range(estimator._table.entries):
        entries.append(
            (
                tuple(counters[i] for counters, _ in layers if counters),
                tuple(bits[i] for _, bits in layers if bits),
            )
        )
    return entries


class _NoNoise:
    """A source whose noises are zero, and that keeps the scales that were asked for."""

    def __init__(self) -> None:
        self.scales: list[float] = []

    def discrete_laplace(self, scale: Fraction, size: int) -> Any:
        self.scales += [float(scale)] * size
        return np.zeros(size, np.int64)


class _Watched:
    """A table that keeps the counts that a release takes from it."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.counts: list[int] = []

    def __getattr__(self, name: str) -> Any:
        original = getattr(self.table, name)
        if not name.startswith("noisy_"):
            return original

        def noisy(*arguments: Any) -> Any:
            counts = original(*arguments)
            self.counts += np.atleast_1d(counts).tolist()
            return counts

        return noisy


def _counts_over_scale(estimator: Any) -> Any:
    """Every count that the compiled table hands to a release, in units of the noise that the release asked for."""
    source, table = _NoNoise(), _Watched(estimator._table)
    estimator._table = table
    estimator._read(source)
    return np.array(table.counts) / np.array(source.scales)


def _twin(estimator: Any, name: str, **members: Any) -> Twin:
    """The estimator with other numbers in its laws and the same claim; `small` makes one of the same broken class."""
    kind = type(f"NotPrivate{type(estimator).__name__}", (type(estimator),), members)
    broken: Any = object.__new__(kind)
    broken.__dict__.update(estimator.__dict__)
    return Twin(name, broken)


def _noise_over(estimator: Any, factor: Callable[[Any], Fraction | int]) -> property:
    """Output noise that is this many times too small."""
    right: Any = type(estimator)._noise_scale
    return property(lambda self: right.fget(self) / factor(self))


def _quieter(estimator: Any) -> Twin:
    """The right scale everywhere but where the noise is drawn."""
    right: Any = type(estimator)._read

    class Source:
        def __init__(self, source: Any) -> None:
            self.source = source

        def discrete_laplace(self, scale: Fraction, size: int) -> Any:
            return self.source.discrete_laplace(scale / 2, size)

    twin = _twin(estimator, "half the noise where it is drawn", _read=lambda self, source: right(self, Source(source)))
    return replace(twin, kind="coupled")


def _rescaled(estimator: Any) -> Fraction:
    p0, p1 = estimator._response.after(estimator.intrusions)
    return Fraction(1 / (p1 - p0))


def _doubled_response(self: Any) -> Response:
    return Response.of("tight", 2 * self._settings.epsilon_state)


def _bit_twins(estimator: Any) -> Sequence[Twin]:
    return (
        _twin(estimator, "noise added after rescaling, as printed", _noise_scale=_noise_over(estimator, _rescaled)),
        _twin(estimator, "half the output noise", _noise_scale=_noise_over(estimator, lambda made: 2)),
        _quieter(estimator),
        _twin(estimator, "coins for twice epsilon", _response=property(_doubled_response)),
    )


def _doubled_law(self: Any) -> list[Fraction]:
    return list(self._shift_law(2 * self._settings.epsilon_state))


def _counter_twins(estimator: Any) -> Sequence[Twin]:
    return (
        _twin(estimator, "half the output noise", _noise_scale=_noise_over(estimator, lambda made: 2)),
        _quieter(estimator),
        _twin(estimator, "a shift for twice epsilon", shift_law=_doubled_law),
    )


def _unshared(self: Any, modulus: int, epsilon_state: Fraction) -> list[int]:
    return response_weights(modulus, epsilon_state)


def _incidence_twins(estimator: Any) -> Sequence[Twin]:
    if estimator._method == "squares":
        return _counter_twins(estimator)
    half, quieter, _ = _counter_twins(estimator)
    return half, quieter, _twin(estimator, "counters that do not share epsilon (PAN Thm 5.1)", _prime_weights=_unshared)


def _small_incidence(made: Any, **changes: Any) -> Any:
    options = _options(made, **changes)
    if made._method == "squares":
        return type(made)(3, min(made.t, 6), max_count=6, **options)
    while True:  # two of the primes 2, 3, 5, 7, 11, few enough to enumerate
        few = type(made)(3, min(made.t, 2), method="primes", max_count=2, primes=2, collision=0.9, **options)
        if math.prod(few.moduli) <= 21:
            return few


def _register(
    kind: type[Any], examples: Callable[[], Sequence[Any]], audit: PanAudit, twins: Callable[[Any], Sequence[Twin]]
) -> None:
    register(AuditCase(kind, examples, audit.structure, audit.exact, audit.statistical, audit.coupled, twins))


def _shift(made: Any) -> str:
    """The law of a smaller k stands for that of the same name."""
    which = made._law(made._settings.epsilon_state)[0]
    return "response" if which == "squares" and made.k < 7 else str(which)


_ONE, _THREE = Budget(1.0), Budget(3.0)

_register(
    Density,
    lambda: (
        Density(1000, budget=_ONE),
        Density(3, budget=_THREE, releases=2),
        Density(9, budget=_ONE, response="paper"),
    ),
    PanAudit(lambda made, **o: type(made)(3, **_options(made, **o))),
    _bit_twins,
)
_register(
    DistinctCount,
    lambda: (DistinctCount(budget=_ONE),),
    PanAudit(lambda made, **o: type(made)(buckets=16, levels=8, **_options(made, **o))),
    _bit_twins,
)
_register(
    CroppedMean,
    lambda: (CroppedMean(1000, 3, budget=_ONE), CroppedMean(1000, 100, budget=_THREE)),
    PanAudit(lambda made, **o: type(made)(3, min(made.t, 4), **_options(made, **o))),
    _bit_twins,
)
_register(
    HeavyFraction,
    lambda: (
        HeavyFraction(1000, 4, budget=_ONE),
        HeavyFraction(1000, 2, budget=_THREE, method="ladder", max_count=2),
    ),
    PanAudit(
        lambda made, **o: type(made)(
            3,
            min(made.k, 4),
            rho=made.rho,
            method=made._method,
            max_count=None if made._max_count is None else max(2, min(made.k, 4)),
            **_options(made, **o),
        )
    ),
    _bit_twins,
)
_register(
    ModularIncidence,
    lambda: (
        ModularIncidence(1000, 4, budget=_ONE),
        ModularIncidence(1000, 7, budget=_ONE, shift="squares"),
        ModularIncidence(1000, 3, budget=_THREE, shift="paper"),
    ),
    PanAudit(lambda made, **o: type(made)(3, min(made.k, 7), shift=_shift(made), **_options(made, **o))),
    _counter_twins,
)
_register(
    Incidence,
    lambda: (Incidence(1000, 2, budget=_ONE), Incidence(1000, 2, budget=_ONE, method="primes", max_count=64)),
    PanAudit(_small_incidence),
    _incidence_twins,
)
