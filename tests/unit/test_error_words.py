"""Errors name words of a question in braces, and every front end spells them in its way."""

import pickle

import pytest

from discreet.errors import DataError, DataWordError, ParameterError, WordError, did_you_mean, nearest


@pytest.mark.parametrize(("kind", "base"), [(WordError, ParameterError), (DataWordError, DataError)])
def test_words_are_spelled_by_the_front_end(kind, base):
    error = kind("{time} needs {every}; give {nulls=skip}, or leave {user} out of {braces")
    assert isinstance(error, base)
    assert isinstance(error, ValueError)
    assert str(error) == "time needs every; give nulls='skip', or leave user out of {braces"
    spelled = error.spelled(lambda word: f"--{word.replace('_', '-')}")
    assert spelled == "--time needs --every; give --nulls skip, or leave --user out of {braces"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.text) == (kind, str(error), error.text)


def test_the_nearest_name_is_told():
    known = ["column", "user", "every"]
    assert did_you_mean("colum", known) == "; did you mean 'column'?"
    assert did_you_mean("USER", known) == "; did you mean 'user'?"
    assert did_you_mean("xyz", known) == ""
    assert nearest("evry", known) == "; did you mean 'every'?"
    assert nearest("xyz", known) == "; use one of: column, user, every"
