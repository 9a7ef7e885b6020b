"""Trusted curator, one published result."""

from discreet.central._base import Mechanism
from discreet.central.offset_release import OffsetRelease

__all__ = ["Mechanism", "OffsetRelease"]
