"""Made-up people in which much is lost, little, or nothing."""

from functools import lru_cache

import numpy as np


def visits(people=6000, seed=0):
    """Most people have a few of 300 items, some have very many."""
    random = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, 301) ** 0.8
    popularity /= popularity.sum()
    sizes = np.minimum(random.geometric(0.2, people) + 80 * (random.random(people) < 0.01), 200)
    return [random.choice(300, size, replace=False, p=popularity).tolist() for size in sizes]


@lru_cache
def ratings():
    """Nearly everybody has one rating; the few who have the rarest one have two others, too."""
    random = np.random.default_rng(5)
    lists = [[int(rating)] for rating in random.choice([1, 2, 3, 4, 5], 20_000, p=[0.04, 0.06, 0.1, 0.3, 0.5])]
    return lists + [[0, 4, 5]] * 120


@lru_cache
def crowds():
    """Shapes in which much is lost, little, or nothing: (name, lists of items)."""
    random = np.random.default_rng(6)
    popularity = 1 / np.arange(1, 301) ** 1.1
    popularity /= popularity.sum()
    skewed = [random.choice(300, size, replace=False, p=popularity).tolist() for size in random.geometric(0.2, 2500)]
    flat = [random.choice(30, size, replace=False).tolist() for size in random.integers(1, 12, 2000)]
    heavy = [list(range(280)) if index % 20 == 0 else [index % 40] for index in range(2000)]
    return {"ratings": ratings(), "skewed": skewed, "flat": flat, "heavy": heavy, "equals": [[*range(40)]] * 800}
