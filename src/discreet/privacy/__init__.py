"""What is promised and what is spent: units, budgets, guarantees, calibration, accounting, the ledger."""

from discreet.privacy.budget import Budget
from discreet.privacy.estimate import Estimate
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.shuffling import shuffled
from discreet.privacy.unit import Element, Event, Replace, Unit, User

__all__ = ["Budget", "Element", "Estimate", "Event", "Guarantee", "Replace", "Unit", "User", "shuffled"]
