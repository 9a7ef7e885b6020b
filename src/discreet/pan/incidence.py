"""The fraction of a universe that occurred exactly t times."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import _native
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.pan._base import PanEstimate, numbers
from discreet.pan._cells import SampledCounters
from discreet.pan.element_law import CounterCell, ElementLaw
from discreet.pan.intervals import count_bound, linear_bound, mean_interval
from discreet.pan.responses import ONE, response_weights, square_law, square_threshold
from discreet.pan.settings import Options, Settings
from discreet.privacy import Budget
from discreet.privacy.checks import probability, whole_number, whole_or_none

if TYPE_CHECKING:
    from typing_extensions import Unpack

LARGEST_PRIME = 2**31 - 1  # a prime that leaves 3 when divided by 4
_MOST = 2**30


class Incidence(SampledCounters):
    """The fraction of the elements that occurred exactly t times.

    Unit: all occurrences of one element. Guarantee: pure epsilon, for one unannounced intrusion and the output.

    method="squares" (the default): a counter modulo one prime p = 3 (mod 4), larger than any count, that starts at a
        shift which is a square with higher probability (each value within e^epsilon_state of every other). The squares
        are a difference set: c - t is a square with probability h for the elements that occurred t times and with one
        and the same smaller probability for all others, whatever their counts. So one bit an element is read, as for
        the density, with half its gap, and the error does not grow with p. `max_count` makes p smaller, which is
        only of use with announced intrusions.
    method="primes": [PAN] Figure 4, rebuilt: counters modulo several random primes from the smallest
        4 log2(max_count)/collision of them, each with k-ary randomised response, and the smallest of the fractions
        found at t. The counters of an element share the budget (the paper's theorem does not split it).
    Neither table depends on t, which a release reads: it may be chosen then, release(t=3), any t up to `max_count` (or
        2^30) from one state, and each such release is one of the planned ones.
    Error: squares about twice that of the density. Follows [PAN] section 5, Theorem 5.1.
    for_accuracy: |value - incidence| <= alpha.
    Argument: docs/privacy/pan.md.
    """

    family = 125
    name = "pan-private incidence"
    own = ("t", "method", "max_count", "primes", "collision")

    def __init__(
        self,
        universe: object,
        t: int | None = None,
        *,
        budget: Budget,
        method: str = "squares",
        max_count: int | None = None,
        primes: int = 5,
        collision: float = 0.25,
        sample_size: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._choose(t, method, max_count, primes, collision)
        self._moduli = [_squares_prime(self._max_count)]
        if self._method == "primes":  # they are drawn with the state; until then, the largest there are
            self._moduli = [self._pool[-1]] * self._primes
        self._chooses_share = options.get("output_share") is None
        self._sample(universe, sample_size)
        self._start(budget, options)

    def _draft(self, options: Options, universe: object, t: int) -> tuple[int, int]:
        self._choose(t, "squares", None, 5, 0.25)
        self._moduli = [LARGEST_PRIME]
        return self._sizes_for(universe)

    def _choose(self, t: object, method: object, max_count: object, primes: object, collision: object) -> None:
        self._t = whole_or_none("t", t, 0, _MOST)
        if method not in ("squares", "primes"):
            raise ParameterError(f"method must be 'squares' or 'primes', not {method!r}")
        self._method = str(method)
        self._max_count = whole_or_none("max_count", max_count, max(self._t or 0, 2), _MOST)
        if method == "primes" and max_count is None:
            raise ParameterError("method='primes' needs max_count: the most an element occurs")
        self._primes = whole_number("primes", primes, 1, 64)
        self._collision = probability("collision", collision)

    @property
    def t(self) -> int | None:
        """The number of occurrences that is looked for; None if only a release says it."""
        return self._t

    def release(self, t: int | None = None) -> PanEstimate:
        """The estimate, with its interval and guarantee: of the fraction with exactly t occurrences.

        Every release spends its own part of the budget, whatever it is asked; the interval is that of this one.
        """
        answer: PanEstimate = self._answer(t=t)
        return answer

    def question(self, t: int | None = None) -> dict[str, Any]:
        """The t that a release is asked; by default the one that the state was made with."""
        if t is None and self._t is None:
            raise ParameterError("the state has no t of its own; pass release(t=...), how often exactly")
        return {"t": whole_number("t", self._t if t is None else t, 0, self._max_count or _MOST)}

    @property
    def _target(self) -> int:
        assert self._t is not None  # a release has asked
        return self._t

    @property
    def moduli(self) -> list[int]:
        """What the counters run modulo; drawn before the data, public."""
        return list(self._moduli)

    def shift_law_at(self, epsilon_state: Fraction) -> list[Fraction]:
        """For method="squares" and a small prime."""
        prime = self._moduli[0]
        if self._method != "squares" or prime > 4096:
            raise ParameterError("the law is listed for method='squares' and a max_count of at most 4000")
        return square_law(prime, epsilon_state)

    def element_laws(self) -> list[ElementLaw]:
        """Counters of which one value is counted; squares, and after an announced intrusion zeros too.

        Every value is listed: for a max_count of at most 60, or primes whose product is at most 256.
        """
        t, moduli = self._t or 0, self._moduli
        if math.prod(moduli) > (256 if self._method == "primes" else 64):
            raise ParameterError("give the incidence estimator a max_count of at most 60, or two small primes")
        if self._method == "primes":
            weights = [self.prime_weights(modulus, self._settings.epsilon_state) for modulus in moduli]
            cells = tuple(CounterCell(tuple(Fraction(weight, ONE) for weight in each)) for each in weights)
            at = [t % modulus for modulus in moduli]
            scales = (self.noise_scale,) * len(moduli)
            return [ElementLaw(cells, lambda x: tuple(float(a == b) for a, b in zip(x, at, strict=True)), scales)]
        (prime,), cell, scale = moduli, CounterCell(tuple(self.shift_law())), self.noise_scale
        squares = {i * i % prime for i in range(1, prime)}
        return [
            ElementLaw((cell,), lambda x: (float((x[0] - t) % prime in squares),), (scale,)),
            ElementLaw((cell,), lambda x: (float((x[0] - t) % prime in squares), float(x[0] == t)), (2 * scale,) * 2),
        ]

    @property
    def _pool(self) -> list[int]:
        """What random primes are drawn from."""
        return _smallest_primes(math.ceil(4 * math.log2(self._max_count or 2) / self._collision))

    def _build(self, source: RandomSource) -> _native.PanTable:
        if self._method == "primes":
            pool = self._pool
            self._moduli = [pool[int(place)] for place in source.uniform_integers(len(pool), self._primes)]
            if self._chooses_share:
                self._settings = self._settings.narrowest(self._width)
        table = self._cells(source)
        if self._method == "squares":
            prime = self._moduli[0]
            threshold = square_threshold(prime, self._settings.epsilon_state)
            table.add_square_counters(numbers(prime), numbers(1), threshold, self._native_source)
            return table
        for modulus in self._moduli:
            weights = self.prime_weights(modulus, self._settings.epsilon_state)
            sums = np.array([weights[0] + i * weights[1] for i in range(modulus - 1)], np.uint64)
            table.add_counters(numbers(modulus), numbers(1), sums, self._native_source)
        return table

    def _width(self, settings: Settings, epsilon_state: float, epsilon_output: float) -> float:
        if self._method == "squares":
            levels = square_levels(self._moduli[0], Fraction(epsilon_state))
            if settings.announced_intrusions == 0:
                gap = float(levels[1] - levels[0])
                return count_bound(self._sample_size, epsilon_output, settings.beta) / (self._sample_size * gap)
            return self._squares_reach(Fraction(epsilon_state), settings.announced_intrusions, epsilon_output, settings)
        return max(
            self._prime_reaches(Fraction(epsilon_state), settings.announced_intrusions, epsilon_output, settings)
        )

    def _sensitivity(self, intrusions: int) -> int:
        if self._method == "primes":
            return 2 * len(self._moduli)  # every table may change in two residues
        # Squares are counted; after an announced intrusion zeros too, and an element may move from one to the other.
        return 2 if intrusions else 1

    def _read(self, source: RandomSource) -> PanEstimate:
        if self._method == "primes":
            return self._read_primes(source)
        if self.intrusions:
            return self._read_rerandomised(source)
        m, scale = self._sample_size, self.noise_scale
        count = int(self.counted(source, 1, partial(self._table.noisy_squares, 0, self._target))[0])
        low, high = (float(level) for level in square_levels(self._moduli[0], self._settings.epsilon_state))
        ends = (count / m, *mean_interval(count, m, scale, self._settings.beta))
        value, lower, upper = ((p - low) / (high - low) for p in ends)
        return self._estimate(value, lower, upper)

    # ---- squares after announced intrusions -------------------------------------------------------------------------

    def _squares_reach(self, epsilon_state: Fraction, rounds: int, epsilon_output: float, settings: Settings) -> float:
        at_square, at_zero, otherwise = square_filter(self._moduli[0], epsilon_state, rounds)
        log, m, prime = math.log(4 / settings.beta), self._sample_size, self._moduli[0]
        values = (at_square, at_zero, otherwise)
        # Bernstein; zero is hit with probability at most e^epsilon/p.
        v = max(at_square**2, otherwise**2) + at_zero**2 * min(1.0, math.exp(min(float(epsilon_state), 50)) / prime)
        sample = math.sqrt(2 * v * log / m) + (max(values) - min(values)) * log / (3 * m)
        weights = [at_square - otherwise, at_zero - otherwise]
        return sample + linear_bound(weights, 2 / Fraction(epsilon_output), settings.beta / 2) / m

    def _read_rerandomised(self, source: RandomSource) -> PanEstimate:
        m = self._sample_size
        squares, zeros = map(int, self.counted(source, 2, partial(self._table.noisy_squares, 0, self._target)))
        at_square, at_zero, otherwise = square_filter(self._moduli[0], self._settings.epsilon_state, self.intrusions)
        value = (squares * at_square + zeros * at_zero + (m - squares - zeros) * otherwise) / m
        reach = self._squares_reach(self._settings.epsilon_state, self.intrusions, self.epsilon_output, self._settings)
        return self._estimate(value, value - reach, value + reach)

    # ---- the paper's primes ------------------------------------------------------------------------------------------

    def prime_weights(self, modulus: int, epsilon_state: Fraction) -> list[int]:
        """Of one counter's shift; the counters of an element share epsilon_state."""
        return response_weights(modulus, epsilon_state / len(self._moduli))

    def _prime_gap(self, modulus: int, epsilon_state: Fraction, rounds: int) -> tuple[float, float]:
        """P[entry = t | count != t] and how much more it is for count = t (mod the prime)."""
        weights = self.prime_weights(modulus, epsilon_state)
        gap = ((weights[0] - weights[1]) / ONE) ** (1 + rounds)
        return (1 - gap) / modulus, gap

    def _prime_reaches(
        self, epsilon_state: Fraction, rounds: int, epsilon_output: float, settings: Settings
    ) -> list[float]:
        """How close each prime's fraction is to the fraction of counts that are t modulo it, all at once."""
        tables, m, reaches = len(self._moduli), self._sample_size, []
        log = math.log(8 * tables / settings.beta)
        for modulus in self._moduli:
            base, gap = self._prime_gap(modulus, epsilon_state, rounds)
            # The indicator of entry = t has variance at most base + gap and range 1.
            sample = (math.sqrt(2 * (base + gap) * log / m) + log / (3 * m)) / gap
            noise = linear_bound([1 / gap], 2 * tables / Fraction(epsilon_output), settings.beta / (4 * tables)) / m
            reaches.append(sample + noise)
        return reaches

    def _read_primes(self, source: RandomSource) -> PanEstimate:
        s, m, tables = self._settings, self._sample_size, len(self._moduli)
        found = []
        for layer, modulus in enumerate(self._moduli):
            residues = self.counted(source, modulus, partial(self._table.noisy_residues, layer))
            count = int(residues[self._target % modulus])
            base, gap = self._prime_gap(modulus, s.epsilon_state, self.intrusions)
            found.append((count / m - base) / gap)
        reaches = self._prime_reaches(s.epsilon_state, self.intrusions, self.epsilon_output, s)
        # Collisions only add: the fraction is below every one found. They add more than the bound allowed for to one
        # prime with probability at most 1/2 when it is collision/2, by Markov; to all with 2^-primes.
        extra = self._collision / 2 if 2.0**-tables <= s.beta / 2 else 1.0
        value = min(found)
        lower = min(f - reach for f, reach in zip(found, reaches, strict=True)) - extra
        upper = min(f + reach for f, reach in zip(found, reaches, strict=True))
        return self._estimate(value, lower, upper)

    # ---- states ------------------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        return {**super().parameters, "moduli": self._moduli}

    def _adopt(self, parameters: dict[str, Any]) -> None:
        super()._adopt(parameters)
        moduli = parameters["moduli"]
        if not isinstance(moduli, list) or not moduli:
            raise ParameterError("no moduli")
        self._moduli = [whole_number("modulus", modulus, 2, LARGEST_PRIME) for modulus in moduli]
        if self._method == "squares" and self._moduli != [_squares_prime(self._max_count)]:
            raise ParameterError("not the prime of this t")

    @property
    def _layers(self) -> list[int]:
        return self._moduli

    def _describe(self) -> str:
        return f"{super()._describe()}, t={self._t}, method={self._method!r}"


def square_levels(prime: int, epsilon_state: Fraction) -> tuple[Fraction, Fraction]:
    """P[counter - t is a nonzero square] for a count other than t, and for t.

    With A the squares, |A| = (p-1)/2 and |A ∩ (A+d)| = (p-3)/4 for every d != 0: the count t gives P[shift in A], any
    other l |A| + (h-l) (p-3)/4.
    """
    chance = Fraction(square_threshold(prime, epsilon_state), ONE)
    squares, others = (prime - 1) // 2, (prime + 1) // 2
    h, low = chance / squares, (1 - chance) / others
    return low * squares + (h - low) * Fraction(prime - 3, 4), chance


def square_filter(prime: int, epsilon_state: Fraction, rounds: int) -> tuple[float, float, float]:
    """The function g of counter - t, at squares, at 0 and elsewhere, whose mean is 1 for the count t and 0 for others.

    The shift's law is s + d chi - d [0], with chi the Legendre symbol, so its transform at f != 0 is
    d (i sqrt(p) chi(f) - 1). With z = (d (i sqrt(p) - 1))^-(1 + rounds) the inverse of the transform is z or its
    conjugate, by the sign of chi(f), and transforming back gives (1 - Re z + p Re z [0] - Im z sqrt(p) chi) / p.
    """
    chance = square_threshold(prime, epsilon_state) / ONE
    h, low = chance / ((prime - 1) // 2), (1 - chance) / ((prime + 1) // 2)
    root = math.sqrt(prime)
    z = ((h - low) / 2 * complex(-1, root)) ** -(1 + rounds)
    flat, chi = (1 - z.real) / prime, -z.imag * root / prime
    return flat + chi, flat + z.real, flat - chi


def _squares_prime(max_count: int | None) -> int:
    """The smallest prime = 3 (mod 4) above the largest count; the largest there is when that is not known."""
    if max_count is None:
        return LARGEST_PRIME
    candidate = max(max_count, 6) + 1
    candidate += (3 - candidate) % 4
    while any(candidate % d == 0 for d in range(3, math.isqrt(candidate) + 1, 2)):
        candidate += 4
    return candidate


def _smallest_primes(count: int) -> list[int]:
    limit = max(16, 2 * int(count * (math.log(count + 2) + math.log(math.log(count + 3) + 1))))
    sieve = np.ones(limit, bool)
    sieve[:2] = False
    for i in range(2, math.isqrt(limit) + 1):
        if sieve[i]:
            sieve[i * i :: i] = False
    return [int(prime) for prime in np.flatnonzero(sieve)[:count]]
