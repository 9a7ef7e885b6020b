"""What a report publishes: the answers to its questions under one guarantee."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from discreet._data_class import dataclass, field
from discreet.errors import CorruptStateError, NotPublishedError
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Asked, Guarantee
from discreet.releases.estimate_table import Promised


@dataclass(frozen=True)
class ReportPart:
    """A question of a report and its answer.

    Attributes:
        title: In words.
        question: What was asked, JSON-ready: its kind, its words, its share of the budget.
        budget: What the mechanism was given. Of a pool budgets add up to more than the report's: see the guarantee.
        answer: A `Release`, an `Estimate` or a `QuantileRelease`.
        told: What the answer says was asked (`Asked.of`).
    """

    title: str
    question: Mapping[str, Any]
    budget: Budget
    answer: Any
    told: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, repr=False)
class ReportRelease(Promised):
    """The answers of a report: `found["Visitors"]`, or in order. A notebook shows them as a page.

    Attributes:
        title: Of the page.
        parts: The questions with their answers.
        guarantee: What all of them together promise.
        confidence: With this probability all intervals of the report hold.
        each_confidence: That of the intervals of one question, so that all of them do.
        payment: How it was paid, see `releases.payment`.
        asked: What was asked for, and when.
    """

    title: str
    parts: tuple[ReportPart, ...]
    guarantee: Guarantee
    confidence: float
    each_confidence: float
    payment: str | None = field(default=None, compare=False)
    asked: Asked | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Any]:
        return (part.answer for part in self.parts)

    def __getitem__(self, title: str | int) -> Any:
        """The answer to a question, by its title or its place."""
        if isinstance(title, int):
            return self.parts[title].answer
        for part in self.parts:
            if part.title == title:
                return part.answer
        raise NotPublishedError(f"the report has no question {title!r}; it has {', '.join(self.titles)}")

    def __repr__(self) -> str:
        return f"ReportRelease({self.title!r}: {', '.join(self.titles)}; {self.guarantee.sentence()})"

    @property
    def titles(self) -> list[str]:
        """The titles of the questions."""
        return [part.title for part in self.parts]

    # ---- how it is written -------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        from discreet.releases.formats import described

        return {
            "title": self.title,
            "guarantee": self.guarantee.to_dict(),
            "confidence": self.confidence,
            "each_confidence": self.each_confidence,
            **({} if self.asked is None else {"time": self.asked.time, "version": self.asked.version}),
            "questions": self._told(lambda answer: described(answer, self.each_confidence)),
        }

    def _told(self, answered: Callable[[Any], Any]) -> list[dict[str, Any]]:
        """The questions, each with its answer as it is told here."""
        return [
            {
                "title": part.title,
                "question": dict(part.question),
                "budget": part.budget.to_dict(),
                "answer": answered(part.answer),
            }
            for part in self.parts
        ]

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def to_csv(self) -> dict[str, str]:
        """A table of CSV for every question, by a name that a file may have: "1-top-pages"."""
        from discreet.releases.formats import formats_of

        return {
            f"{place}-{_slug(part.title)}": str(formats_of(part.answer)["csv"](part.answer, self.each_confidence, None))
            for place, part in enumerate(self.parts, 1)
        }

    def to_table(self, width: int | None = None) -> str:
        """For people, one question below the other."""
        from discreet.releases.formats import formats_of, notes_of, paragraph

        told = [f"{self.title}\n{'═' * len(self.title)}\n"]
        for part in self.parts:
            written = str(formats_of(part.answer)["table"](part.answer, self.each_confidence, width))
            promise = paragraph(part.answer.guarantee.sentence())
            notes = "".join(f"\n{paragraph(text)}" for text in notes_of(part.answer))
            told.append(f"{part.title}\n\n{written.replace(promise, '').rstrip()}{notes}\n")
        together = f"All intervals hold together with {100 * self.confidence:g} %."
        told.append(f"{paragraph(f'{self.guarantee.sentence()} {together}')}\n")
        return "\n".join(told)

    def to_html(self) -> str:
        """A page that stands alone."""
        from discreet.releases.report_page import page

        return page(self)

    def _repr_html_(self) -> str:
        from discreet.releases.report_page import fragment

        return fragment(self)

    # ---- how a ledger keeps it ---------------------------------------------------------------------------------------

    def to_payload(self) -> bytes:
        """What a ledger stores."""
        told = {
            "title": self.title,
            "guarantee": self.guarantee.to_dict(),
            "confidence": self.confidence,
            "each_confidence": self.each_confidence,
            "asked": None if self.asked is None else self.asked.to_dict(),
            "parts": self._told(lambda answer: json.loads(answer.to_payload())),
        }
        return json.dumps({"release": "report", "version": 1, **told}, allow_nan=False).encode()

    @classmethod
    def from_payload(cls, payload: bytes) -> ReportRelease:
        """The inverse of `to_payload`."""
        from discreet.releases.payment import answer_of

        try:
            told = json.loads(payload)
            if told["release"] != "report" or told["version"] != 1:
                raise ValueError
            parts = tuple(
                ReportPart(
                    str(part["title"]),
                    dict(part["question"]),
                    Budget.from_dict(part["budget"]),
                    answer_of(json.dumps(part["answer"]).encode()),
                )
                for part in told["parts"]
            )
            return cls(
                str(told["title"]),
                parts,
                Guarantee.from_dict(told["guarantee"]),
                float(told["confidence"]),
                float(told["each_confidence"]),
                asked=None if told["asked"] is None else Asked.from_dict(told["asked"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise CorruptStateError("the ledger holds something other than a report under this id") from None


def _slug(title: str) -> str:
    """A title as a part of a file's name."""
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")[:40] or "question"
