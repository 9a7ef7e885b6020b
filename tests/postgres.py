"""A PostgreSQL server of the tests' own: made in a temporary folder, started, and stopped with the process."""

import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest

_OWNER = "nobody" if hasattr(os, "geteuid") and os.geteuid() == 0 else None  # the server refuses to run as root


def programs():
    """The folder of the server's programs; None where it is not installed."""
    found = shutil.which("initdb")
    places = (
        [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    )
    return next((place for place in places if (place / "initdb").exists()), None)


class Server:
    """One server. Its files are in memory where that is possible: syncing is on, as the ledger asks, and cheap."""

    user = "postgres"

    def __init__(self, *settings, primary=None):
        self.settings = settings
        self.programs = programs()
        if self.programs is None:
            if os.environ.get("CI"):
                pytest.fail("PostgreSQL is not installed: `make hosts` installs it")
            pytest.skip("PostgreSQL is not installed")
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="discreet-pg-", dir=memory))
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.data.mkdir(mode=0o700)
        if _OWNER is not None:
            shutil.chown(self.folder, _OWNER)
            shutil.chown(self.data, _OWNER)
        if primary is not None:
            self.run("pg_basebackup", "-D", self.data, "-h", primary.folder, "-U", self.user, "-R", "-c", "fast")
            self.start()
            return
        self.run("initdb", "-D", self.data, "-U", self.user, "--auth=trust", "--no-sync", "--encoding=UTF8")
        with (self.data / "pg_hba.conf").open("a") as file:
            file.write("host all all 10.0.0.0/8 trust\n")
        self.start()

    def run(self, program, *arguments):
        """Run one of its programs to the end."""
        owner = {} if _OWNER is None else {"user": _OWNER, "extra_groups": ()}
        command = [self.programs / program, *arguments]
        output = self.folder / "programs.log"  # a file: the server that pg_ctl starts would keep a pipe open
        with output.open("ab") as log:
            done = subprocess.run([*map(str, command)], stdout=log, stderr=log, cwd=self.folder, timeout=120, **owner)
        assert done.returncode == 0, output.read_text()

    def start(self):
        """Start it, on a socket in its folder, and with its settings, such as `listen_addresses=...`."""
        said = ["listen_addresses=", f"unix_socket_directories={self.folder}", "max_connections=100", *self.settings]
        options = " ".join(f"-c '{setting}'" for setting in said)
        log = self.folder / "server.log"
        self.run("pg_ctl", "-D", self.data, "-l", log, "-w", "-t", "60", "-o", options, "start")

    def stop(self, mode="fast"):
        """Stop it; "immediate" is a crash."""
        self.run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def url(self, database="postgres", user=None):
        """How clients on this machine reach a database."""
        return f"postgresql://{user or self.user}@/{database}?host={self.folder}"

    def ask(self, *statements):
        """Do as the server's superuser."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def tell(self, statement):
        """The first value that a statement of the server's superuser finds."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            return connection.execute(statement).fetchone()[0]

    def database(self):
        """The address of a new, empty database."""
        name = f"d{uuid.uuid4().hex}"
        self.ask(f"CREATE DATABASE {name}")
        return self.url(name)

    def remove(self):
        """Stop it and take its files away."""
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.folder)


@pytest.fixture(scope="session")
def postgres():
    """A server that the tests of one process share."""
    server = Server()
    yield server
    server.remove()
