"""`discreet ledger`: grants, balances, history, stored releases, verification and backups."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import options
from discreet.cli.options import flag, option
from discreet.cli.output import note, print_table
from discreet.cli.publish import Place, place, publish_stored
from discreet.storage import AtomicFile

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import Ledger, Statement

__all__ = ["ledger"]


@click.group(cls=options.Group, no_args_is_help=True)
def ledger() -> None:
    """Budgets: grant them, see what is left, see what was spent."""


def _open(ledger: Path) -> Ledger:
    from discreet.privacy.ledger import Ledger

    return Ledger(ledger)


_opened = options.gathers(
    "opened", _open, option("--ledger", "The ledger that keeps the budget.", options.PATH, required=True)
)
_account = options.takes(options.ACCOUNT)


@ledger.command()
@_opened
@options.takes(
    option("--account", "The account's name: it stands for a set of people, not for a data set.", required=True)
)
@options.budget
@options.takes(
    option(
        "--accounting",
        "How releases add up; basic or zcdp if you choose budgets by looking.",
        options.choice("tight", "basic", "zcdp"),
    ),
    option("--delta-share", "With zcdp: the part of delta for the deltas of releases; 0.25 by default.", float),
    flag("--adaptive", "The earlier spelling of --accounting basic.", hidden=True),
)
def grant(
    opened: Ledger, account: str, budget: Budget, accounting: Any, delta_share: float | None, adaptive: bool
) -> None:
    """Set the total budget of an account.

    The grant is the account's whole limit: the same again changes nothing, a larger one extends it, one below what was
    spent is refused. Nothing is ever reset or refunded.

    With --accounting tight (the default) budgets follow a schedule. If you choose a budget because of what an earlier
    release showed, take basic, which adds up epsilons, or zcdp, which adds up rhos: best for many small releases.
    """
    opened.grant(account, budget, accounting=accounting, delta_share=delta_share, adaptive=adaptive or None)
    limit = opened.account(account).statement().limit
    how = f", added up ({limit.accounting}, {limit.how})" if limit.adaptive else ""
    note(f"account {account!r} may spend {budget} in all{how}")


def _known(opened: Ledger, account: str | None) -> str | None:
    """An unknown account is an error, not an empty history."""
    return None if account is None else opened.account(account).name


@ledger.command()
@_opened
@_account
@options.text_format()
def show(opened: Ledger, account: str | None, as_json: bool) -> None:
    """What every account was granted, has spent and has left."""
    accounts = opened.accounts() if account is None else [opened.account(account)]
    found = [one.statement() for one in accounts]
    if as_json:
        print(json.dumps({"accounts": [one.to_dict() for one in found]}, ensure_ascii=False))
        return
    rows = [(one.account, one.granted, _accounting(one), one.spent, one.remaining, one.charges) for one in found]
    print_table(["account", "granted", "accounting", "spent", "remaining", "charges"], rows, right=[5])


def _accounting(one: Statement) -> str:
    return one.accounting + (f" ({one.limit.how})" if one.adaptive else "")


@ledger.command()
@_opened
@_account
@options.text_format()
def history(opened: Ledger, account: str | None, as_json: bool) -> None:
    """All grants, charges and stored releases, oldest first."""
    events = opened.history(_known(opened, account))
    if as_json:
        print(json.dumps({"events": [event.to_dict() for event in events]}, ensure_ascii=False))
        return
    rows = []
    for event in events:
        budget = event.details.get("budget", {})
        amount = ", ".join(f"{name}={value:g}" for name, value in budget.items() if value)
        amount += " (adaptive)" if event.details.get("adaptive") else ""
        amount += f" (costs rho={event.details['cost']['rho']:.3g})" if "cost" in event.details else ""
        rows.append([event.seq, event.at, event.account, event.kind, amount, event.details.get("mechanism", "")])
        rows[-1].append(event.charge_id or "")
    print_table(["no.", "time", "account", "event", "budget", "mechanism", "charge id"], rows, right=[0])


@ledger.command()
@_opened
@_account
@options.takes(option("--output -o", "Write to this file.", options.PATH))
def export(opened: Ledger, account: str | None, output: Path | None) -> None:
    """All events as JSON lines, with the releases that were published."""
    lines = opened.export(_known(opened, account))
    data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    if output is None:
        sys.stdout.buffer.write(data)
    else:
        with AtomicFile(output) as file:
            file.write(data)


@ledger.command()
@_opened
@_account
@options.takes(option("--charge-id", options.CHARGE_ID, required=True))
@place
def release(opened: Ledger, account: str | None, charge_id: str, place: Place) -> None:
    """Print a release that is stored, without its data.

    What was published under the charge id, at no cost. The command that made it does the same if it is repeated with
    --charge-id, also when its files are gone.
    """
    charge, payload = opened.published(charge_id, _known(opened, account))
    publish_stored(place, charge, payload, opened.path)


@ledger.command()
@_opened
def verify(opened: Ledger) -> None:
    """Check everything in a ledger.

    Every event, every stored release, every running total. A charge checks what it decides on. This reads all of it,
    and exits with 1 if anything was altered.
    """
    print(f"{opened.verify()} events: every one of them, what they store and what they add up to is as written")


@ledger.command()
@_opened
@options.takes(option("--output -o", "The new file.", options.PATH, required=True))
def backup(opened: Ledger, output: Path) -> None:
    """Copy a ledger to a new file.

    The copy is verified, and others may use the ledger meanwhile. Do not put a backup in the place of a ledger that
    still exists: it has forgotten what was charged since.
    """
    note(f"{opened.backup(output)} events copied to {output}")
