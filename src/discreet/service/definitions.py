"""What a service publishes: the streams of a TOML file. A definition is public, and fixed once its stream has begun."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from functools import cached_property
from logging import WARNING
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_serializer,
    field_validator,
    model_validator,
)

from discreet.errors import DiscreetError, ParameterError, WordError
from discreet.events.lookup import Lookup
from discreet.events.queues import topic_of
from discreet.privacy import Budget, Event, User
from discreet.privacy.charge_terms import differing_parameters
from discreet.privacy.spans import Calendar
from discreet.questions.live_question import LiveQuestion
from discreet.service.journal import tell
from discreet.storage import read_toml
from discreet.watch.ticks import duration, ticks_in
from discreet.watch.timetable import Days, Timetable

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:\d+)?|https?://\[[0-9a-fA-F:]+\](:\d+)?")
_WORDS = ((604800, "week"), (86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
# Words about a stream: what it promises is the same with others.
_NOT_FIXED = {"title", "following"}
MAX_TICKS = 2**24
MAX_OPTIONS = 1000
PLAUSIBLE_FIELDS = ("page", "host", "referrer", "event", "visitor")

# Words of earlier versions, and what they are now: accepted for one version.
FORMER = {
    "key": {"item": "column", "items": "universe"},
    "trust": {"central": "curator", "local": "parties"},
}

Kind = Literal["top", "count", "distinct", "survey"]
Trust = Literal["curator", "pan", "parties"]
HiddenUnit = Literal["row", "person", "person-day"]

_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def in_words(seconds: int) -> str:
    """A length of time for people."""
    for size, word in _WORDS:
        if seconds % size == 0:
            number = seconds // size
            return f"{number:,} {word}" + ("" if number == 1 else "s")
    raise AssertionError


def renamed(table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A definition in the words of today, and a line for each word of earlier versions that was in it."""
    said, keys = [], FORMER["key"]
    for old, new in keys.items():
        if old in table:
            if new in table:
                raise ParameterError(f"{old} is now called {new}; give {new} alone")
            said.append(f"{old} is called {new} now")
    table = {keys.get(name, name): value for name, value in table.items()}
    trust = table.get("trust")
    now = FORMER["trust"].get(str(trust), trust)
    if table.get("kind") == "survey" and now == "curator":
        now = "parties"  # what a survey had before it was asked
    if now != trust:
        said.append(f'trust = "{trust}" is called "{now}" now')
        table["trust"] = now
    return table, said


class Grant(BaseModel):
    """The budget of a horizon."""

    model_config = _STRICT

    epsilon: float = Field(gt=0)
    delta: float = Field(default=0.0, ge=0, lt=1)

    @property
    def budget(self) -> Budget:
        return Budget(self.epsilon, self.delta)


class StreamDefinition(BaseModel):
    """One stream. Everything here is public."""

    model_config = _STRICT

    kind: Kind
    title: str | None = Field(default=None, max_length=200)
    column: str | None = Field(default=None, min_length=1, max_length=200)  # the field that is counted
    user: str | None = Field(default=None, min_length=1, max_length=200)
    max_items: int | None = Field(default=None, ge=1, le=2**20)
    sets: bool | None = None  # whether an event holds a list of items; None for False
    tick: int  # seconds
    horizon: int | None = None  # seconds
    per: str | None = None  # a span of the calendar, such as 1d, with which all begins anew
    zone: str | None = None  # of these spans; UTC without
    time: str | None = Field(default=None, min_length=1, max_length=200)  # the field that says which span it is in
    late: int | None = None  # seconds that a tick waits for events
    epsilon: float = Field(gt=0)
    delta: float = Field(default=0.0, ge=0, lt=1)
    k: int | None = Field(default=None, ge=1, le=10_000)
    public: bool = False
    trust: Trust = "curator"
    account: str | None = Field(default=None, min_length=1, max_length=200)  # that pays; without, one of its own
    unit: HiddenUnit | None = Field(default=None, exclude=True)  # follows from `user`: to say it is to check it
    source: str | None = Field(default=None, exclude=True)  # a queue that events come from, beside requests
    open: bool = False  # anyone who reaches the service may send, without a token
    universe: tuple[str, ...] | None = None  # all items that can occur, known in advance
    capacity: int | None = Field(default=None, ge=16, le=2**20)  # counters of a sketch instead of one for each item
    mechanism: str | None = None  # which of `LiveQuestion`; None for the best
    switches: int | None = None  # how often the top k may be chosen anew with mechanism "sparse"
    where: dict[str, str] = Field(default_factory=dict, max_length=8)
    lookup: str | None = Field(default=None, min_length=1)  # the file of a public table, whose columns events have, too
    on: str | None = Field(default=None, min_length=1, max_length=200)  # the field that says which of its rows
    sites: tuple[str, ...] = ()
    question: str | None = Field(default=None, min_length=1, max_length=1000)
    options: tuple[str, ...] | None = None
    protocol: Literal["HadamardResponse", "LocalHashing", "LocalSketch"] | None = None
    following: tuple[Grant, ...] = ()  # under each of which the stream goes on for another horizon
    _table: Lookup | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _in_seconds(cls, table: Any) -> Any:
        """Times become seconds, and a survey trusts the parties."""
        if isinstance(table, dict) and table.get("kind") == "occurrences":
            raise ValueError(_NO_OCCURRENCES)
        if not isinstance(table, dict) or "tick" not in table:
            return table
        tick = duration("tick", table["tick"])
        made = {**table, "tick": tick}
        if "horizon" in table:
            made["horizon"] = ticks_in(table["horizon"], tick) * tick
        if "late" in table:
            made["late"] = duration("late", table["late"], 0)
        if table.get("kind") == "survey":
            made.setdefault("trust", "parties")
        if table.get("sets") is False:  # streams that began before there were sets have nothing there
            del made["sets"]
        return made

    @model_validator(mode="after")
    def _fits(self) -> StreamDefinition:
        self._fits_spans()
        if self.source is not None:
            if self.trust != "curator":
                raise ValueError("source works with streams that trust the curator; others keep no offsets")
            topic_of(self.source)
        if not 1 <= self.ticks <= MAX_TICKS:
            raise ValueError(f"a horizon must be 1 to {MAX_TICKS:,} ticks, not {self.ticks:,}")
        needed, allowed = _FIELDS[self.kind]
        for name in sorted(needed):
            if getattr(self, name) is None:
                raise ValueError(f"{self.kind} needs {name}")
        for name in sorted(_OF_KINDS - needed - allowed):
            if getattr(self, name) not in (None, (), {}):
                raise ValueError(f"{name} cannot be used with {self.kind}")
        if self.trust == "pan" and self.kind not in ("count", "distinct"):
            raise ValueError('trust = "pan" works with count and distinct only')
        if (self.trust == "parties") != (self.kind == "survey"):
            raise ValueError('trust = "parties" works with surveys only, whose answers are private before they arrive')
        if self.unit not in (None, self.hides):
            advice = {"row": "leave out user", "person": "give user, and no per", "person-day": "give user and per"}
            raise ValueError(f'this stream hides a {self.hides}: for unit = "{self.unit}" {advice[self.unit or "row"]}')
        if self.delta and (self.trust == "pan" or self.kind == "survey"):
            raise ValueError("this kind of stream has no delta; leave it out")
        self._fits_lookup()
        try:
            _ = self.live
        except WordError as error:
            raise ValueError(error.spelled(lambda word: _KINDS.get(word, word))) from None
        getattr(self, f"_fits_{self.kind}", lambda: None)()
        public = () if self.table is None else self.table.columns
        if self.sites and not {self.column, self.on} <= {None, *PLAUSIBLE_FIELDS, *public}:
            raise ValueError(f"events of a site can only have the fields {', '.join(PLAUSIBLE_FIELDS)}")
        if self.sites and self.user not in (None, "visitor"):
            raise ValueError('for events of a site, user must be "visitor"')
        return self

    def _fits_spans(self) -> None:
        if (self.horizon is None) == (self.per is None):
            raise ValueError('give a horizon, such as "30d", or per = "1d" to start again every day, not both')
        if self.per is None and (self.zone or self.time or self.late) is not None:
            raise ValueError('zone, time and late need per = "1d"')
        if self.per is not None and self.account is not None and self.time is None:
            raise ValueError(
                "account with per needs time: all releases of an account must take the day of an event from the "
                "event itself"
            )
        if self.late is not None and self.time is None:
            raise ValueError("late needs time; without it, an event belongs to the day on which it arrives")
        if self.per is not None and (self.trust != "curator" or self.following):
            raise ValueError("per works with streams of a curator, without following; they continue by themselves")
        if self.late is not None and self.late > self.ticks * self.tick:
            raise ValueError(f"late must be shorter than {self.per}")

    def _fits_lookup(self) -> None:
        """The public table is read and checked when the file is."""
        if (self.lookup is None) != (self.on is None):
            raise ValueError("lookup and on must be given together: a public table, and the field to join it on")
        if self.lookup is None or self.on is None:
            return
        try:
            self._table = Lookup.of(self.lookup, self.on).as_texts()
        except DiscreetError as error:
            raise ValueError(f"lookup: {error}") from None
        used = [name for name in (self.column, self.user, *self.where) if name in self._table.columns]
        if not used:
            raise ValueError(
                f"lookup is not used: column, user or where must name one of {', '.join(self._table.columns)}"
            )
        if self.time in self._table.columns or (self.sets and self.on == self.column):
            raise ValueError("time and sets come from the event itself; they cannot come from lookup or be its key")
        if any(
            len(text.encode()) > 1000 for name in used for text in self._table.columns[name].drop_null().to_pylist()
        ):
            raise ValueError("lookup must have texts of at most 1000 bytes")

    def _fits_top(self) -> None:
        chooses = self.live is not None and self.live.chooses  # then any number of items of a set count
        if self.max_items is None and (self.user is not None or (self.sets and not chooses)):
            raise ValueError("max_items needs user or sets: it limits the items of one person, or of one event")
        if self.sets and (self.sites or self.column in self.where):
            raise ValueError("sets are lists in their own field; they cannot be combined with sites or used in where")
        if self.universe is not None:
            _check_list("universe", self.universe, 100_000)

    def _fits_survey(self) -> None:
        assert self.options is not None
        _check_list("options", self.options, MAX_OPTIONS)
        if len(self.options) < 2:
            raise ValueError("a survey needs at least two options")

    # ---- what follows from it ---------------------------------------------------------------------------------------

    @property
    def table(self) -> Lookup | None:
        """The public table, with every column as text."""
        return self._table

    @field_serializer("lookup")
    def _named(self, path: str | None) -> dict[str, str] | None:
        """A table is shown, and fixed, by its name and what is in it, wherever it lies."""
        return None if path is None or self._table is None else self._table.to_dict()

    @property
    def live(self) -> LiveQuestion | None:
        """The question that it asks at every tick; None for a survey, whose question is for people."""
        if self.kind == "survey":
            return None
        words: dict[str, Any] = {"column": self.column, "user": self.user, "max_items": self.max_items}
        words |= {"universe": self.universe, "sets": bool(self.sets), "lookup": self._table, "on": self.on}
        words |= {"mechanism": self.mechanism, "switches": self.switches}
        if self.k is not None:
            words["k"] = self.k
        kinds = {word: self.kind == kind for word, kind in (("total", "count"), ("distinct", "distinct"))}
        return LiveQuestion(**words, **kinds, capacity=self.capacity, tick=f"{self.tick}s", horizon=self.ticks)  # type: ignore[arg-type]

    @property
    def days(self) -> Days | None:
        """The spans of the calendar with which it begins anew; None for horizons."""
        return None if self.per is None else Days(Calendar(self.per, self.zone))

    @property
    def ticks(self) -> int:
        """How many ticks a horizon has; of spans of the calendar, one without a change of the clock."""
        if self.days is not None:
            return self.days.usual_ticks(self.tick)
        assert self.horizon is not None
        return self.horizon // self.tick

    @property
    def length(self) -> str:
        """How long a run is, in words."""
        return in_words(self.horizon or 0) if self.days is None else self.days.spans.describe()

    def timetable(self, edges: Sequence[float]) -> Timetable:
        """Its ticks and runs; these edges are known: the beginning, and ends."""
        if self.days is not None:
            return Timetable(self.tick, self.days.end, edges)
        assert self.horizon is not None
        ends = [edges[0] + self.horizon * run for run in range(2 + len(self.following))]
        return Timetable(self.tick, lambda _: math.inf, ends)

    def grant_of(self, run: int) -> Grant:
        """Of a horizon, from 1."""
        return Grant(epsilon=self.epsilon, delta=self.delta) if run == 1 or self.per else self.following[run - 2]

    def budget_of(self, run: int) -> Budget:
        """The same, as mechanisms take it."""
        return self.grant_of(run).budget

    def spent_by(self, run: int) -> tuple[float, float]:
        """(epsilon, delta) of this horizon and those before it, all of which are charged as they begin.

        Of spans of the calendar those of one: charges about different ones do not add up.
        """
        grants = [self.grant_of(number) for number in (range(1, run + 1) if self.per is None else (run,))]
        return sum(grant.epsilon for grant in grants), sum(grant.delta for grant in grants)

    def announced(self) -> list[dict[str, float]]:
        """The grants that follow, JSON-ready."""
        return [grant.model_dump() for grant in self.following]

    @property
    def hides(self) -> HiddenUnit:
        """Whose presence is hidden: that of one event, or of one person with all of theirs."""
        return "row" if self.user is None else "person" if self.per is None else "person-day"

    @property
    def privacy_unit(self) -> Event | User | None:
        """What an account must be for where every span of the calendar is charged by itself; None for horizons."""
        if self.per is None:
            return None
        return (Event if self.user is None else User)(per=self.per, zone=self.zone)

    def fixed(self) -> dict[str, Any]:
        """What must not change, JSON-ready."""
        return {name: value for name, value in self.public_form().items() if name not in _NOT_FIXED}

    def public_form(self) -> dict[str, Any]:
        """As it is shown: what was said, and what was left to defaults that matter."""
        said = self.model_dump(mode="json", exclude_none=True)
        return {name: value for name, value in said.items() if value not in ([], {})}

    @cached_property
    def digest(self) -> str:
        """Changes with anything that must not change."""
        return hashlib.sha256(json.dumps(self.fixed(), sort_keys=True).encode()).hexdigest()

    def promise(self, run: int = 1) -> str:
        """What is promised, in one plain sentence."""
        budget = self.grant_of(run)
        factor = math.exp(min(budget.epsilon, 700.0))
        times = f"at most {factor:.3g} times as likely or as unlikely (epsilon {budget.epsilon:g})"
        if budget.delta:
            times += f", except with probability {budget.delta:g} (delta)"
        if self.kind == "survey":
            said = "Every answer is randomised before it leaves the device"
            return f"{said}: whichever option you choose, any report is {times}."
        who = {
            "row": "One event more or less",
            "person": "One person more or less, with everything they did,",
            "person-day": f"One person more or less, with everything they did in {self.length},",
        }[self.hides]
        about = "about it" if self.hides == "person-day" else f"{'in' if self.per is None else 'about'} {self.length}"
        seen = f"all that is published {about}"
        if self.trust == "pan":
            seen += ", and one look at the memory or the disk of the service,"
        return f"{who} makes {seen} {times}."


_NO_OCCURRENCES = (
    "occurrences is no kind of stream: a retried request would count twice, because a pan stream may keep no key of a "
    'request; use discreet pan occurrences, or kind = "distinct"'
)
_KINDS = {"total": 'kind = "count"', "distinct": 'kind = "distinct"'}  # words of `LiveQuestion`, as a stream says them
_OF_KINDS = {
    "column", "user", "max_items", "sets", "k", "universe", "capacity", "mechanism", "switches", "where", "lookup",
    "on", "sites", "question", "options", "protocol",
}  # fmt: skip
_OF_ROWS = {"where", "sites", "lookup", "on"}
_FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "top": (
        {"column", "k"},
        {"user", "max_items", "sets", "universe", "capacity", "mechanism", "switches", *_OF_ROWS},
    ),
    "count": (set(), _OF_ROWS),
    "distinct": ({"user"}, _OF_ROWS),
    "survey": ({"question", "options"}, {"protocol"}),
}


def _check_list(name: str, values: tuple[str, ...], most: int) -> None:
    if not 1 <= len(values) <= most or len(set(values)) < len(values):
        raise ValueError(f"{name} must list 1 to {most:,} different texts")
    if not all(1 <= len(value.encode()) <= 1000 for value in values):
        raise ValueError(f"{name} must list texts of 1 to 1000 bytes each")


class ServiceLimits(BaseModel):
    """What the service takes at most."""

    model_config = _STRICT

    header_bytes: int = Field(default=2**15, ge=2**13, le=2**20)  # of one request
    body_bytes: int = Field(default=16 * 2**20, ge=1024, le=2**30)
    body_rows: int = Field(default=1_000_000, ge=1, le=2**24)  # of one request
    events_per_second: float = Field(default=1_000_000, gt=0)  # of one token, or of one address without a token
    requests_per_second: float = Field(default=2_000, gt=0)
    waiting_bytes: int = Field(default=256 * 2**20, ge=2**20)  # of all requests on their way to the disk
    spool_bytes: int = Field(default=8 * 2**30, ge=2**10)  # of events of one stream that wait for their tick
    survey_reports: int = Field(default=4_000_000, ge=1)  # of one horizon of a survey, all of which are in memory
    body_seconds: float = Field(default=30.0, gt=0)
    body_bytes_per_second: int = Field(default=1024, ge=0)  # a body that is slower than that for 5 s ends
    free_bytes: int = Field(default=64 * 2**20, ge=0)  # of the disk, which are left for the ticks
    answer_bytes: int = Field(default=32 * 2**20, ge=2**10)  # of releases in one answer, as JSON; then `next`
    live_clients: int = Field(default=5_000, ge=1)
    key_hours: float = Field(default=24.0, gt=0, le=24 * 366)  # how long an Idempotency-Key is remembered

    @model_validator(mode="after")
    def _room(self) -> ServiceLimits:
        if self.waiting_bytes < 3 * self.body_bytes:  # one caller has a third of it at most
            raise ValueError("waiting_bytes must be at least three times body_bytes")
        return self


class _Service(BaseModel):
    """The table [service]."""

    model_config = _STRICT

    title: str = Field(default="Live numbers", max_length=200)
    cors: tuple[str, ...] = ()
    ledger: str | None = Field(default=None, min_length=1)  # without, one in the folder of the service
    limits: ServiceLimits = Field(default_factory=ServiceLimits)

    @field_validator("cors")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError('cors must list origins, such as "https://www.example.org"')
        return value


class Configuration(_Service):
    """All of a file."""

    streams: dict[str, StreamDefinition]


def load(path: Path) -> Configuration:
    """The configuration in a TOML file; ParameterError says what is wrong with it."""
    return configuration(read_toml(path), path.parent)


def configuration(data: dict[str, Any], folder: Path = Path()) -> Configuration:
    """The configuration in what a TOML file holds; paths in it begin in `folder`."""
    unknown = set(data) - {"streams", "service"}
    if unknown:
        raise ParameterError(f"the file may have [streams.NAME] and [service], not {sorted(unknown)[0]!r}")
    tables = data.get("streams", {})
    if not isinstance(tables, dict) or not tables:
        raise ParameterError("the file defines no stream; add a table [streams.NAME]")
    service = _checked("service", _Service, data.get("service", {}))
    streams = {}
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            raise ParameterError(f"the name of a stream can have up to 64 of a-z, 0-9, - and _, not {name!r}")
        place = f"streams.{name}"
        if isinstance(table, dict):
            try:
                table, said = renamed(table)
            except ParameterError as error:
                raise ParameterError(f"{place}: {error}") from None
            for line in said:
                sentence = "{place}: {renamed}; the old word goes with the next version"
                tell(WARNING, "old word", sentence, place=place, renamed=line)
            if isinstance(table.get("lookup"), str) and "://" not in table["lookup"]:
                table = {**table, "lookup": str(folder / table["lookup"])}
        streams[name] = _checked(place, StreamDefinition, table)
    shared = {definition.account for definition in streams.values()}
    for name, definition in streams.items():
        if definition.account is None and name in shared:
            raise ParameterError(
                f"streams.{name}: another stream names the account {name!r}, which is this one's default; give it "
                f'account = "{name}", too, or another name'
            )
    told = dict(service)
    if service.ledger is not None and "://" not in service.ledger:
        told["ledger"] = str(folder / service.ledger)
    return Configuration(streams=streams, **told)


def _checked(where: str, model: Any, table: object) -> Any:
    try:
        return model.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in (where, *first["loc"]))
        if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            raise ParameterError(f"{place}: no such key; use one of {', '.join(model.model_fields)}") from None
        raise ParameterError(f"{place}: {first['msg'].removeprefix('Value error, ')}") from None


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What two definitions have differently, in words."""
    told = {name: ["not given" if each is None else json.dumps(each) for each in both]
            for name, both in differing_parameters(before, now).items()}  # fmt: skip
    return [f"{name} was {was} and is {shall}" for name, (was, shall) in sorted(told.items())]
