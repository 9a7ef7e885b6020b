"""Misra-Gries over a stream: everything that is sent, byte for byte and over all levels, for every tiny stream.

Neighbours differ at one step: another item, or nothing. Branches of less than 1e-6 are left out, so losses are lower
bounds that come close to epsilon.
"""

import itertools

import numpy as np
import pytest

import discreet as dc
from discreet.published import MergedMisraGriesStream
from discreet.summaries import MisraGries
from discreet_audit.multiparty import stream_loss
from discreet_audit.papers import CounterStreamAudit, block_message_loss


def test_no_transcript_tells_more_than_epsilon():
    """Two steps of one item or nothing, in three blocks of two levels: every sequence of bytes with its probability."""
    stream = MergedMisraGriesStream("r", dc.Budget(12.0), 1, epoch_steps=1, horizon=3)
    assert stream.levels == 2
    loss, pairs = block_message_loss(stream, 2)
    assert pairs == 4
    # With one item in the universe nothing but "there or not" can differ, which moves a counter by 1 of 2.
    assert 5.9 <= loss <= 6.0 * (1 + 1e-9)


@pytest.mark.parametrize(("size", "steps", "capacity"), [(2, 2, 1), (3, 2, 2), (1, 3, 1)])
def test_no_block_tells_more_than_epsilon(size, steps, capacity):
    stream = MergedMisraGriesStream("r", dc.Budget(9.0), size, epoch_steps=steps, horizon=steps, capacity=capacity)
    loss, _ = block_message_loss(stream, steps)
    assert loss <= 9.0 * (1 + 1e-9)
    assert loss >= (4.4 if size == 1 else 8.9)


@pytest.mark.parametrize(("k", "universe", "steps"), [(1, 3, 3), (2, 4, 4), (3, 4, 4), (4, 4, 4), (3, 5, 3)])
def test_what_one_step_moves_in_a_block(k, universe, steps):
    """All streams of a block, nothing among their items, through the kernel: l1 is at most `sensitivity`, and is it."""
    stream = MergedMisraGriesStream("r", dc.Budget(1.0), universe, epoch_steps=steps, horizon=steps, capacity=k)

    def counters(given):
        sketch = MisraGries(stream.counters(0), seed=5)
        present = [item for item in given if item is not None]
        if present:
            sketch.update(np.array(present, np.uint64))
        raw, dense = sketch.not_private_counts(), np.zeros(universe, np.int64)
        if len(raw):
            dense[np.asarray(raw.items).astype(np.int64)] = raw.counts
        return dense

    values = [None, *range(universe)]
    known = {given: counters(given) for given in itertools.product(values, repeat=steps)}
    replaced = left_out = 0
    for given, found in known.items():
        for at, value in itertools.product(range(steps), values):
            moved = int(np.abs(found - known[(*given[:at], value, *given[at + 1 :])]).sum())
            if value is None or given[at] is None:
                left_out = max(left_out, moved)
            else:
                replaced = max(replaced, moved)
    exact = k >= min(steps, universe)
    assert stream.sensitivity(0) == (2 if exact else k + 1)
    assert replaced == stream.sensitivity(0)
    assert left_out <= (1 if exact else k)


@pytest.mark.parametrize("given", [{"epoch_steps": 2, "horizon": 6, "capacity": 1}, {"epoch_steps": 1, "window": 3}])
def test_all_levels_together_spend_epsilon_and_no_more(given):
    stream = MergedMisraGriesStream("audit", dc.Budget(1.0), 3, **given)
    assert stream_loss(stream)[0] == pytest.approx(1.0)


@pytest.mark.parametrize(("name", "loss"), [
    ("half the noise on cells", 2.0),
    ("noise for exact counters", 1.25),
    ("noise for an item left out", 1.75),
    ("no noise on the other items of the universe", float("inf")),
])  # fmt: skip
def test_what_broken_ones_lose(name, loss):
    """Levels of 1 and 2 counters, that a replacement moves by 2 and 3: (2/2 + 3/2)/2 and (2/1 + 3/2)/2."""
    stream = MergedMisraGriesStream("audit", dc.Budget(1.0), 3, epoch_steps=2, horizon=6, capacity=1)
    (twin,) = (twin for twin in CounterStreamAudit().twins(stream) if twin.name == name)
    assert stream_loss(twin.mechanism)[0] == pytest.approx(loss)
