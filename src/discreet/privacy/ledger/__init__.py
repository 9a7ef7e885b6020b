"""The budget ledger: what each account was granted, what was spent, and the releases that spent it.

`accounts` is what callers use, `balance` what the charges of an account add up to. `event_log` holds the checks and the
interface of a store; `sqlite` is the store of today.
"""

from discreet.privacy.ledger.accounts import Account, Ledger, Payment, Step, new_charge_id
from discreet.privacy.ledger.balance import Amount, Statement
from discreet.privacy.ledger.event_log import LedgerEvent
from discreet.privacy.ledger.sqlite import one_connection

__all__ = [
    "Account",
    "Amount",
    "Ledger",
    "LedgerEvent",
    "Payment",
    "Statement",
    "Step",
    "new_charge_id",
    "one_connection",
]
