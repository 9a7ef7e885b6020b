"""Any rational scale in range is taken exactly as it is; draws stay where the law puts them."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.noise import laws, seeded_source

floats = st.floats(min_value=5e-324, max_value=2.0**50)
epsilons = st.floats(min_value=2.0**-40, max_value=1e308)


@given(floats, st.integers(0, 2**64 - 1))
@settings(max_examples=150, deadline=None)
def test_draws_lie_within_seventy_scales(scale, seed):
    """P[|Z| > 70 scale] < 2 exp(-70): 1e-29 a draw."""
    source = seeded_source(seed)
    for draws in (source.discrete_laplace(scale, 50), source.geometric(scale, 50), source.discrete_gaussian(scale, 50)):
        assert np.abs(draws).max() <= 70 * scale + 1


@given(epsilons, st.integers(1, 2**10))
@settings(max_examples=150, deadline=None)
def test_the_noise_of_any_float_epsilon_can_be_drawn(epsilon, sensitivity):
    scale = sensitivity / Fraction(epsilon)
    assert seeded_source(1).discrete_laplace(scale, 5).shape == (5,)


@given(st.fractions(min_value=Fraction(1, 50), max_value=10**6))
@settings(max_examples=100, deadline=None)
def test_tables_of_fewer_bits_are_those_of_more_bits_cut_off(scale):
    """Each further digit refines the same law: the bounds at 20 bits are those at 63 bits, to one unit."""
    for make in (laws.laplace_law, laws.geometric_law, laws.gaussian_law):
        law = make(scale)
        coarse, fine = law.table(20), law.table(63)
        assert len(coarse) <= len(fine)
        assert all(abs(c - (f >> 43)) <= 1 for c, f in zip(coarse, fine, strict=False))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40), st.data())
@settings(max_examples=150, deadline=None)
def test_selection_returns_different_items_and_all_when_asked(scores, data):
    k = data.draw(st.integers(0, len(scores)))
    epsilon = data.draw(st.floats(min_value=5e-324, max_value=1e308))
    chosen = seeded_source(2).exponential_mechanism(scores, epsilon, k=k).tolist()
    assert len(set(chosen)) == len(chosen) == k
    assert set(chosen) <= set(range(len(scores)))
