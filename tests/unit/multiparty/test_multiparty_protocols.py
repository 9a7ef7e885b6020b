"""One contract for every protocol: what is encoded can be received, estimated, stored; what is wrong is refused."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import _native, published
from discreet.errors import CorruptStateError, DataError, MessageError, ParameterError
from discreet.multiparty import (
    HadamardResponse,
    IndependentSketches,
    LocalHashing,
    LocalSketch,
    Separation,
    protocol_from_dict,
)
from discreet.multiparty._base import _PUBLISHED, Protocol
from discreet.multiparty.local_protocol import LocalProtocol
from discreet.multiparty.wire import Message, read_entries, varint, write_entries
from discreet.noise import seeded_source
from discreet.published import MergedMisraGries, MergedSketch

BUDGET = dc.Budget(2.0)
GOLDEN = Path(__file__).parents[2] / "golden" / "multiparty"
PROTOCOLS = {
    "hadamard": lambda r="r", u=40, b=BUDGET: HadamardResponse(r, b, u),
    "hashing": lambda r="r", u=40, b=BUDGET: LocalHashing(r, b, u),
    "local": lambda r="r", u=40, b=BUDGET: LocalSketch(r, b, u, columns=3),
    "independent": lambda r="r", u=40, b=BUDGET: IndependentSketches(r, b, u, items_per_column=2.0),
    "independent rows": lambda r="r", u=40, b=BUDGET: IndependentSketches(r, b, u, items_per_column=2.0, rows=3),
    "merged": lambda r="r", u=40, b=BUDGET: MergedSketch(r, b, u, columns=16),
    "separation": lambda r="r", u=40, b=BUDGET: Separation(r, b, u, items_per_column=4.0, items_per_entry=3),
    "separation rows": lambda r="r", u=40, b=BUDGET: Separation(r, b, u, items_per_column=4.0, rows=3, threshold=2),
    "misra gries": lambda r="r", u=40, b=BUDGET: MergedMisraGries(r, b, u, capacity=3),
}
every = pytest.mark.parametrize("make", PROTOCOLS.values(), ids=PROTOCOLS)

ITEMS = [3] * 60 + [5] * 30 + list(range(10, 40))


def resealed(message: bytes, **changes: bytes) -> bytes:
    """The message with other bytes at an offset and a right checksum."""
    body = bytearray(message[:-4])
    for at, new in changes.items():
        body[int(at[1:]) : int(at[1:]) + len(new)] = new
    return bytes(body) + zlib.crc32(body).to_bytes(4, "little")


def heard(protocol, parties=6, seed=0):
    """An aggregator that has heard a few parties with 20 of the items each."""
    aggregator = protocol.aggregator(max_reports=None)
    for i in range(parties):
        aggregator.receive(protocol.party(i * 100, source=seeded_source(seed + i)).encode(ITEMS[i * 20 : i * 20 + 20]))
    return aggregator


@every
def test_messages_are_received_counted_and_estimated(make):
    protocol = make()
    aggregator = heard(protocol)
    local = isinstance(protocol, LocalProtocol)
    assert aggregator.parties == (120 if local else 6)
    assert aggregator.total == 120
    assert aggregator.numbers[1] == (100, 20 if local else 1)
    assert aggregator.has(100)
    assert not aggregator.has(99)
    estimates = aggregator.estimate([3, 5, 0])
    assert len(estimates) == 3
    if protocol.unbiased:
        assert (estimates.variances > 0).all()
    lower, upper = estimates.bounds(0.999999)
    assert lower[0] <= 60 <= upper[0]
    assert lower[2] <= 0 <= upper[2]
    assert estimates.guarantee.epsilon == 2.0
    assert estimates.guarantee.seeded
    assert estimates[0].value == estimates.values[0]


@every
def test_estimates_do_not_depend_on_the_order_of_messages_or_questions(make):
    protocol = make()
    messages = [protocol.party(i * 50, source=seeded_source(i)).encode(ITEMS[i * 20 : i * 20 + 20]) for i in range(5)]
    first, second = protocol.aggregator(max_reports=None), protocol.aggregator(max_reports=None)
    assert first.receive_many(messages).accepted == second.receive_many(messages[::-1]).accepted == 5
    assert first.bytes_received == sum(map(len, messages))
    questions = np.arange(40)
    one, two = first.estimate(questions), second.estimate(questions[::-1].copy())
    np.testing.assert_allclose(one.values, two.values[::-1])
    np.testing.assert_allclose(one.variances, two.variances[::-1])
    assert first.estimate([7]).values[0] == one.values[7]


@every
def test_a_state_continues(make):
    protocol = make()
    aggregator = heard(protocol)
    restored = protocol.restore(aggregator.to_bytes())
    assert restored.bytes_received == aggregator.bytes_received
    assert restored.numbers == aggregator.numbers
    assert restored.guarantee == aggregator.guarantee
    np.testing.assert_array_equal(restored.estimate(range(40)).values, aggregator.estimate(range(40)).values)
    with pytest.raises(MessageError, match="already sent a message"):
        restored.receive(protocol.party(100).encode([1]))
    restored.receive(protocol.party(5000).encode([1]))
    with pytest.raises(CorruptStateError):
        protocol.restore(aggregator.to_bytes()[:-1])
    with pytest.raises(CorruptStateError, match="another round"):
        make("other round").restore(aggregator.to_bytes())
    with pytest.raises(CorruptStateError, match="other parameters"):
        make(u=41).restore(protocol.aggregator(max_reports=None).to_bytes())
    assert protocol.restore(protocol.aggregator(max_reports=None).to_bytes()).parties == 0


@every
def test_what_cannot_be_verified_is_refused_and_changes_nothing(make):
    protocol = make()
    aggregator = heard(protocol)
    before = aggregator.to_bytes()
    good = protocol.party(7000, source=seeded_source(9)).encode(ITEMS[:20])
    wrong = {
        "duplicate": protocol.party(100).encode([1]),
        "round": make("r2").party(7001).encode([1]),
        "parameters": make("r", 41).party(7001).encode([1]),
        "checksum": good[:-1] + bytes([good[-1] ^ 1]),
        "format": good[:10],
        "family": resealed(good, _3=b"\x63"),
    }
    for reason, message in wrong.items():
        with pytest.raises(MessageError) as caught:
            aggregator.receive(message)
        assert caught.value.reason == reason
        assert isinstance(caught.value, DataError)
        assert pickle.loads(pickle.dumps(caught.value)).reason == reason
    assert aggregator.to_bytes() == before
    receipt = aggregator.receive_many([*wrong.values(), good, "text"])
    assert receipt.accepted == 1
    assert [r.reason for r in receipt.rejected] == [*wrong, "format"]
    assert aggregator.has(7000)


@every
def test_messages_that_are_cut_or_lengthened_are_refused(make):
    protocol = make()
    good = protocol.party(1, source=seeded_source(1)).encode(ITEMS[:20])
    aggregator = protocol.aggregator(max_reports=None)
    for body in (good[:-5], good[:-4] + b"\0\0", good[:-4] + b"\xff", good[:21]):
        with pytest.raises(MessageError):
            aggregator.receive(body + zlib.crc32(body).to_bytes(4, "little"))
    assert aggregator.parties == aggregator.bytes_received == 0
    assert aggregator.estimate([1, 2]).values.tolist() == [0.0, 0.0]


@every
def test_a_party_speaks_once_and_a_refused_batch_does_not_count(make):
    party = make().party(3)
    with pytest.raises(DataError, match="outside the universe"):
        party.encode([3, 40])
    with pytest.raises(DataError):
        party.encode(["text"])
    with pytest.raises(DataError, match="null"):
        party.encode([1, None])
    party.encode([1, None, 2], nulls="skip")
    with pytest.raises(ParameterError, match="already sent its message"):
        party.encode([1])


@every
def test_parameters_travel_as_json(make):
    protocol = make()
    copy = protocol_from_dict(json.loads(json.dumps(protocol.to_dict())))
    assert copy == protocol
    assert copy.digest == protocol.digest
    assert len({protocol.digest, make(b=dc.Budget(1.0)).digest, make(u=39).digest}) == 3
    assert make("r2").digest == protocol.digest
    assert make("r2").round_digest != protocol.round_digest
    with pytest.raises(ParameterError, match=r"one of .*HadamardResponse.*MergedSketch.*, not 'Nothing'"):
        protocol_from_dict({"protocol": "Nothing"})
    with pytest.raises(ParameterError, match="description"):
        protocol_from_dict({**protocol.to_dict(), "parameters": {"nothing": 1}})


@pytest.mark.parametrize("stored", ["merged-v1", "misra-gries-v1", "misra-gries-stream-v1"])
def test_a_round_of_a_published_protocol_is_read_where_nothing_else_was_imported(stored):
    described = json.loads((GOLDEN / f"{stored}.json").read_text())["round"]
    script = (
        "import json, sys; from discreet.multiparty import protocol_from_dict as read\n"
        "assert not any(name.startswith('discreet.published') for name in sys.modules)\n"
        "print(json.dumps(read(json.load(sys.stdin)).to_dict()))"
    )
    process = [sys.executable, "-c", script]
    run = subprocess.run(process, input=json.dumps(described), capture_output=True, text=True, check=True, timeout=300)
    assert json.loads(run.stdout) == described


def test_every_published_protocol_is_read_by_its_name():
    names = [name for name in published.__all__ if isinstance(getattr(published, name), type)]
    protocols = {name for name in names if issubclass(getattr(published, name), Protocol)}
    assert protocols == set(_PUBLISHED)


@every
def test_parameters_are_checked(make):
    for budget in (dc.Budget(1.0, 1e-9), dc.Budget.zcdp(0.1), 1.0):
        with pytest.raises(ParameterError, match="budget"):
            make(b=budget)
    for universe in (0, range(0), range(0, 9, 2), "words", b"ab", [], [1, "a"], [1, 1], [1.5], 2**63, None):
        with pytest.raises(ParameterError, match="universe"):
            make(u=universe)
    with pytest.raises(ParameterError, match="epsilon is too small"):
        make(b=dc.Budget(1e-20))
    make(b=dc.Budget(1e-6))
    make(b=dc.Budget(1e3)).party(1).encode([1, 2])
    for name in ("", "r\ud800", "r" * 1025):
        with pytest.raises(ParameterError, match="round_id"):
            make(name)
    for number in (-1, 2**63, 1.5, True):
        with pytest.raises(ParameterError, match="number"):
            make().party(number)
    with pytest.raises(ParameterError, match="source"):
        make().party(1, source=np.random.default_rng(1))


@every
@pytest.mark.parametrize(
    ("universe", "items"),
    [
        (["a", "b", "c"], ["a", "c", "a"]),
        ([b"a", b"b"], [b"b"]),
        ([10, 20, -5], pa.array([10, -5], pa.int8())),
        (range(-3, 4), np.array([-3, 3])),
        (["a", "b"], pa.array(["a", "a"]).dictionary_encode()),
        (["a", "b"], pa.chunked_array([["a"], ["b"]])),
    ],
)
def test_kinds_of_items(make, universe, items):
    protocol = make(u=universe)
    aggregator = protocol.aggregator(max_reports=None)
    aggregator.receive(protocol.party(1).encode(items))
    assert len(aggregator.estimate(items)) == len(items)


@pytest.mark.parametrize(
    ("universe", "items"), [("strings", ["x", "yy"]), ("integers", [-1, 2**62]), ("bytes", [b"x"])]
)
def test_unbounded_universes(universe, items):
    for name, make in PROTOCOLS.items():
        if make().needs_bounded:
            with pytest.raises(ParameterError, match="bounded universe"):
                make(u=universe)
            continue
        protocol = make(u=universe)
        aggregator = protocol.aggregator(max_reports=None)
        aggregator.receive(protocol.party(1).encode(items))
        assert len(aggregator.estimate(items)) == len(items), name
    with pytest.raises(DataError):
        PROTOCOLS["hashing"](u="integers").party(1).encode([2**63])


def test_equal_items_have_equal_words_however_they_come():
    strings = PROTOCOLS["hashing"](u="strings").universe
    column = ["", "a", "seven..", "eight...", "a longer text than eight bytes"]
    words = strings.words(column)
    assert len(set(words.tolist())) == 5
    assert (words < 2**61).all()
    for same in (
        pa.array(column),
        pa.array(column).dictionary_encode(),
        np.array(column),
        pa.array(column, pa.large_string()),
    ):
        np.testing.assert_array_equal(strings.words(same), words)


@pytest.mark.parametrize("name", ["local", "independent", "merged", "separation"])
def test_short_messages_cannot_speak_of_many_cells(name):
    """A few bytes that stand for a million zeros: possible in the code, and no noise looks like that."""
    protocol = {
        "local": LocalSketch("r", BUDGET, 40, columns=3),
        "independent": IndependentSketches("r", BUDGET, 40, items_per_column=1.0, max_items=2**20),
        "merged": MergedSketch("r", BUDGET, 40, columns=300_000, max_items=2**20),
        "separation": Separation("r", BUDGET, 40, items_per_column=1.0, max_items=2**20),
    }[name]
    zeros = _native.write_integers(np.zeros(2**20, np.int64))[:2] + bytes(20)
    start = {"local": varint(0), "separation": varint(0) + varint(10**6)}.get(name, b"")
    with pytest.raises(MessageError) as caught:
        protocol.aggregator(max_reports=None).receive(protocol._pack(Message(1, 10**6, start + zeros)))
    assert caught.value.reason == "size"


def test_bundles_say_what_their_messages_say():
    for name in ("hadamard", "hashing", "local"):
        protocol = PROTOCOLS[name]()
        numbers = [5, 6, 7, 900, 2**60, 2**60 + 1]
        messages = [protocol.party(n, source=seeded_source(n % 97)).encode([n % 40]) for n in numbers]
        one, many = protocol.aggregator(max_reports=None), protocol.aggregator(max_reports=None)
        bundle = protocol.bundle([protocol.bundle(messages[3:]), *messages[2::-1]])
        one.receive(bundle)
        assert many.receive_many(messages).accepted == 6
        assert one.numbers == many.numbers == [(5, 3), (900, 1), (2**60, 2)]
        assert len(bundle) < sum(map(len, messages)) / 2
        np.testing.assert_array_equal(one.estimate(range(40)).values, many.estimate(range(40)).values)
        with pytest.raises(MessageError, match="same number"):
            protocol.bundle([bundle, messages[0]])
        with pytest.raises(MessageError, match="another round"):
            PROTOCOLS[name]("r2").bundle(messages)
        with pytest.raises(ParameterError, match="nothing"):
            protocol.bundle([])
        with pytest.raises(ParameterError, match="below 2\\*\\*63"):
            protocol.party(2**63 - 1).encode([1, 2])


def test_more_reports_than_one_message_may_have(monkeypatch):
    """An aggregate of many reports is kept in several messages."""
    monkeypatch.setattr("discreet.multiparty.local_protocol.MAX_CELLS", 30)
    for name in ("hadamard", "hashing", "local"):
        protocol = PROTOCOLS[name]()
        messages = [protocol.party(10 * i, source=seeded_source(i)).encode(range(i, i + 7)) for i in range(6)]
        aggregator = protocol.aggregator(max_reports=None)
        aggregator.receive_many(messages)
        restored = protocol.restore(aggregator.to_bytes())
        assert restored.numbers == aggregator.numbers
        assert restored.parties == 42
        np.testing.assert_array_equal(restored.estimate(range(40)).values, aggregator.estimate(range(40)).values)
        np.testing.assert_array_equal(restored.estimate(range(40)).variances, aggregator.estimate(range(40)).variances)
        with pytest.raises(ParameterError, match="at most"):
            protocol.bundle(messages)
        with pytest.raises(ParameterError, match="reports"):
            protocol.party(1).encode([1] * 31)


def test_misra_gries_has_the_noise_of_every_party_also_for_items_that_were_not_sent():
    protocol = MergedMisraGries("r", BUDGET, 40, capacity=3)
    aggregator = protocol.aggregator(max_reports=None)
    for number in range(3):
        aggregator.receive(protocol.party(number, source=seeded_source(number)).encode([7] * 500 * (number == 0)))
    variances = aggregator.estimate([7, 30, 7]).variances
    assert variances == pytest.approx(np.full(3, 3 * 2 * float(protocol.scale) ** 2))


@pytest.mark.parametrize("size", [1, 2, 9, 2**62 - 1, 2**62])
def test_entries_at_the_ends_of_a_universe(size):
    for places in ([0], [size - 1], sorted({0, size - 1}), sorted({0, size // 2, size - 1})):
        numbers = np.arange(len(places), dtype=np.int64)
        data = write_entries(np.array(places, np.int64), numbers)
        found, same, rest = read_entries(data, size, 9)
        assert (found.tolist(), same.tolist(), rest) == (places, numbers.tolist(), b"")


@pytest.mark.parametrize("gaps", [[2**61] * 2, [2**61] * 4, [-(2**61), 2**61, 0], [2**61 - 1, 2**61, 2**61, 2**61, 5]])
def test_entries_whose_places_wrap_are_refused(gaps):
    parts = [_native.write_integers(np.array(part, np.int64)) for part in (gaps, [0] * len(gaps))]
    data = varint(len(gaps)) + b"".join(varint(len(part)) + part for part in parts)
    with pytest.raises(MessageError, match="outside the universe"):
        read_entries(data, 2**62, 9)
    with pytest.raises(DataError):
        read_entries(data, 100, 9)


@pytest.mark.parametrize("universe", [{"kind": "binary", "items": ["zz"]}, "abc", {"kind": "int64", "items": []}])
def test_a_description_with_a_bad_universe_is_a_parameter_error(universe):
    described = {**IndependentSketches("r", BUDGET, 4).to_dict(), "universe": universe}
    with pytest.raises(ParameterError):
        protocol_from_dict(described)


def test_a_threshold_that_noise_alone_passes_too_often_is_refused():
    with pytest.raises(ParameterError, match="threshold"):
        Separation("r", BUDGET, 2**40, threshold=0)
    Separation("r", BUDGET, 2**40)
    Separation("r", BUDGET, 2**20, threshold=0)
