"""The inner-product counter: phases, accuracy, the law of an answer, states, and what is refused."""

import math
import re

import numpy as np
import pytest

import discreet as dc
from discreet.noise import seeded_source
from discreet.published import InnerProductCounter
from discreet.storage import open_state, seal_state

V = np.array([1, 0, 1, 1, 0, 0])


def voted(seed=1, epsilon=1.0, voters=400):
    counter = InnerProductCounter(6, budget=dc.Budget(epsilon), source=seeded_source(seed))
    positions = np.repeat(np.arange(6), voters)
    counter.vote(positions, V[positions])
    return counter


def test_the_vector_is_the_majority_and_the_count_is_covered():
    """200 seeded runs at 95%."""
    rng = np.random.default_rng(3)
    covered, values = 0, []
    vectors = rng.integers(0, 2, (500, 6))
    truth = int((vectors @ V % 2).sum())
    for seed in range(200):
        counter = voted(seed)
        assert (counter.vector == V).all()
        counter.update(vectors[:300])
        counter.update(vectors[300:])
        estimate = counter.release()
        covered += estimate.lower <= truth <= estimate.upper
        values.append(estimate.unbiased)
    assert covered >= 190
    assert abs(np.mean(values) - truth) < 5 * np.std(values) / math.sqrt(200)


def test_an_answer_has_the_law_of_randomised_response():
    counter = InnerProductCounter(1, budget=dc.Budget(1.0), source=seeded_source(2))
    counter.vote([0] * 40_000, [1] * 40_000)
    expected = math.e / (1 + math.e)
    assert abs(counter._ones[0] / 40_000 - expected) < 0.015  # six standard deviations


def test_the_state_is_counts_and_can_be_continued():
    counter = voted()
    counter.update(np.eye(6, dtype=int))
    counter.announce_intrusion()
    copy = InnerProductCounter.from_bytes(counter.to_bytes())
    assert copy.to_bytes() == counter.to_bytes()
    assert copy.release().unbiased == counter.release().unbiased
    assert copy.release().guarantee.seeded
    copy.update(np.ones((3, 6), dtype=int))
    with pytest.raises(dc.ParameterError, match="no more votes"):
        copy.vote([0], [1])


def test_the_guarantee():
    guarantee = InnerProductCounter(4, budget=dc.Budget(0.5)).guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.unit) == (0.5, 0.0, dc.Replace())
    assert "every moment" in guarantee.assumptions[0]
    assert any("position" in assumption for assumption in guarantee.assumptions)  # the state shows votes by position


def test_no_copy_of_the_flips_is_kept(monkeypatch):
    """With them an answer would be the bit itself."""
    counter = InnerProductCounter(2, budget=dc.Budget(1.0), source=seeded_source(1))
    drawn, original = [], type(counter._source).bernoulli
    monkeypatch.setattr(
        type(counter._source),
        "bernoulli",
        lambda *arguments: drawn.append(original(*arguments)) or drawn[-1],
    )
    counter.vote([0] * 100, [1] * 100)
    counter.update(np.ones((100, 2), int))
    assert len(drawn) == 2
    assert not any(flips.any() for flips in drawn)


def test_the_callers_array_is_left_alone():
    vectors = np.ones((4, 6), dtype=np.int64)
    voted().update(vectors)
    assert vectors.all()


@pytest.mark.parametrize(
    ("positions", "bits"), [([0, 6], [1, 1]), ([-1], [1]), ([0], [2]), ([0, 1], [1]), ([0.5], [1]), ([[0]], [[1]])]
)
def test_votes_are_checked(positions, bits):
    counter = InnerProductCounter(6, budget=dc.Budget(1.0))
    with pytest.raises(dc.DataError):
        counter.vote(positions, bits)
    assert counter._votes.sum() == 0


@pytest.mark.parametrize("vectors", [[[1, 0]], [1, 0, 1, 1, 0, 0], [[2] * 6], [[0.5] * 6], [[1], [1, 0]], 1, "01"])
def test_vectors_are_checked(vectors):
    counter = InnerProductCounter(6, budget=dc.Budget(1.0))
    with pytest.raises(dc.DataError):
        counter.update(vectors)


def test_parameters_and_states_are_checked():
    with pytest.raises(dc.ParameterError):
        InnerProductCounter(0, budget=dc.Budget(1.0))
    with pytest.raises(dc.ParameterError):
        InnerProductCounter(3, budget=dc.Budget.zcdp(1.0))
    data = voted().to_bytes()
    _, payload = open_state(data, 127, 1)
    for bad in (
        b"",
        b"{}",
        payload[:-1],
        payload.replace(b'"count": 0', b'"count": 9'),
        payload.replace(b"[", b"[7,", 1),
        re.sub(rb'"ones": \[\d+', b'"ones": [-1', payload),
    ):
        assert bad != payload
        with pytest.raises(dc.CorruptStateError):
            InnerProductCounter.from_bytes(seal_state(127, 1, bad))
    with pytest.raises(dc.CorruptStateError):
        InnerProductCounter.from_bytes(data[:-3])


def test_raw_vectors_and_votes_are_wiped(monkeypatch):
    """What was read of the participants is zeroed when an update ends, also one that is refused."""
    from discreet.published import inner_product

    read, handed = inner_product._bits_of, []

    def kept(data):
        handed.append(read(data))
        return handed[-1]

    monkeypatch.setattr(inner_product, "_bits_of", kept)
    counter = voted()
    given = np.ones((5, 6), int)
    counter.update(given)
    with pytest.raises(dc.DataError):
        counter.update(np.ones((5, 7), int))
    assert len(handed) >= 2
    assert not any(np.any(bits) for bits in handed)
    assert given.all()  # the caller's own array stays


@pytest.mark.parametrize(
    "vectors", [np.ones((5, 6), np.int8), np.ones((5, 6), bool), [[1] * 6] * 5, [[1, 2, 1, 1, 1, 1]]]
)
def test_the_first_copy_of_vectors_is_wiped_too(monkeypatch, vectors):
    """Whatever kind of numbers they came as, and whether they are taken or refused."""
    from discreet.published import inner_product

    read, handed = inner_product.read, []

    def kept(*given):
        handed.append(read(*given))
        return handed[-1]

    counter = voted()
    monkeypatch.setattr(inner_product, "read", kept)
    if isinstance(vectors, list) and len(vectors) == 1:
        with pytest.raises(dc.DataError):
            counter.update(vectors)
    else:
        counter.update(vectors)
    assert len(handed) == 1
    assert not np.any(handed[0])
    assert np.all(vectors)  # the caller's own stay
