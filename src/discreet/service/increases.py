"""How much a stream rose between two of its ticks, from what was published of both: it costs nothing.

Of a curator's stream the law of the difference is known (`releases.over_time`). Of the others the intervals of both
ticks are added; each of them may fail, and the confidence says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.events.values import items_array
from discreet.privacy import Budget
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.over_time import increase_of, reach_of_increase
from discreet.releases.release import Release
from discreet.service.definitions import StreamDefinition
from discreet.service.runs import CONFIDENCE, Curated
from discreet.service.shapes import IncreaseModel
from discreet.service.store import Store
from discreet.service.streams import LiveStream

_made: dict[tuple[str, int, Budget], Any] = {}  # by definition, number of ticks and budget


def increases(store: Store, stream: LiveStream, ticks: range, over: int) -> Iterator[IncreaseModel]:
    """For each of the ticks the increase over this many before it, where one run published both."""
    for tick in ticks:
        then, now = (store.release(stream.name, at) for at in (tick - over, tick))
        if then is not None and now is not None:
            found = json.loads(then), json.loads(now)
            if found[0]["run"] == found[1]["run"]:
                yield _increase(stream, *found)


def _increase(stream: LiveStream, then: dict[str, Any], now: dict[str, Any]) -> IncreaseModel:
    definition = stream.definition
    head = {"tick": now["tick"], "since": then["tick"], "begins": then["ends"], "ends": now["ends"], "run": now["run"]}
    has_law = definition.kind != "survey" and definition.trust != "pan"
    told = _by_law(stream, then, now) if has_law else _added(then, now)
    return IncreaseModel(**head, **told)


def _mechanism(stream: LiveStream, run: int) -> Any:
    """The mechanism of a run before its first tick: it says what noise there is at each."""
    definition, span = stream.definition, stream.timetable.run(run)
    key = definition.digest, span.ticks, definition.budget_of(run)
    if key not in _made:
        _made[key] = Curated.of(definition, run, span=span).mechanism
    return _made[key]


def _by_law(stream: LiveStream, then: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    definition, plain = stream.definition, _mechanism(stream, now["run"])
    passed = stream.timetable.run(now["run"]).first - 1
    since, tick = then["tick"] - passed, now["tick"] - passed
    if definition.kind != "top":
        around = reach_of_increase(plain.over_time(tick), plain.over_time(since), 1.0 - CONFIDENCE)
        value = _basis(now, "value") - _basis(then, "value")
        return {"confidence": CONFIDENCE, **_span("value", value, value - around, value + around)}
    later, earlier = (_release(plain, definition, at, of) for at, of in ((tick, now), (since, then)))
    rows = increase_of(later, earlier, CONFIDENCE).rows()
    return {"confidence": CONFIDENCE, "items": [{"item": item, **_span("increase", *row)} for item, *row in rows]}


def _release(plain: Any, definition: StreamDefinition, tick: int, told: dict[str, Any]) -> Release:
    """A published list with the law of its noise; see `runs.items_shown` for what is told of it."""
    rows, listed = told["items"], max(told.get("listed", 1), definition.k or 1)
    counts = np.array([_basis(row, "count") for row in rows], np.int64)
    items = items_array([row["item"] for row in rows])
    over_time = plain.over_time(tick)
    if definition.capacity is not None:
        model = ErrorModel(Noise("gaussian", plain.scale, listed))  # the draws alone matter here
        return Release(items, counts, plain.guarantee, model, followed=counts, over_time=over_time)
    model = plain.error_model(tick, listed)
    cut = plain.scheme.cut(tick) if model.of_published else None
    return Release(items, counts, plain.guarantee, model, threshold=cut, over_time=over_time)


def _basis(told: dict[str, Any], what: str) -> int:
    return int(told.get("basis", told[what]))


def _added(then: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    confidence = round(2.0 * CONFIDENCE - 1.0, 10)
    if now.get("items") is None:
        return {"confidence": confidence, **_difference("value", "value", then, now)}
    before = {row["item"]: row for row in then["items"]}
    rows = [
        {"item": row["item"], **_difference("increase", "count", before[row["item"]], row)}
        for row in now["items"]
        if row["item"] in before
    ]
    return {"confidence": confidence, "items": rows}


def _difference(name: str, what: str, then: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    low = now["lower"] - then["upper"] if then["upper"] is not None else 0
    high = None if now["upper"] is None else now["upper"] - then["lower"]
    return _span(name, now[what] - then[what], low, high)


def _span(name: str, value: float, lower: float, upper: float | None) -> dict[str, Any]:
    """Nothing falls: what is below 0 is noise."""
    high = None if upper is None or upper == float("inf") else max(0, int(upper))
    return {name: max(0, int(value)), "lower": max(0, int(lower)), "upper": high}
