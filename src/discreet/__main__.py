"""`python -m discreet`: the command line."""

from discreet.cli import command

command()
