"""[PAN] section 4, measured: the fraction of the universe seen at least k = 8 times, against the sample; epsilon 1.

The paper's recursion (its Figure 3, corrected) multiplies its noise from level to level: at these sizes it errs by more
than 1. Ours reads bits together with their counters, or takes two cropped means; either lies between the fractions for
k and k/2 on every stream.
"""

import numpy as np
from pan_streams import COUNTS, UNIVERSE, rms
from shared import Figure, settings

import discreet as dc
from discreet.pan import HeavyFraction

chosen = settings(__doc__)
runs = chosen.choose(100, 6)
figure = Figure("pan_heavy", f"[PAN] 4: fraction seen at least 8 times, {runs} runs", chosen)
panel = figure.panel("ε = 1, universe 100,000", "sample m", "rms error", log_x=True, log_y=True)
ramp, exact = float(np.clip((COUNTS - 4) / 4, 0, 1).mean()), float((COUNTS >= 8).mean())
METHODS = {
    "counters (ours)": ({}, ramp),
    "two tables (ours)": ({"method": "two_tables"}, ramp),
    "recursion, tight coins": ({"method": "ladder", "max_count": 2**14, "response": "tight"}, exact),
    "recursion, paper's coins": ({"method": "ladder", "max_count": 2**14, "response": "paper"}, exact),
}
for name, (options, truth) in METHODS.items():
    for m in (4_000, 16_000, 64_000):
        fixed = {"budget": dc.Budget(1.0), "sample_size": m, **options}
        panel.add(name, m, rms(lambda s, o=fixed: HeavyFraction(UNIVERSE, 8, source=s, **o), truth, runs))
figure.says("the recursion tells the fraction of heavy hitters", panel.mean("recursion, paper's coins", 64_000) < 0.1,
            because="its noise is multiplied from level to level")  # fmt: skip
ours = panel.mean("counters (ours)")
figure.says("(ours) at least 40 times less error", 40 * ours < panel.mean("recursion, tight coins"))
figure.says("(ours) counters err less than two tables", ours < panel.mean("two tables (ours)"))
figure.save()
