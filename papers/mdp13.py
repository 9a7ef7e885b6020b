"""[MDP] Figure 13: accuracy against bytes on names (AOL, 49^6 of them), at the end of a full stream.

The paper says: a larger s does not always help ours, as more epochs mean more noise, and PDCH is impractical. Agrees:
recall and precision go up and down by a name or two of 15. (The mean error of what is found still falls, by a third for
sixty times the bytes and not steadily: a sketch has 8 columns for every epoch, so more epochs are fewer collisions.)
"""

import numpy as np
from mdp_streams import PARTIES, NamedPdch, columns_of, named, names_measured
from shared import Figure, aol, settings

chosen = settings(__doc__)
columns, width, runs = columns_of(aol(chosen)), 8, chosen.choose(3, 1)
steps = columns.shape[1]
title = f"[MDP] Figure 13: {PARTIES} parties, names out of 49^6, {steps:,} steps, ε = 4, {runs} run{'s'[: runs - 1]}"
figure = Figure("mdp13", title, chosen)
panels = {
    name: figure.panel(name, "bytes of all messages", name, log_x=True) for name in ("recall", "precision", "error")
}
for epochs in chosen.choose((16, 32, 64, 128, 256, 512), (16, 64, 512)):
    rows: dict[str, list[dict[str, float]]] = {}
    for run in range(runs):
        heard = {"ours": named(columns, epochs, width, run), "ours, no samples": named(columns, epochs, width, run, 0)}
        if run == 0 and (chosen.full or epochs < 512):  # minutes, for a method that finds nothing
            heard["PDCH"] = NamedPdch(columns, epochs, width)
        for method, aggregator in heard.items():
            row = names_measured(aggregator.at(steps), columns, steps)
            rows.setdefault(method, []).append({**row, "bytes": aggregator.bytes_received})
    for method, found in rows.items():
        for name, panel in panels.items():
            panel.add(method, float(np.mean([row["bytes"] for row in found])), [row[name] for row in found])
falls = [(np.diff(panels[name].curve("ours")[1]) < 0).any() for name in ("recall", "precision")]
figure.says("increasing s does not always result in better accuracy", any(falls))
figure.says("PDCH is impractical", panels["recall"].mean("PDCH") < 0.2 < panels["recall"].mean("ours"))
figure.save()
