"""What is said where a server of PostgreSQL says no, without a server: who may ask again, and no password."""

import math
from unittest import mock

import pytest

import discreet as dc

psycopg = pytest.importorskip("psycopg")
errors = psycopg.errors

URL = "postgresql://job:secret@db.example:5433/budgets"
PLACE = "postgresql://db.example:5433/budgets"


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return dc.Ledger(URL, timeout=2.5)


@pytest.mark.parametrize(
    ("failure", "words", "later"),
    [
        (errors.LockNotAvailable("canceling"), "was locked by another process for more than 2.5 s", True),
        (errors.IdleInTransactionSessionTimeout("idle"), "was locked by another process for more than 2.5 s", True),
        (errors.DiskFull("no space left on device"), "cannot be written now: no space left on device", True),
        (errors.OutOfMemory("out of memory"), "cannot be written now: out of memory", True),
        (errors.TooManyConnections("too many clients"), "cannot be written now: too many clients", True),
        (psycopg.OperationalError("connection refused\nIs it running?"), "cannot be reached: connection refused", True),
        (psycopg.OperationalError(""), "cannot be reached: OperationalError", True),
        (
            errors.InsufficientPrivilege("permission denied"),
            "refuses role 'job': permission denied. Ask its owner",
            False,
        ),
        (errors.ReadOnlySqlTransaction("read only"), "is a standby, which cannot be charged. Give the primary", False),
        (errors.UniqueViolation("twice"), "refuses to be changed: twice", False),
        (errors.RaiseException("the ledger is append-only"), "refuses to be changed: the ledger is append-only", False),
        (errors.CheckViolation("kind"), "refuses to be changed: kind", False),
        (errors.UndefinedTable("no such table"), "cannot be read or written: no such table", False),
        (psycopg.InterfaceError("closed"), "cannot be read or written: closed", False),
    ],
)
def test_what_a_server_refuses_is_said_and_whether_to_try_again(ledger, monkeypatch, failure, words, later):
    monkeypatch.setattr(psycopg, "connect", mock.Mock(side_effect=failure))
    for operation in (
        lambda: ledger.grant("a", dc.Budget(1.0)),
        lambda: ledger.account("a"),
        ledger.verify,
        lambda: ledger.create(may_read=["auditor"]),
    ):
        with pytest.raises(dc.LedgerError) as caught:
            operation()
        assert words in str(caught.value)
        assert PLACE in str(caught.value)
        assert "secret" not in str(caught.value)
        assert isinstance(caught.value, dc.TryAgainError) == later


@pytest.mark.parametrize(("timeout", "connect", "unanswered"), [(60.0, 60, 60_000), (0.1, 2, 100), (2.5, 3, 2500)])
def test_a_server_that_does_not_answer_is_given_up(tmp_path, monkeypatch, timeout, connect, unanswered):
    """While a connection is made, and later: each as long as an operation waits for others."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    tried = mock.Mock(side_effect=psycopg.OperationalError("timed out"))
    monkeypatch.setattr(psycopg, "connect", tried)
    with pytest.raises(dc.LedgerBusyError):
        dc.Ledger(URL, timeout=timeout).account("a")
    given = tried.call_args.kwargs
    assert (given["connect_timeout"], given["tcp_user_timeout"]) == (connect, unanswered)
    assert given["keepalives_idle"] + given["keepalives_interval"] * given["keepalives_count"] <= 30
    assert (given["client_encoding"], given["autocommit"], given["prepare_threshold"]) == ("UTF8", True, None)
    assert (given["password"], given["dbname"], math.ceil(timeout) <= connect) == ("secret", "budgets", True)


def test_what_the_address_says_of_a_connection_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    tried = mock.Mock(side_effect=psycopg.OperationalError("timed out"))
    monkeypatch.setattr(psycopg, "connect", tried)
    with pytest.raises(dc.LedgerBusyError):
        dc.Ledger(f"{URL}?connect_timeout=7&application_name=nightly&sslmode=verify-full").account("a")
    given = tried.call_args.kwargs
    assert (given["connect_timeout"], given["application_name"], given["sslmode"]) == ("7", "nightly", "verify-full")
