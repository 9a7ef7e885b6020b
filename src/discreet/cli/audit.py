"""`discreet audit`: evidence that the privacy claimed is the privacy delivered."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import Quiet, TextFormat
from discreet.cli.output import AtomicFile, note, table_text
from discreet.errors import ParameterError

__all__ = ["audit"]


def audit(
    mechanisms: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MECHANISM...]", help="Only classes whose name contains one of these words.", show_default=False
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Many more runs and pairs (minutes), or under a minute.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write a report with plots: out.md or out.html.", show_default=False)
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default the processors, at most 4.", show_default=False)
    ] = None,
    corrections: Annotated[
        bool,
        typer.Option("--corrections", help="Instead: what the papers' versions lose as printed, beside what ours do."),
    ] = False,
    format: Annotated[TextFormat, typer.Option("--format", help="How to print it.")] = TextFormat.table,
    quiet: Quiet = False,
) -> None:
    """Audit every mechanism on the compiled code: exhaustively, exactly, statistically, and with sabotaged twins.

    Nothing is read and nothing is spent. Exit code 1 if a claim does not hold or a sabotaged twin goes unnoticed.
    """
    if corrections:
        if mechanisms or report is not None or full:
            raise ParameterError("--corrections takes no mechanisms, no --full and no --report")
        return _show_corrections(format)
    if report is not None and report.suffix not in (".md", ".html"):
        raise ParameterError(f"a report is a .md or .html file, not {report.name!r}")
    from discreet_audit.findings import AuditReport
    from discreet_audit.render import HEADINGS, html_report, markdown_report, summary_rows
    from discreet_audit.running import run

    def progress(done: AuditReport) -> None:
        if not quiet:
            note(f"{done.mechanism} ({done.claim}): {'passed' if done.passed else 'FAILED'}")

    effort = "full" if full else "quick"
    with ExitStack() as cleanup:
        file = cleanup.enter_context(AtomicFile(report)) if report is not None else None  # before the long run
        reports = run(effort=effort, only=mechanisms or (), jobs=jobs, progress=progress)
        if report is not None and file is not None:
            text = markdown_report(reports, effort, report) if report.suffix == ".md" else html_report(reports, effort)
            file.write(text.encode())
    passed = all(done.passed for done in reports)
    if format is TextFormat.json:
        print(json.dumps({"effort": effort, "passed": passed, "reports": [done.to_dict() for done in reports]}))
    else:
        print(table_text(HEADINGS, summary_rows(reports), right=(4, 5)), end="")
    for done in reports:
        if not done.passed:
            note(f"FAILED\n{done}")
    if not passed:
        raise typer.Exit(1)


def _show_corrections(format: TextFormat) -> None:
    from discreet_audit.corrections import corrections

    found = corrections()
    if format is TextFormat.json:
        rows = [{**asdict(one), "caught": one.caught} for one in found]
        print(json.dumps([{k: None if v == math.inf else v for k, v in row.items()} for row in rows]))
    else:
        headings = ["where", "what", "quantity", "claimed", "literal", "ours"]
        table = [
            [one.place, one.what, one.quantity, *(f"{x:.3g}" for x in (one.claimed, one.literal, one.ours))]
            for one in found
        ]
        print(table_text(headings, table, right=(3, 4, 5)), end="")
    if not all(one.caught for one in found):
        raise typer.Exit(1)
