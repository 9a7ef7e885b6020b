"""Trusted curator, one published result."""

from discreet.central._base import Mechanism
from discreet.central.merged_release import MergedRelease
from discreet.central.offset_release import OffsetRelease
from discreet.central.private_misra_gries import PrivateMisraGries
from discreet.central.stability import StabilityHistogram
from discreet.central.textbook_misra_gries import TextbookMisraGries
from discreet.central.user_release import UserRelease

__all__ = [
    "Mechanism",
    "MergedRelease",
    "OffsetRelease",
    "PrivateMisraGries",
    "StabilityHistogram",
    "TextbookMisraGries",
    "UserRelease",
]
