"""`max_bad`: a question is not answered, and its budget not spent, where too many rows cannot be read.

The test has a share of the question's budget, and is charged by itself before anything else: what it says is private,
so that it may be said. If it refuses, that is the answer to this charge id, for ever, and the rest is not charged.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import TooManyBadRowsError, WordError
from discreet.privacy.budget import Budget
from discreet.privacy.unit import Event, User
from discreet.questions.question import Question, with_guarantee
from discreet.releases.payment import Bill, Payer, pay_and_draw

if TYPE_CHECKING:
    from discreet.central.bad_share import BadShare
    from discreet.questions.data import Data
    from discreet.questions.question import Way
    from discreet.questions.report import Report

SHARE = 0.05
"""Of the budget of a question, for its test."""


@dataclass(frozen=True)
class BadRows:
    """The test of one question.

    Attributes:
        rest: What is left of the budget for the question.
    """

    test: BadShare
    rest: Budget

    @classmethod
    def of(cls, question: Question | Report, data: Data, budget: Budget) -> BadRows | None:
        """None where nobody asked for one; a report has none."""
        if not isinstance(question, Question) or question.max_bad is None:
            return None
        if not data.counts_bad_rows:
            raise WordError(
                "{max_bad} is for files, whose rows may be damaged; columns of tables have a type, and rows of a "
                "query with {rows_of_the_result_are_the_events} are not those of a file"
            )
        from discreet.central.bad_share import BadShare

        data.read_anew()
        part, rest = budget.split(SHARE)
        # Where lists come one a person, a row is a person, and is counted as a row.
        unit = Event() if question.user is None else User()
        return cls(BadShare(part, Fraction(str(question.max_bad)), unit), rest)

    def check(self, data: Data, payer: Payer, way: Way, terms: Mapping[str, Any], period: Any = None) -> None:
        """Charge the test and draw it; nothing happens the second time. `data` are read.

        Raises:
            TooManyBadRowsError: It refuses.
        """
        bill = Bill(self.test.budget, self.test.name, way.unit, None, way.hides, terms, self.test.cost, period)
        statistic = self.test.statistic(*data.bad_and_good(people=isinstance(self.test.unit, User)))
        refused, _ = pay_and_draw(
            payer.account,
            _named(payer),
            bill,
            lambda: self.test.draw(statistic, payer.drawn_from),
            to_payload=lambda outcome: json.dumps({"release": "test of bad rows", "refused": outcome}).encode(),
            from_payload=lambda payload: bool(json.loads(payload)["refused"]),
        )
        if refused:
            raise self.error

    def check_before(self, payer: Payer, terms: Mapping[str, Any]) -> None:
        """The same without data, where it was drawn under this charge id before."""
        if payer.account is None or payer.charge_id is None:
            return
        payload = payer.account.stored(str(_named(payer)), self.test.budget, terms)
        if payload is not None and json.loads(payload)["refused"]:
            raise self.error

    @property
    def error(self) -> TooManyBadRowsError:
        """Says what is public: the test's outcome and its parameters."""
        share, whole = f"{100 * float(self.test.share):g}%", self.test.budget
        who = "people have no row that could be read" if isinstance(self.test.unit, User) else "rows could not be read"
        return TooManyBadRowsError(
            f"more than {share} of the {who}, according to a private test ({whole} spent, nothing else): check "
            f"the format, "
            "the columns and the range, and ask under another charge id"
        )

    def told(self, answer: Any, budget: Budget) -> Any:
        """An answer that says what both cost together, and that there was a test."""
        promised = answer.guarantee
        told = f"a private test of bad rows came first, for {100 * SHARE:g}% of the budget"
        spent = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}
        promised = dataclasses.replace(promised, **spent, assumptions=(*promised.assumptions, told))
        return with_guarantee(answer, promised)


def _named(payer: Payer) -> str | None:
    """The charge id of the test."""
    return None if payer.charge_id is None else f"{payer.charge_id}/bad-rows"
