"""Cases of `discreet.events`: what is read of hostile files of every format, of columns of all types, of what grows."""

import bz2
import datetime
import decimal
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.golden.answers.pin import each, told, tried
from tests.rows import columns_of, open_stream
from tests.unit.events.test_keys import COLUMNS
from tests.unit.events.test_one_reader import ODD

from discreet.engines.plain_where import where
from discreet.events.inputs import encoding_named, expand, format_named, scheme_of, shown
from discreet.events.items import (
    checked,
    choose,
    is_amount,
    is_several,
    item_of,
    item_of_bytes,
    kind_of,
    listed,
    of_numpy,
    plain_array,
    prepare_column,
    prepare_lists,
    row_items,
    values_of,
    without_null_elements,
)
from discreet.events.keys import Layout, part_type
from discreet.events.live_input import LiveInput, Spool
from discreet.events.lookup import Lookup
from discreet.events.queues import topic_of
from discreet.events.samples import UserSets, encoded, items_of_users, mixed
from discreet.events.stores import Url, at_endpoint
from discreet.events.tables import events_of
from discreet.events.text import Cutter, Dialect, dialect_of
from discreet.events.times import (
    Every,
    Pairing,
    pair_keys,
    seconds_of,
    seconds_of_column,
    times_of_objects,
    whole_seconds,
)
from discreet.events.universe import (
    Universe,
    as_written,
    columns_written,
    groups_written,
    item_written,
    universe_written,
    vectors_written,
    votes_written,
)
from discreet.events.values import (
    column_of_plain,
    item_order,
    items_array,
    joined_keys,
    plain_column,
    plain_items,
    tagged,
    untagged,
)
from discreet.noise import seeded_source
from discreet.privacy.spans import Calendar

COMBINED = b'10.0.0.%d - - [02/Jun/2025:10:00:0%d +0000] "GET /p%d HTTP/1.1" %d 5 "-" "agent"\n'
LOG = [COMBINED % (n % 3, n % 10, n % 4, (200, 404)[n % 2]) for n in range(9)] + [
    b"not a line\n",
    b"\n",
    COMBINED[:40] % (1, 1),
    b'::1 - bob [02/Jun/2025:10:00:00 +0200] "-" 408 - "-" "-"\n',
    b'h - - [32/Jun/2025:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "a" "b\\"c"\n',
]
BASKETS = [b"a b a\n", b"\n", b" c \n", b"\xff d\n", b"a\tb\n", b"x" * 4097 + b" y\n"]
FILES = {
    "csv": ODD["csv"],
    "tsv": ODD["tsv"],
    "jsonl": ODD["jsonl"],
    "text": ODD["txt"],
    "combined": LOG,
    "baskets": BASKETS,
}
COLUMN = {"csv": "query", "tsv": "query", "jsonl": "query", "text": None, "combined": "path", "baskets": None}
HEADER = {"csv": b"n,query\n", "tsv": b"n\tquery\n"}
ENDINGS = {"text": "txt", "combined": "log", "baskets": "txt"}


def rows_of(paths, short=True, **words):
    """The rows of files, or their refusal, and how many were bad."""

    def read():
        stream = open_stream(paths, **words)
        rows = [list(row.values()) for batch in stream for row in batch.to_pylist()]
        return [told(_short(rows)), stream.bad_rows, stream.bytes_read]

    return tried(read)


def _short(value):
    if isinstance(value, list):
        return [_short(each) for each in value]
    return f"{value[:9]} of {len(value)}" if isinstance(value, (str, bytes)) and len(value) > 60 else value


def written(folder, name, data, compress=None):
    path = folder / name
    path.write_bytes(data if compress is None else compress(data))
    return path


def file(kind):
    """A file with all that is odd, read in every way: by one column, by two, without bad rows, compressed, in parts."""

    def ask(folder):
        records, column, ending = FILES[kind], COLUMN[kind], ENDINGS.get(kind, kind)
        data = HEADER.get(kind, b"") + b"".join(records)
        path, skip = written(folder, f"all.{ending}", data), {"format": kind, "nulls": "skip", "bad_rows": "skip"}
        found = {"all": rows_of(path, column=column, **skip)}
        if column is not None:
            two = ("path", "status") if kind == "combined" else ("query", "n")
            found["people"] = rows_of(path, column=two[0], user_column=two[1], **skip)
            found["two columns"] = rows_of(path, column=two, joint=True, **skip)
            found["values"] = rows_of(path, column=two[0], value_column=two[1], **skip)
            found["amounts"] = rows_of(path, column=two[1], amounts=True, **skip)
            found["where"] = rows_of(path, column=column, query=where(f"{two[1]} > '2'"), **skip)
            found["where none"] = rows_of(path, column=column, query=where("nothing = 1"), **skip)
            found["no column"] = rows_of(path, column="nothing", **skip)
        found["nulls are errors"] = rows_of(path, column=column, **{**skip, "nulls": "error"})
        found["bad rows are errors"] = rows_of(path, column=column, **{**skip, "bad_rows": "error"})
        found["both are errors"] = rows_of(path, column=column, format=kind)
        packed = [
            written(folder, f"all.{ending}.gz", data, gzip.compress),
            written(folder, f"all.{ending}.bz2", data, bz2.compress),
            written(folder, f"all.{ending}.xz", data),
        ]
        found["packed"] = [
            rows_of(each, column=column, **skip)[:2] == found["all"][:2]
            if index < 2
            else told(rows_of(each, column=column, **skip))
            for index, each in enumerate(packed)
        ]
        found["cut short"] = rows_of(written(folder, "short.gz", gzip.compress(data)[:-9]), column=column, **skip)
        half = len(records) // 2
        parts = [
            written(folder, f"part{n}.{ending}", HEADER.get(kind, b"") + b"".join(rows))
            for n, rows in enumerate((records[:half], [], records[half:]))
        ]
        found["parts"] = rows_of(parts, column=column, **skip)
        found["nothing"] = rows_of(written(folder, f"none.{ending}", b""), column=column, **skip)
        found["no newline"] = rows_of(written(folder, f"end.{ending}", data.rstrip(b"\n")), column=column, **skip)
        found["first bytes"] = rows_of(written(folder, f"bom.{ending}", b"\xef\xbb\xbf" + data), column=column, **skip)[
            1:
        ]
        for encoding in ("utf-16", "latin-1", "cp1252"):
            text = data.decode("latin-1").encode(encoding, "replace")
            found[encoding] = rows_of(
                written(folder, f"{encoding}.{ending}", text), column=column, encoding=encoding, **skip
            )
        made = tried(lambda: [column_told(block) for block in columns_of(open_stream(path, column=column, **skip))])
        found["made"] = told(made)
        return found

    return ask


def column_told(block):
    return len(block) if hasattr(block, "__len__") else type(block).__name__


def columnar(kind):
    """Parquet and Arrow with columns of every type."""

    def ask(folder):
        types = {name: column for name, column in COLUMNS.items() if not (kind == "parquet" and name in ("took",))}
        table = pa.table(
            {**types, "nulls": pa.array(["a", None, "b", "a"]), "lists": pa.array([["a", None], [], None, ["b", "a"]])}
        )
        path = folder / f"all.{kind}"
        if kind == "parquet":
            pq.write_table(table, path, row_group_size=3)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=3)
        found = {}
        for name in table.column_names:
            found[name] = [
                rows_of(path, column=name, nulls="skip"),
                rows_of(path, column=name),
                rows_of(path, column=name, amounts=True, nulls="skip"),
            ]
        found["lists of people"] = rows_of(path, column="lists", lists=True, nulls="skip")
        found["two"] = rows_of(path, column=("text", "day"), joint=True)
        found["people"] = rows_of(path, column="text", user_column="nulls", nulls="skip")
        found["none"] = rows_of(path, column="none")
        found["damaged"] = rows_of(written(folder, f"bad.{kind}", path.read_bytes()[:-20]), column="text")
        found["where"] = rows_of(path, column="text", query=where("small > 0 and kind = 'x'"), nulls="skip")
        return found

    return ask


def dialects(folder):
    data = b"n;what\n1;'a;b'\n2;'it''s'\n3;\"q\"\n4;x;y\n5\n;\n"
    path = written(folder, "d.csv", data)
    found = {}
    for given in (
        ("true", ";", "'"),
        ("", ";", "none"),
        ("true", ",", None),
        ("", ";", '"'),
        ("true", "space", None),
        ("", "tab", None),
    ):
        dialect = tried(dialect_of, bool(given[0]), *given[1:])
        for column in ("what", "2", "n"):
            found[f"{given} {column}"] = rows_of(path, column=column, dialect=dialect, bad_rows="skip", nulls="skip")
    found["wrong"] = each(
        lambda one: Dialect(one).asked, ";", ";;", "", "\n", "ü", "none", '"', "tab", "\\t", "space", None, 5
    )
    found["quotes"] = each(lambda one: Dialect(quote=one).asked, "'", "none", "''", "", ",", "\r", None)
    found["asked"] = [
        tried(lambda a=args: told(dialect_of(*a))) for args in ((), (False,), (True, ";"), (True, None, "'"))
    ]
    return found


def cutting():
    """Records that come in pieces of every size."""
    data = b'a,b\n"c\nd",e\r\nf\n\n"open,\nnever\n' + b"x" * 30 + b"\nlast"
    found = []
    for quote in (b'"', None, b"'"):
        whole = None
        for size in (1, 2, 7, 1000):
            cutter = tried(lambda q=quote: Cutter(b",", q))
            if isinstance(cutter, Exception):
                found.append(told(cutter))
                break
            cuts = [cut for start in range(0, len(data), size) for cut in cutter.cut(data[start : start + size])]
            cuts += list(cutter.finish())
            joined = [
                b"".join(bytes(cut.data or b"") for cut in cuts),
                cuts[-1].end,
                [cut.trouble for cut in cuts if cut.trouble],
            ]
            whole = joined if whole is None else whole
            found.append([size, told(joined) if size == 7 else joined == whole])
    return found


def live(kind, pieces, **words):
    """A file that grows piece by piece: batches with their places, what is bad, what is kept, and going on from it."""

    def ask(folder):
        data = HEADER.get(kind, b"") + b"".join(record for record in FILES[kind] if len(record) < 4000)
        if kind == "jsonl":
            data += b'{"query": "t", "n": "2026-01-02T03:04:05Z"}\n'
            data += b'{"query": ["a", null, 3], "n": 7}\n{"query": ["a", 1.5], "n": 7}\n'
        path, found, remarks = folder / f"it.{ENDINGS.get(kind, kind)}", [], []
        how = {
            "column": COLUMN[kind],
            "time_column": None,
            "needs_items": True,
            "format": kind,
            "remark": remarks.append,
            **words,
        }
        path.write_bytes(b"")
        reader = LiveInput(str(path), **how)
        reader.open(0)
        kept, ends = None, [len(data) * n // pieces for n in range(1, pieces + 1)]
        for place, end in enumerate(ends):
            path.write_bytes(data[:end])
            batches = tried(lambda r=reader: [_batch(one) for one in r.available()])
            found.append(told(batches))
            if isinstance(batches, Exception):
                break
            if place == pieces // 2:
                position = batches[-1]["ends"][-1] if batches else 0
                kept = [position, json.loads(json.dumps(reader.saved(position)))]
        found.append(told(tried(lambda: [_batch(one) for one in reader.rest()])))
        bad = dict(sorted(reader.bad.items()))
        reader.close()
        if kept is not None and kept[0]:
            again = LiveInput(str(path), **how)
            again.open(*kept)
            found.append(
                {"again": told(tried(lambda: sum(len(one) for one in again.available()))), "header": kept[1]["header"]}
            )
            again.close()
        return {"found": found, "bad": bad, "remarks": remarks, "columns": reader.columns, "format": reader.format}

    return ask


def _batch(batch):
    values = (
        None
        if batch.values is None
        else {name: _short(batch.values.column(name).to_pylist()) for name in batch.values.schema.names}
    )
    return {
        "values": values,
        "times": batch.times,
        "starts": batch.starts.tolist(),
        "ends": batch.ends.tolist(),
        "there": batch.there,
    }


def live_refusals(folder):
    path = written(folder, "it.csv", b"a,b\n1,2\n")

    def opened(given):
        name, words = given
        reader = LiveInput(
            str(folder / name), **{"format": None, "column": None, "time_column": None, "needs_items": True, **words}
        )
        return [reader.format, reader.topic, reader.columns]

    assert path.exists()
    return [
        [told(given), told(tried(opened, given))]
        for given in (
            ("it.csv", {}),
            ("it.csv.gz", {}),
            ("it.parquet", {}),
            ("it.txt", {}),
            ("it.txt", {"column": "a"}),
            ("it.log", {}),
            ("it.csv", {"column": "a", "time_column": "a"}),
            ("it.csv", {"column": "a", "user_column": "a"}),
            ("it.csv", {"encoding": "utf-16"}),
            ("it.csv", {"encoding": "latin-1"}),
            ("it.csv", {"encoding": "klingon"}),
            ("it.csv", {"sets": True}),
            ("it.jsonl", {"sets": True}),
            ("it.txt", {"format": "baskets"}),
            ("it.any", {"format": "xml"}),
            ("it.jsonl", {"dialect": Dialect(";")}),
            ("it.txt", {"dialect": Dialect(";")}),
            ("it.csv", {"format": "combined", "column": "path"}),
            ("it.csv", {"format": "combined", "column": "nothing"}),
            ("it.csv", {"format": "baskets", "sets": True}),
        )
    ] + [
        [name, told(tried(lambda n=name, w=words: LiveInput(n, None, "a", None, True, **w).topic))]
        for name, words in (
            ("kafka://b:9092/t", {}),
            ("nats://b/t", {}),
            ("kafka://b:9092/t", {"dialect": Dialect(";")}),
            ("redis://b/t", {}),
            ("kafka://b", {}),
        )
    ]


def rotated(folder):
    """A file that is renamed, cut, and written anew."""
    path, found, remarks = folder / "it.txt", [], []
    path.write_bytes(b"a\nb\n")
    reader = LiveInput(str(path), "text", None, None, True, remark=remarks.append)
    reader.open(0)

    def look():
        found.append([_batch(one) for one in reader.available()])

    look()
    path.rename(folder / "it.txt.1")
    path.write_bytes(b"c\nd")
    look()
    with path.open("ab") as more:
        more.write(b"e\nf\n")
    look()
    path.write_bytes(b"g\n")
    look()
    path.unlink()
    look()
    path.write_bytes(b"h\n")
    look()
    found.append(reader.source.more())
    reader.close()
    return [told(found), [remark.replace(str(folder), "") for remark in remarks]]


def spool(folder):
    made = Spool(folder)
    batches = [pa.record_batch([pa.array([str(n)] * n)], ["item"]) for n in range(1, 4)]
    for number, one in zip((7, 8, 7), batches, strict=True):
        made.add(number, one)
    found = [[one.num_rows for one in made.take(number)] for number in (7, 7, 8, 9)]
    made.close()
    return [found, list(folder.iterdir())]


OBJECTS = (
    1,
    True,
    1.0,
    1.5,
    "a",
    b"a",
    None,
    float("nan"),
    2**64,
    -(2**63),
    np.int8(3),
    np.float32(2.5),
    np.str_("b"),
    np.bytes_(b"c"),
    datetime.date(2025, 1, 2),
    datetime.datetime(2025, 1, 2, 3),
    decimal.Decimal("1.50"),
    decimal.Decimal("NaN"),
    [1],
    (1, 2),
    {"a": 1},
    "\ud800",
    object,
    np.datetime64("2025-01-02"),
    pa.scalar("d"),
    "x" * 5000,
    datetime.time(1),
    datetime.timedelta(1),
)
TIMES = (
    "2025-06-02",
    "2025-06-02T03:04:05",
    "2025-06-02 03:04:05Z",
    "2025-06-02T03:04:05+02:00",
    "2025-06-02T03:04:05.123456789Z",
    "1735689600",
    "1735689600.5",
    "-5",
    "1e9",
    "0001-01-01",
    "0000-12-31",
    "9999-12-31T23:59:59Z",
    "10000-01-01",
    "253402300800",
    "253402300799",
    "-62135596800",
    "-62135596801",
    "2025-02-30",
    "2025-6-2",
    "today",
    "",
    " 2025-06-02",
    "nan",
    "inf",
    "2025-W01-1",
    "20250602",
    "2025-06-02T24:00:00",
    "2025-06-02T03:04",
    "12:00",
    5,
    5.5,
    True,
    None,
    datetime.date(2025, 6, 2),
    datetime.datetime(2025, 6, 2, 3),
    10**12,
)


def times():
    columns = [
        pa.array([text for text in TIMES if isinstance(text, str)]),
        pa.array([1735689600, None, 253402300800, -62135596801]),
        pa.array([0.5, float("nan"), 1e18]),
        pa.array([datetime.date(2025, 6, 2), None]),
        pa.array([datetime.datetime(2025, 6, 2, 3)]),
        pa.array([1, 2], pa.timestamp("ns", "Europe/Berlin")),
        pa.array([1, 2**62], pa.timestamp("s")),
        pa.array([b"2025-06-02", b"\xff"]),
        pa.array([True]),
        pa.array(["2025-06-02"]).dictionary_encode(),
        pa.array([1, 2], pa.uint8()),
        pa.array([decimal.Decimal("1.5")]),
    ]
    return {
        "seconds": [[told(one), told(tried(seconds_of, one))] for one in TIMES],
        "columns": [told(tried(seconds_of_column, one)) for one in columns],
        "whole": [told(tried(whole_seconds, one, "it")) for one in columns],
        "objects": told(tried(times_of_objects, [one for one in TIMES if one is not None])),
    }


def spans():
    column = pa.array([None, "2025-03-30T00:30:00Z", "2025-03-30T23:30:00Z", "soon", "2025-12-31T23:59:59Z"])
    found = {}
    for text, zone in (
        ("1d", None),
        ("1d", "Europe/Berlin"),
        ("1h", None),
        ("1w", "Asia/Kolkata"),
        ("1mo", None),
        ("2d", "Europe/Berlin"),
        ("15m", None),
    ):
        every = tried(lambda t=text, z=zone: Every("time", t, z) if hasattr(Every, "time") else Every(Calendar(t, z)))
        found[f"{text} {zone}"] = [told(every)] + [
            told(tried(lambda e=every, m=method: getattr(e, m)(column)))
            for method in ("names", "of", "begins", "spans")
            if hasattr(every, method)
        ]
    return found


UNIVERSES = {
    "size": lambda: Universe.of(5),
    "range": lambda: Universe.of(range(3, 9)),
    "list": lambda: Universe.of(["b", "a"]),
    "numbers": lambda: Universe.of([5, 1]),
    "bytes": lambda: Universe.of([b"a"]),
    "days": lambda: Universe.of([datetime.date(2025, 1, 2)]),
    "array": lambda: Universe.of(pa.array(["x", "y"])),
    "numpy": lambda: Universe.of(np.array([3, 1])),
    "strings": lambda: Universe.of("strings"),
}
WRONG_UNIVERSES = (
    0,
    -1,
    2**63,
    True,
    1.5,
    "text",
    [],
    ["a", "a"],
    ["a", 1],
    [None],
    [1.5],
    range(0),
    range(0, 9, 2),
    ["a" * 5000],
    {"a"},
    None,
    [["a"]],
)


def universe(make):
    def ask():
        made = make()
        texts = ["a", "5", "3", "b", "9", "-1", "", "007", "2025-01-02", "x" * 5000]
        found = {"repr": repr(made), "size": made.size}
        for name in sorted(name for name in dir(made) if not name.startswith("_")):
            value = getattr(made, name, None)
            if not callable(value):
                found[name] = told(value)
        found["items"] = told(tried(lambda: made.items(range(min(made.size or 0, 3)))))
        found["numbers"] = [
            told(tried(lambda o=one: made.numbers(o))) if hasattr(made, "numbers") else None
            for one in (["a"], [5, 3], pa.array([5, None]))
        ]
        found["written"] = [[text, told(tried(item_written, text, made))] for text in texts[:9]]
        found["columns"] = [
            told(tried(lambda r=rules: list(as_written(pa.array(texts), made, r)))) for rules in ("error", "skip")
        ]
        return found

    return ask


def universes_written(folder):
    (folder / "u.txt").write_text("b\na\n\n")
    (folder / "twice.txt").write_text("b\nb\n")
    (folder / "g.csv").write_text('a,b\n"c,d",e\n')
    (folder / "bad.txt").write_bytes(b"\xff\n")
    return [
        each(
            lambda text: [(made := universe_written(text)).size, made.items(range(min(made.size or 0, 3)))],
            "5",
            "2:9",
            "9:2",
            "2:2",
            "-3:4",
            "0",
            "strings",
            "x",
        ),
        [
            told(tried(lambda n=name: universe_written(str(folder / n)).size))
            for name in ("u.txt", "twice.txt", "bad.txt", "none.txt")
        ],
        [
            told(tried(lambda n=name, m=many: groups_written(folder / n, m)))
            for name in ("g.csv", "u.txt", "bad.txt")
            for many in (1, 2, 3)
        ],
        told(
            tried(
                lambda: list(
                    columns_written(
                        [pa.array(["1", "5"]), pa.array(["a", "b"])], [Universe.of(9), Universe.of(["a", "b"])]
                    )
                )
            )
        ),
        [told(tried(vectors_written, ["01", "10", "1", "2x", "111"], 2, rules)) for rules in ("error", "skip")],
        [
            told(tried(votes_written, ["1:0", "0", "2:1", "x", "1:2", "-1:0", "5:1"], 2, rules))
            for rules in ("error", "skip")
        ],
    ]


def items():
    return {
        "items": [[told(one), told(tried(item_of, one))] for one in OBJECTS],
        "of numpy": [told(tried(of_numpy, one)) for one in OBJECTS],
        "of bytes": [item_of_bytes(text) for text in (b"a", b"\xff", b"", "ü".encode())],
        "order": sorted(range(14), key=lambda n: item_order(("b", 2, b"a", 1, "a", -5, 2**63)[n % 7])),
        "several": [is_several(one) for one in OBJECTS],
        "row items": [
            told(tried(lambda o=one: None if (row := row_items(o)) is None else list(row))) for one in OBJECTS
        ],
        "listed": [told(tried(listed, one)) for one in ("ab", [1, "a"], (x for x in "ab"), 5, None, {"a": 1})],
        "values": [
            told(tried(values_of, one, rules))
            for one in (["a", None], pa.array([1, None]), np.array([1, 2]))
            for rules in ("error", "skip", "keep")
        ],
        "columns": [
            told(tried(lambda o=one: type(prepare_column(o)).__name__))
            for one in (*COLUMNS.values(), ["a"], np.array([1.5]), np.array([["a"]]), "a", 5)
        ],
        "lists": [
            told(tried(lambda o=one: type(prepare_lists(o)).__name__))
            for one in ([["a"]], pa.array([["a"]]), pa.array(["a"]), "a", 5)
        ],
        "plain": [told(tried(plain_array, one)) for one in (["a"], [1], ["a", 1], [b"a"], [2**63], [1.5], [], [None])],
        "kinds": [
            [str(one.type), kind_of(one.type), kind_of(one.type, False), is_amount(one.type)]
            for one in (*COLUMNS.values(), pa.array([["a"]]), pa.array([{"a": 1}]))
        ],
        "without nulls": told(
            without_null_elements(pa.array([["a", None], None, [], ["b"]], pa.large_list(pa.string())))
        ),
    }


def keys():
    found = {}
    for name, column in COLUMNS.items():
        found[name] = [
            str(part_type(column.type)),
            told(tried(plain_column, column)),
            told(tried(lambda c=column: column_of_plain(*plain_column(c)))),
        ]
        for by in (0, 1):
            layout = tried(lambda c=column, b=by: Layout.of(["x", "y"], [c.type, pa.string()], b))
            if not isinstance(layout, Exception):
                made = layout.keys([column, COLUMNS["text"]])
                found[name].append([told(made), told(layout.columns(made)), told(layout)])
    return found


def values():
    return [
        [[told(one), told(tagged(one)), told(tried(lambda o=one: untagged(tagged(o))))] for one in OBJECTS],
        told(items_array(["a", 1, b"c"])),
        told(items_array([1, 2])),
        told(plain_items([b"a", "b", 1, datetime.date(2025, 1, 2), decimal.Decimal("1.5"), 1.5])),
        [told(part) for part in joined_keys(pa.array(["b", "a"]), pa.array(["c", "b"]))],
        told(tried(column_of_plain, ["a"], {"type": "nothing"})),
    ]


def samples():
    lists = pa.array([["a", "b", "c", "d"], ["a"], [], None, ["b", None, "b"]])
    found = []
    for given in (lists, [["a", "b", "c", "d"], ["a"], [], ["b", "b"]]):
        for most in (1, 2, 9):
            found.append(
                told(
                    tried(lambda g=given, m=most: [told(one) for one in items_of_users(g, m, "skip", seeded_source(1))])
                )
            )
    sets = UserSets(2, seeded_source(1)) if UserSets.__init__.__code__.co_argcount == 3 else None
    if sets is not None:
        sets.add(pa.array(["u", "v", "u", "u", "u"]), pa.array(["a", "b", "c", "d", "a"]))
        found.append([sorted(map(str, one)) for one in sets.lists()])
    return [
        found,
        told(tried(items_of_users, lists, 0, "skip", seeded_source(1))),
        told(encoded(pa.array(["b", "a", "b"]))),
        told(mixed(np.array([1, 2], np.uint64), np.array([3, 4], np.uint64))),
    ]


def lookups(folder):
    (folder / "l.csv").write_text("k,v,n\na,x,1\nb,y,2\n")
    (folder / "twice.csv").write_text("k,v\na,x\na,y\n")
    (folder / "null.csv").write_text("k,v\n,x\nb,\n")
    table = pa.table({"k": ["a", "b"], "v": ["x", None], "n": [1, 2]})
    found = []
    for given, on in (
        (table, "k"),
        (folder / "l.csv", "k"),
        (str(folder / "l.csv"), "n"),
        (folder / "twice.csv", "k"),
        (folder / "null.csv", "k"),
        (folder / "none.csv", "k"),
        (table, "z"),
        (pa.table({"k": ["a"]}), "k"),
        (5, "k"),
        ({"k": ["a"], "v": ["b"]}, "k"),
        (table, "v"),
    ):
        made = tried(lambda g=given, o=on: Lookup.of(str(g) if hasattr(g, "name") else g, o))
        found.append(
            told(made)
            if isinstance(made, Exception)
            else [
                made.columns,
                {
                    key: "(left out)" if "digest" in key or "sha" in key else value
                    for key, value in made.to_dict().items()
                },
                told(tried(made.found, pa.array(["b", "c", "a"]), ["v"])),
                repr(made.as_texts())[:60],
            ]
        )
    return found


def tables():
    """Columns of every type as tables, and what is no table."""
    found = {}
    table = pa.table(
        {**COLUMNS, "nulls": pa.array(["a", None, "b", "a"]), "lists": pa.array([["a", None], [], None, ["b", "a"]])}
    )
    for name in table.column_names:
        for words in ({}, {"numbers": True}):
            rows = tried(lambda n=name, w=words: [told(one) for one in events_of(table).rows(n, nulls="skip", **w)])
            found[f"{name} {sorted(words)}"] = told(rows)
    for name, data in {
        "list": ["a", None, "b"],
        "numbers": np.array([1, 2]),
        "floats": [1.5],
        "nested": [["a"], ["b", "c"]],
        "dict": {"x": ["a", "b"], "y": [1, 2]},
        "text": "abc",
        "number": 5,
        "none": None,
        "empty": [],
        "generator": (x for x in "ab"),
        "two": pa.table({"a": ["x"], "b": ["y"]}),
        "chunked": pa.chunked_array([["a"], ["b"]]),
        "reader": None,
    }.items():
        found[name] = told(tried(lambda d=data: [told(one) for one in events_of(d).rows(None, nulls="skip")]))
    for words in (
        {"user": "nulls"},
        {"value": "small"},
        {"user": "none"},
        {"user": "lists"},
        {"value": "text"},
        {"where": where("small > 0")},
        {"where": where("zzz > 0")},
        {"lists": True},
        {"nulls": "error"},
        {"bad_rows": "error"},
    ):
        found[str(sorted(words))] = told(
            tried(lambda w=words: [told(one) for one in events_of(table).rows("text", **{"nulls": "skip", **w})])
        )
    found["all rows"] = [
        told(tried(lambda w=words: events_of(table).all_rows(**w).number()))
        for words in ({}, {"where": where("small > 0")}, {"nulls": "skip"}, {"where": where("text = 'a'")})
    ]
    found["lists of people"] = told(
        tried(lambda: [told(one) for one in events_of(table).rows("lists", lists=True, nulls="skip")])
    )
    found["checks"] = [
        told(tried(checked, table.to_batches()[0], name, "it")) for name in ("text", "ratio", "lists", "none")
    ]
    found["choose"] = [told(tried(choose, ["a", "b"], name, "it")) for name in ("a", "c", None)]
    return found


def pairings():
    column = pa.array(["2025-06-02T12:00:00Z", None, "2025-06-03", "x"])
    made = [
        tried(lambda w=words: Pairing(*w))
        for words in (("time", Calendar("1d")), ("time", Calendar("1w", "Europe/Berlin")))
    ]
    return [
        told(made),
        [
            told(tried(pair_keys, pa.array([1, 2, 2, 2], pa.int32()), pa.array(people)))
            for people in (["a", "b", "b", None], [1, 2, 2, 3], [1.0, 2.0, 2.0, None], [True, False, False, True])
        ],
        [told(tried(lambda m=one: m.spans(column, "rows.csv"))) for one in made],
    ]


URLS = (
    "s3://b/k.csv",
    "s3://b/a*/k.csv.gz",
    "gs://b/k",
    "abfs://c@a/k",
    "https://h/x.csv?sig=SECRET&a=1",
    "https://u:p@h/x.csv",
    "s3://",
    "file.csv",
    "postgresql://u:p@h/d#t",
    "http://h/a%20b.parquet",
    "S3://b/k",
    "./a://b",
    "https://h",
    "-",
    "a.csv#t",
)
NAMES = (
    "a.csv",
    "a.CSV.gz",
    "a.tsv.bz2",
    "a.jsonl",
    "a.ndjson",
    "a.json",
    "a.txt",
    "a.log",
    "a.parquet",
    "a.pq",
    "a.arrow",
    "a.feather",
    "a.csv.zst",
    "a.csv.xz",
    "a.csv.zip",
    "a",
    "a.gz",
    ".csv",
    "a.b.c",
    "dir.csv/a",
    "a.parquet.gz",
    "https://h/a.csv?x=1",
    "s3://b/a.parquet",
)
CASES = {
    **{f"file of {kind}": file(kind) for kind in FILES},
    "parquet": columnar("parquet"),
    "arrow": columnar("arrow"),
    "dialects": dialects,
    "cutting": cutting,
    **{f"live {kind}": live(kind, 5) for kind in FILES if kind != "baskets"},
    "live baskets": live("baskets", 3, sets=True),
    "live blank rows": live("csv", 4, keep_blank=True),
    "live blank lists": live("jsonl", 4, keep_blank=True, sets=True),
    "live lists": live("jsonl", 4, sets=True),
    "live times": live("csv", 4, time_column="n"),
    "live times of JSON": live("jsonl", 4, time_column="n"),
    "live people": live("csv", 4, user_column="n"),
    "live people of JSON": live("jsonl", 4, user_column="n", keep_blank=True),
    "live latin": live("csv", 4, encoding="latin-1"),
    "live without items": live("csv", 4, needs_items=False, column=None, time_column="n"),
    "live where": live("csv", 4, query=where("n > '2'")),
    "live errors": live("csv", 4, skip_bad=False),
    "live errors of JSON": live("jsonl", 1, skip_bad=False, time_column="n"),
    "live without a header": live("csv", 2, dialect=Dialect(header=False), column="2"),
    "live refusals": live_refusals,
    "rotated": rotated,
    "spool": spool,
    "times": times,
    "spans": spans,
    "pairings": pairings,
    **{f"universe of {name}": universe(make) for name, make in UNIVERSES.items()},
    "wrong universes": lambda: [[told(one), told(tried(lambda o=one: Universe.of(o).size))] for one in WRONG_UNIVERSES],
    "universes written": universes_written,
    "items": items,
    "keys": keys,
    "values": values,
    "samples": samples,
    "lookups": lookups,
    "tables": tables,
    "urls": lambda: [
        [url, scheme_of(url), shown(url), told(tried(lambda u=url: [Url(u).suffix, Url(u).stem]))] for url in URLS
    ],
    "endpoints": lambda: [
        [
            told(tried(lambda u=url, e=end: str(at_endpoint(u, e))))
            for end in (None, "https://m:9000", "http://m", "m", "https://m/x", "")
        ]
        for url in URLS[:7]
    ],
    "formats": lambda: {name: format_named(name) for name in NAMES},
    "encodings": lambda: each(
        encoding_named,
        "utf-8",
        "UTF8",
        "latin-1",
        "l1",
        "cp1252",
        "utf-16",
        "utf-16-le",
        "utf-32",
        "ascii",
        "shift_jis",
        "klingon",
        "",
        "utf-7",
        "rot13",
    ),
    "topics": lambda: each(
        topic_of,
        "kafka://b:9092/t",
        "kafka://b,c/t",
        "nats://b/t.u",
        "kafka://b",
        "kafka:///t",
        "nats://b:4222/s/t",
        "x://b/t",
        "kafka://b/t?x=1",
    ),
    "expanded": lambda folder: [
        [(folder / name).write_bytes(b"") for name in ("b.csv", "a.csv", "c.txt")],
        [
            told(tried(lambda p=pattern: [path.rpartition("/")[2] for path in expand(str(folder / p))]))
            for pattern in ("*.csv", "a.csv", "*.none", "none.csv", "**/*.csv", "[ab].csv")
        ],
        told(tried(expand, [])),
        told(tried(expand, ["-", "-"])),
        told(tried(expand, 5)),
    ],
}
