"""What a stream keeps to: its definition, its grants, its ticks and days, and what it says of them."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import START, STREAMS, Running

import discreet as dc
from discreet.errors import LedgerError, ParameterError
from discreet.service.definitions import StreamDefinition, configuration
from discreet.service.journal import LogLines
from discreet.service.runtime import Service, status_of
from discreet.service.streams import Arrival

VISITS: dict[str, Any] = STREAMS["visits"]
SHORT: dict[str, Any] = {**VISITS, "horizon": "5m"}


def service(running: Running, streams: dict[str, Any]) -> Service:
    """Another process on the folder of one that was stopped."""
    return Service(configuration({"streams": streams}), running.folder, running.clock)


# ---- definitions ----------------------------------------------------------------------------------------------------


def test_who_pays_is_fixed(tmp_path: Path) -> None:
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    for name in ("readers", "others"):
        ledger.grant(name, dc.Budget(1e6, 1e-3))
    people = {**STREAMS["people"], "account": "readers"}
    running = Running(tmp_path / "data", {"people": people}, ledger=str(tmp_path / "budgets.sqlite")).start()
    with pytest.raises(ParameterError, match='account was "readers" and is "others"'):
        running.again({"people": {**people, "account": "others"}}, ledger=str(tmp_path / "budgets.sqlite"))
    (told,) = status_of(tmp_path / "data", tmp_path / "budgets.sqlite")
    assert told["account"] == "readers"
    assert ledger.account("others").spent().epsilon == 0


def test_words_that_say_what_is_so_anyway_change_nothing() -> None:
    """Streams that began before these words were there go on."""
    for more in ({"sets": False}, {"unit": "person"}, {"title": "Searches"}, {"where": {}}, {"sites": []}):
        one, other = (
            StreamDefinition.model_validate({**STREAMS["searches"], **each}) for each in ({"public": True}, more)
        )
        assert one.fixed() == other.fixed()
        assert one.digest == other.digest


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"sites": ["a.example"], "column": "page", "user": "who"}, 'user must be "visitor"'),
        ({"sites": ["a.example"], "column": "colour"}, "can only have the fields page, host"),
        ({"sites": ["a.example"], "column": "host"}, None),
    ],
)
def test_events_of_a_site_have_the_fields_that_they_have(words: dict[str, Any], why: str | None) -> None:
    table = {**STREAMS["searches"], "user": "visitor", **words}
    if why is None:
        configuration({"streams": {"it": table}})
        return
    with pytest.raises(ParameterError, match=why):
        configuration({"streams": {"it": table}})


# ---- grants ---------------------------------------------------------------------------------------------------------

GRANT = {"epsilon": 7.0, "delta": 1e-6}


@pytest.mark.parametrize("now", [[], [{**GRANT, "epsilon": 8.0}], [{**GRANT, "delta": 2e-6}, GRANT], [GRANT] * 2])
def test_grants_that_were_announced_stay_and_others_may_follow(tmp_path: Path, now: list[dict[str, float]]) -> None:
    running = Running(tmp_path, {"visits": {**SHORT, "following": [GRANT]}}).start()
    running.stop()
    if now[:1] == [GRANT]:
        again = service(running, {"visits": {**SHORT, "following": now}})
        assert len(again.store.streams()["visits"].grants) == 2
        again.stop()
        return
    with pytest.raises(ParameterError, match="cannot be changed"):
        service(running, {"visits": {**SHORT, "following": now}})


@pytest.mark.parametrize(("seconds", "in_time"), [(239.0, True), (241.0, False), (600.0, False)])
def test_a_grant_is_announced_a_tick_before_the_end(tmp_path: Path, seconds: float, in_time: bool) -> None:
    running = Running(tmp_path, {"visits": SHORT}).start()
    running.stop()
    running.clock.now = START + seconds
    longer = {"visits": {**SHORT, "following": [GRANT]}}
    if in_time:
        service(running, longer).stop()
        return
    with pytest.raises(ParameterError, match=r"announced before the end; stream 'visits' ends at 2027-01-15T08:05:00Z"):
        service(running, longer)


def test_what_all_horizons_spend_is_the_sum(tmp_path: Path) -> None:
    running = Running(tmp_path, {"visits": {**SHORT, "following": [GRANT, GRANT]}}).start()
    for run in (1, 2, 3):
        shown = running.client.get("/v1/streams/visits").json()
        spent = shown["budget"]["spent"]
        assert (spent["epsilon"], shown["run"]) == (pytest.approx(1e5 + 7 * (run - 1)), run)
        assert spent["delta"] == pytest.approx(1e-6 * run)
        assert shown["budget"]["granted"] == spent
        assert (shown["following"] is None) == (run == 3)
        (told,) = status_of(running.folder)
        assert (told["ends"], told["ticks"]) == ("2027-01-15T08:15:00Z", 15)
        running.pass_ticks(5 if run == 1 else 6 - run % 2)
        running.send("visits", [{}])
        running.pass_ticks(1)
    running.stop()


def test_an_account_of_the_streams_name_that_others_charged_is_theirs(tmp_path: Path) -> None:
    """Also where it was granted as the stream would grant it."""
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("visits", dc.Budget(1e5, 1e-6))
    ledger.account("visits").charge(dc.Budget(1.0, 1e-9), "nightly", unit=dc.privacy.Event())
    with pytest.raises(LedgerError, match='set account = "visits"'):
        Service(configuration({"streams": {"visits": VISITS}}), tmp_path)


def test_increases_are_of_the_noise_of_their_own_horizon(tmp_path: Path) -> None:
    """A horizon with a smaller budget has wider intervals."""
    streams = {"visits": {**SHORT, "epsilon": 1000.0, "following": [{"epsilon": 1.0, "delta": 1e-6}]}}
    running = Running(tmp_path, streams).start()
    widths = []
    for _ in range(2):
        running.pass_ticks(5)
        found = running.client.get(f"/v1/streams/visits/increases?from={5 * len(widths) + 1}&to=99").json()["increases"]
        widths.append({rise["upper"] for rise in found})
    assert max(widths[0]) < 10 < max(widths[1])
    running.stop()


# ---- surveys ---------------------------------------------------------------------------------------------------------


def test_the_counts_of_a_survey_could_be_and_add_up(tmp_path: Path) -> None:
    """The largest first; nothing below 0, though nobody chose two of the options."""
    lunch = {**STREAMS["lunch"], "options": ["never", "yes", "seldom", "no"], "epsilon": 1.0}
    running = Running(tmp_path, {"lunch": lunch}).start()
    protocol = dc.multiparty.protocol_from_dict(running.client.get("/v1/streams/lunch/round").json())
    answers = ["no"] * 1200 + ["yes"] * 400
    message = protocol.party(0, source=None).encode(answers)
    token = running.token("ingest")
    sent = running.client.post("/v1/streams/lunch/messages", content=message, headers=token)
    assert sent.json() == {"accepted": 1600, "repeated": 0}
    running.pass_ticks()
    release = running.latest("lunch")
    counts = [row["count"] for row in release["items"]]
    assert (release["reports"], len(counts)) == (1600, 4)
    assert abs(sum(counts) - 1600) <= 2  # each is rounded
    assert min(counts) >= 0
    assert counts == sorted(counts, reverse=True)
    assert [row["item"] for row in release["items"]][:2] == ["no", "yes"]
    assert all(row["lower"] <= row["count"] <= row["upper"] for row in release["items"])
    running.again()
    running.pass_ticks()
    assert running.latest("lunch")["items"] == release["items"]  # nothing is drawn: it says the same again
    running.stop()


# ---- days -----------------------------------------------------------------------------------------------------------

DAY: dict[str, Any] = {key: VISITS[key] for key in VISITS if key != "horizon"} | {"per": "1d", "tick": "1h"}


def test_a_stream_of_days_has_nothing_that_follows_and_waits_for_late_events(tmp_path: Path) -> None:
    timed = {**DAY, "time": "at", "late": "30m"}
    running = Running(tmp_path, {"plain": DAY, "timed": timed}).start()
    plain, late = (running.client.get(f"/v1/streams/{name}").json() for name in ("plain", "timed"))
    assert plain["following"] is late["following"] is None
    assert (plain["state"], plain["per"], plain["period"]) == ("running", "1d", "2027-01-15")
    assert plain["next_tick"] == "2027-01-15T09:00:00Z"
    assert late["next_tick"] == "2027-01-15T08:30:00Z"  # the hour before is still open
    told = [json.dumps(each["guarantee"]) for each in (plain, late)]
    assert ["an event is in the tick in which it arrived" in each for each in told] == [True, False]
    assert ["which day an event is in is decided by its time" in each for each in told] == [False, True]
    (one, other) = sorted(status_of(running.folder), key=lambda row: str(row["name"]))
    assert one["ticks"] is other["ticks"] is None
    running.stop()


def test_a_tick_that_waited_for_late_events_was_not_missed(tmp_path: Path) -> None:
    timed = {**DAY, "time": "at", "late": "3h", "public": True}
    running = Running(tmp_path, {"visits": timed}).start()
    running.pass_ticks(1, 3600.0)
    assert [running.latest("visits")["missed"], running.service.streams["visits"].ticks_missed] == [False, 0]
    running.pass_ticks(2, 3600.0)  # at once: the first of them was over for an hour
    found = running.client.get("/v1/streams/visits/releases?from=2").json()["releases"]
    assert [release["missed"] for release in found] == [True, False]
    assert running.service.streams["visits"].ticks_missed == 1
    running.stop()


def test_a_stream_is_late_after_a_tick_and_ten_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(tmp_path, {"visits": {**VISITS, "tick": "1h"}}).start()
    stream = running.service.streams["visits"]
    monkeypatch.setattr(stream, "work", lambda: False)
    for seconds, late in ((3600.0, False), (7209.0, False), (7212.0, True)):
        running.clock.now = START + seconds
        running.pass_ticks(0)
        assert stream.is_late == late, seconds
        assert running.client.get("/readyz").status_code == (503 if late else 200)
    running.stop()


# ---- what is held, and for how long ---------------------------------------------------------------------------------


def test_the_file_of_a_pan_stream_tells_no_time_at_the_end(running: Running) -> None:
    """It is written anew when the process ends, whether somebody came since or not."""
    path = running.folder / "streams" / "hidden-visitors" / "pan.state"
    before = os.stat(path).st_ino, path.stat().st_mtime_ns
    running.stop()
    assert (os.stat(path).st_ino, path.stat().st_mtime_ns) != before
    running.start()


def test_while_events_go_to_the_disk_only_what_is_kept_of_them_is_held(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    submit = running.service.submit

    def noted(stream: Any, arrival: Arrival, done: Any) -> None:
        held.append(running.service.shares.used)
        submit(stream, arrival, done)

    monkeypatch.setattr(running.service, "submit", noted)
    assert running.send("visits", [{"pad": "x" * 100_000}]).status_code == 202
    assert held == [64]
    assert running.service.shares.used == 0


def test_a_tracker_sends_no_more_than_others(tmp_path: Path) -> None:
    running = Running(tmp_path, {"visits": VISITS}, limits={"body_bytes": 2000}).start()
    event = {"n": "pageview", "u": "https://a.example/", "d": "a.example", "pad": "x" * 3000}
    assert running.client.post("/api/event", content=json.dumps(event)).status_code == 413
    running.stop()
    running = Running(tmp_path / "usual", {"visits": VISITS}).start()
    for size, status in ((60_000, 202), (70_000, 413)):
        event["pad"] = "x" * size
        assert running.client.post("/api/event", content=json.dumps(event)).status_code == status
    assert "strict-transport-security" not in running.client.get("/healthz").headers
    running.stop()


def test_a_line_of_the_log_has_its_time_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logging.LogRecord("discreet.service", logging.WARNING, "", 0, "%s", ("said",), None)
    record.created, record.msecs = 1_800_000_000.25, 250.0
    try:
        with monkeypatch.context() as here:
            here.setenv("TZ", "America/New_York")
            time.tzset()
            line = json.loads(LogLines().format(record))
    finally:
        time.tzset()
    assert line == {"time": "2027-01-15T08:00:00.250Z", "level": "warning", "event": "message", "message": "said"}
