"""The audit of pairs reads shifts, noise and cuts from the release itself."""

from __future__ import annotations

import discreet as dc
from discreet.central.person_pairs import PersonPairs


def test_one_configuration_and_all_of_its_twins():
    report = dc.audit.check(PersonPairs(dc.Budget(1.0, 1e-6), 20))
    assert report.passed, [finding for finding in report.findings if not finding.passed]
    assert 0.9e-6 < report.exact_delta <= 1e-6
    assert {twin.name for twin in report.twins} >= {
        "half the noise",
        "a look at pairs without noise",
        "two vectors of a person",
        "pairs counted in both orders",
        "pairs of items that were not discovered",
    }
    assert all(twin.caught for twin in report.twins)
