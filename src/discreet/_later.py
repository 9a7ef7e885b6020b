"""NumPy and pyarrow, loaded when something of them is first used.

Loading the two takes longer, and more memory, than counting a small file of texts, which needs neither. A module that
only some calls need them in has `from discreet._later import np, pa`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["np", "pa"]

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
else:

    class _Later:
        """Stands for a module until something of it is asked for."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, wanted: str) -> Any:
            found = getattr(import_module(self._name), wanted)
            setattr(self, wanted, found)  # from now on it is found without this
            return found

    np, pa = _Later("numpy"), _Later("pyarrow")
