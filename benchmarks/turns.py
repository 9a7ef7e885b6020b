"""One way to time commands: in turns, each in a process of its own, medians, with the load of the machine."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

DISCREET = str(Path(sysconfig.get_path("scripts")) / "discreet")

_MEASURED = (
    "import resource, subprocess, sys\n"
    "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    "sys.exit(done.returncode)\n"
)


class Cost(NamedTuple):
    """Of a command: seconds, seconds of CPU, and MiB at its peak."""

    seconds: float
    cpu: float
    mebibytes: float


def run(command: Sequence[str]) -> Cost:
    """What one run costs; an error if it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-S", "-c", _MEASURED, *command], check=True, stdout=subprocess.PIPE, text=True
    )
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, cpu, int(done.stdout.splitlines()[-1]) / 1024)


def in_turns(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, Cost]:
    """The medians of each command: all run once, then all again, so that what the machine does meanwhile meets all."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            costs[name].append(run(command))
    return {name: Cost(*np.median(found, axis=0).tolist()) for name, found in costs.items()}


def machine() -> str:
    """This machine, and how busy it is."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return f"{os.cpu_count()} cores, {model}, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}"
