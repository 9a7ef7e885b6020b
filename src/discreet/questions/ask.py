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

F = TypeVar("F", bound=Callable[..., Any])


def in_new_words(kind: type[Question], given: Mapping[str, Any], tell: Callable[[str, str], None]) -> dict[str, Any]:
    """The words of a question, where some may be spelled as in the version before; `tell` hears of (old, new)."""
    new = {old: each.name for each in words_of(kind) for old in each.old}
    words: dict[str, Any] = {}
    for name, value in given.items():
        if name in new:
            tell(name, new[name])
            if given.get(new[name]) is not None:
                raise ParameterError(f"{name} is the old spelling of {new[name]}: give one of them")
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
    from discreet.releases.payment import Payer

    payer = Payer(ledger, charge_id, source, request=request)
    return answer(kind(**in_new_words(kind, words, _warn)), data, budget, payer)


def by_place(
    function: str, given: Sequence[Any], words: dict[str, Any], places: Sequence[str], old: Sequence[str]
) -> tuple[Any, dict[str, Any]]:
    """(the budget, the words) of what follows the data by position, also in the order of the version before.

    Args:
        function: Which was called.
        given: What stands there.
        words: What was given by name.
        places: The names of the places.
        old: Those of before, when the column came first.
    """
    if given and (given[0] is None or isinstance(given[0], str)):
        _warn(
            f"the order {function}(data, {', '.join(old)})", f"{function}(data, {', '.join(places)}, column=..., ...)"
        )
        places = old
    if len(given) > len(places) or not set(places[: len(given)]).isdisjoint(words):
        raise TypeError(f"{function}() takes the data, then {', '.join(places)}; pass the rest by name")
    words = {**dict(zip(places, given, strict=False)), **words}
    if "budget" not in words:
        raise TypeError(f"{function}() needs a budget")
    return words.pop("budget"), words


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


_PLACED, _NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
_NONE = inspect.Parameter.empty


def function_of(kind: type[Question], first: Sequence[str] = ()) -> Callable[[F], F]:
    """Give a function the signature and the documentation of a question's words.

    `first` are those that it takes by position after the data, the budget among them.
    """

    def decorate(function: F) -> F:
        words = {each.name: each for each in words_of(kind)}
        types = {each.name: each.type for each in dataclasses.fields(kind)}
        own = inspect.signature(function)
        placed = [
            inspect.Parameter(name, _PLACED, default=words[name].default if name in words and name != "k" else _NONE)
            for name in ("data", *first)
        ]
        named = [
            inspect.Parameter(each.name, _NAMED, default=each.default, annotation=types[each.name])
            for each in words.values()
            if each.name not in first
        ]
        paying = [own.parameters[name] for name in _PAYING]
        function.__signature__ = own.replace(parameters=[*placed, *named, *paying])  # type: ignore[attr-defined]
        told = {
            "data": "A table or column of Arrow, pandas, polars, DuckDB, NumPy or Spark, a dict of columns, or a list.",
            **{name: words[name].help if name in words else "What the answer may spend." for name in first},
            **{name: each.help for name, each in words.items() if name not in first},
            **_PAYING,
        }
        arguments = "".join(f"        {name}: {help}\n" for name, help in told.items())
        function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    Args:\n{arguments}"
        return function

    return decorate
