"""Published estimates of groups: what `count`, `sum`, `mean` and the like return with `by` or `every`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, ClassVar

from discreet._data_class import dataclass, field
from discreet._later import np, pa
from discreet.errors import NotPublishedError
from discreet.events.values import column_of_plain, parts_of, plain_column, taken
from discreet.privacy.estimate import Estimate
from discreet.privacy.guarantee import Asked, Guarantee
from discreet.releases.estimate_table import VALUE_KINDS, EstimateTable, plain
from discreet.releases.release import free_names, order_of

_JSON_NAMES = ("value", "lower", "upper")


@dataclass(frozen=True, repr=False, eq=False)
class GroupRelease(EstimateTable):
    """One estimate for every group, in the order of the groups: `answer["de"]` is an `Estimate`; iterating gives rows.

    The groups of a public list are all there. Others are there if enough rows or people are in them.

    Attributes:
        groups: The groups, a struct with one column for each part, named as in the data; of quantiles the share, too.
        values: The estimate of every group; `lower` and `upper` are its bounds.
        guarantee: What all of them together promise.
        confidence: With this probability all bounds hold.
        of: What is estimated: "rows", "people", "values", "sum", "mean", "variance" or "quantiles".
        kind: What values are: "number" (float), "whole" (int), "date" or "time" (of `datetime`).
        left_out: Where contributions of people were bounded: the share of them that is missing. Otherwise None.
        notes_told: What a reader should know beside the guarantee.
        payment: How it was paid, see `releases.payment`.
        asked: What was asked for, and when.
    """

    stored_as: ClassVar[str] = "groups"

    groups: pa.StructArray
    values: tuple[Any, ...]
    lower: tuple[Any, ...]
    upper: tuple[Any, ...]
    guarantee: Guarantee
    confidence: float
    of: str
    kind: str = "number"
    left_out: Estimate | None = None
    notes_told: tuple[str, ...] = ()
    payment: str | None = field(default=None, compare=False)
    asked: Asked | None = field(default=None, compare=False)

    @classmethod
    def in_order(
        cls, groups: pa.StructArray, values: Any, lower: Any, upper: Any, guarantee: Guarantee, confidence: float,
        of: str, kind: str = "number", **more: Any,
    ) -> GroupRelease:  # fmt: skip
        """The same rows in the order of the groups; numbers as `kind` has them."""
        order = order_of(groups, np.zeros(len(groups), np.int64), len(groups.type))
        made = int if kind == "whole" else float

        def ordered(column: Any) -> tuple[Any, ...]:
            plain = kind in ("whole", "number")
            return tuple(_number(column[place], made) if plain else column[place] for place in order)

        rows = ordered(values), ordered(lower), ordered(upper)
        return cls(taken(groups, order), rows[0], rows[1], rows[2], guarantee, confidence, of, kind, **more)

    @property
    def names(self) -> tuple[str, ...]:
        return free_names([each.name for each in self.groups.type], (self.value_name, "lower", "upper"))

    @property
    def value_name(self) -> str:
        return {"sum": "sum", "mean": "mean", "variance": "variance", "quantiles": "value"}.get(self.of, "count")

    @property
    def value_heading(self) -> str:
        return self.of if self.value_name == "count" else self.value_name

    @property
    def cells(self) -> list[tuple[Any, ...]]:
        columns = [column.to_pylist() for column in parts_of(self.groups)]
        return list(zip(*columns, self.values, self.lower, self.upper, strict=True))

    def _keys(self) -> Sequence[Any]:
        return [
            pa.array([str(value) for value in column.to_pylist()], pa.large_string())
            if pa.types.is_union(column.type)
            else column
            for column in parts_of(self.groups)
        ]

    def __getitem__(self, group: Any) -> Estimate:
        """The estimate of a group: its value, or a tuple where several columns say it."""
        wanted = group if isinstance(group, tuple) else (group,)
        for row in self.cells:
            if row[:-3] == wanted:
                value, lower, upper = row[-3:]
                return Estimate(value, lower, upper, self.guarantee)
        raise NotPublishedError("this release does not list that group; it may or may not have occurred")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GroupRelease) and self.to_payload() == other.to_payload()

    __hash__ = None  # type: ignore[assignment]

    def notes(self) -> list[str]:
        """What is missing, in plain sentences."""
        from discreet.releases.explain import missing

        told = [] if self.left_out is None else [missing(**self.left_out.numbers(), covered=bool(self.notes_told))]
        return [*self.notes_told, *told]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description, with all that `from_json` needs."""
        described = [plain_column(column) for column in parts_of(self.groups)]
        fields = [field.name for field in self.groups.type]
        names = free_names(fields, _JSON_NAMES)
        keys = list(zip(*(values for values, _ in described), strict=True)) or []
        numbers = zip(self.values, self.lower, self.upper, strict=True)
        return {
            "guarantee": self.guarantee.to_dict(),
            "confidence": self.confidence,
            "estimate_of": self.of,
            **({} if self.kind == "number" else {"kind": self.kind}),
            **({} if self.left_out is None else {"left_out": self.left_out.numbers()}),
            **({} if not self.notes_told else {"notes": list(self.notes_told)}),
            "group_columns": [{"name": name, **told} for name, (_, told) in zip(fields, described, strict=True)],
            "groups": [
                {**dict(zip(names, key, strict=True)),
                 **dict(zip(_JSON_NAMES, map(plain, row), strict=True))}
                for key, row in zip(keys, numbers, strict=True)
            ],
            **({} if self.asked is None else self.asked.to_dict()),
        }  # fmt: skip

    @classmethod
    def of_dict(cls, told: dict[str, Any]) -> GroupRelease:
        kind, rows, described = str(told.get("kind", "number")), told["groups"], told["group_columns"]
        names = free_names([each["name"] for each in described], _JSON_NAMES)
        columns = [column_of_plain([row[name] for row in rows], of) for name, of in zip(names, described, strict=True)]
        read = VALUE_KINDS[kind]

        def numbers(name: str, unknown: float) -> tuple[Any, ...]:
            return tuple(unknown if row[name] is None else read(row[name]) for row in rows)

        guarantee = Guarantee.from_dict(told["guarantee"])
        lacks = told.get("left_out")
        return cls(
            pa.StructArray.from_arrays(columns, [each["name"] for each in described]),
            numbers("value", math.nan),
            numbers("lower", -math.inf),
            numbers("upper", math.inf),
            guarantee,
            float(told["confidence"]),
            str(told["estimate_of"]),
            kind,
            None if lacks is None else Estimate(**lacks, guarantee=guarantee),
            tuple(map(str, told.get("notes", ()))),
            asked=Asked.from_dict(told) if "time" in told else None,
        )

    def to_parquet(self) -> bytes:
        """The columns of `to_arrow`; all else is in the metadata "discreet", as JSON."""
        from discreet.releases.formats import parquet_of

        return parquet_of(self.to_arrow(), self.to_dict(), "groups")

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, ax: Any = None, confidence: float | None = None
    ) -> Any:
        """A picture of all groups with their intervals: a line over time, else bars; written to `path` when given."""
        from discreet.releases.plot import plot_groups

        return plot_groups(self, path, ax=ax)


def _number(value: Any, made: type) -> Any:
    return float(value) if math.isinf(value) or math.isnan(value) else made(value)
