"""Connections that a thread keeps between the operations of one release, whatever the store."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any


class _Kept(threading.local):
    """The connections of this thread, each with its process, which may have forked; None outside `one_connection`.

    Only idle ones are in here. What a thread is using is in its frames alone: a fork clears what other threads keep,
    and SQLite would roll back, in the child, what a thread of the parent is writing.
    """

    idle: dict[Hashable, tuple[int, Any]] | None = None


_kept = _Kept()


@contextmanager
def one_connection() -> Iterator[None]:
    """In here this thread opens a ledger once, however many operations it does. They stay transactions of their own."""
    if _kept.idle is not None:  # inside another
        yield
        return
    _kept.idle = {}
    try:
        yield
    finally:
        idle, _kept.idle = _kept.idle, None
        for process, connection in idle.values():
            if process == os.getpid():
                connection.close()


@contextmanager
def using(key: Hashable, connection: Any, can_be_kept: bool = True) -> Iterator[Any]:
    """Keep the connection for the next operation, inside `one_connection`; else, and after any error, close it."""
    keep = False
    try:
        yield connection
        if _kept.idle is not None and can_be_kept:
            _kept.idle[key] = os.getpid(), connection
            keep = True
    finally:
        if not keep:
            connection.close()


def idle_connection(key: Hashable) -> Any:
    """The connection that this thread keeps under the key, for the caller alone; None if there is none."""
    process, connection = (0, None) if _kept.idle is None else _kept.idle.pop(key, (0, None))
    return connection if process == os.getpid() else None
