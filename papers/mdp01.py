"""[MDP] Figure 1 and Theorem 3: what bounds the errors, measured: local protocols, sketches and streams.

The paper says: any local protocol errs by sqrt(k)/e^(ε/2) at least, theirs by sqrt(k)/(e^(ε/4) - 1), and neither HRR
nor OLH gets below sqrt(k). One-shot the error is N/(sqrt(k) s) or what privacy costs, whichever is larger; in a stream
its first part is n sqrt(k)/s. All agree. (The text that we have lacks the figure itself, an overview of the bounds.)
"""

import numpy as np
from shared import Figure, heard, settings

import discreet as dc
from discreet.noise import seeded_source as seeded

MP, UNIVERSE, ABSENT, chosen = dc.multiparty, 2**14, np.arange(2**14 - 200, 2**14), settings(__doc__)
runs, k = chosen.choose((10, 10_000), (3, 1_000))
figure = Figure("mdp01", f"[MDP] Figure 1, Theorem 3: rms error, {runs} runs", chosen)
OURS, LOWER, COMMUNICATION, PRIVACY = "Ours", "Theorem 3: at least", "the bound's part of s", "the bound's part of ε"


def rms(aggregators, *when) -> float:
    """Of items that never came: all others are hashed together with them."""
    return float(np.sqrt(np.mean([np.square(one.estimate(ABSENT, *when).values) for one in aggregators])))


local = figure.panel(f"local: a bit of {k:,} people", "ε", "rms error / √k", log_x=True, log_y=True)
METHODS = {"HRR": MP.HadamardResponse, "OLH": MP.LocalHashing, OURS: MP.LocalSketch}
bits = np.arange(k) % 2
for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0):
    for name, method in METHODS.items():
        asked = (heard(method(f"{run}", dc.Budget(epsilon), UNIVERSE), [bits]) for run in range(20 * runs))
        off = [one.estimate(np.arange(2)).values - k / 2 for one in asked]
        local.add(name, epsilon, np.sqrt(np.mean(np.square(off)) / k))
    local.add("randomised response", epsilon, np.exp(epsilon / 2) / np.expm1(epsilon))
    local.add(LOWER, epsilon, np.exp(-epsilon / 2))
    local.add(PRIVACY, epsilon, 1 / np.expm1(epsilon / 4))

parties, each, epsilon = 100, chosen.choose(4096, 1024), 4.0
shot = figure.panel(f"one shot, {parties} parties of {each:,}", "columns s", "rms error", log_x=True, log_y=True)
items = np.random.default_rng(2).zipf(1.5, (parties, each)) % (UNIVERSE - 200)
for s in (4, 16, 64, 256, 1024):
    own = {"items_per_column": each / s, "rows": 3, "max_items": each}
    made = (MP.IndependentSketches(f"{run}", dc.Budget(epsilon), UNIVERSE, **own) for run in range(runs))
    shot.add(OURS, s, rms(heard(one, items) for one in made))
    shot.add(PRIVACY, s, np.sqrt(parties) / np.expm1(epsilon / 12))
    shot.add(COMMUNICATION, s, each * np.sqrt(parties) / s)

few, steps = 10, each
stream = figure.panel(f"stream, {few} parties, {steps:,} steps", "epochs s", "rms error", log_x=True, log_y=True)
items = np.random.default_rng(3).zipf(1.5, (few, steps)) % (UNIVERSE - 200)
for s in (4, 8, 16, 32, 64):
    own = {"horizon": steps, "epoch_steps": steps // s, "columns": s, "sample_share": 0.5}
    asked = []
    for run in range(runs):
        made = MP.Stream(f"{run}", dc.Budget(epsilon), UNIVERSE, **own)
        asked += [made.aggregator()]
        for number, column in enumerate(items):
            asked[-1].receive(made.party(number, source=seeded(100 * run + number)).feed(column))
    stream.add(OURS, s, rms(asked, steps - 1))
    stream.add(COMMUNICATION, s, steps * np.sqrt(few) / s)

least = min((local.curve(name)[1] / local.curve(LOWER)[1]).min() for name in METHODS)
figure.says("any local protocol errs by Ω(sqrt(k)/e^(ε/2))", least > 0.9)
ours, errors, falls = local.curve(OURS)[1], shot.curve(OURS)[1], stream.curve(OURS)[1]
figure.says("ours: O(sqrt(k)/(e^(ε/4) - 1)), a factor in ε from it", bool(np.all(ours < 2 * local.curve(PRIVACY)[1])))
flat = min(local.mean("HRR", 8.0), local.mean("OLH", 8.0)) > 0.5 > 1.5 * ours[-1]
figure.says("HRR and OLH: also for ε → ∞ the error is Ω(sqrt(k))", flat)
most = shot.curve(PRIVACY)[1] + shot.curve(COMMUNICATION)[1]
figure.says("one shot: s or privacy, whichever is larger", errors[0] > 9 * errors[-1] and bool(np.all(errors < most)))
figure.says("a stream: it falls with s", falls[0] > 2 * falls[-1])
figure.save()
