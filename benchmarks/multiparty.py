"""Multiparty protocols: error against bytes and epsilon (Figures 2 to 5, 7, 9, 10 of [MDP]), and the local oracles.

    python benchmarks/multiparty.py [--data baskets.dat] [--plots DIR] [--runs 5] [--only zipf] [--quick]

Bytes are those of all messages, headers included. "ours" is `Separation`, "ours-CS" `IndependentSketches`, "Noisy-CS"
`MergedSketch`, "OLH" `LocalHashing` with a report for every item. Errors are means over the runs; every run has another
round, so other hash functions.
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
UNIVERSE = 2**20


def heard(protocol, columns):
    """An aggregator that heard a message of every column."""
    aggregator = protocol.aggregator(max_reports=None)
    for number, column in enumerate(columns):
        aggregator.receive(protocol.party(number).encode(column))
    return aggregator


def figure(path: Path | None, name: str, panels) -> None:
    """Panels of (title, x label, y label, {series: (xs, ys)}, log x, log y) side by side."""
    if path is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    picture, axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 3.6), squeeze=False)
    for axis, (title, x, y, series, log_x, log_y) in zip(axes[0], panels, strict=True):
        for marker, (label, (xs, ys)) in zip("osD^vx*+", series.items(), strict=False):
            order = np.argsort(xs)
            axis.plot(np.array(xs)[order], np.array(ys)[order], marker=marker, label=label, linewidth=1.2)
        axis.set(title=title, xlabel=x, ylabel=y)
        axis.set_xscale("log" if log_x else "linear")
        values = sorted({x for xs, _ in series.values() for x in xs})
        if log_x and values[-1] < 32 * values[0]:
            axis.set_xticks(values, [f"{value:g}" for value in values])
            axis.minorticks_off()
        axis.set_yscale("log" if log_y else "linear")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    picture.tight_layout()
    path.mkdir(parents=True, exist_ok=True)
    picture.savefig(path / f"{name}.png", dpi=110)
    plt.close(picture)
    print(f"(plotted to {name}.png)")


# ---- Figures 2 to 4: Zipf ------------------------------------------------------------------------------------------


def zipf(skew: float, size: int, seed: int) -> np.ndarray:
    """Items with random numbers: hash functions spread consecutive ones more evenly, which would flatter sketches."""
    generator = np.random.default_rng(seed)
    weights = np.arange(1, UNIVERSE + 1, dtype=float) ** -skew
    return generator.permutation(UNIVERSE)[generator.choice(UNIVERSE, size, p=weights / weights.sum())]


def frequent(counts: np.ndarray) -> np.ndarray:
    """The most frequent items that together make up 85 percent."""
    order = np.argsort(-counts, kind="stable")
    return order[: np.searchsorted(np.cumsum(counts[order]), 0.85 * counts.sum()) + 1]


def relative_error(make, columns, counts, runs: int) -> tuple[float, float]:
    """(bytes, mean relative error of the frequent items)."""
    top, sizes, errors = frequent(counts), [], []
    for run in range(runs):
        aggregator = heard(make(f"run {run}"), columns)
        sizes.append(aggregator.bytes_received)
        errors.append(np.mean(np.abs(aggregator.estimate(top).values - counts[top]) / counts[top]))
    return float(np.mean(sizes)), float(np.mean(errors))


def zipf_methods(budget, quick: bool):
    """Every method with the settings that are tried."""
    ours = [(4, 1), (8, 1), (16, 1), (32, 1), (64, 1), (32, 3), (64, 3)]
    sketches = [(2, 1), (8, 1), (2, 3), (4, 3), (8, 3), (16, 3), (32, 3)]
    merged = [(128, 1), (512, 1), (32, 3), (128, 3), (256, 3), (512, 3), (128, 5), (256, 5)]
    if quick:
        ours, sketches, merged = ours[1:4:2], sketches[4:6], merged[3:6:2]
    return {
        "ours": [
            lambda r, c=c, rows=rows: MP.Separation(r, budget, UNIVERSE, items_per_column=c, rows=rows)
            for c, rows in ours
        ],
        "ours-CS": [
            lambda r, c=c, rows=rows: MP.IndependentSketches(
                r, budget, UNIVERSE, items_per_column=c, rows=rows, max_items=10**6
            )
            for c, rows in sketches
        ],
        "Noisy-CS": [
            lambda r, c=c, rows=rows: MP.MergedSketch(r, budget, UNIVERSE, columns=c, rows=rows) for c, rows in merged
        ],
    }


def settings(protocol) -> str:
    own = protocol.to_dict()["parameters"]
    width = own.get("items_per_column")
    setting = f"{own['columns']} columns" if width is None else f"{width:g} items a column"
    return f"{setting:>20} {own['rows']:>5}"


def frontier(points) -> list[tuple[float, float]]:
    """The settings that no other beats in both bytes and error."""
    best, kept = float("inf"), []
    for size, error in sorted(points):
        if error < best:
            best = error
            kept.append((size, error))
    return kept


def bytes_for(points, error: float) -> float:
    """The fewest bytes at which this error is reached."""
    return min((size for size, reached in points if reached <= error), default=float("nan"))


def olh_error(skew: float, size: int, budget) -> tuple[float, float]:
    items = zipf(skew, size, 1)
    counts = np.bincount(items, minlength=UNIVERSE)
    return relative_error(lambda r: MP.LocalHashing(r, budget, UNIVERSE), [items], counts, 1)


def communication(skew: float, runs: int, quick: bool, plots: Path | None) -> None:
    parties, size = (100, 100_000) if quick else (1000, 1_000_000)
    items = zipf(skew, size, 1)
    counts, columns = np.bincount(items, minlength=UNIVERSE), items.reshape(parties, -1)
    print(
        f"\nFigure 2: Zipf {skew:g}, {parties:,} parties, {size:,} items, epsilon 1, "
        f"{len(frequent(counts))} frequent items"
    )
    print(f"{'method':<10} {'setting':>20} {'rows':>5} {'bytes':>12} {'relative error':>15}")
    points: dict[str, list[tuple[float, float]]] = {}
    for method, makers in zipf_methods(dc.Budget(1.0), quick).items():
        for make in makers:
            # With hash functions that all parties share an error is rarely large, then huge: its mean takes more runs.
            point = relative_error(make, columns, counts, 8 * runs if method == "Noisy-CS" else runs)
            points.setdefault(method, []).append(point)
            print(
                f"{method:<10} {settings(make('r'))} {point[0]:>12,.0f} {point[1]:>15.4f}",
                flush=True,
            )
    points["OLH"] = [olh_error(skew, size, dc.Budget(1.0))]
    print(f"{'OLH':<10} {'':>26} {points['OLH'][0][0]:>12,.0f} {points['OLH'][0][1]:>15.4f}")
    print("fewest bytes to reach an error, and how many times those of ours:")
    best = sorted(
        {error for _, error in frontier(points["ours"])} | {error for _, error in frontier(points["Noisy-CS"])}
    )
    for error in best:
        needed = {method: bytes_for(found, error) for method, found in points.items()}
        reached = [
            f"{method} {size:,.0f} ({size / needed['ours']:.1f}x)" for method, size in needed.items() if size > 0
        ]
        print(f"  {error:.4f}: {', '.join(reached)}")
    series = {method: tuple(zip(*frontier(found), strict=True)) for method, found in points.items()}
    panel = (f"Zipf {skew:g}, epsilon 1", "bytes of all messages", "mean relative error", series, True, True)
    figure(plots, f"multiparty-zipf-{skew:g}", [panel])


def against_epsilon(skew: float, runs: int, quick: bool, plots: Path | None) -> None:
    parties, size = (100, 100_000) if quick else (1000, 1_000_000)
    items = zipf(skew, size, 1)
    counts, columns = np.bincount(items, minlength=UNIVERSE), items.reshape(parties, -1)
    print(f"\nFigure {3 if skew == 1.5 else 4}: Zipf {skew:g}, error against epsilon at about fixed bytes")
    print(f"{'epsilon':>8} {'method':<10} {'bytes':>12} {'relative error':>15}")
    series: dict[str, tuple[list[float], list[float]]] = {}
    for epsilon in (1.0, 4.0) if quick else (0.5, 1.0, 2.0, 4.0, 8.0):
        budget = dc.Budget(epsilon)
        makers = {
            "ours": lambda r, b=budget: MP.Separation(r, b, UNIVERSE, items_per_column=8),
            "ours-CS": lambda r, b=budget: MP.IndependentSketches(
                r, b, UNIVERSE, items_per_column=8, rows=3, max_items=10**6
            ),
            "Noisy-CS": lambda r, b=budget: MP.MergedSketch(r, b, UNIVERSE, columns=128, rows=3),
        }
        found = {method: relative_error(make, columns, counts, runs) for method, make in makers.items()}
        found["OLH"] = olh_error(skew, size, budget)
        for method, (size_of, error) in found.items():
            print(f"{epsilon:>8g} {method:<10} {size_of:>12,.0f} {error:>15.4f}", flush=True)
            xs, ys = series.setdefault(method, ([], []))
            xs.append(epsilon)
            ys.append(error)
    panel = (f"Zipf {skew:g}", "epsilon", "mean relative error", series, True, True)
    figure(plots, f"multiparty-epsilon-{skew:g}", [panel])


# ---- Figures 5, 7, 9, 10: clicks -----------------------------------------------------------------------------------


def clicks(path: str) -> np.ndarray:
    """The items of a file with one basket a line, with random numbers from 0 on, as in `zipf`."""
    items = np.array(Path(path).read_text().split(), np.int64)
    items -= items.min()
    return np.random.default_rng(0).permutation(int(items.max()) + 1)[items]


def parts(items: np.ndarray, parties: int, seed: int = 1) -> list[np.ndarray]:
    return np.array_split(np.random.default_rng(seed).permutation(items), parties)


def quality(values: np.ndarray, counts: np.ndarray, share: float) -> dict[str, float]:
    """Recall, precision, F-score and the relative error of the true heavy hitters."""
    threshold = share * counts.sum()
    truth, found = counts >= threshold, values >= threshold
    both = (truth & found).sum()
    recall, precision = both / max(1, truth.sum()), both / max(1, found.sum())
    error = np.mean(np.abs(values[truth] - counts[truth]) / counts[truth]) if truth.any() else 0.0
    return {"recall": recall, "precision": precision, "F": 2 * both / max(1, truth.sum() + found.sum()), "error": error}


def click_quality(make, items, parties: int, share: float, runs: int) -> tuple[float, dict[str, float]]:
    size = int(items.max()) + 1
    counts, sizes, found = np.bincount(items, minlength=size), [], []
    for run in range(runs):
        aggregator = heard(make(f"run {run}", size), parts(items, parties, run))
        sizes.append(aggregator.bytes_received)
        found.append(quality(aggregator.estimate(np.arange(size)).values, counts, share))
    return float(np.mean(sizes)), {name: float(np.mean([row[name] for row in found])) for name in found[0]}


def click_makers(total: int, parties: int, s: float, epsilon: float):
    """The three methods at about s columns a party, as in the paper, with three rows."""
    budget = dc.Budget(epsilon)
    per_column = max(1.0, total / parties / s)
    return {
        "ours": lambda r, u: MP.Separation(r, budget, u, items_per_column=per_column, rows=1),
        "ours-CS": lambda r, u: MP.IndependentSketches(
            r, budget, u, items_per_column=per_column, rows=3, max_items=10**6
        ),
        "Noisy-CS": lambda r, u: MP.MergedSketch(r, budget, u, columns=max(1, round(s)), rows=3),
    }


def show_quality(heading: str, row: dict[str, float], size: float) -> None:
    numbers = " ".join(f"{row[name]:>9.3f}" for name in ("recall", "precision", "F", "error"))
    print(f"{heading} {size:>12,.0f} {numbers}", flush=True)


_QUALITY = f"{'bytes':>12} {'recall':>9} {'precision':>9} {'F':>9} {'error':>9}"


def click_communication(items, runs: int, quick: bool, plots: Path | None) -> None:
    parties, share = 100, 0.001
    print(
        f"\nFigure 5: clicks, {parties} parties, epsilon 2, heavy hitters of {share:g}\n"
        f"{'method':<10} {'s':>6} {_QUALITY}"
    )
    series: dict[str, dict[str, tuple[list[float], list[float]]]] = {"F": {}, "error": {}}
    for s in (100, 500) if quick else (20, 50, 100, 200, 500, 1000):
        for method, make in click_makers(len(items), parties, s, 2.0).items():
            size, row = click_quality(make, items, parties, share, runs)
            show_quality(f"{method:<10} {s:>6}", row, size)
            for name, of_method in series.items():
                xs, ys = of_method.setdefault(method, ([], []))
                xs.append(size)
                ys.append(row[name])
    figure(plots, "multiparty-clicks-bytes", [
        ("clicks, 100 parties, epsilon 2", "bytes of all messages", "F-score", series["F"], True, False),
        ("heavy hitters of 0.1%", "bytes of all messages", "mean relative error", series["error"], True, True),
    ])  # fmt: skip


def click_share(items, runs: int, quick: bool, plots: Path | None) -> None:
    parties, s = 100, 500
    print(f"\nFigure 7: clicks, ours, {parties} parties\n{'epsilon':>8} {'share':>8} {_QUALITY}")
    series: dict[str, tuple[list[float], list[float]]] = {}
    for epsilon in (2.0,) if quick else (0.5, 2.0, 8.0):
        for share in (0.001, 0.01) if quick else (0.0001, 0.0005, 0.001, 0.005, 0.01):
            make = click_makers(len(items), parties, s, epsilon)["ours"]
            size, row = click_quality(make, items, parties, share, runs)
            show_quality(f"{epsilon:>8g} {share:>8g}", row, size)
            xs, ys = series.setdefault(f"epsilon {epsilon:g}", ([], []))
            xs.append(share)
            ys.append(row["F"])
    figure(plots, "multiparty-clicks-share", [("clicks, ours, 100 parties", "share", "F-score", series, True, False)])


def click_parties(items, runs: int, quick: bool, plots: Path | None) -> None:
    share = 0.001
    print(f"\nFigure 9: clicks, ours, epsilon 2, heavy hitters of {share:g}\n{'parties':>8} {_QUALITY}")
    scores, sizes = ([], []), ([], [])
    for parties in (100, 400) if quick else (100, 200, 400, 800, 1600):
        make = click_makers(len(items), parties, 5 / (share * np.sqrt(parties)), 2.0)["ours"]
        size, row = click_quality(make, items, parties, share, runs)
        show_quality(f"{parties:>8}", row, size)
        for (xs, ys), value in ((scores, row["F"]), (sizes, size)):
            xs.append(parties)
            ys.append(value)
    figure(plots, "multiparty-clicks-parties", [
        ("clicks, ours, epsilon 2", "parties", "F-score", {"ours": scores}, True, False),
        ("", "parties", "bytes of all messages", {"ours": sizes}, True, True),
    ])  # fmt: skip


def stream_over_time(items, quick: bool, plots: Path | None) -> None:
    """Figure 10: the window at six times, ours beside Misra-Gries sketches of dyadic blocks with as many counters."""
    parties, share, epsilon = 100, 0.005, 4.0
    size, steps = int(items.max()) + 1, len(items) // parties
    columns = np.random.default_rng(1).permutation(items)[: parties * steps].reshape(parties, steps)
    panels = []
    for part in (1,) if quick else (10, 1):
        window = steps // part
        b = max(1, min(16, window // 32))
        stream = MP.Stream("clicks", dc.Budget(epsilon), size, epoch_steps=b, window=window, columns=8)
        print(
            f"\nFigure 10: clicks, {parties} parties of {steps:,} steps, window {window:,}, epochs of {b}, "
            f"epsilon {epsilon:g}, share {share:g}"
        )
        print(f"{'method':<8} {'step':>6} {_QUALITY}")
        counters = MP.MergedMisraGriesStream(
            "clicks", dc.Budget(epsilon), size, epoch_steps=b, window=window, capacity=8
        )
        aggregators = {}
        for method, made in (("ours", stream), ("PDCH", counters)):
            aggregators[method] = made.aggregator()
            for number in range(parties):
                aggregators[method].receive(made.party(number).feed(columns[number]))
        series: dict[str, tuple[list[float], list[float]]] = {}
        for time_ in [window * i // 6 for i in range(1, 7)]:
            counts = np.bincount(columns[:, max(0, time_ - window) : time_].ravel(), minlength=size)
            for method, aggregator in aggregators.items():
                row = quality(aggregator.estimate(np.arange(size), time_).values, counts, share)
                show_quality(f"{method:<8} {time_:>6}", row, aggregator.bytes_received)
                xs, ys = series.setdefault(method, ([], []))
                xs.append(time_)
                ys.append(row["F"])
        panels.append((f"window {window:,} steps", "step", "F-score", series, False, False))
    figure(plots, "multiparty-stream", panels)


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
            for run in range(1 if quick else min(runs, 3)):
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
    parser.add_argument("--plots", type=Path, help="a directory for the plots (needs matplotlib)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="fewer parties, settings and runs")
    parser.add_argument("--only", choices=["zipf", "epsilon", "clicks", "stream", "oracles", "consistent"])
    arguments = parser.parse_args()
    quick, plots, runs = arguments.quick, arguments.plots, 1 if arguments.quick else arguments.runs
    skews = (1.5,) if quick else (1.5, 2.0)

    def wanted(name: str) -> bool:
        return arguments.only in (None, name)

    if wanted("oracles"):
        oracles(quick)
    if wanted("consistent"):
        size, reports = (1_000, 30_000) if quick else (17_034, 294_022)
        weights = np.arange(1, size + 1) ** -1.1
        drawn = np.random.default_rng(0).choice(size, reports, p=weights / weights.sum())
        consistent("Zipf 1.1", drawn, size, runs, quick)
    for skew in skews if wanted("zipf") else ():
        communication(skew, runs, quick, plots)
    for skew in skews if wanted("epsilon") else ():
        against_epsilon(skew, min(runs, 3), quick, plots)
    if not arguments.data:
        print("\nno --data: the figures on clicks are left out")
        return
    items = clicks(arguments.data)
    if wanted("consistent"):
        places = np.unique(items, return_inverse=True)[1]
        consistent("clicks", places, int(places.max()) + 1, runs, quick)
    if wanted("clicks"):
        click_communication(items, runs, quick, plots)
        click_share(items, min(runs, 3), quick, plots)
        click_parties(items, min(runs, 3), quick, plots)
    if wanted("stream"):
        stream_over_time(items, quick, plots)


if __name__ == "__main__":
    main()
