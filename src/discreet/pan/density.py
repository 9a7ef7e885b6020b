"""The fraction of a universe that was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.pan._cells import SampledBits
from discreet.pan.settings import Options
from discreet.privacy import Budget

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Density(SampledBits):
    """The fraction of the elements of a universe that occurred at least once.

    Unit: all occurrences of one element. Guarantee: pure epsilon, for one unannounced intrusion and the output.
    State: a bit for each of m sampled elements, drawn from D0 at the start and from D1 whenever the element occurs.
    Noise: K + Z with K the number of ones and Z discrete Laplace of scale 1/epsilon_output, before rescaling: one
        element moves K by 1, and (K/m - p0)/gap by 1/(m gap). The paper adds the noise after rescaling ([PAN] section
        3), which loses far more than it claims.
    Error: at most count_bound(m)/(m gap) except with probability beta; gap = tanh(epsilon_state/2).
    for_accuracy: |value - density| <= alpha.
    Follows [PAN] section 3 and Theorem 3.2 (its Figure 1, rebuilt), with the tight pair of coins by default.
    Argument: docs/privacy/pan.md.
    """

    family = 120
    name = "pan-private density"

    def __init__(
        self, universe: object, *, budget: Budget, sample_size: int | None = None, **options: Unpack[Options]
    ) -> None:
        self._sample(universe, sample_size)
        self._start(budget, options)

    def _draft(self, options: Options, universe: object) -> tuple[int, int]:
        return self._sizes_for(universe)
