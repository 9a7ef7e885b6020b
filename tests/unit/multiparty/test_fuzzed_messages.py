"""10,000 messages that are wrong in every way: none crashes, and none changes what the others said. Deterministic."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest

import discreet as dc
from discreet.errors import MessageError
from discreet.multiparty import HadamardResponse, IndependentSketches, LocalHashing, LocalSketch, Separation
from discreet.multiparty.party_sketches import noise_reach
from discreet.multiparty.wire import HEADER_BYTES, varint
from discreet.noise import seeded_source
from discreet.published import MergedMisraGries, MergedSketch

BUDGET = dc.Budget(2.0)
PROTOCOLS = [
    HadamardResponse("r", BUDGET, 30),
    LocalHashing("r", BUDGET, 30),
    LocalSketch("r", BUDGET, 30, columns=3),
    IndependentSketches("r", BUDGET, 30, items_per_column=2.0, max_items=500),
    MergedSketch("r", BUDGET, 30, columns=8, max_items=500),
    Separation("r", BUDGET, 30, items_per_column=4.0, max_items=500),
    MergedMisraGries("r", BUDGET, 30, capacity=3, max_items=500),
]
EACH = 1430


def sealed(body: bytes) -> bytes:
    return body + zlib.crc32(body).to_bytes(4, "little")


def broken(chance: random.Random, good: bytes) -> bytes:
    """A message that something happened to; most have a right checksum, or nothing else would be tried."""
    body, kind = bytearray(good[:-4]), chance.randrange(8)
    if kind == 0:
        return bytes(good[: chance.randrange(len(good))])
    if kind == 1:
        return chance.randbytes(chance.randrange(80))
    if kind == 2:  # any byte
        body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    elif kind == 3:  # a byte of the numbers or of the payload
        body[chance.randrange(HEADER_BYTES, len(body))] = chance.randrange(256)
    elif kind == 4:
        del body[chance.randrange(HEADER_BYTES, len(body)) :]
    elif kind == 5:
        body += chance.randbytes(chance.randrange(1, 9))
    elif kind == 6:  # another number of items, another payload
        body[HEADER_BYTES:] = varint(chance.randrange(2**20)) + varint(chance.choice([0, 1, 7, 500, 501, 2**40]))
        body += chance.randbytes(chance.randrange(40))
    else:  # the right start and then anything
        body[chance.randrange(HEADER_BYTES + 1, len(body)) :] = chance.randbytes(chance.randrange(30))
    return sealed(bytes(body))


def reach(protocol, items: int) -> float:
    """The most that a party with this many items may move any estimate."""
    if isinstance(protocol, HadamardResponse):
        return items * float(1 / (2 * protocol.keep - 1))
    if isinstance(protocol, LocalHashing):
        return items / float(protocol.keep - 1 / protocol.buckets)
    if isinstance(protocol, LocalSketch):
        return items * (1 + noise_reach(protocol.scale))
    if isinstance(protocol, Separation):
        return items + max(noise_reach(protocol.light_scale), protocol.items_per_entry)
    extra = protocol.cut if isinstance(protocol, MergedMisraGries) else 0
    return items + max(noise_reach(protocol.scale), extra)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: type(protocol).__name__)
def test_nothing_crashes_and_others_are_not_changed(protocol):
    chance, generator = random.Random(1), np.random.default_rng(1)
    honest = [
        protocol.party(2**30 + 100 * i, source=seeded_source(i)).encode(generator.integers(0, 30, 25)) for i in range(3)
    ]
    questions = np.arange(30)
    aggregator = protocol.aggregator(max_reports=None)
    assert aggregator.receive_many(honest).accepted == 3
    before = aggregator.estimate(questions).values
    accepted, reasons, state = 0, set(), (aggregator.numbers, aggregator.bytes_received, 75)
    for _ in range(EACH):
        message = broken(chance, chance.choice(honest))
        try:
            aggregator.receive(message)
        except MessageError as error:
            reasons.add(error.reason)
            assert (aggregator.numbers, aggregator.bytes_received, aggregator.total) == state
            continue
        # Taken for the message of another party: it counts as far as that party's own may, and no further.
        accepted += 1
        claimed = aggregator.total - 75
        after = aggregator.estimate(questions).values
        assert np.isfinite(after).all()
        if not isinstance(protocol, MergedSketch):  # whose median of sums is no sum of its parts
            assert (np.abs(after - before) <= reach(protocol, claimed) + 1e-6).all()
        alone = protocol.aggregator(max_reports=None)
        alone.receive(message)
        assert not any(alone.has(2**30 + 100 * i) for i in range(3))
        aggregator = protocol.aggregator(max_reports=None)
        aggregator.receive_many(honest)
    assert {"format", "checksum", "round", "parameters", "duplicate"} <= reasons
    np.testing.assert_array_equal(aggregator.estimate(questions).values, before)
    assert accepted < EACH / 4


def test_there_are_enough():
    assert EACH * len(PROTOCOLS) >= 10_000
