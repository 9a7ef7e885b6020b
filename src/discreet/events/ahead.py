"""Reading and counting at the same time: tasks are done by several threads, in any order, and handed over in theirs.

What comes out does not depend on which thread was when: results are handed over in the order of the tasks, errors where
they happened, and anyone who counts sees the rows as one thread would have read them.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_MOST = 8  # threads: one counts what they read, and each of them holds a block or a page
_WAITING = 2  # results that are done and not taken yet, beside one that each thread works on
_PATIENCE = 2.0  # seconds for the task that is being done when nobody wants it any more


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_ahead(batches: Iterable[T]) -> Iterator[T]:
    """The same batches in the same order, read by a thread of its own. What it raises is raised here."""
    return in_order((_already(batch) for batch in batches), helpers=1)


def in_order(tasks: Iterable[Callable[[], T]], helpers: int | None = None) -> Generator[T, None, None]:
    """What the tasks return, in their order, done side by side by `helpers` threads and by the one that waits here.

    The tasks are asked for one at a time, so that an iterator that reads and cuts needs no lock. Each is called once,
    in some thread, and should leave the GIL alone for most of its time. By default there are as many threads as cores,
    with the caller's, and no more than 8: what is in memory must not grow with the machine. An error of the iterator or
    of a task is raised here, after all that came before it.

    No more than a few results are in memory. When nobody takes them any more (an error, an interrupt), the threads stop
    after what they are doing. Where that does not end, on a terminal or a pipe, it does not keep the process from
    ending.
    """
    many = min(available_cores(), _MOST) - 1 if helpers is None else helpers
    work = _Work(iter(tasks), many + _WAITING)
    try:
        work.start(many)
        while (done := work.next()) is not None:
            if done.error is not None:
                raise done.error
            yield done.result.pop()  # nothing here holds it while it is counted
    finally:
        work.end()


def _already(batch: T) -> Callable[[], T]:
    held = [batch]
    return held.pop


_unended: set[_Work[Any]] = set()


@atexit.register
def _end_all() -> None:
    """End what an interrupt left, whose frames are held: no thread in native code may meet the end of Python."""
    for work in list(_unended):
        work.end()


class _Slot(Generic[T]):
    """The place of a task in the order."""

    def __init__(self) -> None:
        self.done = False
        self.result: list[T] = []
        self.error: BaseException | None = None


class _Work(Generic[T]):
    """Tasks that were asked for and whose results were not taken yet."""

    def __init__(self, tasks: Iterator[Callable[[], T]], room: int) -> None:
        self._tasks, self._room = tasks, room
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._slots: deque[_Slot[T]] = deque()
        self._asking = False  # a thread is in the iterator, where one at a time may be
        self._over = False  # there is nothing more to ask for

    def next(self) -> _Slot[T] | None:
        """The first result that was not taken, or None after the last one. Helps while there is none."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._first_is_done or self._may_ask or (self._over and not self._slots))
                if self._first_is_done:
                    self._changed.notify_all()
                    return self._slots.popleft()
                if not self._may_ask:
                    return None
                self._asking = True
            self._do_one()

    def help(self) -> None:
        """Do tasks until there are none."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or self._may_ask)
                if self._over:
                    return
                self._asking = True
            self._do_one()

    def start(self, helpers: int) -> None:
        """This many threads begin to help."""
        _unended.add(self)
        for _ in range(helpers):
            self._threads.append(threading.Thread(target=self.help, name="read ahead", daemon=True))
            self._threads[-1].start()

    def end(self) -> None:
        """The threads stop after what they are doing, and are waited for a little."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_PATIENCE)
        _unended.discard(self)

    @property
    def _first_is_done(self) -> bool:
        return bool(self._slots) and self._slots[0].done

    @property
    def _may_ask(self) -> bool:
        return not self._asking and not self._over and len(self._slots) < self._room

    def _do_one(self) -> None:
        slot, task = _Slot[T](), None
        try:
            task = next(self._tasks)
        except StopIteration:
            pass
        except BaseException as error:
            slot.error = error
        with self._changed:
            self._asking = False
            self._over = self._over or task is None
            if task is not None or slot.error is not None:
                self._slots.append(slot)
            slot.done = slot.error is not None
            self._changed.notify_all()
        if task is None:
            return
        try:
            slot.result.append(task())
        except BaseException as error:
            slot.error = error
        with self._changed:
            slot.done = True
            self._changed.notify_all()
