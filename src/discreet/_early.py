"""Before a command imports libraries: those of NumPy and pyarrow are opened beside it, and pandas is kept out."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder

_LIBRARIES = {  # NumPy's is in one of two places
    "numpy": ["_core/_multiarray_umath", "core/_multiarray_umath"],
    "pyarrow": ["lib", "_parquet"],
}
_SMALL_LIBRARIES = (
    *("_bisect", "_contextvars", "_csv", "_ctypes", "_datetime", "_decimal", "_heapq", "_json", "_opcode", "_pickle"),
    *("_queue", "_socket", "_struct", "_typing", "_uuid", "array", "fcntl", "math", "select"),
)


def open_libraries() -> None:
    """Begin to open the libraries of NumPy and pyarrow, for a command that needs them, beside what is imported first.

    A thread does, which Python knows nothing of. It takes 15 ms, in which no other library can be opened: so the small
    ones that are imported meanwhile come first.
    """
    # NumPy would start a thread a core for linear algebra, which wait busily: a tenth of a second of each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in _SMALL_LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    from discreet import _native

    _native.open_libraries(library_paths())
    atexit.register(_native.libraries_opened)


def library_paths() -> list[str]:
    """Where the libraries of NumPy and pyarrow are that Parquet files need."""
    found = {name: PathFinder.find_spec(name) for name in _LIBRARIES}
    folders = {name: (spec.submodule_search_locations or [""])[0] for name, spec in found.items() if spec is not None}
    ending = EXTENSION_SUFFIXES[0]
    paths = (f"{folder}/{module}{ending}" for name, folder in folders.items() for module in _LIBRARIES[name])
    return [path for path in paths if os.path.exists(path)]


class _WithoutPandas:
    """Keeps pyarrow from importing pandas, where it is installed, just to recognise its columns.

    There are none here, and importing pandas takes longer than all other imports together. pyarrow is compiled: where
    `sys.modules` has None for pandas it does not take that for an answer, so the import itself must fail.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ImportError("the command line does without pandas")


WITHOUT_PANDAS = _WithoutPandas()
