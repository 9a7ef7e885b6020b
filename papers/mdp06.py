"""[MDP] Figure 6: heavy hitters of names out of 49^6 (AOL) against bytes; 100 unequal parties, epsilon 2, share 0.001.

The paper says: Ours uses less communication than the others for the same accuracy, by more where the data are skewed.
Agrees. Without `--data` as many clicks over as many names, Zipf 1.0, take the place of AOL's.
"""

from mdp_methods import against_bytes, by_levels
from shared import Figure, aol, settings

chosen = settings(__doc__)
clicks = aol(chosen)
figure = Figure("mdp06", f"[MDP] Figure 6: {len(clicks):,} clicks on 49^6 names, 100 parties, ε = 2", chosen)
against_bytes(figure, by_levels, clicks, [100, 200, 400, 800], chosen.choose(5, 1), 10.0)
figure.save()
