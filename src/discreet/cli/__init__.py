"""The command line: parse, call, print.

Standard output carries the release and nothing else; everything for the operator goes to standard error. What a
command needs is imported when it runs, so that `discreet --help` is quick.
"""

from discreet.cli.process import command, main

__all__ = ["command", "main"]
