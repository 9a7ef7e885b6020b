"""The budget ledger: what each account was granted, what was spent, and the releases that spent it.

Order of a release: the charge is committed to disk, then noise is drawn, then the release is stored, then it is
returned. A crash at any point may waste budget; it never publishes anything uncharged. Nothing resets or refunds.

An account stands for one set of people, whatever data they are in, and one privacy unit. All its charges are composed
(tightly, see `accounting`) and must fit in its latest grant. Where the unit is what a person does within a span of time
(`User(per="1d")`), those about one span are: a charge says which period it is about (see `balance`).
"""

from __future__ import annotations

import base64
import json
import math
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from numbers import Real
from pathlib import Path
from typing import Any

from discreet._data_class import dataclass, replace
from discreet.errors import (
    BudgetExceededError,
    ChargeConflictError,
    LedgerError,
    ParameterError,
    TakenOverError,
    WordError,
)
from discreet.privacy.accounting import Charge, is_loaded, load
from discreet.privacy.budget import Budget, as_budget
from discreet.privacy.charge_terms import differing_parameters, told_differences
from discreet.privacy.checks import numbered
from discreet.privacy.guarantee import Event, Unit, unit_from_dict
from discreet.privacy.ledger.balance import ACCOUNTINGS, Accounting, Amount, Balance, Limit, Standing, Statement
from discreet.privacy.ledger.event_log import ChargeEvents, EventStore, LedgerEvent, LogReader, utc_now
from discreet.privacy.ledger.sqlite import SQLiteStore, backup
from discreet.privacy.spans import ALWAYS, Calendar, Period, span_parts
from discreet.privacy.zcdp_filter import DELTA_SHARE, ZcdpFilter

# This many ids does a refusal name.
_MOST_IDS = 100

_AS_BEFORE = "Ask as before, or give the new request a charge id of its own, which is charged anew"


@dataclass(frozen=True)
class Payment:
    """What came of asking to pay for a release.

    ``payload`` is the release that is stored under the charge's id; None means: draw it now. ``charged`` says whether
    this call charged the account: not if it was charged before.
    """

    payload: bytes | None
    charged: bool


@dataclass(frozen=True)
class Step:
    """One published part of a continual release: a tick, a look at a state, a message.

    Steps count from 1. The token is drawn anew whenever a step is drawn, so that two versions of one step differ in it.
    """

    number: int
    token: str
    payload: bytes


class Ledger:
    """Accounts with granted budgets, in one SQLite file that many processes may use at once, or in PostgreSQL.

    ``path`` is the file, or ``postgresql://user@host/database`` for processes on many hosts. It is made by the first
    grant. ``timeout`` is how many seconds an operation waits for other processes.
    """

    def __init__(self, path: str | os.PathLike[str], timeout: float = 60.0) -> None:
        self._log: EventStore
        if isinstance(timeout, bool) or not isinstance(timeout, Real) or not 0 <= timeout < math.inf:
            raise ParameterError(f"timeout must be a number of seconds of at least 0, not {timeout!r}")
        seconds = float(timeout)
        scheme, found, _ = str(path).partition("://")
        if not found:
            self._log = SQLiteStore(path, seconds)
            return
        if scheme not in ("postgresql", "postgres"):
            raise ParameterError(f"a ledger must be a file or postgresql://user@host/database, not {scheme}://")
        from discreet.privacy.ledger.postgres import PostgresStore

        self._log = PostgresStore(str(path), seconds)

    def __repr__(self) -> str:
        return f"Ledger({self._log.place!r})"

    @property
    def path(self) -> Path | None:
        """Its file; None where a server keeps it."""
        return self._log.path

    def create(self, *, may_charge: Sequence[str] = (), may_read: Sequence[str] = ()) -> None:
        """Make the ledger without an account, unless it is there, and give roles of the database their rights.

        Args:
            may_charge: Roles that may charge accounts and store releases, and not grant.
            may_read: Roles that may look at everything.
        """
        self._log.create(may_charge, may_read)

    def grant(
        self,
        account: str,
        budget: Budget,
        *,
        accounting: Accounting | None = None,
        delta_share: float | None = None,
        adaptive: bool | None = None,
        unit: Unit | None = None,
        until: Any = None,
        renews: str | None = None,
        different_people: bool = False,
        approver: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Set the total budget of an account; make the account if it is new.

        A grant is the account's whole limit, not an addition: the same grant again changes nothing, a larger one
        extends the account. A grant that what was already spent does not fit in is refused with a LedgerError.
        All grants stay in the history.

        Args:
            account: Its name.
            budget: The limit.
            accounting: How charges are composed. "tight", the default, is for budgets that nobody chooses by looking at
                earlier releases of the account. The others are for any budgets: "basic" adds up epsilons and deltas
                (zCDP charges need a zCDP grant), "zcdp" adds up rhos and deltas under totals that follow from the grant
                (`discreet.privacy.zcdp_filter`), which pays for many more releases where each of them is small. None
                keeps what the account has. What was looked at cannot be forgotten: nothing goes back to "tight". An
                account with charges can neither come to "zcdp" nor leave it.
            delta_share: With "zcdp", the part of delta that is for the deltas of releases: 0.25 unless you say. It
                stays as it is once there are charges.
            adaptive: The earlier spelling: True is "basic", unless the account is "zcdp".
            unit: What its releases hide; by default what the first of them does. `User(per="1d")` must be said here:
                every day then has the whole grant, and a charge must say which days it is about.
            until: The last day, in UTC, on which it can be charged: "2026-12-31". None keeps what the account has.
            renews: After which time a charge no longer counts ("90d"), with `different_people`. It stays as it is once
                there are charges.
            different_people: Say that nobody is in the data of two releases that are made so far apart.
            approver: Who grants it, for the history.
            reason: Why.
        """
        _check_name("account", account)
        as_budget(budget)
        if unit is not None and (not isinstance(unit, Unit) or type(unit) is Unit):
            raise ParameterError(f"unit must be one of discreet's units, not {type(unit).__name__}")
        if until is not None:
            until = _DAYS.named(until)
        for name, text in (("approver", approver), ("reason", reason)):
            if text is not None:
                _check_name(name, text)
        if accounting is not None and accounting not in ACCOUNTINGS:
            raise ParameterError(f"accounting must be one of {', '.join(ACCOUNTINGS)}, not {accounting!r}")
        if adaptive is not None and not isinstance(adaptive, bool):
            raise ParameterError(f"adaptive must be True, False or None, not {adaptive!r}")
        if adaptive is not None and accounting is not None:
            raise ParameterError(
                "adaptive and accounting cannot be combined; adaptive=True is the old spelling of accounting='basic'"
            )
        with self._log.writing(create=True) as log:
            balance = log.balance(account) or Balance()
            balance.check_open()
            limit = _next_limit(account, balance, budget, accounting, delta_share, adaptive)
            before = balance.limit or limit
            limit = replace(
                limit,
                until=until or before.until,
                renews=renews or before.renews,
                approver=approver,
                reason=reason,
                origin=before.origin,
            )
            unit_details = balance.unit if unit is None else unit.details()
            _check_terms(account, balance, limit, unit_details, different_people)
            same = limit
            if approver is None and reason is None:  # nobody says anything about it
                same = replace(limit, approver=before.approver, reason=before.reason)
            if (same, unit_details) == (balance.limit, balance.unit):
                return
            if not all(limit.pays(tally) for _, tally in balance.pieces):
                raise LedgerError(f"account {account!r} has spent more than the grant of {limit} would allow")
            told = {} if unit_details is None else {"unit": unit_details}
            log.append(account, "grant", None, {"budget": budget.to_dict(), **limit.to_dict(), **told, "who": _who()})

    def account(self, name: str) -> Account:
        """The account of that name. Raises LedgerError if it was never granted a budget."""
        _check_name("account", name)
        account = Account(self._log, name)
        account._balance()
        return account

    def accounts(self) -> list[Account]:
        """All accounts, by name."""
        with self._log.reading() as log:
            return [Account(self._log, name) for name in log.accounts()]

    def history(self, account: str | None = None) -> list[LedgerEvent]:
        """All events (of one account), oldest first; the chain of all of them is checked."""
        with self._log.reading() as log:
            return [event for event in log.events() if account in (None, event.account)]

    def export(self, account: str | None = None) -> Iterator[dict[str, Any]]:
        """The same, JSON-ready, with what was published: as JSON, which a release is, or else as base64."""
        for event in self.history(account):
            line = event.to_dict()
            if event.kind in ("release", "step"):
                payload = self.release_payload(event)
                try:
                    line["release"] = json.loads(payload)
                except ValueError:
                    line["release"] = {"base64": base64.b64encode(payload).decode()}
            yield line

    def verify(self) -> int:
        """Read everything there is, and return how many events that are; LedgerError if anything was altered.

        A charge checks what it decides on, at a cost that does not grow. This checks all of it: SQLite's pages, the
        chain of digests from the first event to the last, every stored release, and that the running totals are what
        the events add up to.
        """
        with self._log.reading() as log:
            return log.verify()

    def backup(self, path: str | os.PathLike[str]) -> int:
        """Copy the ledger to a new file while others may be using it; the copy is verified. Returns its events.

        A backup is for looking at, or for the loss of the ledger. Put back in its place it has forgotten what was
        charged since.
        """
        return backup(self._log, path)

    def published(self, charge_id: str, account: str | None = None) -> tuple[LedgerEvent, bytes]:
        """The charge of this id, and the release that is stored under it; `account` where several have the id."""
        _check_name("charge_id", charge_id)
        with self._log.reading() as log:
            names = [name for name in log.accounts() if account in (None, name)]
            found = [events for name in names if (events := log.charge(name, charge_id)).charge is not None]
            if len(found) > 1:
                raise LedgerError(f"several accounts have a charge {charge_id!r}; name the account")
            if not found or found[0].charge is None:
                raise LedgerError(f"there is no charge {charge_id!r}{'' if account is None else f' of {account!r}'}")
            if found[0].release is None:
                raise LedgerError(f"charge {charge_id!r} has no release; it was not published, or not stored here")
            return found[0].charge, log.payload(found[0].release)

    def release_payload(self, event: LedgerEvent) -> bytes:
        """What an event of kind "release" or "step" stored: that which was published."""
        if event.kind not in ("release", "step"):
            raise LedgerError(f"event {event.seq} is a {event.kind}; only a release or a step stores a payload")
        with self._log.reading() as log:
            return log.payload(event)


class Account:
    """The budget of one set of people. Made by `Ledger.account`."""

    def __init__(self, log: EventStore, name: str, held: tuple[str, str | None] | None = None) -> None:
        self._log = log
        self.name = name
        self._held = held  # what is published here, and by which holder

    def __repr__(self) -> str:
        return f"Account({self.name!r}, {self._log.place!r})"

    @property
    def granted(self) -> Budget:
        """The account's latest grant."""
        return self._balance().granted.budget

    @property
    def adaptive(self) -> bool:
        """Whether budgets may be chosen by looking at earlier releases: charges are then added up."""
        return self._balance().granted.adaptive

    @property
    def accounting(self) -> Accounting:
        """How charges are composed: "tight", "basic" or "zcdp"; see `Ledger.grant`."""
        return self._balance().granted.accounting

    @property
    def unit(self) -> Unit | None:
        """What its releases hide; None where neither the grant nor a charge has said so yet."""
        unit = self._balance().unit
        return None if unit is None else unit_from_dict(unit)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the account's total rests on, beside what its releases do."""
        renews = self._balance().granted.renews
        if renews is None:
            return ()
        return (f"nobody is in the data of two releases of the account that are made {renews} or more apart",)

    def charge(
        self,
        budget: Budget,
        charge_id: str | None = None,
        *,
        mechanism: str = "",
        unit: Unit | None = None,
        period: Any = None,
    ) -> str:
        """Spend `budget` and return the charge's id; the charge is on disk before this returns.

        Raises BudgetExceededError, and spends nothing, if the account's charges with this one do not fit its grant.
        What is released under a bare charge is not known to the ledger, so an id works once: were a repeated id
        let through, a second release could be drawn for nothing. `begin` and `store` are the way to safe retries.
        """
        charge_id = str(uuid.uuid4()) if charge_id is None else charge_id
        details = _charge_details(charge_id, budget, mechanism, unit, stores_release=False, period=period)
        self._charge(charge_id, budget, details)
        return charge_id

    def check(
        self, budget: Budget, cost: Charge | None = None, *, unit: Unit | None = None, period: Any = None
    ) -> None:
        """Raise BudgetExceededError if a charge of `budget` would be refused now. Charges nothing, promises nothing.

        With `unit` also what contradicts the account's unit is refused, or a `period` that is missing.
        """
        as_budget(budget)
        with self._log.reading() as log:
            balance, charges = self._read(log), log.latest_charges(self.name, _MOST_IDS)
        if unit is not None:
            self._check_unit(balance, unit)
        about = self._about(balance, balance.spans.period(period) if period is not None else None)
        balance.check_open()
        charge = balance.granted.charge(budget, cost)
        for standing in balance.about(about):
            if not standing.pays(charge):
                raise self._refusal(balance, standing, budget, charges)

    def begin(
        self,
        charge_id: str,
        budget: Budget,
        *,
        mechanism: str = "",
        unit: Unit | None = None,
        request: str | None = None,
        period: Any = None,
    ) -> bytes | None:
        """Charge for a release that `store` will keep, or return the release already stored under this id.

        None means: the charge is on disk, draw the release now, `store` it, and publish what `store` returns.

        If the id was charged before but no release was stored, an earlier attempt died in between (or another
        process is at it right now). A release is published only after it was stored, so nothing drawn under this
        charge has been seen by anyone: the charge is still good for one release and None is returned without
        charging again. A LedgerError is raised if the earlier charge had another budget, mechanism or unit, or was
        made by `charge`, whose release may have been published without the ledger's knowledge.

        `request` stands for what else was asked, the files and columns for example: a digest of it, as `paying` makes
        one, since what is written here is shown by `history`. An id stands for one request, or for none.

        `period` says which spans of the unit the release is about, in the words of `Calendar.period`: "2026-11-15", or
        the first and the last of several. What is released must have looked at no row of another span.
        """
        return self.pay(charge_id, budget, mechanism=mechanism, unit=unit, request=request, period=period).payload

    def pay(
        self,
        charge_id: str,
        budget: Budget,
        *,
        mechanism: str = "",
        unit: Unit | None = None,
        hides: Unit | None = None,
        request: str | None = None,
        question: Mapping[str, Any] | None = None,
        cost: Charge | None = None,
        period: Any = None,
    ) -> Payment:
        """`begin`, which also says whether the account was charged now.

        `hides` is what the account adds up, where that is more than the `unit` that was asked for: see `Unit.covers`.
        `question` has the public parameters of the request by their names, JSON-ready: what `stored` compares with.
        `cost` is the rho and delta that the mechanism says it has. An account that adds up rhos takes it instead of
        what any mechanism of this budget may have; other accounts do not look at it.
        """
        details = _charge_details(charge_id, budget, mechanism, hides or unit, stores_release=True, period=period)
        if hides is not None and hides != unit and unit is not None:
            details["asked_unit"] = unit.details()
        if request is not None:
            _check_name("request", request)
            details["request"] = request
        if question is not None:
            details["question"] = dict(question)
        return self._charge(charge_id, budget, details, cost)

    def stored(self, charge_id: str, budget: Budget, question: Mapping[str, Any]) -> bytes | None:
        """The release that is stored under an id for this question, which no data has to be read for.

        None: nothing is stored, or the charge has no question (it was made by `begin`), and only `pay` can tell whether
        it is the same. A ChargeConflictError says what differs.
        """
        with self._log.reading() as log:
            events = log.charge(self.name, charge_id)
            if events.charge is None or "question" not in events.charge.details:
                return None
            asked = {"budget": as_budget(budget).to_dict(), "question": dict(question)}
            self._check_same(charge_id, events.charge.details, asked)
            return None if events.release is None else log.payload(events.release)

    # ---- one process at a time publishes ----------------------------------------------------------------------------

    def take_over(self, what: str, holder: str) -> Account:
        """The account for a new holder of `what`. Anyone who held it before can charge and store nothing more for it.

        The ledger decides, inside the transaction of each charge, release and step: a process that was stopped in the
        middle of a tick, or cut off, finds out when it comes back, before anything is published. Take-overs are steps
        of a charge that nobody made, and stay in the history with who made them.
        """
        _check_name("holder", holder)
        charge_id, payload = _holders_of(what), json.dumps(_who()).encode()
        with self._log.writing() as log:
            last = log.charge(self.name, charge_id).step
            number = 1 if last is None else last.details["number"] + 1
            log.append(self.name, "step", charge_id, {"number": number, "token": holder}, payload)
        return self.held_by(what, holder)

    def held_by(self, what: str, holder: str | None) -> Account:
        """The account as this holder of `what` uses it; None is who held it before anybody took it over."""
        return Account(self._log, self.name, (what, holder))

    def check_held(self) -> None:
        """Raise TakenOverError if somebody took over what this account's holder publishes."""
        with self._log.reading() as log:
            self._check_held(log)

    def _check_held(self, log: LogReader) -> None:
        if self._held is None:
            return
        what, holder = self._held
        last = log.charge(self.name, _holders_of(what)).step
        if last is not None and last.details["token"] != holder:
            by = json.loads(log.payload(last))
            raise TakenOverError(f"{what!r} was taken over by {by['user']}@{by['host']} at {last.at}")

    @property
    def ledger_identity(self) -> str:
        """Tells the account's ledger from all others, wherever its file is."""
        with self._log.reading() as log:
            return self._read(log).granted.origin or log.identity

    def is_begun(self, charge_id: str) -> bool:
        """Whether something was charged under this id."""
        with self._log.reading() as log:
            return log.charge(self.name, charge_id).charge is not None

    def is_stored(self, charge_id: str) -> bool:
        """Whether a release is stored under this id."""
        with self._log.reading() as log:
            return log.charge(self.name, charge_id).release is not None

    def store(self, charge_id: str, payload: bytes) -> bytes:
        """Keep the release of a charge made by `begin`, and return the one release that may be published.

        That is `payload`, unless another process stored a release under the same id first: then its release is
        returned and `payload` must be forgotten. Which of the two comes first is settled by the order of commits,
        not by what was drawn, so the release that becomes public has the law of a single draw.
        """
        if not isinstance(payload, bytes):
            raise ParameterError(f"payload must be bytes, not {type(payload).__name__}")
        with self._log.writing() as log:
            self._check_held(log)
            events = self._begun(log, charge_id)
            if events.release is not None:
                return log.payload(events.release)
            self._read(log).check_open()
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
            self._check_held(log)
            last = self._begun(log, charge_id).step
            stored = log.step(self.name, charge_id, number)
            if stored is not None:
                return _as_step(stored, log.payload(stored))
            highest, its_token = (0, None) if last is None else (last.details["number"], last.details["token"])
            if number != highest + 1 or previous != its_token:
                raise LedgerError(
                    f"step {number} of charge {charge_id!r} does not follow step {highest}, the last one published; "
                    "the state is an old copy"
                )
            self._read(log).check_open()
            log.append(self.name, "step", charge_id, {"number": number, "token": token}, payload)
        return Step(number, token, payload)

    def spent(self) -> Amount:
        """What all charges of the account cost together: a guarantee that they have.

        The sums of their epsilons and deltas, unless tight composition says notably less: then that epsilon, at the
        grant's delta. Of a zCDP grant the sum of the rhos. Of person-days, the largest over the spans.
        """
        return self.statement().spent

    def remaining(self, delta: float | None = None) -> Amount:
        """A charge that still fits, of the given delta and the largest epsilon (to 0.1 percent, rounded down).

        Without `delta`: all of the delta that is left, unless this many small charges were made that tight composition
        leaves more epsilon to one more charge with the last one's delta. Of a zCDP grant: the rho that is left.
        """
        balance = self._balance()
        return balance.remaining(_now_or_always(balance), delta)

    def statement(self, day: Any = None) -> Statement:
        """All of these at one moment.

        With `day`: about the span of this name; of an account that renews, on that day.
        """
        balance = self._balance()
        if day is None:
            return balance.statement(self.name, _now_or_always(balance))
        spans = None if balance.unit is None else unit_from_dict(balance.unit).spans
        if spans is None and balance.granted.renews is None:
            raise ParameterError(f"account {self.name!r} does not tell days apart; all its charges add up")
        return balance.statement(self.name, balance.spans.period(day))

    def history(self) -> list[LedgerEvent]:
        """All events of the account, oldest first."""
        with self._log.reading() as log:
            return [event for event in log.events() if event.account == self.name]

    def _balance(self) -> Balance:
        with self._log.reading() as log:
            return self._read(log)

    def _read(self, log: LogReader) -> Balance:
        balance = log.balance(self.name)
        if balance is None:
            raise LedgerError(f"the ledger {self._log.place} has no account {self.name!r}")
        return balance

    def _read_step(self, charge_id: str, number: int | None) -> Step | None:
        with self._log.reading() as log:
            last = log.charge(self.name, charge_id).step
            event = last if number is None else log.step(self.name, charge_id, number)
            return None if event is None else _as_step(event, log.payload(event))

    def _begun(self, log: LogReader, charge_id: str) -> ChargeEvents:
        events = log.charge(self.name, charge_id)
        if events.charge is None or not events.charge.details["stores_release"]:
            raise LedgerError(f"account {self.name!r} has no charge {charge_id!r} that was made for a release")
        return events

    def _charge(self, charge_id: str, budget: Budget, details: dict[str, Any], cost: Charge | None = None) -> Payment:
        with self._log.writing() as log:
            self._check_held(log)
            balance, events = self._read(log), log.charge(self.name, charge_id)
            if events.charge is not None:
                self._check_repeated(charge_id, events.charge.details, details)
                return Payment(None if events.release is None else log.payload(events.release), charged=False)
            balance.check_open()
            self._check_unit(balance, unit_from_dict(details["unit"]))
            about = self._about(balance, Period.from_dict(details["period"]) if "period" in details else None)
            limit = balance.granted
            charge = limit.charge(budget, cost)
            if limit.filter is not None:
                details = {**details, "cost": {"rho": charge.rho, "delta": charge.delta}}
            if limit.renews is not None:
                details = {**details, "counts": about.to_dict()}
            each = balance.about(about)
            plainly = all(standing.pays_by_sums(charge) for standing in each)
            refused = None
            wait = not plainly and limit.accounting == "tight" and not is_loaded()  # of others sums decide
            if not plainly and not wait:
                refused = next((standing for standing in each if not standing.pays(charge)), None)
            if not wait and refused is None:
                log.append(self.name, "charge", charge_id, {**details, "who": _who()})
            charges = () if refused is None else log.latest_charges(self.name, _MOST_IDS)
        if wait:
            load()  # without the lock: others need not wait for that
            return self._charge(charge_id, budget, details, cost)
        if refused is not None:
            raise self._refusal(balance, refused, budget, charges)
        return Payment(None, charged=True)

    def _about(self, balance: Balance, period: Period | None) -> Period:
        """Which time a charge that is made now adds to; refused after the grant's end."""
        limit, today = balance.granted, _DAYS.name(utc_now())
        if limit.until is not None and today > limit.until:
            raise BudgetExceededError(
                f"account {self.name!r} was granted until {limit.until}, and today is {today} (UTC): extend the "
                "grant to continue"
            )
        spans = None if balance.unit is None else unit_from_dict(balance.unit).spans
        if spans is not None:
            if period is None:
                raise WordError(
                    f"account {self.name!r} counts what a person does within {spans.describe()}; name the one that "
                    "the release is about with {period}"
                )
            return period
        return _now_or_always(balance)

    def _check_unit(self, balance: Balance, unit: Unit) -> None:
        if balance.unit is None:
            if unit.spans is not None:
                raise ChargeConflictError(
                    f"account {self.name!r} was granted without a unit. This release hides {unit.describe()}: grant "
                    "the account for this unit first; each span then has the whole grant",
                    {"unit": (None, unit.details())},
                )
            return
        before = unit_from_dict(balance.unit)
        if (
            unit.covers(before) and unit.spans == before.spans
        ):  # days of two zones overlap, and do not tell what adds up
            return
        raise ChargeConflictError(
            f"account {self.name!r} has one unit: its releases hide {before.describe()}. This one hides "
            f"{unit.describe()}, which cannot be added to the same promise. Ask for the same unit. Charge another "
            "account only if it stands for other people: for the same people, two accounts together reveal more "
            "than either counts",
            {"unit": (balance.unit, unit.details())},
        )

    def _check_repeated(self, charge_id: str, earlier: dict[str, Any], asked: dict[str, Any]) -> None:
        if not asked["stores_release"]:
            raise LedgerError(f"account {self.name!r} already has a charge with the id {charge_id!r}")
        if "question" in earlier and "question" in asked:
            self._check_same(charge_id, earlier, asked)
        before, now = ({**each, "unit": each.get("asked_unit", each["unit"])} for each in (earlier, asked))
        names = ("budget", "mechanism", "unit", "stores_release", "period")
        differing = differing_parameters(*({name: each.get(name) for name in names} for each in (before, now)))
        if differing:
            raise ChargeConflictError(
                f"charge {charge_id!r} of account {self.name!r} was made with another budget, mechanism or unit: "
                f"{told_differences(differing)}. {_AS_BEFORE}",
                differing,
            )
        if earlier.get("request") != asked.get("request"):
            raise ChargeConflictError(
                f"charge {charge_id!r} of account {self.name!r} was made for another request (other files, columns or "
                f"parameters): its release answers another question. {_AS_BEFORE}"
            )

    def _check_same(self, charge_id: str, earlier: dict[str, Any], asked: dict[str, Any]) -> None:
        """Refuse a question or a budget other than that of the charge, and say what differs."""
        before, now = ({"budget": each["budget"], **each["question"]} for each in (earlier, asked))
        differing = differing_parameters(before, now)
        if differing:
            raise ChargeConflictError(
                f"charge {charge_id!r} of account {self.name!r} was made for another request: "
                f"{told_differences(differing)}. {_AS_BEFORE}",
                differing,
            )

    def _refusal(
        self, balance: Balance, standing: Standing, requested: Budget, charges: tuple[str, ...]
    ) -> BudgetExceededError:
        spent, remaining = standing.spent(), balance.remaining(standing.period)
        days = "" if balance.granted.renews else balance.spans.told(standing.period)
        count, about = (standing.tally.charges, f" about {days}") if days else (balance.charges, "")
        return BudgetExceededError(
            f"account {self.name!r} cannot pay {requested}{about}: granted {balance.granted}, spent {spent} in "
            f"{numbered(count, 'charge')}, remaining {remaining}",
            requested=requested,
            spent=spent,
            remaining=remaining,
            charges=charges,
            about=days,
        )


_DAYS = Calendar("1d")


def _now_or_always(balance: Balance) -> Period:
    """What a charge adds to that names no period: all of time, or from today until it no longer counts.

    Of accounts that renew: on every day the charges of the time before it add up, so any two that are closer than that
    are never forgotten of each other.
    """
    renews = balance.granted.renews
    if renews is None:
        return ALWAYS
    today = utc_now().date()
    return Period(today.isoformat(), (today + timedelta(days=_days(renews))).isoformat())


def _days(renews: str) -> int:
    number, unit = span_parts(renews, "renews")
    if unit not in ("day", "week"):
        raise ParameterError(f"renews must be days or weeks, such as 90d, not {renews!r}")
    return number * (7 if unit == "week" else 1)


def _check_terms(
    account: str, balance: Balance, limit: Limit, unit: dict[str, Any] | None, different_people: bool
) -> None:
    """Refuse a unit, an end or a renewal that the charges so far contradict."""
    if balance.charges and unit != balance.unit:
        raise LedgerError(
            f"account {account!r} has charges, and one unit: its releases hide "
            f"{unit_from_dict(balance.unit or {}).describe()}"
        )
    renews = limit.renews
    if renews is None:
        return
    _days(renews)
    if unit is not None and unit_from_dict(unit).spans is not None:
        raise ParameterError(
            "renews cannot be combined with person-day accounts: every day already has the whole grant"
        )
    before = None if balance.limit is None else balance.limit.renews
    if renews != before and balance.charges:
        raise LedgerError(f"account {account!r} has charges: its renewal cannot change ({before or 'none'})")
    if renews != before and not different_people:
        raise WordError(
            f"a budget that renews after {renews} reveals more than the grant about people who stay in the data. If "
            "the people are different by then, say so with {different_people}. If not, leave {renews} out, or "
            "use the unit person-day, which gives every day the whole grant"
        )


def _next_limit(
    account: str,
    balance: Balance,
    budget: Budget,
    accounting: Accounting | None,
    delta_share: float | None,
    adaptive: bool | None,
) -> Limit:
    """The limit that a grant sets, or why it may not.

    Anyone who looked at releases could pick the accounting under which more is left, or another share of delta: what
    holds for each of two limits alone does not hold for the better one of both. So charges tie an account to its
    filter, and of its grants one must cover the other. (docs/privacy/adaptive-accounts.md, "What may change".)
    """
    before = balance.limit or Limit(budget)
    if before.adaptive and (accounting == "tight" or adaptive is False):
        raise LedgerError(f"account {account!r} is adaptive: its budgets may have been chosen from its releases")
    is_adaptive = before.adaptive or bool(adaptive) or accounting in ("basic", "zcdp")
    has_filter = accounting == "zcdp" or (accounting is None and before.filter is not None)
    if budget.rho is not None and accounting in ("tight", "basic"):
        raise ParameterError(f"a grant of {budget} adds up rhos: its accounting is 'zcdp', not {accounting!r}")
    if balance.charges and has_filter != (before.filter is not None) and budget.rho is None:
        raise LedgerError(
            f"account {account!r} has charges, and its accounting is {before.accounting!r}: it cannot change to or "
            "from 'zcdp'. Keep it as it is; other people can have an account of their own"
        )
    if not has_filter or (budget.rho is not None and before.filter is None):
        if delta_share is not None:
            raise ParameterError("delta_share needs a grant of epsilon and delta with accounting 'zcdp'")
        return Limit(budget, is_adaptive)
    known = before.filter
    share = DELTA_SHARE if known is None else known.delta_share
    if known is None or not balance.charges:
        return Limit(budget, True, ZcdpFilter.of(budget, share if delta_share is None else delta_share))
    totals = ZcdpFilter.of(budget, share, known.order)
    if delta_share not in (None, share) or not (totals.covers(known) or known.covers(totals)):
        raise LedgerError(
            f"account {account!r} has charges: its rho and delta must grow or shrink together, and delta_share stays "
            f"{share:g}. It was granted {before}"
        )
    return Limit(budget, True, totals)


def _charge_details(
    charge_id: str, budget: Budget, mechanism: str, unit: Unit | None, stores_release: bool, period: Any
) -> dict[str, Any]:
    _check_name("charge_id", charge_id)
    as_budget(budget)
    if not isinstance(mechanism, str):
        raise ParameterError(f"mechanism must be a string, not {type(mechanism).__name__}")
    unit = Event() if unit is None else unit
    if not isinstance(unit, Unit):
        raise ParameterError(f"unit must be one of discreet's units, not {type(unit).__name__}")
    if period is not None and unit.spans is None:
        raise ParameterError("period needs a unit with a span of time: dc.User(per='1d')")
    return {
        "budget": budget.to_dict(),
        "mechanism": mechanism,
        "unit": unit.details(),
        "stores_release": stores_release,
        **({} if period is None or unit.spans is None else {"period": unit.spans.period(period).to_dict()}),
    }


def _who() -> dict[str, str]:
    """The user and the host, as the system names them."""
    import getpass
    import socket

    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container may know no name for its user
        user = str(os.getuid()) if hasattr(os, "getuid") else ""
    return {"user": user, "host": socket.gethostname()}


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not name or len(name) > 200 or not name.isprintable():
        raise ParameterError(f"{what} must be 1 to 200 printable characters")


def _check_number(number: object) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**63:
        raise ParameterError(f"steps are numbered from 1, not {number!r}")


def _holders_of(what: str) -> str:
    _check_name("what is held", what)
    return f"holder of {what}"[:200]


def _as_step(event: LedgerEvent, payload: bytes) -> Step:
    return Step(event.details["number"], event.details["token"], payload)
