"""How a command says its options, and the options that commands share; those that belong together are one argument.

@options.command(options.QUIET)
def plan(
    files: tuple[str, ...] = options.files("Files to count the rows of, instead of --length."),
    source: Source = options.reading(),
    budget: Budget = options.BUDGET,
    length: int | None = option("--length", "Approximate number of rows.", int),
) -> None: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from discreet._data_class import dataclass
from discreet.cli import output
from discreet.cli.output import batches, note, note_left_out, remark
from discreet.errors import ParameterError, nearest
from discreet.questions.words import SAID

if TYPE_CHECKING:
    from pathlib import Path

    from discreet.events.files import FileRows
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import Account
    from discreet.questions.words import Word

LOCK_WAIT_SECONDS = 60.0  # for a state that another command is changing; it takes as long as that reads


class _PathLater(click.Path):
    """A path of `pathlib`, which takes longer to load than most commands need for a file: when there is one.

    With `urls` also the URL of a file in a store, with `servers` the address of a server, as it is.
    """

    def __init__(self, *, urls: bool = False, servers: bool = False) -> None:
        super().__init__()
        self._urls, self._servers = urls, servers

    def coerce_path_result(self, value: Any) -> Any:
        if self._servers and "://" in str(value):
            return value
        if self._urls:
            from discreet.events.inputs import DATABASE, scheme_of

            if scheme_of(str(value)) not in (None, DATABASE):
                from discreet.events.stores import Url

                return Url(value)
        from pathlib import Path

        return Path(value)


PATH, PATH_OR_URL, LEDGER_PLACE = _PathLater(), _PathLater(urls=True), _PathLater(servers=True)


def option(names: str, help: str, type: Any = None, **how: Any) -> Any:
    """An option of the command line: its names, what it means, the type of its value; text without one."""
    return click.Option(names.split(), help=help, type=type, **{"show_default": True, **how})


def flag(names: str, help: str, **how: Any) -> Any:
    """An option without a value."""
    return click.Option(names.split(), help=help, is_flag=True, **how)


def path(names: str, help: str, **how: Any) -> Any:
    """An option whose value is a file."""
    return option(names, help, PATH, **how)


def of_word(each: Word) -> list[click.Option]:
    """The option of a word of a question, or those that each stand for one of its values."""
    kind, named = each.kind, each.option or each.name.replace("_", "-")
    names = [*([f"-{each.letter}"] if each.letter else []), f"--{named}", each.name]
    if kind.type is bool:
        return [click.Option(names, help=each.help, is_flag=True)]
    if kind.flag is not None:
        flags = ((named, kind.flag, each.help), *kind.more_flags)
        return [
            click.Option([f"--{name}", each.name], flag_value=value, help=help, type=kind.type, multiple=True)
            for name, value, help in flags
        ]
    default = each.default if each.default is None or isinstance(each.default, tuple) else (each.default,)
    made = click.Option(
        names,
        help=each.help,
        default=default,
        show_default=default is not None,
        type=click.Choice(kind.choices) if kind.choices else kind.type,
        nargs=kind.values,
        metavar=kind.shown,
        multiple=True,  # also of words that are said once: click would take the last of several
    )
    return [made]


def choice(*values: str) -> click.Choice[str]:
    """One of these words."""
    return click.Choice(values)


class Group(click.Group):
    """Commands in the order in which they are defined."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        found = super().get_command(ctx, cmd_name)
        if found is None:
            raise click.UsageError(f"no command named {cmd_name!r}{nearest(cmd_name, self.commands)}", ctx)
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class _Argument(click.Argument):
    """An argument whose meaning is shown with the options."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.make_metavar(ctx), self.help or ""


def argument(name: str, help: str, type: Any = None, **how: Any) -> Any:
    """An argument of the command line: its name, what it means, the type of its value."""
    made = _Argument([name], type=type, **how)
    made.help = help
    return made


_SECTIONS = {
    "Question": (),  # and all that have no other place
    "Privacy": ("epsilon", "delta", "rho", "ledger", "account", "charge_id", "period", "from", "until"),
    "Input": (
        *("input_format", "encoding", "delimiter", "quote", "header", "nulls", "bad_rows", "max_bad"),
        *("endpoint", "sql", "lookup", "on"),
    ),
    "Output": ("output", "format", "plot", "explain", "confidence", "quiet", "help", "help_all"),
}


class QuestionCommand(click.Command):
    """A command that asks about data: its options in sections, those that few need under --help-all.

    Attributes:
        example: A command that asks it.
        advanced: Names of options that only --help-all shows.
    """

    example: str = ""
    advanced: frozenset[str] = frozenset()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        place = {name: title for title, names in _SECTIONS.items() for name in names}
        shown: dict[str, list[tuple[str, str]]] = {title: [] for title in _SECTIONS}
        told_already = hasattr(click.Command, "format_arguments")  # of newer versions of click
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            name = "help" if "--help" in parameter.opts else str(parameter.name)
            names = {name, *(each.lstrip("-") for each in parameter.opts)}
            seldom = not names.isdisjoint(self.advanced) and not ctx.meta.get("discreet.help_all")
            if record is not None and not seldom and not (told_already and isinstance(parameter, click.Argument)):
                shown[place.get(name, "Question")].append(record)
        for title, records in shown.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """An example, and where more is told."""
        with formatter.section("Example"):
            formatter.write_text(f"discreet {self.example}")
        formatter.write_paragraph()
        formatter.write_text(f"More options: discreet {self.name} --help-all. Guide: docs/questions.md")


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta["discreet.help_all"] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


HELP_ALL = flag("--help-all", "Show all options and exit.", is_eager=True, expose_value=False, callback=_show_all)


class Gathered:
    """Options that become one argument of a command: what `make` makes of them."""

    def __init__(self, name: str, make: Callable[..., Any], *parameters: click.Parameter) -> None:
        self.name, self.make, self.parameters = name, make, parameters


def command(
    *more: Any, name: str | None = None, group: click.Group | None = None, **how: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function. Its options are the defaults of the function's arguments, and then `more`.

    `how` is for click.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        said = [(each.name, each.default) for each in inspect.signature(function).parameters.values()]
        own = [(name, default) for name, default in said if isinstance(default, (click.Parameter, Gathered))]
        assert all(name == default.name for name, default in own), function
        parts = [*(default for _, default in own), *more]

        @functools.wraps(function)
        def run(**values: Any) -> Any:
            output.quiet = values.pop("quiet", False)
            for part in parts:
                if isinstance(part, Gathered):
                    own = {str(each.name): values.pop(str(each.name)) for each in part.parameters}
                    values[part.name] = part.make(**own)
            return function(**values)

        every = [one for each in parts for one in (each.parameters if isinstance(each, Gathered) else [each])]
        run.__click_params__ = every[::-1]  # type: ignore[attr-defined]
        made: click.Command = (click if group is None else group).command(name, **how)(run)
        return made

    return decorate


# ---- what is read ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """How the files of a command are read."""

    columns: tuple[str, ...]
    nulls: str
    where: Any
    input_format: str | None
    header: bool
    delimiter: str | None
    quote: str | None
    encoding: str | None
    bad_rows: str = "error"

    def __post_init__(self) -> None:
        if self.where is not None:
            from discreet.engines.plain_where import where

            object.__setattr__(self, "where", where(self.where))

    def open(self, files: tuple[str, ...], joint: bool = False) -> FileRows:
        """The rows of files; where items may be `joint`, of several columns or of any type."""
        from discreet.questions.answer import read

        if len(self.columns) > 1 and not joint:
            raise ParameterError(
                "--column was given more than once; this command takes one (`discreet top` takes several)"
            )
        columns: Any = self.columns if joint else next(iter(self.columns), None)
        cells = {"header": self.header, "delimiter": self.delimiter, "quote": self.quote}
        rules = {"where": self.where, "nulls": self.nulls, "bad_rows": self.bad_rows, "plain": not joint}
        data = read(*files, format=self.input_format, encoding=self.encoding, **cells)  # type: ignore[arg-type]
        return data.events.rows(columns or None, **rules)  # type: ignore[return-value]

    def batches(self, files: tuple[str, ...], peek: bool) -> tuple[FileRows, Iterator[Any]]:
        """The rows of files, and their batches.

        With `peek` the first batch is read at once, so that a wrong name or format shows before anything is charged.
        """
        stream = self.open(files)
        read = batches(stream, tell=False)
        return stream, chain(list(islice(read, 1)), read) if peek else read

    def items(self, files: tuple[str, ...], peek: bool = False) -> Callable[[Any], Iterator[Any]]:
        """The items of the files, batch by batch: a function of the universe whose elements they are to be written as.

        `peek` as for `batches`.
        """
        from discreet.events.universe import as_written

        stream, read = self.batches(files, peek)

        def items(universe: Any) -> Iterator[Any]:
            rows = fitting = 0
            for batch in read:
                rows += len(batch)
                for part in as_written(batch.column("item"), universe, self.bad_rows):
                    fitting += len(part)
                    yield part
            note_left_out(stream.bad_rows + rows - fitting, stream.first_bad_row)

        return items

    def tuples(self, files: tuple[str, ...], universes: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Rows with a value of each universe, of as many columns; None where there is none."""
        from discreet.events.universe import columns_written

        if len(self.columns) != len(universes):
            raise ParameterError(
                f"an item has {len(universes)} values here: give --column {len(universes)} times, in the order of the "
                "dimensions"
            )
        return [
            row for arrays in self.open(files, joint=True).columns_read() for row in columns_written(arrays, universes)
        ]


def files(help: str, metavar: str = "[FILE...]") -> Any:
    """The files that a command reads, if there are any."""
    return argument("files", help, nargs=-1, metavar=metavar)


FILES = files("Files or patterns; '-' is standard input.", "FILE...")
ENDS = (
    option("--from", "First day to publish, if there are several.", metavar="DAY"),
    option("--until", "Last day to publish.", metavar="DAY"),
)


COLUMNS = option("--column columns", "Column of the items; by default the only one.", multiple=True)
USER = option("--user", SAID["user"], metavar="NAME")
INPUT_FORMAT = option(
    "--input-format",
    "Format: csv, tsv, jsonl, text, combined, common (web server logs), parquet, arrow or baskets; by default "
    "found from the file. Live input cannot be parquet or arrow.",
)
DELIMITER = option("--delimiter", "csv and tsv: separator of cells: one character, 'tab' or 'space'.")
ENCODING = option("--encoding", "Text encoding: latin-1, cp1252, utf-16, ...; UTF-8 by default.", metavar="NAME")
WRITTEN = (  # how what is read is written
    INPUT_FORMAT,
    flag(
        "--no-header header",
        "csv and tsv: read a file without a header line; columns are then called 1, 2, 3, ...",
        flag_value=False,
        default=True,
    ),
    DELIMITER,
    option("--quote", "csv and tsv: quote around cells: one character, or 'none'; a double quote by default."),
    ENCODING,
)
READING = {
    "format": INPUT_FORMAT,
    **{str(each.name): each for each in WRITTEN[1:]},
    "endpoint": option("--endpoint", "URL of the object store, if it is not the provider's own.", metavar="URL"),
    "sql": option(
        "--sql", "Read the result of this SQL query; each result row must come from one input row.", metavar="SQL"
    ),
    "rows_of_the_result_are_the_events": flag(
        "--rows-of-the-result-are-the-events",
        "With --sql: allow joins and aggregates. The guarantee is then about rows of the result, and says so.",
    ),
}
"""How the files of a question are read, by the arguments of `questions.answer.read`."""

SELDOM = frozenset({"rho", "nulls", "quote", "endpoint", "sql", "rows_of_the_result_are_the_events"}) | {
    *("confidence", "from", "until", "triples")
}
"""Options that only --help-all shows."""


def universe(what: str, more: str = "") -> Any:
    """The items that may occur, as `discreet.events.universe.universe_written` reads them."""
    return option("--universe", f"{what}: N for 0 to N-1, A:B for A to B-1, or a file with one item per line{more}.")


def reading(nulls: str = "error", every_row: bool = False) -> Any:
    """How files are read, as `source`; with `every_row` none can be left out because it cannot be read."""
    rules = [option("--nulls", SAID["nulls"], choice("error", "skip"), default=nulls)]
    if not every_row:
        rules.append(option("--bad-rows", SAID["bad_rows"], choice("skip", "error"), default="skip"))
    return Gathered("source", Source, COLUMNS, *rules, *WRITTEN, option("--where", SAID["where"]))


# ---- what it costs ---------------------------------------------------------------------------------------------------


def budget_of(epsilon: float | None, delta: float | None = None, rho: float | None = None) -> Budget:
    """The budget that the options state."""
    from discreet.privacy.budget import Budget

    if rho is not None:
        if epsilon is not None or delta is not None:
            raise ParameterError("--rho cannot be combined with --epsilon or --delta; give one or the other")
        budget = Budget.zcdp(rho)
    elif epsilon is None:
        raise ParameterError(
            "no budget given; add --epsilon (and --delta), or --rho. A smaller epsilon is stronger; 1 is a common "
            "choice. Delta is the chance that the promise fails; keep it far below 1 / people"
        )
    else:
        budget = Budget(epsilon, delta or 0.0)
    if budget.weakness is not None:
        note(f"warning: {budget.weakness}")
    return budget


BUDGET: Any = Gathered(
    "budget",
    budget_of,
    option("--epsilon", "Privacy budget: smaller is stronger, 1 is a common limit.", float),
    option("--delta", "Chance that the promise fails; keep it far below 1 / people.", float),
    option("--rho", "Privacy budget in zCDP, instead of epsilon and delta.", float),
)


class Paying:
    """Who pays, as the options say: an account of a ledger, which is opened when it is asked for, or nobody.

    Attributes:
        ledger: As it was given.
        name: Of the account.
        given_id: The name of the charge, as it was given.
    """

    def __init__(
        self, ledger: Path | str | None = None, account: str | None = None, charge_id: str | None = None
    ) -> None:
        if (ledger is None) != (account is None):
            raise ParameterError("--ledger and --account must be given together")
        if ledger is None and charge_id is not None:
            raise ParameterError("--charge-id needs --ledger and --account")
        self.ledger, self.name, self.given_id = ledger, account, charge_id
        if ledger is None:
            self.payer = self.charge_id = None

    @functools.cached_property
    def payer(self) -> Account | None:
        """The account."""
        from discreet.privacy.ledger import Ledger, one_connection

        assert self.ledger is not None
        assert self.name is not None
        click.get_current_context().with_resource(one_connection())  # until the command has ended
        return Ledger(self.ledger).account(self.name)

    @functools.cached_property
    def charge_id(self) -> str | None:
        """The name of the charge: the one that was given, or a new one."""
        import uuid

        return self.given_id or str(uuid.uuid4())

    def tell(self, how: str, budget: Budget) -> None:
        """Tell the operator what was charged."""
        if self.payer is not None:
            remark(f"{how} {self.payer.name!r}: {budget} (charge id {self.charge_id})")


ACCOUNT = option("--account", "Account to charge: one per set of people, not per file.")
CHARGE_ID = "Name of the charge; repeating it returns the same release for free (`pan`: an error)."
LEDGER = option("--ledger", "Ledger to charge: a file, or postgresql://...", LEDGER_PLACE)
PAYING: Any = Gathered("paying", Paying, LEDGER, ACCOUNT)  # the account that pays
PAYING_BY_NAME: Any = Gathered(  # where a release can be had again by the name of its charge
    "paying", Paying, LEDGER, ACCOUNT, option("--charge-id", CHARGE_ID)
)


# ---- what is printed -------------------------------------------------------------------------------------------------


def confidence(help: str) -> Any:
    """How sure the intervals are."""
    return option("--confidence", help, float, default=0.95)


def text_format(what: str = "it") -> Any:
    """How a report is printed, as `as_json`."""
    kinds = option("--format", f"How to print {what}.", choice("table", "json"), default="table")
    return Gathered("as_json", lambda format: format == "json", kinds)


QUIET = flag("--quiet -q", "Print no progress and no remarks.")
