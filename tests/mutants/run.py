"""Applies each small wrong change of `mutants.py` to a copy of the sources and runs the tests that should notice.

    python tests/mutants/run.py            # all; `make mutants`
    python tests/mutants/run.py pan kernel # those whose name or file contains one of the words
    python tests/mutants/run.py --sample 10 --seed 1   # so many of them, by chance; `.ci/run`
    python tests/mutants/run.py --list

A copy of the sources, an environment that imports the copy and not the installed package, and the build of the kernels
are made under out/mutants. The tests that notice a change must pass on the copy without it, or there is no score. A
change whose old text is not found exactly once is an error: the code has moved, and the set has to follow it.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.mutants.mutants import MUTANTS, Mutant
from tests.mutants.rooms import ROOMS

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 900  # seconds; a busy machine is no hang


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only those whose name or file contains one of these")
    parser.add_argument("--list", action="store_true", help="say what there is and stop")
    parser.add_argument("--sample", type=int, help="so many of them, by chance, none of the kernels or the audit")
    parser.add_argument("--seed", default="1", help="of the sample: a day, a commit")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutants", help="where the copy is made")
    given = parser.parse_args()
    everything = [*MUTANTS, *ROOMS]
    chosen = [m for m in everything if not given.words or any(w in m.name or w in m.file for w in given.words)]
    if given.list:
        for mutant in chosen:
            print(f"{mutant.file}: {mutant.name}")
        return 0
    if given.sample is not None:
        quick = [
            m for m in chosen if m.quick and not is_stale(m)
        ]  # how many are stale, tests/unit/test_mutants.py says
        chosen = random.Random(given.seed).sample(quick, min(given.sample, len(quick)))
    if stale := [m for m in chosen if is_stale(m)]:
        for mutant in stale:
            count = (ROOT / mutant.file).read_text().count(mutant.old)
            print(f"STALE  {mutant.file}: {mutant.name}: the old text occurs {count} times", file=sys.stderr)
        print("the code has moved: bring tests/mutants/mutants.py up to it", file=sys.stderr)
        return 2

    bench = Bench(given.out.resolve())
    bench.prepare(build=any(m.native for m in chosen))
    survivors = []
    for number, mutant in enumerate(chosen, 1):
        started = time.monotonic()
        noticed = bench.notices(mutant)
        survivors += [] if noticed else [mutant]
        verdict, seconds = "noticed" if noticed else "SURVIVED", time.monotonic() - started
        print(f"{number:3d}/{len(chosen)} {verdict} ({seconds:.0f} s)  {mutant.file}: {mutant.name}", flush=True)
    score = len(chosen) - len(survivors)
    print(f"\n{score} of {len(chosen)} noticed: {100 * score / max(len(chosen), 1):.1f} %")
    for mutant in survivors:
        print(f"survived: {mutant.file}: {mutant.name}" + (f" ({mutant.excuse})" if mutant.excuse else ""))
    return 1 if any(not mutant.excuse for mutant in survivors) else 0


def is_stale(mutant: Mutant) -> bool:
    """Whether the code has moved: what is to be changed is not there, or there twice."""
    return (ROOT / mutant.file).read_text().count(mutant.old) != 1 or mutant.old == mutant.new


class Bench:
    """A copy of the sources, its environment and its kernels."""

    def __init__(self, out: Path) -> None:
        self.tree, self.build, self.venv = out / "tree", out / "build", out / "venv"
        self.python = self.venv / "bin" / "python"
        self.passed: set[str] = set()
        self.changed_kernels = False

    def prepare(self, build: bool) -> None:
        """Copy, and take the native module as it is installed, or build it if kernels will be changed."""
        if self.tree.exists():
            shutil.rmtree(self.tree)
        for name in ("src", "cpp", "tests", "docs", "examples", "clients"):
            # Times are kept: what did not change since the last run is not compiled again.
            shutil.copytree(ROOT / name, self.tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        for name in ("CMakeLists.txt", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile"):
            shutil.copy2(ROOT / name, self.tree / name)
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.venv)], check=True)
        # Directories named in a .pth file are searched, but their own .pth files are not run: the editable install of
        # the package, which is one, is left out.
        (site,) = (self.venv / "lib").glob("python*/site-packages")
        (site / "mutants.pth").write_text(f"{self.tree / 'src'}\n{sysconfig.get_path('purelib')}\n")
        self.command = self.venv / "bin" / "discreet"  # tests start it
        self.command.write_text(f"#!{self.python}\nfrom discreet.cli import main\n\nmain()\n")
        self.command.chmod(0o755)
        if build:
            self.compile()
        else:
            from discreet import _native

            shutil.copy2(str(_native.__file__), self.tree / "src" / "discreet")

    def compile(self) -> None:
        """Build the copy's kernels."""
        tools = sysconfig.get_path("scripts")
        environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}

        def cmake(*arguments: object) -> None:
            done = subprocess.run(["cmake", *map(str, arguments)], env=environment, capture_output=True, check=False)
            if done.returncode:
                raise SystemExit(f"the kernels cannot be built:\n{done.stdout.decode()}{done.stderr.decode()}")

        if not (self.build / "build.ninja").exists():
            python = f"-DPython_EXECUTABLE={self.python}"
            cmake("-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", python)
        cmake("--build", self.build)
        for module in self.build.glob("_native*.so"):
            shutil.copy2(module, self.tree / "src" / "discreet")

    def notices(self, mutant: Mutant) -> bool:
        """Whether tests that pass without the change fail with it; the copy is as before afterwards."""
        path = self.tree / mutant.file
        before = path.read_text()
        path.write_text(before.replace(mutant.old, mutant.new))
        try:
            if mutant.native:
                self.changed_kernels = True
                self.compile()
            failed = self.failed(mutant.tests)
        finally:
            path.write_text(before)
        if self.changed_kernels:
            self.compile()
            self.changed_kernels = False
        again = tuple(each for each in failed if each not in self.passed)
        if again and self.failed(again):
            raise SystemExit(f"{' '.join(again)} fails without any change: no score")
        self.passed.update(again)
        return bool(failed)

    def failed(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """What fails in the copy: tests, or the audit. A change that hangs them is noticed, too."""
        at = arguments.index("audit") if "audit" in arguments else len(arguments)
        tests, words = arguments[:at], arguments[at:]
        if tests:
            flags = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
            code, out = self.ends([str(self.python), "-B", "-m", "pytest", *flags, *tests])
            if code not in (0, 1, 2):  # an error of pytest, a wrong argument, no tests
                raise SystemExit(f"pytest cannot run {' '.join(tests)}: exit code {code}\n{out}")
            if code:
                names = re.findall(r"^(?:FAILED|ERROR) ([^\s\[]+)", out, re.MULTILINE)
                return tuple(names) or tests
        # An audit that ends in any error has noticed.
        command = [str(self.python), "-B", "-c", "from discreet.cli import main; main()", *words, "--quick", "-q"]
        return words if words and self.ends(command)[0] else ()

    def ends(self, command: list[str], limit: float = TIMEOUT) -> tuple[int, str]:
        """The exit code and the words of a command in the copy."""
        try:
            done = subprocess.run(
                command, cwd=self.tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return 1, ""
        return done.returncode, done.stdout.decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
