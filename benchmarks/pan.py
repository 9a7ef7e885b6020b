"""Pan-private estimators: error against sample size and epsilon, the paper's versions beside ours, and update speed.

    python benchmarks/pan.py [--runs 40] [--quick] [--only speed|errors|heavy|modular|distinct|intrusions|coverage]

Errors are root-mean-square over the runs, of the estimate before it is cut to the possible range. The paper's versions
have the corrected noise (the printed one is not private) and the same total epsilon and sample.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from turns import calls_in_turns, machine

import discreet as dc

PAN = dc.pan


def stream(universe: int, seed: int = 1, most: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Counts with a heavy tail, cut at `most`, for seven tenths of a universe, and the stream in random order."""
    rng = np.random.default_rng(seed)
    counts = np.minimum(rng.zipf(1.5, universe), most) * (rng.random(universe) < 0.7)
    events = np.repeat(np.arange(universe), counts)
    rng.shuffle(events)
    return counts, events


def measure(make, events, truth, runs: int) -> tuple[float, float, float]:
    """Root-mean-square error, mean half-width of the interval, share of intervals that cover."""
    errors, widths, covered = [], [], 0
    for _ in range(runs):
        estimator = make()
        estimator.update(events)
        estimate = estimator.release()
        value = estimate.unbiased if np.isfinite(estimate.unbiased) else estimate.value
        errors.append(value - truth)
        widths.append((estimate.upper - estimate.lower) / 2)
        covered += estimate.lower <= truth <= estimate.upper
    return float(np.sqrt(np.mean(np.square(errors)))), float(np.mean(widths)), covered / runs


def show(name: str, epsilon: float, size: int, result: tuple[float, float, float]) -> None:
    print(f"{name:<34} {epsilon:>7g} {size:>9,} {result[0]:>12.5g} {result[1]:>11.4g} {result[2]:>8.2f}")


def heading(title: str) -> None:
    print(f"\n{title}\n{'estimator':<34} {'epsilon':>7} {'size':>9} {'rms error':>12} {'half-width':>11} {'covers':>8}")


def errors(runs: int, size: int, epsilon: float) -> None:
    counts, events = stream(size)
    budget = dc.Budget(epsilon)
    heading(f"universe and sample of {size:,} elements, epsilon {epsilon:g}")
    seen, mean, ones = (counts > 0).mean(), np.minimum(counts, 8).mean(), (counts == 1).mean()
    rows = [("Density", lambda: PAN.Density(size, budget=budget), seen, runs)]
    if epsilon <= 1.5:
        rows.append(
            ("Density, the paper's coins", lambda: PAN.Density(size, budget=budget, response="paper"), seen, runs)
        )
    rows += [
        ("CroppedMean t=8", lambda: PAN.CroppedMean(size, 8, budget=budget), mean, runs),
        ("Incidence t=1", lambda: PAN.Incidence(size, 1, budget=budget), ones, runs),
        (
            "Incidence t=1, the paper's primes",
            lambda: PAN.Incidence(size, 1, budget=budget, method="primes", max_count=2**14),
            ones,
            min(runs, 5),
        ),
    ]
    for name, make, truth, repeats in rows:
        show(name, epsilon, size, measure(make, events, truth, repeats))


def heavy(runs: int, size: int) -> None:
    counts, events = stream(size)
    k = 8
    heading(f"fraction that occurred at least {k} times: rho = 1, N = 2^14")
    ramp = np.clip((counts - k // 2) / (k - k // 2), 0, 1).mean()
    ours = measure(lambda: PAN.HeavyFraction(size, k, budget=dc.Budget(1.0)), events, ramp, runs)
    show("HeavyFraction", 1.0, size, ours)
    tables = measure(lambda: PAN.HeavyFraction(size, k, budget=dc.Budget(1.0), method="two_tables"), events, ramp, runs)
    show("HeavyFraction, two tables", 1.0, size, tables)
    # The recursion aims at a close stream; the fraction itself is as good a target at this size of error.
    exact = (counts >= k).mean()
    ladder = {
        response: measure(
            lambda response=response: PAN.HeavyFraction(
                size, k, budget=dc.Budget(1.0), method="ladder", max_count=2**14, response=response
            ),
            events,
            exact,
            runs,
        )
        for response in ("tight", "paper")
    }
    show("HeavyFraction, recursion, tight", 1.0, size, ladder["tight"])
    show("HeavyFraction, recursion, paper", 1.0, size, ladder["paper"])
    from_heavy = measure(lambda: PAN.HeavyFraction(size, k, budget=dc.Budget(1.0)), events, exact, runs)
    print(f"ours against the fraction itself (with the ramp's bias): rms {from_heavy[0]:.5g}")
    print(f"ratio, two tables / ours: {tables[0] / ours[0]:.2g}")
    print(f"ratio, recursion (tight coins) / ours: {ladder['tight'][0] / ours[0]:.0f}")
    print(f"ratio, recursion (paper's coins) / ours: {ladder['paper'][0] / ours[0]:.0f}")


def modular(runs: int, size: int) -> None:
    counts, events = stream(size)
    print(f"\nmodular incidence, {size:,} elements, epsilon 1: rms error of a fraction, mean over residues")
    for k in (3, 7, 31, 103):
        truth = np.bincount(counts % k, minlength=k) / size
        for shift in ("response", "squares", "paper"):
            if shift == "squares" and k == 3:
                continue
            for solver in ("fft", "linear_program"):
                off = []
                for _ in range(min(runs, 10)):
                    estimator = PAN.ModularIncidence(size, k, budget=dc.Budget(1.0), shift=shift, solver=solver)
                    estimator.update(events)
                    off.append(np.mean((np.array(estimator.release().values) - truth) ** 2))
                print(f"  k={k:<4} shift={shift:<9} solver={solver:<15} {np.sqrt(np.mean(off)):.5f}")


def distinct(runs: int) -> None:
    print("\ndistinct count, epsilon 1 (relative rms error), beside HyperLogLog, which has no privacy")
    try:
        from datasketches import hll_sketch
    except ImportError:
        hll_sketch = None
    for count in (1_000, 10_000, 100_000, 1_000_000):
        items = np.arange(count)
        off = []
        for run in range(runs):
            estimator = PAN.DistinctCount(budget=dc.Budget(1.0))
            estimator.update(items + run * 10**9)
            off.append(estimator.release().value / count - 1)
        line = f"  {count:>10,}: DistinctCount {np.sqrt(np.mean(np.square(off))):.4f}"
        if hll_sketch is not None and count <= 100_000:
            peer = []
            for run in range(min(runs, 5)):
                sketch = hll_sketch(14)
                for item in (items + run * 10**9).tolist():
                    sketch.update(item)
                peer.append(sketch.get_estimate() / count - 1)
            line += f", HLL(14) {np.sqrt(np.mean(np.square(peer))):.4f}"
        print(line)


def intrusions(runs: int) -> None:
    counts, events = stream(20_000)
    seen = (counts > 0).mean()
    print("\nannounced intrusions: density of 20,000 elements, epsilon 1 for each look and 0.1 for the output")
    for announced in range(4):
        off = []
        for _ in range(runs):
            epsilon = 1.0 * (1 + announced) + 0.1
            estimator = PAN.Density(
                20_000, budget=dc.Budget(epsilon), announced_intrusions=announced, output_share=0.1 / epsilon
            )
            for part in np.array_split(events, announced + 1)[:-1]:
                estimator.update(part)
                estimator.announce_intrusion()
            estimator.update(np.array_split(events, announced + 1)[-1])
            off.append(estimator.release().unbiased - seen)
        print(f"  {announced} announced: mean {np.mean(off):+.4f}, rms {np.sqrt(np.mean(np.square(off))):.4f}")


def coverage(runs: int = 1000) -> None:
    """How many of the 95% intervals hold the truth."""
    size = 2_000
    counts, events = stream(size, most=40)
    budget = dc.Budget(1.0)
    ramp = np.clip((counts - 4) / 4, 0, 1).mean()
    ones = (counts == 1).mean()
    cases = {
        "Density": (lambda: PAN.Density(size, budget=budget), (counts > 0).mean()),
        "Density, half of the universe": (
            lambda: PAN.Density(size, budget=budget, sample_size=1000),
            (counts > 0).mean(),
        ),
        "Density, the paper's coins": (lambda: PAN.Density(size, budget=budget, response="paper"), (counts > 0).mean()),
        "CroppedMean t=8": (lambda: PAN.CroppedMean(size, 8, budget=budget), np.minimum(counts, 8).mean()),
        "HeavyFraction k=8": (lambda: PAN.HeavyFraction(size, 8, budget=budget), ramp),
        "HeavyFraction k=8, two tables": (
            lambda: PAN.HeavyFraction(size, 8, budget=budget, method="two_tables"),
            ramp,
        ),
        "Incidence t=1": (lambda: PAN.Incidence(size, 1, budget=budget), ones),
        "Incidence t=1, the paper's primes": (
            lambda: PAN.Incidence(size, 1, budget=budget, method="primes", max_count=64, primes=6),
            ones,
        ),
        "DistinctCount, 512 buckets": (
            lambda: PAN.DistinctCount(budget=budget, buckets=512, levels=10),
            float((counts > 0).sum()),
        ),
    }
    print(f"\n95% intervals that hold the truth, of {runs:,} runs; epsilon 1, {size:,} elements")
    for name, (make, truth) in cases.items():
        error, width, covered = measure(make, events, truth, runs)
        print(f"  {name:<36} {round(covered * runs):>5}   half-width {width:>9.4g}, rms error {error:>9.4g}")
    for k in (3, 7):
        truth = np.bincount(counts % k, minlength=k) / size
        covered = 0
        for _ in range(runs):
            estimator = PAN.ModularIncidence(size, k, budget=budget)
            estimator.update(events)
            estimate = estimator.release()
            covered += bool((np.array(estimate.lower) <= truth).all() and (truth <= np.array(estimate.upper)).all())
        print(f"  {f'ModularIncidence k={k}, all at once':<36} {covered:>5}")
    covered, rng = 0, np.random.default_rng(5)
    vectors = rng.integers(0, 2, (2000, 6))
    for _ in range(runs):
        counter = PAN.InnerProductCounter(6, budget=budget)
        positions = np.repeat(np.arange(6), 200)
        counter.vote(positions, positions % 2)
        truth = int((vectors @ counter.vector % 2).sum())
        counter.update(vectors)
        estimate = counter.release()
        covered += estimate.lower <= truth <= estimate.upper
    print(f"  {'InnerProductCounter, 2,000 vectors':<36} {covered:>5}")


def speed() -> None:
    print("\nupdates, 10 million int64 items in one batch, one core, CPU time (million items/s)")
    print(f"  {machine()}; medians of 7 in turns")
    rng = np.random.default_rng(0)
    cases = {
        "Density, m = universe = 100,000": (lambda: PAN.Density(10**5, budget=dc.Budget(1.0)), 10**5),
        "Density, m = 100,000 of 1,000,000": (lambda: PAN.Density(10**6, budget=dc.Budget(1.0)), 10**6),
        "Density, m = 100,000 of 2^40": (lambda: PAN.Density(2**40, budget=dc.Budget(1.0)), 2**40),
        "CroppedMean t=16, m = 100,000": (lambda: PAN.CroppedMean(10**5, 16, budget=dc.Budget(1.0)), 10**5),
        "HeavyFraction k=16, m = 100,000": (lambda: PAN.HeavyFraction(10**5, 16, budget=dc.Budget(1.0)), 10**5),
        "Incidence t=1, m = 100,000": (lambda: PAN.Incidence(10**5, 1, budget=dc.Budget(1.0)), 10**5),
        "DistinctCount": (lambda: PAN.DistinctCount(budget=dc.Budget(1.0)), 2**40),
    }
    made = {universe: rng.integers(0, universe, 10**7) for _, universe in cases.values()}
    calls = {name: partial(make().update, made[universe]) for name, (make, universe) in cases.items()}
    for name, cost in calls_in_turns(calls, 7).items():
        print(f"  {name:<36} {10**7 / cost.cpu / 1e6:>7.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--only", choices=["speed", "errors", "heavy", "modular", "distinct", "intrusions", "coverage"])
    arguments = parser.parse_args()
    sizes = [2_000, 20_000] if arguments.quick else [2_000, 20_000, 100_000]

    def all_errors() -> None:
        for size in sizes:
            for epsilon in (0.5, 1.0, 2.0):
                errors(arguments.runs, size, epsilon)

    parts = {
        "speed": speed,
        "heavy": lambda: heavy(arguments.runs, sizes[-1]),
        "errors": all_errors,
        "modular": lambda: modular(arguments.runs, 20_000),
        "distinct": lambda: distinct(min(arguments.runs, 20)),
        "intrusions": lambda: intrusions(arguments.runs),
        "coverage": coverage,
    }
    for name, part in parts.items():
        if arguments.only in (None, name):
            part()


if __name__ == "__main__":
    main()
