"""Rounds, messages and aggregates written by earlier versions are read, and mean what they meant."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from discreet import Budget
from discreet.multiparty import (
    GridHierarchy,
    HadamardResponse,
    Hierarchy,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
    Separation,
    protocol_from_dict,
)
from discreet.noise import seeded_source
from discreet.published import MergedMisraGries, MergedSketch

HERE = Path(__file__).parent / "multiparty"
ROUND, BUDGET = "golden", Budget(2.0)
# How each was made.
WRITTEN = {
    "hadamard": lambda: HadamardResponse(ROUND, BUDGET, 50),
    "hadamard-strings": lambda: HadamardResponse(ROUND, BUDGET, "strings"),
    "hashing": lambda: LocalHashing(ROUND, BUDGET, 50),
    "hashing-list": lambda: LocalHashing(ROUND, BUDGET, ["a", "b", "ß", "zz"]),
    "local-sketch": lambda: LocalSketch(ROUND, BUDGET, range(-20, 30), columns=3),
    "independent": lambda: IndependentSketches(ROUND, BUDGET, 50, items_per_column=3.0, rows=3, max_items=2**24),
    "merged": lambda: MergedSketch(ROUND, BUDGET, "integers", columns=12, max_items=2**40),
    "separation": lambda: Separation(ROUND, BUDGET, 50, items_per_column=4.0, threshold=5, max_items=2**24),
    "misra-gries": lambda: MergedMisraGries(ROUND, BUDGET, 50, capacity=3, max_items=2**40),
    "hierarchy": lambda: Hierarchy(ROUND, BUDGET, 50, branching=4, options={"items_per_column": 3.0}),
    "hierarchy-local": lambda: Hierarchy(ROUND, BUDGET, 50, "HadamardResponse"),
    "grid": lambda: GridHierarchy(ROUND, BUDGET, (12, ["a", "b", "ß"]), branching=4, options={"items_per_column": 3.0}),
    "grid-local": lambda: GridHierarchy(ROUND, BUDGET, (range(-2, 20), 5), "HadamardResponse", 4),
}


def items_of(protocol):
    if isinstance(protocol, GridHierarchy):
        return protocol.universe.items([0] * 15 + [7, 8, 9, 9, 11])
    return ["a", "ß", "a", "zz"] * 5 if protocol.domain.kind == "string" else [0] * 15 + [7, 8, 9, 9, 11]


def write(name):
    """How the files of a new version are made; those of old versions stay as they are."""
    protocol = WRITTEN[name]()
    aggregator = protocol.aggregator(max_reports=None)
    messages = [protocol.party(n, source=seeded_source(n)).encode(items_of(protocol)) for n in (3, 1000)]
    aggregator.receive_many(messages)
    estimates = aggregator.estimate(items_of(protocol)[-2:])
    known = {"round": protocol.to_dict(), "digest": protocol.digest.hex(), "estimates": estimates.values.tolist()}
    (HERE / f"{name}-v1.json").write_text(json.dumps(known, indent=1) + "\n")
    (HERE / f"{name}-v1.message").write_bytes(messages[0])
    (HERE / f"{name}-v1.state").write_bytes(aggregator.to_bytes())


@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_written_is_read(name):
    known = json.loads((HERE / f"{name}-v1.json").read_text())
    protocol = protocol_from_dict(known["round"])
    assert protocol == WRITTEN[name]()
    assert protocol.digest.hex() == known["digest"]
    message = (HERE / f"{name}-v1.message").read_bytes()
    assert protocol.party(3, source=seeded_source(3)).encode(items_of(protocol)) == message
    protocol.aggregator(max_reports=None).receive(message)
    aggregator = protocol.restore((HERE / f"{name}-v1.state").read_bytes())
    assert aggregator.has(3)
    assert aggregator.has(1000)
    np.testing.assert_allclose(aggregator.estimate(items_of(protocol)[-2:]).values, known["estimates"], rtol=1e-12)


if __name__ == "__main__":
    for name in WRITTEN:
        write(name)
