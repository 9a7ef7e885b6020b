"""What people read is plain English: short sentences, no foreign phrases, known words, lines that fit."""

import ast
import re
from pathlib import Path

import click
import pytest
from spellchecker import SpellChecker

from discreet.cli.app import app

ROOT = Path(__file__).parents[2]
PHRASES = re.compile(
    r"\b(so many|but for|whoever|such a one|that is none|makes no whole|the table has not one)\b", re.I
)
STRICT = re.compile(r"\b(of which|such a)\b", re.I)
"""Not in what users read; proofs may have them."""
SHELVES = ("Start", "Do", "Look up", "Understand")
FIRST = ("README.md", "docs/index.md", "docs/quickstart.md", "docs/budget.md", "docs/sign-off.md", "docs/promise.md")
MOST_WORDS = 30
WORDS = ROOT / "tests/unit/english_words.txt"
"""Words of the project that no dictionary has, one a line, in order."""
_VALUE = "`value`"
_NOT_PROSE = (
    r"`[^`]*`",
    r"\]\([^)]*\)",
    r"https?://\S+",
    r"<[^>]*>",
    r"(?<!\w)--?[a-z][\w-]*",
    r"\"[^\"]*\"",
    r"(?<!\w)'[^']*'",
    r"\S*[/_.=@\d:{]\w\S*",
)
"""Code, addresses, options, what is quoted, and whatever has signs in the middle."""


def prose(text):
    """Markdown without code, tables and headings, a paragraph or an item of a list each."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "#", "    ", "!["))]
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", "\n".join(lines))
    return [" ".join(part.split()) for part in parts if part.strip()]


def sentences(text):
    text = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", text))
    return re.split(r"(?<=[.!?:;])\s+", text)


def texts_in(node):
    """The texts of an expression, each with `value` for what is filled in; of a choice both."""
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(each.value) if isinstance(each, ast.Constant) else _VALUE for each in node.values)]
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.IfExp):
        return [*texts_in(node.body), *texts_in(node.orelse)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        firsts, seconds = texts_in(node.left) or [_VALUE], texts_in(node.right) or [_VALUE]
        return [first + second for first in firsts for second in seconds]
    return []


def raised():
    """(file and line, text) of the messages of errors; a value stands as one word."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1].endswith("Error"):
                for part in node.args:
                    yield from ((f"{path.name}:{node.lineno}", text) for text in texts_in(part))


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


def words_of(text):
    """The words to spell; not what is code, a name with capitals inside, or of one or two letters."""
    for pattern in _NOT_PROSE:
        text = re.sub(pattern, "  ", text)
    found = re.findall(r"[A-Za-z]+(?:['\u2019][a-z]+)?", text)
    words = [re.sub(r"['\u2019]s?$", "", word) for word in found]
    return [word for word in words if len(word) > 2 and word[1:].islower()]


def too_long(text):
    return [each for each in sentences(text) if len(each.split()) > MOST_WORDS]


@pytest.mark.parametrize("page", FIRST)
def test_first_pages_have_short_sentences(page):
    parts = prose((ROOT / page).read_text())
    assert not [each for part in parts for each in too_long(part)]


def test_errors_and_help_have_short_sentences_and_plain_words():
    told = [*raised(), *helped()]
    assert len(told) > 1500
    assert not [(where, each) for where, text in told for each in too_long(text)]
    assert not [(where, text) for where, text in told if PHRASES.search(text.replace("release but for", ""))]


def spelled_pages():
    """All but proofs, papers and the reference of Python, which have names and formulas."""
    return [str(page.relative_to(ROOT)) for page in pages() if page.parent in (ROOT, ROOT / "docs")]


def test_words_are_spelled_right():
    speller, own = SpellChecker(language="en", distance=1), WORDS.read_text().split()
    assert own == sorted(own)
    told = [*raised(), *helped()]
    told += [(page, part) for page in spelled_pages() for part in prose((ROOT / page).read_text())]
    used = {(where, word.lower()) for where, text in told for word in words_of(text)}
    unknown = speller.unknown({word for _, word in used}) - {*own}
    assert not sorted((where, word) for where, word in used if word in unknown)


def test_the_checks_can_fail():
    assert words_of("a `cod` of 'quoted' --opt x.y teh people's ABC") == ["teh", "people"]
    assert SpellChecker(language="en", distance=1).unknown(["teh", "recieve", "people"]) == {"teh", "recieve"}
    assert texts_in(ast.parse('f"a {b}" + ("c" if d else "e")', mode="eval").body) == ["a `value`c", "a `value`e"]
    assert too_long("word " * (MOST_WORDS + 1))
    assert not too_long("word " * MOST_WORDS)
    assert PHRASES.search("a person with at most so many items")


def pages():
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if "more.md" not in page.name]


def test_pages_are_wrapped_and_have_no_foreign_phrases():
    wide, foreign = [], []
    for page in pages():
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for line in text.splitlines():
            bare = re.sub(r"`[^`]*`", "", line.strip())
            kept = line.startswith("    ") or line.lstrip().startswith(("|", "![", "#", "[", ">", "<"))
            if len(line) > 100 and not kept and " " in bare[:100]:
                wide.append((page.name, line))
            if PHRASES.search(line) or (STRICT.search(line) and str(page.relative_to(ROOT)) in spelled_pages()):
                foreign.append((page.name, line))
    assert not wide
    assert not foreign


@pytest.mark.parametrize(
    "page",
    [str(page.relative_to(ROOT)) for page in pages() if page.parent.name not in ("adr", "api")],
)
def test_a_page_begins_with_what_it_is_for(page):
    """Its first paragraph says what the reader can do after it; the two front pages say what discreet is."""
    first = prose((ROOT / page).read_text())[0]
    front = page in ("README.md", "docs/index.md")
    assert front or re.search(r"\bAfter this page\b|^Look up here\b", first), first


def test_the_site_has_four_shelves():
    text = (ROOT / "docs/index.md").read_text()
    assert tuple(re.findall(r"^:caption: (.*)$", text, flags=re.MULTILINE)) == SHELVES


@pytest.mark.parametrize(
    ("given", "meant"),
    [("median", "quantiles --quantile 0.5"), ("Average", "mean"), ("uniques", "distinct"), ("serve", "service run")],
)
def test_another_word_for_a_command_leads_to_it(given, meant):
    with pytest.raises(click.UsageError, match=f"no command named '{given}'; did you mean '{meant}'"):
        app.get_command(click.Context(app), given)
    assert app.get_command(click.Context(app), meant.split()[0]) is not None


@pytest.mark.parametrize("given", ["topp", "TOP", "quantile", "ledgr"])
def test_a_near_miss_gets_a_suggestion(given):
    with pytest.raises(click.UsageError, match="did you mean"):
        app.get_command(click.Context(app), given)
