"""Before a command imports libraries: those of NumPy and pyarrow are opened beside it, pandas is kept out."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from threading import get_ident
from types import ModuleType
from typing import Any

_LIBRARIES = {  # NumPy's is in one of two places
    "numpy": ["_core/_multiarray_umath", "core/_multiarray_umath"],
    "pyarrow": ["lib", "_parquet"],
}
_SMALL_LIBRARIES = (
    *("_bisect", "_contextvars", "_csv", "_ctypes", "_datetime", "_decimal", "_heapq", "_json", "_opcode", "_pickle"),
    *("_queue", "_socket", "_struct", "_typing", "_uuid", "array", "fcntl", "math", "select"),
)


def open_libraries(names: Sequence[str] = ("numpy", "pyarrow")) -> None:
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

    _native.open_libraries(library_paths(names))
    atexit.register(_native.libraries_opened)


def library_paths(names: Sequence[str] = ("numpy", "pyarrow")) -> list[str]:
    """Where the libraries of NumPy and pyarrow are that Parquet files need."""
    found = {name: PathFinder.find_spec(name) for name in names}
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


class _NumpyLater:
    """Lets pyarrow be loaded without NumPy, which takes longer than itself, and tells it once something loads NumPy.

    pyarrow does without NumPy where that is not installed. Two of its modules ask for it while they are loaded, and
    have a name `np` from then on. What they do if it is there (`arrow/python/numpy_init.h`) can be done later.
    """

    _MODULES = ("pyarrow.lib", "pyarrow._compute")
    _INITIALIZE = "_ZN5arrow2py16arrow_init_numpyEv"  # arrow::py::arrow_init_numpy()
    _TRIED = 26  # the latest pyarrow that this was tried with; a later one loads NumPy itself

    def __init__(self) -> None:
        self._threads: dict[str, int] = {}  # which loads each of the modules

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """Nothing for pyarrow, which asks; for anyone else, NumPy, which pyarrow is told of when it is loaded."""
        if fullname in self._MODULES:
            self._threads[fullname] = get_ident()
        if fullname != "numpy":
            return None
        mine = [name for name, thread in self._threads.items() if thread == get_ident() and name in sys.modules]
        if any(not hasattr(sys.modules[name], "np") for name in mine) and self._can_be_told():
            raise ImportError("the command line loads NumPy when it is needed")
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_tell(numpy: ModuleType) -> None:
                load(numpy)
                self._tell(numpy)

            spec.loader.exec_module = load_and_tell  # type: ignore[method-assign,assignment]
        return spec

    def _library(self) -> Any:
        from ctypes import PyDLL

        return PyDLL(str(sys.modules["pyarrow.lib"].__file__))

    def _can_be_told(self) -> bool:
        version = str(sys.modules["pyarrow"].__version__)
        return int(version.partition(".")[0]) <= self._TRIED and hasattr(self._library(), self._INITIALIZE)

    def _tell(self, numpy: ModuleType) -> None:
        without = [sys.modules[name] for name in self._MODULES if getattr(sys.modules.get(name), "np", numpy) is None]
        if without:
            getattr(self._library(), self._INITIALIZE)()
        for module in without:
            names = vars(module)
            names["np"] = numpy
            if "SUPPORTED_INPUT_ARR_TYPES" in names:
                names["SUPPORTED_INPUT_ARR_TYPES"] += (numpy.ndarray,)


NUMPY_LATER = _NumpyLater()
