"""Runs the fast tests with the lowest and with the newest versions of everything that discreet depends on.

    python tests/matrix/run.py            # both; `make matrix`
    python tests/matrix/run.py lowest     # the lowest versions that pyproject.toml allows, on the lowest Python
    python tests/matrix/run.py newest     # the newest versions there are, on the highest Python

Pythons are looked for on the PATH and among those of pyenv. Each run has an environment of its own, build/matrix/NAME,
that is kept for the next one. With the lowest versions, a floor of pyproject.toml that cannot be installed together
with the others is an error: it promises what nobody can have. Warnings are errors, deprecations of the newest
libraries among them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# What meets other libraries: readers, tables, releases, commands, states. The service is started by test_commands.py.
ROOMS = "central cli continual engines events noise pan privacy questions releases summaries"
FAST = [*(f"tests/unit/{room}" for room in ROOMS.split()), "tests/golden", "tests/service/test_commands.py"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", choices=["lowest", "newest"], help="only this one")
    given = parser.parse_args().run
    pythons = find_pythons()
    print("Pythons found: " + ", ".join(f"3.{minor}" for minor in pythons), flush=True)
    if len(pythons) == 1:
        print("There is only one: it runs both, and other Pythons stay untested here.", flush=True)
    for run in [given] if given else ["lowest", "newest"]:
        minor = min(pythons) if run == "lowest" else max(pythons)
        print(f"{run} versions on Python 3.{minor} ({pythons[minor]})", flush=True)
        python = environment(f"{run}-3.{minor}", pythons[minor], floors() if run == "lowest" else [])
        tests = [python, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", *FAST]
        if subprocess.run(tests, cwd=ROOT).returncode:
            print(f"FAILED: {run} versions on Python 3.{minor}", file=sys.stderr)
            return 1
    return 0


def find_pythons() -> dict[int, str]:
    """What to run for each Python 3.N that pyproject.toml names and that is found, this one included."""
    pattern = re.compile(r"Programming Language :: Python :: 3\.(\d+)")
    minors = [int(found[1]) for line in PROJECT["project"]["classifiers"] if (found := pattern.fullmatch(line))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    pythons = {}
    for minor in sorted(minors):
        candidates = [shutil.which(f"python3.{minor}"), *pyenv.glob(f"3.{minor}.*/bin/python")]
        if minor == sys.version_info.minor:
            candidates.insert(0, sys.executable)
        working = [str(candidate) for candidate in candidates if candidate and is_python(str(candidate), minor)]
        if working:
            pythons[minor] = working[0]
    return pythons


def is_python(candidate: str, minor: int) -> bool:
    """Whether it runs, can make environments and build for itself: pyenv has names that do not run."""
    check = "import ensurepip, os, sys, sysconfig, venv\n"
    check += "print(sys.version_info[1], os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
    found = subprocess.run([candidate, "-c", check], capture_output=True, text=True)
    return found.stdout.split() == [str(minor), "True"]


def environment(name: str, python: str, constraints: list[str]) -> str:
    """The Python of an environment with discreet as it is here, and what the tests need."""
    folder = ROOT / "build" / "matrix" / name
    inside = folder / "bin" / "python"
    subprocess.run([python, "-m", "venv", folder], check=True)
    constrained = folder / "constraints.txt"
    constrained.write_text("".join(f"{line}\n" for line in constraints))
    pip = [inside, "-m", "pip", "install", "--quiet", "--upgrade", "--upgrade-strategy", "eager"]
    subprocess.run([*pip, "pip"], check=True)
    pip += ["--constraint", constrained]
    subprocess.run([*pip, *PROJECT["build-system"]["requires"], "cmake", "ninja"], check=True)
    build = ["--no-build-isolation", f"--config-settings=build-dir={folder}/build"]
    build += ["--config-settings=cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"]  # half the time of the compiler
    subprocess.run([*pip, *build, "--editable", f"{ROOT}[test]"], check=True)
    return str(inside)


def floors() -> list[str]:
    """`name==version` for every dependency, optional ones and those of the build included."""
    project = PROJECT["project"]
    lists = [PROJECT["build-system"]["requires"], project["dependencies"], *project["optional-dependencies"].values()]
    pinned = set()
    for requirement in (Requirement(text) for texts in lists for text in texts):
        lowest = [part.version for part in requirement.specifier if part.operator == ">="]
        if requirement.name != project["name"]:
            marker = f"; {requirement.marker}" if requirement.marker else ""
            pinned.add(f"{requirement.name}=={lowest[0]}{marker}")
    return sorted(pinned)


if __name__ == "__main__":
    sys.exit(main())
