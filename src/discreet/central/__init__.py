"""Trusted curator, one published result.

`__all__` has the mechanisms that a summary is released by; those that questions choose are here, too. Names are loaded
on first use: a release needs one mechanism of many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._names import on_first_use

if TYPE_CHECKING:
    from discreet.central._base import Mechanism
    from discreet.central.bad_share import BadShare as BadShare
    from discreet.central.chosen_distinct import ChosenDistinct as ChosenDistinct
    from discreet.central.credited_distinct import CreditedDistinct as CreditedDistinct
    from discreet.central.merged_counters import Merged
    from discreet.central.noisy_count import NoisyCount as NoisyCount
    from discreet.central.offset import Offset
    from discreet.central.person_moments import PersonMoments as PersonMoments
    from discreet.central.quantile_choice import QuantileChoice as QuantileChoice
    from discreet.central.quantile_grid import Grid as Grid
    from discreet.central.quantile_grid import StepGrid as StepGrid
    from discreet.central.quantile_tree import QuantileTree as QuantileTree
    from discreet.central.reduced_misra_gries import ReducedMisraGries
    from discreet.central.row_moments import RowMoments as RowMoments
    from discreet.central.sharded_offset import ShardedOffset as ShardedOffset
    from discreet.central.sketch_heavy_hitters import CountMinHeavyHitters, CountSketchHeavyHitters
    from discreet.central.stability import Stability
    from discreet.central.summed_entries import Summed
    from discreet.central.universe_histogram import UniverseHistogram as UniverseHistogram
    from discreet.central.untrusted_merge import merge_releases
    from discreet.central.user_sketch import UserSketch
    from discreet.events.universe import Universe as Universe

_WHERE = {
    "BadShare": "central.bad_share",
    "ChosenDistinct": "central.chosen_distinct",
    "CountMinHeavyHitters": "central.sketch_heavy_hitters",
    "NoisyCount": "central.noisy_count",
    "CountSketchHeavyHitters": "central.sketch_heavy_hitters",
    "CreditedDistinct": "central.credited_distinct",
    "Grid": "central.quantile_grid",
    "Mechanism": "central._base",
    "Merged": "central.merged_counters",
    "Offset": "central.offset",
    "PersonMoments": "central.person_moments",
    "QuantileChoice": "central.quantile_choice",
    "QuantileTree": "central.quantile_tree",
    "ReducedMisraGries": "central.reduced_misra_gries",
    "RowMoments": "central.row_moments",
    "ShardedOffset": "central.sharded_offset",
    "Stability": "central.stability",
    "StepGrid": "central.quantile_grid",
    "Summed": "central.summed_entries",
    "Universe": "events.universe",
    "UniverseHistogram": "central.universe_histogram",
    "UserSketch": "central.user_sketch",
    "merge_releases": "central.untrusted_merge",
}

__all__ = [
    "CountMinHeavyHitters",
    "CountSketchHeavyHitters",
    "Mechanism",
    "Merged",
    "Offset",
    "ReducedMisraGries",
    "Stability",
    "Summed",
    "UserSketch",
    "merge_releases",
]

_RENAMED = {
    "ChosenDistinctRelease": "ChosenDistinct",
    "CountRelease": "NoisyCount",
    "DistinctRelease": "CreditedDistinct",
    "MergedRelease": "Merged",
    "OffsetRelease": "Offset",
    "QuantileRelease": "QuantileTree",
    "ShardedOffsetRelease": "ShardedOffset",
    "StabilityHistogram": "Stability",
    "SummedRelease": "Summed",
    "UserRelease": "UserSketch",
}

__getattr__, __dir__ = on_first_use(__name__, _WHERE, _RENAMED)
