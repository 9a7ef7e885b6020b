"""Makes the golden ledger: run it with the version of the program whose ledgers are to stay readable.

python tests/golden/make_ledger.py tests/golden/ledger-v2-events-3.db
"""

import sys

import discreet as dc


def make(path):
    """Two plain accounts, two adaptive ones, one of days and one that renews, with releases stored, begun and bare."""
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
    day = dc.User(per="1d", zone="Europe/Berlin")  # since events have version 3
    ledger.grant("readers", dc.Budget(4.0, 1e-7), unit=day, until="2999-12-31", approver="Ada", reason="figures")
    readers = ledger.account("readers")
    readers.begin("night", dc.Budget(1.0, 1e-9), unit=day, period="2026-11-15")
    readers.store("night", b'{"release": "night"}')
    readers.charge(dc.Budget(0.5), charge_id="week", unit=day, period=("2026-11-09", "2026-11-15"))
    ledger.grant("visitors", dc.Budget(1.0), renews="90d", different_people=True)
    ledger.account("visitors").charge(dc.Budget(0.75), charge_id="spring", unit=dc.User())


if __name__ == "__main__":
    make(sys.argv[1])
