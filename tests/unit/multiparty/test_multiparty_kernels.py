"""The kernels of the oracles and the codes of messages against plain Python."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import _native
from discreet.errors import DataError, MessageError, ParameterError
from discreet.multiparty.wire import pack_parts, read_varint, unpack_parts, varint

KEY = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
NUMBERS = np.array([0, 1, 2, 7, 2**40, 2**63 - 1], np.uint64)


def philox(number, key=KEY):
    """Four words at a counter; NumPy's generator starts one after the counter it is given."""
    before = (number - 1) % 2**256
    counter = [before >> 64 * i & (2**64 - 1) for i in range(4)]
    return [int(w) for w in np.random.Philox(key=np.array(key, np.uint64), counter=counter).random_raw(4)]


def hashed(number, word):
    a0, a1, b, _ = philox(number)
    return (((a0 + (word >> 32)) * (a1 + (word & 0xFFFFFFFF)) + b) % 2**64) >> 32


def test_rows_of_the_matrix_come_from_philox():
    for number in NUMBERS.tolist():
        ones = np.array([1 << i for i in range(64)], np.uint64)
        bits = _native.hadamard_bits(np.full(64, number, np.uint64), ones, 64, KEY)
        assert sum(int(bit) << i for i, bit in enumerate(bits)) == philox(number)[0]
        short = _native.hadamard_bits(np.full(5, number, np.uint64), ones[:5], 5, KEY)
        assert sum(int(bit) << i for i, bit in enumerate(short)) == philox(number)[0] >> 59


def test_hash_functions_come_from_philox():
    words = np.array([0, 1, 2**32, 2**61 - 1, 12345678901234567, 2**64 - 1], np.uint64)
    for buckets in (2, 4, 5, 1000):
        found = _native.hash_buckets(NUMBERS, words, buckets, KEY).tolist()
        pairs = zip(NUMBERS.tolist(), words.tolist(), strict=True)
        assert found == [hashed(number, word) * buckets >> 32 for number, word in pairs]
    for columns in (1, 3):
        cells = _native.row_cells(NUMBERS, words, columns, KEY).reshape(-1, columns)
        for row, number, word in zip(cells, NUMBERS.tolist(), words.tolist(), strict=True):
            place = hashed(number, word) * 2 * columns >> 32
            expected = [0] * columns
            expected[place // 2] = -1 if place % 2 else 1
            assert row.tolist() == expected


@pytest.mark.parametrize("reports", [1, 1000, 3000])
def test_sums_over_reports(reports):
    generator = np.random.default_rng(reports)
    numbers = generator.permutation(10_000)[:reports].astype(np.uint64)
    items = np.array([0, 1, 5, 31, 31], np.uint64)

    def each(make):
        return [make(np.full(reports, item, np.uint64)) for item in items]

    bits = generator.integers(0, 2, reports).astype(np.uint8)
    agree = each(lambda words: (1 - 2 * (_native.hadamard_bits(numbers, words, 5, KEY) ^ bits).astype(int)).sum())
    assert _native.hadamard_sums(numbers, bits, items, 5, KEY).tolist() == agree
    # The same matrix taken for a part of a larger one is not transformed as a whole.
    many = np.tile(np.arange(32, dtype=np.uint64), 40)
    whole = _native.hadamard_sums(numbers, bits, many, 5, KEY)
    assert whole[:32].tolist() == [
        int(_native.hadamard_sums(numbers, bits, many[i : i + 1], 5, KEY)[0]) for i in range(32)
    ]
    for buckets in (2, 5, 65536):
        values = generator.integers(0, buckets, reports).astype(np.uint32)
        same = each(lambda words, v=values, g=buckets: (_native.hash_buckets(numbers, words, g, KEY) == v).sum())
        assert _native.bucket_counts(numbers, values, items, buckets, KEY).tolist() == same
    for columns in (1, 4, 300):
        cells = generator.integers(-9, 10, reports * columns).astype(np.int32)
        sums = each(lambda words, c=cells, s=columns: (_native.row_cells(numbers, words, s, KEY) * c).sum())
        assert _native.row_sums(numbers, cells, items, columns, KEY).tolist() == sums


def test_kernels_check_what_they_are_given():
    two, three = np.zeros(2, np.uint64), np.zeros(3, np.uint64)
    with pytest.raises(ParameterError):
        _native.hadamard_bits(two, three, 5, KEY)
    with pytest.raises(ParameterError):
        _native.hadamard_sums(two, np.zeros(2, np.uint8), np.array([32], np.uint64), 5, KEY)
    with pytest.raises(ParameterError):
        _native.bucket_counts(two, np.array([4, 0], np.uint32), two, 4, KEY)
    with pytest.raises(ParameterError):
        _native.row_sums(two, np.zeros(3, np.int32), two, 2, KEY)
    for width, depth in ((2, 2), (0, 1), (3, 1)):
        with pytest.raises(ParameterError):
            _native.sketch_estimates(two, np.zeros(4, np.int64), width, depth, 1)


# ---- codes -----------------------------------------------------------------------------------------------------------

small = st.integers(-3, 3)
whole = st.one_of(small, st.just(0), st.integers(-(2**62), 2**62))


@given(st.lists(whole, max_size=60))
@settings(max_examples=300, deadline=None)
def test_integers_come_back(values):
    data = _native.write_integers(np.array(values, np.int64))
    bound = max(map(abs, values), default=0)
    assert _native.read_integers(data, len(values), bound).tolist() == values
    if bound:
        with pytest.raises(DataError, match="outside"):
            _native.read_integers(data, len(values), bound - 1)
    for wrong in (data + b"\0", data[:-1]):
        with pytest.raises(DataError):
            _native.read_integers(wrong, len(values), bound)


@given(st.binary(max_size=40), st.integers(0, 50))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_numbers_or_an_error(data, count):
    try:
        values = _native.read_integers(data, count, 2**62)
    except DataError:
        return
    assert len(values) == count
    assert _native.read_integers(_native.write_integers(values), count, 2**62).tolist() == values.tolist()


def test_noise_takes_few_bits():
    """Discrete Laplace noise of scale 2 has an entropy of 3.4 bits; among many zeros a number costs its place."""
    generator = np.random.default_rng(1)
    noise = np.rint(generator.laplace(0, 2, 10_000)).astype(np.int64)
    assert len(_native.write_integers(noise)) * 8 < 3.7 * len(noise)
    sparse = np.zeros(10_000, np.int64)
    sparse[::100] = 1
    assert len(_native.write_integers(sparse)) < 130
    assert len(_native.write_integers(np.zeros(1, np.int64))) == 1


@given(st.lists(st.integers(0, 4), max_size=40))
def test_packed_values_come_back(values):
    data = _native.pack_values(np.array(values, np.uint32), 3)
    assert len(data) == -(-3 * len(values) // 8)
    assert _native.unpack_values(data, len(values), 3, 5).tolist() == values
    with pytest.raises(DataError):
        _native.unpack_values(data + b"\0", len(values), 3, 5)
    if 4 in values:
        with pytest.raises(DataError, match="outside"):
            _native.unpack_values(data, len(values), 3, 4)


@given(st.integers(0, 2**63 - 1), st.binary(max_size=3))
def test_whole_numbers_come_back(value, after):
    data = varint(value)
    assert read_varint(data + after, 0) == (value, len(data))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x00", b"\xff" * 9 + b"\x01", b"\xff" * 12])
def test_whole_numbers_have_one_form(data):
    with pytest.raises(MessageError):
        read_varint(data, 0)


@given(st.lists(st.binary(max_size=9), max_size=5))
def test_parts_come_back(parts):
    data = pack_parts(parts)
    assert list(unpack_parts(data, 5)) == parts
    for wrong in (data + b"\0", data[:-1]):
        with pytest.raises(MessageError):
            unpack_parts(wrong, 5)
    if parts:
        with pytest.raises(MessageError, match="parts"):
            unpack_parts(data, len(parts) - 1)


def test_bits_after_the_last_number_must_be_zero():
    data = _native.write_integers(np.array([1, 0], np.int64))
    spare = [bytes([*data[:-1], data[-1] | 1 << bit]) for bit in range(8)]
    refused = 0
    for wrong in itertools.filterfalse(data.__eq__, spare):
        try:
            _native.read_integers(wrong, 2, 10)
        except DataError:
            refused += 1
    assert refused >= 1
