"""The one way from a question and its data to what is published, for all front ends; and what these data are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from discreet._data_class import dataclass, field, replace
from discreet.errors import ParameterError, WordError
from discreet.questions.question import Question, spoken, way_to

if TYPE_CHECKING:
    from discreet.engines.sql import Query, WholeQuery
    from discreet.events.assembly import Events, Rows
    from discreet.events.text import Dialect
    from discreet.privacy.budget import Budget
    from discreet.questions.question import Way
    from discreet.questions.report import Report
    from discreet.releases.payment import Payer

# Columns and k stand beside the other words, lists may be long, and the mechanism is in the guarantee.
_TOLD_ELSEWHERE = frozenset({"k", "column", "by", "time", "user", "value", "universe", "groups", "mechanism"})
_TOLD_ELSEWHERE |= {"questions"}  # of a report, each of which says it


def answer(question: Question | Report, data: Any, budget: Budget, payer: Payer | None = None) -> Any:
    """Check, read, charge, draw, store, return.

    A charge id that was used for this question gives what is stored under it: nothing is read, and nothing charged. A
    crash may waste budget; it never publishes anything uncharged.

    Returns:
        A `Release`, an `Estimate`, a `QuantileRelease` or a `ReportRelease`, which says how it was paid.
    """
    from discreet.noise import system_source
    from discreet.privacy.budget import as_budget
    from discreet.releases.payment import Bill, Payer

    budget, payer, data = as_budget(budget), payer or Payer(), data if isinstance(data, Data) else data_of(data)
    described: dict[str, Any] = {}
    test, rest = None, budget
    if isinstance(question, Question) and question.max_bad is not None:
        from discreet.questions.bad_rows import BadRows

        test = BadRows.of(question, data, budget)
        rest = test.rest
    if payer.account is not None:
        described = stands_for(question, data, payer.request)
        if payer.charge_id is None:
            payer = replace(payer, charge_id=charge_id_of(question, data, budget))
        stored = payer.stored(rest, described)
        if stored is not None:
            return stored
        if test is not None:
            test.check_before(payer, described)
    data.read_rows.clear()
    way, cost = way_to(question, data, rest), None
    if payer.account is not None:  # before reading, which may take long
        cost, whose = way.costs(), way.hides or way.unit
        if test is None or test.was_charged(payer):
            payer.check(rest, cost, whose, question.period)
        else:
            payer.check(budget, None, whose, question.period)
    found = way.count()
    try:
        while data.when_read:
            data.when_read.pop()()
        if test is not None:
            test.check(data, payer, way, described, question.period)
            way = test.told_by(way, budget)
        bill = Bill(rest, way.description, way.unit, None, way.hides, described, cost, question.period)
        draw = partial(way.draw, found, payer.source or system_source())
        return payer.pay(bill, draw, told_of(question, data, way))
    finally:
        data.read_rows.clear()
        way.close(found)


def told_of(question: Question | Report, data: Data, way: Way) -> dict[str, Any]:
    """What the answer says was asked (see `Asked`): the words, how the data are read, what was chosen."""
    said = {**question.to_dict(), **data.described, **(way.chosen or {})}
    told = {name: value for name, value in said.items() if name not in _TOLD_ELSEWHERE}
    held = {"column": getattr(question, "holds", ""), "by": "by", "user": "user", "value": "value"}
    named = [(what, getattr(question, name, None)) for name, what in held.items()]
    columns = {what: spoken(name) for what, name in named if name is not None}
    if by := getattr(question, "grouped_by", ()):
        columns["by"] = list(by)
    return {"k": getattr(question, "k", None), "columns": columns, **told}


def charge_id_of(question: Question | Report, data: Data, budget: Budget) -> str | None:
    """The name of the charge of a question about a period of files, where nobody gave it one: the same for the same.

    So a job that is started twice publishes one release and pays for one. None where nothing says which data it is.
    """
    if question.period is None or not data.are_files or "-" in data.secret.get("files", ["-"]):
        return None
    import hashlib
    import json

    terms = [stands_for(question, data), budget.to_dict()]
    digest = hashlib.sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()
    period = question.period if isinstance(question.period, str) else "-to-".join(question.period)
    return f"{question.name}-{period}-{digest[:16]}"


def stands_for(question: Question | Report, data: Data, request: str | None = None) -> dict[str, Any]:
    """What a charge id stands for: the question as it was asked, and of what. It holds nothing of the data."""
    from discreet.privacy.charge_terms import question_of

    words = {name: value for name, value in question.to_dict().items() if name not in question.no_other_answer}
    return question_of(question.name, **words, **data.described, secret={**data.secret, "request": request})


# ---- data ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Events that are opened when they are asked for: a charge id that was used before needs none.

    Attributes:
        opened: Gives the events.
        described: How they are read, JSON-ready: a charge id stands for it beside the question.
        secret: The same, kept as digests in the ledger: names of files.
        assumed: What the guarantee has to say of how the rows were made.
        remarks: What a reader should know of that.
        lists: Whether all rows are lists, one a person.
        are_files: Whether numbers may be written as text, and rows may be damaged.
        counts_bad_rows: Whether it is known which rows of the events could not be read.
        kept: What an answer must not overwrite.
        watch: Called with the rows that are going to be read; what it returns is called when they are.
        when_read: What is called once all is read and nothing is charged yet, the last first.
        read_rows: What a question reads, from when it is known until it is answered.
    """

    opened: Callable[[], Events]
    described: Mapping[str, Any] = field(default_factory=dict)
    secret: Mapping[str, Any] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    lists: bool = False
    are_files: bool = False
    counts_bad_rows: bool = False
    kept: Callable[[], Sequence[str]] = lambda: ()
    watch: Callable[[Rows], Callable[[], None]] = lambda rows: lambda: None
    when_read: list[Callable[[], None]] = field(default_factory=list, init=False)
    read_rows: list[Rows] = field(default_factory=list, init=False)

    @cached_property
    def events(self) -> Events:
        """The events."""
        return self.opened()

    def rows(
        self, question: Question, columns: Sequence[str] | str | None, *, only_number: bool = False, **words: Any
    ) -> Rows:
        """The rows that a question asks for, with these columns; `words` are those of `Wanted`. Nothing is read yet.

        With `only_number` nothing is asked of the rows except how many there are.
        """
        from discreet.events.assembly import Wanted

        condition = None
        if question.where is not None:
            if "sql" in self.described:
                raise WordError("{sql} takes its own WHERE; put the condition there instead of in {where}")
            from discreet.engines.plain_where import where

            condition = where(question.where)
        rules: dict[str, Any] = {"where": condition, "nulls": question.nulls, "bad_rows": question.bad_rows}
        pairing = None if question.unit is None else question.pairing
        if pairing is not None:
            rules["pairing"] = pairing
        events = self.events if question.lookup is None else self.events.with_lookup(question.lookup)
        if only_number:
            found = events.all_rows(**rules)
        else:
            named = (columns,) if isinstance(columns, str) else tuple(columns or ())
            found = events.rows_wanted(Wanted(named, **rules, **words))
        self.read_rows.append(found)
        if question.max_bad is not None and question.user is not None:
            found.mark_people()
        self.when_read.append(self.watch(found))
        return found

    def refuse_strict(self, question: Question) -> None:
        """Refuse that bad rows are errors where whatever counts leaves them out."""
        if question.bad_rows == "error" and not self.are_files:
            raise WordError(
                "{bad_rows} error works with files, and with the top of a table without {user}; here bad rows "
                "are always skipped"
            )


def data_of(data: Any) -> Data:
    """Data as they were given: a table, a column, a data frame of Spark, lists or an iterable, or `Data` already."""
    if isinstance(data, Data):
        return data
    from discreet.events.items import library

    if library(data) == "pyspark":
        from discreet.engines.spark import Frame

        data = Frame(data)
    from discreet.events.assembly import Events
    from discreet.events.items import refuse_elsewhere
    from discreet.events.tables import events_of

    if isinstance(data, Events):
        return Data(lambda: data, described=data.described)
    refuse_elsewhere(data)  # also where nothing has to be read
    return Data(lambda: events_of(data))


def read(
    *paths: str | os.PathLike[str],
    format: str | None = None,
    header: bool = True,
    delimiter: str | None = None,
    quote: str | None = None,
    encoding: str | None = None,
    endpoint: str | None = None,
    sql: str | None = None,
    rows_of_the_result_are_the_events: bool = False,
    watch: Callable[[Rows], Callable[[], None]] = lambda rows: lambda: None,
) -> Data:
    """Files to ask a question of, read as the command line reads them.

        pages = dc.read("logs/*.gz", format="combined")
        dc.top_k(pages, 100, budget, column="path", user="host")

    Nothing is read until a question is asked. A charge id stands for the names of the files, too, so that a repeated
    question returns its stored answer after the files are gone.

    Args:
        paths: Files, patterns and URLs (s3, gs, abfs, https, or postgresql://host/database#table); "-" is standard
            input. None where the query names what it reads; of a database, the query names the table.
        format: csv, tsv, jsonl, text, combined, common, parquet, arrow or baskets; by default the file tells.
        header: csv and tsv: whether the first line names the columns. Otherwise they are called "1", "2", ...
        delimiter: csv and tsv: what is between cells: one character, "tab" or "space".
        quote: csv and tsv: what is around cells with a delimiter inside: one character, or "none".
        encoding: What text is written in: latin-1, cp1252, utf-16, ...; by default UTF-8, or UTF-16 by its first bytes.
        endpoint: Where s3://, gs:// and abfs:// are, if not at their usual place: "https://minio.example.org:9000".
        sql: Read the result of this query; each of its rows must come from one row of the input.
        rows_of_the_result_are_the_events: Take rows of any result, also of joins and aggregates. The guarantee is then
            about those rows, whatever they come from, and says so.
        watch: For progress: called with the rows that are going to be read. What it returns is called at the end.
    """
    from discreet.events.files import Files
    from discreet.events.inputs import DATABASE, encoding_named, scheme_of, shown

    named = tuple(os.fspath(path) for path in paths)
    whole = rows_of_the_result_are_the_events
    if whole and sql is None:
        raise WordError("{rows_of_the_result_are_the_events} needs {sql}")
    dialect: Dialect | None = None
    if (header, delimiter, quote) != (True, None, None):  # tables do without the readers of text
        from discreet.events.text import dialect_of

        dialect = dialect_of(header, delimiter, quote)
    if encoding is not None:
        encoding = encoding_named(encoding)
    query: Query | WholeQuery | None = None
    assumed: tuple[str, ...] = ()
    if sql is not None:
        from discreet.engines.sql import ASSUMED, WholeQuery, select

        database = named[0] if len(named) == 1 and scheme_of(named[0]) == DATABASE else None
        if database is not None and whole:
            raise ParameterError(
                "a database is read as a table, not as a query; write the query's result to a table first"
            )
        query, assumed = (WholeQuery(sql), (ASSUMED,)) if whole else (select(sql, database is not None), ())
        if database is not None and query.source is not None:
            named = (f"{database.partition('#')[0]}#{query.source}",)
        elif query.source is not None:
            if named:
                raise ParameterError("the query names its own files; give no others, or let it read FROM files")
            named = (query.source,)
    if endpoint is not None:
        from discreet.events.stores import at_endpoint

        named = tuple(at_endpoint(name, endpoint) for name in named)

    opened = partial(Files, named, format=format, dialect=dialect, query=query, encoding=encoding)

    def kept() -> list[str]:
        import glob

        found = [path for name in named for path in (name, *glob.glob(name, recursive=True))]
        return [*found, *opened().files] if whole else found

    told = {"input_format": format, **({} if dialect is None else dialect.asked), "sql": query and query.text}
    told |= {"encoding": encoding, "rows_of_the_result_are_the_events": whole or None}
    rows = "Rows are those of the result of the query: what one row of its input changes in them is not bounded."
    return Data(
        opened,
        described={name: value for name, value in told.items() if value is not None},
        secret={"files": [shown(name) for name in named]},
        assumed=assumed,
        remarks=(rows,) if whole else (),
        lists=format == "baskets",
        are_files=True,
        counts_bad_rows=not whole,
        kept=kept,
        watch=watch,
    )
