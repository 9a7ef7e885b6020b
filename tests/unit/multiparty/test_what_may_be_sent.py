"""Messages that are well formed and that no honest party sends: more items than the round allows, counts below a cut,
steps after the end. What an aggregator says it heard, it says after a restart, too."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dc
from discreet import _native
from discreet.multiparty import GridHierarchy, HadamardResponse, Hierarchy, IndependentSketches, Separation, Stream
from discreet.multiparty.packets import Packet, closed_blocks, write_packet
from discreet.multiparty.round_plan import plan
from discreet.multiparty.stream_party import PARTY_STATE
from discreet.multiparty.wire import Message, pack_parts, read_entries, unpack_parts, varint, write_entries
from discreet.noise import seeded_source
from discreet.published import MergedMisraGries, MergedMisraGriesStream, MergedSketch
from discreet.storage import open_state, seal_state

BUDGET = dc.Budget(2.0)
LIMITED = {
    "sketches": lambda most: IndependentSketches("r", BUDGET, 9, max_items=most),
    "merged": lambda most: MergedSketch("r", BUDGET, 9, columns=4, max_items=most),
    "separation": lambda most: Separation("r", BUDGET, 9, max_items=most),
    "misra gries": lambda most: MergedMisraGries("r", BUDGET, 9, capacity=3, max_items=most),
    "levels": lambda most: Hierarchy("r", BUDGET, 9, "IndependentSketches", 3, {"max_items": most}),
}
STREAMS = {
    "sketches": lambda **o: Stream("s", BUDGET, 9, **o),
    "counters": lambda **o: MergedMisraGriesStream("s", BUDGET, 9, **o),
}


@pytest.mark.parametrize("name", LIMITED)
def test_a_message_of_more_items_than_a_party_has_is_refused(name):
    """A liar adds no more to a count than the round says, whatever the aggregator was told to take."""
    small, large = (LIMITED[name](most) for most in (2, 5))
    for items in (2, 3):
        payload = large._encode(large.universe.words([1] * items), 7, seeded_source(1))
        message = small._pack(Message(7, items, payload))
        if items == 2:
            assert small.aggregator().receive(message)
            continue
        with pytest.raises(dc.errors.MessageError, match="max_items=2") as refused:
            small.aggregator(max_items=100).receive(message)
        assert refused.value.reason == "range"


def test_a_count_below_the_cut_is_refused():
    """Nobody sends it: it would take away from a count what no honest party can."""
    round_ = MergedMisraGries("r", BUDGET, 9, capacity=3)
    places = np.array([4])
    honest = round_._pack(Message(1, 3, write_entries(places, np.array([0]))))
    assert round_.open(honest)[1][1].tolist() == [round_.cut]
    for below in (-1, -2):
        with pytest.raises(dc.errors.MessageError, match="below the cut") as refused:
            round_.open(round_._pack(Message(1, 3, write_entries(places, np.array([below])))))
        assert refused.value.reason == "range"


@pytest.mark.parametrize("name", STREAMS)
def test_a_packet_about_steps_after_the_end_is_refused(name):
    """Such steps have no levels of their own, and nobody counts what they spend."""
    stream = STREAMS[name](horizon=4)
    last = stream.last_step
    shape = stream.shape

    def packet(after, to):
        nothing = np.zeros(0, np.int64)
        blocks = {
            block: (nothing, nothing) if name == "counters" else np.zeros(shape.cells[block.level], np.int64)
            for block in closed_blocks(after, to, shape)
        }
        told = Packet(after, to, 0, np.zeros(0, np.uint64), np.zeros(0, np.uint8), blocks)
        return stream._pack(Message(3, 0, write_packet(told, shape)))

    assert stream.aggregator().receive(packet(last - 1, last))
    for after in (last - 1, last):
        with pytest.raises(dc.errors.MessageError, match="after the end of the stream") as refused:
            stream.aggregator().receive(packet(after, last + 1))
        assert refused.value.reason == "range"


@pytest.mark.parametrize("name", STREAMS)
def test_bytes_of_packets_that_are_forgotten_were_received(name):
    stream = STREAMS[name](window=4)
    party, aggregator, messages = stream.party(1), stream.aggregator(), []
    for step in range(12):
        messages.append(party.feed([step % 9]))
        aggregator.receive(messages[-1])
        aggregator.advance(step + 1)
    assert aggregator.bytes_received == sum(map(len, messages))
    restored = stream.restore(aggregator.to_bytes())
    assert restored.bytes_received == aggregator.bytes_received
    assert restored.to_bytes() == aggregator.to_bytes()


def test_entries_are_written_in_the_order_of_their_places_however_they_came():
    """The order in which items were counted would tell what a party saw first."""
    places, numbers = np.array([3, 7, 8, 40, 41]), np.array([5, -2, 0, 9, 1])
    written = write_entries(places, numbers)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(5)
        assert write_entries(places[order], numbers[order]) == written
    found, counts, rest = read_entries(memoryview(written + b"rest"), 50, 9)
    assert (found.tolist(), counts.tolist(), bytes(rest)) == (places.tolist(), numbers.tolist(), b"rest")


MANY = {
    "sketches": IndependentSketches("r", BUDGET, 9),
    "separation": Separation("r", BUDGET, 9),
    "misra gries": MergedMisraGries("r", BUDGET, 9, capacity=3),
    "levels": Hierarchy("r", BUDGET, 9, "IndependentSketches", 3),
}


@pytest.mark.parametrize("name", MANY)
def test_nothing_is_shown_before_there_are_enough_parties_however_many_items_they_have(name):
    protocol = MANY[name]
    aggregator = protocol.aggregator(minimum_reports=3)
    for number in range(3):
        for ask in (aggregator.estimate, aggregator.liars):
            with pytest.raises(dc.DataError, match="before 3 reports have arrived"):
                ask([1])
        aggregator.receive(protocol.party(number).encode([1] * 50))
    assert aggregator.total == 150
    assert len(aggregator.estimate([1])) == 1


LOCAL = {
    "local": HadamardResponse("r", BUDGET, 9),
    "shuffled": HadamardResponse("r", BUDGET, 9, shuffled=2),
}


@pytest.mark.parametrize("name", [*MANY, *LOCAL])
def test_bytes_that_another_aggregator_received_were_received(name):
    protocol = {**MANY, **LOCAL}[name]
    numbers = range(5) if name != "shuffled" else [None] * 5
    messages = [protocol.party(number).encode([1]) for number in numbers]
    one, two = protocol.aggregator(), protocol.aggregator()
    one.receive_many(messages[:3])
    two.receive_many(messages[3:])
    assert one.merge(two) == 0
    assert one.bytes_received == sum(map(len, messages))
    assert protocol.restore(one.to_bytes()).bytes_received == one.bytes_received


@pytest.mark.parametrize("name", [*MANY, *LOCAL])
@pytest.mark.parametrize("seeded", [0, 1])
def test_one_seeded_message_makes_what_follows_not_private(name, seeded):
    """Also where it came by way of another aggregator, or of a state."""
    protocol = {**MANY, **LOCAL}[name]
    one, two = protocol.aggregator(), protocol.aggregator()
    for place, aggregator in enumerate((one, two)):
        source = seeded_source(1) if place == seeded else None
        number = None if name == "shuffled" else place
        aggregator.receive(protocol.party(number, source=source).encode([1]))
        assert aggregator.guarantee.seeded is (place == seeded)
    one.merge(two)
    assert one.guarantee.seeded
    assert protocol.restore(one.to_bytes()).guarantee.seeded


@pytest.mark.parametrize(
    ("gap", "count", "taken"), [(1, 1, True), (5, 2, True), (0, 1, False), (1, 0, False), (0, 0, False)]
)
def test_runs_of_numbers_are_written_in_one_way(gap, count, taken):
    """Runs that touch are one run, and an empty one is none: else one message would have many forms."""
    protocol = LOCAL["local"]
    items = 3 + count
    values = np.zeros(items, np.uint8)
    payload = varint(1) + varint(gap) + varint(count) + protocol._write(values)
    message, aggregator = protocol._pack(Message(10, items, payload)), protocol.aggregator(max_reports=None)
    if taken:
        assert aggregator.receive(message)
        assert aggregator.numbers == [(10, 3), (13 + gap, count)]
    else:
        with pytest.raises(dc.errors.MessageError, match="empty or touch") as refused:
            aggregator.receive(message)
        assert refused.value.reason == "range"


def test_a_number_of_more_than_63_bits_is_refused():
    for protocol in (*MANY.values(), LOCAL["local"]):
        honest, _ = protocol.open(protocol.party(5, source=seeded_source(1)).encode([1]))
        for number, taken in ((2**63 - 1, True), (2**63 - 2, True)):
            assert protocol.aggregator().receive(protocol._pack(replace(honest, number=number))) is taken
    several, _ = LOCAL["local"].open(LOCAL["local"].party(5).encode([1, 1, 1]))
    with pytest.raises(dc.errors.MessageError, match="more than 63 bits") as refused:
        LOCAL["local"].open(LOCAL["local"]._pack(replace(several, number=2**63 - 2)))
    assert refused.value.reason == "range"


def separated(items, places, counts, width):
    """A message of a party with this many items: heavy ones with what they have beyond a step, and an empty sketch."""
    round_ = MANY["separation"]
    cells = _native.write_integers(np.zeros(width * round_.rows, np.int64))
    return round_._pack(Message(1, items, write_entries(np.array(places), np.array(counts)) + varint(width) + cells))


def test_a_sketch_is_no_wider_than_the_items_of_its_party_need():
    """A width tells of the heavy items alone, and anyone who sends a wider one makes work."""
    round_ = MANY["separation"]
    widest = round_.width(400)
    assert widest > 1
    assert round_.open(separated(400, [3], [0], widest))[1].width == widest
    for width in (widest + 1, 0):
        with pytest.raises(dc.errors.MessageError, match="wider sketch") as refused:
            round_.open(separated(400, [3], [0], width))
        assert refused.value.reason == "range"


def test_a_heavy_count_is_no_larger_than_items_and_noise_can_be():
    round_ = MANY["separation"]
    beyond = round_._bound(40, round_.heavy_scale) - round_.items_per_entry
    assert round_.open(separated(40, [3], [beyond], 1))[1].counts.tolist() == [beyond + round_.items_per_entry]
    assert round_.open(separated(40, [3], [-beyond - 1], 1))[1].counts.tolist() == [-beyond - round_.items_per_entry]
    for wrong in (beyond + 1, -beyond - 2):
        with pytest.raises(dc.DataError):
            round_.open(separated(40, [3], [wrong], 1))


@pytest.mark.parametrize("name", ["levels", "grid"])
def test_reports_of_levels_are_of_the_numbers_that_the_message_says(name):
    """For each level a number of reports, and those; together as many as the message states, under its own number."""
    made = {
        "levels": Hierarchy("r", BUDGET, 9, "HadamardResponse", 3),
        "grid": GridHierarchy("r", BUDGET, (9, 9), "HadamardResponse", 3),
    }[name]
    first = made.by_level[0]
    one, none = varint(1) + first._encode(np.zeros(1, np.uint64), 7, seeded_source(1)), varint(0)
    rest = [none] * (len(made.levels) - 1)

    def opened(items, *parts, number=7):
        return made.open(made._pack(Message(number, items, pack_parts([*parts]))))

    assert opened(1, one, *rest)[0].number == 7
    for items, parts, reason in (
        (2, (one, *rest), "size"),  # fewer than it states
        (1, (one,) * 2 + tuple(rest[1:]), "range"),  # more
        (1, (one + b"\0", *rest), "size"),
        (1, (none + b"\0", one, *rest[1:]), "size"),  # something where there is nothing
        (1, (one, *rest, none), "size"),
        (1, (one, *rest[1:]), "size"),
    ):
        with pytest.raises(dc.errors.MessageError) as refused:
            opened(items, *parts)
        assert refused.value.reason == reason


def test_states_of_another_version_or_with_a_party_twice_are_refused():
    for protocol in (*MANY.values(), LOCAL["local"], LOCAL["shuffled"]):
        aggregator = protocol.aggregator()
        for seed in range(3):
            number = None if protocol is LOCAL["shuffled"] else seed
            aggregator.receive(protocol.party(number, source=seeded_source(seed)).encode([1]))
        state = aggregator.to_bytes()
        family = type(aggregator)._state_family
        version, payload = open_state(state, family, 3, oldest=1)
        assert protocol.restore(seal_state(family, version, payload)).to_bytes() == state
        with pytest.raises(dc.CorruptStateError, match="version"):
            protocol.restore(seal_state(family, {1: 2, 3: 1}[version], payload))
        heard = aggregator._consolidated() if protocol is not LOCAL["shuffled"] else []
        if not protocol.local:
            head = payload[: len(protocol._identity)] + varint(aggregator.bytes_received)
            twice = pack_parts(protocol._pack(message) for message, _ in [*heard, heard[0]])
            with pytest.raises(dc.CorruptStateError, match="twice"):
                protocol.restore(seal_state(family, version, head + twice))


def test_a_plan_of_a_window_needs_the_steps_of_a_stream():
    for wrong, said in (({"window": True, "total": 100}, "window"), ({}, "total"), ({"total": 9, "steps": 9}, "steps")):
        with pytest.raises(dc.ParameterError, match=said):
            plan(10, epsilon=1.0, **wrong)
    assert plan(10, epsilon=1.0, steps=16, window=True).rows[0].parameters["window"] == 16


@pytest.mark.parametrize("name", STREAMS)
def test_every_packet_says_since_when_its_party_was_there(name):
    """Also after a restart: blocks that began before hold less than they say."""
    stream = STREAMS[name](horizon=16)
    party = stream.party(2, start=5)
    for step in range(6, 12):
        packet = stream.open(party.feed([step % 9]))[1]
        assert (packet.after, packet.to, packet.joined) == (step - 1, step, 5)
        party = stream.restore_party(party.to_bytes())


@pytest.mark.parametrize("items", [[1, math.nan, 2], [math.nan, 3], [3, math.nan], [math.nan, math.nan, 3, 3]])
def test_a_step_without_an_item_is_marked_as_such(items):
    """What is left out otherwise would move all steps after it, or give one item to several."""
    party = STREAMS["sketches"](horizon=16).party(1)
    before = party.to_bytes()
    with pytest.raises(dc.DataError):
        party.feed(items)
    assert party.to_bytes() == before
    marked = [None if isinstance(item, float) else item for item in items]
    assert party.feed(marked) is not None
    assert party.time == len(items)


def parts_of_party(party):
    """The header of a party's state, its last message, and its summaries."""
    _, payload = open_state(party.to_bytes(), PARTY_STATE, 1)
    head, message, *summaries = unpack_parts(payload, len(payload))
    return json.loads(head), message, [bytes(each) for each in summaries]


def party_again(stream, header, message, summaries):
    head = json.dumps(header, sort_keys=True).encode()
    return stream.restore_party(seal_state(PARTY_STATE, 1, pack_parts([head, message, *summaries])))


PARTS = {
    "summaries of other blocks": lambda h, m, s: (h, m, s[::-1]),
    "one less": lambda h, m, s: (h, m, s[:-1]),
    "one twice": lambda h, m, s: (h, m, [*s, s[0]]),
    "another party's": lambda h, m, s: ({**h, "number": 9}, m, s),
    "a number below 0": lambda h, m, s: ({**h, "number": -1}, m, s),
    "a time before it joined": lambda h, m, s: ({**h, "time": h["joined"] - 1}, m, s),
    "more told than there was": lambda h, m, s: ({**h, "told": h["time"] + 1}, m, s),
    "told before it joined": lambda h, m, s: ({**h, "told": h["joined"] - 1}, m, s),
    "no time": lambda h, m, s: ({name: each for name, each in h.items() if name != "time"}, m, s),
    "a text for a number": lambda h, m, s: ({**h, "time": "3"}, m, s),
    "no summary": lambda h, m, s: (h, m, [b"", *s[1:]]),
    "steps of nothing": lambda h, m, s: ({**h, "steps": {}}, m, s),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("what", PARTS)
def test_the_state_of_a_party_is_of_its_own_blocks(name, what):
    """In its envelope all is in order; what would make another party, or other noise, is refused."""
    stream = STREAMS[name](horizon=16)
    party = stream.party(2, start=1)
    party.feed([1, 2, 3])
    parts = parts_of_party(party)
    assert len(parts[2]) > 1
    assert party_again(stream, *parts).to_bytes() == party.to_bytes()
    with pytest.raises(dc.CorruptStateError):
        party_again(stream, *PARTS[what](*parts))


@pytest.mark.parametrize("name", STREAMS)
def test_the_state_of_another_stream_is_named_as_such(name):
    stream, other = STREAMS[name](horizon=16), STREAMS[name](horizon=17)
    with pytest.raises(dc.IncompatibleSummaryError, match="another stream"):
        other.restore_party(stream.party(1).to_bytes())
    with pytest.raises(dc.IncompatibleSummaryError, match="another stream"):
        other.restore(stream.aggregator().to_bytes())


@pytest.mark.parametrize("indices", [[0, 1], [1, 0], [0, 1, 0], [1, 1, 0, 0], [0, None, 1]])
def test_a_null_of_any_column_is_a_step_without_an_item(indices):
    """Also one behind a dictionary: the item that is left must not be taken for all steps."""
    marked = [3 if index == 0 else None for index in indices]
    behind = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array([3, None]))
    stream, sent = STREAMS["sketches"](horizon=16), set()
    for column in (marked, pa.array(marked, pa.int64()), pd.Series(marked, dtype="Int64"), behind):
        party = stream.party(1, source=seeded_source(1))
        sent.add(party.feed(column))
        assert party.time == len(indices)
    assert len(sent) == 1
