"""The facade over the packages below: release, top_k, plan, counting. Names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._names import on_first_use

if TYPE_CHECKING:
    from discreet.api.choosing import MECHANISMS
    from discreet.api.counting import count, distinct, histogram
    from discreet.api.measuring import quantiles
    from discreet.api.plan_of_people import PeoplePlan, PeoplePlanRow, plan_people
    from discreet.api.plan_of_questions import QuestionPlan, QuestionRow, plan_questions
    from discreet.api.plan_rows import Plan, PlanRow, plan
    from discreet.api.releasing import release
    from discreet.api.top_rows import top_k

_WHERE = {
    "MECHANISMS": "api.choosing",
    "PeoplePlan": "api.plan_of_people",
    "PeoplePlanRow": "api.plan_of_people",
    "Plan": "api.plan_rows",
    "PlanRow": "api.plan_rows",
    "count": "api.counting",
    "distinct": "api.counting",
    "histogram": "api.counting",
    "plan": "api.plan_rows",
    "plan_people": "api.plan_of_people",
    "QuestionPlan": "api.plan_of_questions",
    "QuestionRow": "api.plan_of_questions",
    "plan_questions": "api.plan_of_questions",
    "quantiles": "api.measuring",
    "release": "api.releasing",
    "top_k": "api.top_rows",
}

__all__ = [
    "MECHANISMS",
    "PeoplePlan",
    "PeoplePlanRow",
    "Plan",
    "PlanRow",
    "QuestionPlan",
    "QuestionRow",
    "count",
    "distinct",
    "histogram",
    "plan",
    "plan_people",
    "plan_questions",
    "quantiles",
    "release",
    "top_k",
]

__getattr__, __dir__ = on_first_use(__name__, _WHERE)
