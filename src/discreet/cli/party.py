"""`discreet party`: parties turn their files into private messages, an aggregator turns messages into estimates."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.interrupts import uninterrupted
from discreet.cli.options import LOCK_WAIT_SECONDS, AccountName, InputFormat, Quiet, TextFormat
from discreet.cli.output import AtomicFile, note, table_text
from discreet.errors import DataError, DiscreetError, MessageError, ParameterError

if TYPE_CHECKING:
    from discreet.multiparty import Protocol, Stream

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Nobody is trusted: each party makes a private message from its own files, any transport carries it, and the "
    "aggregator estimates from all of them.",
)

_MOST_LISTED = 2**20
_MOST_BYTES = 2**30

RoundFile = Annotated[
    Path, typer.Option("--round", help="The public parameters, as `discreet party round` wrote them.")
]


@app.command("round")
def round_(
    output: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the parameters (JSON).")],
    round_id: Annotated[str, typer.Option(help="The round's name; a new one for every round.")],
    epsilon: Annotated[float, typer.Option(help="What a party's messages may tell about one of its items.")],
    universe: Annotated[
        str | None,
        typer.Option(
            help="All items that may occur: N for 0 to N-1, A:B for A to B-1, a file with one item a line; or "
            "'integers', 'strings' for any.",
            show_default=False,
        ),
    ] = None,
    alphabet: Annotated[
        str | None, typer.Option(help="With --levels: the characters of strings, in order.", show_default=False)
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(help="With --alphabet: the longest string.", show_default=False)
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="IndependentSketches, Separation, HadamardResponse, LocalHashing, Stream, ...")
    ] = "IndependentSketches",
    levels: Annotated[
        bool, typer.Option("--levels", help="Count intervals too: heavy hitters of large universes, quantiles, ranges.")
    ] = False,
    branching: Annotated[
        int | None, typer.Option(help="With --levels: parts of an interval.", show_default="16")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE, a parameter of the protocol; may be repeated.", show_default=False),
    ] = None,
) -> None:
    """Write the public parameters of a round, which every party and the aggregator need."""
    from discreet.multiparty import Hierarchy, Strings
    from discreet.multiparty._base import known_protocol
    from discreet.privacy.budget import Budget

    if (alphabet is None) != (max_length is None):
        raise ParameterError("--alphabet and --max-length go together")
    if not levels and (alphabet is not None or branching is not None):
        raise ParameterError("--alphabet and --branching are for --levels")
    if (universe is None) == (alphabet is None):
        raise ParameterError("give --universe, or --alphabet and --max-length")
    items = Strings(alphabet, max_length) if alphabet is not None and max_length is not None else _universe(universe)
    options = dict(map(_option, option or []))
    try:
        if levels:
            made: Protocol = Hierarchy(round_id, Budget(epsilon), items, protocol, branching, options)
        else:
            made = known_protocol(protocol)(round_id, Budget(epsilon), items, **options)
    except TypeError:
        raise ParameterError(f"an --option is not a parameter of {protocol}") from None
    with AtomicFile(output) as file:
        file.write((json.dumps(made.to_dict(), indent=2) + "\n").encode())


@app.command("encode")
def encode(
    round_file: RoundFile,
    party: Annotated[int, typer.Option(help="This party's number, which is public and no other party's.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the message.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE...]", help="This party's items; '-' is standard input.", show_default=False),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The column of the items; by default the only one.", show_default=False)
    ] = None,
    skip_nulls: Annotated[
        bool, typer.Option("--skip-nulls", help="Leave rows without a value out; else they are an error.")
    ] = False,
    input_format: InputFormat = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="Of a stream: the party's state, which is made or continued. NOT private.", show_default=False
        ),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(help="Of a stream: nothing arrives from the last row to this step.", show_default=False),
    ] = None,
    resend: Annotated[
        bool, typer.Option("--resend", help="Of a stream: write the last message once more, and nothing new.")
    ] = False,
    ledger: Annotated[Path | None, typer.Option(help="The ledger that keeps the budget.", show_default=False)] = None,
    account: AccountName = None,
    quiet: Quiet = False,
) -> None:
    """Make this party's message. It may be shown to anyone; the items stay here.

    A second message of the same round would spend the budget again: an output that exists is not replaced, and with a
    ledger the same message is written once more.
    """
    from discreet.multiparty import Stream

    protocol = _read_round(round_file)
    if isinstance(protocol, Stream):
        if state is None:
            raise ParameterError("a stream needs --state, where the party goes on from")
        return _encode_stream(protocol, party, files or [], column, input_format, skip_nulls, state, until, resend,
                              output, (ledger, account), quiet)  # fmt: skip
    if state is not None or until is not None or resend:
        raise ParameterError("--state, --until and --resend are for streams")
    if not files:
        raise ParameterError("give files to read; '-' is standard input")
    _refuse_existing(output)
    payer = _account(ledger, account)
    with AtomicFile(output) as file:
        items = _read_items(protocol, files, column, input_format, skip_nulls, quiet)
        with uninterrupted():
            message = protocol.party(party).encode(items, ledger=payer)
            file.write(message)
    if not quiet:
        note(f"{len(message):,} bytes written to {str(output)!r}")
    return None


def _refuse_existing(output: Path) -> None:
    if output.exists():
        raise ParameterError(
            f"the output {str(output)!r} exists; if it is this party's message, send it: another one would spend the "
            "budget again, and of a stream it would be lost"
        )


def _encode_stream(
    stream: Stream,
    party: int,
    files: list[str],
    column: str | None,
    input_format: str | None,
    skip_nulls: bool,
    state: Path,
    until: int | None,
    resend: bool,
    output: Path,
    paying: tuple[Path | None, str | None],
    quiet: bool,
) -> None:
    from discreet.storage import locked

    if skip_nulls:
        raise ParameterError(
            "a row of a stream is a step, and leaving one out would move all that follow: --skip-nulls is not for "
            "streams. Steps at the end at which nothing arrived are told with --until"
        )
    if not resend:
        _refuse_existing(output)
    payer = _account(*paying)
    with AtomicFile(output) as file, locked(state) as kept:
        items = _read_items(stream, files, column, input_format, False, quiet) if files else []
        if kept.exists:
            made = stream.restore_party(kept.read(), ledger=payer)
            if made.number != party:
                raise ParameterError(f"the state is that of party {made.number}")
            if resend and (files or until is not None):
                raise ParameterError("--resend takes no files and no --until")
        else:
            if resend:
                raise ParameterError(f"there is no state {str(state)!r}, so nothing was sent")
            made = stream.party(party, ledger=payer)
        message = made.last_message if resend else None
        if not resend:
            with uninterrupted():
                if payer is not None and not kept.exists:
                    made.begin(save=lambda: kept.replace(made.to_bytes()))
                # All in one message, so that the state never holds one that was not handed on.
                before = made.time
                # The state is there before the message: noise must not be drawn twice.
                message = made.feed_until(items, until, save=lambda: kept.replace(made.to_bytes()))
                if not quiet:
                    note(f"steps {before + 1} to {made.time} are told")
        if message is None:
            note("nothing to send: no step was sampled and no block ended")
            return
        file.write(message)
        if not quiet:
            note(f"{len(message):,} bytes written to {str(output)!r}")


@app.command("aggregate")
def aggregate(
    round_file: RoundFile,
    messages: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[MESSAGE...]", help="Message files, or directories of them.", show_default=False),
    ] = None,
    item: Annotated[
        list[str] | None, typer.Option(help="Estimate this item; may be repeated.", show_default=False)
    ] = None,
    items: Annotated[
        Path | None, typer.Option(help="Estimate all items of this file, one a line.", show_default=False)
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(help="The K items with the largest estimates, of a bounded universe.", show_default=False),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(help="With levels: all items that make up at least this share.", show_default=False),
    ] = None,
    quantile: Annotated[
        list[float] | None, typer.Option(help="With levels: this quantile; may be repeated.", show_default=False)
    ] = None,
    range_: Annotated[
        list[str] | None,
        typer.Option("--range", help="With levels: LOW:HIGH, both included; may be repeated.", show_default=False),
    ] = None,
    time: Annotated[int | None, typer.Option(help="Of a stream: estimate at this step.", show_default=False)] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="Keep what was heard in this file; it is made or continued.", show_default=False),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of each interval.")] = 0.95,
    format: Annotated[TextFormat, typer.Option("--format", help="How to print the estimates.")] = TextFormat.table,
    quiet: Quiet = False,
) -> None:
    """Estimate from messages. What cannot be verified is reported and left out; the rest goes on."""
    from discreet.multiparty import Hierarchy, Stream

    protocol = _read_round(round_file)
    if (share, quantile, range_) != (None, None, None) and not isinstance(protocol, Hierarchy):
        raise ParameterError("--share, --quantile and --range need a round with --levels")
    if time is not None and not isinstance(protocol, Stream):
        raise ParameterError("--time is for streams")
    if state is None:
        aggregator: Any = protocol.aggregator()
        heard = _hear(aggregator, messages or [], quiet)
    else:
        from discreet.storage import locked

        with locked(state, wait_seconds=LOCK_WAIT_SECONDS) as kept:
            aggregator = protocol.restore(kept.read()) if kept.exists else protocol.aggregator()
            heard = _hear(aggregator, messages or [], quiet)
            with uninterrupted():
                kept.replace(aggregator.to_bytes())
    if aggregator.parties == 0:
        raise DataError("no message could be taken, so there is nothing to estimate")
    found: dict[str, Any] = {
        "round_id": protocol.round_id,
        "protocol": type(protocol).__name__,
        "parties": aggregator.parties,
        "messages": heard,
        "bytes": aggregator.bytes_received,
    }
    words = _asked(protocol, item, items, top)
    if words is not None:
        found.update(_estimates(protocol, aggregator, words, top, time, confidence))
    if share is not None:
        hitters = aggregator.heavy_hitters(share)
        found["heavy_hitters"] = _rows(hitters.items, hitters.estimates, confidence)
        found["complete"] = hitters.complete
    for wanted in quantile or []:
        place = aggregator.quantile(wanted, confidence)
        row = {"share": wanted, "value": place.value, "lower": place.lower, "upper": place.upper}
        found.setdefault("quantiles", []).append(row)
    for text in range_ or []:
        low, high = _range(protocol, text)
        count = aggregator.range_count(low, high, confidence)
        row = {"low": low, "high": high, "count": count.value, "lower": count.lower, "upper": count.upper}
        found.setdefault("ranges", []).append(row)
    found["guarantee"] = aggregator.guarantee.to_dict()
    if format is TextFormat.json:
        print(json.dumps(found))
    else:
        _show(found, aggregator.guarantee.sentence(), confidence)


# ---- reading ---------------------------------------------------------------------------------------------------------


def _bytes_of(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise DiscreetError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise DataError(f"{str(path)!r} is longer than any message or state")
    return data


def _read_round(path: Path) -> Protocol:
    from discreet.multiparty import protocol_from_dict

    try:
        values = json.loads(_bytes_of(path))
    except ValueError:
        raise DataError(f"{str(path)!r} is not the JSON that `discreet party round` writes") from None
    return protocol_from_dict(values)


def _hear(aggregator: Any, messages: list[Path], quiet: bool) -> dict[str, Any]:
    """Take what can be taken; what became of every message."""
    heard: dict[str, Any] = {"accepted": 0, "repeated": 0, "rejected": []}
    for path in _message_files(messages):
        try:
            taken = aggregator.receive(_bytes_of(path))
            heard["repeated" if taken is False else "accepted"] += 1
        except DiscreetError as error:  # not a message, or a file that cannot be read
            reason = error.reason if isinstance(error, MessageError) else "file"
            heard["rejected"].append({"file": str(path), "reason": reason, "text": str(error)})
            if not quiet:
                note(f"rejected {str(path)!r} ({reason}): {error}")
    return heard


def _message_files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
        else:
            yield path


def _read_items(
    protocol: Protocol, files: list[str], column: str | None, format: str | None, skip_nulls: bool, quiet: bool
) -> Any:
    import pyarrow as pa

    from discreet.cli.progress import ReadingProgress
    from discreet.events.stream import open_stream

    stream = open_stream(files, column=column, format=format, nulls="skip" if skip_nulls else "error")
    chunks, rows = [], 0
    with ReadingProgress(stream.bytes_total, quiet) as progress:
        for batch in stream:
            chunks.append(_typed(protocol, batch.column("item")))
            rows += len(chunks[-1])
            progress.update(rows, stream.bytes_read)
    return pa.chunked_array(chunks) if chunks else []


def _typed(protocol: Protocol, items: Any) -> Any:
    """Lines of text as the integers they are written as, if the universe has integers."""
    import pyarrow as pa

    if not _has_integers(protocol) or not (pa.types.is_string(items.type) or pa.types.is_large_string(items.type)):
        return items
    try:
        return items.cast(pa.int64())
    except pa.ArrowInvalid:
        raise DataError("the universe has integers, and an item is not written as one") from None


def _has_integers(protocol: Protocol) -> bool:
    return bool(getattr(protocol.universe, "has_numbers", False))


def _parsed(protocol: Protocol, text: str) -> Any:
    if not _has_integers(protocol):
        return text
    try:
        return int(text)
    except ValueError:
        raise ParameterError("the universe has integers; write items as such") from None


def _universe(text: str | None) -> Any:
    assert text is not None
    if text in ("integers", "strings", "bytes"):
        return text
    first, colon, last = text.partition(":")
    try:
        return range(int(first), int(last)) if colon else range(int(first))
    except ValueError:
        return list(_lines(Path(text)))


def _lines(path: Path) -> Iterator[str]:
    from discreet.events.stream import open_stream

    if not path.is_file():
        raise ParameterError(f"{str(path)!r} is neither N, A:B, 'integers', 'strings', nor a file with one item a line")
    for batch in open_stream([str(path)], format="text"):
        yield from batch.column("item").to_pylist()


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ParameterError(f"an --option is NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _range(protocol: Protocol, text: str) -> tuple[Any, Any]:
    low, colon, high = text.partition(":")
    if not colon:
        raise ParameterError("a --range is LOW:HIGH")
    return _parsed(protocol, low), _parsed(protocol, high)


def _account(ledger: Path | None, account: str | None) -> Any:
    if (ledger is None) != (account is None):
        raise ParameterError("--ledger and --account go together")
    if ledger is None or account is None:
        return None
    from discreet.privacy.ledger import Ledger

    return Ledger(ledger).account(account)


# ---- answering -------------------------------------------------------------------------------------------------------


def _asked(protocol: Protocol, item: list[str] | None, items: Path | None, top: int | None) -> list[Any] | None:
    if top is not None:
        if item or items:
            raise ParameterError("give either --top, or --item and --items")
        size = protocol.universe.size
        if size is None or size > _MOST_LISTED:
            raise ParameterError(f"--top needs a universe of at most {_MOST_LISTED} items; or --levels and --share")
        listed: list[Any] = protocol.universe.items(range(size))
        return listed
    asked = [*(item or []), *(_lines(items) if items is not None else [])]
    return [_parsed(protocol, text) for text in asked] if asked else None


def _estimates(
    protocol: Protocol, aggregator: Any, asked: list[Any], top: int | None, time: int | None, confidence: float
) -> dict[str, Any]:
    from discreet.multiparty import Stream

    is_stream = isinstance(protocol, Stream)
    counts = aggregator.estimate(asked, time) if is_stream else aggregator.estimate(asked)
    rows = _rows(asked, counts, confidence)
    if top is not None:
        rows = sorted(rows, key=lambda row: -row["count"])[:top]
    found: dict[str, Any] = {"estimates": rows}
    if is_stream:
        found.update(since=counts.since, time=counts.time)
        found["coverage"] = {str(number): part for number, part in counts.coverage.items()}
    return found


def _rows(items: list[Any], counts: Any, confidence: float) -> list[dict[str, Any]]:
    lower, upper = counts.bounds(confidence)
    return [
        {"item": item, "count": float(count), "lower": float(low), "upper": float(high)}
        for item, count, low, high in zip(items, counts.values, lower, upper, strict=True)
    ]


def _show(found: dict[str, Any], sentence: str, confidence: float) -> None:
    heard, interval = found["messages"], f"{100 * confidence:g}% interval"
    for title, name in (("item", "estimates"), ("item", "heavy_hitters")):
        if name in found:
            rows = [(row["item"], f"{row['count']:,.0f}", _between(row, ",.0f")) for row in found[name]]
            sys.stdout.write(table_text([title, "estimate", interval], rows, right=[1, 2]))
    if not found.get("complete", True):
        print("More intervals looked heavy than were followed: this share is within the noise.")
    if "quantiles" in found:
        rows = [(f"{row['share']:g}", row["value"], _between(row)) for row in found["quantiles"]]
        sys.stdout.write(table_text(["quantile", "item", interval], rows))
    if "ranges" in found:
        rows = [
            (f"{row['low']} to {row['high']}", f"{row['count']:,.0f}", _between(row, ",.0f")) for row in found["ranges"]
        ]
        sys.stdout.write(table_text(["range", "estimate", interval], rows, right=[1, 2]))
    if "coverage" in found:
        missing = {number: part for number, part in found["coverage"].items() if part < 1}
        print(f"Steps {found['since'] + 1} to {found['time']}.")
        for number, part in missing.items():
            print(f"Party {number} told about {100 * part:.0f}% of them.")
    rejected = f", {len(heard['rejected'])} rejected" if heard["rejected"] else ""
    repeated = f", {heard['repeated']} repeated" if heard["repeated"] else ""
    print(f"{found['parties']} parties, {found['bytes']:,} bytes{repeated}{rejected}.")
    print(textwrap.fill(sentence, 100))


def _between(row: dict[str, Any], how: str = "") -> str:
    return f"{row['lower']:{how}} to {row['upper']:{how}}"
