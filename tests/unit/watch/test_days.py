"""`watch --per 1d`: a run a day, each row in the run of its own day, whatever is killed in between."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import discreet as dc
from discreet.errors import WordError
from discreet.privacy.spans import Calendar
from discreet.questions.live_question import LiveQuestion
from discreet.watch.tasks import reader_of, task_of
from discreet.watch.ticks import Rule
from discreet.watch.timetable import Days, Timetable
from discreet.watch.watcher import Watcher, watching

BERLIN = "Europe/Berlin"
BUDGET = dc.Budget(1e4, 1e-6)
WORDS: dict[str, Any] = {"tick": "1h", "time": "ts", "per": "1d", "zone": BERLIN, "distinct": True, "user": "who"}


def at(text: str, zone: str = BERLIN) -> float:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


# ---- when ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        (BERLIN, "2026-03-29", 23),
        (BERLIN, "2026-10-25", 25),
        (BERLIN, "2026-11-17", 24),
        ("Asia/Kolkata", "2026-11-17", 24),  # midnight is at half past an hour of UTC
        ("Asia/Beirut", "2026-03-29", 23),  # there is no midnight: it begins at 1
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("Australia/Lord_Howe", "2026-10-04", 23.5),
    ],
)
def test_days_have_the_hours_that_they_have(zone: str, day: str, hours: float) -> None:
    days = Days(Calendar("1d", zone))
    noon = at(f"{day}T12:00:00", zone)
    assert days.name(noon) == day
    assert days.end(noon) - days.begin(noon) == hours * 3600
    assert days.name(days.begin(noon)) == day
    assert days.name(days.begin(noon) - 1) < day < days.name(days.end(noon))
    calendar = days.timetable(3600, days.begin(noon))
    span = calendar.of_time(noon)
    assert span.ticks == (hours + 0.5) // 1
    assert days.timetable(86400, days.begin(noon)).of_time(noon).ticks == 1
    assert calendar.starts(span.last + 1) == days.end(noon)


@pytest.mark.parametrize("seconds", [900, 3600, 7200, 43200, 86400])
def test_every_moment_of_a_year_is_in_one_tick(seconds: int) -> None:
    days = Days(Calendar("1d", BERLIN))
    begin = at("2026-01-01T05:30:00")
    calendar = days.timetable(seconds, begin)
    moments = [begin + 1799 * step for step in range(365 * 48)]
    import numpy as np

    numbers = calendar.numbers(np.array(moments)).tolist()
    assert numbers == [calendar.number(moment) for moment in moments]
    assert numbers[0] == 1
    for moment, tick in zip(moments, numbers, strict=True):
        assert calendar.starts(tick) <= moment < calendar.starts(tick + 1)
        span = calendar.of_tick(tick)
        assert span.first <= tick <= span.last
        assert days.name(calendar.starts(tick)) == days.name(span.begins) == days.name(moment)
    run, first, edges = calendar.since(numbers[9000])
    kept = Timetable(seconds, days.end, edges, first, run)
    assert [kept.number(moment) for moment in moments[9000:]] == numbers[9000:]
    assert kept.of_tick(numbers[9000]) == calendar.of_tick(numbers[9000])


# ---- a file that grows ------------------------------------------------------------------------------------------


def opened(file: Path, state: Path, ledger: dc.Ledger | None = None, **words: Any) -> Any:
    live = LiveQuestion(**{**WORDS, **words})
    reader = reader_of(live, str(file), None, None, lambda _: None)
    payer = None if ledger is None else ledger.account("readers")
    return watching(state, task_of(live, None), BUDGET, payer, reader, Rule.of(live))


def rows_of(start: str, hours: int, people: int = 3) -> list[tuple[float, str]]:
    """In every hour so many new people, and one who comes every hour."""
    begin = at(start)
    return [
        (begin + 3600 * hour + 60 * number, "always" if number == 0 else f"{hour}-{number}")
        for hour in range(hours)
        for number in range(people)
    ]


def written(file: Path, rows: list[tuple[float, str]]) -> None:
    file.write_text("ts,who\n" + "".join(f"{time},{who}\n" for time, who in rows))


def expected(rows: list[tuple[float, str]]) -> dict[str, int]:
    """People by day."""
    days = Days(Calendar("1d", BERLIN))
    found = {(days.name(time), who) for time, who in rows}
    return dict(Counter(day for day, _ in found))


def test_a_run_a_day(tmp_path: Path) -> None:
    rows = rows_of("2026-10-23T20:00:00", 4 + 24 + 25 + 24 + 3)
    written(tmp_path / "rows.csv", rows)
    with opened(tmp_path / "rows.csv", tmp_path / "state") as watcher:
        out = list(watcher.releases(once=True))
    days = {day: list(found) for day, found in itertools.groupby(out, key=lambda release: release["period"])}
    assert {day: len(found) for day, found in days.items()} == {
        "2026-10-23": 4, "2026-10-24": 24, "2026-10-25": 25, "2026-10-26": 24, "2026-10-27": 2,
    }  # fmt: skip
    assert out[0]["start"] == "2026-10-23T18:00:00+00:00"
    truth = expected(rows)
    for day, found in days.items():
        assert [release["tick"] for release in found] == list(range(1, len(found) + 1))
        assert [release["final"] for release in found] == [False] * (len(found) - 1) + [day != "2026-10-27"]
        if found[-1]["final"]:
            assert abs(found[-1]["people"] - truth[day]) <= 2
            assert found[-1]["parameters"]["horizon"] == len(found)


def test_a_row_of_a_day_that_is_over_is_left_out(tmp_path: Path) -> None:
    rows = rows_of("2026-11-16T22:00:00", 6)
    rows[10:10] = [(at("2026-11-16T23:59:00"), f"late {number}") for number in range(30)]  # among those of 1 o'clock
    rows[14:14] = [(at("2026-11-17T00:10:00"), f"slow {number}") for number in range(30)]  # of this day: counted
    written(tmp_path / "rows.csv", rows)
    with opened(tmp_path / "rows.csv", tmp_path / "state") as watcher:
        out = list(watcher.releases(once=True))
        assert watcher.left_out == {"times before the open span of 1d": 30}
    assert out[1]["final"]
    assert abs(out[1]["people"] - 5) <= 2
    assert abs(out[-1]["people"] - (1 + 2 * 3 + 30)) <= 2


class Killed(BaseException):
    pass


@pytest.mark.parametrize("late", ["0s", "30m", "3h"])
def test_killed_at_every_place_and_started_again(tmp_path: Path, late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write of the state, each charge and each step in the ledger, before and after: ticks are drawn once."""
    rows = rows_of("2026-10-24T21:00:00", 3 + 25 + 4)
    written(tmp_path / "rows.csv", rows)
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("readers", dc.Budget(1e6, 1e-2), **GRANT)
    account = type(ledger.account("readers"))
    places = [(Watcher, "save"), (account, "pay"), (account, "store"), (account, "store_step")]
    seen: dict[tuple[str, int], int] = {}
    kills = 0
    turns = itertools.cycle((kind, name, after) for kind, name in places for after in (False, True))

    def watch() -> None:
        with opened(tmp_path / "rows.csv", tmp_path / "state", ledger, late=late) as watcher:
            for release in watcher.releases(once=True):
                key = release["period"], release["tick"]
                assert seen.setdefault(key, release["people"]) == release["people"]  # drawn once

    for number, (kind, name, after) in enumerate(turns):
        calls = itertools.count()
        plain = getattr(kind, name)

        calls_before = number % 3 if name in ("save", "store_step") else 0

        def dies(*given: Any, how: Any = (plain, after, calls_before, calls), **more: Any) -> Any:
            plain, after, before, calls = how
            last = next(calls) == before
            if last and not after:
                raise Killed
            made = plain(*given, **more)
            if last:
                raise Killed
            return made

        with monkeypatch.context() as patch:
            patch.setattr(kind, name, dies)
            try:
                watch()
                break
            except Killed:
                kills += 1
    assert kills > 10
    truth = expected(rows)
    assert [tick for day, tick in seen if day == "2026-10-25"] == list(range(1, 26))
    assert abs(seen["2026-10-24", 3] - truth["2026-10-24"]) <= 2
    assert abs(seen["2026-10-25", 25] - truth["2026-10-25"]) <= 2
    charges = [event for event in ledger.account("readers").history() if event.kind == "charge"]
    steps = [event for event in ledger.account("readers").history() if event.kind == "step"]
    assert len(charges) == len({day for day, _ in seen})
    assert len(steps) == len(seen)


GRANT: dict[str, Any] = {"unit": dc.User(per="1d", zone=BERLIN)}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"time": None}, "per needs time"),
        ({"per": None}, "zone needs per"),
        ({"horizon": 30}, "horizon cannot be combined with per"),
    ],
)
def test_what_does_not_go_together(words: dict[str, Any], why: str) -> None:
    with pytest.raises(WordError, match=why):
        LiveQuestion(**{**WORDS, **words})


def test_a_tick_is_a_part_of_its_day() -> None:
    with pytest.raises(dc.ParameterError, match="longer than 1d"):
        Rule.of(LiveQuestion(**{**WORDS, "tick": "2d"}))
