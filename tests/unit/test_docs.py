"""The Python examples of the documentation run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["docs/quickstart.md"]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run_in_order(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    examples = blocks(page)
    assert examples
    names = {}
    for number, code in enumerate(examples, 1):
        exec(compile(code, f"{page}, block {number}", "exec"), names)
    assert "my rare disease" not in capsys.readouterr().out
