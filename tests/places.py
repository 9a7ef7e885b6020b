"""Which question runs where: questions, places, and what docs/questions.md says of each question in each place."""

from __future__ import annotations

import dataclasses
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc

PAGE = Path(__file__).parents[1] / "docs" / "questions.md"
_NUMBERS = {"column": "amount", "range": (0, 9)}
_LISTED = {"column": "page", "universe": ["home", "help"]}
_ASKED = {
    "top": (dc.Top, {"k": 2, "column": "page"}, {}),
    "count": (dc.Count, {}, {}),
    "distinct": (dc.Distinct, {"column": "page"}, {"max_items": 2}),
    "histogram": (dc.Histogram, _LISTED, {"max_items": 2}),
    "quantiles": (dc.Quantiles, _NUMBERS, {}),
    "sum": (dc.Sum, _NUMBERS, {}),
    "mean": (dc.Mean, _NUMBERS, {}),
    "variance": (dc.Variance, _NUMBERS, {}),
}
QUESTIONS = {
    f"{name} of {of}{by}": kind(**words, **(more | {"user": "who"} if of == "people" else {}), by="day" if by else None)
    for name, (kind, words, more) in _ASKED.items()
    for of in ("rows", "people")
    for by in ("", " by group")
}
QUESTIONS["top: sums of people"] = dc.Top(k=2, column="page", user="who", value="amount", value_range=(0, 9))
QUESTIONS["top: pairs of people"] = dc.Top(k=2, column="page", user="who", pairs=True)


def table():
    random, rows = np.random.default_rng(0), 600
    return pa.table(
        {
            "who": [f"u{i}" for i in random.integers(0, 100, rows)],
            "page": random.choice(["home", "help", "shop"], rows),
            "day": random.choice(["mo", "tu"], rows),
            "amount": random.integers(0, 9, rows),
        }
    )


def stated():
    """The table of the page: for every question what it says of every place."""
    part = PAGE.read_text(encoding="utf-8").partition("## Which question runs where")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", part, re.M)]
    head, _, *cells = rows
    found = {}
    for first, *cell in cells:
        names, _, variants = first.partition(" - ")
        for name in names.split(", "):
            for variant in variants.split("; ") if variants else [""]:
                found[f"{name} {variant}".strip()] = dict(zip(head[1:], cell, strict=False))
    return {name: found[name] for name in found if name in QUESTIONS}


def places(folder):
    """What the places of the page stand for: makers of data, by name. A question that is asked again needs new data."""
    import duckdb
    import polars as pl
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    data, names = table(), table().schema.names
    rows = data.to_pylist()
    for suffix, between in (("csv", ","), ("tsv", "\t")):
        lines = [between.join(names), *(between.join(map(str, row.values())) for row in rows)]
        (folder / f"visits.{suffix}").write_text("\n".join(lines) + "\n")
    (folder / "visits.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    parquet.write_table(data, folder / "visits.parquet")
    feather.write_feather(data, folder / "visits.arrow")
    lists = [[row["page"] for row in rows if row["who"] == who] for who in sorted({row["who"] for row in rows})]
    (folder / "baskets.txt").write_text("".join(f"{' '.join(items)}\n" for items in lists))
    query = f"SELECT * FROM '{folder / 'visits.csv'}' WHERE amount < 8"
    tables = {
        "Arrow": lambda: data,
        "reader": data.to_reader,
        "pandas": data.to_pandas,
        "polars": lambda: pl.from_arrow(data),
        "DuckDB": lambda: duckdb.from_arrow(data),
        "dict": data.to_pydict,
    }
    files = {path.suffix: lambda path=path: dc.read(path) for path in sorted(folder.glob("visits.*"))}
    return {
        "files": files,
        "tables": tables,
        "`where`": {name: {**files, **tables}[name] for name in (".jsonl", ".parquet", "Arrow", "pandas")},
        "`--sql`": {"csv": lambda: dc.read(sql=query)},
        "baskets": {"baskets": lambda: dc.read(folder / "baskets.txt", format="baskets")},
        "lists": {"lists": lambda: lists},
    }


def ask(question, place, data):
    """Ask a question of data; of lists without the names of columns, which they do not have."""
    words = {"where": "amount < 8"} if place == "`where`" else {}
    if place in ("baskets", "lists"):
        words = {"column": None, "user": None}
        if isinstance(question, dc.Top) and question.user is not None:
            words["unit"] = "person"
    budget = dc.Budget(4.0, 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.WeakBudgetWarning)
        return dc.answer(dataclasses.replace(question, **words), data, budget)


def check(name, place, makers):
    """An answer where the page says yes, and otherwise the refusal that it states."""
    cell = stated()[name][place]
    for maker in makers.values():
        if cell == "yes":
            ask(QUESTIONS[name], place, maker())
            continue
        assert cell.startswith("no: ")
        with pytest.raises(dc.DiscreetError, match=re.escape(cell.removeprefix("no: "))):
            ask(QUESTIONS[name], place, maker())
