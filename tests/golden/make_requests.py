"""What is asked for under the charge ids of requests-v2.db.

    python -m tests.golden.make_requests requests-v2.db      # writes it anew: only when digests change on purpose

A charge id stands for one request, by a digest: a request that is described in another way cannot be had again.
"""

import sys

import pyarrow as pa

import discreet as dc

BUDGET, PURE, RHO = dc.Budget(1.0, 1e-6), dc.Budget(1.0), dc.Budget.zcdp(0.5)
ITEMS = ["a", "b", "c", "a"] * 250
TABLE = pa.table({"who": [str(i // 2) for i in range(1000)], "what": ITEMS})


def _filled(summary, items=ITEMS):
    summary.update(items)
    return summary


def _sets():
    return _filled(dc.UserMisraGries(8, 4), [["a", "b"]] * 500)


def _reduced(budget):
    return dc.central.ReducedMisraGries(budget, 8, universe=["a", "b", "c", "d"])


REQUESTS = {
    "rows": {
        "sketch": lambda **pay: dc.release(_filled(dc.MisraGries(8)), BUDGET, **pay),
        "total": lambda **pay: dc.release(_filled(dc.MisraGries(8)), BUDGET, total_share=0.25, **pay),
        "named": lambda **pay: dc.release(_filled(dc.MisraGries(8)), BUDGET, "pmg", request="monday", **pay),
        "parts": lambda **pay: dc.release([_filled(dc.MisraGries(8)) for _ in "12"], BUDGET, **pay),
        "saving": lambda **pay: dc.release(_filled(dc.SpaceSaving(8)), BUDGET, length=1000, **pay),
        "exact": lambda **pay: dc.release(_filled(dc.ExactCounts()), BUDGET, **pay),
        "known": lambda **pay: dc.release(_filled(dc.MisraGries(8)), PURE, _reduced(PURE), **pay),
        "top": lambda **pay: dc.top_k(ITEMS, 2, BUDGET, **pay),
        "top of a column": lambda **pay: dc.top_k(TABLE, 2, BUDGET, column="what", nulls="skip", **pay),
        "top in parts": lambda **pay: dc.top_k(ITEMS, 2, BUDGET, workers=2, length=1000, **pay),
    },
    "people": {
        "users": lambda **pay: dc.top_k(TABLE, 2, BUDGET, column="what", user="who", **pay),
        "their rows": lambda **pay: dc.top_k(TABLE, 2, BUDGET, column="what", user="who", count="rows", **pay),
    },
    "fours": {
        "sets": lambda **pay: dc.release(_sets(), BUDGET, unit=dc.User(4), **pay),
        "lists": lambda **pay: dc.top_k([["a", "b"]] * 500, 2, BUDGET, unit=dc.User(4), **pay),
    },
    "rhos": {"known": lambda **pay: dc.release(_filled(dc.MisraGries(8)), RHO, _reduced(RHO), **pay)},
}


def protocols():
    """Of a party, which has a message under the id of the round, the parameters and its number."""
    kinds = ("IndependentSketches", "Separation", "HadamardResponse", "LocalHashing", "MergedMisraGries")
    homes = [dc.published if kind.startswith("Merged") else dc.multiparty for kind in kinds]
    return [getattr(home, kind)("golden", PURE, 4) for home, kind in zip(homes, kinds, strict=True)]


def _pay_for_all(path):
    ledger = dc.Ledger(path)
    for account in (*REQUESTS, "parties"):
        ledger.grant(account, dc.Budget.zcdp(10.0) if account == "rhos" else dc.Budget(100.0, 1e-3))
    for account, requests in REQUESTS.items():
        for charge_id, ask in requests.items():
            assert ask(ledger=ledger.account(account), charge_id=charge_id).payment == "charged"
    for protocol in protocols():
        protocol.party(7).encode([0, 1, 1, 3], ledger=ledger.account("parties"))


if __name__ == "__main__":
    _pay_for_all(sys.argv[1])
