"""[CO] Figure 3: error of the top count over time, one item an event but any number allowed; Zipf over d = 100 items.

The paper says: MetaAlgo is best; sparseGumb with few switches runs out of them and its error grows linearly; more
switches mean more noise. All agree; without a margin 20 switches run out as one does. KnownBase pays sqrt(d). Ours is
the factorised noise for the same unbounded events.
"""

import numpy as np
from shared import Figure, settings, zipf

import discreet as dc
from discreet.noise import seeded_source

chosen = settings(__doc__)
trials, d, horizon = chosen.choose(1000, 12), 100, 1000
figure = Figure("co3", f"[CO] Figure 3: error of the top count, {trials} trials", chosen, columns=2)
law = figure.panel("the stream", "item", "probability", log_y=True)
for item in range(1, d + 1):
    law.add("Zipf", item, (1 / item) / (1 / np.arange(1, d + 1)).sum())
errors = figure.panel("|noisy top count - largest count|", "tick", "mean error", log_y=True)

METHODS = {
    "KnownBase": {"max_items_per_event": d, "mechanism": "tree"},
    "factorised (ours)": {"max_items_per_event": d, "mechanism": "factorised"},
    "MetaAlgo": {"mechanism": "meta"},
    "sparseGumb s=1": {"mechanism": "sparse", "switches": 1, "margin": 0},
    "sparseGumb s=5": {"mechanism": "sparse", "switches": 5, "margin": 100},
    "sparseGumb s=20": {"mechanism": "sparse", "switches": 20, "margin": 200},
    "s=20, no margin": {"mechanism": "sparse", "switches": 20, "margin": 0},
}


def trial(scheme, seed: int) -> np.ndarray:
    """The error at every tick of one stream."""
    items, source = zipf(1.0, horizon, d, seed), seeded_source(seed)
    counts, found = np.zeros(d, np.int64), np.zeros(horizon)
    for t, item in enumerate(items.tolist()):
        added = np.zeros(d, np.int64)
        added[item] = 1
        counts[item] += 1
        where, noisy = scheme.step(counts, added, t + 1, lambda: np.arange(d), source)
        found[t] = abs(int(noisy.max()) - counts.max()) if len(where) else counts.max()
    return found


mean = {}
for name, options in METHODS.items():
    histogram = dc.continual.Histogram(horizon, dc.Budget.zcdp(0.5), list(range(d)), k=1, **options)
    mean[name] = np.mean([trial(histogram.make_scheme(), seed) for seed in range(trials)], axis=0)
    for tick in [1, *range(25, horizon + 1, 25)]:
        errors.add(name, tick, mean[name][tick - 1])
theirs = {name: curve.mean() for name, curve in mean.items() if "ours" not in name}
figure.says("MetaAlgo outperforms the other algorithms", min(theirs, key=theirs.get) == "MetaAlgo")
s1 = mean["sparseGumb s=1"]
figure.says("with s = 1 the error seems to increase linearly", 1.5 < s1[900:].mean() / s1[400:500].mean() < 2.7)
early = slice(0, 100)
figure.says("the noise scales with sqrt(s), hurting accuracy",
            mean["sparseGumb s=1"][early].mean() < mean["sparseGumb s=20"][early].mean())  # fmt: skip
figure.save()
