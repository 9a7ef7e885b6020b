"""[MDP] Figures 7 and 8: accuracy of Ours against the share phi, for epsilon 0.5, 2 and 8, on clicks and on names.

The paper says: accuracy is usually high for various shares, and errors are smaller where epsilon is larger. Agrees;
shares of 1e-4 are below the noise at epsilon 0.5, as their count is (100 of a million).
"""

from mdp_methods import ACCURACY, by_levels, fill, listed, methods
from shared import Figure, aol, kosarak, settings

import discreet as dc

chosen = settings(__doc__)
runs, shares = chosen.choose((5, (1e-4, 5e-4, 1e-3, 5e-3, 1e-2)), (1, (1e-3, 1e-2)))
clicks, names = kosarak(chosen), aol(chosen)
universe = int(clicks.max()) + 1
for number, items, unequal in ((7, clicks, 1.0), (8, names, 10.0)):
    kind = "clicks" if number == 7 else "names out of 49^6"
    figure = Figure(f"mdp{number:02}", f"[MDP] Figure {number}: {len(items):,} {kind}, 100 parties", chosen)
    panels = {name: figure.panel(name, "share φ", name, log_x=True) for name in ACCURACY[:4]}
    for epsilon in (0.5, 2.0, 8.0):
        for share in shares:
            width = max(1.0, len(items) / 100 / (5 / (share * 10)))  # s = 5 / (phi sqrt(k))
            budget = dc.Budget(epsilon)
            make = methods(budget, universe, width, 1)["Ours"] if number == 7 else by_levels(budget, width, 1)["Ours"]
            fill(panels, f"ε = {epsilon:g}", share, listed(make, items, 100, share, runs, unequal))
    figure.says("high accuracy in practice (share 0.01, epsilon 2 and 8)",
                min(panels["F-score"].mean(f"ε = {epsilon}", 1e-2) for epsilon in (2, 8)) > 0.9)  # fmt: skip
    small, _, large = (panels["error"].mean(f"ε = {epsilon:g}", 1e-3) for epsilon in (0.5, 2.0, 8.0))
    figure.says("the error becomes smaller when epsilon is larger (0.5 to 8)", large < 0.7 * small)
    figure.save()
