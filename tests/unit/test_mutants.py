"""The lists of wrong changes follow the code, and a sample of them may be of any room."""

from pathlib import Path

from tests.mutants.mutants import MUTANTS
from tests.mutants.rooms import ROOMS
from tests.mutants.run import is_stale

ROOT = Path(__file__).parents[2]
ALL = [*MUTANTS, *ROOMS]


def test_what_is_changed_is_there_once():
    """`make mutants` stops at the first that is not; a sample leaves them out, so that no day is unlike another."""
    stale = [f"{mutant.file}: {mutant.name}" for mutant in ALL if is_stale(mutant)]
    assert len(stale) <= len(ALL) // 50, stale


def test_each_has_a_name_of_its_own():
    assert len({(mutant.file, mutant.name) for mutant in ALL}) == len(ALL)


def test_their_tests_are_there():
    named = {word.partition("::")[0] for mutant in ALL for word in mutant.tests if word.startswith("tests/")}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_a_sample_may_be_of_any_room():
    rooms = {path.name for path in (ROOT / "src" / "discreet").iterdir() if (path / "__init__.py").exists()}
    sampled = {Path(mutant.file).parts[2] for mutant in ALL if mutant.quick and mutant.file.startswith("src/discreet/")}
    assert rooms <= sampled
