"""Write the releases that test_release_golden.py reads, with the version of discreet that is installed.

Payloads are what a ledger stores. Files that are there are never written again.
"""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.privacy.guarantee import Asked
from discreet.releases.error_model import ErrorModel, Noise, Scaling

HERE = Path(__file__).with_name("releases")
NOISE = Noise("laplace", Fraction(3, 2), 2**63)


def made(items, counts, unit, model, **more):
    guarantee = dc.Guarantee(unit, 0.5, 1e-6, "some mechanism", "[X99]", ("an assumption",))
    return dc.Release(items, np.array(counts), guarantee, model, threshold=12, **more)


def releases():
    text = pa.array(["cats", "dögs", "=1+1"], pa.large_string())
    total = Noise("laplace", Fraction(4))
    yield "rows", made(text, [40, 20, 20], dc.Event(), ErrorModel(NOISE), total=400, total_noise=total)
    raw = pa.array([b"\xff\x00", b"a"], pa.large_binary())
    offset = ErrorModel(NOISE, offset_noise=Noise("laplace", Fraction(2), 2))
    yield "shards", made(raw, [40, 31], dc.Event(), offset, shards=np.array([1, 0]), shard_offsets=(3, -1))
    numbers = pa.array([-7, 9], pa.int64())
    left_out = dc.Estimate(0.25, 0.125, 0.5, dc.Guarantee(dc.User(), 0.5, 1e-6, "some mechanism"))
    model = ErrorModel(NOISE, summary_below=float("inf"), of_published=True)
    people = {"steps": np.array([1.5, 2.0]), "counted": "people", "left_out": left_out}
    yield "people", made(numbers, [90, 80], dc.User(), model, **people)
    noise = Noise("gaussian", Fraction(7, 2), 2, Fraction(1, 4))
    scaling = Scaling((1.0, 1.5, 2.25), (3.5, 0.25, 0.0), noise, 120.5, replace(noise, draws=9), True, 12.5)
    model = ErrorModel(replace(noise, draws=3), lowest=0, scaling=scaling)
    yield "scaled", made(numbers, [90, 80], dc.User(), model, **{**people, "counted": "sums"})


def write(path, text):
    if not path.exists():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name, release in releases():
        columns = {"item": "url", "user": "visitor" if name == "people" else None}
        release.asked = replace(Asked.of("2026-11-15T21:00:00Z", k=10, columns=columns, nulls="skip"), version="0.1.0")
        write(HERE / f"{name}-v4.payload", release.to_payload().decode("ascii"))
        write(HERE / f"{name}-v2.json", release.to_json())
