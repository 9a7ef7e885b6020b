"""`discreet watch` against hostile rows, rotated files and pauses."""

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

import discreet as dc

PLENTY = ["--epsilon", 5000, "--delta", 0.5, "--capacity", 64]
POISON = {
    "txt": [b"\xff\xfe\n", b"x" * 5000 + b"\n"],
    "csv": [
        b"1,2,3,4\n",
        b"\xff,1\n",
        b"x\n",
        b'"a"b"c\n',
        b"x" * 5000 + b",1\n",
        b',"\n",\n',
        b"a\rb,1\n",
    ],
    "jsonl": [
        *(b"{\n", b"[1]\n", b'{"y": 1}\n', b'{"x": [1]}\n', b'{"x": "\\ud800"}\n', b"[" * 100_000 + b"\n"),
        *(b'{"x": 1.5}\n', b'{"x": true}\n', b'{"x": "%s"}\n' % (b"x" * 5000), b"\xff\n"),
    ],
}
PLAIN = {
    "txt": b"a\nb\na\nc\n",
    "csv": b"x,y\na,1\nb,1\na,1\nc,1\n",
    "jsonl": b"".join(b'{"x": "%c"}\n' % c for c in b"abac"),
}


@pytest.fixture
def watch(run, tmp_path):
    """watch(file, *options): the releases of a `watch --once`; it may be called again to go on."""

    def start(file, *options, state="state"):
        done = run("watch", file, "--state", tmp_path / state, "--once", *PLENTY, *options)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return start


def counts(release):
    return {row["item"]: row["count"] for row in release["items"]}


@pytest.mark.parametrize("kind", PLAIN)
def test_rows_that_cannot_be_read_stop_nothing_and_move_nothing(watch, tmp_path, kind):
    header, *rows = PLAIN[kind].splitlines(keepends=True) if kind == "csv" else [b"", *PLAIN[kind].splitlines(True)]
    file = tmp_path / f"rows.{kind}"
    column = [] if kind == "txt" else ["--column", "x"]
    options = ["--horizon", 99, "--rows", 8, "--window", 1, *column]
    found = []
    for others in (POISON[kind], [b"\n"] * len(POISON[kind])):
        # Every bad row keeps its place, as a blank one does: the others are in the ticks that they were in.
        file.write_bytes(header + b"".join(rows[i % 4] * 5 + other * 5 for i, other in enumerate(others)) + rows[0] * 9)
        found.append([counts(release) for release in watch(file, *options, state=f"state {len(found)}")])
    assert found[0] == found[1]
    assert sum(sum(tick.values()) for tick in found[0]) >= 3 * len(POISON[kind])


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59Z", "2025-12-01", "2026-05-05"])
def test_a_row_of_another_time_burns_no_tick(watch, tmp_path, time):
    rows = "".join(f"2026-01-01T{hour:02}:{minute:02}:00Z,a\n" for hour in range(5) for minute in range(0, 60, 5))
    file = tmp_path / "rows.csv"
    file.write_text("when,what\n" + rows[: 23 * 30] + f"{time},x\n" + rows[23 * 30 :])
    out = watch(file, "--horizon", 8760, "--tick", "1h", "--time", "when")
    assert [release["start"][11:13] for release in out] == ["00", "01", "02", "03"]
    assert counts(out[-1])["a"] == 48


def test_a_pause_is_no_reason_for_ticks(command, spawn, run, tmp_path):
    """Stopped for seconds, then killed and started again after seconds: both times one tick lasts as long as that."""
    options = ["--state", tmp_path / "state", "--horizon", 1000, "--tick", "1s", "--total", "--rho", 1e6]
    arguments = ["watch", tmp_path / "rows.txt", *options]
    (tmp_path / "rows.txt").write_text("a\n")
    ticks, pauses = {}, []

    def note(line):
        """From when to when a tick was, which is the same whenever it is printed."""
        told = json.loads(line)
        times = [datetime.fromisoformat(told[name]).timestamp() for name in ("start", "end")]
        assert ticks.setdefault(told["tick"], times) == times
        return times[1]

    for number in (signal.SIGSTOP, signal.SIGKILL):
        with spawn([*command, *arguments], stdout=subprocess.PIPE, text=True) as process:
            for _ in range(2):
                note(process.stdout.readline())
            process.send_signal(number)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            begins = time.time()
            time.sleep(3)
            pauses.append((begins, time.time() - 1))  # the tick of a second that is not over has not ended
            if number == signal.SIGSTOP:
                process.send_signal(signal.SIGCONT)
                while note(process.stdout.readline()) <= pauses[-1][1]:
                    pass
                process.kill()
            for line in process.stdout:
                note(line)
    for line in run(*arguments, "--once").stdout.splitlines():
        note(line)
    assert list(ticks) == list(range(1, len(ticks) + 1))
    ends = [end for _, end in ticks.values()]
    assert [start for start, _ in ticks.values()][1:] == ends[:-1]
    for first, last in pauses:
        assert not [end for end in ends if first < end < last]
        assert max(ends) >= last


@pytest.mark.parametrize("how", ["moved", "copied and emptied"])
@pytest.mark.parametrize("header", [True, False])
def test_rotated_files_are_read_once_each(watch, tmp_path, how, header):
    file = tmp_path / "rows.csv"
    options = ["--horizon", 99, "--rows", 4, "--column", "x"]
    file.write_text("x,y\n" + "a,1\n" * 5)
    out = watch(file, *options)
    with file.open("a") as writer:
        writer.write("b,1\n" * 5)
    if how == "moved":
        file.rename(tmp_path / "rows.csv.1")
    else:
        shutil.copy(file, tmp_path / "rows.csv.1")
        os.truncate(file, 0)
    with file.open("a") as writer:
        writer.write(("x,y\n" if header else "") + "c,1\n" * 100)
    out += watch(file, *options)[1:]
    assert counts(out[-1]) == {"a": 5, "b": 5, "c": 98}
    assert len(out) == 27
    with file.open("a") as writer:
        writer.write("d,1\n" * 2)
    assert counts(watch(file, *options)[-1]) == {"a": 5, "b": 5, "c": 100, "d": 2}


def test_a_file_is_followed_while_it_is_rotated(command, spawn, tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("a\na\n")
    options = ["--state", tmp_path / "state", "--horizon", 7, "--rows", 2, "--total", "--rho", 1e6]
    with spawn(
        [*command, "watch", file, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        totals = [json.loads(process.stdout.readline())["total"]]  # by now it has the file
        for i in range(3):
            with file.open("a") as writer:
                writer.write("b\nc\nd")  # without a newline: it is whole when the file is done
            file.rename(tmp_path / f"rows.{i}")
            file.write_text("e\n")
            totals += [json.loads(process.stdout.readline())["total"] for _ in range(2)]
        assert process.wait() == 0  # its time is limited
        assert not [line for line in process.stderr.read().splitlines() if "not there" in line]
    assert totals == [2, 4, 6, 8, 10, 12, 14]


def test_a_record_with_a_line_break_is_one_event_and_the_last_line_counts(watch, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("x,y\n" + '"one\nevent",1\n' * 4 + "a,2\n" * 4 + 'b,"3\n\n4"\n' * 4 + "last,5\n" * 3 + "last,5")
    options = ["--horizon", 9, "--rows", 16, "--column", "x", "--window", 1]
    assert [counts(release) for release in watch(file, *options)] == [{"one\nevent": 4, "a": 4, "b": 4, "last": 4}]
    with file.open("a") as writer:
        writer.write("\n" + "c,6\n" * 16)
    assert counts(watch(file, *options)[-1]) == {"c": 16}


def test_a_state_is_of_one_column(watch, run, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("x,y\na,1\nb,2\n")
    options = ["--horizon", 9, "--rows", 1]
    watch(file, *options, "--column", "x")
    for other in (
        ["--column", "y"],
        ["--column", "x", "--bad-rows", "error"],
        ["--column", "x", "--input-format", "tsv"],
    ):
        refused = run("watch", file, "--state", tmp_path / "state", "--once", *PLENTY, *options, *other)
        assert refused.returncode == 2, refused.stderr
        assert "other settings" in refused.stderr


MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, timeout=240)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_memory_does_not_grow_with_a_tick_or_a_line(command, tmp_path):
    used = []
    for size in (4, 100):
        file = tmp_path / f"{size}.txt"
        with file.open("wb") as out:
            for _ in range(size // 4):
                out.write(b"".join(b"item %09d\n" % i for i in range(180_000)))
                out.write(b"z" * (1 << 21))  # with the others one line, longer than may be
            out.write(b"\nlast\n")
        options = ["--state", tmp_path / f"state {size}", "--horizon", 2, "--rows", 10**9, "--once", *PLENTY]
        arguments = [sys.executable, "-c", MEASURED, *command, "watch", file, *options]
        done = subprocess.run([*map(str, arguments)], capture_output=True, text=True, check=True, timeout=300)
        used.append(int(done.stdout) / 1024)
    assert used[1] - used[0] < 60, used


def test_killed_at_random_moments(rounds, tmp_path, new_ledger):
    """Every printed tick is printed the same each time, none is missing, no row counts twice, one charge."""
    horizon, total = 25, 0
    for seed in range(rounds(1, 2)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "rows.txt").write_text("".join(f"{'ab'[i % 2]}\n" for i in range(10 * horizon)))
        place = new_ledger()
        ledger = dc.Ledger(place)
        ledger.grant("rows", dc.Budget(400.0, 1e-2))
        script = Path(__file__).with_name("watch_until_killed.py")
        done = subprocess.run(
            [sys.executable, script, folder, place, str(horizon), str(seed)],
            capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        total += int(done.stdout)
        printed = {}
        for line in (folder / "out.jsonl").read_text().splitlines():
            tick, shown = ast.literal_eval(line)
            assert printed.setdefault(tick, shown) == shown
        assert sorted(printed) == list(range(1, horizon + 1))
        for tick, shown in printed.items():
            # The noise of epsilon 400 over a few levels is 0, but for a probability far below 1e-9.
            assert shown == [("a", 5 * tick), ("b", 5 * tick)]
        assert len([event for event in ledger.history("rows") if event.kind == "charge"]) == 1
    assert total >= 1
