"""The reports and the exit code when something fails."""

import dataclasses
import json
import math

import discreet as dc
from discreet.cli import audit as command
from discreet_audit import AuditReport, Finding, TwinResult, core
from discreet_audit.render import html_report, summary_rows

FAILING = AuditReport(
    "Leaky",
    "a <leaky> one",
    dc.User(3),
    1.0,
    1e-9,
    None,
    (Finding("exact", "worst", "delta", 1e-9, 0.5, 4),),
    (TwinResult("half the noise", None),),
)


def test_a_failure_is_shown():
    (row,) = summary_rows([FAILING])
    assert row == ("Leaky", "user of 3", "eps=1, delta=1e-09", "delta=0.5", "4", "0 of 1", "FAILED")
    page = html_report([FAILING], "quick")
    assert "<td class='FAILED'>FAILED</td>" in page
    assert "a &lt;leaky&gt; one" in page


def test_numbers_that_json_does_not_have():
    odd = tuple(Finding("exact", "worst", "delta", 1e-9, measured) for measured in (math.inf, math.nan))
    report = dataclasses.replace(FAILING, findings=odd)
    json.dumps(report.to_dict(), allow_nan=False)


def test_the_command_fails_with_exit_code_1(monkeypatch, capsys):
    monkeypatch.setattr(core, "run", lambda **options: [FAILING])
    assert command.audit([], standalone_mode=False) == 1
    assert "half the noise: NOT CAUGHT" in capsys.readouterr().err
