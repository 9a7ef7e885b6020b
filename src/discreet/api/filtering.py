"""Only some rows of a table: those of which a condition in SQL is true."""

from __future__ import annotations

from typing import Any

from discreet.events.items import refuse_elsewhere

__all__ = ["asked_where", "rows_where"]


def rows_where(table: Any, where: str | None) -> Any:
    """The rows of a table of which a condition is true; all of them without one. Data that is not here is refused."""
    refuse_elsewhere(table)
    if where is None:
        return table
    from discreet.engines.sql import where as condition
    from discreet.events.row_query import of_table

    return of_table(condition(where), table)


def asked_where(where: str | None) -> dict[str, str]:
    """What a condition adds to a request: a repetition may not ask for other rows, either."""
    return {} if where is None else {"where": where}
