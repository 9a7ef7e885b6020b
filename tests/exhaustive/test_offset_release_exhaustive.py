"""The offset release over every neighbouring pair of states in a box: the claims of docs/privacy/offset-release.md.

Output laws are written out in double precision with noise cut where less than 1e-15 is left, so "equal" below means
to 1e-12. The sabotaged releases run through the same check and must be caught.
"""

import itertools
import math
from functools import cache, lru_cache

import numpy as np
import pytest
from tests.reference.misra_gries import Dummy, misra_gries, paper_order
from tests.reference.neighbours import (
    Pair,
    differing,
    directions,
    kind,
    laplace,
    neighbouring_states,
    signature,
    swapped,
)

from discreet.privacy.calibration.offset_cut import offset_delta, offset_threshold
from discreet.privacy.calibration.tails import any_of_log_delta, log_sum_tail
from discreet.published.private_misra_gries import pmg_threshold
from discreet.published.textbook_misra_gries import textbook_threshold


def dummies_first(key):
    return (0, key.number) if isinstance(key, Dummy) else (1, key)


def backwards(key):
    return (1, -key.number) if isinstance(key, Dummy) else (0, -key)


BOXES = {1: (1, 3, 4), 2: (2, 4, 3), 3: (3, 5, 2)}


@lru_cache(maxsize=16)
def pairs_of(k, order=paper_order):
    _, universe, largest = BOXES[k]
    return frozenset(signature(*pair) for pair in neighbouring_states(k, universe, largest, order))


@lru_cache(maxsize=4096)
def exact_delta(pair, epsilon, t, noise_factor=1.0, strict=False):
    """The hockey-stick divergence at e^epsilon of the release's output laws, from the definition.

    Given a0 the keys are independent. `differing` may have left out keys: they have the same law in both.
    """
    keys, decrements = pair
    q = math.exp(-epsilon * noise_factor)
    reach = math.ceil(36 / (epsilon * noise_factor))
    z, p = laplace(q, reach)
    total = 0.0
    for a0 in range(-reach - abs(decrements), reach + abs(decrements) + 1):
        base = [q ** abs(a0 - d) * (1 - q) / (1 + q) for d in (decrements, 0)]
        joint = Pair(np.array([base[0]]), np.array([base[1]]))
        for c, c2 in keys:
            laws = []
            for count, alpha in ((c, decrements), (c2, 0)):
                if count is None:
                    laws.append({"hidden": 1.0})
                    continue
                v = count + alpha + z
                shown = v - a0 > 1 + t if strict else v - a0 >= 1 + t
                laws.append({"hidden": p[~shown].sum(), **dict(zip(v[shown].tolist(), p[shown], strict=True))})
            joint = joint.times(Pair.of(*laws))
        total += joint.divergence(math.exp(epsilon))
    return total


@cache
def worst(k, epsilon, t, order=paper_order, **sabotage):
    pairs = {differing(pair) for pair in pairs_of(k, order)}
    return max(exact_delta(pair, epsilon, t, **sabotage) for pair in directions(pairs))


@pytest.mark.parametrize("order", [paper_order, dummies_first, backwards])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_every_neighbouring_pair_is_in_one_of_six_states(k, order):
    """LT Lemma 8, for three orders of the keys, and that S5 and S6 need two counters and no more."""
    kinds = {kind(pair) for pair in pairs_of(k, order)}
    assert kinds == ({"S1", "S2", "S3", "S4"} if k == 1 else {"S1", "S2", "S3", "S4", "S5", "S6"})


def test_a_short_stream_that_reaches_s6_with_two_counters():
    """y < x; removing the second x from (y, x, z, x, y, z, w) leaves no key in common."""
    y, x, z, w = 0, 1, 2, 3
    stream = [y, x, z, x, y, z, w]
    pair = signature(misra_gries(stream, 2), misra_gries(stream[:3] + stream[4:], 2))
    assert kind(pair) == "S6"


@pytest.mark.parametrize("k", [2, 3])
def test_s6_needs_two_items_more_than_counters(k):
    """Each sketch has k keys and two that the other lacks: k + 2 in all, none of them a dummy."""
    for items in (k + 1, k + 2):
        reached = {kind(signature(*pair)) for pair in neighbouring_states(k, items, 2, paper_order)}
        assert ("S6" in reached) == (items == k + 2)
    # k - 2 counters that never fall to 0 leave a sketch of two.
    frequent, stream = [10 + i for i in range(k - 2)] * 9, [0, 1, 2, 1, 0, 2, 3]
    pair = [misra_gries([*frequent, *part], k) for part in (stream, stream[:3] + stream[4:])]
    assert kind(signature(*pair)) == "S6"


def test_counting_elements_gives_the_decrements():
    """sum of the counters = n - (k+1) decrements, which ties alpha to the counters in every state."""
    for stream in itertools.product(range(4), repeat=6):
        sketch = misra_gries(stream, 2)
        assert sum(count for _, count in sketch.counters) == len(stream) - 3 * sketch.decrements


@pytest.mark.parametrize("epsilon", [0.7, 1.5])
@pytest.mark.parametrize("t", [0, 1, 3])
def test_delta_by_kind_and_direction(epsilon, t):
    """Each line of the table in the document: what S1 to S6 cost, forwards and backwards."""
    one, zero = math.exp(log_sum_tail(epsilon, t)), math.exp(log_sum_tail(epsilon, t + 1))
    both = offset_delta(epsilon, t)
    expected = {
        "S1": (0, 0),
        "S2": (zero, one),
        "S3": (0, 0),
        "S4": (one, zero),
        "S5": (zero, zero),
        "S6": (both, None),
    }
    for pair in pairs_of(2):
        name = kind(pair)
        forward, backward = (exact_delta(differing(p), epsilon, t) for p in (pair, swapped(pair)))
        assert forward == pytest.approx(expected[name][0], rel=1e-11, abs=1e-13)
        if expected[name][1] is not None:
            assert backward == pytest.approx(expected[name][1], rel=1e-11, abs=1e-13)
        else:
            assert zero < backward < both


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("order", [paper_order, backwards])
def test_the_formula_is_the_worst_pair(k, order):
    for epsilon, t in ((1.0, 2), (2.0, 1)):
        assert worst(k, epsilon, t, order) == pytest.approx(offset_delta(epsilon, t), rel=1e-11)


def test_one_counter_costs_less_than_the_formula():
    assert worst(1, 1.0, 2) == pytest.approx(math.exp(log_sum_tail(1.0, 2)), rel=1e-11)
    assert worst(1, 1.0, 2) < offset_delta(1.0, 2)


@pytest.mark.parametrize("k", [2, 3])
def test_the_calibrated_release_passes_and_sabotaged_ones_are_caught(k):
    epsilon, delta = 1.0, 0.02
    t = offset_threshold(epsilon, delta)
    assert worst(k, epsilon, t) <= delta
    # the cut one lower
    assert worst(k, epsilon, t - 1) > delta
    # half the noise
    assert worst(k, epsilon, t, noise_factor=2.0) > delta
    # a cut calibrated for ">" on a release that compares with ">="
    for_strict = next(s for s in itertools.count() if worst(k, epsilon, s, strict=True) <= delta)
    assert for_strict == t - 1
    assert worst(k, epsilon, for_strict) > delta


def test_without_any_reduction():
    """All outputs of k = 2 listed one by one, neither keys nor outcomes merged."""
    q, reach, t = 1 / 8, 9, 1
    z, p = laplace(q, reach)

    def law(side, keys, decrements):
        alpha = decrements if side == 0 else 0
        stored = [(name, pair[side]) for name, pair in enumerate(keys) if pair[side] is not None]
        outputs = {}
        for noise in itertools.product(range(len(z)), repeat=len(stored) + 1):
            a0 = alpha + z[noise[0]]
            shown = tuple(
                (name, int(count + alpha + z[i]))
                for (name, count), i in zip(stored, noise[1:], strict=True)
                if count + alpha + z[i] - a0 >= 1 + t
            )
            outputs[int(a0), shown] = outputs.get((int(a0), shown), 0.0) + math.prod(p[i] for i in noise)
        return outputs

    largest = 0.0
    seen = {}
    for pair in sorted(pairs_of(2), key=repr):
        if max(count or 0 for key in pair[0] for count in key) <= 1:
            seen.setdefault(kind(pair), pair)
    assert set(seen) >= {"S2", "S4", "S6"}
    for pair in seen.values():
        first, second = (law(side, *pair) for side in (0, 1))
        for a, b in ((first, second), (second, first)):
            divergence = math.fsum(max(0.0, mass - 8 * b.get(output, 0.0)) for output, mass in a.items())
            largest = max(largest, divergence)
    # the noise is cut at 9, which leaves out about 3 * 8^-9
    assert largest == pytest.approx(offset_delta(math.log(8), t), abs=1e-7)


@pytest.mark.parametrize("k", [1, 2])
def test_two_items_of_a_user_stay_below_the_group_bound(k):
    """Noise of scale 2/epsilon, streams that differ in two events anywhere; the bound need not be met exactly."""
    epsilon, t = 2.0, 6
    states = neighbouring_states(k, k + 3, 3, removed=2)
    pairs = {differing(signature(*pair)) for pair in states}
    largest = max(exact_delta(pair, epsilon, t, noise_factor=0.5) for pair in directions(pairs))
    bound = offset_delta(epsilon, t, max_items=2)
    assert 0.3 * bound < largest <= bound
    # the delta of one event with this noise is not enough for two
    assert largest > offset_delta(epsilon / 2, t)


def _hidden_shared_noise(pair, epsilon, threshold):
    """The divergence of Algorithm 2 with geometric noise: the shared noise is summed over, not published."""
    keys, _ = pair
    z, p = laplace(math.exp(-epsilon), math.ceil(34 / epsilon))
    laws = []
    for side in (0, 1):
        total = None
        for eta, weight in zip(z, p, strict=True):
            joint = np.array([weight])
            for key in keys:
                values = np.zeros(0)
                if None in key:
                    # shown keys of one sketch only have probability 0 in the other: all shown values are one outcome
                    hidden = 1.0 if key[side] is None else p[key[side] + eta + z < threshold].sum()
                    values = np.array([hidden, 1.0 - hidden if key[side] is not None else 0.0])
                else:
                    # a window of shown values; beyond it the ratios repeat the last one
                    grid = np.arange(threshold, threshold + 30)
                    inside = math.exp(-epsilon) ** np.abs(grid - key[side] - eta) * p[len(p) // 2]
                    beyond = p[key[side] + eta + z >= threshold + 30].sum()
                    values = np.concatenate([[p[key[side] + eta + z < threshold].sum()], inside, [beyond]])
                joint = np.outer(joint, values).ravel()
            total = joint if total is None else total + joint
        laws.append(total)
    return Pair(*laws).divergence(math.exp(epsilon))


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_algorithm_2_with_geometric_noise_has_the_same_exact_threshold(epsilon):
    delta = 0.02
    threshold = pmg_threshold(epsilon, delta)
    pairs = {pair for pair in pairs_of(2) if max(count or 0 for key in pair[0] for count in key) <= 2}
    worst_of = {
        s: max(_hidden_shared_noise(pair, epsilon, s) for pair in directions(pairs)) for s in (threshold, threshold - 1)
    }
    assert worst_of[threshold] == pytest.approx(offset_delta(epsilon, threshold - 1), rel=1e-9)
    assert worst_of[threshold] <= delta < worst_of[threshold - 1]


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_textbook_sketches_have_their_own_exact_threshold(epsilon):
    """The same states without the keys of counter 0."""
    delta, k = 0.02, 2

    def without_zeros(pair):
        keys = tuple((a or None, b or None) for a, b in pair[0])
        return tuple(key for key in keys if key != (None, None)), pair[1]

    pairs = {without_zeros(pair) for pair in pairs_of(k) if max(count or 0 for key in pair[0] for count in key) <= 2}
    threshold = textbook_threshold(epsilon, delta, k)
    worst_of = {
        s: max(_hidden_shared_noise(pair, epsilon, s) for pair in directions(pairs)) for s in (threshold, threshold - 1)
    }
    assert worst_of[threshold] == pytest.approx(math.exp(any_of_log_delta(epsilon, threshold - 1, k)), rel=1e-9)
    assert worst_of[threshold] <= delta < worst_of[threshold - 1]
