"""The `discreet` command: its subcommands, and its exit codes."""

from __future__ import annotations

import os
from importlib import import_module

import click

from discreet import errors
from discreet._version import __version__
from discreet.cli.output import note
from discreet.errors import nearest
from discreet.questions import KINDS

EXIT_CODES = """Exit codes: 0 ok; 1 a ledger or an output could not be read or written, or an audit failed; 2 wrong
usage; 3 the budget does not suffice, nothing was released; 4 the data cannot be read; 5 a ledger or a state is in use,
or a disk is full: try again; 6 the charge id or the account stands for something else: trying again does not help; 130
interrupted (143 by SIGTERM), nothing was released."""

_COMMANDS = (
    *(*KINDS, "report", "plan", "watch", "explain", "init", "audit", "bench"),
    *("ledger", "pan", "party", "service", "completion"),
)
_WITHOUT_MATRICES = (*KINDS, "report", "plan", "explain", "init", "ledger", "completion")
OLD_OPTIONS = {
    "--user-column": "--user",
    "--max-items-per-user": "--max-items",
    "--max-rows-per-user": "--max-rows",
    "--time-column": "--time",
    "--value-column": "--value",
}
"""Options as the version before spelled them, and as they are spelled now."""
_OTHER_WORDS = {
    "median": "quantiles --quantile 0.5",
    "percentile": "quantiles",
    "average": "mean",
    "avg": "mean",
    "total": "sum",
    "unique": "distinct",
    "uniq": "distinct",
    "frequent": "top",
    "heavy-hitter": "top",
    "serve": "service run",
    "budget": "ledger show",
    "grant": "ledger grant",
}
"""What people may call a command."""


class _Commands(click.Group):
    """Commands that are loaded when they are asked for: each is the object of its module's name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Some options may be spelled as in the version before."""
        told, names = [], {each.partition("=")[0] for each in args}
        for each in args:
            name, equals, value = each.partition("=")
            if name in OLD_OPTIONS:
                if OLD_OPTIONS[name] in names:
                    raise errors.ParameterError(
                        f"{name} is now called {OLD_OPTIONS[name]}: give {OLD_OPTIONS[name]} alone"
                    )
                note(f"{name} is now called {OLD_OPTIONS[name]}")
            told.append(f"{OLD_OPTIONS.get(name, name)}{equals}{value}")
        return super().parse_args(ctx, told)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            meant = _OTHER_WORDS.get(cmd_name.lower().rstrip("s"))
            hint = nearest(cmd_name, _COMMANDS) if meant is None else f"; did you mean '{meant}'?"
            raise click.UsageError(f"no command named {cmd_name!r}{hint}", ctx)
        if cmd_name in _WITHOUT_MATRICES:
            # NumPy would start a thread a core for linear algebra, which wait busily: a tenth of a second of each core.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        if cmd_name in KINDS:
            from discreet.cli.publish import command_of

            return command_of(cmd_name)
        command: click.Command = getattr(import_module(f"discreet.cli.{cmd_name}"), cmd_name)
        return command


app = click.version_option(__version__, message="discreet %(version)s", help="Show the version and exit.")(
    _Commands(
        "discreet", help="Publish what is frequent in a stream without revealing who was in it.", epilog=EXIT_CODES
    )
)


CODES = {
    errors.BudgetExceededError: 3,
    errors.DataError: 4,
    errors.CorruptStateError: 4,
    errors.ParameterError: 2,
    errors.IncompatibleSummaryError: 2,
    errors.TryAgainError: 5,
    errors.ChargeConflictError: 6,
    errors.DiscreetError: 1,
}
"""Exit codes: that of the first that an error is."""


def option_of(word: str) -> str:
    """A word of a question as an option; how a file is written is not how the answer is."""
    return "--input-format" if word == "format" else f"--{word.replace('_', '-')}"
