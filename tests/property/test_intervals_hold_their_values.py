"""Every estimate lies in its own interval, a surer interval is wider, and a true value is rarely outside of one.

Seeds are fixed, and confidences so high that a miss would be a fault.
"""

import math

import pyarrow as pa
import pytest

import discreet as dc

PURE = dc.Budget(2.0)
SURE = {"confidence": 1 - 1e-9}
ITEMS = [n for n in range(400) for _ in range(1 + n % 3)]  # of 1000: a third once, a third twice, a third three times
N = len(ITEMS)

PAN = {
    "Density": (lambda **o: dc.pan.Density(1000, budget=PURE, **o), {}, 0.4),
    "DistinctCount": (lambda **o: dc.pan.DistinctCount(budget=PURE, **o), {}, 400),
    "CroppedMean": (lambda **o: dc.pan.CroppedMean(1000, 2, budget=PURE, **o), {}, (134 + 2 * 133 + 2 * 133) / 1000),
    "HeavyFraction": (lambda **o: dc.pan.HeavyFraction(1000, 2, budget=PURE, **o), {}, 0.266),
    "Incidence": (lambda **o: dc.pan.Incidence(1000, 2, budget=PURE, **o), {}, 0.133),
}


@pytest.mark.parametrize("name", PAN)
def test_pan_private_estimates(name):
    make, asked, true = PAN[name]
    for _ in range(3):
        made = make(**SURE)
        made.update(ITEMS)
        found = made.release(**asked)
        assert found.lower <= found.value <= found.upper
        assert found.lower <= true <= found.upper
        assert found.is_private
        assert found.guarantee.epsilon == 2.0
    narrow, wide = (make(confidence=level) for level in (0.6, 0.999))
    for each in (narrow, wide):
        each.update(ITEMS)
    narrow, wide = narrow.release(), wide.release()
    assert narrow.upper - narrow.lower < wide.upper - wide.lower


def test_pan_private_shares_by_count():
    made = dc.pan.ModularIncidence(1000, 4, budget=PURE, **SURE)
    made.update(ITEMS)
    found = made.release()
    for value, lower, upper, true in zip(
        found.values, found.lower, found.upper, (0.6, 0.134, 0.133, 0.133), strict=True
    ):
        assert lower <= value <= upper
        assert lower <= true <= upper


TABLE = pa.table(
    {
        "item": [f"i{n % 5}" for n in range(2000)],
        "value": [float(n % 11) for n in range(2000)],
        "who": [n // 4 for n in range(2000)],
        "group": ["x" if n % 2 else "y" for n in range(2000)],
    }
)
BUDGET = dc.Budget(2.0, 1e-6)
SUM = sum(n % 11 for n in range(2000))
NUMBERS = {
    "count": (lambda **o: dc.count(TABLE, BUDGET, **o), 2000),
    "count of people": (lambda **o: dc.count(TABLE, BUDGET, user="who", **o), 500),
    "distinct": (lambda **o: dc.distinct(TABLE, BUDGET, column="item", **o), 5),
    "distinct of people": (lambda **o: dc.distinct(TABLE, BUDGET, column="who", user="who", **o), 500),
    "sum": (lambda **o: dc.sum(TABLE, BUDGET, column="value", range=(0.0, 10.0), **o), SUM),
    "mean": (lambda **o: dc.mean(TABLE, BUDGET, column="value", range=(0.0, 10.0), **o), SUM / 2000),
    "variance": (
        lambda **o: dc.variance(TABLE, BUDGET, column="value", range=(0.0, 10.0), **o),
        sum((n % 11 - SUM / 2000) ** 2 for n in range(2000)) / 2000,
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    ask, true = NUMBERS[name]
    for _ in range(3):
        found = ask(**SURE)
        assert found.lower <= found.value <= found.upper
        assert found.lower <= true <= found.upper
        assert math.isfinite(found.upper - found.lower)
        assert found.is_private
    assert ask(confidence=0.5).upper - ask(confidence=0.5).lower <= found.upper - found.lower


def test_lists():
    for release, true in (
        (dc.top_k(TABLE, 5, BUDGET, column="item"), 400),
        (dc.top_k(TABLE, 5, BUDGET, column="item", user="who"), 400),
        (dc.histogram(TABLE, BUDGET, column="item", universe=[f"i{n}" for n in range(5)]), 400),
    ):
        assert len(release) == 5
        lower, upper = release.bounds(1 - 1e-9)
        assert (lower <= release.counts).all()
        assert (release.counts <= upper).all()
        assert (lower <= true).all()
        assert (true <= upper).all()
        narrow = release.bounds(0.5)
        assert (lower <= narrow[0]).all()
        assert (narrow[1] <= upper).all()


def test_quantiles_and_groups():
    quantiles = dc.quantiles(TABLE, BUDGET, [0.1, 0.5, 0.9], column="value", range=(0.0, 10.0), **SURE)
    for row, true in zip(quantiles, (1.0, 5.0, 9.0), strict=True):
        assert row.lower <= row.value <= row.upper
        assert row.lower - 0.01 <= true <= row.upper + 0.01
    groups = dc.sum(TABLE, BUDGET, column="value", range=(0.0, 10.0), by="group", **SURE)
    for name, odd in (("x", 1), ("y", 0)):
        true = sum(n % 11 for n in range(2000) if n % 2 == odd)
        assert groups[name].lower <= groups[name].value <= groups[name].upper
        assert groups[name].lower <= true <= groups[name].upper


def test_over_time():
    counter = dc.continual.Counter(16, BUDGET, remember=4)
    for tick in range(1, 9):
        counter.step(100)
        if tick > 2:
            risen = counter.increase(tick - 2, 1 - 1e-9)
            assert risen.lower <= risen.value <= risen.upper
            assert risen.lower <= 200 <= risen.upper
            assert counter.increase(tick - 2, 0.5).upper <= risen.upper
    histogram = dc.continual.Histogram(16, BUDGET, ["a", "b"], 1)
    for tick in range(1, 5):
        release = histogram.step(["a"] * 50 + ["b"] * 20)
        lower, upper = release.bounds(1 - 1e-9)
        for place, item in enumerate(release.items):
            true = tick * (50 if item == "a" else 20)
            assert lower[place] <= true <= upper[place]
