"""The command line: parse, call, print.

Standard output carries the release and nothing else; everything for the operator goes to standard error. What a
command needs is imported when it runs, so that `discreet --help` is quick.
"""

import os

from discreet.cli.interrupts import handle_interrupts

__all__ = ["main"]


def main() -> None:
    """Run the command and exit with its code."""
    handle_interrupts(loading=True)  # before anything else is loaded, which takes a while
    # Batches come and go one after the other: what Arrow frees is used again, and not kept beside. It looks once, when
    # it is loaded.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from discreet.cli import app

    app.main()
