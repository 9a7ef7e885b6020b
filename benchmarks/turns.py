"""One way to time: in turns, medians, with the load of the machine. Commands run in a process of their own each.

What the machine does meanwhile meets all that are compared, and the first round, which loads what is loaded once (and
writes the byte-code of modules, as installing does), does not count.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")

DISCREET = str(Path(sysconfig.get_path("scripts")) / "discreet")

_MEASURED = """
import resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(done.returncode)
"""  # in a process of its own: what a child took at most is known of all children together


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
    done = subprocess.run(
        [sys.executable, "-S", "-c", _MEASURED, *command], check=True, stdout=subprocess.PIPE, text=True,
        env={**around, **(environment or {})},
    )  # fmt: skip
    return Cost(*map(float, done.stdout.split()))


def in_turns(
    commands: Mapping[str, Sequence[str]], rounds: int, environment: Mapping[str, str] | None = None
) -> dict[str, Cost]:
    """The medians of each command."""
    measures = {name: partial(run, command, environment) for name, command in commands.items()}
    return {name: Cost(*figures) for name, figures in medians_in_turns(measures, rounds).items()}


def medians_in_turns(measures: Mapping[str, Callable[[], Sequence[float]]], rounds: int) -> dict[str, list[float]]:
    """The medians of what each measures, number by number; one takes its turn after the other."""
    found: dict[str, list[Sequence[float]]] = {name: [] for name in measures}
    for number in range(rounds + 1):
        for name, measure in measures.items():
            figures = measure()
            if number:
                found[name].append(figures)
    return {name: np.median(of, axis=0).tolist() for name, of in found.items()}


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
    measures = {name: partial(took, call) for name, call in calls.items()}
    return {name: Took(*figures) for name, figures in medians_in_turns(measures, rounds).items()}


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
