"""The audit of hierarchies and streams: exact losses of whole transcripts, and twins that lose what they should."""

import pytest

import discreet as dc
from discreet.multiparty import GridHierarchy, HierarchicalStream, Hierarchy, Stream
from discreet.multiparty.party_seam import LevelProtocol
from discreet_audit.core import QUICK, audit_of
from discreet_audit.multiparty import HierarchyAudit, StreamAudit


def exact(protocol):
    audit = HierarchyAudit() if isinstance(protocol, LevelProtocol) else StreamAudit()
    (finding,) = (found for found in audit.exact(protocol, QUICK) if found.quantity == "epsilon")
    return finding


@pytest.mark.parametrize("protocol", [
    Hierarchy("r", dc.Budget(1.0), 4, branching=2, options={"items_per_column": 0.25, "max_items": 100}),
    Hierarchy("r", dc.Budget(0.3), 9, "HadamardResponse", 3),
    GridHierarchy("r", dc.Budget(1.0), (4, 3), branching=2, options={"items_per_column": 0.25, "max_items": 100}),
    GridHierarchy("r", dc.Budget(0.3), (4, 3), "HadamardResponse", 2),
    Stream("r", dc.Budget(1.0), 3, epoch_steps=1, window=2, columns=8),
    Stream("a", dc.Budget(1.0), 50, epoch_steps=2, horizon=7, columns=8),
    Stream("r", dc.Budget(2.0), 50, epoch_steps=30, window=240, columns=8, rows=3, sample_share=0.2),
    Stream("r", dc.Budget(1.0), 5, epoch_steps=2, columns=8, sample_share=0),
    HierarchicalStream("audit", dc.Budget(1.0), 9, epoch_steps=2, horizon=9, columns=8, branching=3),
])  # fmt: skip
def test_the_whole_budget_is_spent_and_no_more(protocol):
    finding = exact(protocol)
    assert finding.passed
    assert finding.measured == pytest.approx(protocol.epsilon)


def twins(protocol):
    return {twin.name: twin for twin in audit_of(protocol).twins(protocol)}


@pytest.mark.parametrize(("name", "loss"), [
    ("budget not split over the levels", 0.5 + 3),
    ("samples not counted", 1.5),
    ("half the noise on cells", 0.5 + 2 * 0.5),
    ("log2 m levels, as printed", 0.5 + 0.5 * 3 / 2.321928094887362),
    ("items sampled, not steps", float("inf")),
])  # fmt: skip
def test_what_broken_streams_lose(name, loss):
    """Epochs of two steps, m = 5 of them: three levels, where the paper divides by log2 5 = 2.32."""
    stream = Stream("r", dc.Budget(1.0), 5, epoch_steps=2, horizon=9, columns=8)
    finding = exact(twins(stream)[name].mechanism)
    assert not finding.passed
    assert finding.measured == pytest.approx(loss)


@pytest.mark.parametrize(("name", "loss"), [
    ("budget not split over the intervals", 0.5 + 2 * 0.5),
    ("budget not split over the levels", 0.5 + 2 * 3),
    ("half the noise on cells", 0.5 + 2 * 0.5),
])  # fmt: skip
def test_what_broken_streams_with_levels_lose(name, loss):
    """Three levels of time and two of intervals."""
    stream = HierarchicalStream("audit", dc.Budget(1.0), 9, epoch_steps=2, horizon=9, columns=8, branching=3)
    finding = exact(twins(stream)[name].mechanism)
    assert not finding.passed
    assert finding.measured == pytest.approx(loss)


def test_a_phase_of_two_levels_needs_twice_the_noise():
    stream = Stream("r", dc.Budget(1.0), 5, epoch_steps=2, columns=8, sample_share=0)
    finding = exact(twins(stream)["the noise of the first phase in all of them"].mechanism)
    assert not finding.passed
    assert finding.measured == pytest.approx(2.0)


@pytest.mark.parametrize(("protocol", "name", "loss"), [
    ("IndependentSketches", "budget not split over the levels", 3.0),
    ("IndependentSketches", "one level not counted", 1.5),
    ("HadamardResponse", "a report to every level", 3.0),
    ("HadamardResponse", "a response for twice epsilon", 2.0),
])  # fmt: skip
def test_what_broken_hierarchies_lose(protocol, name, loss):
    options = {"items_per_column": 0.1, "max_items": 100} if protocol == "IndependentSketches" else {}
    hierarchy = Hierarchy("r", dc.Budget(1.0), 27, protocol, 3, options)
    finding = exact(twins(hierarchy)[name].mechanism)
    assert not finding.passed
    assert finding.measured == pytest.approx(loss)


@pytest.mark.parametrize(("protocol", "name", "loss"), [
    ("IndependentSketches", "budget not split over the levels", 4.0),
    ("IndependentSketches", "one level not counted", 4 / 3),
    ("IndependentSketches", "noise for twice epsilon", 2.0),
    ("HadamardResponse", "a response for twice epsilon", 2.0),
])  # fmt: skip
def test_what_broken_grids_lose(protocol, name, loss):
    """Two levels in each of two dimensions are four, and a budget split over two of them would not do."""
    options = {"items_per_column": 0.1, "max_items": 100} if protocol == "IndependentSketches" else {}
    grid = GridHierarchy("r", dc.Budget(1.0), (4, 4), protocol, 2, options)
    finding = exact(twins(grid)[name].mechanism)
    assert not finding.passed
    assert finding.measured == pytest.approx(loss)


def test_a_restart_from_an_old_state_sends_a_block_twice():
    stream = Stream("r", dc.Budget(1.0), 5, epoch_steps=2, horizon=9)
    twin = twins(stream)["a restart from a state older than the last message"]
    copies = [next(iter(StreamAudit().exact(made, QUICK))).measured for made in (stream, twin.mechanism)]
    assert copies == [1, 2]


def test_streams_that_are_too_long_to_run():
    with pytest.raises(dc.ParameterError):
        exact(Stream("r", dc.Budget(1.0), 5, epoch_steps=1000, window=10**7))
