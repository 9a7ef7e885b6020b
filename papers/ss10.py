"""[SS] Figure 10: Zipf streams, against k (a to e) and throughput against the skew (f).

The paper says: sketches take much more memory than counters (depth above 20); counters are far faster; recall is
perfect for SpaceSaving, improves with k for MisraGries, and falls for sketches; precision is 1.0; MisraGries errs most.
All agree but what rests on CountSketch's envelope: the paper takes it from the stream's F2, which is private; without
it CountSketch lists little.
"""

import numpy as np
from shared import Figure, settings, zipf
from ss_methods import fill, panels

chosen = settings(__doc__)
length, runs = chosen.choose(10**7, 10**6), chosen.choose(20, 5)
figure = Figure("ss10", f"[SS] Figure 10: Zipf 1.3, {length:,} events, ε = 1, δ = 0.001", chosen)
by_k = panels(figure, ("memory", "update", "recall", "precision", "ARE"), "k", True)
for k in chosen.choose((64, 128, 256, 512, 1024, 2048, 4096), (64, 256, 1024, 4096)):
    fill(by_k, k, zipf(1.3, length, 2**20), k, 1.0, runs)
skews = panels(figure, ("update",), "skew", False)
for skew in chosen.choose(np.arange(1.1, 2.8, 0.2).round(1).tolist(), (1.1, 1.9, 2.7)):
    fill(skews, skew, zipf(skew, length, 2**20), 256, 1.0, 1)

memory, recall, error = by_k["memory"], by_k["recall"], by_k["ARE"]
ratio = memory.mean("CountMin") / memory.mean("SpaceSaving")
figure.says("linear sketches consume significantly more memory than the counters", ratio > 4)
figure.says("... roughly a factor of six", 4 < ratio < 9, because="a counter takes 8 to 24 bytes here")
slowest = max(by_k["update"].mean(name) for name in ("SpaceSaving", "MisraGries"))
figure.says(
    "throughput favors the counter-based methods by a wide margin", by_k["update"].mean("CountMin") > 4 * slowest
)
figure.says("recall is perfect for SpaceSaving", recall.mean("SpaceSaving") > 0.99)
figure.says(
    "recall improves steadily for MisraGries", recall.curve("MisraGries")[1][-1] > recall.curve("MisraGries")[1][0]
)
figure.says("recall degrades for CountMin", recall.curve("CountMin")[1][-1] < recall.curve("CountMin")[1][0])
figure.says("CountSketch lists most heavy hitters while k is small", recall.curve("CountSketch")[1][0] > 0.5,
            because="an envelope by the data's F2 is not private; one by T is wide at every k")  # fmt: skip
figure.says("precision is uniformly 1.0", min(by_k["precision"].curve(name)[1].min() for name in
            ("SpaceSaving", "MisraGries", "CountMin", "CountSketch")) > 0.95)  # fmt: skip
figure.says("CountMinSketch has a consistent edge over CountSketch in error",
            error.mean("CountMin") < error.mean("CountSketch"),
            because="the smallest of many noisy cells is biased, and CountSketch lists only the largest")  # fmt: skip
others = [error.mean(name) for name in ("SpaceSaving", "CountMin", "CountSketch")]
figure.says("MisraGries exhibits the largest error", error.mean("MisraGries") > max(others))
figure.says("(ours) perfect recall, and no more error than SpaceSaving",
            recall.mean("ours") > 0.99 and error.mean("ours") < 1.1 * error.mean("SpaceSaving"))  # fmt: skip
figure.save()
