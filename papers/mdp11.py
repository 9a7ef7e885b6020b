"""[MDP] Figure 11: accuracy against bytes on clicks (Kosarak), at the end of a window of n/10 steps.

The paper says: a larger s does not always help ours, as more epochs mean more noise, and PDCH can get worse. Agrees.
"""

import numpy as np
from mdp_streams import PARTIES, columns_of, measured, ours, pdch
from shared import Figure, kosarak, settings

chosen = settings(__doc__)
clicks = kosarak(chosen)
columns, universe = columns_of(clicks), int(clicks.max()) + 1
window = columns.shape[1] // 10
figure = Figure("mdp11", f"[MDP] Figure 11: {PARTIES} parties, window of {window} steps, ε = 4, share 0.005", chosen)
panels = {
    name: figure.panel(name, "bytes of all messages", name, log_x=True) for name in ("recall", "precision", "error")
}
for epochs in chosen.choose((4, 8, 16, 32, 64), (8, 32)):
    epoch = window // epochs
    for method, make in (("ours", ours), ("PDCH", pdch)):
        aggregator = make(columns[:, :window], universe, epoch, window, 8)
        row = measured(aggregator.estimate(np.arange(universe), window).values, columns, window, window)
        for name, panel in panels.items():
            panel.add(method, aggregator.bytes_received, row[name])
errors = panels["error"].curve("ours")[1]
figure.says("increasing s does not always result in better accuracy", errors[-1] > 0.9 * errors.min())
figure.says("PDCH is impractical", panels["recall"].mean("PDCH") < 0.2 < panels["recall"].mean("ours"))
figure.save()
