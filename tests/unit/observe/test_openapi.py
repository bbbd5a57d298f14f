"""The checked-in document is what the code makes, and every answer is what the document says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from netqos.observe.openapi import document
from netqos.observe.statusroutes import ROUTES
from netqos.observe.ticklines import TickLines
from netqos.observe.view import Numbered
from tests.unit.observe.sample import CLOCK, EMPTY, FAILED, GROUND, WEB, SampleAgent
from tests.unit.observe.schema import problems
from tests.unit.observe.serving import Answer, ask, serving

CHECKED_IN = Path(__file__).parents[3] / "docs" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(document())
BODY = '{"egress": "10M", "ingress": "20M", "level": "l1", "ttl": "10m", "reason": "because"}'

CALLS = [
    ("GET", "/v1/status", "/v1/status", None, 200),
    ("GET", "/v1/node", "/v1/node", None, 200),
    ("GET", "/v1/pods", "/v1/pods", None, 200),
    ("GET", "/v1/pods?counters=true", "/v1/pods", None, 200),
    ("GET", f"/v1/pods/{WEB}", "/v1/pods/{uid}", None, 200),
    ("GET", "/v1/pods/nobody", "/v1/pods/{uid}", None, 404),
    ("GET", f"/v1/explain/{WEB}", "/v1/explain/{uid}", None, 200),
    ("GET", "/v1/explain/nobody", "/v1/explain/{uid}", None, 404),
    ("GET", "/v1/explain?pod=batch/crunch", "/v1/explain", None, 200),
    ("GET", "/v1/explain?pod=nobody", "/v1/explain", None, 404),
    ("GET", "/v1/plan", "/v1/plan", None, 200),
    ("GET", "/v1/history", "/v1/history", None, 200),
    ("GET", "/v1/overrides", "/v1/overrides", None, 200),
    ("PUT", f"/v1/overrides/{WEB}", "/v1/overrides/{uid}", BODY, 200),
    ("PUT", "/v1/overrides?pod=web", "/v1/overrides", BODY, 200),
    ("PUT", "/v1/overrides?pod=web", "/v1/overrides", BODY.replace("10M", "10Mbps"), 422),
    ("DELETE", f"/v1/overrides/{WEB}", "/v1/overrides/{uid}", None, 404),
    ("POST", "/v1/reconcile", "/v1/reconcile", None, 200),
]


def schema_of(method: str, path: str, status: int) -> dict[str, Any]:
    responses = DOCUMENT["paths"][path][method.lower()]["responses"]
    response = responses.get(str(status), DOCUMENT["components"]["responses"]["Error"])
    schema: dict[str, Any] = response["content"]["application/json"]["schema"]
    return schema


def fits(answer: Answer, method: str, path: str) -> list[str]:
    return problems(answer.json, schema_of(method, path, answer.status), DOCUMENT)


def test_the_checked_in_document_is_up_to_date() -> None:
    assert CHECKED_IN.read_bytes() == document(), "run: python -m netqos.observe.openapi > docs/openapi.json"


def test_every_route_is_in_the_document_and_called_here() -> None:
    listed = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert listed == {(route.method, route.path) for route in ROUTES}
    called = {(method, path) for method, _, path, _, _ in CALLS}
    assert listed - called == {
        ("GET", "/v1/stream"),
        ("GET", "/v1/record"),
        ("GET", "/v1/openapi.json"),
    }


@pytest.mark.parametrize("call", CALLS, ids=[f"{call[0]} {call[1]} {call[4]}" for call in CALLS])
async def test_every_answer_is_what_the_document_says(call: tuple[str, str, str, str | None, int]) -> None:
    method, target, path, body, status = call
    async with serving() as socket:
        answer = await ask(socket, target, method, body)
    assert (answer.status, fits(answer, method, path)) == (status, [])


@pytest.mark.parametrize("target", ["/v1/status", "/v1/node", "/v1/pods", "/v1/overrides"])
async def test_a_daemon_that_has_only_started_answers_in_the_same_shape(target: str) -> None:
    async with serving(SampleAgent(EMPTY)) as socket:
        answer = await ask(socket, target)
    assert (answer.status, fits(answer, "GET", target)) == (200, [])


async def test_failed_results_fit_too() -> None:
    agent = SampleAgent()
    agent.results = {"tc": FAILED}
    async with serving(agent) as socket:
        answer = await ask(socket, "/v1/reconcile", "POST")
    assert (answer.json["ok"], fits(answer, "POST", "/v1/reconcile")) == (False, [])


async def test_a_line_of_the_stream_is_a_decision() -> None:
    line = json.loads(TickLines(CLOCK).line(Numbered(1, GROUND), missed=3))
    content = DOCUMENT["paths"]["/v1/stream"]["get"]["responses"]["200"]["content"]
    assert content == {"application/x-ndjson": {"schema": {"$ref": "#/components/schemas/DecisionWire"}}}
    assert problems(line, content["application/x-ndjson"]["schema"], DOCUMENT) == []


async def test_the_document_is_served() -> None:
    async with serving() as socket:
        assert (await ask(socket, "/v1/openapi.json")).body == document()


def test_the_checker_sees_what_is_wrong() -> None:
    schema = {"$ref": "#/components/schemas/ProblemWire"}
    good = {"code": "x", "message": "", "hint": "", "problems": ["y"]}
    assert problems(good, schema, DOCUMENT) == []
    assert problems({**good, "more": 1}, schema, DOCUMENT) == ["$: more is unknown"]
    assert problems({**good, "problems": [1]}, schema, DOCUMENT) == ["$.problems[0]: 1 is no string"]
    assert problems({"code": True}, schema, DOCUMENT)[0] == "$: message is missing"
