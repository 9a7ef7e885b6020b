"""Versions of a mechanism that are broken on purpose. NOT PRIVATE: the audit must reject every one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.audit.registry import Twin
from discreet.privacy.histogram import Histogram

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
    """The scale halved, the cut as it was."""
    return sabotaged(mechanism, "half the noise", scale=lambda original: original.scale / 2)


def for_one_counter(mechanism: Any) -> Twin:
    """Noise as if one event moved one entry by one."""
    return sabotaged(
        mechanism, "noise for a sensitivity of 1", scale=lambda original: original.scale / original.sensitivity
    )


def lower_cut(mechanism: Any) -> Twin:
    """The cut one lower, which is what > in place of >= amounts to on integers.

    Where the cut is larger than it need be, half of it: the papers' formulas; the reduced sketch, whose cut is for one
    entry that moves by all of the sensitivity; and a single counter, which reaches only some of the states.
    """
    attribute = "_cut" if hasattr(mechanism, "_cut") else "threshold"
    tight = getattr(mechanism, "calibration", "exact") == "exact" and not hasattr(mechanism, "sensitivity")
    if tight and getattr(mechanism, "capacity", None) != 1:
        return sabotaged(mechanism, "cut one lower", **{attribute: lambda original: getattr(original, attribute) - 1})
    return sabotaged(mechanism, "half the cut", **{attribute: lambda original: getattr(original, attribute) // 2})


def leaked_order(mechanism: Any) -> Twin:
    """The items in an order of their own instead of that of the noisy counts."""
    original = type(mechanism).__call__

    def call(self: Any, summary: Any, source: Any = None) -> Any:
        release = original(self, summary, source)
        if not isinstance(release, Histogram):
            return release
        order = np.argsort(np.array(release.items, dtype=object), kind="stable")
        release._items, release.counts, release._values = release._items.take(order), release.counts[order], None
        return release

    return replace(sabotaged(mechanism, "order of the items leaked", __call__=call), kind="statistical")
