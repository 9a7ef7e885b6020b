"""[LT] what an item needs to be released: cuts of the paper, of their exact calibration, and of ours.

The paper says: a threshold of 1 + 2 ln(3/delta)/epsilon, independent of k and n. Agrees; ours, with one noise more,
needs about 0.55 of it, and 1.15 of what unbounded memory needs. Users: the calibration of Theorem 23, with independent
noise, beside ours with one noise for all counters.
"""

import numpy as np
from shared import Figure, settings

from discreet.central.stability import stability_threshold
from discreet.privacy.calibration.correlated_noise import correlated_calibration
from discreet.privacy.calibration.offset_cut import offset_threshold
from discreet.privacy.calibration.sparse_histogram import gshm_calibration
from discreet.published.private_misra_gries import pmg_paper_threshold

chosen = settings(__doc__)
figure = Figure("lt_cuts", "[LT] the count that an item needs", chosen, columns=2)
rows = figure.panel("one event, δ = 1e-9", "ε", "cut", log_x=True, log_y=True)
for epsilon in np.geomspace(0.05, 4, chosen.choose(30, 8)).round(4).tolist():
    rows.add("PMG (paper)", epsilon, pmg_paper_threshold(epsilon, 1e-9))
    rows.add("ours", epsilon, 1 + offset_threshold(epsilon, 1e-9))
    rows.add("exact counts (unbounded memory)", epsilon, 1 + stability_threshold(epsilon, 1e-9))
users = figure.panel("user-level sketch, ε = 1, δ = 1e-6", "k", "cut", log_x=True, log_y=True)
for k in (16, 64, 256, 1024, 4096, 16384, 65536):
    users.add("independent noise (Theorem 23)", k, gshm_calibration(1.0, 1e-6, k)[1])
    users.add("shared noise (ours)", k, correlated_calibration(1.0, 1e-6, k)[2])

ratio = rows.curve("ours")[1] / rows.curve("PMG (paper)")[1]
figure.says("(ours) at most 0.62 of the paper's cut", ratio.max() <= 0.62)
above = rows.curve("ours")[1] / rows.curve("exact counts (unbounded memory)")[1]
figure.says("(ours) at most 1.25 of the cut with unbounded memory", above.max() <= 1.25)
shared = users.curve("shared noise (ours)")[1] / users.curve("independent noise (Theorem 23)")[1]
figure.says("(ours) at most 0.60 of the user-level cut from k = 64 on", shared[1:].max() <= 0.60)
figure.save()
