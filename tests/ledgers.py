"""Where the ledgers of tests are: one suite, run on every store."""

import itertools
import sqlite3
from contextlib import closing, contextmanager

import pytest

import discreet as dc


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.hosts)])
def new_ledger(request, tmp_path, monkeypatch):
    """new_ledger(): the place of one more ledger: a file, and in `make hosts` a database."""
    if request.param == "sqlite":
        names = itertools.count()
        return lambda: tmp_path / f"budgets{next(names) or ''}.sqlite"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "seen"))
    return request.getfixturevalue("postgres").database


@pytest.fixture
def ledger_path(new_ledger):
    """The place of a new ledger."""
    return new_ledger()


def used_account(path):
    """Two accounts; six releases, a stream of three steps, a charge that was begun, a bare one."""
    ledger = dc.Ledger(path)
    ledger.grant("searches", dc.Budget(8.0, 1e-7))
    account = ledger.account("searches")
    for day in range(6):
        account.begin(f"day {day}", dc.Budget(0.5, 1e-9))
        account.store(f"day {day}", b"release %d" % day)
    account.begin("stream", dc.Budget(1.0))
    for number, previous in ((1, None), (2, "token 1"), (3, "token 2")):
        account.store_step("stream", number, f"token {number}", b"step %d" % number, previous=previous)
    account.begin("begun", dc.Budget(0.25))
    account.charge(dc.Budget(0.25), charge_id="bare")
    ledger.grant("clicks", dc.Budget(1.0))
    ledger.account("clicks").charge(dc.Budget(0.5), charge_id="a click")
    return account


@contextmanager
def connected(path):
    """The tables of a ledger, for someone who goes around it: every statement is a transaction."""
    if "://" not in str(path):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            yield connection
        return
    import psycopg

    with psycopg.connect(path, autocommit=True) as connection:
        connection.execute("SET search_path = discreet")
        yield Translated(connection)


class Translated:
    """A connection to PostgreSQL that is asked as SQLite is."""

    def __init__(self, connection):
        self._connection = connection

    def execute(self, statement, values=()):
        statement = statement.replace("x'00'", r"'\x00'::bytea").replace("?", "%s")
        return self._connection.execute(statement, values or None)


def tamper(path, *statements):
    """As someone would who drops the triggers first and puts them back."""
    with connected(path) as connection:
        if isinstance(connection, Translated):
            connection.execute("SET session_replication_role = replica")
            triggers = []
        else:
            triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid")
            triggers = triggers.fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            assert connection.execute(statement).rowcount != 0
        for _, sql in triggers:
            connection.execute(sql)


def stored(path, query):
    """One row."""
    with connected(path) as connection:
        return connection.execute(query).fetchone()
