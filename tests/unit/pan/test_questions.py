"""One state, any t or k: what may be chosen at a release, what it costs, and what is refused.

At epsilon 400 coins and shifts are wrong with a probability below 1e-20, so what is left is which entries a question
reads; sources are seeded besides.
"""

import json
import struct

import numpy as np
import pytest

import discreet as dc
from discreet.noise import seeded_source
from discreet.storage import open_state, seal_state
from discreet_audit.exact import ScriptedSource

PAN = dc.pan
ONE = dc.Budget(1.0)
COUNTS = np.random.default_rng(5).integers(0, 9, 3000)
EVENTS = np.repeat(np.arange(3000), COUNTS)


def fed(estimator):
    estimator.update(EVENTS)
    return estimator


def certain(make):
    return fed(make(budget=dc.Budget(400.0), releases=4, output_share=0.5, source=seeded_source(3)))


@pytest.mark.parametrize("options", [{}, {"max_count": 60}], ids=["no bound", "bound"])
def test_one_state_has_the_incidence_of_every_t(options):
    made = certain(lambda **o: PAN.Incidence(3000, **o, **options))
    for t in (0, 3, 8, 50):
        # c - t is a square with probability 1 or about 1/2: four standard errors of 3,000 bits.
        assert made.release(t=t).unbiased == pytest.approx((t == COUNTS).mean(), abs=4 / np.sqrt(3000))


def test_primes_take_any_t():
    made = certain(lambda **o: PAN.Incidence(3000, method="primes", max_count=8, primes=4, **o))
    for t in (0, 1, 4, 8):
        assert made.release(t=t).value >= (t == COUNTS).mean() - 0.1


def test_one_state_has_the_heavy_fraction_of_every_k():
    made = certain(lambda **o: PAN.HeavyFraction(3000, max_count=8, **o))
    for k in (1, 2, 5, 8):
        estimate, ramp = made.release(k=k), np.clip((COUNTS - k // 2) / (k - k // 2), 0, 1).mean()
        assert estimate.lower <= ramp <= estimate.upper
        assert estimate.unbiased == pytest.approx(ramp, abs=0.1)


def test_with_a_small_rho_the_heavy_fraction_is_exact():
    made = certain(lambda **o: PAN.HeavyFraction(3000, max_count=8, **o))
    for k in (1, 3, 5, 8):
        estimate = made.release(k=k, rho=1e-9)
        assert estimate.lower <= (k <= COUNTS).mean() <= estimate.upper
        assert estimate.unbiased == pytest.approx((k <= COUNTS).mean(), abs=0.2)


def test_the_ladder_takes_any_k():
    """Its answer is that of a ladder made for this k."""
    for k in (1, 2, 4, 8):
        one, other = (
            fed(PAN.HeavyFraction(3000, made_for, method="ladder", max_count=8, budget=ONE, output_share=0.5,
                                  source=seeded_source(4)))
            for made_for in (None, k)
        )  # fmt: skip
        assert one.release(k=k).unbiased == other.release().unbiased


def test_a_state_for_t_has_the_mean_of_every_smaller_one():
    made = certain(lambda **o: PAN.CroppedMean(3000, 8, **o))
    for t in (8, 5, 2, 1):
        estimate = made.release(t=t)
        assert estimate.lower <= np.minimum(COUNTS, t).mean() <= estimate.upper
        assert estimate.unbiased == pytest.approx(np.minimum(COUNTS, t).mean(), abs=0.1 * t)


@pytest.mark.parametrize(
    "make",
    [
        lambda t, **o: PAN.Incidence(3000, t, max_count=60, **o),
        lambda t, **o: PAN.Incidence(3000, t, method="primes", max_count=60, **o),
        lambda k, **o: PAN.HeavyFraction(3000, k, max_count=60, **o),
        lambda k, **o: PAN.HeavyFraction(3000, k, method="ladder", max_count=60, **o),
    ],
    ids=["incidence", "primes", "counters", "ladder"],
)
def test_the_table_does_not_depend_on_the_question(make):
    """The claim itself: equal randomness and equal splits give equal cells, whatever will be asked."""
    tables = [
        fed(make(asked, budget=ONE, output_share=0.5, source=seeded_source(2))).seen_by_intruder()
        for asked in (None, 1, 7)
    ]
    assert tables[0] == tables[1] == tables[2]


def test_every_question_is_one_of_the_planned_releases(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("elements", ONE)
    account = ledger.account("elements")
    made = fed(PAN.Incidence(3000, budget=ONE, releases=3, ledger=account))
    assert made.settings.epsilon_state + 3 * made.settings.epsilon_output == 1
    asked = [made.release(t=t) for t in (1, 2, 1)]
    assert asked[0] is not asked[2]  # asked again: drawn again, and paid for
    assert made._table.erased
    assert made.release(t=1) is asked[2]
    with pytest.raises(dc.ParameterError, match="all 3 releases were made, the last one for t=1"):
        made.release(t=2)
    assert len([event for event in account.history() if event.kind == "charge"]) == 1
    assert made.guarantee.epsilon == 1.0


def test_what_was_asked_is_in_the_state():
    made = fed(PAN.HeavyFraction(3000, max_count=60, budget=ONE))
    estimate = made.release(k=5, rho=0.5)
    again = PAN.HeavyFraction.from_bytes(made.to_bytes())
    assert again.last.value == estimate.value
    assert again.release(k=5, rho=0.5).value == estimate.value
    with pytest.raises(dc.ParameterError, match=r"k=5, rho=0\.5"):
        again.release(k=6)


def test_what_was_asked_before_an_announced_intrusion_stays_in_the_state():
    """It cannot be asked any more, and the state goes on."""
    made = PAN.CroppedMean(10, 3, budget=ONE, releases=2, announced_intrusions=1)
    made.release(t=2)
    made.announce_intrusion()
    again = PAN.CroppedMean.from_bytes(made.to_bytes())
    assert again.to_bytes() == made.to_bytes()
    with pytest.raises(dc.ParameterError, match="announced intrusion"):
        again.release(t=2)
    again.release()


def test_a_state_with_a_wrong_question_is_corrupt():
    made = fed(PAN.Incidence(3000, max_count=60, budget=ONE))
    made.release(t=5)
    _, payload = open_state(made.to_bytes(), made.family, 2)
    (length,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4 : 4 + length])
    assert header["answered"] == {"t": 5}
    for wrong in ({"t": 61}, {"k": 5}, {}, 5, {"t": None}):
        text = json.dumps({**header, "answered": wrong}).encode()
        data = seal_state(made.family, 2, struct.pack("<I", len(text)) + text + bytes(payload[4 + length :]))
        with pytest.raises(dc.CorruptStateError):
            PAN.Incidence.from_bytes(data)


@pytest.mark.parametrize(
    ("make", "asked", "match"),
    [
        (lambda **o: PAN.Incidence(30, **o), {}, "t="),
        (lambda **o: PAN.Incidence(30, max_count=9, **o), {"t": 10}, "t"),
        (lambda **o: PAN.Incidence(30, 1, **o), {"t": -1}, "t"),
        (lambda **o: PAN.Incidence(30, 1, **o), {"t": 1.5}, "t"),
        (lambda **o: PAN.HeavyFraction(30, max_count=9, **o), {}, "k="),
        (lambda **o: PAN.HeavyFraction(30, max_count=9, **o), {"k": 10}, "k"),
        (lambda **o: PAN.HeavyFraction(30, max_count=9, **o), {"k": 2, "rho": 0}, "rho"),
        (lambda **o: PAN.HeavyFraction(30, 4, method="two_tables", **o), {"k": 3}, "max_count"),
        (lambda **o: PAN.HeavyFraction(30, 4, method="two_tables", **o), {"rho": 0.5}, "rho"),
        (lambda **o: PAN.HeavyFraction(30, 4, method="ladder", max_count=9, **o), {"rho": 0.5}, "rho"),
        (lambda **o: PAN.CroppedMean(30, 4, **o), {"t": 5}, "t"),
        (lambda **o: PAN.CroppedMean(30, 4, **o), {"t": 0}, "t"),
    ],
)
def test_a_wrong_question_spends_nothing(make, asked, match):
    made = make(budget=ONE)
    before = made.to_bytes()
    with pytest.raises(dc.ParameterError, match=match):
        made.release(**asked)
    assert made.to_bytes() == before


@pytest.mark.parametrize(
    ("make", "asked", "sensitivity"),
    [
        (lambda: PAN.CroppedMean(30, 4, budget=ONE), {}, 1),
        (lambda: PAN.CroppedMean(30, 4, budget=ONE), {"t": 4}, 1),
        (lambda: PAN.CroppedMean(30, 4, budget=ONE), {"t": 3}, 2),
        (lambda: PAN.HeavyFraction(30, 4, budget=ONE, max_count=9), {"k": 1}, 2),
        (lambda: PAN.HeavyFraction(30, 4, budget=ONE, method="counters"), {}, 2),
        (lambda: PAN.Incidence(30, budget=ONE), {"t": 3}, 1),
    ],
)
def test_every_question_has_its_own_noise(make, asked, sensitivity, monkeypatch):
    """In a window an entry counts 1, -1 or 0, so that it moves the sum by 2."""
    made, source = make(), ScriptedSource()
    monkeypatch.setattr("discreet.pan._base.fresh_source", lambda: source)
    made.release(**asked)
    assert [draw.scale for draw in source.draws] == [sensitivity / made.settings.epsilon_output]


def test_what_cannot_be_made():
    for wrong in ({}, {"method": "ladder"}, {"method": "two_tables", "max_count": 9}, {"k": 10, "max_count": 9}):
        with pytest.raises(dc.ParameterError):
            PAN.HeavyFraction(30, budget=ONE, **wrong)
    with pytest.raises(dc.ParameterError, match="sample"):
        PAN.HeavyFraction(3, budget=ONE, max_count=100)


def test_after_an_announced_intrusion_counters_say_less():
    made = fed(PAN.CroppedMean(3000, 8, budget=ONE))
    made.announce_intrusion()
    with pytest.raises(dc.ParameterError, match="announced"):
        made.release(t=3)
    assert made.release().value >= 0


@pytest.mark.parametrize("collision", [0.2, 0.5])
def test_the_lower_end_of_primes_allows_for_collisions(collision):
    """Counts that only look like t may be half of `collision`: so much less is possible."""
    how = {"method": "primes", "max_count": 60, "collision": collision, "primes": 8}
    made = PAN.Incidence(3000, 3, budget=dc.Budget(400.0), source=seeded_source(3), **how)
    made.update(np.repeat(np.arange(3000), 3))
    estimate = made.release()
    assert collision / 2 <= estimate.value - estimate.lower <= collision / 2 + 0.1  # the rest is the sample's


def test_the_reach_of_residues_rests_on_the_worst_entry():
    """Bernstein with v = max over shifts d of sum_i law(i) g(i + d)^2, each written out."""
    made = PAN.ModularIncidence(1000, 5, budget=dc.Budget(1.0))
    law, g = made._inverse(made.settings.epsilon_state, 0)
    v = max(sum(law[i] * g[(i + d) % 5] ** 2 for i in range(5)) for d in range(5))
    at_least = np.sqrt(2 * v * np.log(4 * 5 / 0.05) / 1000)
    assert made._reach(made.settings.epsilon_state, 0, 1e6, 0.05) >= at_least * (1 - 1e-9)
