"""What protecting people costs: how much of the true top is found, with which error, and how long it takes.

    python benchmarks/people.py accuracy [--baskets FILE] [--pairs FILE.tsv] [--repeats 10]
    python benchmarks/people.py shares [--baskets FILE] [--pairs FILE.tsv] [--repeats 60] [--epsilons 0.5 1]
    python benchmarks/people.py coverage [--repeats 100] [--confidence 0.95] [--only WORDS]
    python benchmarks/people.py speed [--rows 10000000] [--rounds 3] [--memory 2GB]

accuracy: k = 100, delta = 1e-6, nobody says how many items a person has. Data: made up in four shapes (few and many
items a person, flat and skewed), and files if given: `--baskets` has the items of one person a line, `--pairs` a
header and a person and an item a line. Of the true top 100, how many are listed; how many are listed at all; the mean
relative error of what is listed, and of the 30 largest alone; the share left out, as it is and as it is stated.
shares: the same for other shares of the budget for the two looks, in twentieths, and for a second look that is not
aimed, as it was before; also the error of the 5 largest alone, which nearly every release lists. An aimed look lists
more of the 30, and those it adds are the smaller ones, so "same 30" has the errors of each of the 30 weighed as often
as a look that is not aimed lists it; in "or 1" an item that is not listed has an error of 1.
coverage: how often the intervals of all listed items contain the truth, all at once, over seeded releases of made-up
people: few items, flat, skewed, many items, heavy people, everybody the same; of people, of rows, of sums, in groups,
with a bound of items. "as stated": of rows and sums for the truth as the release says it, in which people with very
many rows are scaled down; elsewhere the same.
speed: the whole command `discreet top --user` beside DuckDB's own count(distinct user) by item, in turns.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from turns import DISCREET, in_turns, machine

K, DELTA = 100, 1e-6
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SHARES = ((6, "11/2"), (6, 5), (5, 5), (5, 4), (4, 4))

DUCKDB = """
import sys, duckdb
connection = duckdb.connect()
connection.execute("SET threads = " + sys.argv[2])
query = f"SELECT url, count(DISTINCT visitor) AS n FROM '{sys.argv[1]}' GROUP BY url ORDER BY n DESC LIMIT 100"
print(len(connection.execute(query).fetchall()))
"""


def shapes() -> Iterator[tuple[str, list[list[int]]]]:
    """Made-up people: how many items they have, and how popular those are."""
    random = np.random.default_rng(1)
    for name, people, mean, items, exponent in (
        ("few items, skewed", 50_000, 4, 20_000, 1.2),
        ("few items, flat", 50_000, 4, 2_000, 0.4),
        ("many items, skewed", 5_000, 60, 20_000, 1.0),
        ("one item each", 100_000, 1, 5_000, 1.0),
    ):
        popularity = 1.0 / np.arange(1, items + 1) ** exponent
        cumulative = np.cumsum(popularity / popularity.sum())
        sizes = np.ones(people, int) if mean == 1 else random.geometric(1 / mean, people)
        drawn = np.searchsorted(cumulative, random.random(int(sizes.sum())))
        yield name, [np.unique(part).tolist() for part in np.split(drawn, np.cumsum(sizes)[:-1])]


def baskets(path: Path) -> list[list[int]]:
    return [sorted({int(item) for item in line.split()}) for line in path.read_text().splitlines()]


def pairs(path: Path) -> list[list[str]]:
    people: dict[str, set[str]] = {}
    for line in path.read_text().splitlines()[1:]:
        person, item, *_ = line.split("\t")
        people.setdefault(person, set()).add(item)
    return [sorted(items) for items in people.values()]


Lists = list[list[Any]]


def all_data(options: argparse.Namespace, made_up: bool = True) -> list[tuple[str, Lists]]:
    data: list[tuple[str, Lists]] = list(shapes()) if made_up else []
    if options.baskets:
        data.append((options.baskets.name, baskets(options.baskets)))
    if options.pairs:
        data.append((options.pairs.name, pairs(options.pairs)))
    return data


def releases(lists: Lists, epsilon: float, repeats: int) -> list[Any]:
    """Seeded releases of the same people."""
    import discreet as dc
    from discreet.central.person_vectors import PersonVectors
    from discreet.noise import seeded_source
    from discreet.summaries.people import ListedPeople

    people, mechanism = ListedPeople(lists), PersonVectors(dc.Budget(epsilon, DELTA), K)
    return [mechanism(people, seeded_source(seed)) for seed in range(repeats)]


def measured(lists: Lists, made: list[Any]) -> list[float]:
    """Of the top, listed, error, of the 30 and the 5 largest, left out, stated: means over releases."""
    truth = Counter(item for items in lists for item in items)
    rank = {item: place for place, (item, _) in enumerate(truth.most_common(K))}
    rows = []
    for release in made:
        exact = np.array([truth[item] for item in release.items])
        places = np.array([rank.get(item, K) for item in release.items])
        errors = np.abs(release.counts - exact) / exact if len(release) else np.zeros(0)
        of = [float(np.mean(errors[places < most])) if (places < most).any() else np.nan for most in (30, 5)]
        missing = 1.0 - release.counts.sum() / exact.sum() if len(release) else 0.0
        stated = release.left_out.value if release.left_out else 0.0
        error = float(np.mean(errors)) if len(release) else 0.0
        rows.append((int(np.sum(places < K)), len(release), error, *of, missing, stated))
    return [float(mean) for mean in np.nanmean(rows, axis=0)]


def accuracy(options: argparse.Namespace) -> None:
    headings = ("epsilon", "of top", "listed", "error", "of 30")
    print(f"{'data':24} {'people':>8} {' '.join(f'{heading:>7}' for heading in headings)} left out  stated")
    for name, lists in all_data(options):
        for epsilon in EPSILONS:
            of, listed, error, of_30, _, missing, stated = measured(lists, releases(lists, epsilon, options.repeats))
            print(
                f"{name:24} {len(lists):>8,} {epsilon:>7g} {of:>7.1f} {listed:>7.1f} {error:>7.1%} {of_30:>7.1%} "
                f"{missing:>8.1%} {stated:>7.1%}",
                flush=True,
            )


def largest(lists: Lists, made: list[Any], most: int = 30) -> npt.NDArray[np.float64]:
    """Relative errors of the largest items, a row a release; NaN where one is not listed."""
    truth = Counter(item for items in lists for item in items)
    errors = np.full((len(made), most), np.nan)
    for number, release in enumerate(made):
        counts = dict(zip(release.items, release.counts.tolist(), strict=True))
        for place, (item, exact) in enumerate(truth.most_common(most)):
            if item in counts:
                errors[number, place] = abs(counts[item] - exact) / exact
    return errors


def shares(options: argparse.Namespace) -> None:
    from discreet.central import person_vectors as code

    both = [(code.LOOK, code.SECOND_LOOK), *((Fraction(first), Fraction(second)) for first, second in SHARES)]
    not_aimed = {"LEAST_AIM": code.MOST_AIM, "CANDIDATES_AGAIN": code.CANDIDATES, "SIZES": Fraction(2, 5)}
    not_aimed |= {"LOOK": Fraction(6), "SECOND_LOOK": Fraction(6), "NOTHING_LOST": 1.5}
    settings = [("not aimed", not_aimed)]
    settings += [(f"{float(a):g} + {float(b):g}", {"LOOK": a, "SECOND_LOOK": b}) for a, b in both]
    columns = ("of top", "of 30", "of 5", "same 30", "or 1")
    print(f"{'data':24} {'epsilon':>7} {'looks':>10} {' '.join(f'{column:>7}' for column in columns)}")
    for name, lists in all_data(options, made_up=False):
        for epsilon in options.epsilons:
            listed = None  # how often each of the 30 is, where the second look is not aimed
            for looks, constants in settings[: options.settings]:
                with patch.multiple(code, **constants):
                    code.calibrated.cache_clear()
                    made = releases(lists, epsilon, options.repeats)
                of, _, _, of_30, of_5, *_ = measured(lists, made)
                errors = largest(lists, made)
                seen = ~np.isnan(errors)
                listed = np.mean(seen, axis=0) if listed is None else listed
                each = np.sum(np.where(seen, errors, 0.0), axis=0) / np.maximum(np.sum(seen, axis=0), 1)
                weights = np.where(seen.any(axis=0), listed, 0.0)
                numbers = (
                    of_30,
                    of_5,
                    float(weights @ each / weights.sum()),
                    float(np.mean(np.where(seen, errors, 1.0))),
                )
                shown = " ".join(f"{number:>7.1%}" for number in numbers)
                print(f"{name:24} {epsilon:>7g} {looks:>10} {of:>7.1f} {shown}", flush=True)
    code.calibrated.cache_clear()


Rows = list[tuple[int, Any, float]]  # (person, item, value)


def crowds() -> Iterator[tuple[str, Rows]]:
    """Made-up people whose counts are hard to state: (name, rows)."""
    random = np.random.default_rng(7)

    def rows(sizes: npt.NDArray[np.int64], popularity: npt.NDArray[np.float64], repeats: float = 0.0) -> Rows:
        cumulative = np.cumsum(popularity / popularity.sum())
        items = np.searchsorted(cumulative, random.random(int(sizes.sum())))
        who = np.repeat(np.arange(len(sizes)), sizes)
        times = 1 + random.poisson(repeats, len(who)) if repeats else np.ones(len(who), int)
        who, items = np.repeat(who, times), np.repeat(items, times)
        return list(zip(who.tolist(), items.tolist(), random.exponential(3.0, len(who)).tolist(), strict=True))

    # Nearly everybody has one rating; the few who have the rarest have others, too.
    ratings = rows(1 + (random.random(60_000) < 0.1), np.array([0.0, 0.04, 0.06, 0.1, 0.3, 0.5]))
    rare = [(60_000 + person, item, 1.0) for person in range(120) for item in (0, 3 + person % 2, 5)]
    yield "ratings, 6 items", ratings + rare
    visits = random.geometric(0.08, 3_000)
    yield "status codes, 8 items", rows(visits, np.array([0.8, 0.08, 0.05, 0.04, 0.02, 0.006, 0.003, 0.001]))
    yield "flat, 30 items", rows(random.integers(1, 12, 6_000), np.ones(30))
    yield "skewed, 3,000 items", rows(random.geometric(0.2, 8_000), 1.0 / np.arange(1, 3_001) ** 1.1)
    yield "many items, 5,000", rows(random.geometric(1 / 60, 3_000), 1.0 / np.arange(1, 5_001) ** 0.9)
    heavy = np.where(random.random(5_000) < 0.05, 600, 1) * random.geometric(0.4, 5_000)
    yield "heavy people", rows(heavy, 1.0 / np.arange(1, 2_001) ** 0.8)
    yield "the same 40 items", [(person, item, 1.5) for person in range(2_000) for item in range(40)]
    yield "repeated rows", rows(random.geometric(0.3, 6_000), 1.0 / np.arange(1, 301) ** 0.8, repeats=3.0)
    shopping = rows(random.geometric(0.3, 4_000), 1.0 / np.arange(1, 41) ** 0.7)
    yield "heavy rows", [row for row in shopping for _ in range(40 if row[0] % 50 == 0 else 1)]


def asked(mode: str) -> dict[str, Any]:
    return {
        "people": {},
        "groups": {"by": "group"},
        "bounded": {"max_items": 2},
        "rows": {"count": "rows"},
        "sums": {"values": "value", "value_range": (0, 10)},
    }[mode]


def truth_of(rows: Rows, mode: str) -> dict[Any, float]:
    """What the release is about, exactly."""
    pairs: dict[tuple[int, Any], float] = {}
    for person, item, value in rows:
        key = (person, (f"group {item % 3}", item) if mode == "groups" else item)
        add = {"rows": 1.0, "sums": round(min(value, 10) * 2**20 / 10) * 10 / 2**20}.get(mode, 0.0)
        pairs[key] = pairs.get(key, 0.0) + add if mode in ("rows", "sums") else 1.0
    truth: dict[Any, float] = {}
    for (_, item), amount in pairs.items():
        truth[item] = truth.get(item, 0.0) + amount
    return truth


def coverage(options: argparse.Namespace) -> None:
    import pyarrow as pa

    import discreet as dc
    from discreet.central.person_vectors import PersonVectors
    from discreet.engines.exact_people import people_of
    from discreet.events.tables import events_of
    from discreet.noise import seeded_source
    from discreet.summaries.people import ValueRange
    from discreet_audit.central_questions import held

    headings = ("all hold", "as stated", "lower", "upper", "width", "above", "error")
    print(f"{'data':22} {'of':8} {'epsilon':>7} " + " ".join(f"{heading:>9}" for heading in headings))
    for name, rows in crowds():
        who, items, values = zip(*rows, strict=True)
        table = pa.table({"who": who, "item": items, "value": values, "group": [f"group {item % 3}" for item in items]})
        for mode in ("people", "groups", "bounded", "rows", "sums"):
            if options.only and options.only not in f"{name} {mode}":
                continue
            truth = truth_of(rows, mode)
            for epsilon in options.epsilons:
                found = []
                for seed in range(options.repeats):
                    release = dc.top_k(table, 100, dc.Budget(epsilon, DELTA), column="item", user="who",
                                       source=seeded_source(seed), workers=1, **asked(mode))  # fmt: skip
                    exact = np.array([truth[item] for item in release.items])
                    lower, upper = release.bounds(options.confidence)
                    above, error = upper - release.counts, np.abs(release.counts - exact)
                    sides = (lower <= exact).all(), (exact <= upper).all()
                    relative = (np.mean(part / exact) if len(exact) else 0.0 for part in (upper - lower, above, error))
                    found.append((all(sides), *sides, *relative))
                every, *others = np.mean(found, axis=0)
                stated = every
                if mode in ("rows", "sums"):
                    within = ValueRange(0, 10) if mode == "sums" else None
                    mechanism = PersonVectors(dc.Budget(epsilon, DELTA), 100, rows=within is None, values=within)
                    owned = events_of(table).rows("item", user="who", value="value" if within else None)
                    with people_of(owned, rows=within is None, value_range=within, threads=1) as people:
                        seeds = range(options.repeats)
                        stated = np.mean([held(mechanism, people, seed, options.confidence) for seed in seeds])
                numbers = " ".join(f"{number:>9.1%}" for number in (every, stated, *others))
                print(f"{name:22} {mode:8} {epsilon:>7g} {numbers}", flush=True)


def write_visits(path: Path, rows: int) -> None:
    """A made-up log: 500,000 visitors, a million pages, both with heavy tails."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(0)
    popularity = 1.0 / np.arange(1, 1_000_001) ** 1.1
    cumulative = np.cumsum(popularity / popularity.sum())
    urls = np.searchsorted(cumulative, random.random(rows)).astype(np.int32)
    visitors = ((random.pareto(1.2, rows) * 20_000).astype(np.int64) % 500_000).astype(np.int32)
    names = pa.array([f"https://example.org/p/{page:07d}" for page in range(1_000_001)])
    people = pa.array([f"visitor-{visitor:08d}" for visitor in range(500_000)])
    table = pa.table(
        {
            "visitor": pa.DictionaryArray.from_arrays(pa.array(visitors), people).cast(pa.string()),
            "url": pa.DictionaryArray.from_arrays(pa.array(urls), names).cast(pa.string()),
        }
    )
    pq.write_table(table, path, row_group_size=1_000_000)


def speed(options: argparse.Namespace) -> None:
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        write_visits(path, options.rows)
        ours = [DISCREET, "top", str(path), "--column", "url", "--user", "visitor", "-k", "100",
                "--epsilon", "1", "--delta", "1e-6", "--memory", options.memory,
                "--quiet", "--format", "json"]  # fmt: skip
        theirs = [sys.executable, "-c", DUCKDB, str(path), str(cores)]
        costs = in_turns({"discreet top": ours, "DuckDB count(distinct)": theirs}, options.rounds)
        print(f"{machine()}; {options.rows:,} rows, medians of {options.rounds} in turns")
        for name, cost in costs.items():
            print(f"{name:24} {cost.seconds:6.2f} s {cost.cpu:6.2f} s CPU {cost.mebibytes:7.0f} MiB")
        ratio, cpu, _ = (mine / other for mine, other in zip(*costs.values(), strict=True))
        print(f"ratio {ratio:.2f} (CPU {cpu:.2f}); the aim is at most 1.3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("accuracy")
    one.add_argument("--baskets", type=Path)
    one.add_argument("--pairs", type=Path)
    one.add_argument("--repeats", type=int, default=10)
    one.set_defaults(run=accuracy)
    split = commands.add_parser("shares")
    split.add_argument("--baskets", type=Path)
    split.add_argument("--pairs", type=Path)
    split.add_argument("--repeats", type=int, default=60)
    split.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0])
    split.add_argument("--settings", type=int, help="only the first so many settings; 2: not aimed, and ours")
    split.set_defaults(run=shares)
    covered = commands.add_parser("coverage")
    covered.add_argument("--repeats", type=int, default=100)
    covered.add_argument("--confidence", type=float, default=0.95)
    covered.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    covered.add_argument("--only", help="shapes and modes with these words")
    covered.set_defaults(run=coverage)
    two = commands.add_parser("speed")
    two.add_argument("--rows", type=int, default=10_000_000)
    two.add_argument("--rounds", type=int, default=3)
    two.add_argument("--memory", default="2GB")
    two.set_defaults(run=speed)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
