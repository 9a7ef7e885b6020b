"""What a release promises. It travels with the release and holds nothing computed from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.privacy.unit import Unit, unit_from_dict

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget

__all__ = ["Guarantee"]


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The promise of one release: for whom, how much, by which mechanism, and what it rests on.

    ``epsilon`` and ``delta`` are what the release spends; ``rho`` is set when it was calibrated in zCDP (then
    ``epsilon`` may be None). ``trust`` names who sees the raw stream. ``seeded`` is True when the noise came
    from a seeded source: such a release is for tests and is NOT private.
    """

    unit: Unit
    epsilon: float | None
    delta: float
    mechanism: str
    reference: str = ""
    assumptions: tuple[str, ...] = ()
    rho: float | None = None
    trust: str = "central"
    chosen_because: str = ""
    seeded: bool = False

    @classmethod
    def of(cls, budget: Budget, unit: Unit, mechanism: str, reference: str, **more: Any) -> Guarantee:
        """What a mechanism promises that spends this budget and nothing else; `more` are other attributes."""
        return cls(unit, budget.epsilon, budget.delta, mechanism, reference, rho=budget.rho, **more)

    def sentence(self) -> str:
        """The promise in one plain sentence; by which mechanism it is kept is for `explain` and `plan`."""
        if self.seeded:
            return "NOT PRIVATE: the noise came from a seeded source, for tests only."
        if self.epsilon is None:
            spend = f"rho={self.rho:g} (zCDP)"
        else:
            spend = f"epsilon={self.epsilon:g}" + (f", delta={self.delta:g}" if self.delta else "")
        several = ""
        if self.unit.spans is not None:
            more = "n times epsilon" if self.epsilon is not None else "up to n² times rho"
            several = f" What one person did {self.unit.spans.several}: {more}."
        return f"Differentially private with {spend}: it hides {self.unit.describe()}.{several}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {
            "unit": self.unit.to_dict(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "mechanism": self.mechanism,
            "reference": self.reference,
            "assumptions": list(self.assumptions),
            "trust": self.trust,
            "chosen_because": self.chosen_because,
            "seeded": self.seeded,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Guarantee:
        """The inverse of `to_dict`."""
        return cls(
            **{
                **values,
                "unit": unit_from_dict(values["unit"]),
                "assumptions": tuple(values["assumptions"]),
            }
        )
