"""The facade over the packages below: release, top_k, plan."""

from discreet.api._choose import MECHANISMS
from discreet.api._plan import Plan, PlanRow, plan
from discreet.api._release import release
from discreet.api._top_k import top_k

__all__ = ["MECHANISMS", "Plan", "PlanRow", "plan", "release", "top_k"]
