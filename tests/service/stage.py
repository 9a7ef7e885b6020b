"""The service on a port, with a clock that a test moves, and a Chromium that looks at it."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.service.conftest import Running

from discreet.service.routes import make_app
from discreet.service.runtime import Service

__all__ = ["DESKTOP", "PHONE", "Stage", "Tab", "browser"]

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2,
}  # fmt: skip
TIMEOUT = 60_000  # milliseconds, for a busy machine: what is waited for takes a few
expect.set_options(timeout=TIMEOUT)


class Stage(Running):
    """A service that is reached over HTTP; ticks are published when a test says so."""

    address = ""

    def __init__(self, folder: Path, streams: dict[str, Any], *, ago: int = 0, **service: Any) -> None:
        super().__init__(folder, streams, **service)
        self.clock.now = time.time() // 60 * 60 - 60 * ago + 0.5

    def start(self) -> Stage:
        self.service = Service(self.configuration, self.folder, self.clock)
        self.service.start_writer()
        self._app = make_app(self.service, start=False)
        port = urlsplit(self.address).port or 0  # the same as before
        config = uvicorn.Config(self._app, port=port, log_level="critical", access_log=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        self.address = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"
        self.client = httpx2.Client(base_url=self.address, timeout=60)  # type: ignore[assignment]
        return self

    def stop(self) -> None:
        live = self._app.state.live
        self.service.call(live.close)
        self._server.should_exit = True
        self._thread.join()
        self.client.close()
        self.service.stop()

    def __enter__(self) -> Stage:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def tick(self, seconds: float = 60.0, **streams: dict[str, int] | int) -> None:
        """So many people with each item, or so many events; then the tick ends."""
        for name, happened in streams.items():
            stream = name.replace("_", "-")
            pairs = happened.items() if isinstance(happened, dict) else [("", happened)]
            tick = self.service.streams[stream].tick
            rows = [
                {"query": item, "error": item, "visitor": f"{tick} {item} {number}"}
                for item, count in pairs
                for number in range(count)
            ]
            assert self.send(stream, rows).status_code == 202
        self.pass_ticks(1, seconds)


class Tab:
    """A tab that notes what must not happen: errors, and requests to anybody else."""

    def __init__(self, browser: Browser, address: str, **how: Any) -> None:
        self.address = address
        self.context: BrowserContext = browser.new_context(**(how or DESKTOP))
        self.context.set_default_timeout(TIMEOUT)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.errors.append(said.text))
        self.page.on("pageerror", lambda error: self.errors.append(error.stack or str(error)))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def open(self, path: str) -> Page:
        """A page of the service, once it shows something."""
        self.page.goto(self.address + path)
        shown = self.page.locator("#cards[aria-busy=false], #content:not([hidden])")
        expect(shown.or_(self.page.get_by_text("No such stream"))).to_be_visible()
        return self.page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium; where there is none the tests are skipped, or fail where CI is set."""
    found = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
    if found is None:
        assert not os.environ.get("CI"), "these tests need Chromium (the package chromium)"
        pytest.skip("needs Chromium (the package chromium)")
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=found, args=["--no-sandbox"], timeout=3 * TIMEOUT)
        yield started
        started.close()
