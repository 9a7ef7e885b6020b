"""How much privacy may be spent: pure (epsilon), approximate (epsilon, delta) or zero-concentrated (rho)."""

from __future__ import annotations

import math
import sys
import warnings
from fractions import Fraction
from numbers import Real
from typing import Any

from discreet._data_class import dataclass
from discreet.errors import ParameterError
from discreet.privacy.checks import positive_number

LARGEST_EPSILON = 20.0
"""Above, anyone who sees a release may be sure of who was in the data: odds grow by up to e^20, half a billion."""
LARGEST_DELTA = 1e-3
"""Above, one person in a thousand may be revealed in full."""


class WeakBudgetWarning(UserWarning):
    """A budget was given that promises next to nothing."""


@dataclass(frozen=True, init=False)
class Budget:
    """A privacy budget.

    ``Budget(epsilon=1.0)`` is pure, ``Budget(epsilon=1.0, delta=1e-9)`` approximate and
    ``Budget.zcdp(rho=0.1)`` zero-concentrated. A zCDP budget has ``epsilon`` None; the others have ``rho`` None.
    Smaller epsilon is stronger; 1 is a common limit. Delta is the chance that the promise fails: keep it far below
    1 / people. One that promises next to nothing gives a `WeakBudgetWarning` that says what it means.
    """

    epsilon: float | None
    delta: float
    rho: float | None

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        if isinstance(delta, bool) or not isinstance(delta, Real) or not (0.0 <= float(delta) < 1.0):
            raise ParameterError(f"delta must be at least 0 and less than 1, not {delta!r}")
        object.__setattr__(self, "epsilon", positive_number("epsilon", epsilon))
        object.__setattr__(self, "delta", float(delta))
        object.__setattr__(self, "rho", None)
        if epsilon > LARGEST_EPSILON or delta > LARGEST_DELTA:
            self._warn_if_weak()

    @classmethod
    def zcdp(cls, rho: float) -> Budget:
        """A budget of rho-zCDP (zero-concentrated differential privacy)."""
        budget = object.__new__(cls)
        object.__setattr__(budget, "epsilon", None)
        object.__setattr__(budget, "delta", 0.0)
        object.__setattr__(budget, "rho", positive_number("rho", rho))
        budget._warn_if_weak()
        return budget

    @property
    def is_pure(self) -> bool:
        """Whether the budget is epsilon alone."""
        return self.rho is None and self.delta == 0.0

    @property
    def is_zcdp(self) -> bool:
        """Whether the budget is given as rho."""
        return self.rho is not None

    @property
    def weakness(self) -> str | None:
        """What a budget means that promises next to nothing; None for any other."""
        said = []
        epsilon, delta = self.epsilon, self.delta
        given = f"epsilon={epsilon:g}" if epsilon is not None else ""
        if self.rho is not None and self.rho > 1.0:
            from discreet.privacy.calibration.zcdp import zcdp_epsilon

            epsilon = zcdp_epsilon(self.rho, LARGEST_DELTA)
            given = f"rho={self.rho:g}, which is epsilon={epsilon:.3g} even at a delta of {LARGEST_DELTA:g},"
        if epsilon is not None and epsilon > LARGEST_EPSILON:
            said.append(
                f"{given} promises next to nothing: a release may be e^{epsilon:.3g} times as likely with somebody's "
                "data as without, so that anyone who sees it can be sure who was in it; an epsilon near 1 is usual"
            )
        if delta > LARGEST_DELTA:
            said.append(
                f"delta={delta:g} promises little: with this probability a release may show anything, so that one "
                f"person in {round(1.0 / delta):,} may be revealed in full; take much less than 1 over the number of "
                "people, such as 1e-6"
            )
        return "; ".join(said) or None

    def _warn_if_weak(self) -> None:
        """Warn if it was made outside of this package: within, it is a part or a sum of what somebody gave."""
        caller = sys._getframe(2)
        if caller.f_globals.get("__name__", "").partition(".")[0] in ("discreet", "discreet_audit"):
            return
        if self.weakness is not None:
            warnings.warn(self.weakness, WeakBudgetWarning, stacklevel=3)

    # ---- what a mechanism gets of it, or why it cannot work with it -------------------------------------------------

    def approximate(self, mechanism: str) -> tuple[float, float]:
        """(epsilon, delta), for a mechanism that needs both to be positive."""
        if self.epsilon is None:
            raise ParameterError(f"{mechanism} takes a budget of epsilon and delta, not {self}")
        if self.delta == 0.0:
            raise ParameterError(f"{mechanism} needs delta > 0: it hides rare items behind a threshold; got {self}")
        return self.epsilon, self.delta

    def pure(self, mechanism: str, *, from_zcdp: bool = False) -> float:
        """epsilon, for a mechanism that spends no delta.

        With `from_zcdp` a budget of rho will do: the largest epsilon whose epsilon-DP is rho-zCDP, epsilon^2/2 <= rho.
        """
        if self.rho is not None and from_zcdp:
            from discreet.privacy.calibration.zcdp import pure_rho

            epsilon = math.sqrt(2.0 * self.rho)
            while pure_rho(epsilon) > self.rho:
                epsilon = math.nextafter(epsilon, 0.0)
            return epsilon
        if self.epsilon is None or self.delta > 0.0:
            raise ParameterError(
                f"{mechanism} spends epsilon and no delta; budget must be dc.Budget(epsilon), not {self}"
            )
        return self.epsilon

    def as_zcdp(self, mechanism: str, delta_share: float = 1.0) -> float:
        """rho, for a mechanism with Gaussian noise: of (epsilon, delta) by the tight conversion at a share of delta."""
        if self.rho is not None:
            return self.rho
        if self.delta == 0.0 or self.epsilon is None:
            raise ParameterError(f"{mechanism} adds Gaussian noise: give a budget with a delta or a rho, not {self}")
        from discreet.privacy.calibration.zcdp import zcdp_rho

        return zcdp_rho(self.epsilon, self.delta * delta_share)

    def share(self, fraction: float) -> Budget:
        """The given fraction of every parameter; two shares that sum to 1 compose to this budget."""
        if isinstance(fraction, bool) or not isinstance(fraction, Real) or not (0.0 < float(fraction) <= 1.0):
            raise ParameterError(f"a share must be greater than 0 and at most 1, not {fraction!r}")
        if self.rho is not None:
            return Budget.zcdp(self.rho * float(fraction))
        assert self.epsilon is not None
        return Budget(self.epsilon * float(fraction), self.delta * float(fraction))

    def split(self, share: float) -> tuple[Budget, Budget]:
        """(a part without delta, the rest with all of it): they never sum to more than this budget, exactly."""
        if isinstance(share, bool) or not isinstance(share, Real) or not 0.0 < float(share) < 1.0:
            raise ParameterError(f"a share must be greater than 0 and less than 1, not {share!r}")
        if self.rho is not None:
            part = self.rho * float(share)
            return Budget.zcdp(part), Budget.zcdp(_remainder(self.rho, part))
        assert self.epsilon is not None
        part = self.epsilon * float(share)
        return Budget(part), Budget(_remainder(self.epsilon, part), self.delta)

    def to_dict(self) -> dict[str, float | None]:
        """As states and ledgers write it down."""
        return {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Budget:
        """The inverse of `to_dict`."""
        if values["rho"] is not None:
            return cls.zcdp(values["rho"])
        return cls(values["epsilon"], values["delta"])

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho={self.rho:g} (zCDP)"
        return f"epsilon={self.epsilon:g}" + (f", delta={self.delta:g}" if self.delta else "")


def _remainder(whole: float, part: float) -> float:
    """The largest float that added to part, exactly, is not more than the whole."""
    rest = whole - part
    while Fraction(rest) + Fraction(part) > Fraction(whole):
        rest = math.nextafter(rest, 0.0)
    return rest


def as_budget(given: object) -> Budget:
    """A budget, and nothing else."""
    if not isinstance(given, Budget):
        raise ParameterError(f"budget must be a dc.Budget, not {type(given).__name__}")
    return given
