"""Releases over time without a horizon: what one event costs over all epochs, exactly, and what the code draws."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.continual import Counter, HeavyHitters, Histogram
from discreet.continual._doubling import Doubling, epoch_of, epoch_share
from discreet.continual._factors import Buffered, CorrelatedNoise, Tree
from discreet.noise import seeded_source
from discreet_audit.continual_hitters import _gaussian_delta, _nodes
from discreet_audit.continual_laws import worst_norm
from discreet_audit.sources import ScriptedSource

BUDGET = dc.Budget(1.0, 1e-6)
EPOCHS = 9


def cost(noises):
    return sum(worst_norm(noise.factor, 2, noise.enters)[0] ** 2 / (2 * float(noise.sigma) ** 2) for noise in noises)


@pytest.mark.parametrize("make", [Buffered, lambda ticks: Tree(ticks, 2)], ids=["blt", "tree"])
def test_an_event_costs_rho_in_whichever_epoch_it_comes(make):
    """The shipped recurrences of its epoch and of the totals; with the whole of rho for both it would cost too much."""
    factor, rho = Doubling(make), 0.1
    sigma = factor.sigma(rho)
    for epoch in range(7):
        inside, over = factor.noises(epoch, sigma)
        assert 0.5 * rho < cost([inside, over]) <= rho * (1 + 1e-9)
        broken = CorrelatedNoise(over.factor, over.factor.sigma(rho), over.enters)
        assert cost([inside, broken]) > rho * 1.1 or epoch_share(epoch) > 1  # three quarters, and a whole


def test_the_shares_of_delta_add_up_over_all_epochs_there_may_be():
    for epochs in (1, 5, 24, 1000):
        assert math.fsum(map(epoch_share, range(epochs))) == pytest.approx(1 - 1 / (epochs + 1))
    factor = Doubling(Buffered)
    assert math.fsum(factor.tick_share(t) for t in range(1, 2**10)) == pytest.approx(1 - 1 / 11)


def shown(scheme, epoch, cut=lambda cut: cut):
    """sum over the ticks of an epoch of P[1 + N_t >= cut]: the noise is two Gaussians, each rounded to whole counts."""
    total = 0.0
    for tick in range(2**epoch, 2 ** (epoch + 1)):
        inside, over = scheme.factor.noises(epoch, scheme.sigma)
        parts = [(inside, tick - 2**epoch + 1), *([(over, epoch)] if epoch else [])]
        variance = sum(n.factor.row_squares(t) * (float(n.sigma) / n.factor.lattice) ** 2 + 1 / 12 for n, t in parts)
        total += 0.5 * math.erfc((cut(scheme.cut(tick)) - 1 - 0.5 * len(parts)) / math.sqrt(2 * variance))
    return total


@pytest.mark.parametrize("people", [False, True], ids=["events", "people"])
def test_hidden_items_cost_half_of_delta_over_all_epochs(people):
    m = 3 if people else 1
    scheme = Histogram(None, BUDGET, **({"unit": dc.User(m)} if people else {"max_items_per_event": 1})).scheme
    half = BUDGET.delta / 2
    spent = [m * shown(scheme, epoch) for epoch in range(EPOCHS)]
    assert all(cost <= half * epoch_share(epoch) for epoch, cost in enumerate(spent))
    # Later epochs have 1/(EPOCHS + 1) of it. Cuts that are too low, or that spend all in every epoch, are caught.
    assert sum(spent) <= half * (1 - 1 / (EPOCHS + 1))
    assert sum(m * shown(scheme, epoch, lambda cut: cut - 4) for epoch in range(EPOCHS)) > half
    scheme.factor.tick_share = lambda tick: 1 / epoch_of(tick)[1]
    assert sum(m * shown(scheme, epoch) for epoch in range(EPOCHS)) > 2 * half


@pytest.mark.parametrize("mechanism", ["discover", "offset"])
def test_an_event_is_in_the_nodes_of_one_epoch(mechanism):
    """And in no more of them than that epoch's noise is for. Sketches that live on into the next are caught."""

    def most(kind, when, base=None):
        hides = ScriptedSource(0, -(10**6))
        made = kind(None, dc.Budget(2.0, 0.02), 8, mechanism=mechanism, base=base, source=hides)
        states = _nodes(made, [[7] if tick == when else [] for tick in range(1, 80)])
        held = [key for key, state in states.items() if state.total > 0]
        assert held
        return len(held), made._plan(epoch_of(when)[1]).levels, {epoch_of(first)[0] for first, _ in held}

    class LivesOn(HeavyHitters):
        def _enter(self):
            kept = self._sketches
            super()._enter()
            if kept is not self._sketches:
                self._sketches = [kept[min(level, len(kept) - 1)] for level in range(self.levels)]

    for when in (1, 3, 8, 31, 50):
        held, paid, epochs = most(HeavyHitters, when)
        assert held <= paid
        assert epochs == {epoch_of(when)[0]}
    # Where an epoch ends inside of a node: base 3 has 27 + 3 + 1 + 1 of 32 ticks.
    assert any(len(most(LivesOn, when, base=3)[2]) > 1 for when in (58, 62, 63))
    assert all(len(most(HeavyHitters, when, base=3)[2]) == 1 for when in (58, 62, 63))


def test_the_nodes_of_every_epoch_keep_the_promise():
    hitters = HeavyHitters(None, dc.Budget(1.0, 1e-6), 64)
    for epoch in (0, 1, 3, 6, 12, 23):
        plan = hitters._plan(2**epoch)
        assert _gaussian_delta(plan, 1.0, plan.levels) <= 1e-6
        lower = SimpleNamespace(scale=plan.scale, threshold=plan.threshold - 1)
        assert _gaussian_delta(lower, 1.0, plan.levels) > 1e-6
    known = hitters.discovered
    sigma = known.sigma / Fraction(2)
    for epoch in (0, 3, 6):
        assert cost(known.factor.noises(epoch, known.sigma)) <= dc.Budget(1.0, 1e-6).as_zcdp("") * (1 + 1e-9)
        assert cost(known.factor.noises(epoch, sigma)) > dc.Budget(1.0, 1e-6).as_zcdp("")


def test_the_code_draws_the_noise_that_is_stated():
    """3000 counters, known and as they come, at ticks around the ends of epochs: six standard errors of a variance."""
    domain = np.arange(3000)
    width = 6 * math.sqrt(2 / 3000)
    known = Histogram(None, BUDGET, domain.tolist(), 1, source=seeded_source(3))
    counter = Counter(None, BUDGET, method="blt")
    for t in range(1, 18):
        noise = known.step([]).counts.astype(float)
        assert (noise**2).mean() == pytest.approx(known.error(t) ** 2, rel=width)
        assert known.error(t) == pytest.approx(counter.error(t), rel=1e-6)
    for late in (2, 9, 100):
        histogram = Histogram(None, BUDGET, None, 1, source=seeded_source(late))
        for _ in range(late - 1):
            histogram.step([])
        high = 2 * histogram.scheme.cut(2 * late)
        release = histogram.step(pa.array(np.repeat(domain, high)))
        noise = release.counts.astype(float) - high
        assert len(release) == 3000
        assert (noise**2).mean() == pytest.approx(histogram.error(late) ** 2, rel=width)
        noise = histogram.step([]).counts.astype(float) - high
        assert (noise**2).mean() == pytest.approx(histogram.error(late + 1) ** 2, rel=width)
