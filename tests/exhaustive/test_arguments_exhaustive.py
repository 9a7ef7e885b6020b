"""What docs/privacy argues in words, gone through on small cases by brute force, without the argument's own steps."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import discreet as dc
from discreet.central.stability import stability_delta
from discreet.privacy.calibration.gaussian import unit_change_delta


def discrete_gaussian(sigma, reach):
    z = np.arange(-reach, reach + 1)
    weights = np.exp(-z * z / (2.0 * sigma * sigma))
    return weights / weights.sum()


@pytest.mark.parametrize("sigma", [0.6, 0.8, 1.5])
@pytest.mark.parametrize("changes", [1, 2, 3])
def test_kappa_multiplies_the_difference(sigma, changes):
    """calibration.md: all outcomes of `changes` noises, each moved by 1, against the bound by one wider noise."""
    reach = math.ceil(9 * sigma)
    one = discrete_gaussian(sigma, reach + 1)
    here, moved = one[:-1], one[1:]
    first, second = here, moved
    for _ in range(changes - 1):
        first, second = np.outer(first, here).ravel(), np.outer(second, moved).ravel()
    for x in (-1.0, 0.3, 1.0, 4.0):
        exact = np.maximum(first - math.exp(x) * second, 0.0).sum()
        bound = unit_change_delta(np.array([x]), sigma, np.array([float(changes)]))[0]
        assert exact <= bound * (1 + 1e-9) + 1e-15
        if sigma >= 0.8:
            assert bound <= exact * 1.01 + 1e-12


def partitions(total, largest):
    if total == 0:
        yield ()
    for part in range(min(total, largest), 0, -1):
        for rest in partitions(total - part, part):
            yield (part, *rest)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("items", range(1, 9))
def test_one_item_often_or_all_items_once_is_the_worst(epsilon, items):
    """central.md: every way in which a user's items may be isolated."""
    q = math.exp(-epsilon / items)
    for t in (items - 1, items + 2, 4 * items):

        def shown(parts, t=t):
            return 1 - math.prod(1 - q ** (t + 1 - part) / (1 + q) for part in parts)

        every = [shown(parts) for total in range(1, items + 1) for parts in partitions(total, total)]
        assert stability_delta(epsilon, t, max_items=items) == pytest.approx(max(every), rel=1e-9)
        different = stability_delta(epsilon, t, max_items=items, distinct=True)
        assert different == pytest.approx(max(shown((1,) * n) for n in range(1, items + 1)), rel=1e-9)


@pytest.mark.parametrize("order", [1.5, 3.0, 12.0])
@pytest.mark.parametrize("later", [(2, 1), (2, 0), (0, 2), (-2, 2)], ids=str)
def test_shifts_that_depend_on_what_was_published(order, later):
    """correlated-noise.md: tick 1 moves by 1, tick 2 by one of two numbers, as tick 1 turns out; squares sum to 5."""
    sigma, y = 1.3, np.arange(-40, 41)
    plain = -(y**2) / (2 * sigma**2)
    norm = np.logaddexp.reduce(plain)

    def moments(shift):
        """(p/p')^order p' at every outcome, the first law around `shift`."""
        return np.exp(order * -((y - shift) ** 2) / (2 * sigma**2) + (1 - order) * plain - norm)

    second = {shift: moments(shift).sum() for shift in later}
    for way in (y % 2 == 0, y > 0):
        total = (moments(1) * np.where(way, second[later[0]], second[later[1]])).sum()
        assert math.log(total) / (order - 1) <= order * 5 / (2 * sigma**2) + 1e-9


def test_incidence_publishes_one_class_before_an_announcement_and_two_after():
    """pan.md: an entry is a square, zero or another residue; what moves when it becomes any other."""
    counter = dc.pan.Incidence(8, 1, budget=dc.Budget(1.0), max_count=5, announced_intrusions=1)
    (prime,) = counter.moduli
    squares = {x * x % prime for x in range(1, prime)}
    for published in (1, 2):
        numbers = [(int(c in squares), int(c == 0))[:published] for c in range(prime)]
        moved = max(
            sum(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in itertools.product(numbers, repeat=2)
        )
        assert moved == counter._sensitivity(counter.intrusions) == published
        counter.announce_intrusion()
    primes = dc.pan.Incidence(8, 1, budget=dc.Budget(1.0), method="primes", max_count=5, primes=3)
    assert primes._sensitivity(primes.intrusions) == 2 * 3


def test_three_wise_independent_signs_do_not_make_a_median_unbiased():
    """multiparty.md: g(x) = abc beside a, b and c, each a fair coin."""
    coins = list(itertools.product((-1, 1), repeat=3))
    signs = [(a * b * c, a, b, c) for a, b, c in coins]
    for three in itertools.combinations(range(4), 3):
        assert set(Counter(tuple(row[i] for i in three) for row in signs).values()) == {1}
    errors = [x * (a + b + c) for x, a, b, c in signs]
    assert sum(errors) == 0
    medians = [sorted(rows)[1] for rows in itertools.product(errors, repeat=3)]
    assert sum(medians) / len(medians) == -0.375
    # With a sign of its own for x, given all others, the median is unbiased.
    free = [x * (a + b + c) for x in (-1, 1) for a, b, c in coins]
    assert sum(sorted(rows)[1] for rows in itertools.product(free, repeat=3)) == 0
