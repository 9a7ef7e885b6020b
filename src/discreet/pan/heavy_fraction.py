"""The fraction of a universe that occurred at least k times."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import _native
from discreet._data_class import dataclass
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.pan._base import PanEstimate, numbers
from discreet.pan._cells import Sampled
from discreet.pan.cropped_mean import MAX_T, largest_ratio
from discreet.pan.element_law import ElementLaw
from discreet.pan.intervals import count_bound, mean_interval
from discreet.pan.responses import Response
from discreet.pan.settings import Options, Settings
from discreet.pan.window import Window
from discreet.privacy import Budget
from discreet.privacy.checks import positive_number, whole_number, whole_or_none

if TYPE_CHECKING:
    from typing_extensions import Unpack

_GRID = 2**20  # the paper's multiplicities are counted in this part of an occurrence
_WEIGHT = 2**24  # weights of tables are counted in this part of the largest


class HeavyFraction(Sampled):
    """The fraction of the elements that occurred at least k times, up to a factor 1 + rho in k.

    Unit: all occurrences of one element. Guarantee: pure epsilon, for one unannounced intrusion and the output.

    What is estimated is, with b = k and a = floor(k/(1+rho)), the mean of the ramp min(max((n_x - a)/(b - a), 0), 1).
        For every stream it lies between the fraction with n_x >= k and the fraction with n_x > k/(1+rho).
    method="counters" (the default): the ramp is read from the counters and bits of one table together
        (`discreet.pan.window`), for k and any smaller k, and any rho, chosen at the release. With a tiny rho it is the
        fraction with n_x >= k itself. With `max_count`, any k up to it: there are tables with moduli 1, 2, 4, up to
        `max_count`, on disjoint parts of the sample, so nothing is shared. After an announced intrusion the counters
        are drawn anew, and the interval is wide: at rho = 1 from 2 f - 1 to 2 f, where f is what is read.
    method="two_tables" (the default for one k where `announced_intrusions` are planned, or where a = 0 and there is
        but one): (E_b - E_a)/(b - a) from cropped means E_b and E_a of disjoint parts of the sample, in the ratio b : a
        that is best; an element is in one of them, so neither epsilon nor the noise is shared. It has two to three
        times the error, and after an announced intrusion an interval of about [2/3 f, 5/3 f] at rho = 1.
    method="ladder": [PAN] Figure 3: a table for each of t_i = (1+rho)^i up to `max_count`, every element in all of
        them, occurrences counted r_x in [1, 1+rho] times, and the recursion from the top. Two corrections: step 4
        publishes the sum of the intervals from k up, not one interval; and since it depends on every table, so does
        its sensitivity. epsilon_state is shared by the tables. Its tables know nothing of k, which a release chooses.
    Error: sqrt(k/(k-a)) times that of the density with counters, and for L tables between sqrt(L) and sqrt(2 L) times
        at rho = 1; with two tables about (b+a)/(b-a) times; the ladder's grows with the number of tables.
    for_accuracy: the value is within alpha of the ramp, for one k.
    Follows [PAN] section 4, Theorem 4.1.
    Argument: docs/privacy/pan.md.
    """

    family = 123
    name = "pan-private fraction of heavy hitters"
    own = ("k", "rho", "method", "max_count")

    def __init__(
        self,
        universe: object,
        k: int | None = None,
        *,
        budget: Budget,
        rho: float = 1.0,
        method: str | None = None,
        max_count: int | None = None,
        sample_size: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._choose(k, rho, method, max_count, options.get("announced_intrusions", 0))
        self._sample(universe, sample_size)
        if self._method == "two_tables" and self._sample_size < 2:
            raise ParameterError("two tables need a sample of at least 2 elements")
        if self._method == "counters" and self._sample_size < len(self._tables):
            raise ParameterError(f"counters up to this count need a sample of at least {len(self._tables)} elements")
        self._start(budget, options)

    def _draft(self, options: Options, universe: object, k: int, rho: float = 1.0) -> tuple[int, int]:
        self._choose(k, rho, None, None, options.get("announced_intrusions", 0))
        return self._sizes_for(universe)

    def _choose(self, k: object, rho: object, method: object, max_count: object, planned: int = 0) -> None:
        if method not in (None, "two_tables", "counters", "ladder"):
            raise ParameterError(f"method must be 'two_tables', 'counters' or 'ladder', not {method!r}")
        self._k = whole_or_none("k", k, 1, MAX_T)
        self._rho = positive_number("rho", rho)
        if method is None:  # two tables where they are narrower: after announced intrusions, or where they are one
            one_k = max_count is None and self._k is not None
            narrow = one_k and (planned or self._low_of(self._k, self._rho) == 0)
            method = "two_tables" if narrow else "counters"
        self._method = str(method)
        if k is None and (method == "two_tables" or max_count is None):
            raise ParameterError(
                "k is missing; give it, or give max_count (the most an element occurs) to choose k at a release"
            )
        if (max_count is None and method == "ladder") or (max_count is not None and method == "two_tables"):
            raise ParameterError(
                "max_count (the most an element occurs) works with method='counters' or 'ladder', and 'ladder' needs it"
            )
        self._max_count = whole_or_none("max_count", max_count, max(2, self._k or 1), 2**32)
        if method == "ladder" and (self._rho > 1 or self._rho < 1 / 64):
            raise ParameterError(f"rho must be from 1/64 to 1 for method='ladder', not {rho!r}")
        self._most = self._max_count or self._high

    @property
    def k(self) -> int | None:
        """How often a heavy element occurs; None if only a release says it."""
        return self._k

    def release(self, k: int | None = None, *, rho: float | None = None) -> PanEstimate:
        """The estimate, with its interval and guarantee: of the fraction with k occurrences or more, up to 1 + rho.

        `method="counters"` takes any k up to `max_count` and any rho, the ladder any k. Every release spends its own
        part of the budget, whatever it is asked; the interval is that of this one.
        """
        answer: PanEstimate = self._answer(k=k, rho=rho)
        return answer

    def question(self, k: int | None = None, rho: float | None = None) -> dict[str, Any]:
        """The k and rho that a release is asked; by default those that the state was made with."""
        if k is None and self._k is None:
            raise ParameterError("the state has no k of its own; pass release(k=...), how often is heavy")
        asked = whole_number("k", self._k if k is None else k, 1, self._most)
        within = self._rho if rho is None else positive_number("rho", rho)
        if self._method == "two_tables" and asked != self._k:
            raise ParameterError(
                f"the two tables were made for k = {self._k}; a state made with max_count answers for any k up to it"
            )
        if self._method != "counters" and within != self._rho:
            raise ParameterError(f"the tables were made for rho = {self._rho:g}; method='counters' answers for any rho")
        return {"k": asked, "rho": within}

    @property
    def _high(self) -> int:
        """The k that is asked; where none is, the largest that may be."""
        k = self._max_count if self._k is None else self._k
        assert k is not None
        return k

    @property
    def rho(self) -> float:
        """The factor in k that separates the elements that must count from those that must not, less 1."""
        return self._rho

    def element_laws(self) -> list[ElementLaw]:
        """A bit in one of two tables, or one in each table of the ladder, for two multiplicities r_x."""
        if self._method == "two_tables":
            return [self._law_of_bits(modulus) for modulus in (self._high, self._a) if modulus]
        if self._method == "counters":
            return [self._window.law(self, modulus) for modulus in self._tables if modulus >= self._high]
        weights, _ = self._ladder.parts

        def total(bits: tuple[int, ...]) -> tuple[float, ...]:
            return (float(sum(w * bit for w, bit in zip(weights, bits, strict=True))),)

        # The multiplicities are counted in halves here; the law of a table does not depend on how fine they are.
        tables = [tuple(self._bit(round(2 * t), step) for t in self._ladder.rungs) for step in (2, 3)]
        return [ElementLaw(cells, total, (self.noise_scale,)) for cells in tables]

    # ---- two tables ----------------------------------------------------------------------------------------------

    @staticmethod
    def _low_of(k: int | None, rho: float) -> int:
        return math.floor(Fraction(k or 0) / (1 + Fraction(rho)))

    @property
    def _a(self) -> int:
        return self._low_of(self._high, self._rho)

    @property
    def _sizes(self) -> tuple[int, int]:
        """How many of the sampled elements are in the table of b and in that of a; the latter none when a = 0."""
        m, a, b = self._sample_size, self._a, self._high
        if a == 0:
            return m, 0
        of_b = min(max(round(m * b / (a + b)), 1), m - 1)
        return of_b, m - of_b

    def _width(self, settings: Settings, epsilon_state: float, epsilon_output: float) -> float:
        if self._method == "ladder":
            return self._ladder_width(settings, epsilon_state, epsilon_output)
        gap = settings.gap(epsilon_state)
        if self._method == "counters":
            return self._window.bound(gap, 2 / Fraction(epsilon_output), settings.beta)
        if self._sample_size < 2:
            return math.inf
        parts = [(t, m) for t, m in zip((self._high, self._a), self._sizes, strict=True) if m]
        return sum(t * count_bound(m, epsilon_output, settings.beta / len(parts)) / (m * gap) for t, m in parts) / (
            self._high - self._a
        )

    def _build(self, source: RandomSource) -> _native.PanTable:
        if self._method == "ladder":
            return self._build_ladder(source)
        table = self._cells(source, shuffled=True)
        if self._method == "counters":
            moduli = np.repeat(np.array(self._tables, np.uint64), self._window.sizes)
        else:
            moduli = np.repeat(np.array([self._high, max(self._a, 1)], np.uint64), self._sizes)
        table.add_bits(moduli, numbers(1), self._native_source)
        return table

    def _read(self, source: RandomSource) -> PanEstimate:
        if self._method == "ladder":
            return self._read_ladder(source)
        if self._method == "counters":
            return self._estimate(*self._window.read(self, source))
        scale, p0_gap = self.noise_scale, self._chances()
        parts = [(t, m) for t, m in zip((self._high, self._a), self._sizes, strict=True) if m]
        beta, first = self._settings.beta / len(parts), 0
        means = []
        for t, m in parts:
            count = int(self.counted(source, 1, partial(self._table.noisy_ones, 0, first, m))[0])
            ends = (count / m, *mean_interval(count, m, scale, beta))
            means.append([t * (p - p0_gap[0]) / p0_gap[1] for p in ends])
            first += m
        if len(means) == 1:
            means.append([0.0, 0.0, 0.0])
        (e_b, low_b, high_b), (e_a, low_a, high_a) = means
        ratio, width = largest_ratio(self.intrusions), self._high - self._a
        lower, upper = max(low_b, 0.0) - max(high_a, 0.0) * ratio, max(high_b, 0.0) * ratio - max(low_a, 0.0)
        return self._estimate((e_b - e_a) / width, lower / width, upper / width)

    # ---- counters ------------------------------------------------------------------------------------------------

    @property
    def _tables(self) -> tuple[int, ...]:
        """The moduli, from the largest: powers of 2 up to the largest count, or the one k."""
        if self._max_count is None:
            return (self._most,)
        return tuple(2**j for j in range((self._max_count - 1).bit_length(), -1, -1))

    @property
    def _window(self) -> Window:
        """What is read for the k that is asked, of tables that all have about as many entries."""
        each, over = divmod(self._sample_size, len(self._tables))
        sizes = tuple(each + (place < over) for place in range(len(self._tables)))
        return Window(self._tables, sizes, self._a, self._high)

    # ---- the paper's ladder --------------------------------------------------------------------------------------

    @property
    def _ladder(self) -> Ladder:
        assert self._max_count is not None
        return Ladder(self._high, self._rho, self._max_count)

    @property
    def response(self) -> Response:
        """The coins of the bits; the tables of the ladder share epsilon_state."""
        tables = len(self._ladder.rungs) if self._method == "ladder" else 1
        return Response.of(self._settings.response, self._settings.epsilon_state / tables)

    def _build_ladder(self, source: RandomSource) -> _native.PanTable:
        table = self._cells(source)
        # r_x is drawn before the data and is not secret: it is part of the state.
        most = math.floor(_GRID * self._rho)
        steps = (_GRID + source.uniform_integers(most + 1, self._sample_size)).astype(np.uint64)
        for modulus in self._layers:
            table.add_bits(numbers(modulus), steps, self._native_source)
        return table

    def _sensitivity(self, intrusions: int) -> int:
        # An element is in one of the two tables, or counts 1, -1 or 0 in one of those with counters. It is in every
        # table of the ladder, and may move each count by 1.
        if self._method == "ladder":
            return sum(map(abs, self._ladder.parts[0]))
        return 2 if self._method == "counters" else 1

    def _ladder_width(self, settings: Settings, epsilon_state: float, epsilon_output: float) -> float:
        gap = settings.gap(epsilon_state / len(self._ladder.rungs))
        return self._ladder.bound(self._sample_size, gap, epsilon_output, settings.beta)

    def _read_ladder(self, source: RandomSource) -> PanEstimate:
        weights, unit = self._ladder.parts
        total = self.counted(source, 1, partial(self._table.noisy_weighted_ones, weights))
        p0, gap = self._chances()
        value = unit * (total / self._sample_size - p0 * sum(weights)) / gap
        reach = self._ladder.bound(self._sample_size, gap, self.epsilon_output, self._settings.beta)
        if self.intrusions:
            reach = math.inf  # the counters were drawn anew, and no bound is proved for the recursion then
        return self._estimate(value, value - reach, value + reach)

    # ---- states --------------------------------------------------------------------------------------------------

    @property
    def _layers(self) -> list[int]:
        if self._method == "ladder":
            return [round(t * _GRID) for t in self._ladder.rungs]
        return [self._tables[0] if self._method == "counters" else self._high]  # that of the first entries

    def _describe(self) -> str:
        k = self._k if self._max_count is None else f"{self._k}, max_count={self._max_count}"
        return f"{super()._describe()}, k={k}, rho={self._rho:g}, method={self._method!r}"


@dataclass(frozen=True)
class Ladder:
    """[PAN] Figure 3: a table for each of t_i = (1 + rho)^i up to `max_count`, every element in all of them, and
    the heavy fraction as a function of their cropped means."""

    k: int
    rho: float
    max_count: int

    @cached_property
    def rungs(self) -> list[float]:
        """The t_i."""
        top = math.ceil(math.log(self.max_count, 1 + self.rho) - 1e-9)
        return [(1 + self.rho) ** i for i in range(max(top, 1) + 1)]

    @cached_property
    def parts(self) -> tuple[list[int], float]:
        """Whole weights W_j and the unit u with value = u sum_j W_j (K_j/m - p0)/gap."""
        weights = [w * t for w, t in zip(ladder_weights(self.rungs, self.k), self.rungs, strict=True)]
        unit = max(map(abs, weights)) / _WEIGHT
        return [round(w / unit) for w in weights], unit

    def bound(self, m: int, gap: float, epsilon_output: float, beta: float) -> float:
        """Hoeffding's bound for the bits, the multiplicities and the sample of m, and the tail of the noise.

        Given r_x the bits of an element are independent with weights W_j; what they mean is a function of n_x r_x that
        is linear between the rungs and so bounded by its values there.
        """
        weights, unit = self.parts
        rungs = self.rungs
        means = [unit * sum(w * min(s, t) / t for w, t in zip(weights, rungs, strict=True)) for s in [0.0, *rungs]]
        proxy = (unit / gap) ** 2 * sum(w * w for w in weights) + (max(means) - min(means)) ** 2
        noise = unit / gap * sum(map(abs, weights)) * math.log(4 / beta) / epsilon_output
        return math.sqrt(proxy * math.log(4 / beta) / (2 * m)) + noise / m


def ladder_weights(rungs: list[float], k: int, only_one: bool = False) -> list[float]:
    """The output of [PAN] Figure 3 as a linear function of the cropped means e'_0, ..., e'_l.

    `only_one` gives step 4 as printed, the fraction of the single interval from ceil(log k); as corrected it is the
    sum of the intervals from there up.
    """
    last = len(rungs) - 1
    t = [*rungs, rungs[-1]]
    e = np.vstack([np.eye(last + 1), np.eye(last + 1)[-1:]])  # t_(l+1) = t_l
    start = min(math.ceil(math.log(k, 1 + (rungs[1] / rungs[0] - 1)) - 1e-9), last - 1) if k > 1 else 0
    v = np.zeros(last + 1)
    total = np.zeros(last + 1)
    for i in range(last - 1, -1, -1):
        width, above = t[i + 1] - t[i], t[i + 2] - t[i + 1]
        heavier = np.zeros(last + 1)
        if above > 0:
            u = (e[i + 2] - e[i + 1]) - v * above / 2
            heavier = v * width + width / above * u
        v = ((e[i + 1] - e[i]) - heavier) / (width / 2)
        if i == start or (i > start and not only_one):
            total = total + v
    return [float(w) for w in total]
