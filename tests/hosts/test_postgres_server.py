"""The server that the tests start."""

import psycopg
import pytest

pytestmark = pytest.mark.hosts


def test_it_syncs_and_its_databases_are_apart(postgres):
    first, second = postgres.database(), postgres.database()
    with psycopg.connect(first) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert connection.execute(f"SHOW {setting}").fetchone() == ("on",)
        connection.execute("CREATE TABLE things (name text)")
    with psycopg.connect(second) as connection, pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("SELECT name FROM things")
