"""A state's place among the steps that a ledger knows: what was published is not drawn again.

A continual release is one charge and many steps: ticks, or the messages of a party. The ledger has them in order, one
version each. A state remembers which of them is its latest, by number and token, and in which ledger they are. Before a
step is drawn, the state must be at the end of what was published; a copy that is behind, or that drew another version,
is refused, and so is another ledger: it knows nothing of what was published, and a copy of the state could go on in
each of the two.

Anyone who lost the newer state can go on from an older one as a second run of the mechanism, which is paid for by a
charge of its own (docs/privacy/continual.md, "Restored states"). Its first act is a step that ends the charge before
and leads to its own, so that the steps are one chain over all charges; where the older state lacks steps of the
chain, it hands out those that are stored. New ones are drawn only at the end of the chain.
"""

from __future__ import annotations

import uuid
from typing import Any

from discreet._data_class import asdict, dataclass
from discreet.errors import LedgerError, OldStateError, ParameterError
from discreet.privacy.checks import whole_number
from discreet.privacy.ledger import Account, Step

_LEADS_ON = "continued-"  # how the token of a step begins whose payload is the charge that goes on


@dataclass
class Steps:
    """Where a state is in the chain of published steps.

    Attributes:
        charge_id: The charge of the latest step.
        number: Its number there; 0 before the first.
        token: Its token, drawn with it.
        previous: The token of the one before, from which it was drawn.
        ledger: Which ledger has them; None if there is none.
    """

    charge_id: str
    number: int = 0
    token: str | None = None
    previous: str | None = None
    ledger: str | None = None

    @classmethod
    def under(cls, account: Account | None, charge_id: str) -> Steps:
        """None yet, of a charge that this account has or will have."""
        return cls(charge_id, ledger=None if account is None else account.ledger_identity)

    def check_ledger(self, account: Account | None) -> None:
        """Refuse another ledger than the one that the state was begun with, or none in its place.

        A state that was begun without a ledger may be given one, which is then charged for all of it.
        """
        if self.ledger is None and not self.number:
            return
        if account is None:
            raise ParameterError("a ledger knows the steps of this state; give the ledger's account")
        is_other = self.ledger is not None and account.ledger_identity != self.ledger
        if is_other or (self.number and not account.is_begun(self.charge_id)):
            raise LedgerError(
                f"the state was started with another ledger or account; {account!r} does not know it. Give the "
                "original one: under another, noise would be drawn a second time"
            )

    def look(self, account: Account, tick: int, payload: bytes | None) -> None:
        """Refuse a state that is not at the end of what was published under its charge.

        A step that was drawn and saved, but not stored because its process died, is stored now: nobody saw it.
        `payload` is its release; errors speak of `tick`, the state's latest one.
        """
        last = account.last_step(self.charge_id)
        if last is None:  # else the tokens tell
            self.check_ledger(account)
        known = 0 if last is None else last.number
        if known == self.number - 1 and payload is not None:
            self.store(account, tick, payload)
        elif known < self.number:
            raise LedgerError(
                f"the state is after {self.number} steps of charge {self.charge_id!r} and the ledger knows {known}: "
                "the ledger is an old copy; use the newer one"
            )
        elif last is not None and (known, last.token) != (self.number, self.token):
            raise self._old(account, tick)

    def drawn(self) -> None:
        """A new step was drawn from this state."""
        self.number, self.previous, self.token = self.number + 1, self.token, uuid.uuid4().hex

    def store(self, account: Account, tick: int, payload: bytes) -> None:
        """Register the latest step. Only when this has returned may it be published."""
        assert self.token is not None
        stored = account.store_step(self.charge_id, self.number, self.token, payload, previous=self.previous)
        if stored.token != self.token:
            raise self._old(account, tick)

    # ---- going on from an older state ----------------------------------------------------------------------------

    def settle(self, account: Account) -> bytes | None:
        """Make sure that the state's past was published; return the latest release if it is another than the state's.

        It is, if the state drew a step that a copy of it had published before: the step counts as drawn and not shown.
        """
        if not self.number:
            return None
        mine = account.step(self.charge_id, self.number)
        if mine is not None and mine.token == self.token:
            return None
        before = account.step(self.charge_id, self.number - 1) if self.number > 1 else None
        if mine is None or _leads_on(mine) or (None if before is None else before.token) != self.previous:
            raise LedgerError("the state drew a step that was never published; it cannot be continued")
        self.token = mine.token
        return mine.payload

    def claim(self, account: Account, charge_id: str) -> None:
        """End the chain by a step that leads to `charge_id`, which was charged: nobody else goes on there."""
        end = self.charge_id
        while True:
            last = account.last_step(end)
            if last is not None and _leads_on(last):
                end = last.payload.decode()
                if end == charge_id:
                    return
                continue
            number, previous = (1, None) if last is None else (last.number + 1, last.token)
            # If somebody is faster, what they stored is returned, and the next look finds it.
            account.store_step(end, number, _LEADS_ON + uuid.uuid4().hex, charge_id.encode(), previous=previous)

    def follow(self, account: Account, charge_id: str) -> Step | None:
        """The next step of the chain if it is there already and the state may go over it; else None.

        A state whose steps are under `charge_id` draws: a step that is there already would be another's.
        """
        while self.charge_id != charge_id:
            step = account.step(self.charge_id, self.number + 1)
            if step is None or not _leads_on(step):
                return step
            self.charge_id, self.number, self.token, self.previous = step.payload.decode(), 0, None, None
        return None

    def took(self, step: Step) -> None:
        """The state has gone over a step that was there already."""
        self.number, self.previous, self.token = step.number, self.token, step.token

    def _old(self, account: Account, tick: int) -> OldStateError:
        ahead, charge_id, number = 0, self.charge_id, self.number
        while (last := account.last_step(charge_id)) is not None:
            if not _leads_on(last):
                ahead += last.number - number
                break
            ahead += last.number - 1 - number
            charge_id, number = last.payload.decode(), 0
        known = tick + max(ahead, 0)
        if known > tick:
            what = f"the state is at step {tick}, and step {known} was published: it is an old copy"
        elif charge_id != self.charge_id:
            what = f"the state is at step {tick}, from which another copy of it goes on under another charge"
        else:
            what = f"a copy of the state published another version of step {tick}"
        return OldStateError(
            f"{what}. Use the newer state. If it is lost, you can continue from this one with {{restored}}, which "
            "costs the whole budget once more",
            tick=tick,
            known=known,
        )

    # ---- in a state ----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Steps:
        """The inverse of `to_dict`; ParameterError, KeyError or TypeError for anything else."""
        number = whole_number("number", values["number"], 0)
        token, previous, ledger = values["token"], values["previous"], values["ledger"]
        texts = (token, previous, ledger)
        if (token is None) != (number == 0) or not all(isinstance(text, (str, type(None))) for text in texts):
            raise ParameterError("the latest step has no token")
        return cls(str(values["charge_id"]), number, token, previous, ledger)


def _leads_on(step: Step) -> bool:
    return step.token.startswith(_LEADS_ON)
