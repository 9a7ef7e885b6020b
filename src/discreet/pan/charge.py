"""Paying for a state: one charge covers the looks and the releases that its budget is split into."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from discreet._data_class import dataclass
from discreet.errors import OldStateError, ParameterError
from discreet.releases.payment import Bill, begin, check_payer

if TYPE_CHECKING:  # what nobody pays for needs no ledger
    from discreet.privacy.ledger import Account


@dataclass(frozen=True)
class StateCharge:
    """The charge that pays for a state and for those that go on from it.

    The ledger keeps the token, which is drawn with the state: a second state under the same id is refused. It would be
    two looks and twice the releases.
    """

    charge_id: str
    token: str
    account: Account | None = None

    @classmethod
    def begin(
        cls, account: Account | None, charge_id: str | None, bill: Bill, draw: Callable[[], None]
    ) -> StateCharge | None:
        """Charge durably, then draw the state; without an account, draw it.

        The charge counts as used when the state is drawn. Before that nothing of it saw any data, so after a crash in
        between the same id begins once more, at no cost.
        """
        if account is None:
            draw()
            return None
        made = cls(str(uuid.uuid4()) if charge_id is None else charge_id, uuid.uuid4().hex, account)
        begin(account, made.charge_id, bill, made.token.encode(), what="state", save=draw)
        return made

    @classmethod
    def restored(
        cls,
        saved: tuple[str, str] | None,
        account: Account | None,
        bill: Bill,
        seeded: bool,
        more: Mapping[str, Bill] | None = None,
    ) -> StateCharge | None:
        """That of a state that is read. An account that did not pay for it, or nothing so far, is charged now.

        `more` is what the state has cost beyond the bill, by the names of `add`.
        """
        if account is None:
            return None if saved is None else cls(*saved)
        check_payer(account, None, None)
        if seeded:
            raise ParameterError("ledger cannot be combined with a state from a seeded source, which is not private")
        made = cls(*(saved or (str(uuid.uuid4()), uuid.uuid4().hex)), account)
        begin(account, made.charge_id, bill, made.token.encode(), what="state")
        for what, further in (more or {}).items():
            made.add(what, further)
        return made

    def add(self, what: str, bill: Bill) -> None:
        """Charge for something beyond what the charge covers; `what` names it, and repeated it costs nothing more."""
        if self.account is None:
            raise ParameterError(
                f"a ledger paid for this state, but {what.replace('-', ' ')} costs {bill.budget} more. Give the "
                "account: from_bytes(data, ledger=account)"
            )
        begin(self.account, f"{self.charge_id}-{what}", bill, self.token.encode(), what="state")

    def published(self, number: int, draw: Callable[[], bytes]) -> bytes:
        """The release of this number as the ledger has it; where it has none, what is drawn, once it is registered.

        So copies of a state publish one version of each release, and a state that was not saved after a release goes on
        with it. Without the account nobody can know of the others.
        """
        if self.account is None:
            return draw()
        drawn: bytes | None = None
        while True:
            last = step = self.account.last_step(self.charge_id)
            while step is not None and _release_of(step.payload) > number:
                step = self.account.step(self.charge_id, step.number - 1) if step.number > 1 else None
            if step is not None and _release_of(step.payload) == number:
                return step.payload  # if a copy was faster than we, our own draw is forgotten
            if last is not None and _release_of(last.payload) > number:
                known = _release_of(last.payload)
                raise OldStateError(
                    f"the state has made {number - 1} releases, but a copy of it made {known}; use the newer one",
                    tick=number - 1,
                    known=known,
                )
            drawn = draw() if drawn is None else drawn
            token, (after, before) = uuid.uuid4().hex, (0, None) if last is None else (last.number, last.token)
            stored = self.account.store_step(self.charge_id, after + 1, token, drawn, previous=before)
            if stored.token == token:
                return drawn

    def to_list(self) -> list[str]:
        """What a state keeps of it."""
        return [self.charge_id, self.token]


def _release_of(payload: bytes) -> int:
    return int(json.loads(payload)["release"])


def saved_charge(values: object) -> tuple[str, str] | None:
    """The inverse of `to_list`; None for a state that no ledger paid for."""
    if values is None:
        return None
    if not isinstance(values, list) or len(values) != 2 or not all(isinstance(value, str) for value in values):
        raise ParameterError("not a charge")
    return values[0], values[1]
