"""A service that publishes what a test tells it to, when it tells it to: the answers of the real one.

Ticks that come when they are asked for need no waiting, and a page has to cope with more than a real stream shows in a
second: missed ticks, a stream that has ended, one that goes on, items that were typed to do harm.
"""

from __future__ import annotations

import json
import math
import threading
from datetime import datetime, timedelta, timezone
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import discreet

PAGE = Path(discreet.__file__).parent / "service" / "page"
ADMIN, READ = "admin-token-of-the-test", "read-token-of-the-test"
POLICY = (
    "default-src 'self'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

HOSTILE = [
    "<img src=x onerror=\"document.title='taken over'\">",
    "<script>document.title='taken over'</script>",
    "\u202egnp.elif",
    "שלום עולם, مرحبا",
    "👩‍👩‍👧‍👦 family 🏳️‍🌈",
    "long " * 300,
    "a\x00b\nc",
    "",
]


def iso(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


class Stream:
    """A stream, its releases so far, and how to make one more."""

    def __init__(
        self,
        name: str,
        kind: str,
        items: list[str] | None = None,
        *,
        title: str | None = None,
        ticks: int = 43200,
        published: int = 0,
        tick_seconds: int = 60,
        public: bool = True,
        state: str = "running",
        following: dict[str, Any] | None = None,
        protects: str = "person",
        scale: float = 1.0,
        missed: tuple[int, ...] = (),
    ) -> None:
        self.name, self.kind, self.items, self.tick_seconds, self.public = name, kind, items or [], tick_seconds, public
        self.missed, self.scale, self.ticks = missed, scale, ticks
        self.begins = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(seconds=tick_seconds * published)
        self.releases: list[dict[str, Any]] = []
        ends = iso(self.begins + timedelta(seconds=tick_seconds * ticks))
        who = "person" if protects == "person" else "event"
        self.facts: dict[str, Any] = {
            "name": name, "kind": kind, "title": title or name.capitalize(), "protects": protects, "max_items": 20,
            "tick_seconds": tick_seconds, "ticks": ticks, "begins": iso(self.begins), "ends": ends,
            "epsilon": 1.0, "delta": 1e-9, "k": 50,
            "trust": "curator", "public": public, "digest": "9f2c" * 16,
            "promise": f"Nobody can tell from everything published here whether any one {who} is in it.",
            "guarantee": {
                "unit": who, "epsilon": 1.0, "delta": 1e-9, "mechanism": "continual.Histogram",
                "assumptions": ["the curator is trusted"],
            },
            "budget": {"granted": {"epsilon": 1.0, "delta": 1e-9}, "spent": {"epsilon": 1.0, "delta": 1e-9}},
            "state": state, "following": following, "run": 1, "open": False,
        }  # fmt: skip
        if kind == "survey":
            self.facts |= {"question": title, "options": self.items, "protocol": {"protocol": "HadamardResponse"}}
        for _ in range(published):
            self.publish()

    def publish(self) -> dict[str, Any]:
        tick = len(self.releases) + 1
        at = self.begins + timedelta(seconds=self.tick_seconds * tick)
        release: dict[str, Any] = {
            "stream": self.name, "tick": tick, "begins": iso(at - timedelta(seconds=self.tick_seconds)),
            "ends": iso(at), "run": 1, "missed": tick in self.missed, "confidence": 0.95,
        }  # fmt: skip
        if self.kind in ("count", "distinct"):
            value = self._value(tick, 0, 40.0)
            release |= {
                "value": value,
                "lower": value - round(110 * self.scale),
                "upper": value + round(110 * self.scale),
            }
        else:
            counts = [
                (self._value(tick, place, 30.0 / (place + 1) ** 0.8), item) for place, item in enumerate(self.items)
            ]
            release["items"] = [
                {
                    "item": item,
                    "count": count,
                    "lower": max(0, count - round(70 * self.scale)),
                    "upper": count + round(70 * self.scale),
                }
                for count, item in sorted(counts, key=lambda row: -row[0])
            ]
        if self.kind == "survey":
            release["reports"] = sum(row["count"] for row in release["items"])
        self.releases.append(release)
        return release

    def _value(self, tick: int, place: int, slope: float) -> int:
        """A rise with a daily swing, a burst of the fourth item, and a little noise: the same every time."""
        burst = 900 * self.scale if place == 3 and tick > 30 else 0
        swing = 60 * math.sin(tick / 9 + place)
        noise = 14 * math.sin(tick * 12.9898 + place * 78.233)
        return max(1, round(self.scale * (slope * tick + swing + 100) + burst + noise))

    def to_dict(self, whole: bool) -> dict[str, Any]:
        at = self.begins + timedelta(seconds=self.tick_seconds * (len(self.releases) + 1))
        more = {
            "ticks_published": len(self.releases),
            "next_tick": iso(at),
            "latest": self.releases[-1] if self.releases else None,
        }
        definition = {
            "kind": self.kind,
            "item": "query",
            "user": "visitor",
            "tick": "1m",
            "horizon": "30d",
            "epsilon": 1.0,
            "delta": 1e-9,
            "k": 50,
        }
        return self.facts | more | ({"definition": definition} if whole else {})


class Pretend:
    """The service on a free port of the loopback; `publish` makes a tick that every open page hears of."""

    def __init__(self, *streams: Stream) -> None:
        self.streams = {stream.name: stream for stream in streams}
        self.changed = threading.Condition()
        self.closing = False
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> Pretend:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def publish(self, name: str) -> dict[str, Any]:
        with self.changed:
            release = self.streams[name].publish()
            self.changed.notify_all()
        return release

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                parts = [unquote(part) for part in url.path.split("/") if part]
                query = {key: values[0] for key, values in parse_qs(url.query).items()}
                token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
                if not parts:
                    return self.file(PAGE / "index.html")
                if parts[0] == "static":
                    return self.file(PAGE.joinpath(*parts[1:]))
                if parts[0] == "streams":
                    return self.file(PAGE / "stream.html")
                if parts[:2] == ["v1", "streams"]:
                    return self.api(parts[2:], query, token)
                if parts[:3] == ["v1", "admin", "status"]:
                    return self.status(token)
                return self.problem(404)

            def api(self, parts: list[str], query: dict[str, str], token: str) -> None:
                seen = {name: one for name, one in service.streams.items() if one.public or token in (READ, ADMIN)}
                if not parts:
                    return self.json({"streams": [one.to_dict(False) for one in seen.values()]})
                stream = seen.get(parts[0])
                if stream is None:
                    return self.problem(404)
                if len(parts) == 1:
                    return self.json(stream.to_dict(True))
                if parts[1:] == ["live"]:
                    return self.live(stream)
                first, last = int(query.get("from", 1)), int(query.get("to", len(stream.releases)))
                every = int(query.get("every", 1))
                chosen = [one for one in stream.releases[first - 1 : last] if one["tick"] % every == 0]
                return self.json({"stream": stream.name, "releases": chosen})

            def live(self, stream: Stream) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                told = int(self.headers.get("Last-Event-ID") or len(stream.releases))
                self.wfile.write(b": hello\n\n")

                def news_after(tick: int) -> bool:
                    return service.closing or len(stream.releases) > tick

                while not service.closing:
                    with service.changed:
                        service.changed.wait_for(partial(news_after, told), timeout=1)
                        news = stream.releases[told:]
                    try:
                        for release in news:
                            data = json.dumps(release, ensure_ascii=False)
                            self.wfile.write(f"id: {release['tick']}\nevent: release\ndata: {data}\n\n".encode())
                            told = release["tick"]
                        self.wfile.write(b": still here\n\n")
                        self.wfile.flush()
                    except OSError:
                        break
                self.close_connection = True

            def status(self, token: str) -> None:
                if token != ADMIN:
                    return self.problem(403 if token == READ else 401)
                rows = [
                    {"name": name, "lag_seconds": 0.2, "spool_bytes": 123456, "spool_events": 4321, "accepted": 987654,
                     "refused": {"bad rows": 3, "too large": 0}}
                    for name in service.streams
                ]  # fmt: skip
                return self.json({"streams": rows, "uptime_seconds": 5025.0})

            def json(self, value: object, status: int = 200) -> None:
                self.answer(json.dumps(value, ensure_ascii=False).encode(), "application/json", status)

            def problem(self, status: int) -> None:
                self.json(
                    {"type": "about:blank", "title": "Not found" if status == 404 else "Refused", "status": status},
                    status,
                )

            def file(self, path: Path) -> None:
                if not path.resolve().is_relative_to(PAGE.resolve()) or not path.is_file():
                    return self.problem(404)
                return self.answer(path.read_bytes(), TYPES.get(path.suffix, "text/plain"))

            def answer(self, body: bytes, kind: str, status: int = 200) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Security-Policy", POLICY)
                self.send_header("X-Content-Type-Options", "nosniff")
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

        return Handler


QUERIES = [
    *(
        "weather",
        "bus times amberton",
        "cinema tonight",
        "power cut",
        "pizza near me",
        "pharmacy open now",
        "train strike",
        "library",
    ),
    *(
        "second hand books",
        "swimming pool",
        "farmers market",
        "used bikes birchmere",
        "museum",
        "concert tickets",
        "dentist",
    ),
]


def demo() -> list[Stream]:
    """One of everything."""
    errors = ["503 /checkout", "404 /old-catalogue", "timeout /search", "500 /basket"]
    question = "Should the canteen serve meat every day?"
    return [
        Stream("searches", "top", QUERIES, title="What people search for", published=75),
        Stream("visitors", "distinct", title="Visitors", published=75),
        Stream("errors", "top", errors, title="Errors that people meet", published=75, protects="event", scale=0.3),
        Stream("page-views", "count", title="Pages read", published=75, protects="event", scale=5),
        Stream("lunch", "survey", ["Yes", "No", "Only on Fridays"], title=question, published=40),
        Stream("new", "top", [], title="What people buy"),
    ]
