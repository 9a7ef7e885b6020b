"""`discreet bench`: how fast the summaries are on this machine, beside exact counting."""

from __future__ import annotations

import json

import click

from discreet.cli.options import command, option, text_format
from discreet.cli.output import print_table


@command()
def bench(
    items: int = option(
        "--items", "Number of made-up items to count.", click.IntRange(10_000, 100_000_000), default=2_000_000
    ),
    capacity: int = option("--capacity", "Number of counters of a sketch.", click.IntRange(1, 2**24), default=4096),
    workers: int = option("--workers", "Number of threads of the sharded sketch.", click.IntRange(1, 128), default=2),
    rounds: int = option("--rounds", "Number of runs of each; the best one counts.", click.IntRange(1, 100), default=3),
    as_json: bool = text_format(),
) -> None:
    """Time the summaries on made-up items.

    Items are of a Zipf law (1.1). Beside it exact counting, and the release of a full sketch.
    """
    from discreet.questions.throughput import measured

    rows = measured(items, capacity, workers, rounds)
    if as_json:
        print(json.dumps({"items": items, "capacity": capacity, "rounds": rounds, "rows": rows}))
        return
    shown = [
        [row["input"], row["what"], f"{row['million_items_per_second']:.1f}", f"{row['ratio']:.2f}"] for row in rows
    ]
    print_table(["input", "what", "million items/s", "times pyarrow"], shown, right=(2, 3))
