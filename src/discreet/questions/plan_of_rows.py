"""plan: threshold, noise and error of each mechanism before anything is spent."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.central import Mechanism, Offset, Stability
from discreet.central.preparation import choose_capacity, frequency_published, summary_errors
from discreet.errors import ParameterError
from discreet.privacy import Budget, Event, Unit
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import numbered, probability, whole_number
from discreet.questions.choose import MECHANISMS, PUBLISHED, make, sketch_shape
from discreet.summaries import ExactCounts, LinearSketch
from discreet.summaries.memory import bytes_when_full

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class PlanRow:
    """What one mechanism would do.

    Attributes:
        mechanism: Its short name, which `release` and `top_k` take.
        name: Its name in words.
        summary: The summary it releases.
        capacity: How many counters the summary has; None for exact counts.
        threshold: The cut that a noisy count must reach.
        noise: The law of the noise on each count.
        noise_scale: Its scale (Laplace) or standard deviation (Gaussian), in counts.
        noise_error: With probability `confidence` no count moves by more than this through noise.
        summary_error: The most by which the summary's own count may lie from the truth, for the given length.
        published_from: With probability `confidence` every item that occurs at least this often is published.
        memory_bytes: About what the summary holds, with keys of 32 bytes; None where it depends on the data.
        notes: What the guarantee rests on.
    """

    mechanism: str
    name: str
    summary: str
    capacity: int | None
    threshold: int | float
    noise: str
    noise_scale: float
    noise_error: float
    summary_error: float
    published_from: int
    memory_bytes: int | None
    notes: str

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Plan:
    """Mechanisms side by side, the one that publishes the rarest items first. Computed from public numbers only."""

    length: int
    budget: Budget
    unit: Unit
    capacity: int
    capacity_because: str
    confidence: float
    rows: tuple[PlanRow, ...]
    not_applicable: dict[str, str]

    def __len__(self) -> int:
        return len(self.rows)

    def row(self, mechanism: str) -> PlanRow:
        """The row of a mechanism, by its short name."""
        for row in self.rows:
            if row.mechanism == mechanism:
                return row
        if (why := self.not_applicable.get(mechanism)) is not None:
            raise ParameterError(f"mechanism {mechanism!r} is not in this plan: {why}")
        known = ", ".join(row.mechanism for row in self.rows)
        raise ParameterError(f"no mechanism named {mechanism!r}; the plan has: {known}")

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {
            "length": self.length,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "rho": self.budget.rho,
            "unit": self.unit.to_dict(),
            "capacity": self.capacity,
            "capacity_because": self.capacity_because,
            "confidence": self.confidence,
            "mechanisms": [row.to_dict() for row in self.rows],
            "not_applicable": dict(self.not_applicable),
        }

    def to_arrow(self) -> pa.Table:
        """A table with a row for each mechanism."""
        import pyarrow as pa

        names = [field.name for field in dataclasses.fields(PlanRow)]
        types = {
            "threshold": pa.float64(),
            "published_from": pa.int64(),
            "memory_bytes": pa.int64(),
            "capacity": pa.int64(),
        }
        columns = {
            name: pa.array([getattr(row, name) for row in self.rows], type=types.get(name, _arrow_type(name)))
            for name in names
        }
        return pa.table(columns)

    def __str__(self) -> str:
        from discreet.releases.formats import table_text

        table = table_text(_HEADINGS, self._cells(), range(2, len(_HEADINGS)))
        return f"{self._above()}\n\n{table}\n{self._below()}"

    def _repr_html_(self) -> str:
        from discreet.releases.html import table_html

        return table_html(self._above(), _HEADINGS, self._cells(), self._below())

    def _above(self) -> str:
        return (
            f"{numbered(self.length, 'row')} with {self.budget}; hides {self.unit.describe()}\n"
            f"{self.capacity:,} counters ({self.capacity_because})"
        )

    def _below(self) -> str:
        return (
            "Items with at least 'listed from' rows are listed, and counts are off by no more than the two errors,\n"
            f"with probability {self.confidence:g}."
        )

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                row.mechanism,
                row.summary,
                "" if row.capacity is None else f"{row.capacity:,}",
                f"{row.threshold:,.6g}",
                f"{row.noise} {row.noise_scale:,.4g}",
                f"{row.noise_error:,.6g}",
                f"{row.summary_error:,.6g}",
                f"{row.published_from:,}",
            )
            for row in self.rows
        ]


_HEADINGS = (
    "mechanism",
    "summary",
    "counters",
    "threshold",
    "noise",
    "noise error",
    "sketch error",
    "listed from",
)


def _arrow_type(name: str) -> Any:
    import pyarrow as pa

    return pa.float64() if name.endswith(("scale", "error")) else pa.string()


def plan(
    length: int,
    budget: Budget,
    capacity: int | None = None,
    k: int | None = None,
    unit: Unit | None = None,
    confidence: float = 0.95,
    memory: str | None = None,
    published: bool = False,
    mechanisms: Sequence[type[Mechanism]] = (),
) -> Plan:
    """What each mechanism would publish and how well, from public numbers: no data is read, nothing is spent.

    Args:
        length: How many events the stream has, about; a public estimate, not a count of the data.
        budget: What a release may spend.
        capacity: The number of counters; by default what `top_k` would choose for `k` and this length.
        k: How many items are wanted (100 by default); used to choose the capacity.
        unit: Whose presence is hidden; `Event()` by default.
        confidence: The probability with which errors and `published_from` hold.
        memory: In place of `capacity`, for mechanisms whose noise does not grow with the counters: as many as a size
            such as "256MB" has room for.
        published: Also the papers' own mechanisms and their baselines (`discreet.published`), to compare with.
        mechanisms: Classes of your own, each by the name of its class.
    """
    if capacity is not None and memory is not None:
        raise ParameterError("capacity and memory both set the number of counters; give one of them")
    length = whole_number("length", length, 0)
    as_budget(budget)
    unit = Event() if unit is None else unit
    if not isinstance(unit, Unit):
        raise ParameterError(f"unit must be one of discreet's units, such as dc.Event(), not {type(unit).__name__}")
    probability("confidence", confidence)
    wanted = 100 if k is None else whole_number("k", k)

    def counters(kind: type[Mechanism]) -> tuple[int, str]:
        if capacity is not None:
            return whole_number("capacity", capacity), "given"
        return choose_capacity(wanted, budget, unit, length, kind, memory)

    rows, refused = [], {}
    for name, kind in (*MECHANISMS.items(), *((kind.__name__, kind) for kind in mechanisms)):
        if name in PUBLISHED and not published:
            continue
        size, _ = counters(kind)
        try:
            rows.append(_row(name, _planned(kind, budget, unit, size, length), length, size, confidence))
        except ParameterError as error:
            refused[name] = str(error)
    rows.sort(key=lambda row: row.published_from)
    return Plan(length, budget, unit, *counters(Offset), confidence, tuple(rows), refused)


def _planned(kind: type[Mechanism], budget: Budget, unit: Unit, capacity: int, length: int) -> Mechanism:
    if issubclass(kind, Stability):
        return make(kind, budget, unit, None, None, max_distinct=max(length, 1))
    if not issubclass(kind.accepts[0], LinearSketch):
        return make(kind, budget, unit, capacity, None)
    return make(kind, budget, unit, capacity, length, **sketch_shape(kind, budget, capacity, length))


def _row(name: str, mechanism: Mechanism, length: int, capacity: int, confidence: float) -> PlanRow:
    model, beta = mechanism.error_model, 1.0 - confidence
    notes = list(mechanism.assumptions)
    if model.collisions is not None:
        notes.append(f"width {model.collisions.width}, depth {model.collisions.depth}")
    return PlanRow(
        mechanism=name,
        name=mechanism.name,
        summary=mechanism.accepts[0].__name__,
        capacity=None if issubclass(mechanism.accepts[0], ExactCounts) else capacity,
        threshold=mechanism.threshold,
        noise=model.noise.law,
        noise_scale=model.noise_scale,
        noise_error=mechanism.error_bound(beta),
        summary_error=summary_errors(mechanism, length, capacity, beta)[1],
        published_from=frequency_published(mechanism, length, capacity, confidence),
        memory_bytes=_bytes_of(mechanism, capacity),
        notes="; ".join(notes),
    )


def _bytes_of(mechanism: Mechanism, capacity: int) -> int | None:
    """Bytes of a full summary with keys of 32 bytes; None where they depend on the data."""
    kind, collisions = mechanism.accepts[0], mechanism.error_model.collisions
    if issubclass(kind, ExactCounts):
        return None
    size = min(capacity, 4096)
    cells = 0 if collisions is None else 8 * collisions.width * collisions.depth
    counters = "MisraGries" if issubclass(kind, LinearSketch) else kind.__name__
    return cells + math.ceil(bytes_when_full(counters, size) * capacity / size)
