"""Plans: threshold, noise and error before anything is spent, from public numbers alone.

`plan` has the mechanisms for rows side by side, `plan_people` what hides people, `plan_questions` the other questions,
and `preview` says in sentences what asking one question would cost and how exact the answer would be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet._data_class import asdict, dataclass, fields
from discreet.central import Mechanism, Offset, Stability
from discreet.central._base import choose_capacity, frequency_published, prepare_people, summary_errors
from discreet.errors import ParameterError
from discreet.privacy import Budget, Event, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import numbered, positive_number, probability, whole_number
from discreet.questions.choose import MECHANISMS, PUBLISHED, make, sketch_shape
from discreet.releases.error_model import Noise
from discreet.summaries import ExactCounts, LinearSketch
from discreet.summaries.memory import bytes_when_full
from discreet.summaries.people import LENGTH

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.questions.question import Question

USUAL = (1.0, 5.0, 20.0, 50.0)
"""Items a person, where nobody knows how many."""
_ROWS = 10**6
"""How many rows a plan is for where nobody says; what is listed hardly depends on it."""

_Parts = tuple[str, Sequence[str], Sequence[tuple[str, ...]], Sequence[int], str]
"""What is above a table, its headings, its cells, the columns on the right, and what is below."""


class _Shown:
    """A plan as a table for people, between two texts: in a terminal, and in a notebook."""

    def _table(self) -> _Parts:
        raise NotImplementedError

    def __str__(self) -> str:
        from discreet.releases.formats import table_text

        above, headings, cells, right, below = self._table()
        return f"{above}{table_text(headings, cells, right)}{below}".rstrip("\n")

    def _repr_html_(self) -> str:
        from discreet.releases.html import table_html

        above, headings, cells, _, below = self._table()
        return table_html(above.strip(), headings, cells, below.strip())


# ---- mechanisms for rows ---------------------------------------------------------------------------------------------


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
        return asdict(self)


@dataclass(frozen=True)
class Plan(_Shown):
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

        types = {"int": pa.int64(), "int | None": pa.int64(), "str": pa.string()}  # and thresholds may be any number
        columns = {
            each.name: pa.array([getattr(row, each.name) for row in self.rows], types.get(str(each.type), pa.float64()))
            for each in fields(PlanRow)
        }
        return pa.table(columns)

    def _table(self) -> _Parts:
        above = (
            f"{numbered(self.length, 'row')} with {self.budget}; hides {self.unit.describe()}\n"
            f"{self.capacity:,} counters ({self.capacity_because})\n\n"
        )
        headings = (
            "mechanism",
            "summary",
            "counters",
            "threshold",
            "noise",
            "noise error",
            "sketch error",
            "listed from",
        )
        cells = [
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
        below = (
            "\nItems with at least 'listed from' rows are listed, and counts are off by no more than the two errors,\n"
            f"with probability {self.confidence:g}."
        )
        return above, headings, cells, range(2, 8), below


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


# ---- people ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PeoplePlanRow:
    """What is published of people with this many items each.

    Attributes:
        items_per_person: How many different items a person has.
        needed: An item that this many people have is found as often as not; this is where the cut lies.
        found_from: With probability `confidence` an item that this many people have is found.
        share: `found_from` as a share of all people.
        error: With probability `confidence` no count moves by more than this through noise, if nobody has more items.
    """

    items_per_person: float
    needed: int
    found_from: int
    share: float
    error: int


@dataclass(frozen=True)
class PeoplePlan(_Shown):
    """How frequent an item must be among people, and how exact its count will be. Computed from public numbers only."""

    people: int
    budget: Budget
    k: int
    confidence: float
    rows: tuple[PeoplePlanRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {
            "people": self.people,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "k": self.k,
            "confidence": self.confidence,
            "mechanism": "auto",
            "rows": [asdict(row) for row in self.rows],
        }

    def _table(self) -> _Parts:
        above = f"{self.people:,} people, {self.budget}, k={self.k}; hides a person with all of their rows (auto)\n"
        sure = f"{100 * self.confidence:.4g}%"
        headings = ["items per person", "listed half the time from", f"listed {sure} of the time from", "counts off by"]
        cells = [
            (
                f"{row.items_per_person:g}",
                f"{row.needed:,} people",
                f"{row.found_from:,} people ({row.share:.2%})",
                f"{row.error:,} people",
            )
            for row in self.rows
        ]
        return above, headings, cells, range(4), ""


def plan_people(
    people: int, budget: Budget, k: int = 100, items_per_person: float | None = None, confidence: float = 0.95
) -> PeoplePlan:
    """What `top_k(..., user=...)` would publish, from public numbers: no data is read, nothing is spent.

    Args:
        people: How many people there are, about; a public estimate, not a count of the data.
        budget: What a release may spend.
        k: How many items are wanted.
        items_per_person: How many different items a person has, about; by default several are shown.
        confidence: The probability with which `found_from` and `error` hold.
    """
    people = whole_number("people", people, 1)
    mechanism = prepare_people(k, budget).mechanism
    beta = 1.0 - probability("confidence", confidence)
    sizes = USUAL if items_per_person is None else (positive_number("items_per_person", items_per_person),)
    return PeoplePlan(
        people, budget, k, confidence, tuple(_row_of_people(mechanism, people, size, beta) for size in sizes)
    )


def _row_of_people(mechanism: Any, people: int, size: float, beta: float) -> PeoplePlanRow:
    from discreet.central.person_vectors import AGAIN, FIRST

    calibration = mechanism.calibration
    # The noise of both looks together, in people who have nothing else.
    spread = Noise("gaussian", Fraction(calibration.spread_of_both) / (FIRST + AGAIN)).bound(2.0 * beta) / LENGTH
    cut = mechanism.threshold
    found = math.ceil((cut + spread) * math.sqrt(size))
    # Counts: a vector of this many items is as long as the root of their number, if all of them are found.
    counts = Noise("gaussian", calibration.sigma_of(calibration.counts(second=True)), mechanism.most_candidates)
    error = math.ceil(counts.bound(beta) / LENGTH * math.sqrt(min(size, mechanism.most_candidates)))
    return PeoplePlanRow(size, math.ceil(cut * math.sqrt(size)), found, found / people, error)


# ---- the other questions ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QuestionRow:
    """One question.

    Attributes:
        question: In words.
        hides: "a row" or "a person".
        command: That asks it.
        mechanism: That answers it.
        noise: The law of its noise, or "choice".
        scale: The scale of Laplace noise, or sigma of Gaussian noise; of a choice, by how much a rank may differ for
            odds of 1/e.
        error: With the plan's confidence the answer is off by no more; of quantiles, its rank; of sums, means and
            variances in units that the question says.
    """

    question: str
    hides: str
    command: str
    mechanism: str
    noise: str
    scale: float
    error: float


@dataclass(frozen=True)
class QuestionPlan(_Shown):
    """What each question would be off by. It is computed from the budget alone."""

    budget: Budget
    confidence: float
    rows: tuple[QuestionRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        rows = [asdict(row) for row in self.rows]
        return {"budget": self.budget.to_dict(), "confidence": self.confidence, "rows": rows}

    def _table(self) -> _Parts:
        headings = ["question", "hides", "command", "noise", "noise scale", f"off by ({100 * self.confidence:g}%)"]
        cells = [
            (row.question, row.hides, row.command, row.noise, f"{row.scale:.4g}", f"{row.error:,.0f}")
            for row in self.rows
        ]
        return "", headings, cells, (4, 5), f"with {self.budget}"


def plan_questions(
    budget: Budget, *, listed: int = 100, max_items: int = 1, max_rows: int = 1, confidence: float = 0.95
) -> QuestionPlan:
    """What `count`, `distinct`, `sum`, `mean`, `variance`, `histogram` and `quantiles` would be off by with a budget.

    Sums, means and variances that hide people are not among them: how far people are scaled down follows from the data.

    Args:
        budget: Epsilon alone, epsilon and delta, or rho.
        listed: How many items the list of a histogram has; its errors hold for all of them at once.
        max_items: How many values or items of a person count.
        max_rows: How many rows of a person have a vote in quantiles.
        confidence: Errors hold with this probability.
    """
    as_budget(budget)
    beta = 1.0 - probability("confidence", confidence)
    listed = whole_number("listed", listed)
    return QuestionPlan(budget, confidence, tuple(_rows(budget, listed, max_items, max_rows, beta)))


def _rows(budget: Budget, listed: int, max_items: int, max_rows: int, beta: float) -> Iterator[QuestionRow]:
    from discreet.central import CreditedDistinct, Grid, NoisyCount, RowMoments, UniverseHistogram
    from discreet.central.bad_share import BadShare
    from discreet.questions.bad_rows import SHARE
    from discreet.questions.quantiles import mechanism_for
    from discreet.summaries.moments import ValueMoment

    def row(question: str, hides: str, command: str, made: Any, error: float, noise: Noise) -> QuestionRow:
        return QuestionRow(question, hides, command, made.name, noise.law, float(noise.scale), error)

    counts: list[tuple[str, str, str, NoisyCount]] = [
        ("how many rows", "a row", "count", NoisyCount(budget)),
        ("how many people", "a person", "count", NoisyCount(budget, User(), "people")),
        ("how many different values", "a row", "distinct", NoisyCount(budget, Event(), "values")),
        (
            f"how many different values, {max_items} credited to a person",
            "a person",
            "distinct",
            CreditedDistinct(budget, max_items=max_items),
        ),
    ]
    for question, hides, command, count in counts:
        yield row(question, hides, command, count, count.error_bound(beta), count.noise)
    for command, kind, question in (
        ("sum", "signed", "sum, in units of the largest value"),
        ("mean", "mean", "mean times the number of rows, in widths of the range"),
        ("variance", "variance", "each of the three parts of a variance, in rows"),
    ):
        sums = RowMoments(budget, ValueMoment(kind))
        scale, error = float(sums.scale) / sums.moment.one, sums.error_bound(beta)
        yield QuestionRow(question, "a row", command, sums.name, sums.noise.law, scale, error)
    for hides, unit, most in (("a row", Event(), None), ("a person", User(), max_items)):
        each = UniverseHistogram(budget, range(listed), unit, most)
        of = "rows" if most is None else f"people, {most} item{'s' * (most != 1)} of each"
        yield row(f"each of {listed:,} items, {of}", hides, "histogram", each, each.error_bound(beta), each.noise)
    for hides, unit, rows in (("a row", Event(), None), ("a person", User(), max_rows)):
        made = mechanism_for(budget, Grid(0, 1), (0.5,), unit, rows)
        of = "rows" if rows is None else "people"
        question, law, scale = f"rank of a quantile, {of}", *made.randomness
        yield QuestionRow(question, hides, "quantiles", made.name, law, scale, made.error_bound(beta))
    for hides, unit in (("a row", Event()), ("a person", User())):
        test = BadShare(budget.split(SHARE)[0], Fraction(1, 10), unit)
        question = (
            f"bad {'rows' if unit == Event() else 'people'} noticed by max_bad=10%, for {SHARE:.0%} of the budget"
        )
        scale = float(test.noise.scale) / test.share.denominator
        yield QuestionRow(question, hides, "max_bad=10%", test.name, test.noise.law, scale, test.noticed)


# ---- one question, in sentences --------------------------------------------------------------------------------------


def preview(question: Question, budget: Budget, confidence: float = 0.95) -> list[str]:
    """Sentences: whom it hides, what it costs, how exact it is. All of it follows from the words and the budget."""
    budget = as_budget(budget)
    hidden = "one row"
    if question.people or question.whole_person:
        hidden = "what one person did within a span" if question.spans_hidden else "one person, with all of their rows"
    lines = [f"It hides {hidden}.", f"It costs {budget} of an account, once; a repeated charge id costs nothing."]
    sure = f"with {confidence:.0%} confidence"
    lines += _of_top(question, budget, confidence) if question.name == "top" else _of_number(question, budget, sure)
    if question.is_grouped and question.groups is None:
        lines.append("A group is listed where it is large enough: a public list of groups shows all of them.")
    return lines


def _of_top(question: Any, budget: Budget, confidence: float) -> list[str]:
    if question.people or question.spans_hidden:
        rows = plan_people(_ROWS, budget, question.k, None, confidence).rows
        few, most = rows[0], rows[-1]
        return [
            f"An item is listed from about {few.found_from:,} people if they have no other items, or "
            f"{most.found_from:,} if each has {most.items_per_person:g}.",
            f"Noise moves no count by more than about {few.error:,} people if everybody has one item, or "
            f"{most.error:,} with {most.items_per_person:g} items ({confidence:.0%} confidence).",
        ]
    if question.universe is not None:
        return _of_number(question, budget, f"with {confidence:.0%} confidence", "histogram")
    planned = plan(_ROWS, budget, k=question.k, confidence=confidence).rows
    if not planned:
        return ["Finding unknown items needs delta > 0, or a public list of all items (universe)."]
    row = planned[0]
    return [
        f"An item is listed from about {row.published_from:,.0f} rows.",
        f"Noise moves no count by more than about {row.noise_error:,.0f} rows ({confidence:.0%} confidence).",
    ]


def _of_number(question: Any, budget: Budget, sure: str, command: str | None = None) -> list[str]:
    universe = getattr(question, "universe", None)
    words = {name: getattr(question, name, None) or 1 for name in ("max_items", "max_rows")}
    listed = getattr(universe, "size", None) or 100
    hides = "a person" if question.people else "a row"
    found = [
        row
        for row in plan_questions(budget, listed=listed, **words).rows
        if (row.command, row.hides) == (command or question.name, hides)
    ]
    if not found:
        return ["How exact it is depends on how far people are scaled down, which the data decide: the answer says it."]
    (row,) = found
    return [f"{row.question[0].upper()}{row.question[1:]}: off by at most {row.error:,.0f} {sure}."]
