"""The facade over the packages below: release, top_k, plan."""

from discreet.api.choosing import MECHANISMS
from discreet.api.plan_of_people import PeoplePlan, PeoplePlanRow, plan_people
from discreet.api.plan_rows import Plan, PlanRow, plan
from discreet.api.releasing import release
from discreet.api.top_rows import top_k

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
