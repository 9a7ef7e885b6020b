"""`discreet party`: rounds, messages and estimates, through files; a few through the installed command."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "multiparty.md"


@pytest.fixture
def party(capsys):
    """Run a command in this process; its output, or the error it ends with."""

    def run(*arguments):
        app(["party", *map(str, arguments)], standalone_mode=False)
        return capsys.readouterr().out

    return run


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    columns = [np.minimum(rng.zipf(1.5, 400), 999) for _ in range(6)]
    for number, column in enumerate(columns):
        Path(f"{number}.csv").write_text("code\n" + "".join(f"{item}\n" for item in column))
    return np.concatenate(columns)


def test_levels_through_the_installed_command(discreet, places, tmp_path):
    """At epsilon 50 and 99.9999% an interval misses once in a million runs."""
    options = {"cwd": tmp_path}
    made = discreet(
        "party",
        "round",
        "r.json",
        "--round-id",
        "a",
        "--epsilon",
        50,
        "--universe",
        1000,
        "--levels",
        "--option",
        "items_per_column=1",
        "--option",
        "rows=3",
        **options,
    )
    assert made.returncode == 0, made.stderr
    for number in range(2):
        done = discreet(
            "party", "encode", "--round", "r.json", "--party", number, f"{number}.csv", "-o", f"{number}.msg", **options
        )
        assert done.returncode == 0, done.stderr
        size = (tmp_path / f"{number}.msg").stat().st_size
        assert f"{size:,} bytes" in done.stderr
    (tmp_path / "bad.msg").write_bytes((tmp_path / "1.msg").read_bytes()[:-1])
    done = discreet(
        "party",
        "aggregate",
        "--round",
        "r.json",
        "0.msg",
        "bad.msg",
        "1.msg",
        "1.msg",
        "--share",
        0.1,
        "--quantile",
        0.5,
        "--range",
        "1:9",
        "--item",
        1,
        "--confidence",
        0.999999,
        "--format",
        "json",
        **options,
    )
    assert done.returncode == 0, done.stderr
    shown, items = json.loads(done.stdout), places[:800]
    assert shown["messages"]["accepted"] == shown["parties"] == 2
    assert [(row["file"], row["reason"]) for row in shown["messages"]["rejected"]] == [
        ("bad.msg", "checksum"),
        ("1.msg", "duplicate"),
    ]
    assert shown["bytes"] == sum((tmp_path / f"{number}.msg").stat().st_size for number in range(2))
    (row,) = shown["estimates"]
    assert row["lower"] <= np.sum(items == 1) <= row["upper"]
    (row,) = shown["ranges"]
    assert row["lower"] <= np.sum(items <= 9) <= row["upper"]
    assert shown["quantiles"][0]["lower"] <= np.median(items) <= shown["quantiles"][0]["upper"]
    assert 1 in [row["item"] for row in shown["heavy_hitters"]]
    assert shown["guarantee"]["epsilon"] == 50
    assert shown["guarantee"]["unit"]["name"] == "Replace"
    # A second message is not made, and what cannot be read ends with its own code.
    again = discreet("party", "encode", "--round", "r.json", "--party", 0, "0.csv", "-o", "0.msg", **options)
    assert again.returncode == 2
    nothing = discreet("party", "aggregate", "--round", "r.json", "bad.msg", "--top", 3, **options)
    assert nothing.returncode == 4
    assert "checksum" in nothing.stderr


def test_a_state_goes_on(party, places):
    party("round", "r.json", "--round-id", "a", "--epsilon", 1, "--universe", "integers", "--protocol", "LocalHashing")
    for number in range(3):
        party("encode", "--round", "r.json", "--party", 1000 * number, f"{number}.csv", "-o", f"{number}.msg", "-q")
    ask = ["--round", "r.json", "--item", 1, "--max-reports", 1000]
    at_once = party("aggregate", *ask, "0.msg", "1.msg", "2.msg")
    party("aggregate", *ask, "0.msg", "--state", "s")
    party("aggregate", *ask, "1.msg", "--state", "s")
    assert party("aggregate", *ask, "2.msg", "--state", "s") == at_once
    lost = json.loads(
        party("aggregate", "--round", "r.json", "lost.msg", "--item", 1, "--state", "s", "--format", "json")
    )
    assert [(row["file"], row["reason"]) for row in lost["messages"]["rejected"]] == [("lost.msg", "file")]
    assert lost["parties"] == 1200
    assert "1,200 parties" in at_once


def test_messages_of_more_than_is_taken_are_left_out(party, places):
    party("round", "r.json", "--round-id", "a", "--epsilon", 1, "--universe", "integers", "--protocol", "LocalHashing")
    Path("one.txt").write_text("1\n")
    party("encode", "--round", "r.json", "--party", 0, "0.csv", "-o", "many.msg", "-q")
    party("encode", "--round", "r.json", "--party", 5, "one.txt", "-o", "one.msg", "-q")
    found = json.loads(
        party("aggregate", "--round", "r.json", "many.msg", "one.msg", "--item", 1, "--liars", 0.5, "--format", "json")
    )
    assert found["messages"]["accepted"] == found["parties"] == 1
    assert found["liars"] == {"share": 0.5, "count": 1}
    (row,) = found["estimates"]
    assert row["count"] in (row["too_high"], -row["too_low"])
    ask = ["--round", "r.json", "many.msg", "one.msg", "--item", 1, "--max-reports", 400, "--liars", 0.01]
    assert "If 4 of them lied (1%), an estimate is at most 13 too high or 4 too low for that." in party(
        "aggregate", *ask
    )
    with pytest.raises(dc.DataError, match="before 402 reports have arrived"):
        party("aggregate", *ask, "--minimum-reports", 402)
    for wrong in (["--liars", 2], ["--max-reports", 0], ["--max-items", 5]):
        with pytest.raises(dc.ParameterError):
            party("aggregate", *ask, *wrong)
    assert [(row["file"], row["reason"]) for row in found["messages"]["rejected"]] == [("many.msg", "range")]
    stream = ["--protocol", "Stream", "--option", "epoch_steps=1", "--option", "window=5"]
    party("round", "s.json", "--round-id", "a", "--epsilon", 1, "--universe", 10, *stream)
    with pytest.raises(dc.ParameterError, match="stream"):
        party("aggregate", "--round", "s.json", "one.msg", "--item", 1, "--max-items", 1)


def test_a_directory_of_messages_and_a_listed_universe(party, places, tmp_path):
    Path("words.txt").write_text("flu\ncold\nnone\n")
    Path("mine.txt").write_text("flu\n" * 300 + "cold\n" * 100)
    party(
        "round",
        "r.json",
        "--round-id",
        "a",
        "--epsilon",
        40,
        "--universe",
        "words.txt",
        "--protocol",
        "MergedSketch",
        "--option",
        "columns=64",
    )
    (tmp_path / "sent").mkdir()
    for number in range(3):
        party("encode", "--round", "r.json", "--party", number, "mine.txt", "-o", f"sent/{number}", "-q")
    shown = json.loads(party("aggregate", "--round", "r.json", "sent", "--top", 2, "--format", "json"))
    assert [(row["item"], row["count"]) for row in shown["estimates"]] == [
        ("flu", pytest.approx(900, abs=30)),
        ("cold", pytest.approx(300, abs=30)),
    ]


def test_with_a_ledger_the_same_message_is_written_again(party, places):
    ledger = dc.Ledger("budget.sqlite")
    ledger.grant("hospital", dc.Budget(1.5))
    party("round", "r.json", "--round-id", "a", "--epsilon", 1, "--universe", 1000)
    for name in ("first.msg", "second.msg"):
        party(
            "encode",
            "--round",
            "r.json",
            "--party",
            1,
            "1.csv",
            "-o",
            name,
            "--ledger",
            "budget.sqlite",
            "--account",
            "hospital",
            "-q",
        )
    assert Path("first.msg").read_bytes() == Path("second.msg").read_bytes()
    assert ledger.account("hospital").spent().epsilon == pytest.approx(1.0)
    party("round", "other.json", "--round-id", "b", "--epsilon", 1, "--universe", 1000)
    with pytest.raises(dc.BudgetExceededError):
        party(
            "encode",
            "--round",
            "other.json",
            "--party",
            1,
            "1.csv",
            "-o",
            "third.msg",
            "--ledger",
            "budget.sqlite",
            "--account",
            "hospital",
            "-q",
        )
    assert not Path("third.msg").exists()


def test_a_stream_through_files(party, places, capsys):
    party(
        "round",
        "r.json",
        "--round-id",
        "a",
        "--epsilon",
        10000,
        "--universe",
        1000,
        "--protocol",
        "Stream",
        "--option",
        "epoch_steps=1",
        "--option",
        "window=500",
        "--option",
        "columns=64",
    )
    with pytest.raises(dc.ParameterError):
        party("encode", "--round", "r.json", "--party", 0, "0.csv", "-o", "0a.msg")
    party("encode", "--round", "r.json", "--party", 0, "0.csv", "-o", "0a.msg", "--state", "0.state", "-q")
    party(
        "encode", "--round", "r.json", "--party", 0, "1.csv", "-o", "0b.msg", "--state", "0.state", "--until", 900, "-q"
    )
    party("encode", "--round", "r.json", "--party", 0, "-o", "0c.msg", "--state", "0.state", "--resend", "-q")
    assert Path("0b.msg").read_bytes() == Path("0c.msg").read_bytes()
    assert Path("0.state").stat().st_mode & 0o077 == 0
    party("encode", "--round", "r.json", "--party", 1, "2.csv", "-o", "1.msg", "--state", "1.state", "-q")
    shown = json.loads(
        party(
            "aggregate",
            "--round",
            "r.json",
            "0b.msg",
            "0a.msg",
            "0c.msg",
            "1.msg",
            "--item",
            1,
            "--time",
            900,
            "--format",
            "json",
        )
    )
    assert shown["messages"] == {"accepted": 3, "repeated": 1, "rejected": []}
    assert shown["estimates"][0]["count"] == pytest.approx(np.sum(places[400:800] == 1), abs=3)
    assert shown["coverage"] == {"0": 1.0, "1": 0.0}
    with pytest.raises(dc.ParameterError):  # another party's state
        party("encode", "--round", "r.json", "--party", 1, "1.csv", "-o", "x.msg", "--state", "0.state", "-q")


def test_a_stream_with_levels_through_files(party, places):
    """At this epsilon there is no noise but with a probability below e^-100; the hash functions follow from the id."""
    stream = ["--protocol", "Stream", "--option", "window=300", "--option", "columns=512"]
    party("round", "r.json", "--round-id", "a", "--epsilon", 1e6, "--universe", 1000, "--levels", *stream)
    assert json.loads(Path("r.json").read_text())["protocol"] == "HierarchicalStream"
    for number in range(2):
        files = [f"{number}.csv", "-o", f"{number}.msg", "--state", f"{number}.state", "-q"]
        party("encode", "--round", "r.json", "--party", number, *files)
    ask = ["--share", 0.1, "--quantile", 0.5, "--range", "0:999", "--time", 350]
    shown = json.loads(party("aggregate", "--round", "r.json", "0.msg", "1.msg", *ask, "--format", "json"))
    items = np.concatenate([places[50:350], places[450:750]])
    assert (shown["since"], shown["time"], shown["coverage"]) == (50, 350, {"0": 1.0, "1": 1.0})
    assert shown["ranges"][0]["count"] == 600
    assert abs(np.mean(items <= shown["quantiles"][0]["value"]) - 0.5) < 0.3
    heavy = {item for item in range(1000) if np.sum(items == item) >= 70}
    assert heavy <= {row["item"] for row in shown["heavy_hitters"]}
    assert "Steps 51 to 350." in party("aggregate", "--round", "r.json", "0.msg", "1.msg", *ask)


def test_rectangles_through_files(party, tmp_path, monkeypatch):
    """At this epsilon there is no noise but with a probability below e^-100; the hash functions follow from the id."""
    monkeypatch.chdir(tmp_path)
    wide = ["--option", "items_per_column=0.01", "--option", "max_items=1000"]
    dimensions = ["--universe", 100, "--universe", "shops.txt", "--levels", "--branching", 10]
    Path("shops.txt").write_text("north\neast, old\nsouth\n")
    party("round", "r.json", "--round-id", "a", "--epsilon", 1e6, *dimensions, *wide)
    assert json.loads(Path("r.json").read_text())["protocol"] == "GridHierarchy"
    Path("0.csv").write_text('age,other,shop\n30,x,north\n35,y,"east, old"\n39,,south\n80,z,north\n')
    Path("1.jsonl").write_text('{"shop": "north", "age": 31}\n{"shop": null, "age": 3}\n{"shop": "south", "age": 30}\n')
    columns = ["--column", "age", "--column", "shop"]
    party("encode", "--round", "r.json", "--party", 0, "0.csv", *columns, "-o", "0.msg", "-q")
    with pytest.raises(dc.DataError, match="nulls"):
        party("encode", "--round", "r.json", "--party", 1, "1.jsonl", *columns, "-o", "1.msg", "-q")
    party("encode", "--round", "r.json", "--party", 1, "1.jsonl", *columns, "--nulls", "skip", "-o", "1.msg", "-q")
    ask = ["0.msg", "1.msg", "--range", '30,north:39,"east, old"', "--range", "0,south:99,south", "--item", "80,north"]
    shown = json.loads(party("aggregate", "--round", "r.json", *ask, "--format", "json"))
    assert [row["count"] for row in shown["ranges"]] == [3, 2]
    assert [(row["item"], row["count"]) for row in shown["estimates"]] == [([80, "north"], 1)]
    assert "(30, 'north') to (39, 'east, old')" in party("aggregate", "--round", "r.json", *ask)
    for wrong in (["--column", "age"], ["--column", "shop", "--column", "age"], [*columns, "--column", "other"]):
        with pytest.raises((dc.ParameterError, dc.DataError)):
            party("encode", "--round", "r.json", "--party", 2, "0.csv", *wrong, "-o", "2.msg", "-q")
    for wrong in (["--range", "30:39"], ["--share", 0.1], ["--item", "80"], ["--quantile", 0.5]):
        with pytest.raises(dc.ParameterError):
            party("aggregate", "--round", "r.json", "0.msg", *wrong)
    for wrong in (dimensions[:4], [*dimensions, "--protocol", "Stream"], [*dimensions, "--alphabet", "ab"]):
        with pytest.raises(dc.ParameterError):
            party("round", "x.json", "--round-id", "a", "--epsilon", 1, *wrong)


def test_misra_gries_over_a_stream_through_files(party, places):
    """At this epsilon there is no noise but with a probability below e^-100, and counters are exact."""
    stream = ["--protocol", "MergedMisraGriesStream", "--option", "window=300", "--option", "epoch_steps=50"]
    given = ["--round-id", "a", "--epsilon", 1e6, "--universe", 1000, *stream]
    party("round", "r.json", *given)
    for number in range(2):
        files = [f"{number}.csv", "-o", f"{number}.msg", "--state", f"{number}.state", "-q"]
        party("encode", "--round", "r.json", "--party", number, *files)
    asked = ["aggregate", "--round", "r.json", "0.msg", "1.msg", "--share", 0.1, "--time", 350]
    shown = json.loads(party(*asked, "--format", "json"))
    items = np.concatenate([places[50:350], places[450:750]])
    assert (shown["since"], shown["time"], shown["coverage"]) == (50, 350, {"0": 1.0, "1": 1.0})
    counts = {row["item"]: row["count"] for row in shown["heavy_hitters"]}
    assert counts == {item: np.sum(items == item) for item in range(1000) if np.sum(items == item) >= 60}
    assert shown["complete"]
    assert "Steps 51 to 350." in party(*asked)
    assert json.loads(party(*asked[:-4], "--item", 1, "--format", "json"))["estimates"][0]["count"] > 100
    with pytest.raises(dc.ParameterError):
        party(*asked, "--quantile", 0.5)
    with pytest.raises(dc.ParameterError):
        party("round", "x.json", *given, "--levels")
    assert not Path("x.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["round", "x.json", "--round-id", "a", "--epsilon", 1],
        ["round", "x.json", "--round-id", "a", "--epsilon", 0, "--universe", 10],
        ["round", "x.json", "--round-id", "a", "--epsilon", 1, "--universe", "nofile"],
        ["round", "x.json", "--round-id", "a", "--epsilon", 1, "--universe", 10, "--protocol", "Magic"],
        ["round", "x.json", "--round-id", "a", "--epsilon", 1, "--universe", 10, "--option", "colour=3"],
        ["round", "x.json", "--round-id", "a", "--epsilon", 1, "--universe", 10, "--option", "rows"],
        ["round", "x.json", "--round-id", "a", "--epsilon", 1, "--alphabet", "ab", "--max-length", 3],
        ["round", "x.json", "--round-id", "a", "--epsilon", 1, "--alphabet", "ab", "--levels"],
        ["encode", "--round", "r.json", "--party", 0, "-o", "x.msg"],
        ["encode", "--round", "r.json", "--party", -1, "0.csv", "-o", "x.msg"],
        ["encode", "--round", "r.json", "--party", 0, "0.csv", "-o", "x.msg", "--until", 5],
        ["encode", "--round", "r.json", "--party", 0, "0.csv", "-o", "x.msg", "--ledger", "l"],
        ["encode", "--round", "0.csv", "--party", 0, "0.csv", "-o", "x.msg"],
        ["encode", "--round", "r.json", "--party", 0, "words.txt", "-o", "x.msg"],
        ["aggregate", "--round", "r.json", "0.csv", "--share", 0.1],
        ["aggregate", "--round", "r.json", "0.csv", "--time", 3],
        ["aggregate", "--round", "r.json", "0.csv", "--item", 1],
    ],
)
def test_what_is_refused(party, places, arguments):
    Path("words.txt").write_text("secret\n")
    party("round", "r.json", "--round-id", "a", "--epsilon", 1, "--universe", 1000)
    with pytest.raises((dc.ParameterError, dc.DataError)) as caught:
        party(*arguments)
    assert "secret" not in str(caught.value)
    assert not Path("x.msg").exists()
    assert not Path("x.json").exists()


def test_the_hundred_hospitals_of_the_documentation(party, tmp_path, monkeypatch):
    """The commands as they stand there, in this process: a hundred starts of Python would take a minute."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(4)
    columns = [np.minimum(generator.zipf(1.6, 300) * 37, 9999) for _ in range(100)]
    for number, column in enumerate(columns):
        rows = "".join(f"{code},x\n" for code in column)
        (tmp_path / f"hospital-{number}.csv").write_text(f"code,ward\n{rows}")
    (block,) = re.findall(r"^```sh\n(discreet party.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    commands = block.replace("mkdir messages\n", "")
    (tmp_path / "messages").mkdir()
    shown = ""
    for line in commands.splitlines():
        loop = re.fullmatch(r"for i in \$\(seq (\d+) (\d+)\); do (.*); done", line)
        if loop is None:
            shown = party(*shlex.split(line)[2:])
        for number in range(int(loop[1]), int(loop[2]) + 1) if loop else ():
            party(*shlex.split(loop[3].replace("$i", str(number)))[2:])
    assert len(list((tmp_path / "messages").iterdir())) == 100
    assert "100 parties" in shown
    items = np.concatenate(columns)
    listed = re.findall(r"^(\d+) +[\d,]+ +", shown, flags=re.MULTILINE)
    assert {"37", "74"} <= set(listed)  # 0.44 and 0.14 of all: more than thirty deviations above the share
    assert np.mean(items == 37) > 0.4
    assert (tmp_path / "heard.state").exists()


def test_a_stream_is_charged_once_and_only_with_a_state_to_go_on_from(party, places):
    stream = ["--option", "epoch_steps=1", "--option", "window=500", "--option", "columns=64"]
    party("round", "r.json", "--round-id", "a", "--epsilon", 1, "--universe", 1000, "--protocol", "Stream", *stream)
    ledger = dc.Ledger("budgets.sqlite")
    ledger.grant("first", dc.Budget(1.0))
    ledger.grant("small", dc.Budget(0.1))
    encode = ["encode", "--round", "r.json", "--party", 0, "--state", "0.state", "-q"]
    pays = ["--ledger", "budgets.sqlite", "--account"]

    def charges(name):
        return len([event for event in ledger.history(name) if event.kind == "charge"])

    with pytest.raises(dc.DiscreetError):
        party(*encode, "missing.csv", "-o", "a.msg", *pays, "first")
    assert (charges("first"), Path("0.state").exists()) == (0, False)
    with pytest.raises(dc.ParameterError, match="step"):
        party(*encode, "0.csv", "-o", "a.msg", "--nulls", "skip")
    party(*encode, "0.csv", "-o", "a.msg", *pays, "first")
    party(*encode, "1.csv", "-o", "b.msg", *pays, "first")
    assert charges("first") == 1
    with pytest.raises(dc.ParameterError, match="exists"):
        party(*encode, "1.csv", "-o", "b.msg", *pays, "first")
    # Another account does not know what was published from this state.
    with pytest.raises(dc.LedgerError, match="another ledger or account"):
        party(*encode, "1.csv", "-o", "c.msg", *pays, "small")
    assert not Path("c.msg").exists()
    Path("0.state").unlink()
    with pytest.raises(dc.ParameterError, match="already started the stream"):
        party(*encode, "1.csv", "-o", "c.msg", *pays, "first")


def test_a_shuffled_round(party, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("one.txt").write_text("1\n")
    shuffled = ["--protocol", "HadamardResponse", "--option", "shuffled=20"]
    party("round", "r.json", "--round-id", "a", "--epsilon", 1, "--universe", 10, *shuffled)
    with pytest.raises(dc.ParameterError, match="random number"):
        party("encode", "--round", "r.json", "--party", 7, "one.txt", "-o", "m", "-q")
    Path("sent").mkdir()
    party("encode", "--round", "r.json", "one.txt", "-o", "sent/0", "-q")
    protocol = dc.multiparty.protocol_from_dict(json.loads(Path("r.json").read_text()))
    for number in range(1, 25):
        Path(f"sent/{number}").write_bytes(protocol.party().encode([1]))
    ask = ["--round", "r.json", "--item", 1, "--state", "s"]
    with pytest.raises(dc.DataError, match="before 20 reports"):
        party("aggregate", "sent/0", *ask)
    found = json.loads(party("aggregate", "sent", *ask, "--format", "json"))
    assert (found["parties"], found["shown"], found["messages"]["accepted"]) == (25, 20, 24)
    assert "Shown: 20 reports" in party("aggregate", *ask)
    assert any("shuffled in batches of 20" in text for text in found["guarantee"]["assumptions"])


def test_files_that_overlap_do_not_show_one_report(party, tmp_path, monkeypatch):
    """The answers before and after one more file: the same, as the report waits for a batch of its own."""
    monkeypatch.chdir(tmp_path)
    shuffled = ["--protocol", "HadamardResponse", "--option", "shuffled=20"]
    party("round", "r.json", "--round-id", "a", "--epsilon", 4, "--universe", 10, *shuffled)
    protocol = dc.multiparty.protocol_from_dict(json.loads(Path("r.json").read_text()))
    for number in range(21):
        Path(f"{number:02}").write_bytes(protocol.party().encode([1]))
    ask = ["--round", "r.json", "--item", 1, "--format", "json"]
    first, second = ([f"{number:02}" for number in range(start, start + 20)] for start in (0, 1))
    with pytest.raises(dc.ParameterError, match="needs a state"):
        party("aggregate", *first, *ask)
    before, after = (json.loads(party("aggregate", *files, *ask, "--state", "s")) for files in (first, second))
    assert (before["shown"], before["parties"]) == (20, 20)
    assert (after["shown"], after["parties"], after["messages"]["accepted"]) == (20, 21, 1)
    assert after["estimates"] == before["estimates"]


def test_the_plan_of_parties(party):
    ask = ["--parties", 10**6, "--total", 10**6, "--epsilon", 4, "--bytes-per-party", 40]
    found = json.loads(party("plan", *ask, "--format", "json"))
    assert found["shuffled"] == {
        "protocol": "LocalHashing",
        "reports": 10**6,
        "epsilon": pytest.approx(0.0316, abs=1e-4),
        "delta": 1e-8,
    }
    assert found["pick"] in {row["protocol"] for row in found["protocols"] if row["fits"]}
    assert "Of LocalHashing, 1,000,000 reports in one shuffled batch: epsilon 0.0316 at delta 1e-08" in party(
        "plan", *ask
    )


def test_the_plan_of_streams_and_levels(party):
    ask = ["--parties", 100, "--epsilon", 4, "--bytes-per-party", 2000, "--universe-size", 4096]
    found = json.loads(party("plan", *ask, "--steps", 1000, "--window", "--format", "json"))
    assert found["pick"] == "Stream"
    assert {row["parameters"]["window"] for row in found["protocols"]} == {1000}
    found = json.loads(party("plan", *ask, "--steps", 1000, "--levels", "--branching", 64, "--format", "json"))
    assert {row["parameters"]["branching"] for row in found["protocols"]} == {64}
    assert "Hierarchy " in party("plan", *ask, "--total", 10**5, "--levels")
    for wrong in ([], ["--total", 5, "--steps", 5], ["--total", 5, "--window"], ["--steps", 5, "--branching", 4]):
        with pytest.raises(dc.ParameterError):
            party("plan", *ask, *wrong)


LEVELS, FORMS = ("--universe", 8, "--levels"), ("--alphabet", "ab", "--max-length", 3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--universe", 8, "--alphabet", "ab"], "--alphabet and --max-length must be given together"),
        (["--universe", 8, "--max-length", 3], "--alphabet and --max-length must be given together"),
        ([*FORMS], "--alphabet and --branching need --levels"),
        (["--universe", 8, "--branching", 4], "--alphabet and --branching need --levels"),
        (["--universe", 8, "--universe", 9], "only --levels of a round takes --universe more than once"),
        ([*LEVELS, *FORMS], "give --universe, or --alphabet and --max-length"),
        (["--levels"], "give --universe, or --alphabet and --max-length"),
        (["--universe", 8, "--option", "window"], "--option must be NAME=VALUE, not 'window'"),
        (["--universe", 8, "--option", "window=three", "--protocol", "Stream"], "window"),
    ],
)
def test_a_round_that_is_none_is_refused_and_nothing_is_written(party, tmp_path, monkeypatch, given, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dc.ParameterError, match=words):
        party("round", "r.json", "--round-id", "a", "--epsilon", 1, *given)
    assert not Path("r.json").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["0.csv", "--nulls", "skip"], "--nulls skip cannot be used with streams"),
        (["0.csv", "--resend"], "--resend cannot be combined with files or --until"),
        (["--until", 9, "--resend"], "--resend cannot be combined with files or --until"),
    ],
)
def test_a_message_of_a_stream_that_cannot_be_made_leaves_no_file(party, places, given, words):
    stream = ["--protocol", "Stream", "--option", "window=500", "--option", "columns=64"]
    party("round", "r.json", "--round-id", "a", "--epsilon", 1, "--universe", 1000, *stream)
    before = {*Path().iterdir()}
    with pytest.raises(dc.ParameterError, match=words):
        party("encode", "--round", "r.json", "--party", 0, "-o", "m", "--state", "s", *given)
    assert {*Path().iterdir()} == before


@pytest.mark.parametrize("given", [["--state", "s"], ["--until", 5], ["--resend"]])
def test_only_a_stream_goes_on(party, places, given):
    party("round", "r.json", "--round-id", "a", "--epsilon", 1, "--universe", 1000, "--protocol", "HadamardResponse")
    before = {*Path().iterdir()}
    with pytest.raises(dc.ParameterError, match="work with streams only"):
        party("encode", "--round", "r.json", "--party", 0, "-o", "m", "0.csv", *given)
    with pytest.raises(dc.ParameterError, match="give files to read"):
        party("encode", "--round", "r.json", "--party", 0, "-o", "m")
    assert {*Path().iterdir()} == before


def test_where_no_step_was_sampled_there_is_no_message(party, tmp_path, monkeypatch, capsys):
    """An empty file would be sent, and refused. The state goes on, and no step is told twice."""
    monkeypatch.chdir(tmp_path)
    stream = ["--protocol", "Stream", "--option", "window=50000", "--option", "epoch_steps=10000"]
    party("round", "r.json", "--round-id", "a", "--epsilon", 1, "--universe", 1000, *stream)
    Path("one.csv").write_text("code\n1\n")
    silent = 0
    for step in range(1, 13):
        encode = ("encode", "--round", "r.json", "--party", 0, "one.csv", "--state", "s", "-o", f"{step}.msg")
        app(["party", *map(str, encode)], standalone_mode=False)
        told = capsys.readouterr().err
        assert f"steps {step} to {step} are told" in told
        assert ("nothing to send" in told) == (not Path(f"{step}.msg").exists())
        silent += not Path(f"{step}.msg").exists()
    assert silent


def test_missing_values_of_a_party_are_an_error_unless_they_are_skipped(party, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("code,x\n1,a\n,b\n3,c\n")
    party("round", "r.json", "--round-id", "a", "--epsilon", 1, "--universe", 10, "--protocol", "IndependentSketches")
    encode = ("encode", "--round", "r.json", "--party", 0, "a.csv", "--column", "code", "-o", "m")
    with pytest.raises(dc.DataError):
        party(*encode)
    assert not Path("m").exists()
    party(*encode, "--nulls", "skip", "-q")
    assert Path("m").exists()
