"""`make serve`: the live service, a made-up town site that sends it traffic, and the page of a survey.

Ctrl-C ends all of it. What an earlier run left in the folder is removed: its people were made up.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from functools import partial
from http.client import HTTPException
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from traffic import send_traffic  # beside this file

EXAMPLES = Path(__file__).parents[1]
CLIENT = EXAMPLES.parent / "clients" / "js" / "discreet.js"
NOTE = "made-up-events.txt"  # tells a folder that was made here


class SurveyPage(SimpleHTTPRequestHandler):
    """The files of examples/survey, discreet.js, and which service to ask: a site of its own, as in real life."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript"}  # noqa: RUF012

    def __init__(self, *args: Any, service: str, **kwargs: Any) -> None:
        self._service = service
        super().__init__(*args, directory=str(EXAMPLES / "survey"), **kwargs)

    def log_message(self, *_: object) -> None:
        """Who came is nobody's business."""

    def end_headers(self) -> None:
        policy = f"default-src 'self'; connect-src 'self' {self._service}; base-uri 'none'; form-action 'none'"
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def do_GET(self) -> None:
        if self.path == "/discreet.js":
            self._answer(CLIENT.read_bytes(), "text/javascript")
        elif self.path == "/survey.json":
            self._answer(json.dumps({"service": self._service, "stream": "market"}).encode(), "application/json")
        else:
            super().do_GET()

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def discreet(*arguments: str | Path) -> list[str]:
    """The command, by the Python that runs this."""
    return [sys.executable, "-m", "discreet", "service", *map(str, arguments)]


def fresh(folder: Path) -> Path:
    """An empty folder; one that something else is in is left alone."""
    note = folder / NOTE
    if folder.exists() and any(folder.iterdir()):
        if not note.is_file():
            sys.exit(f"{folder} holds something else: give another folder with --data")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    note.write_text("The folder of a service with made-up events. It is removed at the next start.\n")
    return folder


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="of the service; 0 takes a free one")
    parser.add_argument("--survey-port", type=int, default=8001, help="of the survey's page; 0 takes a free one")
    parser.add_argument("--data", type=Path, default=Path("out/service"))
    parser.add_argument("--rate", type=float, default=300.0, help="views of pages a second")
    return parser.parse_args()


def main() -> None:
    given = options()
    data = fresh(given.data)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        survey = ThreadingHTTPServer(("127.0.0.1", given.survey_port), SimpleHTTPRequestHandler)
    except OSError as error:
        sys.exit(f"port {given.survey_port} cannot be had ({error.strerror}): give another with --survey-port")
    survey_address = f"http://127.0.0.1:{survey.server_address[1]}"
    streams = (EXAMPLES / "site" / "streams.toml").read_text().replace("http://127.0.0.1:8001", survey_address)
    (data / "streams.toml").write_text(streams)

    arguments = discreet("run", data / "streams.toml", "--data", data / "kept", "--port", str(given.port))
    service = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        address = _address(service)
        ingest, admin = (_token(data, scope) for scope in ("ingest", "admin"))
        survey.RequestHandlerClass = partial(SurveyPage, service=address)  # type: ignore[assignment]
        threading.Thread(target=survey.serve_forever, daemon=True).start()
        print(f"The live page:  {address}/")
        print(f"The survey:     {survey_address}/")
        print(f"An admin token: {admin}")
        print("A made-up site sends traffic; the first numbers come in a few seconds. Ctrl-C ends it.", flush=True)
        send_traffic(address, ingest, rate=given.rate, stop=lambda: service.poll() is not None)
        sys.exit(f"the service ended with exit code {service.returncode}")
    except (OSError, HTTPException):
        sys.exit("the service does not answer any more")
    except KeyboardInterrupt:
        print("Stopping.")
    finally:
        service.terminate()
        service.wait()
        survey.server_close()


def _token(data: Path, scope: str) -> str:
    arguments = discreet("token", "--data", data / "kept", "--scope", scope)
    return subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _address(service: subprocess.Popen[str]) -> str:
    """Where it listens, as it says itself; what it says later is passed on."""
    assert service.stderr is not None
    for line in service.stderr:
        sys.stderr.write(line)
        found = re.search(r"serving at (http://\S+?)/?$", line.strip())
        if found:
            threading.Thread(
                target=lambda: [sys.stderr.write(more) for more in service.stderr or ()], daemon=True
            ).start()
            return found[1]
    sys.exit(f"the service did not start: exit code {service.wait()}")


if __name__ == "__main__":
    main()
