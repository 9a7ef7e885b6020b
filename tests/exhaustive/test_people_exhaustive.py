"""People: what one of them can move, over all small data sets with the real code, and what all steps cost together."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

import discreet as dc
from discreet.central import person_vectors as mechanism
from discreet.central.person_vectors import PersonVectors, aims, alone, calibrated, gaussian_delta, joint_delta
from discreet.noise import seeded_source
from discreet.summaries import people as people_module
from discreet.summaries.people import LENGTH, MOST_STEPS, ListedPeople, ValueRange

ITEMS = "abc"
SETS = [list(items) for size in (1, 2, 3) for items in itertools.combinations(ITEMS, size)]
DATA = [list(people) for size in (0, 1, 2) for people in itertools.combinations_with_replacement(SETS, size)]


def by_item(people: ListedPeople, values: np.ndarray) -> dict[str, int]:
    return dict(zip(people.items(np.arange(len(values))).to_pylist(), values.tolist(), strict=True))


def moved(with_person: dict[str, int], without: dict[str, int]) -> float:
    return math.sqrt(sum((with_person.get(x, 0) - without.get(x, 0)) ** 2 for x in {*with_person, *without}))


def discovery(people: ListedPeople, most_items: int = 256) -> dict[str, int]:
    return by_item(people, people.discovery_weights(most_items))


def sums(people: ListedPeople, weights: dict[str, int], longest: float) -> dict[str, int]:
    names = people.items(np.arange(len(people.discovery_weights(256)))).to_pylist()
    places = np.array([names.index(x) for x in weights if x in names], np.int64)
    values = np.array([weights[x] for x in weights if x in names], np.int64)
    there = [x for x in weights if x in names]
    return dict(zip(there, people.scaled_sums(places, values, longest).tolist(), strict=True))


@pytest.mark.parametrize("most_items", [1, 2, 256])
def test_one_person_moves_the_discovery_by_one_length(most_items):
    worst = 0.0
    for data in DATA:
        before = discovery(ListedPeople(data), most_items)
        for person in SETS:
            # Which items of a person with too many take part must not depend on the others.
            after = discovery(ListedPeople([*data, person]), most_items)
            worst = max(worst, moved(after, before))
    assert worst <= LENGTH
    assert worst > 0.999 * LENGTH  # nothing is wasted, either


def furthest_aimed(most_items: int, kind: type[ListedPeople] = ListedPeople) -> float:
    """The most that one person moves the second look, given what it aims at: over what the first look published."""
    worst = 0.0
    for weights in ((64, 64, 64), (64, 400, 1024), (1024, 64, 64), (1024, 1024, 64)):
        aim = dict(zip(ITEMS, weights, strict=True))

        def look(data, aim=aim):
            people = kind(data)
            there = discovery(people, most_items)
            return by_item(people, people.aimed_weights(most_items, np.array([aim[x] for x in there], np.int64)))

        for data in DATA[:12]:
            before = look(data)
            worst = max(worst, *(moved(look([*data, person]), before) for person in SETS))
    return worst


@pytest.mark.parametrize("most_items", [1, 2, 256])
def test_one_person_moves_the_second_look_by_one_length(most_items):
    worst = furthest_aimed(most_items)
    assert worst <= LENGTH
    assert worst > 0.999 * LENGTH  # nothing is wasted, either


class BeyondTheChoice(ListedPeople):
    """A twin: whatever took part by anybody's choice is in everybody's second vector."""

    def aimed_weights(self, most_items, aims):
        part = self.discovery_weights(most_items) > 0
        names = self._names.to_pylist()
        kept = [[names[x] for x in self._place[self._owner == person] if part[x]] for person in range(20)]
        other = ListedPeople([items for items in kept if items])
        there = other.items(np.arange(len(other.discovery_weights(256)))).to_pylist()
        found = by_item(other, other.aimed_weights(256, np.array([aims[names.index(x)] for x in there], np.int64)))
        return np.array([found.get(name, 0) for name in names], np.int64)


def test_a_twin_that_aims_beyond_the_choice_is_seen():
    """One person's choice then changes what others give: they have the item, too, and did not choose it."""
    assert furthest_aimed(1, BeyondTheChoice) > LENGTH


def test_what_is_aimed_at_depends_on_the_item_alone():
    """It grows with the noisy sum, is never less than the least, and what passed has the least."""
    sigma = calibrated(1.0, 1e-6, 150).sigma_of(mechanism.LOOK)
    noisy = (np.linspace(-9.0, 9.0, 2001) * float(sigma)).astype(np.int64)
    found = aims(noisy, np.zeros(len(noisy), bool), sigma)
    assert (np.diff(found) >= 0).all()
    assert (found.min(), found.max()) == (mechanism.LEAST_AIM, mechanism.MOST_AIM)
    exact = 1024 * (noisy / float(sigma) - 2.0) / 0.75
    assert (found <= np.clip(exact, 64, 1024) + 1e-6).all()  # never more than the calibration takes it to be
    assert (found >= np.clip(exact, 64, 1024) - 1).all()
    assert {*aims(noisy, np.ones(len(noisy), bool), sigma).tolist()} == {mechanism.LEAST_AIM}
    assert aims(np.array([2**60]), np.array([False]), sigma).tolist() == [mechanism.MOST_AIM]


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("longest", [1.0, 900.0, 1500.0, 5000.0])
def test_one_person_moves_the_counts_by_one_length(rows, longest):
    weights = {"a": 300, "b": 700, "c": 1024}
    worst = 0.0
    for data in DATA:
        before = sums(ListedPeople(data, rows=rows), weights, longest)
        for person in SETS:
            for times in (1, 1000):
                after = sums(ListedPeople([*data, person * times], rows=rows), weights, longest)
                worst = max(worst, moved(after, before))
    assert worst <= LENGTH
    if longest < 1000 or rows:
        assert worst > 0.999 * LENGTH  # nothing is wasted, either


@pytest.mark.parametrize("rows", [False, True])
def test_one_person_is_in_one_bin_of_the_sizes(rows):
    weights, places = np.array([300, 700, 1024]), np.arange(3)
    for data in DATA:
        base = [*data, ["a", "b", "c"]]  # so that all items have places
        before = dict(zip(*ListedPeople(base, rows=rows).lengths(places, weights), strict=True))
        for person in SETS:
            after = dict(zip(*ListedPeople([*base, person], rows=rows).lengths(places, weights), strict=True))
            changes = [after.get(q, 0) - before.get(q, 0) for q in {*after, *before}]
            assert sorted(change for change in changes if change) == [1]


def test_sabotaged_vectors_are_noticed(monkeypatch):
    def unscaled(items):
        return np.full(len(items), LENGTH - 1)

    monkeypatch.setattr("discreet.summaries.people.discovery_weight", unscaled)
    assert moved(discovery(ListedPeople([["a", "b"]])), {}) > LENGTH

    def by_the_sum(values, squared, longest):  # scaled as if the length were that of one entry
        return np.trunc((LENGTH - 1) * values / np.maximum(np.abs(values), longest)).astype(np.int64)

    monkeypatch.setattr("discreet.summaries.people.scaled", by_the_sum)
    assert moved(sums(ListedPeople([["a", "b", "c"]]), {"a": 300, "b": 700, "c": 1024}, 1.0), {}) > LENGTH


# ---- what the steps cost together ----------------------------------------------------------------------------------


def exact_delta(epsilon: float, mu: float, shift: float, passes: float) -> float:
    """The hockey-stick divergence, by integration over the privacy loss: a Gaussian of `shift` = mu', and a mark that
    only the data with the person can show, with probability `passes`."""

    def density(loss: float) -> float:
        return stats.norm.pdf(loss, shift**2 / 2, shift)

    # Without the mark the loss is that of the Gaussian plus log(1 - passes); with it, infinite.
    start = epsilon - math.log1p(-passes)
    part, _ = integrate.quad(
        lambda loss: (1 - passes) * density(loss) * -math.expm1(start - loss), start, start + 60 * shift, limit=500
    )
    other_start = epsilon + math.log1p(-passes)
    other, _ = integrate.quad(
        lambda loss: density(loss) * -math.expm1(other_start - loss), other_start, other_start + 60 * shift, limit=500
    )
    assert mu >= shift
    return max(passes + part, other)


def passing(calibration, d: int, aimed: bool = True) -> float:
    """The chance that one of a person's d items passes, which nobody else has, by integration over the first noise.

    The other items weigh the least that they may. A twin that forgets the aim takes 1/sqrt(d) for the second weight.
    """
    first, again = (float(calibration.sigma_of(part)) for part in (mechanism.LOOK, mechanism.SECOND_LOOK))
    weight = math.floor(LENGTH / math.sqrt(d))

    cut = (calibration.cuts[0] - weight) / first
    noise = np.linspace(-9.0, cut, 40_001)
    noisy = weight + noise * first
    aim = np.clip(1024 * (noisy / first - 2.0) / 0.75, 64.0, 1024.0)
    second = LENGTH * aim / np.sqrt(aim**2 + (d - 1) * 64.0**2) if aimed else weight
    both = stats.norm.pdf(noise) * stats.norm.sf((calibration.cuts[1] - noisy - second) / again)
    return float(stats.norm.sf(cut) + integrate.trapezoid(both, noise))


def worst_delta(calibration, epsilon: float, aimed: bool = True) -> float:
    """Over numbers of items and of isolated ones among them."""
    worst, mu, share = 0.0, calibration.mu, float(mechanism.LOOK / mechanism.PARTS)
    for d in (1, 2, 3, 16, 255, 256):
        one = passing(calibration, d, aimed)
        for j in {0, 1, d // 2, d}:
            passes = -math.expm1(j * math.log1p(-one))
            worst = max(worst, exact_delta(epsilon, mu, mu * math.sqrt(1 - share * j / d), passes))
    return worst


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_the_joint_loss_of_all_steps(epsilon, delta):
    """Every number of items and of isolated ones among them, integrated, against what is claimed."""
    worst = worst_delta(calibrated(epsilon, delta, 150), epsilon)
    assert worst <= delta
    assert worst > 0.95 * delta  # tight


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 16.0])
def test_a_twin_that_forgets_what_is_aimed_at_is_seen(epsilon):
    """Its cut is right for a second look like the first; with the aim the loss is more than delta."""
    right = calibrated(epsilon, 1e-6, 150)
    allowed, cuts = passing(right, 256), range(int(0.9 * right.cuts[1]), right.cuts[1])

    def forgetful(cut):
        return dataclasses.replace(right, cuts=(right.cuts[0], cut))

    first = bisect.bisect_left(cuts, True, key=lambda cut: passing(forgetful(cut), 256, aimed=False) <= allowed)
    assert first > 0
    assert worst_delta(forgetful(cuts[first]), epsilon) > 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_chance_of_an_item_alone_is_not_understated(epsilon):
    calibration = calibrated(epsilon, 1e-6, 150)
    for d in (1, 2, 7, 100, 256):
        bound = float(alone(calibration.mu, calibration.z, np.array([float(d)]))[0])
        assert passing(calibration, d) <= bound <= 1.1 * passing(calibration, d)
    assert (np.diff(alone(calibration.mu, calibration.z, np.arange(1.0, 257.0))) <= 0).all()  # with more items, less


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_a_lower_cut_or_less_noise_costs_more_than_delta(epsilon):
    calibration = calibrated(epsilon, 1e-6, 150)
    assert joint_delta(epsilon, calibration.mu, calibration.z) <= 1e-6
    assert joint_delta(epsilon, calibration.mu, calibration.z - 0.01) > 1e-6
    assert joint_delta(epsilon, 1.05 * calibration.mu, calibration.z) > 1e-6
    assert float(gaussian_delta(np.array(epsilon), np.array(2.0 * calibration.mu))) > 1e-5  # half the noise


class Recorder:
    """A random source that notes the noise it is asked for."""

    def __init__(self, seed: int) -> None:
        self._source = seeded_source(seed)
        self.seeded = True
        self.asked: list[tuple[float, int]] = []

    def discrete_gaussian(self, sigma, size):
        self.asked.append((float(sigma), size))
        return self._source.discrete_gaussian(sigma, size)


@pytest.mark.parametrize("many", [False, True])
def test_the_noise_of_all_steps_adds_up_to_mu(many):
    """With a second look and without one, the release asks for noise of exactly the whole budget."""
    budget = dc.Budget(1.0, 1e-6)
    people = ListedPeople([["a", "b", "c", "d"]] * 3000 if many else [["a"]] * 300)
    source = Recorder(1)
    release = PersonVectors(budget, 1)
    release.of_snapshot(people, source)
    looks = 1 if many else 2
    assert len(source.asked) == looks + 2
    spent = sum((LENGTH / sigma) ** 2 for sigma, _ in source.asked)
    mu = release.calibration.mu
    assert spent <= mu**2
    assert spent > 0.999999 * mu**2


@pytest.mark.parametrize("d", [1, 16])
def test_how_often_a_person_alone_is_listed(d):
    """The compiled release on one person whose items nobody else has, against the computed chance, both ways.

    A false alarm has a chance below 1e-7 (seeded, so it does not happen); noise or cuts a few percent off are noticed.
    """
    release = PersonVectors(dc.Budget(1.0, 0.2), 40)
    calibration = release.calibration
    people = ListedPeople([[f"own {i}" for i in range(d)]])
    runs = 3000
    source = seeded_source(7)
    listed = sum(len(release.discover(people, source)[0]) > 0 for _ in range(runs))
    # The same law in floats, from noise of another source: 400,000 people.
    first, again = (float(calibration.sigma_of(part)) / LENGTH for part in (mechanism.LOOK, mechanism.SECOND_LOOK))
    random, shape = np.random.default_rng(1), (400_000, d)
    noisy = 1 / math.sqrt(d) + first * random.standard_normal(shape)
    aim = np.clip((noisy / first - 2.0) / 0.75, 64 / 1024, 1.0)
    second = aim / np.linalg.norm(aim, axis=1, keepdims=True) + again * random.standard_normal(shape)
    cuts = [cut / LENGTH for cut in calibration.cuts]
    chance = float(np.mean(((noisy >= cuts[0]) | (noisy + second >= cuts[1])).any(axis=1)))
    assert chance <= -math.expm1(d * math.log1p(-passing(calibration, d))) + 0.003  # what is claimed of them together
    low, high = stats.binom.ppf([1e-8, 1 - 1e-8], runs, chance)
    assert low - 8 <= listed <= high + 8  # four standard deviations of the other noise
    assert chance <= 0.2


def test_items_beyond_the_choice_cannot_pass():
    """Of 300 items of one person 256 take part: the others have no second chance, whatever the noise."""

    class Loud:
        seeded = True

        def discrete_gaussian(self, sigma, size):
            return np.full(size, 10**12)

    people = ListedPeople([[str(i) for i in range(300)]])
    places, _, _ = PersonVectors(dc.Budget(1.0, 1e-6), 1000).discover(people, Loud())
    assert len(places) == 256


def test_items_beyond_the_choice_call_for_nothing():
    """Whether there is a second look hangs on items that took part alone: 44 loud ones that did not change nothing."""

    class LoudBeyond:
        seeded = True

        def __init__(self, weights):
            self.noise = np.where(weights > 0, -(10**12), 10**12)

        def discrete_gaussian(self, sigma, size):
            return self.noise

    people = ListedPeople([[str(i) for i in range(300)]])
    source = LoudBeyond(people.discovery_weights(256))
    places, _, second = PersonVectors(dc.Budget(1.0, 1e-6), 20).discover(people, source)
    assert (len(places), second) == (0, True)


AMOUNTS = (0.0, 0.001, 1.0, 7.5, 10.0, 1e6, math.inf, -5.0)
PURCHASES = [
    (items, amounts)
    for items in (["a"], ["a", "b"], ["c", "c"])
    for amounts in itertools.product(AMOUNTS, repeat=len(items))
]


def furthest_move(value_range, longest):
    """The most that the values of one person move the sums, in steps of the lattice."""
    weights, worst = {"a": 300, "b": 700, "c": 1024}, 0.0
    crowd = [(["a", "b", "c"], [3.0, 4.0, 5.0])]
    for data in ([], [(["a"], [2.0])], [(["a", "b"], [10.0, 0.5])]):
        base = [*crowd, *data]
        for person in PURCHASES:
            before, after = (
                sums(ListedPeople(
                    [items for items, _ in people], values=[amounts for _, amounts in people], value_range=value_range
                ), weights, longest)
                for people in (base, [*base, person])
            )  # fmt: skip
            worst = max(worst, moved(after, before))
    return worst


@pytest.mark.parametrize("low", [0, 2])
@pytest.mark.parametrize("longest", [1.0, 900.0 * 2**20, 5000.0 * 2**20])
def test_the_values_of_one_person_move_the_sums_by_one_length(low, longest):
    worst = furthest_move(ValueRange(low, 10), longest)
    assert worst <= LENGTH
    if longest < 1000 * 2**20:
        assert worst > 0.999 * LENGTH  # nothing is wasted, either


def test_a_twin_that_does_not_scale_values_is_seen(monkeypatch):
    def unscaled(values, squared_lengths, longest):
        return np.trunc((LENGTH - 1) * values / longest).astype(np.int64)

    monkeypatch.setattr(people_module, "scaled", unscaled)
    assert furthest_move(ValueRange(0, 10), 900.0 * 2**20) > LENGTH


class NoRange(ValueRange):
    """A twin that takes values as they are."""

    def steps(self, values):
        return np.rint(np.clip(values, -1e9, 1e9) * (self.STEPS / self.high)).astype(np.int64)


def one_row_counts_as(value_range, value):
    """What one row with this value adds to the count of its item, in the unit of the values."""
    one = ListedPeople([["a"]], values=[[value]], value_range=value_range)
    longest = 1000.0 * ValueRange.STEPS
    (entry,) = one.scaled_sums(np.array([0]), np.array([1]), longest).tolist()
    return entry * longest / LENGTH / ValueRange.STEPS * value_range.high


@pytest.mark.parametrize(("kind", "holds"), [(ValueRange, True), (NoRange, False)])
def test_a_row_counts_as_a_value_within_the_range(kind, holds):
    counted = [one_row_counts_as(kind(2, 10), value) for value in (*AMOUNTS, -math.inf, 1e300)]
    assert all(2 * (1 - 1e-3) <= value <= 10 for value in counted) is holds
    if holds:
        assert counted[3] == pytest.approx(7.5, rel=1e-3)


def test_values_of_one_person_and_item_count_up_to_a_limit():
    """So that squares of sums stay whole numbers of 128 bits."""
    with_many = ListedPeople([["a"] * 5], values=[[10.0] * 5], value_range=ValueRange(0, 10))
    assert with_many.lengths(np.array([0]), np.array([1]))[0].tolist() == [(5.0 * 2**20) ** 2]
    assert MOST_STEPS**2 * 1024**2 < 2**127 / 2**20
