"""The commands of the documentation run, after the Python that makes their files."""

import re
import shlex
from pathlib import Path

import pytest
from tests.commands import run_here

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["docs/files.md", "docs/sql.md", "docs/tables.md"])
def test_commands_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    names, ran = {}, 0
    for language, code in blocks:
        if language == "python":
            exec(compile(code, page, "exec"), names)
            continue
        for line in code.replace("\\\n", " ").splitlines():
            program, *words = shlex.split(line)
            assert program == "discreet"
            done = run_here(*words)
            assert done.returncode == 0, (line, done.stderr)
            assert done.stdout
            ran += 1
    assert ran >= 4
