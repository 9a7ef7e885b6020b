"""`dc.audit.check`: every mechanism passes, every kind of evidence is there, and a broken one is rejected.

Runs of compiled releases use the system's source: each mechanism raises a false alarm with probability below 1e-7.
"""

import dataclasses

import pytest

import discreet as dc
from discreet import central, published
from discreet.central import Offset
from discreet_audit import check, core
from discreet_audit.core import KINDS, AuditReport, Finding, TwinResult, twin

FAST = core.Effort("fast", runs=300, large_pairs=60, released_pairs=20, length=-1)


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    monkeypatch.setattr(core, "QUICK", FAST)


def test_every_example_of_every_row_is_run():
    """By `discreet audit --quick`, which `make audit` runs: the rows are not run a second time here."""
    rows = list(core.cases())
    assert core.examples() == [(row, i) for row, case in enumerate(rows) for i in range(len(case.examples()))]
    for case in rows:
        made = case.examples()[0]
        audit = case.of(made)
        assert {case.of(made).label(made).split(",")[0] for made in case.examples()} == {case.mechanism.__name__}
        assert audit.kinds == KINDS[:-1]
        assert len([*audit.twins(audit.prepare(made))]) >= 2


def test_a_mechanism_of_ones_own():
    report = check(Offset(dc.Budget(0.7, 1e-5), capacity=20))
    assert report.passed, str(report)
    assert 0.3e-5 < report.exact_delta <= 1e-5


@pytest.mark.parametrize(
    "mechanism",
    [
        Offset(dc.Budget(5.0, 1e-3), capacity=2),
        published.PrivateMisraGries(dc.Budget(0.5, 1e-6), capacity=1),
        central.Merged(dc.Budget(0.5, 1e-9), capacity=32, unit=dc.User(3)),
        published.PrivateSpaceSaving(dc.Budget(1.0, 1e-6), capacity=1, stream_length=50),
        published.PrivateSpaceSaving(dc.Budget(1.0, 1e-6), capacity=64, stream_length=10**6),
        published.PrivateSpaceSaving(dc.Budget(0.5, 1e-6), capacity=4, stream_length=1000, unit=dc.User(3)),
        published.PrivateSpaceSaving(dc.Budget(1.0, 1e-6), capacity=1, stream_length="noisy", unit=dc.User(2)),
        published.PrivateSpaceSaving(dc.Budget(1.0, 0.02), capacity=3, stream_length="noisy", unit=dc.User(2)),
        published.PrivateSpaceSaving(dc.Budget(1.0, 1e-6), capacity=2, stream_length="noisy", unit=dc.User(4)),
        central.ReducedMisraGries(dc.Budget(1.0, 1e-6), capacity=2, unit=dc.User(2)),
        central.ReducedMisraGries(dc.Budget(1.0), capacity=2, universe=["a", "b", "c"]),
        published.ChanMisraGries(dc.Budget(1.0, 1e-6), capacity=64, unit=dc.User(2)),
    ],
    ids=lambda mechanism: f"{type(mechanism).__name__} {mechanism.guarantee.epsilon:g} {mechanism.capacity}",
)
def test_unusual_configurations(mechanism):
    """One counter, little noise, many counters, users, names: nothing is rejected and every twin still is."""
    report = check(mechanism)
    assert report.passed, str(report)


def test_a_broken_mechanism_fails_its_audit():
    mechanism = Offset(dc.Budget(1.0, 1e-3), capacity=3)
    broken = twin(mechanism, "", scale=mechanism.scale * 9 / 10).mechanism
    report = check(broken)
    assert not report.passed
    assert any(not finding.passed for finding in report.of("exact"))


def test_an_audit_fails_when_a_twin_is_not_noticed(monkeypatch):
    mechanism = Offset(dc.Budget(1.0, 1e-3), capacity=3)
    audit = core.audit_of(mechanism)
    twins = *audit.twins(mechanism), core.Twin("not broken at all", mechanism)
    innocent = twin(audit, "", twins=lambda self, made: twins).mechanism
    monkeypatch.setattr(core, "audit_of", lambda made: innocent)
    report = check(mechanism)
    assert all(finding.passed for finding in report.findings)
    assert not report.passed
    assert "NOT CAUGHT" in str(report)


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_check_that_looks_at_nothing_fails(kind, monkeypatch):
    mechanism = Offset(dc.Budget(1.0, 1e-3), capacity=3)
    silent = twin(core.audit_of(mechanism), "", **{kind: lambda self, made, effort: ()}).mechanism
    monkeypatch.setattr(core, "audit_of", lambda made: silent)
    report = check(mechanism)
    assert [(finding.kind, finding.check) for finding in report.findings if not finding.passed] == [
        (kind, "nothing was looked at")
    ]
    assert not report.passed


def test_unknown_things_are_refused():
    with pytest.raises(dc.ParameterError, match="Offset"):
        check(object())
    with pytest.raises(dc.ParameterError, match="effort"):
        check(Offset(dc.Budget(1.0, 1e-3), capacity=3), effort="huge")
    with pytest.raises(dc.ParameterError, match="no audited mechanism"):
        core.examples(["nonsense"])


def test_a_measurement_that_is_not_a_number_fails():
    assert not Finding("exact", "", "delta", 1.0, float("nan")).passed
    report = AuditReport("X", "x", dc.Event(), 1.0, 0.1, None, (), ())
    assert not report.passed  # without twins nothing shows that the checks can fail
    caught = TwinResult("t", Finding("exact", "", "delta", 0.0, 1.0))
    assert dataclasses.replace(report, twins=(caught,)).passed
    assert not dataclasses.replace(report, twins=(caught, TwinResult("t", None))).passed
