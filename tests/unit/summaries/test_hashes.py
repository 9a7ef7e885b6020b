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


SEEDS = [0x0123456789ABCDEF, 0xA3C59AC35BD1E995, 0, 1, 2**64 - 1, 2**63 + 12345]


def test_exchanged_words_do_not_collide():
    """(a, b) and (b ^ K, a ^ K) had one hash under every seed, K = 17 A ^ B ^ C of the public constants."""
    a_mix, b_mix, c_mix = CONSTANTS
    pairs = [(0x1111111111111111, 0x2222222222222222), (0, 1), (a_mix, b_mix), (5, 2**64 - 1)]
    for n in range(8, 40):
        for factor in (1, n, n + 1):
            constant = (a_mix * factor & (2**64 - 1)) ^ b_mix ^ c_mix
            for front in (b"", b"sixteen bytes on", b"the sixteen bytes in front"[:16]):
                for a, b in pairs:
                    key = front + struct.pack("<QQ", a, b)
                    other = front + struct.pack("<QQ", b ^ constant, a ^ constant)
                    for seed in SEEDS:
                        assert len(set(hashes([key, other], seed))) == (1 if key == other else 2)


def test_the_first_word_does_not_make_up_for_the_length():
    """A length that is only mixed in at the start could be cancelled by the first word of a longer key."""
    a_mix = CONSTANTS[0]
    for short, long in ((8, 16), (9, 16), (4, 8), (0, 1)):
        end = bytes(16)
        keys = []
        for tail in (short, long):
            start = a_mix * (16 + tail + 1) & (2**64 - 1)
            keys.append(struct.pack("<QQ", start ^ 0x55, 0x77) + end[:tail])
        for seed in SEEDS:
            assert len(set(hashes(keys, seed))) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_structured_keys_do_not_collide(seed):
    """Counters, bits, repetitions and zeros of every length: 64 bits of 20,000 keys collide with probability 1e-11."""
    keys = {bytes(n) for n in range(600)} | {b"\x01" * n for n in range(600)}
    keys |= {struct.pack("<QQ", 1 << i, 1 << j) for i in range(64) for j in range(64)}
    keys |= {struct.pack("<QQ", i, j) for i in range(64) for j in range(64)}
    keys |= {struct.pack(">QQ", i, j)[: 9 + i % 8] for i in range(64) for j in range(64)}
    listed = sorted(keys)
    assert len(set(hashes(listed, seed))) == len(listed)
