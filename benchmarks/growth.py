"""How time and memory of every question grow with rows and with people, as a table and as a picture.

    python benchmarks/growth.py [--rows 1000000 10000000] [--people 10000 1000000] [--out docs/images/growth.svg]
    python benchmarks/growth.py --keep figures.json ...      # measures what is not in the file yet, and adds it

Whole commands (`questions.py`), skewed items; the smallest of --rounds runs. With rows there are 100,000 people, with
people --fixed rows, and no more people than rows; there the questions that name people are asked. The last column is
the exponent of the growth between the last two sizes, what a file of 1,000 rows takes left out: 1 is linear. From 50
million rows on there is no CSV, and one round.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import questions
from turns import Cost, machine, run

PEOPLE = 100_000
LARGE = 50_000_000
CSV = ("where, csv", "people, csv")


OF_ROWS = [each.what for each in questions.QUESTIONS if "--user" not in each.words]


def costs(rows: int, people: int, rounds: int, only: str, keep: str, leave: Iterable[str] = ()) -> dict[str, Cost]:
    """What every question but these costs of so many rows and people."""
    kept = json.loads(Path(keep).read_text()) if keep and Path(keep).exists() else {}
    found = {name: Cost(*figures) for name, figures in kept.get(f"{rows} {people}", {}).items()}
    large = rows >= LARGE
    besides = {*found, *leave, *(CSV if large else ())}
    with tempfile.TemporaryDirectory() as folder:
        made = questions.commands(Path(folder), rows, "skewed", os.cpu_count() or 1, only, people, besides)
        for each, ours, _ in made:
            runs = [run(ours) for _ in range(1 if large else rounds)]
            found[each.what] = Cost(*(min(figures) for figures in zip(*runs, strict=True)))
            if keep:
                Path(keep).write_text(json.dumps({**kept, f"{rows} {people}": found}))
    return {each.what: found[each.what] for each in questions.QUESTIONS if each.what in {*found} - {*leave}}


def show(what: str, sizes: list[int], found: list[dict[str, Cost]], least: dict[str, Cost]) -> None:
    """A table: seconds, MiB, and how fast they grow."""
    print(f"\n{what:24}" + "".join(f"{size:>20,}" for size in sizes) + f"{'grows as n^':>14}")
    for name in found[0]:
        there = [(size, cost[name]) for size, cost in zip(sizes, found, strict=True) if name in cost]
        line = "".join(f"{cost.cpu:>10.2f} s {cost.mebibytes:>6.0f} M" for _, cost in there)
        line, exponent = f"{line:{20 * len(sizes)}}", ""
        if len(there) > 1:
            before, after = (max(cost.cpu - least[name].cpu, 0.01) for _, cost in there[-2:])
            exponent = f"{math.log(after / before) / math.log(there[-1][0] / there[-2][0]):.2f}"
        print(f"{name:24}{line}{exponent:>14}", flush=True)


def draw(parts: list[tuple[str, list[int], list[dict[str, Cost]]]], path: str) -> None:
    """Seconds of CPU and memory over rows and people."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, len(parts), figsize=(5.5 * len(parts), 8.5), squeeze=False, layout="constrained")
    for at, (what, sizes, found) in enumerate(parts):
        for place, (name, unit) in enumerate((("cpu", "seconds of CPU"), ("mebibytes", "MiB"))):
            panel = axes[place][at]
            colors = dict(
                zip((each.what for each in questions.QUESTIONS), pyplot.get_cmap("tab20").colors, strict=False)
            )
            for question in found[0]:
                there = [(size, cost[question]) for size, cost in zip(sizes, found, strict=True) if question in cost]
                values = [getattr(cost, name) for _, cost in there]
                panel.loglog([size for size, _ in there], values, marker="o", label=question, color=colors[question])
            panel.set(xlabel=what, ylabel=unit)
            panel.grid(True, alpha=0.3)
    named = axes[0][0].get_legend_handles_labels()
    figure.legend(*named, loc="outside lower center", ncols=6, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--people", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--fixed", type=int, default=2_000_000, help="rows, where the number of people grows")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="", help="the questions with these words")
    parser.add_argument("--out", default="", help="a picture, in SVG")
    parser.add_argument("--keep", default="", help="a file of figures, which are not measured again")
    given = parser.parse_args()
    print(machine())
    least, parts = costs(1000, 100, 2, given.only, given.keep), []
    for what, sizes in (("rows", given.rows), ("people", given.people)):
        of = [(size, PEOPLE) if what == "rows" else (given.fixed, size) for size in sizes]
        leave = OF_ROWS if what == "people" else ()
        found = [costs(rows, min(people, rows), given.rounds, given.only, given.keep, leave) for rows, people in of]
        if found:
            show(what, sizes, found, least)
            parts.append((what, sizes, found))
    if given.out and parts:
        draw(parts, given.out)
    print(machine())


if __name__ == "__main__":
    main()
