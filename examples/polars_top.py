"""Private top lists from a polars query: one for each country, and one for all.

    python examples/polars_top.py [ROWS]

polars streams batches; each country has a summary of its own, which is kept as bytes, as a warehouse would. The list of
countries is public, so one event is in one summary and each may spend the whole budget: parallel composition again.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl

import discreet as dc

COUNTRIES = ("DK", "IS", "NO", "SE")  # known without the data; never read them off the data


def make_log(rows: int) -> pl.LazyFrame:
    """Made-up searches: the query of rank r about rows/(8 r) times."""
    rng = np.random.default_rng()
    queries = pl.Series("query", np.floor(2000 ** rng.random(rows)).astype(int)).cast(pl.String)
    countries = pl.Series("country", rng.choice([*COUNTRIES, "elsewhere"], rows))
    return pl.DataFrame({"query": "query " + queries, "country": countries}).lazy()


def summarise(log: pl.LazyFrame, batch_rows: int = 50_000) -> dict[str, bytes]:
    """The states of the summaries by country. NOT PRIVATE: keep them as you keep the log."""
    sketches = {country: dc.MisraGries(capacity=4096) for country in COUNTRIES}
    for batch in log.select("query", "country").collect_batches(chunk_size=batch_rows):
        for country, sketch in sketches.items():
            sketch.update(batch.filter(pl.col("country") == country).get_column("query"))
    return {country: sketch.to_bytes() for country, sketch in sketches.items()}


def main() -> None:
    """Publish the top of every country, then the top of all by two threads."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    log, budget = make_log(rows), dc.Budget(epsilon=1.0, delta=1e-9)
    for country, state in summarise(log).items():
        release = dc.release(dc.MisraGries.from_bytes(state), budget)
        print(country, pl.DataFrame(release).head(3))
    # The same events again: this release is paid on top of those above.
    batches = (batch.get_column("query") for batch in log.select("query").collect_batches(chunk_size=50_000))
    print("all", pl.DataFrame(dc.top_k(batches, 3, budget, workers=2)))


if __name__ == "__main__":
    main()
