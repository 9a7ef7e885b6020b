"""`discreet ledger`: grants, balances, history, verification and backups."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import AccountName, Delta, Epsilon, LedgerPath, Rho, TextFormat, budget_of
from discreet.cli.output import AtomicFile, note, table_text

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account, Ledger, LedgerEvent

app = typer.Typer(
    help="Budgets: grant them, see what is left, see what was spent.", no_args_is_help=True, rich_markup_mode=None
)

Format = Annotated[TextFormat, typer.Option("--format", help="How to print it.")]


def _open(path: Path) -> Ledger:
    from discreet.privacy.ledger import Ledger

    return Ledger(path)


@app.command()
def grant(
    ledger: LedgerPath,
    account: Annotated[str, typer.Option("--account", help="The account's name.", show_default=False)],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    adaptive: Annotated[
        bool,
        typer.Option(
            "--adaptive", help="Budgets may be chosen by looking at earlier releases: add them up. It stays that way."
        ),
    ] = False,
) -> None:
    """Set the total budget of an account.

    The grant is the account's whole limit: the same again changes nothing, a larger one extends it, one below what was
    spent is refused. Nothing is ever reset or refunded.
    """
    budget = budget_of(epsilon, delta, rho)
    opened = _open(ledger)
    opened.grant(account, budget, adaptive=adaptive or None)
    how = ", added up" if opened.account(account).adaptive else ""
    note(f"account {account!r} may spend {budget} in all{how}")


@app.command()
def show(ledger: LedgerPath, account: AccountName = None, format: Format = TextFormat.table) -> None:
    """What every account was granted, has spent and has left."""
    opened = _open(ledger)
    accounts = opened.accounts() if account is None else [opened.account(account)]
    reports = [_report(one) for one in accounts]
    if format is TextFormat.json:
        print(json.dumps({"accounts": [report for report, _ in reports]}, ensure_ascii=False))
    else:
        print(
            table_text(["account", "granted", "spent", "remaining", "charges"], [row for _, row in reports], right=[4]),
            end="",
        )


def _report(account: Account) -> tuple[dict[str, Any], list[Any]]:
    now = account.statement()
    report = {"account": now.account, "charges": now.charges, "adaptive": now.adaptive}
    for name, amount in (("granted", now.granted), ("spent", now.spent), ("remaining", now.remaining)):
        report[name] = {"epsilon": amount.epsilon, "delta": amount.delta, "rho": amount.rho}
    how = f"{now.granted} (adaptive)" if now.adaptive else now.granted
    return report, [now.account, how, now.spent, now.remaining, now.charges]


@app.command()
def history(ledger: LedgerPath, account: AccountName = None, format: Format = TextFormat.table) -> None:
    """All grants, charges and stored releases, oldest first."""
    events = _events(ledger, account)
    if format is TextFormat.json:
        print(json.dumps({"events": [event.to_dict() for event in events]}, ensure_ascii=False))
        return
    rows = []
    for event in events:
        budget = event.details.get("budget", {})
        amount = ", ".join(f"{name}={value:g}" for name, value in budget.items() if value)
        amount += " (adaptive)" if event.details.get("adaptive") else ""
        rows.append([event.seq, event.at, event.account, event.kind, amount, event.details.get("mechanism", "")])
        rows[-1].append(event.charge_id or "")
    print(table_text(["no.", "time", "account", "event", "budget", "mechanism", "charge id"], rows, right=[0]), end="")


def _events(path: Path, account: str | None) -> list[LedgerEvent]:
    opened = _open(path)
    if account is not None:
        opened.account(account)  # an unknown account is an error, not an empty history
    return opened.history(account)


@app.command()
def export(
    ledger: LedgerPath,
    account: AccountName = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file.", show_default=False)
    ] = None,
) -> None:
    """All events as JSON lines, with the releases that were published."""
    opened = _open(ledger)
    lines = []
    for event in _events(ledger, account):
        line = event.to_dict()
        if event.kind in ("release", "step"):
            line["release"] = _readable(opened.release_payload(event))
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    data = "".join(lines).encode()
    if output is None:
        sys.stdout.buffer.write(data)
    else:
        with AtomicFile(output) as file:
            file.write(data)


@app.command()
def verify(ledger: LedgerPath) -> None:
    """Check everything in a ledger: every event, every stored release, every running total.

    A charge checks what it decides on. This reads all of it, and exits with 1 if anything was altered.
    """
    print(f"{_open(ledger).verify()} events: every one of them, what they store and what they add up to is as written")


@app.command()
def backup(
    ledger: LedgerPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The new file.", show_default=False)],
) -> None:
    """Copy a ledger to a new file, verified, while others may be using it.

    Do not put a backup in the place of a ledger that still exists: it has forgotten what was charged since.
    """
    note(f"{_open(ledger).backup(output)} events copied to {output}")


def _readable(payload: bytes) -> Any:
    """The release as JSON, which it is unless somebody stored something else."""
    try:
        return json.loads(payload)
    except ValueError:
        return {"base64": base64.b64encode(payload).decode()}
