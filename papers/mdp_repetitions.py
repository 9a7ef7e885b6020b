"""[MDP] section 3.3: heavy items sent several times, and the median of the sums: what the repetitions buy.

The paper says: noise and sampling are repeated log(1/β)/2 times with a part of epsilon each, and the median of the
estimates errs by more than its bound with probability β only. That bound grows with the repetitions, as each has so
many times the noise. At one budget errors are smallest, also in the tail, and messages shortest without any; sampling
r times less does not make up for it. `Separation` has none: the noises of k parties add up to few standard deviations
by themselves (Bernstein: sqrt(log(1/β)) of them, where repetitions grow each by log(1/β)), and a median has every
aggregator keep r sums in place of one. The paper needs it because its proof bounds one sum by Chebyshev's inequality.
"""

import numpy as np
from shared import Figure, settings, zipf

import discreet as dc
from discreet.multiparty.party_sketches import with_noise
from discreet.multiparty.wire import write_entries
from discreet.noise import seeded_source

chosen = settings(__doc__)
parties, each, runs, top = 100, chosen.choose(10_000, 1_000), chosen.choose(100, 20), 5
budget, UNIVERSE, MOST = dc.Budget(2.0), 2**12, 10**7
SAME, LESS = "the same sampling", "sampled r times less"
figure = Figure("mdp_repetitions", f"[MDP] 3.3: {parties} parties of {each:,} items, ε = 2, {runs} runs", chosen)
columns = np.split(zipf(1.5, parties * each, UNIVERSE), parties)
counted = [np.unique(column, return_counts=True) for column in columns]
truth = np.bincount(np.concatenate(columns), minlength=UNIVERSE)
frequent = np.argsort(-truth)[:top]


def entries(protocol, heavy, true, times: int, source) -> tuple[np.ndarray, int]:
    """What a party says of the frequent items in every repetition, each with its part of epsilon; and its bytes."""
    told, size = np.zeros((times, top)), 0
    for repetition in told:
        noisy = with_noise(true, times * protocol.heavy_scale, MOST, source)
        places, numbers = protocol._sampled(heavy, noisy, source)
        size += len(write_entries(places, numbers))
        beyond = np.where(numbers >= 0, numbers, -numbers - 1) + protocol.items_per_entry
        for place, value in zip(places.tolist(), np.where(numbers >= 0, beyond, -beyond).tolist(), strict=True):
            repetition[frequent == place] = value
    return told, size


panels = {}
for name, y in (("rms error", "rms error"), ("95th percentile", "error"), ("messages", "bytes of heavy items")):
    panels[name] = figure.panel(name, "repetitions r", y, log_y=True)
for times in (1, 3, 5, 9):
    for name, factor in ((SAME, 1), (LESS, times)):
        options = {"items_per_column": 16.0, "items_per_entry": 16 * factor, "rows": 1, "max_items": MOST}
        protocol, off, sizes = dc.multiparty.Separation("r", budget, UNIVERSE, **options), [], []
        for run in range(runs):
            source, sums, sent, right = seeded_source(run), np.zeros((times, top)), 0, np.zeros(top)
            for found, counts in counted:
                heavy = protocol.choose(found.astype(np.int64), counts, source)
                true = np.bincount(found, counts, UNIVERSE).astype(np.int64)[heavy]
                told, size = entries(protocol, heavy, true, times, source)
                sums, sent = sums + told, sent + size
                right += [true[heavy == item].sum() for item in frequent]
            off.append(np.median(sums, axis=0) - right)  # of what is heavy somewhere, as the paper's bound is
            sizes.append(sent)
        panels["rms error"].add(name, times, float(np.sqrt(np.mean(np.square(off)))))
        panels["95th percentile"].add(name, times, float(np.percentile(np.abs(off), 95)))
        panels["messages"].add(name, times, float(np.mean(sizes)))
rms, tail, size = panels.values()
figure.says("the bound grows with the repetitions", rms.mean(SAME, 9) > 2 * rms.mean(SAME, 1))
figure.says("the success probability is amplified", min(tail.mean(SAME, 3), tail.mean(LESS, 3)) < tail.mean(SAME, 1),
            because="at one budget each of r repetitions has r times the noise")  # fmt: skip
figure.says("r repetitions take r times the bytes", size.mean(SAME, 5) > 4 * size.mean(SAME, 1))
figure.save()
