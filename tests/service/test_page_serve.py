"""`make serve`: a service, a made-up site that sends it traffic, a page that lives."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, expect
from tests.service.stage import Tab, browser

__all__ = ["browser"]

SERVE = Path(__file__).parents[2] / "examples" / "site" / "serve.py"


def test_serve(browser: Browser, tmp_path: Path) -> None:
    arguments = ["--port", "0", "--survey-port", "0", "--data", str(tmp_path / "data"), "--rate", "600"]
    command = [sys.executable, SERVE, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as run:
        try:
            assert run.stdout is not None
            said = [run.stdout.readline() for _ in range(3)]
            look(browser, *(line.split()[-1].rstrip("/") for line in said[:2]))
        finally:
            run.send_signal(signal.SIGTERM)
            code = run.wait(timeout=180)
    assert code == 0


def look(browser: Browser, service: str, survey: str) -> None:
    with Tab(browser, service) as tab:
        page = tab.open("/")
        expect(page.locator("article.card")).to_have_count(5)  # of six: one is not public
        for name in ("visitors", "pages", "errors", "searches", "market"):
            expect(page.locator(f"[data-stream={name}] canvas")).to_be_visible(timeout=180_000)
        expect(page.locator("main")).not_to_contain_text("made-up person")  # what one person typed
        assert tab.errors == []
    with Tab(browser, survey) as tab:
        tab.page.goto(survey)
        expect(tab.page.get_by_role("heading", level=1)).to_contain_text("market square")
        assert tab.errors == []


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("years of work")
    arguments = [sys.executable, SERVE, "--port", "0", "--survey-port", "0", "--data", str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "holds something else" in done.stderr
    assert (tmp_path / "README").exists()
