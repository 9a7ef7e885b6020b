"""The fractions of a universe that occurred 0, 1, ..., k - 1 times modulo k."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass
from discreet.errors import CorruptStateError, ParameterError
from discreet.noise import RandomSource
from discreet.pan._base import numbers
from discreet.pan._cells import SampledCounters
from discreet.pan.element_law import CounterCell, ElementLaw
from discreet.pan.intervals import linear_bound
from discreet.pan.responses import ONE, paper_weights, response_weights, square_law, square_threshold
from discreet.pan.settings import Options, Settings
from discreet.privacy import Budget, Guarantee
from discreet.privacy.checks import whole_number
from discreet.releases.simplex import on_simplex

if TYPE_CHECKING:
    from typing_extensions import Unpack

Vector = npt.NDArray[np.float64]
MAX_K = 4096
_SHIFTS = ("auto", "response", "squares", "paper")


@dataclass(frozen=True)
class ModularEstimate:
    """Fractions by residue: `values` sum to 1 and none is negative; all of `lower` and `upper` hold at once."""

    values: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    unbiased: tuple[float, ...]
    guarantee: Guarantee

    @property
    def is_private(self) -> bool:
        """Whether the numbers may be published."""
        return not self.guarantee.seeded


class ModularIncidence(SampledCounters):
    """For each residue i, the fraction of elements whose number of occurrences is i modulo k.

    Unit: all occurrences of one element. Guarantee: pure epsilon, for one unannounced intrusion and the output.
    State: for each of m sampled elements a counter modulo k that starts at a random shift; no residue is more than
        e^epsilon_state times as likely as another.
    shift="response": 0 with the largest probability, the others equal (k-ary randomised response).
    shift="squares": the squares modulo a prime k = 3 (mod 4) more likely than the others. They are a difference set, so
        the spectrum is flat as for "response" but of size gap/sqrt(k) instead of about epsilon/k.
    shift="paper": proportional to e^(-epsilon i/(k-1)) ([PAN] Figure 5). shift="auto" takes the best of the first two.
    Noise: one element moves one entry from one residue to another, l1-sensitivity 2 on the counts: discrete Laplace of
        scale 2/epsilon_output on each (the paper's proof says 1/m, where it is 2/m).
    solver="fft": P[entry = i | count = j] = shift((i - j) mod k) is circulant (the paper prints i + j); it is
        inverted by FFT and the result projected on the simplex. solver="linear_program": the nonnegative fractions that
        sum to 1 and come closest to the noisy counts in the largest deviation, as the paper's program does.
    for_accuracy: every `unbiased` fraction is within alpha. Those of `values` are then within 2 alpha: projecting
        shifts all by the same amount, which is at most alpha.
    Follows [PAN] section 5.1, Theorem 5.2.
    Argument: docs/privacy/pan.md.
    """

    family = 124
    name = "pan-private modular incidence"
    own = ("k", "shift", "solver")

    def __init__(
        self,
        universe: object,
        k: int,
        *,
        budget: Budget,
        shift: str = "auto",
        solver: str = "fft",
        sample_size: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._choose(k, shift, solver)
        self._sample(universe, sample_size)
        self._start(budget, options)

    def _draft(self, options: Options, universe: object, k: int) -> tuple[int, int]:
        self._choose(k, "auto", "fft")
        return self._sizes_for(universe)

    def _choose(self, k: object, shift: object, solver: object) -> None:
        self._k = self._modulus = whole_number("k", k, 2, MAX_K)
        if shift not in _SHIFTS:
            raise ParameterError(f"shift must be one of {', '.join(_SHIFTS)}, not {shift!r}")
        if solver not in ("fft", "linear_program"):
            raise ParameterError(f"solver must be 'fft' or 'linear_program', not {solver!r}")
        if shift == "squares" and not _has_squares(self._k):
            raise ParameterError(f"shift='squares' needs a prime k that leaves 3 when divided by 4, not {k!r}")
        self._shift, self._solver = str(shift), str(solver)

    @property
    def k(self) -> int:
        """The modulus."""
        return self._k

    @property
    def shift(self) -> str:
        """Which law the initial shifts have."""
        return self._law(self._settings.epsilon_state)[0]

    def element_laws(self) -> list[ElementLaw]:
        """A counter, counted in the residue it is at."""
        k = self._k
        cell = CounterCell(tuple(self.shift_law()))
        return [ElementLaw((cell,), lambda at: tuple(float(at[0] == i) for i in range(k)), (self.noise_scale,) * k)]

    # ---- the shift -----------------------------------------------------------------------------------------------

    def _law(self, epsilon_state: Fraction) -> tuple[str, list[int]]:
        """Which shift, and its probabilities in units of 2^-64 (for squares: of the squares together, rounded)."""
        k = self._k
        if self._shift == "paper":
            return "paper", paper_weights(k, epsilon_state)
        weights = response_weights(k, epsilon_state)
        if self._shift == "response" or not _has_squares(k):
            return "response", weights
        threshold = square_threshold(k, epsilon_state)
        if self._shift == "auto":
            kept = (weights[0] - weights[1]) / ONE
            apart = (threshold / ((k - 1) // 2) - (ONE - threshold) / ((k + 1) // 2)) / ONE * math.sqrt(k + 1) / 2
            if kept >= apart:
                return "response", weights
        return "squares", [threshold]

    def shift_law_at(self, epsilon_state: Fraction) -> list[Fraction]:
        which, weights = self._law(epsilon_state)
        if which != "squares":
            return [Fraction(weight, ONE) for weight in weights]
        return square_law(self._k, epsilon_state)

    def _inverse(self, epsilon_state: Fraction, rounds: int) -> tuple[Vector, Vector]:
        """The law of the total shift after `rounds` announced intrusions, and the filter that undoes it."""
        spectrum = np.fft.fft(np.array([float(p) for p in self.shift_law_at(epsilon_state)]))
        if np.abs(spectrum).min() < 2.0**-44:  # what is left is rounding
            raise ParameterError("epsilon is too small: the shifts cannot be undone")
        return np.fft.ifft(spectrum ** (1 + rounds)).real, np.fft.ifft(spectrum ** -(1 + rounds)).real

    def _build(self, source: RandomSource) -> _native.PanTable:
        table = self._cells(source)
        which, weights = self._law(self._settings.epsilon_state)
        if which == "squares":
            table.add_square_counters(numbers(self._k), numbers(1), weights[0], self._native_source)
        else:
            sums = np.array([sum(weights[: i + 1]) for i in range(self._k - 1)], np.uint64)
            table.add_counters(numbers(self._k), numbers(1), sums, self._native_source)
        return table

    # ---- the output ----------------------------------------------------------------------------------------------

    def _sensitivity(self, intrusions: int) -> int:
        return 2  # an entry leaves one residue and enters another

    def _reach(self, epsilon_state: Fraction, rounds: int, epsilon_output: float, beta: float) -> float:
        """All fractions at once are this close to the truth: Bernstein for the sample and the shifts, and the noise.

        An entry contributes g(entry - j) to fraction j, with second moment at most v = max_d sum_i law(i) g(i + d)^2;
        sampling without replacement only helps.
        """
        law, g = self._inverse(epsilon_state, rounds)
        v = float(np.fft.ifft(np.conj(np.fft.fft(law)) * np.fft.fft(g**2)).real.max())
        m, log = self._sample_size, math.log(4 * self._k / beta)
        sample = math.sqrt(2 * v * log / m) + float(np.ptp(g)) * log / (3 * m)
        return sample + linear_bound(g.tolist(), 2 / Fraction(epsilon_output), beta / (2 * self._k)) / m

    def _width(self, settings: Settings, epsilon_state: float, epsilon_output: float) -> float:
        return self._reach(Fraction(epsilon_state), settings.announced_intrusions, epsilon_output, settings.beta)

    def _read(self, source: RandomSource) -> ModularEstimate:
        counts = self.counted(source, self._k, lambda noise: self._table.noisy_residues(0, noise))
        s = counts / self._sample_size
        law, g = self._inverse(self._settings.epsilon_state, self.intrusions)
        # f_j = sum_i g(j - i) s_i: a circular convolution.
        unbiased = np.fft.ifft(np.fft.fft(g) * np.fft.fft(s)).real
        reach = self._reach(self._settings.epsilon_state, self.intrusions, self.epsilon_output, self._settings.beta)
        values = on_simplex(unbiased) if self._solver == "fft" else _linear_program(law, s)
        lower, upper = np.clip(unbiased - reach, 0, 1), np.clip(unbiased + reach, 0, 1)
        return self._modular(values, np.minimum(lower, values), np.maximum(upper, values), unbiased)

    def _modular(self, *vectors: Any) -> ModularEstimate:
        values, lower, upper, unbiased = (tuple(float(x) for x in vector) for vector in vectors)
        return ModularEstimate(values, lower, upper, unbiased, self.guarantee)

    # ---- states --------------------------------------------------------------------------------------------------

    def _pack(self, estimate: ModularEstimate) -> dict[str, Any]:
        return {name: list(getattr(estimate, name)) for name in ("values", "lower", "upper", "unbiased")}

    def _unpack(self, packed: dict[str, Any]) -> ModularEstimate:
        vectors = [packed[name] for name in ("values", "lower", "upper", "unbiased")]
        if any(len(vector) != self._k for vector in vectors):
            raise CorruptStateError("state has a release for another k")
        return self._modular(*vectors)

    def _describe(self) -> str:
        return f"{super()._describe()}, k={self._k}"


def _has_squares(k: int) -> bool:
    return k % 4 == 3 and k > 3 and all(k % d for d in range(3, math.isqrt(k) + 1, 2))


def _linear_program(law: Vector, s: Vector) -> Vector:
    """Fractions f >= 0 with sum 1 that make max_i |(N f)_i - s_i| smallest."""
    from scipy.linalg import circulant
    from scipy.optimize import linprog

    k, n = len(s), circulant(law)
    slack = np.ones((k, 1))
    result = linprog(
        np.append(np.zeros(k), 1.0),
        A_ub=np.block([[n, -slack], [-n, -slack]]),
        b_ub=np.concatenate([s, -s]),
        A_eq=np.append(np.ones(k), 0.0)[None, :],
        b_eq=[1.0],
    )
    f: Vector = np.clip(result.x[:k], 0, 1)
    return f
