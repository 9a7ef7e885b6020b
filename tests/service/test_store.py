"""The store of a service, which commands for operators open beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet.service import runtime
from discreet.service.store import Store

# Children that all open a folder that is not there yet, on one signal.
RACE = """
import os, sys
from pathlib import Path
from discreet.service.store import Store

go = os.pipe()
for child in range(8):
    if os.fork() == 0:
        os.close(go[1])
        os.read(go[0], 1)
        Store(Path(sys.argv[1])).add_token(b"%d" % child, "read", None, 0.0, None)
        os._exit(0)
os.close(go[1])
sys.exit(max(os.waitpid(-1, 0)[1] for _ in range(8)) != 0)
"""


def test_processes_may_race_to_make_it(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", RACE, tmp_path / "data"], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    with closing(Store(tmp_path / "data")) as store:
        assert sorted(digest for _, digest, *_ in store.tokens()) == [b"%d" % child for child in range(8)]


def test_another_may_have_made_it_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look, found = Store._version, []

    def another_is_faster(store: Store) -> int:
        version = look(store)
        if not found:
            found.append(version)
            Store(tmp_path).close()
        return version

    monkeypatch.setattr(Store, "_version", another_is_faster)
    Store(tmp_path).close()
    assert found == [0]


def test_the_status_of_a_service_that_removes_what_it_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1.spool").write_bytes(b"published")
    (tmp_path / "2.spool").write_bytes(b"waits")
    scan = os.scandir

    @contextmanager
    def scanned(folder: Any) -> Iterator[Any]:
        with scan(folder) as entries:
            found = list(entries)
            (tmp_path / "1.spool").unlink()
            yield found

    monkeypatch.setattr(os, "scandir", scanned)
    assert runtime._bytes_in(tmp_path) == 5
    monkeypatch.undo()
    assert runtime._bytes_in(tmp_path / "nowhere") == 0
