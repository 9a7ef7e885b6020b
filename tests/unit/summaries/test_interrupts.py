"""Ctrl-C during a long update arrives soon and leaves the summary as it was. No time is asserted: an update that could
not be interrupted would run until the subprocess is ended by its timeout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# The input never ends (or takes minutes), so only the signal can end the update.
PROGRAM = """
import itertools, mmap
import numpy as np, pyarrow as pa
import discreet as dc

summary = {summary}
summary.update({start})
before = summary.to_bytes()
chunk = {chunk}
print("ready", flush=True)
try:
    summary.update({endless})
except KeyboardInterrupt:
    assert summary.to_bytes() == before
    summary.update({start})
    print("unchanged", flush=True)
"""
# One chunk of 2**36 zero bytes: address space that is never written takes no memory.
ZEROS = "mmap.mmap(-1, 2**36, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)"
READER = (
    "pa.RecordBatchReader.from_batches(pa.schema([('x', {type})]), itertools.repeat(pa.record_batch({{'x': chunk}})))"
)

CASES = {
    "NumPy": ("dc.MisraGries(1024)", "[1, 2]", ZEROS, "np.frombuffer(chunk, np.int8)"),
    "one Arrow column": (
        "dc.SpaceSaving(1024)",
        "[1, 2]",
        ZEROS,
        "pa.Array.from_buffers(pa.uint8(), 2**36, [None, pa.py_buffer(chunk)])",
    ),
    "one Arrow column of bytes": (
        "dc.MisraGries(1024)",
        "[b'a']",
        ZEROS,
        "pa.Array.from_buffers(pa.binary(1), 2**36, [None, pa.py_buffer(chunk)])",
    ),
    "one dictionary column": (
        "dc.MisraGries(1024)",
        "['a']",
        ZEROS,
        "pa.DictionaryArray.from_buffers(pa.dictionary(pa.int8(), pa.string()), 2**36, [None, pa.py_buffer(chunk)], "
        "pa.array(['word']))",
    ),
    "Arrow strings": (
        "dc.MisraGries(64)",
        "['a']",
        "pa.array([f'item {i}' for i in range(10**5)])",
        READER.format(type="pa.string()"),
    ),
    "dictionary": (
        "dc.ExactCounts()",
        "['a']",
        "pa.array([f'item {i % 99}' for i in range(10**5)]).dictionary_encode()",
        READER.format(type="pa.dictionary(pa.int32(), pa.string())"),
    ),
    "threads, one Arrow column": (
        "dc.ShardedMisraGries(1024, 2)",
        "[1, 2]",
        ZEROS,
        "pa.Array.from_buffers(pa.uint8(), 2**36, [None, pa.py_buffer(chunk)])",
    ),
    "threads, Arrow strings": (
        "dc.ShardedMisraGries(64, 2)",
        "['a']",
        "pa.array([f'item {i}' for i in range(10**5)])",
        READER.format(type="pa.string()"),
    ),
    "iterable": ("dc.MisraGries(64)", "[1, 2]", "[]", "itertools.count()"),
    "users": (
        "dc.UserMisraGries(64, 3)",
        "[[1, 2]]",
        "pa.array([[i, i % 7] for i in range(10**5)])",
        READER.format(type="pa.list_(pa.int64())"),
    ),
    "an endless user": ("dc.UserMisraGries(64, 3)", "[[1, 2]]", "[]", "[itertools.repeat(1)]"),
}


def work_a_while(pid):
    """Until the process has worked for a quarter of a second more: then it is in the update, on a busy machine too."""

    def worked():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    if not Path("/proc/self/stat").exists():
        time.sleep(1.0)
        return
    until = worked() + 0.25
    while worked() < until:
        time.sleep(0.01)


@pytest.mark.parametrize("name", CASES)
def test_interrupt(spawn, name):
    summary, start, chunk, endless = CASES[name]
    program = PROGRAM.format(summary=summary, start=start, chunk=chunk, endless=endless)
    with spawn([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        work_a_while(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == (b"unchanged\n", 0), err.decode()
