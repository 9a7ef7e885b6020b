"""Small rules of questions and of what is stored of them."""

import json

import numpy as np
import pytest
from tests.commands import run_here

import discreet as dc
from discreet.errors import CorruptStateError, WordError
from discreet.privacy.guarantee import Asked
from discreet.questions.live_question import _texts
from discreet.releases.report_release import _slug

ASKED = Asked.of("2026-11-15T21:00:00Z", k=3, columns={"item": "url"}).to_dict()


@pytest.mark.parametrize("kind", [dc.Sum, dc.Mean, dc.Variance])
@pytest.mark.parametrize("given", [[0, 5], np.array([0, 5]), (np.int64(0), np.float64(5.0))])
def test_a_range_is_two_numbers_of_python(kind, given):
    """Whatever they came as: a request of numbers is written as JSON, and equal ones are one request."""
    made = kind(column="a", range=given)
    assert made.range == (0, 5)
    assert {type(end) for end in made.range} <= {int, float}
    assert json.dumps(made.range)
    assert made == kind(column="a", range=(0, 5))


def test_a_universe_that_every_tick_counts_is_limited():
    assert _texts("3", {}) == ("0", "1", "2")
    with pytest.raises(WordError, match="at most 10,000,000 items"):
        _texts("10000001", {})


@pytest.mark.parametrize(
    "wrong", [{"parameters": None}, {"parameters": [1]}, {"columns": "url"}, {"k": 2.5}, {"time": 7}, {"version": 1}]
)
def test_what_was_asked_is_read_as_it_was_or_not_at_all(wrong):
    assert Asked.from_dict(ASKED).to_dict() == ASKED
    with pytest.raises(ValueError, match="not what was asked for"):
        Asked.from_dict({**ASKED, **wrong})


@pytest.mark.parametrize("wrong", [{"version": 2}, {"release": "estimate"}])
def test_quantiles_of_another_version_are_not_guessed_at(wrong):
    found = dc.quantiles({"a": range(100)}, dc.Budget(1.0), [0.5], column="a", range=(0, 100))
    payload = json.loads(found.to_payload())
    assert type(found).from_payload(json.dumps(payload).encode()).to_dict() == found.to_dict()
    with pytest.raises(CorruptStateError, match="something other than quantiles"):
        type(found).from_payload(json.dumps({**payload, **wrong}).encode())


@pytest.mark.parametrize(
    ("title", "name"), [("Pages, by day!", "pages-by-day"), ("???", "question"), ("", "question"), ("x" * 50, "x" * 40)]
)
def test_a_title_makes_a_name_of_a_file(title, name):
    assert _slug(title) == name


def test_an_audit_has_a_process_at_least():
    done = run_here("audit", "--jobs", 0)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--jobs" in done.stderr
