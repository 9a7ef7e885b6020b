"""The papers' mechanisms as printed, and the baselines they compare with.

They keep the promise they state (`discreet audit` has a row for each), and a question never chooses one: what
`central`, `multiparty` and `pan` offer in their place publishes more for the same budget. docs/papers says which
statement of which paper each one follows. Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet._names import on_first_use

if TYPE_CHECKING:
    from discreet.published.chan_misra_gries import ChanMisraGries as ChanMisraGries
    from discreet.published.gaussian_sparse import GaussianSparseHistogram as GaussianSparseHistogram
    from discreet.published.inner_product import InnerProductCounter as InnerProductCounter
    from discreet.published.merged_misra_gries import MergedMisraGries as MergedMisraGries
    from discreet.published.merged_misra_gries_stream import MergedMisraGriesStream as MergedMisraGriesStream
    from discreet.published.merged_sketch import MergedSketch as MergedSketch
    from discreet.published.oracle_heavy_hitters import OracleHeavyHitters as OracleHeavyHitters
    from discreet.published.private_misra_gries import PrivateMisraGries as PrivateMisraGries
    from discreet.published.private_space_saving import PrivateSpaceSaving as PrivateSpaceSaving
    from discreet.published.textbook_misra_gries import TextbookMisraGries as TextbookMisraGries
    from discreet.published.tracked_oracle import FrequencyOracle as FrequencyOracle
    from discreet.published.tracked_oracle import TrackedOracle as TrackedOracle

_WHERE = {
    "ChanMisraGries": "published.chan_misra_gries",
    "FrequencyOracle": "published.tracked_oracle",
    "GaussianSparseHistogram": "published.gaussian_sparse",
    "InnerProductCounter": "published.inner_product",
    "MergedMisraGries": "published.merged_misra_gries",
    "MergedMisraGriesStream": "published.merged_misra_gries_stream",
    "MergedSketch": "published.merged_sketch",
    "OracleHeavyHitters": "published.oracle_heavy_hitters",
    "PrivateMisraGries": "published.private_misra_gries",
    "PrivateSpaceSaving": "published.private_space_saving",
    "TextbookMisraGries": "published.textbook_misra_gries",
    "TrackedOracle": "published.tracked_oracle",
}

__all__ = list(_WHERE)

__getattr__, __dir__ = on_first_use(__name__, _WHERE)
