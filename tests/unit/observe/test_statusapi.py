from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.errors import Fatal, NetqosError, Rejected, Retryable, Unsupported
from netqos.model.health import info, warning
from netqos.model.ids import IfName, PodUid, workload_uid
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.traffic import Unit
from netqos.observe.http import HttpError, Request
from netqos.observe.recorder import Recorder
from netqos.observe.requests import override_request
from netqos.observe.statusapi import StatusApi, require_root
from netqos.observe.view import OverrideRequest
from netqos.testing import states
from tests.unit.observe.sample import (
    CLOCK,
    CRUNCH,
    DB,
    DECISION,
    DESIRED,
    EMPTY,
    EVIL,
    GROUND,
    HOSTILE,
    OVERRIDE,
    PODS,
    RX_UNIT,
    UNIT,
    WEB,
    SampleAgent,
    composition,
    ground_of,
    tx_only,
    view,
)
from tests.unit.observe.serving import ask, serving

M = 1_000_000


async def get(target: str, agent: SampleAgent | None = None) -> Any:
    async with serving(agent) as path:
        answer = await ask(path, target)
    assert answer.status == 200, answer.body
    return answer.json


# ------------------------------------------------------------------ reading


async def test_status_counts_what_is_rejected_and_names_who_is_waited_for() -> None:
    bad = [warning(code, "pod x", text) for code, text in (("not-allowed", "a"), ("address-conflict", "b"))]
    noted = (*bad, info("pod-cgroup-missing", "pod x", "c"))
    pods = (*PODS, replace(PODS[0], uid=PodUid("u-9"), findings=noted))
    shown = view(ready=False, waited_for={"pods": "403: no"}, composition=composition(DESIRED, pods))
    answer = await get("/v1/status", agent=SampleAgent(shown))
    assert (answer["rejected"], answer["waited_for"]) == ({"inputs": 2, "pods": 1}, {"pods": "403: no"})


async def test_status_has_the_contracts_shape_with_truthful_enforcement() -> None:
    status = await get("/v1/status")
    tx, rx = status["directions"]["tx"], status["directions"]["rx"]
    assert (status["version"], status["node"], status["ready"], status["enabled"]) == (
        "0.1.0",
        "worker-1",
        True,
        True,
    )
    assert (status["waited_for"], status["rejected"]) == ({}, {"inputs": 0, "pods": 0})
    assert tx["total_bps"] == 1000 * M
    assert (tx["total_source"], tx["contention"], tx["devices"]) == ("nodeslo", True, ["up0"])
    assert tx["levels"]["L0"] == {
        "enabled": True,
        "guarantee_bps": 500 * M,
        "ceiling_bps": 1000 * M,
        "current_ceiling_bps": 600 * M,
        "rate_bps": 612 * M,
        "backlogged": True,
        "pods": 1,
        "enforced": True,
        "why": "L0 may use 600M: L1 is left 200M and L2 keeps its guarantee of 200M",
    }
    assert [tx["levels"][name]["rate_bps"] for name in ("L0", "L1", "L2")] == [612 * M, 201_500_000, 98 * M]
    assert [tx["levels"][name]["pods"] for name in ("L0", "L1", "L2")] == [1, 1, 2]
    assert (tx["enforced_by"], tx["not_enforced"], tx["room_bps"]) == (["tc"], "", 1000 * M)
    assert (rx["total_bps"], rx["room_bps"], rx["devices"]) == (600 * M, 450 * M, ["up0"])
    assert rx["levels"]["L0"] == {
        "enabled": True,
        "guarantee_bps": 300 * M,
        "ceiling_bps": 600 * M,
        "current_ceiling_bps": 210 * M,
        "rate_bps": 203 * M,
        "backlogged": False,
        "pods": 1,
        "enforced": True,
        "why": "L0 may use 210M: L1 keeps its guarantee of 180M and L2 is left 60M",
    }
    assert [(one["device"], one["direction"], one["room_bps"]) for one in status["loop"]["units"]] == [
        ("up0", "tx", None),
        ("netqos-ifb", "rx", 450 * M),
    ]
    assert status["sources"] == {
        "file": {"state": "fresh", "age_s": 0.0, "detail": ""},
        "nodeslo": {"state": "waiting", "age_s": None, "detail": ""},
        "pods": {"state": "stale", "age_s": 120.0, "detail": "server not reachable"},
    }
    assert status["backends"]["terway"]["findings"][0]["code"] == "no-net-cls"
    assert [one["code"] for one in status["findings"]] == ["total-far-from-speed", "direct-packets"]


async def test_a_daemon_that_waits_says_so_and_changes_nothing_of_the_shape() -> None:
    status = await get("/v1/status", SampleAgent(EMPTY))
    assert set(status["directions"]) == {"tx", "rx"}
    assert status["directions"]["tx"]["total_bps"] is None
    assert status["directions"]["tx"]["not_enforced"] == "nothing is composed yet: a source has not delivered"
    assert status["sources"]["file"]["state"] == "waiting"
    assert await get("/v1/pods", SampleAgent(EMPTY)) == {"pods": []}


async def test_a_direction_that_nobody_shapes_says_so() -> None:
    shown = tx_only()
    rx = (await get("/v1/status", SampleAgent(shown)))["directions"]["rx"]
    assert [rx["levels"][name]["enforced"] for name in ("L0", "L1", "L2")] == [False] * 3
    assert rx["not_enforced"] == "tc does not shape ingress; terway is unavailable"
    assert (rx["room_bps"], rx["levels"]["L2"]["guarantee_bps"]) == (600 * M, 120 * M)
    assert (rx["levels"]["L2"]["current_ceiling_bps"], rx["contention"]) == (None, False)
    crunch = (await get("/v1/pods", SampleAgent(shown)))["pods"][0]
    assert crunch["limits"]["ingress"] == {
        "bps": 20 * M,
        "source": "annotation kubernetes.io/ingress-bandwidth",
        "enforced_by": [],
        "not_enforced": "tc does not shape ingress; terway is unavailable",
    }


async def test_a_failing_backend_enforces_nothing() -> None:
    shown = view()
    failing = replace(shown.backends["tc"], state="failing")
    status = await get("/v1/status", SampleAgent(replace(shown, backends={"tc": failing})))
    tx = status["directions"]["tx"]
    assert (tx["enforced_by"], tx["not_enforced"], tx["levels"]["L1"]["enforced"]) == (
        [],
        "tc is failing",
        False,
    )


async def test_pods_are_sorted_and_say_where_each_limit_comes_from() -> None:
    pods = (await get("/v1/pods"))["pods"]
    assert [pod["uid"] for pod in pods] == [CRUNCH, DB, HOSTILE, WEB]
    assert pods[0]["limits"] == {
        "egress": {
            "bps": 50 * M,
            "source": "annotation koordinator.sh/egress-bandwidth",
            "enforced_by": ["tc"],
            "not_enforced": "",
        },
        "ingress": {
            "bps": 20 * M,
            "source": "annotation kubernetes.io/ingress-bandwidth",
            "enforced_by": ["tc"],
            "not_enforced": "",
        },
    }
    assert pods[1]["limits"]["egress"] == {
        "bps": None,
        "source": "default",
        "enforced_by": [],
        "not_enforced": "",
    }
    assert (
        pods[2]["limits"]["ingress"]["not_enforced"] == "neither an address nor a cgroup of it is known yet"
    )
    assert (pods[2]["overridden"], pods[2]["findings"][0]["code"]) == (True, "bad-limit")
    assert [pod["counters"] for pod in pods] == [None] * 4


async def test_pods_with_counters_ask_the_kernel_once_for_all() -> None:
    agent = SampleAgent()
    pods = (await get("/v1/pods?counters=true", agent))["pods"]
    assert pods[3]["counters"][0]["sent_bytes"] == 123_456_789
    assert pods[1]["counters"] == []
    assert agent.calls == ["all_counters"]


async def test_a_thousand_pods_are_answered() -> None:
    many = tuple(replace(PODS[0], uid=workload_uid(f"w{i:04}"), name=f"w{i:04}") for i in range(1000))
    shown = replace(view(), composition=composition(DESIRED, many))
    pods = (await get("/v1/pods", SampleAgent(shown)))["pods"]
    assert [pod["name"] for pod in pods] == [f"w{i:04}" for i in range(1000)]


async def test_explain_tells_the_whole_chain() -> None:
    explained = await get("/v1/explain?pod=batch/crunch")
    assert explained["pod"]["uid"] == CRUNCH
    assert [one["verdict"] for one in explained["choices"]["level"]] == ["absent", "used", "shadowed"]
    assert explained["choices"]["egress"][0] == {
        "source": "annotation koordinator.sh/networkQOS",
        "value": EVIL,
        "verdict": "rejected",
        "reason": "no quantity",
    }
    assert explained["rules"] == [
        {
            "number": 0,
            "direction": "egress",
            "matches": ["ip 10.0.0.0/8", "tcp port =80"],
            "level": "L1",
            "dscp": 46,
            "minimum_bps": 1 * M,
            "maximum_bps": 5 * M,
            "not_enforced": "no backend in use enforces rules inside a pod; the pods file passes them on",
        }
    ]
    assert [
        (one["what"], one["direction"], one["enforced"], one["by"]) for one in explained["enforcement"]
    ] == [
        ("level", "egress", True, ["tc"]),
        ("limit", "egress", True, ["tc"]),
        ("rules", "egress", False, []),
        ("level", "ingress", True, ["tc"]),
        ("limit", "ingress", True, ["tc"]),
    ]
    assert explained["enforcement"][2]["reason"].startswith("no backend in use enforces rules inside a pod")
    assert explained["now"] == [
        {
            "device": "up0",
            "direction": "egress",
            "rate_bps": 98 * M,
            "guarantee_bps": 200 * M,
            "ceiling_bps": 1000 * M,
            "contention": True,
            "backlogged": True,
            "reason": "needs-of-others",
            "reason_text": "contention for 2.5s: 911.5M of 1G used, 91.1%, from 90% on as packets of L0 and L2 wait; "
            "L2 may use 1G, its own ceiling",
        },
        {
            "device": "netqos-ifb",
            "direction": "ingress",
            "rate_bps": 60 * M,
            "guarantee_bps": 120 * M,
            "ceiling_bps": 450 * M,
            "contention": True,
            "backlogged": False,
            "reason": "needs-of-others",
            "reason_text": "contention for 2.5s: 440M of 450M used, 97.8%, from 95% on; "
            "L2 may use 450M, all of the room",
        },
    ]
    assert explained["override"] is None
    assert "not traffic between pods of this node" in explained["scope"]
    assert [(one["direction"], one["claims"], one["used"], one["moved"]) for one in explained["paths"]] == [
        ("egress", ["tx4 10.88.0.12"], True, None),
        ("ingress", ["rx4 10.88.0.12"], False, None),
    ]


async def test_explain_shows_an_override_and_what_backends_say_of_the_pod() -> None:
    shown = view()
    said = replace(
        shown.findings[0], code="limit-not-enforced", subject="pod prod/hostile", message="ingress: no IFB"
    )
    backends = {**shown.backends, "tc": replace(shown.backends["tc"], findings=(said,))}
    explained = await get("/v1/explain?pod=prod/hostile", SampleAgent(replace(shown, backends=backends)))
    assert explained["override"]["ingress_bps"] == 7 * M
    assert explained["override"]["expires_in_s"] == 500.0  # the boot clock ends it before the wall clock does
    assert explained["override"]["expires_unix_s"] == 1_700_000_500.0
    assert [one["code"] for one in explained["findings"]] == ["bad-limit", "limit-not-enforced"]


async def test_a_backends_refusal_of_one_limit_is_believed() -> None:
    shown = view()
    said = replace(
        shown.findings[0], code="not-enforced", subject="pod batch/crunch", message="egress: no leaf"
    )
    backends = {**shown.backends, "tc": replace(shown.backends["tc"], findings=(said,))}
    pods = (await get("/v1/pods", SampleAgent(replace(shown, backends=backends))))["pods"]
    assert pods[0]["limits"]["egress"]["enforced_by"] == []
    assert pods[0]["limits"]["egress"]["not_enforced"] == "tc: egress: no leaf"
    assert pods[3]["limits"]["egress"]["enforced_by"] == ["tc"]


async def test_explain_finds_workloads_uids_and_suggests_near_names() -> None:
    async with serving() as path:
        assert (await ask(path, "/v1/explain?pod=web")).json["pod"]["uid"] == WEB
        assert (await ask(path, f"/v1/explain?pod={DB}")).json["pod"]["name"] == "db"
        assert (await ask(path, f"/v1/explain/{WEB}")).json["pod"]["name"] == "web"
        near = (await ask(path, "/v1/explain?pod=test/db")).error
        assert (near["code"], near["hint"]) == ("no-such-pod", "did you mean prod/db?")


async def test_a_name_that_two_pods_bear_is_ambiguous() -> None:
    twin = replace(PODS[1], uid=PodUid("uid-2"))
    shown = replace(view(), composition=composition(DESIRED, (*PODS, twin)))
    async with serving(SampleAgent(shown)) as path:
        answer = await ask(path, "/v1/explain?pod=prod/db")
    assert (answer.status, answer.error["code"]) == (409, "ambiguous-pod")
    assert len(answer.error["problems"]) == 2


async def test_a_pod_asked_for_before_anything_is_known_is_503() -> None:
    async with serving(SampleAgent(EMPTY)) as path:
        assert (await ask(path, "/v1/explain?pod=web")).error["code"] == "starting"


@pytest.mark.parametrize(
    "target",
    ["/v1/status?x=1", "/v1/explain", "/v1/explain?pod=", "/v1/explain?name=web", "/v1/pods?counters=yes"],
)
async def test_a_wrong_query_is_400_and_says_what_is_taken(target: str) -> None:
    async with serving() as path:
        answer = await ask(path, target)
    assert (answer.status, answer.error["code"]) == (400, "bad-query")
    assert answer.error["hint"]


async def test_plans_are_shared_between_readers() -> None:
    agent = SampleAgent()
    agent.delay_s = 0.05
    async with serving(agent) as path:
        answers = await asyncio.gather(*(ask(path, "/v1/plan") for _ in range(20)))
    assert {answer.status for answer in answers} == {200}
    assert agent.calls == ["plan"]
    assert [one["verb"] for one in answers[0].json["plans"][0]["operations"]] == [
        "create",
        "change",
        "delete",
    ]


async def test_history_is_oldest_first_with_wall_time() -> None:
    history = await get("/v1/history")
    assert [(one["at_s"], one["direction"]) for one in history["decisions"]] == [
        (998.9, "tx"),
        (999.9, "tx"),
        (999.9, "rx"),
    ]
    assert history["now_s"] == 1000.0
    assert history["decisions"][1]["unix_s"] == pytest.approx(1_700_000_000 - 0.1)


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("since_s=1", [1, 2]),
        ("since_s=1.5", [0, 1, 2]),
        ("direction=rx", [2]),
        ("device=up0", [0, 1]),
        ("device=nobody", []),
        ("changes=true", [1, 2]),
        ("changes=false&direction=tx&since_s=1", [1]),
    ],
)
async def test_history_can_be_narrowed(query: str, places: list[int]) -> None:
    whole = (await get("/v1/history"))["decisions"]
    assert (await get(f"/v1/history?{query}"))["decisions"] == [whole[place] for place in places]


@pytest.mark.parametrize(
    ("query", "reasons"),
    [
        ("changes=true", ["try-lower", "eased"]),
        ("direction=rx&device=netqos-ifb", ["try-lower", "eased"]),
        ("since_s=51", ["eased"]),
        ("since_s=49", []),
        ("direction=tx", []),
        ("device=up0", []),
    ],
)
async def test_history_has_the_steps_of_totals_too(query: str, reasons: list[str]) -> None:
    found = await get(f"/v1/history?{query}")
    assert [(one["device"], one["reason"]) for one in found["steps"]] == [
        ("netqos-ifb", reason) for reason in reasons
    ]


async def test_steps_of_several_devices_are_in_order_of_time() -> None:
    known = view().paths
    earlier = tuple(replace(one, at_s=one.at_s - 1) for one in known[RX_UNIT].steps)
    agent = SampleAgent(view(paths={**known, UNIT: replace(known[UNIT], steps=earlier)}))
    found = (await get("/v1/history", agent))["steps"]
    assert [(one["device"], one["at_s"]) for one in found] == [
        ("up0", 947.1),
        ("netqos-ifb", 948.1),
        ("up0", 949.0),
        ("netqos-ifb", 950.0),
    ]


async def test_a_decision_tells_its_reasons_in_figures_and_words() -> None:
    quiet, busy, received = (await get("/v1/history"))["decisions"]
    assert quiet["reason_text"] == "no contention: 511.5M of 1G used, 51.1%, it begins at 95%"
    assert busy["reason_text"] == (
        "contention for 2.5s: 911.5M of 1G used, 91.1%, from 90% on as packets of L0 and L2 wait; "
        "L0 may use 600M: L1 is left 200M and L2 keeps its guarantee of 200M"
    )
    assert busy["why"]["contention"] == {
        "cause": "waiting",
        "used_bps": 911_500_000,
        "total_bps": 1000 * M,
        "threshold": 0.9,
        "waiting": ["L0", "L2"],
        "hold_s": 1.0,
        "calm_s": None,
        "since_s": 2.5,
        "onset_bps": 960 * M,
        "onset_waiting": False,
        "text": "contention for 2.5s: 911.5M of 1G used, 91.1%, from 90% on as packets of L0 and L2 wait",
    }
    assert busy["why"]["levels"]["L0"] == {
        "term": "left",
        "ceiling_bps": 600 * M,
        "wanted_bps": 600 * M,
        "kept_bps": {"L0": 0, "L1": 200 * M, "L2": 200 * M},
        "text": "L0 may use 600M: L1 is left 200M and L2 keeps its guarantee of 200M",
    }
    assert (busy["why"]["room"], busy["missed"]) == (None, 0)
    assert received["why"]["room"] == {
        "of": "node",
        "bps": 450 * M,
        "total_bps": 600 * M,
        "beside_bps": 150 * M,
        "text": "room 450M of 600M: the node itself receives 150M",
    }


async def test_status_says_why_of_each_direction_and_level() -> None:
    directions = (await get("/v1/status"))["directions"]
    assert directions["rx"]["why"] == (
        "contention for 2.5s: 440M of 450M used, 97.8%, from 95% on; it began with 432M of 450M; "
        "room 450M of 600M: the node itself receives 150M"
    )
    assert [one["why"] for one in directions["rx"]["levels"].values()] == [
        "L0 may use 210M: L1 keeps its guarantee of 180M and L2 is left 60M",
        "L1 may use 450M, all of the room",
        "L2 may use 450M, all of the room",
    ]


async def test_of_two_uplinks_each_is_told_by_its_name() -> None:
    other = Unit(Direction.TX, IfName("up1"))
    second = ground_of(replace(DECISION, unit=other), 1000 * M, states.TX.levels, PerLevel(0, 0, 0))
    shown = view(loop=replace(view().loop, newest={UNIT: GROUND, other: second}))
    why = (await get("/v1/status", SampleAgent(shown)))["directions"]["tx"]["levels"]["L1"]["why"]
    assert why == "up0: L1 may use 800M, its own ceiling; up1: L1 may use 800M, its own ceiling"


# ------------------------------------------------------------------ changing


async def test_an_override_is_set_listed_and_ended() -> None:
    agent = SampleAgent()
    async with serving(agent) as path:
        put = await ask(path, "/v1/overrides?pod=web", "PUT", '{"egress": "10M", "level": "L2", "ttl": 90}')
        listed = await ask(path, "/v1/overrides")
        gone = await ask(path, f"/v1/overrides/{WEB}", "DELETE")
        again = await ask(path, f"/v1/overrides/{WEB}", "DELETE")
    request = OverrideRequest(egress="10M", level="L2", ttl_s=90.0, author_uid=os.geteuid())
    assert agent.requests == [(WEB, request)]
    assert (put.json["pod"], put.json["egress_bps"], put.json["level"]) == ("web", 10 * M, Level.L2.name)
    assert put.json["expires_in_s"] == 90.0
    assert [one["uid"] for one in listed.json["overrides"]] == [OVERRIDE.uid, WEB]
    assert gone.json == {"uid": WEB, "deleted": True}
    assert (again.status, again.error["code"]) == (404, "no-such-override")


async def test_a_rejected_override_names_every_problem() -> None:
    async with serving() as path:
        answer = await ask(
            path, f"/v1/overrides/{WEB}", "PUT", '{"egress": "10Mbps", "level": "l9", "ttl": 0}'
        )
    assert (answer.status, answer.error["code"], len(answer.error["problems"])) == (422, "rejected", 3)


async def test_a_long_wrong_value_is_not_sent_back_whole() -> None:
    async with serving() as path:
        answer = await ask(path, f"/v1/overrides/{WEB}", "PUT", json.dumps({"level": "x" * 60_000, "ttl": 1}))
    assert (answer.status, len(answer.body) < 4000) == (422, True)


@pytest.mark.parametrize(
    ("body", "code", "part"),
    [
        ("", "bad-body", "JSON"),
        ("[]", "bad-body", "body: "),
        ('{"egress": "10M"}', "bad-body", "ttl: "),
        ('{"egress": 10, "ttl": 1}', "bad-body", "egress: "),
        ('{"egress": "1M", "ttl": 1, "colour": 1}', "bad-body", "colour: "),
        ('{"egress": "1M", "ttl": true}', "bad-body", "ttl: "),
        ('{"egress": "1M", "ttl": "ten"}', "bad-body", "ttl: 'ten' is no duration"),
        ('{"egress": "1M", "ttl": ""}', "bad-body", "ttl: '' is no duration"),
        ('{"egress": "1M", "ttl": NaN}', "bad-body", "ttl: nan is no duration"),
        ('{"egress": "1M", "ttl": 1e999}', "bad-body", "ttl: inf is no duration"),
        ('{"egress": "1M", "ttl": 1, "reason": "' + "x" * 257 + '"}', "bad-body", "reason: 257 characters"),
        ("[" * 5000, "bad-body", ""),
        ('{"egress": "\\ud800", "ttl": 1}', "bad-body", ""),
    ],
)
async def test_a_body_of_the_wrong_form_is_400_and_names_the_field(body: str, code: str, part: str) -> None:
    agent = SampleAgent()
    async with serving(agent) as path:
        answer = await ask(path, f"/v1/overrides/{WEB}", "PUT", body)
    assert (answer.status, answer.error["code"]) == (400, code)
    assert part in answer.error["problems"][0]
    assert agent.requests == []


async def test_rejected_requests_are_counted() -> None:
    recorder = Recorder()
    router = StatusApi(SampleAgent(), CLOCK, recorder).router()
    bodies = [b"", b'{"level": "l9", "ttl": 1}', b'{"level": "l1", "ttl": 1}']
    outcomes = []
    for body in bodies:
        request = Request(method="PUT", path=("v1", "overrides", WEB), body=body, peer_uid=0)
        try:
            outcomes.append((await router(request)).status)
        except HttpError as problem:
            outcomes.append(problem.status)
    assert (outcomes, recorder.read().rejected["invalid-override"]) == ([400, 422, 200], 2)


async def test_two_wrong_fields_are_two_problems() -> None:
    async with serving() as path:
        answer = await ask(path, f"/v1/overrides/{WEB}", "PUT", '{"egress": 1, "ingress": 2, "ttl": []}')
    assert [line.split(":")[0] for line in answer.error["problems"]] == ["egress", "ingress", "ttl"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("1.5s", 1.5),
        ("10m", 600.0),
        ("1h30m", 5400.0),
        ("2h", 7200.0),
        ("0", 0.0),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert body_request({"level": "l1", "ttl": text}).ttl_s == seconds


@pytest.mark.parametrize("text", ["10x", "m", "-5m", "1m1h", "1 m", "１0m", "10m\n", "1e3", "99999999999h"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(HttpError, match="no duration"):
        body_request({"level": "l1", "ttl": text})


def body_request(body: dict[str, object]) -> OverrideRequest:
    return override_request(Request(method="PUT", path=(), body=json.dumps(body).encode()))


@given(
    st.dictionaries(
        st.sampled_from(["egress", "ingress", "level", "ttl", "reason", "x"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.lists(st.integers(), max_size=2),
    )
)
def test_any_json_body_is_a_request_or_a_typed_error(body: dict[str, object]) -> None:
    try:
        request = body_request(body)
    except HttpError as problem:
        assert (problem.status, bool(problem.problems)) == (400, True)  # noqa: PT017
    else:
        assert request.ttl_s == request.ttl_s


async def test_a_body_that_is_no_json_is_415() -> None:
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    async with serving() as path:
        answer = await ask(path, f"/v1/overrides/{WEB}", "PUT", "egress=10M", **form)
        accepted = await ask(
            path,
            f"/v1/overrides/{WEB}",
            "PUT",
            '{"level":"l1","ttl":1}',
            Content_Type="Application/JSON; charset=utf-8",
        )
    assert (answer.status, answer.error["code"], accepted.status) == (415, "unsupported-media-type", 200)


async def test_an_override_of_an_unknown_pod_is_404() -> None:
    async with serving() as path:
        for target in ("/v1/overrides/nobody", "/v1/overrides?pod=prod/nobody"):
            answer = await ask(path, target, "PUT", '{"level": "l1", "ttl": 1}')
            assert (answer.status, answer.error["code"]) == (404, "no-such-pod")


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (Rejected("wrong", hint="do right"), 422, "rejected"),
        (Retryable("busy"), 503, "try-again"),
        (Unsupported("no htb"), 501, "unsupported"),
        (Fatal("broken"), 500, "failed"),
    ],
)
async def test_each_kind_of_error_has_its_status(failure: NetqosError, status: int, code: str) -> None:
    agent = SampleAgent()
    async with serving(agent) as path:
        agent.failure = failure
        answer = await ask(path, "/v1/reconcile", "POST")
    assert (answer.status, answer.error["code"], answer.error["message"]) == (status, code, failure.message)


async def test_reconcile_gives_each_backends_result() -> None:
    async with serving() as path:
        answer = await ask(path, "/v1/reconcile", "POST")
    assert answer.json == {
        "ok": True,
        "results": {
            "tc": {"ok": True, "applied": 3, "failures": []},
            "files": {"ok": True, "applied": 0, "failures": []},
        },
    }


# ------------------------------------------------------------------ who may


def test_only_root_and_the_daemons_own_user_may_change() -> None:
    for uid in (0, os.geteuid()):
        require_root(Request(method="PUT", path=(), peer_uid=uid))
    for other in (None, os.geteuid() + 1):
        with pytest.raises(HttpError) as caught:
            require_root(Request(method="PUT", path=(), peer_uid=other))
        assert (caught.value.status, caught.value.code) == (403, "forbidden")
        assert caught.value.hint


CLIENT = """
import http.client, json, socket, sys
connection = http.client.HTTPConnection("netqos")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(sys.argv[1])
statuses = []
for method, target in (("GET", "/v1/status"), ("PUT", sys.argv[2]), ("DELETE", sys.argv[2]), ("POST", "/v1/reconcile")):
    connection.request(method, target, body="{}", headers={"Content-Type": "application/json"})
    answer = connection.getresponse()
    statuses.append(answer.status)
    answer.read()
print(json.dumps(statuses))
"""


def can_become_nobody() -> bool:
    rows = Path("/proc/self/uid_map").read_text(encoding="ascii").split()
    return os.geteuid() == 0 and int(rows[2]) > 65_534


if can_become_nobody():

    async def test_another_user_of_the_sockets_group_reads_and_changes_nothing() -> None:
        agent = SampleAgent()
        async with serving(agent) as path:
            path.parent.chmod(0o755)
            done = await asyncio.to_thread(run_as_nobody, path, groups=[path.stat().st_gid])
            stranger = await asyncio.to_thread(run_as_nobody, path, groups=[])
        assert json.loads(done.stdout) == [200, 403, 403, 403]
        assert "PermissionError" in stranger.stderr
        assert agent.calls == []


def run_as_nobody(path: Path, *, groups: list[int]) -> subprocess.CompletedProcess[str]:
    python = Path(sys.executable).resolve()
    return subprocess.run(
        [python, "-S", "-c", CLIENT, str(path), f"/v1/overrides/{WEB}"],
        user=65_534,
        group=65_534,
        extra_groups=groups,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
