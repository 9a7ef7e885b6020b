"""Running audits: one mechanism, or every row."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from typing import Any

from discreet.errors import ParameterError
from discreet_audit.findings import AuditReport, Finding, TwinResult
from discreet_audit.registry import FULL, QUICK, AuditCase, Effort, Twin, case_of, cases

__all__ = ["check", "effort_of", "examples", "run"]

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
    return _audit(case_of(mechanism), mechanism, effort_of(effort))


def _audit(case: AuditCase[Any], mechanism: Any, effort: Effort) -> AuditReport:
    started = time.process_time()
    mechanism = case.prepare(mechanism)
    findings = [finding for run_check in case.checks.values() for finding in run_check(mechanism, effort)]
    findings += _silence(case, findings)
    twins = [TwinResult(twin.name, _first_failure(case, twin, effort)) for twin in case.twins(mechanism)]
    claim = mechanism.guarantee
    return AuditReport(
        case.label(mechanism),
        claim.mechanism,
        *(claim.unit, claim.epsilon, claim.delta, claim.rho),
        tuple(findings),
        tuple(twins),
        time.process_time() - started,
    )


def _silence(case: AuditCase[Any], findings: Sequence[Finding]) -> list[Finding]:
    """A failure for each kind of check that looked at nothing: no finding, or no pair of states, is no evidence."""
    looked = {kind: [f.pairs for f in findings if f.kind == kind] for kind in case.kinds}
    silent = [kind for kind, pairs in looked.items() if not pairs or (kind == "structure" and not all(pairs))]
    return [Finding(kind, "nothing was looked at", "violations", 0, 1) for kind in silent]


def _first_failure(case: AuditCase[Any], twin: Twin, effort: Effort) -> Finding | None:
    for kind in sorted(_ON_TWINS, key=lambda kind: kind != twin.kind):
        for finding in case.checks[kind](twin.mechanism, effort):
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
    return _audit(case, case.examples()[position], effort_of(effort))


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
        only: Words of which one must occur in the name of the class.
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
