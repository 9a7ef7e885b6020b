"""The page of streams that begin anew every day, in a real Chromium: today beside the days before, bars, one day."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.service.stage import DESKTOP, PHONE, Stage, Tab, browser
from tests.service.test_page import axe_finds_nothing

__all__ = ["browser"]

DAY: dict[str, Any] = {"tick": "8h", "per": "1d", "epsilon": 1000.0, "delta": 1e-6, "public": True}
STREAMS: dict[str, Any] = {
    "visitors": {"title": "Visitors", "kind": "distinct", "user": "visitor", **DAY},
    "searches": {
        "title": "Searches", "kind": "top", "column": "query", "user": "visitor", "max_items": 3, "k": 20, **DAY,
    },
}  # fmt: skip
DAYS = 9
PATHS = ["/", "/streams/visitors", "/streams/searches"]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Nine days of three ticks, and one tick of the tenth."""
    made = Stage(tmp_path_factory.mktemp("days"), STREAMS, title="Our town")
    made.clock.now = made.clock.now // 86400 * 86400 - (DAYS + 1) * 86400 + 0.5
    with made as running:
        for tick in range(3 * DAYS + 1):
            found = {"weather": 40 + 3 * tick, "cinema": 30}
            running.tick(8 * 3600.0, visitors=50 + 10 * (tick // 3), searches=found)
        yield running


@pytest.fixture
def tab(browser: Browser, stage: Stage) -> Iterator[Callable[..., Tab]]:
    with ExitStack() as open_tabs:
        yield lambda address=stage.address, **how: open_tabs.enter_context(Tab(browser, address, **how))


def finals(stage: Stage, name: str = "visitors") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stage.client.get(f"/v1/streams/{name}/releases?final=true").json()["releases"]
    return found


def test_final_releases_are_one_a_day(stage):
    found = finals(stage)
    assert [release["tick"] for release in found] == list(range(3, 3 * DAYS + 1, 3))
    assert all(release["final"] for release in found)
    assert len({release["period"] for release in found}) == DAYS
    text = stage.client.get("/v1/streams/searches/releases?final=true&from=4&format=csv").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["period"] for row in rows} == {release["period"] for release in found[1:]}
    assert {row["final"] for row in rows} == {"true"}
    part = stage.client.get(f"/v1/streams/visitors/releases?final=true&from={found[2]['begins']}&to={found[4]['ends']}")
    assert [release["period"] for release in part.json()["releases"]] == [one["period"] for one in found[2:5]]


def test_today_beside_the_days_before(tab, stage):
    mine = tab()
    page = mine.open("/streams/visitors")
    done, today = finals(stage), stage.latest("visitors")
    boxes = page.locator("#days-beside .beside")
    for box, release, title in zip(
        boxes.all(), (today, done[-1], done[-7]), ("Today so far", "Yesterday", "A week before"), strict=True
    ):
        expect(box.get_by_role("heading")).to_have_text(title)
        expect(box.locator("strong")).to_have_text(f"{release['value']:,}")
        expect(box).to_contain_text(f"between {release['lower']:,} and {release['upper']:,}", ignore_case=True)
    by_then = stage.client.get(f"/v1/streams/visitors/releases?from={done[-2]['tick'] + 1}&to={done[-2]['tick'] + 1}")
    expect(boxes.nth(1)).to_contain_text(f"{by_then.json()['releases'][0]['value']:,} by this time of the day")
    expect(page.locator("#days-bars .day")).to_have_count(DAYS + 1)
    expect(page.locator("#days-bars .day.open")).to_have_count(1)
    heights = page.locator("#days-bars .column").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().height)"
    )
    assert heights[0] < heights[DAYS - 1]  # more people every day
    assert heights[DAYS] < heights[DAYS - 1]  # so far
    assert mine.errors == []


def test_a_day_is_chosen(tab, stage):
    mine = tab()
    page = mine.open("/streams/visitors")
    done = finals(stage)
    page.get_by_label("Day", exact=True).fill(done[3]["period"])
    expect(page.locator("#at .value")).to_contain_text(f"{done[3]['value']:,}")
    expect(page.locator("#tick")).to_have_value(str(done[3]["tick"]))
    expect(page.locator("#days-bars .chosen")).to_have_attribute("data-day", done[3]["period"])
    expect(page.locator("#downloads a", has_text="CSV").last).to_have_attribute("href", re.compile("from=10&to=12"))
    page.get_by_role("button", name="The day after").click()
    expect(page.locator("#at .value")).to_contain_text(f"{done[4]['value']:,}")
    page.locator(f"#days-bars [data-day='{done[0]['period']}']").click()
    expect(page.get_by_label("Day", exact=True)).to_have_value(done[0]["period"])
    expect(page.locator("#at .value")).to_contain_text(f"{done[0]['value']:,}")
    page.get_by_label("Since").select_option("1")
    (risen,) = stage.client.get("/v1/streams/visitors/increases?over=1&from=3&to=3").json()["increases"]
    expect(page.locator("#since-said")).to_contain_text(f"({risen['lower']:,} to {risen['upper']:,})")
    assert mine.errors == []


def test_the_table_and_its_files(tab, stage):
    page = tab().open("/streams/searches")
    page.get_by_text("A table by day").click()
    rows = page.locator("#days-table tbody tr")
    expect(rows).to_have_count(DAYS + 1)
    expect(rows.first).to_contain_text("so far")
    page.get_by_label("Item").select_option("cinema")
    last = next(row for row in finals(stage, "searches")[-1]["items"] if row["item"] == "cinema")
    expect(rows.nth(1)).to_contain_text(f"{last['lower']:,} to {last['upper']:,}")
    with page.expect_download() as download:
        page.locator("#days-files a", has_text="JSON").last.click()
    kept = json.loads(Path(download.value.path()).read_text())
    assert [release["period"] for release in kept["releases"]] == [one["period"] for one in finals(stage, "searches")]


def test_cards_say_so_far_and_yesterday(tab, stage):
    card = tab().open("/").locator("[data-stream=visitors]")
    expect(card.locator(".value")).to_contain_text("people so far today")
    expect(card).to_contain_text(f"{finals(stage)[-1]['value']:,}")
    expect(card.locator("[role=img]")).to_have_attribute("aria-label", re.compile(r"Visitors, from [\d,]+ on .* to "))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("how", [PHONE, {"color_scheme": "dark", **DESKTOP}], ids=["phone", "dark"])
def test_axe_finds_nothing(tab, path, how):
    page = tab(**how).open(path)
    axe_finds_nothing(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= how["viewport"]["width"]


def test_an_empty_first_day_and_a_midnight(tab, tmp_path):
    with Stage(tmp_path, {"visitors": STREAMS["visitors"]}) as stage:
        stage.clock.now = stage.clock.now // 86400 * 86400 - 86400 + 0.5
        stage.stop()
        stage.folder = tmp_path / "again"
        stage.start()
        mine = tab(stage.address)
        page = mine.open("/streams/visitors")
        expect(page.locator("#days-beside")).to_contain_text("not known yet", ignore_case=True)
        expect(page.locator("#days-bars")).to_be_hidden()
        axe_finds_nothing(page)
        expect(page.locator("#connection")).to_have_text("live")
        for _ in range(3):
            stage.tick(8 * 3600.0, visitors=100)
        expect(page.locator("#days-bars .day")).to_have_count(1)
        first = stage.latest("visitors")
        assert first["final"]
        stage.tick(8 * 3600.0, visitors=30)  # of the next day
        expect(page.locator("#days-bars .day")).to_have_count(2)
        boxes = page.locator("#days-beside .beside strong")
        expect(boxes.nth(0)).to_have_text(f"{stage.latest('visitors')['value']:,}")
        expect(boxes.nth(1)).to_have_text(f"{first['value']:,}")
        assert mine.errors == []


def test_forty_streams(tab, tmp_path):
    many = {f"stream-{number}": {**STREAMS["visitors"], "title": f"Stream {number}"} for number in range(40)}
    with Stage(tmp_path, many) as stage:
        stage.pass_ticks(2, 8 * 3600.0)
        mine = tab(stage.address, **PHONE)
        page = mine.open("/")
        expect(page.locator("article.card")).to_have_count(40)
        axe_finds_nothing(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert mine.errors == []
