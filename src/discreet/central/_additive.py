"""Noise on whole numbers of which one unit moves a known number by a known height: the smaller of two laws."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from discreet.errors import ParameterError
from discreet.noise.source import MAX_SCALE
from discreet.privacy import Budget
from discreet.privacy.calibration.gaussian import discrete_gaussian_sigma, discrete_gaussian_sigma_any
from discreet.privacy.calibration.zcdp import zcdp_sigma
from discreet.privacy.checks import whole_number
from discreet.privacy.rounding import rounded_up
from discreet.releases.error_model import Noise

if TYPE_CHECKING:
    from discreet.privacy.accounting import Charge

A_PERSON = "a value of the user column is a person"
"""What promises to people rest on where a column says whose a row is."""
PUBLIC_GROUPS = "the list of groups is public: it was not made from the data"
"""What answers of listed groups rest on."""


@lru_cache(maxsize=256)
def additive_noise(budget: Budget, changes: int = 1, height: int = 1, draws: int = 1) -> Noise:
    """The noise on each of `draws` numbers; a unit moves at most `changes` of them by at most `height` each.

    epsilon: discrete Laplace of scale changes * height/epsilon, since the l1-distance is at most changes * height.
    rho: discrete Gaussian with sigma^2 = changes * height^2/(2 rho).
    (epsilon, delta): that Laplace noise, or discrete Gaussian noise of the smallest sigma for this delta (exactly for
    height 1, by rho for more), whichever has the smaller variance. The choice is made from these parameters alone.
    """
    m, h = whole_number("changes", changes), whole_number("height", height)
    if budget.rho is not None:
        return _checked(Noise("gaussian", zcdp_sigma(m * h * h, budget.rho), draws))
    assert budget.epsilon is not None
    laplace = Noise("laplace", m * h / Fraction(budget.epsilon), draws)
    if budget.delta == 0.0:
        return _checked(laplace)
    if h == 1:
        sigma = discrete_gaussian_sigma(budget.epsilon, budget.delta, changes=m)
    else:
        sigma = discrete_gaussian_sigma_any(budget.epsilon, budget.delta, h * math.sqrt(m))
    return _checked(laplace if laplace.variance <= sigma * sigma else Noise("gaussian", Fraction(sigma), draws))


def additive_cost(law: str, scale: Fraction, changes: int = 1, height: int = 1) -> Charge | None:
    """The rho of Gaussian noise, changes * height^2/(2 sigma^2) exactly, rounded up; None of Laplace noise.

    Where an account adds up rhos: noise of a small (epsilon, delta) has much less of it than any mechanism of that
    epsilon may have, and none of the delta.
    """
    if law != "gaussian":
        return None
    from discreet.privacy.accounting import Charge

    return Charge(None, rho=rounded_up(changes * height**2 / (2 * Fraction(scale) ** 2)))


def _checked(noise: Noise) -> Noise:
    if noise.scale > MAX_SCALE:
        raise ParameterError("the budget is too small: the noise would have a scale above 2**50")
    return noise
