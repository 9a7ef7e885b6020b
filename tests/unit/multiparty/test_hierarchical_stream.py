"""Streams with levels of intervals: heavy hitters, quantiles and ranges over time and in a window.

"Exact" streams have an epsilon at which the noise is 0 but for a probability below e^-100, epochs of one step (so that
nothing is sampled) and columns enough that no two of the few intervals collide, which is fixed by the round's name.
"""

from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DataError, MessageError, ParameterError
from discreet.multiparty import HierarchicalStream, Stream, Strings, protocol_from_dict
from discreet.multiparty.packets import Block, Packet, write_packet
from discreet.multiparty.wire import Message
from discreet.noise import seeded_source

SIZE = 20
STEPS = 12


def exact(**changes):
    given = {"round_id": "levels", "budget": dc.Budget(1e6), "universe": SIZE, "columns": 2**10, "branching": 4}
    return HierarchicalStream(**{**given, **({} if "window" in changes else {"horizon": STEPS}), **changes})


def heard(stream, columns, seed=0):
    aggregator = stream.aggregator()
    for number, column in enumerate(columns):
        aggregator.receive(stream.party(number, source=seeded_source(seed + number)).feed(column))
    return aggregator


@pytest.fixture(scope="module")
def columns():
    return np.minimum(np.random.default_rng(1).geometric(0.15, (2, STEPS)) - 1, SIZE - 1)


# ---- the budget ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize(("span", "levels"), [({"horizon": 90}, 4), ({"window": 25}, 2), ({}, None)])
def test_the_parts_of_the_budget_add_up_to_it(share, span, levels):
    """A step is in one block of each level of its phase, with a sketch of every track, and in one sample."""
    stream = HierarchicalStream("r", dc.Budget(0.7), 100, epoch_steps=9, sample_share=share, branching=5, **span)
    assert stream.tracks == len(stream.intervals) == 3
    assert stream.epsilon_sample == Fraction(0.7) * Fraction(share)
    for epoch in range(40):
        here = stream.shape.levels(epoch)
        each = 2 * stream.rows / stream.shape.scales[here - 1]
        assert stream.epsilon_sample + here * stream.tracks * each == Fraction(0.7)
        assert here == (levels if span else {0: 1, 1: 1, 2: 1, 3: 1}.get(epoch, epoch.bit_length() - 1))
    assert stream.guarantee.epsilon == 0.7


def test_a_step_is_sampled_for_one_track_and_every_track_as_often():
    """30,000 steps, each sampled with probability 3/10: 3,000 a track within six deviations of 52. Seeded."""
    stream = HierarchicalStream("r", dc.Budget(2.0), 100, epoch_steps=10, window=30_000, branching=5)
    assert stream.sample_rate == Fraction(3, 10)
    party = stream.party(4, source=seeded_source(1))
    steps, _ = party.sample(np.full(30_000, 7, np.uint64), np.ones(30_000, np.bool_))
    assert len(np.unique(steps)) == len(steps)
    often = np.bincount(stream.track_of(4, steps), minlength=3)
    assert (np.abs(often - 3000) < 6 * 52).all()
    # ... in whatever rhythm items come
    for period in (2, 3, 7):
        often = np.bincount(stream.track_of(4, np.arange(0, 30_000, period, dtype=np.uint64)), minlength=3)
        assert (np.abs(often * period - 10_000) < 6 * np.sqrt(10_000 * period)).all()
    assert stream.track_of(4, steps).tolist() != stream.track_of(5, steps).tolist()
    assert HierarchicalStream("r", dc.Budget(2.0), 100, epoch_steps=2, window=9, branching=5).sample_rate == 1


# ---- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("span", [{}, {"window": 5}, {"horizon": None}])
def test_every_step_without_noise(columns, span):
    stream = exact(**span)
    aggregator = heard(stream, columns)
    for time in range(1, STEPS + 1):
        now = aggregator.at(time)
        items = np.sort(columns[:, now.since : time].ravel())
        counts = np.bincount(items, minlength=SIZE)
        assert now.since == max(0, time - span.get("window", STEPS))
        assert (now.total, now.told) == (len(items), len(items))
        assert now.estimate(range(SIZE)).values.tolist() == counts.tolist()
        assert now.range_count(3, 13).value == counts[3:14].sum()
        assert now.range_count(0, SIZE - 1).value == len(items)
        for share in (0.1, 0.5, 0.99):
            assert now.quantile(share).value == items[int(np.ceil(share * len(items))) - 1]
        # An item whose count is the threshold but for rounding is left to chance.
        found = now.heavy_hitters(0.1501)
        assert set(found.items) == {item for item in range(SIZE) if counts[item] >= 0.1501 * len(items)}
        assert found.complete
        assert found.estimates.values.tolist() == counts[found.items].tolist()
    assert aggregator.at().time == STEPS


def test_names_that_nobody_can_list(columns):
    stream = exact(universe=Strings("abcdefghijklmnopqrstuvwxyz", 4), branching=1, columns=2**12)
    names = ["cat", "dog", "catt", "", "zzzz"]
    aggregator = heard(stream, [[names[item % 5] for item in column] for column in columns])
    counts = np.bincount(columns.ravel() % 5, minlength=5)
    found = aggregator.at().heavy_hitters(0.08)
    assert dict(zip(found.items, found.estimates.values.tolist(), strict=True)) == dict(
        zip(names, counts.tolist(), strict=True)
    )
    assert aggregator.at().quantile(0.0).value == ""


def test_the_total_counts_what_arrived_and_not_steps():
    stream = exact()
    aggregator = heard(stream, [[5, None, None, 5], [None, 18, None, None]])
    now = aggregator.at(4)
    assert (now.total, now.told) == (3, 8)
    assert now.heavy_hitters(0.6).items == [5]
    assert now.estimate([5, 18]).coverage == {0: 1.0, 1: 1.0}
    with pytest.raises(DataError):
        aggregator.at(0).quantile(0.5)


def test_samples_and_blocks_are_unbiased_at_every_level():
    """100 parties, steps within epochs at both ends: every interval's count within six deviations. Seeded."""
    stream = HierarchicalStream("r", dc.Budget(8.0), 60, epoch_steps=5, window=17, columns=64, branching=8)
    column = np.array([1, 1, 30, 59] * 10)
    aggregator = heard(stream, [column] * 100)
    for time in (17, 33, 39):
        now = aggregator.at(time)
        truth = column[time - 17 : time]
        for level, width in enumerate(stream.intervals.widths):
            nodes = np.arange(stream.intervals.count(level))
            found = now.interval_counts(level, nodes)
            counts = 100 * np.bincount(truth // width, minlength=len(nodes))
            assert (np.abs(found.values - counts) < 6 * found.deviations).all()
            assert found.deviations.max() < 1300
            assert np.abs(found.values - counts).max() > 0
        assert abs(now.total - 100 * 17) < 6 * now.total_deviation
        middle = now.quantile(0.5)
        assert middle.lower <= np.sort(truth)[8] <= middle.upper


def test_variances_are_those_of_the_estimates():
    """The mean square of 960 standardised errors at both levels: 1, but for a part that is an upper bound. Seeded."""
    column = np.array([0, 9, 9, 40] * 5)
    squares = []
    for run in range(60):
        stream = HierarchicalStream(f"run {run}", dc.Budget(4.0), 64, epoch_steps=3, horizon=20, columns=8, branching=8)
        now = heard(stream, [column] * 2, 2 * run).at(20)
        for level, width in enumerate((8, 1)):
            nodes = np.arange(8)
            found = now.interval_counts(level, nodes)
            truth = 2 * np.bincount(column // width, minlength=64)[nodes]
            squares.append(np.square(found.values - truth) / found.variances)
    assert 0.7 < np.mean(squares) < 1.15


# ---- no samples at all ([MDP] Corollary 1) ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Stream, HierarchicalStream])
def test_without_samples_only_whole_epochs_count(kind, columns):
    stream = kind("no samples", dc.Budget(1e6), SIZE, epoch_steps=5, horizon=STEPS, columns=2**10, sample_share=0)
    assert stream.epsilon_sample == 0
    assert stream.epsilon_level * stream.levels * stream.tracks == Fraction(1e6)
    party, aggregator, messages = stream.party(0), stream.aggregator(), []
    for item in columns[0]:
        messages.append(party.feed([int(item)]))
    # It speaks once at the beginning, and when epochs end.
    assert [step for step, message in enumerate(messages, 1) if message] == [1, 5, 10]
    aggregator.receive_many(message for message in messages if message)
    for time in (4, 5, 9, 10, STEPS):
        found = aggregator.estimate(range(SIZE), time)
        whole = np.bincount(columns[0][: time - time % 5], minlength=SIZE)
        assert found.values.tolist() == whole.tolist()
        assert found.shortfall == time % 5
        lower, upper = found.bounds()
        truth = np.bincount(columns[0][:time], minlength=SIZE)
        assert ((lower <= truth) & (truth <= upper)).all()


def test_no_samples_are_no_samples_however_they_are_written():
    streams = [Stream("r", dc.Budget(1.0), 10, epoch_steps=10, sample_share=none) for none in (0, 0.0, -0.0)]
    assert len({stream.digest for stream in streams}) == 1
    assert streams[0].aggregator().receive(streams[1].party(0).feed([1] * 10))


def test_one_party_that_tells_of_two_epochs_far_apart_makes_no_work_in_between(monkeypatch):
    """Nothing was told in between, where a loop over 2^24 epochs would stop all estimates for a minute."""
    far = 2**16
    stream = Stream("r", dc.Budget(1e6), 4, columns=1)
    aggregator = stream.aggregator()
    for number, start in ((0, far + 1), (1, far + 1), (7, 0), (7, far)):
        aggregator.receive(stream.party(number, start=start, source=seeded_source(1)).feed([1]))
    halves, looked = Block.halves.fget, []
    monkeypatch.setattr(Block, "halves", property(lambda block: looked.append(block) or halves(block)))
    assert aggregator.estimate([1], far + 2).values == pytest.approx(4, abs=0.1)
    assert len(looked) < 4 * stream.levels


def test_one_party_errs_less_without_samples():
    """At the end of an epoch the blocks have the whole budget, in place of half of it: half the noise."""
    with_samples, without = (
        Stream("r", dc.Budget(1.0), 10, epoch_steps=10, horizon=1000, sample_share=share) for share in (0.5, 0.0)
    )
    assert without.scale * 2 == with_samples.scale


# ---- a length that nobody knows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("b", [1, 3])
def test_a_stream_of_any_length_is_counted_at_every_epoch(b):
    stream = Stream("long", dc.Budget(1e6), 4, epoch_steps=b, columns=2**12, sample_share=0)
    column = np.random.default_rng(2).integers(0, 4, 70 * b)
    party, aggregator = stream.party(0), stream.aggregator()
    late, start = stream.party(1, start=11 * b), 11 * b
    for first in range(0, len(column), 7):
        aggregator.receive_many(m for m in [party.feed(column[first : first + 7])] if m)
        party = stream.restore_party(party.to_bytes())
        if first > start:
            aggregator.receive_many(m for m in [late.feed(column[late.time : first])] if m)
    assert stream.restore(aggregator.to_bytes()).time == aggregator.time
    for epoch in range(1, late.time // b):
        time = epoch * b
        truth = np.bincount(column[:time], minlength=4) + np.bincount(column[start:time], minlength=4)
        found = aggregator.estimate(range(4), time)
        assert found.values.tolist() == truth.tolist()
        assert found.shortfall == 0


def test_the_noise_of_a_phase_is_that_of_its_levels():
    stream = Stream("r", dc.Budget(1.0), 4, epoch_steps=1, columns=4)
    known = {epoch: Stream("r", dc.Budget(1.0), 4, epoch_steps=1, horizon=length).scale
             for epoch, length in ((0, 2), (3, 2), (4, 4), (9, 8), (31, 16), (32, 32))}  # fmt: skip
    for epoch, scale in known.items():
        assert stream.shape.scales[stream.shape.levels(epoch) - 1] == scale
    assert stream.horizon is None
    assert stream.window is None
    with pytest.raises(ParameterError, match="ends with step"):
        stream.party(0, start=stream.last_step).feed([1])
    assert stream.last_step >= 2**23
    with pytest.raises(ParameterError):
        Stream("r", dc.Budget(1.0), 4, horizon=5, window=5)


# ---- packets and states ----------------------------------------------------------------------------------------------


def test_packets_that_no_party_sends(columns):
    stream = exact(epoch_steps=2, columns=16)
    aggregator = stream.aggregator()
    message = stream.party(0).feed(columns[0])
    packet = stream.open(message)[1]

    def refused(reason, **changes):
        payload = write_packet(Packet(**{**packet.__dict__, **changes}), stream.shape)
        with pytest.raises(MessageError) as caught:
            aggregator.receive(stream._pack(Message(0, 0, payload)))
        assert caught.value.reason == reason

    for block, cells in packet.blocks.items():
        far = cells.copy()
        far[-1] = stream.shape.bound(block) + 1  # of the last track
        refused("range", blocks={**packet.blocks, block: far})
    first = next(iter(packet.blocks))
    payload = write_packet(Packet(**{**packet.__dict__, "blocks": {first: packet.blocks[first][:5]}}), stream.shape)
    with pytest.raises(MessageError):
        aggregator.receive(stream._pack(Message(0, 0, payload)))
    for other in (exact(round_id="other"), exact(branching=5), Stream("levels", dc.Budget(1e6), SIZE, horizon=STEPS)):
        with pytest.raises(MessageError):
            aggregator.receive(other.party(0).feed([1]))
    silent = exact(epoch_steps=2, columns=16, sample_share=0)
    with pytest.raises(MessageError, match="nothing is sampled"):
        silent.aggregator().receive(silent._pack(Message(0, 0, write_packet(packet, stream.shape))))
    assert aggregator.parties == 0
    assert aggregator.receive(message)
    with pytest.raises(MessageError) as caught:
        aggregator.receive(stream.party(0).feed(columns[1]))
    assert caught.value.reason == "duplicate"


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_packets_that_something_happened_to(columns, share):
    """400 each, most with a right checksum: taken, or refused with nothing changed. Deterministic."""
    stream = HierarchicalStream("r", dc.Budget(2.0), SIZE, epoch_steps=3, columns=4, branching=4, sample_share=share)
    good = stream.party(0, source=seeded_source(1)).feed(columns[0])
    payload, chance = stream._unpack(good).payload, np.random.default_rng(3)
    refused = 0
    for _ in range(400):
        body = bytearray(payload)
        for _ in range(chance.integers(1, 4)):
            body[chance.integers(min(len(body), 12 if chance.random() < 0.5 else 10**6))] = chance.integers(256)
        if chance.random() < 0.2:
            del body[chance.integers(len(body)) :]
        aggregator = stream.aggregator()
        try:
            aggregator.receive(stream._pack(Message(0, 0, bytes(body))))
        except MessageError:
            refused += 1
            assert (aggregator.parties, aggregator.bytes_received) == (0, 0)
        else:
            aggregator.at().interval_counts(0, [0])
    assert 50 < refused < 400


def test_a_moment_whose_steps_were_forgotten_does_not_count_the_rest(columns):
    stream = exact(window=5)
    aggregator = stream.aggregator()
    aggregator.receive(stream.party(0, source=seeded_source(1)).feed(columns[0]))
    moment = aggregator.at()
    aggregator.advance(STEPS + 2)
    with pytest.raises(ParameterError, match="no longer kept"):
        moment.range_count(0, SIZE - 1)


def test_states_and_descriptions_go_on(columns):
    stream = exact(epoch_steps=2, window=9)
    again = protocol_from_dict(stream.to_dict())
    assert again == stream
    party = stream.party(0, source=seeded_source(1))
    aggregator = stream.aggregator(expected=[5])
    aggregator.receive(party.feed(columns[0, :7]))
    party, aggregator = again.restore_party(party.to_bytes()), again.restore(aggregator.to_bytes())
    aggregator.receive(party.feed(columns[0, 7:]))
    now = aggregator.at(STEPS)
    assert now.estimate([0]).absent == (5,)
    assert abs(now.range_count(0, SIZE - 1).value - 9) < 6 * now.total_deviation  # one step is outside whole epochs
    assert "steps 4 to 12" in repr(now)


@pytest.mark.parametrize("changes", [
    {"universe": "integers"}, {"branching": 1}, {"branching": 2**20}, {"window": 5}, {"columns": 2**22},
])  # fmt: skip
def test_bad_parameters(changes):
    with pytest.raises(ParameterError):
        HierarchicalStream(**{"round_id": "r", "budget": dc.Budget(1.0), "universe": 10**6, "horizon": 40, **changes})


def test_bad_questions(columns):
    now = heard(exact(), columns).at(5)
    for call in (
        lambda: now.heavy_hitters(0),
        lambda: now.quantile(2),
        lambda: now.range_count(5, 3),
        lambda: now.interval_counts(3, [0]),
    ):
        with pytest.raises(ParameterError):
            call()


@pytest.mark.parametrize(("low", "high"), [(0, 63), (1, 62), (1, 63), (5, 60), (7, 7)])
def test_a_range_over_time_is_the_sum_of_its_own_intervals(low, high):
    """Never the total less the rest, as in a round: nobody says how many there are, and the total has noise, too."""
    stream = dc.multiparty.HierarchicalStream("r", dc.Budget(2.0), 64, epoch_steps=1, horizon=8, branching=4)
    aggregator = stream.aggregator()
    for number in range(4):
        aggregator.receive(stream.party(number, source=seeded_source(number)).feed([3, 9, 40, 63, 1, 2]))
    moment = aggregator.at()
    inside = stream.intervals.cover(low, high + 1)
    parts = [moment.interval_counts(level, nodes) for level, nodes in enumerate(inside) if len(nodes)]
    found = moment.range_count(low, high)
    assert found.value == pytest.approx(sum(float(counts.values.sum()) for counts in parts), abs=1e-6)
    assert found.lower < found.value < found.upper
