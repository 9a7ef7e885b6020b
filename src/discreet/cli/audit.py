"""`discreet audit`: evidence that the privacy claimed is the privacy delivered."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import click

from discreet.cli import options
from discreet.cli.options import flag, option
from discreet.cli.output import note, print_table, remark
from discreet.errors import ParameterError
from discreet.storage import AtomicFile

__all__ = ["audit"]


@click.command()
@options.takes(
    options.Argument(
        "mechanisms", "Only classes whose name contains one of these words.", nargs=-1, metavar="[MECHANISM...]"
    ),
    flag("--full/--quick", "Many more runs and pairs (minutes), or under a minute.", default=False),
    option("--report", "Write a report with plots: out.md or out.html.", options.PATH),
    option("--jobs", "Processes; by default the processors, at most 4.", click.IntRange(1)),
    flag("--corrections", "Instead: what the papers' versions lose as printed, beside what ours do."),
)
@options.text_format()
@options.quiet
def audit(
    mechanisms: tuple[str, ...],
    full: bool,
    report: Path | None,
    jobs: int | None,
    corrections: bool,
    as_json: bool,
) -> None:
    """Audit every mechanism on the compiled code.

    Exhaustively, exactly, statistically, and with sabotaged twins.

    Nothing is read and nothing is spent. Exit code 1 if a claim does not hold or a sabotaged twin goes unnoticed.
    """
    if corrections:
        if mechanisms or report is not None or full:
            raise ParameterError("--corrections takes no mechanisms, no --full and no --report")
        return _show_corrections(as_json)
    if report is not None and report.suffix not in (".md", ".html"):
        raise ParameterError(f"a report is a .md or .html file, not {report.name!r}")
    from discreet_audit.core import AuditReport, run
    from discreet_audit.render import HEADINGS, html_report, markdown_report, summary_rows

    def progress(done: AuditReport) -> None:
        remark(f"{done.mechanism} ({done.claim}): {'passed' if done.passed else 'FAILED'}")

    effort = "full" if full else "quick"
    with ExitStack() as cleanup:
        file = cleanup.enter_context(AtomicFile(report)) if report is not None else None  # before the long run
        reports = run(effort=effort, only=mechanisms, jobs=jobs, progress=progress)
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


def _show_corrections(as_json: bool) -> None:
    from discreet_audit.papers import corrections

    found = corrections()
    if as_json:
        rows = [{**asdict(one), "caught": one.caught} for one in found]
        print(json.dumps([{k: None if v == math.inf else v for k, v in row.items()} for row in rows]))
    else:
        headings = ["where", "what", "quantity", "claimed", "literal", "ours"]
        table = [
            [one.place, one.what, one.quantity, *(f"{x:.3g}" for x in (one.claimed, one.literal, one.ours))]
            for one in found
        ]
        print_table(headings, table, right=(3, 4, 5))
    if not all(one.caught for one in found):
        raise click.exceptions.Exit(1)
