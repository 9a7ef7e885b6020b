"""What leaves: releases with their guarantee, their error and their picture; paying for them; showing them.

Names are loaded on first use: a table of text needs no numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._names import on_first_use

if TYPE_CHECKING:
    from discreet.releases.group_list import GroupRelease as GroupRelease
    from discreet.releases.over_time import Increase as Increase
    from discreet.releases.plot import plot_over_time
    from discreet.releases.quantile_list import QuantileRelease as QuantileRelease
    from discreet.releases.release import Release
    from discreet.releases.report_release import ReportRelease as ReportRelease

_WHERE = {
    "Increase": "releases.over_time",
    "GroupRelease": "releases.group_list",
    "QuantileRelease": "releases.quantile_list",
    "Release": "releases.release",
    "ReportRelease": "releases.report_release",
    "plot_over_time": "releases.plot",
}

__all__ = ["Release", "plot_over_time"]

__getattr__, __dir__ = on_first_use(__name__, _WHERE)
