"""`discreet service`: run a service, look at what it will promise, make tokens, see how it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import options
from discreet.cli.options import Argument, choice, flag, option
from discreet.cli.output import note, print_table
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.service.store import Store

__all__ = ["service"]


@click.group(cls=options.Group, no_args_is_help=True)
def service() -> None:
    """Private numbers that people can watch, on a live page."""


_FILE = Argument("file", "The streams, as TOML.", type=options.PATH, metavar="STREAMS.toml")
_DATA = option(
    "--data",
    "The folder of the service: events that wait, releases, and the ledger unless --ledger is elsewhere.",
    options.PATH,
    required=True,
)

_LEDGER = options.LEDGER


def _need_extra() -> None:
    try:
        import fastapi  # noqa: F401
        import msgspec  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ParameterError(
            f"the service needs more packages: pip install 'discreet[service]' ({error.name})"
        ) from None


@service.command()
@options.takes(
    _FILE,
    _DATA,
    option("--host", "The address to listen on.", default="127.0.0.1"),
    option("--port", "The port to listen on; 0 takes a free one.", click.IntRange(0, 65535), default=8000),
    option("--tls-cert", "A certificate, PEM.", options.PATH),
    option("--tls-key", "Its private key, PEM.", options.PATH),
    _LEDGER,
)
def run(
    file: Path, data: Path, host: str, port: int, tls_cert: Path | None, tls_key: Path | None, ledger: Path | None
) -> None:
    """Take events and publish, until SIGTERM or Ctrl-C."""
    _need_extra()
    if (tls_cert is None) != (tls_key is None):
        raise ParameterError("--tls-cert and --tls-key go together")
    for path in (tls_cert, tls_key):
        if path is not None and not path.is_file():
            raise ParameterError(f"there is no file {str(path)!r}")
    from discreet.service.definitions import load
    from discreet.service.server import serve

    _log_to_standard_error()
    if tls_cert is None and host not in ("127.0.0.1", "::1", "localhost"):
        note("listening beyond this machine without TLS: tokens can be read on the way")
    more: dict[str, Any] = {"tls_cert": tls_cert, "tls_key": tls_key, "ledger": ledger}
    serve(load(file), data, host=host, port=port, **more, ready=lambda address: note(f"serving at {address}"))


def _log_to_standard_error() -> None:
    import logging

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("discreet: %(message)s"))
    logging.getLogger("discreet.service").handlers = [handler]  # once, however often a process runs commands


@service.command()
@options.takes(_FILE)
@options.text_format()
def check(file: Path, as_json: bool) -> None:
    """What each stream will promise, and how large its error will be. Nothing is spent."""
    _need_extra()
    from discreet.service.definitions import load
    from discreet.service.forecast import forecast

    _log_to_standard_error()
    found = [forecast(name, definition) for name, definition in load(file).streams.items()]
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for stream in found:
        print(f"{stream['name']}: {stream['publishes']}")
        for line in (stream["promise"], *stream["error"], *stream["warnings"], *stream["remarks"]):
            print(f"  {line}")


def _store(data: Path) -> Store:
    _need_extra()
    from discreet.service.store import Store

    return Store(data)


@service.command()
@options.takes(
    _DATA,
    option("--scope", "What it is for.", choice("ingest", "read", "admin")),
    option("--stream", "For this stream alone; for all without."),
    option("--note", "Words for the list."),
    flag("--list", "Show the tokens there are (not the tokens themselves)."),
    option("--remove", "Remove the token of this number.", int),
)
def token(data: Path, scope: str | None, stream: str | None, note: str | None, list: bool, remove: int | None) -> None:
    """Make a token, which is shown once; or list and remove them."""
    from contextlib import closing

    if sum((scope is not None, list, remove is not None)) != 1:
        raise ParameterError("give one of --scope, --list and --remove")
    with closing(_store(data)) as store:
        if list:
            _show_tokens(store)
        elif remove is not None:
            if not store.remove_token(remove):
                raise ParameterError(f"there is no token {remove}")
        else:
            from discreet.service.tokens import make_token

            assert scope is not None
            print(make_token(store, scope, stream, note)[1])


def _show_tokens(store: Store) -> None:
    from discreet.service.streams import moment

    rows = [
        (str(number), scope, stream or "all", moment(int(made)), text or "")
        for number, _, scope, stream, made, text in store.tokens()
    ]
    print_table(["token", "scope", "stream", "made", "note"], rows)


@service.command()
@options.takes(_DATA, _LEDGER)
@options.text_format()
def status(data: Path, ledger: Path | None, as_json: bool) -> None:
    """How far every stream is, and what was spent. For the operator, on the machine itself."""
    if not (data / "service.sqlite").is_file():
        raise ParameterError(f"there is no service in {str(data)!r}")
    _need_extra()
    from discreet.service.runtime import status_of

    rows = status_of(data, ledger)
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    heading = ["stream", "ticks", "of", "ends", "spent", "spool bytes"]
    print_table(heading, [tuple("any" if row[name] is None else str(row[name]) for name in _STATUS) for row in rows])


_STATUS = ("name", "ticks_published", "ticks", "ends", "spent", "spool_bytes")
