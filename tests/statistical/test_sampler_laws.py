"""What the compiled samplers draw on this machine has the law that is claimed; what is a little off fails.

The draws are of the system's source. A right sampler fails one of these tests with probability below 1e-7 in all, and
a twin is missed with 1e-7.
"""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.statistical.sampler_groups import groups
from tests.statistical.samplers import REJECT, RELEASE_NOISE, draws_needed

from discreet.central import Mechanism
from discreet.noise import laws, source
from discreet_audit import core

GROUPS = {group.name: group for group in groups()}


@pytest.mark.parametrize("name", GROUPS)
def test_what_is_drawn_has_the_law(name):
    for member in GROUPS[name].members:
        found = list(member.findings(core.QUICK))
        assert found
        assert all(finding.passed for finding in found), found


@pytest.mark.parametrize("name", GROUPS)
def test_what_is_one_percent_off_or_spoilt_is_caught(name):
    for member in GROUPS[name].members:
        twin, broken = member.twin()
        assert not all(finding.passed for finding in broken.findings(core.QUICK)), twin


def test_the_chance_of_a_false_alarm():
    """What docs/audit.md states: fewer than 450 tests of 1e-10 each, with those of whole releases."""
    assert sum(4 * len(group.members) for group in (*GROUPS.values(), *RELEASE_NOISE.examples())) < 450
    assert 2 * stats.norm.sf(6.47) <= REJECT * 1.01


def test_the_number_of_draws_is_that_of_the_power():
    """For a wide discrete Laplace the information about log(scale) is 1 a draw: ((6.47 + 6) / 0.01)^2 draws."""
    member = next(m for m in GROUPS["discrete Laplace"].members if m.parameter == Fraction(777, 10))
    assert draws_needed(member) == pytest.approx((12.47 / 0.01) ** 2, rel=0.02)


def test_the_parameters_of_releases_are_among_them():
    scales = {member.parameter for member in GROUPS["discrete Laplace"].members}
    sigmas = {member.parameter for member in GROUPS["discrete Gaussian"].members}
    examples = [made for case in core.cases() for made in case.examples()]
    declared = [made.error_model.noise for made in examples if isinstance(made, Mechanism)]
    assert len(declared) > 10
    assert {Fraction(noise.scale) for noise in declared if noise.law == "laplace"} <= scales
    assert {Fraction(noise.scale) for noise in declared if noise.law == "gaussian"} <= sigmas


@pytest.mark.parametrize(
    ("law", "group"),
    [
        ("laplace_law", "discrete Laplace"),
        ("gaussian_law", "discrete Gaussian"),
        ("geometric_law", "geometric, and noise above a cut"),
    ],
)
def test_a_law_that_is_a_little_narrow_fails(law, group, monkeypatch):
    """The fault is below the random source here, where no release and no scripted source looks."""
    right = getattr(laws, law)
    monkeypatch.setattr(source.laws, law, lambda scale: right(scale * Fraction(99, 100)))
    tests = (finding for member in GROUPS[group].members for finding in member.findings(core.QUICK))
    assert sum(not finding.passed for finding in tests) >= 2


def test_noise_that_repeats_itself_fails():
    def draw(source, scale, count):
        return np.repeat(source.discrete_laplace(scale, -(-count // 2)), 2)[:count]

    member = dataclasses.replace(GROUPS["discrete Laplace"].members[0], draw=draw)
    failed = [finding.check for finding in member.findings(core.QUICK) if not finding.passed]
    assert any("independent" in check for check in failed)
