"""Options that several commands share, and how they become budgets."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from discreet.errors import ParameterError
from discreet.privacy.budget import Budget

__all__ = [
    *(
        "LOCK_WAIT_SECONDS",
        "AccountName",
        "BadRows",
        "Delta",
        "Epsilon",
        "InputFormat",
        "LedgerPath",
        "Quiet",
        "Rho",
        "TextFormat",
    ),
    "budget_of",
]

LOCK_WAIT_SECONDS = 60.0  # for a state that another command is changing; it takes as long as that reads

Epsilon = Annotated[float | None, typer.Option("--epsilon", help="Privacy budget: epsilon.", show_default=False)]
Delta = Annotated[float | None, typer.Option("--delta", help="Privacy budget: delta.", show_default=False)]
Rho = Annotated[
    float | None,
    typer.Option("--rho", help="Privacy budget in zCDP, instead of epsilon and delta.", show_default=False),
]
LedgerPath = Annotated[Path, typer.Option("--ledger", help="The ledger's file.", show_default=False)]
AccountName = Annotated[str | None, typer.Option("--account", help="The account's name.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on standard error.")]
InputFormat = Annotated[
    str | None,
    typer.Option(help="csv, tsv, parquet, arrow, jsonl or text; by default the file tells.", show_default=False),
]


class BadRows(str, enum.Enum):
    """What becomes of rows that cannot be read."""

    skip = "skip"
    error = "error"


class TextFormat(str, enum.Enum):
    """How a report is printed."""

    table = "table"
    json = "json"


def budget_of(epsilon: float | None, delta: float | None, rho: float | None, default_delta: float = 0.0) -> Budget:
    """The budget that the options state."""
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise ParameterError("give either --rho, or --epsilon and --delta")
        return Budget.zcdp(rho)
    if epsilon is None:
        raise ParameterError("a budget is needed: --epsilon (and --delta), or --rho")
    return Budget(epsilon, default_delta if delta is None else delta)
