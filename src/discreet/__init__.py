"""Publish what is frequent in a stream without revealing who was in it.

    events --> summary (NOT private) --> mechanism (budget, unit) --> release (private, carries its guarantee)

Names are loaded on first use, so that importing the package costs little.
"""

from __future__ import annotations

from discreet._names import on_first_use
from discreet._version import __version__

TYPE_CHECKING = False  # as typing's; loading typing takes longer than all that is needed here
if TYPE_CHECKING:
    from discreet import audit, central, continual, engines, multiparty, pan, privacy, published
    from discreet.api import (
        PeoplePlan as PeoplePlan,
    )
    from discreet.api import (
        Plan as Plan,
    )
    from discreet.api import (
        count,
        distinct,
        histogram,
        plan,
        plan_people,
        plan_questions,
        quantiles,
        release,
        top_k,
    )
    from discreet.errors import (
        BudgetExceededError,
        CorruptStateError,
        DataError,
        DiscreetError,
        IncompatibleSummaryError,
        LedgerError,
        ParameterError,
        TryAgainError,
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
    from discreet.privacy import Budget, Element, Estimate, Event, Guarantee, Replace, Unit, User
    from discreet.privacy.ledger import Account, Ledger
    from discreet.privacy.weak import WeakBudgetWarning
    from discreet.releases import Quantiles, Release
    from discreet.summaries import (
        CountMin,
        CountSketch,
        ExactCounts,
        MisraGries,
        ShardedMisraGries,
        SpaceSaving,
        UserMisraGries,
    )

_WHERE = {
    **dict.fromkeys(["Budget", "Element", "Estimate", "Event", "Guarantee", "Replace", "Unit", "User"], "privacy"),
    **dict.fromkeys(["Account", "Ledger"], "privacy.ledger"),
    "WeakBudgetWarning": "privacy.weak",
    **dict.fromkeys(["Quantiles", "Release"], "releases"),
    **dict.fromkeys(
        [
            "PeoplePlan",
            "Plan",
            "count",
            "distinct",
            "histogram",
            "plan",
            "plan_people",
            "plan_questions",
            "quantiles",
            "release",
            "top_k",
        ],
        "api",
    ),
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
            "TryAgainError",
        ],
        "errors",
    ),
    # packages
    **dict.fromkeys(["audit", "central", "continual", "engines", "multiparty", "pan", "privacy", "published"]),
}

__all__ = [
    "Account",
    "Budget",
    "BudgetExceededError",
    "CorruptStateError",
    "CountMin",
    "CountSketch",
    "DataError",
    "DiscreetError",
    "Element",
    "Estimate",
    "Event",
    "ExactCounts",
    "Guarantee",
    "IncompatibleSummaryError",
    "Ledger",
    "LedgerError",
    "MisraGries",
    "ParameterError",
    "Quantiles",
    "Release",
    "Replace",
    "ShardedMisraGries",
    "SpaceSaving",
    "TryAgainError",
    "Unit",
    "User",
    "UserMisraGries",
    "WeakBudgetWarning",
    "__version__",
    "audit",
    "central",
    "continual",
    "count",
    "distinct",
    "engines",
    "histogram",
    "multiparty",
    "pan",
    "plan",
    "plan_people",
    "plan_questions",
    "privacy",
    "published",
    "quantiles",
    "release",
    "top_k",
]

__getattr__, __dir__ = on_first_use(__name__, _WHERE)
