"""One contract for the aggregators of rounds and of streams: what is taken, repeated, late, refused and restored."""

import json
from itertools import pairwise

import numpy as np
import pytest

import discreet as dc
from discreet.errors import CorruptStateError, IncompatibleSummaryError, MessageError
from discreet.multiparty import GridHierarchy, HadamardResponse, HierarchicalStream, Hierarchy, Separation, Stream
from discreet.multiparty.aggregator import Receiver
from discreet.noise import seeded_source
from discreet.published import MergedMisraGries, MergedMisraGriesStream

BUDGET = dc.Budget(2.0)
ROUNDS = {
    "local": lambda r="r": HadamardResponse(r, BUDGET, 9),
    "shuffled": lambda r="r": HadamardResponse(r, BUDGET, 9, shuffled=2),
    "sketches": lambda r="r": Separation(r, BUDGET, 9),
    "misra gries": lambda r="r": MergedMisraGries(r, BUDGET, 9, capacity=3),
    "levels": lambda r="r": Hierarchy(r, BUDGET, 9, "IndependentSketches", 3),
    "grid": lambda r="r": GridHierarchy(r, BUDGET, (3, 3), "HadamardResponse", 3),
}
STREAMS = {
    "stream": lambda r="r": Stream(r, BUDGET, 9, epoch_steps=2, window=4),
    "stream of levels": lambda r="r": HierarchicalStream(r, BUDGET, 9, epoch_steps=2, window=4),
    "stream of counters": lambda r="r": MergedMisraGriesStream(r, BUDGET, 9, epoch_steps=2, window=4),
}
every = pytest.mark.parametrize("make", [*ROUNDS.values(), *STREAMS.values()], ids=[*ROUNDS, *STREAMS])
rounds = pytest.mark.parametrize("make", ROUNDS.values(), ids=ROUNDS)
streams = pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)


def messages_of(protocol, count=4):
    """A message each of as many parties; of a stream, about its first two steps."""
    items = [(1, 2)] if isinstance(protocol, GridHierarchy) else [5]
    if hasattr(protocol, "restore_party"):
        return [protocol.party(i, source=seeded_source(i)).feed([5, 5]) for i in range(count)]
    numbers = range(count) if getattr(protocol, "shuffled", None) is None else [None] * count
    return [protocol.party(n, source=seeded_source(i)).encode(items) for i, n in enumerate(numbers)]


@every
def test_what_is_taken_is_true_and_counted(make):
    protocol = make()
    aggregator, messages = protocol.aggregator(), messages_of(protocol)
    assert isinstance(aggregator, Receiver)
    states = [aggregator.to_bytes()]
    for count, message in enumerate(messages, 1):
        assert aggregator.receive(message) is True
        assert aggregator.parties == count
        assert aggregator.bytes_received == sum(map(len, messages[:count]))
        states.append(aggregator.to_bytes())
    assert all(before != after for before, after in pairwise(states))
    assert aggregator.guarantee.seeded
    assert not protocol.aggregator().guarantee.seeded


@every
def test_what_is_refused_changes_nothing_and_many_go_on(make):
    protocol = make()
    aggregator, messages = protocol.aggregator(), messages_of(protocol)
    damaged, foreign = messages[1][:-1] + bytes([messages[1][-1] ^ 1]), messages_of(make("other"))[1]
    aggregator.receive(messages[0])
    before = aggregator.to_bytes()
    for bad, reason in ((damaged, "checksum"), (foreign, "round"), (b"", "format"), ("text", "format")):
        with pytest.raises(MessageError) as caught:
            aggregator.receive(bad)
        assert caught.value.reason == reason
        assert aggregator.to_bytes() == before
    receipt = aggregator.receive_many([damaged, messages[1], foreign, messages[2]])
    assert receipt.accepted == 2
    assert [(one.index, one.reason) for one in receipt.rejected] == [(0, "checksum"), (2, "round")]


@rounds
def test_a_repeated_message_of_a_round_is_refused(make):
    protocol = make()
    aggregator, messages = protocol.aggregator(), messages_of(protocol)
    assert aggregator.receive_many(messages).accepted == len(messages)
    before = aggregator.to_bytes()
    for again in (aggregator, protocol.restore(before)):
        receipt = again.receive_many(messages)
        assert (receipt.accepted, {one.reason for one in receipt.rejected}) == (0, {"duplicate"})
        assert again.to_bytes() == before


@streams
def test_a_repeated_or_late_packet_is_false_and_changes_nothing(make):
    protocol = make()
    aggregator, messages = protocol.aggregator(), messages_of(protocol)
    assert aggregator.receive_many(messages[:2]).accepted == 2
    before = aggregator.to_bytes()
    for again in (aggregator, protocol.restore(before)):
        assert [again.receive(message) for message in messages[:2]] == [False, False]
        assert again.receive_many(messages[:2]) == again.receive_many([])
        assert again.to_bytes() == before
    aggregator.advance(6)
    gone = aggregator.to_bytes()
    assert aggregator.receive(messages[2]) is False
    assert aggregator.to_bytes() == gone


@every
def test_a_state_is_restored_as_it_was_and_no_other_is(make):
    protocol = make()
    aggregator = protocol.aggregator()
    aggregator.receive_many(messages_of(protocol))
    state = aggregator.to_bytes()
    restored = protocol.restore(state)
    assert type(restored) is type(aggregator)
    assert restored.to_bytes() == state
    assert repr(restored) == repr(aggregator)
    items = [(1, 2), (0, 0)] if isinstance(protocol, GridHierarchy) else [5, 0]
    np.testing.assert_array_equal(restored.estimate(items).values, aggregator.estimate(items).values)
    np.testing.assert_array_equal(restored.liars(items, 0.5).too_high, aggregator.liars(items, 0.5).too_high)
    with pytest.raises((CorruptStateError, IncompatibleSummaryError), match="another"):
        make("other").restore(state)
    for bad in (state[:-1], b"", json.dumps({}).encode()):
        with pytest.raises(CorruptStateError):
            protocol.restore(bad)
