"""A name means one thing: no two classes share one, no function is called `_`, and options are the command line's."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

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


OPTION = re.compile(r"(?<![\w-])--[a-z]")


def said(tree):
    """All texts of a file but what documents it, and the commands that a question gives as an example of itself."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "var(--" not in node.value:  # of CSS
            yield node.value
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            waiting += (
                () if getattr(getattr(node, "target", None), "id", "") == "example" else ast.iter_child_nodes(node)
            )


@pytest.mark.parametrize(
    "room", sorted({path.name for path in (SOURCES / "discreet").iterdir()} - {"cli", "__pycache__"})
)
def test_nothing_below_the_command_line_names_an_option_or_prints(room):
    """Words of a question stand in braces there, and every front end spells them."""
    path = SOURCES / "discreet" / room
    for each in [path] if path.suffix == ".py" else sorted(path.rglob("*.py")):
        text = each.read_text(encoding="utf-8")
        if "--" in text or "print(" in text:
            tree = ast.parse(text)
            assert not [words for words in said(tree) if OPTION.search(words)], each
            assert not [node for node in ast.walk(tree) if getattr(node, "id", None) == "print"], each
