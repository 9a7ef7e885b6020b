"""States of CountMin and CountSketch written by earlier versions stay readable.

The files were made by `python -m tests.golden.test_linear_golden`; never rewrite one, add a new version beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.reference.states import content, first_hash

import discreet as dc

HERE = Path(__file__).parent
STREAMS: dict[str, list[Any]] = {
    "int64": [7, 7, -1, 7, 2**40, -1, 3, 4, 5, 7],
    "string": ["a", "b", "a", "", "longer than inline keys are", "é", "a", "b"],
}
FILES = {
    f"{name}-{keys}-v{version}.state": (kind, stream)
    for name, kind in (("count_min", dc.CountMin), ("count_sketch", dc.CountSketch))
    for keys, stream in STREAMS.items()
    for version in (1, 2)
}


def make(kind: Any, stream: list[Any]) -> Any:
    """With the hash of bytes that the envelope of these files stands for."""
    sketch = first_hash(kind(11, 3, tracked=3, max_key_bytes=64, seed=2**63 + 9))
    sketch.update(stream)
    return sketch


@pytest.mark.parametrize("name", FILES)
def test_golden_states_are_read_and_written(name: str) -> None:
    kind, stream = FILES[name]
    data = (HERE / name).read_bytes()
    sketch = kind.from_bytes(data)
    assert sketch.to_bytes() == data or "-v1" in name
    assert len(sketch.lineage) == 1
    assert (sketch.width, sketch.depth, sketch.tracked, sketch.max_key_bytes) == (11, 3, 3, 64)
    assert (sketch.seed, sketch.total, sketch.was_merged) == (2**63 + 9, len(stream), False)
    # The hash functions are part of the format: the same seed and stream must give the same bytes for ever.
    assert content(make(kind, stream)) == content(sketch)


if __name__ == "__main__":
    for name, (kind, stream) in FILES.items():
        if not (HERE / name).exists():
            (HERE / name).write_bytes(make(kind, stream).to_bytes())
            sys.stdout.write(f"wrote {name}\n")
