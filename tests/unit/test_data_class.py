"""The data classes of the package do what those of Python's library do, and the library takes them for its own."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import pprint
import re
import subprocess
import sys
import types
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pytest

import discreet
from discreet import _data_class as ours

SOURCE = '''
from __future__ import annotations
from typing import ClassVar

@dataclass(frozen=True)
class Point:
    """A point."""
    x: int
    y: float = 2.0
    names: tuple = field(default_factory=tuple)
    kind: ClassVar[str] = "point"

@dataclass(frozen=True)
class Checked(Point):
    y: float = 3.0
    more: dict = field(default_factory=dict, compare=False, repr=False)
    wide: int = field(default=5, kw_only=True, metadata={"help": "how wide"})

    def __post_init__(self):
        if self.x < 0:
            raise ValueError("below 0")
        object.__setattr__(self, "x", self.x + 1)

@dataclass(frozen=True, kw_only=True)
class Worded:
    a: int
    b: str = "b"

@dataclass(frozen=True, order=True)
class Span:
    first: int
    after: int

@dataclass
class Open:
    held: list = field(default_factory=list)
    count: int = field(default=0, init=False)
    late: int = field(init=False)

@dataclass(frozen=True, repr=False, eq=False)
class Plain(Point):
    def __repr__(self):
        return "plain"

@dataclass(frozen=True)
class Own:
    a: int = 0
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 7
    def __repr__(self):
        return "own"

@dataclass(frozen=True, init=False)
class Made(Point):
    def __init__(self, x):
        super().__init__(2 * x, 1.0)

@dataclass(frozen=True)
class Empty:
    pass

class Undecorated(Point):
    extra = 1
'''


def _classes(library):
    made = {"__name__": __name__, "dataclass": library.dataclass, "field": library.field}
    exec(SOURCE, made)
    return made


OURS, THEIRS = _classes(ours), _classes(dataclasses)
CALLS = [
    "Point(1)", "Point(1, 3.0)", "Point(y=1, x=2)", "Point()", "Point(1, 2, (), 4)", "Point(1, x=1)", "Point(1, z=1)",
    "Point(1, z=1, x=2)", "Checked(1)", "Checked(-1)", "Checked(1, 2.0, (), {}, 6)", "Checked(1, wide=7)",
    "Worded(a=1)", "Worded(1)", "Worded()", "Worded(a=1, b='c')", "Span(1, 2)", "Open()", "Open([1])", "Open(count=1)",
    "Open(late=1)", "Plain(1)", "Own()", "Own(3)", "Made(1)", "Made(1, 2)", "Empty()", "Empty(1)", "Undecorated(1)",
    "Span(1, 2) == Span(1, 2)", "Span(1, 2) == Span(1, 3)", "Span(1, 2) < Span(1, 3)", "Span(2, 0) <= Span(1, 9)",
    "Span(1, 2) > Span(1, 3)", "Span(1, 2) >= Span(1, 2)", "Span(1, 2) < 3", "Span(1, 2) == (1, 2)",
    "Point(1) == Checked(0)", "Point(1) == Undecorated(1)", "Undecorated(1) == Undecorated(1)",
    "Checked(1, more={1: 2}) == Checked(1)", "Plain(1) == Plain(1)", "Own(1) == Own(2)", "Empty() == Empty()",
    "hash(Span(1, 2))", "hash(Point(1))", "hash(Own(1))", "hash(Open())", "hash(Empty())", "hash(Checked(1))",
    "setattr(Point(1), 'x', 2)", "setattr(Point(1), 'new', 2)", "delattr(Point(1), 'x')", "setattr(Open(), 'new', 2)",
    "setattr(Undecorated(1), 'x', 2)", "setattr(Undecorated(1), 'new', 2)", "delattr(Undecorated(1), 'new')",
    "Point.__match_args__", "Worded.__match_args__", "Checked.__match_args__", "Point.kind", "Point.y", "Checked.wide",
    "Point.names", "Open().late", "Open.count", "Point.__init__.__qualname__", "Point.__doc__",
]  # fmt: skip


def _outcome(names, call):
    try:
        return repr(eval(call, dict(names)))
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("call", CALLS)
def test_they_do_the_same(call):
    told, expected = _outcome(OURS, call), _outcome(THEIRS, call)
    if isinstance(told, tuple) and "unhashable" not in told[1]:
        assert told[0] is expected[0]
        told, expected = told[1], expected[1]
    assert told == expected


@pytest.mark.parametrize("name", ["Point", "Checked", "Worded", "Span", "Open", "Plain", "Own", "Made", "Empty"])
def test_the_library_knows_them(name):
    mine, theirs = OURS[name], THEIRS[name]
    assert dataclasses.is_dataclass(mine)
    assert inspect.signature(mine) == inspect.signature(theirs)
    assert mine.__dataclass_params__.frozen is theirs.__dataclass_params__.frozen

    def told(each):
        return each.name, each.type, each.default, each.default_factory, each.init, each.compare, each.kw_only

    assert [told(each) for each in dataclasses.fields(mine)] == [told(each) for each in dataclasses.fields(theirs)]
    assert [each.name for each in ours.fields(mine)] == [each.name for each in dataclasses.fields(theirs)]
    assert [dict(each.metadata) for each in ours.fields(mine)] == [dict(each.metadata) for each in ours.fields(theirs)]
    assert [each.default is ours.MISSING for each in ours.fields(theirs)] == [
        each.default is dataclasses.MISSING for each in dataclasses.fields(mine)
    ]


def test_replace_and_asdict_are_those_of_the_library():
    mine, theirs = OURS["Worded"](a=1), THEIRS["Worded"](a=1)
    for library in (ours, dataclasses):
        assert library.asdict(mine) == library.asdict(theirs) == {"a": 1, "b": "b"}
        for value in (mine, theirs):
            changed = library.replace(value, b="c")
            assert type(changed) is type(value)
            assert (changed.a, changed.b) == (1, "c")
            with pytest.raises(TypeError, match="unexpected keyword argument 'd'"):
                library.replace(value, d=1)
    with pytest.raises(ValueError, match="below 0"):
        ours.replace(OURS["Checked"](1), x=-1)  # it is checked again
    inner = OURS["Point"](1, names=({"a": OURS["Span"](1, 2)}, [OURS["Span"](3, 4)]))
    assert ours.asdict(inner) == dataclasses.asdict(inner)
    assert ours.asdict(inner)["names"] == ({"a": {"first": 1, "after": 2}}, [{"first": 3, "after": 4}])
    assert not ours.is_dataclass(3)
    assert ours.is_dataclass(inner)
    assert ours.is_dataclass(THEIRS["Span"])


def test_one_of_the_library_may_follow_one_of_ours_and_the_other_way_round():
    @dataclasses.dataclass(frozen=True)
    class Theirs(OURS["Point"]):
        more: int = 4

    @ours.dataclass(frozen=True)
    class Ours(THEIRS["Point"]):
        more: int = 4

    for made in (Theirs, Ours):
        assert repr(made(1, more=5)).endswith("(x=1, y=2.0, names=(), more=5)")
        assert [each.name for each in ours.fields(made)] == ["x", "y", "names", "more"]
        assert ours.replace(made(1), x=2, more=6) == made(2, more=6)
        with pytest.raises(dataclasses.FrozenInstanceError):
            made(1).more = 2


@ours.dataclass(frozen=True)
class Kept:
    """A class of a module, as those that are pickled are."""

    name: str
    kind: ClassVar[str] = "kept"
    parts: tuple[int, ...] = ()

    @cached_property
    def count(self) -> int:
        return len(self.parts)


def test_values_are_copied_and_pickled():
    kept = Kept("a", (1, 2))
    assert kept.count == 2
    for again in (copy.copy(kept), copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
        assert again == kept
        assert hash(again) == hash(kept)
        assert again.count == 2
    match kept:
        case Kept(name, parts):
            assert (name, parts) == ("a", (1, 2))


def test_the_package_makes_no_data_class_in_another_way():
    """One from Python's library costs a third of a millisecond whenever its module is loaded."""
    package = Path(discreet.__file__).parent
    using = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"^(from|import) dataclasses\b", path.read_text(), re.MULTILINE)
    }
    assert using == set()


def test_fields_may_be_said_for_either():
    """What `word` makes is a field for both, so that a question of somebody else's may be made by the library."""
    for made_by in (ours, dataclasses):
        for said_by in (ours, dataclasses):
            made = {"__name__": __name__, "dataclass": made_by.dataclass, "field": said_by.field}
            exec(SOURCE, made)
            assert repr(made["Checked"](1, wide=4)) == "Checked(x=2, y=3.0, names=(), wide=4)"
            assert made["Checked"].wide == 5
            assert [dict(each.metadata) for each in ours.fields(made["Checked"])][-1] == {"help": "how wide"}
            assert not hasattr(made["Open"], "held")


def test_they_need_nothing_of_the_library():
    """Neither to be made nor to be used: it takes longer to load than all of them."""
    program = f"import sys; from discreet._data_class import dataclass, field, fields, replace, asdict\n{SOURCE}\n" + (
        "value = replace(Checked(1, wide=7), y=1.0)\n"
        "print(repr(value), asdict(value)['wide'], hash(value) == hash(value), value == value, len(fields(value)),\n"
        "      'dataclasses' in sys.modules)"
    )
    program = program.replace("from __future__ import annotations", "")
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"from __future__ import annotations\n{program}"], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(discreet.__file__).parents[1])},
    )  # fmt: skip
    assert done.stdout.split() == ["Checked(x=3,", "y=1.0,", "names=(),", "wide=7)", "7", "True", "True", "5", "False"]


def test_long_values_are_printed():
    """`pprint` asks what a class was made with, as soon as a value is longer than a line."""
    guarantee = discreet.count({"q": ["a"]}, discreet.Budget(1.0), unit=discreet.Event()).guarantee
    assert pprint.pformat(guarantee) == repr(guarantee)
    made = [dataclasses.dataclass(frozen=True)(type("A", (), {"__annotations__": {"a": "int"}})), type(guarantee)]
    known, told = (vars(each)["__dataclass_params__"] for each in made)
    assert all(getattr(known, name) == getattr(told, name) for name in ("init", "repr", "eq", "order", "frozen"))


def test_a_library_that_another_thread_is_about_to_load_is_not_used(monkeypatch):
    """It is in the table of modules before it has anything."""
    monkeypatch.setitem(sys.modules, "dataclasses", types.ModuleType("dataclasses"))
    made = ours.dataclass(frozen=True)(type("A", (), {"__annotations__": {"a": "int"}, "a": ours.field(default=3)}))
    assert made().a == 3
