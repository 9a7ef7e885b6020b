"""Running counts: the integer recurrences, their sensitivity, their error, their states and their charge."""

import dataclasses
import math
import zlib
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet import _native
from discreet.continual._factors import Buffered, SquareRoot, Tree, best_factor, levels, optimal_base
from discreet.noise import seeded_source

RHO = dc.Budget.zcdp(0.5)
FACTORS = [Tree(13, 2), Tree(30, 3), SquareRoot(40), Buffered(40)]


class Scripted:
    """A source whose discrete Gaussians were written beforehand."""

    seeded = True

    def __init__(self, values):
        self.values = list(values)

    def discrete_gaussian(self, sigma, size):
        return np.array([self.values.pop(0) for _ in range(size)], np.int64)


def noises(factor, z):
    state, source = factor.start(1), Scripted(z)
    return [int(factor.advance(state, t, Fraction(1), source)[0]) for t in range(1, len(z) + 1)]


def rounded(value, bits):
    return (value + (1 << (bits - 1))) >> bits


def test_buffers_are_the_stated_recurrence_in_exact_integers():
    factor = Buffered(64)
    rng = np.random.default_rng(1)
    z = [int(v) for v in rng.integers(-(2**45), 2**45, 64)]
    theta, omega = factor.theta.tolist(), factor.omega.tolist()
    buffers, total, expected = [0] * 4, 0, []
    for value in z:
        w = value - rounded(sum(o * s for o, s in zip(omega, buffers, strict=True)), 48)
        total += w
        buffers = [rounded(t * s, 40) + (w << 8) for t, s in zip(theta, buffers, strict=True)]
        expected.append(total)
    assert noises(factor, z) == expected


def test_square_root_is_the_stated_recurrence_in_exact_integers():
    factor = SquareRoot(50)
    rng = np.random.default_rng(2)
    z = [int(v) for v in rng.integers(-(2**45), 2**45, 50)]
    w, expected = [], []
    for value in z:
        past = sum(c * v for c, v in zip(factor.coefficients.tolist(), reversed(w), strict=False))
        w.append(value - rounded(past, 40))
        expected.append(sum(w))
    assert noises(factor, z) == expected


def test_replaying_many_ticks_at_once_is_the_same_noise():
    factor = Buffered(64)
    one, many = factor.start(3), factor.start(3)
    source, same = seeded_source(5), seeded_source(5)
    for t in range(1, 41):
        last = factor.advance(one, t, Fraction(10**6), source)
    assert (factor.advance(many, 40, Fraction(10**6), same, 40) == last).all()
    assert (one["buffers"] == many["buffers"]).all()


@pytest.mark.parametrize("factor", FACTORS, ids=lambda f: f"{f.name}-{f.horizon}")
def test_no_event_moves_the_hidden_means_by_more_than_the_sensitivity(factor):
    """The proof, run: for equal releases, what the independent noises of two neighbouring streams must differ by."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for event in range(1, factor.horizon + 1):
        z = [int(v) for v in rng.integers(-(10**9), 10**9, factor.horizon)]
        wanted = noises(factor, z)
        # With the event in the stream, the same releases need noises that are lower by one count from then on.
        shifted: list[int] = []
        for t in range(1, factor.horizon + 1):
            target = wanted[t - 1] - (factor.lattice if t >= event else 0)
            base = noises(factor, [*shifted, 0])[-1]
            shifted.append(target - base)
        moved = np.array([a - b for a, b in zip(z, shifted, strict=True)], float)
        assert not moved[: event - 1].any()
        worst = max(worst, math.sqrt((moved**2).sum()))
    assert worst <= factor.sensitivity
    assert worst >= 0.999 * factor.sensitivity or (factor.name == "tree" and worst**2 >= factor.levels - 1)


@pytest.mark.parametrize("factor", FACTORS, ids=lambda f: f"{f.name}-{f.horizon}")
def test_error_is_that_of_the_matrix(factor):
    """One large number at one tick, zeros elsewhere, shows a column of the noise matrix."""
    big = 2**40
    columns = []
    for tick in range(factor.horizon):
        z = [0] * factor.horizon
        z[tick] = big
        columns.append(np.array(noises(factor, z)) / big)
    squares = (np.array(columns).T ** 2).sum(axis=1)
    for t in range(1, factor.horizon + 1):
        assert factor.row_squares(t) == pytest.approx(squares[t - 1], rel=1e-6)
    assert factor.worst_row_squares() == pytest.approx(squares.max(), rel=1e-6)


def test_levels_and_base():
    assert [levels(t, 2) for t in (1, 2, 3, 4, 1023, 1024)] == [1, 2, 2, 3, 10, 11]
    assert levels(3**20, 3) == 21
    assert levels(3**20 - 1, 3) == 20
    for horizon in (10, 1000, 2**16):
        cost = {r: (r - 1) * levels(horizon, r) ** 2 for r in range(2, 60) if r <= horizon}
        assert cost[optimal_base(horizon)] == min(cost.values())


def test_stored_coefficients_are_near_the_best():
    for k in range(2, 18):
        buffered, root = Buffered(2**k), SquareRoot(2**k)
        assert (buffered.omega > 0).all()
        assert ((buffered.theta > 0) & (buffered.theta < 2**40)).all()
        assert buffered.column_squares(2**k) * buffered.row_squares(2**k) <= 1.02 * (
            root.column_squares(2**k) * root.row_squares(2**k)
        )


def test_default_has_at_most_three_tenths_of_the_binary_tree():
    horizon = 2**16
    counter = dc.continual.Counter(horizon, RHO)
    assert counter.method == "blt"
    worst = max(counter.error(t) for t in (1, 2**15, horizon - 1, horizon))
    assert worst <= 0.30 * Tree(horizon, 2).worst_error(0.5)


def test_default_is_the_best_by_error():
    assert best_factor(1, 0.5).name == "tree"
    for horizon in (2, 7, 365, 5000):
        best = best_factor(horizon, 0.5)
        others = [Tree(horizon, 2), Tree(horizon), SquareRoot(horizon), Buffered(horizon)]
        assert best.worst_error(0.5) <= 1.01 * min(other.worst_error(0.5) for other in others)


@pytest.mark.parametrize("method", ["tree", "square-root", "blt"])
@pytest.mark.parametrize("horizon", [64, None])
def test_measured_error_is_the_stated_one(method, horizon):
    """4000 counters: a right program fails with probability below 1e-9 (6 standard deviations of the variance)."""
    counters = 4000
    counter = dc.continual.Counter(horizon, RHO, method=method, size=counters, source=seeded_source(7))
    for t in range(1, 65):
        off = counter.step(np.full(counters, 2)) - 2 * t
        measured, stated = float((off**2).mean()), counter.error(t) ** 2
        assert abs(measured / stated - 1.0) < 6.0 * math.sqrt(2.0 / counters)
        assert abs(float(off.mean())) < 6.0 * counter.error(t) / math.sqrt(counters)


def test_noise_for_the_budget():
    one = dc.continual.Counter(100, dc.Budget.zcdp(0.02), method="tree", base=2)
    # Seven levels: sigma^2 = 7/(2 rho).
    assert float(one.sigma) == pytest.approx(math.sqrt(7 / 0.04))
    several = dc.continual.Counter(100, dc.Budget.zcdp(0.02), method="tree", base=2, size=9, max_items_per_event=4)
    assert float(several.sigma) == pytest.approx(2 * math.sqrt(7 / 0.04))
    converted = dc.continual.Counter(100, dc.Budget(1.0, 1e-6), method="tree", base=2)
    from discreet.privacy.calibration.zcdp import zcdp_rho

    assert float(converted.sigma) == pytest.approx(math.sqrt(7 / (2 * zcdp_rho(1.0, 1e-6))))


@pytest.mark.parametrize("method", ["tree", "square-root", "blt"])
@pytest.mark.parametrize("horizon", [40, None])
@pytest.mark.parametrize("size", [None, 3])
def test_a_restart_changes_nothing(method, horizon, size):
    def run(restarts):
        source = seeded_source(11)
        counter = dc.continual.Counter(horizon, RHO, method=method, size=size, source=source)
        out = []
        for t in range(40):
            if t in restarts:
                counter = dc.continual.Counter.from_bytes(counter.to_bytes(), source=source)
            out.append(np.array(counter.step(t if size is None else np.full(size, t))))
        return np.array(out)

    assert (run([]) == run([0, 1, 2, 7, 8, 31, 39])).all()


def test_a_published_tick_is_returned_as_it_was():
    counter = dc.continual.Counter(10, RHO, source=seeded_source(1))
    first = counter.step(5, tick=1)
    assert counter.step(99, tick=1) == first == counter.last
    assert counter.tick == 1
    restored = dc.continual.Counter.from_bytes(counter.to_bytes())
    assert restored.step(99, tick=1) == first
    with pytest.raises(dc.ParameterError, match="tick must be 1"):
        counter.step(5, tick=3)
    assert isinstance(first, int)


def test_the_horizon_ends():
    counter = dc.continual.Counter(2, RHO)
    counter.step(1)
    counter.step(1)
    with pytest.raises(dc.ParameterError, match="used up"):
        counter.step(1)


@pytest.mark.parametrize("bad", [1.5, "3", None, [1], np.array([1]), 2**60])
def test_wrong_input_changes_nothing(bad):
    counter = dc.continual.Counter(5, RHO)
    with pytest.raises(dc.DataError):
        counter.step(bad)
    assert counter.tick == 0
    assert not counter._paid


@pytest.mark.parametrize(
    "arguments",
    [
        {"budget": dc.Budget(1.0)},
        {"horizon": 0},
        {"horizon": 2**30},
        {"method": "magic"},
        {"method": "blt", "base": 2},
        {"size": 0},
        {"max_items_per_event": 2},
        {"budget": dc.Budget.zcdp(1e-30)},
    ],
)
def test_parameters_are_checked(arguments):
    with pytest.raises(dc.ParameterError):
        dc.continual.Counter(**{"horizon": 16, "budget": RHO, **arguments})


def test_the_whole_horizon_is_charged_once(tmp_path):
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("clicks", dc.Budget.zcdp(0.6))
    account = ledger.account("clicks")
    counter = dc.continual.Counter(10, RHO, ledger=account, charge_id="clicks of 2026")
    assert account.spent().rho == 0.0
    saved_before = counter.to_bytes()
    counter.step(1)
    counter.step(1)
    restored = dc.continual.Counter.from_bytes(counter.to_bytes(), ledger=account)
    restored.step(1)
    # A state saved before the first tick knows its charge, and that its ticks were published.
    with pytest.raises(dc.errors.OldStateError, match="step 0, and step 3 was published"):
        dc.continual.Counter.from_bytes(saved_before, ledger=account)
    assert account.spent().rho == pytest.approx(0.5)
    second = dc.continual.Counter(10, RHO, ledger=account, charge_id="clicks of 2026")
    with pytest.raises(dc.LedgerError, match="another continual release"):
        second.step(1)
    assert second.tick == 0
    with pytest.raises(dc.BudgetExceededError):
        dc.continual.Counter(10, RHO, ledger=account).step(1)


def test_damaged_states():
    counter = dc.continual.Counter(10, RHO, size=2)
    counter.step(np.array([1, 2]))
    data = counter.to_bytes()
    for position in range(0, len(data), 7):
        broken = bytearray(data)
        broken[position] ^= 0x41
        with pytest.raises(dc.CorruptStateError):
            dc.continual.Counter.from_bytes(bytes(broken))
    with pytest.raises(dc.CorruptStateError):
        dc.continual.Counter.from_bytes(_native.seal_state(140, 1, [b"\x05\0\0\0\0\0\0\0[1,2]"]))
    with pytest.raises(dc.CorruptStateError):
        dc.continual.Counter.from_bytes(b"")


def test_guarantee():
    guarantee = dc.continual.Counter(10, dc.Budget(1.0, 1e-9)).guarantee
    assert (guarantee.trust, guarantee.epsilon, guarantee.delta) == ("continual", 1.0, 1e-9)
    assert dataclasses.asdict(guarantee)["seeded"] is False
    seeded = dc.continual.Counter(10, RHO, source=seeded_source(1))
    seeded.step(1)
    assert dc.continual.Counter.from_bytes(seeded.to_bytes()).guarantee.seeded


def test_nothing_of_the_data_is_shown():
    counter = dc.continual.Counter(10, RHO)
    counter.step(123456789)
    assert "1234" not in repr(counter)


def test_the_coefficients_of_buffers_are_those_that_states_were_written_with():
    """A state goes on with the noise it began with: the numbers are part of the format, whatever they are good for."""
    numbers = []
    for power in range(2, 25):
        factor = Buffered(2**power)
        numbers += [*map(float, factor.theta), *map(float, factor.omega)]
    assert zlib.crc32(np.array(numbers, "<f8").tobytes()) == 4093201878
