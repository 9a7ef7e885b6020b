"""Explanations say what holds for the guarantee at hand."""

import math
import re

import pytest

import discreet as dc
from discreet.central.stability import stability_threshold
from discreet.privacy.calibration.gaussian import discrete_gaussian_sigma
from discreet.releases.explain import explanation


def guarantee(unit=None, epsilon=1.0, delta=1e-9, **more):
    return dc.Guarantee(unit or dc.Event(), epsilon, delta, "some mechanism", **more).to_dict()


def text(*arguments, **options):
    return "\n".join(explanation(guarantee(*arguments, **options)))


def test_it_says_who_is_protected_how_far_and_on_what_it_rests():
    words = text(assumptions=("the clock is right",), reference="Theorem 7")
    assert "each row of the input" in words
    assert "factor of at most 2.72" in words
    assert "at most 1e-09 more" in words
    assert "at most 84.5% sure after seeing the release, except for a chance of at most 2e-09." in words
    assert "the clock is right" in words
    assert "some mechanism (Theorem 7)" in words


def test_it_tells_a_user_from_an_event():
    assert "each person" in text(dc.User(7))
    assert "at most 7" in text(dc.User(7))
    assert "each person" not in text()


def test_what_can_be_believed_follows_the_unit():
    """Of two values which one it is, or whether it was there: never both."""
    replaced, added = text(dc.Replace()), text(dc.Event())
    assert "the one of two values" in replaced
    assert "whichever of two values" in replaced
    assert "it was there" not in replaced
    assert "it was there" in added
    assert "two values" not in added


def test_certainty_is_only_claimed_with_a_delta():
    assert "listed did occur" in text()
    assert "listed did occur" not in text(delta=0.0)
    assert "except for a chance" not in text(delta=0.0)


def test_what_was_changed_is_told_by_trust_model():
    """Items of a known domain are shown at every tick, whether or not they occurred; a count of people is no list."""
    assert "listed did occur" not in text(trust="continual")
    assert "may be shown that never occurred" in text(trust="continual")
    for trust in ("pan", "multiparty"):
        assert "every count" not in text(trust=trust, delta=0.0)
        assert "left out" not in text(trust=trust, delta=0.0)
    assert "two values" in text(dc.Replace(), delta=0.0)


def losses(law, other):
    """(loss, probability) of every outcome of a law beside another; the loss of what only the first one has is inf."""
    return [(math.log(p / other[o]) if other.get(o) else math.inf, p) for o, p in law.items()]


def gaussian_and_laplace_laws(epsilon, delta):
    """Pairs of neighbouring laws with this epsilon and delta: a count with Gaussian noise, an item behind a cut."""
    sigma = discrete_gaussian_sigma(epsilon, delta)
    reach = math.ceil(20 * sigma)
    gauss = {z: math.exp(-z * z / (2 * sigma * sigma)) for z in range(-reach, reach + 1)}
    total = math.fsum(gauss.values())
    yield "gaussian", {z + 1: p / total for z, p in gauss.items()}, {z: p / total for z, p in gauss.items()}
    q, t = math.exp(-epsilon), stability_threshold(epsilon, delta)
    one, two = ({None: 0.0} for _ in range(2))
    for z in range(-80, 81):
        for law, count in ((one, 1), (two, 0)):
            shown = z + count if count and z + count >= 1 + t else None
            law[shown] = law.get(shown, 0.0) + (1 - q) / (1 + q) * q ** abs(z)
    yield "laplace with a cut", one, two


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_the_belief_stated_holds_for_gaussian_noise_too(epsilon, delta):
    """Even odds become e^loss: how often they pass the belief that is stated, by the exact laws."""
    stated = re.search(r"at most ([\d.]+)% sure .*? chance of at most ([\d.e-]+)\.", text(epsilon=epsilon, delta=delta))
    belief, chance = float(stated[1]) / 100, float(stated[2])
    for name, law, other in gaussian_and_laplace_laws(epsilon, delta):
        for first, second in ((law, other), (other, law)):
            found = losses(first, second)
            sure = math.fsum(p for loss, p in found if 1 / (1 + math.exp(-loss)) > belief)
            assert sure <= chance, name
            beyond = math.fsum(p for loss, p in found if loss > epsilon * (1 + 1e-9))
            if name == "gaussian":
                assert beyond > delta  # why the belief is not that of epsilon, nor the chance delta
            else:
                assert beyond <= delta
    if (epsilon, delta) == (1.0, 1e-6):
        (_, law, other), _ = gaussian_and_laplace_laws(epsilon, delta)
        assert 15e-6 < math.fsum(p for loss, p in losses(law, other) if loss > 1) < 22e-6  # of many counts: 20e-6


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 8.0, 50.0, 1000.0])
def test_the_belief_is_never_understated(epsilon):
    words = text(epsilon=epsilon, delta=0.0)
    stated = re.search(r"at most ([\d.]+)% sure", words)
    if stated:
        assert float(stated[1]) / 100 >= 1 / (1 + math.exp(-epsilon))
    else:
        assert "almost entirely" in words
    assert ("weak promise" in words) == (epsilon > 5)


def test_zcdp_is_translated():
    words = text(epsilon=None, delta=0.0, rho=0.1)
    assert "rho = 0.1" in words
    assert re.search(r"epsilon = [\d.]+ means", words)


def test_a_seeded_release_is_called_what_it_is():
    assert explanation(guarantee(seeded=True))[0].startswith("This release is NOT private")


@pytest.mark.parametrize("trust", ["central", "continual", "pan", "multiparty", "something new"])
def test_every_trust_model_has_words(trust):
    assert "Against whom: " in text(trust=trust)


@pytest.mark.parametrize(
    ("counted", "says"),
    [("people", "people who have the item"), ("rows", "rows that people have"), ("sums", "sums of the values"),
     ("weights", "sums of the weights")],
)  # fmt: skip
def test_what_was_counted_is_said(counted, says):
    assert says in explanation(guarantee(dc.User()), counted)[1]
    assert not any("What was counted" in told for told in explanation(guarantee(dc.User())))


def test_what_people_lack_is_said():
    share = {"value": 0.03, "lower": 0.021, "upper": 0.038}
    told = explanation(guarantee(dc.User()), "people", share)[1]
    assert told.endswith("Counts are low by about 3 % (2 to 4 %): people with many items are counted in part.")


# ---- what a reader without statistics must not misread ---------------------------------------------------------------


def test_epsilon_and_delta_come_with_what_is_usual():
    words = text()
    assert "Smaller epsilon is stronger; 1 is a common limit." in words
    assert "Delta is the chance that the promise fails, to be kept far below 1 / people." in words
    assert "Delta is the chance" not in text(delta=0.0)


def test_many_rows_of_a_person_are_told_as_a_factor():
    assert "with 20 rows the factor 2.72 below becomes 486 million, or more: practically no protection" in text()
    assert "practically no protection" not in text(epsilon=0.01)


def test_it_is_about_being_in_the_data_and_not_about_the_group():
    assert "had this row not been in the data; facts about the whole group can still be learned" in text()
    assert "had this person not been in the data" in text(dc.User())


def test_promises_and_duties_are_two_lists():
    told = explanation(guarantee(assumptions=("the clock is right",)))
    (promised,) = (part for part in told if part.startswith("What is promised:"))
    (duties,) = (part for part in told if part.startswith("What you must make sure of:"))
    assert "95 % intervals hold all together" in promised
    assert "lopsided" in promised
    assert "\n- the clock is right" in duties
    assert "an account is a set of people, not a data set" in duties


def test_everything_else_is_frequent_or_rare():
    assert "is all rows that are not listed, frequent or rare" in text()


def test_words_are_explained_where_they_appear():
    offset = dc.top_k(["a"] * 900, k=1, budget=dc.Budget(1.0, 1e-9)).explain()
    for word in ("- Misra-Gries: ", "- Offset: ", "- Curator: "):
        assert word in offset
    assert "- zCDP: " in text(epsilon=None, delta=0.0, rho=0.1)
    assert "- zCDP: " not in offset
    assert "- Misra-Gries: " not in text()


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 1e-9), (0.1, 0.0), (5.0, 1e-6), (40.0, 0.0)])
def test_odds_grow_by_the_factor_that_is_stated(epsilon, delta):
    """With a delta by twice e^epsilon: what holds for every mechanism, see the test of Gaussian noise above."""
    (odds,) = (part for part in explanation(guarantee(dc.User(), epsilon, delta)) if part.startswith("In odds"))
    if (epsilon, delta) == (1.0, 0.0):
        assert "can be at most 2.72 times as sure as before that you are in it." in odds
    rows = re.findall(r"([\d.]+) %\s+([\d.]+) %", odds)
    assert [float(before) for before, _ in rows] == [1, 10, 50]
    largest = math.exp(epsilon) * (2 if delta else 1)
    for before, after in rows:
        p = float(before) / 100
        exact = 100 * largest * p / (1 - p + largest * p)
        assert exact - 1e-9 <= float(after) <= min(100.0, exact + 0.1000001)
