"""Python takes the native module from DISCREET_CHECKED, which the sanitizers were built into.

`make sanitize` puts this folder on the path of every process that it starts, and preloads the address sanitizer.
"""

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path

(CHECKED,) = Path(os.environ["DISCREET_CHECKED"]).glob("_native*.so")


class CheckedNative:
    """Finds one module, and leaves all others to those that come after it."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != "discreet._native":
            return None
        return importlib.util.spec_from_file_location(name, CHECKED)


sys.meta_path.insert(0, CheckedNative())
