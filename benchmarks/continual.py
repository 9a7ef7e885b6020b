"""Continual releases: error over time of the counters, and unknown domains. The figures of [CO] are in `papers/`.

python benchmarks/continual.py counters [--runs 200] [--plot out.png]
python benchmarks/continual.py ratio [--runs 4000]     (default counter against the binary tree at T = 2^16)
python benchmarks/continual.py discover [--trials 3]   (when an item is first published, T = 2^14)
python benchmarks/continual.py unknown FILE      (space-separated items, one basket a line: kosarak)
python benchmarks/continual.py people FILE [--ticks 12]   (tabs: user, item in any order of rows: lastfm)
python benchmarks/continual.py speed
python benchmarks/continual.py late              (items that appear at tick 20,000)
python benchmarks/continual.py increases         (intervals of increases, and both intervals added)
python benchmarks/continual.py windows           (noise of people in a window, by how many visits count)
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import pyarrow as pa
from turns import calls_in_turns, machine, timed, took

import discreet as dc
from discreet.continual._factors import Buffered, Factor, SquareRoot, Tree
from discreet.noise import seeded_source
from discreet.releases.over_time import reach_of_increase

RHO = 0.5


def counters(arguments: argparse.Namespace) -> None:
    """Largest and mean standard deviation over all ticks, stated and measured; rho = 1/2 (a single release has 1)."""
    curves: dict[str, tuple[list[int], list[float]]] = {}
    print(f"{'T':>7} {'counter':22} {'largest':>8} {'mean':>8} {'measured largest':>17} {'measured mean':>14}")
    for power in (10, 14, 17):
        horizon = 2**power
        some = sorted({*np.unique(np.geomspace(1, horizon, 200).astype(int)).tolist(), horizon - 1, horizon})
        factors: list[tuple[str, Factor]] = [
            ("binary tree", Tree(horizon, 2)),
            (f"tree, base {Tree(horizon).base}", Tree(horizon)),
            ("square root", SquareRoot(horizon)),
            ("BLT (default)", Buffered(horizon)),
        ]
        for name, factor in factors:
            sigma = factor.sigma(RHO)
            every = range(1, horizon + 1, max(1, horizon // 4096))
            stated = [factor.error(t, sigma) for t in every]
            largest = factor.worst_error(RHO)
            curves[f"{name}, T=2^{power}"] = (some, [factor.error(t, sigma) for t in some])
            row = f"{horizon:>7} {name:22} {largest:>8.2f} {np.mean(stated):>8.2f}"
            # Measured: many independent counters; the square root keeps all its past, so it is run for small T only.
            runs = arguments.runs if not isinstance(factor, SquareRoot) or power <= 10 else 0
            if runs:
                state, source, squares = factor.start(runs), seeded_source(power), []
                for t in range(1, horizon + 1):
                    noise = factor.to_counts(factor.advance(state, t, sigma, source))
                    squares.append(float((noise.astype(float) ** 2).mean()))
                # Neighbouring ticks share most of their noise: average over runs and over a few ticks.
                width = 1 if isinstance(factor, Tree) else max(1, horizon // 64)
                smooth = np.convolve(squares, np.ones(width) / width, "valid")
                row += f" {math.sqrt(smooth.max()):>17.2f} {np.sqrt(squares).mean():>14.2f}"
            print(row, flush=True)
    hybrid = dc.continual.Counter(None, dc.Budget.zcdp(RHO))
    print("unknown horizon:", {f"2^{p}": round(hybrid.error(2**p - 1), 2) for p in (4, 10, 14, 17)})
    if arguments.plot:
        _plot(curves, "tick", "standard deviation", arguments.plot)


def ratio(arguments: argparse.Namespace) -> None:
    """Standard deviation of the default counter and of the binary tree at T = 2^16, over many counters at once."""
    horizon, runs = 2**16, arguments.runs
    budget, measured = dc.Budget.zcdp(RHO), {}
    print(f"T = {horizon}, {runs} counters each, released at every tick; a standard deviation is right to a relative "
          f"{1 / math.sqrt(2 * runs):.3f}")  # fmt: skip
    for name, options in {"default": {}, "binary tree": {"method": "tree", "base": 2}}.items():
        counter = dc.continual.Counter(horizon, budget, size=runs, **options)  # type: ignore[arg-type]
        nothing, squares = np.zeros(runs, np.int64), np.zeros(horizon + 1)
        for t in range(1, horizon + 1):
            noise = counter.step(nothing).astype(np.float64)
            squares[t] = noise @ noise / runs
        worst = max((counter.error(t), t) for t in (horizon, horizon - 1, horizon // 2 - 1))[1]
        measured[name] = math.sqrt(squares[worst]), math.sqrt(squares.max())
        print(f"{name:12} {counter.method:12} worst tick {worst}: stated {counter.error(worst):.3f}, measured "
              f"{measured[name][0]:.3f}; largest of all ticks' measured {measured[name][1]:.3f}")  # fmt: skip
    both = zip(measured["default"], measured["binary tree"], strict=True)
    print("ratio at the worst tick and of the largest:", *(f"{ours / theirs:.3f}" for ours, theirs in both))


def discover(arguments: argparse.Namespace) -> None:
    """T = 2^14 ticks of Zipf events: the tick at which each item is first published, ours against UnkBase."""
    horizon, items = 2**14, 400
    budget = dc.Budget(1.0, 1e-6)
    weights = 1.0 / np.arange(1, items + 1)
    weights /= weights.sum()
    makers = {
        "ours": lambda: dc.continual.Histogram(horizon, budget, None, 1),
        "UnkBase, best base": lambda: dc.continual.Histogram(horizon, budget, None, 1, mechanism="tree"),
        "UnkBase, base 2": lambda: dc.continual.Histogram(horizon, budget, None, 1, mechanism="tree", base=2),
    }
    print(f"T = {horizon}, {items} items, {arguments.events} events a tick; {arguments.trials} streams")
    for trial in range(arguments.trials):
        first: dict[str, dict[int, int]] = {}
        for name, make in makers.items():
            rng = np.random.default_rng(trial)
            histogram, seen = make(), {}
            for t in range(1, horizon + 1):
                for item in histogram.step(rng.choice(items, arguments.events, p=weights)).items:
                    seen.setdefault(item, t)
            first[name] = seen
        ours = first["ours"]
        for name in list(makers)[1:]:
            theirs = first[name]
            both = [(ours[item], t) for item, t in theirs.items() if item in ours]
            sooner = sum(a < b for a, b in both)
            faster = np.median([b / a for a, b in both]) if both else math.nan
            print(
                f"stream {trial}: {name} finds {len(theirs)} items, ours {len(ours)}; of those of UnkBase ours misses "
                f"{len(theirs) - len(both)}, has {sooner} earlier, {sum(a == b for a, b in both)} at the same tick, "
                f"{sum(a > b for a, b in both)} later; median tick {faster:.2f} times earlier",
                flush=True,
            )


def unknown(arguments: argparse.Namespace) -> None:
    """Items of a file split into ticks: recall of items above each threshold, error and memory."""
    with open(arguments.file) as file:
        items = np.array([int(item) for line in file for item in line.split()])
    ticks = np.array_split(items, arguments.ticks)
    truth = np.bincount(items)
    budget = dc.Budget(1.0, 1e-6)
    print(f"{len(items):,} events in {arguments.ticks} ticks; epsilon 1, delta 1e-6 for all of them")
    print(
        f"{'mechanism':26} {'items':>6} {'top 100':>8} {'error':>7} {'threshold':>9} {'state MB':>9} {'ms a tick':>9}"
    )
    makers = {
        "ours (factorised)": lambda: dc.continual.Histogram(arguments.ticks, budget, None, 1, keep_discovered=True),
        "UnkBase": lambda: dc.continual.Histogram(
            arguments.ticks, budget, None, 1, mechanism="tree", keep_discovered=True
        ),
        "HeavyHitters": lambda: dc.continual.HeavyHitters(arguments.ticks, budget),
        "HeavyHitters, 4096": lambda: dc.continual.HeavyHitters(arguments.ticks, budget, 4096),
        "HeavyHitters, 1024": lambda: dc.continual.HeavyHitters(arguments.ticks, budget, 1024),
        "nodes added up, 4096": lambda: dc.continual.HeavyHitters(arguments.ticks, budget, 4096, mechanism="offset"),
        "Chan et al., 1024": lambda: dc.continual.HeavyHitters(arguments.ticks, budget, 1024, mechanism="chan"),
    }
    best = set(np.argsort(-truth)[:100].tolist())
    for name, make in makers.items():
        mechanism = make()
        results, seconds = timed(lambda: [mechanism.step(tick) for tick in ticks][-1:])  # noqa: B023
        result, spent = results[0], seconds / arguments.ticks * 1e3
        error = np.abs(result.counts - truth[result.items]).mean() if len(result) else math.nan
        recall = len(best & set(result.items)) / 100
        size = len(mechanism.to_bytes()) / 1e6
        row = f"{name:26} {len(result):>6} {recall:>8.2f} {error:>7.1f} {result.threshold or 0:>9} {size:>9.2f}"
        print(f"{row} {spent:>9.1f}", flush=True)


def people(arguments: argparse.Namespace) -> None:
    """Rows of users and items, shuffled into ticks: how many people have each item, at the last tick."""
    users, items = np.loadtxt(arguments.file, np.int64, skiprows=1, usecols=(0, 1), unpack=True)
    ticks = np.array_split(np.random.default_rng(1).permutation(len(users)), arguments.ticks)
    different = np.unique(np.stack([users, items]), axis=1)[1]
    truth = np.bincount(different)
    best = set(np.argsort(-truth)[:100].tolist())
    budget = dc.Budget(1.0, 1e-6)
    print(f"{len(users):,} rows of {len(np.unique(users)):,} people in {arguments.ticks} ticks, shuffled by seed 1; "
          "epsilon 1, delta 1e-6 for all of them; mean of", arguments.runs, "runs")  # fmt: skip
    print(f"{'':>12} {'m':>3} {'items':>6} {'top 100':>8} {'cut':>5} {'error':>7} {'of truth':>9} {'bytes/pair':>11}")
    for known in (None, np.flatnonzero(truth).tolist()):
        for most in (1, 3, 10, 50):
            rows = []
            for _ in range(arguments.runs):
                histogram = dc.continual.Histogram(arguments.ticks, budget, known, unit=dc.User(most))
                for tick in ticks:
                    result = histogram.step(items[tick], users=users[tick])
                exact = histogram.not_private_counts()
                listed = result if known is None else result.head(100)
                counted = np.array([exact[item] for item in listed.items])
                wrong = (np.abs(listed.counts - right) for right in (counted, truth[listed.items]))
                off, far = (part.sum() / max(len(part), 1) for part in wrong)
                pairs = sum(exact.values())
                found = len(best & set(listed.items))
                rows.append((len(listed), found, result.threshold or 0, off, far, len(histogram.to_bytes()) / pairs))
            n, found, cut, off, far, size = np.mean(rows, axis=0)
            setting = "items come" if known is None else "items known"
            print(f"{setting:>12} {most:>3} {n:>6.1f} {found:>8.1f} {cut:>5.0f} {off:>7.1f} {far:>9.1f} {size:>11.1f}")
    counter = dc.continual.DistinctCount(arguments.ticks, budget)
    seen: set[int] = set()
    off = []
    for tick in ticks:
        seen |= set(users[tick].tolist())
        off.append(abs(counter.step(users[tick]) - len(seen)))
    stated = f"{counter.error(1):.1f} to {counter.error(arguments.ticks):.1f}"
    print(f"different people: {len(seen):,}; mean error over the ticks {np.mean(off):.1f}, stated {stated}")


def speed(arguments: argparse.Namespace) -> None:
    """The wall time and the processor time of a step."""
    rng = np.random.default_rng(1)
    weights = 1 / np.arange(1, 50001) ** 1.1
    numbers = rng.choice(50000, 10**6, p=weights / weights.sum())
    words = pa.array([f"item {i}" for i in numbers])
    domain = list(range(100_000))
    histogram = dc.continual.Histogram(2**14, dc.Budget.zcdp(RHO), domain, 1)
    few = rng.choice(100_000, 1000)
    counter = dc.continual.Counter(2**14, dc.Budget.zcdp(RHO), size=100_000)
    ones = np.ones(100_000, np.int64)
    steps = {
        "histogram of 100,000 known items": lambda: histogram.step(few),
        "100,000 counters": lambda: counter.step(ones),
    }
    for name, column in (("integers", numbers), ("strings", words)):
        hitters = dc.continual.HeavyHitters(2**14, dc.Budget(1.0, 1e-6), 4096)
        steps[f"heavy hitters, 1,000,000 {name}"] = lambda hitters=hitters, column=column: hitters.step(column)
    rows = pa.array(rng.integers(0, 500_000, 10**6)).cast(pa.string())
    of_people = dc.continual.Histogram(2**14, dc.Budget(1.0, 1e-6), unit=dc.User(10))
    steps["people, 1,000,000 rows of strings"] = lambda: of_people.step(words, users=rows)
    distinct = dc.continual.DistinctCount(2**14, dc.Budget.zcdp(RHO))
    steps["different people, 1,000,000 rows"] = lambda: distinct.step(rows)
    print(f"{machine()}; medians of 20 steps in turns")
    print(f"{'':40} {'wall':>8} {'CPU':>11}")
    for name, cost in calls_in_turns(steps, 20).items():
        print(f"{name:40} {cost.seconds * 1e3:8.1f} ms {cost.cpu * 1e3:8.1f} ms", flush=True)


def late(arguments: argparse.Namespace) -> None:
    """The step in which 500 items appear at tick 20,000, the same a tick later, and what running their noise takes."""
    histogram = dc.continual.Histogram(2**15, dc.Budget(1.0, 1e-6), None, 1)
    for _ in range(19_999):
        histogram.step([])
    for number in range(3):
        items = [f"item {number} {i}" for i in range(500)]
        seconds = took(lambda: histogram.step(items)).seconds  # noqa: B023
        print(f"500 items at tick {histogram.tick:,}: {seconds * 1e3:.1f} ms", flush=True)
    factor = Buffered(2**15)
    seconds = took(
        lambda: factor.advance(factor.start(500), 19_999, factor.sigma(RHO), seeded_source(1), 19_999)
    ).seconds
    print(f"noise of 500 items run through 19,999 ticks: {seconds * 1e3:.1f} ms")


def increases(arguments: argparse.Namespace) -> None:
    """Widths of 95 percent intervals of increases up to the last tick: those of both ticks added, and what is stated.

    Epsilon = 1 and delta = 1e-6 for all ticks. A total; and 20 listed items of a histogram, far above the cut.
    """
    budget = dc.Budget(1.0, 1e-6)
    heads = f"{'now':>6} {'ratio':>6}"
    print(f"{'T':>6} {'over':>5}  {'total: both':>12} {heads}  {'items: both':>12} {heads}")
    for horizon in (60, 365, 1000, None):
        counter = dc.continual.Counter(horizon, budget)
        listed = dc.continual.Histogram(horizon, budget, max_items_per_event=1)
        tick = 1000 if horizon is None else horizon
        for over in (1, 7, 30):
            since = tick - over
            both = 2 * sum(math.ceil(1.96 * counter.error(at) + 0.5) for at in (since, tick))
            now = 2 * reach_of_increase(counter.over_time(tick), counter.over_time(since), 0.05)
            releases = []
            for at in (since, tick):
                counts, cut = np.full(20, 10**6 * at), listed.scheme.cut(at)
                laws = {"threshold": cut, "over_time": listed.over_time(at)}
                model = listed.error_model(at, 20)
                releases.append(dc.Release(pa.array(range(20)), counts, listed.guarantee, model, **laws))
            of_both = sum(float(np.subtract(*release.bounds(0.975)[::-1])[0]) for release in releases)
            increase = releases[1].increase(releases[0])
            of_items = float(increase.upper[0] - increase.lower[0])
            print(
                f"{horizon or 'any':>6} {over:>5}  {both:>12} {now:>6} {both / now:>6.1f}  {of_both:>12.0f} "
                f"{of_items:>6.0f} {of_both / of_items:>6.1f}"
            )


def windows(arguments: argparse.Namespace) -> None:
    """Largest standard deviation of the number of people in a window; rho = 1/2 (a single release has 1)."""
    budget = dc.Budget.zcdp(RHO)
    print("| T, w | all visits | 10 visits | 3 visits | 1 visit | no window |\n|---|---|---|---|---|---|")
    for horizon, window in ((30, 7), (365, 7), (365, 30), (8760, 24)):
        made = [dc.continual.DistinctCount(horizon, budget, window=window, max_visits=c) for c in (None, 10, 3, 1)]
        made.append(dc.continual.DistinctCount(horizon, budget))
        errors = (f"{counter.factor.worst_error(RHO, 1, counter.changes):.1f}" for counter in made)
        print(f"| {horizon:,}, {window} | {' | '.join(errors)} |")


def _plot(curves: dict[str, tuple[list[int], list[float]]], x: str, y: str, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 6))
    colours = plt.get_cmap("tab20")
    for place, (name, (ticks, values)) in enumerate(curves.items()):
        axes.plot(ticks, values, label=name, linewidth=1, color=colours(place % 20))
    axes.set_xscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (counters, ratio, discover, unknown, people, speed, late, increases, windows):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        command.add_argument("--plot")
        command.add_argument("--runs", type=int, default={ratio: 4000, people: 10}.get(function, 200))
        command.add_argument("--trials", type=int, default=3 if function is discover else 60)
        command.add_argument("--events", type=int, default=2)
        command.add_argument("--ticks", type=int, default=12 if function is people else 365)
        if function in (unknown, people):
            command.add_argument("file")
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
