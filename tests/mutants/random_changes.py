"""Slips drawn by a seed from all rooms of the package, and whether the tests that reach the changed line notice them.

    python tests/mutants/random_changes.py --map                    # once: which test reaches which line; 20 minutes
    python tests/mutants/random_changes.py --map tests/unit/pan     # again for tests that are new; the rest is kept
    python tests/mutants/random_changes.py --number 40 --seed 7     # `make mutants SLIPS=40 SEED=7`
    python tests/mutants/random_changes.py --number 40 --seed 7 --list
    python tests/mutants/random_changes.py --number 40 --seed 7 --rooms events engines   # of these rooms alone
    python tests/mutants/random_changes.py --known reviewed ledger     # of the lists: this one, this word in file or name

A room is drawn, a slip of it by a file and by a kind. A list says something as long as nobody wrote tests for it: read
the score first, and take another seed the next time. What cannot be observed (a hint of speed, words of an error) is
left out where that can be told. The map is kept under out/random; code that moved since is found again by its text.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.mutants.mutants import MUTANTS
from tests.mutants.rooms import LISTS
from tests.mutants.run import ROOT, Bench, is_stale

OUT = ROOT / "out" / "random"
MOST = 120  # tests of a change
MAPPED = ["tests/unit", "tests/property", "tests/golden", "tests/e2e", "tests/service"]
# Tests of documents, of a browser, and of processes of their own: they take minutes and show no line.
UNMAPPED = "unit/test_(docs|english|papers|peers|native_stub|mutants)|e2e/test_(docs|demo)|service/test_(page|faults)"

EVERYWHERE = "unit/test_(defaults|limits|names)|test_counter.py::test_the_coefficients"  # they read all of the package

OTHERS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.And: ("and", "or"), ast.Or: ("or", "and"), ast.Add: ("+", "-"), ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
}  # fmt: skip
TWINS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "ceil": "floor", "floor": "ceil",
         "any": "all", "all": "any", "sorted": "list"}  # fmt: skip
# Most of these end in an error at once, and say little of the tests: they are drawn less often.
LOUD = ("== is !=", "!= is ==", "and is or", "or is and", "not is left out", "arguments are swapped", "+ is -",
        "- is +", "* is /", "/ is *", "any is all", "all is any")  # fmt: skip
UNORDERED = ("isinstance", "getattr", "cast", "zip", "issubclass", "max", "min")
WORDS = ast.JoinedStr | ast.List | ast.Tuple
# What only speed, words on a terminal or the life of a resource follow from.
HINTS = r"batch|chunk|cache|maxsize|buffer|thread|ahead|workers|stacklevel|indent|dpi|at_once|wait|timeout|help|metavar|slots|strict|poll"
HINTS += "|fontsize|linewidth|zorder|pad"  # of pictures
SILENT = "close|shutdown|join|debug|info|warning|warn|exception|terminate|kill|echo|print|cancel|simplefilter|collect"


@dataclass(frozen=True)
class Slip:
    kind: str
    line: int
    start: int
    end: int  # in bytes of the file
    new: str
    called: bool  # it is in a function: a test that notices has called that


class Slips:
    """All slips of one file, in `found`."""

    def __init__(self, text: str) -> None:
        self.text, self.found, self.starts, self.depth = text.encode(), [], [0], 0
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.look(ast.parse(text))

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def said(self, node: ast.AST) -> str:
        return self.text[slice(*self.span(node))].decode()

    def put(self, kind: str, node: ast.AST, new: str) -> None:
        self.add(kind, node.lineno, *self.span(node), new)

    def add(self, kind: str, line: int, start: int, end: int, new: str) -> None:
        self.found.append(Slip(kind, line, start, end, new, self.depth > 0))

    def look(self, node: ast.AST) -> None:
        """At a node and what is in it: not at annotations, documentation, words of errors and hints of speed."""
        parts = [*ast.iter_child_nodes(node)]
        match node:
            case ast.Raise() | ast.Assert() | ast.Expr(ast.Constant()):
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if re.search("^__(repr|str|dir|sizeof|del)__$|^_repr_", node.name):
                    return
                given = node.args
                both = [*zip([*given.posonlyargs, *given.args][::-1], given.defaults[::-1], strict=False)]
                both += [each for each in zip(given.kwonlyargs, given.kw_defaults, strict=True) if each[1]]
                for name, default in both:
                    if not re.search(HINTS, name.arg):
                        self.look(default)
                parts = node.body
                self.depth += 1
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                hint = re.search(f"__|TYPE_CHECKING|{HINTS}", self.said(target), re.IGNORECASE)
                parts = [] if hint or node.value is None else [node.value]
            case ast.Expr(ast.Call()):
                if re.fullmatch(SILENT, self.said(node.value.func).rpartition(".")[2]):
                    return
                self.put("a call is left out", node, "pass")
            case ast.AugAssign():
                self.put("a step is left out", node, "pass")
            case ast.If():
                if self.said(node.test) == "TYPE_CHECKING":
                    return
                if len(node.body) == 1 and isinstance(node.body[0], ast.Raise):
                    self.put("a check is left out", node.test, "False")
            case ast.Compare():
                for left, sign, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                    self.sign(left, sign, right)
            case ast.BoolOp():
                self.sign(node.values[0], node.op, node.values[1])
            case ast.BinOp():
                if not any(isinstance(n, WORDS) or isinstance(getattr(n, "value", 0), str | bytes) for n in parts):
                    self.sign(node.left, node.op, node.right)
            case ast.UnaryOp(ast.Not()):
                self.put("not is left out", node, f"({self.said(node.operand)})")
            case ast.UnaryOp(ast.USub()):
                self.put("a sign is left out", node, f"({self.said(node.operand)})")
            case ast.Constant(bool(value)):
                self.put("true is false", node, str(not value))
            case ast.Constant(int(value)):
                self.put("one more", node, str(value + 1))
                if value:
                    self.put("one less", node, str(value - 1))
            case ast.Constant(float(value)):
                self.put("another number", node, repr(0.9 if value == 0.95 else value * 1.25))
            case ast.Slice():
                for bound in parts[:2]:
                    self.put("a bound is moved", bound, f"({self.said(bound)}) + 1")
            case ast.Call():
                parts = self.call(node)
        for part in parts:
            self.look(part)
        self.depth -= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)

    def sign(self, left: ast.AST, operator: ast.AST, right: ast.AST) -> None:
        """It stands between two operands, perhaps with brackets or the end of a line beside it."""
        start, end = self.span(left)[1], self.span(right)[0]
        old, new = OTHERS.get(type(operator), ("", ""))
        gap = self.text[start:end].decode()
        if old and gap.count(old) == 1:
            self.add(f"{old} is {new}", left.end_lineno, start, end, gap.replace(old, new))

    def call(self, node: ast.Call) -> list[ast.AST]:
        """Slips of a call, and the parts of it where there may be others."""
        function = self.said(node.func)
        name = function.rpartition(".")[2]
        if re.search(f"(Error|Warning|Exception)$|^({SILENT})$", name):
            return []
        if name in TWINS and not (name == "sorted" and node.keywords):
            self.put(f"{name} is {TWINS[name]}", node.func, function.removesuffix(name) + TWINS[name])
        if name in ("copy", "list", "dict") and len(node.args) + isinstance(node.func, ast.Attribute) == 1:
            self.put("a copy is left out", node, self.said(node.args[0] if node.args else node.func.value))
        if len(node.args) > 1 and name not in UNORDERED and not isinstance(node.args[0], ast.Constant):
            (start, middle), (other, end) = map(self.span, node.args[:2])
            swapped = self.text[other:end] + self.text[middle:other] + self.text[start:middle]
            self.add("arguments are swapped", node.lineno, start, end, swapped.decode())
        named = [keyword for keyword in node.keywords if keyword.arg and not re.search(HINTS, keyword.arg)]
        for keyword in named:
            start, end = self.span(keyword)
            behind, before = re.match(rb"\s*,\s*", self.text[end:]), re.search(rb",\s*$", self.text[:start])
            start, end = (start, end + behind.end()) if behind else (before.start() if before else start, end)
            self.add("an argument is left out", keyword.value.lineno, start, end, "")
        return [node.func, *node.args, *(keyword.value for keyword in named)]


def drawn(number: int, seed: str, among: list[str] | None = None) -> list[tuple[Path, Slip]]:
    """Slips by chance: a room is drawn, then a file of it by its length, a kind that occurs in it, a slip of the kind.

    A room is a folder; `discreet` are the files of the house itself. Without names, all rooms are drawn from.
    """
    chance, rooms, slips = random.Random(f"slips {seed}"), defaultdict(list), {}
    for path in sorted((ROOT / "src" / "discreet").rglob("*.py")):
        if re.search("spark|postgres", path.name):  # they need a cluster or a server: `make spark`, `make hosts`
            continue
        slips[path] = Slips(path.read_text()).found
        rooms[path.parent.name] += [path] * bool(slips[path])  # files of the house itself are a room, too
    names, chosen = sorted(room for room in rooms if rooms[room]), {}
    if among is not None:
        if unknown := {*among} - {*names}:
            raise SystemExit(f"no such room: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
        names = sorted({*among})
    while len(chosen) < number:
        (path,) = chance.choices(room := rooms[chance.choice(names)], [len(slips[path]) for path in room])
        kinds = sorted({slip.kind for slip in slips[path]})
        (kind,) = chance.choices(kinds, [1 if kind in LOUD else 3 for kind in kinds])
        slip = chance.choice([slip for slip in slips[path] if slip.kind == kind])
        chosen.setdefault((path, slip.line), (path, slip))
    return list(chosen.values())


def known_changes(words: list[str]) -> list[tuple[Path, Slip]]:
    """Changes of the lists as slips, to be tried with the tests that reach their lines instead of those they name."""
    found = []
    for name, mutant in ((name, mutant) for name, each in {"critical": MUTANTS, **LISTS}.items() for mutant in each):
        its = (name, *(word for word in words if word in f"{mutant.file}: {mutant.name}"))
        if {*words} & {*its} and mutant.file.startswith("src/discreet/") and not is_stale(mutant):
            text = (ROOT / mutant.file).read_text()
            at = len(text[: text.index(mutant.old)].encode())
            same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(mutant.old, mutant.new, strict=False))])
            line = 1 + text[: text.index(mutant.old) + same].count("\n")
            functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
            called = any(node.lineno <= line <= (node.end_lineno or 0) for node in functions)
            slip = Slip(mutant.name, line, at, at + len(mutant.old.encode()), mutant.new, called)
            found.append((ROOT / mutant.file, slip))
    return found


# Which test reaches which line.

RAN: dict[str, float] = {}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """This file is a plugin of pytest while the map is made."""
    import coverage

    measured, started = coverage.Coverage.current(), time.monotonic()
    measured.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        measured.switch_context("")
        RAN.setdefault(item.nodeid, time.monotonic() - started)


def pytest_runtest_logreport(report):
    if not report.passed:
        RAN[report.nodeid] = -1.0  # skipped, or for another place: it notices nothing


def pytest_sessionfinish() -> None:
    Path(os.environ["DISCREET_RAN"]).write_text(json.dumps(RAN))


def make_map(bench: Bench, tests: list[str]) -> None:
    """Run tests with coverage's contexts, a process a core, and keep who reaches what; a later map of a test wins."""
    import coverage

    name, at_once = f"{time.time():.0f}", os.cpu_count() or 1
    (OUT / "coveragerc").write_text("[run]\nsource_pkgs = discreet\nrelative_files = true\n")
    files = [str(p.relative_to(bench.tree)) for t in tests for p in [bench.tree / t, *(bench.tree / t).rglob("*.py")]
             if p.name.startswith("test_") and not re.search(UNMAPPED, str(p))]  # fmt: skip
    number = min(4 * at_once, len(files))  # one process may get slow tests: the others go on with what is left
    with ThreadPoolExecutor(at_once) as pool:
        parts = [*pool.map(lambda n: map_part(bench, OUT / f"{name}-{n}", files[n::number]), range(number))]
    together, seconds = coverage.CoverageData(no_disk=True), {}
    for data, ran in parts:
        together.update(data)
        seconds |= ran
    keep_map(OUT / f"{name}.json", together, seconds, bench.tree)


def map_part(bench: Bench, name: Path, files: list[str]) -> tuple[Any, dict[str, float]]:
    import coverage

    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.mutants.random_changes"]
    data, ran, out = name.with_suffix(".coverage"), name.with_suffix(".ran"), name.with_suffix(".txt")
    named = {"COVERAGE_FILE": data, "COVERAGE_RCFILE": OUT / "coveragerc", "DISCREET_RAN": ran}
    environment = {**os.environ, "PYTHONPATH": str(bench.tree), **{key: str(named[key]) for key in named}}
    command = [bench.python, "-B", "-m", "coverage", "run", "-m", "pytest", *options, *files]
    with out.open("w") as words:
        subprocess.run(command, cwd=bench.tree, env=environment, stdout=words, stderr=words, check=False)
    print(f"{name.name}: {out.read_text().splitlines()[-1]}", flush=True)
    measured = coverage.CoverageData(str(data))
    measured.read()
    return measured, json.loads(ran.read_text())


def keep_map(path: Path, data: Any, seconds: dict[str, float], tree: Path) -> None:
    sources, lines = {}, {}
    for file in sorted(data.measured_files()):
        if not (tree / file).exists():
            continue
        room = Path(file).parts[2].removesuffix(".py")
        sources[file] = (tree / file).read_text().splitlines()
        reached = data.contexts_by_lineno(file).items()
        passed = {line: {t: seconds[t] for t in by if seconds.get(t, -1) >= 0} for line, by in reached}
        lines[file] = {line: preferred(tests, room) for line, tests in passed.items()}
    path.write_text(json.dumps({"sources": sources, "lines": lines, "seconds": seconds}))


def preferred(tests: dict[str, float], room: str) -> list[str]:
    """At most so many: those of the room first, quick ones first, of every file some."""
    seen: dict[str, int] = defaultdict(int)
    ranked = []
    for test in sorted(tests, key=lambda test: (tests[test], test)):
        file = test.partition("::")[0]
        ranked.append((seen[file] // (30 if f"/{room}" in file else 5), f"/{room}" not in file, tests[test], test))
        seen[file] += 1
    return [test for *_, test in sorted(ranked)[:MOST]]


class Map:
    """Tests that reach a line of today's sources, by maps of earlier ones."""

    def __init__(self) -> None:
        self.parts = [json.loads(path.read_text()) for path in sorted(OUT.glob("*.json"), reverse=True)]
        self.seconds: dict[str, float] = {}
        for part in self.parts:
            self.seconds = {**part["seconds"], **self.seconds}

    def tests(self, file: str, text: str, line: int) -> list[str]:
        found, done, now = set(), set(), text.splitlines()
        for part in self.parts:
            found |= set(self.reach(part, file, now, line)) - done
            done |= set(part["seconds"])
        return preferred({test: self.seconds[test] for test in found}, Path(file).parts[2])

    def reach(self, part: dict[str, Any], file: str, now: list[str], line: int) -> list[str]:
        sources = part["sources"]
        if file not in sources:  # it has another name since
            file = max(sources, key=lambda old: len({*sources[old]} & {*now}) / (9 + len(sources[old])))
        matched = difflib.SequenceMatcher(None, now, sources[file], autojunk=False).get_matching_blocks()
        before = {block.a + n: block.b + n for block in matched for n in range(block.size)}
        lines = part["lines"][file]
        above = range(line - 1, max(line - 30, -1), -1)
        top = next((n for n in above if re.match(r"\s*(async )?(def|class) ", now[n])), 0)
        below = range(line, min(line + 40, len(now)))
        for at in (*(n for n in above if n > top), *below):
            if tests := lines.get(str(before.get(at, -2) + 1)):
                return tests
        return list({test: 0 for tests in lines.values() for test in tests})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--map", nargs="*", metavar="TESTS", help="say which test reaches which line")
    parser.add_argument("--number", type=int, default=40)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--rooms", nargs="+", metavar="ROOM", help="draw from these rooms alone")
    parser.add_argument("--known", nargs="+", metavar="WORD", help="changes of the lists instead")
    parser.add_argument("--only", type=lambda text: [int(n) for n in text.split(",")], help="these of the list")
    parser.add_argument("--list", action="store_true", help="say what is drawn and stop")
    given = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if given.map is not None:
        bench = Bench(OUT / "mapped")  # not the copy in which changes may be tried meanwhile
        bench.prepare(build=False)
        make_map(bench, given.map or MAPPED)
        return 0
    slips = known_changes(given.known) if given.known is not None else drawn(given.number, given.seed, given.rooms)
    chosen = [(n, *each) for n, each in enumerate(slips, 1) if not given.only or n in given.only]
    told = {number: said(path, slip) for number, path, slip in chosen}
    if given.list:
        print(*(f"{number:3d} {told[number]}" for number, *_ in chosen), sep="\n")
        return 0
    with TemporaryDirectory(dir=OUT) as folder:
        noticed = try_all(Path(folder), chosen, told)
    score = sum(map(bool, noticed.values()))
    print(f"{score} of {len(noticed)} noticed: {100 * score / len(noticed):.0f} % (seed {given.seed})")
    return 0 if score == len(noticed) else 1


def try_all(folder: Path, left: list[tuple[int, Path, Slip]], told: dict[int, str]) -> dict[int, str]:
    """The test that notices each of the slips, by its number; empty where none does."""
    known, free, broken, noticed = Map(), Queue[Bench](), set(), {}
    for number in range(os.cpu_count() or 1):  # a copy a core
        bench = Bench(folder / str(number))
        bench.prepare(build=False)
        free.put(bench)

    def one(number: int, path: Path, slip: Slip) -> None:
        bench = free.get()
        noticed[number], verdict = tried(bench, known, path, slip, broken)
        free.put(bench)
        print(f"{number:3d} {verdict}  {told[number]}", flush=True)

    while left:
        with ThreadPoolExecutor(free.qsize()) as pool:
            for done in [pool.submit(one, *each) for each in left]:
                done.result()
        # What fails must pass without the change, or another test has to notice.
        failing = failures(bench, sorted(set(noticed.values()) - {"", "all"}), 3600)
        broken |= failing
        left = [each for each in left if noticed[each[0]] in failing]
    return noticed


def changed(text: str, slip: Slip) -> str:
    return (text.encode()[: slip.start] + slip.new.encode() + text.encode()[slip.end :]).decode()


def said(path: Path, slip: Slip) -> str:
    before = path.read_text()
    after = changed(before, slip).splitlines()
    lines = [line for line in difflib.ndiff(before.splitlines(), after) if line[:2] in ("- ", "+ ")]
    return "\n      ".join([f"{path.relative_to(ROOT)}:{slip.line}: {slip.kind}", *lines])


def tried(bench: Bench, known: Map, path: Path, slip: Slip, broken: set[str]) -> tuple[str, str]:
    """Change the copy, run what reaches the line, change it back: the test that notices, if any, and a verdict."""
    copy = bench.tree / path.relative_to(ROOT)  # as it was when the slips were drawn
    before, times = copy.read_text(), copy.stat()
    files = {str(file.relative_to(bench.tree)) for file in (bench.tree / "tests").rglob("test_*.py")}
    tests = [test for test in known.tests(str(path.relative_to(ROOT)), before, slip.line)
             if test.partition("::")[0] in files and test.partition("[")[0] not in broken]  # fmt: skip
    if not slip.called:
        tests = [*(test for test in known.seconds if re.search(EVERYWHERE, test)), *tests]
    copy.write_text(changed(before, slip))
    try:
        seconds = 120 + 10 * sum(known.seconds.get(test, 60) for test in tests)
        found = sorted(failures(bench, tests, seconds, "-x")) if tests else []
    finally:
        copy.write_text(before)
        os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
    return (found[0], f"noticed by {found[0]}") if found else ("", f"SURVIVED {len(tests)} tests")


def failures(bench: Bench, tests: list[str], seconds: float, *flags: str) -> set[str]:
    """Tests that fail; "all" where none can be run or the end is not reached."""
    command = [str(bench.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *flags]
    code, out = bench.ends([*command, *tests], seconds) if tests else (0, "")
    gone = re.findall(r"^ERROR: not found: \S*?/(tests/.*)$", out, re.MULTILINE)
    if code == 4 and gone and "ImportError" not in out:  # renamed since the map was made
        left = [test for test in tests if test not in gone]
        return failures(bench, left, seconds, *flags) if len(left) < len(tests) else set()
    found = re.findall(r"^(?:FAILED|ERROR) (tests/[^\s\[]+)", out, re.MULTILINE)
    return set() if code in (0, 5) else set(found) or {"all"}


if __name__ == "__main__":
    sys.exit(main())
