"""Every command and every line of docs/cookbook.md, in order, on the data that the page makes."""

import re
import shlex
from pathlib import Path

import pytest
from tests.commands import run_here

PAGE = (Path(__file__).parents[2] / "docs/cookbook.md").read_text()
BLOCKS = re.findall(r"^```(bash|python)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
TITLES = re.findall(r"^## (\d+)\. ", PAGE, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The folder and the names that the first block makes."""
    folder, names = tmp_path_factory.mktemp("shop"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(BLOCKS[0][1], "docs/cookbook.md, data", "exec"), names)
    return folder, names


def test_there_are_twenty_questions_or_more():
    assert [*map(int, TITLES)] == [*range(1, len(TITLES) + 1)]
    assert len(TITLES) >= 20
    assert [kind for kind, _ in BLOCKS] == ["python"] + ["bash", "python"] * len(TITLES)


@pytest.mark.parametrize("number", range(1, len(BLOCKS)))
def test_every_block_runs_and_answers(shop, number, monkeypatch):
    folder, names = shop
    monkeypatch.chdir(folder)
    kind, code = BLOCKS[number]
    if kind == "bash":
        words = shlex.split(code.replace("\\\n", " "))
        assert words.pop(0) == "discreet"
        done = run_here(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert "Differentially private" in done.stdout
        assert "left out" not in done.stderr  # every row can be read
        assert "No item passed" not in done.stdout
        assert "my order" not in done.stdout
    else:
        answer = eval(compile(code.strip(), f"docs/cookbook.md, block {number}", "eval"), names)
        assert answer.guarantee.sentence().startswith("Differentially private")
        assert getattr(answer, "counts", [1]) is not None
        if hasattr(answer, "__len__"):
            assert len(answer) > 0
