"""The lists of wrong changes follow the code: a sample of them must not stop CI on one day and not on another."""

from pathlib import Path

import pytest
from tests.mutants.mutants import MUTANTS
from tests.mutants.rooms import ROOMS

ROOT = Path(__file__).parents[2]
ALL = [*MUTANTS, *ROOMS]


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in ALL}))
def test_what_is_changed_is_there_once(file):
    text = (ROOT / file).read_text()
    found = {mutant.name: text.count(mutant.old) for mutant in ALL if mutant.file == file}
    assert found == dict.fromkeys(found, 1)


def test_each_has_a_name_of_its_own_and_changes_something():
    assert len({(mutant.file, mutant.name) for mutant in ALL}) == len(ALL)
    assert [mutant.name for mutant in ALL if mutant.old == mutant.new] == []


def test_their_tests_are_there():
    named = {word.partition("::")[0] for mutant in ALL for word in mutant.tests if word.startswith("tests/")}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_a_sample_may_be_of_any_room():
    """Rooms whose changes all take minutes are never sampled."""
    rooms = {path.name for path in (ROOT / "src" / "discreet").iterdir() if (path / "__init__.py").exists()}
    sampled = {Path(mutant.file).relative_to("src/discreet").parts[0] for mutant in ALL if mutant.quick}
    assert rooms - sampled == {"service"}  # whose tests take minutes: all of its changes are in `make mutants`
