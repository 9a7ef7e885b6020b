"""Where a summary runs: threads of one machine (`threads`), or a cluster (`spark`, `spark_streaming`).

They are loaded on first use: the Spark engine needs PySpark, nothing else does.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = ("threads", "spark", "spark_streaming")

__all__ = ["spark", "spark_streaming", "threads"]


def __getattr__(name: str) -> Any:
    if name == "local":  # as it was called
        name = "threads"
    if name in _MODULES:
        return import_module(f"discreet.engines.{name}")
    raise AttributeError(f"module 'discreet.engines' has no attribute {name!r}")
