"""Streaming summaries. They are NOT private: nothing leaves them but through a release.

What they share (`Summary`, `LinearSketch`, `RawCounts`), and what `workers` make (`ShardedMisraGries`), is not in
`__all__`.
"""

from discreet.summaries.counters import ExactCounts, MisraGries, SpaceSaving
from discreet.summaries.counters import RawCounts as RawCounts
from discreet.summaries.counters import Summary as Summary
from discreet.summaries.linear_sketches import CountMin, CountSketch
from discreet.summaries.linear_sketches import LinearSketch as LinearSketch
from discreet.summaries.sharded_misra_gries import ShardedMisraGries as ShardedMisraGries
from discreet.summaries.user_misra_gries import UserMisraGries

__all__ = [
    "CountMin",
    "CountSketch",
    "ExactCounts",
    "MisraGries",
    "SpaceSaving",
    "UserMisraGries",
]
