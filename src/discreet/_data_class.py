"""Data classes as `dataclasses` makes them, in a fraction of its time.

Python's library writes the source of up to six methods for each class and compiles it, whenever a module is loaded:
that was a fifth of a short command. The methods here go through the fields when they are called. They do the same, and
the library's functions take these classes for their own. Annotations must be texts; only `ClassVar` means anything.
"""

from __future__ import annotations

import sys
from functools import cached_property
from operator import attrgetter, ge, gt, le, lt
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING

__all__ = ["MISSING", "asdict", "dataclass", "field", "fields", "is_dataclass", "replace"]

if TYPE_CHECKING:
    from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
else:
    MISSING = type("MISSING", (), {})
    _FIELDS = "__dataclass_fields__"  # as the library calls it
    _SAID = ("default", "default_factory", "init", "repr", "compare", "kw_only", "metadata")
    _ORDERS = {"__lt__": lt, "__le__": le, "__gt__": gt, "__ge__": ge}

    # ---- fields ------------------------------------------------------------------------------------------------------

    class _Field:
        """A field, and what is said of it."""

        def __init__(
            self, *, default=MISSING, default_factory=MISSING, init=True, repr=True, compare=True, kw_only=MISSING,
            metadata=MappingProxyType({}),
        ):  # fmt: skip
            self.default, self.default_factory = default, default_factory
            self.init, self.repr, self.compare, self.kw_only, self.metadata = init, repr, compare, kw_only, metadata

    def _library():
        """The library, if it is loaded. Another thread may be about to: then it has no fields yet."""
        library = sys.modules.get("dataclasses")
        return library if hasattr(library, "field") else None

    def field(**said):
        """A field of which more is said. A class of somebody else's may be made by the library, which knows its own."""
        library = _library()
        return _Field(**said) if library is None else library.field(**said)

    class _Fields:
        """The fields of a class. The library is given those of its own class with the same ones."""

        def __init__(self, cls, every):
            self._cls, self.every = cls, every
            self.places = tuple(each.name for each in every if each.init and not each.kw_only)

        def __get__(self, value, cls):
            return getattr(self.twin, _FIELDS)

        @cached_property
        def twin(self):
            """The library's class: it knows what else there is to know, and what is wrong with a call."""
            import dataclasses

            told = []
            for each in self.every:
                said = {name: value for name in _SAID if (value := getattr(each, name)) is not MISSING}
                told.append((each.name, each.type, dataclasses.field(**said)))
            return dataclasses.make_dataclass(self._cls.__name__, told, repr=False, eq=False)

    class _Signature:
        """What `inspect` shows of a class that has the `__init__` made here."""

        def __init__(self, told, init):
            self._told, self._init = told, init

        def __get__(self, value, cls):
            if value is not None or cls.__init__ is not self._init:
                raise AttributeError("__signature__")
            from inspect import signature

            return signature(self._told.twin)

    def fields(what):
        """The fields of a class, or of a value."""
        cls = what if isinstance(what, type) else type(what)
        found = next(vars(each)[_FIELDS] for each in cls.__mro__ if _FIELDS in vars(each))
        if isinstance(found, _Fields):
            return found.every
        from dataclasses import fields as fields_there

        return tuple(map(_from_library, fields_there(cls)))

    def is_dataclass(what):
        """Whether it is a data class, or the value of one."""
        return hasattr(what if isinstance(what, type) else type(what), "__dataclass_params__")

    def _from_library(each):
        """A field of the library's, as one of ours."""
        from dataclasses import MISSING as NOTHING

        said = {name: value for name in _SAID if (value := getattr(each, name)) is not NOTHING}
        ours = _Field(**said)
        ours.name, ours.type = each.name, each.type
        return ours

    def _fields_of(cls, kw_only):
        """Those of a class that is made: of its bases, and its own."""
        found, library = {}, _library()
        for base in reversed(cls.__mro__[1:]):
            if _FIELDS in vars(base):
                found |= {each.name: each for each in fields(base)}
        for name, kind in cls.__annotations__.items():
            if kind.startswith("ClassVar"):
                continue
            own = getattr(cls, name, MISSING)
            if library is not None and isinstance(own, library.Field):
                own = _from_library(own)
            if not isinstance(own, _Field):
                own = _Field(default=own)
            elif own.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, own.default)
            own.name, own.type = name, kind
            own.kw_only = kw_only if own.kw_only is MISSING else own.kw_only
            found[name] = own
        return tuple(found.values())

    # ---- values ------------------------------------------------------------------------------------------------------

    def replace(value, /, **changes):
        """The same value with these fields: it is made, and checked, anew."""
        kept = [each.name for each in fields(value) if each.init and each.name not in changes]
        return type(value)(**{name: getattr(value, name) for name in kept}, **changes)

    def asdict(value):
        """The fields by their names, also those of values in it."""
        if is_dataclass(type(value)):
            return {each.name: asdict(getattr(value, each.name)) for each in fields(value)}
        if isinstance(value, dict):
            return {asdict(key): asdict(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            inner = map(asdict, value)
            return type(value)(*inner) if hasattr(value, "_fields") else type(value)(inner)
        return value

    def _values_of(names):
        """A function that gives the values of these fields: a tuple."""
        if len(names) > 1:
            return attrgetter(*names)
        return lambda value: tuple(getattr(value, name) for name in names)

    # ---- classes -----------------------------------------------------------------------------------------------------

    def dataclass(cls=None, /, **how):
        """Make a data class of a class."""
        return (lambda made: _made(made, **how)) if cls is None else _made(cls, **how)

    def _made(cls, *, init=True, repr=True, eq=True, order=False, frozen=False, kw_only=False):
        every = _fields_of(cls, kw_only)
        told = _Fields(cls, every)
        compared = _values_of([each.name for each in every if each.compare])
        methods = {}
        if init:
            methods["__init__"] = _init(cls, told)
        if repr:
            methods["__repr__"] = _repr([each.name for each in every if each.repr])
        if eq:
            methods["__eq__"] = _eq(compared)
        if eq and frozen:
            methods["__hash__"] = lambda self: hash(compared(self))
        if order:
            methods |= {name: _order(compared, holds) for name, holds in _ORDERS.items()}
        if frozen:
            methods |= _refusals(cls, {each.name for each in every})
        for name, method in methods.items():
            if name not in vars(cls):  # what a class has by itself stays
                method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
                setattr(cls, name, method)
        if eq and not frozen and "__hash__" not in vars(cls):
            cls.__hash__ = None
        setattr(cls, _FIELDS, told)
        cls.__dataclass_params__ = SimpleNamespace(
            init=init, repr=repr, eq=eq, order=order, unsafe_hash=False, frozen=frozen
        )
        cls.__match_args__ = told.places
        cls.__replace__ = replace
        if init:
            cls.__signature__ = _Signature(told, cls.__init__)
        return cls

    def _init(cls, told):
        rows = [each for each in told.every if each.init or each.default_factory is not MISSING]
        blank = {each.name: each.default for each in rows}
        made = [(each.name, each.default_factory) for each in rows if each.default_factory is not MISSING]
        known = {each.name for each in rows if each.init}
        needed = {name for name in known if blank[name] is MISSING}.difference(name for name, _ in made)
        places, checked = told.places, hasattr(cls, "__post_init__")

        def init(self, /, *args, **given):
            if args:
                if len(args) > len(places) or not given.keys().isdisjoint(places[: len(args)]):
                    told.twin(*args, **given)  # says what is wrong
                given.update(zip(places, args, strict=False))
            if not needed <= given.keys() <= known:
                told.twin(**given)
            values = {**blank, **given}
            for name, factory in made:
                if name not in given:
                    values[name] = factory()
            self.__dict__.update(values)
            if checked:
                self.__post_init__()

        return init

    def _repr(names):
        def shown(self):
            return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

        return shown

    def _eq(compared):
        def equal(self, other):
            return compared(self) == compared(other) if type(other) is type(self) else NotImplemented

        return equal

    def _order(compared, holds):
        def ordered(self, other):
            return holds(compared(self), compared(other)) if type(other) is type(self) else NotImplemented

        return ordered

    def _refusals(cls, names):
        def refuse(self, name, how):
            if type(self) is cls or name in names:
                from dataclasses import FrozenInstanceError

                raise FrozenInstanceError(f"cannot {how} field {name!r}")

        def assign(self, name, value):
            refuse(self, name, "assign to")
            super(cls, self).__setattr__(name, value)

        def delete(self, name):
            refuse(self, name, "delete")
            super(cls, self).__delattr__(name)

        return {"__setattr__": assign, "__delattr__": delete}
