"""Budgets that promise next to nothing: what they mean, said once to whoever gives one."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget

__all__ = ["LARGEST_DELTA", "LARGEST_EPSILON", "WeakBudgetWarning", "warn_if_weak", "weakness"]

LARGEST_EPSILON = 20.0
"""Above, whoever sees a release may be sure of who was in the data: odds grow by up to e^20, half a billion."""
LARGEST_DELTA = 1e-3
"""Above, one person in a thousand may be revealed in full."""


class WeakBudgetWarning(UserWarning):
    """A budget was given that promises next to nothing."""


def weakness(budget: Budget) -> str | None:
    """What a budget means that promises next to nothing; None for any other."""
    said = []
    epsilon, delta = budget.epsilon, budget.delta
    given = f"epsilon={epsilon:g}" if epsilon is not None else ""
    if budget.rho is not None and budget.rho > 1.0:
        from discreet.privacy.calibration.zcdp import zcdp_epsilon

        epsilon = zcdp_epsilon(budget.rho, LARGEST_DELTA)
        given = f"rho={budget.rho:g}, which is epsilon={epsilon:.3g} even at a delta of {LARGEST_DELTA:g},"
    if epsilon is not None and epsilon > LARGEST_EPSILON:
        said.append(
            f"{given} promises next to nothing: a release may be e^{epsilon:.3g} times as likely with somebody's data "
            "as without, so that whoever sees it can be sure who was in it; an epsilon near 1 is usual"
        )
    if delta > LARGEST_DELTA:
        said.append(
            f"delta={delta:g} promises little: with this probability a release may show anything, so that one person "
            f"in {round(1.0 / delta):,} may be revealed in full; take much less than 1 over the number of people, such "
            "as 1e-6"
        )
    return "; ".join(said) or None


def warn_if_weak(budget: Budget) -> None:
    """Warn whoever made a budget, outside of this package: within, it is a part or a sum of what somebody gave."""
    caller = sys._getframe(2)
    if caller.f_globals.get("__name__", "").partition(".")[0] in ("discreet", "discreet_audit"):
        return
    told = weakness(budget)
    if told is not None:
        warnings.warn(told, WeakBudgetWarning, stacklevel=3)
