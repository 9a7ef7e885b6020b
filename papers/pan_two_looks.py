"""[PAN] Theorem 6.1: no finite-state density estimator is pan-private against two unannounced intrusions.

Looks right before and right after an update must not tell who came: what one element can change, each must be able to.
Then K times one element, with the whole universe before it or not, lead to nearly the same state, and density is lost.
Our state is good, so two looks name whoever came (one cannot). One that redraws a part r of its cells at every update
withstands, the better the larger r, and forgets as fast.
"""

import numpy as np
from pan_streams import Forgetful
from shared import Figure, settings

import discreet as dc
from discreet.noise import seeded_source
from discreet.pan import Density

chosen = settings(__doc__)
n, runs = 256, chosen.choose(2000, 300)
figure = Figure("pan_two_looks", f"[PAN] Theorem 6.1: two unannounced looks, universe {n}, {runs} runs", chosen, 2)
told = figure.panel("what a state still tells", "K", "density, with − without", log_x=True)
named = figure.panel("the intruder", "part of the cells redrawn, r (ours: 0)", "P[names who came]", log_x=True)
OURS, RATES, EVERY = "our Density", (0.001, 0.01, 0.1, 0.5), np.arange(n)


def ours(seed: int) -> Density:
    return Density(n, budget=dc.Budget(2.0), output_share=0.5, source=seeded_source(seed))


p0, p1 = (float(p) for p in ours(0).response.after(0))


def look(state: Density | Forgetful) -> np.ndarray:
    return state.bits.copy() if isinstance(state, Forgetful) else np.array([b[0] for _, b in state.seen_by_intruder()])


def names(make, seed: int, looks: int) -> bool:
    """Whether the intruder finds who came: a cell that became 1, or else one that changed."""
    state, rng = make(seed), np.random.default_rng(seed)
    who, before = int(rng.integers(n)), look(state) if looks == 2 else np.zeros(n, bool)
    state.update(np.array([who]))
    after = look(state)
    suspects = [np.flatnonzero(after > before), np.flatnonzero(after != before), EVERY]
    return bool(rng.choice(next(s for s in suspects if len(s))) == who)


for name, rate in [(OURS, 1e-4), *((f"redraws {r:g}", r) for r in RATES)]:
    make = ours if name == OURS else lambda seed, r=rate: Forgetful(n, p0, p1, r, seed)
    for k in (1, 4, 16, 64, 256, 1024):
        streams = [np.concatenate([before, np.zeros(k, np.int64)]) for before in (EVERY, EVERY[:0])]
        states = [[make(seed) for seed in range(8)] for _ in streams]
        for some, stream in zip(states, streams, strict=True):
            _ = [state.update(stream) for state in some]
        ones = [np.mean([look(state) for state in some]) for some in states]
        told.add(name, k, (ones[0] - ones[1]) / (p1 - p0))
    named.add(name, rate, float(np.mean([names(make, seed, 2) for seed in range(runs)])))
named.add("our Density, one look", 1e-4, float(np.mean([names(ours, seed, 1) for seed in range(runs)])))
safe = [told.mean(f"redraws {r:g}", 1024) for r in RATES if named.mean(f"redraws {r:g}") < named.mean(OURS) / 4]
figure.says("a state that tells density (ours) gives away who came", told.mean(OURS, 1024) > 0.8 < 2 * named.mean(OURS))
figure.says("one that does not cannot tell the universe from one element", len(safe) > 1 and max(np.abs(safe)) < 0.1)
figure.says("(ours) one look, which is what we promise, names nobody", named.mean("our Density, one look") < 0.03)
figure.save()
