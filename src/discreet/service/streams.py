"""One stream: which tick events fall into, when ticks are published, and what is on disk at every moment.

docs/service.md, "How it survives", has the order of everything here and why it is that order.
"""

from __future__ import annotations

import abc
import json
import math
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet._data_class import dataclass, field
from discreet.errors import DiscreetError, LedgerError, ParameterError
from discreet.privacy import Budget, Guarantee
from discreet.privacy.ledger import Account, Ledger
from discreet.service.definitions import ServiceLimits, StreamDefinition, differences
from discreet.service.event_spool import EventSpool, Record, packed
from discreet.service.folder import make_folder, write_file
from discreet.service.problems import ProblemError, gone, too_busy
from discreet.service.runs import CONFIDENCE, Curated, warnings_of
from discreet.service.shapes import ReleaseModel
from discreet.service.store import Kept, Store
from discreet.watch.timetable import RunSpan, Timetable, moment

if TYPE_CHECKING:
    import pyarrow as pa

_FEED_BYTES = 8 * 2**20  # so much waits in the spool before the mechanism takes it
_ROOM_SHARE = 0.25  # of the limit of a spool: how far it may be missed
_RANDOM = random.SystemRandom()


def text_of(release: dict[str, Any]) -> str:
    """A release as the store has it."""
    return json.dumps(release, ensure_ascii=False, separators=(",", ":"))


OFFSET_KEY = b"offset:"  # how keys begin that say how far a queue was read; those of requests are digests


@dataclass
class Arrival:
    """What one request brought, on its way to the disk."""

    rows: int  # that count
    data: Any  # as the stream prepared it
    taken: int  # as the request is told
    key: bytes | None = None
    digest: bytes | None = None
    accepted: int = 0  # filled in when it is on disk
    error: Exception | None = None  # filled in if it is refused and others of its group are not


@dataclass
class Surroundings:
    """What all streams of a service share."""

    folder: Path
    store: Store
    ledger: Ledger
    limits: ServiceLimits
    clock: Callable[[], float]
    published: Callable[[str], None] = field(default=lambda name: None)  # called after a tick, by any thread
    accounts: dict[str, Any] = field(default_factory=dict)  # what `catalogue` looked up last


class LiveStream(abc.ABC):
    """A stream of the service. NOT private: it has the events that wait, and the mechanism's state."""

    _spool: EventSpool | None = None  # where events wait, if they do

    def __init__(self, name: str, definition: StreamDefinition, around: Surroundings) -> None:
        self.name = name
        self.definition = definition
        self.around = around
        self.folder = around.folder / "streams" / name
        make_folder(self.folder.parent)
        make_folder(self.folder)
        self.timetable: Timetable  # known from `open` on
        self.run = 1
        self.tick = 0  # published last
        self.open_tick = 1  # the one that events fall into now
        self.latest: dict[str, Any] | None = None
        self.keys: dict[bytes, tuple[bytes, int, int]] = {}  # of ticks that are not published: digest, taken, tick
        self.accepted: int | None = 0  # NOT PRIVATE, as the next: for admins
        self.refused: Counter[str] | None = Counter()
        self.queue_lag: int | None = None  # NOT PRIVATE: messages of its queue that wait to be taken
        self.trouble: str | None = None  # what keeps a tick from being published
        self.pending: dict[bytes, Any] = {}  # keys of requests on their way to the disk; for the loop of the server
        self._warned: dict[int, list[str]] = {}  # by run: it does not change
        self._missed: dict[int, bool] = {}
        self.ticks_missed = 0
        self._waiting: Counter[int] = Counter()  # rows in the spool, by tick
        self._room = (0, 0.0)  # the tick, and how many bytes may wait in it
        self.lock = threading.RLock()  # events come in, or a tick ends

    # ---- when -------------------------------------------------------------------------------------------------------

    @property
    def runs(self) -> float:
        """How many runs are to come, those before included: horizons that were announced, or days for ever."""
        return 1 + len(self.definition.following) if self.definition.per is None else math.inf

    @property
    def span(self) -> RunSpan:
        """The ticks of the present run."""
        return self.timetable.run(self.run)

    @property
    def last_tick(self) -> float:
        """Of all runs."""
        return math.inf if self.definition.per is not None else self.timetable.run(int(self.runs)).last

    @property
    def ended(self) -> bool:
        """Whether no event can come any more."""
        return self.open_tick > self.last_tick

    @property
    def open_run(self) -> int:
        """The horizon that events fall into now; `run` is that of the tick that is published next."""
        return int(min(self.timetable.of_tick(self.open_tick).number, self.runs))

    def starts(self, tick: int) -> float:
        """When a tick begins, which is when the one before it ends."""
        return self.timetable.starts(tick)

    @property
    def _late(self) -> float:
        """How long a tick stays open after its time."""
        return float(self.definition.late or 0)

    def due(self, now: float) -> int:
        """The tick that is open by the clock."""
        return self.timetable.number(now - self._late)

    def seal(self, now: float) -> None:
        """Ticks that are over take no more events. Never goes back, whatever the clock does."""
        with self.lock:
            for tick in range(self.open_tick, int(min(self.due(now), self.last_tick + 1))):
                self._missed[tick] = now - self._late - self.starts(tick + 1) >= self.definition.tick
                self.open_tick = tick + 1

    @property
    def lag_seconds(self) -> float:
        """For how long a tick that is over has been waiting to be published, or, where the clock went back, how long
        it takes until it is where it was."""
        if self.tick + 1 < self.open_tick:
            return max(0.0, self.around.clock() - self._late - self.starts(self.tick + 2))
        return 0.0 if self.ended else max(0.0, self.starts(self.open_tick) + self._late - self.around.clock())

    @property
    def is_late(self) -> bool:
        """Whether what is due is not out, or nothing can become due for long."""
        return self.lag_seconds > 10 + self.definition.tick

    @property
    def delay(self) -> str:
        """In words, why it is late."""
        if self.tick + 1 < self.open_tick:
            return f"tick {self.tick + 1} has been over for {self.lag_seconds:.0f} s and is not out"
        return f"the clock went back, and tick {self.open_tick} begins in {self.lag_seconds:.0f} s"

    # ---- the beginning ----------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Begin, or go on from what is on disk; charged before any event counts."""
        now = self.around.clock()
        kept = self.around.store.streams().get(self.name)
        if kept is None:
            now_open = now - self._late
            day = 0.0 if self.definition.days is None else self.definition.days.begin(now_open)
            tick = self.definition.tick
            self.timetable = self.definition.timetable([day + float((now_open - day) // tick * tick)])
            self._begin()
        else:
            self._check(kept, now)
            self.timetable, self.tick = self.definition.timetable(kept.edges), kept.tick
            self.run = kept.run
            self._go_on(kept)
            if self.tick:
                release = self.around.store.release(self.name, self.tick)
                assert release is not None
                self.latest = json.loads(release)
        self.open_tick = max(self.tick + 1, self._last_kept_tick())
        self.seal(now)

    def _check(self, kept: Kept, now: float) -> None:
        """That the definition is the one that was begun, and that nothing that was announced is taken back."""
        changed = differences(kept.definition, self.definition.fixed())
        if changed:
            raise ParameterError(
                f"the stream {self.name!r} has started, so its definition is fixed: {'; '.join(changed)}. For a "
                "changed definition, make a new stream with a new name"
            )
        grants = self.definition.announced()
        if grants[: len(kept.grants)] != kept.grants:
            raise ParameterError(f"the announced grants of stream {self.name!r} cannot be changed")
        if len(grants) > len(kept.grants):
            ends = kept.begins + (self.definition.horizon or 0) * (1 + len(kept.grants))
            if now > ends - self.definition.tick:
                raise ParameterError(
                    f"a further grant must be announced before the end; stream {self.name!r} ends at {moment(ends)}"
                )
        if grants != kept.grants:
            self.around.store.announce(self.name, self.definition)

    def charge_id(self, run: int) -> str:
        """Under which the ledger has a run: it holds the definition's digest."""
        period = self.period_of(run)
        return f"{self.name}-{self.definition.digest}" + ("" if run == 1 and period is None else f"-{period or run}")

    def period_of(self, run: int) -> str | None:
        """The day that a run is about, by its name in the calendar; None for a horizon."""
        days = self.definition.days
        return None if days is None else days.name(self.timetable.run(run).begins)

    @property
    def account_name(self) -> str:
        """Who pays: the people that the definition names, or an account of the stream's own."""
        return self.definition.account or self.name

    @property
    def payer(self) -> Account:
        """The account, for this holder of the stream: the ledger refuses it when another took the stream over."""
        return self.around.ledger.account(self.account_name).held_by(self.name, self.around.store.holder)

    def account(self, run: int) -> Account:
        """The account that pays. One of the stream's own is granted here, for all runs so far; others by operators."""
        ledger, name = self.around.ledger, self.account_name
        if self.definition.account is None:
            ledger.grant(name, Budget(*self.definition.spent_by(run)), unit=self.definition.privacy_unit)
        return self.payer

    def check_account(self) -> None:
        """Refuse, before anything is charged, a stream that its account cannot begin."""
        if self.name in self.around.store.streams():
            return
        if self.definition.account is not None:
            days = self.definition.days
            period = None if days is None else days.name(self.around.clock() - self._late)
            account = self.around.ledger.account(self.account_name)
            account.check(self.definition.budget_of(1), unit=self.definition.privacy_unit, period=period)
        elif self._is_anothers():
            raise LedgerError(
                f"{self.around.ledger!r} has an account {self.name!r} already, and the stream of that name would make "
                f'its own. If it is about the same people, set account = "{self.name}"; otherwise rename the stream'
            )

    def _is_anothers(self) -> bool:
        """Whether somebody else uses the account of the stream's name: granted otherwise, or charged."""
        with suppress(LedgerError):
            account = self.around.ledger.account(self.name)
            mine = f"{self.name}-{self.definition.digest}"
            charges = [str(event.charge_id) for event in account.history() if event.kind == "charge"]
            return not all(one.startswith(mine) for one in charges) or account.granted != self.definition.budget_of(1)
        return False

    def known_account(self) -> Account:
        """The account of a stream that has begun; LedgerError for a ledger that is not the one it was begun with."""
        account = None
        with suppress(LedgerError):
            account = self.payer
        run = self.timetable.of_tick(max(self.tick, 1)).number  # of the latest tick: what follows may not be charged
        if account is None or (self.tick and not account.is_begun(self.charge_id(run))):
            raise LedgerError(
                f"stream {self.name!r} was started with another ledger; {self.around.ledger!r} does not know it. "
                "Give the original one: under another, noise would be drawn again"
            )
        account.check_held()
        return account

    # ---- a tick -----------------------------------------------------------------------------------------------------

    def release_of(self, tick: int, numbers: dict[str, Any]) -> dict[str, Any]:
        """What is published for a tick."""
        period = self.period_of(self.run)
        of_day: dict[str, Any] = {} if period is None else {"period": period, "final": tick == self.span.last}
        return ReleaseModel(
            stream=self.name,
            tick=tick,
            begins=moment(self.starts(tick)),
            ends=moment(self.starts(tick + 1)),
            missed=self._missed.get(tick, False),
            confidence=CONFIDENCE,
            run=self.run,
            **of_day,
            **numbers,
        ).plain()

    def keys_of(self, tick: int) -> list[tuple[bytes, bytes, int, float]]:
        """The keys of a tick's requests, for the store; those that are offsets of a queue are kept for ever."""
        until = self.around.clock() + 3600 * self.around.limits.key_hours
        return [
            (key, digest, rows, math.inf if key.startswith(OFFSET_KEY) else until)
            for key, (digest, rows, of) in list(self.keys.items())
            if of == tick
        ]

    def _is_out(self, release: dict[str, Any]) -> None:
        """A tick is published: anyone who watches sees it."""
        tick = release["tick"]
        self.latest, self.tick = release, tick
        self.ticks_missed += self._missed.pop(tick, False)
        for key in [key for key, (_, _, of) in list(self.keys.items()) if of <= tick]:
            del self.keys[key]
        self.around.published(self.name)

    # ---- what comes -------------------------------------------------------------------------------------------------

    def admit(self) -> None:
        """Refuse events that could not be taken."""
        if self.ended:
            raise gone()
        if self.spool_bytes > self._most_waiting():
            raise too_busy(min(self.definition.tick, 60))

    def _most_waiting(self) -> float:
        """Bytes in the spool from which on it takes no more: at least three quarters of the limit, at random.

        Else anyone could fill it up and know to the byte how much others sent. One draw, uniform over a width w, for
        each tick: if somebody else sends b bytes less, the same answers come from a draw that is b lower, so that they
        differ with probability b / w at most (docs/privacy/service.md).
        """
        tick, most = self._room
        if tick != self.open_tick:
            limit = self.around.limits.spool_bytes
            tick, most = self._room = self.open_tick, limit - _RANDOM.random() * _ROOM_SHARE * limit
        return most

    def check_space(self) -> None:
        """Refuse events where they would take the room that ticks need."""
        disk = os.statvfs(self.folder)
        if disk.f_bavail * disk.f_frsize < self.around.limits.free_bytes:
            raise disk_full()

    def before(self, key: bytes, digest: bytes) -> int | None:
        """How many rows a request with this key brought before; None if it is new."""
        known = self.keys.get(key)
        found = None if known is None else (known[0], known[1])
        found = found or self.around.store.key(self.name, key)
        if found is None:
            return None
        if found[0] != digest:
            raise ProblemError(422, "This Idempotency-Key was used for another body")
        return found[1]

    @abc.abstractmethod
    def _begin(self) -> None:
        """A new stream: its first state on disk, then its charge."""

    @abc.abstractmethod
    def _go_on(self, kept: Kept) -> None:
        """Take up what is on disk."""

    @abc.abstractmethod
    def _last_kept_tick(self) -> int:
        """The latest tick that has events on disk."""

    @property
    @abc.abstractmethod
    def guarantee(self) -> Guarantee:
        """Of the present run."""

    @property
    @abc.abstractmethod
    def publisher(self) -> Any:
        """What publishes in the present run. NOT private."""

    @property
    def warnings(self) -> list[str]:
        """What anyone who reads the present run should know."""
        run, known = self.run, self._warned
        if run not in known:
            self._warned = known = {run: warnings_of(self.definition, run, self.publisher)}
        return known[run]

    @abc.abstractmethod
    def prepared(self, columns: pa.RecordBatch | None) -> tuple[Any, int]:
        """Columns as `commit` takes them, and their size in bytes. Called by any thread."""

    @abc.abstractmethod
    def commit(self, arrivals: Sequence[Arrival]) -> None:
        """Have all of them on disk; ProblemError or OSError, and then none of them is."""

    def rest(self, last: bool) -> None:  # noqa: B027 (most have nothing to do)
        """What is done by the clock, whether anything comes or not; `last` at the end of the process."""

    @abc.abstractmethod
    def work(self) -> bool:
        """Publish a tick that is due, or take some of the events that wait; False if there is nothing to do."""

    @property
    def spool_bytes(self) -> int:
        """NOT PRIVATE: for admins."""
        return 0 if self._spool is None else self._spool.total_bytes

    @property
    def spool_events(self) -> int:
        """NOT PRIVATE: for admins."""
        return sum(list(self._waiting.values()))

    @property
    def spool_damaged(self) -> int:
        """Places of the spool that did not have their sum, since the process began: what was there does not count."""
        return 0 if self._spool is None else self._spool.damaged

    @abc.abstractmethod
    def close(self) -> None:
        """The end of the process."""


def disk_full() -> ProblemError:
    """Nothing could be written."""
    return ProblemError(
        507, "The disk is full", "Nothing of this request was taken; send it again later.", retry_after=30
    )


class SpooledStream(LiveStream):
    """A stream of a curator, whose events wait on disk for their tick. Surveys are a kind of it."""

    _spool: EventSpool

    def __init__(self, name: str, definition: StreamDefinition, around: Surroundings) -> None:
        super().__init__(name, definition, around)
        self._spool = EventSpool(self.folder / "spool")
        self._fed: Counter[int] = Counter()  # bytes of the spool that the mechanism has, by tick
        self._fed_keys: set[bytes] = set()
        self._is_torn = False  # whether the mechanism may have some of the events after that
        self._file = ""  # the state that counts
        self._stored = 0  # the tick that the store has, though the ledger may not
        self.present: Any = None  # the run that is under way

    @property
    def guarantee(self) -> Guarantee:
        made: Guarantee = self.present.guarantee
        return made

    @property
    def publisher(self) -> Any:
        return self.present.mechanism

    # ---- states -----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        account = self.account(1)
        self.present = self._run_of(1, account)
        self.around.store.begin(self.name, self.definition, self._save(1, 0), self.span)
        # The state is on disk before the charge: anyone who restarts has the token that the charge is tied to.
        self.present.begin()

    def _go_on(self, kept: Kept) -> None:
        if self.tick == self.last_tick and not (self.folder / kept.file).exists():
            self._forget()
            return
        try:
            data = (self.folder / kept.file).read_bytes()
        except OSError as error:
            raise DiscreetError(f"the state of stream {self.name!r} cannot be read: {error.strerror}") from None
        self.present = self._run_of(self.run, self.known_account(), data)
        self.present.begin()
        self._file, self._stored = kept.file, self.tick
        self._counts_now()
        self._remove_states(kept.file)
        self._remove_spools(self.tick)
        for tick in self._spool.ticks():
            for record, _ in self._spool.read(tick, 0):
                if record is not None:
                    self._note(record, tick)
        if self.tick == self.last_tick:  # it died between the last tick and what comes after it
            self.present.settle()
            self._forget()

    def _run_of(self, run: int, account: Account | None, data: bytes | None = None) -> Any:
        """A run of the stream: new, or as it was saved."""
        charge_id = None if account is None else self.charge_id(run)
        return Curated.of(self.definition, run, account, charge_id, data, self.timetable.run(run))

    def _counts_now(self) -> None:
        """`present` is what counts from now on: as it was left, after a tick, or of a new run."""

    def _note(self, record: Record, tick: int) -> None:
        """What is known of a record that waits."""
        self._waiting[tick] += record.rows
        if record.key is not None and record.digest is not None:
            self.keys[record.key] = (record.digest, record.taken, tick)

    def _save(self, run: int, tick: int) -> str:
        """The state into a file of its own; the store says which file counts."""
        holder = self.around.store.holder  # a process that was taken over may still write under its own name
        self._file = f"{run}-{tick}{'' if holder is None else f'-{holder}'}.state"
        write_file(self.folder / self._file, self.present.to_bytes())
        return self._file

    def _remove_states(self, but: str) -> None:
        for path in self.folder.iterdir():
            if path.name.endswith((".state", ".new")) and path.name != but:
                path.unlink(missing_ok=True)

    def _remove_spools(self, tick: int) -> None:
        """What was there for ticks up to this one; the last of a day may have events of the next."""
        carried = self.definition.time is not None and tick == self.timetable.of_tick(max(tick, 1)).last
        self._spool.remove_until(tick - carried)

    def _last_kept_tick(self) -> int:
        return max(self._spool.ticks(), default=0)

    # ---- what comes -------------------------------------------------------------------------------------------------

    def prepared(self, columns: pa.RecordBatch | None) -> tuple[bytes | None, int]:
        data = None if columns is None else columns.serialize().to_pybytes()
        return data, 64 + len(data or b"")

    def commit(self, arrivals: Sequence[Arrival]) -> None:
        self.check_space()
        with self.lock:  # a tick does not end between the choice of its file and the bytes in it
            self.seal(self.around.clock())
            if self.ended:
                raise gone()
            tick = self.open_tick
            taken = [(arrival, record) for arrival in arrivals if (record := self._record(arrival)) is not None]
            try:
                self._spool.append(tick, [packed(record) for _, record in taken])
            except OSError:
                for _, record in taken:
                    self._not_kept(record)
                raise
            for arrival, record in taken:
                arrival.accepted = record.taken
                self._note(record, tick)

    def _record(self, arrival: Arrival) -> Record | None:
        """What is kept of a request; None if there is nothing new in it, or it is refused (`arrival.error`)."""
        return Record(arrival.rows, arrival.data, arrival.key, arrival.digest, arrival.taken)

    def _not_kept(self, record: Record) -> None:
        """A record could not be written."""

    # ---- ticks ------------------------------------------------------------------------------------------------------

    def work(self) -> bool:
        if self.tick >= self.last_tick:
            return False
        if self.tick == self.span.last:
            self._follow()
        tick = self.tick + 1
        if tick < self.open_tick:
            self._feed(tick)
            self._publish(tick)
            return True
        if self._spool.size(tick) - self._fed[tick] >= _FEED_BYTES:
            self._feed(tick)
            return True
        return False

    def _feed(self, tick: int) -> None:
        """Give the mechanism what the spool has of the tick that is published next, and with the first tick of a day
        what came for it while the day before was open."""
        if self._is_torn:
            self._take_back()
        if self.definition.time is not None and tick == self.span.first > 1:
            self._feed_from(tick - 1)
        self._feed_from(tick)

    def _feed_from(self, tick: int) -> None:
        """Reading may fail at any record (memory, the disk) and is tried again from the place up to which the mechanism
        has everything: place and keys go on together, once the mechanism has taken what is before them.
        """
        records: list[Record] = []
        held, fed = 0, self._fed[tick]
        keys: set[bytes] = set()
        for record, after in self._spool.read(tick, fed):
            fed = after
            if record is None or record.key in keys or record.key in self._fed_keys:
                continue
            records.append(record)
            held += len(record.data or b"")
            if record.key is not None:
                keys.add(record.key)
            if held >= 4 * _FEED_BYTES:
                self._give(records, tick, fed, keys)
                records, held, keys = [], 0, set()
        self._give(records, tick, fed, keys)

    def _give(self, records: Sequence[Record], tick: int, fed: int, keys: set[bytes]) -> None:
        """These records up to this byte of the spool. If that fails, the mechanism may have some of them."""
        if fed > self._fed[tick]:
            self._is_torn = True
            self.present.add(records)
            self._fed_keys |= keys
            self._fed[tick], self._is_torn = fed, False

    def _take_back(self) -> None:
        """The mechanism as it was after the tick before, from the disk: what the spool has is given anew."""
        data = (self.folder / self._file).read_bytes()
        self.present = self._run_of(self.run, self.known_account(), data)
        self.present.begin()
        self._fed, self._fed_keys, self._is_torn = Counter(), set(), False

    def _publish(self, tick: int) -> None:
        """Draw a tick once, and have its release, the state after it and its keys on disk at once."""
        release: dict[str, Any] = {}

        def keep(numbers: dict[str, Any]) -> None:
            release.update(self.release_of(tick, numbers))
            if self._stored < tick:  # else only the ledger did not have it
                file = self._save(self.run, tick)
                keys, now = self.keys_of(tick), self.around.clock()
                self.around.store.publish(self.name, tick, text_of(release), file, keys, now)
                self._stored = tick

        try:
            self.present.step(keep)
        except DiscreetError:  # the ledger's, before or after the draw
            raise
        except BaseException:
            self._is_torn = not release  # a draw that did not come to its end, which nobody saw
            raise
        self._fed, self._fed_keys = Counter(), set()
        self._waiting.pop(tick, None)
        self._counts_now()
        self._is_out(release)
        self._remove_spools(tick)
        if tick == self.last_tick:
            self._forget()
        else:
            self._remove_states(self._file)

    def _forget(self) -> None:
        """The last tick is out: who was counted is not needed any more, in memory or on disk."""
        self.present = self._run_of(self.run, None)
        self._remove_states("")

    def _follow(self) -> None:
        """The next grant, or the next day: a new mechanism, saved before it is charged. The one before is forgotten."""
        run = self.run + 1
        self.present = self._run_of(run, self.account(run))
        file = self._save(run, self.tick)
        self.around.store.next_run(self.name, self.timetable.run(run), file)
        self.run = run
        self._remove_states(file)
        self._counts_now()
        self.present.begin()

    def close(self) -> None:
        self._spool.close()
