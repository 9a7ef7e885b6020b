"""`discreet init`: look at a file together, and write the first command, or the file of a report. Publishes nothing."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from discreet.cli import options
from discreet.cli.options import argument, choice, command, option
from discreet.cli.output import note, table_width
from discreet.errors import ParameterError, nearest
from discreet.questions.first_question import ASKED, EPSILON, OF_NUMBERS, FirstQuestion, first_values, likely

_READING = {"format": "--input-format", "delimiter": "--delimiter", "encoding": "--encoding"}
_FOUND = {"format": "it looks like the log of a web server", "delimiter": "cells look separated by {!r}"}
_HEADING = (
    "discreet report THIS.toml --plan                  what each question gets; nothing is spent",
    "discreet report THIS.toml --output page.html      answers all questions, once",
)


@command()
def init(
    data: str = argument("data", "The file to look at.", metavar="DATA"),
    question: str | None = option("--question", "What to publish.", choice(*ASKED)),
    column: str | None = option("--column", "Column to publish about."),
    user: str | None = options.USER,
    people: int | None = option("--people", "Smallest number of people in the data, from public knowledge.", int),
    range: tuple[float, float] | None = option(
        "--range", "For numbers: smallest and largest value, from public knowledge.", float, nargs=2
    ),
    time: str | None = option("--time", "Column with the time of a row, to publish by day; 'none' for all at once."),
    output: str | None = option("-o --output", "Write a report with comments to this file, instead of a command."),
    input_format: str | None = options.INPUT_FORMAT,
    delimiter: str | None = options.DELIMITER,
    encoding: str | None = options.ENCODING,
) -> None:
    """Look at a file, and write the first command for it.

    It shows the columns and a few values on this terminal, and asks what to publish and whose rows they are. Then it
    writes a command, or with --output a report with comments. `--user none` says that every row is another person,
    `--time none` that all is published at once. It publishes nothing and spends nothing.
    """
    from discreet.events.glance import glance
    from discreet.releases.formats import table_text

    given = {"format": input_format, "delimiter": delimiter, "encoding": encoding}
    how = {name: said for name, said in given.items() if said is not None}
    names, found = glance(data, **how)
    for name, each in found.items():
        note(f"{_FOUND[name].format(each)}: {_READING[name]} {shlex.quote(each)}")
    how |= found
    if output is not None and Path(output).exists():
        raise ParameterError(f"{output} already exists; remove it, or choose another name")
    if sys.stdin.isatty():
        rows = first_values(data, names, how)
        note("the first values, on this terminal only; nothing is published")
        click.echo(table_text(["column", "first values"], rows, (), table_width()), err=True)
    question = question or _ask("question", "What do you want to publish?", choices=ASKED, usual="top")
    words: dict[str, Any] = {}
    if question != "count":
        words["column"] = _of(names, "column", column or _ask("column", "Of which column?", choices=names))
    if user is None:
        asked = "Which column says whose row it is ('none': every row is another person)?"
        user = _ask("user", asked, likely("user", names) or "none")
    words["user"] = _of(names, "user", user)
    if people is None:
        people = _ask(
            "people", "How many people are in the data, at least? A public number, not a count of it.", "1000", kind=int
        )
    if people < 1:
        raise ParameterError(f"--people must be at least 1, not {people}")
    if question in OF_NUMBERS and range is None:
        range = (
            _ask("range", "The smallest value to count, from public knowledge?", kind=float),
            _ask("range", "The largest value to count, from public knowledge?", kind=float),
        )
    if time is None:
        asked = "Which column has the time of a row, to publish by day ('none': all at once)?"
        time = _ask("time", asked, likely("time", names) or "none")
    if _of(names, "time", time) is not None:
        words |= {"every": "1d", "time": time}
    if question in OF_NUMBERS:
        words["range"] = range
    if question == "quantiles":
        words["quantiles"] = (0.5,)
    words = {name: value for name, value in words.items() if value is not None}
    first = FirstQuestion(data, how, question, words, people)
    for line in first.preview():
        note(line)
    if output is None:
        said = [part for name, each in how.items() for part in (_READING[name], each)]
        for name, value in words.items():
            texts = [f"{each:g}" for each in value] if isinstance(value, tuple) else [value]
            said += ["--quantile" if name == "quantiles" else f"--{name}", *texts]
        budget = ["--epsilon", f"{EPSILON:g}", "--delta", f"{first.delta:g}"]
        print(shlex.join(["discreet", question, data, *said, *budget]))
    else:
        Path(output).write_text(first.report(_HEADING), encoding="utf-8")
        note(f"wrote {output}: look at it, then `discreet report {shlex.quote(output)} --plan`")


def _of(names: list[str], option: str, given: str) -> str | None:
    if given == "none" and given not in names and option != "column":
        return None
    if given not in names:
        raise ParameterError(f"no column named {given!r}{nearest(given, names)}")
    return given


def _ask(option: str, text: str, usual: str | None = None, choices: Any = None, kind: Any = None) -> Any:
    """Ask at a terminal; elsewhere the option is needed."""
    if not sys.stdin.isatty():
        raise ParameterError(f"--{option} is missing; give it, or run this in a terminal to be asked for it")
    for name in choices or ():
        click.echo(f"  {name}" + (f": {choices[name]}" if isinstance(choices, dict) else ""), err=True)
    kind = kind or (None if choices is None else click.Choice(list(choices)))
    # Of a prompt of its own click before 8.5 puts the last blank on standard output, where the command is to be.
    click.echo(f"{text}{'' if usual is None else f' [{usual}]'}: ", nl=False, err=True)
    return click.prompt("", usual, type=kind, show_choices=False, show_default=False, prompt_suffix="", err=True)
