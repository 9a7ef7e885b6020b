"""Whoever may send may send nonsense: what one message can do to an aggregator that says how much it takes."""

import numpy as np
import pytest

import discreet as dc
from discreet.errors import MessageError, ParameterError
from discreet.multiparty import (
    HadamardResponse,
    Hierarchy,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
    MergedMisraGries,
    MergedSketch,
    Separation,
    Stream,
)
from discreet.multiparty._sketches import noise_reach
from discreet.multiparty.messages import Message

BUDGET = dc.Budget(1.0)
LOCAL = [
    HadamardResponse("r", BUDGET, 100),
    LocalHashing("r", BUDGET, 100),
    LocalSketch("r", BUDGET, 100),
    Hierarchy("r", BUDGET, 100, "HadamardResponse"),
]
WHOLE = [
    IndependentSketches("r", BUDGET, 100),
    MergedSketch("r", BUDGET, 100, columns=16),
    Separation("r", BUDGET, 100),
    MergedMisraGries("r", BUDGET, 100),
    Hierarchy("r", BUDGET, 100),
]


def name_of(protocol):
    return type(protocol).__name__


@pytest.mark.parametrize("protocol", LOCAL, ids=name_of)
def test_one_sender_cannot_take_the_numbers_of_others(protocol):
    honest = [protocol.party(number).encode([number % 100]) for number in range(50)]
    liar = protocol.party(0).encode([7] * 1000)
    aggregator = protocol.aggregator(max_items=1)
    with pytest.raises(MessageError) as caught:
        aggregator.receive(liar)
    assert caught.value.reason == "range"
    assert aggregator.receive_many(honest).accepted == 50
    assert aggregator.parties == aggregator.total == 50
    # Without the limit it is as it always was: the first message counts.
    assert protocol.aggregator().receive_many([liar, *honest]).accepted == 1


@pytest.mark.parametrize("protocol", LOCAL + WHOLE, ids=name_of)
def test_a_state_goes_on_with_the_limit(protocol):
    aggregator = protocol.aggregator(max_items=2)
    for number in range(5):
        aggregator.receive(protocol.party(10 * number).encode([1, 2]))
    restored = protocol.restore(aggregator.to_bytes(), max_items=2)  # which may keep ten reports in one message
    assert restored.parties == aggregator.parties
    assert restored.max_items == 2
    long = protocol.party(1000).encode([1, 2, 3])
    for limited in (aggregator, restored):
        with pytest.raises(MessageError, match="more items"):
            limited.receive(long)
    protocol.restore(aggregator.to_bytes()).receive(long)


@pytest.mark.parametrize("protocol", WHOLE[:4], ids=name_of)
def test_a_liar_adds_no_more_than_the_limit_and_the_reach_of_the_noise(protocol):
    """The largest numbers that any message of 10 items may have, and the same of 2^20 items, which is left out."""
    limit, aggregator = 10, protocol.aggregator(max_items=10)
    for items in (2**20, limit):
        message = protocol._pack(Message(1, items, loudest(protocol, items)))
        if items > limit:
            with pytest.raises(MessageError, match="more items"):
                aggregator.receive(message)
        else:
            aggregator.receive(message)
    scale = max(getattr(protocol, name) for name in ("scale", "light_scale", "heavy_scale") if hasattr(protocol, name))
    values = aggregator.estimate(range(100)).values
    most = max(limit + noise_reach(scale), getattr(protocol, "cut", 0))
    assert np.abs(values).max() <= most


def loudest(protocol, items):
    """A payload in which every number is as large as the aggregator lets pass."""
    from discreet import _native
    from discreet.multiparty._entries import write_entries
    from discreet.multiparty.messages import varint

    if isinstance(protocol, MergedMisraGries):
        return write_entries(np.arange(100), np.full(100, protocol._bound(items) - protocol.cut))
    if isinstance(protocol, Separation):
        entries = np.full(100, protocol._bound(items, protocol.heavy_scale) - protocol.items_per_entry)
        cells = np.full(protocol.rows, protocol._bound(items, protocol.light_scale))
        return write_entries(np.arange(100), entries) + varint(1) + _native.write_integers(cells)
    cells = protocol.width(items) * protocol.rows
    return _native.write_integers(np.full(cells, protocol._bound(items, protocol.scale)))


def test_limits_are_checked():
    for wrong in (0, -1, 1.5, "1", True):
        with pytest.raises(ParameterError, match="max_items"):
            LOCAL[0].aggregator(max_items=wrong)
        with pytest.raises(ParameterError, match="max_items"):
            LOCAL[0].restore(LOCAL[0].aggregator().to_bytes(), max_items=wrong)


# ---- the time of a stream --------------------------------------------------------------------------------------------


def test_the_time_of_a_stream_is_not_set_by_one_packet():
    stream = Stream("s", dc.Budget(1e5), 4, epoch_steps=1, window=8, columns=512)
    aggregator = stream.aggregator()
    assert aggregator.time == 0
    for number in range(3):
        aggregator.receive(stream.party(number).feed([1] * 40))
    aggregator.receive(stream.party(9, start=2**47).feed([1]))
    assert aggregator.time == 40
    found = aggregator.estimate([1])
    assert found.values.tolist() == [24]
    assert found.absent == (9,)
    restored = stream.restore(aggregator.to_bytes())
    assert restored.time == 40


def test_half_of_the_parties_make_the_time():
    stream = Stream("s", dc.Budget(1e5), 4, epoch_steps=1, horizon=100, columns=512)
    aggregator = stream.aggregator(expected=[5, 6, 7])  # who was not heard has no say
    for number, steps in enumerate((10, 20, 30, 40)):
        aggregator.receive(stream.party(number).feed([1] * steps))
    assert aggregator.time == 20
    aggregator.receive(stream.party(8).feed([1] * 50))
    assert aggregator.time == 30


def test_the_time_is_no_less_than_the_aggregator_was_told():
    stream = Stream("s", dc.Budget(1e5), 4, epoch_steps=1, window=8, columns=512)
    aggregator = stream.aggregator()
    aggregator.receive(stream.party(0).feed([1] * 10))
    aggregator.advance(15)
    assert aggregator.time == 15
    assert aggregator.estimate([1]).values.tolist() == [3]  # steps 8 to 10
    aggregator.advance(100)
    assert stream.restore(aggregator.to_bytes()).time == aggregator.time == 100
    assert aggregator.estimate([1]).values.tolist() == [0]
