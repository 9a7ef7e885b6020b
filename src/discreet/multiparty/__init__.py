"""Each party is trusted with its own items only: every message is private on its own.

A protocol holds the public parameters of a round. `protocol.party(number).encode(items)` makes the one message of a
party, `protocol.aggregator()` takes messages with `receive` and answers `estimate(items)`.
"""

from discreet.multiparty._base import Party as Party
from discreet.multiparty._base import Protocol as Protocol
from discreet.multiparty._base import Round as Round
from discreet.multiparty._base import protocol_from_dict
from discreet.multiparty.aggregator import Aggregator as Aggregator
from discreet.multiparty.estimates import Estimates as Estimates
from discreet.multiparty.grid import GridHierarchy
from discreet.multiparty.hadamard_response import HadamardResponse
from discreet.multiparty.hierarchy import Hierarchy
from discreet.multiparty.levels import Strings
from discreet.multiparty.local_hashing import LocalHashing
from discreet.multiparty.local_sketch import LocalSketch
from discreet.multiparty.party_sketches import IndependentSketches
from discreet.multiparty.round_plan import plan
from discreet.multiparty.separation import Separation
from discreet.multiparty.sketch_stream import HierarchicalStream, Stream

__all__ = [
    "GridHierarchy",
    "HadamardResponse",
    "HierarchicalStream",
    "Hierarchy",
    "IndependentSketches",
    "LocalHashing",
    "LocalSketch",
    "Separation",
    "Stream",
    "Strings",
    "plan",
    "protocol_from_dict",
]
