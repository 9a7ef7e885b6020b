"""What a charge costs as the ledger grows: it should be the same at 10 charges and at 100,000.

python benchmarks/ledger.py [--most 100000] [--folder .] [--together postgresql://...]

Charges are made in bulk up to each size (many in one transaction, which the ledger itself never does), then single ones
are timed as a program makes them. "sync" is the time of the commit of one row in a bare SQLite file on this disk, with
the same settings: what no ledger can do without. The grants are generous, so that sums decide; "tight" is an account
that only composition by privacy loss distributions can pay, and "different" one with 4,000 different epsilons.
--together compares a file and a database: charges a second of one process, and of four at once.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from turns import calls_in_turns, machine, took

import discreet as dc
from discreet.privacy.ledger import one_connection

TIMES = 15


def milliseconds(calls: dict[str, Callable[[], object]], times: int = TIMES) -> list[float]:
    """The medians of several runs, in turns."""
    return [1e3 * cost.seconds for cost in calls_in_turns(calls, times).values()]


def grow(ledger: dc.Ledger, account: str, budgets: list[dc.Budget], start: int) -> None:
    """Make many charges, each with a release, in one transaction."""
    unit = {"name": "Event"}
    with ledger._log.writing() as log:
        for number, budget in enumerate(budgets, start):
            details = {"budget": budget.to_dict(), "mechanism": "bulk", "unit": unit, "stores_release": True}
            log.append(account, "charge", f"bulk {number}", details)
            log.append(account, "release", f"bulk {number}", {}, b"x" * 200)


def release(account: dc.Account, budget: dc.Budget, name: str) -> None:
    """All that a release asks of the ledger."""
    assert account.begin(name, budget) is None
    account.store(name, b"x" * 200)


def flat(folder: Path, most: int) -> None:
    """One charge, one release, one look and one replay at each size."""
    ledger = dc.Ledger(folder / "flat.sqlite")
    ledger.grant("a", dc.Budget(1e9, 1e-2))
    account = ledger.account("a")
    small = dc.Budget(0.01, 1e-12)
    # The commit of one row, as durable as a charge.
    bare = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    bare.execute("PRAGMA synchronous=EXTRA")
    bare.execute("CREATE TABLE rows (value)")
    calls = {
        "sync": lambda: bare.execute("INSERT INTO rows VALUES (1)"),
        "charge": lambda: account.charge(small),
        "release": lambda: release(account, small, str(random.random())),
        "remaining": account.remaining,
        "replay": lambda: account.begin("bulk 5", small, mechanism="bulk"),
    }
    print(f"{machine()}; medians of {TIMES} in turns")
    print("charges   sync ms  charge ms  release ms  remaining ms  replay ms  verify s  MiB")
    made, size = 0, 10
    while size <= most:
        grow(ledger, "a", [small] * (size - made), made)
        made = size
        sync, charge, whole, left, replay = milliseconds(calls)
        verified = took(ledger.verify).seconds
        mebibytes = (folder / "flat.sqlite").stat().st_size / 2**20
        row = f"{size:7d} {sync:9.1f} {charge:10.1f} {whole:11.1f} {left:13.1f} {replay:10.1f} {verified:9.2f}"
        print(f"{row} {mebibytes:4.0f}", flush=True)
        size *= 10
    bare.close()


def together(places: dict[str, str | Path], processes: int = 4, seconds: float = 3.0) -> None:
    """Charges a second: by one process, with a connection for each or one for all, and by several at once."""
    print("store        one  one connection  4 processes   (charges a second)")
    for name, place in places.items():
        dc.Ledger(place).grant("a", dc.Budget(1e9, 1e-2))
        alone = charges_within(place, seconds) / seconds
        with one_connection():
            kept = charges_within(place, seconds) / seconds
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            list(pool.map(charges_within, [place] * processes, [0.1] * processes))  # everything is loaded
            counts = list(pool.map(charges_within, [place] * processes, [seconds] * processes))
        print(f"{name:10} {alone:5.0f} {kept:15.0f} {sum(counts) / seconds:12.0f}", flush=True)


def charges_within(place: str | Path, seconds: float) -> int:
    """How many charges this process makes in a time."""
    account, made, until = dc.Ledger(place).account("a"), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        account.charge(dc.Budget(0.01, 1e-12))
        made += 1
    return made


def composed(folder: Path) -> None:
    """Accounts that plain sums do not pay."""
    generator = random.Random(3)
    cases = {
        "tight": ([dc.Budget(0.01)] * 4000, dc.Budget(3.0, 1e-6)),
        "different": ([dc.Budget(generator.uniform(0.005, 0.015)) for _ in range(4000)], dc.Budget(3.2, 1e-6)),
    }
    print("account    charges  charge ms  remaining ms  refusal ms")
    for name, (budgets, grant) in cases.items():
        ledger = dc.Ledger(folder / f"{name}.sqlite")
        ledger.grant(name, grant)
        grow(ledger, name, budgets, 0)
        account = ledger.account(name)
        account.spent()
        calls = {
            "charge": lambda account=account: account.charge(dc.Budget(0.001)),
            "remaining": account.remaining,
            "refusal": lambda account=account: refused(account),
        }
        charge, left, refusal = milliseconds(calls, 5)
        print(f"{name:10} {len(budgets):7d} {charge:10.1f} {left:13.1f} {refusal:11.1f}", flush=True)


def refused(account: dc.Account) -> None:
    """A charge that does not fit."""
    try:
        account.charge(dc.Budget(3.0))
    except dc.BudgetExceededError:
        return
    raise AssertionError("the charge should not fit")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=100_000)
    parser.add_argument("--folder", default=".", help="on the disk that is to be measured")
    parser.add_argument("--together", metavar="URL", help="compare with an empty database")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        if arguments.together:
            together({"SQLite": Path(folder) / "together.sqlite", "PostgreSQL": arguments.together})
            raise SystemExit
        flat(Path(folder), arguments.most)
        composed(Path(folder))
