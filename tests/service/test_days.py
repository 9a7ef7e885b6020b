"""Streams that begin anew every day: whatever the clock does, a day is one run, charged once, and drawn once."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.service.conftest import Running, all_releases, catch_up

import discreet as dc
from discreet.errors import ParameterError
from discreet.privacy.spans import Calendar
from discreet.service.definitions import configuration
from discreet.watch.timetable import Days

BERLIN = "Europe/Berlin"
DAY = {"tick": "1h", "per": "1d", "zone": BERLIN, "epsilon": 1e4, "delta": 1e-6, "public": True}
PEOPLE = {"kind": "distinct", "user": "visitor", **DAY}
STREAMS: dict[str, Any] = {
    "people": PEOPLE,
    "pages": {"kind": "top", "column": "page", "user": "visitor", "max_items": 3, "k": 5, **DAY},
    "views": {"kind": "count", **DAY},
}


def at(text: str, zone: str = BERLIN) -> float:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def started(folder: Path, when: str, streams: dict[str, Any] = STREAMS, **service: Any) -> Running:
    running = Running(folder, streams, **service)
    running.clock.now = at(when)
    return running.start()


def visit(running: Running, *visitors: str, **more: Any) -> None:
    rows = [{"visitor": visitor, "page": "/", **more} for visitor in visitors]
    for name in running.configuration.streams:
        assert running.send(name, rows).status_code == 202


def go_to(running: Running, when: str | float) -> None:
    running.clock.now = at(when) if isinstance(when, str) else when
    catch_up(running.service)


def published(running: Running, name: str = "people") -> list[dict[str, Any]]:
    return all_releases(running.service.store, name)


def by_day(running: Running, name: str = "people") -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for release in published(running, name):
        found.setdefault(release["period"], []).append(release)
    return found


def charges(running: Running, name: str = "people") -> list[str]:
    ledger = dc.Ledger(running.configuration.ledger or running.folder / "ledger.sqlite")
    return [str(event.charge_id) for event in ledger.account(name).history() if event.kind == "charge"]


def check_all_is_there_once(running: Running) -> None:
    """Ticks without a gap, each in the ledger once; days with all their ticks but the first and the last."""
    ledger = dc.Ledger(running.configuration.ledger or running.folder / "ledger.sqlite")
    for name, stream in running.service.streams.items():
        assert [release["tick"] for release in published(running, name)] == list(range(1, stream.tick + 1))
        days = by_day(running, name)
        for number, (period, releases) in enumerate(days.items(), 1):
            span = stream.timetable.run(number)
            assert releases[0]["tick"] == span.first
            assert [release["final"] for release in releases[:-1]] == [False] * (len(releases) - 1)
            assert releases[-1]["final"] == (releases[-1]["tick"] == span.last)
            last = ledger.account(name).last_step(stream.charge_id(number))
            assert last is not None
            assert (last.number, period) == (len(releases), stream.period_of(number))
        open_run = 1 if stream.tick == stream.span.first - 1 else 0  # charged, and nothing drawn yet
        assert len(charges(running, name)) == len(days) + open_run


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = started(tmp_path / "data", "2026-11-16T21:30:00")
    yield made
    made.stop()


def test_a_day_ends_and_the_next_begins_with_nothing(running: Running) -> None:
    visit(running, *map(str, range(40)))
    go_to(running, "2026-11-16T22:30:00")
    assert abs(running.latest("people")["value"] - 40) <= 2
    visit(running, *map(str, range(100)))
    go_to(running, "2026-11-17T00:00:00")
    last = running.latest("people")
    assert (last["period"], last["final"], last["tick"]) == ("2026-11-16", True, 3)
    assert last["ends"] == "2026-11-16T23:00:00Z"
    assert abs(last["value"] - 100) <= 2
    visit(running, *map(str, range(30)))
    go_to(running, "2026-11-17T01:00:00")
    for name in STREAMS:
        first = running.latest(name)
        assert (first["period"], first["final"], first["run"]) == ("2026-11-17", False, 2)
    assert abs(running.latest("people")["value"] - 30) <= 2  # who came yesterday counts again
    assert abs(running.latest("pages")["items"][0]["count"] - 30) <= 5
    assert abs(running.latest("views")["value"] - 30) <= 2
    shown = running.client.get("/v1/streams/people").json()
    assert (shown["unit"], shown["per"], shown["zone"], shown["state"]) == ("person-day", "1d", BERLIN, "running")
    assert shown["run_ticks"] == 24
    assert "what one person did" in shown["guarantee"]["unit"]["description"]
    check_all_is_there_once(running)


@pytest.mark.parametrize(("day", "ticks"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-11-17", 24)])
def test_a_day_has_the_ticks_that_it_has(tmp_path: Path, day: str, ticks: int) -> None:
    before = (datetime.date.fromisoformat(day) - datetime.timedelta(days=1)).isoformat()
    running = started(tmp_path / "data", f"{before}T22:00:00", {"people": PEOPLE})
    for hour in range(2 + 26):
        running.clock.now += 3600 if hour else 0
        catch_up(running.service)
        visit(running, str(hour))
    found = by_day(running)
    assert (len(found[before]), len(found[day])) == (2, ticks)
    assert found[day][-1]["final"]
    assert abs(found[day][-1]["value"] - ticks) <= 2  # one more in every hour of it
    stream = running.service.streams["people"]
    assert stream.timetable.run(2).ticks == ticks
    check_all_is_there_once(running)
    running.stop()


def test_killed_across_midnight(tmp_path: Path, ledger_path: Any) -> None:
    """At each point of the order of a tick and of the new run: what came is counted in its day, once."""
    from discreet.service.store import Store

    streams = {"people": PEOPLE, "views": STREAMS["views"]}
    running = started(tmp_path / "data", "2026-11-16T22:10:00", streams, ledger=str(ledger_path))
    visit(running, *map(str, range(50)))

    class Killed(BaseException):
        pass

    kills = 0
    places = [(Store, "publish"), (Store, "next_run")]
    for when in ("2026-11-16T23:00:01", "2026-11-17T00:00:01", "2026-11-17T01:00:01"):
        for kind, name in places:
            for after in (False, True):
                plain = getattr(kind, name)

                def then_dies(*given: Any, plain: Any = plain, after: bool = after, **more: Any) -> Any:
                    if after:
                        plain(*given, **more)
                    raise Killed

                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(kind, name, then_dies)
                    running.clock.now = at(when)
                    try:
                        catch_up(running.service)
                    except Killed:
                        kills += 1
                        running.again()
        go_to(running, when)
        visit(running, when)
    assert kills >= 8
    found = by_day(running)
    assert abs(found["2026-11-16"][-1]["value"] - 51) <= 2
    assert abs(found["2026-11-17"][0]["value"] - 1) <= 2
    check_all_is_there_once(running)
    running.stop()


def test_a_machine_that_slept_for_two_days(running: Running) -> None:
    visit(running, *map(str, range(40)))
    go_to(running, "2026-11-19T09:30:00")
    days = by_day(running)
    assert {period: len(found) for period, found in days.items()} == {
        "2026-11-16": 3, "2026-11-17": 24, "2026-11-18": 24, "2026-11-19": 9,
    }  # fmt: skip
    assert abs(days["2026-11-16"][-1]["value"] - 40) <= 2
    assert all(release["missed"] for release in days["2026-11-18"])
    check_all_is_there_once(running)


def test_stopped_for_two_days(running: Running) -> None:
    visit(running, *map(str, range(40)))
    running.stop()
    running.clock.now = at("2026-11-18T23:59:59")
    running.start()
    catch_up(running.service)
    visit(running, "somebody")
    go_to(running, "2026-11-19T00:00:00")
    days = by_day(running)
    assert abs(days["2026-11-16"][-1]["value"] - 40) <= 2
    assert abs(days["2026-11-18"][-1]["value"] - 1) <= 2
    assert list(running.folder.joinpath("streams/people").glob("*.state")) == [
        running.folder / "streams/people/4-51.state"  # who was there yesterday is forgotten
    ]
    check_all_is_there_once(running)


def test_a_zone_whose_rules_change_moves_later_days_alone(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    go_to(running, "2026-11-17T08:00:00")
    plain = Days.end
    monkeypatch.setattr(Days, "end", lambda self, time: plain(self, time) + 3600)
    running.again()
    go_to(running, "2026-11-18T00:00:00")
    assert running.latest("people")["final"]
    assert running.latest("people")["tick"] == 3 + 24
    check_all_is_there_once(running)


# ---- times of events ------------------------------------------------------------------------------------------

TIMED = {"people": {**PEOPLE, "time": "ts", "late": "10m"}, "views": {**STREAMS["views"], "time": "ts", "late": "10m"}}


def test_an_event_is_of_the_day_of_its_time(tmp_path: Path) -> None:
    running = started(tmp_path / "data", "2026-11-16T22:30:00", TIMED)
    visit(running, *map(str, range(40)), ts="2026-11-16T05:00:00+01:00")  # earlier that day
    visit(running, *map(str, range(100, 200)), ts="2026-11-15T23:59:59+01:00")  # of a day that is over
    visit(running, *map(str, range(200, 300)), ts="no time")
    go_to(running, "2026-11-17T00:05:00")
    assert running.latest("people")["tick"] == 1  # the last one is not out: it waits
    visit(running, *map(str, range(50, 60)), ts=str(int(at("2026-11-16T23:59:59"))))
    visit(running, *map(str, range(30)), ts="2026-11-17T00:01:00+01:00")
    running.again()
    go_to(running, "2026-11-17T00:10:00")
    for name in TIMED:
        last = running.latest(name)
        assert (last["period"], last["final"]) == ("2026-11-16", True)
        assert abs(last["value"] - 50) <= 2
    running.again()
    visit(running, *map(str, range(60, 70)), ts="2026-11-16T23:59:59+01:00")  # too late
    go_to(running, "2026-11-17T01:10:00")
    for name in TIMED:
        assert abs(running.latest(name)["value"] - 30) <= 2
    check_all_is_there_once(running)
    running.stop()


def test_a_row_is_in_the_run_of_its_own_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever rows come: each is counted by the run of the day of its time, or by none. The broken twin is noticed."""
    import pyarrow as pa

    from discreet.service.runs import Curated

    chance = random.Random(30)
    start = at("2026-10-24T20:00:00")
    times = [start + chance.uniform(0, 60 * 3600) for _ in range(400)]
    sent = [(time, time + chance.choice([-4000, 0, 30, 500, 5000, 90000])) for time in times]
    day_of = Days(Calendar("1d", BERLIN)).name

    def counted(folder: Path) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        plain = Curated.take

        def take(self: Curated, values: pa.RecordBatch | None, events: int) -> None:
            users = [] if values is None else values.column("item").to_pylist()
            found.extend((self.mechanism._period, day_of(float(user))) for user in users)
            plain(self, values, events)

        with monkeypatch.context() as patch:
            patch.setattr(Curated, "take", take)
            running = started(folder, "2026-10-24T20:00:00", {"people": TIMED["people"]})
            for time, arrives in sorted(sent, key=lambda pair: pair[1]):
                go_to(running, max(running.clock.now, arrives))
                running.send("people", [{"visitor": repr(time), "ts": repr(time)}])
            go_to(running, running.clock.now + 2 * 86400)
            running.stop()
        return found

    found = counted(tmp_path / "data")
    assert all(run == day for run, day in found)
    assert {day for _, day in found} == {"2026-10-24", "2026-10-25", "2026-10-26", "2026-10-27"}
    assert len(found) > 250
    with monkeypatch.context() as twin:
        twin.setattr(Curated, "_of_span", lambda self, batch: batch.select(["user"]))
        assert any(run != day for run, day in counted(tmp_path / "twin"))


def test_a_year_of_days_under_one_account(tmp_path: Path) -> None:
    """Two streams about the same people and a nightly job: every day has the whole grant, for a year and more."""
    unit = dc.User(per="1d", zone=BERLIN)
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("readers", dc.Budget(4.0, 1e-6), unit=unit)
    shared = {"tick": "1d", "time": "ts", "account": "readers", "epsilon": 1.5, "delta": 1e-7}
    streams = {"people": {**PEOPLE, **shared}, "pages": {**STREAMS["pages"], **shared}}
    running = started(tmp_path / "data", "2026-01-01T00:00:00", streams, ledger=str(tmp_path / "budgets.sqlite"))
    day = datetime.date(2026, 1, 1)
    for number in range(370):
        if number % 90 == 45:
            running.again()
        ledger.account("readers").charge(dc.Budget(1.0, 1e-7), f"nightly {day}", unit=unit, period=day.isoformat())
        day += datetime.timedelta(days=1)
        go_to(running, f"{day}T00:00:00")
    for name in streams:
        found = published(running, name)
        assert [release["period"] for release in found] == [
            (datetime.date(2026, 1, 1) + datetime.timedelta(days=number)).isoformat() for number in range(370)
        ]
        assert all(release["final"] for release in found)
    shown = running.client.get("/v1/streams/people").json()["budget"]["account"]
    assert shown["granted"]["epsilon"] == pytest.approx(4.0)
    assert shown["spent"]["epsilon"] == pytest.approx(4.0)  # about the day that has most
    with pytest.raises(dc.BudgetExceededError, match="about 2026-06-01"):
        ledger.account("readers").charge(dc.Budget(1.0, 1e-7), "late", unit=unit, period="2026-06-01")
    running.stop()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"horizon": "30d"}, 'give a horizon, such as "30d", or per = "1d" to start again every day'),
        ({"per": None, "zone": None}, 'give a horizon, such as "30d", or per = "1d" to start again every day'),
        ({"per": "1y"}, "per must be a whole number with"),
        ({"zone": "Mars/Base"}, "no time zone named"),
        ({"tick": "2d"}, "longer than 1d"),
        ({"late": "5m"}, "late needs time"),
        ({"time": "ts", "late": "3d"}, "late must be shorter than 1d"),
        ({"account": "readers"}, "account with per needs time"),
        ({"trust": "pan", "delta": 0.0}, "streams of a curator"),
        ({"following": [{"epsilon": 1.0}]}, "without following"),
        ({"unit": "person"}, 'for unit = "person" give user, and no per'),
    ],
)
def test_definitions_that_cannot_be(change: dict[str, Any], why: str) -> None:
    table = {key: value for key, value in {**PEOPLE, **change}.items() if value is not None}
    with pytest.raises(ParameterError, match=why):
        configuration({"streams": {"people": table}})


def test_increases_of_a_day_have_the_noise_of_a_day_of_its_length(tmp_path: Path) -> None:
    """Days of 24 and of 23 hours have noise of their own: a service says the same whichever it was asked for first."""
    from discreet.service import increases

    views = {"views": {**STREAMS["views"], "epsilon": 0.01}}
    running = started(tmp_path / "data", "2026-03-27T22:00:00", views)
    for _ in range(2 + 24 + 23):
        go_to(running, running.clock.now + 3600)
    days = by_day(running, "views")
    assert [len(days[day]) for day in ("2026-03-28", "2026-03-29")] == [24, 23]

    def told(day: str) -> Any:
        last = days[day][-1]["tick"]
        asked = {"from": last, "to": last, "over": 20}
        answer = running.client.get("/v1/streams/views/increases", params=asked)
        assert answer.status_code == 200, answer.text
        (found,) = answer.json()["increases"]
        return found

    increases._made.clear()  # as after a restart
    long, short = told("2026-03-28"), told("2026-03-29")
    assert long["upper"] - long["lower"] != short["upper"] - short["lower"]
    increases._made.clear()
    assert (told("2026-03-29"), told("2026-03-28")) == (short, long)
    running.stop()
