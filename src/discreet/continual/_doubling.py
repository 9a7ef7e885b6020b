"""Noise without a horizon: epochs of 1, 2, 4, ... ticks have a factor each, and one over epochs adds up their totals.

Where epochs begin is public. An event is in one epoch, and in one total that enters the factor over epochs: a quarter
of rho pays for the totals and the rest for the epochs, however many there are. What an epoch shows of hidden items may
cost 1/((e+1)(e+2)) of delta in epoch e, which adds up to 1 over all epochs there may ever be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

from discreet.continual._base import part_of, under
from discreet.continual._factors import CorrelatedNoise, Factor, lattice_shift
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.noise.source import Integers
from discreet.privacy.calibration.tick_noise import TickNoise

State = dict[str, Integers]

TOTALS_SHARE = 0.25
EPOCHS = 24


def epoch_of(tick: int) -> tuple[int, int]:
    """(e, first tick of e) for a tick from 1: ticks 2^e, ..., 2^(e+1) - 1 are epoch e."""
    epoch = tick.bit_length() - 1
    if epoch >= EPOCHS:
        raise ParameterError(f"without a horizon there are at most 2**{EPOCHS} - 1 ticks")
    return epoch, 2**epoch


def epoch_share(epoch: int) -> float:
    """The part of delta that an epoch may spend on hidden items: 1/2, 1/6, 1/12, ..., all of them together 1."""
    return 1.0 / ((epoch + 1) * (epoch + 2))


class Doubling(Factor):
    """A factor for any number of ticks, whose noise is in whole counts.

    Its sigma is the noise of a single release of the same rho; both parts make their own of it.

    Args:
        make: The factor for this many ticks that may spend this share of rho.
        part: The sigma of the factor, from its share and the sigma of a single release.
    """

    name = "doubling"
    lattice = 1
    sensitivity = 1.0

    def __init__(
        self, make: Callable[[int, float], Factor], part: Callable[[Factor, float, Fraction], Fraction] | None = None
    ) -> None:
        super().__init__(2**EPOCHS - 1)
        self.of_epoch = cache(lambda epoch: make(2**epoch, 1.0 - TOTALS_SHARE))
        self.totals = make(EPOCHS, TOTALS_SHARE)
        self._part = _part if part is None else part

    def sigma(self, rho: float, items: int = 1, changes: int = 1) -> Fraction:
        sigma = super().sigma(rho, items, changes)
        try:
            self.noises(EPOCHS - 1, sigma)  # the longest epoch has the widest noise: not to be found out when it begins
        except ParameterError:
            raise ParameterError(
                "the budget is too small, or max_weight too large, for any number of ticks: noise overflows; give a "
                'horizon, or mechanism="tree" for a histogram'
            ) from None
        return sigma

    def noises(self, epoch: int, sigma: Fraction) -> tuple[CorrelatedNoise, CorrelatedNoise]:
        """What hides an event of that epoch: the noise of the epoch, and that of the totals, which it enters once."""
        inside, over = self.of_epoch(epoch), self.totals
        return (
            CorrelatedNoise(inside, self._part(inside, 1.0 - TOTALS_SHARE, sigma)),
            CorrelatedNoise(over, self._part(over, TOTALS_SHARE, sigma), (epoch + 1,)),
        )

    def tick_noises(self, t: int, sigma: Fraction) -> tuple[tuple[str, TickNoise, int], ...]:
        epoch, first = epoch_of(t)
        inside, over = self.noises(epoch, sigma)
        totals = ("epochs", over.factor.tick_noise(over.sigma), epoch)
        return ((f"epoch {epoch}", inside.factor.tick_noise(inside.sigma), t - first + 1), totals)

    def row_squares(self, t: int) -> float:
        return self.error(t, Fraction(1)) ** 2

    def error(self, t: int, sigma: Fraction) -> float:
        epoch, first = epoch_of(t)
        inside, over = self.noises(epoch, sigma)
        within = inside.factor.error(t - first + 1, inside.sigma)
        return math.hypot(within, over.factor.error(epoch, over.sigma)) if epoch else within

    def tick_share(self, t: int) -> float:
        epoch, first = epoch_of(t)
        return epoch_share(epoch) / first

    def start(self, size: int, tick: int = 0) -> State:
        nothing = np.zeros(size, np.int64)
        run = self.of_epoch(epoch_of(max(tick, 1))[0]).start(size)
        return _joined(run, self.totals.start(size), nothing, nothing.copy())

    def advance(self, state: State, tick: int, sigma: Fraction, source: RandomSource) -> Integers:
        epoch, first = epoch_of(tick)
        inside, over = self.noises(epoch, sigma)
        run, totals, before = part_of("run", state), part_of("epochs", state), state["before"]
        if tick == first and epoch:
            before = over.factor.to_counts(over.factor.advance(totals, epoch, over.sigma, source))
            run = inside.factor.start(len(before))
        noise = before + inside.factor.to_counts(inside.factor.advance(run, tick - first + 1, inside.sigma, source))
        state.clear()
        state.update(_joined(run, totals, before, noise))
        return np.array(noise)

    def join(self, size: int, tick: int, sigma: Fraction, source: RandomSource) -> State:
        if not tick:
            return self.start(size)
        epoch, first = epoch_of(tick)
        inside, over = self.noises(epoch, sigma)
        totals, before = over.factor.join(size, epoch, over.sigma, source), np.zeros(size, np.int64)
        if epoch:
            before = over.factor.to_counts(over.factor.latest(totals))
        run = inside.factor.join(size, tick - first + 1, inside.sigma, source)
        return _joined(run, totals, before, before + inside.factor.to_counts(inside.factor.latest(run)))

    def hiding_shift(self, t: int, sigma: Fraction, probability: float) -> int:
        epoch, first = epoch_of(t)
        inside, over = self.noises(epoch, sigma)
        if not epoch:
            return inside.factor.hiding_shift(1, inside.sigma, probability)
        return lattice_shift([(inside, t - first + 1), (over, epoch)], probability)


def _part(factor: Factor, share: float, sigma: Fraction) -> Fraction:
    """The sigma of a part that may spend this share of the rho of a single release with noise sigma."""
    part = factor.sigma(share / (2.0 * float(sigma) ** 2))
    return max(part, Fraction(1)) if factor.lattice == 1 else part


def _joined(run: State, totals: State, before: Integers, noise: Integers) -> State:
    return {**under("run", run), **under("epochs", totals), "before": before, "noise": noise}
