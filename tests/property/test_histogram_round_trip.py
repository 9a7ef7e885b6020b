"""A payload gives back the release, exactly."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.releases.error_model import ErrorModel, Noise

INT64 = st.integers(-(2**63), 2**63 - 1)
COLUMNS = st.one_of(
    st.tuples(st.just(pa.int64()), st.lists(INT64, unique=True)),
    st.tuples(st.just(pa.uint64()), st.lists(st.integers(0, 2**64 - 1), unique=True)),
    st.tuples(st.just(pa.large_binary()), st.lists(st.binary(), unique=True)),
    st.tuples(st.just(pa.large_string()), st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True)),
)
POSITIVE = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)
NOISES = st.builds(Noise, st.sampled_from(["laplace", "gaussian"]), POSITIVE, st.integers(1, 10**6), POSITIVE)
ERRORS = st.one_of(st.just(math.inf), st.floats(0, 1e12))
MODELS = st.builds(
    ErrorModel, NOISES, st.none() | NOISES, st.none() | NOISES, ERRORS, ERRORS, lowest=st.sampled_from([0, 1])
)
UNITS = st.one_of(st.sampled_from([dc.Event(), dc.Element(), dc.Replace()]), st.builds(dc.User, st.integers(1, 10**9)))
GUARANTEES = st.builds(
    dc.Guarantee,
    unit=UNITS,
    epsilon=st.none() | st.floats(1e-300, 1e300),
    delta=st.floats(0, 1, exclude_max=True),
    mechanism=st.text(st.characters(exclude_categories=["Cs"])),
    assumptions=st.lists(st.text(st.characters(exclude_categories=["Cs"]))).map(tuple),
    rho=st.none() | st.floats(1e-300, 1e300),
    seeded=st.booleans(),
)


@settings(deadline=None)
@given(
    COLUMNS,
    GUARANTEES,
    MODELS,
    st.none() | INT64 | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.integers(),
    st.none() | st.tuples(st.integers(), NOISES),
    st.data(),
)
def test_round_trip(column, guarantee, model, threshold, offset, total, data):
    kind, items = column
    counts = data.draw(st.lists(INT64, min_size=len(items), max_size=len(items)))
    noisy_total, total_noise = total or (None, None)
    release = dc.Release(
        pa.array(items, kind),
        np.array(counts, dtype=np.int64),
        guarantee,
        model,
        threshold=threshold,
        offset=offset,
        total=noisy_total,
        total_noise=total_noise,
    )
    again = dc.Release.from_payload(release.to_payload())
    assert again.to_payload() == release.to_payload()
    assert again.items == release.items
    assert again.item_column.type == kind
    assert again.counts.tolist() == release.counts.tolist()
    assert again.guarantee == guarantee
    assert again.error_model == model
    assert (again.threshold, again.offset) == (threshold, offset)
    assert type(again.threshold) is type(threshold)
    assert (again.total, again.total_noise) == (noisy_total, total_noise)


@settings(deadline=None)
@given(st.binary())
def test_arbitrary_bytes_are_refused(data):
    try:
        dc.Release.from_payload(data)
    except dc.CorruptStateError:
        return
    raise AssertionError("arbitrary bytes were taken for a release")
