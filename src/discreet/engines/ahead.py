"""Reading and counting at the same time: a thread reads ahead, in order, while its reader is busy."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["read_ahead"]

T = TypeVar("T")

_WAITING = 2  # batches that were read and not taken yet
_PATIENCE = 2.0  # seconds for the batch that is being read when nobody wants it any more


def read_ahead(batches: Iterable[T]) -> Iterator[T]:
    """The same batches in the same order, read by a thread of its own. What it raises is raised here.

    No more than a few are in memory. When nobody takes them any more (an error, an interrupt), the thread stops after
    the one that it reads. Where that does not come, on a terminal or a pipe, it does not keep the process from ending.
    """
    waiting: queue.Queue[tuple[list[T], BaseException | None]] = queue.Queue(_WAITING)
    unwanted = threading.Event()

    def put(batch: list[T], error: BaseException | None = None) -> bool:
        while not unwanted.is_set():
            try:
                waiting.put((batch, error), timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def read() -> None:
        try:
            for batch in batches:
                if not put([batch]):
                    return
        except BaseException as error:
            put([], error)
        else:
            put([])

    thread = threading.Thread(target=read, name="read ahead", daemon=True)
    thread.start()
    try:
        while True:
            batch, error = waiting.get()
            if error is not None:
                raise error
            if not batch:
                return
            yield batch.pop()  # nothing here holds it while it is counted
    finally:
        unwanted.set()
        thread.join(_PATIENCE)
