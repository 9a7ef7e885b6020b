"""Publish what is frequent in a stream without revealing who was in it.

    question --> events --> summary (NOT private) --> mechanism (budget, unit) --> release (private, with its guarantee)

Names are loaded on first use, so that importing the package costs little.
"""

from __future__ import annotations

from discreet._names import on_first_use
from discreet._version import __version__

TYPE_CHECKING = False  # as typing's; loading typing takes longer than all that is needed here
if TYPE_CHECKING:
    from discreet import audit, central, continual, engines, multiparty, pan, privacy, published
    from discreet.errors import (
        BudgetExceededError,
        CorruptStateError,
        DataError,
        DiscreetError,
        IncompatibleSummaryError,
        LedgerError,
        ParameterError,
    )
    from discreet.errors import (
        ChargeConflictError as ChargeConflictError,
    )
    from discreet.errors import (
        LedgerBusyError as LedgerBusyError,
    )
    from discreet.errors import (
        MessageError as MessageError,
    )
    from discreet.errors import (
        NotPublishedError as NotPublishedError,
    )
    from discreet.errors import (
        OldStateError as OldStateError,
    )
    from discreet.errors import (
        TooManyBadRowsError as TooManyBadRowsError,
    )
    from discreet.errors import (
        TryAgainError as TryAgainError,
    )
    from discreet.privacy import Budget, Element, Estimate, Event, Guarantee, Replace, Unit, User
    from discreet.privacy.ledger import Account as Account
    from discreet.privacy.ledger import Ledger
    from discreet.questions.answer import answer, read
    from discreet.questions.count import Count, count
    from discreet.questions.distinct import Distinct, distinct
    from discreet.questions.histogram import Histogram, histogram
    from discreet.questions.of_summary import release
    from discreet.questions.plans import plan, plan_people, plan_questions
    from discreet.questions.quantiles import Quantiles, quantiles
    from discreet.questions.report import Report
    from discreet.questions.sums import Mean, Sum, Variance, mean, sum, variance
    from discreet.questions.top import Top, top_k
    from discreet.releases import GroupRelease as GroupRelease
    from discreet.releases import QuantileRelease as QuantileRelease
    from discreet.releases import Release
    from discreet.releases import ReportRelease as ReportRelease
    from discreet.summaries import (
        CountMin,
        CountSketch,
        ExactCounts,
        MisraGries,
        SpaceSaving,
        UserMisraGries,
    )
    from discreet.summaries import (
        ShardedMisraGries as ShardedMisraGries,
    )

_WHERE = {
    **dict.fromkeys(["Budget", "Element", "Estimate", "Event", "Guarantee", "Replace", "Unit", "User"], "privacy"),
    **dict.fromkeys(["Account", "Ledger"], "privacy.ledger"),
    "WeakBudgetWarning": "privacy.budget",
    **dict.fromkeys(["GroupRelease", "QuantileRelease", "Release", "ReportRelease"], "releases"),
    "answer": "questions.answer",
    **dict.fromkeys(["Count", "count"], "questions.count"),
    **dict.fromkeys(["Distinct", "distinct"], "questions.distinct"),
    **dict.fromkeys(["Histogram", "histogram"], "questions.histogram"),
    **dict.fromkeys(["Quantiles", "quantiles"], "questions.quantiles"),
    "Report": "questions.report",
    **dict.fromkeys(["Mean", "Sum", "Variance", "mean", "sum", "variance"], "questions.sums"),
    **dict.fromkeys(["Top", "top_k"], "questions.top"),
    "plan": "questions.plans",
    "plan_people": "questions.plans",
    "plan_questions": "questions.plans",
    "read": "questions.answer",
    "release": "questions.of_summary",
    **dict.fromkeys(
        ["CountMin", "CountSketch", "ExactCounts", "MisraGries", "ShardedMisraGries", "SpaceSaving", "UserMisraGries"],
        "summaries",
    ),
    **dict.fromkeys(
        [
            "BudgetExceededError",
            "ChargeConflictError",
            "CorruptStateError",
            "DataError",
            "DiscreetError",
            "IncompatibleSummaryError",
            "LedgerBusyError",
            "LedgerError",
            "MessageError",
            "NotPublishedError",
            "OldStateError",
            "ParameterError",
            "TooManyBadRowsError",
            "TryAgainError",
        ],
        "errors",
    ),
    # packages
    **dict.fromkeys(["audit", "central", "continual", "engines", "multiparty", "pan", "privacy", "published"]),
}

__all__ = [
    "Budget",
    "BudgetExceededError",
    "CorruptStateError",
    "Count",
    "CountMin",
    "CountSketch",
    "DataError",
    "DiscreetError",
    "Distinct",
    "Element",
    "Estimate",
    "Event",
    "ExactCounts",
    "Guarantee",
    "Histogram",
    "IncompatibleSummaryError",
    "Ledger",
    "LedgerError",
    "Mean",
    "MisraGries",
    "ParameterError",
    "Quantiles",
    "Release",
    "Replace",
    "Report",
    "SpaceSaving",
    "Sum",
    "Top",
    "Unit",
    "User",
    "UserMisraGries",
    "Variance",
    "__version__",
    "answer",
    "audit",
    "central",
    "continual",
    "count",
    "distinct",
    "engines",
    "histogram",
    "mean",
    "multiparty",
    "pan",
    "plan",
    "plan_people",
    "plan_questions",
    "privacy",
    "published",
    "quantiles",
    "read",
    "release",
    "sum",
    "top_k",
    "variance",
]

__getattr__, __dir__ = on_first_use(__name__, _WHERE)
