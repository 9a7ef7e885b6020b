"""What public members say, recorded: numbers, texts, releases from seeded sources, and what is refused.

A recorded value proves nothing. It is a fence: whoever changes a scale, a cut, a bound, a default, a limit or an
argument sees by name what else changes. Each room has a table of cases in its `test_recorded_numbers.py`, and what they
said in `tests/golden/numbers`. To record anew: `python -m tests.recorded central pan`, and read the difference.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import importlib
import itertools
import json
import math
import re
import struct
import sys
import uuid
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import scipy.stats  # noqa: F401 (it draws a seed when it is loaded, which `chance` would count)
from tests.conftest import repeat_from
from tests.same_versions import need_same_versions, write_versions

import discreet as dc
from discreet import _native
from discreet.errors import DiscreetError
from discreet.storage import MAGIC

HERE = Path(__file__).with_name("golden") / "numbers"
RELATIVE = 1e-9  # what another NumPy, SciPy or processor may change
LONGEST = 24  # of longer columns the sums are kept
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:/\d+)?(?![\w/]|\.\d)", re.IGNORECASE)


def told(value):
    """A value as JSON has it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() | np.floating():
            number = float(value)
            return float(f"{number:.12g}") if math.isfinite(number) else str(number)
        case Fraction():
            return str(value) if value.denominator <= 10**6 else told(float(value))
        case np.generic():
            return told(value.item())
        case bytes() | bytearray() | memoryview():
            data = bytes(value)
            return state(data) if data.startswith(MAGIC) else f"{len(data)} bytes, {digest_of(data)}"
        case np.ndarray():
            return column(value)
        case pa.Array() | pa.ChunkedArray():
            return told(value.to_pylist())
        case dict():
            return {str(key): told(each) for key, each in value.items() if not is_nothing(each)}
        case set() | frozenset():
            return sorted(map(told, value), key=str)
        case list() | tuple():
            parts = [told(each) for each in value]
            return parts if len(parts) <= LONGEST else shortened(parts)
        case range() | type() | datetime.date():
            return str(value)
        case dc.Release():
            return release(value)
        case DiscreetError():
            return refusal(value)
    if hasattr(value, "to_dict") and not isinstance(value, type(dc)):
        return told(value.to_dict())
    if dataclasses.is_dataclass(value) or type(value).__module__.startswith("discreet"):
        return members(value)
    return type(value).__name__


def digest_of(data):
    """Not a checksum that states and messages may end in: with it all of them have the same."""
    return hashlib.blake2b(data, digest_size=6).hexdigest()


def state(data):
    """What a state holds: its family and version, and its texts as values.

    They have numbers of floating point in decimal, so neither the length of a state nor a digest of it is the same on
    every processor.
    """
    family, version, payload = _native.open_state(data)
    found = {"family": family, "version": version}
    if family in SUMMARIES:
        streams = len(SUMMARIES[family].from_bytes(data).lineage)
        return told(
            {**found, "keys": data[12:14], "streams": streams, "payload": payload[: len(payload) - 8 * streams]}
        )
    return told({**found, **contents(payload)})


SUMMARIES = {
    1: dc.MisraGries,
    2: dc.SpaceSaving,
    3: dc.UserMisraGries,
    4: dc.CountMin,
    5: dc.CountSketch,
    6: dc.ExactCounts,
    7: dc.ShardedMisraGries,
}
"""By the family of their states, which end with a random name for each stream that was counted."""


def contents(payload):
    """A header in JSON after its length, and what follows it: numbers, other states, or bytes."""
    for width, form in ((8, "<Q"), (4, "<I")):
        try:
            end = width + struct.unpack_from(form, payload)[0]
            header = json.loads(payload[width:end])
        except (ValueError, struct.error):
            continue
        rest = payload[end:]
        if not isinstance(header, dict) or header.keys() != {"header", "arrays", "blobs"}:
            return {"header": header, "rest": rest}
        found = {"header": header["header"]}
        for name, shape in header["arrays"].items():
            size = math.prod(shape)
            found[name], rest = np.frombuffer(rest, "<i8", size).reshape(shape), rest[8 * size :]
        for name, size in header["blobs"].items():
            found[name], rest = blob(rest[:size]), rest[size:]
        return {**found, "rest": rest}
    return {"payload": payload}


def blob(data):
    """What a state keeps for later: another state, a release in JSON, or bytes."""
    try:
        return json.loads(data)
    except ValueError:
        return data


@contextmanager
def chance(name):
    """All that is drawn without a source of the case follows from its name, ids among it."""
    identities = (uuid.UUID(int=number) for number in itertools.count(1))
    repeat_from(name)
    try:
        with mock.patch.object(uuid, "uuid4", side_effect=identities):
            yield
    finally:
        repeat_from(None)


def is_nothing(value):
    """What is left out: None, False, and empty texts and lists."""
    return value is None or value is False or (isinstance(value, str | list | tuple | dict) and not value)


def shortened(parts):
    """Of a long list its numbers as sums, those within texts among them, and a digest of all that is exact."""
    if all(isinstance(part, int | float) for part in parts):
        return column(np.array(parts))
    numbers, exact = [], []
    for leaf in leaves_of(parts):
        if isinstance(leaf, float):
            numbers.append(leaf)
        elif isinstance(leaf, str):
            numbers += [value_of(number) for number in NUMBER.findall(leaf) if not is_whole(number)]
            exact.append(NUMBER.sub(lambda found: found[0] if is_whole(found[0]) else "#", leaf))
        else:
            exact.append(leaf)
    exact, numbers = json.dumps(exact), column(np.array(numbers))
    digest = f"{len(parts)} of them, {digest_of(exact.encode())}"
    return {"digest": digest, **({"numbers": numbers} if numbers else {})}


def leaves_of(value):
    """What is in nested lists and objects, names among them."""
    if isinstance(value, dict):
        value = [each for pair in value.items() for each in pair]
    if isinstance(value, list):
        for part in value:
            yield from leaves_of(part)
    else:
        yield value


def column(array):
    """A column, or of a long one its ends and two sums."""
    if array.size <= LONGEST:
        return [told(each) for each in array.tolist()]
    flat = array.ravel()
    if flat.dtype.kind in "biu":
        flat = flat.astype(object)
    elif flat.dtype.kind != "f":
        return shortened(flat.tolist())
    places = np.arange(1, flat.size + 1)
    sums = [told(flat.sum()), told((flat * places).sum())]
    return {"length": flat.size, "ends": [told(flat[0]), told(flat[-1])], "sums": sums}


def refusal(error):
    return f"{type(error).__name__}: {error}"


def asked(question, /, *given, **named):
    """What a call answers, or how it refuses."""
    try:
        return told(question(*given, **named))
    except DiscreetError as error:
        return refusal(error)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return type(error).__name__


ODD = (None, True, "x", "1", -1, 0, 0.0, 0.5, 1.0, 1.5, math.nan, math.inf, b"x", [])


def taken(make, given, odd=None):
    """Of each argument, which values are taken and which are refused, in which words.

    `odd` has further values for some, such as a limit and what is just beyond it; of None the argument is left alone.
    """
    found = {}
    for name in given:
        if odd is not None and name in odd and odd[name] is None:
            continue
        for value in (*ODD, *(odd or {}).get(name, ())):
            try:
                make(**{**given, name: value})
                verdict = "taken"
            except DiscreetError as error:
                verdict = refusal(error)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                verdict = type(error).__name__
            verdict = verdict.replace(repr(value), "...")
            found.setdefault(f"{name}: {verdict}", []).append(repr(value))
    return {said: " ".join(values) for said, values in found.items()}


ARGUMENTS = {
    "error_bound": [(0.3,), (0.05,), (1e-9,)],
    "bounds": [(0.5,), (0.95,), (0.999999,)],
    "sentence": [()],
    "describe": [()],
}
"""How methods are asked that say something without data."""
SILENT = {"ledger", "oracle", "accepts", "items", "counts", "from_bytes", "last", "budget"}


def members(thing, more=(), without=()):
    """What every public attribute says, and the methods of `ARGUMENTS`."""
    found = {}
    names = {name for kind in type(thing).__mro__ for name in vars(kind)} | set(getattr(thing, "__dict__", ()))
    for name in sorted(name for name in names if not name.startswith("_") and name not in {*SILENT, *without}):
        try:
            value = getattr(thing, name)
        except (DiscreetError, NotImplementedError) as error:
            found[name] = refusal(error)
            continue
        if not callable(value) and not is_nothing(value):
            found[name] = told(value)
        for given in ARGUMENTS.get(name, ()) if callable(value) else ():
            found[f"{name}{given}" if given else name] = asked(value, *given)
    for name, *given in more:
        found[f"{name}{tuple(given)}"] = asked(getattr(thing, name), *given)
    return found


def release(made):
    """A release as its JSON has it, without when and by which version, and its bounds at other confidences."""
    fields = {name: value for name, value in made.to_dict().items() if name not in ("time", "version")}
    rows = fields.pop("items")
    fields["items"] = [" ".join(str(told(value)) for value in row.values()) for row in rows]
    for confidence in (0.5, 0.999999):
        fields[f"bounds({confidence})"] = np.stack(made.bounds(confidence)) if len(made) else []
    fields["rest"] = asked(made.rest, 0.5)
    fields["notes"] = made.notes()
    return told(fields)


# ---- comparing -----------------------------------------------------------------------------------------------------


def differences(known, found, where=""):
    """Where two recorded values differ: one line each."""
    if isinstance(known, dict) and isinstance(found, dict):
        for key in [*known, *(key for key in found if key not in known)]:
            if key not in known or key not in found:
                yield f"{where}/{key}: {'is not recorded' if key in found else 'is gone'}"
            else:
                yield from differences(known[key], found[key], f"{where}/{key}")
    elif isinstance(known, list) and isinstance(found, list) and len(known) == len(found):
        for place, (one, other) in enumerate(zip(known, found, strict=True)):
            yield from differences(one, other, f"{where}/{place}")
    elif isinstance(known, float) and isinstance(found, float):
        if not math.isclose(known, found, rel_tol=RELATIVE, abs_tol=1e-24):
            yield f"{where}: {known!r} is recorded, {found!r} found"
    elif isinstance(known, str) and isinstance(found, str) and is_same_text(known, found):
        return
    elif type(known) is not type(found) or known != found:
        yield f"{where}: {known!r} is recorded, {found!r} found"


def is_same_text(known, found):
    """Whether two texts are the same where they have no numbers, and their fractions and decimals are close."""
    if known == found:
        return True
    if NUMBER.split(known) != NUMBER.split(found):
        return False
    return all(map(is_same_number, NUMBER.findall(known), NUMBER.findall(found)))


def is_same_number(known, found):
    """Whether two texts are the same number: whole ones to the digit, others as numbers of floating point."""
    if known == found:
        return True
    return not (is_whole(known) and is_whole(found)) and math.isclose(
        value_of(known), value_of(found), rel_tol=RELATIVE
    )


def is_whole(number):
    return number.lstrip("-").isdigit()


def value_of(number):
    """A text as a number; not a number where it has none, or one that is too large."""
    top, _, below = number.partition("/")
    try:
        value = float(Fraction(int(top), int(below)) if below else Fraction(top))
    except (ArithmeticError, ValueError):
        return math.nan
    return value


def is_text(value):
    return isinstance(value, str) or (isinstance(value, list | dict) and all(map(is_text, values_of(value))))


def values_of(value):
    return value.values() if isinstance(value, dict) else value


def compact(found):
    """A case as it is kept: texts that a later entry has in common with the first are said once."""
    entries = iter(json.loads(json.dumps(told(found))).items())
    name, first = next(entries)
    return {name: first, **{name: without_texts(entry, first) for name, entry in entries}}


def without_texts(entry, first):
    if not isinstance(entry, dict) or not isinstance(first, dict):
        return entry
    kept = {key: value for key, value in entry.items() if not (is_text(value) and value == first.get(key))}
    return {key: without_texts(value, first.get(key)) for key, value in kept.items()}


def recorded(room):
    return json.loads((HERE / f"{room}.json").read_text(encoding="utf-8"))


def check(room, name, case):
    """That a case says what is recorded of it."""
    need_same_versions()
    with chance(f"{room}: {name}"):
        found = case()
    wrong = [*differences(recorded(room)[name], compact(found), name)]
    assert not wrong, "\n".join(wrong[:20])


def write(room, cases):
    """One line a member of a case, so that a difference can be read."""
    text = []
    for name, case in cases.items():
        with chance(f"{room}: {name}"):
            found = case()
        lines = [
            f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in compact(found).items()
        ]
        text.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    HERE.mkdir(exist_ok=True)
    (HERE / f"{room}.json").write_text("{\n" + ",\n".join(text) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write_versions()
    for room in sys.argv[1:]:
        write(room, importlib.import_module(f"tests.unit.{room}.test_recorded_numbers").CASES)
