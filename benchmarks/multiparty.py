"""The local oracles of `multiparty`: speed, bytes and errors beside theory and a peer, and consistent estimates.

    python benchmarks/multiparty.py [--data baskets.dat] [--runs 3] [--only oracles] [--quick]

Errors are means over the runs; every run has another round, so other hash functions. The figures of [MDP] are in
`papers/`.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from turns import machine, timed

import discreet as dc

MP = dc.multiparty


def heard(protocol, columns):
    """An aggregator that heard a message of every column."""
    aggregator = protocol.aggregator(max_reports=None)
    for number, column in enumerate(columns):
        aggregator.receive(protocol.party(number).encode(column))
    return aggregator


# ---- local oracles -------------------------------------------------------------------------------------------------


def oracles(quick: bool) -> None:
    reports, domain, epsilon = (100_000 if quick else 1_000_000), 1024, 1.0
    print(f"\nlocal oracles: {reports:,} reports, {domain} items, epsilon {epsilon:g}; {machine()}, medians of 3")
    print(f"{'oracle':<18} {'encode s':>9} {'estimate s':>10} {'bytes':>10} {'MSE':>12} {'theory':>12} {'ratio':>7}")
    items = np.minimum(np.random.default_rng(0).geometric(0.02, reports) - 1, domain - 1)
    counts = np.bincount(items, minlength=domain)
    e = np.exp(epsilon)
    g = round(e) + 1
    keep = e / (e + g - 1)
    q = np.exp(-epsilon / 2)
    s = max(1, int(np.ceil((1 / q - 1) ** 2 * q)))
    theory = {
        "HadamardResponse": reports * ((e + 1) / (e - 1)) ** 2,
        "LocalHashing": reports * (1 / g) * (1 - 1 / g) / (keep - 1 / g) ** 2,
        "LocalSketch": reports * (2 * q / (1 - q) ** 2 + 1 / s),
    }
    for name, expected in theory.items():
        spent, errors = [], []
        for run in range(3):
            protocol = getattr(MP, name)(f"run {run}", dc.Budget(epsilon), domain)
            aggregator, party = protocol.aggregator(max_reports=None), protocol.party(0)
            message, encoded = timed(lambda: party.encode(items))  # noqa: B023
            aggregator.receive(message)
            found, estimated = timed(lambda: aggregator.estimate(np.arange(domain)))  # noqa: B023
            spent.append((encoded, estimated))
            errors.append(np.mean((found.values - counts) ** 2))
        mean = float(np.mean(errors))
        encode, estimate = np.median(spent, axis=0)
        times = f"{encode:>9.3f} {estimate:>10.3f} {len(message):>10,}"
        print(f"{name:<18} {times} {mean:>12.4g} {expected:>12.4g} {mean / expected:>7.3f}", flush=True)
    peer(epsilon, domain, quick)


def peer(epsilon: float, domain: int, quick: bool) -> None:
    """The OLH of pure-ldp, where it is installed (it needs scikit-learn and statsmodels beside what it declares)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import xxhash
            from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    except ImportError as error:
        print(f"pure-ldp is not installed ({error.name}); with it: pip install pure-ldp scikit-learn statsmodels")
        return
    # It was written for an xxhash that took text and cut the seed to 32 bits.
    plain = xxhash.xxh32
    xxhash.xxh32 = lambda text, seed: plain(text.encode(), seed=seed & 0xFFFFFFFF)
    reports = 1_000 if quick else 5_000
    items = np.minimum(np.random.default_rng(0).geometric(0.02, reports), domain).tolist()
    counts = np.bincount(items, minlength=domain + 1)[1:]
    client, server = LHClient(epsilon, domain, use_olh=True), LHServer(epsilon, domain, use_olh=True)
    private, encode = timed(lambda: [client.privatise(item) for item in items])

    def answers() -> np.ndarray:
        for report in private:
            server.aggregate(report)
        return np.array([server.estimate(item, suppress_warnings=True) for item in range(1, domain + 1)])

    found, estimate = timed(answers)
    error = np.mean((found - counts) ** 2)
    print(
        f"pure-ldp OLH, {reports:,} reports: encode {encode:.3f} s, aggregate and estimate {estimate:.2f} s, "
        f"MSE {error:.4g}"
    )
    same = MP.LocalHashing("peer", dc.Budget(epsilon), domain)
    values, both = timed(lambda: heard(same, [np.array(items) - 1]).estimate(np.arange(domain)).values)
    print(f"LocalHashing, the same reports: both {both:.3f} s, MSE {np.mean((values - counts) ** 2):.4g}")


# ---- consistent estimates --------------------------------------------------------------------------------------------


def consistent(name: str, items: np.ndarray, size: int, runs: int, quick: bool) -> None:
    """Raw estimates, raw ones cut at 0, and consistent ones, from the same reports."""
    counts = np.bincount(items, minlength=size)
    frequent = np.argsort(-counts, kind="stable")[:100]
    some = np.random.default_rng(1).random((20, size)) < 0.1
    print(f"\n{name}: {len(items):,} reports, {size:,} items; root mean squared errors, mean error of sums of a tenth")
    print(f"{'oracle':<18} {'epsilon':>7} {'estimates':<11} {'all':>8} {'top 100':>8} {'sums':>10} {'covered':>8}")
    for oracle in ("HadamardResponse", "LocalHashing"):
        for epsilon in (1.0,) if quick else (1.0, 2.0, 4.0):
            rows: dict[str, list[tuple[float, ...]]] = {}
            for run in range(1 if quick else runs):
                aggregator = heard(getattr(MP, oracle)(f"run {run}", dc.Budget(epsilon), size), [items])
                found = aggregator.estimate(np.arange(size), consistent=True)
                raw = MP.Estimates(found.unbiased, found.variances, found.guarantee)
                for kind, values, (lower, upper) in (
                    ("raw", raw.values, raw.bounds(0.95)),
                    ("cut at 0", np.maximum(raw.values, 0.0), raw.bounds(0.95)),
                    ("consistent", found.values, found.bounds(0.95)),
                ):
                    off = values - counts
                    sums = np.abs(some @ off).mean()
                    hit = np.mean((lower <= counts) & (counts <= upper))
                    errors = (np.mean(off**2), np.mean(off[frequent] ** 2), sums, hit)
                    rows.setdefault(kind, []).append(errors)
            for kind, errors in rows.items():
                every, top, sums, hit = np.mean(errors, axis=0)
                print(
                    f"{oracle:<18} {epsilon:>7g} {kind:<11} {every**0.5:>8,.0f} {top**0.5:>8,.0f} {sums:>10,.0f} "
                    f"{hit:>8.1%}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("DISCREET_CLICKS"), help="a file of clicks, one basket a line")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="fewer reports and runs")
    parser.add_argument("--only", choices=["oracles", "consistent"])
    arguments = parser.parse_args()
    quick, runs = arguments.quick, arguments.runs
    if arguments.only != "consistent":
        oracles(quick)
    if arguments.only == "oracles":
        return
    size, reports = (1_000, 30_000) if quick else (17_034, 294_022)
    weights = np.arange(1, size + 1) ** -1.1
    drawn = np.random.default_rng(0).choice(size, reports, p=weights / weights.sum())
    consistent("Zipf 1.1", drawn, size, runs, quick)
    if arguments.data:
        places = np.unique(np.array(Path(arguments.data).read_text().split(), np.int64), return_inverse=True)[1]
        consistent("clicks", places, int(places.max()) + 1, runs, quick)
    else:
        print("\nno --data: clicks are left out")


if __name__ == "__main__":
    main()
