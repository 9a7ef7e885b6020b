"""Versions of a mechanism that are broken on purpose. NOT PRIVATE: the audit must reject every one of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, cast

import numpy as np

from discreet.errors import ParameterError
from discreet.releases.release import Release
from discreet_audit.registry import Twin

__all__ = ["for_one_counter", "half_the_noise", "leaked_order", "lower_cut", "twin"]


def twin(mechanism: object, name: str, kind: str = "exact", /, **members: Any) -> Twin:
    """A mechanism with public members replaced: the one maker of twins.

    Args:
        mechanism: The right one.
        name: What is wrong.
        kind: The kind of check that is asked first.
        members: What takes the place of a member of that name: a value, a function for a method, or a property. The
            checks that a mechanism makes when it is made are skipped: they might refuse it.
    """
    if any(member.startswith("_") and not member.endswith("__") for member in members):
        raise ParameterError(f"a twin differs in what is public, not in {', '.join(members)}")
    broken: Any = object.__new__(type(f"NotPrivate{type(mechanism).__name__}", (type(mechanism),), members))
    # What was computed from other members is computed again.
    computed = {name for name in vars(mechanism) if isinstance(getattr(type(mechanism), name, None), cached_property)}
    broken.__dict__.update({name: value for name, value in vars(mechanism).items() if name not in computed})
    broken.__dict__.update({m: v for m, v in members.items() if not callable(v) and not isinstance(v, property)})
    return Twin(name, broken, kind)


def half_the_noise(mechanism: Any) -> Twin:
    """The scale halved, and that of a noise which all counters share; the cut as it was."""
    scales = [name for name in ("scale", "shared_scale") if hasattr(mechanism, name)]
    return twin(mechanism, "half the noise", **{name: getattr(mechanism, name) / 2 for name in scales})


def for_one_counter(mechanism: Any) -> Twin:
    """Noise as if one event moved one entry by one."""
    return twin(mechanism, "noise for a sensitivity of 1", scale=mechanism.scale / mechanism.sensitivity)


def lower_cut(mechanism: Any) -> Twin:
    """The cut one lower, which is what > in place of >= amounts to on integers.

    Where the exact law has some room, lower by what makes delta so much larger: three times for entries, whose cut is
    for one entry that moves by all of the sensitivity; twice for a single counter, which reaches only some of the
    states; three times for a cut from a noisy length, which is calibrated for the chance that a key is shown, and what
    the other stream may show of it is not taken off. Delta falls with the wider of the two noises, that of the length
    or that of the counters. The papers' formulas have more room than that: half of their cut.
    """
    member = "cut" if hasattr(mechanism, "cut") else "threshold"
    cut = getattr(mechanism, member)
    if getattr(mechanism, "calibration", "exact") != "exact":
        return twin(mechanism, "half the cut", **{member: cut // 2})
    offset, spread = mechanism.error_model.offset_noise, float(mechanism.scale)
    noisy_length = getattr(mechanism, "stream_length", None) == "noisy"
    if noisy_length:
        spread = max(spread, float(offset.scale * offset.step))
    single = getattr(mechanism, "capacity", None) == 1
    room = 3.0 if hasattr(mechanism, "sensitivity") or noisy_length else 2.0 if single else 1.0
    less = 1 + math.ceil(spread * math.log(room))
    return twin(mechanism, "cut one lower" if less == 1 else f"cut {less} lower", **{member: cut - less})


def leaked_order(mechanism: Any) -> Twin:
    """The items in an order of their own instead of that of the noisy counts."""
    original: Callable[..., Release] = type(mechanism).__call__

    def call(self: Any, summary: Any, source: Any = None) -> Release:
        release = original(self, summary, source)
        order = np.argsort(np.array(release.items, dtype=object), kind="stable")
        leaking = twin(release, "", items=[release.items[i] for i in order], counts=release.counts[order])
        return cast(Release, leaking.mechanism)

    return twin(mechanism, "order of the items leaked", "statistical", __call__=call)
