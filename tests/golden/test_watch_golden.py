"""States of `discreet watch` that were written once are read and gone on from; damaged ones are refused."""

import json
import shutil
from pathlib import Path

import pytest
from tests.commands import run_here

HERE = Path(__file__).parent / "watch"
# What the state was made with: 9 rows, a b a b ..., 4 a tick. Tick 2 is published, and a row of tick 3 was seen.
WRITTEN = {
    "heavy_hitters-v2": ["--epsilon", "400", "--delta", "0.01", "--capacity", "8"],
    "counter-v2": ["--rho", "1000000", "--total"],
}


@pytest.fixture(params=WRITTEN)
def state(request, tmp_path):
    shutil.copy(HERE / f"{request.param}.state", tmp_path / "state")
    (tmp_path / "rows.txt").write_text("".join(f"{'ab'[i % 2]}\n" for i in range(12)))
    return tmp_path / "state", WRITTEN[request.param]


def watch(state, options):
    command = ["watch", "rows.txt", "--state", "state", "--rows", "4", "--horizon", "5", "--once", *options]
    return run_here(*command, cwd=state.parent)


def shown(line):
    return line["total"] if "total" in line else {item["item"]: item["count"] for item in line["items"]}


def test_reads_and_goes_on(state):
    path, options = state
    done = watch(path, options)
    assert done.returncode == 0, done.stderr
    out = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["tick"] for line in out] == [2, 3]
    # The noise of such budgets is 0, but for a probability far below 1e-9.
    assert [shown(line) for line in out] == ([8, 12] if "--total" in options else [{"a": 4, "b": 4}, {"a": 6, "b": 6}])
    again = watch(path, options)
    assert [json.loads(line) for line in again.stdout.splitlines()] == out[-1:]


def test_no_bit_of_a_state_can_change(state, monkeypatch):
    """In the envelope: the position and the release that is printed again are under the checksum, too."""
    from discreet.errors import CorruptStateError
    from discreet.watch.watcher import read_state

    path, options = state
    assert watch(path, options).returncode == 0
    good = path.read_bytes()

    class Damaged:
        path = Path("state")

        def __init__(self, data):
            self.data = data

        def read(self):
            return self.data

    read_state(Damaged(good))
    for place in range(8 * len(good)):
        data = bytearray(good)
        data[place // 8] ^= 1 << place % 8
        with pytest.raises(CorruptStateError):
            read_state(Damaged(bytes(data)))


def test_every_file_is_checked():
    assert {path.stem for path in HERE.glob("*.state")} == set(WRITTEN)
