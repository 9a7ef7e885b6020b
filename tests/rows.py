"""Rows of files and people of tables in one call, as many tests read them."""

from discreet.engines.exact_people import people_of
from discreet.events.assembly import Rows
from discreet.events.files import Files
from discreet.events.tables import events_of


def open_stream(
    paths, *, column=None, user_column=None, value_column=None, format=None, dialect=None, query=None, encoding=None,
    amounts=False, joint=False, bad_rows="error", **words,
):  # fmt: skip
    """The rows of files. Bad ones are errors unless something else is said, and only `joint` items have keys."""
    files = Files(paths, format=format, dialect=dialect, query=query, encoding=encoding)
    words |= {"user": user_column, "value": value_column, "numbers": amounts, "bad_rows": bad_rows}
    return files.rows(column, plain=not joint, **words)


def columns_of(rows, made=True):
    """The columns of items: as native code makes them, where it does, or as Arrow has them."""
    return rows.items() if made else Rows.items(rows)


def people_of_table(table, column, user=None, *, values=None, nulls="error", **how):
    """The people of a table, or of a table of lists."""
    rows = events_of(table).rows(column, user=user, value=values, nulls=nulls, lists=True if user is None else None)
    return people_of(rows, **how)
