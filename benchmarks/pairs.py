"""What people have together: how many of the true top pairs are found, and how their error compares with that of items.

    python benchmarks/pairs.py [--baskets FILE] [--pairs FILE.tsv] [--repeats 10] [--epsilons 0.5 1 2 4] [--size 2]

k = 100, delta = 1e-6, the data of `benchmarks/people.py` and a made-up one of things that are bought in twos. Of the
true top 100 pairs, how many are listed; how many are listed at all; the mean relative error; how many listed pairs
nobody has; how often all 95 % intervals hold. "as items": the sum of the errors of the listed pairs, divided by what
the errors of single items of the same counts would add up to. Those are the mean errors of the items of a release with
the same budget and k, whose counts are within a factor of 1.3 (at least 10 of them in all releases).
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from people import DELTA, K, baskets, pairs, shapes

NEAR, ENOUGH = 1.3, 10


def twos() -> list[list[int]]:
    """People who buy things that go together: 300 pairs, each bought as one in six cases of ten."""
    random = np.random.default_rng(3)
    popularity = 1.0 / np.arange(1, 301) ** 0.7
    people = []
    for _ in range(40_000):
        bought: set[int] = set()
        for pair in random.choice(300, random.geometric(0.5), p=popularity / popularity.sum()).tolist():
            bought |= {2 * pair, 2 * pair + 1} if random.random() < 0.6 else {2 * pair + int(random.integers(2))}
        people.append(sorted(bought))
    return people


def counted(lists: list[list[Any]], size: int, most: int = 400) -> Counter[Any]:
    """How many people have these items together, of the most frequent items: a frequent pair has no others."""
    items = Counter(item for each in lists for item in {*each})
    frequent = {item for item, _ in items.most_common(most)}
    return Counter(found for each in lists for found in combinations(sorted({*each} & frequent), size))


def as_items(errors: npt.NDArray[np.float64], counts: npt.NDArray[np.float64], of: npt.NDArray[np.float64]) -> float:
    """The sum of errors over what single items of the same counts have; `of` has counts and errors of items."""
    near = np.abs(np.log(of[:, 0] / counts[:, None])) < np.log(NEAR)
    known = near.sum(axis=1) >= ENOUGH
    mean = (near[known] @ of[:, 1]) / near[known].sum(axis=1)
    return float(errors[known].sum() / mean.sum()) if known.any() else float("nan")


def data_of(options: argparse.Namespace) -> Iterator[tuple[str, list[list[Any]]]]:
    yield from ((name, lists) for name, lists in shapes() if name != "one item each")
    yield "things in twos", twos()
    if options.baskets:
        yield options.baskets.name, baskets(options.baskets)
    if options.pairs:
        yield options.pairs.name, pairs(options.pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baskets", type=Path)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--size", type=int, default=2)
    parser.add_argument("--only", help="data with these words")
    options = parser.parse_args()

    import discreet as dc
    from discreet.central.person_pairs import PersonPairs
    from discreet.central.person_vectors import PersonVectors
    from discreet.summaries.people import ListedPeople

    headings = ("of top", "listed", "nobody's", "error", "as items", "all hold")
    print(f"{'data':24} {'epsilon':>7} " + " ".join(f"{heading:>9}" for heading in headings))
    for name, lists in data_of(options):
        if options.only and options.only not in name:
            continue
        truth, single = counted(lists, options.size), Counter(item for each in lists for item in {*each})
        top, people = {found for found, _ in truth.most_common(K)}, ListedPeople(lists)
        for epsilon in options.epsilons:
            budget, of_items, rows, told = dc.Budget(epsilon, DELTA), [], [], []
            for _ in range(options.repeats):
                items = PersonVectors(budget, K)(people)
                of_items += [(single[item], abs(count - single[item])) for item, count, *_ in items]
                release = PersonPairs(budget, K, size=options.size)(people)
                exact = np.array([truth[found] for found in release.items], float)
                lower, upper = release.bounds(0.95)
                told += [(many, abs(count - many)) for many, count in zip(exact, release.counts, strict=True) if many]
                holds = bool(((lower <= exact) & (exact <= upper)).all())
                rows.append((len(top & {*release.items}), len(release), int(np.sum(exact == 0)), holds))
            of, listed, nobody, hold = np.mean(rows, axis=0)
            found = np.array(told, float).reshape(-1, 2)
            relative = float(np.mean(found[:, 1] / found[:, 0])) if len(found) else float("nan")
            ratio = as_items(found[:, 1], found[:, 0], np.array(of_items, float).reshape(-1, 2))
            numbers = f"{of:>9.1f} {listed:>9.1f} {nobody:>9.2f} {relative:>9.1%} {ratio:>9.2f} {hold:>9.0%}"
            print(f"{name:24} {epsilon:>7g} {numbers}", flush=True)


if __name__ == "__main__":
    main()
