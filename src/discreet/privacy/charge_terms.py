"""A question as a charge id stands for it: its parameters as they were given, by their names.

    question_of("top", k=10, column="url", secret={"files": ["monday.csv"]})
    {"question": "top", "k": 10, "column": "url", "files": "sha256:..."}

It is known before anything is read, holds nothing of the data, and is written into the ledger with the charge. So a
repetition is recognised when the data are gone, and a refusal says which parameters differ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_DIGEST = "sha256:"  # how what stands for a value begins
_LONGEST = 200  # characters of a parameter that the ledger keeps as it is


def question_of(name: str, *, secret: Mapping[str, object] | None = None, **parameters: object) -> dict[str, Any]:
    """A question and its parameters, JSON-ready; None was not given.

    The ledger shows it. Of `secret` parameters (names of files, words of the caller) and of long ones it has digests.
    """
    told: dict[str, Any] = {"question": name}
    for key, value in parameters.items():
        plain = json.loads(json.dumps(value, default=str))
        if plain is not None:
            told[key] = plain if len(json.dumps(plain)) <= _LONGEST else _digest(plain)
    told.update({key: _digest(value) for key, value in (secret or {}).items() if value is not None})
    return told


def differing_parameters(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The parameters that differ, with what they were and what they are now."""
    names = dict.fromkeys([*before, *now])
    return {name: (before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)}


def told_differences(differing: Mapping[str, tuple[Any, Any]]) -> str:
    """What differs, for people: "k was 10 and is now 20"."""
    told = []
    for name, values in differing.items():
        if any(isinstance(value, str) and value.startswith(_DIGEST) for value in values):
            told.append(f"{name} differs (the ledger keeps a digest of it)")
        else:
            told.append("{} was {} and is now {}".format(name, *map(_plainly, values)))
    return "; ".join(told)


def _plainly(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, dict):  # a budget or a unit, in whichever order it was written down
        named = [str(value["name"])] if "name" in value else []
        parts = sorted((name, part) for name, part in value.items() if part and name not in ("name", "description"))
        return ", ".join([*named, *(f"{name}={part}" for name, part in parts)])
    return json.dumps(value, ensure_ascii=False)


def _digest(value: object) -> str:
    import hashlib

    return _DIGEST + hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
