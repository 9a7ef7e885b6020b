"""Evidence that the privacy claimed is the privacy delivered: `discreet_audit`, the house next door."""

from discreet_audit import (
    AuditCase,
    AuditReport,
    CanaryReport,
    Effort,
    Finding,
    Twin,
    TwinResult,
    canaries,
    check,
    register,
    run,
)

__all__ = [
    "AuditCase",
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
