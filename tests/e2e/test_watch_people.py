"""`discreet watch` for people, and over a known universe: what is counted, restarts, and what it refuses."""

import json
from collections import Counter, defaultdict

import pytest
from tests.commands import run_here

import discreet as dc

PLENTY = ["--rho", "50000"]
HOUR = 3600
START = 1_760_000_400  # on the hour


def watch(*arguments, stdin=None):
    return run_here("watch", *arguments, input=stdin)


def lines(result):
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def counts(line):
    return {row["item"]: row["count"] for row in line["items"] if row["count"]}


def rows(number=240, people=23, hours=6):
    """(who, what, when); a fifth of them come an hour late."""
    for n in range(number):
        late = HOUR if n % 5 == 0 and n > number // hours else 0
        yield f"v{n * 7 % people}", "abcdefg"[n * n % 7], START + n * hours * HOUR // number - late


def right(taken, most, universe="abcdefg"):
    """What is counted after these rows."""
    held = defaultdict(list)
    for who, what, _ in taken:
        if what in universe and what not in held[who] and len(held[who]) < most:
            held[who].append(what)
    out = defaultdict(int)
    for items in held.values():
        for item in items:
            out[item] += 1
    return dict(out)


@pytest.fixture(params=["csv", "jsonl"])
def log(request, tmp_path):
    path = tmp_path / f"log.{request.param}"
    if request.param == "csv":
        path.write_text("at,who,what\n" + "".join(f"{when},{who},{what}\n" for who, what, when in rows()))
    else:
        path.write_text("".join(json.dumps({"at": t, "who": w, "what": x}) + "\n" for w, x, t in rows()))
    return path


@pytest.fixture
def universe(tmp_path):
    path = tmp_path / "universe.txt"
    path.write_text("a\nb\nc\nz\n")
    return path


def in_window(taken, first, last, universe):
    """What is counted of the rows of ticks of 40, over some of these ticks."""
    return dict(
        Counter(what for _, what in {row[:2] for row in taken[40 * (first - 1) : 40 * last]} if what in universe)
    )


def test_a_window_of_people_and_a_restart(log, universe, tmp_path):
    """The budget is so large that no count is off."""
    taken, told = list(rows()), ["--rows", 40, "--horizon", 6, "--once", "--rho", 2000, "--window", 2]
    for name, options in (("all", []), ("two", ["--max-visits", 2])):
        asked = [log, "--state", tmp_path / name, *told, "--user", "who", "--column", "what", "--universe", universe]
        out = lines(watch(*asked, "--max-items", 9, *options))
        assert [line["covers"] for line in out[:3]] == [
            {"first_tick": max(1, t - 1), "last_tick": t} for t in (1, 2, 3)
        ]
        if not options:
            assert [counts(line) for line in out] == [in_window(taken, max(1, t - 1), t, "abcz") for t in range(1, 7)]
        assert any("first 2 visits" in text for text in out[0]["guarantee"]["assumptions"]) == bool(options)
    asked = [log, "--state", tmp_path / "people", *told, "--user", "who", "--distinct"]
    people = [len({who for who, *_ in taken[40 * max(0, t - 2) : 40 * t]}) for t in range(1, 7)]
    out = lines(watch(*asked))
    assert [line["people"] for line in out] == people
    assert lines(watch(*asked)) == out[-1:]  # all ticks were published: the last again


def test_people_by_rows_and_a_restart_goes_on(log, universe, tmp_path):
    options = [log, "--state", tmp_path / "s", "--rows", 80, "--horizon", 9, "--column", "what", "--user", "who"]
    options += ["--universe", universe, "--max-items", 2, "--once", *PLENTY]
    taken = list(rows())
    out = lines(watch(*options))
    assert [counts(line) for line in out] == [right(taken[:n], 2, "abcz") for n in (80, 160, 240)]
    assert {line["counted"] for line in out} == {"people"}
    said = out[0]["guarantee"]
    assert said["unit"]["name"] == "User"
    assert said["unit"]["max_items"] == 2
    assert any("a person who is left out leaves blank rows" in text for text in said["assumptions"])
    with log.open("a") as file:
        for n in range(80):
            who, what = f"new{n}", "a"
            row = (
                f"{START},{who},{what}" if log.suffix == ".csv" else json.dumps({"at": START, "who": who, "what": what})
            )
            file.write(row + "\n")
    again = lines(watch(*options))
    assert again[0] == out[-1]
    assert counts(again[1])["a"] == counts(out[-1])["a"] + 80


def test_people_by_times_wait_for_late_rows(log, universe, tmp_path):
    """Rows of later ticks are held with their people."""
    options = [log, "--state", tmp_path / "s", "--tick", "1h", "--late", "2h", "--time", "at", "--horizon", 9]
    options += ["--column", "what", "--user", "who", "--universe", universe, "--start", START, "--once", *PLENTY]
    out = lines(watch(*options))
    assert len(out) >= 3
    for number, line in enumerate(out, 1):
        # In a tick the held rows come when it opens, in the order in which they came.
        ticks = sorted(rows(), key=lambda row: row[2] // HOUR)
        assert counts(line) == right([row for row in ticks if row[2] < START + number * HOUR], 10, "abcz")


def test_different_people(log, tmp_path):
    options = [log, "--state", tmp_path / "s", "--rows", 8, "--horizon", 30, "--user", "who", "--distinct"]
    out = lines(watch(*options, "--once", *PLENTY))
    seen = [len({who for who, _, _ in list(rows())[:n]}) for n in range(8, 241, 8)]
    assert [line["people"] for line in out] == seen
    assert out[0]["standard_deviation"] < 1
    assert out[0]["guarantee"]["unit"]["name"] == "User"


def test_rows_over_a_universe(log, universe, tmp_path):
    options = [log, "--state", tmp_path / "s", "--rows", 120, "--horizon", 3, "--column", "what", "--once", *PLENTY]
    out = lines(watch(*options, "--universe", universe))
    exact = defaultdict(int)
    for _, what, _ in rows():
        exact[what] += 1
    assert counts(out[-1]) == {item: exact[item] for item in "abc"}
    assert {row["item"] for row in out[-1]["items"]} == set("abcz")
    other = tmp_path / "other.txt"
    other.write_text("a\nb\n")
    refused = watch(*options, "--universe", other)
    assert refused.returncode != 0
    assert "other settings" in refused.stderr


def test_numbers_of_a_universe_are_items_by_their_digits(tmp_path):
    (tmp_path / "log.csv").write_text("n\n" + "3\n4\n3\n")
    out = lines(
        watch(
            *[tmp_path / "log.csv", "--state", tmp_path / "s", "--rows", 3, "--horizon", 3, "--once", *PLENTY],
            *["--universe", "2:5"],
        )
    )
    assert counts(out[0]) == {"3": 2, "4": 1}


def test_items_that_come_need_people(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("who,what\n" + "".join(f"u{n},often\n" for n in range(3000)) + "one,secret\n" * 2999 + "one,x\n")
    options = [path, "--state", tmp_path / "s", "--rows", 6000, "--horizon", 3, "--column", "what"]
    (line,) = lines(watch(*options, "--user", "who", "--epsilon", 1, "--delta", 1e-6, "--once"))
    assert [row["item"] for row in line["items"]] == ["often"]
    assert line["threshold"] < 1000


def test_rows_of_nobody_are_left_out_or_refused(universe, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("who,what\nu,a\n,a\n  ,a\n,a\nv,a\n" + "w,b\n")
    options = [path, "--rows", 3, "--horizon", 3, "--column", "what", "--user", "who", "--universe", universe]
    out = lines(watch(*options, "--state", tmp_path / "s", "--once", *PLENTY))
    assert [counts(line) for line in out] == [{"a": 1}, {"a": 2, "b": 1}]  # their places stay
    refused = watch(*options, "--state", tmp_path / "t", "--once", *PLENTY, "--bad-rows", "error")
    assert refused.returncode != 0
    assert "without a value" in refused.stderr


def test_a_ledger_pays_once(log, tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("people", dc.Budget.zcdp(1.0))
    options = [log, "--state", tmp_path / "s", "--rows", 80, "--horizon", 9, "--user", "who", "--distinct"]
    options += ["--rho", 1, "--once", "--ledger", tmp_path / "budgets.sqlite", "--account", "people"]
    first, second = lines(watch(*options)), lines(watch(*options))
    assert second == first[-1:]
    assert ledger.account("people").spent().rho == 1.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--distinct"], "--user"),
        (["--max-items", 3], "--user"),
        (["--distinct", "--user", "who", "--column", "what"], "cannot be combined with --column"),
        (["--distinct", "--user", "who", "--universe", "9"], "--universe"),
        (["--distinct", "--user", "who", "--max-items", 3], "--max-items"),
        (["--total", "--user", "who"], "--total"),
        (["--window", 2, "--universe", "9"], "--window cannot be combined with --universe or --sets of rows"),
        (["--max-visits", 2, "--user", "who"], "--max-visits needs --window"),
        (["--max-visits", 2, "--window", 2], "--max-visits needs --user"),
        (["--universe", "integers"], "--universe"),
        (["--user", "who", "--column", "what"], "epsilon and delta"),
        (["--user", "who", "--column", "what", "--max-items", 0], "max_items"),
    ],
)
def test_what_does_not_go_together_is_refused(log, tmp_path, options, said):
    result = watch(log, "--state", tmp_path / "s", "--rows", 80, "--horizon", 9, "--once", *options, *PLENTY)
    assert result.returncode != 0
    assert said in result.stderr


def test_former_spellings_are_understood_and_named(log, tmp_path):
    options = [log, "--rows", 80, "--horizon", 9, "--column", "what", "--once", "--epsilon", 400, "--delta", 1e-2]
    now = watch(*options, "--state", tmp_path / "now", "--user", "who", "--max-items", 2)
    then = watch(*options, "--state", tmp_path / "then", "--user-column", "who", "--max-items-per-user", 2)
    assert "is now called" not in now.stderr
    assert "--user-column is now called --user\n" in then.stderr
    assert "--max-items-per-user is now called --max-items\n" in then.stderr
    assert lines(then)[-1]["guarantee"] == lines(now)[-1]["guarantee"]
    both = watch(*options, "--state", tmp_path / "both", "--user-column", "who", "--user", "who")
    assert both.returncode == 2
    assert "give --user alone" in both.stderr


def test_a_column_that_is_not_there_is_named(tmp_path):
    (tmp_path / "log.csv").write_text("who,what\nu,a\n")
    result = watch(
        *[tmp_path / "log.csv", "--state", tmp_path / "s", "--rows", 80, "--horizon", 9, "--once"],
        *["--user", "nobody", "--column", "what", "--epsilon", 1, "--delta", 1e-6],
    )
    assert result.returncode != 0
    assert "'nobody'" in result.stderr


def test_text_lines_have_no_people(tmp_path):
    (tmp_path / "log.txt").write_text("a\n")
    result = watch(
        *[tmp_path / "log.txt", "--state", tmp_path / "s", "--rows", 80, "--horizon", 9, "--once", *PLENTY],
        *["--user", "who", "--distinct"],
    )
    assert "lines of text have no columns" in result.stderr


def test_a_window_of_people_in_runs_of_a_day_needs_a_bound_of_visits(log, tmp_path):
    days = ["--state", tmp_path / "s", "--per", "1d", "--time", "at", "--tick", "1h", "--window", 2, "--once"]
    budget = ["--epsilon", 1, "--delta", "1e-6"]
    result = watch(log, *days, "--user", "who", "--distinct", *budget)
    assert result.returncode == 2
    assert "--window of people needs --horizon or --max-visits" in result.stderr
    out = lines(watch(log, *days, "--user", "who", "--distinct", "--max-visits", 1, *budget))
    assert [line["covers"]["first_tick"] for line in out] == [max(1, line["tick"] - 1) for line in out]
    assert out[0]["guarantee"]["unit"]["per"] == "1d"
