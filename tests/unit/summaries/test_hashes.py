"""Keys cannot be made to collide by someone who does not know the seed."""

from __future__ import annotations

import struct

import pytest
from tests.reference.hash_order import hashes

CONSTANTS = [0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7]  # the public ones of hash.hpp


@pytest.mark.parametrize("constant", [0, *CONSTANTS])
@pytest.mark.parametrize("seed", [0x0123456789ABCDEF, 0xA3C59AC35BD1E995])
def test_a_public_constant_does_not_cancel_what_comes_before(constant, seed):
    """A word that makes a factor of the hash zero would hide the rest of the key: equal hashes under every seed.

    The seeds look like drawn ones. A few seeds are weak for such keys (those next to 0 modulo 2**64); drawing one of
    them is as unlikely as guessing a seed, and with a known seed collisions can be made anyway.
    """
    word = struct.pack("<Q", constant)
    for layout in ("{0}{1}{2}", "{1}{0}{2}", "{0}{1}", "{1}{0}"):
        names = {"{0}": lambda i: struct.pack("<Q", i), "{1}": lambda i: word, "{2}": lambda i: b"the same end"}
        parts = [layout[at : at + 3] for at in range(0, len(layout), 3)]
        keys = [b"".join(names[part](i) for part in parts) for i in range(500)]
        assert len(set(hashes(keys, seed))) == len(keys)


def test_seeds_change_the_order():
    keys = [b"k%d" % i for i in range(50)]
    orders = {tuple(sorted(keys, key=dict(zip(keys, hashes(keys, seed), strict=True)).get)) for seed in range(20)}
    assert len(orders) == 20
