"""The command line: parse, call, print."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the `discreet` command."""
    from discreet._version import __version__

    print(f"discreet {__version__}")
