"""Every command of the documentation runs, in its order, after the Python that stands before it on its page.

What a page does not make itself is in `MADE`: small files of the names that it uses. What cannot run in a test is in
`NOT_RUN`, with the reason; a command that is on neither list fails. docs/cookbook.md has a test of its own.
"""

import random
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.commands import run_here

import discreet as dc
import discreet.questions

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n)+")
PROGRAMS = ("discreet ", "make ", "pip ", "python ", "curl ", "for ", ".venv/bin/", "sudo ")

NOT_RUN = {
    "make ": "the tests would start themselves; that the target exists is checked",
    ".venv/bin/python benchmarks/": "minutes, and figures that need a quiet machine; that the file exists is checked",
    "pip install": "needs the network",
    "python -m venv": "needs the network, and a Spark cluster",
    "PYSPARK_PYTHON=": "needs a Spark cluster; tests/spark has one on this machine",
    "discreet audit": "minutes: `make audit` runs it, and tests/audit/test_audit_command.py its options",
    "discreet service run": "serves until it is stopped: tests/service",
    "discreet service token": "needs the folder of a service that ran: tests/service",
    "discreet bench": "counts two million items: tests/e2e/test_cli_bench.py",
    "curl ": "needs a running service: tests/service",
}
# Servers that a page names and a test has not: that the command knows its options is checked, tests/hosts run the rest.
ELSEWHERE = re.compile(r"\b(s3|gs|abfs|postgresql|kafka|nats)://")
KINDS = {  # of blocks, and what is done with them
    "python": "run by tests/unit/test_docs.py",
    "python spark": "run by tests/spark",
    "sh": "run here",
    "js": "run by tests/browser",
    "toml": "checked here by `discreet service check`, or `discreet report --plan`",
    "text": "what is printed",
}
ADDED = {"watch": ["--once"]}  # it would follow its file until it is stopped
SILENT = {"ledger", "pan", "party"}  # some of these write files, or say on standard error what they did


def pages():
    names = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
    return [name for name in names if name != "docs/cookbook.md" and any(kind == "sh" for kind, _ in parts(name))]


def parts(page):
    """(kind, text) of its fenced blocks, and of its indented blocks of commands as if they were fenced."""
    text = (ROOT / page).read_text()
    found = [(block.start(), block[1], block[2], block.end()) for block in FENCE.finditer(text)]
    for block in INDENTED.finditer(text):
        inside = any(start < block.start() < end for start, _, _, end in found)
        if not inside and block[0].strip().startswith(PROGRAMS):
            found.append((block.start(), "sh", re.sub("^ {4}", "", block[0], flags=re.MULTILINE), block.end()))
    return [("sh" if kind == "bash" else kind, code) for _, kind, code, _ in sorted(found)]


def commands(code):
    """The lines of a block without comments; of a loop over numbers the first ten."""
    for line in code.replace("\\\n", " ").splitlines():
        line = re.sub(r"\s+# .*$", "", line).strip()
        loop = re.fullmatch(r"for i in \$\(seq (\d+) (\d+)\); do (.*); done", line)
        if loop:
            yield from (loop[3].replace("$i", str(i)) for i in [*range(int(loop[1]), int(loop[2]) + 1)][:10])
        elif line and not line.startswith("#"):
            yield line


def is_a_synopsis(line):
    """`discreet top FILE... [--option]`: placeholders and choices instead of values."""
    return re.search(r"\[|\.\.\.|\w\|\w|[A-Z]{4,}", re.sub(r"\"[^\"]*\"|'[^']*'", "", line)) is not None


def searches(folder, *names):
    """Searches of 3,000 people, in files of these names; numbers of people where a name says log."""
    rng = random.Random(1)
    rows = [
        (rng.choice(["weather", "news", "cats"]), f"v{rng.randrange(3000)}", rng.randrange(900)) for _ in range(9000)
    ]
    table = pa.table(dict(zip(("query", "visitor", "user"), map(list, zip(*rows, strict=True)), strict=True)))
    for name in names:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if name.endswith(".parquet"):
            pq.write_table(table, path)
        elif name.endswith(".csv"):
            path.write_text("query,visitor,user\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
        else:
            path.write_text("".join(f"{c}\n" for _, _, c in rows))


def ballots(folder):
    (folder / "votes.txt").write_text("".join(f"{n % 8}:{n % 2}\n" for n in range(80)))
    (folder / "vectors.txt").write_text("01100110\n10000000\n" * 50)


def make_cli(folder):
    searches(folder, "searches.parquet", "log.csv", "monday.log", "tuesday.log")
    for account in ("searches", "clicks"):
        dc.Ledger(folder / "budgets.sqlite").grant(account, dc.Budget(2.0, 1e-8))
    (folder / "clicks.csv").write_text(
        "when,page,visitor\n" + "".join(f"2026-03-01T{n // 250:02}:00:00Z,p{n % 3},v{n % 90}\n" for n in range(1000))
    )
    (folder / "codes.txt").write_text("".join(f"c{n}\n" for n in range(50)))
    ballots(folder)
    (folder / "messages").mkdir()
    (folder / "visits.csv").write_text("code\n" + "c1\nc2\n" * 50)


def make_days(folder):
    (folder / "access.csv").write_text(
        "ts,visitor\n"
        + "".join(f"2026-03-{n // 1000 + 1:02}T{n // 42 % 24:02}:00:00Z,v{n % 90}\n" for n in range(1008))
    )


def make_hospitals(folder):
    for hospital in range(10):
        codes = "".join(f"{100 + (hospital + n) % 40}\n" for n in range(20))
        (folder / f"hospital-{hospital}.csv").write_text("code\n" + codes)
    (folder / "mine.csv").write_text("age,hour\n" + "".join(f"{30 + n % 20},{n % 24}\n" for n in range(60)))


def make_pan(folder):
    searches(folder, "log.csv", "access.log", "log.parquet")
    ballots(folder)
    (folder / "users.txt").write_text("".join(f"{n}\n" for n in range(900)))


def make_release(folder):
    account = dc.Ledger(folder / "budgets.sqlite")
    account.grant("readers", dc.Budget(2.0, 1e-8))
    top = dc.top_k(["a"] * 900 + ["b"] * 500, 2, dc.Budget(1.0, 1e-9), ledger=account.account("readers"))
    (folder / "release.json").write_text(top.to_json())


def make_visits(folder):
    rng = random.Random(1)
    rows = (
        f'10.0.0.{n % 250} - - [{1 + n % 28:02}/Oct/2026:10:00:00 +0000] "GET /{rng.choice("abc")} HTTP/1.1" '
        f"{rng.choice((200, 200, 404))} {rng.randrange(9000)}"
        for n in range(6000)
    )
    (folder / "access.log").write_text("\n".join(rows) + "\n")
    dc.Ledger(folder / "budgets.sqlite").grant("visitors", dc.Budget(8.0, 1e-5))


def make_shop(folder):
    rows = "".join(f"v{n % 1500},/{'abc'[n % 3]}\n" for n in range(4500))
    (folder / "visits.csv").write_text("visitor,page\n" + rows)


MADE = {
    "README.md": lambda folder: searches(folder, "out/searches.csv"),
    "docs/budget.md": make_shop,
    "docs/cli.md": make_cli,
    "docs/days.md": make_days,
    "docs/engines.md": lambda folder: searches(folder, "queries.parquet"),
    "docs/ledger.md": lambda folder: searches(folder, "log.csv"),
    "docs/multiparty.md": make_hospitals,
    "docs/pan.md": make_pan,
    "docs/sign-off.md": make_release,
    "docs/report.md": make_visits,
}


@pytest.mark.parametrize("page", pages())
def test_commands_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    MADE.get(page, lambda folder: None)(tmp_path)
    names = {}
    for kind, code in parts(page):
        if kind == "python":
            exec(compile(code, page, "exec"), names)
        elif kind == "toml":
            named = re.match(r"# (\S+)\n", code)
            with open(named[1] if named else "streams.toml", "w" if named else "a") as file:
                file.write(code)
            run(
                f"discreet report {named[1]} --plan"
                if "[[questions]]" in code
                else "discreet service check streams.toml"
            )
        elif kind == "sh":
            for line in commands(code):
                run(line)


def run(line):
    if any(line.startswith(start) for start in NOT_RUN):
        return looks_right(line)
    if is_a_synopsis(line) or ELSEWHERE.search(line):
        return knows_its_options(line)
    line, _, output = line.partition(" > ")
    program, *words = shlex.split(line)
    if program == "mkdir":
        return Path(words[0]).mkdir()
    assert program == "discreet", f"{line!r} is not run, and not on the list of what cannot be"
    done = run_here(*words, *ADDED.get(words[0], []))
    assert done.returncode == 0, (line, done.stderr)
    assert done.stdout or "--output" in words or words[0] in SILENT, line
    if output:
        Path(output).write_text(done.stdout)


def looks_right(line):
    program, *words = shlex.split(line)
    if program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
    elif program == ".venv/bin/python":
        assert (ROOT / words[0]).is_file(), line
    elif program == "discreet":
        knows_its_options(line)


_HELP = {name: ["--help-all"] for name in discreet.questions.KINDS}


def knows_its_options(line):
    """Every command that a synopsis names has every option that it names."""
    words = [word for word in re.split(r"[\s\[\]]+", line) if word]
    leaves = [word for word in words[1:3] if re.fullmatch(r"[a-z|-]+", word) and not word.startswith("-")]
    options = {word for word in words if re.fullmatch(r"--?[a-z-]+", word)}
    for name in leaves[0].split("|"):
        group = run_here(name, "--help")
        assert group.returncode == 0, line
        under = leaves[1].split("|") if len(leaves) > 1 and "COMMAND" in group.stdout.partition("\n")[0] else [None]
        asked = [run_here(*filter(None, (name, leaf)), *_HELP.get(name, ["--help"])) for leaf in under]
        assert all(done.returncode == 0 for done in asked), line
        if "|" not in line:
            assert not [option for option in options if not re.search(rf"(^|\s){option}\b", asked[0].stdout)], line


def test_every_block_is_of_a_kind_that_is_run_or_cannot_be():
    found = {
        (str(path.relative_to(ROOT)), kind)
        for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for kind, _ in parts(path.relative_to(ROOT))
        if not kind.startswith("{")  # a directive of the site
    }
    assert not [(page, kind) for page, kind in sorted(found) if kind not in KINDS]


def test_the_reasons_name_what_there_is():
    for reason in (*NOT_RUN.values(), *KINDS.values()):
        for path in re.findall(r"tests/[\w/.]+\w", reason):
            assert (ROOT / path).exists(), path
