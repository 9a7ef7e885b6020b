"""Trusted curator, one published result."""

from discreet.central._base import Mechanism
from discreet.central.chan_misra_gries import ChanMisraGries
from discreet.central.merged_release import MergedRelease
from discreet.central.offset_release import OffsetRelease
from discreet.central.private_misra_gries import PrivateMisraGries
from discreet.central.private_space_saving import PrivateSpaceSaving
from discreet.central.reduced_misra_gries import ReducedMisraGries
from discreet.central.sharded_release import ShardedOffsetRelease
from discreet.central.sketch_heavy_hitters import CountMinHeavyHitters, CountSketchHeavyHitters
from discreet.central.stability import StabilityHistogram
from discreet.central.summed_release import SummedRelease
from discreet.central.textbook_misra_gries import TextbookMisraGries
from discreet.central.untrusted_merge import merge_releases
from discreet.central.user_release import UserRelease
from discreet.events.universe import Universe

__all__ = [
    "ChanMisraGries",
    "CountMinHeavyHitters",
    "CountSketchHeavyHitters",
    "Mechanism",
    "MergedRelease",
    "OffsetRelease",
    "PrivateMisraGries",
    "PrivateSpaceSaving",
    "ReducedMisraGries",
    "ShardedOffsetRelease",
    "StabilityHistogram",
    "SummedRelease",
    "TextbookMisraGries",
    "Universe",
    "UserRelease",
    "merge_releases",
]
