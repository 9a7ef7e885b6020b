"""The page of the live service in a real Chromium: what people see, what they can do, what stays out."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright
from tests.service.pretend import ADMIN, HOSTILE, PAGE, READ, Pretend, Stream, demo

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}
PATHS = [
    "/",
    "/streams/searches",
    "/streams/visitors",
    "/streams/page-views",
    "/streams/lunch",
    "/streams/new",
    "/streams/nothing",
]
expect.set_options(timeout=15_000)  # on a busy machine; all of this takes milliseconds otherwise


@pytest.fixture(scope="module")
def browser(chromium):
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def service():
    with Pretend(*demo(), Stream("inside", "count", title="Inside", published=5, public=False)) as running:
        yield running


class Tab:
    """A tab that notes what must not happen: errors, and requests to anybody else."""

    def __init__(self, browser, address, **how):
        self.address = address
        self.context = browser.new_context(**(how or DESKTOP))
        self.context.set_default_timeout(15_000)
        self.page = self.context.new_page()
        self.errors, self.hosts = [], set()
        self.page.on(
            "console", lambda message: message.type in ("error", "warning") and self.errors.append(message.text)
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def open(self, path):
        self.page.goto(self.address + path)
        expect(
            self.page.locator("#cards[aria-busy=false], #content:not([hidden])").or_(
                self.page.get_by_text("There is no such stream")
            )
        ).to_be_visible()
        return self.page

    def close(self):
        self.context.close()


@pytest.fixture
def tab(browser, service):
    made = []

    def make(address=service.address, **how):
        made.append(Tab(browser, address, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()


# ---- It renders, quietly


@pytest.mark.parametrize("path", PATHS)
def test_no_error_and_no_other_host(tab, service, path):
    mine = tab()
    mine.open(path)
    if path == "/streams/nothing":  # the browser itself notes the 404
        mine.errors = [error for error in mine.errors if "404" not in error]
    assert mine.errors == []
    assert mine.hosts == {urlsplit(service.address).netloc}


def test_cards(tab):
    page = tab().open("/")
    expect(page.locator("article.card")).to_have_count(len(demo()))
    card = page.locator("[data-stream=visitors]")
    expect(card).to_contain_text("between")
    expect(card).to_contain_text("each person")
    expect(card).to_contain_text("Until")
    expect(card.locator("canvas")).to_be_visible()
    assert re.fullmatch(
        r"Visitors, from [\d,]+ at .* to [\d,]+ at .*", card.locator("[role=img]").get_attribute("aria-label")
    )
    expect(page.locator("[data-stream=new]")).to_contain_text("No number yet")
    card.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Visitors")


def test_stream_page_says_what_there_is_to_say(tab):
    page = tab().open("/streams/searches")
    for where, text in {
        "#promise": "Nobody can tell from everything",
        "#budget": "nothing more is planned",
        "#downloads": "Everything so far",
        "#definition": "Digest",
        "#at": "19 times out of 20",
    }.items():
        expect(page.locator(where)).to_contain_text(text)
    expect(page.locator(".ranking tbody tr")).to_have_count(10)
    page.get_by_role("button", name="Show all 15").click()
    expect(page.locator(".ranking tbody tr")).to_have_count(15)
    page.get_by_text("The numbers of this chart as a table").click()
    expect(page.locator("#table tbody tr")).to_have_count(10)
    expect(page.locator("#table thead th")).to_have_count(4)
    assert (
        page.locator("a.button", has_text="CSV").first.get_attribute("href")
        == "/v1/streams/searches/releases?format=csv"
    )


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


# ---- New ticks


def test_a_new_tick_appears_without_a_reload(tab):
    with Pretend(
        Stream("searches", "top", ["cats", "dogs"], published=3), Stream("visits", "count", published=3, tick_seconds=1)
    ) as service:
        mine = tab(service.address)
        page = mine.open("/streams/searches")
        page.evaluate("window.mark = 1")
        expect(page.locator("#connection")).to_have_text("live")
        before = service.streams["searches"].releases[-1]["items"][0]["count"]
        expect(page.locator(".ranking")).to_contain_text(f"{before:,}")
        after = service.publish("searches")["items"][0]["count"]
        expect(page.locator(".ranking")).to_contain_text(f"{after:,}")
        expect(page.locator("#tick")).to_have_attribute("max", "4")
        page.locator("#tick").press("ArrowLeft")  # a look back is not disturbed
        expect(page.locator(".ranking")).to_contain_text(f"{before:,}")
        service.publish("searches")
        expect(page.locator("#tick")).to_have_attribute("max", "5")
        expect(page.locator("#tick")).to_have_value("3")
        expect(page.locator(".ranking")).to_contain_text(f"{before:,}")
        page.get_by_role("button", name="Follow the latest").click()
        expect(page.locator("#tick")).to_have_value("5")
        assert page.evaluate("window.mark") == 1

        page = mine.open("/")
        page.evaluate("window.mark = 1")
        value = service.publish("visits")["value"]
        expect(page.locator("[data-stream=visits] .value")).to_contain_text(f"{value:,}")
        assert page.evaluate("window.mark") == 1
        assert mine.errors == []


def test_the_first_tick_of_a_new_stream(tab):
    with Pretend(Stream("new", "top", ["cats"])) as service:
        page = tab(service.address).open("/streams/new")
        expect(page.locator("#at")).to_contain_text("No number yet")
        expect(page.locator("#connection")).to_have_text("live")
        service.publish("new")
        expect(page.locator(".ranking tbody tr")).to_have_count(1)
        expect(page.locator("#chart canvas")).to_be_visible()


def test_a_lost_connection_is_said_and_made_again(tab):
    stream = Stream("visits", "count", published=3)
    with Pretend(stream) as service:
        mine = tab(service.address)
        page = mine.open("/streams/visits")
        expect(page.locator("#connection")).to_have_text("live")
        mine.context.set_offline(True)
        service.closing = True  # ends the open answer
        expect(page.locator("#connection")).to_contain_text("not connected")
        service.closing = False
        service.publish("visits")
        service.publish("visits")
        mine.context.set_offline(False)
        expect(page.locator("#tick")).to_have_attribute("max", "5")
        expect(page.locator("#connection")).to_have_text("live")


def test_moments_by_keyboard(tab):
    page = tab().open("/streams/page-views")
    slider = page.get_by_label("Moment shown")
    slider.focus()
    slider.press("Home")
    expect(slider).to_have_value("1")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("tick 1 of 75$"))
    first = page.locator("#at .value").inner_text()
    slider.press("ArrowRight")
    expect(slider).to_have_value("2")
    expect(page.locator("#at .value")).not_to_have_text(first)
    slider.press("End")
    expect(page.get_by_role("button", name="Follow the latest")).to_have_attribute("aria-pressed", "true")


def test_everything_can_be_reached_by_keyboard(tab):
    page = tab().open("/streams/searches")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.id || document.activeElement.className || document.activeElement.tagName"
            )
        )
    assert {"skip", "mark", "latest", "tick", "span", "button"} <= reached


# ---- States


def test_states_of_a_stream(tab):
    next_grant = {"begins": "2030-01-01T00:00:00Z", "epsilon": 0.5, "delta": 1e-10}
    with Pretend(
        Stream("over", "count", published=8, ticks=8, state="ended"),
        Stream("goes-on", "count", published=4, state="following", following=next_grant),
        Stream("away", "top", ["cats"], published=4, missed=(4,)),
    ) as service:
        mine = tab(service.address)
        page = mine.open("/streams/over")
        expect(page.locator("#connection")).to_have_text("ended")
        expect(page.locator("#budget")).to_contain_text("takes no more events")
        page = mine.open("/streams/goes-on")
        expect(page.locator("#budget")).to_contain_text("ε 0.5, δ 1e-10 more from 1 Jan")
        page = mine.open("/streams/away")
        expect(page.locator("#at")).to_contain_text("was not running")
        assert mine.errors == []


def test_tokens(tab):
    mine = tab()
    page = mine.open("/")
    expect(page.locator("[data-stream=inside]")).to_have_count(0)
    page.get_by_text("For operators").click()
    for token, said in (
        ("wrong", "not known"),
        (READ, "not one for administration"),
        (ADMIN, "Running for 1 hour 23 minutes"),
    ):
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Use").click()
        expect(page.locator("#operator")).to_contain_text(said)
    expect(page.locator("[data-stream=inside]")).to_be_visible()
    expect(page.locator("#status")).to_contain_text("4,321 events, 120.6 KB")
    expect(page.locator("#status")).to_contain_text("bad rows: 3")
    assert page.evaluate("[localStorage.length, document.cookie, sessionStorage.length]") == [0, "", 1]
    page = mine.open("/streams/inside")
    expect(page.locator("#status tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_text("There is no such stream")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


# ---- Items that somebody typed


def test_hostile_items_are_text(tab):
    with Pretend(Stream("searches", "top", HOSTILE, published=3)) as service:
        mine = tab(service.address)
        for path in ("/", "/streams/searches"):
            page = mine.open(path)
            expect(page.get_by_text("<img src=x onerror=").first).to_be_visible()
            assert page.locator("main img, main script").count() == 0
            assert "taken over" not in page.title()
        for item in page.locator(".ranking bdi").all():
            text = item.inner_text()
            assert len(text) <= 80
            assert not re.search(r"[\x00-\x1f\u202a-\u202e\u2066-\u2069]", text)
        expect(page.locator(".ranking")).to_contain_text("שלום עולם, مرحبا")
        expect(page.locator(".ranking")).to_contain_text("👩‍👩‍👧‍👦 family 🏳️‍🌈")
        expect(page.locator(".ranking")).to_contain_text("(empty)")
        assert mine.errors == []
        assert mine.hosts == {urlsplit(service.address).netloc}


# ---- For everybody


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PATHS)
def test_axe_finds_nothing(tab, path, scheme):
    page = tab(color_scheme=scheme, **DESKTOP).open(path)
    for summary in page.locator("summary:visible").all():
        summary.click()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == (scheme == "dark")


@pytest.mark.parametrize("path", PATHS)
def test_a_phone_needs_no_sideways_scrolling(tab, path):
    page = tab(**PHONE).open(path)
    for summary in page.locator("summary:visible").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert Axe().run(page).violations_count == 0


def test_hostile_items_fit_a_phone(tab):
    with Pretend(Stream("searches", "top", [*HOSTILE, "x" * 500], published=3)) as service:
        for path in ("/", "/streams/searches"):
            page = tab(service.address, **PHONE).open(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 360


# ---- What is shipped


def test_nothing_inline_and_nothing_from_elsewhere():
    for path in PAGE.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)
        assert not re.search(r"(?:src|href)=\"(?!/|#)", text)
    for path in [*PAGE.glob("js/*.js"), *PAGE.glob("*.css"), *PAGE.glob("*.html")]:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://", path.read_text()
        ), path.name
    assert "MIT" in (PAGE / "vendor" / "uplot" / "LICENSE").read_text()
