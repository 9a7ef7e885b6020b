"""One way to time: in turns, medians, with the load of the machine. Commands run in a process of their own each.

What the machine does meanwhile meets all that are compared, and the first round, which loads what is loaded once (and
writes the byte-code of modules, as installing does), does not count.
"""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")

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


class Took(NamedTuple):
    """Of a call: seconds, and seconds of CPU."""

    seconds: float
    cpu: float


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Cost:
    """What one run costs; an error if it fails."""
    around = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-S", "-c", _MEASURED, *command], check=True, stdout=subprocess.PIPE, text=True,
        env={**around, **(environment or {})},
    )  # fmt: skip
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, cpu, int(done.stdout.splitlines()[-1]) / 1024)


def in_turns(
    commands: Mapping[str, Sequence[str]], rounds: int, environment: Mapping[str, str] | None = None
) -> dict[str, Cost]:
    """The medians of each command."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            cost = run(command, environment)
            if number:
                costs[name].append(cost)
    return {name: Cost(*np.median(found, axis=0).tolist()) for name, found in costs.items()}


def took(call: Callable[[], object]) -> Took:
    """What one call takes."""
    start, used = time.perf_counter(), time.process_time()
    call()
    return Took(time.perf_counter() - start, time.process_time() - used)


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and its seconds."""
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start


def calls_in_turns(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Took]:
    """The medians of each call in this process."""
    found: dict[str, list[Took]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            cost = took(call)
            if number:
                found[name].append(cost)
    return {name: Took(*np.median(costs, axis=0).tolist()) for name, costs in found.items()}


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
