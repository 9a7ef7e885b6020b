"""Each party is trusted with its own items only: every message is private on its own.

A protocol holds the public parameters of a round. `protocol.party(number).encode(items)` makes the one message of a
party, `protocol.aggregator()` takes messages with `receive` and answers `estimate(items)`.
"""

from discreet.events.universe import Universe as Domain
from discreet.multiparty._base import Party, Protocol, protocol_from_dict
from discreet.multiparty._plan import PlannedProtocol, ProtocolPlan, RoundPlan, plan, plan_hierarchy
from discreet.multiparty._plan_stream import plan_stream
from discreet.multiparty.aggregator import Aggregator, Receipt, Rejection
from discreet.multiparty.estimates import ConsistentEstimates, Estimates, Liars
from discreet.multiparty.grid_hierarchy import GridHierarchy
from discreet.multiparty.hadamard_response import HadamardResponse
from discreet.multiparty.hierarchical_stream import HierarchicalStream
from discreet.multiparty.hierarchy import Hierarchy
from discreet.multiparty.independent_sketches import IndependentSketches
from discreet.multiparty.local_hashing import LocalHashing
from discreet.multiparty.local_sketch import LocalSketch
from discreet.multiparty.ordered import Strings
from discreet.multiparty.separation import Separation
from discreet.multiparty.stream import Stream

__all__ = [
    "Aggregator",
    "ConsistentEstimates",
    "Domain",
    "Estimates",
    "GridHierarchy",
    "HadamardResponse",
    "HierarchicalStream",
    "Hierarchy",
    "IndependentSketches",
    "Liars",
    "LocalHashing",
    "LocalSketch",
    "Party",
    "PlannedProtocol",
    "Protocol",
    "ProtocolPlan",
    "Receipt",
    "Rejection",
    "RoundPlan",
    "Separation",
    "Stream",
    "Strings",
    "plan",
    "plan_hierarchy",
    "plan_stream",
    "protocol_from_dict",
]
