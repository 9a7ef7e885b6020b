"""The ledger's file: one name, one file, durable, read-only where it must be, and every fact recorded twice."""

import os
import random
import shutil
import sqlite3
import stat
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest
from tests.ledgers import tamper, used_account

import discreet as dc
from discreet.errors import BudgetExceededError, LedgerError
from discreet.privacy.ledger import Step, one_connection, sqlite
from discreet.privacy.ledger.idle_connections import idle_connection, using

posix = pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budgets.sqlite"


@pytest.fixture
def account(path):
    return used_account(path)


# --- one name


@posix
def test_a_second_hard_link_is_refused_under_every_name(account, path, tmp_path):
    other = tmp_path / "other.sqlite"
    os.link(path, other)
    for name in (path, other):
        with pytest.raises(dc.LedgerError, match="hard links"):
            dc.Ledger(name)
    with pytest.raises(dc.LedgerError, match="hard links"):
        account.charge(dc.Budget(0.1))
    other.unlink()
    account.charge(dc.Budget(0.1))


@posix
def test_symbolic_links_lead_to_one_ledger(account, path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.sqlite"
    link.symlink_to(path)
    spent = account.spent().epsilon
    dc.Ledger(link).account("searches").charge(dc.Budget(0.25))
    assert account.spent().epsilon == spent + 0.25
    assert os.listdir(link.parent) == ["link.sqlite"]
    assert link.is_symlink()
    dangling = tmp_path / "elsewhere" / "new.sqlite"
    dangling.symlink_to(tmp_path / "real.sqlite")
    dc.Ledger(dangling).grant("a", dc.Budget(1.0))
    assert dc.Ledger(tmp_path / "real.sqlite").account("a").granted == dc.Budget(1.0)


def test_nothing_is_outside_the_file_once_a_charge_has_returned(account, path, tmp_path):
    """Also while another connection is open, which is when a write-ahead log would stay. A copy of the file has it."""
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT count(*) FROM events").fetchall()
        spent = account.spent().epsilon
        account.charge(dc.Budget(0.25))
        assert os.listdir(tmp_path) == ["budgets.sqlite"]
        shutil.copy(path, tmp_path / "copy.sqlite")
        assert dc.Ledger(tmp_path / "copy.sqlite").account("searches").spent().epsilon == spent + 0.25


def test_another_journal_is_put_back_before_a_charge(account, path, tmp_path):
    """Another program may have set it: what the log alone has is not lost, and a charge is in the one file again."""
    keeper = sqlite3.connect(path, isolation_level=None)
    assert keeper.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    keeper.execute("SELECT count(*) FROM events").fetchall()
    with pytest.raises(dc.LedgerError, match="locked"):
        dc.Ledger(path, timeout=0.1).account("searches").charge(dc.Budget(0.25))
    keeper.close()
    spent = account.spent().epsilon
    account.charge(dc.Budget(0.25))
    assert account.spent().epsilon == spent + 0.25
    assert os.listdir(tmp_path) == ["budgets.sqlite"]


# --- durable


def test_every_connection_that_writes_syncs_the_file_and_its_directory(account, monkeypatch):
    """synchronous=EXTRA (3): the journal's removal, which is what commits, is on disk before a charge returns."""
    settings = []

    class Watched(sqlite._Connection):
        def close(self):
            mode = self.execute("PRAGMA journal_mode").fetchone()[0]
            settings.append((self.execute("PRAGMA synchronous").fetchone()[0], mode))
            super().close()

    real = sqlite3.connect
    monkeypatch.setattr(sqlite.sqlite3, "connect", lambda *args, **more: real(*args, **{**more, "factory": Watched}))
    account.begin("durable", dc.Budget(0.25))
    account.store("durable", b"release")
    account.store_step("stream", 4, "token 4", b"step 4", previous="token 3")
    assert len(settings) >= 3
    assert set(settings) == {(3, "delete")}


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_charge_is_synced_before_it_returns(account, path, tmp_path):
    """What the system sees: the file is synced, then the journal removed, then the directory synced, then the print."""
    import subprocess

    script = (
        "import sys, os, discreet as dc; a = dc.Ledger(sys.argv[1]).account('searches'); os.write(1, b'BEFORE\\n');"
        "a.charge(dc.Budget(0.125)); os.write(1, b'AFTER\\n')"
    )
    trace = tmp_path / "trace"
    watched = "trace=fsync,fdatasync,unlink,write,openat"
    command = ["strace", "-f", "-y", "-o", trace, "-e", watched, sys.executable, "-c", script, path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0 and "ptrace" in done.stderr:
        pytest.skip("strace is not allowed here")
    assert done.returncode == 0, done.stderr
    lines = trace.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if "BEFORE" in line)
    end = next(i for i, line in enumerate(lines) if "AFTER" in line)
    calls = lines[start:end]
    removed = max(i for i, line in enumerate(calls) if "unlink" in line and "-journal" in line)
    synced = [i for i, line in enumerate(calls) if "sync(" in line]
    assert any(i < removed and "budgets.sqlite>" in calls[i] for i in synced)
    assert any(i > removed and f"<{tmp_path}>" in calls[i] for i in synced)


@posix
def test_new_ledgers_and_backups_are_their_owners_alone(tmp_path):
    path, copy = tmp_path / "new.sqlite", tmp_path / "copy.sqlite"
    before = os.umask(0)
    try:
        dc.Ledger(path).grant("a", dc.Budget(1.0))
        dc.Ledger(path).backup(copy)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(copy.stat().st_mode) == 0o600


# --- reading where nothing can be written


def as_nobody(folder, work):
    """Run `work` in a child that may not write, and return what it returned (as text)."""
    folder.chmod(0o555)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            result = work()
        except BaseException as error:
            result = repr(error)
        os.write(write, str(result).encode())
        os._exit(0)
    os.close(write)
    with open(read) as file:
        result = file.read()
    os.waitpid(child, 0)
    folder.chmod(0o755)
    return result


@posix
def test_a_ledger_is_read_where_nothing_can_be_written(account, path):
    with tempfile.TemporaryDirectory() as folder:  # pytest's own directories are closed to others
        check_reading(Path(folder), path)


def check_reading(folder, path):
    archived = folder / "budgets.sqlite"
    shutil.copy(path, archived)
    archived.chmod(0o444)
    here = dc.Ledger(archived).account("searches")
    expected = f"{here.statement()} {len(here.history())}"

    def work():
        ledger = dc.Ledger(archived)
        return f"{ledger.account('searches').statement()} {len(ledger.history('searches'))}"

    assert as_nobody(folder, work) == expected
    assert "LedgerError" in as_nobody(folder, lambda: dc.Ledger(archived).account("searches").charge(dc.Budget(0.1)))
    assert os.listdir(folder) == ["budgets.sqlite"]


# --- backups


def test_a_backup_is_a_whole_ledger(account, path, tmp_path):
    copy = tmp_path / "copy.sqlite"
    ledger = dc.Ledger(path)
    assert ledger.backup(copy) == len(ledger.history()) == dc.Ledger(copy).verify()
    assert dc.Ledger(copy).history() == ledger.history()
    account.charge(dc.Budget(0.25))
    with pytest.raises(dc.LedgerError, match="never replaces"):
        ledger.backup(copy)
    with pytest.raises(dc.LedgerError, match="never replaces"):
        ledger.backup(path)
    with pytest.raises(dc.LedgerError, match="cannot be written"):
        ledger.backup(tmp_path / "nowhere" / "copy.sqlite")
    assert sorted(os.listdir(tmp_path)) == ["budgets.sqlite", "copy.sqlite"]
    assert dc.Ledger(copy).verify() == len(ledger.history()) - 1


def test_a_backup_that_was_stopped_before_its_last_step_is_finished(account, path, tmp_path, monkeypatch):
    """Killed between the second name and taking the first away: whoever opens the copy does the rest."""
    copy, ledger = tmp_path / "copy [1].sqlite", dc.Ledger(path)

    def killed(self, missing_ok=False):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            ledger.backup(copy)
    (left,) = (name for name in os.listdir(tmp_path) if name.startswith("."))
    assert copy.stat().st_nlink == 2
    (tmp_path / f"{left}-journal").touch()  # somebody works under the other name
    with pytest.raises(dc.LedgerError, match="hard links"):
        dc.Ledger(copy).verify()
    (tmp_path / f"{left}-journal").unlink()
    assert dc.Ledger(copy).verify() == len(ledger.history())
    assert sorted(os.listdir(tmp_path)) == ["budgets.sqlite", copy.name]
    os.link(copy, tmp_path / ".copy.sqlite")  # a name that no backup has
    with pytest.raises(dc.LedgerError, match="hard links"):
        dc.Ledger(copy).verify()


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (FileExistsError(17, "File exists"), r"already exists; a backup never replaces a file\. Choose another name$"),
        (PermissionError(1, "Operation not permitted"), r"cannot be written: Operation not permitted$"),
    ],
)
def test_a_backup_that_gets_no_name_leaves_nothing(account, path, tmp_path, monkeypatch, failure, words):
    """Somebody made a file of that name meanwhile, or the file system has no links."""
    monkeypatch.setattr(os, "link", mock.Mock(side_effect=failure))
    with pytest.raises(dc.LedgerError, match=words):
        dc.Ledger(path).backup(tmp_path / "copy.sqlite")
    assert os.listdir(tmp_path) == ["budgets.sqlite"]


def test_a_backup_is_on_disk_and_follows_no_link_that_leads_nowhere(account, path, tmp_path, monkeypatch):
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "elsewhere.sqlite")
    with pytest.raises(dc.LedgerError, match="never replaces"):
        dc.Ledger(path).backup(tmp_path / "link.sqlite")
    synced = []
    monkeypatch.setattr(sqlite, "sync_folder", lambda folder: synced.append((folder, os.listdir(folder))))
    dc.Ledger(path).backup(tmp_path / "copy.sqlite")
    assert synced[-1] == (tmp_path, mock.ANY)
    assert "copy.sqlite" in synced[-1][1]  # its name, too
    assert not (tmp_path / "elsewhere.sqlite").exists()


def test_a_file_has_no_roles(tmp_path):
    ledger = dc.Ledger(tmp_path / "new.sqlite")
    for roles in ({"may_charge": ["job"]}, {"may_read": ["auditor"]}):
        with pytest.raises(dc.ParameterError, match="a ledger file has no roles; anyone who may write the file can"):
            ledger.create(**roles)
    assert os.listdir(tmp_path) == []
    for _ in range(2):  # and once more changes nothing
        ledger.create()
        assert (ledger.accounts(), ledger.verify()) == ([], 0)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("version", [0, 1, 3])
def test_a_ledger_of_another_version_is_refused(account, path, version):
    """Whoever has it open already notices, too: what another version wrote may mean something else."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version={version}")
    before = path.read_bytes()
    for operation in (lambda: dc.Ledger(path), account.spent, lambda: account.charge(dc.Budget(0.1))):
        with pytest.raises(dc.LedgerError, match=f"version {version}; this program reads version 2"):
            operation()
    assert path.read_bytes() == before


def test_a_damaged_ledger_has_no_backup(account, path, tmp_path):
    tamper(path, "UPDATE events SET payload = x'00' WHERE charge_id = 'day 2' AND kind = 'release'")
    with pytest.raises(dc.LedgerError, match="damaged"):
        dc.Ledger(path).backup(tmp_path / "copy.sqlite")
    assert os.listdir(tmp_path) == ["budgets.sqlite"]


def test_a_flipped_bit_never_changes_a_decision(account, path):
    """150 flips (seeded): every operation does what it did, or raises LedgerError; a charge is added or refused."""
    content = path.read_bytes()
    before, steps = account.statement(), [account.step("stream", number) for number in (1, 2, 3)]
    generator = random.Random(7)
    outcomes = {"same": 0, "refused": 0}
    for _ in range(150):
        damaged = bytearray(content)
        damaged[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        for operation in (
            lambda: account.statement() == before,
            lambda: [account.step("stream", number) for number in (1, 2, 3)] == steps,
            lambda: account.last_step("stream") == steps[-1],
            lambda: account.begin("day 3", dc.Budget(0.5, 1e-9)) == b"release 3",
            lambda: account.begin("begun", dc.Budget(0.25)) is None,
            lambda: account.store_step("stream", 3, "z", b"other", previous="token 2") == Step(3, "token 3", b"step 3"),
            lambda: account.charge(dc.Budget(0.5)) and account.spent().epsilon == before.spent.epsilon + 0.5,
        ):
            try:
                assert operation()
                outcomes["same"] += 1
            except dc.LedgerError:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > 50


def test_verify_notices_flips_of_everything_that_is_read(account, path):
    """300 flips (seeded): verify refuses, or everything in the file reads as before."""
    content, history = path.read_bytes(), account.history()
    generator = random.Random(8)
    refused = 0
    for _ in range(300):
        damaged = bytearray(content)
        damaged[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        try:
            ledger = dc.Ledger(path)
            ledger.verify()
            assert ledger.account("searches").history() == history
        except dc.LedgerError:
            refused += 1
    assert refused > 50


# ---- one connection for several operations ---------------------------------------------------------------------------


@pytest.fixture
def opened(monkeypatch):
    """How many connections were opened to files."""
    made = []
    connect = sqlite.SQLiteStore._connect_anew
    monkeypatch.setattr(sqlite.SQLiteStore, "_connect_anew", lambda log: made.append(log.path) or connect(log))
    return made


def released(ledger, charge_id="c"):
    account = ledger.account("a")
    account.check(dc.Budget(0.1))
    if account.begin(charge_id, dc.Budget(0.1)) is None:
        account.store(charge_id, b"release")
    return account.statement().charges


def test_operations_in_a_chain_share_one_connection(tmp_path, opened):
    dc.Ledger(tmp_path / "l").grant("a", dc.Budget(1.0))
    opened.clear()
    with one_connection(), one_connection():
        assert released(dc.Ledger(tmp_path / "l")) == 1
    assert len(opened) == 1
    released(dc.Ledger(tmp_path / "l"), "another")
    assert len(opened) > 4  # outside, every operation has its own


def test_a_connection_is_not_used_after_its_file_was_replaced(tmp_path):
    path = tmp_path / "l"
    ledger = dc.Ledger(path)
    ledger.grant("a", dc.Budget(1.0))
    ledger.backup(tmp_path / "copy")
    with one_connection():
        released(ledger)
        os.replace(tmp_path / "copy", path)
        assert released(ledger, "again") == 1
        path.unlink()
        with pytest.raises(LedgerError, match="there is no ledger"):
            ledger.account("a")
    with one_connection(), pytest.raises(LedgerError, match="no ledger"):
        dc.Ledger(path).account("a")


def test_a_second_name_is_noticed_in_a_chain(tmp_path):
    ledger = dc.Ledger(tmp_path / "l")
    ledger.grant("a", dc.Budget(1.0))
    with one_connection():
        released(ledger)
        os.link(tmp_path / "l", tmp_path / "second")
        with pytest.raises(LedgerError, match="hard links"):
            released(ledger, "again")


def test_altered_tables_are_noticed_in_a_chain(tmp_path):
    ledger = dc.Ledger(tmp_path / "l")
    ledger.grant("a", dc.Budget(1.0))
    with one_connection():
        released(ledger)
        with closing(sqlite3.connect(tmp_path / "l")) as other:
            other.execute("DROP TRIGGER no_update")
            other.commit()
        with pytest.raises(LedgerError, match="altered"):
            released(ledger, "again")


def test_others_may_write_between_the_operations_of_a_chain(tmp_path):
    ledger = dc.Ledger(tmp_path / "l", timeout=5.0)
    ledger.grant("a", dc.Budget(1.0))
    with one_connection(), ThreadPoolExecutor(1) as others:
        for turn in range(4):
            assert released(ledger, f"mine {turn}") == 2 * turn + 1
            assert others.submit(released, ledger, f"theirs {turn}").result() == 2 * turn + 2


def test_a_refused_charge_leaves_a_chain_as_it_was(tmp_path):
    ledger = dc.Ledger(tmp_path / "l")
    ledger.grant("a", dc.Budget(1.0))
    with one_connection():
        with pytest.raises(BudgetExceededError):
            ledger.account("a").charge(dc.Budget(2.0))
        assert released(ledger) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_opens_its_own(tmp_path):
    ledger = dc.Ledger(tmp_path / "l")
    ledger.grant("a", dc.Budget(1.0))
    with one_connection():
        released(ledger)
        child = os.fork()
        if not child:
            os._exit(0 if released(ledger, "child") == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert released(ledger, "parent") == 3
    assert ledger.verify() == 7


def test_a_forked_child_opens_the_ledger_anew(tmp_path, monkeypatch):
    """SQLite loses its locks in a child that uses its parent's connection."""
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("a", dc.Budget(1.0))
    opened = []
    connect = sqlite.SQLiteStore._connect_anew
    monkeypatch.setattr(sqlite.SQLiteStore, "_connect_anew", lambda self: opened.append(os.getpid()) or connect(self))
    with one_connection():
        ledger.account("a").statement()
        before = len(opened)
        ledger.account("a").statement()
        assert len(opened) == before  # the same connection
        child = os.fork()
        if not child:
            code = 1
            try:
                ledger.account("a").statement()
                code = 0 if len(opened) > before else 1
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Kept:
    """A connection that says who closed it."""

    def __init__(self, folder):
        self.folder = folder

    def close(self):
        (self.folder / f"closed by {os.getpid()}").touch()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_that_leaves_a_chain_closes_nothing_of_its_parent(tmp_path):
    """What is closed by the child of a process that is connected to a server is closed for the parent, too."""
    with one_connection():
        with using("a ledger", Kept(tmp_path)):
            pass
        child = os.fork()
    if not child:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.listdir(tmp_path) == [f"closed by {os.getpid()}"]


def test_a_connection_is_kept_for_one_user_of_one_thread_while_nothing_fails(tmp_path):
    one, others = Kept(tmp_path), ThreadPoolExecutor(1)
    with one_connection():
        with using("a ledger", one):
            assert idle_connection("a ledger") is None  # it is in use
        assert idle_connection("another") is None
        assert others.submit(idle_connection, "a ledger").result() is None
        with one_connection():  # inside another: the outer one keeps
            assert idle_connection("a ledger") is one
            assert idle_connection("a ledger") is None  # and gives it once
            with using("a ledger", one):
                pass
        assert idle_connection("a ledger") is one
        assert not os.listdir(tmp_path)
        with pytest.raises(ValueError, match="wrong"), using("a ledger", one):
            raise ValueError("wrong")
        assert idle_connection("a ledger") is None
        assert os.listdir(tmp_path)
        with using("a ledger", one, can_be_kept=False):
            pass
        assert idle_connection("a ledger") is None
    others.shutdown()
    assert idle_connection("a ledger") is None
    (closed,) = tmp_path.iterdir()
    closed.unlink()
    with using("a ledger", one):
        assert not closed.exists()
    assert closed.exists()  # outside, at once
