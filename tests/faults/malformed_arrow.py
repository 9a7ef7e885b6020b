"""Feeds malformed Arrow C structures to discreet, made with ctypes. Arguments: a seed and a number of rounds.

Run by test_malformed_arrow.py in a process of its own, because a check that is missing is a crash. Lengths are wrong by
little (then what is behind the buffer is read) or by so much that no memory is there; which of the two it is in
between, the interface does not tell. Behind a buffer are zeros: other memory of this process may change between the
check of a view and its use.
"""

import ctypes
import random
import sys
from contextlib import suppress

import discreet as dc
from discreet import _native

I64 = ctypes.c_int64
P = ctypes.c_void_p


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, P)
GET = ctypes.CFUNCTYPE(ctypes.c_int, P, P)
Schema._fields_ = [
    ("format", P),
    ("name", P),
    ("metadata", P),
    ("flags", I64),
    ("n_children", I64),
    ("children", P),
    ("dictionary", P),
    ("release", P),
    ("private_data", P),
]
Array._fields_ = [
    ("length", I64),
    ("null_count", I64),
    ("offset", I64),
    ("n_buffers", I64),
    ("n_children", I64),
    ("buffers", P),
    ("children", P),
    ("dictionary", P),
    ("release", P),
    ("private_data", P),
]
Stream._fields_ = [("get_schema", P), ("get_next", P), ("get_last_error", P), ("release", P), ("private_data", P)]

BEHIND = 256  # bytes
CONDITION = _native.CellCondition([[("whole", 0, "=", "404")]])
KEPT = []  # everything that structures point to


def kept(thing):
    KEPT.append(thing)
    return thing


@RELEASE
def nothing(structure):
    pass


def pointer(thing):
    return ctypes.cast(ctypes.pointer(kept(thing)), P).value


def text(data):
    return ctypes.cast(kept(ctypes.create_string_buffer(data)), P).value


def pointers(values):
    return ctypes.cast(kept((P * max(1, len(values)))(*values)), P).value


def data(raw):
    return None if raw is None else ctypes.cast(kept(ctypes.create_string_buffer(raw, len(raw) + BEHIND)), P).value


def integers(values, size):
    return b"".join(value.to_bytes(size, "little", signed=True) for value in values)


def column(format, length, buffers, children=(), dictionary=None, null_count=0):
    """A schema and an array, each a structure of this process."""
    schema = kept(Schema(text(format), text(b"q"), None, 2, len(children), None, None, ctypes.cast(nothing, P).value))
    array = kept(Array(length, null_count, 0, len(buffers), len(children), pointers([data(b) for b in buffers])))
    array.release = ctypes.cast(nothing, P).value
    schema.children = pointers([pointer(child[0]) for child in children])
    array.children = pointers([pointer(child[1]) for child in children])
    if dictionary is not None:
        schema.dictionary, array.dictionary = pointer(dictionary[0]), pointer(dictionary[1])
    return schema, array


def view(size, rest):
    return integers([size], 4) + rest


def strings(format=b"u", size=4):
    return column(format, 3, [b"\x07", integers([0, 1, 3, 6], size), b"abbccc"])


GOOD = {
    "integers": lambda: column(b"l", 3, [None, integers([1, 2, 1], 8)]),
    "small": lambda: column(b"C", 3, [b"\x07", b"\x01\x02\x01"]),
    "strings": strings,
    "large": lambda: strings(b"U", 8),
    "fixed": lambda: column(b"w:2", 3, [None, b"aabbaa"]),
    "nulls": lambda: column(b"n", 3, [], null_count=3),
    "views": lambda: column(
        b"vu",
        2,
        [None, view(1, b"a" + bytes(11)) + view(20, b"bbbb" + integers([0, 4], 4)), b"b" * 24, integers([24], 8)],
    ),
    "dictionary": lambda: column(b"i", 3, [None, integers([0, 1, 0], 4)], dictionary=strings()),
    "table": lambda: column(b"+s", 3, [None], [column(b"l", 3, [None, integers([1, 2, 1], 8)])]),
    "lists": lambda: column(b"+l", 2, [None, integers([0, 1, 3], 4)], [strings()]),
    "fixed lists": lambda: column(b"+w:3", 1, [None], [strings()]),
}
LISTS = ("lists", "fixed lists")

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [P, ctypes.c_char_p, P]


class Column:
    def __init__(self, schema, array):
        self.schema, self.array = schema, array

    def __arrow_c_array__(self, requested_schema=None):
        return new_capsule(pointer(self.schema), b"arrow_schema", None), new_capsule(
            pointer(self.array), b"arrow_array", None
        )


class Batches:
    """A stream of the same array, some times over."""

    def __init__(self, schema, array, times, changes=None):
        left = [times]

        @GET
        def get_schema(stream, out):
            ctypes.memmove(out, ctypes.byref(schema), ctypes.sizeof(Schema))
            return 0

        @GET
        def get_next(stream, out):
            left[0] -= 1
            made = array if left[0] >= 0 else Array()
            ctypes.memmove(out, ctypes.byref(made), ctypes.sizeof(Array))
            return 0

        @RELEASE
        def release(stream):
            pass

        callbacks = [ctypes.cast(kept(call), P).value for call in (get_schema, get_next)]
        self.stream = Stream(*callbacks, None, ctypes.cast(kept(release), P).value)
        for name, value in (changes or {}).items():
            setattr(self.stream, name, value)

    def __arrow_c_stream__(self, requested_schema=None):
        return new_capsule(pointer(self.stream), b"arrow_array_stream", None)


NUMBERS = [-1, -(2**63), 2**63 - 1, 2**62, 2**40, 2**40 + 1, 2**36, 0, 1, 4, 5]
ADDRESSES = [None, 1, 8, 0xDEAD000, 2**47 - 8, 2**47, 2**63, 2**64 - 8]
FORMATS = [None, b"", b"w:", b"w:x", b"w:-2", b"w:0", b"w:99999999999999999999", b"w:2147483647", b"+w:-1", b"+w:0"]
FORMATS += [
    b"+w:9223372036854775807",
    b"l",
    b"u",
    b"U",
    b"z",
    b"vu",
    b"n",
    b"+s",
    b"+l",
    b"+L",
    b"g",
    b"\xff",
    b"w" * 10**4,
]
OFFSETS = [-1, -(2**31), 2**31 - 1, 2**30, 7, 6, 2, 0]


def members(schema, array):
    """The array and those below it, with their schemas; of a structure that is still whole."""
    yield schema, array
    if array.dictionary:
        yield from members(Schema.from_address(schema.dictionary), Array.from_address(array.dictionary))
    for i in range(array.n_children):
        below = [P.from_address(structure.children + 8 * i).value for structure in (schema, array)]
        yield from members(Schema.from_address(below[0]), Array.from_address(below[1]))


def broken(generator, schema, array):
    """Change one thing, or a few."""
    parts = [(s, a, P * a.n_buffers, a.buffers) for s, a in members(schema, array)]
    for _ in range(generator.choice([1, 1, 1, 2, 3])):
        s, a, kind, address = generator.choice(parts)
        buffers = kind.from_address(address)
        how = generator.randrange(12)
        if how < 3:
            field = generator.choice(["length", "offset", "null_count", "n_buffers", "n_children"])
            setattr(a, field, generator.choice(NUMBERS))
        elif how < 5:
            format = generator.choice(FORMATS)
            s.format = None if format is None else text(format)
        elif how < 8 and len(buffers):
            buffers[generator.randrange(len(buffers))] = generator.choice(ADDRESSES)
        elif how == 8:
            setattr(a, generator.choice(["buffers", "children", "dictionary"]), None)
        elif how == 9:
            setattr(s, generator.choice(["children", "dictionary"]), None)
        elif how == 10:  # a dictionary that is its own
            s.dictionary, a.dictionary = ctypes.addressof(s), ctypes.addressof(a)
        elif len(buffers) > 1 and buffers[1] not in ADDRESSES:  # offsets, indices or views
            ctypes.c_int32.from_address(buffers[1] + 4 * generator.randrange(3)).value = generator.choice(OFFSETS)


def feed(name, schema, array, generator):
    if name in LISTS:
        made = dc.UserMisraGries(8, 8)
    else:
        makers = [lambda: dc.MisraGries(8), lambda: dc.SpaceSaving(8), lambda: dc.CountMin(64, 3), dc.ExactCounts]
        made = generator.choice(makers)()
    source = Column(schema, array) if generator.randrange(3) else Batches(schema, array, 2)
    try:
        made.update(source, nulls="skip")
        return "counted"
    except dc.DiscreetError as error:
        return type(error).__name__


def main():
    seed, rounds = int(sys.argv[1]), int(sys.argv[2])
    for name, make in GOOD.items():
        assert feed(name, *make(), random.Random(1)) == "counted", name
        for changes in ({"get_schema": None}, {"get_next": None}):
            try:
                dc.MisraGries(8).update(Batches(*make(), 1, changes))
                raise AssertionError(name)
            except dc.DataError:
                pass
    generator = random.Random(seed)
    for number in range(rounds):
        KEPT.clear()
        name = generator.choice(list(GOOD))
        schema, array = GOOD[name]()
        broken(generator, schema, array)
        sys.stdout.write(f"{number} {name}\n")
        sys.stdout.flush()
        sys.stdout.write(f"    {feed(name, schema, array, generator)}\n")
        schema, array = GOOD[name]()
        broken(generator, schema, array)
        with suppress(dc.DiscreetError):
            CONDITION.said([Column(schema, array)])


if __name__ == "__main__":
    main()
