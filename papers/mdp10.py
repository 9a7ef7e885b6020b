"""[MDP] Figure 10: accuracy over time on clicks (Kosarak), window n/10; 100 parties, epsilon 4, share 0.005.

The paper says: PDCH's noise is larger than the real counts, so that rare items are reported; ours finds what is heavy.
Agrees. But a threshold of 495 is not much more than the standard deviation of ours (about 200 to 300, from 100 parties'
noise in 5 to 10 blocks), so that of 41,270 pages hundreds of rare ones pass it too: its precision is low here.
"""

import numpy as np
from mdp_streams import PARTIES, columns_of, measured, ours, pdch
from shared import Figure, kosarak, settings

chosen = settings(__doc__)
clicks = kosarak(chosen)
columns, universe = columns_of(clicks), int(clicks.max()) + 1
window = columns.shape[1] // 10
figure = Figure("mdp10", f"[MDP] Figure 10: {PARTIES} parties, window of {window} steps, ε = 4, share 0.005", chosen)
panels = {name: figure.panel(name, "step", name) for name in ("recall", "precision", "error")}
for run in range(chosen.choose(5, 1)):
    epoch, seen = max(1, window // 32), columns[:, : 2 * window]
    aggregators = {name: make(seen, universe, epoch, window, 8, run) for name, make in (("ours", ours), ("PDCH", pdch))}
    for time in [window * i // 6 for i in range(1, 7)]:
        for method, aggregator in aggregators.items():
            values = aggregator.estimate(np.arange(universe), time).values
            row = measured(values, columns, window, time)
            for name, panel in panels.items():
                panel.add(method, time, row[name])
recall, precision = panels["recall"], panels["precision"]
figure.says("PDCH is impractical: its noise is larger than the real frequencies", recall.mean("PDCH") < 0.2)
figure.says("ours finds the heavy hitters", recall.mean("ours") > 0.6)
figure.says("most of what ours reports is heavy", precision.mean("ours") > 0.5,
            because="the threshold is about two standard deviations, and 41,270 pages are tried")  # fmt: skip
figure.save()
