"""Merged sketches of users' sets: neighbours differ by 0 or 1 in every counter, all in one direction, in at most k.

This is what UserSketch is calibrated for ([LT] Lemma 27, Corollary 28). Checked through the compiled kernel and its
merge, over all short streams of sets, whichever of the two sketches the user is in.
"""

import itertools

import pytest

import discreet as dc
from discreet.central import UserSketch
from discreet.privacy.calibration.correlated_noise import discrete_correlated_delta

ITEMS = "abcd"
SETS = [set(chosen) for size in (1, 2) for chosen in itertools.combinations(ITEMS, size)]


def sketch(users, capacity):
    made = dc.UserMisraGries(capacity, 2, seed=7)
    made.update([sorted(user) for user in users])
    return made


def counters(made):
    return {item: count for item, count in made.not_private_counts().to_dict().items() if count > 0}


def states(capacity, longest):
    """One sketch for each state that streams of up to so many users reach."""
    reached = {}
    for length in range(longest + 1):
        for users in itertools.product(SETS, repeat=length):
            made = sketch(users, capacity)
            reached.setdefault(tuple(sorted(counters(made).items())), made)
    return list(reached.values())


def neighbours(capacity, longest):
    """One pair of sketches for each pair of states that streams with and without a user reach."""
    reached = {}
    for length in range(1, longest + 1):
        for users in itertools.product(SETS, repeat=length):
            with_user = sketch(users, capacity)
            for gone in range(length):
                without = sketch(users[:gone] + users[gone + 1 :], capacity)
                key = tuple(tuple(sorted(counters(made).items())) for made in (with_user, without))
                reached.setdefault(key, (with_user, without))
    return list(reached.values())


def merged(*parts):
    first = parts[0].copy()
    for other in parts[1:]:
        first.merge(other)
    return counters(first)


def worst(pairs, others):
    """(distance of a counter, counters that differ, whether some pair differs in both directions), the largest."""
    far = many = 0
    both = False
    for one, two in pairs:
        for other in others:
            for order in ((one, two), (two, one)):
                left, right = (merged(part, other) for part in order)
                moves = {item: left.get(item, 0) - right.get(item, 0) for item in {*left, *right}}
                signs = {move > 0 for move in moves.values() if move}
                far = max([far, *map(abs, moves.values())])
                many = max(many, sum(move != 0 for move in moves.values()))
                both = both or len(signs) > 1
    return far, many, both


@pytest.mark.parametrize("capacity", [2, 3])
def test_a_user_moves_counters_of_a_merged_sketch_by_one_in_one_direction(capacity):
    pairs, others = neighbours(capacity, 3), states(capacity, 2)
    far, many, both = worst(pairs, others)
    assert far == 1
    assert not both
    # All of them, not only the two that are the user's: a sketch calibrated for m would leak.
    assert many == capacity


def test_two_users_are_noticed():
    """The check is one that a larger distance fails."""
    pairs = [(sketch([{"a"}, {"a"}, {"b"}], 2), sketch([{"b"}], 2))]
    assert worst(pairs, states(2, 1))[0] == 2


def test_a_user_in_both_parts_moves_counters_by_two_in_either_direction():
    """Over short parts and lists of a user in both: up by u and down by d with u + d = 2, and two is reached."""
    parts = [users for length in range(3) for users in itertools.product(SETS, repeat=length)]
    seen = set()
    for one, two in itertools.combinations_with_replacement(parts[::3], 2):
        without = merged(sketch(one, 2), sketch(two, 2))
        for first, second in itertools.combinations_with_replacement([{"a"}, {"d"}, {"a", "d"}, {"c", "d"}], 2):
            having = merged(sketch([*one, first], 2), sketch([*two, second], 2))
            moves = [having.get(item, 0) - without.get(item, 0) for item in {*having, *without}]
            up, down = max([0, *moves]), max([0, *(-move for move in moves)])
            assert up + down <= 2
            seen.add((up, down))
    assert seen >= {(2, 0), (1, 1), (1, 0), (0, 1)}


def test_both_counters_of_two_parts_lose_two():
    """What one more user with one item does to two parts of 100 users, and what its release is calibrated for."""
    users, one = [{1, 2}] * 100, [{3}]
    having = merged(*(sketch([*users, *one], 2) for _ in range(2)))
    assert having == {1: 198, 2: 198}
    assert merged(*(sketch(users, 2) for _ in range(2))) == {1: 200, 2: 200}
    epsilon, delta = 1.0, 1e-6
    for parts, claimed in ((1, False), (2, True)):
        mechanism = UserSketch(dc.Budget(epsilon, delta), 2, dc.User(2), parts_per_user=parts)
        noises = float(mechanism.scale), float(mechanism.shared_scale)
        exact = discrete_correlated_delta(epsilon, *noises, mechanism.threshold, 2, height=2)
        assert (exact <= delta) == claimed
        assert exact <= delta or exact > 4e-3
