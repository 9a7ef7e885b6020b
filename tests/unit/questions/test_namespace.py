"""Questions as methods of data frames."""

import inspect
import subprocess
import sys

import pandas as pd
import polars as pl
import pytest

import discreet as dc
import discreet.pandas
import discreet.polars
from discreet.noise import seeded_source
from discreet.questions import KINDS
from discreet.questions.namespace import Asker

ROWS = {
    "page": ["home"] * 400 + ["help"] * 300,
    "who": [f"u{i}" for i in range(700)],
    "amount": [i % 100 for i in range(700)],
}
FRAMES = [pd.DataFrame(ROWS), pl.DataFrame(ROWS), pl.LazyFrame(ROWS)]
BUDGET, PURE = dc.Budget(1.0, 1e-6), dc.Budget(1.0)


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: f"{type(frame).__module__}.{type(frame).__name__}")
def test_a_method_is_its_function(frame):
    asked = [
        (dc.top_k, frame.discreet.top_k, (2, BUDGET), {"column": "page", "user": "who"}),
        (dc.count, frame.discreet.count, (PURE,), {"user": "who"}),
        (dc.distinct, frame.discreet.distinct, (PURE,), {"column": "page", "user": "who", "max_items": 1}),
        (dc.histogram, frame.discreet.histogram, (PURE,), {"column": "page", "universe": ["home", "help", "jobs"]}),
        (dc.quantiles, frame.discreet.quantiles, (PURE, [0.5]), {"column": "amount", "range": (0, 100)}),
        (dc.sum, frame.discreet.sum, (PURE,), {"column": "amount", "range": (0, 100)}),
        (dc.mean, frame.discreet.mean, (PURE,), {"column": "amount", "range": (0, 100)}),
        (dc.variance, frame.discreet.variance, (PURE,), {"column": "amount", "range": (0, 100)}),
    ]
    assert {function.__name__ for function, *_ in asked} == {name for name in dir(Asker) if not name.startswith("_")}
    for function, method, given, words in asked:
        here = method(*given, source=seeded_source(1), **words)
        there = function(frame, *given, source=seeded_source(1), **words)
        assert here.guarantee == there.guarantee
        assert str(here) == str(there)
        assert [*inspect.signature(method).parameters] == [*inspect.signature(function).parameters][1:]


@pytest.mark.parametrize("column", [FRAMES[0]["page"], FRAMES[1]["page"]], ids=["pandas", "polars"])
def test_a_column_can_be_asked(column):
    assert {*column.discreet.top_k(2, BUDGET).items} <= {"home", "help"}


def test_every_question_is_a_method():
    questions = {"top_k" if kind == "top" else kind for kind in KINDS}
    assert questions == {name for name in dir(Asker) if not name.startswith("_")}
    assert all(name in repr(FRAMES[0].discreet) for name in questions)


def test_nothing_is_registered_unless_it_is_asked_for():
    program = "import pandas, polars, discreet; print(*(hasattr(m.DataFrame, 'discreet') for m in (pandas, polars)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
