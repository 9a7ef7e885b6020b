"""Every estimator's exact joint law of (state at the intrusion, output) of one element, by `tests.reference.pan_laws`.

All neighbouring histories with up to two or three occurrences in each gap are compared. Probabilities are fractions;
losses that are equal are so to 1e-9. tests/audit/test_printed_pan.py has what the paper prints.
"""

import math
from fractions import Fraction

import mpmath
import pytest
from tests.reference import pan_laws

import discreet as dc
from discreet.pan.element_law import BitCell
from discreet.pan.responses import ONE, Response
from discreet.pan.window import Window

ONE_LOOK = [("look", "output"), ("output", "look"), ("look",), ("output",)]
PAN = dc.pan


def models_of(estimator):
    """(cells, statistic, scales) of one element for every role that it may have, with the estimator's own numbers."""
    for law in estimator.element_laws():
        cells = [
            ("bit", cell.unseen, cell.seen, cell.modulus, cell.step)
            if isinstance(cell, BitCell)
            else ("counter", cell.shift)
            for cell in law.cells
        ]

        def statistic(state, law=law, cells=cells):
            of_bits = slice(0, 2) if law.pairs else 1  # (counter, bit), or the bit
            parts = (part[of_bits] if cell[0] == "bit" else part for cell, part in zip(cells, state, strict=True))
            return law.statistic(tuple(parts))

        yield cells, statistic, law.scales


def worst_loss(model, frames, most=2):
    return pan_laws.worst_loss(*model, frames, most)


def density(**options):
    return PAN.Density(2, budget=dc.Budget(1.0), **options)


ESTIMATORS = {
    "density": density,
    "density, paper's coins": lambda: density(response="paper"),
    "density, large epsilon": lambda: PAN.Density(2, budget=dc.Budget(8.0)),
    "density, output takes most": lambda: density(output_share=0.75),
    "distinct count": lambda: PAN.DistinctCount(budget=dc.Budget(1.0), buckets=16, levels=8),
    "cropped mean": lambda: PAN.CroppedMean(2, 3, budget=dc.Budget(1.0)),
    "heavy fraction": lambda: PAN.HeavyFraction(4, 4, budget=dc.Budget(1.0)),
    "heavy fraction, two tables": lambda: PAN.HeavyFraction(4, 4, budget=dc.Budget(1.0), method="two_tables"),
    "heavy fraction, any k": lambda: PAN.HeavyFraction(4, 2, budget=dc.Budget(1.0), max_count=4),
    "heavy fraction, ladder": lambda: PAN.HeavyFraction(4, 2, budget=dc.Budget(1.0), method="ladder", max_count=2),
    "modular, response": lambda: PAN.ModularIncidence(2, 4, budget=dc.Budget(1.0), shift="response"),
    "modular, squares": lambda: PAN.ModularIncidence(2, 7, budget=dc.Budget(1.0), shift="squares"),
    "modular, paper's shift": lambda: PAN.ModularIncidence(2, 3, budget=dc.Budget(1.0), shift="paper"),
    "incidence": lambda: PAN.Incidence(2, 1, budget=dc.Budget(1.0), max_count=6),
    "occurrences": lambda: PAN.Occurrences(3, budget=dc.Budget(1.0), buckets=192, levels=8),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_intrusion_and_the_output_stay_within_the_budget(name):
    estimator = ESTIMATORS[name]()
    budget = estimator.guarantee.epsilon
    for model in models_of(estimator):
        loss = worst_loss(model, ONE_LOOK, most=3)
        assert loss <= budget * (1 + 1e-9)
        assert loss > 0.6 * budget  # the check has teeth: it finds a pair that needs most of the budget


@pytest.mark.parametrize("name", ["density", "cropped mean", "modular, paper's shift", "incidence"])
def test_other_elements_in_the_table_change_nothing(name):
    estimator = ESTIMATORS[name]()
    for cells, statistic, scales in models_of(estimator):
        own = len(cells)

        def of_both(state, statistic=statistic, own=own):
            return tuple(map(sum, zip(statistic(state[:own]), statistic(state[own:]), strict=True)))

        frames = [("look", "y", "output"), ("y", "look", "output")]
        loss = pan_laws.worst_loss([*cells, *cells], of_both, scales, frames, 1, own)
        assert loss <= estimator.guarantee.epsilon * (1 + 1e-9)


def test_the_look_and_the_output_spend_what_they_say():
    estimator = PAN.ModularIncidence(2, 4, budget=dc.Budget(1.0), shift="response", output_share=0.25)
    (model,) = models_of(estimator)
    assert worst_loss(model, [("look",)]) == pytest.approx(0.75)
    assert worst_loss(model, [("look", "output")]) == pytest.approx(1.0)


def test_signs_by_counter_with_the_noise_of_one_are_caught():
    """An entry moves its sign from one counter to another: 2 in l1, and noise for 1 is too little."""
    made = PAN.Occurrences(3, budget=dc.Budget(1.0), buckets=192, levels=8, output_share=0.5)
    ((cells, statistic, scales),) = models_of(made)
    frames = [("look", "output"), ("output", "look")]
    assert worst_loss((cells, statistic, scales), frames) <= 1 + 1e-9
    assert worst_loss((cells, statistic, tuple(scale / 2 for scale in scales)), frames) > 1.1


def test_several_outputs_share_the_budget():
    estimator = density(releases=2, output_share=0.5)
    (model,) = models_of(estimator)
    frames = [("look", "output", "output"), ("output", "look", "output")]
    assert worst_loss(model, frames, most=1) <= 1 + 1e-9
    (once,) = models_of(density(output_share=0.5))
    assert worst_loss(once, frames, most=1) > 1  # noise for one output does not cover two


# ---- announced intrusions --------------------------------------------------------------------------------------------

ANNOUNCED = {
    "density": lambda: density(announced_intrusions=1),
    "density, paper's coins": lambda: density(announced_intrusions=1, response="paper"),
    "cropped mean": lambda: PAN.CroppedMean(2, 2, budget=dc.Budget(1.0), announced_intrusions=1),
    "modular": lambda: PAN.ModularIncidence(2, 3, budget=dc.Budget(1.0), announced_intrusions=1),
    "incidence": lambda: PAN.Incidence(2, 1, budget=dc.Budget(1.0), max_count=6, announced_intrusions=1),
    "occurrences": lambda: PAN.Occurrences(2, budget=dc.Budget(1.0), buckets=128, levels=8, announced_intrusions=1),
}


@pytest.mark.parametrize("name", ANNOUNCED)
def test_announced_intrusions_cost_one_look_each(name):
    estimator = ANNOUNCED[name]()
    for model in models_of(estimator):
        loss = worst_loss(model, [("announce", "look", "output"), ("announce", "output", "look")], most=2)
        assert loss <= 1 + 1e-9
        twice = worst_loss(model, [("announce", "announce", "look")], most=1)
        assert twice <= 3 * estimator.epsilon_state * (1 + 1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_two_unannounced_looks_separate_the_histories(name):
    """PAN Theorem 6.1 in the small: between two looks nothing may move, so anything that moves is seen."""
    for cells, statistic, scales in models_of(ESTIMATORS[name]()):
        laws = [pan_laws.transcript(cells, statistic, each) for each in (("look", "look"), ("look", "x", "look"))]
        assert pan_laws.loss(*laws, scales) == math.inf


def test_a_window_has_the_mean_it_says_for_every_count():
    """E[sign] = W (2 (p0 + gap f) - 1) with f the ramp from low to high, for every modulus, window and count."""
    p0, p1 = Fraction(1, 4), Fraction(3, 4)
    for modulus in range(1, 6):
        for low in range(modulus):
            for high in range(low + 1, modulus + 1):
                expected = Window((modulus,), (1,), low, high).expected
                for n in range(8):
                    cell = ("bit", p0, p1, modulus, 1)
                    law = pan_laws.transcript([cell], lambda state: (), (*["x"] * n, "look"))
                    states = {looks[0][0][:2]: chance for (looks, _), chance in law.items()}
                    mean = sum(chance * (2 * bit - 1) for (u, bit), chance in states.items() if low <= u < high)
                    ramp = Fraction(min(max(n - low, 0), high - low), high - low)
                    assert float(mean) == pytest.approx(expected * (2 * (p0 + (p1 - p0) * ramp) - 1), abs=1e-12)


def test_the_tight_pair_is_tight_and_rounded_inwards():
    for epsilon in (0.01, 0.3, 1.0, 2.5, 10.0):
        pair = Response.of("tight", Fraction(epsilon))
        assert pair.unseen + pair.seen == ONE
        with mpmath.workdps(60):
            ratio = mpmath.log(pair.seen) - mpmath.log(pair.unseen)
            assert epsilon - 1e-9 < ratio <= mpmath.mpf(epsilon)
        cell = ("bit", Fraction(pair.unseen, ONE), Fraction(pair.seen, ONE), 1, 1)
        assert worst_loss(([cell], lambda state: (), (1,)), [("look",)]) == pytest.approx(epsilon, rel=1e-9)
