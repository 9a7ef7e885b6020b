"""What a command refuses before it reads or spends anything: exit code 2, and words that say what to do."""

import json
import re

import pytest

import discreet as dc

PRIVACY = ("--epsilon", "1", "--delta", "1e-6")
OF_DAYS = ("count", "rows.csv", "--user", "who", "--unit", "person-day", "--time", "when", *PRIVACY)
CLAIMED = ("audit", "--canaries", "1", "--column", "item")
ROUND = (
    "party",
    "round",
    "round.json",
    "--round-id",
    "r",
    "--protocol",
    "HadamardResponse",
    "--universe",
    8,
    "--epsilon",
    1,
)
TLS = ("service", "run", "streams.toml", "--data", "d", "--tls-cert", "c.pem")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "rows.csv").write_text("item,who,when\n" + "a,b,2026-11-15\n" * 9)
    (tmp_path / "votes.txt").write_text("1:0\n")
    (tmp_path / "list.txt").write_text("a\n")
    (tmp_path / "list.svg").write_text("a\n")
    (tmp_path / "list.csv").write_text("item,x\na,b\n")
    ledger = dc.Ledger(tmp_path / "l.sqlite")
    ledger.grant("a", dc.Budget(5.0))
    dc.count({"x": [1]}, dc.Budget(1.0), ledger=ledger.account("a"), charge_id="c")
    (tmp_path / "report.toml").write_text('epsilon = 1.0\n[[questions]]\nkind = "count"\n')
    return tmp_path


REFUSED = {
    "canaries and corrections": (["audit", "--canaries", "1", "--corrections"], "--canaries cannot be combined"),
    "canaries in full": (["audit", "--canaries", "1", "--full"], "--canaries cannot be combined"),
    **{
        f"{option} without canaries": (["audit", option, value], f"{option} needs --canaries")
        for option, value in (
            ("--column", "item"), ("--data", "rows.csv"), ("--user", "who"), ("--runs", "50"), ("--epsilon", "1"),
            ("--delta", "1e-6"), ("--rho", "1"),
        )
    },
    **{
        f"questions with {given[0]}": (
            ["plan", "--questions", *PRIVACY, *given], "--questions can only be combined with the budget",
        )
        for given in (
            ("--memory", "1GB"), ("--capacity", "8"), ("--length", "9"), ("--people", "9"), ("rows.csv",),
            ("--items-per-person", "2"),
        )
    },
    **{
        f"people with {given[0]}": (
            ["plan", "--people", "9", *PRIVACY, *given], "--people can only be combined with the budget",
        )
        for given in (("--memory", "1GB"), ("--capacity", "8"), ("--length", "9"), ("--max-items", "3"), ("rows.csv",))
    },
    "items of a person": (["plan", "--length", "9", *PRIVACY, "--items-per-person", "2"], "needs --people"),
    "a list without questions": (["plan", "--length", "9", *PRIVACY, "--listed", "2"], "--listed needs --questions"),
    "published, of people": (["plan", "--people", "9", "--published", *PRIVACY], "--published needs --length"),
    "corrections of a mechanism": (["audit", "Offset", "--corrections"], "--corrections cannot be combined"),
    "corrections in full": (["audit", "--corrections", "--full"], "--corrections cannot be combined"),
    "a report of another kind": (["audit", "Offset", "--report", "audit.txt"], "must be a .md or .html file"),
    "canaries of nothing": (["audit", "--canaries", "1"], "--canaries needs --column"),
    "canaries without a claim": ([*CLAIMED, "--", "x", "{data}"], "what is claimed"),
    "canaries without a command": (
        [*CLAIMED, "--epsilon", "1"], "after -- the command",
    ),
    "runs of two canaries": (
        ["audit", "--canaries", "2", "--column", "item", "--epsilon", "1", "--runs", "50", "--", "x", "{data}"],
        "--runs tests one canary",
    ),
    "a zone without a unit": (
        ["ledger", "grant", "--ledger", "l.sqlite", "--account", "a", "--epsilon", "1", "--zone", "Europe/Berlin"],
        "--zone needs --unit person-day",
    ),
    "a day of no account": (
        ["ledger", "show", "--ledger", "l.sqlite", "--day", "2026-11-15"], "--day needs --account",
    ),
    "a range of one end": (
        ["party", "aggregate", "m", "--round", "round.json", "--range", "5"], "--range must be LOW:HIGH",
    ),
    "a first day without a last": (
        [*OF_DAYS, "--from", "2026-11-15"],
        "give --period, or both --from and --until",
    ),
    "a last day without a first": (
        [*OF_DAYS, "--until", "2026-11-15"],
        "give --period, or both --from and --until",
    ),
    "a period and its days": (
        [*OF_DAYS, "--period", "2026-11-15", "--from", "2026-11-15", "--until", "2026-11-15"],
        "give --period, or both --from and --until",
    ),
    "a token of no scope": (["service", "token", "--data", "d"], "give one of --scope, --list and --remove"),
    "a token that is made and removed": (
        ["service", "token", "--data", "d", "--scope", "read", "--remove", "1"], "give one of --scope, --list",
    ),
    "half of a certificate": ([*TLS], "together"),
    "no such certificate": (
        [*TLS, "--tls-key", "k.pem"], "there is no file",
    ),
    "several columns of a histogram": (
        ["quantiles", "rows.csv", "--column", "item", "--column", "who", "--range", "0", "1", *PRIVACY], "column",
    ),
    "a report of no files": (["report", "report.toml"], "no files to read"),
    "a report in one CSV": (["report", "report.toml", "rows.csv", "--format", "csv"], "give --output"),
    "an output that is read": (
        ["top", "rows.csv", "--column", "item", *PRIVACY, "--output", "rows.csv"], "overwrite a file that this command",
    ),
    **{
        f"an output that is {what}": (
            [command, data, *PRIVACY, *given, "--format", "json", "--output", output], "would overwrite a file",
        )
        for what, command, data, output, given in (
            ("the list", "histogram", "rows.csv", "list.txt", ("--column", "item", "--universe", "list.txt")),
            ("the groups", "count", "rows.csv", "list.txt", ("--by", "item", "--groups", "list.txt")),
            ("the lookup", "top", "rows.csv", "list.csv", ("--column", "x", "--lookup", "list.csv", "--on", "item")),
            ("the ledger", "count", "rows.csv", "l.sqlite", ("--ledger", "l.sqlite", "--account", "a")),
            ("of a pattern", "count", "r*s.csv", "rows.csv", ()),
            ("the picture", "top", "rows.csv", "a.svg", ("--column", "item", "--plot", "a.svg")),
        )
    },
    "a picture that is read": (
        ["top", "rows.csv", "--column", "item", "--universe", "list.svg", *PRIVACY, "--plot", "list.svg"],
        "--plot 'list.svg' would overwrite",
    ),
    "a report over its definition": (["report", "report.toml", "rows.csv", "-o", "report.toml"], "report.toml"),
    "a stored release over its ledger": (
        ["ledger", "release", "--ledger", "l.sqlite", "--charge-id", "c", "--format", "json", "-o", "l.sqlite"],
        "would overwrite",
    ),
    "an output of no kind": (
        ["top", "rows.csv", "--column", "item", *PRIVACY, "--output", "out.xyz"], "ends in '.xyz'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused(discreet, place, monkeypatch, what):
    monkeypatch.chdir(place)
    arguments, words = REFUSED[what]
    if "--round" in arguments:
        made = discreet(*ROUND)
        (place / "m").write_bytes(b"")
        assert made.returncode == 0, made.stderr
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    done = discreet(*arguments)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert words in " ".join(done.stderr.split())
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_what_is_no_release_is_not_explained(discreet, place):
    for name, data in (("a.json", "[]"), ("b.json", '{"guarantee": 1}'), ("c.json", "{")):
        (place / name).write_text(data)
        done = discreet("explain", place / name)
        assert done.returncode in (2, 4), (name, done)
        assert "is not a release" in done.stderr
    assert json.loads((place / "a.json").read_text()) == []


# ---- options that say something, and are heard


@pytest.mark.parametrize(("name", "head"), [("log.txt", ""), ("log.csv", "name\n")])
def test_an_encoding_is_that_of_every_command_that_reads(discreet, tmp_path, name, head):
    (tmp_path / name).write_bytes((head + "\xe9t\xe9\n" * 30).encode("latin-1"))
    (tmp_path / "u.txt").write_text("\xe9t\xe9\n", encoding="utf-8")
    asked = {
        "pan": ["pan", "density", name, "--universe", "u.txt", "--epsilon", 50, "--format", "json"],
        "plan": ["plan", name, *PRIVACY, "--format", "json"],
    }
    for command, words in asked.items():
        done = discreet(*words, "--encoding", "latin-1", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "could not be read" not in done.stderr
        if command == "plan":
            assert json.loads(done.stdout)["length"] == 30
        plain = discreet(*words, cwd=tmp_path)
        assert "30 rows that could not be read" in plain.stderr or plain.returncode == 4


def test_a_command_of_one_column_takes_no_second_one(discreet, place):
    done = discreet("pan", "distinct", place / "rows.csv", "--column", "item", "--column", "who", "--epsilon", 1)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--column was given more than once; this command takes one" in done.stderr


@pytest.mark.parametrize("name", ["out.json", "OUT.JSON", "out.Csv", "out.txt", "out"])
def test_the_ending_of_an_output_says_how_it_is_written(discreet, place, name):
    done = discreet("count", place / "rows.csv", "--epsilon", 1, "-o", place / name, "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = (place / name).read_text()
    kind = name.lower().rpartition(".")[2]
    assert (kind == "json") == text.startswith("{")
    assert (kind == "csv") == text.startswith("count,lower,upper\n")


def test_notes_are_told_wherever_the_answer_goes(discreet, place):
    """Below a table; to the operator, where a file or JSON has the answer; never in quiet."""
    rows = "".join(f"a,w{n}\n" for n in range(900))
    (place / "people.csv").write_text("item,who\n" + rows)
    asked = ["top", place / "people.csv", "--column", "item", "--user", "who", "--epsilon", 5, "--delta", 1e-6]
    note = "Counts are of people who have the item."
    for more, place_of in ((["--format", "json"], "stderr"), (["-o", place / "o.txt"], "stderr"), ([], "stdout")):
        done = discreet(*asked, *more)
        told = {"stdout": done.stdout, "stderr": done.stderr}
        assert note in " ".join(told.pop(place_of).split())
        assert note not in " ".join("".join(told.values()).split())
    assert discreet(*asked, "--format", "json", "-q").stderr == ""
    whole = ["--sql", f"select item from '{place / 'people.csv'}'", "--rows-of-the-result-are-the-events"]
    done = discreet("count", *whole, "--epsilon", 1, "--format", "json")
    assert "what one row of its input changes in them is not bounded" in done.stderr


def test_a_warning_comes_with_a_budget_that_promises_next_to_nothing(discreet, place):
    for epsilon, warned in ((1, False), (60, True)):
        done = discreet("count", place / "rows.csv", "--epsilon", epsilon, "-q")
        assert done.returncode == 0
        assert ("warning:" in done.stderr) == warned


@pytest.mark.parametrize("given", [["--user", "who", "--user-column", "who"], ["--user-column=who", "--user=who"]])
def test_an_old_spelling_beside_the_new_one_is_refused(discreet, place, given):
    done = discreet("count", place / "rows.csv", "--epsilon", 1, *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--user-column is now called --user: give --user alone" in done.stderr


def test_the_balance_of_an_account_is_for_a_sheet(discreet, place):
    released = discreet("count", place / "rows.csv", "--epsilon", 1, "--format", "json").stdout
    paying = ["--ledger", place / "l.sqlite", "--account", "a"]
    done = discreet("explain", "-", *paying, input=released)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--ledger and --account need --sheet" in done.stderr
    assert discreet("explain", "-", "--sheet", *paying, input=released).returncode == 0


def test_a_sheet_names_a_charge_only_where_it_is_the_only_one(discreet, place):
    """Two charges of the same answer: nobody can tell which of them this is."""
    account = dc.Ledger(place / "l.sqlite").account("a")
    made = dc.histogram({"x": ["i"] * 9}, dc.Budget(1.0), column="x", universe=["i"], ledger=account, charge_id="one")
    (place / "o.json").write_text(made.to_json())
    ask = ["explain", place / "o.json", "--sheet", "--ledger", place / "l.sqlite", "--account", "a"]
    assert re.search(r"^Charge id: +one$", discreet(*ask).stdout, re.MULTILINE)
    account.begin("two", dc.Budget(0.5))
    account.store("two", made.to_payload())
    assert re.search(r"^Charge id: +_+$", discreet(*ask).stdout, re.MULTILINE)


def test_a_watch_shows_k_items_in_each_of_its_lists(discreet, tmp_path):
    """Also of those that rose, and of those that came: at most k lines, whatever the state remembers."""
    rows = [["a"] * 900, ["b"] * 300 + ["c"] * 300 + ["a"] * 300, ["b"] * 300 + ["c"] * 300 + ["a"] * 300]
    (tmp_path / "log.txt").write_text("".join(f"{item}\n" for tick in rows for item in tick))
    asked = ["watch", "log.txt", "--rows", 900, "--horizon", 8, "--once", "--epsilon", 500, "--delta", 1e-6]
    for k, longest in ((1, [1, 1, 1]), (3, [3, 3, 2])):
        done = discreet(*asked, "--increase", 1, "--k", k, "--state", f"s{k}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        told = [json.loads(line) for line in done.stdout.splitlines()]
        risen = [each["increase"] for each in told if "increase" in each]
        found = [max(map(len, lists)) for lists in (
            [each["items"] for each in told], [each["items"] for each in risen], [each["appeared"] for each in risen],
        )]  # fmt: skip
        assert found == longest
