"""[PAN] sections 3 and 3.1, measured: density and cropped mean against the sample, epsilon and intrusions.

The paper says (it has no figures): errors fall like 1/sqrt(m) and like 1/epsilon, the cropped mean's grows like t, and
every announced intrusion adds noise. All agree. Our coins, the tight pair, have about half of the error of the paper's.
"""

import numpy as np
from pan_streams import COINS, COUNTS, UNIVERSE, rms
from shared import Figure, settings

import discreet as dc
from discreet.pan import CroppedMean, Density

chosen = settings(__doc__)
runs, m = chosen.choose(200, 40), 16_000
figure = Figure("pan_density", f"[PAN] 3, 3.1: root-mean-square error of {runs} runs, universe 100,000", chosen, 2)
seen = float((COUNTS > 0).mean())


def density(epsilon: float = 1.0, size: int = m, **options):
    return lambda source: Density(UNIVERSE, budget=dc.Budget(epsilon), sample_size=size, source=source, **options)


by_m = figure.panel("density, ε = 1", "sample m", "rms error", log_x=True, log_y=True)
by_epsilon = figure.panel("density, m = 16,000", "ε", "rms error", log_x=True, log_y=True)
for name, coins in COINS.items():
    for size in (1_000, 4_000, 16_000, 64_000):
        by_m.add(name, size, rms(density(size=size, response=coins), seen, runs))
    for epsilon in (0.25, 0.5, 1.0):
        by_epsilon.add(name, epsilon, rms(density(epsilon, response=coins), seen, runs))
cropped = figure.panel("t-cropped mean, m = 16,000, ε = 1", "t", "rms error", log_x=True, log_y=True)
for t in (1, 4, 16):
    truth = float(np.minimum(COUNTS, t).mean())
    error = rms(lambda s, t=t: CroppedMean(UNIVERSE, t, budget=dc.Budget(1.0), sample_size=m, source=s), truth, runs)
    cropped.add("tight coins (ours)", t, error)
looks = figure.panel("density, ε = 1 for each look", "announced intrusions", "rms error", log_y=True)
for announced in range(4):
    epsilon = 1.1 + announced  # a tenth for the output
    make = density(epsilon, announced_intrusions=announced, output_share=0.1 / epsilon)
    looks.add("tight coins (ours)", announced, rms(make, seen, runs, announced))

ours, theirs = by_m.curve("tight coins (ours)")[1], by_m.curve("paper's coins")[1]
figure.says("64 times the sample, an eighth of the error", 4 < theirs[0] / theirs[-1] < 16)
figure.says("(ours) tight coins: about half of the error", 0.3 < np.mean(ours / theirs) < 0.8)
errors, by_t = by_epsilon.curve("paper's coins")[1], cropped.curve("tight coins (ours)")[1]
figure.says("a quarter of epsilon, about four times the error", 2.5 < errors[0] / errors[-1] < 7)
figure.says("the error of the cropped mean grows like t", 7 < by_t[-1] / by_t[0] < 32)
figure.says(
    "every intrusion costs accuracy",
    looks.curve("tight coins (ours)")[1][-1] > 2 * looks.curve("tight coins (ours)")[1][0],
)
figure.save()
