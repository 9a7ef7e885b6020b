"""Where a summary runs: threads of one machine (`local`), or a cluster (`spark`, `spark_streaming`).

They are loaded on first use: the Spark engine needs PySpark, nothing else does.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = ("local", "spark", "spark_streaming")

__all__ = ["local", "spark", "spark_streaming"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"discreet.engines.{name}")
    raise AttributeError(f"module 'discreet.engines' has no attribute {name!r}")
