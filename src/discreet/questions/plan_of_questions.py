"""What the questions beside the top would be off by, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from discreet.privacy import Budget, Event, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import probability, whole_number
from discreet.releases.error_model import Noise


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
class QuestionPlan:
    """What each question would be off by. It is computed from the budget alone."""

    budget: Budget
    confidence: float
    rows: tuple[QuestionRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        rows = [asdict(row) for row in self.rows]
        return {"budget": self.budget.to_dict(), "confidence": self.confidence, "rows": rows}

    def __str__(self) -> str:
        from discreet.releases.formats import table_text

        return f"{table_text(self._headings(), self._cells(), (4, 5))}with {self.budget}"

    def _repr_html_(self) -> str:
        from discreet.releases.html import table_html

        return table_html("", self._headings(), self._cells(), f"with {self.budget}")

    def _headings(self) -> list[str]:
        return ["question", "hides", "command", "noise", "noise scale", f"off by ({100 * self.confidence:g}%)"]

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (row.question, row.hides, row.command, row.noise, f"{row.scale:.4g}", f"{row.error:,.0f}")
            for row in self.rows
        ]


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
        yield QuestionRow(question, hides, "--max-bad 10%", test.name, test.noise.law, scale, test.noticed)
