"""What a release says of the question: columns, k, public parameters, the version, and when it was asked.

All of it was said by whoever asked, before anything was read. So nothing of the data is in it, and the time is that of
the question, not of the answer: how long reading took would tell how much there was to read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from discreet._version import __version__

__all__ = ["Asked", "now"]


def now() -> str:
    """The time in UTC, to the second, as JSON has it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Asked:
    """A question, as its release tells it.

    Attributes:
        time: When it was asked, before anything was read: UTC, to the second.
        version: Of discreet, that answered.
        k: How many items at most, or None.
        columns: The names of the columns: "item", and where there are such "user" and "value".
        parameters: What else was chosen and is public, JSON-ready.
    """

    time: str
    version: str = __version__
    k: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, time: str, *, k: int | None = None, columns: Mapping[str, Any] | None = None, **parameters: Any
    ) -> Asked:
        """What was given; None was not. Values are as they come back from JSON."""
        given = {name: value for name, value in parameters.items() if value is not None}
        named = {name: value for name, value in (columns or {}).items() if value is not None}
        return cls(
            time, k=k, **json.loads(json.dumps({"columns": named, "parameters": given}, default=str, allow_nan=False))
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {
            "columns": dict(self.columns),
            "k": self.k,
            "parameters": dict(self.parameters),
            "version": self.version,
            "time": self.time,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Asked:
        """The inverse of `to_dict`; a ValueError for what is none."""
        made = cls(values["time"], values["version"], values["k"], values["columns"], values["parameters"])
        right = (
            isinstance(made.time, str)
            and isinstance(made.version, str)
            and (made.k is None or type(made.k) is int)
            and isinstance(made.columns, dict)
            and isinstance(made.parameters, dict)
        )
        if not right:
            raise ValueError("not what was asked for")
        return made
