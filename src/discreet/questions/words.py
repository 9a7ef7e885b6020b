"""The words in which a question is asked: what each means, how it is checked, and its one line of help.

A word is a field of a `Question`. Said here once, it is an argument in Python, an option of the command line and a key
in TOML, spelled the same in all of them.

    k: int = word(100, "List at most N values (of every group).", whole(1), letter="k")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from discreet._data_class import dataclass, field, fields
from discreet.errors import ParameterError, WordError
from discreet.privacy.checks import probability, whole_number

SAID = {
    "user": "Column that says whose row it is. Hides whole people.",
    "where": 'Use only rows where this is true, in SQL: "status = 404".',
    "nulls": "What to do with rows that lack a value: stop, or skip them.",
    "bad_rows": "What to do with rows that cannot be read: skip them, or stop.",
    "time": "Column with the time of a row (ISO 8601 or Unix seconds).",
}
"""The help of words that others than questions have, too."""


@dataclass(frozen=True)
class ValueKind:
    """What the value of a word may be.

    Attributes:
        check: Gives back the value as the question keeps it; a ParameterError says what is allowed.
        shown: Stands for the value in the help.
        type: Of one value that is written as text.
        values: How many values belong together.
        several: Whether the word may be given more than once.
        choices: All there are, if they are few.
        flag: What the option stands for where it takes no value.
        more_flags: Other options that stand for a value of the word: (name, value, help).
        from_text: Makes the value of what was written, and of the other words that were given.
    """

    check: Callable[[str, Any], Any] = lambda name, value: value
    shown: str | None = None
    type: type = str
    values: int = 1
    several: bool = False
    choices: tuple[str, ...] = ()
    flag: Any = None
    more_flags: tuple[tuple[str, Any, str], ...] = ()
    from_text: Callable[[Any, Mapping[str, Any]], Any] | None = None


@dataclass(frozen=True)
class Word:
    """A word of a question, which is a field of its class.

    Attributes:
        name: That of the field.
        default: Where nobody says otherwise.
        help: One line.
        kind: What it may be.
        option: How the command line spells it, where a plural would read badly there.
        letter: A short option.
        advanced: Whether only the long help shows it.
        in_python_only: Whether no front end but Python has it.
        old: Spellings of the version before, which are still understood.
    """

    name: str
    default: Any
    help: str
    kind: ValueKind
    option: str = ""
    letter: str = ""
    advanced: bool = False
    in_python_only: bool = False
    old: tuple[str, ...] = ()


def word(default: Any, help: str, kind: ValueKind, **more: Any) -> Any:
    """A field of a question: see `Word`."""
    return field(default=default, metadata={"help": help, "kind": kind, **more})


def _words_of(question: type) -> tuple[Word, ...]:
    """The words of a class of questions, in their order."""
    return tuple(Word(each.name, each.default, **each.metadata) for each in fields(question))


words_of: Callable[[type], tuple[Word, ...]] = cache(_words_of)


def from_text(question: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The words that were said in text; what stands there several times is a tuple. Of some a value is made first."""
    words: dict[str, Any] = {}
    for each in words_of(question):
        said = given.get(each.name, ())
        if isinstance(said, tuple) and not each.kind.several:
            if len(said) > 1:
                raise WordError(f"{{{each.name}}} was given more than once; this command takes one")
            said = said[0] if said else None
        if said is not None and said != ():
            words[each.name] = said
    for each in words_of(question):
        if each.name in words and each.kind.from_text is not None:
            words[each.name] = each.kind.from_text(words[each.name], words)
    return words


# ---- kinds -----------------------------------------------------------------------------------------------------------


def whole(low: int = 1, high: int | None = None) -> ValueKind:
    """A whole number."""
    return ValueKind(lambda name, value: whole_number(name, value, low, high), "N", int)


def share() -> ValueKind:
    """A number above 0 and below 1."""
    return ValueKind(probability, "SHARE", float)


def share_of_rows(name: str, value: Any) -> float:
    """The check of a share such as 10% or 0.1, in hundredths of a percent."""
    text = str(value).strip()
    with suppress(ValueError):
        found = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        if 0 < found < 1 and abs(found - round(found, 4)) < 1e-12 and round(found, 4) > 0:
            return round(found, 4)
    raise ParameterError(f"{name} must be a share above 0 and below 1, such as 10% or 0.1, not {value!r}")


def choice(*allowed: str) -> ValueKind:
    """One of a few words."""

    def check(name: str, value: Any) -> Any:
        if value not in allowed:
            raise ParameterError(f"{name} must be {' or '.join(map(repr, allowed))}, not {value!r}")
        return value

    return ValueKind(check, choices=allowed)


def flag() -> ValueKind:
    """Said or not."""
    return ValueKind(type=bool)


def plain(shown: str | None = None, from_text: Callable[[Any, Mapping[str, Any]], Any] | None = None) -> ValueKind:
    """Anything that whatever takes it checks itself."""
    return ValueKind(shown=shown, from_text=from_text)


def column() -> ValueKind:
    """The name of a column."""
    return ValueKind(lambda name, value: _names(name, value, 1)[0], "NAME")


def columns() -> ValueKind:
    """The name of a column, or the names of several."""
    return ValueKind(lambda name, value: _names(name, value), "NAME", several=True)


def _names(name: str, value: Any, most: int | None = None) -> tuple[str, ...]:
    """Names of columns: one, or several in a list."""
    from discreet.events.items import item_of

    given = type(value).__name__
    if most == 1 and not isinstance(value, str):
        raise ParameterError(f"{name} must be the name of a column, not {given}")
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (list, tuple)) else ()
    if not names or any(not isinstance(each, str) or item_of(each) is None for each in names):
        raise ParameterError(f"{name} must be the name of a column, or a list of names, not {given}")
    if len(set(names)) < len(names):
        raise ParameterError(f"{name} must be different columns")
    return names


def two_ends(name: str, value: Any, what: str = "numbers") -> tuple[Any, Any]:
    """The check of LOW and HIGH, which are public."""
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__len__") or len(value) != 2:
        raise ParameterError(f"{name} must be two public {what}: LOW and HIGH")
    return tuple(value)


def number_range() -> ValueKind:
    """Two numbers, LOW and HIGH, which are public."""
    return ValueKind(two_ends, "LOW HIGH", float, values=2)


# ---- what goes together ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refusal:
    """A refusal that follows from the words alone.

    Attributes:
        text: What is wrong, with the words in braces: "{time} needs {every}".
        broken: Whether it is, for a question.
        about: The word without which there is nothing to refuse: where it says nothing, `broken` is not asked.
    """

    text: str
    broken: Callable[[Any], bool]
    about: str | None = None


def excludes(first: str, second: str, because: str = "") -> Refusal:
    """Two words that cannot be combined."""
    why = f" ({because})" if because else ""
    text = f"{{{first}}} cannot be combined with {{{second}}}{why}"
    return Refusal(text, lambda question: second in question.given, first)


def needs(first: str, *others: str, because: str = "") -> Refusal:
    """A word that makes no sense without another, or without one of several."""
    which = " or ".join(f"{{{other}}}" for other in others)
    why = f" ({because})" if because else ""
    return Refusal(f"{{{first}}} needs {which}{why}", lambda question: question.given.isdisjoint(others), first)
