"""Canaries: the bound is what the theorem says, a broken pipeline is refuted, ours are not.

The noise and the coins are seeded, except where a command draws them itself. Each bound
holds with 95 %: another seed may refute one by chance.
"""

import json
import sys
from fractions import Fraction
from math import comb, exp, inf, log

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.noise import seeded_source
from discreet_audit.pipeline_canaries import Canaries, guessed_epsilon, one_run, published_count

LISTED = [f"canary {number}" for number in range(1000)]


def noisy_counts(scale, seed=1):
    """A pipeline of somebody else: counts of a public list with Laplace noise of this scale, or none."""

    def run(table):
        counts = dict.fromkeys(LISTED, 0)
        for item in table.column("url").to_pylist():
            counts[item] = counts.get(item, 0) + 1
        noise = seeded_source(seed).discrete_laplace(scale, len(counts)) if scale else [0] * len(counts)
        return {item: count + int(z) for (item, count), z in zip(counts.items(), noise, strict=True)}

    return run


def measured(pipeline, claim=None, **how):
    return dc.audit.canaries(pipeline, None, claim or dc.Budget(1.0), column="url", seed=7, **how)


@pytest.mark.parametrize("m", [1, 2, 3, 6])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 50), Fraction(1, 4)])
def test_the_bound_covers_the_most_that_a_private_mechanism_can_give_away(m, delta):
    """Randomised response, which with probability delta tells the truth and says so, is (epsilon, delta)-DP."""
    q = Fraction(3, 4)  # epsilon = ln 3
    right = delta + (1 - delta) * q

    def tail(chance, v):
        return sum(comb(m, k) * chance**k * (1 - chance) ** (m - k) for k in range(v, m + 1))

    for v in range(m + 1):
        exact, bound = tail(right, v), tail(q, v) + m * delta * (1 - q)
        assert exact <= bound
        # So with an error of the bound no epsilon above ln 3 is proved by v right guesses.
        error = float(tail(q, v) + m * delta / 2)
        if v and 0 < error < 1:
            assert guessed_epsilon(m, v, m, float(delta), error) == pytest.approx(log(3), abs=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (3.0, 0.0), (1.0, 0.001)])
def test_the_bound_fails_as_seldom_as_it_says(epsilon, delta):
    """Randomised response loses all of epsilon, and with probability delta tells the truth and says so: the hardest
    case. The number of guesses is chosen when all is seen, and is paid for: unpaid, too many are refuted."""
    draw, runs, m = np.random.default_rng(3), 1500, 64
    refuted = unpaid = 0
    for _ in range(runs):
        included, told = draw.random(m) < 0.5, draw.random(m) < delta
        truth = told | (draw.random(m) < 1 / (1 + exp(-epsilon)))
        # Some say louder what they say, and it means nothing: there is something to choose from.
        loud = np.where(told, 9.0, 1.0 + draw.random(m))
        scores, coins = (np.where(truth == included, loud, -loud)).tolist(), included.tolist()
        refuted += one_run(scores, coins, delta, 0.15)[2] > epsilon
        sizes = [m >> halved for halved in range(1, 4)]
        order = np.argsort(scores)
        right = [int((~included[order[:n]]).sum() + included[order[-n:]].sum()) for n in sizes]
        bounds = (guessed_epsilon(2 * n, v, m, delta, 0.15) for n, v in zip(sizes, right, strict=True))
        unpaid += max(bounds) > epsilon
    assert refuted <= 0.15 * runs
    assert delta or epsilon > 1.0 or unpaid > 0.15 * runs


def test_a_pipeline_that_keeps_its_claim_is_not_refuted():
    report = measured(noisy_counts(1))
    assert report.passed
    assert 0.4 < report.epsilon <= 1.0
    assert report.releases == 1
    assert "The pipeline ran once" in str(report)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1, 2), 0], ids=["a third", "half", "none"])
def test_a_pipeline_with_too_little_noise_is_refuted(scale):
    report = measured(noisy_counts(scale))
    assert not report.passed
    assert "THE CLAIM DOES NOT HOLD" in str(report)


def test_one_canary_and_many_releases_each_way():
    seeds = iter(range(10**6))
    assert measured(lambda table: noisy_counts(1, next(seeds))(table), runs=300).passed
    refuted = measured(lambda table: noisy_counts(Fraction(1, 3), next(seeds))(table), runs=300)
    assert not refuted.passed
    assert refuted.releases == 600
    assert "600 times" in refuted.spent


QUESTIONS = {
    "histogram": lambda table: dc.histogram(table, dc.Budget(1.0), column="url", universe=LISTED),
    "people": lambda table: dc.histogram(table, dc.Budget(1.0), column="url", user="who", universe=LISTED, max_items=1),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_our_own_questions_are_not_refuted(question):
    report = measured(QUESTIONS[question], user="who")
    assert report.passed
    assert report.epsilon > 0.3  # it sees something


def test_a_crowd_makes_items_with_a_threshold_visible():
    """Without others who have it nobody's item is published; with about as many as the cut takes half of them are."""
    budget = dc.Budget(epsilon=3.0, delta=1e-4)
    cut = dc.plan(length=10**6, budget=budget, capacity=1000).rows[0].threshold

    def top(table):
        return dc.top_k(table, 1000, budget, column="url", capacity=1000)

    alone = measured(top, budget, number=100)
    crowded = measured(top, budget, number=100, crowd=int(cut))
    assert alone.epsilon == 0.0
    assert crowded.passed
    assert crowded.epsilon > 0.5


def test_canaries_go_into_a_copy():
    data = pa.table({"url": [1, 2], "who": ["a", "b"], "status": [200, 404]})
    copy = Canaries("url", "who", 2, crowd=1).added_to(data, [True, False])
    assert data.num_rows == 2
    assert copy.column("url").to_pylist() == ["1", "2", "canary 0", "canary 0", "canary 1"]
    assert copy.column("who").to_pylist() == ["a", "b", "crowd 0 0", "canary 0", "crowd 1 0"]
    assert copy.column("status").to_pylist() == [200, 404, None, None, None]
    with pytest.raises(dc.DataError, match="no column named 'path'; the data have: url, who, status"):
        Canaries("path").added_to(data, [True])


def test_claims_and_what_proves_nothing():
    assert measured(noisy_counts(1), dc.Budget.zcdp(0.5)).claimed > 1.0
    with pytest.raises(dc.ParameterError, match="at least 8 canaries"):
        measured(noisy_counts(1), number=7)
    with pytest.raises(dc.ParameterError, match="take fewer than"):
        measured(noisy_counts(1), dc.Budget(1.0, 1e-3))
    assert published_count({"a": 3}, "b") == -inf
    assert exp(guessed_epsilon(100, 0, 100, 0.0, 0.05)) == 1.0


COMMAND = """
import csv, random, sys
draw, scale = random.Random(1), float(sys.argv[2])
counts = {f"canary {number}": 0 for number in range(300)}
for row in csv.DictReader(open(sys.argv[1])):
    counts[row["url"]] = counts.get(row["url"], 0) + 1
print("item,count")
for item, count in counts.items():
    print(f"{item},{count + scale * (draw.expovariate(1) - draw.expovariate(1))}")
"""


@pytest.mark.parametrize(("scale", "code"), [("1", 0), ("0.2", 1)])
def test_a_command_is_tested(discreet, tmp_path, scale, code):
    (tmp_path / "log.csv").write_text("url,who\n/a,1\n/b,2\n")
    (tmp_path / "theirs.py").write_text(COMMAND)
    # The coins are secret: a right command is refuted by chance once in a million runs.
    words = ("--canaries", 300, "--data", tmp_path / "log.csv", "--column", "url", "--epsilon", 1)
    words += ("--confidence", 0.999999)
    done = discreet("audit", *words, "--", sys.executable, tmp_path / "theirs.py", "{data}", scale)
    assert done.returncode == code, done.stderr
    assert ("THE CLAIM DOES NOT HOLD" in done.stdout) == bool(code)
    assert "each run spends its claim" in done.stdout


@pytest.mark.parametrize("form", ["csv", "json"])
def test_what_our_own_command_prints_is_read(discreet, form):
    """CSV has the name of the column, JSON has "item"."""
    words = ("--canaries", 64, "--column", "url", "--crowd", 40, "--epsilon", 6, "--delta", 1e-4, "--format", "json")
    ours = (sys.executable, "-m", "discreet", "top", "{data}", "--column", "url", "--epsilon", 6, "--delta", 1e-4)
    done = discreet("audit", *words, "--", *ours, "--format", form)
    assert json.loads(done.stdout)["epsilon"] > 1.0, done.stderr


def test_wrong_use_of_the_command(discreet, tmp_path):
    def refused(*words):
        done = discreet("audit", *words)
        return done.returncode, done.stderr

    assert refused("--canaries", 100, "--epsilon", 1, "--", "cat", "{data}")[0] == 2
    assert refused("--column", "url")[0] == 2
    code, words = refused("--canaries", 100, "--column", "url", "--epsilon", 1, "--", "cat", "log.csv")
    assert (code, "{data}" in words) == (2, True)
    code, words = refused("--canaries", 100, "--column", "url", "--epsilon", 1, "--", "cat", "{data}")
    assert (code, '"item" and "count"' in words) == (4, True)
    code, words = refused("--canaries", 100, "--column", "url", "--epsilon", 1, "--", "false", "{data}")
    assert (code, "exit code 1" in words) == (4, True)
    (tmp_path / "bad.csv").write_text("url\nsecret,2\n")
    code, words = refused(
        *("--canaries", 100, "--column", "url", "--epsilon", 1, "--data", tmp_path / "bad.csv"), "--", "cat", "{data}"
    )
    assert (code, "secret" in words) == (4, False)
