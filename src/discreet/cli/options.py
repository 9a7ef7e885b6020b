"""The options that commands share: each is defined here once, and those that belong together become one argument.

    @click.command(cls=options.Question)
    @options.files(required=True)
    @options.reading()
    @options.budget
    @options.paying
    @options.quiet
    def count(files, source, budget, paying): ...

A command adds the options that it alone has with `option`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.output import batches, be_quiet, note, note_left_out, remark
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from pathlib import Path

    from discreet.engines.sql import Query, WholeQuery
    from discreet.events.files import FileRows, Files
    from discreet.events.text import Dialect
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import Account

LOCK_WAIT_SECONDS = 60.0  # for a state that another command is changing; it takes as long as that reads

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _PathLater(click.Path):
    """A path of `pathlib`, which takes longer to load than most commands need for a file: when there is one."""

    def coerce_path_result(self, value: Any) -> Path:
        from pathlib import Path

        return Path(value)


PATH = _PathLater()


def option(names: str, help: str, type: Any = None, **how: Any) -> click.Option:
    """An option of the command line: its names, what it means, the type of its value; text without one."""
    return click.Option(names.split(), help=help, type=type, **{"show_default": True, **how})


def flag(names: str, help: str, **how: Any) -> click.Option:
    """An option without a value."""
    return click.Option(names.split(), help=help, is_flag=True, **how)


def choice(*values: str) -> click.Choice[str]:
    """One of these words."""
    return click.Choice(values)


class Group(click.Group):
    """Commands in the order in which they are defined."""

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
    "The question": (),  # and all that have no other place
    "What is read": (
        *("column", "where", "sql", "nulls", "bad_rows", "input_format", "no_header", "delimiter", "quote"),
        "rows_of_the_result_are_the_events",
    ),
    "What it costs": ("epsilon", "delta", "rho", "ledger", "account", "charge_id"),
    "The answer": ("confidence", "format", "output", "plot", "explain", "quiet"),
    "Advanced": ("mechanism", "capacity", "length", "workers", "memory", "total_share", "bins"),
}


class Question(click.Command):
    """A command that asks about data: its options in sections, in which options that all questions share come alike."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        place = {name: title for title, names in _SECTIONS.items() for name in names}
        shown: dict[str, list[tuple[str, str]]] = {title: [] for title in _SECTIONS}
        told_already = hasattr(click.Command, "format_arguments")  # of newer versions of click
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and not (told_already and isinstance(parameter, click.Argument)):
                title = "The answer" if "--help" in parameter.opts else place.get(str(parameter.name), "The question")
                shown[title].append(record)
        for title, records in shown.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def takes(*parameters: click.Parameter) -> Decorator:
    """Give a command these options, each as an argument."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        known = getattr(function, "__click_params__", [])
        function.__click_params__ = [*known, *reversed(parameters)]  # type: ignore[attr-defined]
        return function

    return decorate


def gathers(name: str, make: Callable[..., Any], *parameters: click.Parameter) -> Decorator:
    """Give a command these options, all of them as one argument: what `make` makes of them."""
    own = [str(parameter.name) for parameter in parameters]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(**values: Any) -> Any:
            values[name] = make(**{key: values.pop(key) for key in own})
            return function(**values)

        return takes(*parameters)(run)

    return decorate


# ---- what is read ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """How the files of a command are read."""

    columns: tuple[str, ...]
    input_format: str | None
    nulls: str
    bad_rows: str
    dialect: Dialect | None = None
    query: Query | WholeQuery | None = None

    def reads(self, files: tuple[str, ...]) -> tuple[str, ...]:
        """The files that were given, or that the query names."""
        if self.query is None or self.query.source is None:
            return files
        if files:
            raise ParameterError("the query names what it reads: give no files, or let it read FROM files")
        return (self.query.source,)

    @property
    def whole(self) -> WholeQuery | None:
        """A query whose rows are the events."""
        if self.query is None:
            return None
        from discreet.engines.sql import WholeQuery

        return self.query if isinstance(self.query, WholeQuery) else None

    @property
    def lists(self) -> bool:
        """Whether a row is all that one person has."""
        return self.input_format == "baskets"

    @property
    def column(self) -> str | None:
        """The column of the items, for commands that know one."""
        if len(self.columns) > 1:
            raise ParameterError("--column is given more than once, and this command takes one; `discreet top` several")
        return self.columns[0] if self.columns else None

    def events(self, files: tuple[str, ...]) -> Files:
        """The files as events."""
        from discreet import _native
        from discreet.events.files import Files

        _native.keep_freed_memory()
        return Files(files, format=self.input_format, dialect=self.dialect, query=self.query)

    def open(self, files: tuple[str, ...], joint: bool = False, **words: Any) -> FileRows:
        """The rows of files; where items may be `joint`, of several columns or of any type."""
        columns = self.columns or None if joint else self.column
        rules = {"nulls": self.nulls, "bad_rows": self.bad_rows, "plain": not joint}
        return self.events(files).rows(columns, **rules, **words)  # type: ignore[return-value]

    @property
    def asked(self) -> dict[str, object]:
        """What was asked for, as a charge id stands for it."""
        usual = {"column": self.column, "format": self.input_format, "nulls": self.nulls, "bad_rows": self.bad_rows}
        return usual | self.asked_more

    @property
    def asked_more(self) -> dict[str, object]:
        """Of that, what is seldom said."""
        cells = {} if self.dialect is None else self.dialect.asked
        whole = {} if self.whole is None else {"rows_of_the_result_are_the_events": True}
        return cells if self.query is None else {**cells, "query": self.query.text, **whole}

    def told(self, item: str = "item", user: str | None = None, **more: Any) -> dict[str, Any]:
        """What the answer says of the question, see `Asked`; `item` is what the values of the column are to it."""
        query = None if self.query is None else self.query.text
        return {"columns": {item: self.column, "user": user}, "nulls": self.nulls, "query": query, **more}

    @property
    def remarks(self) -> list[str]:
        """What a reader should know of the query."""
        rows = "Rows are those of the result of the query: what one row of its input changes in them is not bounded."
        return [] if self.whole is None else [rows]

    @property
    def assumed(self) -> tuple[str, ...]:
        """What a guarantee has to say of the query."""
        if self.whole is None:
            return ()
        from discreet.engines.sql import ASSUMED

        return (ASSUMED,)

    def items(self, files: tuple[str, ...], peek: bool = False) -> Callable[[Any], Iterator[Any]]:
        """The items of the files, batch by batch: a function of the universe whose elements they are to be written as.

        With `peek` the first batch is read at once, so that a wrong name or format shows before anything is charged.
        """
        from discreet.events.literals import as_written

        stream = self.open(files)
        read = batches(stream, tell=False)
        first = list(islice(read, 1)) if peek else []

        def items(universe: Any) -> Iterator[Any]:
            rows = fitting = 0
            for batch in chain(first, read):
                rows += len(batch)
                for part in as_written(batch.column("item"), universe, self.bad_rows):
                    fitting += len(part)
                    yield part
                first.clear()
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


def files(required: bool = False, help: str = "Files or patterns; '-' is standard input.") -> Decorator:
    """The files that a command reads."""
    metavar = "FILE..." if required else "[FILE...]"  # a query may name them
    return takes(Argument("files", help, nargs=-1, metavar=metavar))


def _only_one(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    if len(values) > 1:
        raise ParameterError(f"{param.opts[0]} is given more than once, and this command takes one")
    return values[0] if values else None


_COLUMN = "The column of the items; by default the only one. `top` takes several, which hold an item together."
COLUMN = option("--column", _COLUMN, multiple=True, callback=_only_one)
COLUMNS = option("--column columns", _COLUMN, multiple=True)
USER_COLUMN = option("--user-column", "The column that says whose row it is: protects people, with all of their rows.")
INPUT_FORMAT = option(
    "--input-format",
    "csv, tsv, jsonl, text, combined or common (logs of web servers), and where nothing grows parquet, arrow or "
    "baskets (lines of items with blanks between them, one a person); by default the file tells.",
)
CELLS = (
    flag("--no-header", "csv and tsv: there is no header line; columns are named by their numbers, 1 for the first."),
    option("--delimiter", "csv and tsv: what is between cells, one character, 'tab' or 'space'."),
    option("--quote", "csv and tsv: what is around cells with a delimiter inside, one character (\"), or 'none'."),
)


WHERE = option("--where", "Only rows of which this is true, in SQL: \"status = 404 and path like '/shop/%'\".")


WHOLE = flag(
    "--rows-of-the-result-are-the-events",
    "With --sql: take rows of any result, also of joins and aggregates; the guarantee is then about those rows, "
    "whatever they come from, and says so.",
)


def query_of(where: str | None, sql: str | None, whole: bool) -> Query | WholeQuery | None:
    """The query that the options state; `whole` if its rows are the events, wherever they come from."""
    if whole and sql is None:
        raise ParameterError("--rows-of-the-result-are-the-events goes with --sql")
    if where is None and sql is None:
        return None
    if where is not None and sql is not None:
        raise ParameterError("--sql has a WHERE of its own: give it there, and not as --where")
    if sql is None:
        return condition_of(where)
    from discreet.engines.sql import WholeQuery, select

    return WholeQuery(sql) if whole else select(sql)


def condition_of(where: str | None) -> Query | None:
    """The query of --where."""
    if where is None:
        return None
    from discreet.engines import sql

    return sql.where(where)


def dialect_of(no_header: bool = False, delimiter: str | None = None, quote: str | None = None) -> Dialect | None:
    """How cells are written, where the options say anything about it."""
    if not no_header and delimiter is None and quote is None:
        return None
    from discreet.events.text import Dialect

    return Dialect(delimiter, '"' if quote is None else quote or "none", not no_header)


BAD_ROWS = option(
    "--bad-rows",
    "Rows that cannot be read are left out (their number is told to you alone), or an error.",
    choice("skip", "error"),
    default="skip",
)


def universe(what: str, more: str = "") -> click.Option:
    """The items that may occur, as `discreet.events.literals.universe_written` reads them."""
    return option("--universe", f"{what}: N for 0 to N-1, A:B for A to B-1, or a file with one item a line{more}.")


def reading(nulls: str = "error", every_row: bool = False, whole: bool = False) -> Decorator:
    """How files are read, as `source`; with `every_row` none can be left out because it cannot be read.

    With `whole` the rows of any query may be taken as the events.
    """

    def make(
        skip_nulls: bool,
        no_header: bool,
        delimiter: str | None,
        quote: str | None,
        where: str | None,
        sql: str | None,
        bad_rows: str = "error",
        rows_of_the_result_are_the_events: bool = False,
        **values: Any,
    ) -> Source:
        if skip_nulls:
            values["nulls"] = "skip"
        dialect = dialect_of(no_header, delimiter, quote)
        return Source(
            bad_rows=bad_rows, dialect=dialect, query=query_of(where, sql, rows_of_the_result_are_the_events), **values
        )

    without_value = "Rows without a value are an error, or left out."
    gathered = gathers(
        "source",
        make,
        COLUMNS,
        option("--nulls", without_value, choice("error", "skip"), default=nulls),
        flag("--skip-nulls", "The name of --nulls skip in older scripts.", hidden=True),
        *([] if every_row else [BAD_ROWS]),
        INPUT_FORMAT,
        *CELLS,
        WHERE,
        option(
            "--sql",
            'Read the result of a query, of which each row comes from one row of the input: "select lower(url) as url, '
            "ip from 'logs/*.parquet' where status = 404\"; FROM files reads FILE.",
        ),
        *([WHOLE] if whole else []),
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(**values: Any) -> Any:
            if "files" in values:
                values["files"] = values["source"].reads(values["files"])
            return function(**values)

        return gathered(run)

    return decorate


# ---- what it costs ---------------------------------------------------------------------------------------------------


def budget_of(epsilon: float | None, delta: float | None = None, rho: float | None = None) -> Budget:
    """The budget that the options state."""
    from discreet.privacy.budget import Budget
    from discreet.privacy.weak import weakness

    if rho is not None:
        if epsilon is not None or delta is not None:
            raise ParameterError("give either --rho, or --epsilon and --delta")
        budget = Budget.zcdp(rho)
    elif epsilon is None:
        raise ParameterError(
            "a budget is needed: --epsilon (and --delta), or --rho. Smaller epsilon is stronger; 1 is a common limit; "
            "delta is the chance that the promise fails, keep it far below 1 / people"
        )
    else:
        budget = Budget(epsilon, delta or 0.0)
    told = weakness(budget)
    if told is not None:
        note(f"warning: {told}")
    return budget


budget = gathers(
    "budget",
    budget_of,
    option("--epsilon", "Privacy budget: epsilon. Smaller is stronger; 1 is a common limit.", float),
    option("--delta", "Privacy budget: the chance that the promise fails; keep it far below 1 / people.", float),
    option("--rho", "Privacy budget in zCDP (another scale of the same promise), instead of epsilon and delta.", float),
)


class Paying:
    """Who pays: an account of a ledger, or nobody."""

    def __init__(self, ledger: Path | None, account: str | None, charge_id: str | None = None) -> None:
        if (ledger is None) != (account is None):
            raise ParameterError("--ledger and --account go together")
        if ledger is None and charge_id is not None:
            raise ParameterError("--charge-id needs --ledger and --account")
        self.ledger, self._account, self.given_id = ledger, account, charge_id

    @functools.cached_property
    def payer(self) -> Account | None:
        """The account."""
        if self.ledger is None or self._account is None:
            return None
        from discreet.privacy.ledger import Ledger
        from discreet.privacy.ledger_store import one_connection

        click.get_current_context().with_resource(one_connection())  # until the command has ended
        return Ledger(self.ledger).account(self._account)

    @functools.cached_property
    def charge_id(self) -> str | None:
        """The name of the charge: the one that was given, or a new one; None if nobody pays."""
        if self.ledger is None or self.given_id is not None:
            return self.given_id
        from discreet.privacy.ledger import new_charge_id

        return new_charge_id()

    def told(self, how: str, budget: Budget) -> None:
        """Tell the operator what was charged."""
        if self.payer is not None:
            remark(f"{how} {self.payer.name!r}: {budget} (charge id {self.charge_id})")


ACCOUNT = option("--account", "The account's name: it stands for a set of people, not for a data set.")
CHARGE_ID = "Name the charge: repeating it returns the same release at no cost (of `pan`: an error)."
LEDGER = option("--ledger", "The ledger that keeps the budget.", PATH)

paying = gathers("paying", Paying, LEDGER, ACCOUNT)  # the account that pays
paying_by_name = gathers(  # where a release can be had again by the name of its charge
    "paying",
    Paying,
    LEDGER,
    ACCOUNT,
    option("--charge-id", CHARGE_ID),
)


_NOT_ASKED = {
    *("files", "universe", "groups"),  # told apart
    *("epsilon", "delta", "rho", "ledger", "account", "charge_id"),
    *("output", "format", "plot", "explain", "skip_nulls"),
}


def question(
    files: Sequence[str], universe: object = None, groups: object = None, leave_out: Sequence[str] = ()
) -> dict[str, Any]:
    """What the command asks, as a charge id stands for it: its options as they were given, and digests of file names.

    Args:
        files: As they were named.
        universe: What the option says, or what is in its file, JSON-ready.
        groups: The same.
        leave_out: Options that make no other answer.

    Nothing where no ledger would hear of it.
    """
    context = click.get_current_context()
    if context.params["ledger"] is None:
        return {}
    from discreet.privacy.question import question_of

    given = {
        name: value
        for name, value in context.params.items()
        if name not in (*_NOT_ASKED, *leave_out) and value is not None and value is not False and value != ()
    }
    if context.params.get("skip_nulls"):
        given["nulls"] = "skip"
    told = {"universe": universe, "groups": groups, **given}
    return question_of(str(context.info_name), **told, secret={"files": list(files)})


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


quiet = takes(
    flag(
        "--quiet -q",
        "No progress and no remarks on standard error.",
        expose_value=False,
        callback=lambda ctx, param, value: be_quiet(value),
    )
)
