"""What the checks of the audit rest on, part by part: each of these parts, left out, would let something pass."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.central import Offset
from discreet.noise import seeded_source
from discreet.pan.element_law import BitCell, CounterCell, ElementLaw
from discreet_audit import core, exact, pan, statistical
from discreet_audit.closed_forms import Key, NoiseLaw, StatePair, divergence, independent, threshold_delta
from discreet_audit.exact import EnumeratedSource, OutputLaw, law_of, ratio_loss, worst_divergence, worst_pair

FAST = core.Effort("fast", runs=300, large_pairs=60, released_pairs=20, length=-1)
BUDGET = dc.Budget(1.0, 1e-3)


# ---- findings and what runs them -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claimed", "measured", "passed"),
    [(1.0, 1.0, True), (1.0, 1.0 + 1e-12, False), (0.0, 0.0, True), (0, 1, False), (math.nan, 0.5, False),
     (0.5, math.nan, False), (math.inf, math.inf, True), (1.0, -math.inf, True)],
)  # fmt: skip
def test_a_claim_holds_up_to_itself_and_no_farther(claimed, measured, passed):
    assert core.checked("", "delta", claimed, measured).passed is passed


def test_counted_faults_and_the_largest_of_many():
    assert not core.never("", [0, 0, 1]).passed
    assert core.never("", iter([0, False])).to_dict()["pairs"] == 2
    assert (core.never("", 3, 9).measured, core.never("", 3, 9).pairs) == (3, 9)
    found = core.largest("", 2.0, iter([0.5, 3.0, 1.0]))
    assert (found.measured, found.pairs, found.passed) == (3.0, 3, False)
    wrong = core.faults("", {"one": False, "two": 1, "three": None, "four": "so"})
    assert (wrong.measured, wrong.detail, wrong.passed) == (2, "two; four", False)


class Small(core.Audit):
    """Looks at the capacity of an offset release, which must be 3."""

    def __init__(self, pairs=(1,), prepared=None):
        self.pairs, self.prepared = pairs, prepared

    def prepare(self, mechanism):
        return self.prepared or mechanism

    def structure(self, mechanism, effort):
        return [core.never("states", 0, number) for number in self.pairs]

    def exact(self, mechanism, effort):
        return [core.never("capacity", mechanism.capacity != 3, 1)]

    statistical = coupled = exact

    def twins(self, mechanism):
        return [core.twin(mechanism, "another", capacity=4)]


@pytest.mark.parametrize(("pairs", "passes"), [((5, 5), True), ((5, 0), False), ((0, 0), False), ((), False)])
def test_pairs_are_needed_where_states_are_compared(pairs, passes):
    """A check of structure that was given no pair says nothing, also beside one that was given some."""
    report = core.evidence(Small(pairs), Offset(BUDGET, capacity=3), FAST)
    assert report.passed is passes
    assert [finding.check for finding in report.findings if not finding.passed] == (
        [] if passes else ["nothing was looked at"]
    )


def test_what_is_audited_is_what_was_prepared():
    """A mechanism that was used, or leaves a number open, is made anew: the report is about that one."""
    given, prepared = Offset(BUDGET, capacity=2), Offset(dc.Budget(0.5, 1e-3), capacity=3)
    assert not core.evidence(Small(), given, FAST).passed
    report = core.evidence(Small(prepared=prepared), given, FAST)
    assert report.epsilon == 0.5
    assert report.passed


def test_a_finding_has_the_kind_of_its_check():
    mechanism, audit = Offset(BUDGET, capacity=3), Small((1, 2))
    for kind in core.KINDS[:-1]:
        found = [*audit.findings(kind, mechanism, FAST)]
        assert found
        assert {finding.kind for finding in found} == {kind}


def test_a_twin_computes_again_what_follows_from_what_was_replaced():
    """Else a twin with another budget would have the right scale, and nobody would notice that it passes."""
    mechanism = Offset(BUDGET, capacity=3)
    before = mechanism.scale, mechanism.threshold, mechanism.error_model  # which are kept from now on
    broken = core.twin(mechanism, "", budget=dc.Budget(2.0, 1e-3)).mechanism
    assert broken.scale == before[0] / 2
    assert broken.error_model.noise.scale == before[0] / 2
    assert broken.threshold < before[1]
    assert (mechanism.scale, mechanism.threshold, mechanism.error_model) == before
    changed = core.altered(mechanism, "", threshold=lambda right, made: right - 1).mechanism
    assert changed.threshold == before[1] - 1


# ---- laws that are written out ---------------------------------------------------------------------------------------


def test_what_was_not_followed_counts_against_the_mechanism():
    """Of the first law it may all be where the second has nothing; of the second it may all be where it hurts."""
    whole, part = OutputLaw({0: 0.5, 1: 0.5}, 0.0), OutputLaw({0: 0.5, 1: 0.3}, 0.2)
    found = exact.divergence(part, whole, 0.0)
    assert (found.lower, found.upper) == (pytest.approx(0.0), pytest.approx(0.2))
    found = exact.divergence(whole, part, 0.0)
    assert (found.lower, found.upper) == (pytest.approx(0.0), pytest.approx(0.2))
    found = exact.divergence(OutputLaw({2: 1.0}, 0.0), part, math.log(2))
    assert (found.lower, found.upper) == (pytest.approx(0.6), pytest.approx(1.0))


def test_the_loss_of_ratios_is_that_of_both_directions():
    """What one law alone can show has no ratio; what is missing of a law may be anywhere."""
    even, odd = OutputLaw({0: 0.5, 1: 0.5}, 0.0), OutputLaw({0: 0.9, 1: 0.1}, 0.0)
    assert ratio_loss(even, odd) == ratio_loss(odd, even) == pytest.approx(math.log(5))
    narrow = OutputLaw({0: 1.0}, 0.0)
    assert ratio_loss(even, narrow) == ratio_loss(narrow, even) == math.inf
    assert ratio_loss(even, OutputLaw({0: 0.75}, 0.25)) == pytest.approx(math.log(2))


def test_branches_that_are_too_rare_are_missing_and_not_forgotten():
    law = law_of(lambda source: (source.discrete_laplace(2), source.bernoulli(0.01)), 1e-3)
    followed = math.fsum(law.mass.values())
    assert law.missing > 1e-3
    assert followed + law.missing == pytest.approx(1.0, abs=1e-9)
    source = EnumeratedSource(1e-2)
    assert law_of(lambda source: int(source.discrete_gaussian(3)), 1e-2, source).missing == source.missing > 0


class Asymmetric:
    """Shows an item that one stream alone has, with probability 1/2: the loss is in one direction."""

    def __init__(self, one):
        self.one = one

    def check(self, summary):
        pass

    def draw(self, summary, source):
        import pyarrow as pa

        from discreet.central._base import Drawn
        from discreet.summaries import RawCounts

        shown = bool(source.bernoulli(0.5)) and (len(summary) > 0) == self.one
        raw = RawCounts(pa.array(["a"]), np.array([1]))
        return Drawn(raw, np.array([1]), np.array([shown]))


@pytest.mark.parametrize("one", [True, False])
def test_pairs_are_looked_at_in_both_directions(one):
    """Whichever of the two shows more: a release that hides an item in the one that has it is no better."""
    found = worst_divergence(
        Asymmetric(one), lambda stream: stream, [(("a",), ())], 1.0, signature=lambda a, b: (len(a), len(b))
    )
    assert found.lower == found.upper == pytest.approx(0.5)


def test_all_pairs_are_looked_at_and_counted():
    laws: dict[Hashable, float] = {"a": 0.0, "b": 1.0, "c": 5.0}
    pairs = [("a", "b"), ("c", "a"), ("b", "a")]
    assert worst_pair(iter(pairs), laws.__getitem__, lambda one, other: abs(one - other)) == (5.0, 3)
    assert worst_pair([], laws.__getitem__, lambda one, other: 1.0) == (0.0, 0)
    assert sorted(exact.apart({"a": 3, "b": 1}, {"b": 4, "c": 2})) == [-3, -2, 3]


@pytest.mark.parametrize("removed", [1, 2])
def test_every_stream_has_every_neighbour(removed):
    """All streams of up to three events of two items, with each that lacks some of them, once."""
    found = [*exact.neighbouring_streams("ab", 3, removed)]
    wanted = {
        (stream, tuple(x for i, x in enumerate(stream) if i not in out))
        for length in range(removed, 4)
        for stream in itertools.product("ab", repeat=length)
        for out in itertools.combinations(range(length), removed)
    }
    assert len(found) == len(wanted)
    assert set(found) == wanted


# ---- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_what_a_table_of_noise_leaves_out_is_added(law):
    """A delta that is computed is never below that of the whole law."""
    noise = NoiseLaw(law, Fraction(2), left_out=1e-3)
    pair = StatePair((Key(1, None),))
    assert threshold_delta(pair, noise, 10**6, 1.0) >= 2e-3
    fine = NoiseLaw(law, Fraction(2))
    assert threshold_delta(pair, noise, 4, 1.0) >= threshold_delta(pair, fine, 4, 1.0)


def test_equal_keys_count_as_often_as_they_are_there():
    noise = NoiseLaw("laplace", Fraction(1))
    one, three = (divergence([Key(1, None, times)], noise, (3, 3), 1.0) for times in (1, 3))
    shown = noise.shown(2)
    assert one == pytest.approx(shown)
    assert three == pytest.approx(1 - (1 - shown) ** 3)
    one, two = (divergence([Key(25, 24, times)], noise, (3, 3), math.e) for times in (1, 2))
    assert one == pytest.approx(0.0, abs=1e-9)  # noise of scale 1 hides one count by a factor of e
    assert two > 0.1


def test_independent_laws_multiply():
    coin = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    both = sum(max(a * b - c * d, 0.0) for (a, c), (b, d) in itertools.product(zip(*coin, strict=True), repeat=2))
    assert independent([coin, coin], 1.0) == pytest.approx(both)
    assert independent([coin], 1.0, (1.0, 0.0)) == pytest.approx(1.0)


# ---- bounds from runs ------------------------------------------------------------------------------------------------


def test_all_bounds_of_a_full_audit_together_are_wrong_less_often_than_is_said():
    assert 900 * statistical.FALSE_ALARM < 1e-6


@pytest.mark.parametrize("delta", [0.0, 0.1, 0.3])
def test_what_delta_allows_proves_nothing(delta):
    """log((p - delta)/q) with p from below and q from above, each by itself."""
    first, second, error = (700, 1000), (100, 1000), 1e-4
    p = stats.beta.ppf(error, 700, 301)
    q = stats.beta.isf(error, 101, 900)
    bound = statistical.epsilon_lower_bound(first, second, delta, error)
    assert bound == pytest.approx(math.log((p - delta) / q), rel=1e-9)
    assert bound < math.log((0.7 - delta) / 0.1)


@pytest.mark.parametrize("swapped", [False, True])
def test_runs_are_compared_in_both_directions(swapped):
    """An event that the second of two makes likelier proves as much: here below a cut, and nothing above one."""
    draw = np.random.default_rng(1)
    often, never = (draw.random(4000) < chance for chance in (0.5, 0.0))
    one, two = (often.astype(float), never.astype(float)) if swapped else (-never.astype(float), -often.astype(float))
    pilots, rest = (one[:1000], two[:1000]), (one[1000:], two[1000:])
    (up, down) = (bound for *_, bound in statistical.bounds_both_ways(pilots, rest, 0.0))
    assert max(up, down) > 4.0
    assert min(up, down) < 1.0
    assert (up > down) is swapped


def test_columns_are_weighed_on_runs_of_their_own():
    """Rows of independent noise: whatever weights are chosen, nothing is proved; a shift of one column is found."""
    draw = np.random.default_rng(2)
    same = [draw.normal(size=(3000, 12)) for _ in range(2)]
    assert statistical.measure_outputs(*same, 0.0) < 0.2
    same[0][:, 7] += 3.0
    assert statistical.measure_outputs(*same, 0.0) > 1.0


# ---- pan-private memory ----------------------------------------------------------------------------------------------

COIN = BitCell(Fraction(1, 4), Fraction(3, 4))
ONE = pan.CellsOfElement.of(ElementLaw((COIN,), lambda bits: (float(bits[0]),), (Fraction(2),)))


def seen(cells, *tokens):
    return pan.what_is_seen(cells, tokens)


def test_what_only_one_history_can_show_is_no_loss_that_is_finite():
    certain = pan.CellsOfElement.of(ElementLaw((CounterCell((Fraction(1), Fraction(0))),), lambda x: (0.0,), ()))
    looked = seen(certain, "look"), seen(certain, "x", "look")
    for first, second in (looked, looked[::-1]):
        assert pan.loss_between(first, second, (1.0,)) == math.inf


@pytest.mark.parametrize(
    ("frame", "loss"),
    [(("look",), math.log(3)), (("output",), None), (("look", "output"), None), (("output", "look"), None)],
)
def test_looks_and_outputs_are_seen_together(frame, loss):
    """A look gives log 3; an output of one bit with noise of scale 2 at most 1/2, and together no more than both."""
    found, (first, second) = pan.worst_loss(ONE, [frame], 1)
    assert first != second
    most = {"look": math.log(3), "output": 0.5}
    if loss is not None:
        assert found == pytest.approx(loss)
    assert 0.2 < found <= sum(most[token] for token in frame) + 1e-12
    if len(frame) == 2:
        assert found > math.log(3) + 0.05  # neither is forgotten


def test_an_announced_intrusion_is_a_look_and_more():
    """It shows the cells, and what comes after is drawn through the coins once more."""
    assert seen(ONE, "announce").keys() == seen(ONE, "look").keys()
    alone = pan.worst_loss(ONE, [("announce",)], 1)[0]
    assert alone == pytest.approx(math.log(3))
    both = pan.worst_loss(ONE, [("announce", "look")], 1)[0]
    assert math.log(3) < both <= 2 * math.log(3) + 1e-12
    with pytest.raises(dc.ParameterError, match="token"):
        seen(ONE, "peek")


def test_every_way_to_look_is_among_the_checks_of_an_estimator():
    """One look, one output, both in either order, and an announced intrusion before them, each with its own claim."""
    made = dc.pan.Density(3, budget=dc.Budget(1.0), output_share=0.5)
    audit = core.audit_of(made)
    found = {finding.check: finding for finding in audit.findings("exact", made, FAST)}
    claims = {name: finding.claimed for name, finding in found.items() if finding.quantity.startswith("epsilon")}
    wanted = {"one look": 0.5, "one output": 0.5, "one look and one output": 1.0,
              "an announced intrusion, one look and one output": 1.5}  # fmt: skip
    for name, claim in wanted.items():
        assert claims[name] == pytest.approx(claim, rel=1e-6)
        assert 0.2 * claim < found[name].measured <= found[name].claimed
    assert found["one look and one output"].pairs == 2


@pytest.mark.parametrize("order", [("look", "output"), ("output", "look")])
def test_the_order_of_look_and_output_matters(order):
    """Each order is looked at by itself: an element may come in between."""
    made = dc.pan.CroppedMean(3, 2, budget=dc.Budget(1.0), output_share=0.5, source=seeded_source(1))
    for element in pan.elements_of(made):
        found, histories = pan.worst_loss(element, [order], 2)
        assert 0.5 < found <= 1.0 + 1e-9
        assert all(token in history for history in histories for token in order)
