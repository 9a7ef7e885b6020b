"""Sums, means and variances: what is summed, what is said of it, what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.commands import run_here

import discreet as dc
from discreet.central.person_moments import PersonMoments
from discreet.central.row_moments import RowMoments
from discreet.errors import ParameterError, WordError
from discreet.noise import seeded_source
from discreet.summaries.moments import GroupSums, ValueMoment

VALUES = np.random.default_rng(5).gamma(2.0, 10.0, 3000)
TABLE = {
    "v": VALUES.tolist(),
    "u": [f"u{n % 500}" for n in range(3000)],
    "g": ["a" if n % 3 else "b" for n in range(3000)],
    "w": [f"w{n}" for n in range(3000)],
}
CUT = np.clip(VALUES, 0.0, 100.0)
TRUE = {"sum": CUT.sum(), "mean": CUT.mean(), "variance": CUT.var()}
ASKED = {"sum": dc.sum, "mean": dc.mean, "variance": dc.variance}
RANGES = [(0, 100), (-3.5, 7.25), (-100, -10), (1e-3, 2e-3), (5, 1_000_005)]


@pytest.mark.parametrize("kind", ["sum", "mean", "variance"])
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_parts_of_a_row_add_up_to_one_whatever_its_value(kind, low, high):
    moment = ValueMoment(kind, low, high)
    values = np.array([low, high, (low + high) / 2, -1e300, 1e300, np.inf, -np.inf, low + (high - low) * 0.3141])
    entries = moment.entries(values)
    assert (entries >= 0).all()
    assert (entries.sum(axis=1) == moment.one).all()
    assert moment.one <= 2**30


@pytest.mark.parametrize("kind", ["signed", "split", "sum", "mean", "variance"])
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_the_parts_say_the_answer(kind, low, high):
    values = np.random.default_rng(1).uniform(low, high, 500)
    moment = ValueMoment(kind, low, high)
    sums = moment.entries(values).sum(axis=0)[None, :] / moment.one
    true = {"mean": values.mean(), "variance": values.var()}.get(kind, values.sum())
    around = 500 * max(abs(low), abs(high)) * 2.0**-30 if kind not in ("mean", "variance") else moment.rounding
    assert abs(moment.answer(sums)[0] - true) <= around + 1e-9 * abs(true)
    lower, upper = moment.within(sums - 0.5, sums + 0.5)
    assert lower[0] <= moment.answer(sums)[0] <= upper[0]


def test_whole_numbers_are_not_rounded():
    moment = ValueMoment("signed", -7, 100)
    assert (moment.entries(np.arange(-7.0, 101.0))[:, 0] % (moment.one // 100) == 0).all()


def test_a_variance_is_between_its_bounds_over_the_whole_box():
    random = np.random.default_rng(2)
    moment = ValueMoment("variance", 0, 1)
    for _ in range(300):
        lower = random.uniform(0, 5, 3) * random.integers(0, 2, 3)
        upper = lower + random.uniform(0, 3, 3)
        least, most = (end[0] for end in moment.within(lower[None], upper[None]))
        a, b, c = (random.uniform(lower[i], upper[i], 400) for i in range(3))
        number = np.maximum(a + b + c, 1e-12)
        spread = np.clip((a * c - b * b / 4) / number**2, 0, 0.25)
        assert least <= spread.min() + 1e-12
        assert most >= spread.max() - 1e-12


@pytest.mark.parametrize("budget", [dc.Budget(1.0), dc.Budget(1.0, 1e-6), dc.Budget.zcdp(0.1)], ids=str)
@pytest.mark.parametrize("kind", ["sum", "mean", "variance"])
def test_rows(kind, budget):
    found = ASKED[kind](TABLE, budget, column="v", range=(0, 100), confidence=1 - 1e-7, source=seeded_source(1))
    assert found.lower <= TRUE[kind] <= found.upper
    assert found.upper - found.lower < {"sum": 8000, "mean": 3, "variance": 200}[kind]


@pytest.mark.parametrize("kind", ["sum", "mean", "variance"])
def test_people(kind):
    budget = dc.Budget(4.0, 1e-6)
    words = {"column": "v", "range": (0, 100), "user": "u", "source": seeded_source(2)}
    found = ASKED[kind](TABLE, budget, confidence=0.999, **words)
    assert found.lower <= TRUE[kind] <= found.upper
    assert found.left_out is not None
    assert any("Anyone with more counts for this much" in note for note in found.notes)
    by = ASKED[kind](TABLE, budget, by="g", groups=["a", "b", "none"], **words)
    assert [row[0] for row in by] == ["a", "b", "none"]


def test_groups_of_rows_and_their_truth():
    for words in ({}, {"groups": ["a", "b", "c"]}):
        found = dc.mean(TABLE, dc.Budget(2.0, 1e-6), column="v", range=(0, 100), by="g", confidence=1 - 1e-7, **words)
        for group in ("a", "b"):
            true = CUT[[at for at, name in enumerate(TABLE["g"]) if name == group]].mean()
            assert found[group].lower <= true <= found[group].upper
        assert len(found) == 2 + bool(words)
    assert (found["c"].lower, found["c"].upper) == (0.0, 100.0)  # of no rows anything may be said


def test_quantiles_values_and_histograms_by_group():
    sure = dc.Budget(100.0, 1e-3)
    found = dc.quantiles(TABLE, sure, [0.5], column="v", range=(0, 100), by="g")
    assert found.names == ("g", "quantile")
    assert abs(found[("a", 0.5)].value - np.median(CUT[[name == "a" for name in TABLE["g"]]])) < 1.0
    assert [row[1] for row in dc.distinct(TABLE, sure, column="u", by="g")] == [500, 500]
    people = dc.distinct(TABLE, sure, column="w", user="u", by="g", max_items=1)
    assert sum(row[1] for row in people) <= 500 + 20
    counts = dc.histogram(TABLE, sure, column="u", universe=["u1", "u2", "nobody"], by="g")
    assert counts.by == ("g",)
    assert counts[("a", "u1")].count == 4
    assert len(counts.groups["b"]) == 3


def test_a_mean_of_few_rows_says_that_it_knows_nothing():
    found = dc.mean({"v": [3.0]}, dc.Budget(0.1), column="v", range=(0, 10), source=seeded_source(3))
    assert (found.lower, found.upper) == (0.0, 10.0)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({}, "Do not look at the data for it; `discreet quantiles`"),
        ({"range": (5, 5)}, "LOW < HIGH"),
        ({"range": (0, np.inf)}, "finite"),
        ({"range": (0, 1), "by": "g", "column": None}, "need column"),
        ({"range": (0, 1), "user": "u"}, "delta > 0"),
        ({"range": (0, 1), "by": "g"}, "finding unknown groups"),
    ],
)
def test_refusals(words, says):
    with pytest.raises((WordError, ParameterError), match=says):
        dc.mean(TABLE, dc.Budget(1.0), **{"column": "v", **words})


def test_one_odd_value_decides_nothing():
    odd = {"v": [1.0, float("nan"), float("inf"), None], "g": ["a"] * 4}
    found = dc.sum(odd, dc.Budget(1e4), column="v", range=(0, 8), nulls="skip")
    assert abs(found.value - 9.0) < 0.1


@pytest.mark.parametrize("user", [None, "u"])
@pytest.mark.parametrize("asked", [*ASKED.values(), dc.quantiles])
def test_a_row_without_a_number_discovers_no_group(asked, user):
    """The draw is that of the data without such rows: their groups, which come first here, do not occur."""
    nowhere = {"v": [float("nan")] * 3, "u": ["odd", "u0", "u1"], "g": ["0", "1", "a"], "w": ["x"] * 3}
    both = {name: [*nowhere[name], *TABLE[name]] for name in TABLE}
    words = {"column": "v", "range": (0, 100), "by": "g", "user": user}
    found = [asked(table, dc.Budget(4.0, 1e-4), source=seeded_source(9), **words) for table in (both, TABLE)]
    assert found[0].cells == found[1].cells
    assert {group for group, *_ in found[0].cells} == {"a", "b"}


def test_the_commands(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("v,g\n" + "\n".join(f"{n % 10},{'ab'[n % 2]}" for n in range(1000)) + "\n")
    asked = (table, "--column", "v", "--range", 0, 10, "--epsilon", 50)
    for kind, true in (("sum", 4500), ("mean", 4.5), ("variance", 8.25)):
        done = run_here(kind, *asked, "--format", "csv", "--quiet")
        assert done.returncode == 0, done.stderr
        named, numbers = done.stdout.splitlines()
        assert named == f"{kind},lower,upper"
        value, lower, upper = numbers.split(",")
        assert float(lower) <= float(value) <= float(upper)
        assert abs(float(value) - true) < 0.01 * true
    assert "quantiles" in run_here("mean", table, "--column", "v", "--epsilon", 1).stderr
    assert run_here("mean", *asked, "--by", "g", "--delta", 1e-6).stdout.splitlines()[2].startswith("a")


def test_the_noise_of_a_mean_is_that_of_one_count():
    """Laplace noise of scale one/epsilon on both parts: half the variance of noise on a sum and a count apart."""
    made = RowMoments(dc.Budget(1.0), ValueMoment("mean", -1, 1))
    assert made.scale == made.moment.one
    with pytest.raises(ParameterError):
        RowMoments(dc.Budget(1.0), ValueMoment("split", -1, 1))
    with pytest.raises(WordError):
        PersonMoments.of(dc.Budget(1.0), ValueMoment("mean", -1, 1))
    assert "NOT PRIVATE" in repr(GroupSums(np.zeros((1, 1), np.int64)))


def test_sums_of_parts_add_up():
    import pyarrow as pa

    first = GroupSums(np.array([[1, 2], [3, 4]]), pa.array(["a", "b"]))
    both = first + GroupSums(np.array([[10, 20]]), pa.array(["b"]))
    assert dict(zip(both.keys.to_pylist(), both.sums.tolist(), strict=True)) == {"a": [1, 2], "b": [13, 24]}
    assert (GroupSums(np.array([[1]])) + GroupSums(np.array([[2]]))).sums.tolist() == [[3]]


@pytest.mark.parametrize("by", [None, "day"])
def test_all_batches_count(by):
    """A table in three chunks, with a group that is in each of them."""
    chunk = pa.table({"n": [10.0] * 300, "day": ["mo"] * 100 + ["tu"] * 200})
    table = pa.concat_tables([chunk, chunk, chunk])
    assert table.column("n").num_chunks == 3
    found = dc.sum(table, dc.Budget(19.0, 1e-6), column="n", range=(0, 10), **({"by": by} if by else {}))
    values = [round(found.value, -2)] if by is None else sorted(round(value, -2) for _, value, _, _ in found)
    assert values == ([9000] if by is None else [3000, 6000])


@pytest.mark.parametrize("kind", ValueMoment.PARTS)
@pytest.mark.parametrize(("low", "high"), [(0, 1000), (-3.5, 0.1), (-1e-9, 1e9), (7, 8), (0.1, 0.3)])
def test_a_total_is_the_sum_of_the_entries(kind, low, high):
    moment = ValueMoment(kind, low, high)
    random = np.random.default_rng(2)
    values = np.concatenate(
        [random.lognormal(3, 3, 4000), -random.lognormal(0, 9, 4000), [low, high, 0.0, -0.0, np.inf]]
    )
    assert moment.total(values).tolist() == moment.entries(values).sum(axis=0).tolist()
    assert moment.total(values[:0]).tolist() == [0] * moment.parts


@pytest.mark.parametrize("user", [None, "u"])
@pytest.mark.parametrize("kind", ["count", *ASKED])
def test_where_no_row_has_a_time_there_is_no_group(kind, user):
    table = {**TABLE, "t": ["no time"] * 3000}
    words = {
        "every": "1d",
        "time": "t",
        "user": user,
        **({} if kind == "count" else {"column": "v", "range": (0, 100)}),
    }
    answer = getattr(dc, kind)(table, dc.Budget(1.0, 1e-6), **words)
    assert len(answer.to_pandas()) == 0
