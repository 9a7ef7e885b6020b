"""A service that runs: its streams, and the threads that serve them.

One thread is the clock, which ends ticks. Every stream has two of its own: a writer (`Lane`), which puts events on
disk in groups, and a worker, which feeds its mechanism and publishes. None of them waits for HTTP, and a tick that
takes long to publish does not move the end of the next one. A stream in trouble, on a disk or at a ledger that makes
it wait, holds up nobody else.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from logging import ERROR, INFO, WARNING
from pathlib import Path
from typing import Any

from discreet.errors import OldStateError, TakenOverError
from discreet.privacy.ledger import Ledger
from discreet.service.access import Shares, Tokens
from discreet.service.definitions import Configuration, StreamDefinition
from discreet.service.folder import FolderLock
from discreet.service.forecast import possible
from discreet.service.journal import Journal, tell
from discreet.service.pan_stream import PanStream
from discreet.service.problems import ProblemError, stopping
from discreet.service.shapes import StatusModel, StreamStatusModel
from discreet.service.store import Store
from discreet.service.streams import Arrival, LiveStream, SpooledStream, Surroundings, disk_full
from discreet.service.survey_stream import SurveyStream
from discreet.watch.timetable import moment

_LOOK_SECONDS = 0.1  # how far the end of a tick may be from the clock's
_AGAIN_SECONDS = 1.0
_AS_THEY_ARE = (
    "name", "queue_lag", "spool_bytes", "spool_events", "spool_damaged", "accepted", "ticks_missed", "trouble"
)  # fmt: skip

Done = Callable[[Arrival, Exception | None], None]

_KINDS: dict[str, Callable[[str, StreamDefinition, Surroundings], LiveStream]]
_KINDS = {"curator": SpooledStream, "pan": PanStream, "parties": SurveyStream}


def place_of(error: BaseException) -> str:
    """Kind and place of an error: its message might hold items."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return type(error).__name__ + "".join(f" at {os.path.basename(at.filename)}:{at.lineno}" for at in last)


class Lane:
    """What waits for the disk of one stream. Another stream's disk, ledger or crowd is not in its way."""

    def __init__(self) -> None:
        self._queue: list[tuple[Arrival, Done]] = []
        self._there = threading.Condition()
        self._stops = False

    def submit(self, arrival: Arrival, done: Done) -> None:
        """Put it on disk with others; `done` is told then."""
        with self._there:
            if self._stops:
                raise stopping()
            self._queue.append((arrival, done))
            self._there.notify()

    def stop(self) -> None:
        """Take nothing more; what was taken is written."""
        with self._there:
            self._stops = True
            self._there.notify_all()

    def groups(self) -> Iterator[list[tuple[Arrival, Done]]]:
        """All that is there, again and again: until it is stopped and nothing is left."""
        while True:
            with self._there:
                self._there.wait_for(lambda: self._queue or self._stops)
                group, self._queue = self._queue, []
            if not group:
                return
            yield group


class Service:
    """Everything behind the HTTP. One process at a time has a folder."""

    def __init__(
        self,
        configuration: Configuration,
        folder: Path,
        clock: Callable[[], float] = time.time,
        ledger: Path | str | None = None,
        take_over: bool = False,
    ) -> None:
        self.configuration = configuration
        self.folder = folder
        self.clock = clock
        self.begun = time.monotonic()
        self.published: list[Callable[[str], None]] = []  # who wants to know that a tick is out
        self.call: Callable[[Callable[[], None]], Any] = lambda run: run()  # where those who wait for either are told
        # NOT PRIVATE: for admins. With a pan stream nobody knows it: a request is somebody who was there.
        is_pan = any(definition.trust == "pan" for definition in configuration.streams.values())
        self.requests: int | None = None if is_pan else 0
        self.shares = Shares(configuration.limits.waiting_bytes)
        for name, definition in configuration.streams.items():
            possible(name, definition)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.why_lost = ""
        self.lost = False  # whether another process may have the folder: nothing is acknowledged any more
        self.when_lost: Callable[[], Any] = lambda: None  # called then, by any thread
        self.journal = Journal()
        kept_in = Ledger(ledger or configuration.ledger or folder / "ledger.sqlite")
        self._lock = FolderLock(folder, take_over)
        self.store = Store(folder)
        if take_over:
            self.store.take_over(kept_in)
        self.tokens = Tokens(self.store)
        around = Surroundings(folder, self.store, kept_in, configuration.limits, clock, self._tell_published)
        self.streams: dict[str, LiveStream] = {}
        try:
            for name, definition in configuration.streams.items():
                self.streams[name] = _KINDS[definition.trust](name, definition, around)
            for check in (LiveStream.check_account, LiveStream.open):  # all of them, before any is charged
                for stream in self.streams.values():
                    check(stream)
        except BaseException:
            self._release()
            raise
        self._lanes = {name: Lane() for name in self.streams}
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def _tell_published(self, name: str) -> None:
        for listener in self.published:
            self._tell(partial(listener, name))

    def _tell(self, run: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the server is gone, and with it anyone who waited
            self.call(run)

    # ---- threads ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to publish."""
        for name in sorted(set(self.store.streams()) - set(self.streams)):
            sentence = "stream {stream} began here and is not in the file: its events and its state stay in the folder"
            tell(WARNING, "left", sentence, stream=name)
        for name, stream in self.streams.items():
            self.journal.begin(stream)
            for said in stream.warnings:
                tell(WARNING, "warning", "stream {stream}: {warning}", stream=name, warning=said)
        self.start_writer()
        self._start("clock", self._end_ticks)
        for name, stream in self.streams.items():
            self._start(f"work {name}", partial(self._work, stream))
            if stream.definition.source is not None:
                from discreet.service.queue_feed import QueueFeed

                feed = QueueFeed(self, stream, stream.definition.source)
                self._start(f"queue {name}", partial(feed.run, self._stopping))

    def start_writer(self) -> None:
        """Begin to take events, and publish nothing yet."""
        for name, stream in self.streams.items():
            self._start(f"write {name}", partial(self._write, stream))

    def _start(self, name: str, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, name=f"discreet {name}", daemon=True)
        thread.start()
        self._threads.append(thread)

    def stop(self) -> None:
        """Put on disk what was taken, finish the tick at hand, and let go of the folder."""
        self._stopping.set()
        for lane in self._lanes.values():
            lane.stop()
        for thread in self._threads:
            thread.join()
        self.journal.say(self.streams.values())
        self.rest(last=True)
        self._release()

    def _release(self) -> None:
        for stream in self.streams.values():
            stream.close()
        self.store.close()
        self._lock.close()

    def _has_folder(self) -> bool:
        """Whether the folder is still ours alone. If not, the service stops: what it takes might not be counted."""
        if not self.lost and not self._lock.is_held:
            self._lose(
                f"the folder {str(self.folder)!r} was moved or replaced, or its file 'lock' was deleted: another "
                "service may be using it, and this one stops"
            )
        return not self.lost

    def _lose(self, why: str) -> None:
        self.lost, self.why_lost = True, why
        tell(ERROR, "lost", "{why}", why=why)
        self._stopping.set()
        self.when_lost()

    def _end_ticks(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS) and self._has_folder():
            now = self.clock()
            for stream in self.streams.values():
                # Anyone who holds it ends the tick itself, or waits for a disk: the clock does not wait with them.
                if stream.lock.acquire(blocking=False):
                    try:
                        stream.seal(now)
                        self.rest(stream)
                    finally:
                        stream.lock.release()
            self.journal.look(self.streams.values())

    def rest(self, *streams: LiveStream, last: bool = False) -> None:
        """What these streams, or all, do by the clock, whether anything comes or not."""
        for stream in streams or self.streams.values():
            if self._has_folder():
                stream.rest(last)

    def _work(self, stream: LiveStream) -> None:
        while not self._stopping.is_set():
            if not (self._has_folder() and self._try(stream)):
                self._stopping.wait(_LOOK_SECONDS)

    def _try(self, stream: LiveStream) -> bool:
        """One piece of work; trouble is tried again, and the draw that was made is kept for it."""
        try:
            did = stream.work()
        except (OldStateError, TakenOverError):
            if not self.lost:
                self._lose(
                    f"another process took over stream {stream.name!r}, or has published more of it: this one stops"
                )
            return False
        except Exception as error:  # whatever it is, it goes on
            what = place_of(error)
            if stream.trouble != what:
                sentence = "stream {stream} cannot publish: {trouble}; trying again"
                tell(ERROR, "trouble", sentence, stream=stream.name, trouble=what)
            stream.trouble = what
            self._stopping.wait(_AGAIN_SECONDS)
            return False
        if did and stream.trouble is not None:
            tell(INFO, "publishes", "stream {stream} publishes again", stream=stream.name)
        if did:
            stream.trouble = None
        return did

    # ---- events in --------------------------------------------------------------------------------------------------

    def submit(self, stream: LiveStream, arrival: Arrival, done: Done) -> None:
        """Put it on disk with others; `done` is called then, by way of `call`. ProblemError if it is too late."""
        if self.lost:
            raise stopping()
        self._lanes[stream.name].submit(arrival, done)

    def take(self, stream: LiveStream, arrival: Arrival) -> None:
        """Put it on disk now. ProblemError if that cannot be done."""
        error = self._commit(stream, [arrival]) or arrival.error
        if error is not None:
            raise error

    def _write(self, stream: LiveStream) -> None:
        def tell_all(group: list[tuple[Arrival, Done]], error: Exception | None) -> None:
            for arrival, done in group:
                done(arrival, arrival.error or error)

        for group in self._lanes[stream.name].groups():
            self._tell(partial(tell_all, group, self._commit(stream, [arrival for arrival, _ in group])))

    def _commit(self, stream: LiveStream, arrivals: list[Arrival]) -> Exception | None:
        if not self._has_folder():
            return stopping()
        try:
            stream.commit(arrivals)
            if not self._has_folder():  # see folder
                return stopping()
        except ProblemError as problem:
            return problem
        except OSError:
            return disk_full()
        except Exception as error:
            sentence = "stream {stream} cannot write: {trouble}"
            tell(ERROR, "trouble", sentence, stream=stream.name, trouble=place_of(error))
            return ProblemError(500, "Internal error")
        if stream.accepted is not None:
            stream.accepted += sum(arrival.accepted for arrival in arrivals)
        return None

    def refused(self, name: str, reason: str) -> None:
        """Count a refusal, for admins."""
        stream = self.streams.get(name)
        if stream is not None:
            self.journal.refused(stream, reason)
            if stream.refused is not None:
                stream.refused[reason] += 1

    # ---- for operators ----------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether everything that is due is out, nearly."""
        return not self.lost and all(s.trouble is None and not s.is_late for s in self.streams.values())

    def status(self) -> StatusModel:
        """NOT PRIVATE: true counts, for admins."""
        return StatusModel(
            uptime_seconds=round(time.monotonic() - self.begun, 3),
            requests=self.requests,
            waiting_bytes=self.shares.used,
            streams=[
                StreamStatusModel(
                    lag_seconds=round(stream.lag_seconds, 3),
                    refused=None if stream.refused is None else dict(sorted(stream.refused.items())),
                    ticks_published=stream.tick,
                    **{name: getattr(stream, name) for name in _AS_THEY_ARE},
                )
                for stream in self.streams.values()
            ],
        )


def status_of(data: Path, ledger_file: Path | str | None = None) -> list[dict[str, Any]]:
    """Every stream that began in a folder. NOT PRIVATE: it has the sizes of spools."""
    ledger = Ledger(data / "ledger.sqlite" if ledger_file is None else ledger_file)
    found = []
    with closing(Store(data)) as store:
        for name, kept in sorted(store.streams().items()):
            fixed, runs = kept.definition, 1 + len(kept.grants)
            ends = kept.edges[-1] if "per" in fixed else kept.begins + fixed["horizon"] * runs
            account = ledger.account(fixed.get("account", name))
            found.append(
                {
                    "name": name,
                    "kind": fixed["kind"],
                    "ticks_published": kept.tick,
                    "ticks": None if "per" in fixed else fixed["horizon"] // fixed["tick"] * runs,
                    "begins": moment(kept.begins),
                    "ends": moment(ends),
                    "account": account.name,
                    "spent": str(account.spent()),
                    "granted": str(account.granted),
                    "digest": kept.digest,
                    "spool_bytes": _bytes_in(data / "streams" / name / "spool"),
                }
            )
    return found


def _bytes_in(spool: Path) -> int:
    """What its files hold; the service may be removing some of them just now."""
    sizes = 0
    with suppress(FileNotFoundError), os.scandir(spool) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                sizes += entry.stat().st_size
    return sizes
