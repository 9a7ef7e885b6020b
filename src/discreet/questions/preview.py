"""preview: what asking a question would cost, and how exact the answer would be. No data are read, nothing is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.privacy.budget import as_budget

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.questions.question import Question

_ROWS = 10**6
"""How many rows a plan is for where nobody says; what is listed hardly depends on it."""


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
        lines.append("A group is listed where it is large enough: give a public list with --groups to see all of them.")
    return lines


def _of_top(question: Any, budget: Budget, confidence: float) -> list[str]:
    if question.people or question.spans_hidden:
        from discreet.questions.plan_of_people import plan_people

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
    from discreet.questions.plan_of_rows import plan

    planned = plan(_ROWS, budget, k=question.k, confidence=confidence).rows
    if not planned:
        return ["Finding unknown items needs delta > 0, or a public list of all items (universe)."]
    row = planned[0]
    return [
        f"An item is listed from about {row.published_from:,.0f} rows.",
        f"Noise moves no count by more than about {row.noise_error:,.0f} rows ({confidence:.0%} confidence).",
    ]


def _of_number(question: Any, budget: Budget, sure: str, command: str | None = None) -> list[str]:
    from discreet.questions.plan_of_questions import plan_questions

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
