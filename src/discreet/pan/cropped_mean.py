"""The mean over a universe of how often its elements occurred, each counted at most t times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet._data_class import replace
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.pan._base import PanEstimate
from discreet.pan._cells import SampledBits
from discreet.pan.element_law import ElementLaw
from discreet.pan.settings import Options
from discreet.pan.window import Window
from discreet.privacy import Budget
from discreet.privacy.checks import whole_number

if TYPE_CHECKING:
    from typing_extensions import Unpack

MAX_T = 2**40


def largest_ratio(intrusions: int) -> float:
    """How much larger min(n, t) can be than t (1 - prod(1 - min(n_e, t)/t)) over the epochs e between intrusions.

    The worst case is t occurrences spread evenly: 1 / (1 - (1 - 1/E)^E), at most e/(e-1).
    """
    epochs = intrusions + 1
    return 1 / (1 - (1 - 1 / epochs) ** epochs)


class CroppedMean(SampledBits):
    """The mean over the universe of min(n_x, t), where n_x is how often x occurred.

    Unit: all occurrences of one element. Guarantee: pure epsilon, for one unannounced intrusion and the output.
    State: for each of m sampled elements a bit from D0 and a counter that starts anywhere in 0..t-1; each occurrence
        moves the counter by 1 modulo t, and when it passes 0 the bit is drawn from D1.
    Noise: as for the density, Z on the number of ones before rescaling by t/(m gap). The paper's t/(epsilon m) after
        rescaling ([PAN] Figure 2) is too little.
    Error: t times that of the density. Follows [PAN] section 3.1, Figure 2 and Theorem 3.3.
    for_accuracy: |value - cropped mean| <= alpha t.
    release(t=s) with s < t asks the same state for min(n_x, s) (`discreet.pan.window`). The error is sqrt(t/s) times
    that
        of a state made for s.
    After an announced intrusion the counters are drawn anew, and every epoch between intrusions crops by itself: the
        interval is widened by `largest_ratio` so that it covers the cropped mean itself. Argument: docs/privacy/pan.md.
    """

    family = 122
    name = "pan-private cropped mean"
    own = ("t",)

    def __init__(
        self, universe: object, t: int, *, budget: Budget, sample_size: int | None = None, **options: Unpack[Options]
    ) -> None:
        self._choose(t)
        self._sample(universe, sample_size)
        self._start(budget, options)

    def _choose(self, t: object) -> None:
        self._t = self._modulus = whole_number("t", t, 1, MAX_T)

    def _draft(self, options: Options, universe: object, t: int) -> tuple[int, int]:
        self._choose(t)
        return self._sizes_for(universe)

    @property
    def t(self) -> int:
        """Where an element's count is cropped."""
        return self._t

    def release(self, t: int | None = None) -> PanEstimate:
        """The estimate, with its interval and guarantee: of min(n_x, t), for a t up to the one of the state.

        Every release spends its own part of the budget, whatever it is asked. A smaller t cannot be answered after an
        announced intrusion: the counters were drawn anew.
        """
        answer: PanEstimate = self._answer(t=t)
        return answer

    def question(self, t: int | None = None) -> dict[str, Any]:
        """The t that a release is asked; by default the one of the state."""
        question = self._asked_before({"t": self._t if t is None else t})
        if question["t"] < self._modulus and self.intrusions:
            raise ParameterError("after an announced intrusion, only the t that the state was made with can be used")
        return question

    def _asked_before(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"t": whole_number("t", asked["t"], 1, self._modulus)}

    def _sensitivity(self, intrusions: int) -> int:
        # Below a smaller t an entry counts 1, -1 or 0.
        return 1 if self._t == self._modulus else 2

    def element_laws(self) -> list[ElementLaw]:
        """A bit that is drawn at every t-th occurrence, and its sign below half of t."""
        half = Window((self._modulus,), (1,), 0, self._modulus // 2)
        signs = [half.law(self, self._modulus)] if self._modulus > 1 else []
        return [self._law_of_bits(self._modulus), *signs]

    def _read(self, source: RandomSource) -> PanEstimate:
        if self._t < self._modulus:
            below = Window((self._modulus,), (self._sample_size,), 0, self._t).read(self, source)
            value, lower, upper = (self._t * fraction for fraction in below)
            return self._estimate(value, lower, upper, float(self._t))
        estimate = super()._read(source)
        upper = min(estimate.upper * largest_ratio(self.intrusions), float(self._t))
        return replace(estimate, upper=upper)

    def _describe(self) -> str:
        return f"{super()._describe()}, t={self._t}"
