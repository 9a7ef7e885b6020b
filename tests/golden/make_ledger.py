"""Makes the golden ledger: run it with the version of the program whose ledgers are to stay readable.

python tests/golden/make_ledger.py tests/golden/ledger-v2-events-2.db
"""

import sys

import discreet as dc


def make(path):
    """Two plain accounts and two adaptive ones, with releases stored, begun and bare."""
    ledger = dc.Ledger(path)
    ledger.grant("searches", dc.Budget(4.0, 1e-7))
    searches = ledger.account("searches")
    searches.begin("monday", dc.Budget(1.0, 1e-9), mechanism="offset")
    searches.store("monday", b'{"release": "monday"}')
    searches.begin("tuesday", dc.Budget(0.5), mechanism="offset")  # charged, and then the process died
    searches.charge(dc.Budget(0.25, 1e-9), charge_id="bare", mechanism="my own")
    ledger.grant("clicks", dc.Budget.zcdp(0.5))
    clicks = ledger.account("clicks")
    clicks.charge(dc.Budget.zcdp(0.125), charge_id="a", unit=dc.User(3))
    clicks.begin("b", dc.Budget(0.5), unit=dc.User(3))
    clicks.store("b", b"\x00release\xff")
    ledger.grant("chosen", dc.Budget(1.0, 0.1), adaptive=True)
    ledger.account("chosen").charge(dc.Budget(0.25), charge_id="first")
    ledger.grant("searches", dc.Budget(5.0, 1e-7))
    ledger.grant("rhos", dc.Budget(4.0, 1e-5), accounting="zcdp")  # since events have version 2
    ledger.account("rhos").charge(dc.Budget(0.25, 1e-7), charge_id="first")


if __name__ == "__main__":
    make(sys.argv[1])
