"""The rows of `discreet.central`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from discreet.audit.counters import CounterAudit
from discreet.audit.registry import AuditCase, Twin, register
from discreet.audit.sabotage import half_the_noise, leaked_order, lower_cut
from discreet.central import OffsetRelease, PrivateMisraGries, StabilityHistogram
from discreet.privacy import Budget, User

__all__: list[str] = []

# A large delta, so that a cut that is one too low is a large step, and the realistic one.
_LARGE, _SMALL = Budget(1.0, 0.02), Budget(1.0, 1e-9)


def _counters(
    mechanism: type[Any],
    examples: Callable[[], Sequence[Any]],
    audit: CounterAudit,
    literal: Callable[[Any], Sequence[Twin]] = lambda mechanism: (),
) -> None:
    def twins(made: Any) -> Sequence[Twin]:
        return (half_the_noise(made), lower_cut(made), leaked_order(made), *literal(made))

    register(AuditCase(mechanism, examples, audit.structure, audit.exact, audit.statistical, audit.coupled, twins))


_counters(
    OffsetRelease,
    lambda: (
        OffsetRelease(_LARGE, capacity=3),
        OffsetRelease(_LARGE, capacity=2, unit=User(2)),
        OffsetRelease(_SMALL, capacity=256),
    ),
    CounterAudit("misra-gries", zeros=True, shared="published"),
)
_counters(
    PrivateMisraGries,
    lambda: (
        PrivateMisraGries(_LARGE, capacity=3),
        PrivateMisraGries(_SMALL, capacity=3, calibration="paper-geometric"),
    ),
    CounterAudit("misra-gries", zeros=True, shared="hidden"),
)
_counters(
    StabilityHistogram,
    lambda: (
        StabilityHistogram(_LARGE),
        StabilityHistogram(_LARGE, unit=User(3)),
        StabilityHistogram(_LARGE, unit=User(2), noise="gaussian", distinct=True),
    ),
    CounterAudit("exact"),
)
