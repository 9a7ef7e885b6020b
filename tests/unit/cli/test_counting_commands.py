"""`discreet count`, `distinct`, `histogram` and `quantiles`."""

import csv
import io
import json

import pyarrow as pa
import pytest
from tests.commands import run_here

TABLE = "who,what,n\na,p,1\na,q,2\nb,q,2\nc,r,x\n"
SURE = ("--epsilon", 60)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def value(*arguments):
    done = run_here(*arguments, *SURE, "--format", "json", "--quiet")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_counts(table):
    assert value("count", table, "--column", "what")["value"] == 4
    people = value("count", table, "--user", "who")
    assert people | {"guarantee": 0, "version": 0, "time": 0} == {
        **{"number_of": "people", "value": 3, "lower": 3.0, "upper": 3.0, "confidence": 0.95, "guarantee": 0},
        **{
            "columns": {"user": "who"},
            "k": None,
            "parameters": {"nulls": "error", "bad_rows": "skip", "confidence": 0.95},
            "version": 0,
            "time": 0,
        },
    }
    assert value("distinct", table, "--column", "what")["value"] == 3
    assert value("distinct", table, "--column", "who", "--user", "who")["number_of"] == "people"
    credited = value("distinct", table, "--column", "what", "--user", "who", "--max-items", 2)
    assert (credited["value"], credited["upper"]) == (3, None)


def test_all_rows_are_counted_without_a_column(table, tmp_path):
    import pyarrow.parquet as pq

    some = tmp_path / "some.csv"
    some.write_text("a,b\n,1\n2,\n,\n")
    assert value("count", table)["value"] == 4
    assert value("count", some)["value"] == 3
    assert value("count", some, "--where", "b = 1")["value"] == 1
    assert value("count", some, "--no-header")["value"] == 4
    assert value("count", table, some, "--no-header", "--delimiter", ";")["value"] == 9
    assert value("count", "--sql", f"select a, b from '{some}' where a is null")["value"] == 2
    assert value("count", some, "--column", "b", "--nulls", "skip")["value"] == 1
    pq.write_table(pa.table({"x": [None, "y"], "z": [1, 2]}), tmp_path / "rows.parquet")
    assert value("count", tmp_path / "rows.parquet")["value"] == 2
    (tmp_path / "rows.jsonl").write_text('{"a": {"b": 1}, "c": true}\n{"c": 2}\n')
    assert value("count", tmp_path / "rows.jsonl")["value"] == 2
    (tmp_path / "rows.txt").write_text("one\ntwo\n")
    assert value("count", tmp_path / "rows.txt")["value"] == 2
    some.write_text("a,b\n1,2\n1\n3,4\n")
    assert value("count", some)["value"] == 2
    refused = run_here("count", some, "--bad-rows", "error", *SURE)
    assert refused.returncode == 4
    assert "(line 3)" in refused.stderr


def test_a_basket_is_a_person(tmp_path):
    path, listed = tmp_path / "baskets.txt", tmp_path / "list"
    path.write_text("p q r\np p\nq\n")
    listed.write_text("p\nq\nzz\n")
    asked = (path, "--input-format", "baskets")
    for options in ((), ("--max-items", 3)):
        different = value("distinct", *asked, *options)
        # How many values a person is credited with is chosen privately where nobody says it, now and then too few.
        assert different["value"] == 3 or not options
        assert (different["upper"], different["number_of"]) == (None, "values")
        assert different["guarantee"]["unit"]["name"] == "User"
        assert different["guarantee"]["assumptions"][0] == "every person is one list"
    counts = value("histogram", *asked, "--universe", listed, "--max-items", 3)
    assert {row["item"]: row["count"] for row in counts["items"]} == {"p": 2, "q": 2, "zz": 0}
    assert "every person is one list" in counts["guarantee"]["assumptions"]
    # Of a person the first items of the list count.
    first = value("histogram", *asked, "--universe", listed, "--max-items", 1)
    assert {row["item"]: row["count"] for row in first["items"]} == {"p": 2, "q": 1, "zz": 0}
    public = run_here("histogram", *asked, "--universe", listed, *SURE)
    assert public.returncode == 2
    assert "--max-items is missing; counting people needs it" in public.stderr
    with pa.OSFile(str(tmp_path / "lists.arrow"), "wb") as file:
        table = pa.table({"x": [["p"], ["q"]]})
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    for more in (("distinct",), ("histogram", "--universe", listed)):
        refused = run_here(*more, tmp_path / "lists.arrow", *SURE)
        assert refused.returncode == 4
        assert "holds lists" in refused.stderr


def test_dates_have_different_values(tmp_path):
    import pyarrow.parquet as pq

    days = pa.array([1, 2, 2], pa.date32())
    pq.write_table(pa.table({"day": days, "who": ["a", "b", "c"]}), tmp_path / "days.parquet")
    assert value("distinct", tmp_path / "days.parquet", "--column", "day")["value"] == 2
    assert (
        value("distinct", tmp_path / "days.parquet", "--column", "day", "--user", "who", "--max-items", 1)["value"] == 2
    )


def test_every_answer_says_what_was_asked(table, tmp_path):
    (tmp_path / "list").write_text("p\nq\n")
    where = ("--where", "n = 2")
    people = ("--column", "what", "--user", "who", "--max-items", 2)
    asked = {
        "count": ("--column", "what"),
        "distinct": people,
        "histogram": (*people, "--universe", tmp_path / "list"),
        "quantiles": ("--column", "n", "--range", 0, 9, "--user", "who"),
    }
    for command, options in asked.items():
        told = value(command, table, *options, *where)
        assert told["parameters"]["where"] == "n = 2"
        named = {"item": "what", "user": "who"} if options is not asked["quantiles"] else {"value": "n", "user": "who"}
        assert told["columns"] == ({"item": "what"} if command == "count" else named)
        assert told["version"]
        assert told["time"].endswith("Z")
        assert "where" not in value(command, table, *options, "--bad-rows", "skip")["parameters"]


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_quantiles(tmp_path, format):
    import pandas as pd

    rows = pd.DataFrame({"who": ["a"] * 600 + ["b", "c"] * 200, "amount": [0.5 + n for n in range(1000)]})
    path = tmp_path / f"rows.{format}"
    {
        "csv": lambda: rows.to_csv(path, index=False),
        "jsonl": lambda: rows.to_json(path, orient="records", lines=True),
        "parquet": lambda: rows.to_parquet(path),
    }[format]()
    asked = ("quantiles", path, "--column", "amount", "--range", 0, 2000, "--quantile", 0.5, "--quantile", 0.9)
    median, most = value(*asked)["quantiles"]
    assert median["lower"] <= 500 <= median["upper"]
    assert abs(most["value"] - 900) < 10
    # a's rows share one of three votes: half of all lies at a quarter of the others' rows, from 600 to 1000.
    people = run_here(*asked, "--user", "who", "--epsilon", 1000, "--format", "csv", "--quiet")
    (_, middle, lower, upper), _ = ([*map(float, row)] for row in [*csv.reader(io.StringIO(people.stdout))][1:])
    assert lower <= 700 <= upper
    assert abs(middle - 700) < 20
    table = run_here(*asked, *SURE, "--explain")
    assert "95% interval" in table.stdout
    assert "Values outside the range" in " ".join(table.stdout.split())


def test_a_top_over_a_universe_needs_no_delta(tmp_path):
    path, listed, items = tmp_path / "rows.csv", tmp_path / "listed.txt", ["7"] * 300 + ["9"] * 200 + ["x"] * 900
    path.write_text("port,name\n" + "".join(f"{item},n{item}\n" for item in items))
    listed.write_text("n7\nn8\nn9\n")
    for column, universe, shown in (("port", "0:4294967296", [7, 9]), ("name", listed, ["n7", "n9"])):
        for budget in (("--epsilon", 2), ("--rho", 2)):
            asked = ("top", path, "--column", column, "--universe", universe, *budget, "-k", 2, "--format", "json")
            done = run_here(*asked, "--quiet")
            assert done.returncode == 0, done.stderr
            release = json.loads(done.stdout)
            assert [row["item"] for row in release["items"]] == shown
            assert release["guarantee"]["delta"] == 0.0
    for wrong in (("--user", "name"), ("--delta", 1e-6), ("--mechanism", "reduced")):
        done = run_here("top", path, "--column", "port", "--universe", 10, "--epsilon", 1, *wrong)
        assert (done.returncode, done.stdout) == (2, ""), wrong


def test_an_output_of_a_number(table, tmp_path):
    made = tmp_path / "count.csv"
    assert run_here("count", table, "--user", "who", *SURE, "--output", made).returncode == 0
    assert made.read_text() == "count,lower,upper\n3,3,3\n"
    refused = run_here("count", table, "--user", "who", *SURE, "--output", tmp_path / "count.parquet")
    assert refused.returncode == 2
    assert "'.csv'" in refused.stderr
    assert run_here("count", table, "--user", "who", *SURE, "--output", table).returncode == 2


@pytest.mark.parametrize("people", [(), ("--user", "who", "--max-items", 1)])
def test_histogram(table, tmp_path, people):
    listed = tmp_path / "listed.txt"
    listed.write_text("q\nzz\n\nr\n")
    for universe, column, expected in ((listed, "what", {"q": 2, "r": 1, "zz": 0}), (3, "n", {"0": 0, "1": 1, "2": 2})):
        done = run_here(
            "histogram", table, "--column", column, "--universe", universe, *people, *SURE, "--format", "csv"
        )
        assert done.returncode == 0, done.stderr
        found = {row[column]: int(row["count"]) for row in csv.DictReader(io.StringIO(done.stdout))}
        if people and column == "n":
            expected = {"0": 0, "1": 1, "2": 1}  # of a the first
        assert found == expected
        in_order = ["q", "zz", "r"] if column == "what" else ["0", "1", "2"]
        assert list(found) == in_order


def test_a_table_for_people_and_a_charge_that_is_not_made_twice(table, tmp_path):
    ledger = tmp_path / "budgets.sqlite"
    pay = ("--ledger", ledger, "--account", "a")
    assert run_here("ledger", "grant", *pay, "--epsilon", 1).returncode == 0
    first, second = (
        run_here("count", table, "--column", "what", "--epsilon", 1, *pay, "--charge-id", "x") for _ in range(2)
    )
    assert first.stdout == second.stdout
    assert "95% interval" in first.stdout
    assert "charged to 'a'" in first.stderr
    assert "replayed, not charged" in second.stderr
    assert run_here("count", table, "--column", "what", "--epsilon", 1, *pay).returncode == 3


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("count", "--column", "what"), 2, "no budget given"),
        (("distinct", "--epsilon", 1), 4, "column"),
        (("count", "--column", "nothing", "--epsilon", 1), 4, "nothing"),
        (("count", "--column", "what", "--user", "who", "--epsilon", 1), 2, "one of them"),
        (("distinct", "--column", "what", "--max-items", 2, "--epsilon", 1), 2, "--max-items"),
        (("histogram", "--column", "what", "--epsilon", 1), 2, "--universe"),
        (("histogram", "--column", "what", "--universe", 3, "--user", "who", "--epsilon", 1), 2, "--max-items"),
        (("quantiles", "--column", "n", "--epsilon", 1), 2, "--range"),
        (("quantiles", "--column", "n", "--range", 3, 1, "--epsilon", 1), 2, "LOW < HIGH"),
        (("quantiles", "--range", 0, 1, "--user", "who", "--epsilon", 1), 2, "--column"),
        (("quantiles", "--column", "no", "--range", 0, 1, "--epsilon", 1), 4, "no column"),
        (("quantiles", "--column", "n", "--range", 0, 1, "--quantile", 1.5, "--epsilon", 1), 2, "less than 1"),
        (("quantiles", "--column", "n", "--range", 0, 1, "--bad-rows", "error", "--epsilon", 1), 4, "not a number"),
        (("top", "--column", "what", "--rho", 1), 2, "--delta > 0"),
        (("top", "--column", "what", "--user", "who", "--rho", 1), 2, "--delta > 0"),
    ],
)
def test_what_is_refused(table, arguments, code, told):
    command, *rest = arguments
    done = run_here(command, table, *rest)
    assert done.returncode == code
    assert told in done.stderr
    assert not done.stdout


def test_explanations_say_what_was_done_here(table, tmp_path):
    path = tmp_path / "release.json"
    for arguments, told in (
        (("count", "--user", "who"), "noise was added to one number"),
        (("distinct", "--column", "what", "--user", "who"), "credited to people"),
        (("quantiles", "--column", "n", "--range", 0, 5), "Values outside the range"),
        (("histogram", "--column", "n", "--universe", 3), "Every item of a public list is shown"),
    ):
        command, *rest = arguments
        path.write_text(run_here(command, table, *rest, *SURE, "--format", "json").stdout)
        said = " ".join(run_here("explain", path).stdout.split())
        assert told in said
        assert "too rare" not in said


@pytest.mark.parametrize("odd", [{"who": 7, "what": "p", "n": 2}, {"who": "7", "what": 5, "n": 2}])
@pytest.mark.parametrize("first", [True, False])
def test_one_row_of_another_kind_stops_no_answer_about_people(tmp_path, odd, first):
    rows = [{"who": f"u{n}", "what": "p" if n % 3 else "q", "n": 2} for n in range(300)]
    path = tmp_path / "rows.jsonl"
    people = ("--user", "who")
    for given in (rows, [odd, *rows] if first else [*rows, odd]):
        path.write_text("".join(json.dumps(row) + "\n" for row in given))
        credited = value("distinct", path, "--column", "what", *people, "--max-items", 1)
        assert credited["value"] in (2, 3)
        (tmp_path / "list").write_text("p\nq\n")
        listed = ("--universe", tmp_path / "list", "--max-items", 2)
        found = value("histogram", path, "--column", "what", *people, *listed)
        assert {item["item"]: item["count"] // 100 for item in found["items"]} == {"p": 2, "q": 1}
        median = value("quantiles", path, "--column", "n", *people, "--range", 0, 4, "--bins", 4, "--quantile", 0.5)
        assert median["quantiles"][0]["value"] == 2
