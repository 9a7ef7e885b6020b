"""answer: the one way from a question and data to what is published, for all front ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.privacy.budget import as_budget
from discreet.privacy.charge_terms import question_of
from discreet.questions.data import data_of
from discreet.questions.question import way_for
from discreet.releases.payment import Bill, Payer

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.questions.bad_rows import BadRows
    from discreet.questions.data import Data
    from discreet.questions.question import Question, Way
    from discreet.questions.report import Report


# Columns and k stand beside the other words, lists may be long, and the mechanism is in the guarantee.
_TOLD_ELSEWHERE = frozenset({"k", "column", "by", "time", "user", "value", "universe", "groups", "mechanism"})
_TOLD_ELSEWHERE |= {"questions"}  # of a report, each of which says it


def answer(question: Question | Report, data: Any, budget: Budget, payer: Payer | None = None) -> Any:
    """Check, read, charge, draw, store, return.

    A charge id that was used for this question gives what is stored under it: nothing is read, and nothing charged. A
    crash may waste budget; it never publishes anything uncharged.

    Returns:
        A `Release`, an `Estimate`, a `QuantileRelease` or a `ReportRelease`, which says how it was paid.
    """
    budget, payer, data = as_budget(budget), payer or Payer(), data_of(data)
    described: dict[str, Any] = {}
    test = None if getattr(question, "max_bad", None) is None else _test_of_bad_rows(question, data, budget)
    rest = budget if test is None else test.rest
    if payer.account is not None:
        described = stands_for(question, data, payer)
        if payer.charge_id is None:
            payer = replace(payer, charge_id=charge_id_of(question, data, budget))
        stored = payer.stored(rest, described)
        if stored is not None:
            return stored
        if test is not None:
            test.check_before(payer, described)
    way = way_for(question, data, rest)
    cost = None
    if payer.account is not None:  # before reading, which may take long
        cost = way.cost
        payer.check(budget, cost if test is None else None, way.hides or way.unit, question.period)
    found = way.count()
    try:
        while data.when_read:
            data.when_read.pop()()
        if test is not None:
            test.check(data, payer, way, described, question.period)

        def draw() -> Any:
            drawn = way.draw(found, payer.drawn_from)
            return drawn if test is None else test.told(drawn, budget)

        bill = Bill(rest, way.description, way.unit, None, way.hides, described, cost, question.period)
        return payer.pay(bill, draw, told_of(question, data, way))
    finally:
        way.close(found)


def _test_of_bad_rows(question: Question | Report, data: Data, budget: Budget) -> BadRows | None:
    from discreet.questions.bad_rows import BadRows

    return BadRows.of(question, data, budget)


def told_of(question: Question | Report, data: Data, way: Way) -> dict[str, Any]:
    """What the answer says was asked (see `Asked`): the words, how the data are read, what was chosen."""
    said = {**question.to_dict(), **data.described, **(way.chosen or {})}
    told = {name: value for name, value in said.items() if name not in _TOLD_ELSEWHERE}
    return {"k": getattr(question, "k", None), "columns": question.columns, **told}


def charge_id_of(question: Question | Report, data: Data, budget: Budget) -> str | None:
    """The name of the charge of a question about a period of files, where nobody gave it one: the same for the same.

    So a job that is started twice publishes one release and pays for one. None where nothing says which data it is.
    """
    if question.period is None or not data.are_files or "-" in data.secret.get("files", ["-"]):
        return None
    words = {name: value for name, value in question.to_dict().items() if name not in question.no_other_answer}
    asked = question_of(question.name, **words, **data.described, secret=data.secret)
    import hashlib
    import json

    digest = hashlib.sha256(json.dumps([asked, budget.to_dict()], sort_keys=True).encode()).hexdigest()
    period = question.period if isinstance(question.period, str) else "-to-".join(question.period)
    return f"{question.name}-{period}-{digest[:16]}"


def stands_for(question: Question | Report, data: Data, payer: Payer) -> dict[str, Any]:
    """What a charge id stands for: the question as it was asked, and of what. It holds nothing of the data."""
    if payer.account is None:
        return {}
    words = {name: value for name, value in question.to_dict().items() if name not in question.no_other_answer}
    return question_of(question.name, **words, **data.described, secret={**data.secret, "request": payer.request})
