"""Under `make sanitize` the module in use is the checked one; elsewhere there is nothing to say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif("DISCREET_CHECKED" not in os.environ, reason="only where sanitizers are in use")


def test_the_checked_module_is_in_use():
    from discreet import _native

    assert Path(_native.__file__).parent == Path(os.environ["DISCREET_CHECKED"])
    assert "libasan" in Path("/proc/self/maps").read_text()


def test_a_read_beside_a_buffer_ends_the_process():
    """A column of three numbers that says it has 100: nothing in C++ can know, the sanitizer does."""
    code = """
import ctypes, pyarrow as pa, discreet as dc
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
memory = libc.malloc(24)
buffer = pa.foreign_buffer(memory, 800)
dc.MisraGries(4).update(pa.Array.from_buffers(pa.int64(), 100, [None, buffer]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
