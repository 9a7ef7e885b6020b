"""`max_bad`: a question is not answered, and its budget not spent, where too many rows cannot be read.

The test has a share of the question's budget, and is charged by itself before anything else: what it says is private,
so that it may be said. If it refuses, that is the answer to this charge id, for ever, and the rest is not charged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet._data_class import dataclass, replace
from discreet.errors import TooManyBadRowsError, WordError
from discreet.noise import system_source
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Event, User
from discreet.releases.payment import Bill, Payer, changed, pay_and_draw

if TYPE_CHECKING:
    from discreet.central.bad_share import BadShare
    from discreet.noise import RandomSource
    from discreet.questions.answer import Data
    from discreet.questions.question import Question, Way

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
    def of(cls, question: Question, data: Data, budget: Budget) -> BadRows:
        """The test that a question with `max_bad` asks for."""
        if not data.counts_bad_rows:
            raise WordError(
                "{max_bad} is for files, whose rows may be damaged; columns of tables have a type, and rows of a "
                "query with {rows_of_the_result_are_the_events} are not those of a file"
            )
        from discreet.central.bad_share import BadShare

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
        (rows,) = data.read_rows  # a row that is read twice would count twice
        statistic = self.test.statistic(*rows.bad_and_good(isinstance(self.test.unit, User)))
        refused, _ = pay_and_draw(
            payer.account,
            _named(payer),
            bill,
            lambda: self.test.draw(statistic, payer.source or system_source()),
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

    def was_charged(self, payer: Payer) -> bool:
        """Whether it was paid for under this charge id before, so that the rest is all that is due."""
        return payer.account is not None and payer.charge_id is not None and payer.account.is_begun(str(_named(payer)))

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

    def told_by(self, way: Way, budget: Budget) -> Way:
        """The way to an answer that says what both cost together, and that there was a test."""

        def drawn(found: Any, source: RandomSource) -> Any:
            answer = way.draw(found, source)
            told = f"a private test of bad rows came first, for {100 * SHARE:g}% of the budget"
            return changed(answer, guarantee=answer.guarantee.assuming(told, spent=budget))

        return replace(way, draw=drawn)


def _named(payer: Payer) -> str | None:
    """The charge id of the test."""
    return None if payer.charge_id is None else f"{payer.charge_id}/bad-rows"
