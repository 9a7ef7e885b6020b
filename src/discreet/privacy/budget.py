"""How much privacy may be spent: pure (epsilon), approximate (epsilon, delta) or zero-concentrated (rho)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

from discreet.errors import ParameterError
from discreet.privacy.checks import positive_number

__all__ = ["Budget"]


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """A privacy budget.

    ``Budget(epsilon=1.0)`` is pure, ``Budget(epsilon=1.0, delta=1e-9)`` approximate and
    ``Budget.zcdp(rho=0.1)`` zero-concentrated. A zCDP budget has ``epsilon`` None; the others have ``rho`` None.
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

    @classmethod
    def zcdp(cls, rho: float) -> Budget:
        """A budget of rho-zCDP (zero-concentrated differential privacy)."""
        budget = object.__new__(cls)
        object.__setattr__(budget, "epsilon", None)
        object.__setattr__(budget, "delta", 0.0)
        object.__setattr__(budget, "rho", positive_number("rho", rho))
        return budget

    @property
    def is_pure(self) -> bool:
        """Whether the budget is epsilon alone."""
        return self.rho is None and self.delta == 0.0

    @property
    def is_zcdp(self) -> bool:
        """Whether the budget is given as rho."""
        return self.rho is not None

    def share(self, fraction: float) -> Budget:
        """The given fraction of every parameter; two shares that sum to 1 compose to this budget."""
        if isinstance(fraction, bool) or not isinstance(fraction, Real) or not (0.0 < float(fraction) <= 1.0):
            raise ParameterError(f"a share must be greater than 0 and at most 1, not {fraction!r}")
        if self.rho is not None:
            return Budget.zcdp(self.rho * float(fraction))
        assert self.epsilon is not None
        return Budget(self.epsilon * float(fraction), self.delta * float(fraction))

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho={self.rho:g} (zCDP)"
        return f"epsilon={self.epsilon:g}" + (f", delta={self.delta:g}" if self.delta else "")
