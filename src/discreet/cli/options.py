"""The options that commands share: each is defined here once, and those that belong together become one argument.

    @click.command()
    @options.files(help="Files to count the rows of, instead of --length.")
    @options.reading()
    @options.budget
    @options.quiet
    def plan(files, source, budget): ...

A command adds the options that it alone has with `option`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.output import batches, be_quiet, note, note_left_out, remark
from discreet.errors import ParameterError, nearest
from discreet.questions.words import words_of

if TYPE_CHECKING:
    from pathlib import Path

    from discreet.engines.sql import Query
    from discreet.events.files import FileRows
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import Account
    from discreet.questions.words import Word

LOCK_WAIT_SECONDS = 60.0  # for a state that another command is changing; it takes as long as that reads

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _PathLater(click.Path):
    """A path of `pathlib`, which takes longer to load than most commands need for a file: when there is one."""

    def coerce_path_result(self, value: Any) -> Path:
        from pathlib import Path

        return Path(value)


class _PathOrUrl(_PathLater):
    """The same, or the URL of a file in a store."""

    def coerce_path_result(self, value: Any) -> Any:
        from discreet.events.inputs import scheme_of

        if scheme_of(str(value)) is None:
            return super().coerce_path_result(value)
        from discreet.events.stores import Url

        return Url(value)


class _LedgerPlace(_PathLater):
    """A file, or the address of a server."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, str) and "://" in value else super().convert(value, param, ctx)


PATH = _PathLater()
PATH_OR_URL = _PathOrUrl()
LEDGER_PLACE = _LedgerPlace()


def option(names: str, help: str, type: Any = None, **how: Any) -> click.Option:
    """An option of the command line: its names, what it means, the type of its value; text without one."""
    return click.Option(names.split(), help=help, type=type, **{"show_default": True, **how})


def flag(names: str, help: str, **how: Any) -> click.Option:
    """An option without a value."""
    return click.Option(names.split(), help=help, is_flag=True, **how)


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
    option = click.Option(
        names,
        help=each.help,
        default=default,
        show_default=default is not None,
        type=click.Choice(kind.choices) if kind.choices else kind.type,
        nargs=kind.values,
        metavar=kind.shown,
        multiple=True,  # also of words that are said once: click would take the last of several
    )
    return [option]


def said(question: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The words of a class of questions that were said, by the values of their options."""
    words = {}
    for each in words_of(question):
        values = given.get(each.name, ())
        if isinstance(values, tuple) and not each.kind.several:
            if len(values) > 1:
                option = each.option or each.name.replace("_", "-")
                raise ParameterError(f"--{option} was given more than once; this command takes one")
            values = values[0] if values else None
        if values is not None and values != ():
            words[each.name] = values
    return words


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


class Argument(click.Argument):
    """An argument whose meaning is shown with the options."""

    def __init__(self, name: str, help: str, **how: Any) -> None:
        super().__init__([name], **how)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.make_metavar(ctx), self.help or ""


_SECTIONS = {
    "Question": (),  # and all that have no other place
    "Privacy": ("epsilon", "delta", "rho", "ledger", "account", "charge_id", "period", "from", "until"),
    "Input": (
        "input_format",
        "encoding",
        "delimiter",
        "quote",
        "header",
        "nulls",
        "bad_rows",
        "max_bad",
        "endpoint",
        "sql",
        "lookup",
        "on",
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


def takes(*parameters: click.Parameter) -> Decorator:
    """Give a command these options, each as an argument."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        known = getattr(function, "__click_params__", [])
        function.__click_params__ = [*known, *reversed(parameters)]  # type: ignore[attr-defined]
        return function

    return decorate


class gathers:  # noqa: N801 (a decorator)
    """Give a command these options, all of them as one argument: what `make` makes of them."""

    def __init__(self, name: str, make: Callable[..., Any], *parameters: click.Parameter) -> None:
        self._name, self._make, self.parameters = name, make, parameters

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(**values: Any) -> Any:
            return function(**{self._name: self.of(values)}, **values)

        return takes(*self.parameters)(run)

    def of(self, values: dict[str, Any]) -> Any:
        """The argument. The values of its options are taken out of all that were given."""
        return self._make(**{str(each.name): values.pop(str(each.name)) for each in self.parameters})


# ---- what is read ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """How the files of a command are read."""

    columns: tuple[str, ...]
    nulls: str
    bad_rows: str
    where: Query | None
    how: Mapping[str, Any]  # the arguments of `questions.data.read`

    @property
    def column(self) -> str | None:
        """The column of the items, for commands that know one."""
        if len(self.columns) > 1:
            raise ParameterError(
                "--column was given more than once; this command takes one (`discreet top` takes several)"
            )
        return self.columns[0] if self.columns else None

    def open(self, files: tuple[str, ...], joint: bool = False) -> FileRows:
        """The rows of files; where items may be `joint`, of several columns or of any type."""
        from discreet.questions.data import read

        columns = self.columns or None if joint else self.column
        rules = {"where": self.where, "nulls": self.nulls, "bad_rows": self.bad_rows, "plain": not joint}
        return read(*files, **self.how).events.rows(columns, **rules)  # type: ignore[return-value]

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
        from discreet.events.literals import as_written

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
        from discreet.events.literals import columns_written

        if len(self.columns) != len(universes):
            raise ParameterError(
                f"an item has {len(universes)} values here: give --column {len(universes)} times, in the order of the "
                "dimensions"
            )
        return [
            row for arrays in self.open(files, joint=True).columns_read() for row in columns_written(arrays, universes)
        ]


FILES = Argument("files", "Files or patterns; '-' is standard input.", nargs=-1, metavar="FILE...")


def files(help: str) -> Decorator:
    """The files that a command reads, if there are any."""
    return takes(Argument("files", help, nargs=-1, metavar="[FILE...]"))


ENDS = (
    option("--from", "First day to publish, if there are several.", metavar="DAY"),
    option("--until", "Last day to publish.", metavar="DAY"),
)


COLUMNS = option("--column columns", "Column of the items; by default the only one.", multiple=True)
USER = option("--user", "Column that says whose row it is. Hides whole people.", metavar="NAME")
INPUT_FORMAT = option(
    "--input-format",
    "Format: csv, tsv, jsonl, text, combined, common (web server logs), parquet, arrow or baskets; by default "
    "found from the file. Live input cannot be parquet or arrow.",
)
DELIMITER = option("--delimiter", "csv and tsv: separator of cells: one character, 'tab' or 'space'.")
CELLS = (
    flag(
        "--no-header header",
        "csv and tsv: read a file without a header line; columns are then called 1, 2, 3, ...",
        flag_value=False,
        default=True,
    ),
    DELIMITER,
    option("--quote", "csv and tsv: quote around cells: one character, or 'none'; a double quote by default."),
)
ENCODING = option("--encoding", "Text encoding: latin-1, cp1252, utf-16, ...; UTF-8 by default.", metavar="NAME")


WHERE = option("--where", 'Use only rows where this is true, in SQL: "status = 404".')


WHOLE = flag(
    "--rows-of-the-result-are-the-events",
    "With --sql: allow joins and aggregates. The guarantee is then about rows of the result, and says so.",
)


ENDPOINT = option("--endpoint", "URL of the object store, if it is not the provider's own.", metavar="URL")
SQL = option("--sql", "Read the result of this SQL query; each result row must come from one input row.", metavar="SQL")
READING = {"format": INPUT_FORMAT, **{str(each.name): each for each in (*CELLS, ENCODING, ENDPOINT, SQL, WHOLE)}}
"""How the files of a question are read, by the arguments of `questions.data.read`."""

SELDOM = frozenset(
    {
        "rho",
        "nulls",
        "quote",
        "endpoint",
        "sql",
        "rows_of_the_result_are_the_events",
        "confidence",
        "from",
        "until",
        "triples",
    }
)
"""Options that only --help-all shows."""


BAD_ROWS = option(
    "--bad-rows",
    "What to do with rows that cannot be read: skip them, or stop.",
    choice("skip", "error"),
    default="skip",
)


def universe(what: str, more: str = "") -> click.Option:
    """The items that may occur, as `discreet.events.literals.universe_written` reads them."""
    return option("--universe", f"{what}: N for 0 to N-1, A:B for A to B-1, or a file with one item per line{more}.")


def reading(nulls: str = "error", every_row: bool = False) -> Decorator:
    """How files are read, as `source`; with `every_row` none can be left out because it cannot be read."""

    def make(
        columns: tuple[str, ...],
        nulls: str,
        where: str | None,
        input_format: str | None,
        bad_rows: str = "error",
        **how: Any,
    ) -> Source:
        condition = None
        if where is not None:
            from discreet.engines import sql

            condition = sql.where(where)
        return Source(columns, nulls, bad_rows, condition, {"format": input_format, **how})

    return gathers(
        "source",
        make,
        COLUMNS,
        option(
            "--nulls",
            "What to do with rows that lack a value: stop, or skip them.",
            choice("error", "skip"),
            default=nulls,
        ),
        *([] if every_row else [BAD_ROWS]),
        INPUT_FORMAT,
        *CELLS,
        ENCODING,
        WHERE,
    )


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


budget = gathers(
    "budget",
    budget_of,
    option("--epsilon", "Privacy budget: smaller is stronger, 1 is a common limit.", float),
    option("--delta", "Chance that the promise fails; keep it far below 1 / people.", float),
    option("--rho", "Privacy budget in zCDP, instead of epsilon and delta.", float),
)


class Paying:
    """Who pays: here nobody. `ledger` and `given_id` are as they were given."""

    ledger: Path | str | None = None
    given_id: str | None = None
    payer: Account | None = None
    charge_id: str | None = None


class _ByAccount(Paying):
    """An account of a ledger pays, which is opened when it is asked for."""

    def __init__(self, ledger: Path | str, account: str, charge_id: str | None) -> None:
        self.ledger, self._account, self.given_id = ledger, account, charge_id

    @functools.cached_property
    def payer(self) -> Account:  # type: ignore[override]
        """The account."""
        from discreet.privacy.ledger import Ledger, one_connection

        assert self.ledger is not None
        click.get_current_context().with_resource(one_connection())  # until the command has ended
        return Ledger(self.ledger).account(self._account)

    @functools.cached_property
    def charge_id(self) -> str:  # type: ignore[override]
        """The name of the charge: the one that was given, or a new one."""
        from discreet.privacy.ledger import new_charge_id

        return self.given_id or new_charge_id()


def paying_of(ledger: Path | str | None, account: str | None, charge_id: str | None = None) -> Paying:
    """Who pays, as the options say."""
    if (ledger is None) != (account is None):
        raise ParameterError("--ledger and --account must be given together")
    if ledger is None and charge_id is not None:
        raise ParameterError("--charge-id needs --ledger and --account")
    return Paying() if ledger is None or account is None else _ByAccount(ledger, account, charge_id)


def tell_payment(paying: Paying, how: str, budget: Budget) -> None:
    """Tell the operator what was charged."""
    if paying.payer is not None:
        remark(f"{how} {paying.payer.name!r}: {budget} (charge id {paying.charge_id})")


ACCOUNT = option("--account", "Account to charge: one per set of people, not per file.")
CHARGE_ID = "Name of the charge; repeating it returns the same release for free (`pan`: an error)."
LEDGER = option("--ledger", "Ledger to charge: a file, or postgresql://...", LEDGER_PLACE)

paying = gathers("paying", paying_of, LEDGER, ACCOUNT)  # the account that pays
paying_by_name = gathers(  # where a release can be had again by the name of its charge
    "paying", paying_of, LEDGER, ACCOUNT, option("--charge-id", CHARGE_ID)
)


# ---- what is printed -------------------------------------------------------------------------------------------------


def confidence(help: str) -> click.Option:
    """How sure the intervals are."""
    return option("--confidence", help, float, default=0.95)


def text_format(what: str = "it") -> Decorator:
    """How a report is printed, as `as_json`."""
    return gathers(
        "as_json",
        lambda format: format == "json",
        option("--format", f"How to print {what}.", choice("table", "json"), default="table"),
    )


QUIET = flag(
    "--quiet -q",
    "Print no progress and no remarks.",
    expose_value=False,
    callback=lambda ctx, param, value: be_quiet(value),
)
quiet = takes(QUIET)
