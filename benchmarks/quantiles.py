"""How far quantiles are off, beside one exponential mechanism for each. See docs/benchmarks.md.

    python benchmarks/quantiles.py [--quick] [--repeats 40] [--json out/quantiles.json]

Errors are of ranks: |share of the data at or below the answer - share asked for|, in rows, means over shares and draws.
With many equal values a share may lie anywhere in a jump: an answer there is off by 0. "choice" is `QuantileChoice`,
"tree" is `QuantileTree`, "auto" says which of them `quantiles` takes, and "each" is an exponential mechanism for every
share on the same bins, with the budget divided among them, and no interval. Data: normal, lognormal, and sizes of
baskets (whole numbers, most of them small, as of clicks).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.central import Grid, QuantileChoice, QuantileTree
from discreet.central.quantile_grid import BINS, finer
from discreet.noise import seeded_source
from discreet.questions.quantiles import mechanism_for

SHARES = {1: (0.5,), 3: (0.25, 0.5, 0.75), 9: tuple(np.arange(1, 10) / 10)}


def data_sets(rows: int) -> dict[str, tuple[np.ndarray[Any, Any], Grid]]:
    """Values, and a public grid for them."""
    random = np.random.default_rng(rows)
    return {
        "normal": (random.normal(50.0, 15.0, rows), Grid(0, 200)),
        "lognormal": (random.lognormal(3.0, 1.0, rows), Grid(0.01, 1e6, scale="log")),
        "lognormal, linear range": (random.lognormal(3.0, 1.0, rows), Grid(0, 1e6)),
        "baskets": (np.minimum(random.zipf(1.6, rows), 2500), Grid(0, 2500, 2500)),
    }


def off(values: np.ndarray[Any, Any], answers: np.ndarray[Any, Any], shares: tuple[float, ...]) -> float:
    """Mean error of the ranks, in rows."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, answers, side="left")
    upto = np.searchsorted(ordered, answers, side="right")
    wanted = np.asarray(shares) * len(values)
    return float(np.maximum(np.maximum(below - wanted, wanted - upto), 0.0).mean())


def chosen(counts: np.ndarray[Any, Any], grid: Grid, shares: tuple[float, ...], epsilon: float, random: Any) -> Any:
    """The exponential mechanism, once for each share; in its bin, the middle, or the whole number."""
    left = np.concatenate([[0], np.cumsum(counts)])
    answers = []
    for share in shares:
        wanted = share * left[-1]
        score = -np.maximum(np.maximum(left[:-1] - wanted, wanted - left[1:]), 0.0)
        weighed = score * epsilon / len(shares) / 2.0 + np.log(np.diff(grid.edges)) + random.gumbel(size=len(score))
        place = int(np.argmax(weighed))
        within = 0.0 if grid.of_whole_numbers else 0.5
        answers.append((1.0 - within) * grid.edges[place] + within * grid.edges[place + 1])
    return np.array(answers)


def measured(name: str, mechanism: Any, values: np.ndarray[Any, Any], shares: tuple[float, ...], repeats: int) -> Any:
    """Of so many draws: the error of ranks, half the ranks that an interval spans, and how often all of them hold."""
    grid = mechanism.grid
    found = mechanism.counts(grid.places(values))
    answers = [mechanism(found, seeded_source(run)) for run in range(repeats)]
    truth = np.clip(np.quantile(values, shares, method="inverted_cdf"), grid.low, grid.high)
    held = [all(r.lower <= t <= r.upper for r, t in zip(a, truth, strict=True)) for a in answers]
    ordered = np.sort(values)
    spans = [[np.searchsorted(ordered, end, side="right") for end in (r.lower, r.upper)] for a in answers for r in a]
    return {
        name: np.mean([off(values, np.array(a.values), shares) for a in answers]),
        f"half an interval, {name}": float(np.diff(spans, axis=1).mean()) / 2,
        f"hold, {name}": float(np.mean(held)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    random, found = np.random.default_rng(1), []
    for rows in (10_000,) if given.quick else (1_000, 10_000, 100_000):
        for name, (values, grid) in data_sets(rows).items():
            for epsilon in (1.0,) if given.quick else (0.1, 1.0):
                for shares in SHARES.values():
                    budgets = {"epsilon": dc.Budget(epsilon), "rho": dc.Budget.zcdp(epsilon**2 / 2)}
                    line: dict[str, Any] = {"data": name, "rows": rows, "epsilon": epsilon, "shares": len(shares)}
                    for kind, budget in budgets.items():
                        line[f"auto, {kind}"] = type(mechanism_for(budget, grid, shares, dc.Event())).__name__
                        for way, mechanism in (
                            ("tree", QuantileTree(budget, grid, shares)),
                            ("choice", QuantileChoice(budget, grid if grid.bins < BINS else finer(grid), shares)),
                        ):
                            line |= measured(f"{way}, {kind}", mechanism, values, shares, given.repeats)
                    counts = np.bincount(grid.places(values), minlength=grid.bins)
                    picks = [chosen(counts, grid, shares, epsilon, random) for _ in range(given.repeats)]
                    line["each"] = np.mean([off(values, pick, shares) for pick in picks])
                    found.append(line)
                    print("  ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in line.items()))
                    sys.stdout.flush()
    if given.json is not None:
        given.json.write_text(json.dumps(found, default=float))


if __name__ == "__main__":
    main()
