"""Whoever may send may send nonsense: what one message can do to an aggregator that says how much it takes."""

import itertools

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DataError, IncompatibleSummaryError, MessageError, ParameterError
from discreet.multiparty import (
    HadamardResponse,
    Hierarchy,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
    Separation,
    Stream,
)
from discreet.multiparty.aggregator import HeardNumbers
from discreet.multiparty.party_sketches import noise_reach
from discreet.multiparty.wire import Message
from discreet.noise import seeded_source
from discreet.published import MergedMisraGries, MergedSketch

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
    aggregator = protocol.aggregator()
    with pytest.raises(MessageError, match="max_reports is 1") as caught:
        aggregator.receive(liar)
    assert caught.value.reason == "range"
    assert aggregator.receive_many(honest).accepted == 50
    assert aggregator.parties == aggregator.total == 50
    # Where a relay is trusted with many reports, the first message counts.
    assert protocol.aggregator(max_reports=1000).receive_many([liar, *honest]).accepted == 1


@pytest.mark.parametrize("protocol", LOCAL, ids=name_of)
def test_without_a_number_a_report_has_a_random_one_that_nobody_can_take_before(protocol):
    parties = [protocol.party() for _ in range(20)]
    assert len({party.number for party in parties}) == 20  # but for a probability of 2^-53
    messages = [party.encode([3]) for party in parties]
    aggregator = protocol.aggregator()
    receipt = aggregator.receive_many([*messages, *messages])
    assert receipt.accepted == 20
    assert {rejection.reason for rejection in receipt.rejected} == {"duplicate"}
    with pytest.raises(MessageError, match="already sent a message"):  # nor after a restart
        protocol.restore(aggregator.to_bytes()).receive(messages[7])


def test_of_a_message_that_is_refused_no_number_counts_as_heard():
    """One that was heard before refuses all of them, and the others may still speak."""
    protocol = HadamardResponse("r", BUDGET, 100)
    message = {number: protocol.party(number).encode([number]) for number in (3, 5, 9)}
    bundle = protocol.bundle(message.values())
    for known, other in itertools.permutations(message, 2):
        aggregator = protocol.aggregator(max_reports=3)
        aggregator.receive(message[known])
        with pytest.raises(MessageError, match="already sent a message"):
            aggregator.receive(bundle)
        assert (aggregator.numbers, aggregator.parties, aggregator.total) == ([(known, 1)], 1, 1)
        aggregator.receive(message[other])
        assert aggregator.parties == aggregator.total == 2


def test_a_ledger_wants_a_number(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger")
    ledger.grant("a", dc.Budget(9.0))
    with pytest.raises(ParameterError, match="number"):
        LOCAL[0].party().encode([1], ledger=ledger.account("a"))


def limited(protocol, most):
    return {"max_reports": most} if protocol.local else {"max_items": most}


@pytest.mark.parametrize("protocol", LOCAL + WHOLE, ids=name_of)
def test_a_state_goes_on_with_the_limit(protocol):
    aggregator = protocol.aggregator(**limited(protocol, 2))
    for number in range(5):
        aggregator.receive(protocol.party(10 * number).encode([1, 2]))
    restored = protocol.restore(
        aggregator.to_bytes(), **limited(protocol, 2)
    )  # which may keep ten reports in one message
    assert restored.parties == aggregator.parties
    assert restored.limits == aggregator.limits
    long = protocol.party(1000).encode([1, 2, 3])
    for each in (aggregator, restored):
        with pytest.raises(MessageError, match=r"max_(items|reports) is 2"):
            each.receive(long)
    protocol.restore(aggregator.to_bytes(), max_reports=None).receive(long)


@pytest.mark.parametrize("protocol", LOCAL + WHOLE, ids=name_of)
def test_nothing_is_shown_before_there_are_enough(protocol):
    aggregator = protocol.aggregator(minimum_reports=10)
    for number in range(10):
        for ask in (aggregator.estimate, aggregator.liars):
            with pytest.raises(DataError, match="before 10 reports have arrived") as caught:
                ask([1])
            assert str(number) not in str(caught.value).replace("10", "")
        aggregator.receive(protocol.party(number).encode([1]))
    assert len(aggregator.estimate([1])) == 1
    with pytest.raises(DataError):
        protocol.restore(aggregator.to_bytes(), minimum_reports=11).estimate([1])


@pytest.mark.parametrize("protocol", WHOLE[:4], ids=name_of)
def test_the_usual_limit_of_items_is_small(protocol):
    assert protocol.max_items == 2**16
    with pytest.raises(ParameterError, match="max_items=65536"):
        protocol.party(1).encode(np.zeros(2**16 + 1, np.int64))


@pytest.mark.parametrize("protocol", LOCAL + WHOLE, ids=name_of)
def test_what_two_heard_is_merged_and_counts_once(protocol):
    messages = [protocol.party(3 * number).encode([number]) for number in range(9)]
    whole, one, two = protocol.aggregator(), protocol.aggregator(), protocol.aggregator()
    whole.receive_many(messages)
    one.receive_many(messages[:6])
    two.receive_many(messages[4:])
    assert one.merge(two) == 2
    assert one.numbers == whole.numbers
    assert (one.parties, one.total) == (9, 9)
    np.testing.assert_allclose(one.estimate(range(20)).values, whole.estimate(range(20)).values)
    with pytest.raises(MessageError, match="already sent a message"):
        one.receive(messages[8])
    for wrong in (one, type(protocol)("other round", BUDGET, 100).aggregator()):
        with pytest.raises(IncompatibleSummaryError):
            one.merge(wrong)


@pytest.mark.parametrize("protocol", LOCAL + WHOLE, ids=name_of)
def test_liars_move_an_estimate_no_further_than_is_said(protocol):
    """Every pair of nine parties is left out in turn."""
    messages = [protocol.party(number, source=seeded_source(number)).encode([number // 3]) for number in range(9)]
    aggregator = protocol.aggregator()
    aggregator.receive_many(messages)
    shown, liars = aggregator.estimate(range(6)).values, aggregator.liars(range(6), share=0.2)
    assert (liars.share, liars.count) == (0.2, 2)
    least, most = np.full(6, np.inf), np.full(6, -np.inf)
    for lying in (pair for size in (0, 1, 2) for pair in itertools.combinations(range(9), size)):
        without = protocol.aggregator()
        without.receive_many(message for number, message in enumerate(messages) if number not in lying)
        values = without.estimate(range(6)).values
        least, most = np.minimum(least, values), np.maximum(most, values)
    assert (shown - least <= liars.too_high + 1e-9).all()
    assert (most - shown <= liars.too_low + 1e-9).all()
    if not isinstance(protocol, (Hierarchy, LocalSketch, MergedSketch)) or protocol is WHOLE[-1]:  # there it is exact
        np.testing.assert_allclose(liars.too_high, shown - least, atol=1e-9)
        np.testing.assert_allclose(liars.too_low, most - shown, atol=1e-9)
    with pytest.raises(ParameterError, match="share"):
        aggregator.liars([1], share=2)


def test_numbers_are_found_whatever_the_order():
    """Against a set; a prime step visits them in an order that splits pieces and joins runs."""
    heard, known = HeardNumbers(), set()
    for i in range(6000):
        number = (i * 2741) % 6007 * (1 if i % 2 else 3)
        assert heard.overlaps(number, 1) == (number in known)
        if number not in known:
            heard.add(number, 1)
            known.add(number)
    assert heard.count == len(known)
    assert [n for first, count in heard.runs() for n in range(first, first + count)] == sorted(known)
    for first in range(0, 18_000, 37):
        assert heard.overlaps(first, 5) == bool(known & set(range(first, first + 5)))
    heard.add(2**63 - 3, 3)
    assert heard.runs()[-1] == (2**63 - 3, 3)


@pytest.mark.parametrize("protocol", WHOLE[:4], ids=name_of)
def test_a_liar_adds_no_more_than_the_limit_and_the_reach_of_the_noise(protocol):
    """The largest numbers that any message of 10 items may have, and the same of 2^15 items, which is left out."""
    limit, aggregator = 10, protocol.aggregator(max_items=10)
    for items in (2**15, limit):
        message = protocol._pack(Message(1, items, loudest(protocol, items)))
        if items > limit:
            with pytest.raises(MessageError, match="max_items is 10"):
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
    from discreet.multiparty.wire import varint, write_entries

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
        for name, protocol in (("max_reports", LOCAL[0]), ("max_items", WHOLE[0])):
            with pytest.raises(ParameterError, match=name):
                protocol.aggregator(**{name: wrong})
            with pytest.raises(ParameterError, match=name):
                protocol.restore(protocol.aggregator().to_bytes(), **{name: wrong})
    with pytest.raises(ParameterError, match="minimum_reports"):
        LOCAL[0].aggregator(minimum_reports=-1)
    with pytest.raises(ParameterError, match="max_reports"):
        LOCAL[0].aggregator(max_items=1)
    with pytest.raises(ParameterError, match="max_items"):
        WHOLE[0].aggregator(max_reports=5)


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


@pytest.mark.parametrize(
    "protocol", [LOCAL[0], LocalSketch("r", BUDGET, 100), MergedSketch("r", BUDGET, 100)], ids=name_of
)
def test_two_liars_move_further_than_one_and_no_further_than_twice_as_far(protocol):
    aggregator = protocol.aggregator()
    aggregator.receive_many(
        protocol.party(number, source=seeded_source(number)).encode([number // 3]) for number in range(9)
    )
    one, two = (aggregator.liars(range(6), share=share) for share in (0.1, 0.2))
    assert (one.count, two.count) == (1, 2)
    assert (two.too_high > 1.2 * one.too_high).all()
    assert (two.too_high <= 2.0 * one.too_high + 1e-9).all()
