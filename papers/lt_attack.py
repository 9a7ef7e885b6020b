"""[LT] section 1: Böhler and Kerschbaum's release is not private; and Lemma 25, users of m items.

The paper says: their noise is for the exact histogram, which one event moves by 1, but one event moves all k counters
of a Misra-Gries sketch. The attack here: k items of 1,000 events each, with or without one event of another item, which
lowers every counter by 1. Who sees the release guesses by the sum of what is published. Lemma 25: a user of m items
moves one counter of a Misra-Gries sketch by m, one of the privacy-aware sketch by 1.
"""

import numpy as np
from shared import Figure, settings

import discreet as dc
from discreet.central import Offset
from discreet.noise import seeded_source

chosen = settings(__doc__)
runs, epsilon, delta, high = chosen.choose(4000, 400), 0.1, 1e-6, 1000
figure = Figure("lt_attack", f"[LT] one event more, ε = {epsilon:g}, δ = 1e-6, {runs} runs", chosen, 2)
told = figure.panel("told apart by the release", "counters k", "advantage", log_x=True)
users = figure.panel("Lemma 25: users of m items", "m", "a counter moves by")
WRONG, OURS, MOST = "Böhler and Kerschbaum", "offset release (ours)", "what (ε, δ) allows"
cut = 1 + np.log(1 / delta) / epsilon  # their threshold, for one event


def advantage(k: int, publish) -> float:
    """P[right] - P[wrong] of the best guess by the mean of what is published."""
    means = []
    for more in (0, 1):
        sketch = dc.MisraGries(k, seed=1)
        sketch.update(np.append(np.tile(np.arange(k), high), np.full(more, k)))
        means.append([np.mean(publish(sketch, seeded_source(2 * run + more))) for run in range(runs)])
    edges = np.quantile(np.concatenate(means), np.linspace(0, 1, 40))
    return max(abs(np.mean(np.array(means[0]) > edge) - np.mean(np.array(means[1]) > edge)) for edge in edges)


def theirs(sketch, source):
    counts = sketch.not_private_counts().counts
    noisy = counts + source.discrete_laplace(1 / epsilon, len(counts))
    return noisy[noisy >= cut]


for k in (1, 4, 16, 64, 256, 1024):
    told.add(WRONG, k, advantage(k, theirs))
    told.add(
        OURS, k, advantage(k, lambda sketch, source, k=k: Offset(dc.Budget(epsilon, delta), k)(sketch, source).counts)
    )
    told.add(MOST, k, np.tanh(epsilon / 2) + delta)
for m in (1, 2, 4, 8, 16):
    # k counters of m + 1 each; the user's m items are others, and lower all of them m times; then more of item 0.
    k = 32
    crowd, own = np.tile(np.arange(k), m + 1), np.arange(k, k + m)
    plain, aware = [], []
    for more in (crowd, np.concatenate([crowd, own])):
        sketch = dc.MisraGries(k, seed=1)
        sketch.update(more)
        plain.append(sketch.estimate(0).value)
    for lists in ([[x] for x in crowd.tolist()], [*([x] for x in crowd.tolist()), own.tolist()]):
        sketch = dc.UserMisraGries(k, max_items_per_user=m, seed=1)
        sketch.update(lists)
        aware.append(sketch.estimate(0).value)
    users.add("Misra-Gries", m, abs(plain[0] - plain[1]))
    users.add("privacy-aware Misra-Gries", m, abs(aware[0] - aware[1]))
slack = 3 / np.sqrt(runs)
figure.says("their algorithm does not achieve the claimed privacy", told.mean(WRONG, 1024) > 0.5)
figure.says("(ours) keeps to it", bool(np.all(told.curve(OURS)[1] <= told.curve(MOST)[1] + slack)))
figure.says("the sensitivity of the MG sketch scales linearly in m", users.mean("Misra-Gries", 16) == 16)
figure.says("... that of the PAMG sketch does not", users.curve("privacy-aware Misra-Gries")[1].max() <= 1)
figure.save()
