"""The facade over the packages below: release, top_k, plan, counting. Names are loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.api.choosing import MECHANISMS
    from discreet.api.counting import count, distinct, histogram
    from discreet.api.plan_of_people import PeoplePlan, PeoplePlanRow, plan_people
    from discreet.api.plan_rows import Plan, PlanRow, plan
    from discreet.api.releasing import release
    from discreet.api.top_rows import top_k

_WHERE = {
    "MECHANISMS": "choosing",
    "PeoplePlan": "plan_of_people",
    "PeoplePlanRow": "plan_of_people",
    "Plan": "plan_rows",
    "PlanRow": "plan_rows",
    "count": "counting",
    "distinct": "counting",
    "histogram": "counting",
    "plan": "plan_rows",
    "plan_people": "plan_of_people",
    "release": "releasing",
    "top_k": "top_rows",
}

__all__ = [
    "MECHANISMS",
    "PeoplePlan",
    "PeoplePlanRow",
    "Plan",
    "PlanRow",
    "count",
    "distinct",
    "histogram",
    "plan",
    "plan_people",
    "release",
    "top_k",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'discreet.api' has no attribute {name!r}")
    value = getattr(import_module(f"discreet.api.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
