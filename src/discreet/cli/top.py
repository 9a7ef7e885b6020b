"""`discreet top`: a log file in, a private top list out."""

from __future__ import annotations

import enum
import io
import json
import math
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.interrupts import uninterrupted
from discreet.cli.options import AccountName, BadRows, Delta, Epsilon, InputFormat, Quiet, Rho, budget_of
from discreet.cli.output import (
    AtomicFile,
    by_ending,
    note,
    note_left_out,
    printable,
    refuse_same_file,
    table_text,
    write_standard_output,
)
from discreet.errors import DataError, DiscreetError, ParameterError
from discreet.privacy.unit import User

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account
    from discreet.releases.release import Release

__all__ = ["top"]


class Nulls(str, enum.Enum):
    """What to do with rows that have no value."""

    error = "error"
    skip = "skip"


class Counted(str, enum.Enum):
    """What is counted of people."""

    users = "users"
    rows = "rows"


class Hidden(str, enum.Enum):
    """What is hidden where no column says whose row it is."""

    row = "row"


class ReleaseFormat(str, enum.Enum):
    """How a release is written."""

    table = "table"
    json = "json"
    csv = "csv"
    parquet = "parquet"


_ENDINGS = {
    ".json": ReleaseFormat.json,
    ".csv": ReleaseFormat.csv,
    ".parquet": ReleaseFormat.parquet,
    ".txt": ReleaseFormat.table,
    "": ReleaseFormat.table,
}


def top(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Files or patterns; '-' is standard input.", show_default=False),
    ],
    column: Annotated[
        str | None, typer.Option(help="The column of the items; by default the only one.", show_default=False)
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", help="How many items to list at most.")] = 100,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    user_column: Annotated[
        str | None,
        typer.Option(
            help="The column that says whose row it is: protects people, with all of their rows.", show_default=False
        ),
    ] = None,
    max_items_per_user: Annotated[
        int | None,
        typer.Option(
            help="With --user-column: a person with at most so many items is counted in full; by default this is "
            "chosen privately. Without it: the column holds lists, one row a person.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        Counted, typer.Option(help="With --user-column: count the people who have an item, or their rows with it.")
    ] = Counted.users,
    memory: Annotated[
        str | None,
        typer.Option(
            help="With --user-column: 2GB or 512MB; what does not fit goes to a private folder.", show_default=False
        ),
    ] = None,
    unit: Annotated[
        Hidden | None,
        typer.Option(
            help="'row' says you know that without --user-column a row is hidden, not a person.", show_default=False
        ),
    ] = None,
    capacity: Annotated[
        int | None,
        typer.Option(help="The number of counters; by default as `discreet plan` chooses it.", show_default=False),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            help="A public number, at least as many as there are events: it decides the capacity.", show_default=False
        ),
    ] = None,
    mechanism: Annotated[str, typer.Option(help="The mechanism, by a name that `discreet plan` shows.")] = "auto",
    workers: Annotated[
        int | None,
        typer.Option(help="How many threads count the items, each its own; one by default.", show_default=False),
    ] = None,
    total_share: Annotated[
        float | None,
        typer.Option(help="Spend this share of the budget on the number of all events.", show_default=False),
    ] = None,
    confidence: Annotated[float, typer.Option(help="The intervals hold together with this probability.")] = 0.95,
    nulls: Annotated[Nulls, typer.Option(help="Rows without a value are an error, or left out.")] = Nulls.error,
    bad_rows: Annotated[
        BadRows,
        typer.Option(help="Rows that cannot be read are left out (their number is told to you alone), or an error."),
    ] = BadRows.skip,
    input_format: InputFormat = None,
    format: Annotated[
        ReleaseFormat | None,
        typer.Option(
            help="How to write the release; by default as the output's name says, or a table.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the release to this file.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw it: a file that ends in .png or .svg.", show_default=False)
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger that keeps the budget.", show_default=False)] = None,
    account: AccountName = None,
    charge_id: Annotated[
        str | None,
        typer.Option(help="Name the charge: repeating it returns the same release at no cost.", show_default=False),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Explain what the release promises.")] = False,
    quiet: Quiet = False,
) -> None:
    """Publish the most frequent items of files, privately.

    Every item well above the threshold is listed with high probability. There may be fewer than K. An item that did not
    occur is never listed.
    """
    budget = budget_of(epsilon, delta, rho)
    written_as = _format(format, output)
    payer = _account(ledger, account, charge_id)
    if payer is not None and charge_id is None:
        payer.check(budget)  # before reading, which may take long
    from discreet import top_k
    from discreet.events.stream import open_stream
    from discreet.privacy.checks import probability
    from discreet.privacy.ledger import new_charge_id

    probability("confidence", confidence)
    people = user_column is not None and mechanism == "auto"
    if people:
        _refuse_for_people(capacity=capacity, length=length, total_share=total_share)
    elif user_column is not None and max_items_per_user is None:
        raise ParameterError("--user-column with a --mechanism of your own needs --max-items-per-user")
    elif count is not Counted.users or memory is not None:
        raise ParameterError("--count and --memory are for people: give --user-column")
    if unit is not None and (user_column is not None or max_items_per_user is not None):
        raise ParameterError("--unit row is for rows: --user-column and --max-items-per-user protect people")
    stream = open_stream(
        files,
        column=column,
        user_column=user_column,
        format=input_format,
        lists=max_items_per_user is not None and user_column is None,
        nulls=nulls.value,
        bad_rows=bad_rows.value,
    )
    for option, path in (("--output", output), ("--plot", plot)):
        if path is not None:
            kept = [other for other in (ledger, plot if path is output else None) if other is not None]
            refuse_same_file(option, path, [*stream.files, *kept])
    if payer is not None and charge_id is None:
        charge_id = new_charge_id()
    request = json.dumps([list(map(str, files)), column, user_column, input_format, nulls.value, bad_rows.value])
    # What must not be interrupted goes on until the temporary files are gone.
    with ExitStack() as protected, ExitStack() as cleanup:
        target = cleanup.enter_context(AtomicFile(output)) if output is not None else None
        picture = cleanup.enter_context(_picture(plot)) if plot is not None else None

        def reading_is_over() -> None:
            """What follows is charged, and must not be lost to a Ctrl-C; by the id it can be had again in any case."""
            if payer is not None and not quiet:
                note(f"charge id {charge_id}: with --charge-id {charge_id} the same command gives the same release")
            protected.enter_context(uninterrupted())

        def batches() -> Iterator[Any]:
            yield from _read(stream, user_column is not None, max_items_per_user, quiet)
            reading_is_over()

        if people:
            release = _of_people(
                _batches(stream, quiet),
                k,
                budget,
                max_items_per_user,
                count,
                nulls,
                memory,
                workers,
                payer,
                charge_id,
                request,
                cleanup,
                reading_is_over,
            )
        else:
            release = top_k(
                batches(),
                k,
                budget,
                unit=None if max_items_per_user is None else User(max_items_per_user),
                grouped=max_items_per_user is not None,
                capacity=capacity,
                stream_length=length,
                mechanism=mechanism,
                workers=workers,
                total_share=total_share,
                ledger=payer,
                charge_id=charge_id,
                request=request,
            )
        if payer is not None and not quiet:
            note(f"{_PAYMENTS[release.payment]} {payer.name!r}: {budget} (charge id {charge_id})")
        with _kept_for_later(None if payer is None else charge_id):
            _write(release, written_as, confidence, target)
            remarks = _remarks(release, k, unit is not None)
            if written_as is ReleaseFormat.table and target is None:
                print("".join(textwrap.fill(remark, 100) + "\n" for remark in remarks), end="", flush=True)
            elif not quiet:
                for remark in remarks:
                    note(remark)
            if picture is not None:
                picture.fill(lambda file: release.plot(file, confidence=confidence))
            if explain:
                _explain(release, to_output=written_as is ReleaseFormat.table and target is None)


_PAYMENTS = {
    "charged": "charged to",
    "charged before": "drawn for a charge made before, not charged again to",
    "replayed": "replayed, not charged to",
    None: "paid by",
}


@contextmanager
def _kept_for_later(charge_id: str | None) -> Iterator[None]:
    """A release that was paid for and cannot be written (a full disk) says how it can be had, quietly or not."""
    try:
        yield
    except DiscreetError as error:
        if charge_id is None:
            raise
        again = f"it is charged and kept in the ledger: the same command with --charge-id {charge_id} gives it again"
        raise DiscreetError(f"{error}; {again}") from error


def _refuse_for_people(**options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise ParameterError(
                f"--{name.replace('_', '-')} is not for people: --user-column protects them without it"
            )


def _of_people(
    batches: Iterator[Any],
    k: int,
    budget: Any,
    max_items: int | None,
    count: Counted,
    nulls: Nulls,
    memory: str | None,
    workers: int | None,
    payer: Account | None,
    charge_id: str | None,
    request: str,
    cleanup: ExitStack,
    reading_is_over: Callable[[], None],
) -> Release:
    """Read the people, then release what they have."""
    from discreet.central.paying_people import prepare_people, release_people
    from discreet.engines.duckdb import people_of_batches

    mechanism = prepare_people(k, budget, max_items=max_items, count=count.value, ledger=payer, charge_id=charge_id)
    people = people_of_batches(batches, rows=mechanism.rows, nulls=nulls.value, memory=memory, threads=workers)
    cleanup.callback(people.close)
    reading_is_over()
    return release_people(people, mechanism, ledger=payer, charge_id=charge_id, request=request)


def _format(format: ReleaseFormat | None, output: Path | None) -> ReleaseFormat:
    if format is None:
        format = by_ending(output, _ENDINGS, "--output") if output is not None else ReleaseFormat.table
    if format is ReleaseFormat.parquet and output is None and sys.stdout.isatty():
        raise ParameterError("Parquet is not for a terminal: give --output")
    return format


def _account(ledger: Path | None, account: str | None, charge_id: str | None) -> Account | None:
    if (ledger is None) != (account is None):
        raise ParameterError("--ledger and --account go together")
    if ledger is None or account is None:
        if charge_id is not None:
            raise ParameterError("--charge-id needs --ledger and --account")
        return None
    from discreet.privacy.ledger import Ledger

    return Ledger(ledger).account(account)


def _picture(path: Path) -> AtomicFile:
    by_ending(path, {".png": "png", ".svg": "svg"}, "--plot")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise DiscreetError("plots need matplotlib: install discreet[plot]")
    return AtomicFile(path)


def _batches(stream: Any, quiet: bool) -> Iterator[Any]:
    """The batches of a stream, with progress; at the end, what was left out is told."""
    from discreet.cli.progress import ReadingProgress

    rows = 0
    with ReadingProgress(stream.bytes_total, quiet) as progress:
        for batch in stream:
            rows += len(batch)
            progress.update(rows, stream.bytes_read)
            yield batch
    note_left_out(stream.bad_rows, quiet)


def _read(stream: Any, has_users: bool, max_items: int | None, quiet: bool) -> Iterator[Any]:
    """The columns to count: items, or one list of items a user."""
    import pyarrow as pa

    from discreet.events.users import UserSets

    sets = UserSets(max_items) if has_users and max_items is not None else None
    for batch in _batches(stream, quiet):
        items = batch.column("item")
        lists = pa.types.is_list(items.type) or pa.types.is_large_list(items.type)
        if lists and (has_users or max_items is None):
            raise DataError("the column holds lists: give --max-items-per-user, and no --user-column")
        if not lists and max_items is not None and not has_users:
            raise DataError("--max-items-per-user needs --user-column, or a column of lists with one row a user")
        if sets is None:
            yield items
        else:
            sets.add(batch.column("user"), items)
    if sets is not None:
        yield from sets.lists()


def _write(release: Release, format: ReleaseFormat, confidence: float, target: AtomicFile | None) -> None:
    data = {
        ReleaseFormat.table: _table,
        ReleaseFormat.json: _json,
        ReleaseFormat.csv: _csv,
        ReleaseFormat.parquet: _parquet,
    }[format](release, confidence)
    if target is None:
        write_standard_output(data)
    else:
        target.write(data)


def _json(release: Release, confidence: float) -> bytes:
    return (release.to_json(confidence) + "\n").encode()


def _csv(release: Release, confidence: float) -> bytes:
    import csv

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["item", "count", "lower", "upper"])
    for row in release.to_dict(confidence)["items"]:
        writer.writerow([row["item"], row["count"], row["lower"], row["upper"]])
    return text.getvalue().encode()


def _parquet(release: Release, confidence: float) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    described = release.to_dict(confidence)
    del described["items"]
    sink = io.BytesIO()
    table = release.to_arrow(confidence).replace_schema_metadata({"discreet": json.dumps(described)})
    pa.parquet.write_table(table, sink)
    return sink.getvalue()


def _table(release: Release, confidence: float) -> bytes:
    rows = release.to_dict(confidence)
    lines = [(printable(row["item"]), f"{row['count']:,}", _interval(row)) for row in rows["items"]]
    if "everything_else" in rows:
        rest = rows["everything_else"]
        lines.append(("(everything else)", f"{rest['count']:,}", _interval(rest)))
    counted = {"events": "estimate"}.get(release.counted, release.counted)
    text = table_text(["item", counted, f"{100 * confidence:g}% interval"], lines, right=[1, 2])
    return f"{text}{textwrap.fill(release.guarantee.sentence(), 100)}\n".encode()


def _remarks(release: Release, k: int, row_known: bool) -> list[str]:
    """What a reader should know beside the guarantee: who is hidden, what is missing, why the list is short."""
    told = release.notes()
    if release.counted == "events" and not row_known and not isinstance(release.guarantee.unit, User):
        told.append(
            "It hides one row: a person with many rows can put their own text on this list. --user-column hides people "
            "(--unit row says that you know)."
        )
    if len(release) < k:
        short = f"{len(release)} of at most {k} items are listed" if len(release) else "No item passed the threshold"
        told.append(f"{short}: {_needed(release)}, and twice the epsilon about half of that.")
    return told


def _needed(release: Release) -> str:
    cut = math.ceil(release.threshold or 0)
    if release.counted == "events":
        return f"an item needs about {cut:,} rows{' more than the offset' if release.offset is not None else ''}"
    many = math.ceil(math.sqrt(50) * (release.threshold or 0))
    return f"an item needs about {cut:,} people who have nothing else, {many:,} if each of them has 50 items"


def _interval(row: dict[str, Any]) -> str:
    low, high = (f"{row[side]:,.0f}" if row[side] is not None else "?" for side in ("lower", "upper"))
    return f"{low} to {high}"


def _explain(release: Release, to_output: bool) -> None:
    from discreet.cli.explain import explanation

    paragraphs = explanation(release.guarantee.to_dict())
    text = "\n" + "\n\n".join(textwrap.fill(paragraph, 100) for paragraph in paragraphs)
    if to_output:
        write_standard_output(f"{text}\n".encode())
    else:
        print(text, file=sys.stderr)
