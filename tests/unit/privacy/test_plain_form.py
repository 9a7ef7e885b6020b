"""What is written field by field: exact, JSON-ready, and read back as it was; nothing else is read."""

import json
import math
from fractions import Fraction

import pytest

from discreet.privacy.accounting import Charge, Tally
from discreet.privacy.calibration.collisions import Collisions
from discreet.privacy.calibration.tick_noise import TickNoise
from discreet.releases.error_model import ErrorModel, Noise, Scaling, Stretch, Stretches
from discreet.releases.over_time import OverTime, Term

NOISE = Noise("laplace", Fraction(10, 3), 7, Fraction(1, 5))
GAUSSIAN = Noise("gaussian", Fraction(2))
ROWS = TickNoise("powers", 8, 40.0, 16, 0.25, (0.5, 0.25), (0.125, 0.75))
FORMS = [
    NOISE,
    Noise("laplace", Fraction(2), terms=3),
    Collisions("median", 64, 5, 1000, 3, 1000, 1e-12),
    ROWS,
    OverTime(3, "a-1", (Term("counts", ROWS, 3), Term("tree", TickNoise("tree", 8, 2.0, base=2), 3)), False),
    OverTime(3, "a-1"),
    Scaling((1.0, 2.0), (3.5, 0.0), None, 10.0, GAUSSIAN, True),
    ErrorModel(NOISE),
    ErrorModel(
        NOISE, GAUSSIAN, GAUSSIAN, math.inf, 2.0, 0, Collisions("smallest", 8, 2, 10, 1, 10), True,
        Scaling((1.0,), (0.0,), GAUSSIAN, 1.0, GAUSSIAN, covered=4.0),
        Stretches((Stretch(5, 6, GAUSSIAN), Stretch(7, 8)), ((5, (1,)), (7, (0, 1))), 3),
    ),
    Tally.of([Charge(0.1, 1e-9), Charge(0.1), Charge(None, 0.0, 0.5), Charge(None, 0.0, 0.3, "gaussian")]),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_it_is_read_back_as_it_was(form):
    told = json.loads(json.dumps(form.to_dict(), allow_nan=False))
    assert type(form).from_dict(told) == form
    assert list(told) == [name for name in form.__dataclass_fields__ if name in told]


def test_what_came_later_is_written_where_it_says_something():
    assert "terms" not in NOISE.to_dict()
    assert Noise("laplace", Fraction(2), terms=3).to_dict()["terms"] == 3
    assert {"of_published", "scaling", "stretches"}.isdisjoint(ErrorModel(NOISE).to_dict())


def test_numbers_are_exact_and_an_unknown_bound_is_null():
    assert NOISE.to_dict() == {"law": "laplace", "scale": "10/3", "draws": 7, "step": "1/5"}
    assert ErrorModel(NOISE, summary_below=math.inf).to_dict()["summary_below"] is None
    assert Tally.of([Charge(0.1)] * 3).to_dict()["epsilon"] == str(3 * Fraction(0.1))


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_what_is_missing_or_unknown_is_refused(form):
    told = form.to_dict()
    for name in told.keys() - form.added:
        with pytest.raises(KeyError):
            type(form).from_dict({each: value for each, value in told.items() if each != name})
    with pytest.raises(KeyError):
        type(form).from_dict({**told, "more": 1})


def test_a_number_that_must_be_there_is_not_null():
    for name in ("people", "sizes", "lost"):
        told = FORMS[6].to_dict()
        with pytest.raises((TypeError, KeyError, AttributeError)):
            Scaling.from_dict({**told, name: None})
