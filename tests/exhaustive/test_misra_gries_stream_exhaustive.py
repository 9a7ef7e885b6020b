"""Misra-Gries over a stream: everything that is sent, byte for byte and over all levels, for every tiny stream.

Neighbours differ at one step: another item, or nothing. Branches of less than 1e-6 are left out, so losses are lower
bounds that come close to epsilon.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.reference.branches import Silent, sequences_with_one_replaced, worst_ratio

import discreet as dc
from discreet.noise import RandomSource
from discreet.published import MergedMisraGriesStream
from discreet.summaries import MisraGries


def message_loss(stream, steps):
    """Of all that is sent about so many steps, byte for byte."""

    def run(given, source):
        items = [item - 1 if item else None for item in given]  # 0 stands for nothing: neighbours may lack an item
        return stream.party(0, source=source).feed(items)

    return worst_ratio(sequences_with_one_replaced(1 + stream.universe.size, steps), run, like=RandomSource)


def test_no_transcript_tells_more_than_epsilon():
    """Two steps of one item or nothing, in three blocks of two levels: every sequence of bytes with its probability."""
    stream = MergedMisraGriesStream("r", dc.Budget(12.0), 1, epoch_steps=1, horizon=3)
    assert stream.levels == 2
    loss = message_loss(stream, 2)
    # With one item in the universe nothing but "there or not" can differ, which moves a counter by 1 of 2.
    assert 5.9 <= loss <= 6.0 * (1 + 1e-9)


@pytest.mark.parametrize(("size", "steps", "capacity"), [(2, 2, 1), (3, 2, 2), (1, 3, 1)])
def test_no_block_tells_more_than_epsilon(size, steps, capacity):
    stream = MergedMisraGriesStream("r", dc.Budget(9.0), size, epoch_steps=steps, horizon=steps, capacity=capacity)
    loss = message_loss(stream, steps)
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


class Lifted(Silent, RandomSource):
    """Noise that lifts every counter over the cut; of items without one none passes."""

    def __init__(self):
        super().__init__()
        self.trials = []

    def discrete_laplace(self, scale, size=None):
        return self._note("laplace", scale, size, value=math.ceil(40 * scale))

    def discrete_laplace_exceedances(self, trials, scale, minimum, size=None):
        self.trials.append((Fraction(scale), trials))
        return 0


def loss_of_all_levels(stream):
    """Sum of |difference|/scale over the counters of all blocks that end in these steps, for the worst pair."""
    size, worst = stream.universe.size, 0.0

    def sent(given):
        source = Lifted()
        message = stream.party(0, source=source).feed(list(given))
        blocks = {}
        for block, (places, counters) in stream.open(message)[1].blocks.items():
            dense = np.zeros(size, np.int64)
            dense[places] = counters - math.ceil(40 * stream.shape.scale(block))
            blocks[block] = dense
        # Every item of the universe has a noise, its own or one that did not pass.
        noises = sum(each.size for each in source.asked) + sum(trials for _, trials in source.trials)
        return blocks, noises == size * len(blocks)

    values = [None, *range(size)]
    steps = stream.epoch_steps << (stream.levels - 1)
    known = {given: sent(given) for given in itertools.product(values, repeat=steps)}
    if not all(whole for _, whole in known.values()):
        return math.inf
    for given, (first, _) in known.items():
        for at, value in itertools.product(range(steps), values):
            second, _ = known[(*given[:at], value, *given[at + 1 :])]
            moved = sum(np.abs(first[b] - second[b]).sum() / float(stream.shape.scale(b)) for b in first)
            worst = max(worst, float(moved) if first.keys() == second.keys() else math.inf)
    return worst


@pytest.mark.parametrize("given", [{"epoch_steps": 2, "horizon": 6, "capacity": 1}, {"epoch_steps": 1, "window": 3}])
def test_all_levels_together_spend_epsilon_and_no_more(given):
    assert loss_of_all_levels(MergedMisraGriesStream("r", dc.Budget(1.0), 3, **given)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("wrong", "loss"), [(lambda right: right / 2, 2.0), (lambda right: 2, 1.25), (lambda right: right - 1, 1.75)]
)
def test_what_broken_ones_lose(wrong, loss):
    """Levels of 1 and 2 counters, that a replacement moves by 2 and 3: (2/2 + 3/2)/2 and (2/1 + 3/2)/2."""

    class TooQuiet(MergedMisraGriesStream):
        def sensitivity(self, level):
            return wrong(Fraction(super().sensitivity(level)))

    stream = TooQuiet("r", dc.Budget(1.0), 3, epoch_steps=2, horizon=6, capacity=1)
    assert loss_of_all_levels(stream) == pytest.approx(loss)


def test_no_noise_on_the_other_items_of_the_universe_is_noticed():
    class OnlyThere(MergedMisraGriesStream):
        def release(self, kept, block, source):
            source.discrete_laplace_exceedances = lambda trials, *rest, **more: 0
            return super().release(kept, block, source)

    stream = OnlyThere("r", dc.Budget(1.0), 3, epoch_steps=2, horizon=6, capacity=1)
    assert loss_of_all_levels(stream) == math.inf
