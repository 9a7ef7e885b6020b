"""Paying for what leaves, once for all trust models: checked, charged durably, drawn, stored, returned.

Whatever is drawn once and published goes through `pay_and_draw`: a `Release`, an `Estimate`, a message. The
charge is on disk before anything random is drawn, and what was drawn is on disk before anybody sees it. A crash may
waste budget; it never publishes anything uncharged. Repeating a charge id hands out what is stored under it.

    drawn, payment = pay_and_draw(account, charge_id, Bill(budget, name, unit), draw, to_payload=..., from_payload=...)

Whatever is begun once and then makes steps (a release at every tick, the messages of a stream, a state whose beginning
is random) goes through `begin`: one charge for all of it, tied to one token. The steps are registered by
`discreet.privacy.steps`.

    begin(account, charge_id, Bill(budget, name, unit), token)

Before either, `check_payer` refuses what no ledger could record. Everything else that can be refused for its parameters
(the budget, the noise, the data) is refused before the charge, too.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeVar

from discreet._data_class import dataclass, field, replace
from discreet.errors import LedgerError, ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Estimate, Unit
from discreet.privacy.guarantee import Asked
from discreet.releases.release import Release

if TYPE_CHECKING:  # what nobody pays for needs no ledger
    from discreet.privacy.accounting import Charge
    from discreet.privacy.ledger import Account

T = TypeVar("T")


def now() -> str:
    """The time in UTC, to the second, as JSON has it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Bill:
    """What is charged, and for what. A charge id stands for one bill: repeated with another it is a LedgerError.

    Attributes:
        budget: What it costs.
        description: The mechanism in words, as the ledger's history shows it.
        unit: Whose presence was asked to be hidden.
        request: Everything else that is public, was asked for and makes the result another one: parameters, names of
            files and columns. The ledger keeps its digest, so that nobody gets the release of other data under a
            charge id. It must hold nothing of the data. None: the id alone says it, as that of a round and a party.
        hides: What the account adds up, where that is more than `unit`: all of a person, where `User(m)` bounds what
            counts of them.
        question: The parameters as they were given, by their names: see `privacy.charge_terms`. With it a release
            is had again before anything is read, and a refusal says what differs.
        cost: The rho and delta that the mechanism says it has, for accounts that add up rhos; None: what any mechanism
            of this budget has at most.
        period: Which spans of the unit it is about, where the unit has spans: "2026-11-15", or the first and the last
            of several. Of other spans nothing may have been looked at.
    """

    budget: Budget
    description: str
    unit: Unit
    request: Mapping[str, object] | None = None
    hides: Unit | None = None
    question: Mapping[str, object] | None = None
    cost: Charge | None = None
    period: Any = None

    @property
    def digest(self) -> str | None:
        """What the ledger keeps of the request."""
        if self.request is None:
            return None
        import hashlib

        return hashlib.sha256(json.dumps(self.request, sort_keys=True, default=repr).encode()).hexdigest()

    @property
    def details(self) -> dict[str, Any]:
        """What `Account.pay` writes down beside the budget."""
        return {
            "mechanism": self.description,
            "unit": self.unit,
            "hides": self.hides,
            "request": self.digest,
            "question": self.question,
            "cost": self.cost,
            "period": self.period,
        }


@dataclass(frozen=True)
class Payer:
    """Who pays for an answer, under which name, and where its noise comes from.

    Attributes:
        account: An account of a ledger; None if nobody keeps count.
        charge_id: Names the charge. Repeating it returns what is stored under it; None makes a new one.
        source: For tests and audits only: an answer from a seeded source is NOT private. None is the system's.
        request: What else the charge id stands for, in public words.
        time: When it was asked. Reading comes later, and how long it takes depends on the data.
    """

    account: Account | None = None
    charge_id: str | None = None
    source: RandomSource | None = None
    request: str | None = None
    time: str = field(default_factory=now)

    def __post_init__(self) -> None:
        """Refuse what no ledger could record: no account, an id without one, a source that is not private."""
        account, source = self.account, self.source
        if account is not None:
            from discreet.privacy.ledger import Account

            if not isinstance(account, Account):
                kind = type(account).__name__
                raise ParameterError(f"ledger must be an account, Ledger(path).account(name), not {kind}")
        if self.charge_id is not None and account is None:
            raise ParameterError("charge_id needs ledger: the account that it names a charge of")
        if source is not None and not isinstance(source, RandomSource):
            raise ParameterError(f"source must be a random source, made by seeded_source, not {type(source).__name__}")
        if source is not None and source.seeded and account is not None:
            raise ParameterError("ledger cannot be combined with a seeded source, whose releases are not private")

    def check(self, budget: Budget, cost: Charge | None = None, unit: Unit | None = None, period: Any = None) -> None:
        """Refuse what the account cannot pay, where no charge may have been made before. Nothing is charged."""
        if self.account is not None and (self.charge_id is None or not self.account.is_begun(self.charge_id)):
            self.account.check(budget, cost, unit=unit, period=period)

    def stored(self, budget: Budget, question: Mapping[str, object]) -> Any:
        """What is stored under the charge id for this question; None if it has to be read, drawn and paid for.

        Called before anything is read: what was published can be had again when the data are gone. Another question
        under the same id is refused here, before an hour of reading.
        """
        if self.account is None or self.charge_id is None:
            return None
        payload = self.account.stored(self.charge_id, budget, question)
        return None if payload is None else changed(answer_of(payload), payment="replayed")

    def pay(self, bill: Bill, draw: Callable[[], Any], asked: Mapping[str, Any]) -> Any:
        """Charge, draw, store: the answer, which says what was `asked` (see `Asked`) and how it was paid."""
        said = Asked.of(self.time, **asked)
        if self.account is None:
            return changed(draw(), asked=said)
        assumed = self.account.assumptions  # what the account's total rests on

        def drawn() -> Any:
            answer = draw()
            return changed(answer, asked=said, guarantee=answer.guarantee.assuming(*assumed))

        answer, payment = pay_and_draw(
            self.account,
            self.charge_id,
            bill,
            drawn,
            to_payload=lambda answer: answer.to_payload(),
            from_payload=answer_of,
        )
        return changed(answer, payment=payment)


_KINDS = {"quantiles": "QuantileRelease", "groups": "GroupRelease", "report": "ReportRelease"}


def answer_of(payload: bytes) -> Any:
    """What a ledger stores: a `Release`, an `Estimate`, a `QuantileRelease`, a `GroupRelease` or a `ReportRelease`."""
    from discreet import releases

    kind = kind_of_answer(payload)
    if kind == "estimate":
        return Estimate.from_payload(payload)
    return getattr(releases, _KINDS.get(str(kind), "Release")).from_payload(payload)


def kind_of_answer(payload: bytes) -> object:
    """What a payload says it is: "histogram", "estimate", "quantiles", "groups", "report"; None of what is none."""
    try:
        stored = json.loads(payload)
    except ValueError:
        return None
    return stored.get("release") if isinstance(stored, dict) else None


def changed(answer: Any, **changes: Any) -> Any:
    """The same answer with another `guarantee` or `payment`, or which says what was `asked`; of a report, every part.

    A report's guarantee is its own: those of its parts stay.
    """
    if isinstance(answer, Release):
        answer = copy.copy(answer)
        vars(answer).update(changes)
        return answer
    if hasattr(answer, "parts"):
        told = {name: value for name, value in changes.items() if name != "guarantee"}
        parts = []
        for part in answer.parts:
            if "asked" in changes:
                told["asked"] = Asked.of(changes["asked"].time, **part.told)
            parts.append(replace(part, answer=changed(part.answer, **told)))
        changes["parts"] = tuple(parts)
    elif isinstance(answer, Estimate) and "asked" in changes:
        changes["asked"] = changes["asked"].to_dict()
    return replace(answer, **changes)


def check_payer(ledger: Any, charge_id: Any, source: Any) -> None:
    """Refuse what no `Payer` may be."""
    Payer(ledger, charge_id, source)


def is_stored(account: Account | None, charge_id: str | None) -> bool:
    """Whether something is stored under this id, so that `pay_and_draw` would hand it out and draw nothing."""
    return account is not None and charge_id is not None and account.is_stored(charge_id)


def pay_and_draw(
    account: Account | None,
    charge_id: str | None,
    bill: Bill,
    draw: Callable[[], T],
    *,
    to_payload: Callable[[T], bytes],
    from_payload: Callable[[bytes], T],
) -> tuple[T, str | None]:
    """Charge, draw and store; or hand out what is stored under the charge id. Returns it, and how it was paid.

    Paid is "charged" (now), "charged before" (an earlier attempt died before anything was published: drawn now, at no
    further cost), "replayed" (what is stored, nothing drawn), or None without an account.

    Args:
        account: The ledger's account that pays; without one `draw` is called and that is all.
        charge_id: Names the charge; None makes a new id.
        bill: What it costs, and what for.
        draw: Draws the noise. Called once, after the charge; not at all where something is stored. What can fail for
            its parameters must have failed before: an error in here leaves a charge that is good for one attempt more
            under the same id (a note on the error says so, from Python 3.11 on).
        to_payload: What is drawn as bytes; `lambda message: message` for bytes.
        from_payload: The inverse. What was just drawn is returned as it is, so the two must be exact inverses.
    """
    if account is None:
        return draw(), None
    from discreet.privacy.ledger import one_connection

    if charge_id is None:
        import uuid

        charge_id = str(uuid.uuid4())
    with one_connection():
        paid = account.pay(charge_id, bill.budget, **bill.details)
        if paid.payload is not None:
            return from_payload(paid.payload), "replayed"
        try:
            drawn = draw()
            payload = to_payload(drawn)
            stored = account.store(charge_id, payload)
        except BaseException as error:
            if sys.version_info >= (3, 11):
                error.add_note(f"charged, nothing published: the charge id {charge_id!r} is good for one release")
            raise
        if stored != payload:
            drawn = from_payload(stored)  # another process was faster, and what we drew is forgotten
        return drawn, "charged" if paid.charged else "charged before"


def begin(
    account: Account,
    charge_id: str,
    bill: Bill,
    token: bytes,
    *,
    what: str = "release",
    save: Callable[[], None] | None = None,
) -> bool:
    """Charge once for something that goes on: durable before anything random of it is drawn.

    The charge pays for what has this token, and for the states saved from it. Another object under the same id would
    draw everything a second time: it has another token and is refused. Anyone who restores a saved state calls this
    with the token in it, and nothing is charged again.

    Returns whether it begins now. False: it had begun before, and goes on. (Where the token is the same for all, as
    that of a party whose number is in the id, the caller who has no state refuses on False.)

    Args:
        account: The ledger's account that pays.
        charge_id: Names the charge; kept in the state.
        bill: What all steps cost together, and what for.
        token: Drawn with the object, `uuid.uuid4().hex.encode()`, and kept in its state.
        what: What it is, for the error.
        save: Writes the state. Called after the charge and before the charge counts as used: after a crash in between
            the same call begins once more, at no cost, and after one later the state is there.
    """
    from discreet.privacy.ledger import one_connection

    if account.assumptions:  # its steps come later than its charge, which would be forgotten before they end
        raise ParameterError(
            f"account {account.name!r} renews and cannot pay for a running {what}; use an account that does not renew"
        )
    with one_connection():
        stored = account.pay(charge_id, bill.budget, **bill.details).payload
        begins = stored is None
        if stored is None:
            if save is not None:
                save()
            stored = account.store(charge_id, token)
    if stored != token:
        raise LedgerError(f"the charge {charge_id!r} paid for another {what}; restore that one's state")
    return begins
