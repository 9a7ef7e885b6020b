"""Evidence that the privacy claimed is the privacy delivered.

`check(mechanism)` audits one mechanism, `run()` all of them: exhaustive states of the real kernels, exact output laws,
statistical bounds on the compiled code, runs with equal randomness, and broken twins that must be noticed.
"""

from discreet_audit.core import AuditCase, AuditReport, Effort, Finding, Twin, TwinResult, check, register, run

__all__ = ["AuditCase", "AuditReport", "Effort", "Finding", "Twin", "TwinResult", "check", "register", "run"]
