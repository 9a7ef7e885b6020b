"""What an audit finds, and the report it makes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from discreet.privacy import Unit

__all__ = ["KINDS", "AuditReport", "Finding", "TwinResult"]

KINDS = ("structure", "exact", "statistical", "coupled", "sabotage")
"""The five kinds of evidence: neighbouring states of the real kernels, exact laws, runs of the compiled release, runs
with the same randomness, and broken versions that the other four must reject."""


@dataclass(frozen=True)
class Finding:
    """One check: what was claimed, what was measured, and whether the claim held.

    ``claimed`` and ``measured`` are numbers of one meaning, named by ``quantity`` ("delta", "epsilon", "sensitivity",
    "violations"); ``measured`` must not be above ``claimed``. ``pairs`` counts the neighbouring pairs tried.
    """

    kind: str
    check: str
    quantity: str
    claimed: float
    measured: float
    pairs: int = 0
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether the claim held. A measurement that is not a number is a failure."""
        return self.measured <= self.claimed

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        names = ("kind", "check", "quantity", "claimed", "measured", "pairs", "passed", "detail")
        return {name: _finite(getattr(self, name)) for name in names}


@dataclass(frozen=True)
class TwinResult:
    """A broken version of the mechanism, and the first finding that gives it away (None: it was not caught)."""

    name: str
    caught_by: Finding | None

    @property
    def caught(self) -> bool:
        """Whether the audit rejects it, as it must."""
        return self.caught_by is not None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        by = None if self.caught_by is None else self.caught_by.to_dict()
        return {"name": self.name, "caught": self.caught, "caught_by": by}


@dataclass(frozen=True)
class AuditReport:
    """The evidence about one mechanism."""

    mechanism: str
    description: str
    unit: Unit | None
    epsilon: float | None
    delta: float
    rho: float | None
    findings: tuple[Finding, ...]
    twins: tuple[TwinResult, ...]
    seconds: float = field(default=0.0, compare=False)

    @property
    def passed(self) -> bool:
        """Every claim held and every broken twin was caught."""
        return (
            all(finding.passed for finding in self.findings)
            and bool(self.twins)
            and all(twin.caught for twin in self.twins)
        )

    def of(self, kind: str) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of evidence there are."""
        return tuple(kind for kind in KINDS if self.of(kind) or (kind == "sabotage" and self.twins))

    @property
    def pairs(self) -> int:
        """How many neighbouring pairs were tried in all."""
        return sum(finding.pairs for finding in self.findings)

    def _largest(self, quantity: str, kind: str = "exact") -> float | None:
        return max((f.measured for f in self.of(kind) if f.quantity == quantity), default=None)

    @property
    def exact_delta(self) -> float | None:
        """The largest exact delta at the claimed epsilon; None where the claim is pure."""
        return self._largest("delta")

    @property
    def exact_epsilon(self) -> float | None:
        """The largest exact epsilon, for pure claims."""
        return self._largest("epsilon")

    @property
    def exact_rho(self) -> float | None:
        """The largest exact rho (zCDP), where the noise is Gaussian and for many releases."""
        return self._largest("rho")

    @property
    def lower_bound(self) -> float | None:
        """The largest epsilon that the runs prove with confidence."""
        return self._largest("epsilon", "statistical")

    @property
    def tested_epsilon(self) -> float | None:
        """The epsilon that the runs test: the claimed one, or what rho converts to."""
        values = [finding.claimed for finding in self.of("statistical") if finding.quantity == "epsilon"]
        return self.epsilon if self.epsilon is not None else max(values, default=None)

    @property
    def claim(self) -> str:
        """The guarantee in numbers."""
        if self.rho is not None:
            return f"rho={self.rho:g}"
        if self.epsilon is None:
            return "its law"
        return f"eps={self.epsilon:g}" + (f", delta={self.delta:.3g}" if self.delta else "")

    @property
    def measured(self) -> str:
        """The exact figure and the statistical one."""
        parts = []
        if self.exact_delta is not None:
            parts.append(f"delta={self.exact_delta:.3g}")
        if self.exact_epsilon is not None:
            parts.append(f"eps={self.exact_epsilon:.4g}")
        if self.exact_rho is not None and self.rho is not None:
            parts.append(f"rho={self.exact_rho:.4g}")
        if self.lower_bound is not None:
            of = f" of {self.tested_epsilon:.3g}" if self.epsilon is None else ""
            parts.append(f"eps>={max(self.lower_bound, 0.0):.2f}{of}")
        away = [finding for finding in self.findings if finding.quantity == "standard deviations"]
        if away:
            parts.append(f"off by {max(f.measured for f in away):.1f} of {away[0].claimed:.1f} sd")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        names = ("epsilon", "delta", "rho", "passed", "exact_delta", "exact_epsilon", "exact_rho")
        return {
            "mechanism": self.mechanism,
            "description": self.description,
            "unit": None if self.unit is None else self.unit.to_dict(),
            **{name: _finite(getattr(self, name)) for name in names},
            "epsilon_lower_bound": _finite(self.lower_bound),
            "pairs": self.pairs,
            "seconds": round(self.seconds, 3),
            "findings": [finding.to_dict() for finding in self.findings],
            "twins": [twin.to_dict() for twin in self.twins],
        }

    def __str__(self) -> str:
        lines = [f"{self.description}: {'passed' if self.passed else 'FAILED'} (claimed {self.claim})"]
        for finding in self.findings:
            mark = "ok    " if finding.passed else "FAILED"
            lines.append(
                f"  {mark} {finding.kind}: {finding.check}: {finding.quantity} {finding.measured:.6g} "
                f"<= {finding.claimed:.6g}" + (f" ({finding.pairs} pairs)" if finding.pairs else "")
            )
        for twin in self.twins:
            how = f"caught by {twin.caught_by.kind}" if twin.caught_by else "NOT CAUGHT"
            lines.append(f"  {'ok    ' if twin.caught else 'FAILED'} sabotage: {twin.name}: {how}")
        return "\n".join(lines)


def _finite(value: Any) -> Any:
    """JSON has no infinities."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
