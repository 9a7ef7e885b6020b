"""The notebooks of the documentation run from their first cell to their last, and are stored without their output."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
BOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_three():
    assert len(BOOKS) >= 3


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    book = nbformat.read(path, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not [cell for cell in code if cell.outputs or cell.execution_count]
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any(cell.outputs for cell in code)
