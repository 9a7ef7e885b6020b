"""[LT] Theorem 14 and its competitors: error of what is released against k, epsilon, delta and the length.

The paper says (it has no figures): the noise of PMG does not grow with k, that of Chan et al. does; its error is the
sketch's n/(k+1) plus O(log(1/delta)/epsilon). Agrees. Ours, the offset release, does without the sketch's bias.
"""

import numpy as np
from shared import Figure, settings, zipf

import discreet as dc
from discreet.central import Offset, Stability
from discreet.noise import seeded_source
from discreet.published import ChanMisraGries, PrivateMisraGries

chosen = settings(__doc__)
runs, length = chosen.choose(20, 5), chosen.choose(10**7, 10**6)
figure = Figure("lt_error", "[LT] largest error over the 100 most frequent items, Zipf 1.1", chosen, columns=2)
METHODS = {
    "PMG": lambda b, k: PrivateMisraGries(b, k, calibration="paper"),
    "Chan et al.": ChanMisraGries,
    "ours": Offset,
}


def largest(release, truth: np.ndarray) -> float:
    """The largest error of the 100 most frequent items; what is not released counts as 0."""
    found = dict(zip(release.items, release.counts.tolist(), strict=True))
    return float(max(abs(found.get(int(item), 0) - truth[item]) for item in np.argsort(-truth)[:100]))


def measure(panel, x: float, n: int = length, k: int = 1024, epsilon: float = 1.0, delta: float = 1e-6) -> None:
    events = zipf(1.1, n, 10**6)
    truth, budget = np.bincount(events), dc.Budget(epsilon, delta)
    sketch, exact = dc.MisraGries(k, seed=1), dc.ExactCounts(seed=1)
    sketch.update(events)
    exact.update(events)
    made = {name: (make(budget, k), sketch) for name, make in METHODS.items()}
    made["exact counts (unbounded memory)"] = Stability(budget), exact
    for name, (mechanism, summary) in made.items():
        panel.add(name, x, [largest(mechanism(summary, seeded_source(run)), truth) for run in range(runs)])


panels = {x: figure.panel(f"against {x}", x, "largest error", log_x=True, log_y=True) for x in "kεδn"}
for k in chosen.choose((64, 256, 1024, 4096, 16384, 65536), (64, 1024, 16384)):
    measure(panels["k"], k, k=k)
for epsilon in chosen.choose((0.1, 0.3, 1.0, 3.0), (0.1, 1.0)):
    measure(panels["ε"], epsilon, epsilon=epsilon)
for delta in chosen.choose((1e-12, 1e-9, 1e-6, 1e-3), (1e-9, 1e-3)):
    measure(panels["δ"], delta, delta=delta)
for n in chosen.choose((10**5, 10**6, 10**7, 10**8), (10**5, 10**6)):
    measure(panels["n"], n, n=n)

by_k = panels["k"]
largest_k = float(by_k.curve("ours")[0][-1])
figure.says(
    "PMG: the noise does not grow with k, so a larger sketch is better",
    by_k.curve("PMG")[1][-1] < by_k.curve("PMG")[1][0],
)
figure.says("Chan et al. add noise that grows with k",
            by_k.mean("Chan et al.", largest_k) > 10 * by_k.mean("PMG", largest_k))  # fmt: skip
figure.says("(ours) at most the error of PMG everywhere", all(
    np.all(panel.curve("ours")[1] <= 1.05 * panel.curve("PMG")[1]) for panel in panels.values()))  # fmt: skip
figure.save()
