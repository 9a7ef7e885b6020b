"""What leaves: releases with their guarantee, their error and their picture; paying for them; showing them.

Names are loaded on first use: a table of text needs no numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._names import on_first_use

if TYPE_CHECKING:
    from discreet.privacy.estimate import Estimate
    from discreet.releases.error_model import ErrorModel, Noise
    from discreet.releases.plot import plot_over_time
    from discreet.releases.quantile_list import QuantileRow, Quantiles
    from discreet.releases.release import Release, Row

_WHERE = {
    "ErrorModel": "releases.error_model",
    "Estimate": "privacy.estimate",
    "Noise": "releases.error_model",
    "QuantileRow": "releases.quantile_list",
    "Quantiles": "releases.quantile_list",
    "Release": "releases.release",
    "Row": "releases.release",
    "plot_over_time": "releases.plot",
}

__all__ = [
    "ErrorModel",
    "Estimate",
    "Noise",
    "QuantileRow",
    "Quantiles",
    "Release",
    "Row",
    "plot_over_time",
]

__getattr__, __dir__ = on_first_use(__name__, _WHERE)
