"""[SS] Figure 12: packets (CAIDA 2019, or a stand-in: Zipf 1.1 over 312,000 addresses), against k, epsilon and k~/k.

The paper says: precision near 1, with a few false positives of SpaceSaving, whose cut is T/k - gamma; it errs less than
0.04 throughout; MisraGries' recall gains from larger tables and sketches lose with k; epsilon hardly matters; a larger
k~ improves everything and costs counters no time. All agree; false positives appear where gamma is not small beside
T/k (k = 4,096 of two million packets). `--data FILE` takes the real addresses, first on each line.
"""

from shared import Figure, caida, settings
from ss_methods import fill, panels

chosen = settings(__doc__)
runs = chosen.choose(20, 5)
packets = caida(chosen, chosen.choose(26_600_000, 2_000_000))
figure = Figure("ss12", f"[SS] Figure 12: {len(packets):,} packets, δ = 0.001", chosen)
by_k = panels(figure, ("precision", "ARE", "recall"), "k", True)
for k in chosen.choose((64, 128, 256, 512, 1024, 2048), (64, 256, 1024, 4096)):
    fill(by_k, k, packets, k, 1.0, runs, relaxed=True)
budgets = panels(figure, ("precision", "ARE", "recall"), "ε", True)
for epsilon in chosen.choose((0.01, 0.05, 0.1, 0.5, 1.0, 2.0), (0.05, 0.2, 1.0)):
    fill(budgets, epsilon, packets, 256, epsilon, runs)
factors = panels(figure, ("update", "ARE", "recall"), "k~/k", False)
for factor in chosen.choose((1, 2, 3, 4, 6, 8), (1, 2, 4)):
    fill(factors, factor, packets, 256, 1.0, runs, factor)

least = min(by_k["precision"].mean(name) for name in ("SpaceSaving", "MisraGries", "ours"))
figure.says("precision is near-perfect across all methods", least > 0.95)
figure.says("... with SpaceSaving admitting a small number of false positives",
            by_k["precision"].curve("SpaceSaving")[1].min() < 1)  # fmt: skip
figure.says("SpaceSaving maintains error below 0.04", by_k["ARE"].curve("SpaceSaving")[1].max() < 0.04)
misra, recall, small, wide = (
    by_k["recall"].curve("MisraGries")[1],
    by_k["recall"],
    budgets["recall"].curve("CountMin")[1],
    factors["recall"],
)
figure.says(
    "MisraGries benefits from larger tables", recall.curve("MisraGries")[1][-1] > recall.curve("MisraGries")[1][0]
)
figure.says("linear sketches degrade as k increases", recall.curve("CountMin")[1][-1] < recall.curve("CountMin")[1][0])
figure.says("recall is impacted only at very small budgets", small[0] < small[-1])
for name in ("SpaceSaving", "MisraGries"):
    error = factors["ARE"].curve(name)[1]
    figure.says(f"recall rises with k~ ({name})", wide.curve(name)[1][-1] >= wide.curve(name)[1][0])
    figure.says(f"error decreases with k~ ({name})", error[-1] < error[0])
figure.says("(ours) recall of all heavy hitters at every k", recall.curve("ours")[1].min() > 0.99)
figure.save()
