"""The commands that ask a question of files: `top`, `count`, `distinct`, `histogram`, `quantiles`, `sum` and the like.

A command is made from the words of its question. What is added here is the same for all of them: which files, how they
are read, what it costs, who pays, where the answer goes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import options
from discreet.cli.options import Paying
from discreet.cli.output import watched
from discreet.cli.publish import Place, answer_place, place, publish_answer
from discreet.errors import ParameterError
from discreet.privacy.unit import User
from discreet.questions import kind_of
from discreet.questions.question import ROW
from discreet.questions.words import from_text, words_of

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.questions.question import Question
    from discreet.releases.release import Release

QUESTIONS = {
    "top": (
        "List the most frequent values of a column.",
        "top access.log --column path --user ip --epsilon 1 --delta 1e-6",
    ),
    "count": (
        "Publish how many rows or people there are.",
        "count access.log --user ip --epsilon 1",
    ),
    "distinct": (
        "Publish how many different values a column has.",
        "distinct access.log --column path --user ip --epsilon 1",
    ),
    "histogram": (
        "Publish the count of every item of a public list.",
        "histogram access.log --column country --universe countries.txt --epsilon 1",
    ),
    "quantiles": (
        "Publish quantiles of a column of numbers.",
        "quantiles sales.csv --column amount --range 0 1000 --quantile 0.5 --epsilon 1",
    ),
    "sum": (
        "Publish the sum of a column of numbers.",
        "sum sales.csv --column amount --range 0 1000 --every 1d --time ts --epsilon 1 --delta 1e-6",
    ),
    "mean": (
        "Publish the mean of a column of numbers.",
        "mean sales.csv --column amount --range 0 1000 --user customer --epsilon 1 --delta 1e-6",
    ),
    "variance": (
        "Publish the variance of a column of numbers.",
        "variance sales.csv --column amount --range 0 1000 --epsilon 1",
    ),
}
"""What each question is for, and an example."""

_FIRST = ("column", "user", "k")


@cache
def command_of(name: str) -> click.Command:
    """The command of a question."""
    help, example = QUESTIONS[name]
    kind = kind_of(name)
    words = [each for each in words_of(kind) if not each.in_python_only]
    words.sort(key=lambda each: _FIRST.index(each.name) if each.name in _FIRST else len(_FIRST))
    gathered = (options.budget, place if kind.only_shown else answer_place, options.paying_by_name)
    asked = [option for each in words for option in options.of_word(each)]
    parameters = [options.FILES, *asked, *options.ENDS, *options.READING.values()]
    made = options.QuestionCommand(
        name,
        params=[*parameters, *(each for part in gathered for each in part.parameters), options.QUIET, options.HELP_ALL],
        callback=lambda **given: _run(kind, *(part.of(given) for part in gathered), **given),
        help=f"{help}\n\nNoise hides each person (--user), or each row.",
    )
    made.example = example
    made.advanced = options.SELDOM.union(each.name for each in words if each.advanced)
    return made


def previewed(name: str, arguments: list[str]) -> list[str]:
    """What a command would cost, and how exact it would be: nothing is read, spent or written."""
    from discreet.questions.preview import preview

    given = dict(command_of(name).make_context(name, list(arguments)).params)
    budget = options.budget.of(given)
    question, _ = _asked(kind_of(name), given)
    return preview(question, budget)


def _asked(kind: type[Question], given: dict[str, Any]) -> tuple[Question, dict[str, Any]]:
    """The question, and the words that were said."""
    first, last = given.pop("from"), given.pop("until")
    said = options.said(kind, given)
    if (first is None) != (last is None) or (first is not None and "period" in said):
        raise ParameterError("give --period, or both --from and --until")
    if first is not None:
        said["period"] = (first, last)
    return kind(**from_text(kind, said)), said


def _run(
    kind: type[Question], budget: Budget, place: Place, paying: Paying, files: tuple[str, ...], **given: Any
) -> None:
    """Ask, and publish the answer."""
    from discreet.questions.data import read

    how = {word: given.pop(str(option.name)) for word, option in options.READING.items()}
    data = read(*files, **how, watch=watched)
    if how["endpoint"] is not None:
        place = place.at(how["endpoint"])
    question, said = _asked(kind, given)
    if not kind.only_shown:
        place = place.with_confidence(question.confidence)  # type: ignore[attr-defined]
        if not question.grouped_by:
            place.refuse_pictures()
    lists = (said[name] for name in ("groups", "universe", "lookup") if name in said)
    place.check(lambda: [*data.kept(), paying.ledger, *lists])
    publish_answer(question, data, budget, place, paying, _of_top if question.name == "top" else lambda *_: [])


def _of_top(release: Release, question: Any) -> list[str]:
    """What a reader should know beside the guarantee: who is hidden, what is missing, why the list is short."""
    from discreet.releases.formats import needed

    told, unit = [], release.guarantee.unit
    if release.counted != "events" and isinstance(unit, User) and unit.max_items is not None:
        told.append(f"People with more than {unit.max_items} items are hidden, too.")
    if release.counted == "events" and question.unit is None and unit == ROW:
        told.append(
            "It hides one row: a person with many rows can put their own text on this list. --user hides people "
            "(--unit row says that you know)."
        )
    listed = len(release)
    if listed < (1 if release.by else question.k):  # of groups, some always have fewer
        what = {None: "item", 2: "pair", 3: "triple"}[question.pairs]
        some = f"{listed} of at most {question.k} {what}s are listed" if listed else f"No {what} passed the threshold"
        told.append(f"{some}: {needed(release)}.")
    return told
