"""`dc.audit.check`: every mechanism passes, every kind of evidence is there, and a broken one is rejected.

Runs of compiled releases use the system's source: each mechanism raises a false alarm with probability below 1e-7.
"""

import dataclasses
import json

import pytest

import discreet as dc
from discreet import central
from discreet.central import OffsetRelease
from discreet_audit import check, registry, running
from discreet_audit.findings import KINDS, AuditReport, Finding, TwinResult
from discreet_audit.sabotage import twin
from discreet_audit.samplers import Samplers

FAST = registry.Effort("fast", runs=300, large_pairs=60, released_pairs=20, length=-1)


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    monkeypatch.setattr(running, "QUICK", FAST)


@pytest.mark.parametrize("case", list(registry.cases()), ids=lambda case: case.mechanism.__name__)
def test_the_first_example_of_every_row(case):
    report = check(case.examples()[0])
    assert report.passed, str(report)
    assert report.kinds == (("statistical", "sabotage") if case.mechanism is Samplers else KINDS)
    assert len(report.twins) >= 2
    json.dumps(report.to_dict(), allow_nan=False)
    assert report.mechanism.split(",")[0] == case.mechanism.__name__
    assert all(finding.pairs for finding in report.of("structure"))


@pytest.mark.parametrize("case", list(registry.cases()), ids=lambda case: case.mechanism.__name__)
def test_the_other_examples_of_every_row(case):
    """A fault may be in one method of a class only: "primes" of `Incidence`, a window, a known universe."""
    for example in case.examples()[1:]:
        made = case.prepare(example)
        failed = [
            finding for run_check in case.checks.values() for finding in run_check(made, FAST) if not finding.passed
        ]
        assert not failed, (case.label(made), failed)


def test_a_mechanism_of_ones_own():
    report = check(OffsetRelease(dc.Budget(0.7, 1e-5), capacity=20))
    assert report.passed, str(report)
    assert 0.3e-5 < report.exact_delta <= 1e-5


@pytest.mark.parametrize(
    "mechanism",
    [
        OffsetRelease(dc.Budget(5.0, 1e-3), capacity=2),
        central.PrivateMisraGries(dc.Budget(0.5, 1e-6), capacity=1),
        central.MergedRelease(dc.Budget(0.5, 1e-9), capacity=32, unit=dc.User(3)),
        central.PrivateSpaceSaving(dc.Budget(1.0, 1e-6), capacity=1, stream_length=50),
        central.PrivateSpaceSaving(dc.Budget(1.0, 1e-6), capacity=64, stream_length=10**6),
        central.PrivateSpaceSaving(dc.Budget(0.5, 1e-6), capacity=4, stream_length=1000, unit=dc.User(3)),
        central.PrivateSpaceSaving(dc.Budget(1.0, 1e-6), capacity=1, stream_length="noisy", unit=dc.User(2)),
        central.PrivateSpaceSaving(dc.Budget(1.0, 0.02), capacity=3, stream_length="noisy", unit=dc.User(2)),
        central.PrivateSpaceSaving(dc.Budget(1.0, 1e-6), capacity=2, stream_length="noisy", unit=dc.User(4)),
        central.ReducedMisraGries(dc.Budget(1.0, 1e-6), capacity=2, unit=dc.User(2)),
        central.ReducedMisraGries(dc.Budget(1.0), capacity=2, universe=["a", "b", "c"]),
        central.ChanMisraGries(dc.Budget(1.0, 1e-6), capacity=64, unit=dc.User(2)),
    ],
    ids=lambda mechanism: f"{type(mechanism).__name__} {mechanism.guarantee.epsilon:g} {mechanism.capacity}",
)
def test_unusual_configurations(mechanism):
    """One counter, little noise, many counters, users, names: nothing is rejected and every twin still is."""
    report = check(mechanism)
    assert report.passed, str(report)


def test_a_broken_mechanism_fails_its_audit():
    mechanism = OffsetRelease(dc.Budget(1.0, 1e-3), capacity=3)
    broken = twin(mechanism, "", scale=mechanism.scale * 9 / 10).mechanism
    report = check(broken)
    assert not report.passed
    assert any(not finding.passed for finding in report.of("exact"))


def test_an_audit_fails_when_a_twin_is_not_noticed(monkeypatch):
    mechanism = OffsetRelease(dc.Budget(1.0, 1e-3), capacity=3)
    case = registry.case_of(mechanism)
    innocent = dataclasses.replace(case, twins=lambda made: (registry.Twin("not broken at all", made),))
    monkeypatch.setattr(running, "case_of", lambda made: innocent)
    report = check(mechanism)
    assert all(finding.passed for finding in report.findings)
    assert not report.passed
    assert "NOT CAUGHT" in str(report)


def test_unknown_things_are_refused():
    with pytest.raises(dc.ParameterError, match="OffsetRelease"):
        check(object())
    with pytest.raises(dc.ParameterError, match="effort"):
        check(OffsetRelease(dc.Budget(1.0, 1e-3), capacity=3), effort="huge")
    with pytest.raises(dc.ParameterError, match="no audited mechanism"):
        running.examples(["nonsense"])


def test_a_measurement_that_is_not_a_number_fails():
    assert not Finding("exact", "", "delta", 1.0, float("nan")).passed
    report = AuditReport("X", "x", dc.Event(), 1.0, 0.1, None, (), ())
    assert not report.passed  # without twins nothing shows that the checks can fail
    assert not dataclasses.replace(report, twins=(TwinResult("t", None),)).passed
