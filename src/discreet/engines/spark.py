"""Data frames of Spark: `Frame` says how one is counted, and any question takes it, or the data frame itself.

    dc.top_k(dataframe, 100, budget, column="query")                       # both plans are compared
    dc.top_k(Frame(dataframe, plan="merge"), 100, budget, column="query")

docs/engines.md has the plans, what the driver sees, and what is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from warnings import warn

try:
    from discreet.engines._spark_rows import Frame
except ImportError as error:
    raise ImportError(
        "discreet.engines.spark needs PySpark 4 and Java 17; install PySpark with pip install 'discreet[spark]'"
    ) from error

from discreet.engines._spark_jobs import parallelism
from discreet.engines._spark_plans import PLANS, SparkPlan, choose_plan, spark_plans
from discreet.privacy import User
from discreet.releases.release import Release

__all__ = ["PLANS", "Frame", "SparkPlan", "choose_plan", "release", "spark_plans", "top_k"]

_OF_THE_FRAME = ("plan", "partitions", "shuffle_limit")


def top_k(dataframe: Any, *given: Any, **words: Any) -> Release:
    """`discreet.top_k` of a data frame, with the words of `Frame` beside those of the question.

    With `user` and `unit=User(m)` sketches count, of a user's different items a random sample of m: the mechanism
    "offset" in the shuffle plan, "user" in the merge plan.
    """
    words = _in_places("top_k", given, words, ("k", "budget"), ("column", "k", "budget", "plan", "unit"))
    return _top_k(dataframe, words)


def release(dataframe: Any, *given: Any, **words: Any) -> Release:
    """Everything of a column that passes the threshold: `top_k` without an end, with the counters for 100 items."""
    words = _in_places("release", given, words, ("budget",), ("column", "budget", "plan", "unit"))
    if words.get("capacity") is None and words.get("memory") is None:
        words["capacity"] = _planned(dataframe, words).capacity
    return _top_k(dataframe, {**words, "k": 2**30})


def _top_k(dataframe: Any, words: dict[str, Any]) -> Release:
    import discreet  # the questions are above: this is the door of the version before

    unit, user = words.get("unit"), words.get("user", words.get("user_column"))
    if isinstance(unit, User) and unit != User() and user is not None:
        plan = words.get("plan", "auto")
        plan = _planned(dataframe, words, users=True).plan if plan == "auto" else plan
        words |= {"unit": None, "max_items": unit.limit, "mechanism": "offset" if plan == "shuffle" else "user"}
    frame = Frame(dataframe, **{name: words.pop(name) for name in _OF_THE_FRAME if name in words})
    return discreet.top_k(frame, words.pop("k"), words.pop("budget"), **words)


def _planned(dataframe: Any, words: Mapping[str, Any], users: bool = False) -> SparkPlan:
    """The plan that would be taken."""
    partitions = words.get("partitions") or parallelism(dataframe.sparkSession)
    told = {name: words[name] for name in ("unit", "length", "capacity", "memory") if words.get(name) is not None}
    plans = spark_plans(words["budget"], k=words.get("k", 100), partitions=partitions, users=users, **told)
    return choose_plan(words.get("plan", "auto"), plans, words.get("shuffle_limit"))


def _in_places(
    name: str, given: Sequence[Any], words: dict[str, Any], places: Sequence[str], former: Sequence[str]
) -> dict[str, Any]:
    """What follows the data frame by position, also in the order of the version before."""
    if given and isinstance(given[0], str):
        warn(f"spark.{name}: give column by its name", DeprecationWarning, stacklevel=3)
        places = former
    if len(given) > len(places):
        raise TypeError(f"{name}() takes the data frame, then {', '.join(places)}; pass the rest by name")
    return {**dict(zip(places, given, strict=False)), **words}
