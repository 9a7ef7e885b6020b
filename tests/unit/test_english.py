"""What people read is plain English: short sentences, no foreign phrases, lines that fit."""

import ast
import re
from pathlib import Path

import click
import pytest

from discreet.cli.app import app

ROOT = Path(__file__).parents[2]
PHRASES = re.compile(
    r"\b(so many|but for|whoever|such a one|that is none|makes no whole|the table has not one)\b", re.I
)
STRICT = re.compile(r"\b(of which|such a)\b", re.I)
"""Not in what a beginner reads."""
SHELVES = ("Start", "Do", "Look up", "Understand")
FIRST = ("README.md", "docs/index.md", "docs/quickstart.md", "docs/budget.md", "docs/sign-off.md", "docs/promise.md")
LATER = ("docs/papers/", "docs/benchmarks", "docs/scale.md", "docs/deploy.md", "docs/queues.md")
LATER += ("docs/ledger.md", "docs/reliability.md")
MOST_WORDS = 30


def prose(text):
    """Markdown without code, tables and headings, a paragraph or an item of a list each."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "#", "    ", "!["))]
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", "\n".join(lines))
    return [" ".join(part.split()) for part in parts if part.strip()]


def sentences(text):
    text = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", text))
    return re.split(r"(?<=[.!?:;])\s+", text)


def raised():
    """(file and line, text) of the messages of errors; a value stands as one word."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1].endswith("Error"):
                for part in node.args:
                    if isinstance(part, ast.JoinedStr):
                        pieces = [each.value if isinstance(each, ast.Constant) else "value" for each in part.values]
                        yield f"{path.name}:{node.lineno}", "".join(map(str, pieces))
                    elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield f"{path.name}:{node.lineno}", part.value


def commands(command=app, name="discreet"):
    """(name, command) of all commands."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            yield from commands(command.get_command(context, each), f"{name} {each}")


def helped():
    for name, command in commands():
        yield name, command.help or ""
        yield from ((f"{name} {each.name}", getattr(each, "help", None) or "") for each in command.params)


def too_long(text):
    return [each for each in sentences(text) if len(each.split()) > MOST_WORDS]


@pytest.mark.parametrize("page", FIRST)
def test_first_pages_have_short_sentences(page):
    parts = prose((ROOT / page).read_text())
    assert not [each for part in parts for each in too_long(part)]
    assert not [part for part in parts if STRICT.search(part) and page != "docs/promise.md"]


def test_errors_and_help_have_short_sentences_and_plain_words():
    told = [*raised(), *helped()]
    assert len(told) > 1500
    assert not [(where, each) for where, text in told for each in too_long(text)]
    assert not [(where, text) for where, text in told if PHRASES.search(text.replace("release but for", ""))]


def test_the_checks_can_fail():
    assert too_long("word " * (MOST_WORDS + 1))
    assert not too_long("word " * MOST_WORDS)
    assert PHRASES.search("a person with at most so many items")


def pages():
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if not str(page.relative_to(ROOT)).startswith(LATER) and "more.md" not in page.name]


def test_pages_are_wrapped_and_have_no_foreign_phrases():
    wide, foreign = [], []
    for page in pages():
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for line in text.splitlines():
            bare = re.sub(r"`[^`]*`", "", line.strip())
            kept = line.startswith("    ") or line.lstrip().startswith(("|", "![", "#", "[", ">", "<"))
            if len(line) > 100 and not kept and " " in bare[:100]:
                wide.append((page.name, line))
            if PHRASES.search(line):
                foreign.append((page.name, line))
    assert not wide
    assert not foreign


def test_the_site_has_four_shelves():
    text = (ROOT / "docs/index.md").read_text()
    assert tuple(re.findall(r"^:caption: (.*)$", text, flags=re.MULTILINE)) == SHELVES


@pytest.mark.parametrize("given", ["topp", "TOP", "quantile", "ledgr"])
def test_a_near_miss_gets_a_suggestion(given):
    with pytest.raises(click.UsageError, match="did you mean"):
        app.get_command(click.Context(app), given)
