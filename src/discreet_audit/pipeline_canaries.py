"""How much a pipeline of one's own gives away, at least: an empirical lower bound on epsilon beside the claim.

Made-up people, the canaries, are put into a copy of the data or left out, each by a fair coin. Anyone who sees the
release guesses the coins. If it is (epsilon, delta)-DP, few guesses are right; this many right ones prove that
epsilon is at least so much. Two ways:

- One run with many canaries (Steinke, Nasr, Jagielski 2023): of r guesses at least v are right with a probability of
  at most P[Binomial(r, q) >= v] + m delta/(1 + e^epsilon), with q = e^epsilon/(1 + e^epsilon) and m canaries.
- Many releases of two data sets that differ in one canary: Clopper-Pearson bounds of an event that half of them chose.

docs/audit.md has the argument. A bound below the claim proves nothing good: it is what this test could see.
"""

from __future__ import annotations

import csv
import json
import math
import random
import secrets
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import DataError, ParameterError
from discreet.privacy import Budget, Guarantee
from discreet.privacy.calibration.zcdp import zcdp_epsilon
from discreet.privacy.checks import probability, whole_number
from discreet_audit.statistical import Scores, bounds_both_ways

DELTA_OF_RHO = 1e-6
"""Where rho is claimed, epsilon is what it converts to at this delta."""
_FEWEST_GUESSES = 8
_LARGEST_EPSILON = 50.0


@dataclass(frozen=True)
class CanaryReport:
    """What guesses prove about a pipeline.

    Attributes:
        epsilon: At least this much is lost at `delta`, at this confidence; 0 where nothing is proved.
        claimed: The epsilon that the pipeline claims at `delta`.
        confidence: How often a bound such as this one holds, whatever the pipeline does.
        canaries: How many made-up people were put in or left out.
        guesses: How many of them were guessed; of a test with many releases, how many releases decided.
        right: How many guesses were right.
        releases: How often the pipeline was run: every run spends what it claims.
    """

    epsilon: float
    claimed: float
    delta: float
    confidence: float
    canaries: int
    guesses: int
    right: int
    releases: int

    @property
    def passed(self) -> bool:
        """Whether the claim is not refuted."""
        return self.epsilon <= self.claimed

    @property
    def spent(self) -> str:
        """What this test cost the real people of the data."""
        each = f"epsilon={self.claimed:g}" + (f", delta={self.delta:g}" if self.delta else "")
        runs = "once" if self.releases == 1 else f"{self.releases} times"
        return (
            f"The pipeline ran {runs}. If real people were in the data, each run spends its claim ({each}) of their "
            "privacy; no ledger was charged, unless the pipeline charges one."
        )

    def __str__(self) -> str:
        verdict = "the claim is not refuted" if self.passed else "THE CLAIM DOES NOT HOLD"
        at = f" at delta={self.delta:g}" if self.delta else ""
        sure = f"{100 * self.confidence:g}% confidence"
        return (
            f"epsilon is at least {self.epsilon:.3g}{at} ({sure}); claimed: {self.claimed:.3g}; {verdict}\n"
            f"{self.right} of {self.guesses} guesses were right, about {self.canaries} canaries.\n{self.spent}"
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {**asdict(self), "passed": self.passed, "spent": self.spent}


@dataclass(frozen=True)
class Canaries:
    """Made-up people, each with an item of their own.

    Args:
        column: The column of the items.
        user: The column of the people; None where a row is what is hidden.
        number: How many.
        crowd: How many more made-up people, who are always there, have the item of each canary. A pipeline that shows
            only what many have shows nothing otherwise: give about its threshold.
    """

    column: str
    user: str | None = None
    number: int = 1000
    crowd: int = 0

    def __post_init__(self) -> None:
        whole_number("number", self.number, 1, 10**6)
        whole_number("crowd", self.crowd, 0, 10**6)

    def item(self, canary: int) -> str:
        """The item that this canary, and its crowd, have."""
        return f"canary {canary}"

    def rows(self, included: Sequence[bool]) -> dict[str, list[str]]:
        """The columns of the rows that are added."""
        items, users = [], []
        for canary, there in enumerate(included):
            members = [f"crowd {canary} {member}" for member in range(self.crowd)]
            users += [*members, *([f"canary {canary}"] if there else [])]
            items += [self.item(canary)] * (self.crowd + bool(there))
        return {self.column: items, **({} if self.user is None else {self.user: users})}

    def added_to(self, data: pa.Table | None, included: Sequence[bool]) -> pa.Table:
        """The data with these canaries; columns that they have nothing for are null."""
        more = pa.table(self.rows(included))
        if data is None:
            return more
        missing = [name for name in more.schema.names if name not in data.schema.names]
        if missing:
            raise DataError(f"no column named {missing[0]!r}; the data have: {', '.join(data.schema.names)}")
        # Items and people become text, as those of canaries are.
        texts = [name for name in data.schema.names if name in more.schema.names]
        for name in texts:
            data = data.set_column(data.schema.get_field_index(name), name, data.column(name).cast(pa.string()))
        columns = [more.column(f.name) if f.name in texts else pa.nulls(len(more), f.type) for f in data.schema]
        return pa.concat_tables([data, pa.table(columns, schema=data.schema)])


def canaries(
    pipeline: Callable[[pa.Table], Any],
    data: Any,
    claim: Budget | Guarantee,
    *,
    column: str,
    user: str | None = None,
    number: int = 1000,
    crowd: int = 0,
    runs: int | None = None,
    confidence: float = 0.95,
    score: Callable[[Any, str], float] | None = None,
    seed: int | None = None,
) -> CanaryReport:
    """Put canaries into a copy of the data, run a pipeline on it, and say what epsilon the guesses prove.

    THIS RUNS THE PIPELINE, which spends what it spends: once, or with `runs` twice that often. Take made-up data
    (`data=None`) where nothing is to be spent.

    Args:
        pipeline: Takes an Arrow table and returns what it publishes.
        data: A table; None for the canaries alone. It is not changed.
        claim: What the pipeline promises for one person, or for one row where there is no `user`.
        column, user: Where items and people are in the table.
        number: How many canaries there are in one run.
        crowd: How many other made-up people have each canary's item, see `Canaries`.
        runs: Instead of one run with many canaries: this many releases with one canary, and as many without.
        confidence: Of the bound.
        score: (what was published, an item) -> a number that is larger if the canary with this item is in; by
            default its published count, and less than any where it is not listed.
        seed: Of the coins, for tests; they are secret otherwise.
    """
    from discreet.events.tables import as_arrow

    delta, claimed = _claim(claim)
    error = 1.0 - probability("confidence", confidence)
    made = Canaries(column, user, number if runs is None else 1, crowd)
    read = None if data is None else as_arrow(data)
    table = read if read is None or isinstance(read, pa.Table) else read.read_all()
    coins = random.Random(seed) if seed is not None else secrets.SystemRandom()
    look = score or published_count

    def scored(included: Sequence[bool]) -> list[float]:
        published = pipeline(made.added_to(table, included))
        return [float(look(published, made.item(canary))) for canary in range(len(included))]

    if runs is None:
        included = [bool(coins.getrandbits(1)) for _ in range(made.number)]
        guesses, right, epsilon = one_run(scored(included), included, delta, error)
        return CanaryReport(epsilon, claimed, delta, confidence, made.number, guesses, right, 1)
    whole_number("runs", runs, 20, 10**6)
    there, absent = (np.array([scored([way])[0] for _ in range(runs)]) for way in (True, False))
    guesses, right, epsilon = each_way(there, absent, delta, error)
    return CanaryReport(epsilon, claimed, delta, confidence, 1, guesses, right, 2 * runs)


def _claim(claim: Budget | Guarantee) -> tuple[float, float]:
    """(delta, epsilon at that delta)."""
    if claim.rho is not None:
        return DELTA_OF_RHO, zcdp_epsilon(claim.rho, DELTA_OF_RHO)
    if claim.epsilon is None:
        raise ParameterError("the claim must be a budget, such as dc.Budget(epsilon=1.0, delta=1e-6)")
    return claim.delta, claim.epsilon


def published_count(published: Any, item: str) -> float:
    """The count of an item in a release, a mapping or a list of (item, count); -inf where it is not there."""
    if hasattr(published, "items") and hasattr(published, "counts"):
        pairs = dict(zip(published.items, np.asarray(published.counts).tolist(), strict=True))
    else:
        pairs = dict(published.items() if isinstance(published, Mapping) else published)
    return float(pairs.get(item, -math.inf))


def one_run(scores: Sequence[float], included: Sequence[bool], delta: float, error: float) -> tuple[int, int, float]:
    """(guesses, right ones, epsilon): the best of guesses about all canaries, half of them, a quarter, ...

    The canaries with the largest scores are guessed to be in, as many with the smallest to be out. Which are guessed
    depends on the scores alone. Each of the numbers of guesses has its share of the error.
    """
    order = sorted(range(len(scores)), key=lambda canary: scores[canary])
    sizes = []
    size = len(order) // 2
    while 2 * size >= _FEWEST_GUESSES:
        sizes.append(size)
        size //= 2
    if not sizes:
        raise ParameterError(f"give at least {_FEWEST_GUESSES} canaries, not {len(order)}")
    best = (2 * sizes[0], 0, -1.0)
    for size in sizes:
        right = sum(not included[canary] for canary in order[:size]) + sum(included[c] for c in order[-size:])
        epsilon = guessed_epsilon(2 * size, right, len(order), delta, error / len(sizes))
        best = max(best, (2 * size, right, epsilon), key=lambda found: found[2])
    return best


def guessed_epsilon(guesses: int, right: int, number: int, delta: float, error: float) -> float:
    """The largest epsilon of which this many right guesses are less likely than `error`; 0 where none is.

    By bisection, rounded down: P[Binomial(guesses, q) >= right] grows with epsilon. Of m delta/(1 + e^epsilon) the
    largest value, m delta/2, is taken off the error.
    """
    from scipy.special import betainc

    left = error - number * delta / 2.0
    if left <= 0.0:
        raise ParameterError(
            f"{number} canaries at delta={delta:g} prove nothing at this confidence: take fewer than "
            f"{max(1, int(2 * error / delta))}"
        )
    low, high = 0.0, _LARGEST_EPSILON
    for _ in range(60):
        middle = (low + high) / 2.0
        q = 1.0 / (1.0 + math.exp(-middle))
        tail = 1.0 if right == 0 else float(betainc(right, guesses - right + 1, q))
        low, high = (middle, high) if tail <= left else (low, middle)
    return low


def each_way(there: Scores, absent: Scores, delta: float, error: float) -> tuple[int, int, float]:
    """(releases that decide, right ones, epsilon): half of the releases choose two events, the others test both."""
    half = len(there) // 2
    one, two = (np.nan_to_num(scores, neginf=-1e300) for scores in (there, absent))
    # Two directions, of which each has two bounds.
    found = bounds_both_ways((one[:half], two[:half]), (one[half:], two[half:]), delta, error / 4.0)
    decided = [(2 * n, yes + m - no, max(0.0, bound)) for (yes, n), (no, m), bound in found]
    return max(decided, key=lambda each: each[2])


# ---- a command as the pipeline ---------------------------------------------------------------------------------------

PLACE = "{data}"
"""Stands for the file that a command reads."""


def table_of_csv(path: Path) -> pa.Table:
    """A CSV file with a header line; all of its cells are text, as they stand there."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        return pa.table({name: list(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)})
    except (OSError, ValueError, csv.Error):
        raise DataError(f"{str(path)!r} cannot be read as CSV in UTF-8 with a header line") from None


def command_pipeline(command: Sequence[str], column: str) -> Callable[[pa.Table], dict[str, float]]:
    """A pipeline that writes the data as CSV, runs a command on it, and reads the items and counts that it prints.

    They are the JSON or CSV of `discreet`: objects with "item" and "count", or rows with "count" and either "item" or
    the name of the column.
    """
    if not any(PLACE in word for word in command):
        raise ParameterError(f"the command must have {PLACE} where the name of the file with the data belongs")

    def run(table: pa.Table) -> dict[str, float]:
        import pyarrow.csv

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "canaries.csv"
            pyarrow.csv.write_csv(table, file)
            words = [word.replace(PLACE, str(file)) for word in command]
            try:
                done = subprocess.run(words, capture_output=True, text=True, check=False)
            except OSError as error:
                raise ParameterError(f"the command {command[0]!r} cannot be run: {error.strerror}") from None
        if done.returncode:
            raise DataError(f"the command ended with exit code {done.returncode}; nothing was measured")
        return printed_counts(done.stdout, column)

    return run


def printed_counts(text: str, column: str) -> dict[str, float]:
    """Items and counts as they were printed."""
    try:
        if text.lstrip().startswith("{"):
            name, rows = "item", json.loads(text)["items"]
        else:
            read = csv.DictReader(StringIO(text))
            name = column if column in (read.fieldnames or ()) else "item"
            rows = list(read)
        return {str(row[name]): float(row["count"]) for row in rows}
    except (ValueError, KeyError, TypeError):
        raise DataError(
            'the command must print JSON with "items", each with "item" and "count", or CSV with the columns '
            f'"count" and "item" or {column!r}'
        ) from None
