"""`discreet watch` from outside: rows a second, and kill -9 of the real command at random moments.

python benchmarks/watch.py speed [--rows 1000000]
python benchmarks/watch.py kills [--kills 100]         (of each: a file that grows, and standard input)
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from turns import calls_in_turns, run

import discreet as dc
from discreet.storage import open_state
from discreet.watch.watcher import FAMILY

DISCREET = [sys.executable, "-c", "import discreet.cli; discreet.cli.main()", "watch"]
ROWS_A_TICK = 10
BUDGET = dc.Budget(400.0, 1e-2)  # whose noise is 0, so that every row can be accounted for


def speed(arguments: argparse.Namespace) -> None:
    """Rows a second of the reader alone, and of the whole command with ticks of a tenth of the rows."""
    from discreet.events.live_input import LiveInput

    for name, line, options in (
        ("text", "item {1}\n", {}),
        ("csv", "{0},item {1}\n", {"column": "item"}),
        ("csv with times", "{0},item {1}\n", {"column": "item", "time_column": "when"}),
        ("jsonl", '{{"when": {0}, "item": "item {1}"}}\n', {"column": "item", "time_column": "when"}),
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"rows.{name.split()[0] if name != 'text' else 'txt'}"
            count = arguments.rows
            header = "when,item\n" if name.startswith("csv") else ""
            text = "".join(line.format(1_700_000_000 + i // 100, i % 5000) for i in range(count))
            path.write_text(header + text)

            def read(path: Path = path, options: dict[str, str] = options, count: int = count) -> None:
                reader = LiveInput(str(path), None, options.get("column"), options.get("time_column"), needs_items=True)
                reader.open(0)
                assert sum(len(batch) for batch in reader.available()) == count
                reader.close()

            rate = count / calls_in_turns({name: read}, 3)[name].cpu / 1e6
            command = [*DISCREET, str(path), "--state", f"{folder}/state", "--horizon", "10"]
            command += ["--rows", str(count // 10), "--once", "--quiet", "--epsilon", "1", "--delta", "1e-6"]
            command += ["--column", "item"] if "column" in options else []
            whole = run(command).cpu
            print(
                f"{name:16} reader {rate:.2f} M rows/s; "
                f"the whole command {whole:.2f} s of processor time for {count:,} rows",
                flush=True,
            )


def _command(folder: Path, file: str, horizon: int) -> list[str]:
    options = ["--state", folder / "state", "--horizon", horizon, "--rows", ROWS_A_TICK, "--capacity", 16, "--once"]
    options += ["--epsilon", BUDGET.epsilon, "--delta", BUDGET.delta, "--input-format", "text", "--quiet"]
    return [*DISCREET, file, *map(str, [*options, "--ledger", folder / "ledger.sqlite", "--account", "rows"])]


def kills(arguments: argparse.Namespace) -> None:
    """No double charge, no lost tick that was printed, no row counted twice; so many kills of each input."""
    for source in ("file", "standard input"):
        done = runs = 0
        while done < arguments.kills:
            with tempfile.TemporaryDirectory() as name:
                done += _until_used_up(Path(name), source, runs, arguments.kills - done)
                runs += 1
        print(f"{source}: killed {done} times in {runs} watches; all ticks printed, always the same, charged once each")


def _until_used_up(folder: Path, source: str, seed: int, most: int) -> int:
    """One watch, killed again and again; returns how often."""
    horizon, chance = 40, random.Random(f"{source} {seed}")
    rows = [f"{'ab'[i % 2]}\n" for i in range(horizon * ROWS_A_TICK)]
    ledger = dc.Ledger(folder / "ledger.sqlite")
    ledger.grant("rows", BUDGET)
    path = folder / "rows.txt"
    path.write_text("".join(rows))
    printed: dict[int, Any] = {}
    killed, patience = 0, 0.0
    while True:
        stdin = source != "file"
        with subprocess.Popen(
            _command(folder, "-" if stdin else str(path), horizon),
            stdin=subprocess.PIPE if stdin else None,
            stdout=subprocess.PIPE,
            bufsize=0,
        ) as process:
            assert process.stdout is not None
            before = len(printed)
            if stdin:
                _feed(process, rows, printed, folder / "state")
            if killed < most:
                # From the first moments on, and the longer the less came of it.
                time.sleep(chance.random() * (0.4 + patience))
                process.send_signal(signal.SIGKILL)
            text = process.stdout.read()
            process.wait()
        if process.returncode not in (0, -signal.SIGKILL):
            sys.exit(f"a watch ended with {process.returncode}")
        for line in text.splitlines(keepends=True):
            if line.endswith(b"\n"):
                result = json.loads(line)
                if printed.setdefault(result["tick"], result) != result:
                    sys.exit("a tick was printed twice with different results")
        patience = 0.0 if len(printed) > before else patience + 0.2
        killed += process.returncode != 0
        if process.returncode == 0:
            break
    counts = {tick: {row["item"]: row["count"] for row in result["items"]} for tick, result in printed.items()}
    half = ROWS_A_TICK // 2
    if counts != {tick: {"a": half * tick, "b": half * tick} for tick in range(1, horizon + 1)}:
        sys.exit("a tick is missing, or a row was lost or counted twice")
    if sum(event.kind == "charge" for event in ledger.history("rows")) != 1:
        sys.exit("the horizon was not charged exactly once")
    return killed


def _feed(process: Any, rows: list[str], printed: dict[int, Any], state: Path) -> None:
    """Send the rows after the last tick that was published, which the watch prints again when it starts."""
    after = 0
    data = open_state(state.read_bytes(), FAMILY, 2)[1] if state.exists() else b""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")] or b"{}")
    if header.get("published") is not None:
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            return
        result = json.loads(line)
        if printed.setdefault(result["tick"], result) != result:
            sys.exit("a tick was printed twice with different results")
        after = result["tick"] * ROWS_A_TICK
    try:
        process.stdin.write("".join(rows[after:]).encode())
        process.stdin.close()
    except BrokenPipeError:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (speed, kills):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        command.add_argument("--rows", type=int, default=10**6)
        command.add_argument("--kills", type=int, default=100)
    arguments = parser.parse_args()
    arguments.function(arguments)


if __name__ == "__main__":
    main()
