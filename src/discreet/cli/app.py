"""The `discreet` command: its subcommands, and what becomes of an error."""

from __future__ import annotations

import errno
import gc
import os
import sys
import traceback
from importlib.abc import MetaPathFinder
from typing import Annotated

import typer

from discreet import errors
from discreet._version import __version__
from discreet.cli import audit, bench, explain, ledger, pan, party, plan, top, watch
from discreet.cli.interrupts import (
    Interrupted,
    handle_interrupts,
    interrupt_arrived,
    interrupt_code,
    no_more_interrupts,
    what_happened,
)
from discreet.cli.output import AtomicFile, drop_standard_output, note

__all__ = ["main"]

EXIT_CODES = """Exit codes: 0 ok; 1 a ledger or an output could not be read or written, or an audit failed; 2 wrong
usage; 3 the budget does not suffice, nothing was released; 4 the data cannot be read; 130 interrupted (143 by
SIGTERM), nothing was released."""

_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)

app = typer.Typer(
    name="discreet",
    help="Publish what is frequent in a stream without revealing who was in it.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    # The plain help is enough, and importing what makes it colourful takes longer than all the rest.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("top")(top.top)
app.command("plan")(plan.plan)
app.command("watch")(watch.watch)
app.command("explain")(explain.explain)
app.command("audit")(audit.audit)
app.command("bench")(bench.bench)
app.add_typer(ledger.app, name="ledger")
app.add_typer(pan.app, name="pan")
app.add_typer(party.app, name="party")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def _discreet(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command and exit with its code."""
    # Importing makes many objects and no garbage; looking for it all the while takes a fifth of a short command's time.
    gc.set_threshold(100_000)
    code = _run()
    no_more_interrupts()
    AtomicFile.remove_left()
    sys.exit(code)


class _WithoutPandas(MetaPathFinder):
    """pyarrow imports pandas, where it is installed, just to recognise its columns.

    There are none here, and importing pandas takes longer than all other imports together.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ImportError("the command line does without pandas")


def _run() -> int:
    sys.meta_path.insert(0, _WithoutPandas())
    try:
        handle_interrupts()
        app()
        sys.stdout.flush()
        return 0
    except SystemExit as stop:  # how typer ends, also for wrong usage (2)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except (Interrupted, KeyboardInterrupt):
        return _interrupted()
    except errors.BudgetExceededError as error:
        return _fail(3, str(error), *(f"  charged: {charge_id}" for charge_id in error.charges))
    except (errors.DataError, errors.CorruptStateError) as error:
        return _fail(4, str(error))
    except (errors.ParameterError, errors.IncompatibleSummaryError) as error:
        return _fail(2, str(error))
    except errors.DiscreetError as error:
        return _fail(1, str(error))
    except BrokenPipeError:
        # Whoever read our output has stopped.
        drop_standard_output()
        return 0
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            return _bug(error)
        drop_standard_output()
        return _fail(1, f"an output cannot be written: {error.strerror}")
    except Exception as error:
        return _bug(error)


def _bug(error: Exception) -> int:
    """Its message might hold items, so only its kind and its place are shown."""
    if interrupt_code() is not None:  # what became of the interrupt on its way through other people's code
        return _interrupted()
    if os.environ.get("DISCREET_DEBUG"):
        raise error
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
