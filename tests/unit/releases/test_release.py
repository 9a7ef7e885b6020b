"""The private histogram: its order, bounds, row for everything else, formats and payload."""

import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.noise import seeded_source
from discreet.releases.error_model import ErrorModel, Noise

LAPLACE = Noise("laplace", Fraction(2), 4)
GUARANTEE = dc.Guarantee(dc.Event(), 0.5, 1e-6, "test")


def histogram(items=("b", "a", "c"), counts=(5, 5, 9), model=None, **more):
    kind = pa.large_string() if all(isinstance(item, str) for item in items) else None
    return dc.Release(pa.array(items, kind), np.array(counts), GUARANTEE, model or ErrorModel(LAPLACE), **more)


def test_the_order_is_that_of_what_is_published():
    one = histogram(("b", "a", "c"), (5, 5, 9))
    other = histogram(("a", "c", "b"), (5, 9, 5))
    assert one.items == other.items == ["c", "a", "b"]
    assert one.counts.tolist() == other.counts.tolist() == [9, 5, 5]


def test_counts_cannot_be_changed_and_items_are_a_copy():
    release = histogram()
    with pytest.raises(ValueError, match="read-only"):
        release.counts[0] = 0
    release.items.clear()
    assert len(release.items) == 3


def test_head_keeps_the_first_and_everything_about_the_release():
    release = histogram(offset=3, threshold=7, total=40, total_noise=Noise("laplace", Fraction(1)))
    first = release.head(2)
    assert first.items == ["c", "a"]
    assert (first.threshold, first.offset, first.total, first.guarantee) == (7, 3, 40, GUARANTEE)
    assert release.head(100).items == release.items
    assert release.head(0).items == []
    for bad in (-1, 1.5, "2"):
        with pytest.raises(dc.ParameterError, match="k must be"):
            release.head(bad)


def test_bounds_are_the_noise_and_the_summary_error_around_the_count():
    model = ErrorModel(LAPLACE, summary_below=3.0, summary_above=10.0)
    lower, upper = histogram(counts=(100, 200, 300), model=model).bounds(0.9)
    noise = LAPLACE.bound(1.0 - 0.9)
    assert noise > 0
    assert upper.tolist() == [300 + noise + 3, 200 + noise + 3, 100 + noise + 3]
    assert lower.tolist() == [300 - noise - 10, 200 - noise - 10, 100 - noise - 10]


def test_lower_bounds_end_at_one_occurrence_or_at_none_over_a_known_universe():
    assert histogram(counts=(1, 1, 1)).bounds()[0].tolist() == [1, 1, 1]
    assert histogram(counts=(1, 1, 1), model=ErrorModel(LAPLACE, lowest=0)).bounds()[0].tolist() == [0, 0, 0]


def test_bounds_use_the_published_offset():
    model = ErrorModel(LAPLACE, offset_noise=Noise("laplace", Fraction(2)))
    near, _ = histogram(counts=(1000, 1000, 1000), model=model, offset=0).bounds()
    far, _ = histogram(counts=(1000, 1000, 1000), model=model, offset=50).bounds()
    assert (near - far).tolist() == [50, 50, 50]
    assert histogram(counts=(1000, 1000, 1000), model=model, offset=-500).bounds()[0][0] <= 1000
    with pytest.raises(dc.ParameterError, match="offset"):
        histogram(model=model).bounds()


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1, 2, math.nan, "0.9", None])
def test_confidence_outside_its_range_is_refused(confidence):
    with pytest.raises(dc.ParameterError, match="confidence"):
        histogram().bounds(confidence)


def test_the_rows_add_up_to_the_total():
    release = histogram(counts=(100, 50, 30), total=1000, total_noise=Noise("laplace", Fraction(10)))
    assert release.everything_else.value == 820
    assert release.head(1).everything_else.value == 900
    assert release.everything_else.is_private
    assert release.to_dict()["everything_else"]["count"] == 820
    assert histogram().everything_else is None
    assert "everything_else" not in histogram().to_dict()


def test_everything_else_is_never_negative():
    rest = histogram(counts=(100, 50, 30), total=10, total_noise=Noise("laplace", Fraction(1))).everything_else
    assert rest.value == rest.lower == 0
    assert rest.upper >= 0


def test_everything_else_covers_the_truth_as_often_as_it_says():
    """4 counters and a total, noise drawn 4000 times: 80 percent intervals must hold in at least 77 percent.

    The draws are seeded; unseeded, a right interval would fail with probability below 1e-6 (binomial tail).
    """
    source = seeded_source(7)
    total_noise, noise = Noise("laplace", Fraction(20)), Noise("laplace", Fraction(2), 3)
    truth, n = np.array([500, 400, 300]), 5000
    held = 0
    for z, drawn in zip(
        source.discrete_laplace(20, 4000), source.discrete_laplace(2, 12000).reshape(-1, 3), strict=True
    ):
        release = histogram(counts=truth + drawn, model=ErrorModel(noise), total=n + int(z), total_noise=total_noise)
        rest = release.rest(0.8)
        held += rest.lower <= n - truth.sum() <= rest.upper
    assert held >= 0.77 * 4000


def test_a_total_and_its_noise_come_together():
    with pytest.raises(dc.ParameterError, match="total"):
        histogram(total=5)
    with pytest.raises(dc.ParameterError, match="the same length"):
        histogram(counts=(1, 2))


def test_tables():
    release = histogram(model=ErrorModel(LAPLACE, summary_below=math.inf))
    table = release.to_arrow()
    assert table.column_names == ["item", "count", "lower", "upper"]
    assert table["item"].to_pylist() == ["c", "a", "b"]
    assert pa.table(release).equals(table)
    assert release.to_pandas()["count"].tolist() == [9, 5, 5]
    assert json.loads(release.to_json())["items"][0]["upper"] is None


def test_json_is_the_documented_one():
    out = json.loads(histogram(threshold=12, offset=2).to_json())
    assert out["threshold"] == 12
    assert out["guarantee"]["epsilon"] == 0.5
    assert out["items"][0].keys() == {"item", "count", "lower", "upper"}
    raw = dc.Release(pa.array([b"\xff\x00"], pa.large_binary()), np.array([3]), GUARANTEE, ErrorModel(LAPLACE))
    assert raw.to_dict()["items"][0]["item"] == "ff00"


@pytest.mark.parametrize(
    "damage",
    [
        lambda payload: b"",
        lambda payload: b"{}",
        lambda payload: b"[1]",
        lambda payload: b"\xff\xfe",
        lambda payload: payload[:-1],
        lambda payload: payload.replace(b'"version":4', b'"version":3'),
        lambda payload: payload.replace(b'"version":4', b'"version":5'),
        lambda payload: payload.replace(b'"collisions":null', b'"shifts":null'),
        lambda payload: payload.replace(b'"large_string"', b'"float"'),
        lambda payload: payload.replace(b"[9,5,5]", b"[9,5]"),
        lambda payload: payload.replace(b"[9,5,5]", b'["x",5,5]'),
        lambda payload: payload.replace(b'"scale":"2"', b'"scale":"1/0"'),
        lambda payload: payload.replace(b'"Event"', b'"Evening"'),
        lambda payload: payload.replace(b'"seeded":false', b'"seated":false'),
    ],
)
def test_a_damaged_payload_is_refused_without_quoting_it(damage):
    payload = damage(histogram().to_payload())
    with pytest.raises(dc.CorruptStateError) as caught:
        dc.Release.from_payload(payload)
    assert "'x'" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_repr_has_the_guarantee_and_the_first_rows():
    lines = repr(histogram(items=("cats", "b", "c"))).splitlines()
    assert "epsilon=0.5" in lines[0]
    assert [line.split()[:2] for line in lines[3:]] == [["c", "9"], ["b", "5"], ["cats", "5"]]
    many = repr(histogram(items=[f"item {i}" for i in range(30)], counts=range(100, 130)))
    assert len(many.splitlines()) == 14
    assert many.endswith("... and 20 more")
    assert repr(histogram(items=(), counts=())).endswith("\nNo item passed the threshold.")
    assert "\x1b" not in repr(histogram(items=("\x1b[31m", "b", "c")))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plots(tmp_path, suffix):
    release = histogram(
        items=("price $5 $6", "tab\there", "x" * 80), total=99, total_noise=Noise("laplace", Fraction(1))
    )
    path = tmp_path / f"plot.{suffix}"
    release.plot(path)
    assert path.stat().st_size > 1000
    histogram(items=(), counts=()).plot(path)


def test_a_plot_of_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(dc.ParameterError, match="xyz"):
        histogram().plot(tmp_path / "plot.xyz")
