"""The top 100 by people beside other libraries, on the same data, in one run: what is found, how wrong it is, how long.

    python benchmarks/peers.py [--data FILE ...] [--only WORDS] [--people 20000] [--repeats 3] [--epsilons 0.5 1]
    python benchmarks/peers.py --quick            # three shapes, 2,000 people, one release of each: does it run at all
    python benchmarks/peers.py --write            # and put the tables into docs/benchmarks/peers.md

k = 100, delta = 1e-6, one person is one unit. We are told nothing else. PipelineDP, OpenDP and Tumult Analytics are
told m, how many items of a person count: once the m that an oracle chooses, who looks at the truth (climbing from 10
along 1, 2, 5, 10, 20, 50, 100 while the list improves), and once m = 10. What the oracle saw counts as the first
release, which flatters the peers a little. Noise is Laplace for m of 1 or 2 and Gaussian above, whichever has the lower
threshold; Tumult finds unknown items under (epsilon, delta) with Laplace alone.

A cell: how many of the true top 100 are listed (an item as frequent as the 100th is one of them), the mean relative
error of what is listed, the median of seconds of CPU. Of a longer list the 100 largest are taken. A short list has
large items, whose relative error is small: compare errors of lists of like length.

Data: made up (people.py), at most `--people` of each shape, and files. `NAME.tsv` has a header and a person and an
item a line; other files have the items of one person a line. Tumult needs an older Spark, pandas and pyarrow than
discreet allows: give the Python of an environment that has it as `--tumult PYTHON`.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

K, DELTA = 100, 1e-6
GRID = (1, 2, 5, 10, 20, 50, 100)
TOLD = 10  # items of a person, where nobody looks at the truth
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "peers.md"

Published = Mapping[Any, float]  # item: noisy count


class People:
    """The items of every person, in the form that each library takes."""

    def __init__(self, name: str, lists: Sequence[Sequence[Any]]) -> None:
        numbers: dict[Any, int] = {}
        self.name = name
        self.rows = [
            (person, numbers.setdefault(item, len(numbers)))
            for person, items in enumerate(lists)
            for item in set(items)
        ]
        self.truth = Counter(item for _, item in self.rows)
        self.people = len(lists)
        self.most = max((len(set(items)) for items in lists), default=0)

    @cached_property
    def table(self) -> Any:
        import pyarrow as pa

        who, items = zip(*self.rows, strict=True)
        return pa.table({"who": pa.array(who, pa.int64()), "item": pa.array(items, pa.int64())})

    @cached_property
    def frame(self) -> Any:
        import polars

        return polars.from_arrow(self.table)

    def in_every_form(self, *, of_polars: bool) -> None:
        """Make the forms now, so that no release is timed with it."""
        assert len(self.table) == len(self.rows)
        if of_polars:
            assert len(self.frame) == len(self.rows)


Peer = Callable[[People, float, int], Published]  # of people, epsilon and m


class Score(NamedTuple):
    """Of one release: how many of the true top are listed, the mean relative error of what is listed, seconds."""

    hits: float
    error: float | None
    seconds: float = 0.0


def score(published: Published, truth: Mapping[Any, float], k: int = K, seconds: float = 0.0) -> Score:
    """The k largest of what is published, against the truth. Items as frequent as the k-th are all of the top."""
    largest = sorted(published.items(), key=lambda pair: -pair[1])[:k]
    if not largest:
        return Score(0, None, seconds)
    cut = sorted(truth.values(), reverse=True)[:k][-1]
    hits = sum(truth[item] >= cut for item, _ in largest)
    return Score(hits, statistics.fmean(abs(count - truth[item]) / truth[item] for item, count in largest), seconds)


def mean(scores: Sequence[Score]) -> Score:
    """Means of hits and of the errors that there are, and the median of seconds."""
    errors = [one.error for one in scores if one.error is not None]
    return Score(
        statistics.fmean(one.hits for one in scores),
        statistics.fmean(errors) if errors else None,
        statistics.median(one.seconds for one in scores),
    )


def better(one: Score, other: Score) -> bool:
    """More of the top; of equal lists the one with the smaller error."""
    return (one.hits, -(one.error or 0.0)) > (other.hits, -(other.error or 0.0))


def best_m(release: Callable[[int], Score], most: int, grid: Sequence[int] = GRID, start: int = TOLD) -> int:
    """The m of the best list: from the start up and down, until a list has fewer of the top than the best so far.

    Nobody has more than `most` items, so of those m that leave nothing out only the smallest is looked at.
    """
    allowed = [m for m in grid if m < most] + [m for m in grid if m >= most][:1]
    first = allowed[min(range(len(allowed)), key=lambda place: abs(allowed[place] - start))]
    found = {first: release(first)}
    for way in ([m for m in allowed if m > first], [m for m in reversed(allowed) if m < first]):
        for m in way:
            leader = max(one.hits for one in found.values())
            found[m] = release(m)
            if found[m].hits < leader:
                break
    chosen = first
    for m, one in found.items():
        if better(one, found[chosen]):
            chosen = m
    return chosen


# One function a library: the noisy counts of what it publishes, and nothing before the data is in its form.


def ours(people: People, epsilon: float) -> Published:
    import discreet as dc

    release = dc.top_k(people.table, K, dc.Budget(epsilon, DELTA), column="item", user="who")
    return dict(zip(release.items, release.counts.tolist(), strict=True))


def pipeline_dp(people: People, epsilon: float, m: int) -> Published:
    """Noise and threshold are one mechanism (`post_aggregation_thresholding`), which lists most of what was tried."""
    import pipeline_dp as pdp

    accountant = pdp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=DELTA)
    laplace = m <= 2
    selection = pdp.PartitionSelectionStrategy
    parameters = pdp.AggregateParams(
        metrics=[pdp.Metrics.PRIVACY_ID_COUNT],
        noise_kind=pdp.NoiseKind.LAPLACE if laplace else pdp.NoiseKind.GAUSSIAN,
        max_partitions_contributed=m,
        max_contributions_per_partition=1,
        partition_selection_strategy=selection.LAPLACE_THRESHOLDING if laplace else selection.GAUSSIAN_THRESHOLDING,
        post_aggregation_thresholding=True,
    )
    extractors = pdp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda row: 0
    )
    found = pdp.DPEngine(accountant, pdp.LocalBackend()).aggregate(people.rows, parameters, extractors)
    accountant.compute_budgets()
    return {item: metrics.privacy_id_count for item, metrics in found}


def _rho(epsilon: float, delta: float) -> float:
    """The rho whose conversion by OpenDP is (epsilon, delta)."""
    import opendp.prelude as dp

    space = dp.atom_domain(T=int), dp.absolute_distance(T=float)
    scale = dp.binary_search_param(
        lambda scale: dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale)), delta),
        d_in=1.0, d_out=(epsilon, delta), T=float,
    )  # fmt: skip
    return float(dp.m.make_gaussian(*space, scale).map(1.0))


def open_dp(people: People, epsilon: float, m: int) -> Published:
    """One row an item of a person, then m rows of a person (`truncate_num_groups` fails in 0.16 with a polars error).

    With Gaussian noise half of delta pays for the threshold and half for the conversion from rho.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    loss = (
        dp.loss_of(epsilon=epsilon, delta=DELTA)
        if m <= 2
        else dp.loss_of(rho=_rho(epsilon, DELTA / 2), delta=DELTA / 2)
    )
    context = dp.Context.compositor(
        data=people.frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1, identifier="who"),
        privacy_loss=loss,
        split_evenly_over=1,
    )
    rows = context.query().truncate_per_group(1, by=["item"]).truncate_per_group(m)
    found = rows.group_by("item").agg(dp.len(signed=True)).release().collect()
    return dict(zip(found["item"].to_list(), found["len"].to_list(), strict=True))


class Tumult:
    """Tumult Analytics in a Python of its own, which answers one line of JSON with one: (path, epsilon, m)."""

    def __init__(self, python: str, folder: Path) -> None:
        python = os.path.abspath(shutil.which(python) or python)  # it runs in the folder, where Spark leaves files
        environment = {**os.environ, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
        self._process = subprocess.Popen(
            [python, Path(__file__).resolve(), "--answer-for-tumult"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=environment, cwd=folder,
        )  # fmt: skip
        self._folder = folder
        self.seconds = 0.0

    def __call__(self, people: People, epsilon: float, m: int) -> Published:
        import pyarrow.parquet

        path = self._folder / f"{people.name}.parquet"
        if not path.exists():
            pyarrow.parquet.write_table(people.table, path)
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([str(path), epsilon, m]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(
                "Tumult's Python ended; run it by hand: echo | PYTHON benchmarks/peers.py --answer-for-tumult"
            )
        self.seconds, found = json.loads(line)
        return dict(found)

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def answer_for_tumult() -> None:
    """In the Python that has Tumult Analytics: half of epsilon finds items, the other half counts them."""
    from pyspark.sql import SparkSession
    from tmlt.analytics import (
        AddRowsWithID,
        ApproxDPBudget,
        KeySet,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        QueryBuilder,
        Session,
    )

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    builder = SparkSession.builder.master(f"local[{os.cpu_count()}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def release(path: str, epsilon: float, m: int) -> list[tuple[int, float]]:
        session = Session.from_dataframe(
            privacy_budget=ApproxDPBudget(epsilon, DELTA),
            source_id="rows",
            dataframe=spark.read.parquet(path),
            protected_change=AddRowsWithID(id_column="who"),
        )
        rows = QueryBuilder("rows").enforce(MaxGroupsPerID("item", m)).enforce(MaxRowsPerGroupPerID("item", 1))
        groups = session.evaluate(rows.get_groups(["item"]), ApproxDPBudget(epsilon / 2, DELTA))
        if groups.isEmpty():
            return []
        counts = rows.groupby(KeySet.from_dataframe(groups)).count(name="count")
        found = session.evaluate(counts, session.remaining_privacy_budget).collect()
        return [(row["item"], row["count"]) for row in found]

    for line in sys.stdin:
        start = _used_by_all()
        found = release(*json.loads(line))
        print(json.dumps([_used_by_all() - start, found]), flush=True)


def _used_by_all() -> float:
    """Seconds of CPU of this process and of all that it started: Spark's machine, and that one's Pythons."""
    fields = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # a process that has ended
            after = path.read_text().rpartition(")")[2].split()
            fields[int(path.parent.name)] = int(after[1]), sum(map(int, after[11:15]))  # its parent; its ticks
    mine = {os.getpid()}
    while more := {process for process, (parent, _) in fields.items() if parent in mine} - mine:
        mine |= more
    return sum(fields[process][1] for process in mine) / os.sysconf("SC_CLK_TCK")


# The run and its table.


QUICK = ("many items, skewed", "one item each", "heavy people")


def made_up(most: int, only: str, *, quick: bool) -> Iterator[People]:
    from people import crowds, shapes

    def chosen(name: str) -> bool:
        return only in name and (name in QUICK or not quick)

    for name, lists in shapes():
        if chosen(name):
            yield People(name, lists[:most])
    for name, rows in crowds():
        if name in ("heavy people", "flat, 30 items", "status codes, 8 items") and chosen(name):
            items: dict[int, set[Any]] = {}
            for person, item, _ in rows:
                items.setdefault(person, set()).add(item)
            yield People(name, [*items.values()][:most])


def read(path: Path) -> People:
    from people import baskets, pairs

    return People(path.name, pairs(path) if path.suffix == ".tsv" else baskets(path))


def measured(release: Callable[[], Published], people: People, clock: Tumult | None = None) -> Score:
    """One release and its score. Tumult's Python has a clock of its own."""
    start = time.process_time()
    published = release()
    return score(published, people.truth, seconds=clock.seconds if clock else time.process_time() - start)


class Line(NamedTuple):
    """One set of data and one epsilon: ours, and of each peer the best m, its score, and that of m = 10."""

    people: People
    epsilon: float
    ours: Score
    peers: dict[str, tuple[int, Score, Score]]

    def behind(self) -> list[str]:
        return [
            f"{self.people.name}, epsilon {self.epsilon:g}: "
            f"{name} lists {best.hits:.0f} with m = {m}, we {self.ours.hits:.0f}"
            for name, (m, best, _) in self.peers.items()
            if best.hits > self.ours.hits + 0.5
        ]


def compare(people: People, epsilon: float, peers: Mapping[str, Peer], repeats: int) -> Line:
    people.in_every_form(of_polars="OpenDP" in peers)
    mine = mean([measured(partial(ours, people, epsilon), people) for _ in range(repeats)])
    found = {}
    for name, peer in peers.items():
        scores: dict[int, list[Score]] = {}

        def another(m: int, peer: Peer = peer, scores: dict[int, list[Score]] = scores) -> Score:
            clock = peer if isinstance(peer, Tumult) else None
            scores.setdefault(m, []).append(measured(partial(peer, people, epsilon, m), people, clock))
            return scores[m][-1]

        def of(m: int, scores: dict[int, list[Score]] = scores, another: Callable[[int], Score] = another) -> Score:
            while len(scores.get(m, ())) < repeats:
                another(m)
            return mean(scores[m])

        m = best_m(another, people.most)
        if better(of(TOLD), of(m)):
            m = TOLD
        found[name] = m, of(m), of(TOLD)
    return Line(people, epsilon, mine, found)


def shown(one: Score, m: int | None = None) -> str:
    error = "" if one.error is None else f", {one.error:.1%}".replace("%", " %")
    return f"{one.hits:.0f}{error}, {one.seconds:.2g} s" + (f" (m {m})" if m else "")


def heading(peers: Sequence[str]) -> str:
    names = [
        "data",
        "people",
        "epsilon",
        "ours",
        *(f"{name}, {m}" for name in peers for m in ("best m", f"m = {TOLD}")),
    ]
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def row(line: Line) -> str:
    cells = [line.people.name, f"{line.people.people:,}", f"{line.epsilon:g}", shown(line.ours)]
    for m, best, told in line.peers.values():
        cells += [shown(best, m), shown(told)]
    return f"| {' | '.join(cells)} |"


def write(text: str, of: str, page: Path = PAGE) -> None:
    """Put the text between the page's marks for these data."""
    begin, end = f"<!-- {of}: begin -->\n", f"<!-- {of}: end -->\n"
    before, first, rest = page.read_text().partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise SystemExit(f"{page} has no place for the table; it needs the lines {begin.strip()} and {end.strip()}")
    page.write_text(f"{before}{first}{text}\n{last}{after}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", default=[], help="files of people")
    parser.add_argument("--only", default="", help="made-up shapes with these words; `none` for files alone")
    parser.add_argument("--people", type=int, default=20_000, help="at most this many people of a made-up shape")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0])
    parser.add_argument("--peers", nargs="*", default=["PipelineDP", "OpenDP", "Tumult"])
    parser.add_argument("--tumult", metavar="PYTHON", help="the Python of an environment with tmlt.analytics")
    parser.add_argument(
        "--quick", action="store_true", help="three shapes, 2,000 people, epsilon 1, one release of each"
    )
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    parser.add_argument("--answer-for-tumult", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.answer_for_tumult:
        answer_for_tumult()
        return
    if options.quick:
        options.people, options.repeats, options.epsilons = 2_000, 1, [1.0]
    from turns import machine

    ours(People("a start", [["x"]] * 10), options.epsilons[0])  # loads what is loaded once
    with tempfile.TemporaryDirectory() as folder:
        peers: dict[str, Peer] = {}
        notes = []
        for name, module, package, release in (
            ("PipelineDP", "pipeline_dp", "pipeline-dp", pipeline_dp),
            ("OpenDP", "opendp", "opendp", open_dp),
        ):
            if name in options.peers and find_spec(module):
                import_module(module)  # not in the first release
                peers[name] = release
                notes.append(f"{name} {version(package)}")
            else:
                notes.append(f"{name} {'not installed' if name in options.peers else 'left out'}")
        tumult = Tumult(options.tumult, Path(folder)) if options.tumult and "Tumult" in options.peers else None
        if tumult:
            peers["Tumult"] = tumult
            code = "from importlib.metadata import version; print(version('tmlt.analytics'))"
            which = subprocess.run([options.tumult, "-c", code], text=True, capture_output=True, check=True)
            notes.append(f"Tumult Analytics {which.stdout.strip()}")
        else:
            notes.append(f"Tumult Analytics {'not installed' if 'Tumult' in options.peers else 'left out'}")
        said = [Path(argument).name for argument in (sys.argv[1:] if arguments is None else arguments)]
        command = shlex.join(["python", "benchmarks/peers.py", *said])
        groups = {
            "made up": made_up(options.people, options.only, quick=options.quick),
            "files": map(read, options.data),
        }
        try:
            for of, group in groups.items():
                lines: list[Line] = []
                text = [f"`{command}`, {datetime.date.today():%-d %B %Y}. {', '.join(notes)}. {machine()}.", ""]
                text.append(heading([*peers]))
                for people in group:
                    if not lines:
                        print("\n".join(text))
                    for epsilon in options.epsilons:
                        lines.append(compare(people, epsilon, peers, options.repeats))
                        print(row(lines[-1]), flush=True)
                behind = [f"- {one}" for line in lines for one in line.behind()]
                nobody = "Behind: nowhere." if peers else "No other library took part: nothing was compared."
                last = ["", "Behind:", "", *behind] if behind else ["", nobody]
                if lines:
                    print("\n".join(last))
                    if options.write:
                        write("\n".join([*text, *map(row, lines), *last]), of)
        finally:
            if tumult:
                tumult.close()


if __name__ == "__main__":
    main()
