"""What [PAN] prints where it is wrong: models of it are caught by the audit's laws, and corrected they pass."""

import math
from fractions import Fraction

import pytest
from tests.audit import printed_versions as printed

import discreet as dc
from discreet.pan.element_law import BitCell
from discreet_audit import pan
from discreet_audit.pan import Bit, CellsOfElement, elements_of, what_is_seen, worst_loss

PAN = dc.pan
ONE_LOOK = [("look", "output"), ("output", "look"), ("look",), ("output",)]


def loss_between(model, first, second):
    """Of two histories."""
    return pan.loss_between(what_is_seen(model, first), what_is_seen(model, second), model.scales)


def test_counters_that_survive_an_announcement_are_caught():
    """Re-randomising the bits alone, as PAN section 3 does for the density, does not carry over to the cropped mean."""
    kept = printed.bits_alone_rerandomised(0.4, 3)
    assert loss_between(kept, ("announce", "look"), ("announce", "x", "look")) == math.inf
    fresh = printed.bits_alone_rerandomised(0.4, 3, corrected=True)
    assert loss_between(fresh, ("announce", "look"), ("announce", "x", "look")) <= 2 * 0.4


def test_density_noise_after_rescaling_is_caught():
    """PAN section 3: 4(theta - 1/2)/eps + Lap(1/(eps m)) claims 2 eps; before rescaling it would be."""
    epsilon = 0.1
    after = printed.cropped_mean_noise_after_rescaling(epsilon, 1)
    assert worst_loss(after, ONE_LOOK)[0] == pytest.approx(3.424, abs=0.001)
    # The bit is seen as 0; x comes or not: the loss of the output alone, given the look.
    given = math.log((0.5 - epsilon / 4) + (0.5 + epsilon / 4) * math.exp(4))
    assert loss_between(after, ("look", "output"), ("look", "x", "output")) == pytest.approx(given)
    assert worst_loss(printed.cropped_mean_noise_after_rescaling(epsilon, 1, before=True), ONE_LOOK)[0] <= 2 * epsilon


def test_cropped_mean_noise_after_rescaling_is_caught():
    epsilon, t = 0.1, 3
    after = printed.cropped_mean_noise_after_rescaling(epsilon, t)
    assert worst_loss(after, ONE_LOOK, most=3)[0] > 3
    before = printed.cropped_mean_noise_after_rescaling(epsilon, t, before=True)
    assert worst_loss(before, ONE_LOOK, most=3)[0] <= 2 * epsilon


def test_signs_with_the_noise_of_bits_are_caught():
    """An entry of a window counts 1, -1 or 0: changing it moves the sum by 2, and noise for 1 is too little."""

    def loss(scale):
        model = CellsOfElement(
            [Bit(BitCell(Fraction(1, 4), Fraction(3, 4)))], lambda states: (2.0 * states[0][1] - 1,), (scale,)
        )
        return worst_loss(model, [("look", "output"), ("output", "look")], most=1)[0]

    assert loss(2 / 0.5) <= math.log(3) + 0.5
    assert loss(1 / 0.5) > math.log(3) + 0.5


@pytest.mark.parametrize("only_one", [True, False])
def test_heavy_hitters_noise_for_one_table_is_caught(only_one):
    """PAN Figure 3, step 4: v + Lap(1/(eps m)) claims eps for the output; every table moves it, and far more."""
    epsilon, rungs = 0.1, (1, 2, 4)
    claimed = epsilon * (1 + len(rungs))
    one = printed.heavy_hitters_noise_for_one_table(epsilon, rungs, only_one=only_one)
    assert worst_loss(one, [("look", "output")], most=1)[0] > 2 * claimed
    every = printed.heavy_hitters_noise_for_one_table(epsilon, rungs, only_one=only_one, all_tables=True)
    assert worst_loss(every, [("look", "output")], most=1)[0] <= claimed


def test_a_single_interval_is_not_the_fraction_of_heavy_hitters():
    """Figure 3's step 4 misses whatever occurs more often than the interval; the sum from there up does not."""
    rungs = [1.0, 2.0, 4.0, 8.0, 16.0]
    assert printed.fraction_of_one_interval(rungs, 2, 12) == pytest.approx(0.0)
    assert printed.fraction_of_one_interval(rungs, 2, 12, corrected=True) == pytest.approx(1.0)


def test_mod_k_noise_for_sensitivity_one_is_caught():
    """PAN Figure 5: Lap(1/(eps m)) on every fraction, where two of them move."""
    epsilon, k = 0.5, 3
    single = printed.modular_noise_for_one_residue(epsilon, k)
    assert worst_loss(single, ONE_LOOK, most=3)[0] == pytest.approx(3 * epsilon)
    both = printed.modular_noise_for_one_residue(epsilon, k, both=True)
    assert worst_loss(both, ONE_LOOK, most=3)[0] == pytest.approx(2 * epsilon)


def test_the_matrix_of_figure_5_is_not_the_law_of_the_entries():
    """P[entry = i | count = j] is shift(i - j); the paper prints shift(i + j), which inverts to another vector."""
    estimator = PAN.ModularIncidence(2, 4, budget=dc.Budget(1.0), shift="paper")
    shift = [float(p) for p in estimator.shift_law()]
    (model,) = elements_of(estimator)
    for count in range(4):
        law = what_is_seen(model, (*["x"] * count, "look"))
        for i in range(4):
            assert law[((i,),)][()] == pytest.approx(shift[(i - count) % 4], abs=1e-15)
    truth = [0.1, 0.6, 0.2, 0.1]
    assert abs(printed.modular_matrix_as_printed(1.0, truth) - truth).max() > 0.4
    assert abs(printed.modular_matrix_as_printed(1.0, truth, corrected=True) - truth).max() < 1e-12


def test_counters_that_do_not_share_the_budget_are_caught():
    """PAN Theorem 5.1 claims epsilon for several modular counters of the same element."""
    looks = [("look",)]
    assert worst_loss(printed.counters_that_do_not_share(1.0, (2, 3)), looks, 3)[0] == pytest.approx(2.0)
    assert worst_loss(printed.counters_that_do_not_share(1.0, (2, 3), shared=True), looks, 3)[0] <= 1 + 1e-9


def test_an_entry_made_when_its_element_first_comes_is_caught():
    assert loss_between(printed.entries_made_on_arrival(0.4), ("look",), ("x", "look")) == math.inf
    drawn = printed.entries_made_on_arrival(0.4, corrected=True)
    assert loss_between(drawn, ("look",), ("x", "look")) <= 0.4
