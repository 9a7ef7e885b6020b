"""States of pan-private estimators that were written once are read, byte for byte the same, and go on."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from discreet import Budget, pan
from discreet.noise import seeded_source

HERE = Path(__file__).parent / "pan"
# Class, how it was made, and the checksum of its cells as an intruder reads them.
WRITTEN = {
    "density": (pan.Density, lambda **o: pan.Density(range(-20, 20), sample_size=30, **o), "a68e867b91e96d9e"),
    "density-strings": (pan.Density, lambda **o: pan.Density(["a", "b", "ß"], **o), "52e0717b4fe2a713"),
    "distinct-count": (
        pan.DistinctCount,
        lambda **o: pan.DistinctCount(buckets=16, levels=8, **o),
        "171637e510964bae",
    ),
    "cropped-mean": (pan.CroppedMean, lambda **o: pan.CroppedMean(50, 7, **o), "89ee17bf724fd4e8"),
    "heavy-fraction": (pan.HeavyFraction, lambda **o: pan.HeavyFraction(50, 4, **o), "554424ca24cdd941"),
    "heavy-fraction-counters": (
        pan.HeavyFraction,
        lambda **o: pan.HeavyFraction(50, 4, method="counters", **o),
        "a272f0a3db318d89",
    ),
    "heavy-fraction-ladder": (
        pan.HeavyFraction,
        lambda **o: pan.HeavyFraction(50, 4, method="ladder", max_count=16, **o),
        "bee7b1d2ea514d55",
    ),
    "modular-incidence": (pan.ModularIncidence, lambda **o: pan.ModularIncidence(50, 5, **o), "75be4fe8860c7c33"),
    "incidence": (pan.Incidence, lambda **o: pan.Incidence(50, 2, **o), "cb7c63b3380543b2"),
    "incidence-primes": (
        pan.Incidence,
        lambda **o: pan.Incidence(50, 2, method="primes", max_count=32, **o),
        "43b4fe39479902dd",
    ),
    "occurrences": (pan.Occurrences, lambda **o: pan.Occurrences(2, buckets=128, levels=8, **o), "8212882e6917b6ca"),
}


VERSION = 2


def write(name):
    """How the file of a new version is made; files of old versions stay as they are."""
    _, make, _ = WRITTEN[name]
    options = {"budget": Budget(1.0), "source": seeded_source(8), "releases": 2, "announced_intrusions": 1}
    estimator = make(output_share=0.25, **options)
    items = ["a", "ß"] if "strings" in name else np.arange(25)
    estimator.update(items)
    estimator.announce_intrusion()
    estimator.release()
    estimator.update(items)
    (HERE / f"{name}-v{VERSION}.state").write_bytes(estimator.to_bytes())


def cells(estimator):
    table = estimator._table
    text = repr([table.seen_by_intruder(layer) for layer in range(table.layers)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", WRITTEN)
def test_reads_and_goes_on(name):
    cls, _, seen = WRITTEN[name]
    state = (HERE / f"{name}-v{VERSION}.state").read_bytes()
    restored = cls.from_bytes(state)
    assert restored.to_bytes() == state
    assert cells(restored) == seen
    assert (restored.intrusions, restored._released) == (1, 1)
    assert (restored.epsilon_state, restored.epsilon_output) == (0.375, 0.125)
    restored.update(["a"] if "strings" in name else [1])
    assert restored.release().guarantee.seeded


def test_every_file_is_checked():
    assert {path.stem for path in HERE.glob("*.state")} == {f"{name}-v{VERSION}" for name in WRITTEN}
