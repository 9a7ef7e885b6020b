"""Evidence that the privacy claimed is the privacy delivered: `discreet_audit`, the house next door."""

from discreet_audit import AuditCase, AuditReport, Effort, Finding, Twin, TwinResult, check, register, run

__all__ = ["AuditCase", "AuditReport", "Effort", "Finding", "Twin", "TwinResult", "check", "register", "run"]
