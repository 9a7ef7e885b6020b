"""Cases of the files of the house itself: bars, errors, what is stored, the ways in for pandas and polars."""

import contextlib
import errno
import fcntl
import inspect
import math
import os
import pickle
import stat
import time

import pyarrow as pa
from tests.golden.answers.pin import digest, tried

import discreet as dc
from discreet import errors
from discreet._bars import amount, between, guarantee_html, interval_bar, reach
from discreet.errors import did_you_mean, nearest
from discreet.noise import seeded_source
from discreet.storage import NO_ROOM, AtomicFile, locked, open_state, read_toml, seal_state, write_error

INF, NAN = math.inf, math.nan
NUMBERS = (0, 0.0, -0.0, 1, 1.5, -2.25, 0.00012345, 999.95, 1000.0, 1000.4, 999.99999, -1234.5, 123456.7, 1e6, 2**53)
INTERVALS = ((1.0, 2.0), (-5.0, 5.5), (-INF, 3.0), (2.0, INF), (-INF, INF), (0.0, 0.0), (NAN, 1.0), (1.0, NAN))


def open_files():
    return len(os.listdir("/proc/self/fd"))


def modes(folder):
    found = {path.name: oct(path.lstat().st_mode) for path in folder.iterdir()}
    return dict(
        sorted(
            (name.replace(name[10:26], "HEX") if name.startswith(".discreet-") else name, m)
            for name, m in found.items()
        )
    )


def states(folder):
    """A state through its life: what there is of it in the folder, and no file is left open."""
    before, said = open_files(), []
    os.umask(0o022)
    path = folder / "state"
    for data in (b"first", b"the second", b""):
        with locked(path) as kept:
            said.append([kept.exists, kept.read(), kept.path.name])
            kept.replace(data)
            kept.replace(data + b"!", erase=True)
            said.append([kept.exists, kept.read(), modes(folder)])
    link = folder / "link"
    link.symlink_to("elsewhere")
    with locked(link) as kept:
        kept.replace(b"through a link")
    said += [(folder / "elsewhere").read_bytes(), link.is_symlink(), modes(folder)]
    return [said, open_files() - before]


def wrong_states(folder):
    """What cannot be a state, or is in use: refused, and no file is left open."""
    before = open_files()
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "two").write_bytes(b"x")
    os.link(folder / "two", folder / "names")
    (folder / "linked.lock").symlink_to("two")
    (folder / "locked").write_bytes(b"x")
    said = []
    with (folder / "locked").open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for name in ("folder", "pipe", "two", "linked", "locked", "nothing/state"):
            said.append(tried(lambda name=name: locked(folder / name).__enter__()))
        said.append(tried(lambda: locked(folder / "locked", wait_seconds=0.03).__enter__()))
    with locked(folder / "locked") as kept:
        said.append(kept.read())
    return [said, modes(folder), open_files() - before]


def a_state_that_waits(folder):
    """Another has it for a moment."""
    with (folder / "state.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        begun = time.monotonic()
        refused = tried(lambda: locked(folder / "state", wait_seconds=0.1).__enter__())
        waited = time.monotonic() - begun
    with locked(folder / "state", wait_seconds=5) as kept:
        return [refused, waited >= 0.1, kept.exists]


def left_by_a_kill(folder):
    """A temporary state: zeroed if it is a file with one name, and removed."""
    said = []
    for name, two in (("one", False), ("other", True)):
        left, second = folder / f".{name}.discreet-new", folder / f"{name} too"
        left.write_bytes(b"secret")
        if two:
            os.link(left, second)
        with left.open("rb") as file, locked(folder / name) as kept:
            said.append([kept.exists, left.exists(), file.read()])
        said.append([second.exists() and second.read_bytes()])
    return [said, modes(folder)]


def without_unnamed_files(folder):
    """A file system that cannot: the state is written under its temporary name."""
    given = os.O_TMPFILE
    del os.O_TMPFILE
    try:
        with locked(folder / "state") as kept:
            kept.replace(b"first")
            kept.replace(b"second")
            return [kept.read(), modes(folder)]
    finally:
        os.O_TMPFILE = given


def failing(folder, name, number, call):
    """A call of the system that fails: what is said, and what is left."""
    true = getattr(os, name)

    def fails(*given, **more):
        raise OSError(number, os.strerror(number))

    setattr(os, name, fails)
    try:
        return [tried(call), None]
    finally:
        setattr(os, name, true)


def failures(folder):
    said, before = [], open_files()
    with locked(folder / "state") as kept:
        kept.replace(b"first")
        for name, number in (
            ("rename", errno.EACCES),
            ("fsync", errno.ENOSPC),
            ("fchmod", errno.EDQUOT),
            ("link", errno.EIO),
        ):
            said.append([failing(folder, name, number, lambda: kept.replace(b"second")), kept.read(), modes(folder)])
        said.append(failing(folder, "lseek", errno.EIO, kept.read))
        kept.replace(b"third")
    for name, number in (("replace", errno.EACCES), ("fsync", errno.ENOSPC), ("open", errno.EMFILE)):
        said.append(failing(folder, name, number, lambda: _output(folder / "out", b"x")))
        said.append([modes(folder), len(AtomicFile.left)])
    return [said, open_files() - before]


def _output(path, data):
    with AtomicFile(path) as file:
        file.write(data)
        return [file.path.name, oct(stat.S_IMODE(path.stat().st_mode))]


def outputs(folder):
    """Files that appear when they are whole: new ones, older ones, through links, devices, and none where it fails."""
    before, said = open_files(), []
    (folder / "older").write_bytes(b"older")
    (folder / "older").chmod(0o600)
    (folder / "link").symlink_to("older")
    (folder / "nowhere").symlink_to("made")
    (folder / "kept").write_bytes(b"kept")
    names = ("new", "older", "link", "nowhere")
    for mask in (0o022, 0o077):
        os.umask(mask)
        said += [_output(folder / name, f"{name} {mask}".encode()) for name in names]
    os.umask(0o022)
    with contextlib.suppress(ZeroDivisionError), AtomicFile(folder / "kept") as file:
        file.fill(lambda path: 1 / 0)
    contents = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    os.mkfifo(folder / "pipe")
    read = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with AtomicFile(folder / "pipe") as file:
        file.write(b"into a pipe")
        said.append([file.temporary.parent != folder, os.read(read, 99)])
    os.close(read)
    return [said, contents, modes(folder), len(AtomicFile.left), open_files() - before]


def abandoned(folder):
    """Which temporary files are removed by the next output."""
    hexes = ["a" * 16, "b" * 15, "c" * 17]
    names = [f".discreet-{each}.tmp" for each in hexes] + [f".discreet-{'d' * 16}", f"discreet-{'e' * 16}.tmp", "f.tmp"]
    for name in names:
        (folder / name).write_bytes(b"x")
    (folder / f".discreet-{'1' * 16}.tmp").mkdir()
    (folder / f".discreet-{'2' * 16}.tmp").symlink_to("f.tmp")
    with (folder / f".discreet-{'3' * 16}.tmp").open("wb") as used:
        fcntl.flock(used, fcntl.LOCK_EX)
        with AtomicFile(folder / "out") as file:
            left = sorted(path.name for path in folder.iterdir() if path != file.temporary)
            shape = [len(file.temporary.name), file.temporary in AtomicFile.left, oct(file.temporary.stat().st_mode)]
    return [left, shape]


def tomls(folder):
    said = []
    for data in (b'a = 1\n[b]\nc = ["d"]\n', b"a =", b"\xff", b""):
        (folder / "file.toml").write_bytes(data)
        said.append(tried(read_toml, folder / "file.toml"))
    said = [each if isinstance(each, dict) else str(each).partition(": ")[0] for each in said]
    return [*said, tried(read_toml, folder / "none.toml"), tried(read_toml, folder)]


def made_errors():
    """Every class of errors: what it is one of, and what a copy in another process has."""
    given = {
        "MessageError": ("a message", "size"),
        "ChargeConflictError": ("in use", {"k": (1, 2)}),
        "WordError": ("{time} needs {every=1d}",),
        "DataWordError": ("give {nulls=skip}",),
    }
    found = {}
    for name in sorted(errors.__all__):
        made = getattr(errors, name)(*given.get(name, ("what is wrong",)))
        again = pickle.loads(pickle.dumps(made))
        found[name] = [
            [base.__name__ for base in type(made).__mro__[1:-2]],
            str(made),
            str(again),
            vars(made),
            vars(again),
        ]
    old = errors.OldStateError("older", tick=3, known=5)
    exceeded = errors.BudgetExceededError("too much", requested=1, spent=2, remaining=3, charges=("a",), about="today")
    return [found, vars(pickle.loads(pickle.dumps(old))), vars(exceeded), str(errors.NotPublishedError("not listed"))]


def sealed():
    one, other = seal_state(150, 1, b"a", memoryview(b"bc")), seal_state(151, 3)
    return [
        one,
        other,
        open_state(one, 150, 1),
        open_state(memoryview(other), 151, 3),
        tried(open_state, one, 150, 2),
        tried(lambda: open_state(other, 151, 4, oldest=3)),
        tried(lambda: open_state(other, 151, 2, oldest=1)),
        tried(lambda: open_state(other, 151, 5, oldest=4)),
        tried(open_state, one[:-1], 150, 1),
        tried(open_state, one + b"x", 150, 1),
        tried(open_state, b"", 150, 1),
        tried(open_state, None, 150, 1),
        tried(seal_state, 99, 1),
        tried(seal_state, 256, 1),
        tried(seal_state, 150, 256),
    ]


def frames():
    """The accessors of data frames answer as the functions do."""
    table = pa.table({"item": ["a", "b", "a"] * 99, "who": list(range(297))})
    budget, found = dc.Budget(1.0, 1e-6), []
    for library in ("pandas", "polars"):
        module = __import__(f"discreet.{library}", fromlist=["_"])
        frame = table.to_pandas() if library == "pandas" else __import__("polars").from_arrow(table)
        names = [name for name in dir(frame.discreet) if not name.startswith("_")]
        top = frame.discreet.top_k(2, budget, column="item", source=seeded_source(1))
        same = dc.top_k(table, 2, budget, column="item", source=seeded_source(1))
        lazy = frame.lazy() if library == "polars" else frame
        columns = [frame["item"].discreet.top_k(2, budget, source=seeded_source(1)).items]
        columns.append(lazy.discreet.count(budget, source=seeded_source(1)).value)
        found.append([names, list(top) == list(same), inspect.ismodule(module), columns])
    return found


KNOWN = ["column", "user", "max_items", "epsilon", "Delta", 5]

CASES = {
    "amounts": lambda: [amount(n) for n in (*NUMBERS, INF, -INF, NAN)],
    "intervals": lambda: [between(*ends) for ends in INTERVALS],
    "reaches": lambda: [
        reach(*given)
        for given in (
            ([], []),
            ([1.0], [2.0]),
            ([3.0], [INF]),
            ([-1.0], [-2.0]),
            ([0.0], [INF]),
            ([5.0, INF], [1.0, 2.0]),
            ([NAN], [NAN]),
            ([1.0, 9.0], [2.0, INF]),
        )
    ],
    "bars": lambda: [
        digest(interval_bar(value, *ends, right).encode())
        for value, right in ((1.5, 4.0), (0.0, 1.0), (9.0, 4.0), (-1.0, 8.1), (INF, 3.0))
        for ends in INTERVALS[:6]
    ],
    "guarantees": lambda: [guarantee_html("less than <1>", seeded) for seeded in (True, False)],
    "a bar": lambda: interval_bar(1.5, -5.0, INF, 4.0),
    "near names": lambda: [did_you_mean(name, KNOWN) for name in ("colum", "USER", "maxitems", "delta", "5", "x", "")],
    "nearest names": lambda: [nearest(name, iter(KNOWN)) for name in ("epsilom", "zzz")] + [nearest("a", [])],
    "how near": lambda: [did_you_mean("abcdefghij", [f"{'abcdefghij'[:n]}{'z' * (10 - n)}"]) for n in (5, 6, 7)],
    "errors": made_errors,
    "spellings": lambda: [
        errors.WordError(text).spelled(str.upper) + " / " + str(errors.WordError(text))
        for text in ("{a} needs {b=c}", "{a b}", "{}", "{a=}", "{{a}}", "plain")
    ],
    "sealed": sealed,
    "states": states,
    "wrong states": wrong_states,
    "a state that waits": a_state_that_waits,
    "left by a kill": left_by_a_kill,
    "without unnamed files": without_unnamed_files,
    "failures": failures,
    "outputs": outputs,
    "outputs in vain": lambda folder: [
        tried(AtomicFile, folder),
        tried(AtomicFile, folder / "none" / "out"),
        tried(AtomicFile, folder / ("x" * 300)),
        len(AtomicFile.left),
        open_files() - open_files(),
    ],
    "abandoned": abandoned,
    "errors of writing": lambda: (
        [
            [type(made := write_error("it", OSError(*given))).__name__, str(made)]
            for given in ((errno.ENOSPC, "full"), (errno.EDQUOT, "quota"), (errno.EACCES, "no"), ("odd",))
        ]
        + [NO_ROOM]
    ),
    "toml": tomls,
    "frames": frames,
    "names": lambda: [sorted(dc.__all__), tried(getattr, dc, "top"), tried(getattr, dc, "colour")],
}
