"""`discreet top` of several columns and of groups, from every format of files."""

import csv
import datetime
import io
import json
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from discreet import cli

BUDGET = ("--epsilon", 1, "--delta", 1e-9, "-q")
ROW = ("--unit", "row")
SCHEMA = json.loads((Path(cli.__file__).parent / "schema" / "top.schema.json").read_text())
DAYS = [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]
TABLE = pa.table(
    {
        "country": ["de", "fr"] * 400,
        "url": ["/a", "/b"] * 400,
        "day": DAYS * 400,
        "status": [200, 404] * 400,
        "who": [f"person {i}" for i in range(800)],
    }
)
FORMATS = ("logs.csv", "logs.jsonl", "logs.parquet", "logs.arrow")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The directory of the same rows in every format."""
    directory = tmp_path_factory.mktemp("logs")
    pa.csv.write_csv(TABLE, directory / "logs.csv")
    pq.write_table(TABLE, directory / "logs.parquet")
    pa.feather.write_feather(TABLE, directory / "logs.arrow")
    rows = [{**row, "day": str(row["day"])} for row in TABLE.to_pylist()]
    (directory / "logs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(TABLE.slice(0, 0), directory / "empty.parquet")
    return directory


def release_of(done):
    assert done.returncode == 0, done.stderr
    release = json.loads(done.stdout)
    jsonschema.validate(release, SCHEMA)
    return release


@pytest.mark.parametrize("file", FORMATS)
@pytest.mark.parametrize("whose", [ROW, ("--user", "who")], ids=["rows", "people"])
def test_several_columns_are_one_item(discreet, logs, file, whose):
    columns = ("--column", "country", "--column", "status")
    release = release_of(discreet("top", logs / file, *columns, *whose, *BUDGET, "--format", "json"))
    assert release["columns"]["item"] == ["country", "status"]
    number = str if file == "logs.csv" else int
    assert {(row["country"], row["status"]) for row in release["items"]} == {("de", number(200)), ("fr", number(404))}


@pytest.mark.parametrize("file", ["logs.parquet", "logs.arrow"])
@pytest.mark.parametrize("whose", [ROW, ("--user", "who")], ids=["rows", "people"])
def test_a_date_is_published_as_one(discreet, logs, tmp_path, file, whose):
    out = tmp_path / "out.parquet"
    assert discreet("top", logs / file, "--column", "day", *whose, *BUDGET, "--output", out).returncode == 0
    table = pq.read_table(out)
    assert table.schema.field("day").type == pa.date32()
    assert sorted(table["day"].to_pylist()) == DAYS


def test_a_file_without_rows_has_the_types_of_its_columns(discreet, logs, tmp_path):
    out = tmp_path / "out.parquet"
    for columns in (("--column", "day"), ("--column", "day", "--column", "url")):
        assert discreet("top", logs / "empty.parquet", *columns, *ROW, *BUDGET, "--output", out).returncode == 0
        assert pq.read_table(out).schema.types[0] == pa.date32()


def test_tables_and_csv_have_a_column_for_each(discreet, logs):
    arguments = ("top", logs / "logs.csv", "--column", "country", "--column", "url", *ROW, *BUDGET)
    assert discreet(*arguments).stdout.split()[:3] == ["country", "url", "estimate"]
    rows = list(csv.DictReader(io.StringIO(discreet(*arguments, "--format", "csv").stdout)))
    assert {(row["country"], row["url"]) for row in rows} == {("de", "/a"), ("fr", "/b")}


def test_rows_that_cannot_be_read_are_left_out_or_refused(discreet, tmp_path):
    file = tmp_path / "bad.csv"
    file.write_bytes(b"a,b\n" + b"x,y\n" * 500 + b"x,\xff\n" + b"x," + b"y" * 5000 + b"\n")
    columns = ("--column", "a", "--column", "b")
    release = release_of(discreet("top", file, *columns, *ROW, *BUDGET, "--format", "json"))
    assert [(row["a"], row["b"]) for row in release["items"]] == [("x", "y")]
    refused = discreet("top", file, *columns, *ROW, *BUDGET, "--bad-rows", "error")
    assert refused.returncode != 0
    assert "UTF-8" in refused.stderr


@pytest.mark.parametrize("command", ["count", "distinct", "histogram"])
def test_a_second_column_is_refused_where_one_is_read(discreet, logs, command):
    more = ("--universe", "5") if command == "histogram" else ()
    refused = discreet(command, logs / "logs.csv", "--column", "url", "--column", "day", *more, *BUDGET)
    assert refused.returncode != 0
    assert "--column was given more than once" in refused.stderr


def test_watch_refuses_a_second_column_too(discreet, logs, tmp_path):
    state = ("--state", tmp_path / "state", "--tick", "1h", "--horizon", 4)
    refused = discreet("watch", logs / "logs.csv", "--column", "url", "--column", "day", *state, *BUDGET)
    assert refused.returncode != 0
    assert "--column was given more than once" in refused.stderr


def test_the_same_column_twice_is_refused(discreet, logs):
    refused = discreet("top", logs / "logs.csv", "--column", "url", "--column", "url", *ROW, *BUDGET)
    assert refused.returncode != 0
    assert "different columns" in refused.stderr


# ---- groups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FORMATS)
@pytest.mark.parametrize("whose", [ROW, ("--user", "who")], ids=["rows", "people"])
def test_the_top_of_every_group(discreet, logs, file, whose):
    arguments = ("top", logs / file, "--column", "url", "--by", "country", "-k", 1, *whose, *BUDGET)
    release = release_of(discreet(*arguments, "--format", "json"))
    assert release["by"] == release["columns"]["by"] == ["country"]
    assert [(row["country"], row["item"]) for row in release["items"]] == [("de", "/a"), ("fr", "/b")]


@pytest.mark.parametrize("file", FORMATS)
def test_days_are_groups_and_a_public_list_says_which(discreet, logs, tmp_path, file):
    listed = tmp_path / "days.txt"
    listed.write_text("2026-01-02\n2026-01-03\n")
    arguments = ("top", logs / file, "--column", "url", "--every", "1d", "--time", "day", *ROW, *BUDGET)
    release = release_of(discreet(*arguments, "--format", "json"))
    assert [(row["day"], row["item"]) for row in release["items"]] == [("2026-01-01", "/a"), ("2026-01-02", "/b")]
    assert release["parameters"]["every"] == "1d"
    assert release["item_columns"][0] == {"name": "day", "type": "date32[day]"}
    release = release_of(discreet(*arguments, "--groups", listed, "--format", "json"))
    assert release["groups"] == [["2026-01-02"], ["2026-01-03"]]
    assert [(row["day"], row["item"]) for row in release["items"]] == [("2026-01-02", "/b")]
    shown = discreet(*arguments, "--groups", listed).stdout
    assert "2026-01-03   (no item passed)" in shown


@pytest.mark.parametrize("file", FORMATS)
def test_groups_of_several_columns_and_of_numbers_are_listed_as_csv(discreet, logs, tmp_path, file):
    listed = tmp_path / "groups.csv"
    listed.write_text('"de",200\n"fr",200\n')
    columns = ("--column", "url", "--by", "country", "--by", "status")
    done = discreet("top", logs / file, *columns, "--groups", listed, *ROW, *BUDGET, "--format", "json")
    release = release_of(done)
    number = int if file in ("logs.parquet", "logs.arrow") else str
    assert [(row["country"], row["status"]) for row in release["items"]] == [("de", number(200))]
    assert release["groups"] == [["de", number(200)], ["fr", number(200)]]


def test_days_of_the_log_of_a_web_server(discreet, tmp_path):
    log = tmp_path / "access.log"
    line = '10.0.0.{} - - [{:02d}/Oct/2025:23:30:00 +0000] "GET {} HTTP/1.1" 200 5 "-" "agent"\n'
    log.write_text("".join(line.format(i % 250, 1 + i % 2, ("/a", "/b")[i % 2]) for i in range(1000)))
    arguments = ("--input-format", "combined", "--column", "path", "--every", "1d", "--time", "time")
    done = discreet("top", log, *arguments, "--zone", "Europe/Berlin", *ROW, *BUDGET, "--format", "csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["time"], row["path"]) for row in rows] == [("2025-10-02", "/a"), ("2025-10-03", "/b")]


def test_times_that_cannot_be_read_are_bad_rows_with_their_lines(discreet, tmp_path):
    file = tmp_path / "times.csv"
    file.write_text("ts,url\n" + "2026-01-01,/a\n" * 500 + "never,/a\n")
    arguments = ("top", file, "--column", "url", "--every", "1d", "--time", "ts", *ROW, *BUDGET)
    assert discreet(*arguments).returncode == 0
    refused = discreet(*arguments, "--bad-rows", "error")
    assert refused.returncode != 0
    assert "line 502" in refused.stderr
    numbers = tmp_path / "times.jsonl"
    numbers.write_text('{"ts": 1767225600.5, "url": "/a"}\n' * 500)
    done = discreet("top", numbers, *arguments[2:], "--format", "csv")
    assert "2026-01-01,/a," in done.stdout


def test_a_picture_of_groups(discreet, logs, tmp_path):
    picture = tmp_path / "top.png"
    arguments = ("top", logs / "logs.csv", "--column", "url", "--by", "country", *ROW, *BUDGET)
    assert discreet(*arguments, "--plot", picture).returncode == 0
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--groups", "none.txt", "--by", "country"), "is not a file"),
        (("--groups", "none.txt"), "--by or --every"),
        (("--every", "1d"), "--time"),
        (("--by", "url"), "different columns"),
        (("--by", "nothing"), "no column 'nothing'"),
        (("--by", "country", "--unit", "person"), "lists of items come in one --column"),
    ],
)
def test_groups_that_cannot_be_are_refused(discreet, logs, options, words):
    whose = () if "--unit" in options else ROW
    refused = discreet("top", logs / "logs.csv", "--column", "url", *options, *whose, *BUDGET)
    assert refused.returncode != 0
    assert words in refused.stderr
