"""The notebooks of the documentation run from their first cell to their last, and are stored without their output."""

from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
BOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_three():
    assert len(BOOKS) >= 3


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    book = nbformat.read(path, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not [cell for cell in code if cell.outputs or cell.execution_count]
    # Sockets in a folder of its own: two kernels that start at once may take the same port. Their paths must be short.
    with TemporaryDirectory() as sockets:
        config = Config(KernelManager={"transport": "ipc", "connection_file": f"{sockets}/kernel.json"})
        how = {"timeout": 300, "startup_timeout": 300, "config": config}
        NotebookClient(book, **how, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any(cell.outputs for cell in code)
