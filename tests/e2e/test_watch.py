"""`discreet watch`: ticks, resuming, kills, and what it refuses."""

import json
import os
import subprocess
import sys

import pytest
from tests.commands import run_here

import discreet as dc

DISCREET = [sys.executable, "-c", "import discreet.cli; discreet.cli.main()"]
PLENTY = ["--epsilon", "5000", "--delta", "0.5"]


def watch(*arguments, stdin=None, cwd=None):
    return run_here("watch", *arguments, input=stdin, cwd=cwd)


def lines(result):
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_rows_become_ticks_and_a_restart_goes_on(tmp_path):
    rows, state = tmp_path / "rows.txt", tmp_path / "state"
    rows.write_text("a\nb\na\na\na\nb\n" + "a")
    options = [rows, "--state", state, "--horizon", 5, "--rows", 3, "--once", *PLENTY, "--capacity", 8]
    first = lines(watch(*options))
    assert [line["tick"] for line in first] == [1, 2]
    assert first[-1]["items"][0] == {**first[-1]["items"][0], "item": "a", "count": 4}
    assert any("number of rows is public" in text for text in first[0]["guarantee"]["assumptions"])
    assert (state.stat().st_mode & 0o077) == 0
    with rows.open("a") as file:
        file.write("\na\na\nc\n")
    second = lines(watch(*options))
    assert second[0] == first[-1]  # printed again, as it was
    assert [line["tick"] for line in second] == [2, 3]
    assert second[-1]["items"][0]["count"] == 7


def test_ticks_by_a_column_of_times(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text(
        "when,what\n2026-01-01T00:10:00Z,a\n2026-01-01T00:20:00Z,a\n2026-01-01T03:00:00Z,b\n2026-01-01T03:01:00Z,b\n"
        "2026-01-01T04:00:00Z,a\n"
    )
    out = lines(
        watch(
            rows,
            "--state",
            tmp_path / "state",
            "--horizon",
            9,
            "--tick",
            "1h",
            "--time",
            "when",
            "--once",
            *PLENTY,
        )
    )
    assert [line["start"][11:13] for line in out] == ["00", "01", "02", "03"]
    assert [{row["item"]: row["count"] for row in line["items"]} for line in out][-1] == {"a": 2, "b": 2}


def test_totals_from_standard_input(tmp_path):
    text = "".join(json.dumps({"x": i}) + "\n" for i in range(25))
    out = lines(
        watch(
            *["-", "--state", tmp_path / "s", "--horizon", 9, "--rows", 10],
            *["--total", "--rho", 1e6, "--input-format", "jsonl"],
            stdin=text,
        )
    )
    assert [line["total"] for line in out] == [10, 20, 25]


def test_the_clock_ends_ticks_while_standard_input_is_silent(spawn, tmp_path):
    options = ["-", "--state", tmp_path / "s", "--horizon", 2, "--tick", "1s", "--total", "--rho", 1e6]
    read, write = os.pipe()
    os.write(write, b"a\nb\n")  # there before the first tick is
    with spawn([*DISCREET, "watch", *options], stdin=read, stdout=subprocess.PIPE, text=True) as process:
        os.close(read)
        totals = [json.loads(process.stdout.readline())["total"] for _ in range(2)]
        assert process.wait() == 0  # its time is limited
    os.close(write)
    assert totals[-1] == 2


def test_once_waits_for_the_end_of_standard_input(spawn, tmp_path):
    options = ["-", "--state", tmp_path / "s", "--horizon", 9, "--rows", 2, "--total", "--rho", 1e6, "--once"]
    command = [*DISCREET, "watch", *options]
    with spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("a\nb\n")
        process.stdin.flush()
        first = process.stdout.readline()  # by now it has read all there is, and must not take that for the end
        process.stdin.write("a\nb\nc\n")
        process.stdin.close()
        rest = process.stdout.read().splitlines()
        assert process.wait() == 0
    assert [json.loads(line)["total"] for line in [first, *rest]] == [2, 4, 5]


def test_a_state_goes_on_with_its_capacity_when_nobody_gives_one(tmp_path):
    rows, state = tmp_path / "rows.txt", tmp_path / "state"
    rows.write_text("a\n" * 20)
    options = [rows, "--horizon", 5, "--rows", 10, "--once", "--epsilon", 1, "--delta", 1e-6, "--state", state]
    for given in (["--capacity", 64], [], ["--capacity", 64]):
        assert watch(*options, *given).returncode == 0
    assert watch(*options, "--capacity", 65_536).returncode == 2


@pytest.mark.parametrize("how", [["--capacity", 8], ["--memory", "200MB"], ["--universe", "UNIVERSE"], ["--total"]])
def test_without_a_horizon_it_goes_on_through_epochs(tmp_path, how):
    rows, state, universe = tmp_path / "rows.txt", tmp_path / "state", tmp_path / "universe.txt"
    rows.write_text("a\nb\na\n" * 5)
    universe.write_text("a\nb\n")
    how = [universe if option == "UNIVERSE" else option for option in how]
    options = [rows, "--state", state, "--rows", 3, "--once", *PLENTY, *how]
    first = lines(watch(*options))
    assert [line["tick"] for line in first] == [1, 2, 3, 4, 5]
    assert first[-1]["parameters"] == {"horizon": None}
    with rows.open("a") as file:
        file.write("a\nb\na\n" * 4)
    again = watch(*options)
    assert "of None" not in again.stderr
    second = lines(again)
    assert second[0] == first[-1]
    assert [line["tick"] for line in second] == [5, 6, 7, 8, 9]
    changed = watch(*options, "--horizon", 9)
    assert changed.returncode == 2
    assert "other settings: horizon" in changed.stderr


def test_charged_once_and_refusals(tmp_path):
    rows, state = tmp_path / "rows.txt", tmp_path / "state"
    rows.write_text("a\n" * 20)
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("rows", dc.Budget(1.0, 1e-6))
    pays = ["--ledger", tmp_path / "ledger.sqlite", "--account", "rows"]
    options = [rows, "--horizon", 5, "--rows", 10, "--once", "--epsilon", 1, "--delta", 1e-6, *pays]
    for _ in range(3):
        assert watch(*options, "--state", state).returncode == 0
    charges = [event for event in ledger.history("rows") if event.kind == "charge"]
    assert len(charges) == 1
    refused = watch(*options, "--state", tmp_path / "another")
    assert refused.returncode == 3
    assert not refused.stdout
    changed = watch(*options, "--state", state, "--capacity", 5)
    assert changed.returncode == 2
    assert "other settings: capacity" in changed.stderr
    for wrong in (["--tick", "1 hour"], ["--rows", 3, "--tick", "1h"], [], ["--rows", 0]):
        bad = watch(rows, "--state", tmp_path / "x", "--horizon", 5, "--epsilon", 1, "--delta", 1e-6, *wrong)
        assert bad.returncode == 2, bad.stderr
    state.write_bytes(b"nonsense")
    assert watch(*options, "--state", state).returncode == 4


def test_no_item_in_errors(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\nsecret,1,2\n")
    options = ["--column", "a", "--state", tmp_path / "s", "--horizon", 5, "--rows", 1, "--once", *PLENTY]
    bad = watch(rows, *options, "--bad-rows", "error")
    assert bad.returncode == 4
    assert "secret" not in bad.stderr


@pytest.mark.parametrize(("text", "ticks"), [("", 0), ("\n\n", 2)])
def test_nothing_to_read(tmp_path, text, ticks):
    rows = tmp_path / "rows.txt"
    rows.write_text(text)
    out = lines(watch(rows, "--state", tmp_path / "s", "--horizon", 5, "--rows", 1, "--once", *PLENTY))
    assert [line["items"] for line in out] == [[]] * ticks  # a blank row has its place, and no event


@pytest.mark.parametrize("text", ["", "\n", "a\n", "a\nb\n"])
def test_the_last_tick_of_the_clock_is_published_with_rows_or_without(tmp_path, text):
    options = ["-", "--state", tmp_path / "s", "--horizon", 3, "--tick", "1d", "--total", "--rho", 1e6]
    assert [line["total"] for line in lines(watch(*options, stdin=text))] == [len(text.split())]


@pytest.mark.parametrize(
    ("name", "header", "row", "blank"),
    [
        ("rows.txt", "", "{}\n", "\n"),
        ("rows.csv", "x\n", "{}\n", "\n"),
        ("rows.csv", "t,x\n", "1,{}\n", "1,\n"),
        ("rows.jsonl", "", '{{"x":"{}"}}\n', '{"x":null}\n'),
    ],
)
def test_a_blank_row_leaves_the_others_in_their_ticks(tmp_path, name, header, row, blank):
    column = [] if name.endswith("txt") else ["--column", "x"]
    rows, found = tmp_path / name, []
    for second in (row.format("b"), blank):
        rows.write_text(header + "".join(10 * text for text in (row.format("a"), second, row.format("c"))))
        state = ["--state", tmp_path / f"state{len(found)}"]
        options = [rows, *column, *state, "--horizon", 9, "--rows", 15, "--once", *PLENTY, "--window", 1]
        out = lines(watch(*options))
        with rows.open("a") as file:
            file.write("\n" * 5 + 10 * row.format("d"))
        again = lines(watch(*options))
        assert again[0] == out[-1]
        found.append([{line["item"]: line["count"] for line in tick["items"]} for tick in [*out, *again[1:]]])
    assert found[0] == [{"a": 10, "b": 5}, {"b": 5, "c": 10}, {"d": 10}]
    assert found[1] == [{"a": 10}, {"c": 10}, {"d": 10}]


def test_totals_do_not_count_blank_rows(tmp_path):
    options = ["-", "--state", tmp_path / "s", "--horizon", 9, "--rows", 2, "--total", "--rho", 1e6]
    assert [line["total"] for line in lines(watch(*options, stdin="a\n\nb\nc\n\n"))] == [1, 3, 3]


def test_times_in_milliseconds_are_refused_before_anything_is_drawn(tmp_path):
    rows, state = tmp_path / "rows.csv", tmp_path / "state"
    rows.write_text("when,what\n1700000000000,secret\n1700007200000,secret\n")
    options = [rows, "--horizon", 5, "--tick", "1h", "--time", "when", "--once", *PLENTY]
    assert not lines(watch(*options, "--state", tmp_path / "skips"))
    bad = watch(*options, "--state", state, "--bad-rows", "error")
    assert bad.returncode == 4, bad.stderr
    assert "years 1 to 9999" in bad.stderr
    assert "secret" not in bad.stderr
    assert "17000" not in bad.stderr
    assert not bad.stdout


def test_the_first_and_the_last_dates_there_are(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("when,what\n0001-01-01T00:00:00Z,a\n0001-01-02T00:00:00Z,a\n" + "9999-12-31T23:59:59Z,a\n" * 2)
    options = [rows, "--state", tmp_path / "s", "--horizon", 2, "--tick", "5000d", "--time", "when", "--once"]
    out = lines(watch(*options, *PLENTY, "--ahead", "999999999d"))
    assert out[0]["start"] == "0001-01-01T00:00:00+00:00"
    assert len(out) == 2


def test_increases_over_the_last_ticks(tmp_path):
    rows, state = tmp_path / "rows.txt", tmp_path / "state"
    rows.write_text("a\na\nb\n" * 3 + "a\nb\nb\n" * 2)
    (tmp_path / "items").write_text("a\nb\n")
    listed = ["--universe", tmp_path / "items"]
    options = [rows, "--state", state, "--horizon", 9, "--rows", 3, "--once", *PLENTY, "--increase", 2]
    first = lines(watch(*options, *listed))
    assert ["increase" in line for line in first] == [False, False, True, True, True]
    risen = first[-1]["increase"]
    assert (risen["since"], risen["tick"], risen["confidence"], risen["appeared"]) == (3, 5, 0.95, [])
    assert [row["item"] for row in risen["items"]] == ["b", "a"]  # since tick 3 there came 4 and 2
    for row, true in zip(risen["items"], (4, 2), strict=True):
        assert row["lower"] <= true <= row["upper"]
        assert row["upper"] - row["lower"] <= 2
    with rows.open("a") as file:
        file.write("a\na\na\n")
    again = lines(watch(*options, *listed, "-k", 1))
    assert again[-1]["increase"]["since"] == 4  # what was published before the restart is remembered
    assert [row["item"] for row in again[-1]["increase"]["items"]] == ["a"]
    total = lines(watch(*options[:2], tmp_path / "total", *options[3:], "--total"))[-1]["increase"]
    assert (total["since"], total["tick"]) == (4, 6)
    assert total["lower"] <= 6 <= total["upper"] <= total["lower"] + 2
    other = watch(*options[:-2], *listed)
    assert other.returncode == 2
    assert "other settings: increase" in other.stderr
    people = "--window of people needs --horizon or --max-visits"
    for refused, said in (
        (["--user", "x"], people),
        (["--user", "x", "--distinct"], people),
        (["--total"], "--increase has"),
    ):
        result = watch(rows, "--state", tmp_path / "no", "--rows", 3, "--once", *PLENTY, "--window", 2, *refused)
        assert result.returncode == 2
        assert said in result.stderr
    assert not (tmp_path / "no").exists()


def test_sets_of_items(tmp_path):
    """A row holds a list: each of its items counts, up to a bound, and one row is hidden with all of them."""
    rows, state = tmp_path / "tags.jsonl", tmp_path / "state"
    sets = [["a", "b"]] * 4 + [["b", "b", "c", "late"]] * 3 + [[], ["a", None], "a", [1.5], ["a", 1], None]
    rows.write_text("".join(json.dumps({"tags": each, "who": n % 5}) + "\n" for n, each in enumerate(sets)))
    ticks = ["--horizon", 1, "--rows", len(sets), "--once", *PLENTY, "--column", "tags"]
    found = watch(rows, "--state", state, "--sets", "--max-items", 2, *ticks)
    (tick,) = lines(found)
    assert {row["item"]: row["count"] for row in tick["items"]} == {"a": 5, "b": 7, "c": 3}
    assert tick["guarantee"]["unit"]["name"] == "Event"
    assert "3: an item" in found.stderr  # for the operator: what is left out, and why
    people = ["--sets", "--user", "who", "--max-items", 9]
    (tick,) = lines(watch(rows, "--state", tmp_path / "people", *people, *ticks))
    assert {row["item"]: row["count"] for row in tick["items"]} == {"a": 4, "b": 5, "c": 3, "late": 3}
    assert tick["guarantee"]["unit"]["max_items"] == 9
    again = watch(rows, "--state", state, *ticks[:4], "--universe", 9, *ticks[4:])
    assert (again.returncode, "other settings: class" in again.stderr) == (2, True)


def test_lists_that_nobody_called_sets_are_left_out_and_told(tmp_path):
    (tmp_path / "tags.jsonl").write_text('{"tags": ["a"]}\n' + '{"tags": "b"}\n' * 9)
    ticks = ["--horizon", 9, "--rows", 10, "--once", *PLENTY, "--capacity", 8]
    found = watch(tmp_path / "tags.jsonl", "--state", tmp_path / "s", *ticks, "--column", "tags")
    assert [row["item"] for row in lines(found)[0]["items"]] == ["b"]
    assert "lists of items need sets" in found.stderr


def test_baskets_that_grow(tmp_path):
    (tmp_path / "baskets").write_text("milk bread\n\nmilk  milk eggs\n" * 5)
    ticks = ["--horizon", 9, "--rows", 15, "--once", *PLENTY]
    words = ["--sets", "--input-format", "baskets", "--max-items", 2]
    (tick,) = lines(watch(tmp_path / "baskets", "--state", tmp_path / "s", *ticks, *words))
    assert {row["item"]: row["count"] for row in tick["items"]} == {"milk": 10, "bread": 5, "eggs": 5}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--sets"], "sets of items must be JSON lists"),
        (["--max-items", 3], "--max-items needs --user or --sets"),
        (["--sets", "--capacity", 9], "--capacity cannot be combined with --sets"),
        (["--sets", "--total"], "--sets cannot be combined with --total"),
    ],
)
def test_what_does_not_go_with_sets(tmp_path, words, why):
    (tmp_path / "rows.csv").write_text("a\nx\n")
    done = watch(tmp_path / "rows.csv", "--state", tmp_path / "s", "--rows", 2, *PLENTY, *words)
    assert (done.returncode, why in done.stderr) == (2, True), done.stderr


def test_people_may_leave_a_window_but_not_all_of_time(tmp_path):
    """Three people in the first tick, one in the second: of a window the number falls, of all of time it stays."""
    rows = tmp_path / "rows.csv"
    rows.write_text("who\n" + "a\nb\nc\n" + "a\na\na\n")
    options = [rows, "--horizon", 9, "--rows", 3, "--once", *PLENTY, "--increase", 1, "--user", "who", "--distinct"]
    window = lines(watch(*options, "--window", 1, "--state", tmp_path / "window"))[-1]["increase"]
    assert window["lower"] <= -2 <= window["upper"] < 0
    assert window["upper"] - window["lower"] <= 4
    ever = lines(watch(*options, "--state", tmp_path / "ever"))[-1]["increase"]
    assert 0 == ever["lower"] <= ever["upper"] <= 2
    for told in (window, ever):
        assert (told["confidence"], told["since"], told["tick"]) == (0.95, 1, 2)
        assert told["lower"] <= told["value"] <= told["upper"]
