"""`discreet party`: parties turn their files into private messages, an aggregator turns messages into estimates."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import click

from discreet.cli import options
from discreet.cli.options import LOCK_WAIT_SECONDS, Paying, Source, argument, flag, option, path
from discreet.cli.output import note, remark, table_width
from discreet.cli.process import uninterrupted
from discreet.errors import ParameterError
from discreet.storage import AtomicFile


@click.group(cls=options.Group, no_args_is_help=True)
def party() -> None:
    """Count among parties that trust nobody.

    Each party makes a private message from its own files, any transport carries it, and the aggregator estimates from
    all of them.
    """


_command = partial(options.command, group=party)
_LEVELS: Any = flag("--levels", "Also count intervals, for heavy hitters of large universes, quantiles and ranges.")
_ROUND: Any = path(
    "--round round_file", "Public parameters of the round, as `discreet party round` wrote them.", required=True
)


@_command(name="round")
def make_round(
    output: Path = argument("output", "Where to write the parameters (JSON).", options.PATH, metavar="FILE"),
    round_id: str = option("--round-id", "Name of the round; use a new one for every round.", required=True),
    epsilon: float = option(
        "--epsilon",
        "What a party's messages may tell about one of its items. Smaller is stronger; 1 is a common limit.",
        float,
        required=True,
    ),
    universe: tuple[str, ...] = option(
        "--universe",
        "All items that may occur: N for 0 to N-1, A:B, a file with one item per line, or 'integers' or 'strings' "
        "for any. With --levels, once for each dimension.",
        multiple=True,
    ),
    alphabet: str | None = option("--alphabet", "With --levels: all characters of strings, in order."),
    max_length: int | None = option("--max-length", "With --alphabet: length of the longest string.", int),
    protocol: str = option(
        "--protocol",
        "IndependentSketches, Separation, HadamardResponse, LocalHashing, Stream, ...",
        default="IndependentSketches",
    ),
    levels: bool = _LEVELS,
    branching: int | None = option(
        "--branching", "With --levels: parts of an interval; 16 by default, 4 with several dimensions.", int
    ),
    parameters: tuple[str, ...] = option(
        "--option parameters", "Parameter of the protocol, as NAME=VALUE; repeat it for several.", multiple=True
    ),
) -> None:
    """Write the public parameters of a round.

    Every party and the aggregator need them.
    """
    from discreet.events.universe import universe_written
    from discreet.multiparty import Strings
    from discreet.multiparty.post import STREAMS, round_of

    if (alphabet is None) != (max_length is None):
        raise ParameterError("--alphabet and --max-length must be given together")
    if not levels and (alphabet is not None or branching is not None):
        raise ParameterError("--alphabet and --branching need --levels")
    if len(universe) > 1 and (protocol in STREAMS or not levels):
        raise ParameterError("only --levels of a round takes --universe more than once, one per dimension")
    if bool(universe) == (alphabet is not None):
        raise ParameterError("give --universe, or --alphabet and --max-length")
    items: Any = [*map(universe_written, universe)] if universe else [Strings(alphabet or "", max_length or 0)]
    budget, given = options.budget_of(epsilon), dict(map(_option, parameters))
    made = round_of(protocol, round_id, budget, items, given, levels=levels, branching=branching)
    with AtomicFile(output) as file:
        file.write((json.dumps(made.to_dict(), indent=2) + "\n").encode())


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ParameterError(f"--option must be NAME=VALUE, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


@_command(
    option("--parties", "Number of parties.", int, required=True),
    option("--total", "Approximate number of items of all parties together.", int),
    option("--steps", "For a stream, instead of --total: its length, or that of the window.", int),
    flag("--window", "With --steps: count the last steps only, for ever."),
    _LEVELS,
    option("--branching", "With --levels: parts of an interval; 16 by default.", int),
    option("--epsilon", "What a party's messages may tell about one of its items.", float, required=True),
    option("--bytes-per-party", "Average length of a message, in bytes.", float, default=1000.0),
    option("--universe-size", "Number of different items that may occur.", int, default=2**20),
    option("--zipf", "How skewed the items are: exponent of a Zipf law.", float, default=1.2),
    options.text_format(),
    name="plan",
)
def plan_round(levels: bool, branching: int | None, as_json: bool, **given: Any) -> None:
    """Compare the protocols before anything is sent.

    Their errors, their bytes, and what shuffling would buy; of a stream, which epochs to take.
    """
    from discreet.multiparty import plan

    if branching is not None and not levels:
        raise ParameterError("--branching needs --levels")
    if levels:
        given["branching"] = 16 if branching is None else branching
    made = plan(**given)
    print(json.dumps(made.to_dict()) if as_json else made)


@_command(options.QUIET)
def encode(
    files: tuple[str, ...] = options.files("This party's items; '-' is standard input."),
    round_file: Path = _ROUND,
    number: int | None = option("--party number", "Public number of this party; by default a random one.", int),
    output: Path = path("--output -o", "Write the message to this file.", required=True),
    state: Path | None = path("--state", "For a stream: file of the party's state, created or continued. NOT private."),
    until: int | None = option("--until", "For a stream: no rows arrive up to this step.", int),
    resend: bool = flag("--resend", "For a stream: write the last message again, and nothing new."),
    source: Source = options.reading(every_row=True),
    paying: Paying = options.PAYING,
) -> None:
    """Make this party's message. It may be shown to anyone; the items stay here.

    A second message of the same round would spend the budget again: an output that exists is not replaced, and with a
    ledger the same message is written once more.
    """
    import pyarrow as pa

    from discreet.multiparty import GridHierarchy
    from discreet.multiparty.block_stream import BlockStream
    from discreet.multiparty.post import last_message, next_message, protocol_of

    protocol = protocol_of(round_file)
    is_stream, payer = isinstance(protocol, BlockStream), paying.payer
    if not is_stream and (state is not None or until is not None or resend):
        raise ParameterError("--state, --until and --resend work with streams only")
    if not is_stream and not files:
        raise ParameterError("give files to read; '-' is standard input")
    if is_stream and source.nulls == "skip":
        raise ParameterError(
            "--nulls skip cannot be used with streams: each row is a step, and leaving one out would shift the "
            "rest. For empty steps at the end, give --until"
        )
    if resend and (files or until is not None):
        raise ParameterError("--resend cannot be combined with files or --until")
    if output.exists() and not resend:
        raise ParameterError(
            f"the output {str(output)!r} already exists. If it is this party's message, send it: making another "
            "would spend the budget again, and a stream would lose this one"
        )

    def items() -> Any:
        if isinstance(protocol, GridHierarchy):
            return source.tuples(files, protocol.universe.universes)
        chunks = list(source.items(files)(protocol.universe)) if files else []
        return pa.chunked_array(chunks) if chunks else []

    with AtomicFile(output) as file:
        if not isinstance(protocol, BlockStream):
            read = items()
            with uninterrupted(last=True):
                file.write(message := protocol.party(number).encode(read, nulls=source.nulls, ledger=payer))
        elif state is None or number is None:
            raise ParameterError("a stream needs --party and --state (the file that it continues from)")
        else:
            if resend:
                told = last_message(protocol, number, state, ledger=payer)
            else:
                told, first, last = next_message(
                    protocol, number, state, items, until, ledger=payer, undisturbed=partial(uninterrupted, last=True)
                )
                remark(f"steps {first} to {last} are told")
            if told is None:
                note("nothing to send: no step was sampled and no block ended")
                return
            file.write(message := told)
    remark(f"{len(message):,} bytes written to {str(output)!r}")


@_command(
    argument("messages", "Message files, or directories of them.", options.PATH, nargs=-1, metavar="[MESSAGE...]"),
    _ROUND,
    option("--item", "Estimate this item (A,B with several dimensions); repeat it for several.", multiple=True),
    path("--items", "Estimate all items of this file, one per line."),
    option("--top", "List the K items with the largest estimates (bounded universes).", int),
    option("--share", "With levels: list all items that make up at least this share.", float),
    option("--quantile quantiles", "With levels: estimate this quantile; repeat it for several.", float, multiple=True),
    option(
        "--range ranges",
        "With levels: count LOW:HIGH, both included (corners A,B:C,D); repeat it for several.",
        multiple=True,
    ),
    option("--time", "For a stream: estimate at this step.", int),
    path("--state", "File that keeps what was received; created or continued."),
    option("--max-items", "Skip messages about more items than this.", int),
    option("--max-reports", "Local protocols: skip messages with more reports than this; 1 by default.", int),
    option(
        "--minimum-reports",
        "Show nothing before this many parties (local protocols: reports) have sent a message.",
        int,
    ),
    flag("--consistent", "Adjust estimates so that none is negative and they add up to the total."),
    option("--liars", "Show how far this share of the parties could have moved each estimate.", float),
    options.confidence("Probability with which each interval holds."),
    options.text_format("the estimates"),
    options.QUIET,
)
def aggregate(
    messages: tuple[Path, ...], round_file: Path, state: Path | None, confidence: float, as_json: bool, **asked: Any
) -> None:
    """Estimate from messages. What cannot be verified is reported and left out; the rest goes on."""
    from discreet.multiparty.post import Questions, answers_text, hear, protocol_of

    limits = {name: asked.pop(name) for name in ("max_items", "max_reports", "minimum_reports")}
    limits = {name: value for name, value in limits.items() if value is not None}
    protocol = protocol_of(round_file)
    questions = Questions.of(protocol, **asked)
    aggregator, heard = hear(
        protocol, messages, state, limits=limits, wait_seconds=LOCK_WAIT_SECONDS, undisturbed=uninterrupted
    )
    for one in heard["rejected"]:
        remark(f"rejected {one['file']!r} ({one['reason']}): {one['text']}")
    found = questions.report(protocol, aggregator, heard, confidence)
    print(json.dumps(found) if as_json else answers_text(found, aggregator.guarantee, confidence, table_width()))
