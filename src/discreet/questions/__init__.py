"""What can be asked, one file a question, and the one way to an answer. Names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._names import on_first_use

if TYPE_CHECKING:
    from discreet.questions.answer import answer
    from discreet.questions.choose import MECHANISMS as MECHANISMS
    from discreet.questions.count import Count
    from discreet.questions.distinct import Distinct
    from discreet.questions.histogram import Histogram
    from discreet.questions.of_summary import release
    from discreet.questions.plans import plan, plan_people, plan_questions
    from discreet.questions.quantiles import Quantiles
    from discreet.questions.question import Question as Question
    from discreet.questions.sums import Mean, Sum, Variance
    from discreet.questions.top import Top

_WHERE = {
    "MECHANISMS": "questions.choose",
    "Question": "questions.question",
    "answer": "questions.answer",
    "Count": "questions.count",
    "Distinct": "questions.distinct",
    "Histogram": "questions.histogram",
    **dict.fromkeys(["Mean", "Sum", "Variance"], "questions.sums"),
    "Quantiles": "questions.quantiles",
    "Top": "questions.top",
    "plan": "questions.plans",
    "plan_people": "questions.plans",
    "plan_questions": "questions.plans",
    "release": "questions.of_summary",
}

__all__ = [
    "Count",
    "Distinct",
    "Histogram",
    "Mean",
    "Quantiles",
    "Sum",
    "Top",
    "Variance",
    "answer",
    "plan",
    "plan_people",
    "plan_questions",
    "release",
]

__getattr__, __dir__ = on_first_use(__name__, _WHERE)

KINDS = ("top", "count", "distinct", "histogram", "quantiles", "sum", "mean", "variance")
"""The questions that have one answer, by the names that front ends call them."""


def kind_of(name: str) -> type[Question]:
    """The class of a question."""
    kind: type[Question] = __getattr__(name.capitalize())
    return kind
