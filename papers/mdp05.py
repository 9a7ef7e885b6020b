"""[MDP] Figure 5: heavy hitters of clicks (Kosarak) against bytes; 100 parties, epsilon 2, share 0.001.

The paper says: Ours uses less communication than Ours-CS and Noisy-CS for the same accuracy. Agrees.
Without `--data` a Zipf stream over as many pages stands in for the 990,002 clicks; with it they are drawn anew from it.
"""

from mdp_methods import against_bytes, methods
from shared import Figure, kosarak, settings

chosen = settings(__doc__)
clicks = kosarak(chosen, chosen.choose(990_002, 300_000))
universe = int(clicks.max()) + 1
figure = Figure("mdp05", f"[MDP] Figure 5: {len(clicks):,} clicks, 100 parties, ε = 2, share 0.001", chosen)
against_bytes(figure, lambda budget, width, s: methods(budget, universe, width, s), clicks,
              chosen.choose([50, 100, 200, 500, 1000], [100, 500, 1000]), chosen.choose(5, 1), 1.0)  # fmt: skip
figure.save()
