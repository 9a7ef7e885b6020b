"""Cases of `discreet.service`: bodies, definitions, every answer of every route after scripted events, what is kept."""

import io
import json
import re

import pyarrow as pa
from tests.golden.answers.pin import digest, each, told, tried
from tests.golden.commands.tables import Numbers
from tests.service.conftest import START, STREAMS, Running
from tests.service.test_service_refusals import COUNT, DAYS, PEOPLE, SURVEY, TOP

import discreet as dc
from discreet.noise import seeded_source
from discreet.service.access import make_token
from discreet.service.bodies import FORMATS, Reader, plausible_event
from discreet.service.definitions import ServiceLimits, StreamDefinition, configuration, in_words, renamed
from discreet.service.event_spool import EventSpool, Record, packed
from discreet.service.forecast import forecast
from discreet.service.problems import ProblemError
from discreet.service.runs import fields_of, items_shown, number_shown, schema_of
from discreet.service.survey_stream import protocol_of

TOPS = {
    "rows": TOP,
    "people": PEOPLE,
    "sets": {**TOP, "sets": True, "max_items": 2},
    "universe": {**TOP, "universe": ["a", "b"]},
    "where": {**TOP, "where": {"lang": "de", "n": "1"}},
    "capacity": {**TOP, "capacity": 99},
    "titled": {**TOP, "title": "Pages & more", "public": True},
    "sparse": {**TOP, "universe": ["a", "b", "c"], "mechanism": "sparse", "switches": 2, "k": 2},
    "meta": {**TOP, "universe": ["a", "b", "c"], "sets": True, "mechanism": "meta", "k": 2},
    "sites": {**TOP, "sites": ["a.example"], "user": "visitor", "max_items": 3},
    "count": COUNT,
    "weak": {**COUNT, "epsilon": 50.0},
    "useless": {**COUNT, "epsilon": 0.000001},
    "days": DAYS,
    "days of a zone": {**DAYS, "zone": "Europe/Berlin", "time": "at", "late": "2h"},
    "distinct": {**COUNT, "kind": "distinct", "user": "visitor"},
    "distinct by day": {**DAYS, "kind": "distinct", "user": "visitor"},
    "pan": STREAMS["hidden-visitors"],
    "survey": SURVEY,
    "open survey": {**SURVEY, "open": True, "public": True},
    "large survey": {**SURVEY, "options": [f"o{n}" for n in range(40)]},
    "following": {**COUNT, "following": [{"epsilon": 0.5, "delta": 1e-7}]},
    "former": {**{k: v for k, v in TOP.items() if k != "column"}, "item": "page"},
    "trusted": {**COUNT, "trust": "curator"},
    "seconds": {**COUNT, "tick": "90s", "horizon": "3h"},
}
CHANGES = (
    {"tick": "0s"},
    {"tick": "1.5m"},
    {"tick": 60},
    {"horizon": "90s"},
    {"horizon": "0d"},
    {"horizon": 5},
    {"epsilon": 0},
    {"epsilon": -1},
    {"epsilon": "1"},
    {"epsilon": float("inf")},
    {"delta": 1},
    {"delta": -1},
    {"delta": None},
    {"title": "x" * 200},
    {"title": "x" * 201},
    {"title": ""},
    {"public": "yes"},
    {"account": ""},
    {"account": "a" * 200},
    {"account": "a" * 201},
    {"column": ""},
    {"column": "c" * 1000},
    {"column": "c" * 1001},
    {"k": 0},
    {"k": 4096},
    {"k": 4097},
    {"max_items": 0},
    {"max_items": 10},
    {"max_items": 11},
    {"capacity": 0},
    {"capacity": 2**30},
    {"switches": -1},
    {"mechanism": "magic"},
    {"universe": ["a"] * 2},
    {"universe": ["a"]},
    {"where": {}},
    {"where": {"a": 5}},
    {"where": {"a": "x" * 1001}},
    {"sites": []},
    {"sites": ["A b"]},
    {"options": ["a"]},
    {"options": ["a", "b", "a"]},
    {"question": ""},
    {"question": "q" * 1000},
    {"protocol": "odd"},
    {"protocol": "LocalHashing"},
    {"kind": "sum"},
    {"trust": "me"},
    {"per": "1w"},
    {"per": "1h"},
    {"late": "25h"},
    {"zone": "Nowhere"},
    {"time": "at"},
    {"unit": "row"},
    {"unit": "person"},
    {"following": [{"epsilon": 0}]},
    {"following": [{}]},
    {"source": "kafka://b:9092/t"},
    {"source": "x"},
    {"open": True},
    {"lookup": "none.csv", "on": "page"},
    {"user": ""},
    {"sets": True},
    {"colour": 1},
)


def definition(table):
    return configuration({"streams": {"it": table}}).streams["it"]


def defined(table):
    """What follows from a definition."""

    def ask():
        made = definition(table)
        return {
            "form": made.public_form(),
            "digest": made.digest,
            "fixed": sorted(made.fixed()),
            "ticks": made.ticks,
            "length": made.length,
            "hides": made.hides,
            "unit": str(made.privacy_unit),
            "promise": made.promise(),
            "spent": made.spent_by(1),
            "announced": made.announced(),
            "live": told(made.live),
            "forecast": tried(forecast, "it", made),
            "fields": tried(fields_of, made),
            "schema": str(tried(schema_of, made)),
            "starts": [made.timetable([START]).starts(tick) for tick in (1, 2)] if made.days is None else None,
            "round": told(json.loads(json.dumps(protocol_of(made, "it", 1).to_dict())))
            if made.kind == "survey"
            else None,
        }

    return ask


def wrong(table):
    def ask():
        return [
            [told(change), short(told(tried(lambda c=change: definition({**table, **c}).digest[:8])))]
            for change in CHANGES
        ]

    return ask


def short(text):
    return text if not isinstance(text, str) or "pydantic" not in text else text.partition("\n")[0]


def limits():
    """Each number at its ends, and beyond."""
    found = {}
    for name, field in ServiceLimits.model_fields.items():
        ends = [
            bound
            for rule in field.metadata
            for bound in (getattr(rule, "ge", None), getattr(rule, "le", None), getattr(rule, "gt", None))
            if bound is not None
        ]
        given = sorted({end + more for end in ends for more in (-1, 0, 1)})
        found[name] = [
            field.default,
            [
                [value, isinstance(tried(lambda n=name, v=value: ServiceLimits(**{n: v})), ServiceLimits)]
                for value in given
            ],
        ]
    return [found, each(lambda n: ServiceLimits(waiting_bytes=n).waiting_bytes, 48 * 2**20, 48 * 2**20 - 1)]


LONG = "x" * 1000
ROWS = [
    {"page": "a", "visitor": "v"},
    {"page": 5, "visitor": 2**70},
    {"page": "b"},
    {"visitor": "v"},
    {"page": None, "visitor": "v"},
    {"page": 1.5, "visitor": "v"},
    {"page": True, "visitor": "v"},
    {"page": LONG, "visitor": "v"},
    {"page": LONG + "y", "visitor": "v"},
    {"page": "", "visitor": ""},
    [],
    "text",
    5,
    None,
    {"page": ["a", 1, "a"], "visitor": "v"},
    {"page": ["a", None], "visitor": "v"},
    {"page": [], "visitor": "v"},
    {"page": [LONG + "y"], "visitor": "v"},
    {"page": {"a": 1}, "visitor": "v"},
    {"page": "a", "visitor": "v", "lang": "de", "n": "1"},
    {"page": "a", "visitor": "w", "lang": "de", "n": 1},
    {"page": "a", "visitor": "w", "lang": "fr", "n": 1},
]
GOOD = [ROWS[0], ROWS[1], ROWS[7], ROWS[9], *ROWS[19:]]
LISTS = [ROWS[14], ROWS[16]]


def bodies(kind):
    """Bodies of one format, right and wrong ones, for streams of every kind, with wrong rows skipped or refused."""

    def ask():
        found = {}
        for name in ("rows", "people", "sets", "where", "count", "distinct"):
            reader, small = Reader(definition(TOPS[name])), Reader(definition(TOPS[name]), ServiceLimits(body_rows=3))
            for label, body in made_bodies(kind).items():
                found[f"{name}: {label}"] = [
                    taken(reader.read, kind, body, True),
                    taken(reader.read, kind, body, False),
                    taken(reader.read_small, kind, body),
                    taken(small.read, kind, body, True),
                ]
        return found

    return ask


def taken(call, *given):
    try:
        read = call(*given)
    except ProblemError as problem:
        return [
            problem.status,
            str(problem),
            {k: told(v) for k, v in vars(problem).items() if k not in ("status", "args")},
        ]
    if read is None:
        return None
    shown = (
        None
        if read.columns is None
        else {name: [str(v)[:9] for v in read.columns.column(name).to_pylist()] for name in read.columns.schema.names}
    )
    return [read.taken, read.counted, read.skipped, shown]


def made_bodies(kind):
    if kind == "ndjson":
        lines = {"all": ROWS, "good": GOOD, "lists": LISTS, "none": []}
        made = {label: "".join(json.dumps(row) + "\n" for row in rows).encode() for label, rows in lines.items()}
        return {
            **made,
            "odd": b'{"page": "a"\n\n{"page": "\\ud800", "visitor": "v"}\n{"page": "\xff", "visitor": "v"}\n'
            b'not JSON\n{"page":"z","visitor":"v"}',
            "no newline": made["good"].rstrip(),
        }
    if kind == "json":
        made = {"all": ROWS, "good": GOOD, "lists": LISTS, "none": [], "one": ROWS[0], "text": "text", "number": 5}
        more = {
            "cut": b'[{"page": "a"}',
            "comma": b'[{"page": "a", "visitor": "v"},]',
            "space": b" \n[ ] ",
            "two": b"{} {}",
            "empty": b"",
            "bytes": b'["\xff"]',
        }
        return {**{label: json.dumps(value).encode() for label, value in made.items()}, **more}
    if kind == "csv":
        return {
            "good": b"visitor,page,lang,n\nv,a,de,1\nw,b,fr,1\n",
            "quoted": b'page,visitor\n"a,b",v\n"c\nd",w\n',
            "wrong": b"page,visitor\na\na,b,c\n\n" + LONG.encode() + b"y,v\n",
            "long": b"page,visitor\n" + LONG.encode() + b",v\n",
            "no header": b"",
            "twice": b"page,page\na,b\n",
            "lacks": b"visitor\nv\n",
            "bytes": b"page,visitor\n\xff,v\n",
            "open": b'page,visitor\n"a,v\n',
            "mark": b"\xef\xbb\xbfpage,visitor\r\na,v\r\n",
            "header alone": b"page,visitor\n",
        }
    tables = {
        "good": pa.table({"page": ["a", "b"], "visitor": ["v", "w"], "lang": ["de", "fr"], "n": ["1", "1"]}),
        "numbers": pa.table({"page": [1, 2], "visitor": pa.array([1, 2], pa.uint64())}),
        "nulls": pa.table({"page": ["a", None], "visitor": ["v", "w"]}),
        "floats": pa.table({"page": [1.5], "visitor": ["v"]}),
        "lists": pa.table({"page": [["a", "b"], [], None, ["c", None]], "visitor": ["v"] * 4}),
        "dictionary": pa.table({"page": pa.array(["a", "b", "a"]).dictionary_encode(), "visitor": ["v"] * 3}),
        "lacks": pa.table({"visitor": ["v"]}),
        "long": pa.table({"page": [LONG, LONG + "y"], "visitor": ["v", "w"]}),
        "bytes": pa.table({"page": [b"a", b"\xff"], "visitor": ["v", "w"]}),
        "none": pa.table({"page": pa.array([], pa.string()), "visitor": pa.array([], pa.string())}),
    }
    made = {}
    for label, table in tables.items():
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
        made[label] = sink.getvalue()
    return {**made, "cut": made["good"][:-40], "damaged": b"\xff\xff\xff\xff" + made["good"][40:], "empty": b""}


EVENTS = (
    b'{"n": "pageview", "u": "https://a.example/x?y=1&utm_source=s", "d": "a.example"}',
    b'{"n": "Signup", "u": "https://www.a.example", "d": "a.example,b.example", "r": "https://www.b.example/z"}',
    b'{"name": "pageview", "url": "https://a.example/x", "domain": "a.example", "referrer": null}',
    b'{"n": 5, "u": "x", "d": "a"}',
    b'{"n": "p", "u": "/x", "d": "a"}',
    b'{"n": "' + b"p" * 1001 + b'", "u": "https://a.example/", "d": "a"}',
    b'{"n": "p", "u": "https://a.example/' + b"x" * 1001 + b'", "d": "a"}',
    b'{"n": "p", "u": "https://A.Example:8/%20", "d": "a", "r": "nonsense"}',
)


def steady_headers(headers):
    return {
        name: value
        for name, value in sorted(headers.items())
        if name.lower() not in ("date", "content-length") and "request-id" not in name.lower()
    }


def answer_of(response):
    kind = response.headers.get("content-type", "")
    headers = steady_headers(response.headers)
    if not response.request.url.path.startswith("/v1/"):  # of a file: when it was written
        headers = {name: value for name, value in headers.items() if name not in ("etag", "last-modified")}
    text = response.content
    if "json" in kind and "ndjson" not in kind:
        body = response.json()
        body = digest(text) if len(text) > 12_000 else body
    elif kind.startswith("text/html"):
        body = "(a page)"
    elif "arrow" in kind:
        body = told(pa.ipc.open_stream(text).read_all()) if text else ""
    else:
        body = text.decode("utf-8", "backslashreplace")
    return [response.status_code, headers, body]


ROUTES = (
    "/v1/streams",
    "/v1/streams/{s}",
    "/v1/streams/{s}/releases",
    "/v1/streams/{s}/releases?format=csv",
    "/v1/streams/{s}/releases?format=arrow",
    "/v1/streams/{s}/releases?format=xml",
    "/v1/streams/{s}/releases?from=2&to=2",
    "/v1/streams/{s}/releases?from=3&to=1",
    "/v1/streams/{s}/releases?from=x",
    "/v1/streams/{s}/releases?from=0",
    "/v1/streams/{s}/releases?limit=1",
    "/v1/streams/{s}/releases/latest",
    "/v1/streams/{s}/releases/latest?format=csv",
    "/v1/streams/{s}/increases",
    "/v1/streams/{s}/increases?every=2",
    "/v1/streams/{s}/increases?every=0",
    "/v1/streams/{s}/increases?from=1&to=3&every=1",
    "/v1/streams/{s}/round",
)


def served(stream, *, near=()):
    """Every answer about a stream after scripted events and ticks, with a token and without."""

    def ask(folder):
        running = Running(folder / "data", {stream: STREAMS[stream]}).start()
        try:
            found, chance = {}, Numbers(3)
            found["before"] = [
                answer_of(running.client.get(route.format(s=stream), headers=running.token("read")))[::2]
                for route in ROUTES[:2] + ROUTES[11:12]
            ]
            if stream != "lunch":
                for tick in range(4):
                    rows = [
                        {"query": f"q{chance.skewed(4)}", "visitor": f"v{chance.below(40)}"}
                        for _ in range(30 * (tick + 1))
                    ]
                    sent = running.send(stream, rows, **({"Idempotency-Key": "k"} if tick == 1 else {}))
                    found[f"sent {tick}"] = answer_of(sent)
                    if tick == 1:
                        found["again"] = answer_of(running.send(stream, rows, **{"Idempotency-Key": "k"}))
                        found["another"] = answer_of(running.send(stream, rows[1:], **{"Idempotency-Key": "k"}))
                    running.pass_ticks()
            else:
                running.pass_ticks(2)
            token, narrow = running.token("read"), running.token("read", stream)
            for route in (*ROUTES, *near):
                found[route] = answer_of(running.client.get(route.format(s=stream), headers=token))
                for label, headers in (("without", {}), ("narrow", narrow), ("ingest", running.token("ingest"))):
                    found[f"{route} {label}"] = running.client.get(route.format(s=stream), headers=headers).status_code
            tag = running.client.get(f"/v1/streams/{stream}", headers=token).headers.get("etag")
            found["known"] = running.client.get(
                f"/v1/streams/{stream}", headers={**token, "If-None-Match": tag or "x"}
            ).status_code
            for accept in ("text/csv", "application/json", "application/vnd.apache.arrow.stream", "text/html", "*/*"):
                found[f"accept {accept}"] = answer_of(
                    running.client.get(f"/v1/streams/{stream}/releases/latest", headers={**token, "Accept": accept})
                )[:2]
            store = running.service.store
            found["stored"] = [
                re.sub(r'"(key|file|digest)": "[^"]*"', "", str(told(kept)))[:3000] for kept in store.streams().values()
            ]
            found["files"] = sorted(
                re.sub("[0-9a-f]{16,}", "HEX", str(path.relative_to(folder))) for path in folder.rglob("*")
            )
            running.again()
            found["after"] = answer_of(
                running.client.get(f"/v1/streams/{stream}/releases/latest", headers=running.token("read"))
            )[2]
            return found
        finally:
            running.stop()

    return ask


def others(folder):
    """What is said of the service as a whole, and of what is not there."""
    running = Running(folder / "data", {name: STREAMS[name] for name in ("visits", "people")}).start()
    try:
        running.send("visits", [{}] * 5)
        running.pass_ticks(2)
        admin, found = running.token("admin"), {}
        for route in (
            "/v1/admin/status",
            "/healthz",
            "/readyz",
            "/metrics",
            "/v1/streams/none",
            "/v1/none",
            "/v1/streams/none/releases",
            "/",
            "/docs",
            "/streams/visits",
            "/openapi.json",
            "/static/none",
        ):
            for label, headers in (("admin", admin), ("none", {})):
                answer = answer_of(running.client.get(route, headers=headers))
                if route == "/metrics" and isinstance(answer[2], str):
                    answer[2] = [line for line in answer[2].splitlines() if not re.search("uptime|bytes|seconds", line)]
                if route == "/v1/admin/status" and isinstance(answer[2], dict):
                    answer[2] = shape_of(answer[2])
                if route == "/openapi.json":
                    answer = [answer[0]]
                found[f"{route} {label}"] = answer
        for method, route in (
            ("post", "/v1/streams/visits/events"),
            ("post", "/v1/streams/none/events"),
            ("delete", "/v1/streams/visits"),
            ("post", "/api/event"),
            ("post", "/v1/streams/visits/messages"),
            ("put", "/metrics"),
        ):
            for label, headers in (
                ("admin", admin),
                ("none", {}),
                ("wrong", {"Authorization": "Bearer x"}),
                ("odd", {"Authorization": "x"}),
            ):
                found[f"{method} {route} {label}"] = answer_of(running.client.request(method, route, headers=headers))
        for origin in ("https://www.example.org", "https://other.example"):
            sent = running.client.options(
                "/v1/streams/visits", headers={"Origin": origin, "Access-Control-Request-Method": "GET"}
            )
            found[f"origin {origin}"] = [sent.status_code, steady_headers(sent.headers)]
        return found
    finally:
        running.stop()


def shape_of(value):
    """The names and types of fields."""
    if isinstance(value, dict):
        return {key: shape_of(each) for key, each in value.items()}
    return [shape_of(each) for each in value[:1]] if isinstance(value, list) else type(value).__name__


def shown_list():
    """A release of a stream, of which a page shows some items."""
    stream = dc.continual.Histogram(4, dc.Budget(1.0, 1e-6), ["a", "b", "c"], 1, source=seeded_source(3))
    return stream.step(["a"] * 90 + ["b"] * 40)


def spools(folder):
    """What a spool has on disk, and what it reads again, also of a damaged end."""
    spool, found = EventSpool(folder / "spool"), []
    records = [Record(1, b"one"), Record(2, b""), Record(3, b"x" * 50)]
    for tick, record in zip((1, 1, 2), records, strict=True):
        spool.append(tick, [packed(record)])
    found.append([packed(record) for record in records])
    found.append([spool.ticks(), spool.size(1), spool.size(2), spool.size(9), spool.total_bytes])
    found.append(
        [[told(tuple(record) if record else None), end] for tick in (1, 2, 9) for record, end in spool.read(tick, 0)]
    )
    for path in sorted((folder / "spool").iterdir()):
        found.append([path.name, path.stat().st_size, oct(path.stat().st_mode)])
    spool.close()
    last = sorted(path for path in (folder / "spool").iterdir() if path.stat().st_size)[-1]
    last.write_bytes(last.read_bytes()[:-3])
    again = EventSpool(folder / "spool")
    found.append([[told(tuple(record) if record else None), end] for record, end in again.read(2, 0)])
    again.remove_until(1)
    found.append([again.ticks(), sorted(path.name for path in (folder / "spool").iterdir())])
    again.close()
    return found


def tokens(folder):
    running = Running(folder / "data", {"visits": STREAMS["visits"]}).start()
    try:
        made = [
            make_token(running.service.store, scope, stream)
            for scope, stream in (("read", None), ("ingest", "visits"), ("admin", None))
        ]
        return [[len(text), identity] for identity, text in made]
    finally:
        running.stop()


CASES = {
    **{f"definition of {name}": defined(table) for name, table in TOPS.items()},
    **{
        f"wrong for {name}": wrong(table)
        for name, table in (("top", PEOPLE), ("count", COUNT), ("days", DAYS), ("survey", SURVEY))
    },
    "limits": limits,
    "services": lambda: each(
        lambda given: configuration({"streams": {"a": COUNT}, "service": given}).title,
        {"title": "x" * 200},
        {"title": "x" * 201},
        {"cors": ["http://[::1]:80", "https://a.b"]},
        {"cors": ["x"]},
        {"ledger": ""},
        {"limits": {"body_rows": 0}},
        {"limits": {"none": 1}},
        {"none": 1},
    ),
    "lengths": lambda: [in_words(seconds) for seconds in (1, 59, 60, 90, 3600, 7200, 86400, 604800, 31 * 86400, 10**7)],
    "former words": lambda: [
        told(tried(renamed, table))
        for table in (
            {"item": "a"},
            {"item": "a", "column": "b"},
            {"items": ["a"], "trust": "central"},
            {"kind": "survey", "trust": "local"},
            {"kind": "survey", "trust": "curator"},
            {"kind": "survey"},
        )
    ],
    **{f"bodies of {kind}": bodies(kind) for kind in ("ndjson", "json", "csv", "arrow")},
    "formats": lambda: FORMATS,
    "events of sites": lambda: [taken_event(body) for body in EVENTS],
    "numbers": lambda: [number_shown(*given) for given in ((5.4, 2.0), (-3.0, 2.0), (1e15, 1.0), (0.5, 0.0))],
    "items": lambda: [items_shown(shown_list(), k) for k in (None, 1, 2, 99)],
    **{f"served {name}": served(name) for name in STREAMS},
    "others": others,
    "spools": spools,
    "tokens": tokens,
    "fields": lambda: sorted(StreamDefinition.model_fields),
}


def taken_event(body):
    try:
        return told(plausible_event(body, b"k" * 32, "10.0.0.1", "browser"))
    except ProblemError as problem:
        return [problem.status, str(problem)]
