"""The committed stub of the native module is what the module says of itself."""

import subprocess
import sys
from pathlib import Path

import discreet


def test_stub_is_current(tmp_path):
    fresh = tmp_path / "_native.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "discreet._native", "-o", str(fresh)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    committed = Path(discreet.__file__).with_name("_native.pyi")
    assert fresh.read_text() == committed.read_text(), "run `make stubs`"
