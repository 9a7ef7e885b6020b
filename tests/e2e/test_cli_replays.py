"""Retries of commands: a release had again when its files are gone, exit codes that say what a retry can do."""

import csv
import io
import json
import sqlite3

import pyarrow.parquet as pq
import pytest

import discreet as dc

BUDGET = ["--epsilon", 1, "--delta", 1e-6]
QUESTIONS = {
    "rows": ["top", "log.csv", "--column", "path", *BUDGET],
    "groups": ["top", "log.csv", "--column", "path", "--by", "day", *BUDGET],
    "some rows": ["top", "log.csv", "--column", "path", "--where", "day = '1'", *BUDGET],
    "pattern": ["top", "l?g.csv", "--column", "path", *BUDGET],
    "people": ["top", "log.csv", "--column", "path", "--user", "ip", *BUDGET],
    "people with few": [
        "top",
        "log.csv",
        "--column",
        "path",
        "--user",
        "ip",
        "--max-items",
        2,
        *BUDGET,
    ],
    "universe": ["top", "log.csv", "--column", "path", "--universe", "items.txt", "--epsilon", 1],
    "count": ["count", "log.csv", "--epsilon", 1],
    "count of people": ["count", "log.csv", "--user", "ip", "--epsilon", 1],
    "distinct": ["distinct", "log.csv", "--column", "path", "--epsilon", 1],
    "distinct of people": ["distinct", "log.csv", "--column", "path", "--user", "ip", "--epsilon", 1],
    "histogram": ["histogram", "log.csv", "--column", "path", "--universe", "items.txt", "--epsilon", 1],
    "histogram of people": [
        *["histogram", "log.csv", "--column", "path", "--universe", "items.txt", "--epsilon", 1],
        *["--user", "ip", "--max-items", 2],
    ],
    "quantiles": ["quantiles", "log.csv", "--column", "ms", "--range", 0, 100, "--epsilon", 1],
    "quantiles of people": [
        *["quantiles", "log.csv", "--column", "ms", "--range", 0, 100, "--epsilon", 1, "--user", "ip"]
    ],
}


@pytest.fixture
def ledger(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("a", dc.Budget(50.0, 1e-3))
    return ledger


@pytest.fixture
def run(discreet, tmp_path, ledger):
    rows = (f"u{i // 4},/{'abcd'[i % 4]},{i % 2},{i % 100}\n" for i in range(4000))
    (tmp_path / "log.csv").write_text("ip,path,day,ms\n" + "".join(rows))
    (tmp_path / "items.txt").write_text("/a\n/b\n")
    pay = ["--ledger", "budgets.sqlite", "--account", "a", "--charge-id", "c"]

    def run(*words):
        return discreet(*words, *pay, cwd=tmp_path)

    return run


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_release_is_had_again_when_its_file_is_gone(run, discreet, ledger, tmp_path, name):
    words = QUESTIONS[name]
    first = run(*words)
    assert first.returncode == 0, first.stderr
    (tmp_path / "log.csv").rename(tmp_path / "rotated.csv")
    again = run(*words, "--output", "out.json")
    assert again.returncode == 0, again.stderr
    assert "replayed, not charged" in again.stderr
    assert run(*words).stdout == first.stdout
    assert [event.kind for event in ledger.history("a")] == ["grant", "charge", "release"]
    stored = discreet("ledger", "release", "--ledger", "budgets.sqlite", "--charge-id", "c", cwd=tmp_path, text=True)
    assert stored.returncode == 0, stored.stderr
    assert stored.stdout.splitlines()[:3] == first.stdout.splitlines()[:3]
    shown = discreet(
        "ledger", "release", "--ledger", "budgets.sqlite", "--charge-id", "c", "--format", "json", cwd=tmp_path
    )
    assert json.loads(shown.stdout) == json.loads((tmp_path / "out.json").read_text())


def test_a_replay_overwrites_neither_its_file_nor_its_ledger(run, tmp_path):
    words = QUESTIONS["pattern"]
    assert run(*words).returncode == 0
    before = (tmp_path / "log.csv").read_text()
    for output in ("log.csv", "budgets.sqlite"):
        refused = run(*words, "--output", output, "--format", "csv")
        assert refused.returncode == 2
        assert "a file that this command reads or keeps" in refused.stderr
    assert (tmp_path / "log.csv").read_text() == before


def test_formats_of_a_stored_release(run, discreet, tmp_path):
    assert run(*QUESTIONS["rows"], "-k", 2).returncode == 0
    show = ["ledger", "release", "--ledger", "budgets.sqlite", "--charge-id", "c"]
    rows = list(csv.reader(io.StringIO(discreet(*show, "--format", "csv", cwd=tmp_path).stdout)))
    assert rows[0] == ["path", "count", "lower", "upper"]
    assert len(rows) == 3  # the two that were published, though more passed the threshold
    assert discreet(*show, "--output", "out.parquet", cwd=tmp_path).returncode == 0
    assert pq.read_table(tmp_path / "out.parquet").column("path").to_pylist() == [row[0] for row in rows[1:]]
    refused = discreet(*show, "--output", "budgets.sqlite", "--format", "csv", cwd=tmp_path)
    assert refused.returncode == 2


def test_a_count_is_no_parquet_and_a_stream_no_release(run, discreet, ledger, tmp_path):
    show = ["ledger", "release", "--ledger", "budgets.sqlite", "--charge-id", "c"]
    missing = discreet(*show, cwd=tmp_path)
    assert (missing.returncode, "no charge 'c'" in missing.stderr) == (1, True)
    assert run("count", "log.csv", "--epsilon", 1, "--confidence", 0.9).returncode == 0
    refused = discreet(*show, "--output", "out.parquet", cwd=tmp_path)
    assert (refused.returncode, "a table, '.json' or '.csv'" in refused.stderr) == (2, True)
    assert json.loads(discreet(*show, "--format", "json", cwd=tmp_path).stdout)["confidence"] == 0.9
    ledger.account("a").begin("stream", dc.Budget(0.1))
    ledger.account("a").store("stream", b"0123abcd")
    refused = discreet(*show[:-1], "stream", cwd=tmp_path)
    assert (refused.returncode, "ledger export" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["-k", 20], "k was 100 and is now 20"),
        (["--nulls", "skip"], 'nulls was "error" and is now "skip"'),
        (["--capacity", 99], "capacity was not given and is now 99"),
        (["--epsilon", 2], "budget was delta=1e-06, epsilon=1.0 and is now delta=1e-06, epsilon=2.0"),
        (["other.csv"], "files differs (the ledger keeps a digest of it)"),
    ],
)
def test_another_request_under_a_charge_id_says_what_differs(run, change, message):
    """Code 6: not to be tried again. The files need not be there for it."""
    assert run(*QUESTIONS["rows"]).returncode == 0
    refused = run(*QUESTIONS["rows"], *change)
    assert (refused.returncode, refused.stdout) == (6, "")
    assert message in refused.stderr


def test_the_contents_of_a_list_are_part_of_the_question(run, tmp_path):
    assert run(*QUESTIONS["histogram"]).returncode == 0
    (tmp_path / "items.txt").write_text("/a\n/c\n")
    refused = run(*QUESTIONS["histogram"])
    assert refused.returncode == 6
    assert "universe was" in refused.stderr


def test_the_ledger_keeps_no_name_of_a_file(run, ledger):
    assert run(*QUESTIONS["rows"]).returncode == 0
    assert "log.csv" not in json.dumps([event.details for event in ledger.history("a")])


def test_another_unit_is_not_to_be_tried_again(run, discreet, tmp_path):
    assert run(*QUESTIONS["people"]).returncode == 0
    pay = ["--ledger", "budgets.sqlite", "--account", "a"]
    refused = discreet(*QUESTIONS["rows"], *pay, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (6, "")
    assert "hide one person, with all of their rows" in refused.stderr
    assert "Charge another account only if it stands for other people" in refused.stderr


def test_one_account_pays_for_all_that_hides_people(run, discreet, ledger, tmp_path):
    pay = ["--ledger", "budgets.sqlite", "--account", "a"]
    commands = [QUESTIONS[name] for name in QUESTIONS if "people" in name]
    watch = ["watch", "log.csv", "--user", "ip", "--rows", 1000, "--horizon", 4, "--once", *BUDGET]
    commands.append([*watch, "--column", "path", "--state", "counts"])
    commands.append([*watch, "--distinct", "--state", "people"])
    (tmp_path / "lists.txt").write_text("a b c\n" * 1000)
    commands.append(["top", "lists.txt", "--input-format", "baskets", "--max-items", 3, *BUDGET])
    for words in commands:
        done = discreet(*words, *pay, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert ledger.account("a").statement().charges == len(commands)


def test_a_ledger_in_use_is_to_be_tried_again(run, monkeypatch, tmp_path):
    """Code 5, and nothing was charged."""
    monkeypatch.setattr(dc.Ledger.__init__, "__defaults__", (0.05,))
    other = sqlite3.connect(tmp_path / "budgets.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    busy = run(*QUESTIONS["rows"])
    other.execute("ROLLBACK")
    other.close()
    assert (busy.returncode, busy.stdout) == (5, "")
    assert "locked by another process" in busy.stderr
    assert run(*QUESTIONS["rows"]).returncode == 0


def test_a_state_in_use_is_to_be_tried_again(discreet, tmp_path):
    from discreet.storage import locked

    (tmp_path / "log.csv").write_text("path\n" + "a\n" * 100)
    with locked(tmp_path / "state"):
        words = ["watch", "log.csv", "--column", "path", "--rows", 50, "--horizon", 2, "--once", *BUDGET]
        busy = discreet(*words, "--state", "state", cwd=tmp_path)
    assert (busy.returncode, busy.stdout) == (5, "")


def test_a_full_disk_is_to_be_tried_again(run, tmp_path):
    (tmp_path / "out.txt").symlink_to("/dev/full")
    full = run(*QUESTIONS["rows"], "--output", "out.txt")
    assert full.returncode == 5
    assert "No space left" in full.stderr
    assert run(*QUESTIONS["rows"]).returncode == 0
