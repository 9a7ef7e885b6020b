"""Mechanisms made wrong on purpose: the checks that pass the right ones must catch these."""

from __future__ import annotations

from functools import cached_property
from typing import Any


def sabotaged(mechanism: Any, **changes: Any) -> Any:
    """A copy whose properties are replaced: each change maps the right value to the wrong one."""
    wrong = {name: change(getattr(mechanism, name)) for name, change in changes.items()}
    kind = type(mechanism)
    broken = object.__new__(type(f"NotPrivate{kind.__name__}", (kind,), wrong))
    # What was computed from the right values is computed again from the wrong ones.
    kept = {n: v for n, v in vars(mechanism).items() if not isinstance(getattr(kind, n, None), cached_property)}
    broken.__dict__.update({**kept, **wrong})
    return broken


def half_the_noise(mechanism: Any) -> Any:
    scales = [name for name in ("scale", "shared_scale") if hasattr(type(mechanism), name)]
    return sabotaged(mechanism, **dict.fromkeys(scales, lambda scale: scale / 2))


def cut_one_lower(mechanism: Any) -> Any:
    cut = "cut" if hasattr(type(mechanism), "cut") else "threshold"
    return sabotaged(mechanism, **{cut: lambda value: value - 1})
