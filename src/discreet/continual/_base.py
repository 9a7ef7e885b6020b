"""What every continual release shares: ticks, the one charge for all of them, the latest release, and states.

A state is a JSON header and integer arrays inside the envelope that all states share.
"""

from __future__ import annotations

import abc
import copy
import hashlib
import json
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np

from discreet._data_class import asdict, replace
from discreet.continual._factors import MAX_HORIZON
from discreet.errors import CorruptStateError, DiscreetError, LedgerError, OldStateError, ParameterError
from discreet.events.items import Item
from discreet.noise import RandomSource, system_source
from discreet.noise.source import Integers
from discreet.privacy import Budget, Event, Guarantee, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import numbered, whole_number, whole_or_none
from discreet.privacy.spans import Calendar
from discreet.privacy.steps import Steps
from discreet.releases.over_time import Increase, OverTime, Term
from discreet.releases.payment import Bill, begin, check_payer
from discreet.releases.release import Release
from discreet.storage import open_state, seal_state

if TYPE_CHECKING:
    from typing_extensions import Self

    from discreet.privacy.calibration.tick_noise import TickNoise
    from discreet.privacy.ledger import Account, Step


T = TypeVar("T")

MOST_REMEMBERED = 10_000
_VERSION = 1  # of all states
_AT_ONCE = 1 << 12
_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class State(NamedTuple):
    """What a state holds. Not private."""

    header: dict[str, Any]
    arrays: dict[str, Integers]
    blobs: dict[str, bytes]


def save_state(family: int, state: State) -> bytes:
    """One state as bytes. Not private."""
    described = {
        "header": state.header,
        "arrays": {name: list(array.shape) for name, array in state.arrays.items()},
        "blobs": {name: len(blob) for name, blob in state.blobs.items()},
    }
    text = as_json(described).encode()
    arrays = (np.ascontiguousarray(array, "<i8") for array in state.arrays.values())
    return seal_state(family, _VERSION, struct.pack("<Q", len(text)), text, *arrays, *state.blobs.values())


def as_json(value: Any) -> str:
    """The same as `json.dumps`, a few thousand items of a list at a time: other threads may run in between.

    A service answers while it saves a state with a million items, and one call of `json` would keep it from that.
    """
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return "{" + ",".join(f"{_JSON.encode(key)}:{as_json(each)}" for key, each in value.items()) + "}"
    if not isinstance(value, list) or len(value) <= _AT_ONCE:
        return _JSON.encode(value)
    parts = (_JSON.encode(value[start : start + _AT_ONCE])[1:-1] for start in range(0, len(value), _AT_ONCE))
    return "[" + ",".join(parts) + "]"


def load_state(data: bytes, family: int) -> State:
    """The parts of a state; `CorruptStateError` for anything else. Sizes are checked before anything is made."""
    _, payload = open_state(data, family, _VERSION)
    try:
        (length,) = struct.unpack_from("<Q", payload)
        described = json.loads(payload[8 : 8 + length])
        position = 8 + length
        arrays, blobs = {}, {}
        for name, shape in described["arrays"].items():
            size = 8
            for extent in shape:
                if not isinstance(extent, int) or extent < 0:
                    raise ValueError
                size *= extent
            if position + size > len(payload):
                raise ValueError
            piece = np.frombuffer(payload, "<i8", size // 8, position)
            arrays[name] = piece.reshape(shape).astype(np.int64)
            position += size
        for name, size in described["blobs"].items():
            if not isinstance(size, int) or size < 0 or position + size > len(payload):
                raise ValueError
            blobs[name] = payload[position : position + size]
            position += size
        if position != len(payload) or not isinstance(described["header"], dict):
            raise ValueError
        return State(described["header"], arrays, blobs)
    except DiscreetError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, struct.error, RecursionError):
        # Without the cause: it may quote what the state holds.
        raise CorruptStateError("the state is damaged inside its envelope") from None


def under(part: str, named: Mapping[str, T]) -> dict[str, T]:
    """Arrays or blobs under the name of a part of a state."""
    return {f"{part}.{name}": each for name, each in named.items()}


def part_of(part: str, named: Mapping[str, T]) -> dict[str, T]:
    """The inverse, which leaves out those of other parts."""
    return {name.removeprefix(f"{part}."): each for name, each in named.items() if name.startswith(f"{part}.")}


def plain_items(items: Iterable[Item]) -> tuple[str, list[Any]]:
    """Items as JSON: their kind ("bytes", "other", or "mixed" if some are bytes), and they (bytes as hexadecimal)."""
    values = list(items)
    coded = [isinstance(item, bytes) for item in values]
    plain = [item.hex() if isinstance(item, bytes) else item for item in values]
    if any(coded) and not all(coded):
        return "mixed", [[is_bytes, value] for is_bytes, value in zip(coded, plain, strict=True)]
    return "bytes" if any(coded) else "other", plain


def items_of_plain(kind: str, items: list[Any]) -> list[Item]:
    """The inverse of `plain_items`."""
    if kind == "mixed":
        return [bytes.fromhex(value) if is_bytes else value for is_bytes, value in items]
    return [bytes.fromhex(value) for value in items] if kind == "bytes" else items


class Continual(abc.ABC):
    """A release at every tick of a horizon, paid for once.

    Privacy over all ticks together: everything published from the first tick to the last differs little, in law,
    between two streams, one with one event more, or all rows of one person where `unit` is that.
    """

    family: ClassVar[int]  # of its states
    _arguments: ClassVar[tuple[str, ...]]  # of the constructor, which a state has
    _optional: ClassVar[tuple[str, ...]] = ("remember",)  # and those that it has where they were given
    _rises: bool = False  # whether true counts never fall
    unit: Unit = Event()
    mechanism_name: ClassVar[str]
    reference: ClassVar[str]

    def __init__(
        self,
        horizon: int | None,
        budget: Budget,
        ledger: Account | None,
        charge_id: str | None,
        source: RandomSource | None,
        remember: int = 0,
    ) -> None:
        if ledger is not None:
            check_payer(ledger, charge_id, source)
        self.remember = whole_number("remember", remember, 0, MOST_REMEMBERED)
        self._past: dict[int, Any] = {}  # what was published at ticks before, by tick
        self._run_number = 1
        self.horizon = whole_or_none("horizon", horizon, 1, MAX_HORIZON)
        self.budget = as_budget(budget)
        self.tick = 0
        self._ledger = ledger
        self._charge_id = str(uuid.uuid4()) if charge_id is None else charge_id
        self._charge_is_named = charge_id is not None
        self._token = uuid.uuid4().hex
        self._steps = Steps.under(ledger, self._charge_id)
        self._unpublished = False  # whether the latest tick was drawn and the ledger does not know it yet
        self._paid = False
        # Whether the ledger that is given now was asked. A state that it paid for costs nothing; one that was begun
        # without a ledger is charged.
        self._charged = False
        self._period: str | None = None  # the span of the calendar that all rows are of
        self._source = system_source() if source is None else source
        self._seeded = self._source.seeded
        self._run_of_last = self.run_name  # which run drew the latest tick; "" for one before, which paid for itself
        self.assumptions: tuple[str, ...] = ()  # what the guarantee rests on beside the mathematics

    def limit_to(self, spans: Calendar, period: str) -> None:
        """Say that all rows will be of one span, such as a day, by its name; before anything is charged.

        Anyone who gives rows keeps that promise. Then what a person does in that span is hidden, and the charge is
        about this span alone (docs/privacy/continual.md, "A run a day").
        """
        assert isinstance(self.unit, (Event, User))
        self.unit = replace(self.unit, per=spans.text, zone=spans.zone)
        self._spans, self._period = spans, spans.named(period)

    @property
    def guarantee(self) -> Guarantee:
        """The promise of all ticks together."""
        assumptions = ("holds for the releases of all ticks together", *self.assumptions)
        return Guarantee.of(
            self.budget, self.unit, self.mechanism_name, self.reference,
            assumptions=assumptions, trust="continual", seeded=self._seeded,
        )  # fmt: skip

    @property
    def charge_id(self) -> str:
        """The id under which the whole horizon is charged."""
        return self._charge_id

    @property
    def run_name(self) -> str:
        """What tells the releases of this run from those of others: noise is shared inside of a run alone. Public."""
        made_by = "seeded" if self._seeded else hashlib.sha256(self._token.encode()).hexdigest()[:16]
        return f"{made_by}-{self._run_number}"

    def _name_charge(self, charge_id: str) -> None:
        """The id of the charge, before anything was charged."""
        assert not self._charged
        self._charge_id, self._steps = charge_id, Steps.under(self._ledger, charge_id)

    def _is_repeated(self, tick: int | None) -> bool:
        """Whether `tick` was published already; the latest one may be asked for again, the next one be made."""
        if tick is not None:
            whole_number("tick", tick)
            if tick == self.tick:
                return True
            if tick != self.tick + 1:
                raise ParameterError(f"tick must be {self.tick} (published) or {self.tick + 1} (next), not {tick}")
        if self.horizon is not None and self.tick >= self.horizon:
            ticks = numbered(self.horizon, "tick")
            raise ParameterError(f"the horizon of {ticks} is used up; a new horizon needs a new budget")
        return False

    # ---- what an audit looks at (`discreet.continual.anatomy`) ------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that, with the horizon and the budget, make the same mechanism again. All public."""
        given = (name for name in self._optional if getattr(self, name))
        return {name: self._argument(name) for name in (*self._arguments, *given)}

    def _argument(self, name: str) -> Any:
        """What an argument was, or what was chosen where it was left open."""
        return getattr(self, name)

    def anew(self, source: RandomSource | None = None, **changes: Any) -> Self:
        """The same mechanism of the same claim before its first tick, with noise from this source.

        `changes` are other values of some of the `parameters`.
        """
        kind: Any = type(self)
        made: Self = kind(self.horizon, self.budget, **{**self.parameters, **changes}, source=source)
        return made

    # ---- what the mechanisms have to say about their latest release -----------------------------------------------

    @abc.abstractmethod
    def _latest(self) -> Any:
        """The latest release as users see it."""

    @abc.abstractmethod
    def _pack_latest(self) -> bytes:
        """The latest release as bytes."""

    @abc.abstractmethod
    def _unpack_latest(self, data: bytes) -> None:
        """Make the release in `data` the latest one."""

    @abc.abstractmethod
    def _remember(self) -> None:
        """Note what the latest tick published, and forget what is older than `remember` ticks."""

    @abc.abstractmethod
    def _renew(self) -> None:
        """Begin a second run at the latest tick: it must share no noise with the first that was not published as such.

        docs/privacy/continual.md, "Restored states".
        """

    @abc.abstractmethod
    def _tick_noises(self, t: int) -> tuple[tuple[str, TickNoise, int], ...] | None:
        """What the noise of tick t is the sum of (`Factor.tick_noises`); None where that is not known."""

    def over_time(self, t: int) -> OverTime:
        """What the noise of tick t is made of, for increases."""
        return self._over_time(whole_number("t", t, 1, self.horizon))

    def _over_time(self, t: int) -> OverTime:
        run, rises, noises = self.run_name, self._rises, self._tick_noises(t)
        return OverTime(t, run, None if noises is None else tuple(Term(*noise) for noise in noises), rises)

    # ---- ticks ----------------------------------------------------------------------------------------------------

    def _step(self, draw: Callable[[], None], save: Callable[[Any], None] | None) -> Any:
        """The order of a tick: charged, looked up, drawn, saved, registered in the ledger, returned."""
        self.begin()
        known = None if self._ledger is None else self._next_known(self._ledger)
        if known is None and self._steps.charge_id != self._charge_id:
            raise LedgerError(
                f"the ledger lacks steps of charge {self._steps.charge_id!r} that it had: it is an old copy"
            )
        draw()
        self._run_of_last = self.run_name if known is None else ""
        if known is not None:
            self._unpack_latest(known.payload)
            self._steps.took(known)
        elif self._ledger is not None:
            self._steps.drawn()
            self._unpublished = True
        if self.remember:
            self._remember()
        if save is not None:
            save(self._latest())
        return self.last

    @property
    def last(self) -> Any:
        """The latest release, once the ledger has it; None before the first tick."""
        if self._unpublished:
            assert self._ledger is not None
            self._steps.store(self._ledger, self.tick, self._pack_latest())
            self._unpublished = False
        return self._latest()

    def _next_known(self, ledger: Account) -> Step | None:
        """In a second run the next tick, if it was published; refuses a state that is behind."""
        known = self._steps.follow(ledger, self._charge_id)
        if known is None and self._steps.charge_id == self._charge_id:
            self._steps.look(ledger, self.tick, self._pack_latest() if self.tick else None)
            self._unpublished = False
        return known

    @property
    def next_is_published(self) -> bool:
        """Whether the next tick was published before: a restored state hands it out as it was."""
        return self._ledger is not None and self._steps.follow(self._ledger, self._charge_id) is not None

    def _resume(self, restored: bool) -> None:
        """Check a state that was read against the ledger; a second run begins here, if that is what is wanted."""
        if self._ledger is not None and self._seeded:
            raise ParameterError("ledger cannot be combined with a state from a seeded source, which is not private")
        if self._ledger is None:
            if restored:
                raise ParameterError("a restored state pays for a second run; give the ledger's account")
            self._steps.check_ledger(None)
            return
        try:
            self._next_known(self._ledger)
        except OldStateError:
            if not restored:
                raise
            stored = self._steps.settle(self._ledger)
            if stored is not None:
                self._unpack_latest(stored)
                self._run_of_last = ""
                if self.remember:
                    self._remember()
            self._charge_id, self._token, self._paid = str(uuid.uuid4()), uuid.uuid4().hex, False
            self._run_number += 1
            self._renew()

    def begin(self) -> None:
        """Charge the whole horizon now, on disk when this returns; else that is done by the first `step`.

        A state that was saved before goes on after a crash in here: restore it, and begin again at no further cost.
        """
        if self._charged:
            return
        if self._ledger is not None:
            # The token says whose releases the charge pays for: this object's, and those of the states saved from it.
            # Of a person the first items count and no others, so that all of them is hidden: `User()`.
            hides = replace(self.unit, max_items=None) if isinstance(self.unit, User) else self.unit
            bill = Bill(self.budget, self.mechanism_name, self.unit, hides=hides, period=self._period)
            begins = begin(self._ledger, self._charge_id, bill, self._token.encode(), what="continual release")
            if begins and self._steps.charge_id == self._charge_id:
                self._steps = Steps.under(self._ledger, self._charge_id)  # the ticks so far were made without a ledger
            if self._steps.charge_id != self._charge_id:
                self._steps.claim(self._ledger, self._charge_id)
        self._paid = self._charged = True
        self._seeded = self._seeded or self._source.seeded

    # ---- states ---------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The whole state. Not private: it holds what was counted, the noise, and of people their ids and items."""
        own = self._state()
        shared = {
            "horizon": self.horizon,
            "budget": self.budget.to_dict(),
            "tick": self.tick,
            "charge_id": self._charge_id,
            "token": self._token,
            "paid": self._paid,
            "seeded": self._seeded,
            "steps": self._steps.to_dict(),
            **({} if self._run_number == 1 else {"run": self._run_number}),
            **({} if not self.remember else {"remember": self.remember}),
            **({} if self._period is None else {"period": self._period, "spans": asdict(self._spans)}),
        }
        return save_state(self.family, own._replace(header={**shared, **own.header}))

    @abc.abstractmethod
    def _state(self) -> State:
        """What `_given` and `_load` need beside what all mechanisms save."""

    @classmethod
    def _given(cls, header: dict[str, Any]) -> dict[str, Any]:
        """The arguments, beside horizon and budget, of what has a state with this header."""
        given = (name for name in cls._optional if name in header)
        return {name: header[name] for name in (*cls._arguments, *given)}

    @abc.abstractmethod
    def _load(self, state: State) -> None:
        """Take this state; KeyError, TypeError, ValueError or IndexError for what is none."""

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        ledger: Account | None = None,
        source: RandomSource | None = None,
        restored: bool = False,
    ) -> Self:
        """Restore a state; the next tick is drawn as if nothing had happened. `ledger` as before, for the charge.

        A ledger that knows later ticks refuses an older state (`OldStateError`). With `restored` it goes on as a second
        run, charged once more at the next step: ticks that were published are returned as they were, whatever their
        events are, and new ones are drawn after the last of them.
        """
        if ledger is not None:
            check_payer(ledger, None, source)
        state = load_state(data, cls.family)
        try:
            kind, header = cast(Any, cls), state.header
            made: Self = kind(
                header["horizon"], Budget.from_dict(header["budget"]), **cls._given(header), ledger=ledger
            )
            if source is not None:  # only now: what was drawn when it was made is in the state
                made._source, made._seeded = source, source.seeded
            made._restore(header)
            made._load(state)
        except (KeyError, TypeError, ValueError, IndexError):
            raise CorruptStateError(f"the state is not one of a {cls.mechanism_name}") from None
        made._resume(restored)
        return made

    def _restore(self, header: dict[str, Any]) -> None:
        self.tick = whole_number("tick", header["tick"], 0, self.horizon)
        self._charge_id = str(header["charge_id"])
        self._token = str(header["token"])
        self._paid = bool(header["paid"])
        self._seeded = self._seeded or bool(header["seeded"])
        self._steps = Steps.from_dict(header["steps"])
        self._run_number = whole_number("run", header.get("run", 1))
        if "period" in header:
            self.limit_to(Calendar(**header["spans"]), str(header["period"]))


class ListedOverTime(Continual):
    """One whose ticks publish items and counts."""

    _last: Release | None = None
    window: int | None

    @property
    def _rises(self) -> bool:  # type: ignore[override]
        return self.window is None

    def _latest(self) -> Release | None:
        return self._last

    def _remember(self) -> None:
        assert self._last is not None
        self._past = {tick: past for tick, past in self._past.items() if tick >= self.tick - self.remember}
        self._last.earlier = {tick: past for tick, past in self._past.items() if tick < self.tick}
        self._past[self.tick] = copy.copy(self._last)
        self._past[self.tick].earlier = {}  # else each would hold all before it

    def increase(self, since: Release | int, confidence: float = 0.95) -> Increase:
        """How much the counts of the latest tick rose since an earlier one; see `Release.increase`."""
        last: Release | None = self.last
        if last is None:
            raise ParameterError("nothing has been published yet")
        return last.increase(since, confidence)

    def _saved_releases(self) -> dict[str, bytes]:
        """The latest release, and those that are remembered."""
        blobs = {} if self._last is None else {"last": self._last.to_payload()}
        past = {f"past.{tick}": release.to_payload() for tick, release in self._past.items() if tick != self.tick}
        return {**blobs, **past}

    def _load_releases(self, blobs: dict[str, bytes]) -> None:
        """The inverse, after everything else."""
        self._last = Release.from_payload(blobs["last"]) if self.tick else None
        for name, blob in blobs.items():
            if name.startswith("past."):
                tick = whole_number("tick", int(name.removeprefix("past.")), 1, self.tick)
                self._past[tick] = Release.from_payload(blob)
        if self.remember and self.tick:
            self._remember()

    def _pack_latest(self) -> bytes:
        assert self._last is not None
        return self._last.to_payload()

    def _unpack_latest(self, data: bytes) -> None:
        self._last = Release.from_payload(data)
