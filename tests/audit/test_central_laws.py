"""Every central release over all neighbouring streams of a few items, through the compiled summaries and the real code.

The output laws are exact up to branches of probability below 1e-6 or so; a divergence comes as a lower and an upper
bound. The release passes if the upper bound of the worst pair is at most delta, a sabotaged twin is caught if its
lower bound is above.
"""

import itertools
import math

import pytest
from tests.reference.sabotage import cut_one_lower, half_the_noise, sabotaged

import discreet as dc
from discreet.central import (
    Merged,
    Offset,
    ReducedMisraGries,
    Stability,
    Summed,
    UserSketch,
)
from discreet.privacy.calibration.correlated_noise import correlated_calibration
from discreet.privacy.calibration.offset_cut import offset_delta
from discreet.privacy.calibration.zcdp import zcdp_delta
from discreet.published import ChanMisraGries, PrivateMisraGries, PrivateSpaceSaving, TextbookMisraGries
from discreet.published.private_space_saving import space_saving_delta, space_saving_noisy_delta
from discreet_audit.central import length_of_the_data
from discreet_audit.exact import (
    OutputLaw,
    divergence,
    law_of,
    neighbouring_streams,
    published,
    release_law,
    worst_divergence,
)

EPSILON = 2.0
SEED = 7


def misra_gries(capacity):
    def summarise(stream):
        sketch = dc.MisraGries(capacity, seed=SEED)
        sketch.update(list(stream))
        return sketch

    return summarise


def space_saving(capacity):
    def summarise(stream):
        sketch = dc.SpaceSaving(capacity, seed=SEED)
        sketch.update(list(stream))
        return sketch

    return summarise


def exact_counts(stream):
    counts = dc.ExactCounts(seed=SEED)
    counts.update([x for event in stream for x in (event if isinstance(event, tuple) else (event,))])
    return counts


def merged(capacity):
    def summarise(streams):
        sketches = [misra_gries(capacity)(stream) for stream in streams]
        for other in sketches[1:]:
            sketches[0].merge(other)
        return sketches[0]

    return summarise


def users(capacity, most):
    def summarise(stream):
        sketch = dc.UserMisraGries(capacity, most, seed=SEED)
        sketch.update([list(user) for user in stream])
        return sketch

    return summarise


def merged_users(capacity, most):
    def summarise(parts):
        sketches = [users(capacity, most)(part) for part in parts]
        for other in sketches[1:]:
            sketches[0].merge(other)
        return sketches[0]

    return summarise


def no_key_in_common():
    """A pair in state S6 for two counters: (y, x, z, x, y, z, w) with and without the second x, in the hash's order."""
    for y, x, z, w in itertools.permutations(range(4)):
        pair = (y, x, z, x, y, z, w), (y, x, z, y, z, w)
        keys = [set(misra_gries(2)(stream).not_private_counts().to_dict()) for stream in pair]
        if not keys[0] & keys[1]:
            return pair
    raise AssertionError("no order of four keys reaches S6")


def streams(longest=4, removed=1, tall=()):
    """Short streams, and streams of one item that is about as frequent as the cut."""
    for fewer in range(1, removed + 1):
        yield from neighbouring_streams(range(3), longest, fewer)
        yield from (((0,) * count, (0,) * (count - fewer)) for count in tall)


def merging_pairs(tall=()):
    for stream, shorter in neighbouring_streams(range(3), 3):
        for other in itertools.product(range(3), repeat=2):
            yield (stream, other), (shorter, other)
    for count in tall:
        yield ((0,) * count, (1,)), ((0,) * (count - 1), (1,))
        # One event more, and both counters lose one.
        yield ((0,) * count + (1,) * count + (2,), ()), ((0,) * count + (1,) * count, ())


SETS = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]


def user_pairs(longest, tall=()):
    yield from neighbouring_streams(SETS, longest)
    yield from ((((0, 1),) * count, ((0, 1),) * (count - 1)) for count in tall)


def sketched_user_pairs():
    yield from user_pairs(2, tall=(6,))
    for count in (1, 6):
        # The last user takes one from each of three counters, or raises two of them.
        yield ((0, 1), (2,)) * count + ((3,),), ((0, 1), (2,)) * count
        yield ((0, 1), (2,)) * count + ((0, 1),), ((0, 1), (2,)) * count


def pairs_of_two_lists():
    """One user more, with a list in both of two parts that are merged, or with two lists in one of them."""
    few = [part for length in (0, 1) for part in itertools.product(SETS, repeat=length)]
    for one, two in itertools.combinations_with_replacement(few, 2):
        for first, second in itertools.product([(0,), (3,), (0, 1), (3, 4)], repeat=2):
            yield ((*one, first), (*two, second)), (one, two)
    for first in SETS:
        yield ((first, (3, 4), (3, 4)),), ((first,),)
    # The item 2 in both takes two from each of two counters, far above the cut and around it.
    for count in (3, 12):
        yield (((0, 1),) * count + ((2,),),) * 2, (((0, 1),) * count,) * 2


def budget(delta, epsilon=EPSILON):
    return dc.Budget(epsilon, delta)


# Where all counters share a noise there is one more to enumerate: less of it.
SHARED = 6.0


# Deltas a little above what the mechanisms need, so that nothing less than their thresholds will do.
S6 = 1.02 * offset_delta(EPSILON, 3)
S4 = 1.02 * space_saving_delta(EPSILON, 2)
CASES = {
    "offset": (Offset(budget(S6), 2), misra_gries(2), lambda: [*streams(), no_key_in_common()]),
    "offset, one counter": (Offset(budget(S6), 1), misra_gries(1), lambda: streams(5)),
    "pmg": (PrivateMisraGries(budget(S6), 2), misra_gries(2), lambda: [*streams(), no_key_in_common()]),
    "textbook": (TextbookMisraGries(budget(0.0122), 2), misra_gries(2), streams),
    "stability": (Stability(budget(0.0165)), exact_counts, lambda: streams(3)),
    "stability, gaussian": (Stability(budget(0.0201), noise="gaussian"), exact_counts, lambda: streams(3)),
    "stability, repeated": (
        Stability(budget(0.0375), unit=dc.User(2)),
        exact_counts,
        lambda: streams(3, removed=2, tall=(6, 7, 8)),
    ),
    "stability, distinct": (
        Stability(budget(0.0272), unit=dc.User(2), distinct=True),
        exact_counts,
        lambda: user_pairs(2, tall=(6, 7, 8)),
    ),
    "stability, distinct, gaussian": (
        Stability(budget(0.0272), unit=dc.User(2), distinct=True, noise="gaussian"),
        exact_counts,
        lambda: user_pairs(2, tall=(6, 7, 8)),
    ),
    "merged": (Merged(budget(0.006, SHARED), 2), merged(2), lambda: merging_pairs(tall=(3, 4, 8))),
    "merged, two events": (
        Merged(budget(0.006, SHARED), 1, dc.User(2)),
        merged(1),
        lambda: (((a, (1,)), (b, (1,))) for a, b in streams(4, removed=2, tall=(12,))),
    ),
    "not merged": (
        Merged(budget(0.006, SHARED), 2),
        misra_gries(2),
        lambda: [*streams(tall=(3, 4, 8)), ((0, 1) * 8 + (2,), (0, 1) * 8)],
    ),
    "users": (UserSketch(budget(0.014, SHARED), 3, dc.User(2)), users(3, 2), sketched_user_pairs),
    "users in two parts": (
        UserSketch(budget(0.03, 10.0), 2, dc.User(2), parts_per_user=2),
        merged_users(2, 2),
        pairs_of_two_lists,
    ),
    "chan": (ChanMisraGries(budget(0.0099), 2), merged(2), lambda: merging_pairs(tall=(6, 7, 8))),
    "space saving": (PrivateSpaceSaving(budget(S4), 2, stream_length=5), space_saving(2), lambda: streams(5)),
    "space saving, noisy length": (
        PrivateSpaceSaving(budget(0.02), 2, stream_length="noisy", length_share=0.5),
        space_saving(2),
        lambda: streams(3, tall=(9, 10)),
    ),
}
BOUNDS = {
    # What is proved is an upper bound: m steps of group privacy, a rounded formula, or a change of all of an entry's
    # sensitivity, which no sketch makes.
    "offset, two events": (Offset(budget(0.05), 2, dc.User(2)), misra_gries(2), lambda: streams(3, removed=2)),
    "pmg, two events": (PrivateMisraGries(budget(0.05), 1, dc.User(2)), misra_gries(1), lambda: streams(4, removed=2)),
    "pmg, paper": (PrivateMisraGries(budget(0.05), 2, calibration="paper"), misra_gries(2), streams),
    "pmg, geometric": (PrivateMisraGries(budget(0.05), 2, calibration="paper-geometric"), misra_gries(2), streams),
    "textbook, paper": (TextbookMisraGries(budget(0.05), 2, calibration="paper"), misra_gries(2), streams),
    "textbook, two events": (TextbookMisraGries(budget(0.05), 1, dc.User(2)), misra_gries(1), lambda: streams(4, 2)),
    "chan, two events": (ChanMisraGries(budget(0.05), 1, dc.User(2)), misra_gries(1), lambda: streams(4, removed=2)),
    "reduced": (ReducedMisraGries(budget(0.0083), 2), misra_gries(2), streams),
    "reduced, two events": (ReducedMisraGries(budget(0.05), 1, dc.User(2)), misra_gries(1), lambda: streams(4, 2)),
    "space saving, paper": (
        PrivateSpaceSaving(budget(0.05), 2, stream_length=5, calibration="paper"),
        space_saving(2),
        lambda: streams(5),
    ),
    "space saving, two events": (
        PrivateSpaceSaving(budget(0.05), 1, dc.User(2), stream_length=4),
        space_saving(1),
        lambda: streams(4, removed=2),
    ),
    "space saving, two events, noisy length": (
        PrivateSpaceSaving(budget(0.1), 1, dc.User(2), stream_length="noisy", length_share=0.5),
        space_saving(1),
        lambda: streams(3, removed=2),
    ),
}


def worst(mechanism, summarise, pairs, cutoff=1e-6, **options):
    return worst_divergence(mechanism, summarise, pairs(), mechanism.budget.epsilon, cutoff, **options)


def caught(mechanism, summarise, pairs, delta, cutoff=1e-6, **options):
    """Whether a pair refutes the claim; the first one that does is enough."""
    return worst(mechanism, summarise, pairs, cutoff, enough=delta, **options).lower > delta


@pytest.mark.parametrize("name", CASES)
def test_the_release_passes_and_its_twins_are_caught(name):
    """Gaussian noise is calibrated to delta itself: the enumeration leaves half a percent of play."""
    mechanism, summarise, pairs = CASES[name]
    delta = 1.005 * mechanism.budget.delta
    shared = isinstance(mechanism, (Merged, UserSketch))
    # What is not enumerated of the one law counts e^epsilon times.
    cutoff = 1e-8 if shared else 1e-6
    assert worst(mechanism, summarise, pairs, cutoff).upper <= delta
    assert caught(cut_one_lower(mechanism), summarise, pairs, delta, cutoff)
    assert caught(half_the_noise(mechanism), summarise, pairs, delta, cutoff)
    if shared and mechanism.capacity > 1:
        without = sabotaged(mechanism, shared_scale=lambda scale: scale / 1000)
        assert caught(without, summarise, pairs, delta, cutoff)


@pytest.mark.parametrize("name", BOUNDS)
def test_the_release_stays_below_its_bound(name):
    mechanism, summarise, pairs = BOUNDS[name]
    found = worst(mechanism, summarise, pairs)
    assert 0.0 < found.upper <= mechanism.budget.delta


def test_a_cut_two_lower_in_the_reduced_release_is_caught():
    mechanism, summarise, pairs = BOUNDS["reduced"]
    assert caught(sabotaged(mechanism, cut=lambda cut: cut - 2), summarise, pairs, mechanism.budget.delta)
    assert caught(half_the_noise(mechanism), summarise, pairs, mechanism.budget.delta)


def test_noise_for_users_of_one_part_is_caught():
    """The release for parts_per_user=1 on users that have a list in each of two parts."""
    mechanism = UserSketch(budget(0.03, 10.0), 2, dc.User(2))
    assert caught(mechanism, merged_users(2, 2), pairs_of_two_lists, 0.2)
    assert "one list" in mechanism.guarantee.assumptions[-1]


def test_the_published_private_space_saving_is_caught():
    """Its threshold contains the private length. With one public number for both neighbours it passes."""
    epsilon, delta = 1.0, 1e-3
    # 18 events have the cut 18, 19 have 19: a published 18 tells them apart.
    pairs = [((0,) * 18 + (1,), (0,) * 18)]
    options = {"capacity": 2, "calibration": "paper"}
    public = PrivateSpaceSaving(dc.Budget(epsilon, delta), stream_length=19, **options)
    (literal,) = length_of_the_data(public)
    noisy = PrivateSpaceSaving(dc.Budget(epsilon, delta), 2, stream_length="noisy", length_share=0.5)
    assert worst(literal.mechanism, space_saving(2), lambda: pairs).lower > 0.4
    assert worst(public, space_saving(2), lambda: pairs).upper <= delta
    assert worst(noisy, space_saving(2), lambda: pairs, cutoff=1e-7).upper <= delta


def test_the_delta_of_a_noisy_length_is_that_of_the_worst_residue():
    """Streams whose length is a multiple of k, in state S2: the formula for S4 is an upper bound and close."""
    mechanism = PrivateSpaceSaving(budget(0.02), 2, stream_length="noisy", length_share=0.5)
    t = mechanism.threshold - 1
    found = worst(mechanism, space_saving(2), lambda: streams(4))
    exact = space_saving_noisy_delta(EPSILON / 2, EPSILON / 2, 2, t)
    assert 0.5 * exact < found.lower
    assert found.upper <= exact


UNIVERSE = [
    (ReducedMisraGries(dc.Budget(EPSILON), 2, universe=range(2), spurious=0.3), misra_gries(2), 1),
    (ReducedMisraGries(dc.Budget(EPSILON), 1, dc.User(2), universe=range(3), spurious=0.3), misra_gries(1), 2),
    (ChanMisraGries(dc.Budget(EPSILON), 2, universe=[0, 1], spurious=0.3), misra_gries(2), 1),
]


@pytest.mark.parametrize(("mechanism", "summarise", "removed"), UNIVERSE)
def test_over_a_universe_nothing_is_left_for_delta(mechanism, summarise, removed):
    """Pure DP: the divergence at epsilon is 0; what was not enumerated is all that keeps the bound from it."""

    def at(mechanism, **options):
        return worst_divergence(mechanism, summarise, streams(3, removed), EPSILON, 1e-6, **options)

    found = at(mechanism)
    assert found.lower == 0.0
    assert found.upper < 2e-3
    assert at(half_the_noise(mechanism), enough=2e-3).lower > 2e-3


@pytest.mark.parametrize(("capacity", "size"), [(1, 3), (2, 2)])
def test_gaussian_noise_over_a_universe_keeps_to_rho(capacity, size):
    """rho-zCDP allows so much delta at an epsilon; half the noise needs four times as much rho, and more delta."""
    rho, epsilon = 2.0, 4.0
    mechanism = ReducedMisraGries(dc.Budget.zcdp(rho), capacity, universe=range(size), spurious=0.3)
    pairs = [*streams(3), ((0,) * 4, (0,) * 3), ((0,) * 5, (0,) * 4)]
    allowed = zcdp_delta(rho, epsilon)
    found = worst_divergence(mechanism, misra_gries(capacity), pairs, epsilon, 1e-5)
    assert 0.0 < found.upper <= allowed
    assert worst_divergence(half_the_noise(mechanism), misra_gries(capacity), pairs, epsilon, 1e-5).lower > allowed


@pytest.mark.parametrize("budget", [dc.Budget(EPSILON), dc.Budget.zcdp(EPSILON**2 / 2)], ids=["laplace", "gaussian"])
def test_noise_over_a_universe_is_that_of_noise_on_every_item(budget):
    """The release against noise drawn for each of four items, one of which the sketch holds and one more is unknown."""
    mechanism = ReducedMisraGries(budget, 2, universe=range(10, 14), spurious=0.5)
    sketch = misra_gries(2)((12, 12, 12, 99, 99))
    entries = {12: 3 * 3 - 5}
    cut = mechanism.cut

    def each_item(source):
        draw = source.discrete_gaussian if mechanism.law == "gaussian" else source.discrete_laplace
        noisy = {x: entries.get(x, 0) + draw(mechanism.scale) for x in range(10, 14)}
        shown = sorted(((x, v) for x, v in noisy.items() if v >= cut), key=lambda pair: (-pair[1], pair[0]))[:2]
        return tuple(sorted((repr(x), (2 * v + 3) // 6) for x, v in shown)), None

    ours, plain = release_law(mechanism, sketch, 1e-6), law_of(each_item, 1e-6)
    distance = math.fsum(abs(ours.mass.get(o, 0.0) - plain.mass.get(o, 0.0)) for o in {*ours.mass, *plain.mass})
    assert distance <= ours.missing + plain.missing + 1e-9
    assert ours.missing + plain.missing < 0.05


def _summed(capacity):
    return lambda pair: [misra_gries(capacity)(stream) for stream in pair]


def _summed_signature(first, second):
    sides = []
    for sketches in (first, second):
        sides.append(tuple((tuple(sorted(s.not_private_counts().to_dict().items())), s.total) for s in sketches))
    return tuple(sides)


def _summing_pairs():
    for stream, shorter in neighbouring_streams(range(2), 3):
        yield (stream, (0, 0, 0)), (shorter, (0, 0, 0))


@pytest.mark.parametrize(
    "mechanism",
    [
        Summed(dc.Budget(EPSILON, 0.02), 2, sketches=2),
        Summed(dc.Budget(EPSILON), 2, universe=range(2), spurious=0.3, sketches=2),
    ],
)
def test_a_sum_of_reduced_sketches_needs_the_noise_of_one(mechanism):
    def at(mechanism, **options):
        return worst(mechanism, _summed(2), _summing_pairs, 1e-5, signature=_summed_signature, **options)

    delta = mechanism.budget.delta or 4e-3
    assert at(mechanism).upper <= delta
    assert at(half_the_noise(mechanism), enough=delta).lower > delta


def test_the_gaussian_calibration_is_the_one_for_all_counters():
    """A user of two items moves three counters: the calibration for two is caught."""
    mechanism, summarise, pairs = CASES["users"]
    sigma, shared, cut = correlated_calibration(SHARED, mechanism.budget.delta, 2)
    for_two = sabotaged(mechanism, scale=lambda _: sigma, shared_scale=lambda _: shared, threshold=lambda _: cut)
    assert caught(for_two, summarise, pairs, mechanism.budget.delta, cutoff=1e-9)


def test_divergences_of_laws_that_are_known():
    half, biased = OutputLaw({0: 0.5, 1: 0.5}, 0.0), OutputLaw({0: 0.75, 1: 0.25}, 0.0)
    assert divergence(biased, half, math.log(1.2)).upper == pytest.approx(0.15)
    incomplete = OutputLaw({0: 0.7, 1: 0.25}, 0.05)
    found = divergence(incomplete, half, math.log(1.2))
    assert found.lower == pytest.approx(0.1)
    assert found.upper == pytest.approx(0.15)


def test_enumerated_laws_sum_to_one():
    def run(source):
        return (
            source.discrete_laplace(1),
            source.uniform_integers(3),
            tuple(source.sample_without_replacement(3, 2).tolist()),
            source.bernoulli(0.25),
        )

    law = law_of(run, 1e-9)
    assert math.fsum(law.mass.values()) + law.missing == pytest.approx(1.0)
    assert law.mass[0, 1, (2, 0), 1] == pytest.approx((1 - math.exp(-1)) / (1 + math.exp(-1)) / 3 / 6 / 4)


def test_published_is_what_the_histogram_holds():
    mechanism = Offset(dc.Budget(1.0, 0.1), 4)
    sketch = misra_gries(4)((0,) * 30 + (1,) * 20 + (2,))
    from discreet.noise import seeded_source

    histogram = mechanism(sketch, seeded_source(5))
    items, offset = published(mechanism, sketch, seeded_source(5))
    assert dict(items) == {repr(x): c for x, c in zip(histogram.items, histogram.counts.tolist(), strict=True)}
    assert offset == histogram.offset
