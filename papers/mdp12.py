"""[MDP] Figure 12: accuracy over time on names (AOL, 49^6 of them), full stream; 100 parties, epsilon 4, share 0.005.

The paper says: PDCH's noise is larger than the real counts, so it is impractical; ours finds what is heavy. Agrees.
Differs: early, where the threshold is no more than the noise, ours lists thousands of rare names (100 parties' noise,
and samples that stand for 147 steps each). Without samples (Corollary 1), which the paper has for one party only, it
lists few from a third of the stream on: the blocks have the whole budget, and 1 step in 128 is missing.
"""

from mdp_streams import PARTIES, NamedPdch, columns_of, named, names_measured
from shared import Figure, aol, settings

chosen = settings(__doc__)
columns = columns_of(aol(chosen))
steps, epochs, width, runs = columns.shape[1], 128, 8, chosen.choose(5, 1)
title = f"[MDP] Figure 12: {PARTIES} parties, names out of 49^6, {steps:,} steps, ε = 4, {runs} run{'s'[: runs - 1]}"
figure = Figure("mdp12", title, chosen)
panels = {name: figure.panel(name, "step", name) for name in ("recall", "precision", "error")}
times = [steps * i // 6 for i in chosen.choose(range(1, 7), (1, 3, 6))]
rows: dict[tuple[str, int], list[dict[str, float]]] = {}
for run in range(runs):
    heard = {"ours": named(columns, epochs, width, run), "ours, no samples": named(columns, epochs, width, run, 0)}
    heard["PDCH"] = NamedPdch(columns, epochs, width, run)
    for time in times:
        for method, aggregator in heard.items():
            rows.setdefault((method, time), []).append(names_measured(aggregator.at(time), columns, time))
for (method, time), found in rows.items():
    for name, panel in panels.items():
        panel.add(method, time, [row[name] for row in found])
recall, precision = panels["recall"], panels["precision"]
figure.says("PDCH is impractical: its noise is larger than the real frequencies", recall.mean("PDCH") < 0.2)
figure.says("ours finds the heavy hitters", recall.mean("ours", times[-1]) > 0.8)
figure.says("most of what ours reports is heavy, at the end", precision.mean("ours", times[-1]) > 0.7)
figure.says("most of what ours reports is heavy, after a sixth", precision.mean("ours", times[0]) > 0.5,
            because="the threshold is then about the standard deviation, and 49,000 names are tried")  # fmt: skip
early = [precision.mean(method, times[0]) for method in ("ours", "ours, no samples")]
figure.says("(not in the paper) without samples early lists are better", early[1] > 10 * early[0])
figure.save()
