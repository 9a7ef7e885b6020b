"""The stream that the scripts on [PAN] share, and the error of an estimator on it."""

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
