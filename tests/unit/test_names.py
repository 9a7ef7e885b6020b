"""A name means one thing: no two classes share one, and no function is called `_`."""

import ast
import re
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"
# How many different people (or items) there are: the same question to two trust models, public in both.
# A histogram is a question, and it may be asked again at every tick.
SHARED = {
    "DistinctCount": {"discreet/continual/distinct_count.py", "discreet/pan/distinct_count.py"},
    "Histogram": {"discreet/continual/histogram.py", "discreet/questions/histogram.py"},
}


def test_a_name_is_one_class_and_every_function_has_one():
    places = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path.relative_to(SOURCES).as_posix())
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                assert node.name.strip("_"), path
    assert len(places) > 100
    assert {name: set(where) for name, where in places.items() if len(where) > 1} == SHARED


# The same question to two trust models.
FILES_OF_ONE_NAME = {"distinct_count.py", "histogram.py"}
NOUNS = {"accounting", "rounding", "_doubling"}  # of what is done
NO_THINGS = {"growing", "prepared"}


def test_a_file_has_a_name_that_no_other_has():
    """But for packages' own files, and commands, which are called like what they front."""
    places = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        if path.name not in ("__init__.py", "_base.py") and path.parent.name != "cli":
            places[path.name].append(path)
    assert {name for name, where in places.items() if len(where) > 1} <= FILES_OF_ONE_NAME


def test_files_are_called_by_things():
    stems = {path.stem for path in SOURCES.rglob("*.py")}
    assert {stem for stem in stems if re.fullmatch(r"_?[a-z]+(ing|ed)", stem)} <= NOUNS | NO_THINGS
