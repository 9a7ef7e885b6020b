"""Local protocols choose their sizes by what is public: the least variance, and what a report may tell."""

import math
from fractions import Fraction

import pytest

import discreet as dc
from discreet.multiparty import HadamardResponse, LocalHashing


def variance(g, epsilon):
    """Of a report about another item than its own, with g buckets."""
    p = math.exp(epsilon) / (math.exp(epsilon) + g - 1)
    return (1 / g) * (1 - 1 / g) / (p - 1 / g) ** 2


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 1.3, 2.0, 2.6, 3.1, 4.2])
def test_there_are_as_many_buckets_as_is_best(epsilon):
    protocol = LocalHashing("r", dc.Budget(epsilon), 1000)
    g = protocol.buckets
    assert all(variance(g, epsilon) <= variance(other, epsilon) * (1 + 1e-12) for other in range(2, 200))
    keep = float(protocol.keep)
    assert keep == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + g - 1), rel=1e-12)
    # never more than epsilon: the chance of the own bucket over that of another
    assert Fraction(protocol.keep) / ((1 - Fraction(protocol.keep)) / (g - 1)) <= Fraction(math.exp(epsilon)) * (
        1 + Fraction(1, 10**12)
    )


@pytest.mark.parametrize("kind", [LocalHashing, HadamardResponse])
def test_estimates_are_unbiased_and_their_deviation_is_stated(kind):
    """300 answers of 0 and 700 of 1: the mean of several rounds is near, and errors are as large as is said."""
    off = []
    for number in range(6):
        protocol = kind(f"round {number}", dc.Budget(2.0), 64)
        aggregator = protocol.aggregator()
        aggregator.receive_many(protocol.party(n).encode([0 if n < 300 else 1]) for n in range(1000))
        found = aggregator.estimate([0, 1, 7])
        off += [
            (value - true) / sigma
            for value, true, sigma in zip(found.values, (300, 700, 0), found.deviations, strict=True)
        ]
    mean = sum(off) / len(off)
    spread = math.sqrt(sum(each**2 for each in off) / len(off))
    assert abs(mean) < 4 / math.sqrt(len(off))
    assert 0.6 < spread < 1.5
