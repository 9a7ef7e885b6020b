"""The `discreet` command: its subcommands, and what becomes of an error."""

from __future__ import annotations

import errno
import gc
import os
import sys
from contextlib import suppress
from importlib import import_module

import click

from discreet import errors
from discreet._version import __version__
from discreet.cli.interrupts import (
    Interrupted,
    handle_interrupts,
    interrupt_arrived,
    interrupt_code,
    no_more_interrupts,
    what_happened,
)
from discreet.cli.output import drop_standard_output, note
from discreet.errors import nearest
from discreet.questions import KINDS
from discreet.storage import NO_ROOM, AtomicFile

EXIT_CODES = """Exit codes: 0 ok; 1 a ledger or an output could not be read or written, or an audit failed; 2 wrong
usage; 3 the budget does not suffice, nothing was released; 4 the data cannot be read; 5 a ledger or a state is in use,
or a disk is full: try again; 6 the charge id or the account stands for something else: trying again does not help; 130
interrupted (143 by SIGTERM), nothing was released."""

_COMMANDS = (
    *KINDS,
    "report",
    "plan",
    "watch",
    "explain",
    "init",
    "audit",
    "bench",
    "ledger",
    "pan",
    "party",
    "service",
    "completion",
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
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


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
            from discreet.cli.question_commands import command_of

            return command_of(cmd_name)
        command: click.Command = getattr(import_module(f"discreet.cli.{cmd_name}"), cmd_name)
        return command


app = click.version_option(__version__, message="discreet %(version)s", help="Show the version and exit.")(
    _Commands(
        "discreet", help="Publish what is frequent in a stream without revealing who was in it.", epilog=EXIT_CODES
    )
)


def main() -> None:
    """Run the command and exit with its code."""
    # Importing makes many objects and no garbage; looking for it all the while takes a fifth of a short command's time.
    gc.set_threshold(100_000)
    try:
        code = _run()
        no_more_interrupts()
    except Interrupted:  # one that came when nearly everything was over
        code = _interrupted()
        no_more_interrupts()
    for file in AtomicFile.left:  # whose removal an interrupt hit
        with suppress(OSError):
            file.unlink()
    # All is written and closed. Python would look through what was imported three times more before it lets go of it.
    # DuckDB counts at the end what was not let go of, and prints a report of leaks: with it, Python does look.
    if "duckdb" not in sys.modules:
        gc.freeze()
    sys.exit(code)


class _WithoutPandas:
    """Keeps pyarrow from importing pandas, where it is installed, just to recognise its columns.

    There are none here, and importing pandas takes longer than all other imports together. pyarrow is compiled: where
    `sys.modules` has None for pandas it does not take that for an answer, so the import itself must fail.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ImportError("the command line does without pandas")


def _run() -> int:
    hidden = _WithoutPandas()
    sys.meta_path.insert(0, hidden)
    try:
        handle_interrupts()
        code = app(prog_name="discreet", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:  # wrong usage
        error.show()
        return error.exit_code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except (Interrupted, KeyboardInterrupt, click.Abort):
        return _interrupted()
    except errors.BudgetExceededError as error:
        return _fail(3, str(error), *(f"  charged: {charge_id}" for charge_id in error.charges))
    except errors.DataWordError as error:
        return _fail(4, error.spelled(_option))
    except (errors.DataError, errors.CorruptStateError) as error:
        return _fail(4, str(error))
    except errors.WordError as error:
        return _fail(2, error.spelled(_option))
    except (errors.ParameterError, errors.IncompatibleSummaryError) as error:
        return _fail(2, str(error))
    except errors.TryAgainError as error:
        return _fail(5, str(error))
    except errors.ChargeConflictError as error:
        return _fail(6, str(error))
    except errors.DiscreetError as error:
        return _fail(1, str(error))
    except BrokenPipeError:
        # Anyone who read our output has stopped.
        drop_standard_output()
        return 0
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            return _bug(error)
        drop_standard_output()
        return _fail(5 if error.errno in NO_ROOM else 1, f"an output cannot be written: {error.strerror}")
    except Exception as error:
        return _bug(error)
    finally:
        sys.meta_path.remove(hidden)


def _option(word: str) -> str:
    """A word of a question as an option; how a file is written is not how the answer is."""
    return "--input-format" if word == "format" else f"--{word.replace('_', '-')}"


def _bug(error: Exception) -> int:
    """Its message might hold items, so only its kind and its place are shown."""
    if interrupt_code() is not None:  # what became of the interrupt on its way through other people's code
        return _interrupted()
    if os.environ.get("DISCREET_DEBUG"):
        raise error
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    return _fail(
        1, f"internal error: {type(error).__name__} at {where}; please report it (DISCREET_DEBUG=1 shows all of it)"
    )


def _interrupted() -> int:
    interrupt_arrived()
    return _fail(interrupt_code() or 130, what_happened())


def _fail(code: int, *lines: str) -> int:
    note("\n".join(lines))
    return code
