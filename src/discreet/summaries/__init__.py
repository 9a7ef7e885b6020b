"""Streaming summaries. They are NOT private: nothing leaves them but through a release.

What they share (`Summary`, `LinearSketch`, `RawCounts`), and what `workers` make (`ShardedMisraGries`), is not in
`__all__`.
"""

from discreet.summaries._base import RawCounts as RawCounts
from discreet.summaries._base import Summary as Summary
from discreet.summaries._linear import LinearSketch as LinearSketch
from discreet.summaries.count_min import CountMin
from discreet.summaries.count_sketch import CountSketch
from discreet.summaries.exact_counts import ExactCounts
from discreet.summaries.misra_gries import MisraGries
from discreet.summaries.sharded_misra_gries import ShardedMisraGries as ShardedMisraGries
from discreet.summaries.space_saving import SpaceSaving
from discreet.summaries.user_misra_gries import UserMisraGries

__all__ = [
    "CountMin",
    "CountSketch",
    "ExactCounts",
    "MisraGries",
    "SpaceSaving",
    "UserMisraGries",
]
