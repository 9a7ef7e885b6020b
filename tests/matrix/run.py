"""Runs the fast tests with the lowest and with the newest versions of everything that discreet depends on.

    python tests/matrix/run.py         # the lowest versions on the lowest Python, the newest on the highest
    python tests/matrix/run.py --all   # both on every Python that is found: `make matrix ALL=1`
    python tests/matrix/run.py lowest 3.12

Each run has an environment of its own, build/matrix/NAME, that is kept for the next one. The lowest versions are those
that uv resolves to (`--resolution lowest-direct`) among what has a wheel for this Python. On the lowest Python they
must be the floors of pyproject.toml: a floor that cannot be installed with the others promises what nobody can have.
On later Pythons a floor may be older than the first wheel, and the run says where it is. Warnings are errors,
deprecations of the newest libraries among them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.matrix.pythons import PROJECT, ROOT, find_pythons

# What meets other libraries: readers, tables, releases, commands, states. The service is started by test_commands.py.
ROOMS = "central cli continual engines events noise pan privacy questions releases summaries"
FAST = [*(f"tests/unit/{room}" for room in ROOMS.split()), "tests/golden", "tests/service/test_commands.py"]
SOURCE_ONLY = ["nats-py", "pyspark"]  # written in Python, without wheels in their lowest versions


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", choices=["lowest", "newest"], help="only this one")
    parser.add_argument("python", nargs="?", help="on this Python: 3.12")
    parser.add_argument("--all", action="store_true", help="on every Python that is found")
    given = parser.parse_args()
    pythons = find_pythons()
    print("Pythons found: " + ", ".join(pythons), flush=True)
    if len(pythons) == 1:
        print("There is only one: it runs both, and other Pythons stay untested here.", flush=True)
    with_lock = [name for name in pythons if not name.endswith("t")]
    ends = {"lowest": with_lock[0], "newest": with_lock[-1]}
    runs = [(run, name) for run in ends for name in pythons if given.all or name == (given.python or ends[run])]
    failed = []
    for run, name in runs:
        if given.run in (None, run):
            print(f"{run} versions on Python {name} ({pythons[name]})", flush=True)
            constraints = lowest(pythons[name], strict=name == with_lock[0]) if run == "lowest" else []
            inside = environment(f"{run}-{name}", pythons[name], constraints)
            tests = [inside, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", *FAST]
            # Kernels do not promise to run without the global lock: it is switched on, and nothing warns of it.
            lock = {"PYTHON_GIL": "1"} if name.endswith("t") else {}
            if subprocess.run(tests, cwd=ROOT, env={**os.environ, **lock}).returncode:
                failed.append(f"{run} versions on Python {name}")
    for each in failed:
        print(f"FAILED: {each}", file=sys.stderr)
    return 1 if failed else 0


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


def lowest(python: str, strict: bool) -> list[str]:
    """`name==version` of what uv finds to be the lowest for this Python, and of the build."""
    extras = [f"--extra={name}" for name in ("test", "kafka", "lake", "nats", "postgres", "spark")]
    uv = ["uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", "--only-binary=:all:", "--python", python]
    uv += ["--resolution=lowest-direct", *(f"--no-binary={name}" for name in SOURCE_ONLY), *extras, "pyproject.toml"]
    done = subprocess.run([sys.executable, "-m", *uv], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the lowest versions cannot be installed together:\n{done.stderr}")
    found = dict(re.findall(r"^([a-z0-9._-]+)(?:\[.*\])?==(\S+)", done.stdout, re.MULTILINE))
    raised = []
    for name, floor in floors().items():
        if name in found and Version(found[name]) != Version(floor):
            raised.append(f"{name} {floor}: the first that can be had here is {found[name]}")
        found.setdefault(name, floor)
    print("".join(f"  {line}\n" for line in raised), end="", flush=True)
    if raised and strict:
        raise SystemExit("pyproject.toml allows versions that nobody can have")
    return sorted(f"{name}=={version}" for name, version in found.items() if name in floors())


def floors() -> dict[str, str]:
    """The lowest version of every dependency, optional ones and those of the build included."""
    project = PROJECT["project"]
    lists = [PROJECT["build-system"]["requires"], project["dependencies"], *project["optional-dependencies"].values()]
    found = {}
    for requirement in (Requirement(text) for texts in lists for text in texts):
        if requirement.name != project["name"]:
            (found[requirement.name],) = [part.version for part in requirement.specifier if part.operator == ">="]
    return found


if __name__ == "__main__":
    sys.exit(main())
