"""Streams, packets and states of both sides written by earlier versions are read, and go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet import Budget
from discreet.multiparty import HierarchicalStream, Stream, protocol_from_dict
from discreet.noise import seeded_source
from discreet.published import MergedMisraGriesStream

HERE = Path(__file__).parent / "multiparty"
ITEMS = [0, 1, None, 3, 0, 0, 2] * 4
# How each was made.
WRITTEN = {
    "stream": lambda: Stream("golden", Budget(2.0), 5, epoch_steps=3, window=20, columns=4),
    "stream-any-length": lambda: Stream("golden", Budget(2.0), 5, epoch_steps=3, columns=4),
    "hierarchical-stream": lambda: HierarchicalStream(
        "golden", Budget(2.0), 50, epoch_steps=5, horizon=40, columns=3, branching=4
    ),
    "misra-gries-stream": lambda: MergedMisraGriesStream(
        "golden", Budget(20.0), 5, epoch_steps=3, window=20, capacity=2, sample_share=0.25
    ),
}


def write(name):
    """How the files of a new version are made; those of old versions stay as they are."""
    stream = WRITTEN[name]()
    party, aggregator = stream.party(3, source=seeded_source(3)), stream.aggregator(expected=[8])
    message = party.feed(ITEMS)
    aggregator.receive(message)
    values = aggregator.estimate(range(5)).values.tolist()
    known = {"round": stream.to_dict(), "digest": stream.digest.hex(), "estimates": values}
    (HERE / f"{name}-v1.json").write_text(json.dumps(known, indent=1) + "\n")
    (HERE / f"{name}-v1.message").write_bytes(message)
    (HERE / f"{name}-v1.party").write_bytes(party.to_bytes())
    (HERE / f"{name}-v1.state").write_bytes(aggregator.to_bytes())


@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_written_is_read(name):
    known = json.loads((HERE / f"{name}-v1.json").read_text())
    stream = protocol_from_dict(known["round"])
    assert stream == WRITTEN[name]()
    assert stream.digest.hex() == known["digest"]
    message = (HERE / f"{name}-v1.message").read_bytes()
    assert stream.party(3, source=seeded_source(3)).feed(ITEMS) == message
    aggregator = stream.restore((HERE / f"{name}-v1.state").read_bytes())
    found = aggregator.estimate(range(5))
    assert found.values.tolist() == known["estimates"]
    assert found.absent == (8,)
    assert not aggregator.receive(message)
    party = stream.restore_party((HERE / f"{name}-v1.party").read_bytes())
    assert (party.number, party.time, party.last_message) == (3, len(ITEMS), message)
    assert aggregator.receive(party.feed([1] * 5))


if __name__ == "__main__":
    import sys

    for new in sys.argv[1:]:
        write(new)
