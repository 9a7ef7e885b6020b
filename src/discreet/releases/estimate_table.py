"""Estimates one below the other, each with its interval: what published quantiles and answers by group share."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.errors import CorruptStateError, DataError
from discreet.privacy.guarantee import Guarantee
from discreet.releases.release import unreadable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from typing_extensions import Self

VALUE_KINDS: dict[str, Callable[[Any], Any]] = {
    "number": float,
    "whole": lambda told: int(str(told)),
    "date": datetime.date.fromisoformat,
    "time": datetime.datetime.fromisoformat,
}
"""What a value may be, and how it is read from JSON."""

_NO_GROUP = "No group passed the threshold: give a larger epsilon, or list the groups that are public."


class Promised:
    """An answer with one guarantee.

    Attributes:
        guarantee: What all of it together promises.
    """

    guarantee: Guarantee

    @property
    def is_private(self) -> bool:
        """Whether the numbers may be published."""
        return not self.guarantee.seeded

    def explain(self) -> str:
        """What is promised, in words for people who do not know the field."""
        from discreet.releases.explain import explained

        return explained(self.guarantee.to_dict())


class EstimateTable(Promised):
    """Rows of what they are about, a value, and a lower and an upper bound; all bounds hold together.

    Attributes:
        confidence: With this probability all bounds hold.
    """

    confidence: float
    stored_as: ClassVar[str]  # in a payload

    @property
    def names(self) -> tuple[str, ...]:
        """The columns before those of the values (`value_name`), lower and upper."""
        raise NotImplementedError

    @property
    def value_name(self) -> str:
        """The name of the column of the values in tables: what they are."""
        return "value"

    @property
    def value_heading(self) -> str:
        """The same for people."""
        return self.value_name

    @property
    def cells(self) -> list[tuple[Any, ...]]:
        """The rows: one value for each of `names`, then value, lower and upper."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.cells)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.guarantee.sentence()})\n{self._table(None)}".rstrip("\n")

    def _table(self, width: int | None) -> str:
        from discreet.releases.formats import table_text
        from discreet.releases.labels import printable

        many, rows = len(self.names), self._rows(printable)
        if not rows:
            return f"{_NO_GROUP}\n"
        headings = [*self.names, self.value_heading, f"{100 * self.confidence:g}% interval"]
        return table_text(headings, rows, (many, many + 1), width)

    def _rows(self, text: Callable[[Any], str]) -> list[tuple[str, ...]]:
        """The rows for people: keys as `text` writes them, the value, the interval."""
        return [
            (*(_named(key, text) for key in keys), figure(value), f"{figure(lower)} to {figure(upper)}")
            for *keys, value, lower, upper in self.cells
        ]

    def to_table(self, width: int | None = None) -> str:
        """For people, with what is promised."""
        from discreet.releases.formats import paragraph

        return f"{self._table(width)}{paragraph(self.guarantee.sentence())}\n"

    def _repr_html_(self) -> str:
        import html

        from discreet._bars import guarantee_html
        from discreet.releases.labels import readable

        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(key)}</td>' for key in keys)}"
            f'<td><b>{value}</b></td><td style="opacity:.8">{interval}</td></tr>'
            for *keys, value, interval in self._rows(readable)
        )
        named = "".join(f"<th>{html.escape(readable(name))}</th>" for name in self.names)
        head = f"<tr>{named}<th>{self.value_heading}</th><th>{100 * self.confidence:g}% interval</th></tr>"
        promise = guarantee_html(self.guarantee.sentence(), self.guarantee.seeded)
        table = f"<table>{head}{rows}</table>" if rows else f"<div>{_NO_GROUP}</div>"
        return f'<div style="color:inherit;line-height:1.4">{table}{promise}</div>'

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        raise NotImplementedError

    def to_json(self) -> str:
        """One line of JSON; `from_json` is the inverse."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def of_dict(cls, told: dict[str, Any]) -> Self:
        """The inverse of `to_dict`; any of `unreadable` for what is none."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The inverse of `to_json`."""
        try:
            return cls.of_dict(json.loads(text))
        except unreadable():
            # Without the cause: it may quote a group.
            raise DataError(f"this is not JSON of published {cls.stored_as}") from None

    def to_payload(self) -> bytes:
        """What a ledger stores."""
        return json.dumps({"release": self.stored_as, "version": 1, "told": self.to_dict()}, allow_nan=False).encode()

    @classmethod
    def from_payload(cls, payload: bytes) -> Self:
        """The inverse of `to_payload`."""
        try:
            told = json.loads(payload)
            if told["release"] != cls.stored_as or told["version"] != 1:
                raise ValueError
            return cls.of_dict(told["told"])
        except unreadable():
            raise CorruptStateError(f"the ledger holds something other than {cls.stored_as} under this id") from None

    def to_csv(self) -> str:
        """A line for each, after one with the names. A bound that is not known is empty."""
        from discreet.events.values import plain_items
        from discreet.releases.formats import csv_text

        rows = ([*plain_items(row[:-3]), *map(_known, row[-3:])] for row in self.cells)
        return csv_text([*self.names, self.value_name, "lower", "upper"], rows)

    def _keys(self) -> Sequence[Any]:
        """The columns of `names`."""
        columns = list(zip(*self.cells, strict=True)) or [()] * (len(self.names) + 3)
        return columns[: len(self.names)]

    def to_arrow(self) -> pa.Table:
        """A table with a row for each."""
        import pyarrow as pa

        numbers = list(zip(*(row[-3:] for row in self.cells), strict=True)) or [(), (), ()]
        columns = [*self._keys(), *numbers]
        return pa.table([pa.array(column) if isinstance(column, tuple) else column for column in columns],
                        names=[*self.names, self.value_name, "lower", "upper"])  # fmt: skip

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for each."""
        return self.to_arrow().to_pandas()


def _named(key: Any, text: Callable[[Any], str]) -> str:
    return f"{key:g}" if isinstance(key, float) else text(key)


def _known(number: Any) -> Any:
    return "" if isinstance(number, float) and math.isinf(number) else plain(number)


def plain(value: Any) -> Any:
    """A value as JSON has it: a number, or a date or time in ISO 8601; None for a bound that is not known."""
    if isinstance(value, float) and math.isinf(value):
        return None
    return value.isoformat() if isinstance(value, datetime.date) else value


def figure(number: Any) -> str:
    """A value for people: of numbers six digits, or all of a larger whole part; a date, or a time."""
    if isinstance(number, datetime.date):
        return str(number)
    if isinstance(number, float) and math.isinf(number):
        return "?"
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:,.0f}" if abs(number) >= 1e6 else f"{number:,.6g}"
