"""Queries whose rows are the events: any result, and a guarantee that says so."""

import json
from pathlib import Path

import jsonschema
import pytest
from tests.commands import run_here
from tests.rows import open_stream

import discreet as dc
from discreet.engines.sql import ASSUMED, WholeQuery

SCHEMA = Path(__file__).parents[3] / "src/discreet/cli/schema/top.schema.json"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(
        "ip,url\n" + "".join(f"u{n % 40},/p{n % 3}\n" for n in range(120)) + "broken\n"
    )
    (tmp_path / "people.csv").write_text(
        "ip,country\n" + "".join(f"u{n},{'de' if n % 4 else 'fr'}\n" for n in range(40))
    )
    (tmp_path / "events.jsonl").write_text(
        "".join(json.dumps({"user": {"id": f"u{n}"}, "n": n * 1.5, "ok": n % 2 == 0}) + "\n" for n in range(10))
    )
    return tmp_path


def result(sql, *columns, given=(), **how):
    user = columns[1] if columns[1:] else None
    stream = open_stream(
        given, column=columns[0], user_column=user, query=WholeQuery(sql), bad_rows="skip", nulls="error", **how
    )
    return sorted(tuple(row.values()) for batch in stream for row in batch.to_pylist())


def test_any_result(files):
    joined = result("select country, url from 'visits.csv' join 'people.csv' using (ip)", "country")
    assert joined == [("de",)] * 90 + [("fr",)] * 30
    assert result("select url, count(*) as n from files group by url", "n", given=["visits.csv"]) == [(40,)] * 3
    assert len(result("select distinct ip, url from files", "url", "ip", given=["visits.csv"])) == 120
    assert len(result("select * from 'visits.csv' order by ip limit 7", "url")) == 7
    last = "with c as (select ip, row_number() over (partition by ip order by url) as r from 'visits.csv') "
    assert len(result(last + "select a.ip from c a join c b using (ip, r) where r = 1", "ip")) == 40
    assert len(result("select ip from 'visits.csv' union all select ip from 'people.csv'", "ip")) == 160
    found = result("""select "user.id" as who from 'events.jsonl' where ok and cast(n as double) > 2""", "who")
    assert found == [("u2",), ("u4",), ("u6",), ("u8",)]
    assert result("select ip from 'visits.csv' where ip = 'nobody'", "ip") == []


@pytest.mark.parametrize(
    "sql",
    [
        *("select a from read_csv('x')", "select content from read_text('/etc/passwd')", "select * from glob('*')"),
        *("select getenv('HOME') as h from 'visits.csv'", "select current_setting('threads') as t from 'visits.csv'"),
        *("with recursive c as (select 1 union all select 1 from c) select * from c", "select 1", "values (1)"),
        *("copy (select 1) to 'x'", "select 1; select 2", "summarize 'visits.csv'", "select ip from main.files", ""),
        *("select error('x') as e from 'visits.csv'", "select (select x from query('select 1')) from 'visits.csv'"),
    ],
)  # fmt: skip
def test_what_stays_refused(sql):
    with pytest.raises(dc.ParameterError):
        WholeQuery(sql)


def test_errors_quote_no_row(files):
    (files / "paths.csv").write_text('a,b\n1,"$./p1[["\n')
    for sql, kind in (
        ("select json_extract(a, b) as m from 'paths.csv'", dc.DataError),  # a binder's error, while it computes
        ("select max(cast(url as integer)) as m from 'visits.csv'", dc.DataError),
        ("select max(nope) as m from 'visits.csv'", dc.ParameterError),
        ("select sum(url) as m from 'visits.csv'", dc.ParameterError),
    ):
        with pytest.raises(kind, match="cannot be computed") as caught:
            result(sql, "m")
        assert "/p" not in str(caught.value)
        assert caught.value.__context__ is None
    with pytest.raises(dc.DataError, match="no column 'x'"):
        result("select ip from 'visits.csv' limit 1", "x")
    with pytest.raises(dc.ParameterError, match="name the columns"):
        result("select * from 'events.jsonl' limit 1", "x")
    with pytest.raises(dc.ParameterError, match="FROM files"):
        result("select ip from 'visits.csv' limit 1", "ip", given=["visits.csv"])


def test_the_guarantee_says_so(files):
    budget = ["--column", "url", "--epsilon", "5", "--delta", "1e-3", "--format", "json"]
    sql = ["--sql", "select distinct ip, url from 'visits.csv'"]
    refused = run_here("top", *sql, "--user", "ip", *budget)
    assert refused.returncode == 2
    assert "--rows-of-the-result-are-the-events" in refused.stderr
    for unit in (["--user", "ip"], ["--unit", "row"]):
        done = run_here("top", *sql, "--rows-of-the-result-are-the-events", *unit, *budget)
        assert done.returncode == 0, done.stderr
        assert ASSUMED in json.loads(done.stdout)["guarantee"]["assumptions"]
        assert json.loads(done.stdout)["parameters"]["sql"] == sql[1]
        plain = run_here("top", "visits.csv", "--where", "ip <> 'x'", *unit, *budget)
        jsonschema.validate(json.loads(plain.stdout), json.loads(SCHEMA.read_text()))
        assert json.loads(plain.stdout)["parameters"]["where"] == "ip <> 'x'"
        assert ASSUMED not in json.loads(plain.stdout)["guarantee"]["assumptions"]
    done = run_here("top", "visits.csv", "--rows-of-the-result-are-the-events", *budget)
    assert done.returncode == 2
    assert "needs --sql" in done.stderr
    done = run_here("top", *sql, "--rows-of-the-result-are-the-events", *budget, "--output", "visits.csv")
    assert done.returncode == 2


def read(sql, *columns, given=(), **how):
    stream = open_stream(given, column=columns[0], query=WholeQuery(sql), **how)
    return sorted(row["item"] for batch in stream for row in batch.to_pylist())


def test_rows_that_cannot_be_read_are_errors_or_left_out(files):
    """As was said: a query has the rows of its files."""
    query = "select url from 'visits.csv'"
    assert len(read(query, "url", bad_rows="skip")) == 120
    with pytest.raises(dc.DataError, match=r"visits\.csv has a row with another number of cells .*\(line 122\)"):
        read(query, "url", bad_rows="error")


def test_an_input_of_many_blocks_is_taken_whole(files, monkeypatch):
    monkeypatch.setattr("discreet.events.inputs.BLOCK_BYTES", 512)
    assert len(read("select ip from 'people.csv'", "ip")) == 40
    counted = read("select country || count(*)::text as n from 'people.csv' group by country", "n")
    assert counted == ["de30", "fr10"]


def test_inputs_without_rows_have_their_columns(files):
    (files / "none.csv").write_text("ip,url\n")
    assert read("select ip from 'none.csv'", "ip") == []
    assert (
        read("select coalesce(url, 'nowhere') as u from 'people.csv' left join 'none.csv' using (ip)", "u")
        == ["nowhere"] * 40
    )


@pytest.mark.parametrize("given", [[], ["visits.csv"]])
def test_files_are_given_where_the_query_reads_them(files, given):
    """Neither missing nor ignored."""
    reads, not_reads = WholeQuery("select ip from files"), WholeQuery("select ip from 'people.csv'")
    if given:
        assert reads.reading(given).files == ["visits.csv"]
        with pytest.raises(dc.ParameterError, match="files can only be given for a query that reads FROM files"):
            not_reads.reading(given)
    else:
        assert not_reads.reading(given).files == ["people.csv"]
        with pytest.raises(dc.ParameterError, match="files can only be given for a query that reads FROM files"):
            reads.reading(given)


def test_too_little_memory_for_a_query_is_said_as_such(files):
    def starved():
        raise MemoryError

    with pytest.raises(dc.DiscreetError, match="not enough memory for the query") as refused:
        WholeQuery._run(starved)
    assert refused.value.__context__ is None
