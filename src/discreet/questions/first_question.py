"""The first question about a file: what there is to ask, what its columns probably are, and how it is written down."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from discreet._data_class import dataclass
from discreet.questions import kind_of

ASKED = {
    "top": "the most frequent values of a column",
    "count": "how many there are",
    "distinct": "how many different values a column has",
    "mean": "the mean of a column of numbers",
    "quantiles": "the median of a column of numbers",
}
"""What a first question may be about."""
OF_NUMBERS = ("mean", "quantiles")
EPSILON = 1.0
_PEOPLE = ("user", "user_id", "userid", "visitor", "customer", "client", "person", "member", "ip", "host", "uid", "who")
_NAMES = {"user": _PEOPLE, "time": ("time", "ts", "timestamp", "date", "day")}
_WHY = {
    "user": "whose row it is: hides whole people",
    "time": "the time of a row",
    "column": "what it is about",
    "every": "an answer for every day",
    "range": "values outside count as the nearest end; from public knowledge, never from the data",
    "quantiles": "0.5 is the median; add 0.9 for the 90th percentile",
}


def likely(word: str, names: Iterable[str]) -> str | None:
    """The column that a word such as "user" is probably about, by its name."""
    return next((name for name in names if name.lower() in _NAMES[word]), None)


def first_values(data: str, names: Sequence[str], how: Mapping[str, Any], many: int = 3) -> list[tuple[str, str]]:
    """The columns of a file, and their first values. NOT private: for anyone who has the data anyway."""
    from discreet.questions.answer import read

    rows = []
    for name in names:
        batches: Any = read(data, **how).events.rows([name], nulls="skip")
        values = [str(value) for batch in islice(batches, 1) for value in batch.column(0)[:many].to_pylist()]
        rows.append((name, ", ".join(value if len(value) <= 30 else f"{value[:27]}..." for value in values)))
    return rows


@dataclass(frozen=True)
class FirstQuestion:
    """A question of a file, for a budget that follows from how many people there are.

    Attributes:
        data: The file.
        how: How it is written, in the words of `read`.
        kind: The name of the question.
        words: What it says.
        people: How many people there are at least: a public number.
    """

    data: str
    how: Mapping[str, str]
    kind: str
    words: Mapping[str, Any]
    people: int

    @property
    def delta(self) -> float:
        """A power of ten far below 1 / people."""
        return 10.0 ** -(math.ceil(math.log10(self.people)) + 2)

    def preview(self) -> list[str]:
        """What it costs, and how exact it would be: nothing is read."""
        from discreet.privacy.budget import Budget
        from discreet.questions.plans import preview

        return preview(kind_of(self.kind)(**self.words), Budget(EPSILON, self.delta))

    def report(self, heading: Sequence[str]) -> str:
        """A report with this question, to be added to, with a comment on every line; `heading` comes first."""
        shared = {name: self.words[name] for name in ("user", "time") if name in self.words}
        own = {name: said for name, said in self.words.items() if name not in shared}
        lines = [
            *(f"# {line}" for line in heading),
            f"title = {_value(f'About {Path(self.data).name}')}",
            *(f"{name} = {_value(said)}  # {_WHY[name]}" for name, said in shared.items()),
            *(() if "user" in shared else ('# user = "..."  # without it a row is a person',)),
            f"epsilon = {EPSILON}  # smaller is stronger; 1 is a common limit",
            f"delta = {self.delta:g}  # the chance that the promise fails: far below 1 / {self.people:,} people",
            "",
            "[data]",
            f"files = {_value(self.data)}",
            *(f"{name} = {_value(said)}" for name, said in self.how.items()),
            "",
            "[[questions]]",
            f"title = {_value(ASKED[self.kind].capitalize())}",
            f"kind = {_value(self.kind)}",
            *(f"{name} = {_value(said)}  # {_WHY[name]}" for name, said in own.items()),
            "",
            "# Add more questions here: they share the budget.",
            "# [[questions]]",
            '# kind = "count"',
        ]
        return "\n".join(lines) + "\n"


def _value(said: Any) -> str:
    return json.dumps(list(said) if isinstance(said, tuple) else said, ensure_ascii=False)
