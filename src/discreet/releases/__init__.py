"""What leaves: releases with their guarantee, their error and their picture; paying for them; showing them.

Names are loaded on first use: a table of text needs no numbers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.privacy.estimate import Estimate
    from discreet.releases.error_model import ErrorModel, Noise
    from discreet.releases.plot import plot_over_time
    from discreet.releases.release import Histogram, Release, Row

_WHERE = {
    "ErrorModel": "releases.error_model",
    "Estimate": "privacy.estimate",
    "Histogram": "releases.release",
    "Noise": "releases.error_model",
    "Release": "releases.release",
    "Row": "releases.release",
    "plot_over_time": "releases.plot",
}

__all__ = ["ErrorModel", "Estimate", "Histogram", "Noise", "Release", "Row", "plot_over_time"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'discreet.releases' has no attribute {name!r}")
    value = getattr(import_module(f"discreet.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
