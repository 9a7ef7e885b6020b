"""From arguments in Python to a question: old spellings, the signature, the documentation of the words."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.errors import ParameterError
from discreet.questions.words import words_of

if TYPE_CHECKING:
    from discreet.noise import RandomSource
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import Account
    from discreet.questions.question import Question

__all__ = ["asked_of", "current", "function_of", "in_new_order", "in_new_words"]

F = TypeVar("F", bound=Callable[..., Any])


def in_new_words(kind: type[Question], given: Mapping[str, Any], tell: Callable[[str, str], None]) -> dict[str, Any]:
    """The words of a question, where some may be spelled as in the version before; `tell` hears of (old, new)."""
    new = {old: each.name for each in words_of(kind) for old in each.old}
    words: dict[str, Any] = {}
    for name, value in given.items():
        if name in new:
            tell(name, new[name])
            if given.get(new[name]) is not None:
                raise ParameterError(f"{name} is the old name of {new[name]}: give one of them")
        words[new.get(name, name)] = value
    return words


def asked_of(
    kind: type[Question],
    words: Mapping[str, Any],
    data: Any,
    budget: Budget,
    ledger: Account | None,
    charge_id: str | None,
    request: str | None,
    source: RandomSource | None,
) -> Any:
    """What a function in Python does: make the question, and answer it."""
    from discreet.questions.answer import answer
    from discreet.questions.data import data_of
    from discreet.releases.paying import Payer

    payer = Payer(ledger, charge_id, source, request=request)
    return answer(kind(**in_new_words(kind, words, _warn)), data_of(data), budget, payer)


def in_new_order(
    function: str, second: Any, more: Sequence[Any], old: Sequence[str], words: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """(the budget, the words) of a call that may be in the order of the version before: data, column, budget, ...

    Args:
        function: Which is called.
        second: What stands after the data: the budget, or the column.
        more: What follows by position.
        old: The names of those places in the order of before.
        words: What was given by name.
    """
    if not more and not (second is None or isinstance(second, str)):
        return second, words
    given = dict(zip(old, (second, *more), strict=False))
    if len(more) + 1 > len(old) or not set(given).isdisjoint(words):
        raise TypeError(f"{function}() takes the data and the budget by position, the other words by name")
    _warn(f"the order {function}(data, {', '.join(old)})", f"{function}(data, budget, column=..., ...)")
    given = {**words, **given}
    return given.pop("budget", None), given


def current(old: str, new: str, value: Any) -> Any:
    """What was given under the name of the version before."""
    _warn(old, new)
    return value


def _warn(old: str, new: str) -> None:
    from warnings import warn

    warn(f"{old} is now called {new}", DeprecationWarning, stacklevel=5)


_PAYING = {
    "ledger": "Account that pays: `Ledger(path).account(name)`. It is charged before noise is drawn.",
    "charge_id": "Name of the charge; repeating it returns what is stored under it and charges nothing.",
    "request": "What else the charge id stands for, in public words: the name of the file, the day.",
    "source": "For tests and audits only. An answer from a seeded source is NOT private and says so.",
}


def function_of(kind: type[Question], first: Sequence[str] = ()) -> Callable[[F], F]:
    """Give a function the signature and the documentation of a question's words.

    `first` are words that it takes by position beside the data and the budget.
    """

    def decorate(function: F) -> F:
        words = {each.name: each for each in words_of(kind)}
        keywords = [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
            for each in dataclasses.fields(kind)
            if each.name not in first
        ]
        own = inspect.signature(function)
        given = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        at = sum(each.kind is not inspect.Parameter.KEYWORD_ONLY for each in given)
        function.__signature__ = own.replace(parameters=[*given[:at], *keywords, *given[at:]])  # type: ignore[attr-defined]
        told = {
            "data": "A table or a column of Arrow, pandas, polars, DuckDB or NumPy, a dict of columns, or a list.",
            **{name: words[name].help for name in first},
            "budget": "What the answer may spend.",
            **{name: each.help for name, each in words.items() if name not in first},
            **_PAYING,
        }
        arguments = "".join(f"        {name}: {help}\n" for name, help in told.items())
        function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    Args:\n{arguments}"
        return function

    return decorate
