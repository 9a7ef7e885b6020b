"""Misra-Gries sketches over a stream: the budget, counts of any window, what may be missing, and hostile packets.

"Exact" streams have an epsilon at which the noise is 0 but for a probability below e^-100, so that the cut is 1.
"""

import itertools
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from tests.reference.misra_gries import Dummy, misra_gries

import discreet as dc
from discreet.errors import CorruptStateError, MessageError, ParameterError
from discreet.multiparty import protocol_from_dict
from discreet.multiparty.estimates import Estimates
from discreet.multiparty.packets import Block, Packet, write_packet
from discreet.multiparty.wire import Message
from discreet.noise import seeded_source
from discreet.published import MergedMisraGries, MergedMisraGriesStream
from discreet.published.merged_misra_gries import added_by_the_cut, counter_variance, counts_of, usual_cut

SIZE = 6


def exact(**changes):
    given = {"round_id": "exact", "budget": dc.Budget(1e5), "universe": SIZE, "epoch_steps": 2, "capacity": 2}
    given |= {} if {"window", "horizon"} & set(changes) else {"horizon": 40}
    return MergedMisraGriesStream(**{**given, **changes})


def heard(stream, columns, seed=0, size=None):
    """An aggregator that heard parties that feed `size` steps at once."""
    aggregator = stream.aggregator()
    for number, column in enumerate(columns):
        party = stream.party(number, source=seeded_source(seed + number))
        for first in range(0, len(column), size or len(column)):
            message = party.feed(column[first : first + (size or len(column))])
            if message is not None:
                assert aggregator.receive(message)
    return aggregator


@pytest.fixture(scope="module")
def columns():
    return np.minimum(np.random.default_rng(1).geometric(0.4, (3, 40)) - 1, SIZE - 1)


# ---- the budget ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("span", [{"horizon": 90}, {"window": 25}, {}])
@pytest.mark.parametrize("capacity", [1, 3, 9])
def test_the_parts_of_the_budget_add_up_to_it(share, span, capacity):
    """A step is in one block of each level of its phase, and in one sample."""
    stream = MergedMisraGriesStream("r", dc.Budget(0.7), 1000, 9, capacity=capacity, sample_share=share, **span)
    assert stream.epsilon_sample == Fraction(0.7) * Fraction(share)
    for epoch in range(40):
        levels = stream.shape.levels(epoch)
        blocks = [Block(level, epoch >> level) for level in range(levels)]
        spent = [stream.sensitivity(block.level) / stream.shape.scale(block) for block in blocks]
        assert stream.epsilon_sample + sum(spent) == Fraction(0.7)
        for block in blocks:
            # 9 steps an epoch: with 9 counters nothing is lost, and a replacement moves two of them.
            k = min(capacity << block.level, 1000)
            exact_counters = capacity == 9 or k == 1000
            assert stream.counters(block.level) == k
            assert stream.sensitivity(block.level) == (2 if exact_counters else k + 1)
    assert stream.guarantee.epsilon == 0.7
    assert stream.guarantee.delta == 0


def test_counters_are_no_more_than_steps_or_items():
    stream = MergedMisraGriesStream("r", dc.Budget(1.0), 20, 3, horizon=60, capacity=64)
    assert [stream.counters(level) for level in range(stream.levels)] == [3, 6, 12, 20, 20]
    assert {stream.sensitivity(level) for level in range(stream.levels)} == {2}
    stream = MergedMisraGriesStream("r", dc.Budget(1.0), 20, 8, horizon=64, capacity=4)
    assert [stream.sensitivity(level) for level in range(stream.levels)] == [5, 9, 17]


@pytest.mark.parametrize("wrong", [
    {"universe": "strings"}, {"capacity": 0}, {"capacity": 2**27}, {"epoch_steps": 0}, {"horizon": 40, "window": 40},
    {"sample_share": 1.0}, {"budget": dc.Budget(1e-20)}, {"budget": dc.Budget(1.0, 1e-6)},
])  # fmt: skip
def test_what_is_refused(wrong):
    with pytest.raises(ParameterError):
        exact(**wrong)


def test_when_and_what_is_sent_does_not_depend_on_items():
    stream = MergedMisraGriesStream("r", dc.Budget(1.0), 10, epoch_steps=4, window=16, capacity=2, sample_share=0.5)
    spans = []
    for items in ([1, 2, 3] * 20, [None] * 60, [None, 9, 9] * 20):
        party, found = stream.party(0, source=seeded_source(3)), []
        for first in range(0, 60, 6):
            message = party.feed(items[first : first + 6])
            packet = message and stream.open(message)[1]
            found.append(packet and (packet.after, packet.to, [*packet.blocks]))
        spans.append(found)
    assert spans[0] == spans[1] == spans[2]


# ---- estimates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("span", [{}, {"window": 2}, {"window": 11}, {"horizon": None}])
@pytest.mark.parametrize("size", [3, 40])
def test_every_window_without_noise_and_with_counters_enough(columns, span, size):
    stream = exact(**span)
    aggregator = heard(stream, columns, size=size)
    for time in range(41):
        found = aggregator.estimate(np.arange(SIZE), time)
        first, last = -(-found.since // 2) * 2, time // 2 * 2  # whole epochs
        truth = sum(np.bincount(column[first:last], minlength=SIZE) for column in columns)
        assert found.values.tolist() == truth.tolist()
        everything = sum(np.bincount(column[found.since : time], minlength=SIZE) for column in columns)
        lower, upper = found.bounds()
        assert ((lower <= everything) & (everything <= upper)).all()


def test_a_block_is_the_sketch_of_its_items(columns):
    """The counters that are sent, against the papers' algorithm on the items of each block."""
    stream = exact(epoch_steps=5, capacity=2)
    items = [None if at % 3 == 0 else int(item) for at, item in enumerate(columns[0])]
    packet = stream.open(stream.party(4).feed(items))[1]
    assert len(packet.blocks) == 8 + 4 + 2
    for block, (places, counters) in packet.blocks.items():
        here = [item for item in items[block.first * 5 : block.end * 5] if item is not None]
        literal = misra_gries(here, stream.counters(block.level)).counters
        # Which key of count 0 is replaced changes none of those above 0.
        assert dict(zip(places.tolist(), counters.tolist(), strict=True)) == {
            key: count for key, count in literal if count and not isinstance(key, Dummy)
        }


def test_what_counters_lose_is_in_the_bounds():
    """Six items in turn and two counters: nothing is left of most blocks, and the upper end says so."""
    stream = exact(epoch_steps=6, capacity=2, horizon=36)
    aggregator = heard(stream, [list(range(6)) * 6] * 4)
    found = aggregator.estimate(range(6), 36)
    assert found.values.sum() < 4 * 36
    # Six epochs are blocks of four and of two; the larger has a counter for each of the six items.
    assert found.shortfall == pytest.approx(4 * (0 + 1) + 4 * (12 / 5 + 1))
    lower, upper = found.bounds()
    assert ((lower <= 24) & (upper >= 24)).all()


@pytest.mark.parametrize(("size", "capacity"), [(2, 8), (40, 3)])
def test_intervals_hold(size, capacity):
    """15 parties, 12 streams: every item is within its interval at 95 percent, but for once. Seeded.

    In a universe of two the cut lets half of the noise through, and counts are far too high.
    """
    stream = MergedMisraGriesStream("s", dc.Budget(3.0), size, epoch_steps=8, window=32, capacity=capacity)
    generator, held = np.random.default_rng(0), np.zeros(2)
    for run in range(12):
        columns = np.zeros((15, 40), np.int64) if run % 2 else generator.integers(0, size, (15, 40))
        found = heard(stream, columns, 100 * run).estimate([0, 1], 40)
        truth = np.bincount(columns[:, 8:].ravel(), minlength=size)[:2]
        lower, upper = found.bounds()
        held += (lower <= truth) & (truth <= upper)
    assert held.min() >= 11


@pytest.mark.parametrize("size", [2, 3, 20, 500])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(20)])
def test_what_the_cut_adds_is_the_largest_over_all_counts(size, scale):
    cut = usual_cut(scale, size)
    noise = np.arange(-1500, 1501)
    law = np.exp(-np.abs(noise) / float(scale))
    law /= law.sum()

    def too_high(count):
        shown = count + noise
        return float(np.sum(law * np.where(shown >= cut, shown, 0))) - count

    assert added_by_the_cut(scale, cut) == pytest.approx(max(0, *map(too_high, range(3 * cut + 10))), abs=1e-9)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_the_interval_of_one_counter_holds_whatever_the_noise(confidence):
    """By the exact law, also where noise is a small whole number, which its own variance does not tell."""
    noise, guarantee = np.arange(-400, 401), exact()._guarantee(False)
    for scale, size in itertools.product(
        map(Fraction, ("1/4", "1/3", "2/5", "1/2", "2/3", "1", "3/2", "9")), (1, 2, 50)
    ):
        cut, law = usual_cut(scale, size), np.exp(-np.abs(noise) / float(scale))
        spread, excess = np.full(len(noise), counter_variance(scale)), added_by_the_cut(scale, cut)
        for count in range(3 * cut + 20):
            shown = np.where(count + noise >= cut, count + noise, 0).astype(float)
            lower, upper = Estimates(shown, spread, guarantee, float(cut), excess).bounds(confidence)
            held = law[(lower <= count) & (count <= upper)].sum() / law.sum()
            assert held >= confidence - 1e-9, (scale, size, count)


def test_one_shot_intervals_have_it_too():
    """A universe of two: a hundred parties' noise alone is far from 0."""
    protocol = MergedMisraGries("r", dc.Budget(1.0), 2, capacity=4)
    aggregator, source = protocol.aggregator(), seeded_source(1)
    for number in range(100):
        aggregator.receive(protocol.party(number, source=source).encode([1] * 50))
    found = aggregator.estimate([0, 1])
    assert found.excess == pytest.approx(100 * added_by_the_cut(protocol.scale, protocol.cut))
    lower, upper = found.bounds()
    assert lower[0] <= 0 < found.values[0] - 3 * found.deviations[0]
    assert lower[1] <= 5000 <= upper[1]


def test_samples_tell_of_the_open_epoch():
    stream = exact(epoch_steps=8, capacity=8, window=16, sample_share=0.5, budget=dc.Budget(50.0))
    aggregator = heard(stream, [[1] * 20] * 100)
    found = aggregator.estimate([1, 2], 20)
    assert found.shortfall == pytest.approx(100 * stream.shape.cut(Block(0, 1)))  # of one whole block: the cut
    assert (np.abs(found.values - [100 * 16, 0]) < 6 * found.deviations + found.shortfall).all()
    assert found.deviations.max() < 400


def test_heavy_hitters_need_no_list_of_items():
    stream = MergedMisraGriesStream("h", dc.Budget(20.0), 2**40, epoch_steps=20, window=100, capacity=20)
    columns = np.where(np.arange(100) % 4 == 0, 7, np.where(np.arange(100) % 4 == 1, 2**39, np.arange(100) + 1000))
    aggregator = heard(stream, [columns] * 30)
    found = aggregator.heavy_hitters(0.1, 100)
    assert sorted(found.items) == [7, 2**39]
    assert found.threshold == 300
    assert (found.estimates.values > 0.5 * 750).all()
    assert found.estimates.values[0] >= found.estimates.values[1]
    assert not found.complete  # so much may be missing of an item that nobody sent
    assert aggregator.heavy_hitters(0.9, 100).complete
    assert len(stream.aggregator().heavy_hitters(0.1)) == 0
    with pytest.raises(ParameterError):
        aggregator.heavy_hitters(0.0)


def test_heavy_hitters_are_not_complete_if_one_that_was_sent_may_lack_as_much():
    """Half of the parties lose all of an item's counts, and the others' are below the threshold."""
    stream = exact(epoch_steps=30, horizon=30)
    aggregator = heard(stream, [[5] * 30] * 15 + [[5, 1, 2] * 10] * 15)
    assert aggregator.estimate([5]).values == [15 * 30]  # of 600
    found = aggregator.heavy_hitters(0.6)
    assert (found.threshold, found.items, found.complete) == (540, [], False)
    assert found.estimates.shortfall < 540
    assert aggregator.heavy_hitters(0.9).complete


def test_heavy_hitters_are_not_complete_if_samples_may_hide_one():
    """Blocks name items and samples do not: one that is frequent since the last block is not listed."""
    stream = MergedMisraGriesStream(
        "h", dc.Budget(20.0), 1000, epoch_steps=50, horizon=400, capacity=50, sample_share=0.5
    )
    aggregator = heard(stream, [[*range(100, 150), *[7] * 45]] * 40, seed=1)
    found = aggregator.heavy_hitters(0.3, 95)
    assert (found.items, found.complete) == ([], False)
    assert aggregator.estimate([7], 95).values[0] > found.threshold > found.estimates.shortfall
    assert aggregator.heavy_hitters(0.6, 50).complete  # no step is without a block


def test_counts_of_words_in_any_order():
    entries = np.array([2, 5, 9]), np.array([20, 50, 90])
    assert counts_of(entries, np.array([9, 0, 5, 10, 5], np.uint64)).tolist() == [90, 0, 50, 0, 50]
    assert counts_of((np.zeros(0, np.int64),) * 2, np.array([1, 2], np.uint64)).tolist() == [0, 0]


# ---- packets and states ----------------------------------------------------------------------------------------------


def test_late_lost_and_repeated_packets(columns):
    stream = exact()
    party = stream.party(0)
    messages = [party.feed(columns[0][first : first + 4]) for first in range(0, 40, 4)]
    aggregator = stream.aggregator(expected=[0, 9])
    for message in reversed(messages[:7] + messages[8:]):
        assert aggregator.receive(message)
    assert not aggregator.receive(messages[2])
    found = aggregator.estimate(range(SIZE), 40)
    kept = np.delete(columns[0], np.s_[28:32])
    assert found.values.tolist() == np.bincount(kept, minlength=SIZE).tolist()
    assert found.coverage == {0: 0.9, 9: 0.0}
    other = stream.party(0).feed(columns[1][:4])
    with pytest.raises(MessageError) as caught:
        aggregator.receive(other)
    assert caught.value.reason == "duplicate"
    assert aggregator.receive(messages[7])
    assert aggregator.estimate(range(SIZE), 40).values.sum() == 40


def test_windows_forget(columns):
    stream = exact(window=8)
    aggregator = heard(stream, columns, size=4)
    before = aggregator.estimate(range(SIZE), 40).values.tolist()
    aggregator.advance(40)
    assert aggregator.estimate(range(SIZE), 40).values.tolist() == before
    with pytest.raises(ParameterError):
        aggregator.estimate([0], 30)


def test_states_go_on(columns):
    """Step by step with a restart each time: the same messages as at once."""
    stream = exact(capacity=1, epoch_steps=3)
    party, sent = stream.party(2), {}
    for item in columns[0]:
        message = party.feed([item])
        if message is not None:
            sent.update(stream.open(message)[1].blocks)
        party = stream.restore_party(party.to_bytes())
    whole = stream.open(stream.party(2).feed(columns[0]))[1].blocks
    assert sent.keys() == whole.keys()
    for block, (places, counters) in whole.items():
        assert sent[block][0].tolist() == places.tolist()
        assert sent[block][1].tolist() == counters.tolist()
    aggregator = heard(stream, columns)
    again = stream.restore(aggregator.to_bytes())
    assert type(again) is type(aggregator)
    assert again.estimate(range(SIZE), 40).values.tolist() == aggregator.estimate(range(SIZE), 40).values.tolist()


def test_states_of_another_kind_are_refused():
    stream = exact()
    party = stream.party(1)
    party.feed([1])
    for other in (exact(capacity=1), exact(universe=7), exact(round_id="other")):
        with pytest.raises(dc.DiscreetError):
            other.restore_party(party.to_bytes())
    state = party.to_bytes()
    for at in range(0, len(state), 7):
        broken = bytearray(state)
        broken[at] ^= 0x21
        with pytest.raises(CorruptStateError):
            stream.restore_party(bytes(broken))
    forged = stream.party(1)
    forged._open[0][0].update(np.array([SIZE], np.uint64))
    with pytest.raises(CorruptStateError, match="universe"):
        stream.restore_party(forged.to_bytes())
    forged = stream.party(1)
    forged._open[0][0].update(["text"])
    with pytest.raises(CorruptStateError):
        stream.restore_party(forged.to_bytes())


def test_packets_that_nobody_honest_sends(columns):
    stream = exact(budget=dc.Budget(30.0))
    aggregator, message = stream.aggregator(), stream.party(0).feed(columns[0])
    packet = stream.open(message)[1]

    def refused(reason, block, entries):
        changed = {**packet.__dict__, "blocks": {**packet.blocks, block: entries}}
        with pytest.raises(MessageError) as caught:
            aggregator.receive(stream._pack(Message(0, 0, write_packet(Packet(**changed), stream.shape))))
        assert caught.value.reason == reason

    for block in packet.blocks:
        cut, bound = stream.shape.cut(block), stream.shape.bound(block)
        refused("range", block, (np.array([0]), np.array([bound + 1])))
        refused("range", block, (np.array([0]), np.array([cut - 1])))
        refused("range", block, (np.array([SIZE]), np.array([cut])))
    payload = write_packet(packet, stream.shape)
    for broken in (payload + b"\0", payload[:-1]):
        with pytest.raises(MessageError):
            aggregator.receive(stream._pack(Message(0, 0, broken)))
    assert aggregator.parties == 0
    assert aggregator.receive(message)


def test_random_bytes_never_crash(columns):
    stream, generator = exact(budget=dc.Budget(2.0)), np.random.default_rng(5)
    payload = write_packet(stream.open(stream.party(0).feed(columns[0]))[1], stream.shape)
    for _ in range(400):
        broken = bytearray(payload)
        for at in generator.integers(len(broken), size=3):
            broken[at] = generator.integers(256)
        with suppress(MessageError):
            stream.aggregator().receive(stream._pack(Message(0, 0, bytes(broken))))


def test_a_round_from_its_description():
    stream = exact(window=9, sample_share=0.25)
    assert protocol_from_dict(stream.to_dict()) == stream
    assert protocol_from_dict(stream.to_dict()).digest == stream.digest


def test_a_ledger_is_charged_once(tmp_path, columns):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("clicks", dc.Budget(1.0))
    stream = exact(budget=dc.Budget(1.0))
    party = stream.party(0, ledger=ledger.account("clicks"))
    party.feed(columns[0][:20])
    state = party.to_bytes()
    party.feed(columns[0][20:])
    assert ledger.account("clicks").spent().epsilon == 1.0
    with pytest.raises(dc.errors.OldStateError):
        stream.restore_party(state, ledger=ledger.account("clicks"))
