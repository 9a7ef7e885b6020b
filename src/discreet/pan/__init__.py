"""Nobody is trusted after an event is processed: the memory itself is private.

Each estimator has `update(items)`, `release()`, `announce_intrusion()`, `to_bytes()` and `from_bytes(data)`. Anyone who
reads its memory or its state once, and every release, learns no more about any element than the budget says.
"""

from discreet.pan.cropped_mean import CroppedMean
from discreet.pan.density import Density
from discreet.pan.distinct_count import DistinctCount
from discreet.pan.heavy_fraction import HeavyFraction
from discreet.pan.incidence import Incidence
from discreet.pan.modular_incidence import ModularIncidence
from discreet.pan.occurrences import Occurrences

__all__ = [
    "CroppedMean",
    "Density",
    "DistinctCount",
    "HeavyFraction",
    "Incidence",
    "ModularIncidence",
    "Occurrences",
]
