"""Shuffled rounds: reports without their senders, in whole batches, and nothing that tells in which order they came."""

from collections import Counter

import numpy as np
import pytest

import discreet as dc
from discreet.errors import CorruptStateError, DataError, MessageError, ParameterError
from discreet.multiparty import HadamardResponse, Hierarchy, LocalHashing, LocalSketch, protocol_from_dict
from discreet.multiparty.local_protocol import Reports, _Box

BUDGET = dc.Budget(4.0)
KINDS = pytest.mark.parametrize("kind", [HadamardResponse, LocalHashing, LocalSketch])


@KINDS
def test_a_report_has_no_number_of_its_sender(kind):
    protocol = kind("r", BUDGET, 10, shuffled=50)
    with pytest.raises(ParameterError, match="random number"):
        protocol.party(3)
    with pytest.raises(ParameterError, match="one report"):
        protocol.party().encode([1, 2])
    numbers = [protocol.open(protocol.party().encode([1]))[0].number for _ in range(200)]
    assert len(set(numbers)) == 200  # but for a probability of 2^-47
    assert min(numbers) >= 0
    assert max(numbers) < 2**62
    assert max(numbers) > 2**60  # but for a probability of 4^-200


@KINDS
def test_only_whole_batches_are_shown(kind):
    protocol = kind("r", BUDGET, 10, shuffled=50)
    aggregator, plain = protocol.aggregator(), kind("r", BUDGET, 10, shuffled=50).aggregator()
    messages = [protocol.party().encode([i % 3]) for i in range(120)]
    for i, message in enumerate(messages):
        if i < 50:
            with pytest.raises(DataError, match="before 50 reports"):
                aggregator.estimate([0])
        else:
            assert aggregator.shown == i // 50 * 50
        aggregator.receive(message)
    plain.receive_many(messages[:100])
    np.testing.assert_array_equal(aggregator.estimate(range(10)).values, plain.estimate(range(10)).values)
    assert (aggregator.parties, aggregator.shown, aggregator.total) == (120, 100, 120)
    restored = protocol.restore(aggregator.to_bytes())
    assert (restored.parties, restored.shown) == (120, 100)
    assert restored.receive_many(messages).accepted == 0
    for each in (aggregator, restored):
        assert each.receive_many(protocol.party().encode([1]) for _ in range(30)).accepted == 30
        assert each.shown == 150


@KINDS
def test_a_state_does_not_know_the_order(kind):
    protocol = kind("r", BUDGET, 10, shuffled=50)
    messages = [protocol.party().encode([i % 3]) for i in range(80)]
    first, second = protocol.aggregator(), protocol.aggregator()
    first.receive_many(messages)
    second.receive_many([*messages[49::-1], *messages[:49:-1]])  # the same batches, each backwards
    assert first.to_bytes() == second.to_bytes()


def test_the_memory_does_not_know_the_order():
    """Where the first of 40 reports lies, 400 times: 10 times in each place, and 40 with a probability of 2e-11."""
    protocol = HadamardResponse("r", BUDGET, 10, shuffled=1000)
    messages = [protocol.party().encode([1]) for _ in range(40)]
    first = protocol.open(messages[0])[0].number
    for singly in (True, False):
        places = np.zeros(40)
        for _ in range(400):
            aggregator = protocol.aggregator(max_reports=None)
            if singly:
                aggregator.receive_many(messages)
            else:
                aggregator.receive_many([protocol.bundle(messages[:20]), protocol.bundle(messages[20:])])
            places[aggregator._box.reports().numbers.tolist().index(first)] += 1
        assert places.max() < 40


@KINDS
def test_shuffled_rounds_are_merged_batch_by_batch(kind):
    protocol = kind("r", BUDGET, 10, shuffled=20)
    messages = [protocol.party().encode([i % 3]) for i in range(70)]
    one, two = protocol.aggregator(), protocol.aggregator()
    one.receive_many(messages[:35])  # 20 shown, 15 wait
    two.receive_many(messages[30:])  # 40 shown, 5 of them wait in the other one, and none waits here
    assert one.merge(two) == 5
    assert one.parties == one.total == 70
    assert one.shown == 60  # all batches, and in them those that waited: 10 still do
    assert one.receive_many(messages).accepted == 0


def sent(protocol, many):
    """Numbered messages, so that sets of reports can be compared."""
    return [protocol.party().encode([i % 3]) for i in range(many)]


def set_shown(protocol, aggregator, messages):
    """Which of the messages an aggregator shows."""
    numbers = [protocol.open(message)[0].number for message in messages]
    shown = {int(number) for _, reports in aggregator._to_show() for number in reports.numbers}
    assert len(shown) == aggregator.shown
    return frozenset(i for i, number in enumerate(numbers) if number in shown)


def smallest_difference(shown):
    """Of all that can be told apart by comparing sets: the reports that are in the same ones are seen together."""
    kinds = Counter(tuple(report in each for each in shown) for report in frozenset().union(*shown))
    return min(kinds.values())


@KINDS
def test_two_that_share_all_but_one_report_do_not_show_it(kind):
    protocol = kind("r", BUDGET, 10, shuffled=50)
    messages = sent(protocol, 151)
    one, two = protocol.aggregator(), protocol.aggregator()
    one.receive_many(messages[:50])
    two.receive_many(messages[1:51])
    before = one.estimate(range(10)).values
    assert one.merge(two) == 49
    assert (one.parties, one.shown) == (51, 50)
    np.testing.assert_array_equal(one.estimate(range(10)).values, before)
    restored = protocol.restore(one.to_bytes())
    for each in (one, restored):
        assert each.receive_many(messages[:51]).accepted == 0
        each.receive_many(messages[51:100])  # 49 new ones: with the one left over 50, but it is not new
        assert each.shown == 50
        each.receive(messages[100])
        assert set_shown(protocol, each, messages) == frozenset(range(101))


@KINDS
def test_one_report_sent_to_both_lets_nobody_see_another(kind):
    """A liar's report is in a batch of both; the next report must not be what is new in the next answer."""
    protocol = kind("r", BUDGET, 10, shuffled=20)
    messages = sent(protocol, 100)
    one, two = protocol.aggregator(), protocol.aggregator()
    one.receive_many(messages[:20])
    two.receive_many([messages[0], *messages[20:39]])
    views = [set_shown(protocol, each, messages) for each in (one, two)]
    one.merge(two)
    for message in messages[39:]:
        one.receive(message)
        views.append(set_shown(protocol, one, messages))
    assert smallest_difference([view - {0} for view in views]) >= 19  # of a batch with the liar
    assert views[-1] == frozenset(range(99))  # 39, then three batches of 20; the last report waits


@KINDS
def test_what_waits_and_was_shown_elsewhere_is_not_new(kind):
    protocol = kind("r", BUDGET, 10, shuffled=20)
    messages = sent(protocol, 60)
    one, two = protocol.aggregator(), protocol.aggregator()
    one.receive_many([*messages[:20], *messages[21:40]])  # 19 wait
    two.receive_many([messages[0], *messages[21:40]])  # and are shown here with one that is shown there
    views = [set_shown(protocol, each, messages) for each in (one, two)]
    one.merge(two)
    one.receive(messages[40])
    views.append(set_shown(protocol, one, messages))
    assert views[-1] == views[0]
    one.receive_many(messages[41:])
    assert set_shown(protocol, one, messages) == frozenset({*range(20), *range(21, 60)})


@KINDS
def test_what_waits_is_moved_and_shown_once(kind):
    protocol = kind("r", BUDGET, 10, shuffled=20)
    messages = sent(protocol, 80)
    one, two = protocol.aggregator(), protocol.aggregator()
    two.receive_many(messages[:30])  # 20 shown, 10 wait
    assert one.merge(two) == 0
    assert (one.shown, two.shown) == (20, 20)
    one.receive_many(messages[30:40])
    assert two.receive_many([*messages[:30], *messages[40:60]]).accepted == 20
    views = [set_shown(protocol, each, messages) for each in (one, two)]
    assert views == [frozenset(range(40)), frozenset({*range(20), *range(40, 60)})]
    assert one.merge(two) == 20
    assert set_shown(protocol, one, messages) == frozenset(range(60))
    assert one.merge(two) == 40


def test_any_merges_show_whole_batches():
    """Aggregators that hear, are stored, merged both ways and asked at any time: no two answers differ by less.

    Two of the reports were sent to two aggregators; they may be seen, and of the others a batch may lack them.
    """
    protocol, rng, size, many = HadamardResponse("r", BUDGET, 10, shuffled=12), np.random.default_rng(5), 12, 120
    messages = sent(protocol, many)
    place = {protocol.open(message)[0].number: i for i, message in enumerate(messages)}
    for _ in range(25):
        twice = rng.choice(many, 2, replace=False).tolist()
        aggregators, views = [protocol.aggregator() for _ in range(3)], set()
        for report in rng.permutation([*range(many), *twice]).tolist():
            aggregators[rng.integers(3)].receive_many([messages[report]])
            if rng.random() < 0.05:
                one, two = rng.choice(3, 2, replace=False)
                aggregators[one].merge(aggregators[two])
            if rng.random() < 0.05:
                which = rng.integers(3)
                aggregators[which] = protocol.restore(aggregators[which].to_bytes())
            shown = [each._to_show() for each in aggregators if each.shown]
            views |= {frozenset(place[n] for _, reports in heard for n in reports.numbers.tolist()) for heard in shown}
        assert len(views) >= 5
        assert min(map(len, views)) >= size
        assert smallest_difference([view - set(twice) for view in views]) >= size - 2


@KINDS
def test_states_that_are_none_of_a_shuffled_round(kind):
    protocol, plain = kind("r", BUDGET, 10, shuffled=20), kind("r", BUDGET, 10)
    small = kind("r", BUDGET, 10, shuffled=10)
    aggregator, other = protocol.aggregator(), plain.aggregator()
    aggregator.receive_many(sent(protocol, 50))
    other.receive_many(sent(plain, 20))
    for state in (other.to_bytes(), small.aggregator().to_bytes(), b""):
        with pytest.raises(CorruptStateError):
            protocol.restore(state)
    aggregator._batches[0] = type(aggregator._batches[0])(
        aggregator._batches[0].numbers[:7], aggregator._batches[0].values[:7]
    )
    with pytest.raises(CorruptStateError, match="too small"):
        protocol.restore(aggregator.to_bytes())


def test_both_promises_are_stated():
    protocol = LocalHashing("r", BUDGET, 10, shuffled=1_000_000)
    budget = protocol.shuffled_budget()
    assert budget == dc.privacy.shuffled(4.0, 1_000_000, 1e-8, choices=protocol.buckets)
    assert budget.epsilon == pytest.approx(0.0316, abs=0.0001)
    assert protocol.guarantee.epsilon == 4.0
    text = " ".join(protocol.guarantee.assumptions)
    assert "epsilon 0.0316" in text
    assert "forgets who sent it" in text
    with pytest.raises(ParameterError, match="not shuffled"):
        LocalHashing("r", BUDGET, 10).shuffled_budget()


def test_what_is_no_randomised_response_has_the_bound_of_any_report():
    worth = {
        kind: kind("r", BUDGET, 10, shuffled=10_000).shuffled_budget().epsilon
        for kind in (HadamardResponse, LocalHashing, LocalSketch)
    }
    assert worth[LocalSketch] == dc.privacy.shuffled(4.0, 10_000, 1e-8).epsilon
    assert worth[HadamardResponse] == dc.privacy.shuffled(4.0, 10_000, 1e-8, choices=2).epsilon
    assert worth[LocalHashing] < worth[HadamardResponse] < worth[LocalSketch]


@KINDS
def test_the_description_says_so_and_others_stay_as_they_were(kind):
    protocol = kind("r", BUDGET, 10, shuffled=50)
    assert protocol_from_dict(protocol.to_dict()) == protocol
    assert protocol.to_dict()["parameters"]["shuffled"] == 50
    plain = kind("r", BUDGET, 10)
    assert "shuffled" not in plain.to_dict()["parameters"]
    with pytest.raises(MessageError, match="parameters"):
        protocol.aggregator().receive(plain.party().encode([1]))
    for wrong in (1, 0, True, "5"):
        with pytest.raises(ParameterError, match="shuffled"):
            kind("r", BUDGET, 10, shuffled=wrong)
    with pytest.raises(ParameterError, match="levels"):
        Hierarchy("r", BUDGET, 10, kind.__name__, options={"shuffled": 50})


def test_the_figure_that_is_stated_is_no_less_than_what_holds():
    protocol = HadamardResponse("r", BUDGET, 10, shuffled=10_000)  # 0.51449
    assert "at most epsilon 0.515 (delta 1e-08)" in protocol.guarantee.assumptions[-1]


def test_a_late_report_is_anywhere_among_the_others():
    """Where the last of 200 is tells nothing: in 40 trials it is last at most 8 times, except with probability
    1e-13."""
    last = 0
    for _ in range(40):
        box = _Box(mixed=True)
        for numbers in (np.arange(199, dtype=np.uint64), np.array([199], np.uint64)):
            box.add(Reports(numbers, numbers))
        reports = box.reports()
        assert sorted(reports.numbers.tolist()) == list(range(200))
        assert (reports.numbers == reports.values).all()
        last += int(reports.numbers[-1] == 199)
    assert last <= 8
