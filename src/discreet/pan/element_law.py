"""What an audit, or anyone who extends the package, may look at in a pan-private estimator. All of it is public.

Every `PanEstimator` has

    settings, options, parameters   the split of epsilon; what it was made with
    element_laws()                  the exact law of one element's cells, and what a release counts of them
    seen_by_intruder()              the cells of every entry, as anyone who reads the memory finds them
    counted(source, size, read)     where a release takes counts from the table: all noise is drawn and added here
    response, noise_scale           the coins of its bits, the scale of a release's noise

A new estimator says in `element_laws` what its cells do, and its privacy can be computed: see docs/audit.md.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet._data_class import dataclass


@dataclass(frozen=True)
class BitCell:
    """A bit with a counter modulo `modulus` that starts anywhere and moves by `step` at an occurrence.

    The bit is 1 with probability `unseen` at the start, and is drawn with probability `seen` when the counter wraps.
    After an announced intrusion it is sent through the two coins once more, and the counter is drawn anew.
    """

    unseen: Fraction
    seen: Fraction
    modulus: int = 1
    step: int = 1


@dataclass(frozen=True)
class CounterCell:
    """A counter modulo len(shift) that starts at a shift of this law, and gets another at an announced intrusion."""

    shift: tuple[Fraction, ...]


@dataclass(frozen=True)
class ElementLaw:
    """The cells of one element, independent of each other, and what a release counts of them.

    `statistic` has a number of each count for the values of the cells (a bit, or a counter); every count is the sum
    over all elements, with discrete Laplace noise of its scale. With `pairs` it is given (counter, bit) for a bit.
    """

    cells: tuple[BitCell | CounterCell, ...]
    statistic: Callable[[tuple[Any, ...]], tuple[float, ...]]
    scales: tuple[Fraction, ...]
    pairs: bool = False
