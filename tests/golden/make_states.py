"""Writes the states under tests/golden: `python tests/golden/make_states.py`, once for each new version of a payload.

Files are never changed or removed afterwards: what was stored once stays readable. A state goes on in the order of
zero counters it began with, so a new hash function needs a new version that says which one it was written with.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import discreet as dc

HERE = Path(__file__).parent
WORDS = [
    "cats",
    "dogs",
    "cats",
    "a query of more than twenty bytes",
    "",
    "émile",
    "cats",
    "fish",
    "dogs",
    "newts",
    "cats",
]
NUMBERS = [3, -1, 3, 7, 2**40, 3, 7, 9, -(2**63), 3, 11]
USERS = [["cats", "dogs"], ["cats"], ["fish", "cats", "newts"], [], ["dogs", "émile"]]


def states(
    prepared: Callable[[dc.summaries.Summary], dc.summaries.Summary] = lambda summary: summary,
) -> dict[str, dc.MisraGries | dc.ShardedMisraGries | dc.SpaceSaving | dc.UserMisraGries | dc.ExactCounts]:
    """Every family with the stream that made it; the file's name ends with the version of the payload."""
    made = {
        "misra_gries-v2": (dc.MisraGries(3, seed=11), WORDS),
        "misra_gries-int-v2": (dc.MisraGries(3, seed=11), NUMBERS),
        "sharded_misra_gries-v2": (dc.ShardedMisraGries(2, 2, seed=11), WORDS),
        "space_saving-v2": (dc.SpaceSaving(3, seed=11), WORDS),
        "space_saving-int-v2": (dc.SpaceSaving(3, seed=11), NUMBERS),
        "user_misra_gries-v2": (dc.UserMisraGries(3, 3, seed=11), USERS),
        "exact_counts-v2": (dc.ExactCounts(seed=11), WORDS),
    }
    done = {name: prepared(summary) for name, (summary, _) in made.items()}
    for name, (_, stream) in made.items():
        done[name].update(stream)
    return done


def newest(name: str) -> str:
    """The name of the same state in the version that is written now."""
    return name[: -len("-v1")] + "-v2"


if __name__ == "__main__":
    for name, summary in states().items():
        path = HERE / f"{name}.state"
        if not path.exists():
            path.write_bytes(summary.to_bytes())
