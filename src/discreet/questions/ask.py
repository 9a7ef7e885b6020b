"""From arguments in Python to a question: old spellings, the signature, the documentation of the words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from discreet._data_class import fields
from discreet.errors import ParameterError
from discreet.questions.words import words_of

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.questions.question import Question

F = TypeVar("F", bound=Callable[..., Any])


def asked_of(kind: type[Question], data: Any, budget: Budget, words: dict[str, Any]) -> Any:
    """What a function in Python does: make the question, and answer it.

    Some words may be spelled as in the version before; those of `Payer` say who pays.
    """
    from discreet.questions.answer import answer
    from discreet.releases.payment import Payer

    ledger, charge_id, request, source = (words.pop(name, None) for name in _PAYING)
    new = {old: each.name for each in words_of(kind) for old in each.old}
    for name in [name for name in words if name in new]:
        _warn(name, new[name])
        if words.get(new[name]) is not None:
            raise ParameterError(f"{name} is the old spelling of {new[name]}: give one of them")
        words[new[name]] = words.pop(name)
    return answer(kind(**words), data, budget, Payer(ledger, charge_id, source, request=request))


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

    warn(f"{old} is now called {new}", DeprecationWarning, stacklevel=4)


_PAYING = {
    "ledger": (
        "Account | None",
        "Account that pays: `Ledger(path).account(name)`. It is charged before noise is drawn.",
    ),
    "charge_id": (
        "str | None",
        "Name of the charge; repeating it returns what is stored under it and charges nothing.",
    ),
    "request": (
        "str | None",
        "What else the charge id stands for, in public words: the name of the file, the day.",
    ),
    "source": (
        "RandomSource | None",
        "For tests and audits only. An answer from a seeded source is NOT private and says so.",
    ),
}
_PLACED, _NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
_NONE = inspect.Parameter.empty


def function_of(kind: type[Question], first: Sequence[str] = ()) -> Callable[[F], F]:
    """Give a function the signature and the documentation of a question's words.

    `first` are those that it takes by position after the data, the budget among them.
    """

    def decorate(function: F) -> F:
        words = {each.name: each for each in words_of(kind)}
        types = {each.name: each.type for each in fields(kind)}
        placed = [
            inspect.Parameter(
                name, _PLACED, default=words[name].default if name in words and name != "k" else inspect.Parameter.empty
            )
            for name in ("data", *first)
        ]
        named = [
            inspect.Parameter(each.name, _NAMED, default=each.default, annotation=types[each.name])
            for each in words.values()
            if each.name not in first
        ]
        paying = [inspect.Parameter(name, _NAMED, default=None, annotation=type) for name, (type, _) in _PAYING.items()]
        returns = function.__annotations__["return"]
        signature = inspect.Signature([*placed, *named, *paying], return_annotation=returns)
        function.__signature__ = signature  # type: ignore[attr-defined]
        told = {
            "data": "A table or column of Arrow, pandas, polars, DuckDB, NumPy or Spark, a dict of columns, or a list.",
            **{name: words[name].help if name in words else "What the answer may spend." for name in first},
            **{name: each.help for name, each in words.items() if name not in first},
            **{name: help for name, (_, help) in _PAYING.items()},
        }
        arguments = "".join(f"        {name}: {help}\n" for name, help in told.items())
        function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n    Args:\n{arguments}"
        return function

    return decorate
