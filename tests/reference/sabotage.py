"""Mechanisms made wrong on purpose: the checks that pass the right ones must catch these."""

from __future__ import annotations

from typing import Any

from discreet_audit.core import twin


def sabotaged(mechanism: Any, **changes: Any) -> Any:
    """A copy whose properties are replaced: each change maps the right value to the wrong one."""
    return twin(mechanism, "", **{name: change(getattr(mechanism, name)) for name, change in changes.items()}).mechanism


def half_the_noise(mechanism: Any) -> Any:
    scales = [name for name in ("scale", "shared_scale") if hasattr(type(mechanism), name)]
    return sabotaged(mechanism, **dict.fromkeys(scales, lambda scale: scale / 2))


def cut_one_lower(mechanism: Any) -> Any:
    cut = "cut" if hasattr(type(mechanism), "cut") else "threshold"
    return sabotaged(mechanism, **{cut: lambda value: value - 1})
