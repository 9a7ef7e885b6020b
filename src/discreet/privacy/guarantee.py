"""What a release says of itself: what it promises, and what was asked. Nothing of it is computed from the data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from discreet._version import __version__
from discreet.privacy.unit import Unit, unit_from_dict

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The promise of one release: for whom, how much, by which mechanism, and what it rests on.

    ``epsilon`` and ``delta`` are what the release spends; ``rho`` is set when it was calibrated in zCDP (then
    ``epsilon`` may be None). ``trust`` names who sees the raw stream. ``seeded`` is True when the noise came
    from a seeded source: a seeded release is for tests and is NOT private.
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


def now() -> str:
    """The time in UTC, to the second, as JSON has it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Asked:
    """A question, as its release tells it: columns, k, public parameters, the version, and when it was asked.

    The asker stated all of it before anything was read. The time is that of the question, not of the
    answer: how long reading took would tell how much there was to read.

    Attributes:
        time: When it was asked, before anything was read: UTC, to the second.
        version: Of discreet, that answered.
        k: How many items at most, or None.
        columns: The names of the columns: "item", and where there are such "user" and "value".
        parameters: What else was chosen and is public, JSON-ready.
    """

    time: str
    version: str = __version__
    k: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, time: str, *, k: int | None = None, columns: Mapping[str, Any] | None = None, **parameters: Any
    ) -> Asked:
        """What was given; None was not. Values are as they come back from JSON."""
        given = {name: value for name, value in parameters.items() if value is not None}
        named = {name: value for name, value in (columns or {}).items() if value is not None}
        return cls(
            time, k=k, **json.loads(json.dumps({"columns": named, "parameters": given}, default=str, allow_nan=False))
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {
            "columns": dict(self.columns),
            "k": self.k,
            "parameters": dict(self.parameters),
            "version": self.version,
            "time": self.time,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Asked:
        """The inverse of `to_dict`; a ValueError for what is none."""
        made = cls(values["time"], values["version"], values["k"], values["columns"], values["parameters"])
        right = (
            isinstance(made.time, str)
            and isinstance(made.version, str)
            and (made.k is None or type(made.k) is int)
            and isinstance(made.columns, dict)
            and isinstance(made.parameters, dict)
        )
        if not right:
            raise ValueError("not what was asked for")
        return made
