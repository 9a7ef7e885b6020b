"""Explanations say what holds for the guarantee at hand."""

import json
import math
import re

import pytest

import discreet as dc
from discreet.cli.explain import explanation


def guarantee(unit=None, epsilon=1.0, delta=1e-9, **more):
    return dc.Guarantee(unit or dc.Event(), epsilon, delta, "some mechanism", **more).to_dict()


def text(*arguments, **options):
    return "\n".join(explanation(guarantee(*arguments, **options)))


def test_it_says_who_is_protected_how_far_and_on_what_it_rests():
    words = text(assumptions=("the clock is right",), reference="Theorem 7")
    assert "each row of the input" in words
    assert "factor of at most 2.72" in words
    assert "at most 73.2% sure" in words
    assert "chance of at most 1e-09" in words
    assert "the clock is right" in words
    assert "some mechanism (Theorem 7)" in words


def test_it_tells_a_user_from_an_event():
    assert "each person" in text(dc.User(7))
    assert "at most 7" in text(dc.User(7))
    assert "each person" not in text()


def test_certainty_is_only_claimed_with_a_delta():
    assert "listed did occur" in text()
    assert "listed did occur" not in text(delta=0.0)
    assert "except for a chance" not in text(delta=0.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 8.0, 50.0, 1000.0])
def test_the_belief_is_never_understated(epsilon):
    words = text(epsilon=epsilon)
    stated = re.search(r"at most ([\d.]+)% sure", words)
    if stated:
        assert float(stated[1]) / 100 >= 1 / (1 + math.exp(-epsilon))
    else:
        assert "almost entirely" in words
    assert ("weak promise" in words) == (epsilon > 5)


def test_zcdp_is_translated():
    words = text(epsilon=None, delta=0.0, rho=0.1)
    assert "rho = 0.1" in words
    assert re.search(r"epsilon = [\d.]+ means", words)


def test_a_seeded_release_is_called_what_it_is():
    assert explanation(guarantee(seeded=True))[0].startswith("This release is NOT private")


@pytest.mark.parametrize("trust", ["central", "continual", "pan", "multiparty", "something new"])
def test_every_trust_model_has_words(trust):
    assert "Against whom: " in text(trust=trust)


def test_the_command_reads_a_release(tmp_path, capsys):
    from discreet.cli.explain import explain

    path = tmp_path / "release.json"
    path.write_text(json.dumps({"guarantee": guarantee(), "items": []}))
    explain(str(path))
    assert "What is protected" in capsys.readouterr().out
    for bad in ("{}", "[]", "nonsense", '{"guarantee": {}}', '{"guarantee": 3}'):
        path.write_text(bad)
        with pytest.raises(dc.DataError):
            explain(str(path))
    with pytest.raises(dc.DataError):
        explain(str(tmp_path / "missing.json"))
