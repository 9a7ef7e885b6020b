"""Which mechanism is audited how. A package adds a row for each of its mechanisms.

A row (`AuditCase`) names the class, the configurations that `discreet audit` runs, the four kinds of checks, and the
broken twins that they must reject. Checks read everything from the mechanism they are given: a twin is handed to the
same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from discreet.errors import ParameterError
from discreet_audit.findings import Finding

__all__ = ["FULL", "QUICK", "AuditCase", "Effort", "Twin", "case_of", "cases", "register"]

_ROWS = (
    "discreet_audit.central",
    "discreet_audit.people",
    "discreet_audit.sharded",
    "discreet_audit.continual",
    "discreet_audit.pan",
    "discreet_audit.multiparty",
    "discreet_audit.multiparty_transcripts",
    "discreet_audit.samplers",
)
"""The modules that register rows."""


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

Check = Callable[[Any, Effort], Iterable[Finding]]


@dataclass(frozen=True)
class Twin:
    """A version of a mechanism that is broken on purpose and that the audit must reject.

    ``kind`` is the kind of check that is asked first.
    """

    name: str
    mechanism: Any
    kind: str = "exact"


@dataclass(frozen=True)
class AuditCase:
    """How one class of mechanisms is audited.

    Args:
        mechanism: The class.
        examples: Configurations for `discreet audit`; small ones, so that laws can be written out.
        structure: The neighbouring states of the summary it releases, through the real kernels.
        exact: Output laws against the claim, and the code against the law.
        statistical: Runs of the compiled release.
        coupled: Neighbours with the same randomness.
        twins: At least two broken versions.
        prepare: What is audited in place of a mechanism that leaves a number open until it sees data.
        label: The name in the report, where one class has several mechanisms.
    """

    mechanism: type[Any]
    examples: Callable[[], Sequence[Any]]
    structure: Check
    exact: Check
    statistical: Check
    coupled: Check
    twins: Callable[[Any], Sequence[Twin]]
    prepare: Callable[[Any], Any] = lambda mechanism: mechanism
    label: Callable[[Any], str] = lambda mechanism: type(mechanism).__name__

    @property
    def checks(self) -> dict[str, Check]:
        """The four checks by their kind."""
        return {
            "structure": self.structure,
            "exact": self.exact,
            "statistical": self.statistical,
            "coupled": self.coupled,
        }


_CASES: dict[type[Any], AuditCase] = {}


def register(case: AuditCase) -> None:
    """Add a row."""
    if case.mechanism in _CASES:
        raise ParameterError(f"{case.mechanism.__name__} is registered already")
    _CASES[case.mechanism] = case


def cases() -> Iterator[AuditCase]:
    """All rows, package by package."""
    for module in _ROWS:
        import_module(module)
    return iter(tuple(_CASES.values()))


def case_of(mechanism: Any) -> AuditCase:
    """The row of a mechanism, or of the class it was derived from."""
    known = {case.mechanism: case for case in cases()}
    for kind in type(mechanism).__mro__:
        if kind in known:
            return known[kind]
    raise ParameterError(
        f"nothing is known about auditing {type(mechanism).__name__}; known are "
        + ", ".join(sorted(kind.__name__ for kind in known))
    )
