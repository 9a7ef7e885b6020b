"""Write down what functions of every room answer: `python tests/golden/answers/pin.py --write [ROOM...]`.

A room has a file of cases beside this one, and a file of what they answered. Without --write it says which differ. All
that is drawn follows from the name of the case, numbers of floating point are compared to nine digits.
"""

import dataclasses
import datetime
import importlib
import inspect
import json
import math
import sys
import tempfile
import warnings
from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[2]))

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
from tests.golden.commands.pin import written  # noqa: E402
from tests.recorded import chance, is_same_text  # noqa: E402
from tests.same_versions import write_versions  # noqa: E402

from discreet import __version__  # noqa: E402

ROOMS = sorted(path.stem for path in HERE.glob("*.py") if path.name != "pin.py")
LONGEST = 4000  # characters of a text that is kept as it is


def cases(room):
    """The cases of a room: functions without an argument, or of a `folder` that is theirs."""
    return importlib.import_module(f"tests.golden.answers.{room}").CASES


def answer(room, name):
    """What a case answers, as JSON has it."""
    ask = cases(room)[name]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), chance(f"{room}: {name}"):
        warnings.simplefilter("ignore")
        found = told(tried(ask, *([Path(folder)] if "folder" in inspect.signature(ask).parameters else [])))
        return steady(json.loads(json.dumps(found, ensure_ascii=False).replace(folder, "FOLDER")))


def tried(ask, *given):
    """The answer, or the error that is one."""
    try:
        return ask(*given)
    except Exception as error:  # what a caller sees of it is the answer
        return error


def each(ask, *given):
    """The answers to several arguments: at a limit, and beyond."""
    return {json.dumps(told(value)): told(tried(ask, value)) for value in given}


def told(value):
    """Anything as JSON has it."""
    match value:
        case type() | pa.DataType():
            return getattr(value, "__name__", str(value))
        case None | bool() | int():
            return value
        case str():
            value = value.encode("utf-8", "backslashreplace").decode()
            return value if len(value) <= LONGEST else digest(value.encode())
        case float():
            return value if math.isfinite(value) else str(value)
        case Fraction() | Path() | complex():
            return value.name if isinstance(value, Path) else str(value)
        case datetime.date() | datetime.time() | datetime.timedelta():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex() if len(value) <= 64 else digest(bytes(value))
        case Exception():
            return f"{type(value).__name__}: {told(str(value))}"
        case np.generic():
            return told(value.item())
        case np.ndarray():
            return told(value.tolist())
        case pa.Array() | pa.ChunkedArray():
            return {str(value.type): told(value.to_pylist())}
        case pa.RecordBatch() | pa.Table():
            return {f"{n} {value.schema.field(n).type}": told(value.column(n).to_pylist()) for n in value.schema.names}
        case Mapping():
            return {key if isinstance(key, str) else str(told(key)): told(each) for key, each in value.items()}
        case set() | frozenset():
            return sorted(map(told, value), key=str)
        case _ if dataclasses.is_dataclass(value):
            fields = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
            return {"": type(value).__name__, **{name: told(getattr(value, name)) for name in fields}}
        case _ if hasattr(value, "to_json"):
            return json.loads(value.to_json())
        case _ if hasattr(value, "__iter__"):
            return [told(each) for each in value]
    return repr(value)


def digest(data):
    """What stands for something long: its length, and its digest."""
    return f"{len(data)} bytes, {sha256(data).hexdigest()[:16]}"


def steady(value):
    """Without what differs from run to run: when something was asked, by which version, and digests of that."""
    if isinstance(value, list):
        return [steady(each) for each in value]
    if not isinstance(value, dict):
        return value.replace(__version__, "(version)") if isinstance(value, str) and __version__ in value else value
    changing = {"sha256", "digest", *({"time"} if "version" in value else ())}
    return {key: "(left out)" if key in changing else steady(each) for key, each in value.items()}


def differences(now, before, where=""):
    """Where two answers differ; numbers of floating point may in the tenth digit."""
    if isinstance(now, dict) and isinstance(before, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            at = f"{where}/{key}"
            if key not in now or key not in before:
                yield f"{at}: {'missing' if key not in now else 'new'}"
            else:
                yield from differences(now[key], before[key], at)
    elif isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        for place, (one, other) in enumerate(zip(now, before, strict=True)):
            yield from differences(one, other, f"{where}/{place}")
    elif type(now) is float and type(before) is float and math.isclose(now, before, rel_tol=1e-9, abs_tol=1e-12):
        return
    elif type(now) is not type(before) or not (is_same_text(now, before) if isinstance(now, str) else now == before):
        yield f"{where}: {now!r} was {before!r}"


def pinned(room):
    """The answers as they are written down."""
    path = HERE / f"{room}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def main(arguments):
    write, rooms = "--write" in arguments, [a for a in arguments if a != "--write"] or ROOMS
    differ = []
    for room in rooms:
        found = {name: answer(room, name) for name in cases(room)}
        differ += [f"{room}{each}" for each in differences(found, pinned(room))]
        if write:
            write_versions()
            (HERE / f"{room}.json").write_text(written(found, depth=2) + "\n", encoding="utf-8")
    sys.stdout.write("".join(f"{line[:300]}\n" for line in differ))
    return min(len(differ), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
