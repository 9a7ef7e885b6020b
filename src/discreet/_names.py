"""Names of a package that are loaded on first use."""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, which takes longer to load than all that is needed here
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def on_first_use(
    package: str, where: Mapping[str, str | None], renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    `where` says in which module of discreet a name is; None for a name that is a module of the package itself.
    `renamed` has the names of the version before, which still work and warn.
    """

    def load(name: str) -> Any:
        from importlib import import_module

        if renamed is not None and name in renamed:
            from warnings import warn

            warn(f"{package}.{name} is now called {renamed[name]}", DeprecationWarning, stacklevel=2)
            return getattr(import_module(package), renamed[name])
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = where[name]
        value = import_module(f"{package}.{name}") if home is None else getattr(import_module(f"discreet.{home}"), name)
        setattr(import_module(package), name, value)
        return value

    def names() -> list[str]:
        from importlib import import_module

        return sorted(import_module(package).__all__)

    return load, names
