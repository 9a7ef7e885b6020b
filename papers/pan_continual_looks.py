"""[PAN] Theorem 6.3: ε-pan-private with a look after every update, density errs by Ω(n), P at least 1/2 - sqrt(2ε).

The proof: the states on i, i, ..., i and on n random elements are within sqrt(2ε) of each other; their densities are 1
and about 0.63 n. Here our Density, which is re-randomised after each of n announced looks, with ε of all looks from too
little to far too much. The intruder sees every state and decides, by likelihood, whether i or j came all the time.
Where the estimate is good the intruder wins; where ε is kept small it gains nothing, and the density is lost.
"""

import warnings

import numpy as np
from shared import Figure, settings

import discreet as dc
from discreet.noise import seeded_source
from discreet.pan import Density

warnings.simplefilter("ignore")  # of a large ε, which is the point here
chosen = settings(__doc__)
n, runs = 16, chosen.choose(2000, 400)
figure = Figure("pan_continual_looks", f"[PAN] Theorem 6.3: {n} updates, a look after each, {runs} runs", chosen, 2)
lost = figure.panel("the estimate", "ε of all looks", "P[error ≥ n/4]", log_x=True)
won = figure.panel("the intruder", "ε of all looks", "advantage, i against j", log_x=True)
OURS, LEAST, MOST = "our Density", "at least (Theorem 6.3)", "what ε allows"


def watched(total: float, stream: np.ndarray, seed: int) -> tuple[float, np.ndarray, Density]:
    """How many elements the release tells, and the bits at every look."""
    options = {"output_share": 0.5, "announced_intrusions": n, "source": seeded_source(seed)}
    state, looks = Density(n, budget=dc.Budget(2 * total), **options), []
    for item in stream:
        state.update([int(item)])
        looks.append([bits[0] for _, bits in state.seen_by_intruder()])
        state.announce_intrusion()
    return n * state.release().value, np.array(looks), state


def evidence(looks: np.ndarray, cell: int, state: Density) -> float:
    """log P[bits of this cell | it came every time] / P[... | it never came], with the laws that everyone knows."""
    coins, total = [float(p) for p in state.response.after(0)], 0.0
    for step, bits in enumerate(looks):
        came, stayed = float(state.response.after(step)[1]), coins[looks[step - 1][cell] if step else 0]
        total += float(np.log(came / stayed) if bits[cell] else np.log((1 - came) / (1 - stayed)))
    return total


for total in (0.05, 0.1, 0.5, 2.0, 8.0, 32.0, 64.0, 128.0):
    failures, wins = [], []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        i, j = rng.permutation(n)[:2]
        told, looks, state = watched(total, np.full(n, i), seed)
        wins.append(np.sign(evidence(looks, i, state) - evidence(looks, j, state)))
        mixed = rng.integers(0, n, n)
        others, _, _ = watched(total, mixed, seed + runs)
        failures += [abs(told - 1) >= n / 4, abs(others - len(np.unique(mixed))) >= n / 4]
    lost.add(OURS, total, float(np.mean(failures)))
    lost.add(LEAST, total, max(0.5 - np.sqrt(2 * total), 0.0))
    won.add(OURS, total, float(np.mean(wins)))
    won.add(MOST, total, float(np.tanh(total)))  # i and j: two elements, 2ε
failed, advantage, slack = lost.curve(OURS)[1], won.curve(OURS)[1], 4 / np.sqrt(runs)
figure.says("error Ω(n) with probability at least 1/2 - sqrt(2ε)", bool(np.all(failed >= lost.curve(LEAST)[1])))
good = advantage[failed < 0.1]
figure.says("a state that is good (9 of 10 runs) gives the stream away", bool(len(good) and good.min() > 0.9))
figure.says("(ours) kept to ε, the intruder gains what ε allows", bool(np.all(advantage <= won.curve(MOST)[1] + slack)))
figure.save()
