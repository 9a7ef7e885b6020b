"""Budgets that promise next to nothing."""

import warnings

import pytest
from tests.commands import run_here

import discreet as dc
from discreet.privacy.calibration.zcdp import zcdp_epsilon


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dc.Budget(21), r"epsilon=21 promises next to nothing.*e\^21 times"),
        (lambda: dc.Budget(1.0, 0.01), "delta=0.01 .*one person in 100 may be revealed"),
        (lambda: dc.Budget(50.0, 0.5), "e.50 times.*one person in 2 may be"),
        (lambda: dc.Budget.zcdp(30.0), "rho=30, which is epsilon="),
    ],
)
def test_a_weak_budget_says_what_it_means(make, words):
    with pytest.warns(dc.WeakBudgetWarning, match=words) as told:
        make()
    assert [one.filename for one in told] == [__file__]


def test_other_budgets_say_nothing():
    rho = 6.0
    assert zcdp_epsilon(rho, 1e-3) < 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for budget in (dc.Budget(20), dc.Budget(1, 1e-3), dc.Budget.zcdp(rho)):
            assert budget.weakness is None


def test_it_is_said_once_for_one_budget():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        budget = dc.Budget(60.0)
        # What is made of it within the package is no budget that somebody gave.
        assert dc.Budget.from_dict(budget.to_dict()) == budget
        budget.share(0.9)
        dc.count({"a": [1, 2]}, budget)
        dc.top_k(["a"] * 100, 1, budget=dc.Budget(1.0, 1e-6), total_share=0.1)
    assert len(told) == 1


def test_the_command_line_says_it_on_standard_error(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("a\nb\n")
    weak = run_here("count", path, "--epsilon", 60)
    assert (weak.returncode, weak.stderr.count("promises next to nothing")) == (0, 1)
    assert "promises" not in weak.stdout.replace("what is promised", "")
    assert "warning" not in run_here("count", path, "--epsilon", 1).stderr
    assert "promises little" in run_here("count", path, "--epsilon", 1, "--delta", 0.1).stderr
