"""The audit of shuffled rounds: other configurations pass, twins do not, and its law is that of all outcomes."""

import itertools
import math

import pytest

import discreet as dc
from discreet.multiparty import HadamardResponse, LocalHashing
from discreet_audit import check, core
from discreet_audit.multiparty import ShuffledReports, batch_delta

FAST = core.Effort("fast", runs=200, large_pairs=60, released_pairs=5, length=-1)


@pytest.mark.parametrize("kind", [HadamardResponse, LocalHashing])
def test_an_unusual_round_passes_and_its_twins_do_not(kind, monkeypatch):
    monkeypatch.setattr(core, "QUICK", FAST)
    report = check(ShuffledReports(kind("r", dc.Budget(3.0), 2, shuffled=7), 0.2))
    assert report.passed, report
    assert len(report.twins) == 3


@pytest.mark.parametrize("kind", [HadamardResponse, LocalHashing])
def test_the_law_of_a_batch_is_that_of_all_outcomes(kind):
    """Three reports, every case of each, as multisets."""
    made = ShuffledReports(kind("r", dc.Budget(1.0), 2, shuffled=3), 0.1)
    assert sum(made.cases(0)) == pytest.approx(1.0)
    worst = 0.0
    for others in itertools.product((0, 1), repeat=2):
        laws = []
        for own in (0, 1):
            law = {}
            for seen in itertools.product(range(4), repeat=3):
                chance = math.prod(made.cases(item)[case] for item, case in zip((own, *others), seen, strict=True))
                key = tuple(sorted(seen))
                law[key] = law.get(key, 0.0) + chance
            laws.append(law)
        for first, second in (laws, laws[::-1]):
            worst = max(worst, sum(max(0.0, p - math.exp(0.2) * second[seen]) for seen, p in first.items()))
    assert batch_delta(made, 3, 0.2) == pytest.approx(worst)
    assert worst > 0
