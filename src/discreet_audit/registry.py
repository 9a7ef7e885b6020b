"""Which mechanism is audited how: one row (`AuditCase`) for each class, added by `row`.

Checks read everything from the mechanism they are given, through what is public of it: a twin is handed to the same
functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from discreet.errors import ParameterError
from discreet_audit.findings import KINDS, Finding

__all__ = ["FULL", "QUICK", "AuditCase", "Checks", "Effort", "Twin", "case_of", "cases", "register", "row"]

_ROWS = (
    "central",
    "oracles",
    "counting",
    "quantiles",
    "people",
    "groups",
    "sharded",
    "continual",
    "pan",
    "multiparty",
    "multiparty_transcripts",
    "multiparty_counter_streams",
    "shuffled",
    "samplers",
)
"""The modules that register rows."""

M = TypeVar("M")
Mc = TypeVar("Mc", contravariant=True)


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


class Checks(Protocol[Mc]):
    """The four kinds of checks of a mechanism."""

    def structure(self, mechanism: Mc, effort: Effort) -> Iterable[Finding]:
        """The neighbouring states of the summary it releases, through the real kernels."""

    def exact(self, mechanism: Mc, effort: Effort) -> Iterable[Finding]:
        """Output laws against the claim, and the code against the law."""

    def statistical(self, mechanism: Mc, effort: Effort) -> Iterable[Finding]:
        """Runs of the compiled release."""

    def coupled(self, mechanism: Mc, effort: Effort) -> Iterable[Finding]:
        """Neighbours with the same randomness."""


@dataclass(frozen=True)
class Twin:
    """A version of a mechanism that is broken on purpose and that the audit must reject: `sabotage.twin` makes one.

    ``kind`` is the kind of check that is asked first.
    """

    name: str
    mechanism: Any
    kind: str = "exact"


@dataclass(frozen=True)
class AuditCase(Generic[M]):
    """How one class of mechanisms is audited.

    Args:
        mechanism: The class.
        examples: Configurations for `discreet audit`; small ones, so that laws can be written out.
        structure, exact, statistical, coupled: The four checks, as in `Checks`.
        twins: At least two broken versions.
        prepare: What is audited in place of a mechanism that leaves a number open until it sees data.
        label: The name in the report, where one class has several mechanisms.
        kinds: The checks that must find something: one that says nothing fails the audit.
    """

    mechanism: type[M]
    examples: Callable[[], Sequence[M]]
    structure: Callable[[M, Effort], Iterable[Finding]]
    exact: Callable[[M, Effort], Iterable[Finding]]
    statistical: Callable[[M, Effort], Iterable[Finding]]
    coupled: Callable[[M, Effort], Iterable[Finding]]
    twins: Callable[[M], Sequence[Twin]]
    prepare: Callable[[M], M] = lambda mechanism: mechanism
    label: Callable[[M], str] = lambda mechanism: type(mechanism).__name__
    kinds: tuple[str, ...] = KINDS[:-1]

    @property
    def checks(self) -> dict[str, Callable[[M, Effort], Iterable[Finding]]]:
        """The four checks by their kind."""
        return {kind: getattr(self, kind) for kind in KINDS[:-1]}


_CASES: dict[type, AuditCase[Any]] = {}


def register(case: AuditCase[Any]) -> None:
    """Add a row."""
    if case.mechanism in _CASES:
        raise ParameterError(f"{case.mechanism.__name__} is registered already")
    _CASES[case.mechanism] = case


def row(
    mechanism: type[M],
    examples: Callable[[], Sequence[M]],
    checks: Checks[M],
    twins: Callable[[M], Sequence[Twin]],
    prepare: Callable[[M], M] = lambda mechanism: mechanism,
    label: Callable[[M], str] = lambda mechanism: type(mechanism).__name__,
    kinds: tuple[str, ...] = KINDS[:-1],
) -> None:
    """Add a row whose four checks are the methods of one object."""
    four = checks.structure, checks.exact, checks.statistical, checks.coupled
    register(AuditCase(mechanism, examples, *four, twins, prepare, label, kinds))


def cases() -> Iterator[AuditCase[Any]]:
    """All rows, package by package."""
    for module in _ROWS:
        import_module(f"discreet_audit.{module}")
    return iter(tuple(_CASES.values()))


def case_of(mechanism: object) -> AuditCase[Any]:
    """The row of a mechanism, or of the class it was derived from."""
    known = {case.mechanism: case for case in cases()}
    for kind in type(mechanism).__mro__:
        if kind in known:
            return known[kind]
    raise ParameterError(
        f"nothing is known about auditing {type(mechanism).__name__}; known are "
        + ", ".join(sorted(kind.__name__ for kind in known))
    )
