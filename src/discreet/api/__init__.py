"""The facade over the packages below: release, top_k, plan."""

from discreet.api._choose import MECHANISMS
from discreet.api._plan import Plan, PlanRow, plan
from discreet.api._plan_people import PeoplePlan, PeoplePlanRow, plan_people
from discreet.api._release import release
from discreet.api._top_k import top_k

__all__ = [
    "MECHANISMS",
    "PeoplePlan",
    "PeoplePlanRow",
    "Plan",
    "PlanRow",
    "plan",
    "plan_people",
    "release",
    "top_k",
]
