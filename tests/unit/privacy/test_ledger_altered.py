"""Every fact of a ledger is recorded twice: what was altered is noticed before it decides, in every store."""

import json

import pytest
from tests.ledgers import connected, stored, tamper, used_account

import discreet as dc
from discreet.privacy.ledger import event_log


@pytest.fixture
def path(ledger_path):
    return ledger_path


@pytest.fixture
def account(path):
    return used_account(path)


def charge(account):
    account.charge(dc.Budget(0.125))


def replay(account):
    account.begin("day 2", dc.Budget(0.5, 1e-9))


def go_on(account):
    account.store_step("stream", 4, "token 4", b"step 4", previous="token 3")


NOTICED = {
    "a balance edited": (
        ["UPDATE balances SET body = replace(body, '\"charges\": 9', '\"charges\": 1') WHERE account = 'searches'"],
        [charge],
    ),
    "a balance lost": (["DELETE FROM balances WHERE account = 'searches'"], [charge]),
    "the balance of another account": (
        [
            "UPDATE balances SET (body, digest) = (SELECT body, digest FROM balances WHERE account = 'clicks') "
            "WHERE account = 'searches'"
        ],
        [charge],
    ),
    "the head lost": (["DELETE FROM balances WHERE account = ''"], [charge, replay, go_on]),
    "the head edited": (
        ["UPDATE balances SET body = replace(body, '\"accounts\": 2', '\"accounts\": 1') WHERE account = ''"],
        [charge, replay, go_on],
    ),
    "the last event lost": (["DELETE FROM events WHERE charge_id = 'a click'"], [charge, replay, go_on]),
    "the last charge lost": (["DELETE FROM events WHERE charge_id = 'bare'"], [charge]),
    "the last charge made smaller": (
        ["UPDATE events SET body = replace(body, '0.25', '0.05') WHERE charge_id = 'bare'"],
        [charge],
    ),
    "a charge lost": (["DELETE FROM events WHERE charge_id = 'day 2' AND kind = 'charge'"], [replay]),
    "a charge given to another id": (
        ["UPDATE events SET charge_id = 'other' WHERE charge_id = 'day 2' AND kind = 'charge'"],
        [replay],
    ),
    "a release lost": (["DELETE FROM events WHERE charge_id = 'day 2' AND kind = 'release'"], [replay]),
    "a release altered": (
        ["UPDATE events SET payload = x'00' WHERE charge_id = 'day 2' AND kind = 'release'"],
        [replay],
    ),
    "a mark lost": (["DELETE FROM marks WHERE charge_id = 'day 2'"], [replay]),
    "a mark edited": (
        ["UPDATE marks SET body = replace(body, '\"release\": 7', '\"release\": null') WHERE charge_id = 'day 2'"],
        [replay],
    ),
    "the mark of another charge": (
        [
            "UPDATE marks SET (body, digest) = (SELECT body, digest FROM marks WHERE charge_id = 'begun') "
            "WHERE charge_id = 'day 2'"
        ],
        [replay],
    ),
    "the last step lost": (["DELETE FROM events WHERE charge_id = 'stream' AND number = 3"], [go_on]),
    "a step renumbered": (["UPDATE events SET number = 4 WHERE charge_id = 'stream' AND number = 3"], [go_on]),
    "steps forgotten by their mark": (["DELETE FROM marks WHERE charge_id = 'stream'"], [go_on]),
}


@pytest.mark.parametrize("name", NOTICED)
def test_what_bears_on_a_decision_is_noticed_before_it(account, path, name):
    statements, operations = NOTICED[name]
    tamper(path, *statements)
    for operation in operations:
        with pytest.raises(dc.LedgerError, match="damaged"):
            operation(account)
    with pytest.raises(dc.LedgerError):
        dc.Ledger(path).verify()


@pytest.mark.parametrize("table", ["balances WHERE account = 'searches'", "balances WHERE account = ''"])
def test_an_older_total_put_back_is_noticed(account, path, table):
    body, digest = stored(path, f"SELECT body, digest FROM {table}")
    account.charge(dc.Budget(0.5))
    with connected(path) as connection:
        name, _, where = table.partition(" ")
        connection.execute(f"UPDATE {name} SET body = ?, digest = ? {where}", (body, digest))
    with pytest.raises(dc.LedgerError, match="disagree"):
        account.charge(dc.Budget(0.5))


def test_an_older_mark_put_back_does_not_let_a_release_be_drawn_again(account, path):
    body, digest = stored(path, "SELECT body, digest FROM marks WHERE charge_id = 'begun'")
    account.store("begun", b"published")
    with connected(path) as connection:
        connection.execute("UPDATE marks SET body = ?, digest = ? WHERE charge_id = 'begun'", (body, digest))
    with pytest.raises(dc.LedgerError, match="disagree"):
        account.begin("begun", dc.Budget(0.25))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = replace(body, '0.5', '0.1') WHERE charge_id = 'day 0' AND kind = 'charge'",
        "DELETE FROM events WHERE charge_id = 'day 0'",
        "UPDATE events SET payload = x'00' WHERE charge_id = 'day 0' AND kind = 'release'",
        "UPDATE events SET payload = x'00' WHERE charge_id = 'stream' AND number = 1",
        "DELETE FROM marks WHERE charge_id = 'day 0'",
        "INSERT INTO marks SELECT account, 'new', body, digest FROM marks WHERE charge_id = 'day 0'",
        "DELETE FROM balances WHERE account = 'clicks'",
    ],
)
def test_what_is_left_for_verify_does_not_change_what_was_spent(account, path, statement):
    """An old event or the records of another account: a charge does not read them, and does not need to."""
    spent = account.spent()
    tamper(path, statement)
    assert account.spent() == spent
    with pytest.raises(dc.LedgerError, match="damaged"):
        dc.Ledger(path).verify()


@pytest.mark.parametrize(
    ("statement", "operation", "words"),
    [
        (
            "DELETE FROM balances WHERE account = 'clicks'",
            lambda ledger: ledger.accounts(),
            "balance of an account is mis",
        ),
        ("DELETE FROM balances WHERE account = 'clicks'", lambda ledger: ledger.account("clicks"), "disagree"),
        ("DELETE FROM balances WHERE account = 'clicks'", lambda ledger: ledger.published("a click"), "is missing"),
        (
            "INSERT INTO balances SELECT 'more', body, digest FROM balances WHERE account = 'clicks'",
            lambda ledger: ledger.accounts(),
            "balance of an account is missing",
        ),
        (
            "DELETE FROM events WHERE charge_id = 'stream' AND number = 1",
            lambda ledger: ledger.account("searches").step("stream", 1),
            "step 1 of a charge is missing",
        ),
        (
            "DELETE FROM events WHERE charge_id = 'stream' AND number = 2",
            lambda ledger: ledger.account("searches").store_step("stream", 2, "new", b"x", previous="token 1"),
            "the one before it is missing",
        ),
        (
            "DELETE FROM events WHERE charge_id = 'day 3' AND kind = 'charge'",
            lambda ledger: ledger.account("searches").is_begun("day 3"),
            "disagree",
        ),
        (
            "UPDATE events SET payload = x'00' WHERE charge_id = 'stream' AND number = 1",
            lambda ledger: ledger.account("searches").step("stream", 1),
            "what event .* stored was altered",
        ),
        ("DELETE FROM balances WHERE account = ''", lambda ledger: ledger.accounts(), "its head is missing"),
        ("DELETE FROM events WHERE seq = 1", lambda ledger: ledger.history(), "event 1 is missing"),
        (
            "DELETE FROM events WHERE seq = 1",
            lambda ledger: ledger.account("searches").ledger_identity,
            "event 1 or the one before it is missing",
        ),
    ],
)
def test_what_is_asked_for_is_whole_or_refused(account, path, statement, operation, words):
    """Nothing is left out of an answer without a word: not an account, not a step, not the beginning."""
    tamper(path, statement)
    with pytest.raises(dc.LedgerError, match=rf"the ledger is damaged: .*{words}"):
        operation(dc.Ledger(path))


@pytest.mark.parametrize(
    ("place", "key", "change"),
    [
        (
            "balances WHERE account = 'searches'",
            ("searches",),
            lambda total: total["balance"]["tally"].update(delta="0"),
        ),
        ("balances WHERE account = 'searches'", ("searches",), lambda total: total["balance"].update(charges=8)),
        (
            "balances WHERE account = 'clicks'",
            ("clicks",),
            lambda total: total["balance"]["granted"].update(epsilon=9.0),
        ),
        ("marks WHERE charge_id = 'day 0'", ("searches", "day 0"), lambda total: total.update(release=None)),
        ("marks WHERE charge_id = 'stream'", ("searches", "stream"), lambda total: total.update(number=2)),
        ("balances WHERE account = ''", ("",), lambda total: total.update(accounts=3)),
        ("balances WHERE account = ''", ("",), lambda total: total.update(version=1)),
    ],
)
def test_a_total_that_was_rewritten_with_its_digest_is_noticed_by_verify(account, path, place, key, change):
    """By who knows how digests are made: it is not what the events add up to."""
    total = json.loads(stored(path, f"SELECT body FROM {place}")[0])
    change(total)
    body = json.dumps(total, sort_keys=True)
    name, _, where = place.partition(" ")
    with connected(path) as connection:
        digest = event_log.digest_of(b"", (*key, body))
        connection.execute(f"UPDATE {name} SET body = ?, digest = ? {where}", (body, digest))
    with pytest.raises(dc.LedgerError, match="its running totals are not those of its events"):
        dc.Ledger(path).verify()


def test_events_of_an_unknown_version_are_refused(account, path, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(event_log, "EVENT_VERSION", 5)
        later.setattr(event_log, "_check_version", lambda version: None)
        dc.Ledger(path).grant("clicks", dc.Budget(2.0))
        later.setattr(event_log, "EVENT_VERSION", 1)
        account.charge(dc.Budget(0.125))
    for operation in (charge, replay, go_on):  # although its event is not one of theirs, and not the last one
        with pytest.raises(dc.LedgerError, match="version 5"):
            operation(account)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = '{}' WHERE seq = 2",
        "DELETE FROM events WHERE seq = 2",
        "DELETE FROM events",
        "INSERT INTO events SELECT * FROM events WHERE seq = 2",
        "INSERT OR REPLACE INTO events SELECT * FROM events WHERE seq = 2",
        "TRUNCATE events",
        "INSERT INTO events SELECT 99, version, at, account, kind, 'x', 0, body, digest, payload FROM events"
        " WHERE seq = 2",
    ],
)
def test_events_are_only_added(account, path, statement):
    """With what each store has: SQLite has no TRUNCATE, PostgreSQL no OR REPLACE."""
    before = account.history()
    with connected(path) as connection, pytest.raises(Exception, match=r"append-only|syntax error"):
        connection.execute(statement)
    assert account.history() == before


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE events SET body = replace(body, '3.0', '0.1') WHERE kind = 'charge'",
        "UPDATE events SET account = 'other' WHERE kind = 'charge'",
        "UPDATE events SET payload = x'00' WHERE kind = 'release'",
        "DELETE FROM events WHERE kind = 'charge'",
    ],
)
def test_rows_altered_behind_the_triggers_are_noticed(path, tampering):
    """Whoever drops a trigger, edits a row and puts the trigger back still breaks the chain of digests."""
    ledger = dc.Ledger(path)
    ledger.grant("searches", dc.Budget(4.0, 1e-7))
    account = ledger.account("searches")
    account.begin("day 1", dc.Budget(3.0))
    account.store("day 1", b"release")
    tamper(path, tampering)
    with pytest.raises(dc.LedgerError, match="damaged"):
        account.begin("day 1", dc.Budget(3.0))


ALTERED = {
    "sqlite": ["DROP TRIGGER no_delete", "DROP TRIGGER no_gap", "DROP INDEX turns", "DROP INDEX one_of_a_kind"],
    "postgresql": [
        "DROP TRIGGER append_only ON events",
        "ALTER TABLE events DISABLE TRIGGER right_event",
        "DROP INDEX one_of_a_kind",
        "CREATE OR REPLACE FUNCTION events_append_only() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    ],
}


@pytest.mark.parametrize("number", range(4))
def test_altered_tables_are_noticed(account, path, number):
    with connected(path) as connection:
        connection.execute(ALTERED["postgresql" if "://" in str(path) else "sqlite"][number])
    with pytest.raises(dc.LedgerError, match="altered"):
        account.charge(dc.Budget(1.0))
