"""The Pythons of this machine that discreet is for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def find_pythons() -> dict[str, str]:
    """What to run for each Python that pyproject.toml names and that is found, in order, this one included.

    Looked for on the PATH and among those of pyenv. Builds without the global lock are "3.13t", "3.14t".
    """
    pattern = re.compile(r"Programming Language :: Python :: 3\.(\d+)")
    minors = [int(found[1]) for line in PROJECT["project"]["classifiers"] if (found := pattern.fullmatch(line))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    pythons = {}
    for minor in sorted(minors):
        for name, folders in ((f"3.{minor}", f"3.{minor}.*[0-9]"), (f"3.{minor}t", f"3.{minor}.*[0-9]t")):
            candidates = [sys.executable, shutil.which(f"python{name}"), *pyenv.glob(f"{folders}/bin/python")]
            working = [str(each) for each in candidates if each and is_python(str(each), name)]
            if working:
                pythons[name] = working[0]
    return pythons


def is_python(candidate: str, name: str) -> bool:
    """Whether it runs, can make environments and build for itself: pyenv has names that do not run."""
    check = "import ensurepip, os, sys, sysconfig, venv\n"
    check += "free = 't' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''\n"
    check += "print(f'3.{sys.version_info[1]}{free}', os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
    found = subprocess.run([candidate, "-c", check], capture_output=True, text=True)
    return found.stdout.split() == [name, "True"]
