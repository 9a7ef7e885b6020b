"""The errors of discreet.

DiscreetError
├── ParameterError (ValueError)      a parameter outside what is allowed
│   └── WordError                    a word of a question that is wrong, or does not go with another
├── DataError (ValueError)           input the summary or reader cannot take
│   ├── MessageError                 a party's message that the aggregator does not take; `reason` says why
│   └── TooManyBadRowsError          a private test says that too many rows cannot be read
├── NotPublishedError (KeyError)     a release was asked for an item that it does not list
├── BudgetExceededError              the ledger refuses a charge
├── IncompatibleSummaryError         summaries that cannot be merged, or a summary a mechanism's proof does not cover
├── CorruptStateError                bytes that are not a state this version can read
├── LedgerError                      the ledger itself cannot be read or written
│   ├── ChargeConflictError          the charge id stands for another request, or the account for another unit
│   ├── OldStateError                a state that is behind what the ledger knows to be published
│   └── TakenOverError               another process took over what this one published
└── TryAgainError                    somebody else is using it, or a disk is full: the same may work later
    └── LedgerBusyError (LedgerError)    of the ledger

Messages say what was given and what is allowed. They never contain items or true counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

__all__ = [
    "BudgetExceededError",
    "ChargeConflictError",
    "CorruptStateError",
    "DataError",
    "DataWordError",
    "DiscreetError",
    "IncompatibleSummaryError",
    "LedgerBusyError",
    "LedgerError",
    "MessageError",
    "NotPublishedError",
    "OldStateError",
    "ParameterError",
    "TakenOverError",
    "TooManyBadRowsError",
    "TryAgainError",
    "WordError",
]


def did_you_mean(name: str, known: Iterable[Any]) -> str:
    """The end of a message about an unknown name: the known name closest to it, if any, in whatever case."""
    from difflib import get_close_matches

    spelled = {str(each).lower(): each for each in known}
    close = get_close_matches(name.lower(), list(spelled), 1, 0.6)
    return f"; did you mean {spelled[close[0]]!r}?" if close else ""


def nearest(name: str, known: Iterable[Any]) -> str:
    """The end of a message about an unknown name: the closest known name, or all of them."""
    known = list(known)
    return did_you_mean(name, known) or f"; use one of: {', '.join(map(str, known))}"


class DiscreetError(Exception):
    """Everything discreet raises on purpose."""


class ParameterError(DiscreetError, ValueError):
    """A parameter is outside what is allowed."""


class _SpelledError(DiscreetError):
    """An error that names words of a question, which each front end spells in its way.

    They stand in braces, alone or with a value: "{time} needs {every}", "give {nulls=skip}".
    """

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(re.sub(_WORDS, lambda found: found[1] + (f"={found[2]!r}" if found[2] else ""), text))

    def spelled(self, spelling: Callable[[str], str]) -> str:
        """The message with the words as a front end spells them, and a value after its word."""
        return re.sub(_WORDS, lambda found: spelling(found[1]) + (f" {found[2]}" if found[2] else ""), self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.text,))


_WORDS = r"\{(\w+)(?:=(\w+))?\}"  # compiled when there is an error


class WordError(_SpelledError, ParameterError):
    """A question is asked in words that do not go together."""


class DataError(DiscreetError, ValueError):
    """The input is not something the summary or reader can take."""


class DataWordError(_SpelledError, DataError):
    """The input cannot be taken as it was asked for; another word would do."""


class MessageError(DataError):
    """A party's message is not one that the aggregator can take. The aggregate is as it was before.

    ``reason`` is one of "format", "checksum", "family", "round", "parameters", "duplicate", "size" and "range".
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (str(self), self.reason))


class TooManyBadRowsError(DataError):
    """Too many rows cannot be read, according to a private test: what it tells is as private as a release."""


class NotPublishedError(DiscreetError, KeyError):
    """A release does not list the item. That says nothing of whether it occurred."""

    __str__ = Exception.__str__  # a KeyError shows its message in quotation marks


class BudgetExceededError(DiscreetError):
    """A charge would spend more than the account was granted. Nothing was spent.

    ``requested`` is the refused budget, ``spent`` and ``remaining`` are amounts (``epsilon``, ``delta``, ``rho``), and
    ``charges`` holds the ids of the charges that used the account up, oldest first (of more than 100 the latest 100).
    ``about`` names the day that is used up, where the account tells days apart.
    """

    def __init__(
        self,
        message: str,
        *,
        requested: Any = None,
        spent: Any = None,
        remaining: Any = None,
        charges: tuple[str, ...] = (),
        about: str = "",
    ) -> None:
        super().__init__(message)
        self.about = about
        self.requested = requested
        self.spent = spent
        self.remaining = remaining
        self.charges = charges


class IncompatibleSummaryError(DiscreetError):
    """Two summaries cannot be merged, or a mechanism's proof does not cover this summary."""


class CorruptStateError(DiscreetError):
    """The bytes are not a state this version can read."""


class LedgerError(DiscreetError):
    """The ledger cannot be read or written, or was asked for something that does not exist."""


class TakenOverError(LedgerError):
    """Another process took over what this one published. Nothing was charged or stored, and nothing will be."""


class TryAgainError(DiscreetError):
    """Another process is using a file, or a disk is full. Nothing is wrong with what was asked: try it again later."""


class LedgerBusyError(LedgerError, TryAgainError):
    """The ledger was locked by other processes for too long, or its disk is full. Nothing was charged by this call."""


class ChargeConflictError(LedgerError):
    """What was asked contradicts what the ledger holds, and always will. Nothing was charged.

    Either the charge id was used for another request, or the account adds up another unit. ``differences`` maps the
    names of parameters that differ to what they were and what they are now (None: not given).
    """

    def __init__(self, message: str, differences: dict[str, tuple[Any, Any]] | None = None) -> None:
        super().__init__(message)
        self.differences = differences or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (str(self), self.differences))


class OldStateError(_SpelledError, LedgerError):
    """A state is not at the end of what was published from it: it is an older copy, or a copy went on meanwhile.

    ``tick`` is the state's latest step, ``known`` the latest one that was published. Nothing was drawn.
    """

    def __init__(self, message: str, *, tick: int = 0, known: int = 0) -> None:
        super().__init__(message)
        self.tick = tick
        self.known = known

    def __reduce__(self) -> tuple[Any, ...]:
        return (_old_state_error, (self.text, self.tick, self.known))


def _old_state_error(message: str, tick: int, known: int) -> OldStateError:
    return OldStateError(message, tick=tick, known=known)
