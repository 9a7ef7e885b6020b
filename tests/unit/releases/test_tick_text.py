"""What `discreet watch` shows on a terminal: which ticks the counts are of, intervals, and the guarantee."""

import discreet as dc
from discreet.releases.formats import tick_text


def released(mechanism, **more):
    release = mechanism.step(["a"] * 9 + ["b"] * 5)
    return {"tick": 3, "covers": {"first_tick": 1, "last_tick": 3}, **more, **release.to_dict()}


def test_items_with_their_intervals_and_what_the_counts_are_of():
    mechanism = dc.continual.HeavyHitters(9, dc.Budget(5000.0, 0.5), 64)
    result = released(mechanism, start="2026-01-01T02:00:00+00:00", end="2026-01-01T03:00:00+00:00")
    text = tick_text(result, 9, mechanism.guarantee)
    assert "Tick 3 of 9, from 2026-01-01T02:00:00+00:00 to 2026-01-01T03:00:00+00:00." in text
    assert "Counts are of ticks 1 to 3 together, all so far." in text
    assert "95% interval" in text
    row = next(line for line in text.splitlines() if line.startswith("a "))
    assert row.split()[:2] == ["a", "9"]
    assert " to " in row
    assert "epsilon=5000, delta=0.5" in text
    windowed = tick_text({**result, "covers": {"first_tick": 2, "last_tick": 3}, "items": []}, 9, mechanism.guarantee)
    assert "ticks 2 to 3 together." in windowed
    assert "No item passed the threshold." in windowed
    alone = tick_text({**result, "covers": {"first_tick": 3, "last_tick": 3}}, 9, mechanism.guarantee)
    assert "Counts are of tick 3 alone." in alone


def test_a_total_with_its_interval_and_a_release_of_an_older_state():
    counter = dc.continual.Counter(9, dc.Budget.zcdp(0.5))
    text = tick_text({"tick": 1, "total": 1200, "standard_deviation": 10.0}, 9, counter.guarantee)
    assert "1,200 rows; 95% interval 1,180 to 1,220." in text
    assert "rho=0.5" in text


def test_people_are_called_people():
    mechanism = dc.continual.Histogram(3, dc.Budget(1.0, 1e-6), unit=dc.User(2))
    release = mechanism.step(["a"] * 500, users=range(500))
    result = {"tick": 1, "covers": {"first_tick": 1, "last_tick": 1}, **release.to_dict()}
    text = tick_text(result, 3, mechanism.guarantee)
    assert "people" in text.split("a ")[0]
    assert "user" in text
    empty = tick_text({**result, "items": []}, 3, mechanism.guarantee)
    assert f"No item passed the threshold of about {release.threshold} people." in empty
    counter = dc.continual.DistinctCount(3, dc.Budget.zcdp(0.5))
    text = tick_text({"tick": 1, "people": 1200, "standard_deviation": 10.0}, 3, counter.guarantee)
    assert "1,200 different people; 95% interval 1,180 to 1,220." in text


def test_increases_are_below_the_counts():
    counter = dc.continual.Counter(9, dc.Budget.zcdp(0.5))
    risen = {"since": 1, "tick": 3, "confidence": 0.95, "value": 1200, "lower": 1190, "upper": 1210}
    text = tick_text({"tick": 3, "total": 4200, "standard_deviation": 10.0, "increase": risen}, 9, counter.guarantee)
    assert "Since tick 1: 1,200; 95% interval 1,190 to 1,210." in text
    rows = [{"item": "a", "increase": 7, "lower": 5, "upper": None}]
    listed = {"since": 1, "tick": 3, "confidence": 0.95, "items": rows, "appeared": []}
    text = tick_text({"tick": 3, "confidence": 0.95, "items": [], "increase": listed}, 9, counter.guarantee)
    assert "Since tick 1:" in text
    assert next(line for line in text.splitlines() if line.startswith("a ")).split() == ["a", "7", "5", "to", "?"]
