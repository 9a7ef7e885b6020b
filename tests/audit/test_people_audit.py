"""The audit of people reads shifts, noise and cuts from the release itself."""

from __future__ import annotations

import pytest

import discreet as dc
from discreet.central.person_vectors import PersonVectors
from discreet.summaries.people import ValueRange


@pytest.mark.parametrize("values", [None, ValueRange(0, 10)])
def test_one_configuration_and_all_of_its_twins(values):
    report = dc.audit.check(PersonVectors(dc.Budget(1.0, 1e-6), 100, values=values))
    assert report.passed, [finding for finding in report.findings if not finding.passed]
    assert 0.9e-6 < report.exact_delta <= 1e-6
    assert {twin.name for twin in report.twins} >= {
        "half the noise",
        "sizes without noise",
        "losses without noise",
        "any number of items",
        "intervals that forget what scaling loses",
    }
    assert all(twin.caught for twin in report.twins)
