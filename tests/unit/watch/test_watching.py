"""A watch and its state: what must stay the same when it goes on, and what a release says of its ticks."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.errors import CorruptStateError, ParameterError
from discreet.questions.live_question import LiveQuestion
from discreet.watch.tasks import reader_of, task_of
from discreet.watch.ticks import Rule
from discreet.watch.watcher import watching

JANUARY = 1_767_225_600  # 2026-01-01T00:00:00Z
BUDGET = dc.Budget(5000.0, 0.5)


def opened(file: Path, state: Path, words: dict[str, Any], **more: Any) -> Any:
    live = LiveQuestion(**words)
    reader = reader_of(live, str(file), more.pop("format", None), None, lambda _: None, more.pop("encoding", None))
    task = task_of(live, live.horizon)  # type: ignore[arg-type]
    return watching(state, task, more.pop("budget", BUDGET), more.pop("payer", None), reader, Rule.of(live), **more)


def watched(file: Path, state: Path, words: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    with opened(file, state, words, **more) as watcher:
        return list(watcher.releases(once=True))


def rows(number: int) -> str:
    """Four rows an hour."""
    lines = [f"{JANUARY + 900 * n},v{n % 7},{'ab'[n % 2]},{n % 3}" for n in range(number)]
    return "\n".join(["ts,who,page,n", *lines]) + "\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(rows(20))
    return path


TOP: dict[str, Any] = {"column": "page", "rows": 4, "horizon": 50}
TIMED: dict[str, Any] = {"column": "page", "tick": "1h", "time": "ts", "horizon": 50}
PEOPLE: dict[str, Any] = {"column": "page", "user": "who", "rows": 4, "horizon": 50}
TOTAL: dict[str, Any] = {"total": True, "rows": 4, "horizon": 50}
DISTINCT: dict[str, Any] = {"distinct": True, "user": "who", "rows": 4, "horizon": 50}
DAYS: dict[str, Any] = {"distinct": True, "user": "who", "tick": "1h", "time": "ts", "per": "1d"}
LISTED: dict[str, Any] = {**TOP, "universe": ("a", "b")}

OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "column": (TOP, {"column": "who"}, "columns"),
    "rows": (TOP, {"rows": 5}, "ticks"),
    "horizon": (TOP, {"horizon": 51}, "horizon"),
    "window": (TOP, {"window": 3}, "window"),
    "capacity": (TOP, {"capacity": 99}, "capacity"),
    "increase": (TOP, {"increase": 2}, "increase"),
    "increase over others": ({**TOP, "increase": 3}, {"increase": 2}, "increase"),
    "bad rows": (TOP, {"bad_rows": "error"}, "bad rows"),
    "where": (TOP, {"where": "n = 1"}, "where"),
    "another where": ({**TOP, "where": "n = 1"}, {"where": "n = 2"}, "where"),
    "universe": (LISTED, {"universe": ("a", "b", "c")}, "universe"),
    "universe in another order": (LISTED, {"universe": ("b", "a")}, "universe"),
    "mechanism": (LISTED, {"mechanism": "tree"}, "mechanism"),
    "tick": (TIMED, {"tick": "2h"}, "ticks"),
    "late": (TIMED, {"late": "10m"}, "rule"),
    "ahead": (TIMED, {"ahead": "2h"}, "rule"),
    "start": (TIMED, {"start": "2026-01-01T00:00:00Z"}, "rule"),
    "by the clock": (TIMED, {"by_clock": True}, "rule"),
    "people": (TOP, {"user": "who"}, "class"),
    "other people": (PEOPLE, {"user": "n"}, "user column"),
    "max items": (PEOPLE, {"max_items": 3}, "max items"),
    "window of people": (PEOPLE, {"window": 3}, "window"),
    "visits": ({**PEOPLE, "window": 3, "max_visits": 2}, {"max_visits": 3}, "max visits"),
    "total": (TOTAL, {"total": False, "column": "page"}, "class"),
    "distinct": (DISTINCT, {"distinct": False, "column": "page"}, "class"),
    "window of distinct": (DISTINCT, {"window": 3}, "window"),
    "visits of distinct": ({**DISTINCT, "window": 3, "max_visits": 2}, {"max_visits": 3}, "max visits"),
    "spans": ({**DAYS, "per": None}, {"per": "1d"}, "per"),
    "span": (DAYS, {"per": "1w"}, "per"),
    "zone": ({**DAYS, "zone": "Europe/Berlin"}, {"zone": "Asia/Tokyo"}, "per"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_state_goes_on_with_the_settings_that_it_began_with(file: Path, tmp_path: Path, what: str) -> None:
    """Also those that were left out: a window that is given later would be said of counts that have none."""
    words, change, named = OTHERS[what]
    begun = watched(file, tmp_path / "state", words)
    assert begun
    with pytest.raises(ParameterError, match=rf"belongs to a watch with other settings: .*\b{named}\b"):
        watched(file, tmp_path / "state", {**words, **change})
    # With the same settings the last release comes once more, and no other.
    assert watched(file, tmp_path / "state", words) == begun[-1:]


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        ({"budget": dc.Budget(5000.0, 0.25)}, {}, "budget"),
        ({}, {"budget": dc.Budget(5001.0, 0.5)}, "budget"),
        ({"format": "csv"}, {"format": "tsv"}, "format"),
        ({}, {"encoding": "latin-1"}, "encoding"),
        ({"encoding": "latin-1"}, {"encoding": "cp1252"}, "encoding"),
    ],
)
def test_a_state_goes_on_with_the_same_budget_and_reader(
    file: Path, tmp_path: Path, first: dict[str, Any], second: dict[str, Any], named: str
) -> None:
    watched(file, tmp_path / "state", TOP, **dict(first))
    with pytest.raises(ParameterError, match=rf"other settings: .*\b{named}\b"):
        watched(file, tmp_path / "state", TOP, **dict(second))


def test_a_watch_of_rows_that_were_moved_goes_on(file: Path, tmp_path: Path) -> None:
    """The name of a file is nobody's setting: logs are renamed."""
    watched(file, tmp_path / "state", TOTAL)
    file.rename(tmp_path / "moved.csv")
    (tmp_path / "moved.csv").write_text(rows(28))
    found = watched(tmp_path / "moved.csv", tmp_path / "state", TOTAL)
    assert [release["tick"] for release in found] == [5, 6, 7]
    assert abs(found[-1]["total"] - 28) <= 1


@pytest.mark.parametrize("data", [b"", b"x", b"discreet", b"\0" * 100])
def test_what_is_no_state_of_a_watch_is_left_alone(file: Path, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "state").write_bytes(data or b" ")
    with pytest.raises(CorruptStateError):
        watched(file, tmp_path / "state", TOP)
    assert (tmp_path / "state").read_bytes() == (data or b" ")


def test_the_state_of_something_else_is_named(file: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(dc.ExactCounts().to_bytes())
    with pytest.raises(CorruptStateError):
        watched(file, tmp_path / "state", TOP)


LIST = "3554d2b8a1e34099053865de8576d1460b807430ec8c6b85315c9607ba93d308"
HISTOGRAM = {"class": "Histogram", "horizon": None, "universe": None, "max_items": None}
SETTINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"column": "a"},
        {"class": "HeavyHitters", "horizon": None, "capacity": 65536, "window": None, "memory": None},
    ),
    (
        {"column": "a", "memory": "1MB"},
        {"class": "HeavyHitters", "horizon": None, "capacity": None, "window": None, "memory": "1MB"},
    ),
    ({"total": True, "increase": 3}, {"class": "Counter", "horizon": None, "increase": 3}),
    (
        {"distinct": True, "user": "u"},
        {"class": "DistinctCount", "horizon": None, "window": None, "max_visits": None},
    ),
    ({"column": "a", "user": "u"}, {**HISTOGRAM, "max_items": 10}),
    (
        {"column": "a", "user": "u", "window": 3, "max_visits": 2},
        {**HISTOGRAM, "max_items": 10, "window": 3, "max_visits": 2},
    ),
    ({"column": "a", "sets": True}, {**HISTOGRAM, "class": "Histogram of sets", "max_items_per_event": 10}),
    (
        {"column": "a", "sets": True, "universe": ("a", "b"), "mechanism": "meta", "k": 7},
        {**HISTOGRAM, "universe": LIST, "how": "meta", "chosen": 7},
    ),
    (
        {"column": "a", "universe": ("a", "b"), "mechanism": "sparse", "switches": 2, "k": 2, "horizon": 9},
        {**HISTOGRAM, "horizon": 9, "universe": LIST, "how": "sparse", "chosen": 2, "switches": 2},
    ),
]


@pytest.mark.parametrize(("words", "kept"), SETTINGS)
def test_a_state_of_an_earlier_version_has_these_settings(words: dict[str, Any], kept: dict[str, Any]) -> None:
    """With these names: it goes on only where all that it says is so."""
    live = LiveQuestion(**words, rows=4)
    assert task_of(live, live.horizon).settings == kept  # type: ignore[arg-type]


# ---- what a release says ------------------------------------------------------------------------------------------


def test_a_release_says_which_ticks_it_covers(file: Path, tmp_path: Path) -> None:
    for words, firsts in ((TOP, [1, 1, 1, 1, 1]), ({**TOP, "window": 3}, [1, 1, 1, 2, 3])):
        found = watched(file, tmp_path / f"state {firsts[-1]}", words)
        covers = [release["covers"] for release in found]
        assert covers == [{"first_tick": first, "last_tick": last} for last, first in enumerate(firsts, 1)]
        assert [release["tick"] for release in found] == [1, 2, 3, 4, 5]
        assert {release["parameters"]["horizon"] for release in found} == {50}
        assert all("start" not in release and "period" not in release for release in found)


def test_a_release_says_from_when_to_when_its_tick_was(file: Path, tmp_path: Path) -> None:
    found = watched(file, tmp_path / "state", TIMED)
    assert [(release["start"][11:16], release["end"][11:16]) for release in found] == [
        ("00:00", "01:00"), ("01:00", "02:00"), ("02:00", "03:00"), ("03:00", "04:00"),
    ]  # fmt: skip


ASSUMPTIONS: list[tuple[dict[str, Any], str]] = [
    (TOP, "the number of rows is public: an event that is left out leaves a blank row"),
    (PEOPLE, "the number of rows is public: a person who is left out leaves blank rows"),
    ({**TOTAL, "rows": None, "tick": "1h"}, "which tick a row is in is decided by the clock, not by other rows"),
    ({**TIMED, "by_clock": True}, "the clock ends the ticks: when a row is written does not depend on other rows"),
    (TIMED, "the ends of ticks are public, the first one's too: no row comes after one of a later time"),
    ({**TIMED, "start": "1"}, "the ends of ticks are public: no row comes after one of a later time"),
    (
        {**TIMED, "late": "90s", "start": "1"},
        "the ends of ticks are public: no row comes more than 90 seconds after one of a later time",
    ),
]


@pytest.mark.parametrize(("words", "said"), ASSUMPTIONS)
def test_what_is_assumed_of_ticks_is_in_every_guarantee(tmp_path: Path, words: dict[str, Any], said: str) -> None:
    (tmp_path / "rows.csv").write_text(rows(1))
    with opened(tmp_path / "rows.csv", tmp_path / "state", words) as watcher:
        assert said in json.dumps(watcher.run.promise)
        others = {each for _, each in ASSUMPTIONS} - {said}
        assert not [other for other in others if json.dumps(other)[1:-1] in json.dumps(watcher.run.promise)]


def test_increases_begin_when_there_is_a_tick_to_compare_with(file: Path, tmp_path: Path) -> None:
    found = watched(file, tmp_path / "state", {**TOTAL, "increase": 2})
    assert ["increase" in release for release in found] == [False, False, True, True, True]
    assert [(each["since"], each["tick"]) for each in (release["increase"] for release in found[2:])] == [
        (1, 3), (2, 4), (3, 5),
    ]  # fmt: skip
    for release in found[2:]:
        rise = release["increase"]
        assert rise["confidence"] == 0.95
        assert 0 <= rise["lower"] <= 8 <= rise["upper"]


# ---- the second time ----------------------------------------------------------------------------------------------


def test_the_state_is_on_disk_before_the_charge(file: Path, tmp_path: Path) -> None:
    """A ledger that refuses leaves the name of the charge behind: the next attempt is the same one."""
    ledger, how = dc.Ledger(tmp_path / "ledger.sqlite"), {"budget": dc.Budget(1.0, 1e-6)}
    ledger.grant("a", dc.Budget(0.5, 1e-6))
    with pytest.raises(dc.BudgetExceededError):
        watched(file, tmp_path / "state", TOTAL, payer=ledger.account("a"), **how)
    assert (tmp_path / "state").exists()
    ledger.grant("a", dc.Budget(5.0, 1e-5))
    for _ in range(2):
        assert watched(file, tmp_path / "state", TOTAL, payer=ledger.account("a"), **how)
    assert [event.kind for event in ledger.account("a").history()].count("charge") == 1


def test_a_second_run_is_on_disk_before_it_is_charged(file: Path, tmp_path: Path) -> None:
    """Of a state from a backup: ticks that were published since are not drawn a second time under the first charge."""
    ledger, how = dc.Ledger(tmp_path / "ledger.sqlite"), {"budget": dc.Budget(1.0, 1e-6)}
    ledger.grant("a", dc.Budget(5.0, 1e-5))
    account = ledger.account("a")
    file.write_text(rows(8))
    watched(file, tmp_path / "state", TOTAL, payer=account, **how)
    backup = (tmp_path / "state").read_bytes()
    file.write_text(rows(20))
    seen = watched(file, tmp_path / "state", TOTAL, payer=account, **how)
    (tmp_path / "state").write_bytes(backup)
    with pytest.raises(dc.DiscreetError, match="restored"):
        watched(file, tmp_path / "state", TOTAL, payer=account, **how)
    with opened(file, tmp_path / "state", TOTAL, payer=account, restored=True, **how):
        assert (tmp_path / "state").read_bytes() != backup
    again = watched(file, tmp_path / "state", TOTAL, payer=account, **how)
    assert again[-1]["tick"] == seen[-1]["tick"] == 5
    assert [event.kind for event in account.history()].count("charge") == 2


def test_a_log_that_was_rotated_meanwhile_goes_on_in_the_next_file(file: Path, tmp_path: Path) -> None:
    """The state says which file its position is in, and what the columns are."""
    file.write_text(rows(10))
    first = watched(file, tmp_path / "state", TOTAL)
    file.write_text(rows(12))
    file.rename(tmp_path / "rows.csv.1")
    file.write_text(rows(9))
    found = watched(file, tmp_path / "state", TOTAL)
    assert [release["tick"] for release in first] == [1, 2, 3][: len(first)]
    assert found[-1]["tick"] == (12 + 9) // 4
    assert abs(found[-1]["total"] - 20) <= 1


def test_two_watches_have_one_state_one_after_the_other(file: Path, tmp_path: Path) -> None:
    refused = pytest.raises(dc.DiscreetError, match="state")
    with opened(file, tmp_path / "state", TOTAL), refused, opened(file, tmp_path / "state", TOTAL):
        pass
    with opened(file, tmp_path / "state", TOTAL):
        pass


def test_what_was_left_out_is_for_the_operator(file: Path, tmp_path: Path) -> None:
    far = f"{JANUARY + 10**9},x,a,1\n"
    file.write_text(rows(20) + far)
    with opened(file, tmp_path / "state", TIMED) as watcher:
        found = list(watcher.releases(once=True))
        assert watcher.left_out == {"times ahead of the clock": 1}
        (told,) = watcher.remarks
        assert told == "rows left out since the start (not private: do not publish): 1: times ahead of the clock"
        assert watcher.reached == f"tick {len(found)} of 50"
    assert "left" not in json.dumps(found)


def test_a_person_has_as_many_rows_as_their_lists_have_items(tmp_path: Path) -> None:
    lines = [{"who": f"v{n}", "page": ["a", "b"][: 1 + n % 2]} for n in range(40)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = {"column": "page", "user": "who", "sets": True, "max_items": 2, "rows": 40, "horizon": 2}
    (release,) = watched(tmp_path / "rows.jsonl", tmp_path / "state", words)
    counts = {row["item"]: row["count"] for row in release["items"]}
    assert {item: round(count / 2) for item, count in counts.items()} == {"a": 20, "b": 10}


def test_conditions_and_public_tables_go_together(tmp_path: Path) -> None:
    from discreet.events.lookup import Lookup

    (tmp_path / "kinds.csv").write_text("page,kind\na,long\nb,short\nc,short\n")
    lines = ["ts,who,page,n", *(f"{n},v{n},{'abc'[n % 3]},{n % 2}" for n in range(60))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    table = Lookup.of(str(tmp_path / "kinds.csv"), "page")
    words = {"column": "kind", "lookup": table, "on": "page", "rows": 30, "horizon": 2, "universe": ("long", "short")}
    whole = watched(tmp_path / "rows.csv", tmp_path / "whole", words)
    some = watched(tmp_path / "rows.csv", tmp_path / "some", {**words, "where": "n = 1"})

    def count(releases: list[dict[str, Any]]) -> dict[str, int]:
        return {row["item"]: row["count"] for row in releases[-1]["items"]}

    assert all(abs(count(whole)[item] - expected) <= 1 for item, expected in (("long", 20), ("short", 40)))
    assert all(abs(count(some)[item] - expected) <= 1 for item, expected in (("long", 10), ("short", 20)))


def test_an_encoding_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes("page\n".encode("latin-1") + "Käse\n".encode("latin-1") * 40)
    words = {"column": "page", "rows": 40, "horizon": 2}
    (release,) = watched(tmp_path / "rows.csv", tmp_path / "state", words, encoding="latin-1")
    assert [row["item"] for row in release["items"]] == ["Käse"]


def test_rows_that_are_wrong_end_a_watch_where_that_was_asked(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("ts,page\n1,a\nSECRET,b\n3,c\n")
    words = {"column": "page", "tick": "1h", "time": "ts", "horizon": 5}
    assert watched(tmp_path / "rows.csv", tmp_path / "skips", words) == []
    with pytest.raises(dc.DataError) as refused:
        watched(tmp_path / "rows.csv", tmp_path / "refuses", {**words, "bad_rows": "error"})
    assert "SECRET" not in str(refused.value)


def test_one_late_duration_may_wait_for_a_thousand_ticks() -> None:
    words = {"column": "page", "time": "ts", "tick": "1s"}
    assert Rule.of(LiveQuestion(**words, late="1000s")).late == 1000.0
    with pytest.raises(ParameterError, match="late must be at most 1000 ticks"):
        Rule.of(LiveQuestion(**words, late="1001s"))
    for name, least in (("late", "0s"), ("ahead", "0s")):
        assert getattr(Rule.of(LiveQuestion(**words, **{name: least})), name) == 0.0
    with pytest.raises(ParameterError, match="tick must be"):
        Rule.of(LiveQuestion(**{**words, "tick": "0s"}))
    with pytest.raises(ParameterError, match="start must be a time"):
        Rule.of(LiveQuestion(**words, start="soon"))
    assert Rule.of(LiveQuestion(**words)).ahead == 3600.0


def test_spans_that_were_changed_twice_are_kept_as_they_were() -> None:
    """What is kept of the spans says the same after a second restart."""
    from discreet.privacy.spans import Calendar
    from discreet.watch.timetable import Days, Timetable

    days = Days(Calendar("1d", "Europe/Berlin"))
    plain = days.timetable(3600.0, float(JANUARY))
    kept = plain
    for tick in (100, 300, 5000):
        run, first, edges = kept.since(tick)
        kept = Timetable(3600.0, days.end, edges, first, run)
        for later in itertools.chain(range(tick, tick + 60), (9000,)):
            assert kept.of_tick(later) == plain.of_tick(later)
            assert kept.number(plain.starts(later)) == kept.number(plain.starts(later + 1) - 1e-3) == later
