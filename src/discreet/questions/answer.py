"""answer: the one way from a question and data to what is published, for all front ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.privacy.budget import as_budget
from discreet.privacy.charge_terms import question_of
from discreet.questions.data import data_of
from discreet.releases.payment import Bill, Payer

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.questions.data import Data
    from discreet.questions.question import Question

__all__ = ["answer", "stands_for"]


# Columns and k stand beside the other words, lists may be long, and the mechanism is in the guarantee.
_TOLD_ELSEWHERE = frozenset({"k", "column", "by", "time", "user", "value", "universe", "groups", "mechanism"})


def answer(question: Question, data: Any, budget: Budget, payer: Payer | None = None) -> Any:
    """Check, read, charge, draw, store, return.

    A charge id that was used for this question gives what is stored under it: nothing is read, and nothing charged. A
    crash may waste budget; it never publishes anything uncharged.

    Returns:
        A `Release`, an `Estimate` or a `QuantileRelease`, which says how it was paid.
    """
    budget, payer, data = as_budget(budget), payer or Payer(), data_of(data)
    described = stands_for(question, data, payer)
    stored = payer.stored(budget, described)
    if stored is not None:
        return stored
    way = question.way(data, budget)
    payer.check(budget, way.cost)  # before reading, which may take long
    found = way.count()
    try:
        data.when_read()
        payer.when_read()
        bill = Bill(budget, way.description, way.unit, None, way.hides, described, way.cost)
        said = {**question.to_dict(), **data.described, **(way.chosen or {})}
        told = {name: value for name, value in said.items() if name not in _TOLD_ELSEWHERE}
        asked = {"k": getattr(question, "k", None), "columns": question.columns, **told}
        return payer.pay(bill, lambda: way.draw(found, payer.drawn_from), asked)
    finally:
        way.close(found)


def stands_for(question: Question, data: Data, payer: Payer) -> dict[str, Any]:
    """What a charge id stands for: the question as it was asked, and of what. It holds nothing of the data."""
    if payer.account is None:
        return {}
    words = {name: value for name, value in question.to_dict().items() if name not in question.no_other_answer}
    return question_of(question.name, **words, **data.described, secret={**data.secret, "request": payer.request})
