"""Nothing that was audited is lost: every configuration, its kinds of checks, and every twin that must be caught.

`tests/golden/audit.json` has them by name, with the checks and the exact figures of each configuration. A configuration
that is added is added there; samplers, which are tests, stand under "moved". What is no mechanism of its own (groups,
person-days, the noise of whole releases) has its rows beside this file, and is audited here. The names are
compared without running anything; figures are compared where they take little time, the others by `make audit`.
"""

import json
import sys
from pathlib import Path

import pytest
from tests.statistical.day_rows import PERSON_DAYS
from tests.statistical.group_rows import GROUPS
from tests.statistical.sampler_groups import groups
from tests.statistical.samplers import RELEASE_NOISE

from discreet_audit import core

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests/golden/audit.json").read_text())


def named(case):
    """The class; with its package, where two have one name."""
    package = f"{case.mechanism.__module__.split('.')[1]}." if case.mechanism.__name__ == "DistinctCount" else ""
    return package + case.mechanism.__name__


OF_TESTS = (GROUPS, PERSON_DAYS, RELEASE_NOISE)
CASES = {named(case): case for case in (*core.cases(), *OF_TESTS)}
QUICKLY = [entry for entry in GOLDEN["configurations"] if entry["quickly"]]


def prepared(case):
    """Every configuration as it is audited, and how."""
    return [(audit := case.of(made), audit.prepare(made)) for made in case.examples()]


def of(name):
    return [entry for entry in GOLDEN["configurations"] if entry["row"] == name]


def test_the_rows_are_those_recorded():
    assert {*CASES} == {entry["row"] for entry in GOLDEN["configurations"]}
    assert len(GOLDEN["configurations"]) == 178
    assert sum(len(entry["twins"]) for entry in GOLDEN["configurations"]) == GOLDEN["twins"]


@pytest.mark.parametrize("name", CASES)
def test_configurations_checks_and_twins_are_those_recorded(name):
    case = CASES[name]
    found = []
    for audit, made in prepared(case):
        twins = sorted(twin.name for twin in audit.twins(made))
        found.append((audit.label(made), made.guarantee.mechanism, list(audit.kinds), twins))
    assert found == [(entry["label"], entry["claim"], entry["kinds"], sorted(entry["twins"])) for entry in of(name)]


@pytest.mark.parametrize(
    ("case", "place"),
    [(case, place) for case in OF_TESTS for place in range(len(case.examples()))],
    ids=lambda each: getattr(each, "mechanism", type(each)).__name__,
)
def test_the_rows_of_tests_pass_and_their_twins_are_caught(case, place):
    """All others are run by `discreet audit --quick`, whose draws are the system's."""
    made = case.examples()[place]
    report = core.evidence(case.of(made), made, core.QUICK)
    assert report.passed, (report.findings, report.twins)


def test_what_was_moved_is_where_it_is_said_to_be():
    """The samplers: what each group draws, and the twin of each."""
    assert [group.name for group in groups()] == [*GOLDEN["moved"]]
    for group in groups():
        recorded = GOLDEN["moved"][group.name]
        assert [member.name for member in group.members] == recorded["samplers"]
        assert [member.twin()[0] for member in group.members] == recorded["twins"]
        file, _, test = recorded["test"].partition("::")
        assert f"def {test}(" in (ROOT / file).read_text()


@pytest.mark.parametrize("entry", QUICKLY, ids=lambda entry: f"{entry['label']} {entry['place']}")
def test_figures_are_those_recorded(entry):
    """All that is exact: structure, laws, and runs with equal randomness; to six digits, for other processors."""
    audit, made = prepared(CASES[entry["row"]])[entry["place"]]
    found = []
    for kind in ("structure", "exact", "coupled"):
        for finding in audit.findings(kind, made, core.QUICK):
            found.append([finding.kind, finding.check, finding.quantity, finding.claimed, finding.measured])
    recorded = [figures for figures in entry["figures"] if figures[0] != "statistical"]
    assert [figures[:3] for figures in found] == [figures[:3] for figures in recorded]
    for one, two in zip(found, recorded, strict=True):
        assert one[3:] == pytest.approx(two[3:], rel=1e-6, abs=1e-15), one


def recorded(name):
    """What tests/golden/audit.json has of a row, a line a configuration; figures are those of a quick audit."""
    for place, (audit, made) in enumerate(prepared(CASES[name])):
        figures = [
            [found.kind, found.check, found.quantity, found.claimed, None if kind == "statistical" else found.measured]
            for kind in audit.kinds
            for found in audit.findings(kind, made, core.QUICK)
        ]
        label, claim = audit.label(made), made.guarantee.mechanism
        yield {
            **{"row": name, "place": place, "label": label, "claim": claim, "kinds": [*audit.kinds], "quickly": True},
            **{"twins": [twin.name for twin in audit.twins(made)], "figures": figures},
        }


if __name__ == "__main__":
    sys.stdout.writelines(json.dumps(entry) + ",\n" for name in sys.argv[1:] for entry in recorded(name))
