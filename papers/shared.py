"""What every script of this folder shares: streams, protocols that are heard, and figures with their verdicts.

    python papers/ss10.py [--full] [--data FILE ...] [--out out/papers]

A script draws the paper's methods and ours in one picture with the paper's axes, writes its numbers as CSV, and checks
what the paper says of it: `figure.says(sentence, holds)` fails the script where it does not hold, and with `because` it
is stated as a difference, which is checked too. `--full` takes the paper's sizes and numbers of runs; without it a
script takes seconds. The picture's title says which. `--data` takes the papers' files, told apart by how they begin;
without them Zipf streams stand in: `kosarak`, `aol`, `caida`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import ipaddress
import math
import os
import re
import sys
import textwrap
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.noise import seeded_source

Counts = npt.NDArray[np.int64]

# Told apart without colour: every method has its own marker and dashes.
_LOOKS = [
    {"marker": "o", "linestyle": "-", "color": "#1b6ca8"},
    {"marker": "s", "linestyle": "--", "color": "#c1440e"},
    {"marker": "^", "linestyle": "-.", "color": "#3a7d44"},
    {"marker": "D", "linestyle": ":", "color": "#6a4c93"},
    {"marker": "v", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "color": "#8c6d1f"},
    {"marker": "P", "linestyle": (0, (8, 2)), "color": "#444444"},
    {"marker": "X", "linestyle": (0, (2, 2)), "color": "#b03a72"},
    {"marker": "*", "linestyle": (0, (1, 3)), "color": "#20808d"},
]
_STYLE = {
    "figure.dpi": 130, "font.size": 10.5, "axes.titlesize": 10.5, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.25, "grid.linewidth": 0.6, "lines.linewidth": 1.4, "legend.frameon": False,
    "legend.fontsize": 10, "legend.handlelength": 3.2,
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """How large, on which data, and where to."""

    full: bool
    data: dict[str, Path]  # by what they are: "clicks", "names", "addresses"
    out: Path

    def choose(self, full: Any, quick: Any) -> Any:
        """The paper's setting, or a smaller one."""
        return full if self.full else quick


def settings(description: str | None) -> Settings:
    """What the command line of a script says."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the paper's sizes and numbers of runs")
    usual = [Path(os.environ["DISCREET_CLICKS"])] if os.environ.get("DISCREET_CLICKS") else []
    told = "a data set of the papers: clicks (Kosarak), names (AOL) or addresses (CAIDA); repeat it"
    parser.add_argument("--data", type=Path, action="append", default=usual, help=told)
    parser.add_argument("--out", type=Path, default=Path("out/papers"), help="where pictures and CSV go")
    arguments = parser.parse_args()
    return Settings(arguments.full, {kind_of(path): path for path in arguments.data}, arguments.out)


@dataclass
class Panel:
    """One pair of axes: curves of means over runs, with bars from the 5th to the 95th percentile."""

    title: str
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    rows: list[tuple[str, float, float, float, float]] = field(default_factory=list)

    def add(self, method: str, x: float, values: float | Iterable[float]) -> None:
        """The values of all runs at x. Where most runs have none (nothing was found), neither has the curve."""
        given = np.atleast_1d(np.asarray(list(values) if isinstance(values, Iterable) else values, float))
        runs = given[~np.isnan(given)]
        if 2 * len(runs) < len(given):
            return
        if np.isinf(runs).any():  # so is the mean
            self.rows.append((method, x, math.inf, float(runs.min()), math.inf))
        elif len(runs):
            self.rows.append((method, x, float(runs.mean()), *np.percentile(runs, (5, 95)).tolist()))

    def curve(self, method: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """xs and means of a method, by x."""
        points = sorted((x, mean) for name, x, mean, _, _ in self.rows if name == method)
        return np.array([x for x, _ in points]), np.array([mean for _, mean in points])

    def mean(self, method: str, x: float | None = None) -> float:
        """The mean of a method at x, or over all x."""
        xs, means = self.curve(method)
        return float(means.mean() if x is None else means[xs == x][0])


class Figure:
    """Panels side by side, and what the paper says of them."""

    def __init__(self, name: str, title: str, settings: Settings, columns: int = 3) -> None:
        size = "full size" if settings.full else "quick size"
        self.name, self.title, self.settings, self.columns = name, f"{title} ({size})", settings, columns
        self.panels: list[Panel] = []
        self.verdicts: list[str] = []
        self.wrong = False
        print(f"\n{name}: {self.title}", flush=True)

    def panel(self, title: str, x: str, y: str, *, log_x: bool = False, log_y: bool = False) -> Panel:
        self.panels.append(Panel(title, x, y, log_x, log_y))
        return self.panels[-1]

    def says(self, sentence: str, holds: bool, because: str | None = None) -> None:
        """What the paper says, whether it holds here, and why not if we know that it does not."""
        if because is None:
            verdict, expected = "agrees" if holds else "DOES NOT HOLD", holds
        else:
            verdict, expected = "AGREES, against what is noted" if holds else f"differs because {because}", not holds
        self.wrong |= not expected
        self.verdicts.append(f'"{sentence}": {verdict}')
        print(textwrap.fill(f"  {self.verdicts[-1]}", 110, subsequent_indent="    "), flush=True)

    def save(self) -> None:
        """Write the picture and the numbers; exit with 1 where a sentence was not as expected."""
        out = self.settings.out
        out.mkdir(parents=True, exist_ok=True)
        with open(out / f"{self.name}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["panel", "method", "x", "mean", "p5", "p95"])
            for panel in self.panels:
                writer.writerows([panel.title, name, *(f"{v:.6g}" for v in row)] for name, *row in panel.rows)
        (out / f"{self.name}.txt").write_text("\n".join([self.title, *self.verdicts]) + "\n")
        self._draw(out / f"{self.name}.png")
        if self.wrong:
            sys.exit(1)

    def _draw(self, path: Path) -> None:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        methods = list(dict.fromkeys(name for panel in self.panels for name, *_ in panel.rows))
        columns = min(self.columns, len(self.panels))
        rows = -(-len(self.panels) // columns)
        wide = 9.3 / 3 if columns > 2 else 4.0
        title = textwrap.wrap(self.title, int(13 * wide * columns))
        beside = max(1, int(11 * wide * columns / (max(map(len, methods)) + 9)))
        lines = -(-len(methods) // beside)
        above, below = 0.2 + 0.2 * len(title), 0.05 + 0.22 * lines  # inches
        with plt.rc_context(_STYLE):
            size = (wide * columns, 2.5 * rows + above + below)
            picture, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
            for axis, panel in zip(axes.flat, self.panels, strict=False):
                self._panel(axis, panel, methods)
            for axis in axes.flat[len(self.panels) :]:
                axis.set_visible(False)
            handles = dict(zip(*reversed(_legend(axes)), strict=True))
            heading = picture.suptitle("\n".join(title), fontsize=11.5, y=1 - 0.1 / size[1], va="top")
            heading.set_in_layout(False)
            picture.legend(handles.values(), handles, loc="lower center", ncols=-(-len(methods) // lines))
            picture.tight_layout(rect=(0, below / size[1], 1, 1 - (above - 0.1) / size[1]))
            picture.savefig(path)
            plt.close(picture)

    @staticmethod
    def _panel(axis: Any, panel: Panel, methods: Sequence[str]) -> None:
        finite = [mean for _, _, mean, *_ in panel.rows if np.isfinite(mean)]
        top = max(finite, default=1.0) * (4.0 if panel.log_y else 1.2) or 1.0
        for place, name in enumerate(dict.fromkeys(name for name, *_ in panel.rows)):
            points = np.array(sorted(row for method, *row in panel.rows if method == name))
            x, mean, low, high = points.T
            if (gone := np.isinf(mean)).any():  # above everything else, with a sign
                mean[gone] = low[gone] = high[gone] = top
                axis.margins(y=0.2)
                for place_x in x[gone]:
                    axis.annotate("∞", (place_x, top), (0, 4), textcoords="offset points", ha="center")
            spread = np.clip(np.array([mean - low, high - mean]), 0, None)
            look = _LOOKS[methods.index(name) % len(_LOOKS)]
            bars, few = spread if spread.any() else None, max(1, len(x) // 12)
            size = max(3.0, 6.0 - 0.7 * place)  # where lines lie on each other, the markers below are still seen
            own = {"label": name, "markersize": size, "markevery": few, "capsize": 2, "elinewidth": 0.7, **look}
            axis.errorbar(x, mean, bars, **own)
        axis.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
        if panel.y in ("recall", "precision", "F-score"):
            axis.set_ylim(0, 1.05)
        _ticks(axis.xaxis, [x for _, x, *_ in panel.rows], panel.log_x)
        _ticks(axis.yaxis, finite or [top], panel.log_y)


def _ticks(axis: Any, values: Sequence[float], log: bool) -> None:
    """Few ticks, with labels that do not touch."""
    from matplotlib import ticker

    if not log:
        axis.set_major_locator(ticker.MaxNLocator(4))
    else:
        positive = [value for value in values if value > 0]
        scale = {} if len(positive) == len(values) else {"linthresh": min(positive)}
        getattr(axis.axes, f"set_{axis.axis_name}scale")("symlog" if scale else "log", **scale)
        decades = np.log10(max(positive) / min(positive))
        if not scale:
            parts = (1, 2, 5) if decades < 1 else (1, 3) if decades < 1.7 else (1,)
            axis.set_major_locator(ticker.LogLocator(subs=parts, numticks=5))
        axis.set_minor_formatter(ticker.NullFormatter())
    axis.set_major_formatter(ticker.FuncFormatter(_short))


def _short(value: float, _: Any = None) -> str:
    """12,000 as 12k, 0.0001 as a power of ten."""
    size = abs(value)
    if size and (size < 1e-3 or size >= 1e9):
        power = int(np.floor(np.log10(size) + 1e-9))
        return f"${'' if np.isclose(size, 10.0**power) else f'{value / 10.0**power:.2g}·'}10^{{{power}}}$"
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if size >= unit:
            return f"{value / unit:.4g}{letter}"
    return f"{value:.3g}"


def _legend(axes: Any) -> tuple[list[Any], list[str]]:
    handles: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return list(handles.values()), list(handles)


# ---- streams -------------------------------------------------------------------------------------------------------


def zipf(skew: float, length: int, universe: int, seed: int = 1) -> Counts:
    """Items with P[rank r] proportional to r^-skew, numbered at random: consecutive numbers would flatter hashes."""
    rng = np.random.default_rng(seed)
    weights = np.cumsum(np.arange(1, universe + 1, dtype=float) ** -skew)
    return rng.permutation(universe)[np.searchsorted(weights, rng.random(length) * weights[-1])]


def _lines(path: Path) -> Iterable[str]:
    with gzip.open(path, "rt", errors="replace") if path.suffix == ".gz" else open(path, errors="replace") as file:
        yield from file


def _first(line: str) -> str:
    return re.split(r"[\s,;|]", line.strip(), maxsplit=1)[0]


def kind_of(path: Path) -> str:
    """What a file holds, by its first two lines: a header may come before addresses."""
    lines = [line for line, _ in zip(_lines(path), range(2), strict=False)]
    if lines and "ClickURL" in lines[0]:
        return "names"
    return "addresses" if any(_is_address(_first(line)) for line in lines) else "clicks"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def kosarak(settings: Settings, length: int = 990_002) -> Counts:
    """Clicks over 41,270 pages: `--data` (a basket of numbers a line), drawn anew to `length`; or Zipf 1.25."""
    if "clicks" not in settings.data:
        return zipf(1.25, length, 41_270)
    items = np.array(settings.data["clicks"].read_text().split(), np.int64)
    rng = np.random.default_rng(0)
    items = rng.permutation(int(items.max()) + 1)[items]
    return items if len(items) == length else rng.choice(items, length)


LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,"  # 49, as in the clicks of AOL


def aol(settings: Settings, length: int = 1_890_569, names: int = 184_304, skew: float = 1.0) -> Counts:
    """Clicks on pages, by the first six letters of their names: numbers below 49^6.

    `--data` takes a file of the AOL collection (tabs, with a column ClickURL, plain or .gz); a name is what follows
    "http://" and "www.", and what is no letter of the 49, or missing, is the last one. Without it: Zipf, random names.
    """
    if "names" in settings.data:
        return np.array([number_of(name) for name in _names(settings.data["names"])], np.int64)
    rng = np.random.default_rng(3)
    places = np.unique(rng.integers(0, 49**6, int(1.01 * names)))
    places = rng.permutation(places)[:names]
    return places[zipf(skew, length, names, 4)]


def _names(path: Path) -> Iterable[str]:
    rows = csv.DictReader(_lines(path), delimiter="\t", quoting=csv.QUOTE_NONE)
    for row in rows:
        if row.get("ClickURL"):
            yield re.sub(r"^(https?://)?(www\.)?", "", row["ClickURL"].strip().lower())


def number_of(name: str) -> int:
    """The number of the first six letters, the first one the most significant."""
    number, last = 0, len(LETTERS) - 1
    for letter in name[:6].ljust(6, LETTERS[-1]):
        place = LETTERS.find(letter)
        number = 49 * number + (last if place < 0 else place)
    return number


def caida(settings: Settings, length: int = 26_600_000, addresses: int = 312_000) -> Counts:
    """Source addresses of packets: `--data` (first on each line, alone or before blanks or commas), or Zipf 1.1."""
    if "addresses" not in settings.data:
        return zipf(1.1, length, addresses, 5)
    numbers: dict[str, int] = {}
    lines = filter(_is_address, map(_first, _lines(settings.data["addresses"])))
    found = [numbers.setdefault(address, len(numbers)) for address in lines]
    return np.array(found, np.int64)


# ---- protocols -----------------------------------------------------------------------------------------------------


def heard(protocol: Any, columns: Iterable[Counts]) -> Any:
    """An aggregator that heard a message of every party. The noise is seeded by the round: a figure repeats itself."""
    source = seeded_source(zlib.crc32(protocol.round_id.encode()))
    aggregator = protocol.aggregator(max_reports=None)
    for number, column in enumerate(columns):
        aggregator.receive(protocol.party(number, source=source).encode(column))
    return aggregator


def parts(items: Counts, parties: int, seed: int, unequal: float = 1.0) -> list[Counts]:
    """A random split; the largest part is about `unequal` times the smallest."""
    sizes = np.linspace(1, unequal, parties)
    cuts = np.round(np.cumsum(sizes)[:-1] / sizes.sum() * len(items)).astype(int)
    return np.split(np.random.default_rng(seed).permutation(items), cuts)


def quality(found: dict[int, float], counts: dict[int, int], share: float, total: int) -> dict[str, float]:
    """Recall, precision, F-score, and relative errors of true and of false heavy hitters ([MDP] section 5.2).

    The false error is infinite where an item that never came is listed, and 0 where nothing false is.
    """
    truth = {item for item, count in counts.items() if count >= share * total}
    both = truth & set(found)
    errors = [abs(found[item] - counts[item]) / counts[item] for item in both]
    false = [abs(found[item] / counts[item] - 1) if counts.get(item) else math.inf for item in set(found) - truth]
    return {
        "recall": len(both) / max(1, len(truth)),
        "precision": len(both) / max(1, len(found)),
        "F": 2 * len(both) / max(1, len(truth) + len(found)),
        "error": float(np.mean(errors)) if errors else float("nan"),
        "false error": float(np.mean(false)) if false else 0.0,
    }


def over_runs(runs: int, one: Callable[[int], dict[str, float]]) -> dict[str, list[float]]:
    """What `one` gives for every run, by name."""
    rows = [one(run) for run in range(runs)]
    return {name: [row[name] for row in rows] for name in rows[0]}
