"""The stream that the scripts on [PAN] share, the error of an estimator on it, and a state that forgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.noise import RandomSource, seeded_source

UNIVERSE = 100_000
_rng = np.random.default_rng(1)
COUNTS = np.minimum(_rng.zipf(1.5, UNIVERSE), 64) * (_rng.random(UNIVERSE) < 0.7)
EVENTS = _rng.permutation(np.repeat(np.arange(UNIVERSE), COUNTS))
COINS = {"paper's coins": "paper", "tight coins (ours)": "tight"}


def rms(make: Callable[[RandomSource], Any], truth: float, runs: int, announced: int = 0) -> float:
    """Root-mean-square error of the unbiased estimates; the stream is cut at every announced intrusion."""
    off = []
    for run in range(runs):
        estimator = make(seeded_source(run))
        *before, last = np.array_split(EVENTS, announced + 1)
        for part in before:
            estimator.update(part)
            estimator.announce_intrusion()
        estimator.update(last)
        off.append(estimator.release().unbiased - truth)
    return float(np.sqrt(np.mean(np.square(off))))


class Forgetful:
    """Bits of n elements; at every update each is drawn as unseen with probability `rate`, then the element's as seen.

    What one element can change every element can change, as [PAN] Theorem 6.1 wants it.
    """

    def __init__(self, n: int, unseen: float, seen: float, rate: float, seed: int) -> None:
        self.unseen, self.seen, self.rate, self.rng = unseen, seen, rate, np.random.default_rng(seed)
        self.bits = self.rng.random(n) < unseen

    def update(self, items: np.ndarray) -> None:
        for item in items:
            forgotten = self.rng.random(len(self.bits)) < self.rate
            self.bits[forgotten] = self.rng.random(int(forgotten.sum())) < self.unseen
            self.bits[item] = self.rng.random() < self.seen
