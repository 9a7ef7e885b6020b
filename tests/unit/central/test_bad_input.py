"""What the central mechanisms refuse, and that the error says what is allowed."""

import math

import pytest

import discreet as dc
from discreet.central import (
    Merged,
    Offset,
    ReducedMisraGries,
    Stability,
    Summed,
    Universe,
    UserSketch,
)
from discreet.central._base import per_event
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.published import ChanMisraGries, PrivateMisraGries, PrivateSpaceSaving, TextbookMisraGries

GOOD = dc.Budget(1.0, 1e-6)
SKETCHES = [Offset, PrivateMisraGries, TextbookMisraGries, Merged, ReducedMisraGries, ChanMisraGries]


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, True, "1"])
def test_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        dc.Budget(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, 2])
def test_delta(delta):
    with pytest.raises(ParameterError, match="delta"):
        dc.Budget(1.0, delta)


@pytest.mark.parametrize("kind", SKETCHES)
@pytest.mark.parametrize("budget", [dc.Budget(1.0), dc.Budget.zcdp(0.1)])
def test_a_threshold_needs_a_delta(kind, budget):
    with pytest.raises(ParameterError, match="delta"):
        kind(budget, 8)


@pytest.mark.parametrize("budget", [dc.Budget(1.0), dc.Budget.zcdp(0.1)])
def test_a_threshold_needs_a_delta_elsewhere_too(budget):
    for make in (
        lambda: Stability(budget),
        lambda: UserSketch(budget, 8, dc.User(2)),
        lambda: PrivateSpaceSaving(budget, 8, stream_length=100),
        lambda: Summed(budget, 8, sketches=2),
    ):
        with pytest.raises(ParameterError, match="delta"):
            make()


@pytest.mark.parametrize("kind", SKETCHES)
@pytest.mark.parametrize("capacity", [0, -1, 2.5, True, None, "8"])
def test_capacity(kind, capacity):
    with pytest.raises(ParameterError, match="capacity"):
        kind(GOOD, capacity)


@pytest.mark.parametrize("kind", SKETCHES)
@pytest.mark.parametrize("unit", [dc.Element(), dc.Replace()])
def test_units_without_a_proof(kind, unit):
    with pytest.raises(ParameterError, match="Event"):
        kind(GOOD, 8, unit)


def test_a_user_sketch_needs_a_user_unit():
    with pytest.raises(ParameterError, match="User"):
        UserSketch(GOOD, 8, dc.Event())
    sketch = dc.UserMisraGries(8, 2)
    with pytest.raises(IncompatibleSummaryError, match=r"allows 3 items.*allows 2"):
        UserSketch(GOOD, 8, dc.User(3))(sketch)
    for kind in SKETCHES:
        with pytest.raises(IncompatibleSummaryError, match="MisraGries, not UserMisraGries"):
            kind(GOOD, 8)(sketch)


@pytest.mark.parametrize("length", [-1, 1.5, "many", True])
def test_stream_length(length):
    for kind in (PrivateMisraGries, Merged, ReducedMisraGries):
        with pytest.raises(ParameterError, match="stream_length"):
            kind(GOOD, 8, stream_length=length)
    with pytest.raises(ParameterError, match="stream_length"):
        PrivateSpaceSaving(GOOD, 8, stream_length=length)


def test_a_stream_longer_than_its_public_length_is_refused():
    """The cut is for that length: a longer stream would pass it more easily."""
    sketch = dc.SpaceSaving(8)
    sketch.update(["a"] * 101)
    with pytest.raises(IncompatibleSummaryError, match="longer than stream_length"):
        PrivateSpaceSaving(GOOD, 8, stream_length=100)(sketch)


def test_space_saving_says_where_its_length_comes_from():
    with pytest.raises(TypeError, match="stream_length"):
        PrivateSpaceSaving(GOOD, 8)
    with pytest.raises(ParameterError, match="or 'noisy'"):
        PrivateSpaceSaving(GOOD, 8, stream_length=None)
    with pytest.raises(ParameterError, match="a public number"):
        PrivateSpaceSaving(GOOD, 8, stream_length="public")
    with pytest.raises(ParameterError, match="length_share"):
        PrivateSpaceSaving(GOOD, 8, stream_length="noisy", length_share=1.0)
    with pytest.raises(ParameterError, match="public length"):
        PrivateSpaceSaving(GOOD, 8, stream_length="noisy", calibration="paper")
    sketch = dc.SpaceSaving(8)
    sketch.update(["a"] * 11)
    with pytest.raises(IncompatibleSummaryError, match="longer") as refused:
        PrivateSpaceSaving(GOOD, 8, stream_length=10)(sketch)
    assert "11" not in str(refused.value)


def test_calibrations_and_noises_by_name():
    for kind in (PrivateMisraGries, TextbookMisraGries):
        with pytest.raises(ParameterError, match="calibration"):
            kind(GOOD, 8, calibration="best")
    with pytest.raises(ParameterError, match="noise"):
        Stability(GOOD, noise="uniform")
    with pytest.raises(ParameterError, match="distinct"):
        Stability(GOOD, unit=dc.User(2), noise="gaussian")


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 10.0, 50.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01, 0.3, 0.9])
def test_the_printed_thresholds_are_enough_for_integer_noise(epsilon, delta):
    """They are refused where they are not; here they never are."""
    budget = dc.Budget(epsilon, delta)
    for calibration in ("paper", "paper-geometric"):
        for unit in (dc.Event(), dc.User(5)):
            printed = PrivateMisraGries(budget, 8, unit, calibration)
            assert printed.threshold >= PrivateMisraGries(budget, 8, unit).threshold


@pytest.mark.parametrize(
    "module", ["private_misra_gries.pmg_paper_threshold", "textbook_misra_gries.textbook_paper_threshold"]
)
def test_a_printed_threshold_that_is_too_small_is_refused(module, monkeypatch):
    monkeypatch.setattr(f"discreet.published.{module}", lambda *parameters: 2)
    kind = PrivateMisraGries if "pmg" in module else TextbookMisraGries
    with pytest.raises(ParameterError, match="too small"):
        kind(GOOD, 8, calibration="paper")


def test_universes():
    pure = dc.Budget(1.0)
    for universe in (range(0), range(0, 10, 2), range(2**65), [], ["a", "a"], ["a", 1], [None], [1.5], "abc", 7):
        with pytest.raises(ParameterError, match="universe"):
            ReducedMisraGries(pure, 8, universe=universe)
    with pytest.raises(ParameterError, match="no delta"):
        ReducedMisraGries(GOOD, 8, universe=range(10))
    with pytest.raises(ParameterError, match="spurious"):
        ReducedMisraGries(pure, 8, universe=range(10), spurious=0.0)
    sketch = dc.MisraGries(8)
    sketch.update(["a"])
    # Items of another kind are outside the universe, and one more row that is inside decides nothing else.
    assert ReducedMisraGries(dc.Budget(50.0), 8, universe=range(10))(sketch).items == []
    sketch.update([7] * 40)
    assert ReducedMisraGries(dc.Budget(50.0), 8, universe=range(10))(sketch).items == [7]
    assert repr(Universe(["secret"])) == "Universe(1 items)"
    assert Universe(range(2**63, 2**64)).size == 2**63


def test_sums():
    sketches = [dc.MisraGries(8), dc.MisraGries(8)]
    mechanism = Summed(GOOD, 8, sketches=2)
    with pytest.raises(ParameterError, match="2 sketches, but got 1"):
        mechanism(sketches[:1])
    with pytest.raises(IncompatibleSummaryError, match="list of MisraGries"):
        mechanism(sketches[0])


def test_sums_of_several_kinds():
    """What one sketch has seen does not decide whether there is a release."""
    sketches = [dc.MisraGries(8), dc.MisraGries(8)]
    sketches[0].update(["a"] * 900 + [b"a"] * 800)
    sketches[1].update([1] * 700 + ["a"] * 100)
    assert set(Summed(GOOD, 8, sketches=2)(sketches).items) == {"a", b"a", 1}


def test_group_privacy_rounds_down():
    assert per_event(1.0, 1e-6, 1) == (1.0, 1e-6)
    epsilon, delta = per_event(1.0, 1e-6, 4)
    assert 4 * epsilon <= 1.0
    assert sum(math.exp(i * epsilon) for i in range(4)) * delta <= 1e-6
    assert delta > 0.999 * 1e-6 / sum(math.exp(i / 4) for i in range(4))
    with pytest.raises(ParameterError, match="too small"):
        per_event(700.0, 1e-300, 3)


@pytest.mark.parametrize("calibration", ["exact", "paper"])
def test_the_cut_does_not_follow_what_was_counted(calibration):
    """Two streams of 19 ticks, one of which has a blank in place of an event."""
    mechanism = PrivateSpaceSaving(dc.Budget(1.0, 1e-3), 2, stream_length=19, calibration=calibration)
    cuts = set()
    for ticks in (["a"] * 18 + ["b"], ["a"] * 18 + [None]):
        sketch = dc.SpaceSaving(2)
        sketch.update(ticks, nulls="skip")
        cuts.add(mechanism(sketch).threshold)
    assert len(cuts) == 1
