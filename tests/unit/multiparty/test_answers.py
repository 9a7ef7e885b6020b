"""What an aggregator is asked through files: what a round cannot answer, and the words that its answers are told in."""

import math

import pytest

import discreet as dc
from discreet.errors import DataError, ParameterError
from discreet.multiparty.post import Questions, answers_text
from discreet.noise import seeded_source

PURE = dc.Budget(4.0)
FLAT = dc.multiparty.HadamardResponse("r", PURE, 8)
LEVELS = dc.multiparty.Hierarchy("r", PURE, 64, branching=4)
STREAM = dc.multiparty.Stream("r", PURE, 8, horizon=4)

REFUSED = {
    "a share of a flat round": (Questions(share=0.1), FLAT, "a share needs a round with levels"),
    "quantiles of a flat round": (Questions(quantiles=(0.5,)), FLAT, "quantiles need a round with levels"),
    "ranges of a flat round": (Questions(ranges=((0, 3),)), FLAT, "ranges need a round with levels"),
    "a consistent stream": (Questions(items=(1,), consistent=True), STREAM, "cannot be made consistent"),
    "a time of a round": (Questions(items=(1,), time=3), FLAT, "a time works with streams only"),
    "liars of nothing": (Questions(liars=0.1), FLAT, "liars work with items"),
    "all are liars": (Questions(items=(1,), liars=1.0), FLAT, "liars must be greater than 0 and less than 1"),
    "top and items": (Questions(items=(1,), top=2), FLAT, "not both"),
    "the top of very many": (
        Questions(top=2), dc.multiparty.HadamardResponse("r", PURE, 2**20 + 1), "at most 1048576 items",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_round_cannot_answer(what):
    asked, protocol, words = REFUSED[what]
    with pytest.raises(ParameterError, match=words):
        asked.check(protocol)


def test_what_a_round_can_answer():
    for asked, protocol in (
        (Questions(items=(1,), consistent=True, liars=0.1), FLAT),
        (Questions(top=2, liars=0.1), FLAT),
        (Questions(share=0.1, quantiles=(0.5,), ranges=((0, 3),)), LEVELS),
        (Questions(items=(1,), time=3), STREAM),
        (Questions(top=2), dc.multiparty.HadamardResponse("r", PURE, 2**20)),
    ):
        asked.check(protocol)
    with pytest.raises(DataError, match="no message was accepted"):
        Questions(items=(1,)).answered(FLAT, FLAT.aggregator(), 0.95)


def test_the_top_is_sorted_and_cut():
    aggregator, source = FLAT.aggregator(), seeded_source(1)
    aggregator.receive_many(FLAT.party(n, source=source).encode([n % 3]) for n in range(600))
    found = Questions(top=3).answered(FLAT, aggregator, 0.95)["estimates"]
    counts = [row["count"] for row in found]
    assert counts == sorted(counts, reverse=True)
    assert {row["item"] for row in found} == {0, 1, 2}
    lower, upper = aggregator.estimate([found[0]["item"]]).bounds(0.95)
    assert (found[0]["lower"], found[0]["upper"]) == (lower[0], upper[0])
    wide = Questions(top=3).answered(FLAT, aggregator, 0.99)["estimates"]
    assert wide[0]["upper"] > found[0]["upper"]
    lies = Questions(items=(0,), liars=0.1).answered(FLAT, aggregator, 0.95)
    assert lies["liars"] == {"share": 0.1, "count": 60}
    expected = aggregator.liars([0], 0.1)
    assert lies["estimates"][0]["too_high"] == expected.too_high[0] > 0
    assert lies["estimates"][0]["too_low"] == expected.too_low[0] > 0


FOUND = {
    "messages": {"rejected": [], "repeated": 0},
    "parties": 1,
    "bytes": 2000,
}


def text(**more):
    return answers_text({**FOUND, **more}, FLAT.guarantee, 0.9)


def test_answers_in_words():
    row = {"item": "a", "count": 1200.4, "lower": 1000.0, "upper": 1400.0}
    said = text(estimates=[{**row, "too_high": 7.0, "too_low": 3.0}], liars={"share": 0.1, "count": 60})
    assert "1,200" in said
    assert "90% interval" in said
    assert "If 60 of them lied (10%), an estimate is at most 7 too high or 3 too low for that." in said
    assert "1 party, 2,000 bytes." in said
    assert "nearest possible counts" not in said
    assert "nearest possible counts" in text(estimates=[row], consistent=True)
    assert "may be missing" in text(heavy_hitters=[row], complete=False)
    assert "may be missing" not in text(heavy_hitters=[row], complete=True)
    told = text(since=3, time=9, coverage={"1": 1.0, "2": 0.4})
    assert "Steps 4 to 9." in told
    assert "Party 2 told about 40% of them." in told
    assert "Party 1 told" not in told
    heard = text(messages={"rejected": [{}, {}], "repeated": 3}, shown=1)
    assert "1 party, 2,000 bytes, 3 repeated, 2 rejected." in heard
    assert "Shown: 1 report, in whole batches" in heard
    assert "0.5" in text(quantiles=[{"share": 0.5, "value": 7, "lower": 5, "upper": 9}])
    assert "5 to 9" in text(quantiles=[{"share": 0.5, "value": 7, "lower": 5, "upper": 9}])
    assert "2 to 4" in text(ranges=[{"low": 2, "high": 4, "count": 5.0, "lower": 1.0, "upper": 9.0}])


def test_noise_of_a_cell_exceeds_its_reach_once_in_2_to_the_64():
    """What no honest party sends: the bound of a message, the same in every client."""
    from fractions import Fraction

    from discreet.multiparty.party_sketches import laplace_variance, noise_reach

    for scale in (Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(7, 2), Fraction(100)):
        reach, q = noise_reach(scale), math.exp(-1 / float(scale))
        assert 2 * q ** (reach + 1) / (1 + q) <= 2.0**-64
        assert reach - 1 < 45.1 * scale <= reach
        true = sum(2 * z * z * (1 - q) / (1 + q) * q**z for z in range(1, 5000))
        assert laplace_variance(scale) == pytest.approx(true, rel=1e-9)
