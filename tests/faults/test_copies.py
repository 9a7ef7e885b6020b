"""Copies of states, where a ledger knows what was published."""

import json
import shutil

import pytest

import discreet as dc

TICK = 1000  # rows: well above the threshold, so that versions of a tick differ


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows.txt").write_text("a\n" * 2 * TICK)
    return tmp_path


@pytest.fixture
def ledger(ledger_path):
    dc.Ledger(ledger_path).grant("rows", dc.Budget(2.0, 1e-3))
    return ledger_path


def watch_command(folder, ledger, state):
    pays = ["--ledger", ledger, "--account", "rows", "--epsilon", 1, "--delta", 1e-6]
    return ["watch", folder / "rows.txt", "--rows", TICK, "--horizon", 50, "--once", "--state", folder / state, *pays]


def printed(output):
    return [(line["tick"], line["items"]) for line in map(json.loads, output.splitlines())]


def more_rows(folder, ticks):
    with (folder / "rows.txt").open("a") as file:
        file.write("a\n" * TICK * ticks)


def charges(ledger):
    return [event for event in dc.Ledger(ledger).history("rows") if event.kind == "charge"]


def test_a_copy_of_a_watch_publishes_no_second_version(run, folder, ledger):
    assert run(*watch_command(folder, ledger, "state")).returncode == 0
    shutil.copy(folder / "state", folder / "copy")
    same = run(*watch_command(folder, ledger, "copy"))  # as far as the copy goes, it is the state
    assert same.returncode == 0
    more_rows(folder, 3)
    first = run(*watch_command(folder, ledger, "state"))
    assert [tick for tick, _ in printed(first.stdout)] == [2, 3, 4, 5]
    for options in ([], ["--quiet"]):
        copy = run(*watch_command(folder, ledger, "copy"), *options)
        assert copy.returncode == 1
        assert not copy.stdout
        assert "at step 2, and step 5 was published" in copy.stderr
        assert "--restored" in copy.stderr
    forgotten = run(*watch_command(folder, ledger, "copy")[:-8], "--epsilon", 1, "--delta", 1e-6)
    assert forgotten.returncode == 2
    assert "ledger" in forgotten.stderr
    assert len(charges(ledger)) == 1


def test_a_restored_watch_goes_on_after_the_last_tick_that_was_published(run, folder, ledger):
    assert run(*watch_command(folder, ledger, "state")).returncode == 0
    shutil.copy(folder / "state", folder / "backup")
    more_rows(folder, 3)
    first = printed(run(*watch_command(folder, ledger, "state")).stdout)
    more_rows(folder, 1)
    again = run(*watch_command(folder, ledger, "backup"), "--restored")
    assert again.returncode == 0, again.stderr
    assert printed(again.stdout)[:4] == first  # tick 2, the state's own, and 3 to 5, which were published
    assert [tick for tick, _ in printed(again.stdout)] == [2, 3, 4, 5, 6]
    assert len(charges(ledger)) == 2
    later = run(*watch_command(folder, ledger, "backup"))
    assert printed(later.stdout) == printed(again.stdout)[-1:]
    lost = run(*watch_command(folder, ledger, "state"))  # found again: others went on
    assert (lost.returncode, lost.stdout) == (1, "")
    assert len(charges(ledger)) == 2


def test_a_restored_watch_of_standard_input_skips_what_was_published(run, folder, ledger):
    def watch(rows, *options):
        pays = ["--ledger", ledger, "--account", "rows", "--rho", 0.001]
        done = run("watch", "-", "--rows", 1, "--horizon", 9, "--total", "--state", folder / "state", *pays, *options,
                   input="a\n" * rows)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return [(line["tick"], line["total"]) for line in map(json.loads, done.stdout.splitlines())]

    watch(2)
    backup = (folder / "state").read_bytes()
    known = watch(3)
    (folder / "state").write_bytes(backup)
    again = watch(2, "--restored")
    assert [tick for tick, _ in again] == [2, 6, 7]
    assert again[0] == known[0]
    assert watch(0) == again[-1:]


def test_copies_that_race_publish_one_version_of_every_tick(run, race, rounds, folder, ledger):
    """Four copies of a state at once: whatever they print of a tick is the same, and nothing is charged again."""
    assert run(*watch_command(folder, ledger, "state")).returncode == 0
    versions = {}
    for _ in range(rounds(1, 20)):
        more_rows(folder, 2)
        for number in range(4):
            shutil.copy(folder / "state", folder / f"copy{number}")
        ends = race([watch_command(folder, ledger, f"copy{number}") for number in range(4)])
        for _, out, _ in ends:
            for tick, items in printed(out):
                assert versions.setdefault(tick, items) == items
        newest = max(range(4), key=lambda number: (ends[number][0] == 0, len(ends[number][1])))
        assert ends[newest][0] == 0, ends
        shutil.copy(folder / f"copy{newest}", folder / "state")
    assert len(charges(ledger)) == 1


def test_a_watch_goes_on_with_the_ledger_that_it_was_begun_with(run, folder, ledger, new_ledger):
    """A state with ticks, a fresh ledger (or that of others): refused, nothing charged, nothing printed."""
    assert run(*watch_command(folder, ledger, "state")).returncode == 0
    fresh = new_ledger()
    more_rows(folder, 1)
    dc.Ledger(fresh).grant("rows", dc.Budget(2.0, 1e-3))
    for options in ([], ["--restored"]):
        other = run(*watch_command(folder, fresh, "state"), *options)
        assert (other.returncode, other.stdout) == (1, "")
        assert "started with another ledger" in other.stderr
    assert not charges(fresh)
    first = run(*watch_command(folder, ledger, "state"))
    assert [tick for tick, _ in printed(first.stdout)] == [2, 3]
    assert len(charges(ledger)) == 1
