"""The release of a sum of reduced sketches, for a trusted aggregator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet._data_class import dataclass
from discreet.central._noisy_entries import reduced_entries
from discreet.central.reduced_misra_gries import ReducedMisraGries
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.events.values import item_order, items_array
from discreet.privacy.checks import whole_number
from discreet.summaries import MisraGries, RawCounts


@dataclass(frozen=True)
class Summed(ReducedMisraGries):
    """Each sketch is reduced as in `ReducedMisraGries`, the entries are added up, and the sum gets the noise.

    It takes a list of unmerged sketches, one a stream, and holds all their counters at once.

    Unit: one event of one of the streams, or up to m events of a user in any of them (`User(m)`).
    Guarantee: epsilon or rho-zCDP over a `universe`; (epsilon, delta) without one.
    Noise: an event is in one stream, so the sum has the sensitivities of one sketch, D = m (2k - 1) in units of
        1/(k+1), whatever their number: the noise is that of `ReducedMisraGries`.
    Threshold: as in `ReducedMisraGries`; its argument allows any number of entries.
    Error: f - n/(k+1) <= entry <= f with n the length of all streams together, plus one noise.
    Argument: [LT] section 7; docs/privacy/central.md.

    Args:
        sketches: How many sketches are summed; public.
    """

    name: ClassVar[str] = "sum of sensitivity-reduced Misra-Gries sketches"
    reference: ClassVar[str] = "[LT] section 7 with Algorithm 3"

    sketches: int = 1

    def __post_init__(self) -> None:
        whole_number("sketches", self.sketches)
        super().__post_init__()

    @property
    def most_entries(self) -> int:
        return self.capacity * self.sketches

    def empty_summary(self, max_key_bytes: int) -> Any:
        raise IncompatibleSummaryError(f"{self.name} takes a list of MisraGries, not MisraGries")

    def check(self, summary: Any) -> None:
        if not isinstance(summary, (list, tuple)):
            raise IncompatibleSummaryError(f"{self.name} takes a list of MisraGries, not {type(summary).__name__}")
        if len(summary) != self.sketches:
            raise ParameterError(f"the mechanism was made for {self.sketches} sketches, but got {len(summary)}")
        for sketch in summary:
            super().check(sketch)
        names = [name for sketch in summary for name in sketch.lineage]
        if len(set(names)) < len(names):
            raise IncompatibleSummaryError(
                "some sketches counted the same events: one is a copy of another, or was passed twice. An event "
                "must be part of one stream only"
            )

    def entries(self, summary: Any) -> RawCounts:
        return summed_entries(summary)


def summed_entries(sketches: Sequence[MisraGries]) -> RawCounts:
    """The sum of the reduced sketches, in units of 1/(k+1), in an order that does not depend on the streams."""
    total: Counter[Any] = Counter()
    for sketch in sketches:
        total.update(reduced_entries(sketch).to_dict())
    items = sorted(total, key=item_order)
    return RawCounts(items_array(items), np.array([total[item] for item in items], np.int64))
