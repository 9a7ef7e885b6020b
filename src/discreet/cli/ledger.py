"""`discreet ledger`: grants, balances, history, stored releases, verification and backups."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import options
from discreet.cli.options import flag, option, path
from discreet.cli.output import note, print_table
from discreet.cli.publish import PLACE, Place, publish_stored
from discreet.errors import ParameterError
from discreet.privacy.checks import numbered
from discreet.storage import AtomicFile

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import Ledger


@click.group(cls=options.Group, no_args_is_help=True)
def ledger() -> None:
    """Grant budgets, and see what was spent and what is left."""


def _open(ledger: Path | str) -> Ledger:
    from discreet.privacy.ledger import Ledger

    return Ledger(ledger)


_command = partial(options.command, group=ledger)
_OPENED: Any = options.Gathered(
    "opened", _open, option("--ledger", options.LEDGER.help, options.LEDGER_PLACE, required=True)
)
_ONE_ACCOUNT: Any = option("--account", options.ACCOUNT.help, required=True)


@_command(
    option(
        "--accounting",
        "How releases add up; take basic or zcdp if earlier releases decide later budgets.",
        options.choice("tight", "basic", "zcdp"),
    ),
    option("--delta-share", "With zcdp: share of delta for the deltas of releases; 0.25 by default.", float),
    flag("--adaptive", "The earlier spelling of --accounting basic.", hidden=True),
    option("--unit", "What its releases hide: row, person or person-day (each day has the whole grant)."),
    option("--zone", "Time zone of the days of --unit person-day, as in Europe/Berlin; UTC by default."),
    option("--until", "Last day (UTC) on which it can be charged.", metavar="DAY"),
    option("--renews", "Forget a charge after this time, as in 90d. Needs --different-people.", metavar="SPAN"),
    flag("--different-people", "Confirm that nobody is in two releases as far apart as --renews."),
    option("--approver", "Who grants it, for the history.", metavar="NAME"),
    option("--reason", "Why, for the history.", metavar="TEXT"),
)
def grant(
    opened: Ledger = _OPENED,
    account: str = _ONE_ACCOUNT,
    budget: Budget = options.BUDGET,
    *,
    adaptive: bool,
    unit: str | None,
    zone: str | None,
    **terms: Any,
) -> None:
    """Set the total budget of an account.

    The grant is the account's whole limit: the same again changes nothing, a larger one extends it, one below what was
    spent is refused. Nothing is ever reset or refunded.

    With --accounting tight (the default) budgets follow a schedule. If you choose a budget because of what an earlier
    release showed, take basic, which adds up epsilons, or zcdp, which adds up rhos: best for many small releases.

    With --unit person-day the grant is for each day: charges about other days do not add up.
    """
    from discreet.privacy.guarantee import unit_named

    if zone is not None and unit is None:
        raise ParameterError("--zone needs --unit person-day")
    hidden = None if unit is None else unit_named(unit, zone)
    opened.grant(account, budget, adaptive=adaptive or None, unit=hidden, **terms)
    granted = opened.account(account)
    limit, spans = granted.statement().limit, None if granted.unit is None else granted.unit.spans
    which = "in all" if spans is None else f"about each span of {spans.describe()}"
    which = which if limit.renews is None else f"within any {limit.renews}"
    how = f", added up ({limit.accounting}, {limit.how})" if limit.adaptive else ""
    end = f", until {limit.until}" if limit.until else ""
    note(f"account {account!r} may spend {budget} {which}{how}{end}")


def _known(opened: Ledger, account: str | None) -> str | None:
    """An unknown account is an error, not an empty history."""
    return None if account is None else opened.account(account).name


@_command()
def show(
    opened: Ledger = _OPENED,
    account: str | None = options.ACCOUNT,
    day: str | None = option("--day", "Show what is left for this day (accounts of person-days)."),
    as_json: bool = options.text_format(),
) -> None:
    """What every account was granted, has spent and has left.

    Of an account of person-days: about the days that most was spent about, or about --day. A day that nothing was
    released about has the whole grant left.
    """
    if day is not None and account is None:
        raise ParameterError("--day needs --account")
    accounts = opened.accounts() if account is None else [opened.account(account)]
    found = [one.statement(day) for one in accounts]
    if as_json:
        print(json.dumps({"accounts": [one.to_dict() for one in found]}, ensure_ascii=False))
        return
    columns = ["account", "granted", "accounting", "spent", "remaining", "charges", "about"]
    rows = [[one.account, one.granted, one.terms, one.spent, one.remaining, one.charges, one.about] for one in found]
    print_table(columns, rows, right=[5], seldom=["about"])


@_command()
def history(
    opened: Ledger = _OPENED, account: str | None = options.ACCOUNT, as_json: bool = options.text_format()
) -> None:
    """All grants, charges and stored releases, oldest first."""
    from discreet.privacy.ledger.event_log import HISTORY

    events = opened.history(_known(opened, account))
    if as_json:
        print(json.dumps({"events": [event.to_dict() for event in events]}, ensure_ascii=False))
        return
    print_table(HISTORY, [event.cells() for event in events], right=[0], seldom=["period", "why"])


@_command()
def export(
    opened: Ledger = _OPENED,
    account: str | None = options.ACCOUNT,
    output: Path | None = path("--output -o", "Write to this file."),
) -> None:
    """All events as JSON lines, with the releases that were published."""
    lines = opened.export(_known(opened, account))
    data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    with nullcontext() if output is None else AtomicFile(output) as file:
        (sys.stdout.buffer if file is None else file).write(data)


@_command()
def release(
    opened: Ledger = _OPENED,
    account: str | None = options.ACCOUNT,
    charge_id: str = option("--charge-id", options.CHARGE_ID, required=True),
    place: Place = PLACE,
) -> None:
    """Print a release that is stored, without its data.

    What was published under the charge id, at no cost. The command that made it does the same if it is repeated with
    --charge-id, also when its files are gone.
    """
    charge, payload = opened.published(charge_id, _known(opened, account))
    publish_stored(place, charge, payload, opened.path)


@_command()
def verify(opened: Ledger = _OPENED) -> None:
    """Check everything in a ledger.

    Every event, every stored release, every running total. A charge checks what it decides on. This reads all of it,
    and exits with 1 if anything was altered.
    """
    print(f"verified {numbered(opened.verify(), 'event')}: nothing was altered, and the totals are right")


@_command()
def backup(opened: Ledger = _OPENED, output: Path = path("--output -o", "File to create.", required=True)) -> None:
    """Copy a ledger to a new file.

    The copy is verified, and others may use the ledger meanwhile. Do not put a backup in the place of a ledger that
    still exists: it has forgotten what was charged since.
    """
    note(f"copied {numbered(opened.backup(output), 'event')} to {output}")


@_command()
def create(
    opened: Ledger = _OPENED,
    may_charge: tuple[str, ...] = option(
        "--may-charge", "Database role that may charge but not grant; repeat it for several.", multiple=True
    ),
    may_read: tuple[str, ...] = option(
        "--may-read", "Database role that may read; repeat it for several.", multiple=True
    ),
) -> None:
    """Make a ledger, and give roles of its database their rights.

    The ledger has no accounts yet. One that exists stays as it is, and the roles have to exist. A grant makes a ledger,
    too: this is for the rights.
    """
    opened.create(may_charge=may_charge, may_read=may_read)
    note(f"{opened!r} is there")


@_command()
def move(
    opened: Ledger = _OPENED,
    account: str = _ONE_ACCOUNT,
    to: Path | str = option(
        "--to", "Ledger to move it to: a file, or postgresql://...", options.LEDGER_PLACE, required=True
    ),
) -> None:
    """Move an account to another ledger.

    With its whole history. The account that is left is closed for ever. Refused while a charge waits for its release.
    If the command is interrupted, give it again.
    """
    from discreet.privacy.ledger.transfer import move

    target = _open(to)
    moved = numbered(move(account, opened, target), "event")
    note(f"moved {moved} of account {account!r} to {target!r}, and verified them there")
