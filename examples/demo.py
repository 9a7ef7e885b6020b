"""The first five minutes: a made-up search log in, a private top list of what people search for out, the budget kept.

Run it with `make demo`. It writes a million rows to out/searches.csv, runs the `discreet` command on them as you would,
and compares what was published with the truth, which only the keeper of the log can do. First people are protected,
with all of their rows; then, as the second example, single rows, and one sees the difference.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

OUT = Path("out")
LOG, LEDGER, RELEASE, PLOT = (OUT / name for name in ("searches.csv", "budgets.sqlite", "top.json", "top.png"))
OWN_WORDS = "synthetic person 7 test results"

SUBJECTS = [
    *("weather", "news", "pizza", "bus times", "cinema", "pharmacy", "dentist", "florist", "car rental", "museum"),
    *("swimming pool", "bakery", "library", "train station", "used bikes", "cheap flights", "concert tickets", "gym"),
    *("second hand books", "garden centre", "hairdresser", "electrician", "plumber", "driving school", "hotel"),
    *("vegan restaurant", "playground", "parking", "farmers market", "flea market"),
]
PLACES = [
    *("amberton", "birchmere", "copperfield", "dunmoor", "elmsworth", "foxhollow", "greywater", "hazelbrook"),
    *("juniper bay", "kestrel hill", "larkspur", "maplewick", "northgate", "oakhaven", "pinecrest", "rosemead"),
]
ENDINGS = ["open now", "near me", "reviews", "cheap", "phone number", "map", "today", "prices", "best", "jobs"]


def queries(random: np.random.Generator) -> list[str]:
    """Plausible queries, the more popular first: short ones mostly, in made-up towns."""
    all_of_them = [
        " ".join(word for word in (subject, place, ending) if word)
        for subject in SUBJECTS
        for place in ["", *PLACES]
        for ending in ["", *ENDINGS]
    ]
    words = np.array([query.count(" ") + 1 for query in all_of_them])
    return [all_of_them[i] for i in np.argsort(words**5 * random.exponential(size=len(words)))]


def search_log(rows: int) -> pa.Table:
    """Popular queries follow a Zipf law; a fifth of the rows are queries that one made-up person typed once.

    A visitor has five rows on average, some have hundreds, and one asks the same question in their own words all day.
    """
    random = np.random.default_rng(20)
    known = pa.array(queries(random))
    popularity = 1.0 / np.arange(5, len(known) + 5) ** 1.1
    common = known.take(pa.array(random.choice(len(known), size=rows, p=popularity / popularity.sum())))
    number = pa.array(np.arange(rows)).cast(pa.string())
    personal = pc.binary_join_element_wise("synthetic person", number, "test results", " ")
    query = pc.if_else(pa.array(random.random(rows) < 0.2), personal, common)
    activity = random.pareto(1.5, rows // 5) + 0.2
    visitor = random.choice(len(activity), size=rows, p=activity / activity.sum())
    all_day = random.random(rows) < 0.02
    query = pc.if_else(pa.array(all_day), OWN_WORDS, query)
    visitor = pa.array(np.where(all_day, len(activity), visitor)).cast(pa.string())
    second = pa.array(np.sort(random.integers(0, 86_400, rows)) + 1_700_006_400).cast(pa.timestamp("s"))
    return pa.table({"time": second, "visitor": pc.binary_join_element_wise("v", visitor, ""), "query": query})


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the `discreet` command and show it."""
    words = ["discreet", *map(str, arguments)]
    print(f"\n$ {shlex.join(words)}", flush=True)
    command = Path(sys.executable).with_name("discreet")
    begun = time.monotonic()
    done = subprocess.run([command, *words[1:]], capture_output=True, text=True)
    print((done.stdout + done.stderr).rstrip(), f"[{time.monotonic() - begun:.1f} s]", sep="\n", flush=True)
    return done


def compare(release: dict, truth: dict[str, int]) -> None:
    """The private table beside the exact one."""
    exact = sorted(truth.items(), key=lambda pair: (-pair[1], pair[0]))
    items = release["items"]
    wide = max(len(row["item"]) for row in items) + 2
    print(f"\n{'private top list':<{wide}}{'people':>7}{'95% interval':>18}{'exact':>8}{'error':>7}    exact top list")
    for row, (item, _) in zip(items, exact, strict=False):
        interval = f"{row['lower']:,} to {row['upper']:,}"
        count = truth[row["item"]]
        print(f"{row['item']:<{wide}}{row['count']:>7,}{interval:>18}{count:>8,}{row['count'] - count:>+7}    {item}")
    errors = [abs(row["count"] - truth[row["item"]]) for row in items]
    share = [error / truth[row["item"]] for error, row in zip(errors, items, strict=True)]
    inside = sum(row["lower"] <= truth[row["item"]] for row in items)
    in_both = len({row["item"] for row in items} & {item for item, _ in exact[: len(items)]})
    print(
        f"\n{in_both} of {len(items)} are in the exact top {len(items)}; {inside} lower bounds hold; "
        f"largest error {max(errors)}, mean relative error {100 * sum(share) / len(share):.2f} %."
    )
    print(f"The log has {len(truth):,} different queries, {sum(n == 1 for n in truth.values()):,} of one person alone.")


def main(rows: int = 1_000_000) -> int:
    OUT.mkdir(exist_ok=True)
    for left_over in OUT.glob(f"{LEDGER.name}*"):
        left_over.unlink()
    print(f"Writing {rows:,} rows of a made-up search log to {LOG} ...", flush=True)
    log = search_log(rows)
    pyarrow.csv.write_csv(log, LOG)
    print("Counting them exactly, to compare: nobody else can ...", flush=True)
    counted = log.group_by("query").aggregate([("visitor", "count_distinct")])
    truth = dict(zip(counted["query"].to_pylist(), counted["visitor_count_distinct"].to_pylist(), strict=True))

    run("ledger", "grant", "--ledger", LEDGER, "--account", "searches", "--epsilon", "1.5", "--delta", "1e-5")
    budget = ["--epsilon", "1", "--delta", "1e-6"]
    paid = ["--ledger", LEDGER, "--account", "searches"]
    people = [LOG, "--column", "query", "--user", "visitor", "-k", "20", *budget, *paid]
    published = run("top", *people, "--output", RELEASE, "--plot", PLOT)
    if published.returncode != 0:
        return published.returncode
    release = json.loads(RELEASE.read_text())
    compare(release, truth)
    run("explain", RELEASE)

    print("\nThe account had 1.5 and 1 is spent. The same again:")
    refused = run("top", *people)
    run("ledger", "show", "--ledger", LEDGER)
    print(f"\nRefused with exit code {refused.returncode}: nothing was published. The plot is {PLOT}.")

    print("\nWithout --user rows are hidden, not people. One visitor asked the same all day, and is on the list:")
    by_rows = run("top", LOG, "--column", "query", "-k", "8", *budget)
    hidden = all(row["item"] != OWN_WORDS for row in release["items"])
    return 0 if refused.returncode == 3 and hidden and OWN_WORDS in by_rows.stdout else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
