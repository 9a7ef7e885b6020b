"""Universes and their decompositions, against brute force on small ones."""

import itertools

import numpy as np
import pytest

from discreet.errors import DataError, ParameterError
from discreet.multiparty.levels import Levels, Strings, levels_of, ordered_universe


def all_strings(alphabet, length):
    return ["".join(s) for n in range(length + 1) for s in itertools.product(alphabet, repeat=n)]


@pytest.mark.parametrize(("alphabet", "length"), [("a", 1), ("ab", 3), ("zyx", 2), ("aé√", 3)])
def test_strings_are_numbered_in_the_order_of_the_alphabet(alphabet, length):
    universe = Strings(alphabet, length)
    texts = sorted(all_strings(alphabet, length), key=lambda s: [alphabet.index(c) for c in s])
    indices = universe.words(texts)
    assert indices.tolist() == sorted(indices.tolist())
    assert universe.items(indices) == texts
    assert indices.max() < universe.size
    assert universe.words(np.array(texts)).tolist() == indices.tolist()


@pytest.mark.parametrize("bad", ["abcd", "q", "a\0", "\0a", "a\0b", "abbb\0"])
def test_strings_outside_the_universe_are_refused_and_not_quoted(bad):
    with pytest.raises(DataError) as caught:
        Strings("ab", 3).words(["a", bad])
    assert bad not in str(caught.value)


@pytest.mark.parametrize("bad", [[7], [None], [b"a"], "ab", None, np.array([1, 2]), np.array([["a"]])])
def test_only_columns_of_strings(bad):
    with pytest.raises(DataError):
        Strings("ab", 3).words(bad)


def test_no_strings():
    assert Strings("ab", 3).words([]).tolist() == []


@pytest.mark.parametrize("step", [1, 2, 3])
def test_prefixes_that_stand_for_strings(step):
    universe = Strings("ab", 3)
    levels = universe.levels(step)
    indices = universe.words(all_strings("ab", 3))
    for level in range(len(levels)):
        nodes = np.arange(levels.count(level))
        width = levels.widths[level]
        assert nodes[universe.occupied(nodes, width)].tolist() == sorted(set(levels.nodes(indices, level).tolist()))


@pytest.mark.parametrize(("size", "branching"), [(1, 2), (2, 2), (10, 2), (16, 4), (17, 4), (30, 3), (5, 16)])
def test_every_range_is_covered_once(size, branching):
    levels = levels_of(ordered_universe(size), branching)
    assert levels.widths[-1] == 1
    for low in range(size + 1):
        for high in range(low, size + 1):
            cover = levels.cover(low, high)
            covered = [
                x
                for nodes, width in zip(cover, levels.widths, strict=True)
                for node in nodes
                for x in range(node * width, (node + 1) * width)
                if x < size
            ]
            assert sorted(covered) == list(range(low, high))
            for level, nodes in enumerate(cover):
                assert len(nodes) <= (2 * (branching - 1) if level else branching)
                assert (nodes < levels.count(level)).all()


def test_children():
    levels = Levels(10, (4, 1))
    assert levels.children(np.zeros(0, np.int64), 0).tolist() == [0, 1, 2]
    assert levels.children(np.array([0, 2]), 1).tolist() == [0, 1, 2, 3, 8, 9]


@pytest.mark.parametrize("given", [0, -1, True, 2**62 + 1, range(0, 10, 2), range(0), "integers", None, {"kind": "x"}])
def test_what_is_not_a_universe(given):
    with pytest.raises(ParameterError):
        ordered_universe(given)


@pytest.mark.parametrize("make", [lambda: Strings("aa", 2), lambda: Strings("", 2), lambda: Strings("ab\0", 2),
                                  lambda: Strings("ab", 0), lambda: Strings("ab", 40)])  # fmt: skip
def test_bad_parameters(make):
    with pytest.raises(ParameterError):
        make()


@pytest.mark.parametrize("universe", [10, range(-3, 13), ["low", "middle", "high"], Strings("abc", 4)])
def test_descriptions(universe):
    made = ordered_universe(universe)
    assert ordered_universe(made.to_dict()) == made
    assert ordered_universe(made) is made


def test_nulls():
    assert Strings("ab", 2).words(["a", None, "b"], nulls="skip").tolist() == [3, 6]
    with pytest.raises(DataError):
        Strings("ab", 2).words(["a", None, "b"])


def test_columns_of_strings():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    for column in (
        pa.array(["a", "b"]),
        pa.chunked_array([["a"], ["b"]]),
        pd.Series(["a", "b"]),
        pl.Series(["a", "b"]),
    ):
        assert Strings("ab", 2).words(column).tolist() == [3, 6]
