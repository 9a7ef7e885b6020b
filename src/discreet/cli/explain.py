"""`discreet explain`: what a release promises, in words for people who do not know the field."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from discreet.cli.options import Argument, takes
from discreet.errors import DataError

__all__ = ["explain"]


@click.command()
@takes(Argument("release", "A release in JSON; '-' is standard input.", metavar="RELEASE.json"))
def explain(release: str) -> None:
    """Explain what a release promises.

    What it protects, against whom, and what its epsilon means.
    """
    from discreet.releases.explain import explained

    try:
        text = sys.stdin.read() if release == "-" else Path(release).read_text(encoding="utf-8")
        told = json.loads(text)
        words = explained(told["guarantee"], told.get("counted", "events"), told.get("left_out"))
    except OSError as error:
        raise DataError(f"{release} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{release} is not a release in JSON with a guarantee") from None
    print(words)
