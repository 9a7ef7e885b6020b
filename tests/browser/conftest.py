"""The client of clients/js, in Node. Without it the tests are skipped, or fail where CI is set."""

import os
import shutil
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[2] / "clients" / "js"


@pytest.fixture(scope="session")
def client():
    return CLIENT


@pytest.fixture(scope="session")
def node():
    found = shutil.which("node")
    if found is None:
        assert not os.environ.get("CI"), "these tests need Node (the package nodejs)"
        pytest.skip("needs Node (the package nodejs)")
    return found
