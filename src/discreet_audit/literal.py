"""The papers' errors and tempting shortcuts, word for word. NOT PRIVATE: only the audit uses them, to be caught by it.

docs/privacy/corrections.md has the arguments and what each of them loses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from discreet.privacy.calibration.correlated_noise import correlated_calibration
from discreet.published.private_misra_gries import pmg_threshold
from discreet_audit.histograms import claim, items_of
from discreet_audit.registry import Twin
from discreet_audit.sabotage import twin
from discreet_audit.sources import ScriptedSource

__all__ = [
    "cut_without_errors",
    "half_the_margin",
    "length_of_the_data",
    "length_without_margin",
    "noise_for_one_counter",
    "noise_for_the_items_of_a_user",
    "threshold_of_algorithm_2",
    "without_rounding",
]


def threshold_of_algorithm_2(mechanism: Any) -> Sequence[Twin]:
    """[LT] Algorithm 2's threshold on a sketch that drops zero counters: k keys, not two, may be hidden at once.

    With few counters the two thresholds may agree; then there is nothing to catch.
    """
    cut = pmg_threshold(*claim(mechanism))
    if cut >= mechanism.threshold:
        return ()
    return (twin(mechanism, "Algorithm 2's threshold on a textbook sketch", threshold=cut),)


def _calibrated_as(mechanism: Any, name: str, changes: int, steps: int) -> Twin:
    """Noises and cut as if a unit moved so many counters, by so much."""
    sigma, shared, cut = correlated_calibration(*claim(mechanism), changes, steps)
    return twin(mechanism, name, scale=Fraction(sigma), shared_scale=Fraction(shared), threshold=cut)


def _shared(mechanism: Any, changes: int, steps: int, fewer: str, once: str) -> Sequence[Twin]:
    twins = []
    if changes < mechanism.capacity:
        twins.append(_calibrated_as(mechanism, fewer, changes, steps))
    if steps > 1:
        twins.append(_calibrated_as(mechanism, once, mechanism.capacity, 1))
    if mechanism.capacity > 1:
        twins.append(twin(mechanism, "no shared noise", shared_scale=mechanism.shared_scale / 2**10))
    return twins


def noise_for_one_counter(mechanism: Any) -> Sequence[Twin]:
    """Merged sketches released as if an event moved one counter: it may move all of them. As if all events of a user
    together moved them by one. And with the noise of each counter alone, which is about half of what that needs."""
    names = "merged sketch with noise for one counter", "noise for one event of a user"
    return _shared(mechanism, 1, items_of(mechanism), *names)


def noise_for_the_items_of_a_user(mechanism: Any) -> Sequence[Twin]:
    """A user-level sketch released as if a user of m items moved m counters: one decrement moves all k. As if a user of
    several parts moved them by one: every part does. And without the shared noise."""
    names = "noise for m counters instead of k", "noise for users of one part"
    return _shared(mechanism, items_of(mechanism), mechanism.parts_per_user, *names)


def length_of_the_data(mechanism: Any) -> Sequence[Twin]:
    """[SS] Algorithm 3 where |X| counts events: the cut is computed from their number, which is private."""
    if not isinstance(mechanism.stream_length, int):
        return ()

    def literal(total: int) -> Any:
        return dataclasses.replace(mechanism, stream_length=total)

    return (
        twin(
            mechanism,
            "cut from the private length (SS Alg 3)",
            not_private_cut=lambda self, total: int(literal(total).threshold),
            draw=lambda self, summary, source: literal(summary.total).draw(summary, source),
            of_snapshot=lambda self, summary, source=None: literal(summary.total).of_snapshot(summary, source),
        ),
    )


def without_rounding(mechanism: Any) -> Twin:
    """[LT] section 6 without its probabilistic rounding: k entries may turn positive at once."""
    return twin(mechanism, "small entries not rounded", before_noise=lambda self, entries, source: entries)


def cut_without_errors(mechanism: Any) -> Twin:
    """[SS] Algorithm 5 with a cut of n/k: neither the sketch's error nor the noise keeps untracked items below it."""
    cut = mechanism.stream_length // mechanism.capacity
    return twin(mechanism, "cut at n/k, without the errors", threshold=cut)


def half_the_margin(mechanism: Any) -> Twin:
    """A cut above what may be untracked by half of what the noise of a cell reaches."""
    return twin(mechanism, "half the margin for noise", threshold=mechanism.threshold // 2)


def length_without_margin(mechanism: Any) -> Twin:
    """A noisy length as it comes: it is below the true one half of the time, and so is the cut."""
    original = type(mechanism).noisy_length

    def length(self: Any, summary: Any, cells: Any, source: Any) -> int:
        added = int(original(self, summary, summary.not_private_cells(), ScriptedSource())) - int(summary.total)
        return max(0, int(original(self, summary, cells, source)) - added)

    return twin(mechanism, "noisy length without its margin", noisy_length=length)
