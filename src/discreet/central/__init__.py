"""Trusted curator, one published result.

Names are loaded on first use: a release needs one mechanism of many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._names import on_first_use

if TYPE_CHECKING:
    from discreet.central._base import Mechanism
    from discreet.central.chosen_distinct import ChosenDistinctRelease
    from discreet.central.count_release import CountRelease
    from discreet.central.distinct_release import DistinctRelease
    from discreet.central.merged_release import MergedRelease
    from discreet.central.offset_release import OffsetRelease
    from discreet.central.quantile_release import Grid, QuantileRelease
    from discreet.central.reduced_misra_gries import ReducedMisraGries
    from discreet.central.sharded_release import ShardedOffsetRelease
    from discreet.central.sketch_heavy_hitters import CountMinHeavyHitters, CountSketchHeavyHitters
    from discreet.central.stability import StabilityHistogram
    from discreet.central.summed_release import SummedRelease
    from discreet.central.universe_histogram import UniverseHistogram
    from discreet.central.untrusted_merge import merge_releases
    from discreet.central.user_release import UserRelease
    from discreet.events.universe import Universe

_WHERE = {
    "ChosenDistinctRelease": "central.chosen_distinct",
    "CountMinHeavyHitters": "central.sketch_heavy_hitters",
    "CountRelease": "central.count_release",
    "CountSketchHeavyHitters": "central.sketch_heavy_hitters",
    "DistinctRelease": "central.distinct_release",
    "Grid": "central.quantile_release",
    "Mechanism": "central._base",
    "MergedRelease": "central.merged_release",
    "OffsetRelease": "central.offset_release",
    "QuantileRelease": "central.quantile_release",
    "ReducedMisraGries": "central.reduced_misra_gries",
    "ShardedOffsetRelease": "central.sharded_release",
    "StabilityHistogram": "central.stability",
    "SummedRelease": "central.summed_release",
    "Universe": "events.universe",
    "UniverseHistogram": "central.universe_histogram",
    "UserRelease": "central.user_release",
    "merge_releases": "central.untrusted_merge",
}

__all__ = [
    "ChosenDistinctRelease",
    "CountMinHeavyHitters",
    "CountRelease",
    "CountSketchHeavyHitters",
    "DistinctRelease",
    "Grid",
    "Mechanism",
    "MergedRelease",
    "OffsetRelease",
    "QuantileRelease",
    "ReducedMisraGries",
    "ShardedOffsetRelease",
    "StabilityHistogram",
    "SummedRelease",
    "Universe",
    "UniverseHistogram",
    "UserRelease",
    "merge_releases",
]

__getattr__, __dir__ = on_first_use(__name__, _WHERE)
