"""The page of the live service in a real Chromium: what people see, what they can do, what stays out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from tests.service.conftest import catch_up
from tests.service.stage import DESKTOP, PHONE, Stage, Tab, browser

import discreet as dc
from discreet.service.routes import PAGE

__all__ = ["browser"]

PRECISE = {"tick": "1m", "horizon": "1d", "epsilon": 1000.0, "delta": 1e-6, "public": True}
TOP = {"kind": "top", "column": "query", "user": "visitor", "max_items": 3, "k": 50, **PRECISE}
COUNT = {"kind": "count", **PRECISE}
QUERIES = [
    *("weather", "bus times", "cinema", "pharmacy", "pizza", "museum", "library", "used bikes", "dentist", "gym"),
    *("bakery", "florist"),
]
STREAMS: dict[str, Any] = {
    "searches": {"title": "What people search for", **TOP},
    "visitors": {"title": "Visitors", "kind": "distinct", "user": "visitor", **PRECISE},
    "page-views": {"title": "Pages read", **COUNT},
    "market": {
        "kind": "survey", "question": "Close the square to cars?", "options": ["Yes", "At weekends", "No"],
        "tick": "1m", "horizon": "1d", "epsilon": 2.0, "public": True, "open": True,
    },
    "new": {"title": "What people buy", **TOP, "tick": "1d", "horizon": "30d"},
    "inside": {"title": "Inside", **COUNT, "public": False},
}  # fmt: skip
SEEN = len(STREAMS) - 1
TICKS = 12
PATHS = ["/", *(f"/streams/{name}" for name in STREAMS if name != "inside"), "/streams/nothing"]
HOSTILE = [
    "<img src=x onerror=\"document.title='taken over'\">",
    "<script>document.title='taken over'</script>",
    "\u202egnp.elif",
    "שלום עולם, مرحبا",
    "👩‍👩‍👧‍👦 family 🏳️‍🌈",
    "long " * 100,
    "x" * 500,
    "a\u0007b\nc",
]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One of everything, with a past of some ticks."""
    with Stage(tmp_path_factory.mktemp("service"), STREAMS, ago=TICKS, title="Our town") as running:
        survey = dc.multiparty.protocol_from_dict(running.client.get("/v1/streams/market/round").json())
        for tick in range(TICKS):
            for number in range(3):
                message = survey.party(10 * tick + number).encode(["Yes"])
                assert running.client.post("/v1/streams/market/messages", content=message).status_code == 202
            found = {item: 60 - 4 * place + tick for place, item in enumerate(QUERIES)}
            running.tick(searches=found, visitors=25, page_views=40 + tick, inside=5)
        yield running


@pytest.fixture
def tab(browser: Browser, stage: Stage) -> Iterator[Callable[..., Tab]]:
    with ExitStack() as open_tabs:
        yield lambda address=stage.address, **how: open_tabs.enter_context(Tab(browser, address, **how))


# ---- It renders, quietly


def test_a_stream_without_days_draws_none_when_their_box_changes_its_size(tab):
    mine = tab()
    mine.open("/streams/searches")
    mine.page.evaluate(
        """() => new Promise((done) => {
          document.getElementById("days").hidden = false;
          document.getElementById("days-bars").style.height = "10px";
          requestAnimationFrame(() => requestAnimationFrame(done));
        })"""
    )
    assert mine.errors == []


@pytest.mark.parametrize("path", PATHS)
def test_no_error_and_no_other_host(tab, stage, path):
    mine = tab()
    mine.open(path)
    if path == "/streams/nothing":  # the browser itself notes the 404
        mine.errors = [error for error in mine.errors if "40" not in error]
    assert mine.errors == []
    assert mine.hosts == {urlsplit(stage.address).netloc}


def test_cards(tab, stage):
    page = tab().open("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Our town")
    expect(page.locator("article.card")).to_have_count(SEEN)
    card = page.locator("[data-stream=visitors]")
    expect(card.locator(".value")).to_have_text(f"{stage.latest('visitors')['value']:,} people")
    for text in ("between", "each person", "Until"):
        expect(card).to_contain_text(text)
    expect(card.locator("canvas")).to_be_visible()
    page.wait_for_function(
        "[...document.querySelectorAll('.spark:not([hidden])')].every(spark => "
        "Math.abs(spark.clientHeight - spark.querySelector('canvas').clientHeight) < 2)"
    )
    said = card.locator("[role=img]").get_attribute("aria-label")
    assert re.fullmatch(r"Visitors, from [\d,]+ at .* to [\d,]+ at .*", said)
    expect(page.locator("[data-stream=market]")).to_contain_text("Close the square to cars?")
    card.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Visitors")


def test_stream_page_says_what_there_is_to_say(tab, stage):
    page = tab().open("/streams/searches")
    facts = stage.client.get("/v1/streams/searches").json()
    for where, text in {
        "#promise": facts["promise"],
        "#budget": "nothing more is planned",
        "#downloads": "Everything so far",
        "#definition": facts["digest"],
        "#at": "19 times out of 20",
    }.items():
        expect(page.locator(where)).to_contain_text(text)
    expect(page.locator(".ranking tbody tr")).to_have_count(10)
    page.get_by_role("button", name="Show all 12").click()
    expect(page.locator(".ranking tbody tr")).to_have_count(12)
    first = stage.latest("searches")["items"][0]
    expect(page.locator(".ranking tbody tr").first).to_contain_text(f"{first['lower']:,} to {first['upper']:,}")
    page.get_by_text("The numbers of this chart as a table").click()
    expect(page.locator("#table tbody tr")).to_have_count(10)
    expect(page.locator("#table thead th")).to_have_count(4)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator("#table tbody tr")).to_have_count(TICKS)


def test_downloads(tab, stage):
    mine = tab()
    page = mine.open("/streams/page-views")
    for form in ("CSV", "JSON", "Arrow"):
        with page.expect_download() as got:
            page.locator("#downloads a", has_text=form).first.click()
        content = Path(got.value.path()).read_bytes()
        assert content == stage.client.get(f"/v1/streams/page-views/releases?from=1&format={form.lower()}").content
    # One that is not public comes with the token of the tab.
    page.get_by_text("For operators").click()
    page.get_by_label("Token").fill(stage.token("read")["Authorization"].removeprefix("Bearer "))
    page.get_by_role("button", name="Use").click()
    page = mine.open("/streams/inside")
    with page.expect_download() as got:
        page.locator("#downloads a", has_text="CSV").first.click()
    assert got.value.suggested_filename == "inside.csv"
    assert Path(got.value.path()).read_text().count("\n") == TICKS + 1


def test_items_of_the_chart_are_chosen_in_the_list(tab):
    page = tab().open("/streams/searches")
    expect(page.locator("#legend bdi")).to_have_count(3)
    page.get_by_role("checkbox", name="Show museum over time").check()
    expect(page.locator("#legend bdi")).to_have_count(4)
    expect(page.get_by_role("checkbox", name="Show museum over time")).to_be_focused()
    page.get_by_role("checkbox", name="Show weather over time").uncheck()
    expect(page.locator("#legend bdi")).to_have_count(3)
    expect(page.locator("#chart")).to_have_attribute("aria-label", re.compile("museum ends at between"))
    page.get_by_label("Period").select_option("everything so far")
    expect(page.locator("#chart canvas")).to_be_visible()


def test_increases(tab, tmp_path):
    with Stage(
        tmp_path, {"visits": {**COUNT, "horizon": "20m", "following": [{"epsilon": 1000.0, "delta": 1e-6}]}}, ago=40
    ) as stage:
        for tick in range(24):
            stage.tick(visits=100 if tick < 14 else 500)
        (risen,) = stage.client.get("/v1/streams/visits/increases?over=12&from=20&to=20").json()["increases"]
        page = tab(stage.address).open("/streams/visits")
        page.get_by_label("Show", exact=True).select_option("increase over 12 minutes")
        expect(page.locator("#time-note")).to_contain_text("hold the true increases 19 times out of 20")
        page.get_by_label("Moment shown").focus()
        slider = page.locator("#tick")
        for tick in (20, 12, 22):  # in the first run; too early; in the second run, across its beginning
            while int(slider.input_value()) != tick:
                slider.press("ArrowLeft" if int(slider.input_value()) > tick else "ArrowRight")
            if tick == 20:
                assert (risen["since"], risen["lower"] <= 3600 <= risen["upper"]) == (8, True)
                expect(page.locator("#legend")).to_contain_text(f"{risen['value']:,}")
                expect(page.locator("#legend")).to_contain_text(f"{risen['lower']:,} to {risen['upper']:,}")
            else:
                expect(page.locator("#legend")).to_contain_text("not known")


def test_moments_by_keyboard(tab, stage):
    page = tab().open("/streams/page-views")
    slider = page.get_by_label("Moment shown")
    slider.focus()
    for key, tick in (("Home", 1), ("ArrowRight", 2), ("End", TICKS)):
        slider.press(key)
        expect(slider).to_have_value(str(tick))
        expect(slider).to_have_attribute("aria-valuetext", re.compile(f"tick {tick} of {TICKS}$"))
        (release,) = stage.client.get(f"/v1/streams/page-views/releases?from={tick}&to={tick}").json()["releases"]
        expect(page.locator("#at .value")).to_contain_text(f"{release['value']:,} event")
    expect(page.get_by_role("button", name="Follow the latest")).to_have_attribute("aria-pressed", "true")


def test_everything_can_be_reached_by_keyboard(tab):
    page = tab().open("/streams/searches")
    reached = set()
    for _ in range(50):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(e => e.id || e.className || e.tagName)(document.activeElement)"))
    assert {"skip", "mark", "latest", "tick", "span", "button"} <= reached


def test_a_long_past_is_thinned(tab, tmp_path):
    with Stage(tmp_path, {"visits": COUNT}, ago=500) as stage:
        stage.tick(visits=10)
        stage.pass_ticks(299)
        asked = []
        mine = tab(stage.address)
        mine.page.on("response", lambda answer: "/releases" in answer.url and asked.append(answer))
        page = mine.open("/streams/visits")
        page.get_by_label("Period").select_option("everything so far")
        expect(page.locator("#downloads a", has_text="CSV").last).to_have_attribute("href", re.compile("from=2&"))
        assert [release["tick"] for release in asked[-1].json()["releases"]] == list(range(2, 301, 2))
        slider = page.get_by_label("Moment shown")
        slider.press("Home")  # one that is not in the chart
        expect(page.locator("#at .value")).to_contain_text("event")
        expect(slider).to_have_attribute("aria-valuetext", re.compile("tick 1 of 300$"))
        assert mine.errors == []


# ---- New ticks


def test_a_new_tick_appears_without_a_reload(tab, tmp_path):
    with Stage(tmp_path, {"searches": TOP, "visits": COUNT}, ago=10) as stage:
        for _ in range(3):
            stage.tick(searches={"cats": 40, "dogs": 20}, visits=30)
        mine = tab(stage.address)
        page = mine.open("/streams/searches")
        page.evaluate("window.mark = 1")
        expect(page.locator("#connection")).to_have_text("live")
        row = page.locator(".ranking tbody tr").first
        before = stage.latest("searches")["items"][0]["count"]
        expect(row).to_contain_text(f"{before:,}")
        stage.tick(searches={"cats": 1000})
        after = stage.latest("searches")["items"][0]["count"]
        expect(row).to_contain_text(f"{after:,}")
        expect(page.locator("#tick")).to_have_attribute("max", "4")
        page.locator("#tick").press("ArrowLeft")  # a look back is not disturbed
        expect(row).to_contain_text(f"{before:,}")
        stage.tick(searches={"cats": 10})
        expect(page.locator("#tick")).to_have_attribute("max", "5")
        expect(page.locator("#tick")).to_have_value("3")
        expect(row).to_contain_text(f"{before:,}")
        page.get_by_role("button", name="Follow the latest").click()
        expect(page.locator("#tick")).to_have_value("5")
        assert page.evaluate("window.mark") == 1

        page = mine.open("/")
        page.evaluate("window.mark = 1")
        stage.tick(visits=5000)
        value = stage.latest("visits")["value"]
        expect(page.locator("[data-stream=visits] .value")).to_contain_text(f"{value:,}")
        assert page.evaluate("window.mark") == 1
        assert mine.errors == []


def test_numbers_of_no_use_say_so(tab, tmp_path):
    noise = {
        "kind": "distinct", "user": "visitor", "tick": "1m", "horizon": "1d", "epsilon": 2.0, "trust": "pan",
        "public": True,
    }  # fmt: skip
    with Stage(tmp_path, {"noise": noise}) as stage:
        stage.tick()
        mine = tab(stage.address)
        for path, where in (("/", ".card"), ("/streams/noise", "#warnings")):
            expect(mine.open(path).locator(f"{where} .notice")).to_contain_text("the numbers are of no use")


def test_the_first_tick_of_a_new_stream(tab, tmp_path):
    with Stage(tmp_path, {"searches": TOP}) as stage:
        mine = tab(stage.address)
        expect(mine.open("/").locator("[data-stream=searches]")).to_contain_text("No number yet")
        page = mine.open("/streams/searches")
        expect(page.locator("#at")).to_contain_text("No number yet")
        expect(page.locator("#connection")).to_have_text("live")
        stage.tick(searches={"cats": 40})
        expect(page.locator(".ranking tbody tr")).to_have_count(1)
        expect(page.locator("#chart canvas")).to_be_visible()


def test_a_service_that_was_away(tab, tmp_path):
    with Stage(tmp_path, {"visits": COUNT}, ago=20) as stage:
        stage.tick(visits=10)
        page = tab(stage.address).open("/streams/visits")
        expect(page.locator("#connection")).to_have_text("live")
        stage.stop()
        expect(page.locator("#connection")).to_contain_text("not connected")
        stage.clock.now += 240
        stage.start()
        catch_up(stage.service)
        expect(page.locator("#tick")).to_have_attribute("max", "5")
        expect(page.locator("#connection")).to_have_text("live")
        page.locator("#tick").press("Home")
        expect(page.locator("#at")).not_to_contain_text("was not running")
        page.locator("#tick").press("ArrowRight")
        expect(page.locator("#at")).to_contain_text("was not running when this tick ended")


def test_a_stream_goes_on_and_ends(tab, tmp_path):
    short = {**COUNT, "horizon": "3m", "following": [{"epsilon": 500.0, "delta": 1e-7}]}
    with Stage(tmp_path, {"visits": short}, ago=10) as stage:
        for _ in range(2):
            stage.tick(visits=100)
        mine = tab(stage.address)
        page = mine.open("/streams/visits")
        expect(page.locator("#budget")).to_contain_text("ε 500, δ 1e-7 more from")
        expect(page.locator("#connection")).to_have_text("live")
        for _ in range(3):
            stage.tick(visits=100)
        expect(page.locator("#tick")).to_have_attribute("max", "5")
        expect(page.locator("#budget")).to_contain_text("ε 1,500")
        expect(page.locator("#budget")).to_contain_text("5 of 6 ticks")
        stage.tick(visits=100)
        expect(page.locator("#connection")).to_have_text("ended")
        expect(page.locator("#budget")).to_contain_text("takes no more events")
        page = mine.open("/")
        expect(page.locator("[data-stream=visits]")).to_contain_text("Ended")
        assert mine.errors == []


# ---- For those with a token


def test_tokens(tab, stage):
    mine = tab()
    page = mine.open("/")
    expect(page.locator("[data-stream=inside]")).to_have_count(0)
    page.get_by_text("For operators").click()

    def give(token: str, said: str) -> None:
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Use").click()
        expect(page.locator("#operator")).to_contain_text(said)

    give("wrong", "not known")
    give(stage.token("read")["Authorization"].removeprefix("Bearer "), "not one for administration")
    expect(page.locator("[data-stream=inside]")).to_be_visible()
    give(stage.token("admin")["Authorization"].removeprefix("Bearer "), "Running for")
    expect(page.locator("#status tbody tr")).to_have_count(len(STREAMS))
    expect(page.locator("#status")).to_contain_text("none")
    assert page.evaluate("[localStorage.length, document.cookie, sessionStorage.length]") == [0, "", 1]
    page = mine.open("/streams/searches")
    expect(page.locator("#status tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Forget it").click()
    expect(page.locator("#operator")).to_contain_text("No token is kept")
    assert page.evaluate("sessionStorage.length") == 0
    page = mine.open("/streams/inside")
    expect(page.get_by_text("No such stream")).to_be_visible()


# ---- Items that somebody typed


def test_hostile_items_are_text(tab, tmp_path):
    with Stage(tmp_path, {"searches": TOP}, ago=10) as stage:
        for _ in range(2):
            stage.tick(searches={item: 60 - place for place, item in enumerate(HOSTILE)})
        mine = tab(stage.address)
        for path in ("/", "/streams/searches"):
            page = mine.open(path)
            expect(page.get_by_text("<img src=x onerror=").first).to_be_visible()
            assert page.locator("main img, main script").count() == 0
            assert "taken over" not in page.title()
        expect(page.locator(".ranking bdi")).to_have_count(len(HOSTILE))
        for item in page.locator(".ranking bdi").all():
            text = item.inner_text()
            assert len(text) <= 80
            assert not re.search(r"[\x00-\x1f\u202a-\u202e\u2066-\u2069]", text)
        expect(page.locator(".ranking")).to_contain_text("שלום עולם, مرحبا")
        expect(page.locator(".ranking")).to_contain_text("👩‍👩‍👧‍👦 family 🏳️‍🌈")
        assert mine.errors == []
        assert mine.hosts == {urlsplit(stage.address).netloc}
        for path in ("/", "/streams/searches"):
            page = tab(stage.address, **PHONE).open(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 360


# ---- For everybody


def axe_finds_nothing(page):
    for summary in page.locator("summary:visible").all():
        summary.click()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize(
    "path", ["/", "/streams/searches", "/streams/page-views", "/streams/market", "/streams/nothing"]
)
def test_dark_mode_passes_axe(tab, path):
    page = tab(color_scheme="dark", **DESKTOP).open(path)
    axe_finds_nothing(page)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", ground)[:3])) < 40


@pytest.mark.parametrize("path", PATHS)
def test_a_phone_passes_axe_without_sideways_scrolling(tab, path):
    page = tab(**PHONE).open(path)
    axe_finds_nothing(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_desktop_passes_axe(tab):
    axe_finds_nothing(tab().open("/streams/searches"))


def test_the_description_of_the_interface(tab, stage):
    mine = tab(**PHONE)
    mine.page.goto(f"{stage.address}/docs")
    expect(mine.page.get_by_text("/v1/streams/{name}/events").first).to_be_visible()
    axe_finds_nothing(mine.page)
    assert mine.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert mine.errors == []
    assert mine.hosts == {urlsplit(stage.address).netloc}


# ---- What is shipped


def test_nothing_inline_and_nothing_from_elsewhere():
    for path in PAGE.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)
        assert not re.search(r"(?:src|href)=\"(?!/|#)", text)
    for path in [*PAGE.glob("js/*.js"), *PAGE.glob("*.css"), *PAGE.glob("*.html")]:
        unsafe = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://"
        assert not re.search(unsafe, path.read_text()), path.name
    assert "MIT" in (PAGE / "vendor" / "uplot" / "LICENSE").read_text()
