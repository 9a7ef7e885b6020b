"""The order in which the kernels replace zero counters: by the hash of the key under the summary's seed.

The hash itself is asked of the native module; what the order must do is what the references say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.reference.misra_gries import Dummy

from discreet import _native


def hashes(items: list[Any], seed: int) -> list[int]:
    """The 64-bit hashes the kernels give to items."""
    return np.frombuffer(_native.key_hashes(items, seed), dtype=np.uint64).tolist()


def hash_order(items: list[Any], seed: int) -> Callable[[Any], Any]:
    """Sorts keys as the kernels do: unused counters first, then by hash, equal hashes by the bytes of the key."""
    unique = list(dict.fromkeys(items))
    hash_of = dict(zip(unique, hashes(unique, seed), strict=True))

    def as_bytes(key: Any) -> Any:
        return key.encode() if isinstance(key, str) else key

    def order(key: Any) -> Any:
        return (0, key.number) if isinstance(key, Dummy) else (1, hash_of[key], as_bytes(key))

    return order
