"""The rows of `discreet.central`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from discreet.central import (
    CountMinHeavyHitters,
    CountSketchHeavyHitters,
    Merged,
    Offset,
    ReducedMisraGries,
    Stability,
    Summed,
    UserSketch,
)
from discreet.privacy import Budget, User
from discreet.published import ChanMisraGries, PrivateMisraGries, PrivateSpaceSaving, TextbookMisraGries
from discreet_audit.counters import CounterAudit
from discreet_audit.entries import EntriesAudit
from discreet_audit.linear import LinearAudit
from discreet_audit.literal import (
    cut_without_errors,
    half_the_margin,
    length_of_the_data,
    length_without_margin,
    noise_for_one_counter,
    noise_for_the_items_of_a_user,
    threshold_of_algorithm_2,
    without_rounding,
)
from discreet_audit.registry import Twin, row
from discreet_audit.sabotage import for_one_counter, half_the_noise, leaked_order, lower_cut

__all__: list[str] = []

# A large delta, so that a cut that is one too low is a large step, and the realistic one.
_LARGE, _SMALL = Budget(1.0, 0.02), Budget(1.0, 1e-9)
# Of a linear sketch only the smallest or the middle row shows, which is a small part of the loss: more of it to see.
_MORE = Budget(8.0, 0.02)


Twins = Callable[[Any], Sequence[Twin]]


def _of_counters(literal: Twins = lambda made: ()) -> Twins:
    def twins(made: Any) -> Sequence[Twin]:
        order = () if getattr(made, "capacity", None) == 1 else (leaked_order(made),)
        return (half_the_noise(made), lower_cut(made), *order, *literal(made))

    return twins


def _of_entries(made: Any) -> Sequence[Twin]:
    broken = [half_the_noise(made)]
    if made.universe is None:
        # Over a universe the cut protects nobody: every item has noise.
        broken.append(lower_cut(made))
        if not isinstance(made, ChanMisraGries) and made.capacity > 1:
            broken.append(without_rounding(made))
    if made.sensitivity > 1:
        broken.append(for_one_counter(made))
    return broken if made.capacity == 1 else [*broken, leaked_order(made)]


def _of_cells(made: Any) -> Sequence[Twin]:
    if made.stream_length == "noisy":
        return (half_the_noise(made), half_the_margin(made), length_without_margin(made))
    # There is no order to leak unless two items can be above the cut at once.
    two = made.capacity > 1 and made.threshold < 0.48 * made.stream_length
    return (half_the_noise(made), cut_without_errors(made), *((leaked_order(made),) if two else ()))


def _of_numbers(mechanism: Any) -> Any:
    """The same with a universe of numbers from 0: names make no difference to privacy."""
    return mechanism if mechanism.universe is None else replace(mechanism, universe=range(mechanism.universe.size))


row(
    Offset,
    lambda: (
        Offset(_LARGE, capacity=3),
        Offset(_LARGE, capacity=2, unit=User(2)),
        Offset(_SMALL, capacity=256),
    ),
    CounterAudit("misra-gries", zeros=True, shared="published"),
    _of_counters(),
)
row(
    PrivateMisraGries,
    lambda: (
        PrivateMisraGries(_LARGE, capacity=3),
        PrivateMisraGries(_SMALL, capacity=3, calibration="paper-geometric"),
    ),
    CounterAudit("misra-gries", zeros=True, shared="hidden"),
    _of_counters(),
)
row(
    Stability,
    lambda: (
        Stability(_LARGE),
        Stability(_LARGE, unit=User(3)),
        Stability(_LARGE, unit=User(2), noise="gaussian", distinct=True),
    ),
    CounterAudit("exact"),
    _of_counters(),
)
row(
    TextbookMisraGries,
    lambda: (TextbookMisraGries(_LARGE, capacity=8), TextbookMisraGries(_SMALL, capacity=3, unit=User(2))),
    CounterAudit("misra-gries", zeros=False, shared="hidden"),
    _of_counters(threshold_of_algorithm_2),
)
row(
    Merged,
    lambda: (
        Merged(_LARGE, capacity=3),
        Merged(_SMALL, capacity=64),
        Merged(_LARGE, capacity=3, unit=User(2)),
    ),
    CounterAudit("merged", shared="halves"),
    _of_counters(noise_for_one_counter),
)
row(
    UserSketch,
    lambda: (
        UserSketch(_LARGE, capacity=3, unit=User(2)),
        UserSketch(_SMALL, capacity=64, unit=User(8)),
        UserSketch(_LARGE, capacity=3, unit=User(2), parts_per_user=2),
    ),
    CounterAudit("users", shared="halves"),
    _of_counters(noise_for_the_items_of_a_user),
)
row(
    PrivateSpaceSaving,
    lambda: (
        PrivateSpaceSaving(_LARGE, capacity=3, stream_length=200),
        PrivateSpaceSaving(_LARGE, capacity=3, stream_length="noisy", length_share=0.3),
        PrivateSpaceSaving(_LARGE, capacity=2, stream_length="noisy", length_share=0.3, unit=User(2)),
        PrivateSpaceSaving(_LARGE, capacity=3, stream_length=200, calibration="paper"),
    ),
    CounterAudit("space-saving", zeros=True),
    _of_counters(length_of_the_data),
)
row(
    ReducedMisraGries,
    lambda: (
        ReducedMisraGries(Budget(2.0), capacity=2, universe=range(3)),
        ReducedMisraGries(_LARGE, capacity=3),
        ReducedMisraGries(Budget.zcdp(0.5), capacity=3, universe=range(10**6)),
    ),
    EntriesAudit(reduces=True),
    _of_entries,
    _of_numbers,
)
row(
    ChanMisraGries,
    lambda: (ChanMisraGries(Budget(2.0), capacity=2, universe=range(3)), ChanMisraGries(_LARGE, capacity=3)),
    EntriesAudit(reduces=False),
    _of_entries,
    _of_numbers,
)
row(
    Summed,
    lambda: (
        Summed(_LARGE, capacity=2, sketches=2),
        Summed(Budget(1.0), capacity=2, sketches=2, universe=range(1000)),
    ),
    EntriesAudit(reduces=True, parts=True),
    _of_entries,
    _of_numbers,
)
row(
    CountMinHeavyHitters,
    lambda: (
        CountMinHeavyHitters(_MORE, 3, width=64, depth=6, noise="laplace", stream_length=400),
        CountMinHeavyHitters(_MORE, 3, width=64, depth=6, stream_length=400),
        CountMinHeavyHitters(_MORE, 3, width=64, depth=6),
    ),
    LinearAudit(median=False),
    _of_cells,
)
row(
    CountSketchHeavyHitters,
    lambda: (
        CountSketchHeavyHitters(_MORE, 3, width=512, depth=9, noise="laplace", stream_length=2000),
        CountSketchHeavyHitters(_MORE, 3, width=512, depth=9, stream_length=2000),
        CountSketchHeavyHitters(_MORE, 3, width=512, depth=9),
    ),
    LinearAudit(median=True),
    _of_cells,
)
