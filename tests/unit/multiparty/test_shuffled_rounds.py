"""Shuffled rounds: reports without their senders, in whole batches, and nothing that tells in which order they came."""

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DataError, MessageError, ParameterError
from discreet.multiparty import HadamardResponse, Hierarchy, LocalHashing, LocalSketch, protocol_from_dict

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
    two.receive_many(messages[30:])  # 40 shown, of which 5 are known, and none waits
    assert one.merge(two) == 5
    assert one.parties == one.total == 70
    assert one.shown == 55
    assert one.receive_many(messages).accepted == 0


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
