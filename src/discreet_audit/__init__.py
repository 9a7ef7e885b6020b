"""Evidence that the privacy claimed is the privacy delivered.

`check(mechanism)` audits one mechanism, `run()` all of them: exhaustive states of the real kernels, exact output laws,
statistical bounds on the compiled code, runs with equal randomness, and broken twins that must be noticed.
"""

from discreet_audit.findings import AuditReport, Finding, TwinResult
from discreet_audit.registry import AuditCase, Effort, Twin, register
from discreet_audit.running import check, run

__all__ = ["AuditCase", "AuditReport", "Effort", "Finding", "Twin", "TwinResult", "check", "register", "run"]
