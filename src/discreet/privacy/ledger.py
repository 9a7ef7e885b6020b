"""The budget ledger: what each account was granted, what was spent, and the releases that spent it.

Order of a release: the charge is committed to disk, then noise is drawn, then the release is stored, then it is
returned. A crash at any point may waste budget; it never publishes anything uncharged. Nothing resets or refunds.

An account stands for one dataset and one privacy unit. All its charges are composed (tightly, see `accounting`) and
must fit in its latest grant. `discreet.privacy.ledger_store` keeps the file.
"""

from __future__ import annotations

import dataclasses
import math
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.errors import BudgetExceededError, LedgerError, ParameterError
from discreet.privacy.budget import Budget
from discreet.privacy.ledger_store import EventLog, LedgerEvent
from discreet.privacy.unit import Event, Unit

__all__ = ["Account", "Amount", "Ledger", "LedgerEvent", "Step", "new_charge_id"]


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of privacy. Unlike a Budget it may be zero."""

    epsilon: float | None
    delta: float = 0.0
    rho: float | None = None

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho={self.rho:.6g} (zCDP)"
        return f"epsilon={self.epsilon:.6g}" + (f", delta={self.delta:.6g}" if self.delta else "")


@dataclass(frozen=True, slots=True)
class Step:
    """One published part of a continual release: a tick, a look at a state, a message.

    Steps count from 1. The token is drawn anew whenever a step is drawn, so that two versions of one step differ in it.
    """

    number: int
    token: str
    payload: bytes


def new_charge_id() -> str:
    """A charge id nobody used before."""
    return str(uuid.uuid4())


class Ledger:
    """Accounts with granted budgets, in one SQLite file that many processes may use at once.

    The file is made by the first grant. ``timeout`` is how many seconds an operation waits for other processes.
    """

    def __init__(self, path: str | os.PathLike[str], timeout: float = 60.0) -> None:
        self._log = EventLog(path, timeout)

    def __repr__(self) -> str:
        return f"Ledger({str(self._log.path)!r})"

    def grant(self, account: str, budget: Budget, *, adaptive: bool | None = None) -> None:
        """Set the total budget of an account; make the account if it is new.

        A grant is the account's whole limit, not an addition: the same grant again changes nothing, a larger one
        extends the account. A grant that what was already spent does not fit in is refused with a LedgerError.
        All grants stay in the history.

        With ``adaptive=True`` the epsilons of the account's charges may be chosen by looking at its earlier releases:
        charges are then added up, and nothing tighter is used (zCDP charges need a zCDP grant). An account stays
        adaptive, since what was looked at cannot be forgotten: None keeps it as it is, and False is refused.
        """
        _check_name("account", account)
        _check_budget(budget)
        if adaptive is not None and not isinstance(adaptive, bool):
            raise ParameterError(f"adaptive must be True, False or None, not {adaptive!r}")
        with self._log.writing(create=True) as log:
            state = _State(account, log.events)
            before = state.limit is not None and state.limit.adaptive
            if before and adaptive is False:
                raise LedgerError(
                    f"account {account!r} is adaptive: its budgets may have been chosen from its releases"
                )
            limit = _Limit(budget, before if adaptive is None else adaptive)
            if state.limit == limit:
                return
            if not limit.pays(state.budgets):
                raise LedgerError(f"account {account!r} has spent more than the grant of {limit} would allow")
            details: dict[str, Any] = {"budget": _budget_to_dict(budget)}
            if limit.adaptive:
                # Programs that only know version 1 would compose tightly: they must refuse the ledger.
                log.append(account, "grant", None, {**details, "adaptive": True}, version=2)
            else:
                log.append(account, "grant", None, details)

    def account(self, name: str) -> Account:
        """The account of that name. Raises LedgerError if it was never granted a budget."""
        _check_name("account", name)
        account = Account(self._log, name)
        account._state()
        return account

    def accounts(self) -> list[Account]:
        """All accounts, by name."""
        return [Account(self._log, name) for name in sorted({event.account for event in self._log.events()})]

    def history(self, account: str | None = None) -> list[LedgerEvent]:
        """All events (of one account), oldest first."""
        return [event for event in self._log.events() if account in (None, event.account)]

    def release_payload(self, event: LedgerEvent) -> bytes:
        """What an event of kind "release" or "step" stored: that which was published."""
        if event.kind not in ("release", "step"):
            raise LedgerError(f"event {event.seq} is a {event.kind}; only a release or a step stores a payload")
        return self._log.payload(event)


class Account:
    """One dataset's budget. Made by `Ledger.account`."""

    def __init__(self, log: EventLog, name: str) -> None:
        self._log = log
        self.name = name

    def __repr__(self) -> str:
        return f"Account({self.name!r}, {str(self._log.path)!r})"

    @property
    def granted(self) -> Budget:
        """The account's latest grant."""
        return self._state().granted.budget

    @property
    def adaptive(self) -> bool:
        """Whether budgets may be chosen by looking at earlier releases: charges are then added up."""
        return self._state().granted.adaptive

    def charge(
        self, budget: Budget, charge_id: str | None = None, *, mechanism: str = "", unit: Unit | None = None
    ) -> str:
        """Spend `budget` and return the charge's id; the charge is on disk before this returns.

        Raises BudgetExceededError, and spends nothing, if the account's charges with this one do not fit its grant.
        What is released under a bare charge is not known to the ledger, so an id works once: were a repeated id
        let through, a second release could be drawn for nothing. `begin` and `store` are the way to safe retries.
        """
        charge_id = new_charge_id() if charge_id is None else charge_id
        self._charge(charge_id, budget, _charge_details(charge_id, budget, mechanism, unit, stores_release=False))
        return charge_id

    def check(self, budget: Budget) -> None:
        """Raise BudgetExceededError if a charge of `budget` would be refused now. Charges nothing, promises nothing."""
        _check_budget(budget)
        state = self._state()
        if not state.granted.pays([*state.budgets, budget]):
            raise _refusal(self.name, state, budget)

    def begin(self, charge_id: str, budget: Budget, *, mechanism: str = "", unit: Unit | None = None) -> bytes | None:
        """Charge for a release that `store` will keep, or return the release already stored under this id.

        None means: the charge is on disk, draw the release now, `store` it, and publish what `store` returns.

        If the id was charged before but no release was stored, an earlier attempt died in between (or another
        process is at it right now). A release is published only after it was stored, so nothing drawn under this
        charge has been seen by anyone: the charge is still good for one release and None is returned without
        charging again. A LedgerError is raised if the earlier charge had another budget, mechanism or unit, or was
        made by `charge`, whose release may have been published without the ledger's knowledge.
        """
        return self._charge(charge_id, budget, _charge_details(charge_id, budget, mechanism, unit, stores_release=True))

    def store(self, charge_id: str, payload: bytes) -> bytes:
        """Keep the release of a charge made by `begin`, and return the one release that may be published.

        That is `payload`, unless another process stored a release under the same id first: then its release is
        returned and `payload` must be forgotten. Which of the two comes first is settled by the order of commits,
        not by what was drawn, so the release that becomes public has the law of a single draw.
        """
        if not isinstance(payload, bytes):
            raise ParameterError(f"payload must be bytes, not {type(payload).__name__}")
        with self._log.writing() as log:
            state = _State(self.name, log.events)
            self._check_begun(state, charge_id)
            if charge_id in state.releases:
                return log.payload(state.releases[charge_id])
            log.append(self.name, "release", charge_id, {}, payload)
        return payload

    def last_step(self, charge_id: str) -> Step | None:
        """The latest step stored under a charge."""
        return self._read_step(charge_id, None)

    def step(self, charge_id: str, number: int) -> Step | None:
        """A step stored under a charge."""
        _check_number(number)
        return self._read_step(charge_id, number)

    def store_step(self, charge_id: str, number: int, token: str, payload: bytes, *, previous: str | None) -> Step:
        """Keep one step of a continual release, and return the one version of it that may be published.

        One charge made by `begin` pays for all steps, so what the ledger has to see to is that each is drawn once and
        that each goes on from what was published. A step is appended if its number is the highest so far plus 1 and
        `previous` is the token of that highest (None for the first); it is on disk before this returns. A number
        that is stored already changes nothing: the stored step is returned. If its token is the caller's, this is a
        retry; if not, a copy of the state was faster, and the caller's own draw must be forgotten.

        Raises LedgerError for anything else: the state that asks has another past than the one published.
        """
        _check_number(number)
        _check_name("token", token)
        if not isinstance(payload, bytes):
            raise ParameterError(f"payload must be bytes, not {type(payload).__name__}")
        with self._log.writing() as log:
            state = _State(self.name, log.events)
            self._check_begun(state, charge_id)
            steps = state.steps.get(charge_id, {})
            if number in steps:
                return _as_step(steps[number], log.payload(steps[number]))
            highest = max(steps, default=0)
            if number != highest + 1 or previous != (steps[highest].details["token"] if steps else None):
                raise LedgerError(
                    f"step {number} of charge {charge_id!r} does not follow step {highest}, the last one published: "
                    "the state is a copy, or was put back from an older one"
                )
            log.append(self.name, "step", charge_id, {"number": number, "token": token}, payload)
        return Step(number, token, payload)

    def spent(self) -> Amount:
        """What all charges of the account cost together: epsilon at the grant's delta, or rho of a zCDP grant."""
        state = self._state()
        return _spent(state.budgets, state.granted)

    def remaining(self, delta: float | None = None) -> Amount:
        """A charge that still fits, of the given delta and the largest epsilon (to 0.1 percent, rounded down).

        Without `delta`: all of the delta that is left, unless so many small charges were made that tight composition
        leaves more epsilon to one more charge with the last one's delta. Of a zCDP grant: the rho that is left.
        """
        state = self._state()
        return _remaining(state.budgets, state.granted, delta)

    def history(self) -> list[LedgerEvent]:
        """All events of the account, oldest first."""
        return [event for event in self._log.events() if event.account == self.name]

    def _state(self) -> _State:
        state = _State(self.name, self._log.events())
        if state.limit is None:
            raise LedgerError(f"the ledger {self._log.path} has no account {self.name!r}")
        return state

    def _read_step(self, charge_id: str, number: int | None) -> Step | None:
        steps = self._state().steps.get(charge_id, {})
        event = steps.get(max(steps, default=0) if number is None else number)
        return None if event is None else _as_step(event, self._log.payload(event))

    def _check_begun(self, state: _State, charge_id: str) -> None:
        charge = state.charges.get(charge_id)
        if charge is None or not charge.details["stores_release"]:
            raise LedgerError(f"account {self.name!r} has no charge {charge_id!r} that was begun for a release")

    def _charge(self, charge_id: str, budget: Budget, details: dict[str, Any]) -> bytes | None:
        # A first look without the lock: it loads the accounting library, so that others need not wait for that.
        before = self._state()
        before.granted.pays([*before.budgets, budget])
        with self._log.writing() as log:
            state = _State(self.name, log.events)
            earlier = state.charges.get(charge_id)
            if earlier is not None:
                if not details["stores_release"]:
                    raise LedgerError(f"account {self.name!r} already has a charge with the id {charge_id!r}")
                if earlier.details != details:
                    raise LedgerError(
                        f"charge {charge_id!r} of account {self.name!r} was made with another budget, mechanism or unit"
                    )
                return log.payload(state.releases[charge_id]) if charge_id in state.releases else None
            for other in state.charges.values():
                if other.details["unit"] != details["unit"]:
                    raise LedgerError(
                        f"account {self.name!r} has charges for the unit {other.details['unit']}, which do not compose "
                        f"with one for {details['unit']}: use another account"
                    )
            if fits := state.granted.pays([*state.budgets, budget]):
                log.append(self.name, "charge", charge_id, details)
        if not fits:
            raise _refusal(self.name, state, budget)
        return None


@dataclass(frozen=True)
class _Limit:
    """A grant: how much, and whether it is for budgets that may be chosen by looking at earlier releases."""

    budget: Budget
    adaptive: bool = False

    def __str__(self) -> str:
        return f"{self.budget}{' (adaptive)' if self.adaptive else ''}"

    def pays(self, budgets: Sequence[Budget]) -> bool:
        """Whether charges of these budgets stay within it together."""
        from discreet.privacy.accounting import Charge, fits

        return fits([Charge.of(budget) for budget in budgets], self.budget, adaptive=self.adaptive)


class _State:
    """What the events of one account add up to."""

    def __init__(self, account: str, events: Sequence[LedgerEvent]) -> None:
        self.limit: _Limit | None = None
        self.charges: dict[str, LedgerEvent] = {}
        self.releases: dict[str, LedgerEvent] = {}
        self.steps: dict[str, dict[int, LedgerEvent]] = {}
        for event in events:
            if event.account != account:
                continue
            if event.kind == "grant":
                self.limit = _Limit(_budget_from_dict(event.details["budget"]), event.details.get("adaptive", False))
            elif event.charge_id is not None and event.kind == "step":
                self.steps.setdefault(event.charge_id, {})[event.details["number"]] = event
            elif event.charge_id is not None:
                (self.charges if event.kind == "charge" else self.releases)[event.charge_id] = event

    @property
    def granted(self) -> _Limit:
        if self.limit is None:
            raise LedgerError("the account was never granted a budget")
        return self.limit

    @property
    def budgets(self) -> list[Budget]:
        return [_budget_from_dict(event.details["budget"]) for event in self.charges.values()]


def _spent(budgets: Sequence[Budget], limit: _Limit) -> Amount:
    from discreet.privacy.accounting import Charge, total_cost

    if limit.budget.rho is not None:
        return Amount(None, 0.0, _total_rho(budgets))
    if not budgets:
        return Amount(0.0)
    charges, delta = [Charge.of(budget) for budget in budgets], limit.budget.delta
    return Amount(total_cost(charges, delta, adaptive=limit.adaptive), delta)


def _total_rho(budgets: Sequence[Budget]) -> float:
    """The rho of charges that fit a zCDP grant: those of a rho, and of an epsilon alone."""
    from discreet.privacy.calibration.zcdp import pure_rho

    return math.fsum(budget.rho or pure_rho(budget.epsilon or 0.0) for budget in budgets)


def _remaining(budgets: Sequence[Budget], limit: _Limit, delta: float | None) -> Amount:
    if limit.budget.rho is not None:
        rho = limit.budget.rho - _total_rho(budgets)
        while rho > 0.0 and not limit.pays([*budgets, Budget.zcdp(rho)]):
            rho = math.nextafter(rho, 0.0) * (1 - 1e-15)
        return Amount(None, 0.0, max(rho, 0.0))
    unspent = max(0.0, limit.budget.delta - math.fsum(budget.delta for budget in budgets))
    if delta is not None:
        return _largest(budgets, limit, Budget(1.0, delta).delta)
    everything = _largest(budgets, limit, unspent)
    if budgets and budgets[-1].delta < unspent:
        usual = _largest(budgets, limit, budgets[-1].delta)
        assert usual.epsilon is not None
        assert everything.epsilon is not None
        if usual.epsilon > 1.001 * everything.epsilon:
            return usual
    return everything


def _largest(budgets: Sequence[Budget], limit: _Limit, delta: float) -> Amount:
    """The charge of this delta with the largest epsilon that fits, up to a thousandth of the grant."""
    most = limit.budget.epsilon
    assert most is not None

    def fits(epsilon: float) -> bool:
        return epsilon > 0.0 and limit.pays([*budgets, Budget(epsilon, delta)])

    # What plain addition leaves is exact and nearly always the answer; bisect only where composition gives more.
    low = most - math.fsum(budget.epsilon or 0.0 for budget in budgets)
    for _ in range(4):
        if fits(low):
            break
        low = math.nextafter(low, 0.0)
    else:
        low = 0.0
    high, tolerance = most, 1e-3 * most
    if low < high and not fits(low + tolerance):
        high = low
    while high - low > tolerance:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return Amount(low, delta)


def _refusal(account: str, state: _State, requested: Budget) -> BudgetExceededError:
    limit = state.granted
    spent = _spent(state.budgets, limit)
    remaining = _remaining(state.budgets, limit, None if requested.is_zcdp else requested.delta)
    return BudgetExceededError(
        f"account {account!r} cannot pay {requested}: granted {limit}, spent {spent} in {len(state.charges)} charges, "
        f"remaining {remaining}",
        requested=requested,
        spent=spent,
        remaining=remaining,
        charges=tuple(state.charges),
    )


def _charge_details(
    charge_id: str, budget: Budget, mechanism: str, unit: Unit | None, stores_release: bool
) -> dict[str, Any]:
    _check_name("charge_id", charge_id)
    _check_budget(budget)
    if not isinstance(mechanism, str):
        raise ParameterError(f"mechanism must be a string, not {type(mechanism).__name__}")
    unit = Event() if unit is None else unit
    if not isinstance(unit, Unit):
        raise ParameterError(f"unit must be one of discreet's units, not {type(unit).__name__}")
    return {
        "budget": _budget_to_dict(budget),
        "mechanism": mechanism,
        "unit": {"name": type(unit).__name__, **dataclasses.asdict(unit)},
        "stores_release": stores_release,
    }


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name or len(name) > 200 or not name.isprintable():
        raise ParameterError(f"{what} must be 1 to 200 printable characters")


def _check_number(number: object) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**63:
        raise ParameterError(f"number counts steps from 1, not {number!r}")


def _as_step(event: LedgerEvent, payload: bytes) -> Step:
    return Step(event.details["number"], event.details["token"], payload)


def _check_budget(budget: object) -> None:
    if not isinstance(budget, Budget):
        raise ParameterError(f"budget must be a Budget, not {type(budget).__name__}")


def _budget_to_dict(budget: Budget) -> dict[str, float | None]:
    return {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}


def _budget_from_dict(values: dict[str, Any]) -> Budget:
    if values["rho"] is not None:
        return Budget.zcdp(values["rho"])
    return Budget(values["epsilon"], values["delta"])
