"""A number with its interval; private when it carries a guarantee."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from discreet._data_class import dataclass, field
from discreet.errors import CorruptStateError
from discreet.privacy.guarantee import Asked, Guarantee


@dataclass(frozen=True, repr=False)
class Estimate:
    """A value between a lower and an upper bound.

    Without a ``guarantee`` it was read from a summary and is NOT private; its repr then shows no number.
    ``asked`` is what was asked for and when, JSON-ready, where it answers a question; ``payment`` is how it was paid.
    ``left_out`` is the share of people's contributions that bounding them left out, and ``notes`` say what it means.
    """

    value: float
    lower: float
    upper: float
    guarantee: Guarantee | None = None
    asked: Mapping[str, Any] | None = field(default=None, compare=False, kw_only=True)
    payment: str | None = field(default=None, compare=False, kw_only=True)
    left_out: Estimate | None = field(default=None, compare=False, kw_only=True)
    notes: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    @property
    def is_private(self) -> bool:
        """Whether the numbers may be published."""
        return self.guarantee is not None and not self.guarantee.seeded

    def numbers(self) -> dict[str, float]:
        """The value and its bounds, by their names."""
        return {"value": self.value, "lower": self.lower, "upper": self.upper}

    def missing(self) -> dict[str, Any]:
        """What is missing in it, JSON-ready; nothing where nothing is."""
        told = {} if self.left_out is None else {"left_out": self.left_out.numbers()}
        return {**told, **({"notes": list(self.notes)} if self.notes else {})}

    def to_payload(self) -> bytes:
        """What a ledger stores."""
        assert self.guarantee is not None
        fields = {**self.numbers(), "upper": None if math.isinf(self.upper) else self.upper}
        told = {"guarantee": self.guarantee.to_dict(), "asked": self.asked, **self.missing()}
        return json.dumps({"release": "estimate", "version": 1, **fields, **told}, allow_nan=False).encode()

    @classmethod
    def from_payload(cls, payload: bytes) -> Estimate:
        """The inverse of `to_payload`."""
        try:
            fields = json.loads(payload)
            if fields["release"] != "estimate" or fields["version"] != 1:
                raise ValueError
            upper = math.inf if fields["upper"] is None else fields["upper"]
            asked = Asked.from_dict(fields["asked"]).to_dict()
            guarantee = Guarantee.from_dict(fields["guarantee"])
            lacks = fields.get("left_out")
            left_out = None if lacks is None else cls(**lacks, guarantee=guarantee)
            notes = tuple(fields.get("notes", ()))
            return cls(fields["value"], fields["lower"], upper, guarantee, asked=asked, left_out=left_out, notes=notes)
        except (KeyError, TypeError, ValueError):
            raise CorruptStateError("the ledger holds something other than a count under this id") from None

    def __repr__(self) -> str:
        if self.guarantee is None:
            return "Estimate(NOT PRIVATE; read .value, .lower, .upper)"
        return f"Estimate(value={self.value!r}, lower={self.lower!r}, upper={self.upper!r})"

    def _repr_html_(self) -> str:
        from discreet._bars import amount, between, guarantee_html, interval_bar, reach

        if self.guarantee is None:
            return "<div>Estimate, <b>NOT PRIVATE</b>: read .value, .lower, .upper</div>"
        bar = interval_bar(self.value, self.lower, self.upper, reach([self.value], [self.upper]))
        return (
            f'<div style="color:inherit;line-height:1.4"><b style="font-size:140%">{amount(self.value)}</b>'
            f'<span style="opacity:.8;margin-left:.7em">{between(self.lower, self.upper)}</span>'
            f'<div style="max-width:24em">{bar}</div>'
            f"{guarantee_html(self.guarantee.sentence(), self.guarantee.seeded)}</div>"
        )
