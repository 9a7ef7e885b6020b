"""Cases of `discreet.watch`: which tick a row is in, what is kept of it, what is published, over many restarts."""

import contextlib
import datetime
import itertools
import json
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from tests.golden.answers.pin import each, told, tried
from tests.golden.commands.tables import Numbers
from tests.recorded import state as decoded

import discreet as dc
from discreet.events.live_input import LiveBatch
from discreet.privacy.spans import Calendar
from discreet.questions.live_question import LiveQuestion
from discreet.storage import locked, open_state
from discreet.watch.tasks import reader_of, task_of
from discreet.watch.ticks import Add, Rule, Ticker, duration, ticks_in
from discreet.watch.timetable import Days, Timetable, moment
from discreet.watch.watcher import read_state, watching

HOUR, DAY = 3600.0, 86400.0
BEGIN = 1_767_225_600.0  # 2026-01-01T00:00:00Z
BUDGET = dc.Budget(2.0, 1e-6)


def at(text, zone="UTC"):
    return datetime.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def calendar(span, zone, seconds, time):
    """Spans, and the ticks of moments at their edges and between."""

    def ask():
        days = Days(Calendar(span, zone))
        table = days.timetable(seconds, at(time, zone or "UTC"))
        spans = [table.run(number) for number in (1, 2, 3)]
        edges = [spans[0].begins - 1.5 * seconds, *(s.begins for s in spans), *(s.begins - 1e-3 for s in spans)]
        edges += [spans[2].ends - 1, spans[1].starts(spans[1].last), spans[1].begins + 2.5 * seconds]
        kept = table.since(spans[1].last)
        again = Timetable(seconds, days.end, kept[2], kept[1], kept[0])
        return {
            "spans": spans,
            "last": [s.last for s in spans],
            "names": [days.name(edge) for edge in edges],
            "ticks": [table.number(edge) for edge in edges],
            "at once": table.numbers(np.array(edges)),
            "none": table.numbers(np.array([])),
            "starts": [table.starts(tick) for tick in (0, 1, spans[0].last, spans[1].first, spans[2].last + 1)],
            "runs": [table.of_tick(tick).number for tick in (0, 1, spans[1].first - 1, spans[1].first)],
            "of times": [table.of_time(edge).number for edge in edges],
            "since": kept,
            "again": [again.number(edge) for edge in edges[1:]],
            "run again": again.run(kept[0] + 1),
            "usual": days.usual_ticks(seconds),
        }

    return ask


def rows_by_chance(seed, number=40, spread=1.5 * HOUR, far=8):
    """Rows (time, item) in rough order, a few of them hours ahead or long ago."""
    chance = Numbers(seed)
    for row in range(number):
        time = BEGIN + row * 0.2 * HOUR + (chance.below(1000) / 1000 - 0.5) * spread
        odd = chance.below(far)
        yield time + (0.0 if odd > 1 else (40 * HOUR, -30 * HOUR)[odd]), f"{row}"


def batch(rows, first, keep_blank=False):
    ends = 10 * np.arange(first + 1, first + len(rows) + 1, dtype=np.int64)
    items = pa.array([item for _, item in rows], pa.large_string())
    there = np.array([int(item) % 5 > 0 for _, item in rows]) if keep_blank else None
    times = np.array([time for time, _ in rows], np.float64)
    return LiveBatch(pa.record_batch([items], ["item"]), times, ends - 10, ends, there)


def ticker(seed, restart_every=0, size=7, lag=0.5 * HOUR, blank=False, finish=True, **words):
    """All that a ticker hands out and keeps, of rows that come a few at a time."""

    def ask(folder):
        rule = Rule.of(LiveQuestion(**words))
        rows, at_row, moves = list(rows_by_chance(seed)), 0, itertools.count(1)
        made, log = Ticker(rule, folder), []
        tick_length = rule.seconds or HOUR
        log.append({"begun": made.begin(BEGIN + 0.3 * HOUR), "saved": dict(made.saved)})

        def note(steps):
            for step in steps:
                if isinstance(step, Add):
                    log.append([step.events, None if step.values is None else step.values.column(0).to_pylist()])
                else:
                    log.append({"end": [step.start, step.end], **made.saved, "open": tried(lambda: made.open_tick)})

        while at_row < len(rows):
            until = min(len(rows), at_row + size)
            clock = BEGIN + until * 0.2 * HOUR + lag
            note(made.take(batch(rows[at_row:until], at_row, blank), clock))
            note(made.due(clock))
            at_row = until
            if restart_every and made.position and next(moves) % restart_every == 0:
                kept = json.loads(json.dumps(told(made.saved)))
                log.append({"restart": kept, "left out": dict(sorted(made.left_out.items()))})
                made.close()
                made = Ticker(
                    rule, folder, kept["now"], kept["position"], kept["read"], kept["then"], kept.get("timetable")
                )
                at_row = kept["position"] // 10
                if next(moves) > 40:
                    break
        if finish:
            note(made.finish(BEGIN + len(rows) * 0.2 * HOUR + tick_length))
        made.close()
        return {"log": log, "left out": dict(sorted(made.left_out.items())), "read": made.read}

    return ask


CSV = "when,item,who,n\n"
LIVE = {"rows": 12, "column": "item"}
TIMED = {"tick": "1h", "time": "when"}


def lines(seed, number=60, step=600):
    """Rows of a file: blank items, blank people, a time that is none, one far ahead, a line cut short, a quoted one."""
    chance = Numbers(seed)
    for row in range(number):
        time = BEGIN + row * step
        item, who = f"i{chance.skewed(6)}", f"p{chance.skewed(9)}"
        if row % 13 == 5:
            item = ""
        if row % 17 == 6:
            who = " "
        if row % 23 == 9:
            time = "soon"
        if row % 29 == 11:
            time = BEGIN + 1e7
        if row % 19 == 8:
            item = f'"{item}, quoted"'
        yield f"{time},{item},{who}\n" if row % 31 == 12 else f"{time},{item},{who},{row}\n"


def watch(horizon=6, parts=(20, 21, 60), ledger=False, restored=False, fails=(), unit=None, **words):
    """A file that grows, and a process that begins again at each of its lengths: releases, and what the state says."""

    def ask(folder):
        live = LiveQuestion(**words)
        rule, file, state = Rule.of(live), folder / "rows.csv", folder / "state"
        out, remarks = [], []
        payer = None
        if ledger:
            book = dc.Ledger(folder / "ledger.sqlite")
            book.grant("a", dc.Budget(8.0, 1e-4), unit=unit or (dc.User() if live.user else dc.Event()))
            payer = book.account("a")
        rows = list(lines(3, max(parts)))
        for number, until in enumerate(parts):
            file.write_text(CSV + "".join(rows[:until]))
            reader = reader_of(live, str(file), None, None, remarks.append)
            task = task_of(live, None if live.per else horizon)
            how = {"restored": restored and number == 1}
            with watching(state, task, BUDGET, payer, reader, rule, **how) as watcher:
                releases = []
                for release in watcher.releases(once=True):
                    releases.append(release)
                    if len(releases) in fails and number == 0:
                        break
                out.append(
                    {
                        "releases": [without(release, number > 0) for release in releases],
                        "left out": watcher.left_out,
                        "over": watcher.is_over,
                        "resumed": watcher.resumed,
                        "span": watcher.span,
                    }
                )
            with locked(state) as kept:
                header, payload = read_state(kept)
                envelope = open_state(kept.read(), 150, 2)[0]
            header["published"] = None if header["published"] is None else header["published"]["tick"]
            for saved in (header.get("input") or {}).get("files") or ():
                saved.update({key: "(left out)" for key in saved if key not in ("begins", "size", "position")})
            mechanism = decoded(payload)
            (mechanism["header"].get("steps") or {}).pop("ledger", None)  # which file it is
            out[-1]["state"] = {**header, "mechanism": mechanism, "envelope": envelope}
        if ledger:
            told_of = book.account("a").statement()
            out.append({"charges": told_of.charges, "spent": str(told_of.spent)})
        return {"out": out, "remarks": remarks}

    def without(release, short):
        release = {key: release[key] for key in release if key != "version"}
        if short:
            release["guarantee"] = "(as above)"
        return json.loads(json.dumps(release, default=told))

    return ask


def others(changed, **more):
    """What a state says to a watch with other settings."""

    def ask(folder):
        (folder / "rows.csv").write_text(CSV + "".join(lines(3)))
        said = []
        for words in ({**LIVE, **more}, {**LIVE, **more, **changed}):
            live = LiveQuestion(**words)
            reader = reader_of(live, str(folder / "rows.csv"), None, None, said.append)
            opened = watching(folder / "state", task_of(live, 6), BUDGET, None, reader, Rule.of(live))
            said.append(tried(lambda opened=opened: len(list(opened.__enter__().releases(True)))))
            with contextlib.suppress(Exception):
                opened.__exit__(None, None, None)
        return said

    return ask


def a_state_in_use(folder):
    with locked(folder / "state"), locked(folder / "state", wait_seconds=0.01):
        pass


def no_state(folder):
    said = []
    for data in (b"", b"no state", b"DSCREET1", b"DSCREET1" + bytes(60)):
        (folder / "state").write_bytes(data)
        with locked(folder / "state") as kept:
            said.append(tried(read_state, kept))
    return said


UNITS = (dc.Event(), dc.User())
RULES = {
    "rows": {"rows": 3},
    "clock": {"tick": "1m"},
    "column": {"tick": "1h", "time": "t"},
    "column from a start": {"tick": "1h", "time": "t", "start": "2026-01-01"},
    "late": {"tick": "1h", "time": "t", "late": "90s"},
    "late from a start": {"tick": "1h", "time": "t", "late": "90s", "start": "1767225600"},
    "column by the clock": {"tick": "1h", "time": "t", "by_clock": True, "late": "1m", "ahead": "0s"},
    "days": {"tick": "1h", "time": "t", "per": "1d", "zone": "Europe/Berlin"},
}


def rule(words):
    made = Rule.of(LiveQuestion(**words))
    return {"rule": made, "assumes": [made.assumption(unit) for unit in UNITS]}


TASKS = {
    "top": {},
    "top of a window": {"window": 3},
    "capacity": {"capacity": 9, "increase": 2},
    "memory": {"memory": "1MB"},
    "total": {"total": True, "increase": 10_000},
    "distinct": {"distinct": True, "user": "u"},
    "distinct of a window": {"distinct": True, "user": "u", "window": 2, "max_visits": 3},
    "people": {"user": "u"},
    "people of few items": {"user": "u", "max_items": 2, "mechanism": "tree"},
    "universe": {"universe": ("a", "b")},
    "universe of sets": {"universe": ("a", "b", "c"), "sets": True},
    "chosen": {"universe": ("a", "b", "c"), "sets": True, "mechanism": "meta", "k": 2},
    "sparse": {"universe": ("a", "b", "c"), "mechanism": "sparse", "k": 2, "horizon": 5, "switches": 2},
    "sets": {"sets": True, "max_items": 4},
    "people of a window": {"user": "u", "window": 2, "max_visits": 3, "universe": ("a", "b")},
}


def task(words):
    made = task_of(LiveQuestion(rows=3, **words), 5)
    mechanism = made.new(BUDGET, None)
    return {
        "task": made,
        "settings": made.settings,
        "left open": made.left_open,
        "number": made.number,
        "needs items": made.needs_items,
        "mechanism": repr(mechanism),
        "guarantee": mechanism.guarantee.to_dict(),
        "error": tried(lambda: mechanism.error(3)),
    }


CASES = {
    # when
    "moments": lambda: [moment(t) for t in (0.0, 0.5, BEGIN, BEGIN + 0.25, -1.0, 253402300799.0)],
    "days of an hour": calendar("1d", "Europe/Berlin", HOUR, "2026-03-27T20:30:00"),
    "days in autumn": calendar("1d", "Europe/Berlin", 2 * HOUR, "2026-10-24T00:00:00"),
    "half a day": calendar("1d", "Europe/Berlin", DAY / 2, "2026-03-28T11:00:00"),
    "whole days": calendar("1d", "Europe/Berlin", DAY, "2026-10-24T11:00:00"),
    "weeks": calendar("1w", None, DAY, "2026-11-18T11:00:00"),
    "months": calendar("1mo", "Asia/Kolkata", DAY, "2026-01-30T11:00:00"),
    "hours": calendar("1h", None, 900.0, "2026-01-30T11:20:00"),
    "two days of seven hours": calendar("2d", None, 7 * HOUR, "2026-01-30T11:20:00"),
    "half an hour of Lord Howe": calendar("1d", "Australia/Lord_Howe", HOUR, "2026-04-04T11:00:00"),
    "usual ticks": lambda: {
        span: each(Days(Calendar(span)).usual_ticks, 1.0, HOUR, 5000.0, DAY, DAY + 1, 7 * DAY, 7 * DAY + 1, 31 * DAY)
        for span in ("1h", "1d", "2d", "1w", "1mo")
    },
    "one span for ever": lambda: [
        Timetable(HOUR, lambda _: float("inf"), [0.0], 0).of_time(BEGIN),
        Timetable(HOUR, lambda _: float("inf"), [0.0], 0).number(-1.0),
        Timetable(HOUR, lambda _: float("inf"), [0.0], 0).numbers(np.array([-1.0, 0.0, 3599.9, 3600.0, BEGIN])),
    ],
    # rules
    "durations": lambda: each(
        lambda text: duration("late", text), "1s", "2m", "3h", "4d", "5w", "999999999s", "1000000000s", "0s", "1.5h", 9
    ),
    "durations of nothing": lambda: each(lambda text: duration("late", text, 0), "0s", "00m", "-1s", "x", None),
    "horizons": lambda: each(lambda given: ticks_in(given, HOUR), 7, "7", "07", "1h", "1d", "90m", "x", True, 2.0, "٣"),
    "horizons of rows": lambda: each(lambda given: ticks_in(given, None), 7, "7", "1h", None),
    "limits of lateness": lambda: each(
        lambda late: Rule.of(LiveQuestion(tick="1m", time="t", late=late)).late, "0s", "1000m", "1001m", "60001s", "1d"
    ),
    "starts": lambda: each(
        lambda start: Rule.of(LiveQuestion(tick="1m", time="t", start=start)).start,
        "2026-01-01",
        "0",
        "-1.5",
        "soon",
        "2026-01-01T01:02:03+02:00",
        "1e3",
        "",
    ),
    "ticks of a span": lambda: each(
        lambda tick: rule({"tick": tick, "time": "t", "per": "1d"})["rule"].seconds, "1s", "1d", "25h", "2d"
    ),
    **{f"rule of {name}": lambda words=words: rule(words) for name, words in RULES.items()},
    **{f"task of {name}": lambda words=words: task(words) for name, words in TASKS.items()},
    "limits of increases": lambda: each(
        lambda over: task_of(LiveQuestion(rows=3, total=True, increase=over), 5).remember, 1, 10_000, 10_001
    ),
    # tickers
    "ticks of rows": ticker(1, rows=9),
    "ticks of rows, blank ones, begun again": ticker(2, restart_every=2, blank=True, rows=9),
    "ticks of rows, one at a time": ticker(2, size=1, rows=3),
    "ticks of the clock": ticker(3, tick="30m", size=3),
    "ticks of the clock, begun again": ticker(3, restart_every=3, tick="1h", size=3),
    "ticks of a column": ticker(4, **TIMED),
    "ticks of a column, two at a time": ticker(4, size=2, **TIMED),
    "ticks of a column, one at a time": ticker(4, size=1, **TIMED),
    "ticks of a column, one row": ticker(4, size=40, late="30m", **TIMED),
    "ticks of a column, begun again": ticker(5, restart_every=2, late="2h", **TIMED),
    "ticks from a start": ticker(6, restart_every=3, start=str(BEGIN), late="10m", ahead="1h", **TIMED),
    "ticks from a start that ends early": ticker(6, start=str(BEGIN + HOUR), ahead="0s", finish=False, **TIMED),
    "ticks of a column by the clock": ticker(7, by_clock=True, late="1h", **TIMED),
    "ticks of a column by the clock, begun again": ticker(7, restart_every=2, by_clock=True, late="20m", **TIMED),
    "ticks of days": ticker(8, per="1d", zone="America/New_York", late="1h", **TIMED),
    "ticks of days, begun again": ticker(8, restart_every=2, per="1d", zone="America/New_York", late="1h", **TIMED),
    "ticks of hours": ticker(9, per="2h", tick="30m", time="when", late="10m"),
    "ticks of days by the clock": ticker(9, per="1d", zone="Asia/Kolkata", by_clock=True, late="3h", **TIMED),
    # watches
    "top": watch(**LIVE),
    "top, paid": watch(ledger=True, k=3, **LIVE),
    "top of a window": watch(window=2, increase=1, **LIVE),
    "total": watch(total=True, rows=9, increase=2),
    "total for ever": watch(horizon=None, total=True, rows=9, parts=(30, 60)),
    "people": watch(user="who", max_items=2, increase=1, **LIVE),
    "distinct": watch(rows=9, distinct=True, user="who", ledger=True, increase=1),
    "universe": watch(universe=("i0", "i1", "i2"), increase=3, parts=(30, 60), **LIVE),
    "an hour a tick": watch(late="10m", column="item", parts=(20, 45, 60), **TIMED),
    "an hour a tick, from a start": watch(start=str(BEGIN + HOUR), column="item", parts=(20, 60), k=2, **TIMED),
    "a run a day": watch(
        per="1d",
        zone="Asia/Kolkata",
        distinct=True,
        user="who",
        ledger=True,
        parts=(10, 110, 160),
        unit=dc.User(per="1d", zone="Asia/Kolkata"),
        **TIMED,
    ),
    "errors": watch(bad_rows="error", parts=(20,), column="item", **TIMED),
    "where": watch(where="n > 5 and item <> 'i0'", parts=(20, 60), **LIVE),
    "restored": watch(restored=True, ledger=True, parts=(30, 40, 60), total=True, rows=9),
    "stopped": watch(fails=(1,), parts=(40, 60), total=True, rows=9),
    "other rows": others({"rows": 13}),
    "other k": others({"k": 3}),
    "other column": others({"column": "n"}),
    "other condition": others({"where": "n > 3"}),
    "other rules of rows": others({"bad_rows": "error"}),
    "other window": others({"window": 2}),
    "another capacity": others({"capacity": 77}),
    "an increase": others({"increase": 2}),
    "the same capacity": others({}, capacity=77),
    "a state in use": a_state_in_use,
    "no state": no_state,
}
