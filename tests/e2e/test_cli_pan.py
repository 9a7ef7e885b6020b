"""`discreet pan` through the installed command: estimates, states, what is refused."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc


@pytest.fixture
def evens(tmp_path):
    path = tmp_path / "evens.txt"
    path.write_text("".join(f"{i}\n" for i in range(0, 20_000, 2)))
    return path


@pytest.mark.parametrize(
    ("arguments", "name", "truth"),
    [
        (["density", "--universe", "20000"], "Density", 0.5),
        (["distinct"], "DistinctCount", 10_000),
        (["cropped-mean", "-t", "4", "--universe", "0:20000"], "CroppedMean", 0.5),
        (["heavy-fraction", "-k", "2", "--universe", "20000"], "HeavyFraction", 0.0),
        (["incidence", "-t", "1", "--universe", "20000"], "Incidence", 0.5),
    ],
)
def test_every_estimate(discreet, evens, arguments, name, truth):
    """At epsilon 8 and a confidence of 1 - 1e-9 an interval misses once in a billion runs."""
    done = discreet(
        "pan", arguments[0], evens, *arguments[1:], "--epsilon", 8, "--confidence", 0.999999999, "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["estimator"] == name
    assert shown["lower"] <= truth <= shown["upper"]
    assert shown["guarantee"]["epsilon"] == 8
    assert shown["guarantee"]["unit"]["name"] == "Element"


def test_a_table_for_people_and_standard_input(discreet):
    done = discreet("pan", "density", "-", "--universe", 100, "--epsilon", 1, input="1\n2\n")
    assert done.returncode == 0, done.stderr
    assert "95% interval" in done.stdout
    assert "epsilon=1" in done.stdout


def test_a_state_is_made_continued_and_released(discreet, evens, tmp_path):
    state = tmp_path / "density.state"
    first = discreet("pan", "density", evens, "--universe", 20_000, "--epsilon", 8, "--state", state)
    assert (first.returncode, first.stdout) == (0, "")
    old = state.read_bytes()
    assert dc.pan.Density.from_bytes(old).epsilon_state < 8
    announced = ["--announce-intrusion", "--release", "--format", "json"]
    with state.open("rb") as kept:  # keeps the old file's blocks in sight
        again = discreet("pan", "density", evens, "--state", state, *announced)
        assert kept.read() == bytes(len(old))  # the old state is gone, not only unlinked
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["guarantee"]["epsilon"] > 8  # the announced intrusion was not planned
    stored = discreet("pan", "density", "--state", state, "--release", "--format", "json")
    assert json.loads(stored.stdout)["value"] == json.loads(again.stdout)["value"]
    more = discreet("pan", "density", evens, "--state", state)
    assert more.returncode == 2
    assert "last release" in more.stderr


def test_elements_from_a_file(discreet, tmp_path):
    (tmp_path / "names.txt").write_text("ann\nbob\ncid\n")
    (tmp_path / "log.csv").write_text("name,n\nann,1\nzoe,2\n")
    universe = ["--universe", tmp_path / "names.txt", "--epsilon", 30, "--format", "json"]
    done = discreet("pan", "density", tmp_path / "log.csv", "--column", "name", *universe)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["value"] == pytest.approx(1 / 3, abs=0.34)


def test_a_list_of_numbers_fits_a_column_of_numbers(discreet, tmp_path):
    """Numbers in a text file are text, in a table they are not; empty lines are no elements."""
    (tmp_path / "users.txt").write_text("\n7\n-8\n\n9\n\n")
    pq.write_table(pa.table({"user": [7, 9, 10]}), tmp_path / "log.parquet")
    state = tmp_path / "s"
    made = discreet(
        "pan",
        "density",
        tmp_path / "log.parquet",
        "--universe",
        tmp_path / "users.txt",
        "--epsilon",
        80,
        "--state",
        state,
    )
    assert made.returncode == 0, made.stderr
    kept = dc.pan.Density.from_bytes(state.read_bytes())
    assert kept.sample_size == 3
    assert kept.epsilon_state > 23  # a bit is wrong with probability 1e-10
    assert sorted(kept._table.seen_by_intruder(0)[1]) == [0, 1, 1]


def test_what_is_refused(discreet, evens, tmp_path):
    state = tmp_path / "s"
    made = discreet("pan", "cropped-mean", evens, "-t", 3, "--universe", 20_000, "--epsilon", 1, "--state", state)
    assert made.returncode == 0
    before = state.read_bytes()
    cases = {
        (): 2,
        ("density",): 2,
        ("density", evens): 2,
        ("density", evens, "--epsilon", 1): 2,
        ("density", evens, "--epsilon", 1, "--universe", "what"): 2,
        ("density", evens, "--epsilon", 0, "--universe", 10): 2,
        ("density", evens, "--epsilon", 1, "--universe", 10, "--release"): 2,
        ("cropped-mean", evens, "--universe", 10, "--epsilon", 1): 2,
        ("cropped-mean", evens, "-t", 4, "--state", state): 2,
        ("cropped-mean", evens, "--epsilon", 2, "--state", state): 2,
        ("cropped-mean", evens, "--universe", 10, "--state", state): 2,
        ("density", evens, "--state", state): 4,
        ("density", evens, "--state", evens): 4,
        ("density", tmp_path / "nothing", "--epsilon", 1, "--universe", 10): 2,
    }
    for arguments, code in cases.items():
        done = discreet("pan", *arguments)
        assert done.returncode == code, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
    (tmp_path / "words.txt").write_text("12\nsecret-word\n")
    done = discreet("pan", "cropped-mean", tmp_path / "words.txt", "--state", state, "--bad-rows", "error")
    assert done.returncode == 4
    assert "secret" not in done.stderr
    assert state.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("rows.txt", b"x" * 5_000),
        ("rows.txt", b"\xff\xfe"),
        ("rows.txt", b"not a number"),
        ("rows.txt", b"9" * 30),
        ("rows.csv", b'1,2,3\n"'),
        ("rows.jsonl", b'{"user": '),
        ("rows.jsonl", b'{"user": [1]}'),
    ],
)
def test_a_bad_row_does_not_decide_whether_there_is_a_release(discreet, tmp_path, name, bad):
    """At epsilon 8 and a confidence of 1 - 1e-9 an interval misses once in a billion runs."""
    rows = [str(i).encode() for i in range(0, 20_000, 2)]
    if name.endswith(".jsonl"):
        rows = [b'{"user": %s}' % row for row in rows]
    header = [b"user"] if name.endswith(".csv") else []
    path = tmp_path / name
    path.write_bytes(b"\n".join([*header, *rows[:5_000], bad, *rows[5_000:]]) + b"\n")
    arguments = ["pan", "density", path, "--column", "user", "--universe", 20_000, "--epsilon", 8]
    if name.endswith(".txt"):
        arguments.remove("--column")
        arguments.remove("user")
    done = discreet(*arguments, "--confidence", 0.999999999, "--format", "json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["lower"] <= 0.5 <= shown["upper"]
    assert re.search(r"skipped [12] rows? that could not be read", done.stderr)
    refused = discreet(*arguments, "--bad-rows", "error")
    assert refused.returncode == 4
    assert refused.stdout == ""


def test_a_ledger_pays_once_for_a_state(discreet, evens, tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("visitors", dc.Budget(2.0))
    pays = ["--ledger", tmp_path / "budgets.sqlite", "--account", "visitors"]
    start = ["--universe", 20_000, "--epsilon", 1, "--state", tmp_path / "s", "--charge-id", "november"]

    def charges():
        return [event.charge_id for event in ledger.history("visitors") if event.kind == "charge"]

    assert discreet("pan", "density", evens, *start).returncode == 2  # nobody pays
    assert discreet("pan", "density", tmp_path / "missing", *start, *pays).returncode == 2
    assert discreet("pan", "density", evens, "--column", "typo", *start, *pays).returncode == 4
    assert (charges(), (tmp_path / "s").exists()) == ([], False)
    made = discreet("pan", "density", evens, *start, *pays)
    assert made.returncode == 0, made.stderr
    assert "charged to 'visitors': epsilon=1 (charge id november)" in made.stderr
    again = discreet("pan", "density", evens, "--state", tmp_path / "s", "--release", "--format", "json", *pays)
    assert again.returncode == 0, again.stderr
    assert discreet("pan", "density", "--state", tmp_path / "s", *pays, "--charge-id", "other").returncode == 2
    assert charges() == ["november"]
    at_once = discreet("pan", "distinct", evens, "--epsilon", 1, *pays)
    assert at_once.returncode == 0, at_once.stderr
    assert len(charges()) == 2
    refused = discreet("pan", "distinct", evens, "--epsilon", 1, *pays)
    assert (refused.returncode, refused.stdout) == (3, "")


def test_a_state_without_a_ledger_is_charged_once_the_options_fit(discreet, evens, tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("visitors", dc.Budget(2.0))
    pays = ["--ledger", tmp_path / "budgets.sqlite", "--account", "visitors"]
    state = ["pan", "density", "--state", tmp_path / "s"]
    assert discreet(*state, evens, "--universe", 20_000, "--epsilon", 1).returncode == 0
    assert discreet(*state, *pays, "--epsilon", 2).returncode == 2  # another epsilon
    assert ledger.account("visitors").spent().epsilon == 0
    for _ in range(2):
        done = discreet(*state, *pays, "--epsilon", 1)
        assert done.returncode == 0, done.stderr
    assert ledger.account("visitors").spent().epsilon == 1.0


def test_fractions_by_remainder(discreet, evens):
    """At epsilon 40 noise moves a fraction by 0.01 with a probability far below 1e-8."""
    arguments = ["pan", "modular-incidence", evens, "-k", 3, "--universe", 20_000, "--epsilon", 40]
    shown = json.loads(discreet(*arguments, "--format", "json").stdout)
    assert shown["values"] == pytest.approx([0.5, 0.5, 0.0], abs=0.01)
    table = discreet(*arguments).stdout.splitlines()
    assert [line.split()[0] for line in table[2:5]] == ["0", "1", "2"]


def test_one_state_answers_for_any_t_and_k(discreet, evens, tmp_path):
    """At epsilon 60 a fraction is off by 0.05 with a probability far below 1e-8."""
    for name, start, truths in (
        ("incidence", ["--releases", 3], {"t": {0: 0.5, 1: 0.5, 2: 0.0}}),
        ("heavy-fraction", ["--releases", 2, "--max-count", 4], {"k": {1: 0.5, 3: 0.0}}),
        ("cropped-mean", ["--releases", 2, "-t", 2], {"t": {1: 0.5, 2: 0.5}}),
    ):
        state = tmp_path / name
        begin = ["pan", name, evens, "--universe", 20_000, "--epsilon", 60, "--state", state, *start]
        assert discreet(*begin).returncode == 0
        ((option, answers),) = truths.items()
        for asked, truth in answers.items():
            done = discreet("pan", name, "--state", state, "--release", f"--{option}", asked, "--format", "json")
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["value"] == pytest.approx(truth, abs=0.05)
        first = next(iter(answers))  # all releases were made, and the last one was asked another question
        assert discreet("pan", name, "--state", state, "--release", f"--{option}", first).returncode == 2


def test_a_question_that_cannot_be_answered_changes_nothing(discreet, evens, tmp_path):
    state = tmp_path / "s"
    begin = ["--universe", 20_000, "--epsilon", 1, "--state", state]
    assert discreet("pan", "heavy-fraction", evens, *begin).returncode == 2  # neither k nor the largest count
    assert discreet("pan", "incidence", evens, "--universe", 20_000, "--epsilon", 1).returncode == 2  # no t
    assert discreet("pan", "incidence", evens, *begin, "--max-count", 9).returncode == 0
    before = state.read_bytes()
    for arguments in (["--release"], ["--release", "-t", 10], ["-t", 1], ["--release", "--max-count", 8, "-t", 1]):
        done = discreet("pan", "incidence", evens, "--state", state, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
    assert state.read_bytes() == before


@pytest.fixture
def ballots(tmp_path):
    """Votes for 101, and vectors: a hundred times odd, even, even, and none."""
    (tmp_path / "votes.txt").write_text("0:1\n1:0\n2:1\n" * 9)
    (tmp_path / "vectors.txt").write_text("100\n101\n010\n?\n" * 100)
    return ["--votes", tmp_path / "votes.txt"], tmp_path / "vectors.txt"


def test_inner_products_of_vectors_with_a_voted_one(discreet, ballots, tmp_path):
    """At epsilon 40 an answer is flipped with a probability of 4e-18; a row that is no vector counts as zeros."""
    votes, vectors = ballots
    arguments = ["pan", "inner-product", vectors, "--length", 3, "--epsilon", 40]
    shown = json.loads(discreet(*arguments, *votes, "--format", "json").stdout)
    assert (shown["vector"], round(shown["value"])) == ("101", 100)
    (tmp_path / "vectors.csv").write_text("who,x\n" + "a,100\nb,111\n" * 10)
    table = discreet("pan", "inner-product", tmp_path / "vectors.csv", "--column", "x", *arguments[3:])
    assert "The vector that was voted: 000" in table.stdout  # nobody voted
    for wrong in (["--where", "true"], ["--votes", tmp_path / "nothing"], ["--release"], ["--epsilon", 0]):
        done = discreet(*arguments, *votes, *wrong)
        assert (done.returncode, done.stdout) == (2, ""), wrong


def test_a_counter_of_inner_products_is_kept_and_paid_for(discreet, ballots, tmp_path):
    votes, vectors = ballots
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("people", dc.Budget(40.0))
    pays = ["--ledger", tmp_path / "budgets.sqlite", "--account", "people"]
    command = ["pan", "inner-product", "--state", tmp_path / "s"]
    assert discreet(*command, *votes, "--length", 3).returncode == 2  # no epsilon
    made = discreet(*command, *votes, "--length", 3, "--epsilon", 40, *pays)
    assert (made.returncode, made.stdout) == (0, ""), made.stderr
    assert discreet(*command, vectors, "--bad-rows", "error").returncode == 4
    assert discreet(*command, vectors, "--length", 4).returncode == 2
    released = discreet(*command, vectors, "--release", "--format", "json", *pays)
    assert released.returncode == 0, released.stderr
    shown = json.loads(released.stdout)
    assert (shown["vector"], round(shown["value"])) == ("101", 100)
    assert shown["guarantee"]["unit"]["name"] == "Replace"
    again = discreet(*command, "--release")  # costs nothing
    assert "101" in again.stdout
    assert discreet(*command, *votes).returncode == 2  # the vector is fixed
    charges = [event for event in ledger.history("people") if event.kind == "charge"]
    assert len(charges) == 1
    assert discreet(*command, *pays, "--charge-id", "other").returncode == 2


def test_rows_without_a_value_are_left_out(discreet, tmp_path):
    (tmp_path / "log.csv").write_text("name,n\nann,1\n,2\n")
    asked = ["pan", "distinct", tmp_path / "log.csv", "--column", "name", "--epsilon", 1]
    assert discreet(*asked).returncode == 4
    assert discreet(*asked, "--nulls", "skip").returncode == 0


def test_vectors_that_cannot_be_read_are_told_once(discreet, ballots, tmp_path):
    """They count as zeros, and nobody says that they were left out."""
    (tmp_path / "vectors.csv").write_text("who,x\n" + "a,100\n" * 20 + "b,111,2\n" * 3)
    done = discreet("pan", "inner-product", tmp_path / "vectors.csv", "--column", "x", "--length", 3, "--epsilon", 40)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("could not be read") == 1
    assert "3 rows that could not be read as zeros" in done.stderr


def test_votes_and_vectors_are_texts_of_their_own(discreet, ballots, tmp_path):
    votes, vectors = ballots
    asked = ["pan", "inner-product", "--length", 3, "--epsilon", 40]
    both = discreet(*asked, "-", "--votes", "-", input="100\n")
    assert (both.returncode, both.stdout) == (2, "")
    assert "standard input can hold votes or vectors, not both" in both.stderr
    pq.write_table(pa.table({"x": [100, 101]}), tmp_path / "numbers.parquet")
    for given in ([tmp_path / "numbers.parquet", *votes], [vectors, "--votes", tmp_path / "numbers.parquet"]):
        done = discreet(*asked, *given)
        assert (done.returncode, done.stdout) == (4, "")
        assert "votes and vectors must be text; the column has another type" in done.stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["density", "log.csv", "--epsilon", 1], "--universe is missing"),
        (["density", "log.csv", "--universe", 10], "--epsilon is missing"),
        (["cropped-mean", "log.csv", "--universe", 10, "--epsilon", 1], "-t is missing|--t is missing"),
        (["heavy-fraction", "log.csv", "--universe", 10, "--epsilon", 1], "--k is missing; a release needs it"),
        (["occurrences", "log.csv", "--epsilon", 1], "--max-count is missing"),
        (["distinct", "log.csv", "--epsilon", 1, "--release"], "--release needs --state"),
        (["distinct", "--epsilon", 1], "give files to read"),
        (["distinct", "log.csv", "--epsilon", 1, "--charge-id", "x"], "--charge-id needs --ledger and --account"),
    ],
)
def test_what_is_missing_is_told_before_anything_is_read(discreet, tmp_path, given, words):
    done = discreet("pan", *given, cwd=tmp_path)  # there is no log.csv
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(words, done.stderr)
    assert not [*tmp_path.iterdir()]
