"""[PAN] Theorem 7.2: in the sketching model the inner-product counter with ε = o(m) errs by at least n/3.

A participant sketches X before V is known. Whoever tells <V, X> a little better than a coin for a random V can rebuild
X (Goldreich and Levin): here from a randomised answer for each V, by a Walsh transform. Sketches with ε an answer count
well and are broken; with ε for all together they are safe and useless. Our counter answers once, when V is known.
"""

import numpy as np
from scipy.linalg import hadamard
from shared import Figure, settings

import discreet as dc
from discreet.noise import seeded_source
from discreet.published import InnerProductCounter

chosen = settings(__doc__)
m, n, runs = 10, 400, chosen.choose(400, 60)
figure = Figure("pan_sketches", f"[PAN] Theorem 7.2: vectors of {m} bits, {n} participants, {runs} runs", chosen, 2)
errors = figure.panel("the count", "ε", "mean error / n")
broken = figure.panel("the intruder", "ε", "P[X rebuilt from what is kept]")
SIGNS = hadamard(2**m, np.float32)  # (-1)^<V, X>, by the numbers of V and X
GOOD, SAFE, OURS, WATCHED = "sketch, ε for each answer", "sketch, ε for all answers", "our counter", 10


def answered(products: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Signs of inner products as bits, each flipped by randomised response with this ε."""
    return (products < 0) ^ (rng.random(products.shape) < 1 / (1 + np.exp(epsilon)))


def by_sketches(v: int, x: np.ndarray, epsilon: float, rng: np.random.Generator) -> tuple[float, float]:
    """The count from the answers for V, and how many X are rebuilt from the answers of some for every V."""
    p0, every = 1 / (1 + np.exp(epsilon)), answered(SIGNS[x[:WATCHED]], epsilon, rng)
    ones = every[:, v].sum() + answered(SIGNS[x[WATCHED:], v], epsilon, rng).sum()
    rebuilt = ((1 - 2 * every.astype(np.float32)) @ SIGNS).argmax(axis=1)
    return float(np.clip((ones - p0 * n) / (1 - 2 * p0), 0, n)), float(np.mean(rebuilt == x[:WATCHED]))


def by_stream(v: int, x: np.ndarray, epsilon: float, rng: np.random.Generator) -> tuple[float, float]:
    """The same of our counter; the intruder reads every state, so that the change of the count is the answer."""
    counter = InnerProductCounter(m, budget=dc.Budget(epsilon), source=seeded_source(int(rng.integers(2**31))))
    voted, rows = (v >> np.arange(m)) & 1, (x[:, None] >> np.arange(m)) & 1
    counter.vote(np.repeat(np.arange(m), 1000), np.repeat(voted, 1000))
    found = 0.0
    for row, vector in zip(rows[:WATCHED], x[:WATCHED], strict=True):
        before = counter.answers[2]
        counter.update(row[None])
        sign = 1 - 2 * (counter.answers[2] - before)
        found += rng.choice(np.flatnonzero(SIGNS[v] == sign)) == vector
    counter.update(rows[WATCHED:])
    return counter.release().value, found / WATCHED


for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0):
    # Two codewords differ in half of the answers: that many share ε.
    ways = {GOOD: (by_sketches, epsilon), SAFE: (by_sketches, epsilon / 2 ** (m - 1)), OURS: (by_stream, epsilon)}
    for name, (count, each) in ways.items():
        results = []
        for run in range(runs):
            rng = np.random.default_rng(run)
            v, odd = int(rng.integers(1, 2**m)), run % 2  # all products 0, or all 1: what must be told apart
            value, found = count(v, rng.choice(np.flatnonzero(SIGNS[v] == 1 - 2 * odd), n), each, rng)
            results.append((abs(value - n * odd) / n, found))
        errors.add(name, epsilon, float(np.mean(results, axis=0)[0]))
        broken.add(name, epsilon, float(np.mean(results, axis=0)[1]))
figure.says("sketches with ε = o(m) err by n/3 or more", errors.curve(SAFE)[1].min() > 1 / 3)
figure.says("those that err by less give X away", broken.mean(GOOD, 1.0) > 0.9 and errors.mean(GOOD, 1.0) < 1 / 3)
figure.says("(ours) a stream counts, and no X is found", errors.mean(OURS, 1.0) < 1 / 6 and broken.mean(OURS) < 0.02)
figure.save()
