"""Tables of PostgreSQL, by a stand-in for its driver: what is asked of the server, what is refused, what is let go.

`make hosts` asks a server the same (tests/hosts/test_databases.py).
"""

import sys
from types import ModuleType, SimpleNamespace

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.errors import DataError, DiscreetError, ParameterError, TryAgainError
from discreet.noise import seeded_source

BUDGET = dc.Budget(50.0, 1e-6)
URL = "postgresql://me:secret@h.example/visits"
ROWS = {
    "page": pa.array([f"/{n % 5}" for n in range(900)]),
    "who": pa.array([f"u{n % 90}" for n in range(900)]),
    'a "b"': pa.array(range(900), pa.int32()),
    "seen": pa.array(["2026-11-15", "0001-01-01", "9999-12-31"] * 300).cast(pa.timestamp("us")),
    "price": pa.array(["1.5"] * 900).cast(pa.decimal128(9, 3)),
}
TYPES = {"page": "text", "who": "varchar", 'a "b"': "int4", "seen": "timestamp", "price": "numeric"}


class Server(ModuleType):
    """The driver, and a server of one table, which DuckDB reads; `fails` says at which statement, and how."""

    class Error(Exception):
        sqlstate = None

    def __init__(self):
        super().__init__("adbc_driver_postgresql")
        self.dbapi, self.asked, self.let_go, self.kind = self, [], [], "r"
        self.fails, self.addresses, self.types = {}, [], dict(TYPES)
        self.tables = duckdb.connect()
        self.tables.execute("CREATE SCHEMA app")
        self.tables.register("rows", pa.table(ROWS))
        self.tables.execute("CREATE TABLE visits AS FROM rows; CREATE TABLE app.visits AS FROM rows LIMIT 90")

    def connect(self, address, autocommit):
        assert not autocommit
        self.addresses.append(address)
        self.failed("connect")
        return SimpleNamespace(
            cursor=lambda: Cursor(self),
            rollback=lambda: self.closed("rollback"),
            close=lambda: self.closed("connection"),
        )

    def closed(self, what):
        self.let_go.append(what)
        self.failed(what)

    def failed(self, what):
        for words, error in self.fails.items():
            if words in what:
                raise error


class Cursor:
    def __init__(self, server):
        self.server, self.found = server, None

    def execute(self, sql, parameters):
        self.server.asked.append((sql, parameters))
        self.server.failed(sql)
        if "pg_class" in sql:
            kind, types = self.server.kind, self.server.types
            self.found = [] if kind is None else [(kind, *each) for each in types.items()] or [(kind, None, None)]
        elif sql.startswith("SELECT"):
            self.found = self.server.tables.sql(sql).to_arrow_reader(200)

    def fetchall(self):
        return self.found

    def fetch_record_batch(self):
        broken = self.server.fails.get("batch")
        if broken is None:
            return self.found

        def batches():
            yield self.found.read_next_batch()
            raise broken

        return Reader(self.found, batches())

    def close(self):
        self.server.let_go.append("cursor")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Reader:
    def __init__(self, found, batches):
        self.schema, self.batches = found.schema, batches

    def __iter__(self):
        return self.batches


@pytest.fixture
def server(monkeypatch):
    made = Server()
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", made)
    return made


def top(data, **words):
    return dc.top_k(data, 5, BUDGET, column="page", source=seeded_source(3), **words).to_dict()["items"]


def test_a_table_is_read_in_one_transaction_that_writes_nothing(server, tmp_path):
    pa.parquet.write_table(pa.table(ROWS), tmp_path / "visits.parquet")
    assert top(dc.read(f"{URL}#visits")) == top(dc.read(tmp_path / "visits.parquet"))
    assert {*server.addresses} == {URL}  # the server is told who asks, and nobody else
    asked = [sql for sql, _ in server.asked]
    assert asked[0] == "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    assert [sql for sql in asked if sql.startswith("SELECT") and "FROM \"visits\"" in sql] == [
        'SELECT "page" AS c0 FROM "visits"'  # no other column leaves the server
    ]  # fmt: skip
    assert any("TimeZone = 'UTC'" in sql for sql in asked)
    assert server.let_go.count("rollback") == server.let_go.count("connection") == len(server.addresses)


def test_names_are_names_whatever_is_in_them(server):
    table = dc.read(f"{URL}#app.visits")
    dc.distinct(table, BUDGET, column='a "b"', user="who")
    assert server.asked[-1][0] == 'SELECT "a ""b""" AS c0, "who" AS c1 FROM "app"."visits"'
    assert all(parameters in ((), ('"app"."visits"',)) for _, parameters in server.asked)
    server.kind = None
    with pytest.raises(ParameterError, match="no such table"):
        top(dc.read(f'{URL}#x"; DROP TABLE visits; --'))
    assert server.asked[-1][1] == ('"x""; DROP TABLE visits; --"',)


def test_times_beyond_the_years_of_a_date_are_null_and_odd_types_text(server):
    dc.count(dc.read(f"{URL}#visits"), BUDGET, by="price")
    dc.count(dc.read(f"{URL}#visits"), BUDGET, time="seen", every="1d", where="page = '/1'")
    asked = [sql for sql, _ in server.asked if sql.startswith('SELECT "') or sql.startswith("SELECT CASE")]
    assert asked[0] == 'SELECT "price"::text AS c0 FROM "visits"'
    assert 'CASE WHEN "seen" >= \'0001-01-01\' AND "seen" < \'10000-01-01\' THEN "seen" END AS c' in asked[1]


@pytest.mark.parametrize(
    ("kind", "words"),
    [("v", "is a view"), ("m", "is a materialized view"), ("f", "is a foreign table"), ("S", "is no table")],
)
def test_what_may_make_several_rows_of_one_is_refused(server, kind, words):
    server.kind = kind
    with pytest.raises(ParameterError, match=f"h.example/visits#visits {words}: one row behind it may become") as no:
        top(dc.read(f"{URL}#visits"))
    assert "secret" not in str(no.value)
    assert "connection" in server.let_go


def test_partitioned_tables_are_tables(server):
    server.kind = "p"
    assert len(top(dc.read(f"{URL}#visits"))) == 5


@pytest.mark.parametrize(
    ("url", "words"),
    [(URL, "which table? Add #TABLE, or give a query"), (f"{URL}#none", "no such table, or this user may not see it")],
)
def test_a_table_that_is_not_there_is_refused(server, url, words):
    server.kind = None
    with pytest.raises(ParameterError) as refused:
        top(dc.read(url))
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def failing(kind, state=None):
    error = kind("the row (SECRET) of me:secret")
    if state is not None:
        error.sqlstate = state
    return error


FAILURES = {
    "no server": ("connect", Server.Error, None, TryAgainError, "cannot be opened; check the server, the database"),
    "no transaction": ("SET TRANSACTION", Server.Error, None, TryAgainError, "cannot be opened"),
    "no permission": ('FROM "visits"', Server.Error, "42501", DataError, "permission denied for this user"),
    "a reset": ('FROM "visits"', Server.Error, "57P01", TryAgainError, r"SQLSTATE 57P01\); try again later"),
    "no state": ('FROM "visits"', Server.Error, None, TryAgainError, r"SQLSTATE unknown\)"),
    "in the middle": ("batch", Server.Error, "08006", TryAgainError, r"cannot be read to its end \(SQLSTATE 08006"),
    "a connection": ("batch", OSError, None, TryAgainError, "the connection broke; try again later"),
}


@pytest.mark.parametrize("what", FAILURES)
def test_a_server_that_fails_is_told_in_words_of_our_own_before_anything_is_charged(server, tmp_path, what):
    where, error, state, kind, words = FAILURES[what]
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("visits", BUDGET)
    server.fails = {where: failing(error, state)}
    with pytest.raises(kind, match=words) as failed:
        dc.top_k(dc.read(f"{URL}#visits"), 5, BUDGET, column="page", ledger=ledger.account("visits"))
    assert "secret" not in str(failed.value).lower()
    assert failed.value.__context__ is None
    assert ledger.account("visits").spent().epsilon == 0
    if what != "no server":
        assert server.let_go.count("connection") == len(server.addresses)


def test_a_connection_that_cannot_be_closed_in_order_is_let_go(server):
    server.fails = {"rollback": failing(Server.Error)}
    assert len(top(dc.read(f"{URL}#visits"))) == 5
    assert server.let_go.count("connection") == len(server.addresses)


def test_a_driver_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(DiscreetError, match=r"needs ADBC; install it with pip install 'discreet\[postgres\]'"):
        top(dc.read(f"{URL}#visits"))


@pytest.mark.parametrize("how", [{"format": "csv"}, {"encoding": "latin-1"}, {"delimiter": ";"}])
def test_a_table_has_no_format(server, how):
    with pytest.raises(ParameterError, match="is a table; format, delimiter and encoding work with files only"):
        top(dc.read(f"{URL}#visits", **how))


def test_types_are_known_where_there_is_no_row(server):
    server.tables.execute("DELETE FROM visits")
    found = dc.top_k(dc.read(f"{URL}#visits"), 5, BUDGET, column="seen", source=seeded_source(3))
    assert found.to_arrow().schema.field("seen").type == pa.timestamp("us")
