"""`discreet service`: run a service, look at what it will promise, make tokens, see how it is."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click

from discreet.cli import options
from discreet.cli.options import argument, choice, flag, option, path
from discreet.cli.output import note, print_table
from discreet.errors import ParameterError


@click.group(cls=options.Group, no_args_is_help=True)
def service() -> None:
    """Publish live numbers on a web page."""


_command = partial(options.command, group=service)
_FILE: Any = argument("file", "The streams, as TOML.", options.PATH, metavar="STREAMS.toml")
_DATA: Any = path(
    "--data",
    "Folder of the service: waiting events, releases, and the ledger unless --ledger is given.",
    required=True,
)


def _need_extra(data: Path | None = None) -> None:
    """Refuse where packages are missing, or where there is no service in a folder."""
    if data is not None and not (data / "service.sqlite").is_file():
        raise ParameterError(f"there is no service in {str(data)!r}; give the folder of `discreet service run --data`")
    try:
        import fastapi  # noqa: F401
        import msgspec  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ParameterError(
            f"the service needs more packages; install them with pip install 'discreet[service]' ({error.name})"
        ) from None


@_command()
def run(
    file: Path = _FILE,
    data: Path = _DATA,
    host: str = option("--host", "Address to listen on.", default="127.0.0.1"),
    port: int = option("--port", "Port to listen on; 0 takes a free one.", click.IntRange(0, 65535), default=8000),
    tls_cert: Path | None = path("--tls-cert", "Certificate (PEM)."),
    tls_key: Path | None = path("--tls-key", "Private key of the certificate (PEM)."),
    ledger: Path | str | None = options.LEDGER,
    take_over: bool = flag(
        "--take-over", "Take over the streams: the service that published them before is refused from now on."
    ),
    log: str = option("--log", "Format of the log lines.", choice("text", "json"), default="text"),
) -> None:
    """Take events and publish, until SIGTERM or Ctrl-C."""
    _need_extra()
    if (tls_cert is None) != (tls_key is None):
        raise ParameterError("--tls-cert and --tls-key must be given together")
    for pem in (tls_cert, tls_key):
        if pem is not None and not pem.is_file():
            raise ParameterError(f"there is no file {str(pem)!r}")
    import logging

    from discreet.service.definitions import load
    from discreet.service.journal import tell
    from discreet.service.server import serve

    _log_to_standard_error(log)
    if tls_cert is None and host not in ("127.0.0.1", "::1", "localhost"):
        note("listening beyond this machine without TLS: tokens can be read on the way")

    def ready(address: str) -> None:
        """Say where it listens: as a line of the log where something reads the log."""
        if log == "text":
            note(f"serving at {address}")
        else:
            tell(logging.INFO, "serving", "serving at {address}", address=address)

    more: dict[str, Any] = {"tls_cert": tls_cert, "tls_key": tls_key, "ledger": ledger, "take_over": take_over}
    serve(load(file), data, host=host, port=port, **more, ready=ready)


def _log_to_standard_error(log: str = "text") -> None:
    import logging

    from discreet.service.journal import LogLines

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines() if log == "json" else logging.Formatter("discreet: %(message)s"))
    for name in ("discreet.service", "uvicorn"):
        logging.getLogger(name).handlers = [handler]  # once, however often a process runs commands


@_command()
def check(file: Path = _FILE, as_json: bool = options.text_format()) -> None:
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


@_command()
def token(
    data: Path = _DATA,
    scope: str | None = option("--scope", "What the token allows.", choice("ingest", "read", "admin")),
    stream: str | None = option("--stream", "Stream that the token is for; all by default."),
    note: str | None = option("--note", "Note to show in the list."),
    list: bool = flag("--list", "List the tokens by number, scope and note (not their secrets)."),
    remove: int | None = option("--remove", "Remove the token with this number.", int),
) -> None:
    """Make a token, which is shown once; or list and remove them."""
    if sum((scope is not None, list, remove is not None)) != 1:
        raise ParameterError("give one of --scope, --list and --remove")
    _need_extra()
    from discreet.service.access import make_token
    from discreet.service.store import Store
    from discreet.watch.timetable import moment

    with closing(Store(data)) as store:
        if scope is not None:
            print(make_token(store, scope, stream, note)[1])
        elif list:
            rows = [
                (str(number), scope, stream or "all", moment(int(made)), text or "")
                for number, _, scope, stream, made, text in store.tokens()
            ]
            print_table(["token", "scope", "stream", "made", "note"], rows)
        elif remove is not None and not store.remove_token(remove):
            raise ParameterError(f"there is no token {remove}; --list shows those there are")


@_command()
def status(
    data: Path = _DATA, ledger: Path | str | None = options.LEDGER, as_json: bool = options.text_format()
) -> None:
    """How far every stream is, and what was spent. For the operator, on the machine itself."""
    _need_extra(data)
    from discreet.service.runtime import status_of

    rows = status_of(data, ledger)
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    heading = ["stream", "ticks", "of", "ends", "spent", "spool bytes"]
    names = ("name", "ticks_published", "ticks", "ends", "spent", "spool_bytes")
    print_table(heading, [tuple("any" if row[name] is None else str(row[name]) for name in names) for row in rows])


@_command()
def backup(
    data: Path = _DATA,
    ledger: Path | str | None = options.LEDGER,
    output: Path = path("--output -o", "Folder to create.", required=True),
) -> None:
    """Copy a service's folder and its ledger, also while it runs.

    NOT private: states and events that wait are in it. Pan streams are left out: their memory may be looked at once.
    """
    _need_extra(data)
    from discreet.service.backup import backup

    left_out = backup(data, output, ledger)
    note(f"copied to {output}" + (f", without the pan streams {', '.join(left_out)}" if left_out else ""))


@_command()
def restore(
    source: Path = argument("source", "The backup.", options.PATH, metavar="BACKUP"),
    data: Path = _DATA,
    ledger_too: bool = flag("--ledger-too", "Also restore the ledger; only if the ledger itself is lost."),
) -> None:
    """Put a backup into a new folder.

    Then start it with `service run --take-over` and the ledger that was in use. A stream with more published
    than the backup has is refused. With --ledger-too what was published and charged since the backup is forgotten.
    """
    _need_extra()
    from discreet.service.backup import restore

    restore(source, data, ledger_too)
    note(f"put into {data}; go on with: discreet service run STREAMS.toml --data {data} --take-over")
