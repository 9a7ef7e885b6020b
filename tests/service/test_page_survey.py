"""A survey in a page: what is sent is what is shown, it counts once, and the service's page shows it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from tests.service.stage import PHONE, Stage, Tab, browser

import discreet as dc

__all__ = ["browser"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "site"
OPTIONS = ["Yes", "At weekends", "<b>No</b>"]
MARKET = {
    "kind": "survey", "question": "Close the square to <i>cars</i>?", "options": OPTIONS, "tick": "1m", "horizon": "1d",
    "epsilon": 2.0, "public": True, "open": True,
}  # fmt: skip


@pytest.fixture
def survey_page(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The handler of the survey's site, as `make serve` has it."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    for name in ("serve", "traffic"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import serve

    return serve.SurveyPage


@pytest.fixture
def places(survey_page: Any, tmp_path: Path) -> Iterator[tuple[Stage, str]]:
    """A service, and the address of a site of its own with the survey."""
    site = ThreadingHTTPServer(("127.0.0.1", 0), survey_page)
    address = f"http://127.0.0.1:{site.server_address[1]}"
    with Stage(tmp_path / "data", {"market": MARKET}, ago=10, cors=[address]) as stage:
        site.RequestHandlerClass = partial(survey_page, service=stage.address)  # type: ignore[assignment]
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield stage, address
        site.shutdown()
        site.server_close()


def test_an_answer(browser: Browser, places: tuple[Stage, str]) -> None:
    stage, address = places
    with Tab(browser, address, **PHONE) as tab:
        sent = []
        tab.page.on("request", lambda request: request.method == "POST" and sent.append(request.post_data_buffer))
        page = tab.page
        page.goto(f"{address}/")
        expect(page.get_by_role("heading", level=1)).to_have_text(MARKET["question"])
        assert page.locator("main i, main b").count() == 0
        expect(page.locator("#truth")).to_contain_text("89% at most")  # e^2/(1 + e^2), rounded up
        expect(page.get_by_role("button", name="Send my answer")).to_be_disabled()
        page.get_by_label("<b>No</b>").check()
        page.get_by_role("button", name="Show what is sent").click()
        shown = page.locator("#hex").inner_text()
        assert Axe().run(page).violations_count == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.get_by_role("button", name="Send my answer").click()
        expect(page.locator("#said")).to_contain_text("Thank you")
        assert [body.hex(" ") for body in sent] == [shown]

        # It is a report of this round, about one item, with randomness that is not a test's.
        round_ = dc.multiparty.protocol_from_dict(stage.client.get("/v1/streams/market/round").json())
        opened, _ = round_.open(sent[0])
        assert (opened.items, opened.seeded) == (1, False)

        # Once is enough, also after a reload.
        page.reload()
        expect(page.locator("#said")).to_contain_text("Thank you")
        expect(page.get_by_role("button", name="Send my answer")).to_be_disabled()
        assert page.locator("#hex").inner_text() == shown
        assert stage.client.post("/v1/streams/market/messages", content=sent[0]).json() == {
            "accepted": 0,
            "repeated": 1,
        }
        assert tab.errors == []

        # The service's page shows it when the tick ends.
        page.get_by_role("link", name="See what everybody answered").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(MARKET["question"])
        expect(page.locator("#connection")).to_have_text("live")
        stage.pass_ticks()
        expect(page.locator("#at")).to_contain_text("From 1 report.")
        expect(page.locator(".ranking tbody tr")).to_have_count(len(OPTIONS))


def test_an_answer_that_fails_is_sent_again_as_it_was(browser: Browser, places: tuple[Stage, str]) -> None:
    stage, address = places
    with Tab(browser, address) as tab:
        sent = []
        tab.page.on("request", lambda request: request.method == "POST" and sent.append(request.post_data_buffer))
        page = tab.page
        page.goto(f"{address}/")
        page.get_by_label("Yes").check()
        page.route("**/messages", lambda route: route.abort())
        page.get_by_role("button", name="Send my answer").click()
        expect(page.locator("#said")).to_contain_text("did not work")
        expect(page.get_by_label("At weekends")).to_be_disabled()  # another answer would be another report
        page.reload()
        expect(page.locator("#said")).to_contain_text("did not work")
        expect(page.get_by_label("At weekends")).to_be_disabled()
        page.unroute("**/messages")
        page.get_by_role("button", name="Send my answer").click()
        expect(page.locator("#said")).to_contain_text("Thank you")
        assert len(sent) == 2
        assert sent[0] == sent[1]
        page.reload()
        expect(page.locator("#said")).to_contain_text("Thank you")
        stage.pass_ticks()
        assert stage.latest("market")["reports"] == 1


def test_a_service_that_cannot_be_reached(browser: Browser, places: tuple[Stage, str]) -> None:
    _, address = places
    with Tab(browser, address) as tab:
        tab.page.route("**/v1/**", lambda route: route.abort())
        tab.page.goto(f"{address}/")
        expect(tab.page.locator("#said")).to_contain_text("cannot be reached")
        expect(tab.page.locator("#form")).to_be_hidden()
