"""`discreet audit`: evidence that the privacy claimed is the privacy delivered."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from discreet._data_class import asdict
from discreet.cli import options
from discreet.cli.options import argument, flag, option
from discreet.cli.output import note, print_table, remark
from discreet.errors import ParameterError
from discreet.storage import AtomicFile

_OF_CANARIES = ("data", "column", "user", "runs", "epsilon", "delta", "rho")


@options.command(
    options.path("--data", "--canaries: CSV file; they are added to a copy of it. By default nobody else is there."),
    option("--column", "--canaries: column of the items.", metavar="NAME"),
    options.USER,
    option("--crowd", "--canaries: number of other people who have each canary's item.", click.IntRange(0), default=0),
    option("--runs", "--canaries: one canary, and this many releases with and without it.", click.IntRange(20)),
    option("--confidence", "--canaries: confidence of the bound.", float, default=0.95),
    *options.BUDGET.parameters,  # what the command claims
    options.text_format(),
    options.QUIET,
)
def audit(
    words: tuple[str, ...] = argument(
        "words",
        "Only classes whose name contains one of these words; with --canaries, your command.",
        nargs=-1,
        metavar="[MECHANISM...]",
    ),
    full: bool = flag(
        "--full/--quick", "Many more runs and pairs: half an hour of processor time instead of a minute.", default=False
    ),
    report: Path | None = options.path("--report", "Write a report with plots: out.md or out.html."),
    jobs: int | None = option(
        "--jobs", "Number of processes; by default one per processor, at most 4.", click.IntRange(1)
    ),
    corrections: bool = flag(
        "--corrections", "Instead: what the papers' versions lose as printed, beside what ours do."
    ),
    canaries: int | None = option(
        "--canaries", "Instead: test the command after -- with this many made-up people.", click.IntRange(1)
    ),
    *,
    as_json: bool,
    **tested: Any,
) -> None:
    """Audit every mechanism on the compiled code.

    Exhaustively, exactly, statistically, and with sabotaged twins.

    Nothing is read and nothing is spent, except with --canaries, which runs your command. Exit code 1 if a claim does
    not hold or a sabotaged twin goes unnoticed.
    """
    if canaries is not None:
        if corrections or report is not None or full:
            raise ParameterError("--canaries cannot be combined with --corrections, --full or --report")
        return _test_command(words, canaries, as_json, **tested)
    if given := [name for name in _OF_CANARIES if tested[name] is not None]:
        raise ParameterError(f"--{given[0]} needs --canaries, which tests a command of yours")
    if corrections:
        if words or report is not None or full:
            raise ParameterError("--corrections cannot be combined with mechanisms, --full or --report")
        return _show_corrections(as_json)
    if report is not None and report.suffix not in (".md", ".html"):
        raise ParameterError(f"the report must be a .md or .html file, not {report.name!r}")
    from discreet_audit.core import AuditReport, run
    from discreet_audit.render import HEADINGS, html_report, markdown_report, summary_rows

    def progress(done: AuditReport) -> None:
        remark(f"{done.mechanism} ({done.claim}): {'passed' if done.passed else 'FAILED'}")

    effort = "full" if full else "quick"
    with ExitStack() as cleanup:
        file = cleanup.enter_context(AtomicFile(report)) if report is not None else None  # before the long run
        reports = run(effort=effort, only=words, jobs=jobs, progress=progress)
        if report is not None and file is not None:
            text = markdown_report(reports, effort, report) if report.suffix == ".md" else html_report(reports, effort)
            file.write(text.encode())
    passed = all(done.passed for done in reports)
    if as_json:
        print(json.dumps({"effort": effort, "passed": passed, "reports": [done.to_dict() for done in reports]}))
    else:
        print_table(HEADINGS, summary_rows(reports), right=(4, 5))
    for done in reports:
        if not done.passed:
            note(f"FAILED\n{done}")
    if not passed:
        raise click.exceptions.Exit(1)


def _test_command(
    command: tuple[str, ...],
    number: int,
    as_json: bool,
    *,
    data: Path | None,
    column: str | None,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    **how: Any,
) -> None:
    """An empirical lower bound on the epsilon of a command."""
    from discreet.privacy import Budget
    from discreet_audit.pipeline_canaries import canaries, command_pipeline, table_of_csv

    if column is None or (epsilon is None) == (rho is None) or not command:
        raise ParameterError(
            "--canaries needs --column, what is claimed (--epsilon and --delta, or --rho), and after -- the command, "
            "with {data} in place of its file"
        )
    claim = Budget(epsilon or 0.0, delta or 0.0) if rho is None else Budget.zcdp(rho)
    if how["runs"] is not None and number != 1:
        raise ParameterError("--runs tests one canary: give --canaries 1")
    table = None if data is None else table_of_csv(data)
    found = canaries(command_pipeline(command, column), table, claim, column=column, number=number, **how)
    print(json.dumps(found.to_dict()) if as_json else found)
    if not found.passed:
        raise click.exceptions.Exit(1)


def _show_corrections(as_json: bool) -> None:
    from discreet_audit.corrections import corrections

    found = corrections()
    rows = [{**asdict(one), "caught": one.caught} for one in found]
    if as_json:
        print(json.dumps([{k: None if v == math.inf else v for k, v in row.items()} for row in rows]))
    else:
        numbers = [[f"{row[name]:.3g}" for name in ("claimed", "literal", "ours")] for row in rows]
        table = [[one.place, one.what, one.quantity, *own] for one, own in zip(found, numbers, strict=True)]
        print_table(["where", "what", "quantity", "claimed", "literal", "ours"], table, right=(3, 4, 5))
    if not all(one.caught for one in found):
        raise click.exceptions.Exit(1)
