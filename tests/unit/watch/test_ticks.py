"""Which tick a row is in: what one row can do, what waits, and what a restart finds."""

import random

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.events.live_input import LiveBatch
from discreet.questions.live_question import LiveQuestion
from discreet.watch.ticks import Add, Rule, Ticker, duration, ticks_in

HOUR = 3600.0
JANUARY = 1_767_225_600.0  # 2026-01-01T00:00:00Z
CLOCK = JANUARY + 400 * 86400.0


def rule_of(tick=None, time=None, rows=None, **words):
    return Rule.of(LiveQuestion(tick=tick, time=time, rows=rows, **words))


def batch(rows, first=0):
    """Rows (time, item), ten bytes each, from the row of this number on."""
    ends = 10 * np.arange(first + 1, first + len(rows) + 1, dtype=np.int64)
    items = pa.array([item for _, item in rows], pa.large_string())
    return LiveBatch(
        pa.record_batch([items], ["item"]), np.array([time for time, _ in rows], np.float64), ends - 10, ends
    )


TICKERS = []


@pytest.fixture(autouse=True)
def _closed():
    yield
    while TICKERS:
        TICKERS.pop().close()


def ticker(*arguments):
    TICKERS.append(Ticker(*arguments))
    return TICKERS[-1]


class Run:
    """A ticker over rows, with what each ended tick held; it may be stopped and started again at any row."""

    def __init__(self, rule, folder, rows):
        self.rule, self.folder, self.rows = rule, folder, rows
        self.ticker, self.ended, self.open, self.at = ticker(rule, folder), [], [], 0

    def steps(self, steps):
        for step in steps:
            if isinstance(step, Add):
                self.open += step.values.column("item").to_pylist()
                assert len(step.values) == step.events
            else:
                self.ended.append((step.start[5:16], sorted(self.open)))
                self.open = []
                self.kept = self.ticker.saved

    def read(self, until, clock=CLOCK):
        if until > self.at:
            self.steps(self.ticker.take(batch(self.rows[self.at : until], self.at), clock))
        self.at = until
        self.steps(self.ticker.due(clock))
        return self

    def restart(self):
        kept = self.ticker.saved
        self.ticker = ticker(self.rule, self.folder, kept["now"], kept["position"], kept["read"], kept["then"])
        self.at, self.open = kept["position"] // 10, []


def hours(*pairs):
    return [(JANUARY + hour * HOUR, item) for hour, item in pairs]


def ticks(rule, folder, rows):
    return Run(rule, folder, rows).read(len(rows)).ended


HOURLY = rule_of("1h", "when")
PLAIN = hours((0.1, "a"), (0.2, "b"), (1.0, "c"), (1.5, "d"), (2.1, "e"))


def test_rows_in_order_end_the_ticks_before_them(tmp_path):
    assert ticks(HOURLY, tmp_path, PLAIN) == [("01-01T00:00", ["a", "b"]), ("01-01T01:00", ["c", "d"])]
    assert len(ticks(HOURLY, tmp_path, [*PLAIN, *hours((6, "f"), (6.1, "g"))])) == 6  # two rows agree that it is six


@pytest.mark.parametrize("far", [JANUARY + 3000 * HOUR, 253402300799.0, JANUARY + 1e6 * HOUR])
def test_one_row_far_ahead_changes_nothing_wherever_it_is(tmp_path, far):
    expected = ticks(HOURLY, tmp_path, PLAIN)
    for place in range(len(PLAIN) + 1):
        rows = [*PLAIN[:place], (far, "x"), *PLAIN[place:]]
        for size in (1, 2, len(rows)):
            run = Run(HOURLY, tmp_path, rows)
            for until in [*range(size, len(rows), size), len(rows)]:
                run.read(until)
            assert run.ended == expected, (place, size)


@pytest.mark.parametrize("old", [JANUARY - 1e7 * HOUR, -62135596800.0])
def test_one_row_of_long_ago_ends_nothing(tmp_path, old):
    """It is late, and counts where it came; no tick is published that would not be without it."""
    expected = ticks(HOURLY, tmp_path, PLAIN)
    for place in range(len(PLAIN) + 1):
        found = ticks(HOURLY, tmp_path, [*PLAIN[:place], (old, "x"), *PLAIN[place:]])
        assert [start for start, _ in found] == [start for start, _ in expected]
        assert sorted(item for _, items in found for item in items if item != "x") == ["a", "b", "c", "d"]


def test_many_rows_far_ahead_are_left_out_one_by_one(tmp_path):
    rows = PLAIN[:1]
    for i, row in enumerate(PLAIN[1:]):
        rows = [*rows, row, (JANUARY + (i + 100) * 5 * HOUR, "x")]
    run = Run(HOURLY, tmp_path, rows).read(len(rows))
    assert run.ended == ticks(HOURLY, tmp_path, PLAIN)
    assert run.ticker.left_out["times far ahead of the others"] == len(PLAIN) - 2  # the last one waits for another


def test_one_row_ends_one_tick_at_most(tmp_path):
    found = [len(ticks(HOURLY, tmp_path, [*PLAIN, *hours((hour, "x"))])) for hour in (2.5, 3.5, 4.5, 50)]
    assert found == [2, 3, 2, 2]


def test_rows_ahead_of_the_clock_are_left_out(tmp_path):
    now = JANUARY + 2.2 * HOUR
    early = [*PLAIN, *hours((3.3, "x"), (3.4, "x"), (2.2, "f"))]  # two that agree, and yet have not come
    run = Run(HOURLY, tmp_path, early).read(len(early), now)
    assert run.ended == ticks(HOURLY, tmp_path, PLAIN)
    assert run.ticker.left_out["times ahead of the clock"] == 2
    assert len(Run(rule_of("1h", "when", ahead="2h"), tmp_path, early).read(len(early), now).ended) == 3


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_late_by_less_than_a_tick_waits_are_in_their_own_ticks(tmp_path, seed):
    """Whatever else is there: so an event more moves no other."""
    chance = random.Random(seed)
    rule = rule_of("1h", "when", late="30m", start=str(JANUARY))
    times = sorted(chance.random() * 6 for _ in range(60))
    # Each comes up to a quarter of an hour after its time: no row is later than half an hour after one of a later time.
    came = sorted((time + chance.random() / 4, time) for time in times)
    rows = hours(*((time, f"{time:.4f}") for _, time in came), (8, "last"), (8, "last"))
    run = Run(rule, tmp_path, rows)
    while run.at < len(rows):
        run.read(min(len(rows), run.at + chance.randint(1, 30)))
        if chance.random() < 0.3:
            run.restart()
    assert [items for _, items in run.ended[:6]] == [
        [f"{time:.4f}" for time in times if int(time) == hour] for hour in range(6)
    ]
    left = chance.randrange(60)
    fewer = ticks(rule, tmp_path, rows[:left] + rows[left + 1 :])
    gone = rows[left][1]
    assert fewer == [(start, [item for item in items if item != gone]) for start, items in run.ended]


@pytest.mark.parametrize("by_clock", [False, True])
@pytest.mark.parametrize("late", ["0s", "90m", "10h"])
def test_a_restart_counts_every_row_once(tmp_path, by_clock, late):
    for seed in range(30):
        chance = random.Random(seed)
        rows = [
            (JANUARY + hour * HOUR + (chance.random() - 0.5) * 2 * HOUR, str(i))
            for i, hour in enumerate(sorted(chance.random() * 12 for _ in range(80)))
        ]
        far = chance.sample(range(len(rows)), 5)
        rows = [(time + 1e4 * HOUR if i in far else time, item) for i, (time, item) in enumerate(rows)]
        rule = rule_of("1h", "when", late=late, by_clock=by_clock, start=str(JANUARY - 2 * HOUR))
        plain, run = Run(rule, tmp_path, rows), Run(rule, tmp_path, rows)
        for one, restarts in ((plain, 0.0), (run, 0.4)):
            moves = random.Random(seed)
            for _ in range(40):
                until = min(len(rows), one.at + moves.randint(1, 10))
                clock = JANUARY + (until / 80 * 12 + 1) * HOUR
                one.read(until, clock if by_clock else CLOCK)
                if chance.random() < restarts:
                    one.restart()
            one.read(len(rows), CLOCK if not by_clock else JANUARY + 40 * HOUR)
        counted = [item for _, items in run.ended for item in items] + run.open
        assert len(counted) == len(set(counted))
        assert set(counted) <= {item for _, item in rows}
        if not by_clock:
            assert run.ended == plain.ended


def test_by_clock_no_row_ends_a_tick(tmp_path):
    rule = rule_of("1h", "when", late="10m", by_clock=True)
    rows = hours((0.5, "a"), (1.5, "b"), (0.9, "c"), (1.05, "d"))
    run = Run(rule, tmp_path, rows)
    run.ticker.begin(JANUARY + 0.5 * HOUR)
    assert run.read(3, JANUARY + 1.1 * HOUR).ended == []
    assert run.read(4, JANUARY + 1.2 * HOUR).ended == [("01-01T00:00", ["a", "c"])]
    # Nobody looked for a while: the rows are there, each in its own tick.
    assert run.read(4, JANUARY + 4.2 * HOUR).ended[1:] == [
        ("01-01T01:00", ["b", "d"]),
        ("01-01T02:00", []),
        ("01-01T03:00", []),
    ]


@pytest.mark.parametrize("restarted", [False, True])
def test_ticks_of_the_clock_that_nobody_looked_at_are_passed_over(tmp_path, restarted):
    run = Run(rule_of("1s"), tmp_path, [(0, "a"), (0, "b"), (0, "c")])
    assert run.ticker.begin(JANUARY + 0.5)
    run.read(1, JANUARY + 0.7)
    if restarted:
        run.restart()
        assert not run.ticker.begin(JANUARY + 14.2)
    run.read(2, JANUARY + 14.2).read(3, JANUARY + 14.9).read(3, JANUARY + 15.1)
    assert [items for _, items in run.ended] == [["a", "b"], ["c"]]
    assert [step["now"] for step in (run.kept,)] == [int(JANUARY) + 15]


def test_a_start_is_public_and_rows_before_it_are_left_out(tmp_path):
    rule = rule_of("1h", "when", start="2026-01-01T00:00:00Z")
    rows = hours((-5, "x"), (1.5, "a"), (-0.1, "x"), (2, "b"))
    assert ticks(rule, tmp_path, rows) == [("01-01T00:00", []), ("01-01T01:00", ["a"])]
    assert "the first" not in rule.assumption("")
    assert "the first" in HOURLY.assumption("")


@pytest.mark.parametrize(
    "wrong",
    [
        {"tick": "1 hour"},
        {"tick": "0s"},
        {"tick": "1h", "rows": 3},
        {},
        {"rows": 0},
        {"rows": 5, "time": "t"},
        {"tick": "1h", "late": "5m"},
        {"rows": 5, "by_clock": True},
        {"tick": "1s", "time": "t", "late": "1h"},
        {"tick": "1s", "time": "t", "start": "tomorrow"},
        {"tick": "1s", "time": "t", "ahead": "-1h"},
        {"tick": "9999999999d"},
    ],
)
def test_rules_that_are_none(wrong):
    with pytest.raises(dc.ParameterError):
        rule_of(**wrong)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("15m", 900), ("2 h", 7200), (" 1d ", 86400), ("4w", 2419200)]
)
def test_lengths_of_time(text, seconds):
    assert duration("tick", text) == seconds


@pytest.mark.parametrize("text", ["0s", "1.5h", "h", "1y", "-1h", "1h30m", "1000000000s", "١h", 60, None, True])
def test_what_is_no_length_of_time(text):
    with pytest.raises(dc.ParameterError, match=r"tick must be a whole number with s, m, h, d or w, such as 15m, not "):
        duration("tick", text)


@pytest.mark.parametrize(("horizon", "ticks"), [(720, 720), ("720", 720), ("30d", 720), ("1h", 1), ("60m", 1)])
def test_a_horizon_is_a_number_of_ticks_or_a_time(horizon, ticks):
    assert ticks_in(horizon, 3600.0) == ticks


@pytest.mark.parametrize(("horizon", "seconds", "why"), [
    ("90m", 3600.0, "90m is not a multiple of 3600 s"),
    ("30d", None, "these ticks are counted in rows, not in time"),
    ("soon", 3600.0, "horizon must be a whole number with"),
    ("٣", 3600.0, "horizon must be a whole number with"),
    (True, 3600.0, "horizon must be a whole number with"),
    (1.5, 3600.0, "horizon must be a whole number with"),
])  # fmt: skip
def test_what_is_no_horizon(horizon, seconds, why):
    with pytest.raises(dc.ParameterError, match=why):
        ticks_in(horizon, seconds)


def test_a_tick_of_rows_ends_with_its_last_row(tmp_path):
    """Not with the first of the next: that one may not come for long."""
    made = ticker(rule_of(rows=2), tmp_path)
    found = [type(each).__name__ for each in made.take(batch([(0, "a"), (0, "b"), (0, "c")]), CLOCK)]
    assert found == ["Add", "End", "Add"]


def finished(rule, folder, rows, clock=CLOCK):
    """The ticks of an input that ended, with the last one, and the ticker."""
    run = Run(rule, folder, rows).read(len(rows), clock)
    run.steps(run.ticker.finish(clock))
    return run


def test_an_input_that_ends_ends_its_last_tick(tmp_path):
    run = finished(HOURLY, tmp_path, PLAIN)
    assert run.ended[-1] == ("01-01T02:00", ["e"])
    assert run.ticker.left_out.total() == 0
    late = finished(rule_of("1h", "when", late="2h"), tmp_path, PLAIN)  # what waited does not wait any more
    assert [items for _, items in late.ended] == [["a", "b"], ["c", "d"], ["e"]]


def test_a_last_row_far_ahead_that_nobody_agreed_with_is_left_out(tmp_path):
    run = finished(HOURLY, tmp_path, [*PLAIN, *hours((500, "far"))])
    assert run.ended[-1] == ("01-01T02:00", ["e"])
    assert run.ticker.left_out == {
        "times far ahead of the others": 1, "times ahead of the clock": 0, "times before the start": 0,
    }  # fmt: skip


def test_one_row_alone_is_a_tick(tmp_path):
    assert finished(HOURLY, tmp_path, hours((7.5, "a"))).ended == [("01-01T07:00", ["a"])]
    assert finished(HOURLY, tmp_path, []).ended == []


@pytest.mark.parametrize(
    ("times", "first"),
    [
        ((5.0, 5.5), 5),
        ((5.0, 6.5), 5),
        ((6.5, 5.0), 6),
        ((900.0, 5.0, 5.5), 5),
        ((5.0, 900.0, 6.0), 6),
        ((5.0, 900.0), 5),
    ],
)
def test_the_first_tick_is_one_that_two_rows_agree_about(tmp_path, times, first):
    """The middle of three where the first two are far apart; with two rows alone the first one's."""
    rows = hours(*((time, str(place)) for place, time in enumerate(times)))
    assert finished(HOURLY, tmp_path, rows).ended[0][0] == f"01-01T0{first}:00"


def test_rows_of_a_time_that_has_not_come_are_left_out_by_their_own_limit(tmp_path):
    """How long a tick waits for its rows does not move it."""
    rule = rule_of("1h", "when", late="5h", ahead="2h")
    clock = JANUARY + 10 * HOUR
    run = Run(rule, tmp_path, hours((9, "a"), (9.1, "b"), (12, "in"), (12.01, "out"), (15, "out"))).read(5, clock)
    assert run.ticker.left_out["times ahead of the clock"] == 2


def test_rows_without_values_wait_for_their_tick_too(tmp_path):
    """A total has no column of items: its rows are counted all the same."""
    rule, many = rule_of("1h", "when", late="3h"), 6
    ends = 10 * np.arange(1, many + 1, dtype=np.int64)
    times = np.array([JANUARY + hour * HOUR for hour in (0.0, 0.1, 1.0, 1.1, 2.0, 2.5)])
    made = ticker(rule, tmp_path)
    steps = [*made.take(LiveBatch(None, times, ends - 10, ends), CLOCK), *made.finish(CLOCK)]
    counts, count = [], 0
    for step in steps:
        if isinstance(step, Add):
            count += step.events
        else:
            counts.append(count)
            count = 0
    assert counts == [2, 2, 2]


def test_a_restart_reads_again_from_the_first_row_that_waits(tmp_path):
    """Rows of a later tick that came first are held by it, whichever of the ticks was seen first."""
    rule = rule_of("1h", "when", late="4h")
    rows = hours((0, "a"), (0.1, "b"), (3, "late"), (2, "soon"), (5.2, "c"), (5.3, "d"))
    run = Run(rule, tmp_path, rows).read(6)
    assert [items for _, items in run.ended] == [["a", "b"]]
    assert run.kept["position"] == 20  # before the row of three o'clock
    run.restart()
    run.read(6)
    run.steps(run.ticker.finish(CLOCK))
    assert [items for _, items in run.ended] == [["a", "b"], [], ["soon"], ["late"], [], ["c", "d"]]
