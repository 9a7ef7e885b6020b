"""Dyadic blocks against brute force."""

from itertools import pairwise

import numpy as np
import pytest

from discreet.multiparty.packets import Block, Spans, block_cover, levels_for


@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 5, 7, 8, 9, 16])
def test_levels_suffice_and_the_top_one_is_needed(epochs):
    levels = levels_for(epochs)
    assert 2 ** (levels - 1) < epochs or levels == 1
    assert 2**levels >= epochs


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_covers(levels):
    for first in range(20):
        for end in range(first, min(first + 2**levels, 40) + 1):
            blocks = list(block_cover(first, end, levels, lambda block: True, range(first, end)))
            assert [e for block in blocks for e in range(block.first, block.end)] == list(range(first, end))
            assert len(blocks) <= 2 * levels
            assert all(block.level < levels for block in blocks)


def test_a_block_that_is_missing_is_replaced_by_its_halves():
    missing = {Block(2, 0), Block(1, 1), Block(0, 3)}
    blocks = list(block_cover(0, 8, 3, lambda block: block not in missing, range(8)))
    assert blocks == [Block(1, 0), Block(0, 2), Block(2, 1)]


@pytest.mark.parametrize("told", [[], [0], [5], [0, 13], [3, 4, 5, 12], [0, 1, 2, 3, 15]])
def test_epochs_that_nobody_told_of_make_no_work(told):
    """The same blocks as from looking everywhere; every packet has the blocks that end with one of its epochs."""
    packets = {Block(level, j) for level in range(4) for j in range(16) if Block(level, j).end - 1 in told}
    found, everywhere = (list(block_cover(0, 16, 4, packets.__contains__, e)) for e in (told, range(16)))
    assert found == everywhere
    asked = []
    far = [0, 2**30]
    known = {Block(0, epoch) for epoch in far}
    assert list(block_cover(0, 2**31, 31, lambda b: asked.append(b) or b in known, far)) == [Block(0, e) for e in far]
    assert len(asked) == 2 * 31


def test_spans():
    spans = Spans()
    spans.add(5, 8)
    spans.add(0, 2)
    spans.add(2, 5)
    spans.add(10, 12)
    assert list(spans) == [(0, 8), (10, 12)]
    assert spans.count(1, 11) == 8
    assert not spans.overlaps(8, 10)
    assert spans.overlaps(7, 9)
    spans.forget(6)
    assert list(spans) == [(6, 8), (10, 12)]


def test_spans_in_any_order_against_sets():
    draw = np.random.default_rng(2)
    for _ in range(200):
        spans, steps = Spans(), set()
        for after, length in draw.integers(0, (30, 5), (12, 2)).tolist():
            told = set(range(after + 1, after + length + 2))
            assert spans.overlaps(after, after + length + 1) == bool(told & steps)
            if not told & steps:
                spans.add(after, after + length + 1)
                steps |= told
            assert [step for start, end in spans for step in range(start + 1, end + 1)] == sorted(steps)
            assert all(one[1] < two[0] for one, two in pairwise(spans))
            assert spans.count(5, 20) == len(steps & set(range(6, 21)))


def test_a_span_is_found_without_looking_at_all_others():
    """Whoever tells about every second step has many spans; a message must not cost the more for it."""

    class Counted(int):
        compared = 0

        def __lt__(self, other):
            Counted.compared += 1
            return int(self) < int(other)

        def __gt__(self, other):
            Counted.compared += 1
            return int(self) > int(other)

    spans = Spans([(Counted(2 * i), Counted(2 * i + 1)) for i in range(2**12)])
    Counted.compared = 0
    assert not spans.overlaps(Counted(2001), Counted(2002))
    spans.add(Counted(2001), Counted(2002))
    assert Counted.compared < 50
    assert len(list(spans)) == 2**12 - 1
