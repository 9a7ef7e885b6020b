"""`discreet party`: parties turn their files into private messages, an aggregator turns messages into estimates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import options
from discreet.cli.interrupts import uninterrupted
from discreet.cli.options import LOCK_WAIT_SECONDS, Argument, Paying, Source, flag, option
from discreet.cli.output import AtomicFile, note, print_table, remark
from discreet.errors import DataError, DiscreetError, MessageError, ParameterError

if TYPE_CHECKING:
    from discreet.multiparty import Protocol, Stream
    from discreet.privacy.ledger import Account

__all__ = ["party"]

_MOST_LISTED = 2**20
_MOST_BYTES = 2**30


@click.group(no_args_is_help=True)
def party() -> None:
    """Nobody is trusted: each party makes a private message from its own files, any transport carries it, and the
    aggregator estimates from all of them."""


@party.command("round")
@options.takes(
    Argument("output", "Where to write the parameters (JSON).", type=options.PATH, metavar="FILE"),
    option("--round-id", "The round's name; a new one for every round.", required=True),
    option("--epsilon", "What a party's messages may tell about one of its items.", float, required=True),
    option(
        "--universe",
        "All items that may occur: N for 0 to N-1, A:B for A to B-1, a file with one item a line; or 'integers', "
        "'strings' for any.",
    ),
    option("--alphabet", "With --levels: the characters of strings, in order."),
    option("--max-length", "With --alphabet: the longest string.", int),
    option(
        "--protocol",
        "IndependentSketches, Separation, HadamardResponse, LocalHashing, Stream, ...",
        default="IndependentSketches",
    ),
    flag("--levels", "Count intervals too: heavy hitters of large universes, quantiles, ranges."),
    option("--branching", "With --levels: parts of an interval.", int, show_default="16"),
    option("--option", "NAME=VALUE, a parameter of the protocol; may be repeated.", multiple=True),
)
def make_round(
    output: Path,
    round_id: str,
    epsilon: float,
    universe: str | None,
    alphabet: str | None,
    max_length: int | None,
    protocol: str,
    levels: bool,
    branching: int | None,
    option: tuple[str, ...],
) -> None:
    """Write the public parameters of a round, which every party and the aggregator need."""
    from discreet.multiparty import Hierarchy, Strings
    from discreet.multiparty._base import known_protocol

    if (alphabet is None) != (max_length is None):
        raise ParameterError("--alphabet and --max-length go together")
    if not levels and (alphabet is not None or branching is not None):
        raise ParameterError("--alphabet and --branching are for --levels")
    items: Any
    if universe is not None and alphabet is None:
        items = options.universe_of(universe)
    elif universe is None and alphabet is not None and max_length is not None:
        items = Strings(alphabet, max_length)
    else:
        raise ParameterError("give --universe, or --alphabet and --max-length")
    budget, given = options.budget_of(epsilon), dict(map(_option, option))
    try:
        if levels:
            made: Protocol = Hierarchy(round_id, budget, items, protocol, branching, given)
        else:
            made = known_protocol(protocol)(round_id, budget, items, **given)
    except TypeError:
        raise ParameterError(f"an --option is not a parameter of {protocol}") from None
    with AtomicFile(output) as file:
        file.write((json.dumps(made.to_dict(), indent=2) + "\n").encode())


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ParameterError(f"an --option is NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _protocol_of(round_file: Path) -> Protocol:
    from discreet.multiparty import protocol_from_dict

    try:
        values = json.loads(_bytes_of(round_file))
    except ValueError:
        raise DataError(f"{str(round_file)!r} is not the JSON that `discreet party round` writes") from None
    return protocol_from_dict(values)


_round = options.gathers(
    "protocol",
    _protocol_of,
    option(
        "--round round_file",
        "The public parameters, as `discreet party round` wrote them.",
        options.PATH,
        required=True,
    ),
)


@party.command()
@options.files(help="This party's items; '-' is standard input.")
@_round
@options.takes(
    option("--party number", "This party's number, which is public and no other party's.", int, required=True),
    option("--output -o", "Where to write the message.", options.PATH, required=True),
    option("--state", "Of a stream: the party's state, which is made or continued. NOT private.", options.PATH),
    option("--until", "Of a stream: nothing arrives from the last row to this step.", int),
    flag("--resend", "Of a stream: write the last message once more, and nothing new."),
)
@options.reading(every_row=True)
@options.paying
@options.quiet
def encode(
    files: tuple[str, ...],
    source: Source,
    protocol: Protocol,
    number: int,
    output: Path,
    state: Path | None,
    until: int | None,
    resend: bool,
    paying: Paying,
) -> None:
    """Make this party's message. It may be shown to anyone; the items stay here.

    A second message of the same round would spend the budget again: an output that exists is not replaced, and with a
    ledger the same message is written once more.
    """
    from discreet.multiparty import Stream

    is_stream = isinstance(protocol, Stream)
    if is_stream and state is None:
        raise ParameterError("a stream needs --state, where the party goes on from")
    if not is_stream and (state is not None or until is not None or resend):
        raise ParameterError("--state, --until and --resend are for streams")
    if not is_stream and not files:
        raise ParameterError("give files to read; '-' is standard input")
    if output.exists() and not resend:
        raise ParameterError(
            f"the output {str(output)!r} exists; if it is this party's message, send it: another one would spend the "
            "budget again, and of a stream it would be lost"
        )
    message: bytes | None
    payer = paying.payer
    with AtomicFile(output) as file:
        if isinstance(protocol, Stream) and state is not None:
            message = _message_of_stream(protocol, number, files, source, state, until, resend, payer)
        else:
            items = _items(protocol, files, source)
            with uninterrupted():
                message = protocol.party(number).encode(items, ledger=payer)
        if message is None:
            note("nothing to send: no step was sampled and no block ended")
            return
        file.write(message)
    remark(f"{len(message):,} bytes written to {str(output)!r}")


def _items(protocol: Protocol, files: tuple[str, ...], source: Source) -> Any:
    import pyarrow as pa

    chunks = list(source.items(files, protocol.universe))
    return pa.chunked_array(chunks) if chunks else []


def _message_of_stream(
    stream: Stream,
    number: int,
    files: tuple[str, ...],
    source: Source,
    state: Path,
    until: int | None,
    resend: bool,
    payer: Account | None,
) -> bytes | None:
    """The next message of a stream; its state is on disk before it."""
    from discreet.storage import locked

    if source.nulls == "skip":
        raise ParameterError(
            "a row of a stream is a step, and leaving one out would move all that follow: --nulls skip is not for "
            "streams. Steps at the end at which nothing arrived are told with --until"
        )
    if resend and (files or until is not None):
        raise ParameterError("--resend takes no files and no --until")
    with locked(state) as kept:
        items = _items(stream, files, source) if files else []
        if kept.exists:
            made = stream.restore_party(kept.read(), ledger=payer)
            if made.number != number:
                raise ParameterError(f"the state is that of party {made.number}")
            if resend:
                return made.last_message
        elif resend:
            raise ParameterError(f"there is no state {str(state)!r}, so nothing was sent")
        else:
            made = stream.party(number, ledger=payer)

        def save() -> None:
            kept.replace(made.to_bytes())

        with uninterrupted():
            if payer is not None and not kept.exists:
                made.begin(save=save)
            # All in one message, so that the state never holds one that was not handed on. The state is there before
            # the message: noise must not be drawn twice.
            before = made.time
            message = made.feed_until(items, until, save=save)
            remark(f"steps {before + 1} to {made.time} are told")
        return message


@party.command()
@options.takes(
    Argument("messages", "Message files, or directories of them.", nargs=-1, type=options.PATH, metavar="[MESSAGE...]"),
)
@_round
@options.takes(
    option("--item", "Estimate this item; may be repeated.", multiple=True),
    option("--items", "Estimate all items of this file, one a line.", options.PATH),
    option("--top", "The K items with the largest estimates, of a bounded universe.", int),
    option("--share", "With levels: all items that make up at least this share.", float),
    option("--quantile", "With levels: this quantile; may be repeated.", float, multiple=True),
    option("--range", "With levels: LOW:HIGH, both included; may be repeated.", multiple=True),
    option("--time", "Of a stream: estimate at this step.", int),
    option("--state", "Keep what was heard in this file; it is made or continued.", options.PATH),
    options.confidence("Of each interval."),
)
@options.text_format("the estimates")
@options.quiet
def aggregate(
    messages: tuple[Path, ...],
    protocol: Protocol,
    item: tuple[str, ...],
    items: Path | None,
    top: int | None,
    share: float | None,
    quantile: tuple[float, ...],
    range: tuple[str, ...],
    time: int | None,
    state: Path | None,
    confidence: float,
    as_json: bool,
) -> None:
    """Estimate from messages. What cannot be verified is reported and left out; the rest goes on."""
    from discreet.multiparty import Hierarchy, Stream

    if (share is not None or quantile or range) and not isinstance(protocol, Hierarchy):
        raise ParameterError("--share, --quantile and --range need a round with --levels")
    if time is not None and not isinstance(protocol, Stream):
        raise ParameterError("--time is for streams")
    aggregator, heard = _heard(protocol, messages, state)
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
    if quantile:
        places = [(wanted, aggregator.quantile(wanted, confidence)) for wanted in quantile]
        found["quantiles"] = [
            {"share": wanted, "value": place.value, "lower": place.lower, "upper": place.upper}
            for wanted, place in places
        ]
    if range:
        spans = [_range(protocol, text) for text in range]
        counts = [(low, high, aggregator.range_count(low, high, confidence)) for low, high in spans]
        found["ranges"] = [
            {"low": low, "high": high, "count": count.value, "lower": count.lower, "upper": count.upper}
            for low, high, count in counts
        ]
    found["guarantee"] = aggregator.guarantee.to_dict()
    if as_json:
        print(json.dumps(found))
    else:
        _show(found, aggregator.guarantee.sentence(), confidence)


# ---- hearing ---------------------------------------------------------------------------------------------------------


def _heard(protocol: Protocol, messages: tuple[Path, ...], state: Path | None) -> tuple[Any, dict[str, Any]]:
    """The aggregator after these messages, and what became of every one of them."""
    aggregator: Any
    if state is None:
        aggregator = protocol.aggregator()
        return aggregator, _hear(aggregator, messages)
    from discreet.storage import locked

    with locked(state, wait_seconds=LOCK_WAIT_SECONDS) as kept:
        aggregator = protocol.restore(kept.read()) if kept.exists else protocol.aggregator()
        heard = _hear(aggregator, messages)
        with uninterrupted():
            kept.replace(aggregator.to_bytes())
    return aggregator, heard


def _hear(aggregator: Any, messages: tuple[Path, ...]) -> dict[str, Any]:
    """Take what can be taken; what became of every message."""
    heard: dict[str, Any] = {"accepted": 0, "repeated": 0, "rejected": []}
    for path in _message_files(messages):
        try:
            taken = aggregator.receive(_bytes_of(path))
            heard["repeated" if taken is False else "accepted"] += 1
        except DiscreetError as error:  # not a message, or a file that cannot be read
            reason = error.reason if isinstance(error, MessageError) else "file"
            heard["rejected"].append({"file": str(path), "reason": reason, "text": str(error)})
            remark(f"rejected {str(path)!r} ({reason}): {error}")
    return heard


def _message_files(paths: tuple[Path, ...]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
        else:
            yield path


def _bytes_of(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise DiscreetError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise DataError(f"{str(path)!r} is longer than any message or state")
    return data


# ---- answering -------------------------------------------------------------------------------------------------------


def _asked(protocol: Protocol, item: tuple[str, ...], items: Path | None, top: int | None) -> list[Any] | None:
    if top is not None:
        if item or items:
            raise ParameterError("give either --top, or --item and --items")
        size = protocol.universe.size
        if size is None or size > _MOST_LISTED:
            raise ParameterError(f"--top needs a universe of at most {_MOST_LISTED} items; or --levels and --share")
        listed: list[Any] = protocol.universe.items(range(size))
        return listed
    asked = [*item, *(options.lines_of(items) if items is not None else [])]
    return [_parsed(protocol, text) for text in asked] if asked else None


def _parsed(protocol: Protocol, text: str) -> Any:
    if not getattr(protocol.universe, "has_numbers", False):
        return text
    try:
        return int(text)
    except ValueError:
        raise ParameterError("the universe has integers; write items as such") from None


def _range(protocol: Protocol, text: str) -> tuple[Any, Any]:
    low, colon, high = text.partition(":")
    if not colon:
        raise ParameterError("a --range is LOW:HIGH")
    return _parsed(protocol, low), _parsed(protocol, high)


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
    from discreet.releases.formats import intervals, paragraph

    heard, interval = found["messages"], f"{100 * confidence:g}% interval"

    def show(name: str, heading: str, label: Callable[[dict[str, Any]], Any]) -> None:
        rows = found.get(name)
        if rows is not None:
            between = intervals([row["lower"] for row in rows], [row["upper"] for row in rows])
            cells = [(label(row), f"{row['count']:,.0f}", ends) for row, ends in zip(rows, between, strict=True)]
            print_table([heading, "estimate", interval], cells, right=[1, 2])

    show("estimates", "item", lambda row: row["item"])
    show("heavy_hitters", "item", lambda row: row["item"])
    if not found.get("complete", True):
        print("More intervals looked heavy than were followed: this share is within the noise.")
    if "quantiles" in found:
        rows = [(f"{row['share']:g}", row["value"], f"{row['lower']} to {row['upper']}") for row in found["quantiles"]]
        print_table(["quantile", "item", interval], rows)
    show("ranges", "range", lambda row: f"{row['low']} to {row['high']}")
    if "coverage" in found:
        missing = {number: part for number, part in found["coverage"].items() if part < 1}
        print(f"Steps {found['since'] + 1} to {found['time']}.")
        for number, part in missing.items():
            print(f"Party {number} told about {100 * part:.0f}% of them.")
    rejected = f", {len(heard['rejected'])} rejected" if heard["rejected"] else ""
    repeated = f", {heard['repeated']} repeated" if heard["repeated"] else ""
    print(f"{found['parties']} parties, {found['bytes']:,} bytes{repeated}{rejected}.")
    print(paragraph(sentence))
