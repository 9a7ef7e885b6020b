"""A ledger in PostgreSQL: durable, cut off at bad moments, forgetting, and with roles."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import psycopg
import pytest
from tests.postgres import Server

import discreet as dc
from discreet.privacy.ledger import one_connection

pytestmark = pytest.mark.hosts


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def url(postgres):
    return postgres.database()


@pytest.fixture
def account(url):
    ledger = dc.Ledger(url)
    ledger.grant("searches", dc.Budget(4.0, 1e-7))
    return ledger.account("searches")


def kinds(account):
    return [event.kind for event in account.history()]


# --- durable


def test_a_server_that_does_not_sync_is_refused(account, url):
    server = Server("fsync=off")
    try:
        with pytest.raises(dc.LedgerError, match="fsync=off"):
            dc.Ledger(server.url()).grant("a", dc.Budget(1.0))
    finally:
        server.remove()


@pytest.mark.parametrize(
    ("setting", "used"), [("off", "on"), ("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply")]
)
def test_a_commit_is_on_disk_whatever_the_default_is(account, url, setting, used):
    name = url.partition("@/")[2].partition("?")[0]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = {setting}")
    with account._log.writing() as log:
        assert log._rows.ask("SHOW synchronous_commit").fetchone() == (used,)


def test_what_was_charged_survives_a_crash_of_the_server(account, postgres):
    with one_connection():
        account.charge(dc.Budget(1.0))
        postgres.stop("immediate")
        with pytest.raises(dc.LedgerBusyError, match="cannot be reached"):
            account.charge(dc.Budget(1.0))
        postgres.start()
        account.charge(dc.Budget(1.0))
    assert kinds(account) == ["grant", "charge", "charge"]


def test_a_locked_ledger_waits_and_then_says_so(account, url):
    with psycopg.connect(url) as connection:
        connection.execute("SELECT FROM discreet.balances WHERE account = '' FOR UPDATE")
        with pytest.raises(dc.LedgerBusyError, match="locked"):
            dc.Ledger(url, timeout=0.1).account("searches").charge(dc.Budget(1.0))
    account.charge(dc.Budget(1.0))


def test_a_client_that_stands_still_holds_others_up_for_a_while_only(account, url):
    """It has the lock, and says nothing more: the server ends its transaction."""
    slow, quick = (dc.Ledger(url, timeout=4.0).account("searches") for _ in range(2))

    def stand_still():
        with slow._log.writing() as log:
            log.append("searches", "grant", None, {"budget": dc.Budget(9.0).to_dict()})
            time.sleep(4)

    def raised():
        with pytest.raises(dc.LedgerBusyError, match="before anything was written"):
            stand_still()

    thread = threading.Thread(target=raised)
    thread.start()
    time.sleep(0.5)
    quick.charge(dc.Budget(1.0), "meanwhile")
    thread.join()
    assert [event.charge_id for event in quick.history()] == [None, "meanwhile"]


def test_a_signal_in_the_middle_of_a_statement_is_what_is_raised(account):
    """Not that the transaction cannot be rolled back meanwhile: the server does that."""

    class Heard(BaseException):
        pass

    def hear(number, frame):
        raise Heard

    before = signal.signal(signal.SIGALRM, hear)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Heard), account._log.writing() as log:
            log._rows.ask("SELECT pg_sleep(1.5)")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    account.charge(dc.Budget(1.0))
    assert kinds(account) == ["grant", "charge"]


# --- cut off


class Proxy:
    """Between the ledger and the server. It cuts the next connection that commits: before, after, or for good."""

    def __init__(self, folder, server):
        self.folder, self.moment = folder, None
        self._server = str(server.folder / ".s.PGSQL.5432")
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / ".s.PGSQL.5432"))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            threading.Thread(target=self._send, args=(client, server), daemon=True).start()

    def _send(self, client, server):
        answers = threading.Thread(target=self._pass, args=(server, client), daemon=True)
        answers.start()
        while data := client.recv(65536):
            if b"COMMIT\0" in data and self.moment:
                moment, self.moment = self.moment, None
                if moment == "for good":
                    self.close()
                if moment == "after":
                    client.shutdown(socket.SHUT_RDWR)  # the answer has nowhere to go
                    server.sendall(data)
                    time.sleep(0.2)
                break
            server.sendall(data)
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        answers.join()
        client.close()
        server.close()

    def _pass(self, server, client):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)

    def close(self):
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture
def proxy(tmp_path, postgres):
    (tmp_path / "p").mkdir()
    proxy = Proxy(tmp_path / "p", postgres)
    yield proxy
    proxy.close()


@pytest.fixture
def proxied(proxy, url, account):
    """The account, by way of the proxy."""
    return dc.Ledger(url.rpartition("host=")[0] + f"host={proxy.folder}", timeout=5.0).account("searches")


def test_a_charge_whose_commit_was_not_answered_is_found(proxy, proxied, account):
    proxy.moment = "after"
    proxied.charge(dc.Budget(1.0), "monday")
    assert proxy.moment is None
    assert kinds(account) == ["grant", "charge"]


def test_a_charge_whose_commit_never_came_was_not_made(proxy, proxied, account):
    proxy.moment = "before"
    with pytest.raises(dc.LedgerBusyError, match="before anything was written; try again"):
        proxied.charge(dc.Budget(1.0), "monday")
    assert kinds(account) == ["grant"]
    proxied.charge(dc.Budget(1.0), "monday")
    assert kinds(account) == ["grant", "charge"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_release_that_is_cut_off_is_charged_once_and_is_one(proxy, proxied, account, moment):
    """The connection is lost when the charge is made, and again when the release is stored; both are repeated."""

    def cut_off(operation, *values):
        proxy.moment = moment
        with contextlib.suppress(dc.LedgerBusyError):
            operation(*values)
        assert proxy.moment is None
        return operation(*values)

    assert cut_off(proxied.begin, "monday", dc.Budget(1.0)) is None
    assert cut_off(proxied.store, "monday", b"drawn") == b"drawn"
    assert proxied.store("monday", b"drawn again") == b"drawn"
    assert proxied.begin("monday", dc.Budget(1.0)) == b"drawn"
    assert kinds(account) == ["grant", "charge", "release"]


def test_what_cannot_be_found_out_is_said(proxy, url, account):
    mine = dc.Ledger(url.rpartition("host=")[0] + f"host={proxy.folder}", timeout=1.0).account("searches")
    proxy.moment = "for good"
    with pytest.raises(dc.LedgerError, match="not known whether it was") as lost:
        mine.charge(dc.Budget(1.0), "monday")
    assert not isinstance(lost.value, dc.LedgerBusyError)  # which says that nothing was charged


# --- two hosts


CLIENT = """
import sys
import psycopg
import discreet as dc

url, charge_id, waits = sys.argv[1:]
execute = psycopg.Connection.execute

def watched(self, query, *more, **how):
    if query == "COMMIT" and waits == "wait" and sys.stdin is not None:
        print("committing", flush=True)
        sys.stdin.readline()
    return execute(self, query, *more, **how)

psycopg.Connection.execute = watched
account = dc.Ledger(url, timeout=6.0).account("searches")
try:
    account.begin(charge_id, dc.Budget(1.0))
    print("charged", flush=True)
except dc.LedgerBusyError as error:
    print("not charged:", error, flush=True)
"""


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@pytest.fixture
def hosts():
    """Two hosts, each a network namespace with a cable to this one: names, and the address at which they find us."""
    if os.geteuid() != 0:
        pytest.skip("making network namespaces needs root")
    number = 1 + os.getpid() % 250
    names = [f"dc{os.getpid()}a", f"dc{os.getpid()}b"]
    addresses = []
    try:
        for place, name in enumerate(names):
            ours, theirs = f"10.213.{number}.{4 * place + 1}", f"10.213.{number}.{4 * place + 2}"
            ip("netns", "add", name)
            ip("link", "add", name, "type", "veth", "peer", "name", "uplink", "netns", name)
            ip("addr", "add", f"{ours}/30", "dev", name)
            ip("link", "set", name, "up")
            ip("-n", name, "addr", "add", f"{theirs}/30", "dev", "uplink")
            ip("-n", name, "link", "set", "uplink", "up")
            addresses.append(ours)
        yield list(zip(names, addresses, strict=True))
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
            subprocess.run(["ip", "link", "del", name], check=False, capture_output=True)


def wait_until(what, patience=60):
    until = time.monotonic() + patience
    while not what():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)


def on_host(spawn, name, url, charge_id, waits="go"):
    command = ["ip", "netns", "exec", name, sys.executable, "-c", CLIENT, url, charge_id, waits]
    return spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_two_hosts_that_are_cut_off(hosts, spawn):
    """One host is cut off when it is about to commit, or has committed and was not told. The other goes on."""
    (first, one), (second, two) = hosts
    server = Server(f"listen_addresses={one},{two}")
    try:
        ledger = dc.Ledger(server.url())
        ledger.grant("searches", dc.Budget(8.0))
        alive = "keepalives_idle=1&keepalives_interval=1&keepalives_count=2&tcp_user_timeout=2000&connect_timeout=2"
        urls = [f"postgresql://postgres@{address}/postgres?{alive}" for address in (one, two)]

        # Cut off before its COMMIT: the server ends its transaction, and the other host has the lock.
        cut = on_host(spawn, first, urls[0], "before", "wait")
        assert cut.stdout.readline() == "committing\n"
        ip("link", "set", first, "down")
        cut.stdin.write("\n" * 10)
        cut.stdin.flush()
        other = on_host(spawn, second, urls[1], "other")
        assert other.communicate()[0] == "charged\n"
        ip("link", "set", first, "up")
        told = [line for line in cut.communicate()[0].splitlines() if line != "committing"]
        assert told[0].startswith("not charged:")
        ids = [event.charge_id for event in ledger.history()]
        assert ids == [None, "other"]
        assert on_host(spawn, first, urls[0], "before").communicate()[0] == "charged\n"

        # Cut off after its COMMIT, which waits for a standby that is not there: it finds its charge.
        server.ask("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
        wait_until(lambda: server.tell("SHOW synchronous_standby_names") == "nobody")
        cut = on_host(spawn, first, urls[0], "after", "wait")
        assert cut.stdout.readline() == "committing\n"
        cut.stdin.write("\n" * 10)
        cut.stdin.flush()
        wait_until(lambda: server.tell("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == 1)
        ip("link", "set", first, "down")
        time.sleep(3.5)  # until it has noticed; where it has not, it is told that it is charged
        server.ask("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        ip("link", "set", first, "up")
        told = [line for line in cut.communicate()[0].splitlines() if line != "committing"]
        assert told == ["charged"]
        assert [event.charge_id for event in ledger.history()] == [None, "other", "before", "after"]
        assert ledger.verify() == 4
    finally:
        server.remove()


# --- a database that forgot


def restored(postgres, url):
    """What a backup from now would bring back, put in the place of the ledger."""
    name = url.partition("@/")[2].partition("?")[0]
    postgres.ask(f"CREATE DATABASE copy_{name} TEMPLATE {name}")

    def put_back():
        ends = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        postgres.ask(ends, f"DROP DATABASE {name}", f"ALTER DATABASE copy_{name} RENAME TO {name}")

    return put_back


def test_a_restored_database_that_forgot_is_refused_where_it_was_seen(account, postgres, url, tmp_path, monkeypatch):
    put_back = restored(postgres, url)
    account.charge(dc.Budget(1.0), "lost")
    put_back()
    for mine in (account, dc.Ledger(url).account("searches")):  # the process that saw it, and the next one
        with pytest.raises(dc.LedgerError, match="has lost events: this host saw its event 2, and it ends at 1"):
            mine.charge(dc.Budget(1.0))
    assert kinds(account) == ["grant"]  # it can be looked at
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another host"))
    dc.Ledger(url).account("searches").charge(dc.Budget(1.0), "unnoticed")  # who never saw it cannot tell
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(dc.LedgerError, match="or has another one there"):
        dc.Ledger(url).account("searches").charge(dc.Budget(1.0))
    (file,) = (tmp_path / "state" / "discreet" / "ledgers").iterdir()
    file.unlink()  # as the error says
    dc.Ledger(url).account("searches").charge(dc.Budget(1.0), "lost")


def test_where_nothing_can_be_remembered_charges_are_made(account, url, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    dc.Ledger(url).account("searches").charge(dc.Budget(1.0))
    assert kinds(account) == ["grant", "charge"]


def test_a_standby_is_read_and_not_charged(tmp_path):
    first = Server("wal_level=replica")
    second = None
    try:
        ledger = dc.Ledger(first.url())
        ledger.grant("searches", dc.Budget(4.0))
        ledger.account("searches").charge(dc.Budget(1.0), "monday")
        second = Server(primary=first)
        other = dc.Ledger(second.url())
        assert other.account("searches").spent().epsilon == 1.0
        with pytest.raises(dc.LedgerError, match="is a standby, which cannot be charged"):
            other.account("searches").charge(dc.Budget(1.0))
        second.run("pg_ctl", "-D", second.data, "-w", "promote")
        other.account("searches").charge(dc.Budget(1.0), "tuesday")
        assert other.verify() == 3
    finally:
        for server in (first, second):
            if server is not None:
                server.remove()


# --- roles


@pytest.fixture
def roles(postgres, url):
    """A job, an auditor and a stranger, of which the ledger knows two; the address for each."""
    names = {kind: f"{kind}_{os.getpid()}_{time.monotonic_ns()}" for kind in ("job", "auditor", "stranger")}
    postgres.ask(*(f"CREATE ROLE {name} LOGIN" for name in names.values()))
    ledger = dc.Ledger(url)
    ledger.create(may_charge=[names["job"]], may_read=[names["auditor"]])
    ledger.create(may_charge=[names["job"]], may_read=[names["auditor"]])
    ledger.grant("searches", dc.Budget(4.0, 1e-7))
    return {kind: url.replace("postgres@", f"{name}@") for kind, name in names.items()}


def test_a_job_may_charge_and_not_grant(roles, account):
    job = dc.Ledger(roles["job"])
    mine = job.account("searches")
    mine.charge(dc.Budget(1.0), "monday")
    assert mine.begin("tuesday", dc.Budget(1.0)) is None
    mine.store("tuesday", b"release")
    mine.store_step("tuesday", 1, "token", b"step", previous=None)
    for name, budget in (
        ("searches", dc.Budget(9.0, 1e-7)),
        ("searches", dc.Budget(3.0, 1e-7)),
        ("new", dc.Budget(1.0)),
    ):
        with pytest.raises(dc.LedgerError, match=r"may charge, and not grant|permission denied"):
            job.grant(name, budget)
    job.grant("searches", dc.Budget(4.0, 1e-7))  # which changes nothing
    with pytest.raises(dc.LedgerError, match="permission denied"):
        job.create(may_charge=["postgres"])
    assert kinds(account) == ["grant", "charge", "charge", "release", "step"]
    assert dc.Ledger(account._log.place.replace("///", "//postgres@/")).verify() == 5


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE balances SET body = replace(body, '4.0', '9.0') WHERE account = 'searches'",
        "UPDATE balances SET body = replace(body, '\"accounts\": 1', '\"accounts\": 2') WHERE account = ''",
        "UPDATE balances SET account = 'other' WHERE account = 'searches'",
        "DELETE FROM balances",
        "INSERT INTO balances VALUES ('other', '{}', '')",
        "INSERT INTO events SELECT 2, version, at, account, kind, charge_id, number, body, digest, payload FROM events",
        "UPDATE events SET body = '{}'",
        "DELETE FROM events",
        "TRUNCATE events",
        "DELETE FROM marks",
        "DROP TRIGGER same_limit ON balances",
        "ALTER TABLE events DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
    ],
)
def test_a_job_changes_no_limit_by_hand_either(roles, account, statement):
    with psycopg.connect(roles["job"], autocommit=True) as connection:
        connection.execute("SET search_path = discreet")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement)
    account.charge(dc.Budget(1.0))


def test_an_auditor_looks_and_a_stranger_does_not(roles):
    auditor = dc.Ledger(roles["auditor"])
    assert auditor.verify() == 1
    with pytest.raises(dc.LedgerError, match="permission denied"):
        auditor.account("searches").charge(dc.Budget(1.0))
    with pytest.raises(dc.LedgerError, match="permission denied"):
        dc.Ledger(roles["stranger"]).account("searches")


# --- odd places


def test_a_schema_of_that_name_that_is_no_ledger_is_left_alone(url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA discreet")
    with pytest.raises(dc.LedgerError, match="not a ledger of discreet, version 2: no comment"):
        dc.Ledger(url).grant("a", dc.Budget(1.0))


def test_addresses_are_checked_and_passwords_are_not_said():
    for wrong in ("mysql://a/b", "https://example.org/x.sqlite"):
        with pytest.raises(dc.ParameterError, match="a file or postgresql://"):
            dc.Ledger(wrong)
    with pytest.raises(dc.ParameterError, match="cannot be read"):
        dc.Ledger("postgresql://host/db?nonsense=1")
    ledger = dc.Ledger("postgresql://me:secret@127.0.0.1:1/db", timeout=1.0)
    assert repr(ledger) == "Ledger('postgresql://127.0.0.1:1/db')"
    with pytest.raises(dc.LedgerBusyError, match="cannot be reached") as refused:
        ledger.accounts()
    assert "secret" not in str(refused.value)


def test_without_psycopg_the_error_says_what_to_install(url):
    script = "import sys; sys.modules['psycopg'] = None\nimport discreet as dc\ndc.Ledger(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, timeout=60)
    assert "pip install 'discreet[postgres]'" in done.stderr.splitlines()[-1]


# --- one connection


def test_operations_in_a_chain_share_one_connection(account, url, monkeypatch):
    made, connect = [], psycopg.connect
    monkeypatch.setattr(psycopg, "connect", lambda **given: made.append(given) or connect(**given))
    with one_connection():
        account.charge(dc.Budget(0.5))
        account.charge(dc.Budget(0.5))
        child = os.fork()
        if not child:
            account.charge(dc.Budget(0.5))
            os._exit(len(made) - 2)
        assert os.waitpid(child, 0)[1] == 0
        with psycopg.connect(conninfo=url, autocommit=True) as other:  # an idle connection that is lost is no loss
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'discreet'")
        made.clear()
        account.charge(dc.Budget(0.5))
    assert len(made) == 1
    assert kinds(account) == ["grant", *["charge"] * 4]


# --- by command


def test_commands_take_an_address(discreet, url, roles, tmp_path):
    """A grant, a release that is charged and had again, a refusal, a backup, a move there and back."""
    (tmp_path / "rows.txt").write_text("a\n" * 5000)
    job = ["--ledger", roles["job"], "--account", "searches"]
    ask = ["top", tmp_path / "rows.txt", "--epsilon", 1, "--delta", 1e-8, "--format", "json", *job]
    first = discreet(*ask, "--charge-id", "monday")
    assert first.returncode == 0, first.stderr
    again = discreet(*ask, "--charge-id", "monday")
    assert "replayed" in again.stderr
    assert again.stdout == first.stdout
    assert discreet("ledger", "grant", *job, "--epsilon", 9).returncode == 1
    assert discreet("count", tmp_path / "rows.txt", "--epsilon", 4, *job).returncode == 3
    stored = discreet("ledger", "release", "--ledger", roles["auditor"], "--charge-id", "monday", "--format", "json")
    assert stored.stdout == first.stdout
    copy = tmp_path / "copy.sqlite"
    assert discreet("ledger", "backup", "--ledger", url, "--output", copy).returncode == 0
    assert dc.Ledger(copy).history() == dc.Ledger(url).history()
    file = tmp_path / "file.sqlite"
    assert discreet("ledger", "move", "--ledger", url, "--account", "searches", "--to", file).returncode == 0
    assert discreet("top", *ask[1:-4], "--ledger", file, *job[2:], "--charge-id", "monday").stdout == first.stdout
    assert discreet(*ask).returncode == 1
