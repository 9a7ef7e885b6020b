"""[MDP] Figure 9: accuracy and bytes of Ours against the number of parties, clicks, epsilon 2, share 0.001.

The paper says: bytes grow sublinearly with the parties, and accuracy falls slightly. Both agree.
"""

import numpy as np
from mdp_methods import fill, listed, methods
from shared import Figure, kosarak, settings

import discreet as dc

chosen = settings(__doc__)
clicks, share = kosarak(chosen, chosen.choose(990_002, 300_000)), 0.001
universe = int(clicks.max()) + 1
figure = Figure("mdp09", f"[MDP] Figure 9: {len(clicks):,} clicks, ε = 2, share {share:g}", chosen, columns=2)
panels = {
    "F-score": figure.panel("accuracy", "parties", "F-score", log_x=True),
    "bytes": figure.panel("communication", "parties", "bytes of all messages", log_x=True, log_y=True),
}
for parties in chosen.choose((100, 200, 400, 800, 1600), (100, 400, 1600)):
    s = 5 / (share * np.sqrt(parties))
    make = methods(dc.Budget(2.0), universe, max(1.0, len(clicks) / parties / s), 1)["Ours"]
    fill(panels, "Ours", parties, listed(make, clicks, parties, share, chosen.choose(5, 1)))
sizes, scores = panels["bytes"].curve("Ours")[1], panels["F-score"].curve("Ours")[1]
figure.says("the communication cost grows sublinearly with k", sizes[-1] / sizes[0] < 0.8 * 16)
figure.says("accuracy degrades as k increases", scores[-1] < scores[0])
figure.save()
