"""The key `mechanism` of a stream is the word of the question: what it names is what counts, served as any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import Running

from discreet.errors import ParameterError
from discreet.questions.live_question import LiveQuestion
from discreet.service.definitions import configuration
from discreet.service.forecast import forecast
from discreet.service.runs import Curated, task_for
from discreet.watch.tasks import task_of

TOP: dict[str, Any] = {
    "kind": "top", "column": "tags", "tick": "1m", "horizon": "4m", "epsilon": 1000.0, "delta": 1e-6, "k": 2,
    "public": True,
}  # fmt: skip
STREAMS: dict[str, dict[str, Any]] = {
    "tree": {**TOP, "universe": ["a", "b", "c"], "mechanism": "tree"},
    "sparse": {**TOP, "universe": ["a", "b", "c"], "mechanism": "sparse", "switches": 1},
    "meta": {**TOP, "sets": True, "mechanism": "meta"},
    "meta-of-two": {**TOP, "sets": True, "max_items": 2, "mechanism": "meta"},
    "meta-listed": {**TOP, "sets": True, "universe": ["a", "b", "c"], "mechanism": "meta"},
    "people": {**TOP, "user": "who", "max_items": 2, "mechanism": "tree"},
}


def test_what_is_named_counts_and_is_served(tmp_path: Path) -> None:
    running = Running(tmp_path, STREAMS).start()
    for name, table in STREAMS.items():
        made = Curated.of(running.configuration.streams[name])
        assert made.mechanism.mechanism == table["mechanism"]  # type: ignore[union-attr]
        tags: list[Any] = ["a"] * 300 + ["b"] * 200
        if table.get("sets"):
            tags = [["a", "b"]] * 200 + [["a", "a"]] * 100
        sent = running.send(name, [{"tags": each, "who": f"v{n}"} for n, each in enumerate(tags)])
        assert sent.status_code == 202
    running.pass_ticks()
    running.again()  # the state of every mechanism is restored
    running.pass_ticks()
    for name in STREAMS:
        found = {item["item"]: item["count"] for item in running.latest(name)["items"]}
        assert found == pytest.approx({"a": 300, "b": 200}, abs=60), name
        rose = running.client.get(f"/v1/streams/{name}/increases", params={"over": 1}).json()
        assert {row["item"] for row in rose["increases"][0]["items"]} == {"a", "b"}, name
    running.stop()


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_the_question_of_a_watch(name: str) -> None:
    definition = configuration({"streams": {name: STREAMS[name]}}).streams[name]
    words = {key: STREAMS[name].get(key) for key in ("column", "user", "max_items", "mechanism", "switches")}
    live = LiveQuestion(
        **words, universe=definition.universe, sets=bool(definition.sets), tick="60s", horizon=4, k=2
    )  # fmt: skip
    assert definition.live == live
    assert task_for(definition, 4) == task_of(live, 4)
    assert definition.public_form()["mechanism"] == STREAMS[name]["mechanism"]


def test_every_mechanism_of_the_question_is_a_mechanism_of_streams() -> None:
    """There is one list of them: that of the word."""
    with pytest.raises(ParameterError, match=r"streams\.s: mechanism must be (.*), not 'best'") as refused:
        configuration({"streams": {"s": {**STREAMS["tree"], "mechanism": "best"}}})
    with pytest.raises(ParameterError) as asked:
        LiveQuestion(column="tags", universe=("a",), tick="1m", mechanism="best")
    assert str(refused.value) == f"streams.s: {asked.value}"


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("tree", {"universe": None}, "mechanism needs universe or sets or user"),
        ("people", {"mechanism": "meta"}, "mechanism must be factorised or tree where people are hidden"),
        ("tree", {"switches": 2}, "switches is for mechanism sparse"),
        ("sparse", {"universe": None, "sets": True}, "mechanism sparse needs universe"),
        ("sparse", {"sets": True, "max_items": 2}, "mechanism sparse cannot be combined with max_items"),
        ("meta", {"mechanism": "tree"}, "max_items needs user or sets"),
        ("tree", {"kind": "count", "column": None, "k": None, "universe": None}, "mechanism cannot be used with count"),
    ],
)
def test_what_does_not_go_together_is_refused_in_the_words_of_the_file(
    name: str, change: dict[str, Any], why: str
) -> None:
    table = {key: value for key, value in {**STREAMS[name], **change}.items() if value is not None}
    with pytest.raises(ParameterError, match=rf"streams\.s: {why}"):
        configuration({"streams": {"s": table}})


def test_the_forecast_says_what_a_mechanism_may_lack() -> None:
    definitions = configuration({"streams": STREAMS}).streams
    told = {name: " ".join(forecast(name, definition)["error"]) for name, definition in definitions.items()}
    for name in ("meta", "meta-of-two", "meta-listed"):
        assert "too high at the last tick" in told[name]
        assert "did not list the item" in told[name]
    for name in ("tree", "sparse", "people"):
        assert "did not list" not in told[name]


def test_streams_without_a_mechanism_are_what_they_were() -> None:
    plain = {key: value for key, value in STREAMS["tree"].items() if key != "mechanism"}
    definition = configuration({"streams": {"s": plain}}).streams["s"]
    assert not {"mechanism", "switches"} & definition.public_form().keys()
    assert definition.digest != configuration({"streams": {"s": STREAMS["tree"]}}).streams["s"].digest
