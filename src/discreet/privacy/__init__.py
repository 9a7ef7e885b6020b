"""What is promised and what is spent: units, budgets, guarantees, calibration, accounting, the ledger.

Names are loaded on first use: a release needs a budget and a unit, and no shuffler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._names import on_first_use

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.estimate import Estimate
    from discreet.privacy.guarantee import Element, Event, Guarantee, Replace, Unit, User
    from discreet.privacy.shuffle import shuffled

_WHERE = {
    "Budget": "privacy.budget",
    "Estimate": "privacy.estimate",
    "Guarantee": "privacy.guarantee",
    "shuffled": "privacy.shuffle",
    **dict.fromkeys(["Element", "Event", "Replace", "Unit", "User"], "privacy.guarantee"),
}

__all__ = ["Budget", "Element", "Estimate", "Event", "Guarantee", "Replace", "Unit", "User", "shuffled"]

__getattr__, __dir__ = on_first_use(__name__, _WHERE)
