"""`discreet explain`: what a release promises, in words for people who do not know the field."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from discreet.cli import options
from discreet.cli.options import Paying, argument, flag, option
from discreet.errors import DataError, ParameterError
from discreet.questions import KINDS


class _OrCommand(click.Command):
    """Takes the name and the arguments of another command as they are."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = args[1:] if args[:1] == ["discreet"] else args  # a command as it is run
        if words and words[0] in KINDS and not Path(words[0]).is_file():
            ctx.obj, args = words, words[:1]
        return super().parse_args(ctx, args)


_RELEASE: Any = argument(
    "release",
    "A release in JSON, or ticks of `watch` (the last one); '-' is standard input. Or a command, to see what it "
    "would cost before it runs: `discreet explain top FILE --column q --epsilon 1`.",
    metavar="RELEASE.json|COMMAND",
)


@options.command(cls=_OrCommand)
def explain(
    release: str = _RELEASE,
    sheet: bool = flag("--sheet", "Print a sheet to sign off the release, with boxes for a person to tick."),
    registry: bool = flag("--registry", "Write the entry for the public registry of deployments, in YAML."),
    data: str | None = option("--data", "With --sheet or --registry: name of the data set."),
    period: str | None = option("--period", "With --sheet or --registry: time that the data are from."),
    paying: Paying = options.PAYING,
) -> None:
    """Explain what a release promises, or what a command would cost.

    What it protects, against whom, and what its epsilon means; or a sheet to sign, or an entry for the public registry.
    Of a command: whom it hides, what it costs and how exact it would be. It does not run, and nothing is spent.
    """
    command = click.get_current_context().obj
    if command is not None:
        from discreet.cli.publish import previewed

        print("\n".join(previewed(command[0], command[1:])))
        return
    if sheet and registry:
        raise ParameterError("--sheet and --registry cannot be combined; give one of them")
    if (data or period) and not (sheet or registry):
        raise ParameterError("--data and --period need --sheet or --registry")
    if paying.ledger and not sheet:
        raise ParameterError("--ledger and --account need --sheet")
    try:
        text = sys.stdin.read() if release == "-" else Path(release).read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{release} cannot be read: {error.strerror}") from None
    except ValueError:
        text = ""  # which is no release
    try:
        told = dict(json.loads(text.splitlines()[-1] if "\n{" in text else text))  # of ticks the last one
        told["guarantee"]["unit"]["name"]
        if sheet:
            from discreet.releases.sheet import paid_by, sign_off_sheet

            paid = {} if paying.ledger is None else paid_by(told, paying.ledger, str(paying.name))
            words = sign_off_sheet(told, data=data, period=period, **paid)
        elif registry:
            from discreet.releases.registry import registry_entry, registry_yaml

            words = registry_yaml(registry_entry(told, data=data, period=period)).rstrip()
        else:
            from discreet.releases.explain import explained

            scaling = (told.get("error_model") or {}).get("scaling")
            words = explained(told["guarantee"], told.get("counted", "events"), told.get("left_out"), scaling)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{release} is not a release; give the JSON that a question writes, such as `discreet top --format json`"
        ) from None
    print(words)
