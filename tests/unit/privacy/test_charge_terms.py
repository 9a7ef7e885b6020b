"""What a charge id stands for: what is the same question is the same, what is another is told, and nothing is shown."""

import json

import pytest

from discreet.privacy.charge_terms import differing_parameters, question_of, told_differences

LONG = "a very long condition " * 20


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"secret": {"files": {"a": 1, "b": [2]}}}, {"secret": {"files": {"b": [2], "a": 1}}}),
        ({"words": {"a": LONG, "b": 2}}, {"words": {"b": 2, "a": LONG}}),
        ({"words": {"a": 1, "b": 2}}, {"words": {"b": 2, "a": 1}}),
        ({"k": 3, "column": "url"}, {"column": "url", "k": 3}),
        ({"pair": ("a", "b")}, {"pair": ["a", "b"]}),
        ({"k": 3, "by": None, "secret": {"where": None}}, {"k": 3}),
    ],
)
def test_a_question_is_the_same_in_whichever_order_it_is_said(one, other):
    """Also a part of it that the ledger has a digest of."""
    assert question_of("top", **one) == question_of("top", **other)
    assert differing_parameters(question_of("top", **one), question_of("top", **other)) == {}


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("k", {"k": 3}, {"k": 4}),
        ("k", {"k": 3}, {}),
        ("k", {}, {"k": 3}),
        ("long", {"long": LONG}, {"long": LONG + "!"}),
        ("long", {"long": LONG}, {"long": "short"}),
        ("files", {"secret": {"files": ["a", "b"]}}, {"secret": {"files": ["b", "a"]}}),
        ("files", {"secret": {"files": ["a"]}}, {}),
        ("files", {}, {"secret": {"files": ["a"]}}),
        ("where", {"secret": {"where": "x = 1"}}, {"secret": {"where": "x = 2"}}),
    ],
)
def test_what_differs_is_told_and_nothing_that_is_kept_as_a_digest_is_shown(name, one, other):
    before, now = question_of("top", **one), question_of("top", **other)
    told = told_differences(differing_parameters(before, now))
    assert list(differing_parameters(before, now)) == [name]
    assert told.startswith(f"{name} ")
    assert "sha256" not in told
    assert not any(text in json.dumps([before, now]) for text in ("x = ", '["a"', "very long"))


def test_what_was_not_given_is_said():
    differing = differing_parameters(question_of("top", k=3), question_of("top", column="é"))
    assert told_differences(differing) == 'k was 3 and is now not given; column was not given and is now "é"'
