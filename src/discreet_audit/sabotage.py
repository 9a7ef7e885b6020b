"""Versions of a mechanism that are broken on purpose. NOT PRIVATE: the audit must reject every one of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.releases.release import Release
from discreet_audit.registry import Twin

__all__ = ["for_one_counter", "half_the_noise", "leaked_order", "lower_cut", "sabotaged"]


def sabotaged(mechanism: Any, name: str, **changes: Any) -> Twin:
    """A twin whose class has other properties (given as functions of the original) or other methods.

    The twin skips the checks that a mechanism makes when it is made: they might refuse it.
    """
    members = {
        attribute: _changed(mechanism, change) if _of_original(change) else change
        for attribute, change in changes.items()
    }
    kind = type(f"NotPrivate{type(mechanism).__name__}", (type(mechanism),), members)
    twin: Any = object.__new__(kind)
    twin.__dict__.update(mechanism.__dict__)
    return Twin(name, twin)


def _changed(mechanism: Any, change: Callable[[Any], Any]) -> property:
    return property(lambda self: change(mechanism))


def _of_original(change: Callable[..., Any]) -> bool:
    return change.__code__.co_varnames[:1] == ("original",)


def half_the_noise(mechanism: Any) -> Twin:
    """The scale halved, and that of a noise which all counters share; the cut as it was."""
    halved: dict[str, Any] = {"scale": lambda original: original.scale / 2}
    if hasattr(mechanism, "shared_scale"):
        halved["shared_scale"] = lambda original: original.shared_scale / 2
    return sabotaged(mechanism, "half the noise", **halved)


def for_one_counter(mechanism: Any) -> Twin:
    """Noise as if one event moved one entry by one."""
    return sabotaged(
        mechanism, "noise for a sensitivity of 1", scale=lambda original: original.scale / original.sensitivity
    )


def lower_cut(mechanism: Any) -> Twin:
    """The cut one lower, which is what > in place of >= amounts to on integers.

    Where the exact law has some room, lower by what makes delta so much larger: three times for entries, whose cut is
    for one entry that moves by all of the sensitivity; twice for a single counter, which reaches only some of the
    states; three times for a cut from a noisy length, which is calibrated for the chance that a key is shown, and what
    the other stream may show of it is not taken off. Delta falls with the wider of the two noises, that of the length
    or that of the counters. The papers' formulas have more room than that: half of their cut.
    """
    attribute = "_cut" if hasattr(mechanism, "_cut") else "threshold"
    if getattr(mechanism, "calibration", "exact") != "exact":
        return sabotaged(mechanism, "half the cut", **{attribute: lambda original: getattr(original, attribute) // 2})
    offset, spread = mechanism.error_model.offset_noise, float(mechanism.scale)
    noisy_length = getattr(mechanism, "stream_length", None) == "noisy"
    if noisy_length:
        spread = max(spread, float(offset.scale * offset.step))
    single = getattr(mechanism, "capacity", None) == 1
    room = 3.0 if hasattr(mechanism, "sensitivity") or noisy_length else 2.0 if single else 1.0
    less = 1 + math.ceil(spread * math.log(room))
    name = "cut one lower" if less == 1 else f"cut {less} lower"
    return sabotaged(mechanism, name, **{attribute: lambda original: getattr(original, attribute) - less})


def leaked_order(mechanism: Any) -> Twin:
    """The items in an order of their own instead of that of the noisy counts."""
    original = type(mechanism).__call__

    def call(self: Any, summary: Any, source: Any = None) -> Any:
        release = original(self, summary, source)
        if not isinstance(release, Release):
            return release
        order = np.argsort(np.array(release.items, dtype=object), kind="stable")
        release._items, release.counts, release._values = release._items.take(order), release.counts[order], None
        return release

    return replace(sabotaged(mechanism, "order of the items leaked", __call__=call), kind="statistical")
