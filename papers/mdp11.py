"""[MDP] Figure 11: accuracy against bytes on clicks (Kosarak), at the end of a window of n/10 steps.

The paper says: a larger s does not always help ours, as more epochs mean more noise, and PDCH can get worse. Agrees.
Epochs and columns are those of `plan` for so many bytes.
"""

import numpy as np
from mdp_streams import PARTIES, accuracy, columns_of, of_window
from shared import Figure, kosarak, settings

chosen = settings(__doc__)
clicks = kosarak(chosen)
columns, universe = columns_of(clicks), int(clicks.max()) + 1
window, runs = columns.shape[1] // 10, chosen.choose(5, 2)
title = f"[MDP] Figure 11: {PARTIES} parties, window of {window} steps, ε = 4, share 0.005, {runs} runs"
figure = Figure("mdp11", title, chosen)
panels = {
    name: figure.panel(name, "bytes of all messages", name, log_x=True, log_y=name == "error")
    for name in ("recall", "precision", "error")
}
for size in chosen.choose((500, 1000, 2500, 5000, 10_000, 20_000), (500, 2500, 10_000)):
    streams = of_window(columns[:, :window], universe, window, size, runs)
    accuracy(panels, streams, columns, window, window, lambda one: one.bytes_received)
falls = [(np.diff(panels[name].curve(method)[1]) < 0).any() for name in ("recall", "precision") for method in streams]
figure.says("increasing s does not always result in better accuracy", any(falls))
figure.says("PDCH is impractical", panels["recall"].mean("PDCH") < 0.2 < panels["recall"].mean("ours"))
best = {name: panels["precision"].curve(name)[1].max() for name in streams}
figure.says("most of what ours reports is heavy, with bytes enough and without samples", best["ours, no samples"] > 0.7)
figure.save()
