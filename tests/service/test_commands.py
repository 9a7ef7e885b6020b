"""`discreet service`: check, token, status, run."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_here
from tests.service.conftest import STREAMS, Running, catch_up

from discreet.errors import LedgerError, OldStateError
from discreet.service.definitions import load
from discreet.service.forecast import forecast
from discreet.service.runs import Curated, items_shown
from discreet.service.runtime import Service

FILE = """
[streams.searches]
kind = "top"
column = "query"
user = "visitor"
max_items = 20
tick = "1m"
horizon = "30d"
epsilon = 1.0
delta = 1e-9
k = 50
public = true

[streams.visitors]
kind = "distinct"
user = "visitor"
trust = "pan"
tick = "1d"
horizon = "7d"
epsilon = 4.0

[streams.errors]
kind = "top"
column = "error"
universe = ["timeout", "refused"]
tick = "1h"
horizon = "1d"
epsilon = 1.0
delta = 1e-9
k = 2

[streams.words]
kind = "top"
column = "word"
capacity = 64
tick = "1h"
horizon = "1d"
epsilon = 1.0
delta = 1e-9
k = 5
following = [{ epsilon = 1.0, delta = 1e-9 }]

[streams.lunch]
kind = "survey"
question = "Lunch?"
options = ["yes", "no"]
tick = "1h"
horizon = "1d"
epsilon = 1.0
open = true
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "streams.toml"
    path.write_text(FILE)
    return path


def test_check_says_what_is_promised_and_spends_nothing(file: Path, tmp_path: Path) -> None:
    done = run_here("service", "check", file)
    assert done.returncode == 0, done.stderr
    assert "searches: the 50 most frequent values of 'query', by the number of people, every 1 minute" in done.stdout
    assert (
        "at most 2.72 times as likely or as unlikely (epsilon 1), except with probability 1e-09 (delta)" in done.stdout
    )
    assert "An item is listed from about" in done.stdout
    assert "one look at the memory or the disk" in done.stdout
    assert "Goes on for 1 day more" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["streams.toml"]
    found = json.loads(run_here("service", "check", file, "--format", "json").stdout)
    assert [stream["name"] for stream in found] == ["searches", "visitors", "errors", "words", "lunch"]


def test_check_and_run_warn_of_what_is_of_no_use_or_promises_nothing(file: Path) -> None:
    file.write_text(
        """
[streams.noise]
kind = "distinct"
user = "visitor"
tick = "1m"
horizon = "1d"
epsilon = 2.0
trust = "pan"
[streams.bare]
kind = "count"
tick = "1m"
horizon = "1d"
epsilon = 50
delta = 1e-9
[streams.fine]
kind = "count"
tick = "1m"
horizon = "1d"
epsilon = 1
delta = 1e-9
"""
    )
    noise, bare, fine = json.loads(run_here("service", "check", file, "--format", "json").stdout)
    assert "of no use" in " ".join(noise["warnings"])
    assert "promises next to nothing" in " ".join(bare["warnings"])
    assert fine["warnings"] == []
    shown = run_here("service", "check", file).stdout
    assert shown.count("  Warning: ") == 2


def test_files_that_are_wrong(file: Path, tmp_path: Path) -> None:
    for text, why in (
        ("[", "is not TOML"),
        ("", "defines no stream"),
        (FILE.replace('kind = "survey"', 'kind = "poll"'), "streams.lunch.kind"),
        (FILE.replace("delta = 1e-9", "", 1), "streams.searches: "),
        (FILE + "\n[service]\ncors = ['*']", "service.cors"),
    ):
        file.write_text(text)
        done = run_here("service", "check", file)
        assert (done.returncode, done.stdout) == (2, ""), why
        assert why in done.stderr
    assert run_here("service", "run", tmp_path / "none.toml", "--data", tmp_path / "d").returncode == 2


def test_tokens_are_shown_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    done = run_here("service", "token", "--data", data, "--scope", "ingest", "--stream", "searches", "--note", "shop")
    token = done.stdout.strip()
    assert len(token.removeprefix("discreet_")) == 43
    listed = run_here("service", "token", "--data", data, "--list").stdout
    assert "shop" in listed
    assert token not in listed
    assert run_here("service", "token", "--data", data, "--remove", 1).returncode == 0
    assert run_here("service", "token", "--data", data, "--remove", 1).returncode == 2
    assert run_here("service", "token", "--data", data).returncode == 2
    assert run_here("service", "token", "--data", data, "--scope", "admin", "--stream", "x").returncode == 2


def test_status(tmp_path: Path) -> None:
    running = Running(tmp_path / "data", STREAMS).start()
    running.pass_ticks(2)
    (searches,) = [
        row
        for row in json.loads(run_here("service", "status", "--data", tmp_path / "data", "--format", "json").stdout)
        if row["name"] == "searches"
    ]
    assert (searches["ticks_published"], searches["ticks"], searches["spent"]) == (2, 1440, "epsilon=1000, delta=1e-06")
    assert "searches" in run_here("service", "status", "--data", tmp_path / "data").stdout
    running.stop()
    assert run_here("service", "status", "--data", tmp_path).returncode == 2


@pytest.mark.parametrize("name", ["visits", "hidden-visitors"])
def test_an_older_folder_beside_a_newer_ledger_is_refused(tmp_path: Path, name: str) -> None:
    ledger, data, backup = tmp_path / "ledger.sqlite", tmp_path / "data", tmp_path / "backup"
    running = Running(data, {name: STREAMS[name]})
    for copy in (True, False):
        service = Service(running.configuration, data, running.clock, ledger)
        running.clock.now += 60
        catch_up(service)
        service.stop()
        if copy:
            shutil.copytree(data, backup)
    with pytest.raises(OldStateError):
        Service(running.configuration, backup, running.clock, ledger)


@pytest.mark.parametrize("ticks", [0, 1, 7])
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("name", ["visits", "lunch", "hidden-visitors"])
def test_another_ledger_is_refused(tmp_path: Path, name: str, begun: bool, ticks: int) -> None:
    """Forgotten (one that is not there yet), or that of another service with the same streams."""
    ledger, data, other = tmp_path / "ledger.sqlite", tmp_path / "data", tmp_path / "other.sqlite"
    running = Running(data, {name: {**STREAMS[name], "horizon": "10m"}})
    if begun:
        Service(running.configuration, tmp_path / "else", running.clock, other).stop()
    for _ in range(2):
        service = Service(running.configuration, data, running.clock, ledger)
        running.clock.now += 60 * ticks
        catch_up(service)
        service.stop()
        if not (begun and name == "lunch" and ticks == 0):  # a survey without a tick has nothing to draw again
            with pytest.raises(LedgerError, match="another"):
                Service(running.configuration, data, running.clock, other)
        if not begun:
            assert not other.exists()
        ticks = 0
    Service(running.configuration, data, running.clock, ledger.rename(tmp_path / "moved.sqlite")).stop()


def test_over_tls(file: Path, tmp_path: Path, spawn: Any) -> None:
    tool = shutil.which("openssl")
    if tool is None:
        pytest.fail("no openssl") if os.environ.get("CI") else pytest.skip("no openssl to make a certificate with")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    new = [tool, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    new += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(new, check=True, capture_output=True)
    assert run_here("service", "run", file, "--data", tmp_path / "d", "--tls-cert", cert).returncode == 2
    command = [sys.executable, "-m", "discreet", "service", "run", file, "--data", tmp_path / "d", "--port", "0"]
    command += ["--host", "localhost", "--tls-cert", cert, "--tls-key", key]
    with spawn(command, stderr=subprocess.PIPE, text=True) as process:
        address = next(line for line in process.stderr if "serving at" in line).split()[-1]
        assert address.startswith("https://localhost:")
        trusting = ssl.create_default_context(cafile=str(cert))
        with urllib.request.urlopen(address + "healthz", context=trusting, timeout=60) as response:
            assert response.status == 200
            assert "max-age" in response.headers["strict-transport-security"]
            assert "server" not in response.headers  # nobody needs to know what it is made with
        process.terminate()
        assert process.wait() == 0  # its time is limited


@pytest.mark.parametrize("whose", ['user = "visitor"\nmax_items = 2\n', "", 'universe = ["a", "b", "c"]\n'])
def test_check_states_the_interval_that_is_published(file: Path, whose: str) -> None:
    """It stated that of one count, and what was published was a union over 2^63 items: four times as wide."""
    file.write_text(
        f'[streams.pages]\nkind = "top"\ncolumn = "page"\n{whose}tick = "1h"\nhorizon = "3h"\nk = 10\n'
        "epsilon = 1.0\ndelta = 1e-6\n"
    )
    definition = load(file).streams["pages"]
    run = Curated.of(definition)
    assert isinstance(run, Curated)
    items, users = ["a", "b", "c"] * 500, [str(number) for number in range(1500)]
    for tick in range(3):
        rows = {"users": users if tick == 0 else []} if definition.user is not None else {}
        release = run.mechanism.step(items if tick == 0 else [], **rows)
    shown = items_shown(release, definition.k)["items"]
    assert len(shown) == 3
    (error,) = [
        line for line in forecast("pages", definition)["error"] if line.startswith("Error of a count (95%, for all")
    ]
    stated = int(error.split("at most ")[1].split(" at ")[0].replace(",", ""))
    assert {(row["upper"] - row["count"], row["count"] - row["lower"]) for row in shown} == {(stated, stated)}
