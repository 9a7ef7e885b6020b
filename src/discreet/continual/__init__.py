"""Trusted curator, a result at every tick."""

from discreet.continual.counter import Counter
from discreet.continual.distinct_count import DistinctCount
from discreet.continual.heavy_hitters import HeavyHitters
from discreet.continual.histogram import Histogram

__all__ = ["Counter", "DistinctCount", "HeavyHitters", "Histogram"]
