"""Backups of a service while it runs, and putting them back.

What belongs together changes in one transaction of `service.sqlite`: releases, the state that counts, keys. Files that
it names are removed only after a later one. So a backup holds its lock to write: nothing is published meanwhile,
requests are taken as ever, and everything that is copied is of one moment. The ledger is copied under that lock, too:
it has the last tick, or is about to.

NOT private: states and spools hold raw events. Files of pan streams are left out: a copy would be a second look at a
memory that may be looked at once.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from discreet.errors import LedgerError, ParameterError
from discreet.privacy.ledger import Ledger
from discreet.service.folder import make_folder, write_file
from discreet.service.store import Store
from discreet.storage import sync_folder


def backup(data: Path, target: Path, ledger: Path | str | None = None) -> list[str]:
    """Copy a service's folder and its ledger into a new folder. Returns the pan streams, which are left out."""
    if target.exists():
        raise ParameterError(f"{str(target)!r} already exists; a backup never replaces anything. Choose another name")
    left_out = []
    make_folder(target)
    with closing(Store(data)) as store, store.writing():
        for name, kept in store.streams().items():
            folder, copied = data / "streams" / name, target / "streams" / name
            if kept.file == "pan.state":
                left_out.append(name)
            elif (folder / kept.file).exists():  # else its last tick is out
                for made in (copied.parent, copied, copied / "spool"):
                    make_folder(made)
                write_file(copied / kept.file, (folder / kept.file).read_bytes())
                for spool in sorted((folder / "spool").glob("*.spool")):
                    with suppress(FileNotFoundError):  # of a tick that was published just before
                        write_file(copied / "spool" / spool.name, spool.read_bytes())
        if (data / "visitors.key").exists():
            write_file(target / "visitors.key", (data / "visitors.key").read_bytes())
        write_file(target / "service.sqlite", b"")
        with (
            closing(sqlite3.connect(f"{store.path.absolute().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(target / "service.sqlite")) as copy,
        ):
            source.backup(copy)
        Ledger(ledger or data / "ledger.sqlite").backup(target / "ledger.sqlite")
    sync_folder(target)
    return sorted(left_out)


def restore(source: Path, data: Path, ledger_too: bool = False) -> None:
    """Put a backup into a new folder: without its ledger, unless the ledger itself is lost."""
    if not (source / "service.sqlite").is_file():
        raise ParameterError(f"there is no backup of a service in {str(source)!r}")
    if data.exists():
        raise ParameterError(f"{str(data)!r} exists: put a backup into a new folder")
    try:
        Ledger(source / "ledger.sqlite").verify()
    except LedgerError as error:
        raise ParameterError(f"the backup in {str(source)!r} is damaged: {error}") from error
    ignored = () if ledger_too else ("ledger.sqlite",)
    shutil.copytree(source, data, ignore=shutil.ignore_patterns(*ignored))
    sync_folder(data.parent)
