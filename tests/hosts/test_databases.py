"""Tables of PostgreSQL as files: the same releases, the same check of queries, types of columns, nothing written."""

import threading

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests import places
from tests.commands import run_here

import discreet as dc
from discreet.errors import DataError, ParameterError, TryAgainError
from discreet.noise import seeded_source

pytestmark = pytest.mark.hosts
BUDGET = dc.Budget(1.0, 1e-6)


@pytest.fixture(scope="module")
def visits(postgres, tmp_path_factory):
    """One table in a database and in a file."""
    url, draw = postgres.database(), np.random.default_rng(3)
    rows = [
        (
            f"/p/{draw.integers(30)}",
            f"u{draw.integers(300)}",
            int(draw.choice([200, 404])),
            float(draw.integers(90)) / 8,
        )
        for _ in range(5000)
    ]
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA app")
        connection.execute(
            "CREATE TABLE app.visits (page text, who varchar(20), status int, amount numeric(9, 3), seen timestamptz)"
        )
        with connection.cursor().copy("COPY app.visits FROM STDIN") as copy:
            for row in rows:
                copy.write_row((*row, "2026-11-15 12:00+00"))
        connection.execute("CREATE VIEW app.seen AS SELECT page FROM app.visits")
        connection.execute("CREATE TABLE odd (page text, at timestamp, day date, n numeric, id uuid, tags text[])")
        connection.execute(
            "INSERT INTO odd SELECT '/a', '2026-11-15', '2026-11-15', 1.5, gen_random_uuid(), '{a,b}' "
            "FROM generate_series(1, 300)"
        )
        connection.execute("INSERT INTO odd VALUES ('/a', 'infinity', '-infinity', 'NaN', NULL, NULL)")
        connection.execute("INSERT INTO odd VALUES ('/a', '294276-01-01', '4700-01-01 BC', 1e400::numeric, NULL, '{}')")
    file = tmp_path_factory.mktemp("visits") / "visits.parquet"
    columns = list(zip(*rows, strict=True))
    table = pa.table({"page": columns[0], "who": columns[1], "status": pa.array(columns[2], pa.int32())})
    pa.parquet.write_table(table.append_column("amount", pa.array([str(x) for x in columns[3]])), file)
    return url, file


@pytest.fixture(autouse=True)
def one_seed(monkeypatch):
    """Noise is drawn in the order of hashes."""
    from types import SimpleNamespace

    from discreet.summaries import counters

    monkeypatch.setattr(counters, "os", SimpleNamespace(urandom=bytes))


QUERIES = {
    "all": ("select * from {}", {"column": "page"}),
    "where": ("select page, who from {} where status = 404", {"column": "page", "user": "who"}),
    "computed": ("select upper(page) as p, who from {} where amount > 3 and 7 / (status - 200) >= 0", {"column": "p"}),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_release_is_that_of_the_file(visits, name):
    url, file = visits
    sql, words = QUERIES[name]
    found = []
    for data in (dc.read(sql=sql.format(f"'{file}'")), dc.read(url, sql=sql.format("app.visits"))):
        release = dc.top_k(data, 10, BUDGET, source=seeded_source(5), **words)
        found.append((release.items, list(release.counts)))
    assert found[0] == found[1]
    assert found[0][0]


@pytest.mark.parametrize("name", sorted(set(places.QUESTIONS) - {"top: pairs of people"}))
def test_every_question_is_asked_of_a_table(postgres, visits, name):
    url = visits[0]
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS asked (who text, page text, day text, amount int)")
        if connection.execute("SELECT count(*) FROM asked").fetchone() == (0,):
            with connection.cursor().copy("COPY asked FROM STDIN") as copy:
                for row in places.table().to_pylist():
                    copy.write_row(tuple(row.values()))
    data = dc.read(url, sql="select * from asked where amount < 8")
    assert places.ask(places.QUESTIONS[name], "`--sql`", data) is not None
    assert places.ask(places.QUESTIONS[name], "files", dc.read(f"{url}#asked")) is not None


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select page, count(*) from app.visits group by page", "GROUP BY"),
        ("select a.page from app.visits a join odd b on a.page = b.page", "join"),
        ("select distinct page from app.visits", "DISTINCT"),
        ("select pg_sleep(1) as page from app.visits", "pg_sleep"),
        ("select page from app.seen", "is a view"),
        ("select page from app.none", "no such table"),
        ("select page from db.app.visits", "catalog"),
        ("select nothing as page from app.visits", "no column 'nothing'"),
        ("delete from app.visits", "must be a SELECT"),
    ],
)
def test_what_is_not_a_row_of_the_table_is_refused(visits, sql, said):
    with pytest.raises((ParameterError, DataError), match=said):
        dc.count(dc.read(visits[0], sql=sql), BUDGET, by="page", groups=["/a"])


def test_no_row_decides_a_type_or_an_error(visits):
    """Infinity, NaN, numbers without bound: nulls and text, whatever the row is."""
    url = visits[0]
    for column in ("at", "day", "n", "id", "tags"):
        words = {"column": column} if column != "at" else {"column": "page", "every": "1d", "time": "at"}
        release = dc.top_k(dc.read(f"{url}#odd"), 3, BUDGET, nulls="skip", **words)
        assert len(release) == (0 if column == "id" else 1)
    total = dc.sum(dc.read(f"{url}#odd"), dc.Budget(5.0), column="n", range=(0, 2), nulls="skip")
    assert total.value == pytest.approx(450, abs=30)


def test_nothing_is_written_and_no_password_is_shown(visits):
    url, _ = visits
    from discreet.events.databases import DatabaseTable

    table = DatabaseTable(f"{url}#odd")
    with pytest.raises(table._errors, match="read-only"):
        table._ask("INSERT INTO odd (page) VALUES ('/b')")
    table.close()
    for wrong in (
        "postgresql://me:secret@127.0.0.1:1/shop#visits",
        "postgresql://me:secret@127.0.0.1:1/shop?password=secret",
    ):
        with pytest.raises((TryAgainError, ParameterError)) as refused:
            dc.count(dc.read(wrong), BUDGET)
        assert "secret" not in str(refused.value)
    done = run_here("count", url, "--sql", "select page from app.visits", "--epsilon", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert url not in done.stdout


def test_a_server_that_stops_costs_nothing(visits, tmp_path):
    url, _ = visits
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("visits", dc.Budget(4.0, 1e-5))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS many AS SELECT repeat('x', 500) || n % 9 AS page "
            "FROM generate_series(1, 200000) n"
        )

        def stop():
            mine = "query LIKE '%COPY%many%' AND pid <> pg_backend_pid()"
            mine = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}"
            while not connection.execute(mine).fetchall():
                pass

        thread = threading.Thread(target=stop)
        thread.start()
        with pytest.raises(TryAgainError, match=r"cannot be read to its end|connection broke"):
            dc.top_k(dc.read(f"{url}#many"), 5, BUDGET, column="page", ledger=ledger.account("visits"))
        thread.join()
    assert ledger.account("visits").spent().epsilon == 0
