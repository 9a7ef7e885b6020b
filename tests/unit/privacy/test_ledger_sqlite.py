"""The ledger in SQLite: what is no ledger is left alone, and damaged bytes change nothing."""

import os
import random
import sqlite3
import stat
from contextlib import closing
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

import discreet as dc
from discreet.privacy.ledger import sqlite


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budgets.sqlite"


@pytest.fixture
def ledger(path):
    ledger = dc.Ledger(path)
    ledger.grant("searches", dc.Budget(4.0, 1e-7))
    return ledger


@pytest.fixture
def account(ledger):
    return ledger.account("searches")


def test_a_foreign_database_is_refused_and_untouched(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(dc.LedgerError, match="not a ledger"):
        dc.Ledger(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        b"x",
        b"x" * 15,
        b"x" * 100,
        b"x" * 511,  # shorter than a page: SQLite would take it for empty, and write over it
        b"SQLite format 3\x00" + bytes(84),
        b"x" * 512,
        b"item,count\ncats,3\n" * 1000,
        b"SQLite format 3\x00" + b"\xff" * 5000,
    ],
    ids=len,
)
def test_garbage_is_refused(path, content):
    ledger = dc.Ledger(path)
    path.write_bytes(content)
    for operation in (lambda: dc.Ledger(path), lambda: ledger.grant("a", dc.Budget(1.0)), ledger.accounts):
        with pytest.raises(dc.LedgerError, match="is not a ledger"):
            operation()
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_ledger_when_granted(path):
    path.touch()
    ledger = dc.Ledger(path)
    with pytest.raises(dc.LedgerError):
        ledger.account("searches")
    ledger.grant("searches", dc.Budget(1.0))
    assert ledger.account("searches").granted == dc.Budget(1.0)


def test_a_missing_directory_or_a_directory_is_an_error(tmp_path):
    with pytest.raises(dc.LedgerError, match="directory"):
        dc.Ledger(tmp_path / "nowhere" / "budgets.sqlite")
    with pytest.raises(dc.LedgerError):
        dc.Ledger(tmp_path)


def test_a_link_that_leads_to_itself_is_no_ledger(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(dc.LedgerError, match="loop"):
        dc.Ledger(tmp_path / "loop").grant("a", dc.Budget(1.0))
    assert (tmp_path / "loop").is_symlink()


@pytest.mark.parametrize("wrong", [-1, -0.5, float("nan"), float("inf"), True, "5", None])
def test_a_ledger_waits_for_a_number_of_seconds(path, wrong):
    with pytest.raises(dc.ParameterError, match="timeout must be a number of seconds of at least 0, not"):
        dc.Ledger(path, timeout=wrong)
    for right in (0, 2.5, np.int64(5), Fraction(1, 3)):
        dc.Ledger(path, timeout=right).grant("a", dc.Budget(1.0))


def test_odd_file_names_work(tmp_path):
    path = tmp_path / "50% of a?b#c é.sqlite"
    dc.Ledger(path).grant("a", dc.Budget(1.0))
    assert path.exists()
    assert dc.Ledger(path).account("a").granted == dc.Budget(1.0)


def test_a_relative_path_stays_the_same_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = dc.Ledger("budgets.sqlite")
    ledger.grant("a", dc.Budget(1.0))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.account("a").charge(dc.Budget(1.0))
    assert [event.kind for event in dc.Ledger(tmp_path / "budgets.sqlite").history()] == ["grant", "charge"]


def test_the_journal_is_removed_by_every_commit(account, path):
    account.charge(dc.Budget(1.0))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_locked_ledger_waits_and_then_says_so(ledger, path):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(dc.LedgerError, match="locked"):
            dc.Ledger(path, timeout=0.1).account("searches").charge(dc.Budget(1.0))
    finally:
        connection.execute("ROLLBACK")
        connection.close()
    ledger.account("searches").charge(dc.Budget(1.0))


@pytest.mark.parametrize(
    ("failure", "words", "later"),
    [
        (sqlite3.OperationalError("database is locked"), "was locked by another process for more than 60 s", True),
        (sqlite3.OperationalError("database or disk is full"), "cannot be written: its disk is full", True),
        (sqlite3.OperationalError("disk I/O error"), "cannot be read or written: disk I/O error", False),
        (sqlite3.DatabaseError("database disk image is malformed"), "is not a ledger, or it is damaged", False),
        (OSError(5, "Input/output error"), "cannot be opened: Input/output error", False),
    ],
)
def test_a_commit_that_fails_leaves_nothing_and_says_whether_to_try_again(account, monkeypatch, failure, words, later):
    execute = sqlite._Connection.execute

    def fails(connection, statement, *values):
        if statement == "COMMIT":
            raise failure
        return execute(connection, statement, *values)

    account.begin("before", dc.Budget(1.0))
    with monkeypatch.context() as patch:
        patch.setattr(sqlite._Connection, "execute", fails)
        for operation in (lambda: account.charge(dc.Budget(1.0)), lambda: account.store("before", b"release")):
            with pytest.raises(dc.LedgerError, match=words) as caught:
                operation()
            assert isinstance(caught.value, dc.TryAgainError) == later
    assert (account.spent().epsilon, account.is_stored("before")) == (1.0, False)
    account.charge(dc.Budget(3.0))  # nobody holds a lock


@pytest.mark.parametrize("missing", [True, False])
def test_a_new_ledger_is_its_owners_also_where_no_file_is_made_by_mknod(tmp_path, monkeypatch, missing):
    """Some systems do not have it, others keep it to the superuser."""
    if missing:
        monkeypatch.delattr(os, "mknod")
    else:
        monkeypatch.setattr(os, "mknod", mock.Mock(side_effect=PermissionError))
    before = os.umask(0)
    try:
        dc.Ledger(tmp_path / "new").grant("a", dc.Budget(1.0))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    assert dc.Ledger(tmp_path / "new").verify() == 1


@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TRIGGER no_delete", "CREATE TRIGGER no_delete BEFORE DELETE ON events BEGIN SELECT 1; END"],
        ["DROP INDEX turns", "CREATE INDEX turns ON events (account)"],
        ["CREATE TABLE more (x)"],
        ["CREATE TRIGGER more AFTER INSERT ON events BEGIN SELECT 1; END"],
        ["ALTER TABLE events ADD COLUMN more"],
    ],
)
def test_tables_that_are_others_are_noticed_also_where_they_have_the_names(account, path, statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    for operation in (lambda: dc.Ledger(path), account.spent, lambda: account.charge(dc.Budget(1.0))):
        with pytest.raises(dc.LedgerError, match="its tables or triggers were altered"):
            operation()


def test_a_newer_ledger_is_refused(account, path):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA user_version = 3")
    connection.close()
    with pytest.raises(dc.LedgerError, match="version 3"):
        account.charge(dc.Budget(1.0))


def test_flipped_bytes_never_change_what_was_spent(account, path):
    """A damaged file gives a LedgerError or the same history, never another one (seeded; 400 flips)."""
    for day in range(6):
        account.begin(f"day {day}", dc.Budget(0.5, 1e-9))
        account.store(f"day {day}", b"release %d" % day)
    history = account.history()
    content = path.read_bytes()
    generator = random.Random(7)
    outcomes = set()
    for _ in range(400):
        damaged = bytearray(content)
        damaged[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.write_bytes(damaged)
        try:
            assert dc.Ledger(path).account("searches").history() == history
            outcomes.add("same")
        except dc.LedgerError:
            outcomes.add("refused")
    assert outcomes == {"same", "refused"}
