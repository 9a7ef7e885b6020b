"""`discreet top` through the installed command: every input, every output, every exit code.

Where a test compares noisy counts with true ones it asks for a confidence of 1 - 1e-8 and relies on the intervals, or
on gaps so wide that noise crosses them with a probability below 1e-8.
"""

import csv
import gzip
import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet import cli

BUDGET = ("--epsilon", 1, "--delta", 1e-9)
SURE = ("--confidence", 1 - 1e-8)
SCHEMA = json.loads((Path(cli.__file__).parent / "schema" / "top.schema.json").read_text())


def release_of(done):
    assert done.returncode == 0, done.stderr
    release = json.loads(done.stdout)
    jsonschema.validate(release, SCHEMA)
    return release


def write_every_format(directory):
    """One file of each format and compression, each with 300 rows of an item of its own; returns names and items."""
    plain = {}

    def rows(item):
        return pa.table({"other": list(range(300)), "query": [item] * 300})

    for suffix, delimiter in (("csv", ","), ("tsv", "\t")):
        text = f"other{delimiter}query\n" + f"1{delimiter}from {suffix}\n" * 300
        plain[f"log.{suffix}"] = text.encode()
    plain["log.jsonl"] = (json.dumps({"query": "from jsonl", "other": None}) + "\n").encode() * 300
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows("").schema) as writer:
        writer.write_table(rows("from arrows"))
    plain["log.arrows"] = sink.getvalue().to_pybytes()
    for name, content in list(plain.items()):
        compressed = content.replace(b"from ", b"gzip ")
        plain[f"{name}.gz"] = gzip.compress(compressed)
        plain[f"{name}.zst"] = pa.compress(content.replace(b"from ", b"zstd "), "zstd", asbytes=True)
    for name, content in plain.items():
        (directory / name).write_bytes(content)
    pq.write_table(rows("from parquet"), directory / "log.parquet")
    pyarrow.feather.write_feather(rows("from feather"), str(directory / "log.feather"))
    items = [f"{how} {suffix}" for suffix in ("csv", "tsv", "jsonl", "arrows") for how in ("from", "gzip", "zstd")]
    return [*plain, "log.parquet", "log.feather"], [*items, "from parquet", "from feather"]


def test_every_format_and_compression_in_one_list(discreet, tmp_path):
    names, items = write_every_format(tmp_path)
    done = discreet("top", *names, "--column", "query", *BUDGET, *SURE, "--format", "json", "--quiet", cwd=tmp_path)
    release = release_of(done)
    assert {row["item"] for row in release["items"]} == set(items)
    for row in release["items"]:
        assert row["lower"] <= 300 <= row["upper"]
    assert done.stderr == ""  # no progress without a terminal


def test_patterns_and_text_lines(discreet, tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("cats\n" * 200 + "rare\n")
    release = release_of(discreet("top", tmp_path / "*.txt", *BUDGET, *SURE, "--format", "json"))
    (row,) = release["items"]
    assert row["item"] == "cats"
    assert row["lower"] <= 400 <= row["upper"]
    assert release["guarantee"]["epsilon"] == 1.0
    assert release["guarantee"]["delta"] == 1e-9


@pytest.mark.parametrize("compressed", [False, True])
def test_standard_input(discreet, compressed):
    data = b"user,query\n" + b"u1,cats\n" * 500
    data = gzip.compress(data) if compressed else data
    done = discreet("top", "-", "--column", "query", *BUDGET, "--format", "csv", input=data)
    assert done.returncode == 0, done.stderr
    (row,) = csv.DictReader(done.stdout.decode().splitlines())
    assert row["query"] == "cats"
    assert 400 < int(row["count"]) < 600


def test_the_table_and_its_sentence(discreet, tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("".join(f"item {i}\n" * (1000 // i) for i in range(1, 6)))
    done = discreet("top", path, "-k", 3, *BUDGET, "--total-share", 0.1, "--explain")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["item", "estimate", "95%", "interval"]
    assert [line.split("  ")[0] for line in lines[2:6]] == ["item 1", "item 2", "item 3", "(everything else)"]
    text = " ".join(lines)
    assert "Differentially private with epsilon=1, delta=1e-09" in text
    assert "What is protected" in text


def test_files_of_every_kind(discreet, tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("cats\n" * 300 + "dogs\n" * 200)
    for name, plot in (("out.json", ["--plot", "p.png"]), ("out.csv", []), ("out.parquet", []), ("out.txt", [])):
        done = discreet("top", path, *BUDGET, "--output", tmp_path / name, *plot, "--quiet", cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    jsonschema.validate(json.loads((tmp_path / "out.json").read_text()), SCHEMA)
    with open(tmp_path / "out.csv", newline="") as file:
        assert [row["item"] for row in csv.DictReader(file)] == ["cats", "dogs"]
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["item", "count", "lower", "upper"]
    assert table["item"].to_pylist() == ["cats", "dogs"]
    assert json.loads(table.schema.metadata[b"discreet"])["guarantee"]["epsilon"] == 1.0
    assert "Differentially private" in (tmp_path / "out.txt").read_text()
    assert not list(tmp_path.glob(".*"))  # no temporary files are left
    assert (tmp_path / "out.json").stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_plots_as_svg_and_integers(discreet, tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"code": [7] * 300 + [-8] * 200}), path)
    done = discreet("top", path, *BUDGET, "--format", "json", "--plot", tmp_path / "p.svg")
    assert [row["item"] for row in release_of(done)["items"]] == [7, -8]
    assert b"<svg" in (tmp_path / "p.svg").read_bytes()


def people(tmp_path):
    """1000 people have the items a to e, several times, and one has 2000 rows of an item of their own."""
    path = tmp_path / "log.csv"
    rows = [f"user {user},{item}" for _ in range(2) for item in "abcde" for user in range(1000)]
    path.write_text("user,query\n" + "\n".join([*rows, *["somebody,my own words"] * 2000]))
    return path


def test_people_are_hidden_without_a_guess(discreet, tmp_path):
    asked = ("top", people(tmp_path), "--column", "query", "--user", "user", *BUDGET, *SURE)
    release = release_of(done := discreet(*asked, "--format", "json"))
    assert {row["item"] for row in release["items"]} == set("abcde")
    low, high = release["left_out"]["lower"], release["left_out"]["upper"]
    for row in release["items"]:
        assert row["lower"] <= 1000
        assert row["upper"] >= 1000 * (1 - high) or low > 0
    assert (release["guarantee"]["unit"]["name"], release["counted"]) == ("User", "people")
    assert "5 of at most 100 items are listed" in done.stderr
    table = discreet(*asked).stdout
    assert "people" in table.splitlines()[0]
    assert "it hides one person, with all of their rows" in " ".join(table.split())
    assert "my own words" not in table


def test_a_bound_of_items_scales_those_who_have_more(discreet, tmp_path):
    """With a bound of one item, five items of a person count 1/sqrt(5) each."""
    users = ("--user", "user", "--max-items", 1)
    asked = ("top", people(tmp_path), "--column", "query", *users, *BUDGET, *SURE, "--format", "json")
    release = release_of(discreet(*asked))
    for row in release["items"]:
        assert row["lower"] <= 1000 / 5**0.5 <= row["upper"]
    assert 0.3 < release["left_out"]["value"] < 0.8
    assert release["guarantee"]["unit"]["max_items"] == 1
    assert "people with more items are hidden, too: they are scaled down" in release["guarantee"]["assumptions"]
    assert "People with more than 1 items are hidden, too." in discreet(*asked[:-2]).stdout


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_values_are_summed_within_a_public_range(discreet, tmp_path, suffix):
    """1000 people pay 2.5 for a and 4 for b; one pays a million, which counts as 10."""
    rows = [(f"user {user}", item, price) for user in range(1000) for item, price in (("a", 2.5), ("b", 4))]
    rows.append(("somebody", "a", 1_000_000))
    path = tmp_path / f"log.{suffix}"
    if suffix == "csv":
        path.write_text("user,query,price\n" + "".join(f"{user},{item},{price}\n" for user, item, price in rows))
    elif suffix == "jsonl":
        lines = (json.dumps(dict(zip(("user", "query", "price"), row, strict=True))) for row in rows)
        path.write_text("\n".join(lines) + "\n")
    else:
        users, items, prices = zip(*rows, strict=True)
        pq.write_table(pa.table({"user": users, "query": items, "price": pa.array(prices, pa.float64())}), path)
    columns = ("--column", "query", "--user", "user", "--value", "price", "--value-range", 0, 10)
    release = release_of(discreet("top", path, *columns, *BUDGET, *SURE, "--format", "json"))
    assert release["counted"] == "sums"
    truth = {"a": 2510, "b": 4000}
    for row in release["items"]:
        assert row["lower"] <= truth[row["item"]] <= row["upper"] / (1 - release["left_out"]["upper"]) + 1
    assert discreet("top", path, *columns, *BUDGET).stdout.split()[:2] == ["query", "sum"]


def test_a_value_that_is_no_number_is_a_bad_row(discreet, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,query,price\n" + "".join(f"{user},a,2\n" for user in range(900)) + "x,a,secret item\n")
    columns = ("--column", "query", "--user", "user", "--value", "price", "--value-range", 0, 10)
    done = discreet("top", path, *columns, *BUDGET, "--bad-rows", "error")
    assert (done.returncode, done.stdout) == (4, "")
    assert "a value that is not a number" in done.stderr
    assert "secret item" not in done.stderr
    assert discreet("top", path, *columns, *BUDGET, "--bad-rows", "skip").returncode == 0


def test_lists_are_people_where_the_unit_says_so(discreet, tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"tags": ["a", "b"]}\n' * 900 + '{"tags": ["my own words"]}\n')
    release = release_of(discreet("top", path, "--column", "tags", "--unit", "person", *BUDGET, "--format", "json"))
    assert {row["item"] for row in release["items"]} == {"a", "b"}
    assert release["counted"] == "people"
    assert release["guarantee"]["assumptions"] == ["every person is one list"]


def test_rows_say_that_they_hide_rows(discreet, tmp_path):
    asked = ("top", people(tmp_path), "--column", "query", *BUDGET, "-k", 3)
    assert "a person with many rows can put their own text on this list" in " ".join(discreet(*asked).stdout.split())
    assert "their own text" not in " ".join(discreet(*asked, "--unit", "row").stdout.split())


def test_lists_are_sets_of_users(discreet, tmp_path):
    """Of two items a list, one is kept at random: about half of 4000 users each (far more than noise from 0)."""
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"tags": [["a", "b", "a"]] * 4000}), path)
    both = release_of(discreet("top", path, "--max-items", 2, *BUDGET, *SURE, "--format", "json"))
    for row in both["items"]:
        assert row["lower"] <= 4000 <= row["upper"]
    one = release_of(discreet("top", path, "--max-items", 1, *BUDGET, *SURE, "--format", "json"))
    assert {row["item"] for row in both["items"]} == {row["item"] for row in one["items"]} == {"a", "b"}
    assert 3500 < sum(row["count"] for row in one["items"]) < 4500


def test_an_empty_input_is_a_valid_release(discreet, tmp_path):
    """It differs from an input of one row by one row, so neither its exit code nor its shape may differ."""
    (tmp_path / "none.txt").touch()
    (tmp_path / "one.txt").write_text("cats\n")
    for name in ("none.txt", "one.txt"):
        release = release_of(discreet("top", tmp_path / name, *BUDGET, "--format", "json"))
        assert release["items"] == []
        done = discreet("top", tmp_path / name, *BUDGET)
        assert "No item passed the threshold" in done.stdout


def test_control_characters_do_not_reach_the_terminal(discreet, tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("\x1b[2Jevil\x07\n" * 300)
    done = discreet("top", path, *BUDGET)
    assert done.returncode == 0
    assert "\\x1b[2Jevil\\x07" in done.stdout
    assert "\x1b" not in done.stdout


# --- the ledger


def test_charges_refusals_and_retries(discreet, tmp_path):
    ledger = tmp_path / "budgets.sqlite"
    log = tmp_path / "log.txt"
    log.write_text("cats\n" * 300)
    pay = ("--ledger", ledger, "--account", "searches", "--format", "json")
    assert discreet("ledger", "grant", *pay[:4], "--epsilon", 2, "--delta", 1e-8).returncode == 0
    first = discreet("top", log, *BUDGET, *pay, "--charge-id", "monday")
    release_of(first)
    told, charged = first.stderr.index("charge id monday:"), first.stderr.index("charged to 'searches'")
    assert told < charged
    log.write_text("dogs\n" * 300)
    replayed = discreet("top", log, *BUDGET, *pay, "--charge-id", "monday")
    assert replayed.stdout == first.stdout
    assert "replayed, not charged" in replayed.stderr
    assert "charged to" not in replayed.stderr.replace("not charged to", "")
    again = discreet("top", log, *BUDGET, *pay, "--charge-id", "monday", "--quiet")
    assert (again.stdout, again.stderr) == (first.stdout, "")
    assert discreet("top", log, *BUDGET, *pay).returncode == 0

    refused = discreet("top", log, *BUDGET, *pay)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "cannot pay epsilon=1" in refused.stderr
    assert "monday" in refused.stderr
    refused = discreet("top", log, "--epsilon", 0.5, "--delta", 1e-9, *pay, "--charge-id", "monday")
    assert (refused.returncode, refused.stdout) == (6, "")
    kinds = [event.kind for event in dc.Ledger(ledger).account("searches").history()]
    assert kinds == ["grant", "charge", "release", "charge", "release"]


@pytest.mark.parametrize(
    "other",
    [["-k", 5], ["--column", "page"], ["--capacity", 999], ["--nulls", "skip"], ["--length", 100_000], ["other.csv"]],
)
def test_a_charge_id_stands_for_one_request(discreet, tmp_path, other):
    """Another file, column or parameter under a used id is an error, not the release of other data."""
    for name in ("log.csv", "other.csv"):
        (tmp_path / name).write_text("item,page\n" + "cats,dogs\n" * 300)
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("a", dc.Budget(4.0, 1e-6))
    common = [*BUDGET, "--ledger", "budgets.sqlite", "--account", "a", "--charge-id", "monday"]
    asked = {"file": "log.csv", "--column": "item", "-k": 3}

    def run(**changes):
        now = {**asked, **changes}
        options = [part for name, value in now.items() if name != "file" for part in (name, value)]
        return discreet("top", now["file"], *options, *common, cwd=tmp_path)

    first = run()
    assert first.returncode == 0, first.stderr
    changed = run(file="other.csv") if len(other) == 1 else run(**{other[0]: other[1]})
    assert (changed.returncode, changed.stdout) == (6, "")  # a repetition cannot help
    assert "another request" in changed.stderr
    assert run().stdout == first.stdout
    assert [event.kind for event in ledger.history()] == ["grant", "charge", "release"]


def test_a_full_disk_is_named_and_the_release_can_be_had_again(discreet, tmp_path):
    """The limit lets the ledger be written and not the table, whose cells are as wide as the longest item."""
    pay = ("--ledger", tmp_path / "budgets.sqlite", "--account", "searches", "--quiet")
    assert discreet("ledger", "grant", *pay[:4], "--epsilon", 3, "--delta", 1e-8).returncode == 0
    log, out = tmp_path / "log.txt", tmp_path / "out.txt"
    log.write_text(("w" * 4000 + "\n") * 300 + "".join(f"item {i}\n" * 300 for i in range(99)))
    out.write_text("old")

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    full = discreet.process("top", log, *BUDGET, *pay, "--output", out, preexec_fn=little_room)
    assert full.returncode == 1
    assert f"the output '{out}' cannot be written: File too large; it is charged" in full.stderr
    assert out.read_text() == "old"
    assert not list(tmp_path.glob(".*"))
    with open("/dev/full", "wb") as device:
        done = subprocess.run(
            [discreet.command, "top", str(log), *map(str, (*BUDGET, *pay))],
            stdout=device,
            stderr=subprocess.PIPE,
            timeout=120,
        )
    assert done.returncode == 5
    assert b"standard output cannot be written: No space left on device; it is charged" in done.stderr
    for error in (full.stderr, done.stderr.decode()):
        assert "internal" not in error
        (charge_id,) = re.findall("--charge-id (\\S+)", error)
        assert discreet("top", log, *BUDGET, *pay, "--charge-id", charge_id, "--output", out).returncode == 0
        assert "item 7" in out.read_text()
    kinds = [event.kind for event in dc.Ledger(tmp_path / "budgets.sqlite").account("searches").history()]
    assert kinds == ["grant", "charge", "release", "charge", "release"]


def test_standard_error_on_a_full_disk_costs_no_release(discreet, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("cats\n" * 300)
    with open("/dev/full", "wb") as device:
        arguments = [discreet.command, "top", str(log), *map(str, BUDGET), "--format", "json"]
        done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=device, timeout=120)
    assert done.returncode == 0
    assert json.loads(done.stdout)["items"]


@pytest.fixture
def bad(tmp_path):
    """Inputs that cannot be counted, and an account that must not be charged for them."""
    (tmp_path / "good.txt").write_text("cats\n")
    (tmp_path / "good.csv").write_text("user,query\nu,cats\n")
    (tmp_path / "empty.csv").touch()
    pq.write_table(pa.table({"query": ["cats"] * 1000}), tmp_path / "broken.parquet")
    with open(tmp_path / "broken.parquet", "r+b") as file:
        file.truncate(200)
    (tmp_path / "garbage.csv").write_bytes(bytes(range(128, 256)) * 100)
    (tmp_path / "garbage.txt").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "float.jsonl").write_text('{"query": "secret item"}\n{"query": 7.5}\n')
    pq.write_table(pa.table({"query": [["secret item"]]}), tmp_path / "lists.parquet")
    (tmp_path / "nulls.csv").write_text("user,query\nu,secret item\nu,\n")
    (tmp_path / "lists.jsonl").write_text('{"query": ["secret item"]}\n')
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("searches", dc.Budget(1.0, 1e-9))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["good.csv", "--column", "typo"], 4),
        (["good.csv"], 4),
        (["empty.csv", "--column", "query"], 4),
        (["broken.parquet"], 4),
        (["garbage.csv", "--column", "query"], 4),
        (["garbage.txt", "--bad-rows", "error"], 4),
        (["float.jsonl", "--bad-rows", "error"], 4),
        (["nulls.csv", "--column", "query"], 4),
        (["lists.jsonl", "--bad-rows", "error"], 4),
        (["lists.parquet"], 4),
        (["lists.jsonl", "--bad-rows", "error", "--user", "query2", "--max-items", "2"], 4),
        (["good.txt", "--max-items", "2"], 4),
        (["missing.csv"], 2),
        (["*.nothing"], 2),
        ([], 2),
        (["good.txt", "-k", "0"], 2),
        (["good.txt", "--epsilon", "0"], 2),
        (["good.txt", "--epsilon", "nan"], 2),
        (["good.txt", "--delta", "0"], 2),
        (["good.txt", "--rho", "1"], 2),
        (["good.txt", "--mechanism", "magic"], 2),
        (["good.txt", "--capacity", "0"], 2),
        (["good.txt", "--confidence", "1"], 2),
        (["good.txt", "--input-format", "xlsx"], 2),
        (["good.txt", "--nulls", "maybe"], 2),
        (["good.txt", "--bad-rows", "maybe"], 2),
        (["good.csv", "--column", "query", "--user", "user", "--mechanism", "user"], 2),
        (["good.csv", "--column", "query", "--user", "user", "--capacity", "64"], 2),
        (["good.csv", "--column", "query", "--user", "user", "--memory", "much"], 2),
        (["good.csv", "--column", "query", "--user", "user", "--memory", "10MB"], 2),
        (["good.csv", "--column", "query", "--user", "user", "--value", "n"], 2),
        (["good.csv", "--column", "query", "--user", "user", "--value-range", "0", "5"], 2),
        (["good.csv", "--column", "query", "--value", "n", "--value-range", "0", "5"], 2),
        (["good.csv", "--column", "query", "--unit", "person"], 4),
        (["good.csv", "--column", "query", "--count", "rows"], 2),
        (["good.csv", "--column", "query", "--user", "user", "--unit", "row"], 2),
        (["good.txt", "--output", "no/such/file.json"], 1),
        (["good.txt", "--output", "good.txt/file.json"], 1),
        (["good.txt", "--output", "."], 1),
        (["good.txt", "--plot", "no/such/plot.png"], 1),
        (["good.txt", "--plot", "plot.gif"], 2),
        (["good.txt", "--output", "out.xlsx"], 2),
        (["good.txt", "--output", "good.txt"], 2),
        (["good.txt", "--output", "./good.csv", "good.csv", "--input-format", "text"], 2),
        (["good.txt", "--output", "budgets.sqlite", "--format", "json"], 2),
        (["good.txt", "--account", ""], 2),
        (["good.txt", "--account", "typo"], 1),
        (["good.txt", "--ledger", "missing.sqlite"], 1),
        (["good.txt", "--ledger", "good.csv"], 1),
    ],
)
def test_bad_input_has_a_code_and_costs_nothing(discreet, bad, arguments, code):
    defaults = ["--epsilon", "1", "--delta", "1e-9", "--ledger", "budgets.sqlite", "--account", "searches"]
    done = discreet("top", *arguments[:1], *defaults, *arguments[1:], cwd=bad)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert "secret item" not in done.stderr
    assert len(done.stderr) > 20
    assert [event.kind for event in dc.Ledger(bad / "budgets.sqlite").history()] == ["grant"]


def test_nulls_may_be_skipped(discreet, bad):
    done = discreet("top", "nulls.csv", "--column", "query", "--nulls", "skip", *BUDGET, cwd=bad)
    assert done.returncode == 0


POISON = {
    "txt": [b"\xff\xfe secret item", b"secret item" * 500],
    "csv": [b"secret item", b"a,secret item,c", b"1,secret\xff", b"1," + b"secret item" * 500, b'1,"secret item'],
    "jsonl": [
        b"secret item",
        b'{"query": "secret item',
        b'{"query": 1.5}',
        b'{"query": ["secret item"]}',
        b"\xff",
        b"[1]",
    ],
}


@pytest.mark.parametrize("suffix", POISON)
def test_a_bad_row_does_not_decide_whether_there_is_a_release(discreet, tmp_path, suffix):
    good = {"txt": b"cats\n", "csv": b"1,cats\n", "jsonl": b'{"query": "cats"}\n'}[suffix]
    path = tmp_path / f"log.{suffix}"
    header = b"n,query\n" if suffix == "csv" else b""
    column = [] if suffix == "txt" else ["--column", "query"]
    for poison in POISON[suffix]:
        path.write_bytes(header + good * 200 + poison + b"\n" + good * 100)
        done = discreet("top", path, *column, *BUDGET, *SURE, "--format", "json")
        (row,) = release_of(done)["items"]
        assert (row["item"], row["lower"] <= 300 <= row["upper"]) == ("cats", True)
        told = "discreet: skipped 1 row that could not be read (not private: for your eyes alone)"
        assert told in done.stderr.splitlines()
        assert "secret" not in done.stderr
        assert discreet("top", path, *column, *BUDGET, "--quiet").stderr == ""
        refused = discreet("top", path, *column, *BUDGET, "--bad-rows", "error")
        assert (refused.returncode, refused.stdout) == (4, "")
        assert "secret" not in refused.stderr


# --- interrupts and terminals


def test_ctrl_c_publishes_and_charges_nothing(command, spawn, tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("searches", dc.Budget(1.0, 1e-9))
    pay = ("--ledger", tmp_path / "budgets.sqlite", "--account", "searches", "--output", tmp_path / "out.json")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = spawn([command, "top", "-", *BUDGET, *pay], **pipes)
    block = b"cats\n" * 100_000
    for _ in range(20):  # more than pipes and blocks hold: it is reading when this is through
        process.stdin.write(block)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert out == b""
    assert b"nothing was released and nothing was charged" in err
    assert [event.kind for event in ledger.history()] == ["grant"]
    assert not (tmp_path / "out.json").exists()
    assert not list(tmp_path.glob(".out*"))


def run_in_terminal(command, arguments, until=None, send=b""):
    """Run in a pseudo-terminal; send bytes once until(process id). Returns the exit code and all that was shown."""
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # also where the tests were started with it ignored
        os.environ.update(TERM="xterm", COLUMNS="100", LINES="30")
        os.execv(command, [command, *map(str, arguments)])
    shown = b""
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        if until is not None and until(pid):
            os.write(terminal, send)
            until = None
        if not select.select([terminal], [], [], 0.05)[0]:
            continue
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        shown += piece
    else:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown


def test_in_a_terminal_there_is_progress_and_a_table(command, tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("cats\n" * 2_000_000)
    code, shown = run_in_terminal(command, ["top", path, *BUDGET])
    assert code == 0
    assert b"rows/s" in shown
    assert re.search(rb"2,000,\d\d\d|1,999,\d\d\d", shown)
    assert b"Differentially private" in shown
    code, shown = run_in_terminal(command, ["top", path, *BUDGET, "--quiet"])
    assert code == 0
    assert b"rows/s" not in shown
    code, shown = run_in_terminal(command, ["top", path, *BUDGET, "--format", "parquet"])
    assert code == 2
    assert b"Parquet cannot be printed; give --output" in shown


def test_ctrl_c_in_a_terminal(command):
    """Standard input is the terminal: the command waits for lines until it is interrupted."""

    def loaded(pid):  # before that, what becomes of an interrupt is up to Python
        started = command.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()  # no longer the fork of this process
        return started and "_native" in Path(f"/proc/{pid}/maps").read_text()

    waiting = ["top", "-", "--input-format", "text", *BUDGET]
    code, shown = run_in_terminal(command, waiting, until=loaded, send=b"\x03")
    assert code == 130
    assert b"Traceback" not in shown
    assert b"nothing was charged" in shown


# --- resources


# Feeds a command with more than 300 MB and tells its peak memory. This needs a process of its own: what a child is said
# to have used includes what its parent held when it was forked, and a test runner holds a lot.
FEED = """
import json, os, subprocess, sys, threading

process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

def feed():
    line = b"a line of a stream that is long and holds nothing twice: %d\\n"
    for start in range(0, 5_000_000, 50_000):
        process.stdin.write(b"cats\\n" * 1000 + b"".join(line % i for i in range(start, start + 50_000)))
    process.stdin.close()

feeding = threading.Thread(target=feed)
feeding.start()
out = process.stdout.read()
feeding.join()
_, status, usage = os.wait4(process.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_maxrss, json.loads(out)]))
"""


def test_memory_does_not_grow_with_the_input(command):
    """More than 300 MB, five million different lines, go through in far less memory than they take."""
    arguments = [command, "top", "-", *BUDGET, *SURE, "--format", "json"]
    feeder = [sys.executable, "-c", FEED, *map(str, arguments)]
    done = subprocess.run(feeder, capture_output=True, text=True, timeout=240)
    code, peak, release = json.loads(done.stdout)
    assert code == 0
    assert [row["item"] for row in release["items"]] == ["cats"]
    assert release["items"][0]["lower"] <= 100_000 <= release["items"][0]["upper"]
    assert peak * (1 if sys.platform == "darwin" else 1024) < 200e6


def test_help_imports_nothing_heavy():
    script = """
import sys
from discreet.cli.app import app
try:
    app(["--help"])
except SystemExit:
    pass
heavy = {"numpy", "scipy", "pyarrow", "dp_accounting", "matplotlib", "pandas", "sqlite3", "rich.table", "pydantic"}
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stderr.strip() == "[]"
    assert "top" in done.stdout
    assert "130 interrupted" in done.stdout


# What a release of rows may load of ours, room by room: no other mechanism, no ledger, no people, no plan, no picture.
OWN_OF_TOP = {
    "_data_class", "_early", "_later", "_names", "_native", "_version",
    "errors", "storage", "events", "noise", "summaries",
    *(f"questions.{name}" for name in ["answer", "ask", "choose", "question", "top", "words"]),
    *(f"central.{name}" for name in ["_base", "offset"]),
    *(f"cli.{name}" for name in ["app", "options", "output", "process", "publish"]),
    *(f"privacy.{name}" for name in ["budget", "checks", "estimate", "guarantee", "charge_terms"]),
    *(f"privacy.{name}" for name in ["plain_form", "rounding"]),
    *(f"privacy.calibration.{name}" for name in ["collisions", "offset_cut", "tails", "zcdp"]),
    *(f"releases.{name}" for name in ["asked", "error_model", "explain", "formats"]),
    *(f"releases.{name}" for name in ["labels", "payment", "release", "rows"]),
}  # fmt: skip


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_release_loads_what_it_needs(tmp_path, ending, workers):
    """Who names no ledger, no people and no terminal waits for none of them; texts need no NumPy and no Arrow."""
    path = tmp_path / f"log.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"query": ["cats"] * 300}), path)
    else:
        path.write_text("query\n" + "cats\n" * 300 if ending == "csv" else '{"query": "cats"}\n' * 300)
    words = ["discreet", "top", str(path), "--column", "query", *map(str, BUDGET), *workers]
    script = f"""
import sys
import click
before = set(sys.modules)  # what these load by themselves is not for us to say
from discreet import cli
sys.argv = {words!r}
try:
    cli.main()
except SystemExit:
    pass
heavy = {{"scipy", "dp_accounting", "matplotlib", "pandas", "polars", "duckdb", "sqlite3", "rich", "pydantic", "typer"}}
heavy |= {{"pyarrow.compute", "pyarrow.dataset", "pyarrow.csv", "pyarrow.json", "pyarrow.parquet", "numpy.ma"}}
heavy |= {{"numpy", "pyarrow", "pathlib", "ipaddress"}}
heavy |= {{"dataclasses", "unicodedata", "random", "statistics"}}
heavy |= {{"asyncio", "hashlib", "secrets", "zoneinfo", "hmac", "http", "xml", "unittest", "multiprocessing"}}
heavy |= {{"shutil", "zipfile", "bz2", "lzma", "glob", "concurrent", "subprocess", "tempfile", "logging"}}
allowed = {OWN_OF_TOP | ({"central.sharded_offset"} if workers else set())!r}
rooms = {{name.split(".")[0] for name in allowed}} | {{"privacy.calibration"}}
ours = {{name[len("discreet.") :] for name in sys.modules if name.startswith("discreet.")}}
needless = {{name for name in ours - rooms if name not in allowed and name.split(".")[0] not in allowed}}
print(sorted(heavy & (set(sys.modules) - before) | needless), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[2].startswith("cats")
    assert done.stderr.splitlines()[-1] == "[]"


def test_python_m_discreet(discreet, tmp_path):
    words = [sys.executable, "-m", "discreet", "top", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == discreet("top", "--help").stdout


def test_version(discreet):
    assert discreet("--version").stdout == f"discreet {dc.__version__}\n"


def test_workers(discreet, tmp_path):
    """Threads publish the same items with the same promise; what is not proved for them is refused before reading."""
    (tmp_path / "log.txt").write_text("cats\n" * 5000 + "dogs\n" * 3000)
    release = release_of(discreet("top", "log.txt", "--workers", 2, *BUDGET, *SURE, "--format", "json", cwd=tmp_path))
    assert [(row["item"], row["lower"] <= count <= row["upper"]) for row, count in
            zip(release["items"], (5000, 3000), strict=True)] == [("cats", True), ("dogs", True)]  # fmt: skip
    assert len(release["shard_offsets"]) == 2
    assert "parallel composition" in release["guarantee"]["assumptions"][0]
    for wrong in (("--workers", 0), ("--workers", 2, "--mechanism", "pmg")):
        done = discreet("top", "log.txt", *wrong, *BUDGET, cwd=tmp_path)
        assert done.returncode == 2
        assert "worker" in done.stderr
