"""What all pan-private estimators do alike: updates, releases, states, intrusions, and what they refuse."""

import json
import pickle
import struct
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet import _native
from discreet.noise import RandomSource, seeded_source
from discreet.pan.modular_incidence import ModularEstimate

BUDGET = dc.Budget(1.0)
PAN = dc.pan

MAKERS = {
    "density": lambda **o: PAN.Density(1000, budget=BUDGET, **o),
    "density of a sample": lambda **o: PAN.Density(range(-500, 500), budget=BUDGET, sample_size=100, **o),
    "density, paper": lambda **o: PAN.Density(1000, budget=BUDGET, response="paper", **o),
    "distinct": lambda **o: PAN.DistinctCount(budget=BUDGET, buckets=64, levels=10, **o),
    "cropped": lambda **o: PAN.CroppedMean(1000, 5, budget=BUDGET, **o),
    "heavy": lambda **o: PAN.HeavyFraction(1000, 4, budget=BUDGET, **o),
    "heavy, two tables": lambda **o: PAN.HeavyFraction(1000, 4, budget=BUDGET, method="two_tables", **o),
    "heavy, ladder": lambda **o: PAN.HeavyFraction(1000, 4, budget=BUDGET, method="ladder", max_count=64, **o),
    "heavy, any k": lambda **o: PAN.HeavyFraction(1000, 4, budget=BUDGET, max_count=64, **o),
    "modular": lambda **o: PAN.ModularIncidence(1000, 5, budget=BUDGET, **o),
    "modular, squares": lambda **o: PAN.ModularIncidence(1000, 11, budget=BUDGET, shift="squares", **o),
    "modular, program": lambda **o: PAN.ModularIncidence(1000, 3, budget=BUDGET, solver="linear_program", **o),
    "incidence": lambda **o: PAN.Incidence(1000, 2, budget=BUDGET, **o),
    "incidence, primes": lambda **o: PAN.Incidence(1000, 2, budget=BUDGET, method="primes", max_count=64, **o),
}
each = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def cells(estimator):
    return [estimator._table.seen_by_intruder(layer) for layer in range(estimator._table.layers)]


def numbers(estimate):
    if isinstance(estimate, ModularEstimate):
        return estimate.values, estimate.lower, estimate.upper
    return (estimate.value,), (estimate.lower,), (estimate.upper,)


@each
def test_a_release_has_an_interval_and_a_guarantee(make):
    estimator = make()
    estimator.update(np.arange(300))
    estimate = estimator.release()
    for value, lower, upper in zip(*numbers(estimate), strict=True):
        assert lower <= value <= upper
    guarantee = estimate.guarantee
    assert guarantee.epsilon == 1.0
    assert guarantee.delta == 0.0
    assert guarantee.unit == dc.Element()
    assert guarantee.trust == "pan"
    assert estimate.is_private
    assert guarantee.to_dict()["assumptions"]


@each
def test_the_split_adds_up_to_the_budget_exactly(make):
    settings = make(releases=3, announced_intrusions=2)._settings
    assert 3 * settings.epsilon_state + 3 * settings.epsilon_output == 1


@each
def test_a_second_release_is_the_first(make):
    estimator = make()
    estimator.update(np.arange(300))
    first = estimator.release()
    assert estimator.release() is first


@each
def test_the_last_release_erases_the_table_and_ends_the_updates(make):
    estimator = make()
    estimator.update(np.arange(300))
    estimator.release()
    assert not any(any(part) for layer in cells(estimator) for part in layer)
    before = estimator.to_bytes()
    with pytest.raises(dc.ParameterError, match="erased"):
        estimator.update(np.arange(3))
    with pytest.raises(dc.ParameterError, match="erased"):
        estimator.announce_intrusion()
    assert cells(type(estimator).from_bytes(before)) == cells(estimator)


@each
def test_planned_releases_are_made_whatever_came_between(make):
    """If a release without news were the one before, two equal ones would tell that nobody came."""
    estimator = make(releases=2)
    assert estimator.last is None
    first = estimator.release()
    assert estimator.last is first
    second = estimator.release()
    assert second is not first
    assert estimator.release() is estimator.last is second
    with pytest.raises(dc.ParameterError):
        estimator.update([1])


@each
def test_a_state_does_not_tell_whether_anything_came(make):
    """One event that leaves the cells alone, against none, one by one as events come: equal in every byte."""
    estimator = make(releases=2)
    estimator.release()
    before = estimator.to_bytes()
    estimator.update([])
    if not isinstance(estimator, PAN.DistinctCount):
        estimator.update([10**12])  # outside the universe
    assert estimator.to_bytes() == before


@each
def test_state_round_trip_continues_and_keeps_the_release(make):
    estimator = make(releases=2)
    estimator.update(np.arange(300))
    copy = type(estimator).from_bytes(estimator.to_bytes())
    assert cells(copy) == cells(estimator)
    assert copy.to_bytes() == estimator.to_bytes()
    assert (copy.epsilon_state, copy.epsilon_output) == (estimator.epsilon_state, estimator.epsilon_output)
    copy.update(np.arange(10))
    copy.announce_intrusion()
    released = copy.release()
    again = pickle.loads(pickle.dumps(copy))
    assert again.intrusions == 1
    assert numbers(again.last) == numbers(released)


@each
def test_damaged_states_are_refused(make):
    estimator = make()
    cls, data = type(estimator), estimator.to_bytes()
    rng = np.random.default_rng(7)
    for position in rng.integers(0, len(data), 40).tolist():
        damaged = bytearray(data)
        damaged[position] ^= 1 << int(rng.integers(8))
        with pytest.raises(dc.CorruptStateError):
            cls.from_bytes(bytes(damaged))
    for length in (0, 10, 40, len(data) - 1):
        with pytest.raises(dc.CorruptStateError):
            cls.from_bytes(data[:length])


@each
def test_payloads_that_are_not_a_state_are_refused(make):
    """The envelope is right and what is inside is not: every prefix, and bytes changed here and there."""
    from discreet.storage import open_state, seal_state

    estimator = make()
    cls = type(estimator)
    version, payload = open_state(estimator.to_bytes(), cls.family, 2)
    rng = np.random.default_rng(11)
    for length in rng.integers(0, len(payload), 30).tolist():
        with pytest.raises(dc.CorruptStateError):
            cls.from_bytes(seal_state(cls.family, version, payload[:length]))
    (head,) = struct.unpack_from("<I", payload)
    for position in rng.integers(0, head + 60, 200).tolist():
        damaged = bytearray(payload)
        damaged[position] = int(rng.integers(256))
        try:
            restored = cls.from_bytes(seal_state(cls.family, version, bytes(damaged)))
        except dc.CorruptStateError:
            continue
        restored.update(np.arange(20))  # what was let through still works
        restored.release()


def test_a_state_of_another_class_is_refused():
    with pytest.raises(dc.CorruptStateError, match="another class"):
        PAN.CroppedMean.from_bytes(MAKERS["density"]().to_bytes())
    with pytest.raises(dc.ParameterError):
        PAN.Density.from_bytes("state")


def test_a_state_tells_neither_length_nor_kind_of_what_came():
    """Same seed: two estimators that drew the same bits have equal states, whatever was fed and how often."""

    def fed(batches):
        estimator = PAN.DistinctCount(budget=BUDGET, buckets=64, levels=8, source=seeded_source(5))
        for batch in batches:
            estimator.update(batch)
        return estimator.to_bytes()

    # nothing at all in different shapes: no item, no draw
    empty = fed([[]])
    assert fed([pa.array([], pa.string())]) == empty
    assert fed([np.array([], np.uint64), [], []]) == empty
    assert len(fed([["a", "b"], [1, 2, 3], [b"x"]])) == len(empty)


@each
def test_announced_intrusions_beyond_the_plan_raise_the_guarantee(make):
    estimator = make(announced_intrusions=1)
    assert estimator.guarantee.epsilon == 1.0
    estimator.announce_intrusion()
    assert estimator.guarantee.epsilon == 1.0
    estimator.announce_intrusion()
    assert estimator.guarantee.epsilon == pytest.approx(1.0 + estimator.epsilon_state)
    assert estimator.guarantee.epsilon >= 1.0 + estimator.epsilon_state
    assert estimator.intrusions == 2


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.1, 7.7])
def test_the_guarantee_is_rounded_up(epsilon):
    estimator = PAN.Density(100, budget=dc.Budget(epsilon))
    for beyond in range(1, 17):
        estimator.announce_intrusion()
        assert Fraction(estimator.guarantee.epsilon) >= Fraction(epsilon) + beyond * estimator._settings.epsilon_state


@each
def test_a_seeded_source_repeats_itself_and_is_called_not_private(make):
    states = []
    for _ in range(2):
        estimator = make(source=seeded_source(3))
        estimator.update(np.arange(100))
        states.append(cells(estimator))
        estimate = estimator.release()
        assert estimate.guarantee.seeded
        assert not estimate.is_private
        assert type(estimator).from_bytes(estimator.to_bytes()).guarantee.seeded
    assert states[0] == states[1]


@each
def test_a_bad_batch_changes_nothing(make):
    estimator = make()
    before = cells(estimator)
    bad = pa.chunked_array([pa.array([1, 2, 3]), pa.array([4, None])])
    with pytest.raises(dc.DataError, match="nulls"):
        estimator.update(bad)

    def breaks():
        yield from range(100_000)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        estimator.update(breaks())
    with pytest.raises(dc.DataError):
        estimator.update([1.5, 2.5])
    with pytest.raises(dc.DataError):
        estimator.update("abc")
    with pytest.raises(dc.ParameterError):
        estimator.update([1], nulls="drop")
    assert cells(estimator) == before
    estimator.update(bad, nulls="skip")


@each
def test_reprs_show_parameters_only(make):
    estimator = make()
    before = repr(estimator)
    estimator.update(np.arange(300))
    assert repr(estimator) == before
    assert "pan-private" in before


def test_threads_may_share_an_estimator():
    estimator = PAN.CroppedMean(64, 2**20, budget=dc.Budget(1.0))
    start = np.array(cells(estimator)[0][0])
    threads = [threading.Thread(target=lambda: [estimator.update(np.arange(64)) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    moved = (np.array(cells(estimator)[0][0]) - start) % 2**20
    assert (moved == 200).all()


def test_an_iterator_that_updates_the_same_estimator_is_refused():
    estimator = MAKERS["density"]()

    def items():
        estimator.update([1])
        yield 1

    with pytest.raises(dc.DataError, match="being added to"):
        estimator.update(items())


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"budget": dc.Budget.zcdp(1.0)}, "Budget"),
        ({"budget": 1.0}, "Budget"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": 0.3}, "confidence"),
        ({"releases": 0}, "releases"),
        ({"announced_intrusions": -1}, "announced_intrusions"),
        ({"response": "fair"}, "response"),
        ({"output_share": 1.0}, "output_share"),
        ({"sample_size": 0}, "sample_size"),
        ({"source": 3}, "source"),
        ({"budget": dc.Budget(8.0), "response": "paper"}, "tight"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_parameters_are_checked(arguments, match):
    with pytest.raises(dc.ParameterError, match=match):
        PAN.Density(1000, **{"budget": BUDGET, **arguments})


@pytest.mark.parametrize(
    "universe", [0, -1, True, 1.5, "abc", range(0, 10, 2), [], [1, "a"], [1, 1], [1.0], range(-1, 2**63 + 1), [[1]]]
)
def test_universes_are_checked(universe):
    with pytest.raises(dc.ParameterError):
        PAN.Density(universe, budget=BUDGET)


def test_wrong_parameters_of_the_others():
    with pytest.raises(dc.ParameterError):
        PAN.CroppedMean(10, 0, budget=BUDGET)
    with pytest.raises(dc.ParameterError):
        PAN.HeavyFraction(10, 2, budget=BUDGET, rho=0)
    with pytest.raises(dc.ParameterError, match="max_count"):
        PAN.HeavyFraction(10, 2, budget=BUDGET, method="ladder")
    with pytest.raises(dc.ParameterError):
        PAN.HeavyFraction(10, 2, budget=BUDGET, method="magic")
    with pytest.raises(dc.ParameterError):
        PAN.ModularIncidence(10, 1, budget=BUDGET)
    with pytest.raises(dc.ParameterError, match="prime"):
        PAN.ModularIncidence(10, 5, budget=BUDGET, shift="squares")
    with pytest.raises(dc.ParameterError, match="max_count"):
        PAN.Incidence(10, 1, budget=BUDGET, method="primes")
    with pytest.raises(dc.ParameterError):
        PAN.DistinctCount(budget=BUDGET, levels=99)


MEMORY_SEARCH = r"""
import gc, re
import discreet as dc

def marked(i):
    return b"fbi-" + bytes(str(i), "ascii") + b"-open-up"

# Two in a row, which only a batch's buffer has; the expression does not match itself.
pair = re.compile(rb"fbi-200\d\d\d-open-upfbi-200\d\d\d")

def in_memory():
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            where, rights = line.split()[:2]
            if not rights.startswith("rw") or "[v" in line:
                continue
            low, high = (int(number, 16) for number in where.split("-"))
            try:
                memory.seek(low)
                if pair.search(memory.read(high - low)):
                    return True
            except OSError:
                continue
    return False

estimator = dc.pan.DistinctCount(budget=dc.Budget(1.0), buckets=64, levels=8)
# A generator: an item is a Python object only until the next one.
estimator.update(marked(i) for i in range(200_000, 200_500))
gc.collect()
print(in_memory())
kept = b"".join(marked(i) for i in range(200_000, 200_002))
print(in_memory())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/mem")
def test_no_copy_of_a_batch_is_left_in_the_process():
    """The reader's own buffers are zeroed: no two neighbouring items of a batch are found in memory afterwards."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_SEARCH], capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout.split() == ["False", "True"]  # the search does find what is there


class _Kept(RandomSource):
    """Keeps the arrays of noise that it handed out: the memory that an intruder reads after a release."""

    def __init__(self):
        super().__init__(_native.RandomSource(4))
        self.handed_out = []

    def discrete_laplace(self, scale, size=None):
        self.handed_out.append(np.full(size, 3, np.int64))
        return self.handed_out[-1]


@each
def test_used_noise_is_wiped(make):
    """Whoever reads it beside the output knows the exact count."""
    source = _Kept()
    estimator = make(source=source)
    estimator.update(np.arange(40))
    estimator.release()
    assert source.handed_out
    assert not any(np.any(drawn) for drawn in source.handed_out)


def test_after_an_announcement_incidence_pays_for_both_counts():
    """Squares and zeros are then counted, and an element may go from one to the other: the two counts move by 2."""

    class Watched(_Kept):
        asked = ()

        def discrete_laplace(self, scale, size=None):
            self.asked += ((scale, size),)
            return super().discrete_laplace(scale, size)

    for announced, distance in ((0, 1), (1, 2)):
        source = Watched()
        made = PAN.Incidence(50, 2, budget=dc.Budget(3.0), max_count=6, announced_intrusions=1, source=source)
        for _ in range(announced):
            made.announce_intrusion()
        made.release()
        ((scale, size),) = source.asked
        assert size == 1 + announced
        assert float(scale) * made.epsilon_output == pytest.approx(distance)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("epsilon", [2.0, 6.0])
def test_a_count_is_as_accurate_as_was_said_from_the_first_one_on(alpha, epsilon):
    """Of the numbers of people for which the relative error is stated, the first is within it, and few before are."""
    made = dc.pan.DistinctCount(budget=dc.Budget(epsilon), buckets=2**14, levels=12)
    first = made.accurate_from(alpha)
    p0, gap = made._chances()

    def errors(counts):
        return made._relative_error(np.asarray(counts, float), p0, gap, made.epsilon_output, made.settings.beta)

    assert first > 1
    assert errors(first * np.geomspace(1.0, 50.0, 60)).max() <= alpha
    assert errors([first / 1.1])[0] > alpha


# ---- what a state says, and what its table is ------------------------------------------------------------------------


def parts_of_state(estimator):
    """The header of a state, and its table."""
    from discreet.storage import open_state

    _, payload = open_state(estimator.to_bytes(), estimator.family, 2)
    (length,) = struct.unpack_from("<I", payload)
    return json.loads(payload[4 : 4 + length]), bytes(payload[4 + length :])


def read_again(estimator, header, table):
    from discreet.storage import seal_state

    text = json.dumps(header, sort_keys=True).encode()
    data = seal_state(estimator.family, 2, struct.pack("<I", len(text)) + text + table)
    return type(estimator).from_bytes(data)


@each
def test_a_table_is_erased_exactly_when_all_releases_were_made(make):
    """Cells behind the last release would be a look that nothing pays for; and without them no release says a thing."""
    estimator = make()
    estimator.update(np.arange(50))
    waiting = parts_of_state(estimator)
    estimator.release()
    done = parts_of_state(estimator)
    assert read_again(estimator, *waiting).last is None
    assert read_again(estimator, *done).last is not None
    for header, table in ((done[0], waiting[1]), (waiting[0], done[1])):
        with pytest.raises(dc.CorruptStateError):
            read_again(estimator, header, table)


@each
@pytest.mark.parametrize("change", ["epsilon", "share", "response"])
def test_a_table_with_coins_of_another_budget_is_refused(make, change):
    """Its cells were drawn with them: with other numbers neither the promise nor the estimate would be right."""
    estimator = make()
    estimator.update(np.arange(50))
    header, table = parts_of_state(estimator)
    settings = header["settings"]
    if change == "epsilon":
        settings[0] = 0.5
    elif change == "share":
        settings[-1] = str(Fraction(settings[-1]) / 2)
    else:
        settings[4] = {"tight": "paper", "paper": "tight"}[settings[4]]
    if (estimator.response.unseen, estimator.response.seen) == (1, 1):
        read_again(estimator, header, table)  # counters alone: nothing in a table tells
    else:
        with pytest.raises(dc.CorruptStateError, match="another budget"):
            read_again(estimator, header, table)


@each
@pytest.mark.parametrize("planned", [0, 2])
def test_the_promise_says_how_many_intrusions_it_covers(make, planned):
    """The planned ones, or those that were announced, if they are more."""
    estimator = make(announced_intrusions=planned)
    for announced in range(4):
        covered = max(planned, announced)
        told = " ".join(estimator.guarantee.assumptions)
        assert f"at most {covered} announced intrusions" in told
        assert told == " ".join(type(estimator).from_bytes(estimator.to_bytes()).guarantee.assumptions)
        estimator.announce_intrusion()


SIZED = {
    "density": (PAN.Density, {"universe": 10**6}),
    "cropped": (PAN.CroppedMean, {"universe": 10**6, "t": 4}),
    "heavy": (PAN.HeavyFraction, {"universe": 10**6, "k": 4}),
    "heavy, two tables": (PAN.HeavyFraction, {"universe": 10**6, "k": 1}),
    "incidence": (PAN.Incidence, {"universe": 10**6, "t": 2}),
    "modular": (PAN.ModularIncidence, {"universe": 10**6, "k": 3}),
    "distinct": (PAN.DistinctCount, {"levels": 8}),
}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {"releases": 3}) for name in SIZED),
        *((name, {"announced_intrusions": 1}) for name in ("density", "cropped", "heavy, two tables")),
    ],
)
def test_an_accuracy_takes_as_few_entries_as_reach_it(name, options):
    """For what the budget covers: more releases and looks take more entries."""
    kind, words = SIZED[name]
    alpha, beta, epsilon = 0.2, 0.1, 4.0
    made = kind.for_accuracy(alpha, beta, epsilon, **words, **options)
    settings = made.settings
    assert settings.confidence == 1 - beta
    assert (made.guarantee.epsilon, settings.releases) == (epsilon, options.get("releases", 1))

    def width(size):
        """Of the same with another size, and the split that is best for it."""
        setattr(made, f"_{kind.sized}", size)
        split = settings.narrowest(made._width)
        return made._width(split, float(split.epsilon_state), float(split.epsilon_output))

    size = made.parameters[kind.sized]
    assert width(size) <= alpha
    if size > 16:
        assert width(size - max(1, size // 50)) > alpha
    assert size > kind.for_accuracy(alpha, beta, epsilon, **words).parameters[kind.sized]


@pytest.mark.parametrize("universe", ["strings", "integers", "bytes"])
@pytest.mark.parametrize("kind", [
    lambda u: PAN.Density(u, budget=BUDGET), lambda u: PAN.CroppedMean(u, 3, budget=BUDGET),
    lambda u: PAN.Incidence(u, 1, budget=BUDGET), lambda u: PAN.ModularIncidence(u, 3, budget=BUDGET),
    lambda u: PAN.HeavyFraction(u, 3, budget=BUDGET), lambda u: PAN.Density.for_accuracy(0.1, 0.1, 1.0, universe=u),
])  # fmt: skip
def test_a_sample_is_of_a_universe_that_has_an_end(kind, universe):
    with pytest.raises(dc.ParameterError, match="must be bounded: a size, a range or a list"):
        kind(universe)


@pytest.mark.parametrize("change", [
    lambda last: last["unbiased"].pop(), lambda last: last["covariance"].pop(),
    lambda last: last["unbiased"].__setitem__(0, float("inf")),
    lambda last: last["covariance"][0].__setitem__(0, float("nan")),
    *(lambda last, told=told: last.update(reach=None, limits=told) for told in ([5, 1, None], [-1, 0, 0], [0, 5, 1])),
    lambda last: last.update(reach="wide"),
])  # fmt: skip
def test_a_release_of_occurrences_that_cannot_be_is_refused(change):
    made = PAN.Occurrences(3, budget=BUDGET, buckets=192, levels=8, source=seeded_source(1))
    made.update(np.arange(100))
    made.release()
    header, table = parts_of_state(made)
    assert read_again(made, header, table).last.values == made.last.values
    change(header["last"])
    with pytest.raises(dc.CorruptStateError):
        read_again(made, header, table)
