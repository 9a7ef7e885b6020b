"""The page of a report in a real Chromium: it stands alone, on any screen and on paper, and says what it shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from tests.service.stage import DESKTOP, PHONE, Tab, browser

import discreet as dc

__all__ = ["browser"]

DARK: dict[str, Any] = {**DESKTOP, "color_scheme": "dark"}
HOSTILE = [
    "<img src=x onerror=\"document.title='taken over'\">",
    "</style><script>document.title='x'</script>",
    "x" * 300,
]
PAGES = ["/", "/shop", "/about", "/contact", "/news", *HOSTILE]
ROWS = [(f"v{n % 900}", PAGES[n % len(PAGES)], float(n % 5000), 1_790_812_800 + 90 * n) for n in range(27_000)]
TABLE = dict(zip(("visitor", "path", "bytes", "time"), map(list, zip(*ROWS, strict=True)), strict=True))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    report = dc.Report(
        {
            "Pages by day": dc.Top(column="path", k=8, every="1d", time="time"),
            "All <pages>": dc.Top(column="path", k=8),
            "Visitors": dc.Count(),
            "Bytes": dc.Quantiles(column="bytes", range=(0, 10_000), quantiles=[0.5, 0.9]),
        },
        dc.Budget(30.0, 1e-6), user="visitor", title="October & <more>",
    )  # fmt: skip
    written = tmp_path_factory.mktemp("report") / "page.html"
    written.write_text(report.answer(TABLE).to_html(), encoding="utf-8")
    return written


@pytest.fixture
def shown(browser: Browser, path: Path) -> Iterator[Callable[..., tuple[Page, Tab]]]:
    with ExitStack() as open_tabs:

        def show(**how: Any) -> tuple[Page, Tab]:
            tab = open_tabs.enter_context(Tab(browser, "", **how))
            tab.page.goto(path.as_uri())
            return tab.page, tab

        yield show


@pytest.mark.parametrize("how", [DESKTOP, PHONE, DARK], ids=["desktop", "phone", "dark"])
def test_it_stands_alone_fits_the_screen_and_is_accessible(shown, how):
    page, tab = shown(**how)
    expect(page.get_by_role("heading", level=1)).to_have_text("October & <more>")
    assert page.title() == "October & <more>"
    assert tab.errors == []
    assert tab.hosts == {""}  # the file itself, and nobody else
    page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_what_is_shown_and_said(shown):
    page, _ = shown()
    headings = page.get_by_role("heading", level=2).all_inner_texts()
    assert headings == ["Pages by day", "All <pages>", "Visitors", "Bytes", "What is promised", "What was spent"]
    chart = page.locator("svg.chart")
    expect(chart).to_have_count(1)
    assert re.match(r"Pages by day, 1 Oct to \d+ Oct: ", chart.get_attribute("aria-label"))
    assert chart.locator("polyline").count() >= 5
    expect(page.locator(".legend li").last).to_contain_text("more in the table")
    expect(page.locator(".number")).to_have_text(re.compile(r"9\d\d|8\d\d"))
    bars = page.locator("section").nth(1).get_by_role("img")
    assert bars.count() == len(PAGES)
    assert all(re.search(r"\d", each.get_attribute("aria-label")) for each in bars.all())
    for text in ("hides any one person", "hold together with a probability of 95 %", "epsilon = 30"):
        expect(page.locator("main")).to_contain_text(text)


def test_the_dark_is_dark_and_paper_has_everything_on_it(shown, path):
    ground = "getComputedStyle(document.body).backgroundColor"
    assert sum(map(int, re.findall(r"\d+", shown(**DARK)[0].evaluate(ground))[:3])) < 150
    page, _ = shown()
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 4
