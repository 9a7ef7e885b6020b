"""Published quantiles: what `quantiles` returns."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from discreet._data_class import dataclass, field
from discreet.errors import NotPublishedError
from discreet.privacy.estimate import Estimate
from discreet.privacy.guarantee import Asked, Guarantee
from discreet.releases.estimate_table import VALUE_KINDS, EstimateTable, plain


class QuantileRow(NamedTuple):
    """A share, the value below which so much of the data lies, and bounds that hold together with all other rows."""

    quantile: float
    value: Any
    lower: Any
    upper: Any


@dataclass(frozen=True, repr=False)
class QuantileRelease(EstimateTable):
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

    stored_as: ClassVar[str] = "quantiles"

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
    def names(self) -> tuple[str, ...]:
        return ("quantile",)

    @property
    def cells(self) -> list[tuple[Any, ...]]:
        return list(self.rows)

    def __getitem__(self, quantile: float) -> Estimate:
        for row in self.rows:
            if row.quantile == quantile:
                return Estimate(row.value, row.lower, row.upper, self.guarantee)
        known = ", ".join(f"{row.quantile:g}" for row in self.rows)
        raise NotPublishedError(f"the quantile {quantile!r} was not asked for; the release has {known}")

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

    @classmethod
    def of_dict(cls, told: dict[str, Any]) -> QuantileRelease:
        kind = str(told.get("kind", "number"))
        read = VALUE_KINDS[kind]
        rows = tuple(
            QuantileRow(float(row["quantile"]), *(read(row[key]) for key in QuantileRow._fields[1:]))
            for row in told["quantiles"]
        )
        if not all(math.isfinite(number) for row in rows for number in row if isinstance(number, (int, float))):
            raise ValueError
        low, high = map(read, told["range"])
        return cls(
            rows,
            Guarantee.from_dict(told["guarantee"]),
            float(told["confidence"]),
            (low, high),
            str(told["scale"]),
            int(told["bins"]),
            str(told["of"]),
            kind,
            asked=Asked.from_dict(told) if "time" in told else None,
        )
