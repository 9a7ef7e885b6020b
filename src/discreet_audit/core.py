"""The core of the audit: what a finding is, what a twin, what a row with its configurations, and running them.

A row (`AuditCase`) says how one class of mechanisms is audited: example configurations, and an `Audit`: four checks
that yield `Finding`s, and twins, which are broken on purpose and must be rejected. Checks read everything from the
mechanism they are given, through what is public of it, so that a twin goes through the same code.

To add a row, call `register(class, examples, audit)` in the file of the trust model:

- `examples` makes small configurations. `audit` is an `Audit`: take the one of a mechanism of the same kind (numbers
  behind noise of one law: `central_questions.ShiftAudit`; counters behind a cut: `central.CounterAudit`; over time:
  `continual.OverTimeAudit`; messages: `multiparty.MessageAudit`) and say what differs.
- A check yields `largest(...)` of what neighbours move, `never(...)` of what must not be, `proved(...)` from runs, or
  `checked(...)`. `twin(mechanism, name, member=...)` is the mechanism with a public member replaced, and `altered(...)`
  with one that is made of the right one; two twins at least.
- Record it: `python -m tests.statistical.test_audit_registry CLASS` prints what goes into tests/golden/audit.json.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from typing import Any, Generic, TypeVar

from discreet.errors import ParameterError
from discreet.privacy import Unit
from discreet.privacy.calibration.zcdp import zcdp_epsilon

_ROWS = ("central", "central_questions", "continual", "pan", "multiparty")
"""The modules that register rows: one a trust model, two for the central one."""

M = TypeVar("M")

SLACK = 1.0 + 1e-9  # of doubles, for losses that are met exactly

# ---- what is found -----------------------------------------------------------------------------------------------

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
    unit: Unit
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
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        names = ("epsilon", "delta", "rho", "passed", "exact_delta", "exact_epsilon", "exact_rho")
        return {
            "mechanism": self.mechanism,
            "description": self.description,
            "unit": self.unit.to_dict(),
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


def checked(check: str, quantity: str, claimed: float, measured: float, pairs: int = 0, detail: str = "") -> Finding:
    """A finding whose kind is that of the check that yields it."""
    return Finding("", check, quantity, claimed, measured, pairs, detail)


def largest(check: str, claimed: float, moved: Iterable[float], quantity: str = "sensitivity") -> Finding:
    """The largest of what neighbours move, one number a pair, against what is claimed."""
    found = [*moved]
    return checked(check, quantity, claimed, max(found, default=0), len(found))


def never(check: str, wrong: float | Iterable[float], pairs: int = 0, detail: str = "") -> Finding:
    """How often something is wrong that never may be: in all, or a number (or yes or no) for each that was tried."""
    if isinstance(wrong, Iterable):
        tried = [*wrong]
        wrong, pairs = sum(tried), len(tried)
    return checked(check, "violations", 0, wrong, pairs, detail)


def faults(check: str, found: dict[str, object]) -> Finding:
    """What is wrong, by name: whether it is so."""
    wrong = [what for what, so in found.items() if so]
    return never(check, len(wrong), 1, "; ".join(wrong))


def _finite(value: Any) -> Any:
    """JSON has no infinities."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---- what is audited, and how ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Effort:
    """How much an audit tries.

    Args:
        name: "quick" or "full".
        runs: Releases of each of two neighbours in a statistical check.
        large_pairs: Pairs of large random streams.
        released_pairs: How many of these go through the release itself.
        length: How much longer than the least the exhaustively listed streams are.
    """

    name: str
    runs: int
    large_pairs: int
    released_pairs: int
    length: int


QUICK = Effort("quick", runs=800, large_pairs=1000, released_pairs=50, length=0)
FULL = Effort("full", runs=20_000, large_pairs=10_000, released_pairs=1000, length=1)


class Audit:
    """The four kinds of checks of a mechanism, its twins, and what it is called; to be derived from.

    `structure` looks at neighbouring states of the summary it releases, through the real kernels; `exact` at output
    laws against the claim, and at the code against the law; `statistical` at runs of the compiled release; `coupled` at
    neighbours with the same randomness.
    """

    kinds: tuple[str, ...] = KINDS[:-1]
    """The checks that must find something: one that says nothing fails the audit."""

    def structure(self, mechanism: Any, effort: Effort) -> Iterable[Finding]:
        return ()

    exact = statistical = coupled = structure

    def twins(self, mechanism: Any) -> Iterable[Twin]:
        """At least two broken versions."""
        raise NotImplementedError

    def findings(self, kind: str, mechanism: Any, effort: Effort) -> Iterable[Finding]:
        """Those of one kind of check, which is what their kind is."""
        return (replace(found, kind=kind) for found in getattr(self, kind)(mechanism, effort))

    def prepare(self, mechanism: Any) -> Any:
        """What is audited in place of a mechanism that leaves a number open, or that was used before."""
        return mechanism

    def label(self, mechanism: Any) -> str:
        """The name in the report."""
        return type(mechanism).__name__


def claim(mechanism: Any) -> tuple[float, float]:
    """(epsilon, delta) that the mechanism promises; of rho, by the tight conversion at a delta that shows in runs."""
    promised = mechanism.guarantee
    if promised.epsilon is None:
        return zcdp_epsilon(promised.rho or 0.0, 1e-2), 1e-2
    return promised.epsilon, promised.delta


@dataclass(frozen=True)
class Twin:
    """A version of a mechanism that is broken on purpose and that the audit must reject: `twin` makes one.

    ``kind`` is the kind of check that is asked first.
    """

    name: str
    mechanism: Any
    kind: str = "exact"


def twin(mechanism: object, name: str, kind: str = "exact", /, **members: Any) -> Twin:
    """A mechanism with public members replaced: the one maker of twins, also of those that `altered` makes.

    Args:
        mechanism: The right one.
        name: What is wrong.
        kind: The kind of check that is asked first.
        members: What takes the place of a member of that name: a value, a function for a method, or a property. The
            checks that a mechanism makes when it is made are skipped: they might refuse it.
    """
    if any(member.startswith("_") and not member.endswith("__") for member in members):
        raise ParameterError(f"a twin differs in what is public, not in {', '.join(members)}")
    broken: Any = object.__new__(type(f"NotPrivate{type(mechanism).__name__}", (type(mechanism),), members))
    # What was computed from other members is computed again.
    computed = {name for name in vars(mechanism) if isinstance(getattr(type(mechanism), name, None), cached_property)}
    broken.__dict__.update({name: value for name, value in vars(mechanism).items() if name not in computed})
    broken.__dict__.update({m: v for m, v in members.items() if not callable(v) and not isinstance(v, property)})
    return Twin(name, broken, kind)


def altered(mechanism: object, name: str, kind: str = "exact", /, **changes: Callable[..., Any]) -> Twin:
    """A twin whose members are made of the right ones.

    Args:
        mechanism, name, kind: As of `twin`.
        changes: By the name of a member: takes the right one (a method, bound to the twin, or the value of a property),
            the twin, and what the method is given; gives what the twin gives.
    """

    def around(right: Any, change: Callable[..., Any]) -> Any:
        if not callable(right):  # a property, computed once or every time
            return property(lambda made: change(right.__get__(made), made))
        return lambda made, *given, **more: change(partial(right, made), made, *given, **more)

    members = {member: around(getattr(type(mechanism), member), change) for member, change in changes.items()}
    return twin(mechanism, name, kind, **members)


@dataclass(frozen=True)
class AuditCase(Generic[M]):
    """A row: how one class of mechanisms is audited.

    Args:
        mechanism: The class.
        examples: Configurations for `discreet audit`; small ones, so that laws can be written out.
        audit: The checks and twins; or a function that has them for a mechanism.
    """

    mechanism: type[M]
    examples: Callable[[], Sequence[M]]
    audit: Audit | Callable[[M], Audit]

    def of(self, made: M) -> Audit:
        """The checks and twins of one configuration."""
        return self.audit if isinstance(self.audit, Audit) else self.audit(made)


_CASES: dict[type, AuditCase[Any]] = {}


def register(mechanism: type[M], examples: Callable[[], Sequence[M]], audit: Audit | Callable[[M], Audit]) -> None:
    """Add a row; its arguments are those of an `AuditCase`."""
    if mechanism in _CASES:
        raise ParameterError(f"{mechanism.__name__} is already registered")
    _CASES[mechanism] = AuditCase(mechanism, examples, audit)


def cases() -> Iterator[AuditCase[Any]]:
    """All rows, package by package; those of the papers' mechanisms as printed come last."""
    for module in _ROWS:
        import_module(f"discreet_audit.{module}")
    return iter(sorted(_CASES.values(), key=lambda case: case.mechanism.__module__.startswith("discreet.published")))


def audit_of(mechanism: object) -> Audit:
    """The checks and twins of a mechanism, by the row of its class or of one it was derived from."""
    known = {case.mechanism: case for case in cases()}
    for kind in type(mechanism).__mro__:
        if kind in known:
            return known[kind].of(mechanism)
    raise ParameterError(
        f"no audit for {type(mechanism).__name__}; there are audits for "
        + ", ".join(sorted(kind.__name__ for kind in known))
    )


# ---- running -----------------------------------------------------------------------------------------------------

# A twin is done with at the first check that rejects it. Structure is about the summary, which a twin shares.
_ON_TWINS = ("exact", "coupled", "statistical")


def effort_of(effort: str) -> Effort:
    """The named effort."""
    known = {"quick": QUICK, "full": FULL}
    if effort not in known:
        raise ParameterError(f"effort must be 'quick' or 'full', not {effort!r}")
    return known[effort]


def check(mechanism: Any, *, effort: str = "quick") -> AuditReport:
    """Audit one mechanism: its claims on the compiled code, and that broken versions of it would be noticed.

    No data is involved and nothing is spent. Statistical checks raise a false alarm with probability below 1e-6.

    Args:
        mechanism: A mechanism of `discreet.central` (or of another package whose rows are registered), as it would be
            used: thresholds, scales and the unit are read from it.
        effort: "quick" (seconds) or "full" (minutes).
    """
    return evidence(audit_of(mechanism), mechanism, effort_of(effort))


def evidence(audit: Audit, mechanism: Any, effort: Effort) -> AuditReport:
    """What the checks find about one mechanism, and about its twins."""
    started = time.process_time()
    mechanism = audit.prepare(mechanism)
    findings = [finding for kind in KINDS[:-1] for finding in audit.findings(kind, mechanism, effort)]
    for kind in audit.kinds:
        # No finding, or no pair of states, is no evidence.
        pairs = [finding.pairs for finding in findings if finding.kind == kind]
        if not pairs or (kind == "structure" and not all(pairs)):
            findings.append(Finding(kind, "nothing was looked at", "violations", 0, 1))
    twins = [TwinResult(twin.name, _first_failure(audit, twin, effort)) for twin in audit.twins(mechanism)]
    claim = mechanism.guarantee
    return AuditReport(
        audit.label(mechanism),
        claim.mechanism,
        *(claim.unit, claim.epsilon, claim.delta, claim.rho),
        tuple(findings),
        tuple(twins),
        time.process_time() - started,
    )


def _first_failure(audit: Audit, twin: Twin, effort: Effort) -> Finding | None:
    for kind in sorted(_ON_TWINS, key=lambda kind: kind != twin.kind):
        for finding in audit.findings(kind, twin.mechanism, effort):
            if not finding.passed:
                return finding
    return None


def examples(only: Sequence[str] = ()) -> list[tuple[int, int]]:
    """(row, configuration) of what `run` audits; `only` keeps classes whose name contains one of the words."""
    words = [word.lower() for word in only]
    found = [
        (row, position)
        for row, case in enumerate(cases())
        for position in range(len(case.examples()))
        if not words or any(word in case.mechanism.__name__.lower() for word in words)
    ]
    if not found:
        raise ParameterError(f"no audited mechanism matches {', '.join(only)}")
    return found


def _run_example(place: tuple[int, int], effort: str) -> AuditReport:
    row, position = place
    case = list(cases())[row]
    made = case.examples()[position]
    return evidence(case.of(made), made, effort_of(effort))


def run(
    *,
    effort: str = "quick",
    only: Sequence[str] = (),
    jobs: int | None = None,
    progress: Callable[[AuditReport], None] | None = None,
) -> list[AuditReport]:
    """Audit every registered mechanism in its example configurations.

    Args:
        effort: "quick" (under a minute) or "full".
        only: Words; one of them must occur in the name of the class.
        jobs: Processes to use; by default as many as there are processors, at most 4.
        progress: Called with each report as it is made.
    """
    effort_of(effort)
    places = examples(only)
    jobs = min(4, os.cpu_count() or 1) if jobs is None else jobs
    reports = []
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        for report in (pool.map if pool else map)(_run_example, places, [effort] * len(places)):
            reports.append(report)
            if progress:
                progress(report)
    return reports
