"""The budget ledger: what each account was granted, what was spent, and the releases that spent it.

`accounts` is what callers use, `balance` what the charges of an account add up to. `event_log` holds the checks, the
interface of a store and the SQL that stores share. `sqlite` is that of one host, `postgres` of many.
"""

from discreet.privacy.ledger.accounts import Account, Ledger, Payment, Step
from discreet.privacy.ledger.balance import Amount, Statement
from discreet.privacy.ledger.event_log import LedgerEvent
from discreet.privacy.ledger.idle_connections import one_connection

__all__ = [
    "Account",
    "Amount",
    "Ledger",
    "LedgerEvent",
    "Payment",
    "Statement",
    "Step",
    "one_connection",
]
