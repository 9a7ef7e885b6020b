"""One state, one use: races, links, kills while a state is written, and copies."""

import json
import os
import random
import signal
import subprocess
import time
from contextlib import nullcontext

import pytest

import discreet as dc
from discreet.storage import locked

ELEMENTS = "".join(f"{i}\n" for i in range(0, 4000, 2))


def values(ends):
    """What was printed by the commands that ended well, as JSON."""
    return [json.loads(out)["value"] for code, out, _ in ends if code == 0 and out]


def beside(state):
    """What lies beside a state, other than its lock."""
    return sorted(path.name for path in state.parent.iterdir() if path.name not in (state.name, f"{state.name}.lock"))


@pytest.fixture
def pan(run, tmp_path):
    """A pan-private state with one release left."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "items.txt").write_text(ELEMENTS)
    options = ["pan", "density", tmp_path / "in" / "items.txt", "--universe", 4000, "--epsilon", 1, "--quiet"]

    def make(state):
        done = run(*options, "--state", state)
        assert done.returncode == 0, done.stderr
        return state

    return make


def test_pan_releases_at_once_make_one_release(pan, race, rounds, tmp_path):
    for number in range(rounds(1, 40)):
        (tmp_path / str(number)).mkdir()
        state = pan(tmp_path / str(number) / "state")
        link = tmp_path / str(number) / "link"
        link.symlink_to(state)
        release = ["pan", "density", "--release", "--format", "json"]
        ends = race([[*release, "--state", state], [*release, "--state", link]] * 2)
        assert len(set(values(ends))) == 1, ends
        assert link.is_symlink()


def test_aggregators_at_once_lose_no_report(run, race, rounds, tmp_path):
    made = run("party", "round", tmp_path / "round.json", "--round-id", "r", "--epsilon", 2, "--universe", 4,
               "--protocol", "HadamardResponse")  # fmt: skip
    assert made.returncode == 0, made.stderr
    protocol = dc.multiparty.protocol_from_dict(json.loads((tmp_path / "round.json").read_text()))
    for part in range(8):
        (tmp_path / f"messages{part}").mkdir()
        for number in range(50 * part, 50 * part + 50):
            (tmp_path / f"messages{part}" / str(number)).write_bytes(protocol.party(number).encode([number % 4]))
    for number in range(rounds(1, 10)):
        state = tmp_path / f"state{number}"
        command = ["party", "aggregate", "--round", tmp_path / "round.json", "--state", state, "--quiet"]
        ends = race([[*command, tmp_path / f"messages{part}"] for part in range(8)])
        assert [code for code, *_ in ends] == [0] * 8, ends
        last = run(*command, "--format", "json")
        assert json.loads(last.stdout)["parties"] == 400
        assert state.stat().st_mode & 0o777 == 0o600


def watch_command(folder, state):
    budget = ["--epsilon", 1, "--delta", 1e-6]
    return ["watch", folder / "rows.txt", "--rows", 500, "--horizon", 50, "--once", "--state", state, *budget]


def ticks(output):
    return {line["tick"]: line["items"] for line in map(json.loads, output.splitlines())}


def test_a_link_to_a_state_is_followed_and_stays_a_link(run, tmp_path):
    (tmp_path / "rows.txt").write_text("a\n" * 2000)
    (tmp_path / "elsewhere").mkdir()
    state, link = tmp_path / "elsewhere" / "state", tmp_path / "link"
    link.symlink_to(state)
    first = run(*watch_command(tmp_path, link))  # makes what the link leads to
    assert first.returncode == 0, first.stderr
    assert link.is_symlink()
    assert state.stat().st_mode & 0o777 == 0o600
    with (tmp_path / "rows.txt").open("a") as file:
        file.write("a\n" * 2000)
    printed = ticks(first.stdout)
    for name in (link, state, link):
        again = run(*watch_command(tmp_path, name))
        assert again.returncode == 0, again.stderr
        for tick, items in ticks(again.stdout).items():
            assert printed.setdefault(tick, items) == items
    assert sorted(printed) == list(range(1, 9))
    assert link.is_symlink()


def test_a_state_under_two_names_is_refused(run, pan, tmp_path):
    (tmp_path / "rows.txt").write_text("a\n" * 2000)
    state = tmp_path / "state"
    assert run(*watch_command(tmp_path, state)).returncode == 0
    os.link(state, tmp_path / "twin")
    for name in ("state", "twin"):
        refused = run(*watch_command(tmp_path, tmp_path / name))
        assert refused.returncode == 1
        assert "hard link" in refused.stderr
        assert not refused.stdout
    other = pan(tmp_path / "pan")
    os.link(other, tmp_path / "pan-twin")
    refused = run("pan", "density", "--state", other, "--release")
    assert (refused.returncode, refused.stdout) == (1, "")


def test_a_state_in_use_is_refused_also_under_another_name(command, spawn, run, tmp_path):
    """Moved while it is in use, and its lock file deleted: the file itself is locked."""
    state, moved = tmp_path / "state", tmp_path / "moved"
    live = ["watch", "-", "--rows", 1, "--horizon", 9, "--state", state, "--total", "--rho", 1]
    with spawn(
        [*command, *live], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write("a\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["tick"] == 1
        state.rename(moved)
        (tmp_path / "state.lock").unlink()
        second = run(*["watch", "-", "--rows", 1, "--horizon", 9, "--total", "--rho", 1, "--state", moved], input="a\n")
        assert second.returncode == 5  # it may be tried again
        assert "another process" in second.stderr
        assert not second.stdout
        _, errors = process.communicate("a\n")  # what it would write now is not the state that it had
        assert process.returncode == 1
        assert "moved" in errors
    assert not state.exists()


def test_a_killed_pan_leaves_no_second_state(command, spawn, run, pan, rounds, tmp_path):
    """Killed at random moments; what is left beside the state is gone after the next start."""
    chance = random.Random(1)
    started = time.monotonic()
    state = pan(tmp_path / "state")
    longest = min(1.1 * (time.monotonic() - started), 1.0)  # on a busy machine most are killed earlier
    options = ["pan", "density", tmp_path / "in" / "items.txt", "--state", state, "--quiet"]
    for number in range(rounds(4, 250)):
        # The first one cannot come to its end, however fast the machine is: it waits for the state.
        with locked(state) if number == 0 else nullcontext():
            process = spawn([*command, *options], stderr=subprocess.PIPE)
            time.sleep(longest * (0.3 + 0.7 * chance.random()))
            process.send_signal(signal.SIGKILL)
            process.communicate()
        assert process.returncode in (-signal.SIGKILL, 0)
        assert process.returncode or number
    # The moment between two system calls, which no clock hits for certain.
    (tmp_path / ".state.discreet-new").write_bytes(state.read_bytes())
    last = run(*options)
    assert last.returncode == 0, last.stderr
    assert beside(state) == ["in"]
