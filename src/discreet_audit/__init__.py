"""Evidence that the privacy claimed is the privacy delivered.

`check(mechanism)` audits one mechanism, `run()` all of them: exhaustive states of the real kernels, exact output laws,
statistical bounds on the compiled code, runs with equal randomness, and broken twins that must be noticed.
`canaries(pipeline, data, claim)` tests a pipeline of your own, by guesses about made-up people.
"""

from discreet_audit.core import Audit, AuditReport, Effort, Finding, Twin, TwinResult, check, register, run
from discreet_audit.pipeline_canaries import CanaryReport, canaries

__all__ = [
    "Audit",
    "AuditReport",
    "CanaryReport",
    "Effort",
    "Finding",
    "Twin",
    "TwinResult",
    "canaries",
    "check",
    "register",
    "run",
]
