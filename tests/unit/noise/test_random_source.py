"""Random sources: what they refuse, that seeds repeat, and that neither forks nor threads share randomness."""

import contextlib
import ctypes
import math
import os
import platform
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest

from discreet import _native
from discreet.errors import ParameterError
from discreet.noise import seeded_source, system_source
from discreet.noise.source import exact

pytestmark = pytest.mark.system_noise

FORK_WARNING = "ignore:This process:DeprecationWarning"  # fork in a process with threads is what is tested


def test_equal_seeds_give_equal_draws_and_others_do_not():
    assert seeded_source(7).bytes(4096) == seeded_source(7).bytes(4096)
    assert seeded_source(7).bytes(64) != seeded_source(8).bytes(64)
    assert seeded_source(7).seeded
    assert not system_source().seeded


def test_seeded_draws_are_the_same_on_every_machine():
    source = seeded_source(2024)
    assert source.discrete_laplace(2.5, 8).tolist() == [2, -4, -1, 1, 0, 0, 7, -2]
    assert source.discrete_gaussian(3, 8).tolist() == [1, 2, 2, 3, -5, 3, 0, -1]
    assert source.discrete_gaussian(1e6, 4).tolist() == [441120, 1155436, 2038746, 333869]
    assert source.uniform_integers(1000, 6).tolist() == [103, 468, 644, 681, 964, 2]


def test_one_draw_is_an_int_and_many_are_an_array():
    source = seeded_source(1)
    assert type(source.discrete_laplace(1)) is int
    values = source.discrete_laplace(1, 3)
    assert values.dtype == np.int64
    assert values.shape == (3,)
    assert source.discrete_gaussian(1, 0).shape == (0,)


def test_draws_one_by_one_are_the_draws_of_a_vector():
    for law, scale in [("discrete_laplace", 2), ("discrete_laplace", 300), ("discrete_gaussian", 100)]:
        one, many = seeded_source(3), seeded_source(3)
        assert [getattr(one, law)(scale) for _ in range(50)] == getattr(many, law)(scale, 50).tolist()


def test_a_float_is_the_rational_it_is():
    for scale in (0.1, 1 / 3, np.float32(0.1), np.float64(7.7), np.int64(3)):
        exact = Fraction(float(scale))
        draws = seeded_source(4).discrete_laplace(scale, 100)
        assert draws.tolist() == seeded_source(4).discrete_laplace(exact, 100).tolist()


def test_a_float_wider_than_64_bits_is_refused_not_rounded():
    wide = np.longdouble(1) + np.finfo(np.longdouble).eps
    if wide == float(wide):
        pytest.skip("no wider float on this platform")
    with pytest.raises(ParameterError, match="Fraction"):
        seeded_source(1).discrete_laplace(wide)


@pytest.mark.parametrize("bad", [0, -1, 0.0, -2.5, math.nan, math.inf, -math.inf, 2.0**50 * 1.01, "1", None, True, 1j])
@pytest.mark.parametrize("law", ["geometric", "discrete_laplace", "discrete_gaussian"])
def test_a_scale_outside_its_range_is_refused(law, bad):
    with pytest.raises(ParameterError, match=r"scale|sigma"):
        getattr(seeded_source(1), law)(bad)


def test_a_scale_with_too_many_digits_is_refused_not_rounded():
    with pytest.raises(ParameterError, match="bits"):
        seeded_source(1).discrete_laplace(1 + Fraction(1, 2**9000))
    for bits, refused in ((8192, False), (8193, True)):
        scale = 1 + Fraction(1, 2 ** (bits - 1))
        assert max(scale.numerator.bit_length(), scale.denominator.bit_length()) == bits
        with pytest.raises(ParameterError, match="8192 bits") if refused else contextlib.nullcontext():
            exact("scale", scale)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("uniform_integers", (0,)),
        ("uniform_integers", (2**63 + 1,)),
        ("uniform_integers", (1.5,)),
        ("uniform_integers", (10, -1)),
        ("uniform_integers", (10, True)),
        ("bernoulli", (1.5,)),
        ("bernoulli", (-0.1,)),
        ("bernoulli", (math.nan,)),
        ("binomial", (-1, 0.5)),
        ("binomial", (2**64 + 1, 0.5)),
        ("binomial", (2**62, 0.5)),
        ("binomial", (2**63, 1)),
        ("binomial", (10, None)),
        ("binomial", (10, 1.5)),
        ("exponential_mechanism", ([1.5], 1)),
        ("exponential_mechanism", ([[1]], 1)),
        ("exponential_mechanism", ([1, 2], 0)),
        ("exponential_mechanism", ([1, 2], math.inf)),
        ("exponential_mechanism", ([1, 2], 1, 0)),
        ("exponential_mechanism", ([1, 2], 1, 1, 3)),
        ("exponential_mechanism", (np.array([2**63], np.uint64), 1)),
        ("discrete_gaussian_at_least", (0, 1)),
        ("discrete_gaussian_at_least", (1, 2**62 + 1)),
        ("discrete_gaussian_exceedances", (-1, 1, 1)),
        ("discrete_gaussian_exceedances", (5, 2**51, 1)),
        ("discrete_gaussian_exceedances", (2**63, 1, -40)),
        ("discrete_laplace_exceedances", (2**63, 1, -60)),
        ("bytes", (-1,)),
        ("sample_without_replacement", (3, 4)),
        ("permutation", (-1,)),
    ],
)
def test_other_parameters_outside_their_range_are_refused(call, arguments):
    with pytest.raises(ParameterError):
        getattr(seeded_source(1), call)(*arguments)


def test_selection_of_extreme_scores():
    source = seeded_source(6)
    extremes = [-(2**63), 2**63 - 1, 0]
    assert source.exponential_mechanism(extremes, 1e300, k=3).tolist() == [1, 2, 0]
    assert sorted(source.exponential_mechanism(extremes, 1e-300, k=3).tolist()) == [0, 1, 2]
    assert source.exponential_mechanism(np.array([], np.int64), 1, k=0).tolist() == []
    distinct = np.arange(100_000) * 10**13  # each outweighs all below it
    assert source.exponential_mechanism(distinct, 1, k=50).tolist() == list(range(99_999, 99_949, -1))


def test_samples_of_a_huge_population_differ():
    sample = seeded_source(8).sample_without_replacement(2**63, 10_000)
    assert len(set(sample.tolist())) == 10_000
    assert sample.min() >= 0
    assert sorted(seeded_source(8).sample_without_replacement(500, 500).tolist()) == list(range(500))


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, None, True])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(ParameterError, match="seed"):
        seeded_source(seed)


def _bytes_of_a_forked_child(source):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, source.bytes(32))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        received = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return received


@pytest.mark.filterwarnings(FORK_WARNING)
def test_a_forked_child_does_not_repeat_its_parent():
    """Equal by chance with probability 2^-256. The seeded source shows that the test would see a shared buffer."""
    source = system_source()
    source.bytes(8)  # the buffer now holds words that parent and child would share
    assert len(child := _bytes_of_a_forked_child(source)) == 32
    assert child != source.bytes(32)
    repeating = seeded_source(1)
    assert _bytes_of_a_forked_child(repeating) == repeating.bytes(32)


@pytest.mark.filterwarnings(FORK_WARNING)
def test_fork_while_another_thread_draws_does_not_lock_the_child():
    source = system_source()
    stop = threading.Event()

    def draw():
        while not stop.is_set():
            source.discrete_laplace(1, 100_000)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for _ in range(20):
            assert len(_bytes_of_a_forked_child(source)) == 32
    finally:
        stop.set()
        thread.join()


RAW_FORK = """
import ctypes, os, platform, sys
import discreet as dc
from discreet.noise import seeded_source, system_source

sketch = dc.MisraGries(16)
sketch.update([1] * 100 + [2] * 50)

def releases(source):
    return [(drawn.offset, drawn.counts.tolist())
            for drawn in (dc.central.Offset(dc.Budget(0.01, 1e-6), 16)(sketch, source) for _ in range(20))]

def of_parent_and_child(source):
    releases(source)
    reading, writing = os.pipe()
    number = {"x86_64": 56, "aarch64": 220}[platform.machine()]  # clone(2): no fork handler runs
    child = ctypes.PyDLL(None).syscall(number, 17, 0, 0, 0, 0)
    if child == 0:
        os.write(writing, repr(releases(source)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        received = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return received, repr(releases(source))

child, parent = of_parent_and_child(system_source())
assert len(child) > 100 and child != parent, "the copy of the process repeats the releases"
child, parent = of_parent_and_child(seeded_source(1))
assert child == parent, "a seeded source would show a shared buffer"
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "aarch64"), reason="needs clone(2)"
)
def test_a_copied_process_that_no_handler_hears_of_does_not_repeat_releases():
    """Words read ahead would be in both copies. Equal by chance with probability below 2^-100."""
    done = subprocess.run([sys.executable, "-c", RAW_FORK], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def _memory_of(native):
    return ctypes.string_at(id(native), type(native).__basicsize__)


def test_words_that_were_used_or_read_ahead_are_wiped():
    """The buffer lies inside the object. Of a replaying source, which keeps what follows, a used word is gone; of the
    system's nothing is left after a draw."""
    words = [0x1122334455667700 + i for i in range(20)]
    replaying = _native.RandomSource(words)
    drawn = replaying.bytes(16)
    memory = _memory_of(replaying)
    assert drawn == b"".join(word.to_bytes(8, "little") for word in words[:2])
    assert [word.to_bytes(8, "little") in memory for word in words] == [False] * 2 + [True] * 18
    system = _native.RandomSource()
    fresh = sum(byte != 0 for byte in _memory_of(system))
    assert any(system.bytes(4000))
    system.uniform_integers(2**60 + 1, 3)
    # 4 KiB of buffer; what differs beside it are a few counters and pointers.
    assert abs(sum(byte != 0 for byte in _memory_of(system)) - fresh) < 16


def test_threads_never_receive_the_same_words():
    """Words are handed out once: equal by chance with probability below 2^-90 for the system's source."""
    source = system_source()
    chunks = []

    def draw():
        for _ in range(50):
            chunks.append(source.bytes(800))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    data = b"".join(chunks)
    words = [data[i : i + 16] for i in range(0, len(data), 16)]
    assert len(set(words)) == len(words) == 4 * 50 * 50


def test_threads_share_one_seeded_stream_without_loss():
    """Whatever the interleaving, the words of all threads together are the first words of the stream."""
    source, chunks = seeded_source(5), []
    threads = [threading.Thread(target=lambda: chunks.extend(source.bytes(8) for _ in range(1000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = seeded_source(5).bytes(8 * 4000)
    assert sorted(chunks) == sorted(expected[i : i + 8] for i in range(0, len(expected), 8))


def test_repr_says_what_it_is():
    assert "tests and audits only" in repr(seeded_source(1))
    assert "system" in repr(system_source())


@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory are those of Linux")
def test_more_draws_than_memory_are_refused_without_a_word():
    program = """
import resource
from discreet.noise import seeded_source

resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
source = seeded_source(1)
for _ in range(10):
    views = [memoryview(bytearray(8)) for _ in range(100)]  # whose memory is used again
    del views
    try:
        source.discrete_laplace(1, 2**32)
    except MemoryError:
        continue
    raise SystemExit("so much memory is not there")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_binomial_in_parts_has_all_of_its_trials(monkeypatch):
    """The parts are drawn as if every trial succeeded: together they must be all trials, the remainder too."""

    class Everything:
        def __init__(self, trials, chance, mean):
            self.trials, self.native = trials, self

        def draw(self, source, size):
            return np.full(size, self.trials, np.int64), []

    monkeypatch.setattr("discreet.noise.laws.binomial_law", Everything)
    for trials in (1, 511, 4096, 10_001, 1_000_003):
        drawn = seeded_source(1).binomial(trials, Fraction(1, 3), 5)
        assert drawn.tolist() == [trials] * 5


@pytest.mark.parametrize("minimum", [-5, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_how_many_of_many_noises_pass_a_cut_on_either_side_of_zero(law, minimum):
    """Within 6 deviations of trials P[Z >= minimum], which is summed here."""
    trials, z = 200_000, np.arange(-60, 61)
    weights = np.exp(-np.abs(z) / 2) if law == "laplace" else np.exp(-(z**2) / 8)
    chance = weights[z >= minimum].sum() / weights.sum()
    found = getattr(seeded_source(3), f"discrete_{law}_exceedances")(trials, 2, minimum)
    assert abs(found - trials * chance) < 6 * (trials * chance * (1 - chance)) ** 0.5
