"""A made-up town site: visitors, what they search for, errors they meet, answers to a survey. Nobody in it is real.

There is a rhythm of a few minutes, as real sites have one of a day; now and then something happens that everyone
searches for, and now and then the checkout breaks. Events are sent as any site would send them: NDJSON over HTTP, with
a token.
"""

from __future__ import annotations

import http.client
import json
import math
import secrets
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import numpy as np

import discreet as dc

QUERIES = [
    *("weather", "bus times", "cinema", "pharmacy open now", "pizza near me", "swimming pool", "library", "museum"),
    *(
        "train station",
        "farmers market",
        "flea market",
        "dentist",
        "second hand books",
        "used bikes",
        "concert tickets",
    ),
    *(
        "bakery",
        "playground",
        "parking",
        "garden centre",
        "hairdresser",
        "driving school",
        "vegan restaurant",
        "florist",
    ),
    *("electrician", "plumber", "gym", "hotel", "car rental", "city hall", "lost and found", "🎆 fireworks", "شاورما"),
]
NEWS = ["power cut", "train strike", "street festival", "storm warning"]  # each has its minutes
ERRORS = ["404 /old-catalogue", "timeout /search", "500 /basket", "403 /members"]
OUTAGE = "503 /checkout"
ANSWERS = {"Yes": 0.42, "At weekends": 0.27, "No": 0.23, "I do not mind": 0.08}
RETRIES = 5
CYCLE = 300.0  # seconds of a "day"


class Town:
    """What happens in a stretch of time, by a clock of its own."""

    def __init__(self, rate: float, seed: int | None = None) -> None:
        self._random = np.random.default_rng(seed)
        self._rate = rate
        self._visitors = 0
        self._popularity = 1.0 / np.arange(2, len(QUERIES) + 2) ** 0.9

    def happens(self, at: float, seconds: float) -> dict[str, list[dict[str, str]]]:
        """The events of the streams from `at` on."""
        swing = 1.0 + 0.5 * math.sin(2 * math.pi * at / CYCLE)
        count = int(self._random.poisson(self._rate * swing * seconds))
        who = self._who(count)
        searching = self._random.random(count) < 0.6
        failing = self._random.random(count) < (0.25 if self.broken(at) else 0.06)
        looking = np.array(who)[searching].tolist()
        queries = self._queries(at, len(looking))
        errors = [{"error": error} for error in self._errors(at, int(failing.sum()))]
        return {
            "pages": [{} for _ in who],
            "visitors": [{"visitor": visitor} for visitor in who],
            "searches": [{"visitor": visitor, "query": query} for visitor, query in zip(looking, queries, strict=True)],
            "errors": errors,
            "checkout": errors,
        }

    @staticmethod
    def broken(at: float) -> bool:
        """Whether the checkout is out of order: forty seconds of every cycle."""
        return 200.0 <= at % CYCLE < 240.0

    def _who(self, count: int) -> list[str]:
        """Half of the views are of people who come for the first time, the others of those who came lately."""
        first = self._random.random(count) < 0.5
        back = self._random.integers(1, 3000, size=count)
        numbers = []
        for new, before in zip(first.tolist(), back.tolist(), strict=True):
            self._visitors += new
            numbers.append(self._visitors if new else max(1, self._visitors - before))
        return [f"visitor {number}" for number in numbers]

    def _queries(self, at: float, count: int) -> list[str]:
        weights = [*self._popularity, *(self._attention(place, at) for place in range(len(NEWS)))]
        # A tenth is what only one person would type: it must never be seen on the page.
        own = self._random.random(count) < 0.1
        chosen = self._random.choice(len(weights), size=count, p=np.array(weights) / sum(weights))
        return [
            f"made-up person {self._visitors} {place}" if alone else [*QUERIES, *NEWS][number]
            for place, (alone, number) in enumerate(zip(own.tolist(), chosen.tolist(), strict=True))
        ]

    def _attention(self, place: int, at: float) -> float:
        """How much a piece of news is searched for: a burst that fades, at another time of the cycle for each."""
        since = (at - 40.0 - place * CYCLE / len(NEWS)) % CYCLE
        return 1.5 * math.exp(-since / 35.0)

    def _errors(self, at: float, count: int) -> list[str]:
        weights = np.array([4.0, 2.0, 1.0, 0.6, 12.0 if self.broken(at) else 0.3])
        return [[*ERRORS, OUTAGE][number] for number in self._random.choice(5, size=count, p=weights / weights.sum())]

    def answers(self, seconds: float) -> list[str]:
        """What people would answer, if somebody asked them and they trusted whoever asks."""
        count = int(self._random.poisson(self._rate * 0.05 * seconds))
        return self._random.choice(list(ANSWERS), size=count, p=list(ANSWERS.values())).tolist()


class Sender:
    """One connection to the service, kept open."""

    def __init__(self, address: str, token: str) -> None:
        host = urlsplit(address).netloc
        self._headers = {"Authorization": f"Bearer {token}"}
        self._connection = http.client.HTTPConnection(host, timeout=60)

    def _send(self, method: str, path: str, body: bytes | None, kind: str) -> bytes:
        # The connection may be gone, the request lost, or only its answer. With a key it counts once, however often.
        headers = {**self._headers, "Content-Type": kind, "Idempotency-Key": secrets.token_hex(16)}
        for attempt in range(RETRIES + 1):
            try:
                self._connection.request(method, path, body, headers)
                answer = self._connection.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):
                self._connection.close()  # the next request opens it again
                if attempt == RETRIES:
                    raise
                time.sleep(0.2 * attempt)
        if answer.status not in (200, 202, 410, 429):  # it has ended, or has too much to do: a site goes on
            raise RuntimeError(f"{path} was answered with {answer.status}")
        return text

    def events(self, stream: str, events: list[dict[str, str]]) -> None:
        """Send events, if there are any."""
        if events:
            body = "".join(f"{json.dumps(event)}\n" for event in events).encode()
            self._send("POST", f"/v1/streams/{stream}/events", body, "application/x-ndjson")

    def answers(self, stream: str, answers: list[str]) -> None:
        """Send answers, each randomised first and in a message of its own, as browsers would do it."""
        if not answers:
            return
        description = json.loads(self._send("GET", f"/v1/streams/{stream}/round", None, "application/json"))
        survey = dc.multiparty.protocol_from_dict(description)
        for answer in answers:
            message = survey.party(secrets.randbelow(2**62)).encode([answer])
            self._send("POST", f"/v1/streams/{stream}/messages", message, "application/octet-stream")


def send_traffic(
    address: str, token: str, *, rate: float = 300.0, pause: float = 0.5, stop: Callable[[], bool]
) -> None:
    """Live in the town until `stop` says so."""
    town, sender = Town(rate), Sender(address, token)
    begun = last = time.monotonic()
    while not stop():
        time.sleep(pause)
        now = time.monotonic()
        for stream, events in town.happens(last - begun, now - last).items():
            sender.events(stream, events)
        sender.answers("market", town.answers(now - last))
        last = now
