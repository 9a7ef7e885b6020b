"""Published quantiles: what `quantiles` returns."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.errors import CorruptStateError, DataError, NotPublishedError
from discreet.privacy.estimate import Estimate
from discreet.privacy.guarantee import Guarantee
from discreet.releases.asked import Asked

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["QuantileRelease", "QuantileRow"]


class QuantileRow(NamedTuple):
    """A share, the value below which so much of the data lies, and bounds that hold together with all other rows."""

    quantile: float
    value: Any
    lower: Any
    upper: Any


@dataclass(frozen=True, repr=False)
class QuantileRelease:
    """Quantiles in the order of their shares: `answer[0.5]` is an `Estimate`; iterating gives rows.

    Values and bounds never fall from one share to the next.

    Attributes:
        rows: Share, value, lower and upper bound of each.
        guarantee: What all of them together promise.
        confidence: With this probability all bounds hold.
        range: The public range that values were cut to.
        scale: How it is divided: "linear" or "log".
        bins: Into how many parts.
        of: Whose values they are: "rows" or "people".
        kind: What values are: "number" (float), "whole" (int), "date" or "time" (of `datetime`).
        payment: How it was paid, see `releases.payment`.
        asked: What was asked for, and when.
    """

    rows: tuple[QuantileRow, ...]
    guarantee: Guarantee
    confidence: float
    range: tuple[Any, Any]
    scale: str
    bins: int
    of: str = "rows"
    kind: str = "number"
    payment: str | None = field(default=None, compare=False)
    asked: Asked | None = field(default=None, compare=False)

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The shares."""
        return tuple(row.quantile for row in self.rows)

    @property
    def values(self) -> tuple[Any, ...]:
        """The values at the shares."""
        return tuple(row.value for row in self.rows)

    @property
    def is_private(self) -> bool:
        """Whether the numbers may be published."""
        return not self.guarantee.seeded

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[QuantileRow]:
        return iter(self.rows)

    def __getitem__(self, quantile: float) -> Estimate:
        for row in self.rows:
            if row.quantile == quantile:
                return Estimate(row.value, row.lower, row.upper, self.guarantee)
        known = ", ".join(f"{row.quantile:g}" for row in self.rows)
        raise NotPublishedError(f"the quantile {quantile!r} was not asked for; published are {known}")

    def __repr__(self) -> str:
        return f"QuantileRelease({self.guarantee.sentence()})\n{self._table(None)}".rstrip("\n")

    def _table(self, width: int | None) -> str:
        from discreet.releases.formats import table_text

        cells = [
            (f"{row.quantile:g}", figure(row.value), f"{figure(row.lower)} to {figure(row.upper)}") for row in self.rows
        ]
        return table_text(["quantile", "estimate", f"{100 * self.confidence:g}% interval"], cells, (1, 2), width)

    def to_table(self, width: int | None = None) -> str:
        """For people, with what is promised."""
        from discreet.releases.formats import paragraph

        return f"{self._table(width)}{paragraph(self.guarantee.sentence())}\n"

    def _repr_html_(self) -> str:
        from discreet._bars import guarantee_html

        rows = "".join(
            f"<tr><td>{row.quantile:g}</td><td><b>{figure(row.value)}</b></td>"
            f'<td style="opacity:.8">{figure(row.lower)} to {figure(row.upper)}</td></tr>'
            for row in self.rows
        )
        head = f"<tr><th>quantile</th><th>value</th><th>{100 * self.confidence:g}% interval</th></tr>"
        promise = guarantee_html(self.guarantee.sentence(), self.guarantee.seeded)
        return f'<div style="color:inherit;line-height:1.4"><table>{head}{rows}</table>{promise}</div>'

    def explain(self) -> str:
        """What is promised, in words for people who do not know the field."""
        from discreet.releases.explain import explained

        return explained(self.guarantee.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {
            "guarantee": self.guarantee.to_dict(),
            "confidence": self.confidence,
            "range": [plain(end) for end in self.range],
            "scale": self.scale,
            "bins": self.bins,
            "of": self.of,
            **({} if self.kind == "number" else {"kind": self.kind}),
            "quantiles": [{name: plain(value) for name, value in row._asdict().items()} for row in self.rows],
            **({} if self.asked is None else self.asked.to_dict()),
        }

    def to_json(self) -> str:
        """One line of JSON; `from_json` is the inverse."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> QuantileRelease:
        """The inverse of `to_json`."""
        try:
            told = json.loads(text)
            kind = str(told.get("kind", "number"))
            read = _READ[kind]
            rows = tuple(
                QuantileRow(float(row["quantile"]), *(read(row[key]) for key in QuantileRow._fields[1:]))
                for row in told["quantiles"]
            )
            low, high = map(read, told["range"])
            guarantee = Guarantee.from_dict(told["guarantee"])
            made = cls(
                rows,
                guarantee,
                float(told["confidence"]),
                (low, high),
                str(told["scale"]),
                int(told["bins"]),
                str(told["of"]),
                kind,
                asked=Asked.from_dict(told) if "time" in told else None,
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError("this is not JSON of published quantiles") from None
        if not all(math.isfinite(number) for row in rows for number in row if isinstance(number, (int, float))):
            raise DataError("this is not JSON of published quantiles")
        return made

    def to_csv(self) -> str:
        """A line for each, after one with the names."""
        lines = [",".join(QuantileRow._fields), *(",".join(f"{plain(each)}" for each in row) for row in self.rows)]
        return "\n".join(lines) + "\n"

    def to_arrow(self) -> pa.Table:
        """A table with a row for each."""
        import pyarrow as pa

        return pa.table({name: pa.array([getattr(row, name) for row in self.rows]) for name in QuantileRow._fields})

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row for each."""
        return self.to_arrow().to_pandas()

    def to_payload(self) -> bytes:
        """What a ledger stores."""
        return json.dumps({"release": "quantiles", "version": 1, "told": self.to_dict()}, allow_nan=False).encode()

    @classmethod
    def from_payload(cls, payload: bytes) -> QuantileRelease:
        """The inverse of `to_payload`."""
        try:
            told = json.loads(payload)
            if told["release"] != "quantiles" or told["version"] != 1:
                raise ValueError
            return cls.from_json(json.dumps(told["told"]))
        except (KeyError, TypeError, ValueError):
            raise CorruptStateError("what the ledger stores under this id are no quantiles") from None


_READ: dict[str, Callable[[Any], Any]] = {
    "number": float,
    "whole": lambda told: int(str(told)),
    "date": datetime.date.fromisoformat,
    "time": datetime.datetime.fromisoformat,
}


def plain(value: Any) -> Any:
    """A value as JSON has it: a number, or a date or time in ISO 8601."""
    return value.isoformat() if isinstance(value, datetime.date) else value


def figure(number: Any) -> str:
    """A value for people: of numbers six digits, or all of a larger whole part; a date, or a time."""
    if isinstance(number, datetime.date):
        return str(number)
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:,.0f}" if abs(number) >= 1e6 else f"{number:,.6g}"
