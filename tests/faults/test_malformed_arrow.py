"""Malformed Arrow C structures from another library are refused: no crash, no hang."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

SCRIPT = Path(__file__).with_name("malformed_arrow.py")


def test_malformed_arrow_structures_are_refused(rounds):
    """Random changes to lengths, counts, offsets, formats and pointers, seeded. A crash or a hang fails."""
    for seed in range(rounds(2, 40)):
        done = subprocess.run(
            [sys.executable, str(SCRIPT), str(seed), "1500"], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, (seed, done.returncode, done.stdout[-200:], done.stderr[-2000:])
        ends = Counter(line.strip() for line in done.stdout.splitlines()[1::2])
        assert set(ends) <= {"counted", "DataError"}
        assert ends["DataError"] > 500
