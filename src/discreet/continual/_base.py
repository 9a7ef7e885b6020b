"""What every continual release shares: ticks, the one charge for all of them, and the latest release."""

from __future__ import annotations

import abc
import copy
import dataclasses
import hashlib
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.continual._factors import MAX_HORIZON
from discreet.continual._state import State, load_state, save_state
from discreet.errors import CorruptStateError, LedgerError, OldStateError, ParameterError
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Event, Guarantee, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import numbered, whole_number
from discreet.privacy.ledger import new_charge_id
from discreet.privacy.spans import Calendar
from discreet.privacy.steps import Steps
from discreet.releases.payment import Bill, begin, check_payer
from discreet.releases.release import Release

if TYPE_CHECKING:
    from typing_extensions import Self

    from discreet.privacy.ledger import Account, Step
    from discreet.releases.over_time import Increase

MOST_REMEMBERED = 10_000


class Continual(abc.ABC):
    """A release at every tick of a horizon, paid for once.

    Privacy over all ticks together: everything published from the first tick to the last differs little, in law,
    between two streams, one with one event more, or all rows of one person where `unit` is that.
    """

    family: ClassVar[int]  # of its states
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
        self.horizon = None if horizon is None else whole_number("horizon", horizon, 1, MAX_HORIZON)
        self.budget = as_budget(budget)
        self.tick = 0
        self._ledger = ledger
        self._charge_id = new_charge_id() if charge_id is None else charge_id
        self._charge_is_named = charge_id is not None
        self._token = uuid.uuid4().hex
        self._steps = Steps.under(ledger, self._charge_id)
        self._unpublished = False  # whether the latest tick was drawn and the ledger does not know it yet
        self._paid = False
        # Whether the ledger that is given now was asked. A state that it paid for costs nothing; one that was begun
        # without a ledger is charged.
        self._charged = False
        self._period: str | None = None  # the span of the calendar that all rows are of
        self._use_source(source)

    def limit_to(self, spans: Calendar, period: str) -> None:
        """Say that all rows will be of one span, such as a day, by its name; before anything is charged.

        Anyone who gives rows keeps that promise. Then what a person does in that span is hidden, and the charge is
        about this span alone (docs/privacy/continual.md, "A run a day").
        """
        assert isinstance(self.unit, (Event, User))
        self.unit = dataclasses.replace(self.unit, per=spans.text, zone=spans.zone)
        self._spans, self._period = spans, spans.named(period)

    def _use_source(self, source: RandomSource | None) -> None:
        self._source = system_source() if source is None else source
        self._seeded = self._source.seeded

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on beside the mathematics."""
        return ()

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
    @abc.abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The arguments that, with the horizon and the budget, make the same mechanism again. All public."""

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
    def _remember(self, drawn: bool) -> None:
        """Note what the latest tick published: `drawn` by this run, or by one before that was charged itself."""

    def _forget_old(self) -> None:
        for tick in [tick for tick in self._past if tick < self.tick - self.remember]:
            del self._past[tick]

    @abc.abstractmethod
    def _renew(self) -> None:
        """Begin a second run at the latest tick: it must share no noise with the first that was not published as such.

        docs/privacy/continual.md, "Restored states".
        """

    # ---- ticks ----------------------------------------------------------------------------------------------------

    def _step(self, draw: Callable[[], None], save: Callable[[Any], None] | None) -> Any:
        """The order of a tick: charged, looked up, drawn, saved, registered in the ledger, returned."""
        self._pay()
        known = self._next_known()
        if known is None and self._steps.charge_id != self._charge_id:
            raise LedgerError(
                f"the ledger lacks steps of charge {self._steps.charge_id!r} that it had: it is an old copy"
            )
        draw()
        if known is not None:
            self._unpack_latest(known.payload)
            self._steps.took(known)
        elif self._ledger is not None:
            self._steps.drawn()
            self._unpublished = True
        self._remember(drawn=known is None)
        if save is not None:
            save(self._latest())
        return self._published()

    def _published(self) -> Any:
        """The latest release, once the ledger has it."""
        if self._unpublished:
            assert self._ledger is not None
            self._steps.store(self._ledger, self.tick, self._pack_latest())
            self._unpublished = False
        return self._latest()

    def _next_known(self) -> Step | None:
        """In a second run the next tick, if it was published; refuses a state that is behind."""
        if self._ledger is None:
            return None
        known = self._steps.follow(self._ledger, self._charge_id)
        if known is None and self._steps.charge_id == self._charge_id:
            self._steps.look(self._ledger, self.tick, self._pack_latest() if self.tick else None)
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
            self._next_known()
        except OldStateError:
            if not restored:
                raise
            stored = self._steps.settle(self._ledger)
            if stored is not None:
                self._unpack_latest(stored)
                self._remember(drawn=False)
            self._charge_id, self._token, self._paid = new_charge_id(), uuid.uuid4().hex, False
            self._run_number += 1
            self._renew()

    def begin(self) -> None:
        """Charge the whole horizon now, on disk when this returns; else that is done by the first `step`.

        A state that was saved before goes on after a crash in here: restore it, and begin again at no further cost.
        """
        self._pay()

    def _pay(self) -> None:
        """Charge the whole horizon, once. On disk before the first noise is drawn."""
        if self._ledger is not None and not self._charged:
            # The token says whose releases the charge pays for: this object's, and those of the states saved from it.
            # Of a person the first items count and no others, so that all of them is hidden: `User()`.
            hides = dataclasses.replace(self.unit, max_items=None) if isinstance(self.unit, User) else self.unit
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
        return save_state(self.family, self._state())

    @abc.abstractmethod
    def _state(self) -> State:
        """All that `_rebuilt` needs."""

    @classmethod
    @abc.abstractmethod
    def _rebuilt(cls, state: State, ledger: Account | None, source: RandomSource | None) -> Self:
        """What has this state; KeyError, TypeError, ValueError or IndexError for what is none."""

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
            made = cls._rebuilt(state, ledger, source)
        except (KeyError, TypeError, ValueError, IndexError):
            raise CorruptStateError(f"the state is not one of a {cls.mechanism_name}") from None
        made._resume(restored)
        return made

    def _saved(self) -> dict[str, Any]:
        return {
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
            **({} if self._period is None else {"period": self._period, "spans": dataclasses.asdict(self._spans)}),
        }

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

    @property
    def last(self) -> Release | None:
        """The latest release; None before the first tick."""
        return self._published()  # type: ignore[no-any-return]

    def _latest(self) -> Release | None:
        return self._last

    def _remember(self, drawn: bool) -> None:
        if self.remember and self._last is not None:
            self._forget_old()
            self._last.earlier = {tick: release for tick, release in self._past.items() if tick < self.tick}
            self._past[self.tick] = copy.copy(self._last)
            self._past[self.tick].earlier = {}  # else each would hold all before it

    def increase(self, since: Release | int, confidence: float = 0.95) -> Increase:
        """How much the counts of the latest tick rose since an earlier one; see `Release.increase`."""
        if self.last is None:
            raise ParameterError("nothing has been published yet")
        return self.last.increase(since, confidence)

    def _saved_past(self) -> dict[str, bytes]:
        return {f"past.{tick}": release.to_payload() for tick, release in self._past.items() if tick != self.tick}

    def _load_past(self, blobs: dict[str, bytes]) -> None:
        """After everything else: the releases that are remembered, and the latest."""
        for name, blob in blobs.items():
            if name.startswith("past."):
                self._past[whole_number("tick", int(name.removeprefix("past.")), 1, self.tick)] = Release.from_payload(
                    blob
                )
        self._remember(drawn=True)

    def _pack_latest(self) -> bytes:
        assert self._last is not None
        return self._last.to_payload()

    def _unpack_latest(self, data: bytes) -> None:
        self._last = Release.from_payload(data)
