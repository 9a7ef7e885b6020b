"""The interface against its own description: whatever is sent, the answer is one that `/openapi.json` names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from tests.service.conftest import STREAMS, Running

from discreet.service.routes import make_app

CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]
OPERATIONS = {
    f"{method.upper()} {path}"
    for method, path in (
        ("post", "/v1/streams/{name}/events"),
        ("post", "/v1/streams/{name}/messages"),
        ("post", "/api/event"),
        ("get", "/v1/streams/{name}/round"),
        ("get", "/v1/streams"),
        ("get", "/v1/streams/{name}"),
        ("get", "/v1/streams/{name}/releases"),
        ("get", "/v1/streams/{name}/releases/latest"),
        ("get", "/v1/streams/{name}/increases"),
        ("get", "/v1/streams/{name}/live"),
        ("get", "/metrics"),
        ("get", "/v1/admin/status"),
        ("get", "/healthz"),
        ("get", "/readyz"),
    )
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    limits = {"requests_per_second": 1e9, "events_per_second": 1e9}
    running = Running(tmp_path_factory.mktemp("interface") / "data", STREAMS, limits=limits).start()
    running.pass_ticks(2)
    yield running
    running.stop()


@pytest.mark.parametrize("label", sorted(OPERATIONS - {"GET /v1/streams/{name}/live"}))  # that has no end
def test_every_answer_is_described(served: Running, label: str) -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", served.client.app)
    operations = {found.ok().label: found.ok() for found in schema.get_all_operations()}
    assert set(operations) == OPERATIONS
    tokens: list[dict[str, str]] = [{}, served.token("ingest"), served.token("admin")]
    asked = 0

    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operations[label].as_strategy())
    def ask(case: Any) -> None:
        nonlocal asked
        for name in ("visits", "lunch", "searches", "nothing") if "{name}" in label else ("",):
            case.path_parameters = {"name": name} if name else {}
            for token in tokens:
                asked += 1
                response = case.call(headers=token)
                case.validate_response(response, checks=CHECKS)

    ask()
    assert asked >= 3


def test_it_is_made_once(served: Running) -> None:
    assert make_app(served.service, start=False).openapi() == served.client.get("/openapi.json").json()
