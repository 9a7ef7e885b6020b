"""What deploy/ has is what runs: the unit, nginx before a service, alerts, the dashboard and the container."""

from __future__ import annotations

import http.client
import json
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.ports import free_port

pytestmark = pytest.mark.hosts

DEPLOY = Path(__file__).parents[2] / "deploy"
STREAMS = """
[service.limits]
requests_per_second = 5
[streams.visits]
kind = "count"
tick = "1s"
horizon = "1h"
epsilon = 1.0
delta = 1e-9
public = true
[streams.hidden]
kind = "distinct"
user = "visitor"
trust = "pan"
tick = "1s"
horizon = "1h"
epsilon = 4.0
public = true
"""


def run(*command: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, **options)


def options_of(words: list[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


class Behind:
    """A service, nginx with deploy/nginx.conf before it, and a client with an address of its own."""

    def __init__(self, folder: Path, command: str, spawn: Any) -> None:
        self.port, inner = free_port(), free_port()
        (folder / "streams.toml").write_text(STREAMS)
        self.log = folder / "service.log"
        made = ["service", "token", "--data", "data", "--scope"]  # before it runs: then it knows them from its start
        self.tokens = {scope: run(command, *made, scope, cwd=folder).stdout.strip() for scope in ("admin", "ingest")}
        assert all(self.tokens.values())
        words = ["service", "run", "streams.toml", "--data", "data", "--port", inner, "--log", "json"]
        with self.log.open("wb") as log:
            self.service = spawn([command, *words], cwd=folder, stderr=log)
        key, certificate = folder / "numbers.key", folder / "numbers.pem"
        name = ["-subj", "/CN=numbers.example.org", "-addext", "subjectAltName=DNS:numbers.example.org"]
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name]
        assert run(*made, "-keyout", key, "-out", certificate).returncode == 0
        server = (DEPLOY / "nginx.conf").read_text()
        for old, new in (
            ("listen 443 ssl", f"listen 127.0.0.1:{self.port} ssl"),
            ("/etc/ssl/numbers.pem", str(certificate)),
            ("/etc/ssl/numbers.key", str(key)),
            ("127.0.0.1:8000", f"127.0.0.1:{inner}"),
            ("/var/log/nginx/discreet.log", str(folder / "nginx.log")),
        ):
            assert server.count(old) == 1
            server = server.replace(old, new)
        whole = f"master_process off; daemon off; pid {folder}/nginx.pid; events {{}} http {{ {server} }}"
        (folder / "nginx.conf").write_text(whole)
        arguments = ["-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "nginx.log")]
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        checked = run(nginx, "-t", *arguments)
        assert checked.returncode == 0, checked.stderr
        spawn([nginx, *arguments])
        self.trust = ssl.create_default_context(cafile=str(certificate))
        until = time.monotonic() + 30
        while self._status() != 200:
            assert time.monotonic() < until, self.log.read_text()
            assert self.service.poll() is None, self.log.read_text()
            time.sleep(0.1)

    def _status(self) -> int:
        try:
            return self.ask("GET", "/healthz", address="127.0.0.9")[0]
        except OSError:
            return 0

    def connection(self, address: str = "127.0.0.1") -> http.client.HTTPSConnection:
        made = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=self.trust)
        raw = socket.create_connection(("127.0.0.1", self.port), 30, (address, 0))
        made.sock = self.trust.wrap_socket(raw, server_hostname="numbers.example.org")
        return made

    def ask(
        self, method: str, path: str, body: bytes | None = None, address: str = "127.0.0.1", **headers: str
    ) -> tuple[int, str]:
        connection = self.connection(address)
        connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found

    def may(self, scope: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[scope]}"}


@pytest.fixture
def behind(tmp_path: Path, command: str, spawn: Any) -> Behind:
    return Behind(tmp_path, command, spawn)


def test_the_service_behind_nginx(behind: Behind) -> None:
    body = b"\n".join(b'{"visitor": "SECRET%d"}' % n for n in range(1000))
    kind = {"Content_Type": "application/x-ndjson"}
    for name in ("visits", "hidden"):
        taken = behind.ask("POST", f"/v1/streams/{name}/events", body, **behind.may("ingest"), **kind)
        assert (taken[0], json.loads(taken[1])) == (202, {"accepted": 1000})
    assert behind.ask("POST", "/v1/streams/visits/events", body, **kind)[0] == 401

    # Live releases come through nginx as they are published, one a second: it holds nothing back.
    live = behind.connection("127.0.0.4")
    live.request("GET", "/v1/streams/visits/live")
    events = live.getresponse()
    assert events.headers["Content-Type"].startswith("text/event-stream")
    ticks = []
    while len(ticks) < 5:
        line = events.readline()
        if line.startswith(b"data:"):
            ticks.append((json.loads(line[5:])["tick"], time.monotonic()))
    assert [tick for tick, _ in ticks] == list(range(ticks[0][0], ticks[0][0] + 5))
    # Not all at once: three of them are to come when this asks, however late a busy machine reads some of them.
    assert max(later - earlier for (_, earlier), (_, later) in pairwise(ticks)) > 0.2
    live.close()

    # nginx says who the client is, whatever the client says: one address is too fast, another is not.
    def statuses(address: str, number: int) -> list[int]:
        said = {"X_Forwarded_For": "192.0.2.1"}
        return [behind.ask("GET", "/v1/streams", None, address, **said)[0] for _ in range(number)]

    assert 429 in statuses("127.0.0.2", 60)
    assert statuses("127.0.0.3", 2) == [200, 200]

    # What alerts and the dashboard name is there for admins, and nothing that is not private for anybody else.
    time.sleep(1.0)
    named = set(re.findall(r"\bdiscreet_[a-z_]+", (DEPLOY / "alerts.yaml").read_text()))
    named |= set(re.findall(r"\bdiscreet_[a-z_]+", (DEPLOY / "grafana.json").read_text()))
    status, text = behind.ask("GET", "/metrics", None, "127.0.0.5", **behind.may("admin"))
    told = set(re.findall(r"^# TYPE (\w+)", text, re.M))
    assert (status, named - told) == (200, set())
    assert 'discreet_accepted_total{stream="visits"} 1000' in text
    assert 'discreet_accepted_total{stream="hidden"}' not in text  # a pan stream keeps no true count
    public = set(re.findall(r"^# TYPE (\w+)", behind.ask("GET", "/metrics", None, "127.0.0.6")[1], re.M))
    ours = {f"discreet_released{end}" for end in ("", "_lower", "_upper")}
    facts = {f"discreet_{name}" for name in ("info", "uptime_seconds", "ticks_published_total", "spool_damaged_total")}
    assert public == ours | facts

    # The log is JSON with fields, and has no item, address, token or true count.
    lines = [json.loads(line) for line in behind.log.read_text().splitlines()]
    assert {"start", "serving"} <= {line["event"] for line in lines}
    assert all({"time", "level", "event", "message"} <= set(line) for line in lines)
    assert {line.get("stream") for line in lines if line["event"] == "start"} == {"visits", "hidden"}
    text = behind.log.read_text()
    assert not [
        hidden for hidden in ("SECRET", "127.0.0.2", "192.0.2.1", "1000", *behind.tokens.values()) if hidden in text
    ]
    behind.service.terminate()
    assert behind.service.wait(30) == 0


def test_the_unit_is_valid_and_hardened(tmp_path: Path, command: str) -> None:
    unit = (DEPLOY / "discreet.service").read_text()
    start = shlex.split(re.search(r"^ExecStart=(.*)$", unit, re.M)[1])  # type: ignore[index]
    assert options_of(start) <= options_of(run(command, "service", "run", "--help").stdout.split())
    copy = tmp_path / "discreet.service"
    copy.write_text(unit.replace(start[0], command))
    verified = run("systemd-analyze", "verify", copy)
    assert (verified.returncode, verified.stderr.strip()) == (0, "")
    # 0 is the least exposure, 100 the most; an option that systemd does not know would be ignored.
    assert run("systemd-analyze", "security", "--offline=true", "--threshold=15", copy).returncode == 0
    exposed = tmp_path / "exposed.service"
    exposed.write_text("[Service]\nExecStart=/bin/true\n")
    assert run("systemd-analyze", "security", "--offline=true", "--threshold=15", exposed).returncode != 0


def test_alerts_fire_when_they_should(tmp_path: Path) -> None:
    checked = run("promtool", "check", "rules", "alerts.yaml", cwd=DEPLOY)
    assert checked.returncode == 0, checked.stderr
    tested = run("promtool", "test", "rules", "alerts-test.yaml", cwd=DEPLOY)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert run("promtool", "check", "config", "--syntax-only", "prometheus.yaml", cwd=DEPLOY).returncode == 0
    groups = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]
    rules = [rule["alert"] for group in groups for rule in group["rules"]]
    cases = (DEPLOY / "alerts-test.yaml").read_text()
    assert [rule for rule in rules if f"alertname: {rule}" not in cases] == []
    shutil.copytree(DEPLOY, tmp_path / "wrong")
    wrong = tmp_path / "wrong" / "alerts.yaml"
    wrong.write_text(wrong.read_text().replace("discreet_lag_seconds > 60", "discreet_lag_seconds > 90"))
    assert run("promtool", "test", "rules", "alerts-test.yaml", cwd=wrong.parent).returncode != 0


def test_the_container_is_of_files_that_are_there(command: str) -> None:
    text = (DEPLOY / "Containerfile").read_text()
    sources = [word for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.M) for word in line.split()[:-1]]
    assert len(sources) > 3
    assert all((DEPLOY.parent / source).exists() for source in sources)
    words = json.loads(re.search(r"^CMD (\[.*\])$", text, re.M)[1])  # type: ignore[index]
    assert options_of(words) <= options_of(run(command, *words[:2], "--help").stdout.split())
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    mine = {"./streams.toml", "./tls/numbers.pem", "./tls/numbers.key", "./admin-token"}  # docs/deploy.md makes them
    mounted = {volume.split(":")[0] for one in services.values() for volume in one.get("volumes", ())}
    assert all((DEPLOY / path).exists() or path in mine for path in mounted if path.startswith("./"))
    said = (DEPLOY.parent / "docs" / "deploy.md").read_text()
    assert all(path.removeprefix("./") in said for path in mine)
