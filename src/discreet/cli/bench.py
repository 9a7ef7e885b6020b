"""`discreet bench`: how fast the summaries are on this machine."""

from __future__ import annotations

import json

import click

from discreet.cli.options import option, takes, text_format
from discreet.cli.output import print_table

__all__ = ["bench"]


@click.command()
@takes(
    option("--items", "How many made-up items to count.", click.IntRange(10_000, 100_000_000), default=2_000_000),
    option("--capacity", "Counters of a sketch.", click.IntRange(1, 2**24), default=4096),
    option("--workers", "Threads of the sharded sketch.", click.IntRange(1, 128), default=2),
    option("--rounds", "Runs of each; the best counts.", click.IntRange(1, 100), default=3),
)
@text_format()
def bench(items: int, capacity: int, workers: int, rounds: int, as_json: bool) -> None:
    """Time the summaries on made-up items.

    Items are of a Zipf law (1.1). Beside it exact counting, and the release of a full sketch.
    """
    from discreet.cli.speed import measured

    rows = measured(items, capacity, workers, rounds)
    if as_json:
        print(json.dumps({"items": items, "capacity": capacity, "rounds": rounds, "rows": rows}))
        return
    shown = [
        [row["input"], row["what"], f"{row['million_items_per_second']:.1f}", f"{row['ratio']:.2f}"] for row in rows
    ]
    print_table(["input", "what", "million items/s", "times pyarrow"], shown, right=(2, 3))
