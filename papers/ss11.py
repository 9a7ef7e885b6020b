"""[SS] Figure 11: Zipf streams, against the skew (a to c) and epsilon (d to f).

The paper says: precision is perfect; SpaceSaving's recall is perfect, MisraGries' improves as the skew falls,
CountSketch's is lowest; error matters at small epsilon only, and most for CountMin; counters' recall does not depend on
epsilon, that of sketches rises with it. All agree but MisraGries against the skew.
"""

import numpy as np
from shared import Figure, settings, zipf
from ss_methods import METHODS, fill, panels

chosen = settings(__doc__)
length, runs = chosen.choose(10**7, 10**6), chosen.choose(20, 5)
figure = Figure("ss11", f"[SS] Figure 11: Zipf, {length:,} events, k = 512, δ = 0.001", chosen)
skews = panels(figure, ("precision", "ARE", "recall"), "skew", False)
for skew in chosen.choose(np.arange(1.1, 2.8, 0.2).round(1).tolist(), (1.1, 1.5, 1.9, 2.7)):
    fill(skews, skew, zipf(skew, length, 2**20), 512, 1.0, runs)
budgets = panels(figure, ("precision", "ARE", "recall"), "ε", True)
for epsilon in chosen.choose((0.01, 0.05, 0.1, 0.5, 1.0, 2.0), (0.05, 0.2, 1.0)):
    fill(budgets, epsilon, zipf(1.3, length, 2**20), 512, epsilon, runs)

least = min(panel["precision"].curve(name)[1].min() for panel in (skews, budgets) for name in METHODS)
figure.says("precision remains perfect across all four algorithms", least > 0.95)
recall = skews["recall"]
figure.says("recall is perfect for SpaceSaving", recall.mean("SpaceSaving") > 0.99)
figure.says("recall is lowest for CountSketch", min(METHODS, key=recall.mean) == "CountSketch")
figure.says("recall improves for MisraGries as skew decreases",
            recall.curve("MisraGries")[1][0] > recall.curve("MisraGries")[1][-1],
            because="every counter lacks what was decremented, which is most where the skew is least")  # fmt: skip
error, by_epsilon = budgets["ARE"], budgets["recall"]
saving = error.curve("SpaceSaving")[1]
figure.says("for very small ε error is influenced by the noise", saving[0] > 3 * saving[-1])
figure.says("the CountMinSketch is most sensitive", error.curve("CountMin")[1][0] > max(
    error.curve(name)[1][0] for name in ("SpaceSaving", "CountSketch", "ours")))  # fmt: skip
smallest = by_epsilon.curve("CountMin")[1]
figure.says("the sketches' recall benefits as ε increases", smallest[-1] > smallest[0])
figure.says("recall is essentially unchanged for the counters", by_epsilon.curve("SpaceSaving")[1].min() > 0.97)
figure.save()
