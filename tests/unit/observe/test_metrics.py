from __future__ import annotations

import asyncio
import json
import math
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import structlog
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from netqos.errors import Retryable
from netqos.model.health import Finding
from netqos.model.ids import workload_uid
from netqos.model.levels import Level
from netqos.observe.measure import measure
from netqos.observe.metrics import METRICS, MOST_PODS
from netqos.observe.metricsserver import serve_metrics
from netqos.observe.moment import Moment
from netqos.observe.recorder import REASONS, Recorder
from netqos.observe.view import AgentView
from tests.unit.observe.sample import (
    BAD_VALUE,
    CLOCK,
    COUNTERS,
    CRUNCH,
    DESIRED,
    EMPTY,
    PODS,
    WEB,
    SampleAgent,
    composition,
    tx_only,
    view,
)
from tests.unit.observe.serving import Answer, parse, until

M = 1_000_000
DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"
Values = dict[tuple[str, tuple[str, ...]], float]


def values(shown: AgentView, recorder: Recorder | None = None) -> Values:
    samples = measure(shown, COUNTERS, (recorder or Recorder()).read(), Moment.now(CLOCK))
    return {(one.name, one.labels): one.value for one in samples if isinstance(one.value, (int, float))}


def named(found: Values, name: str) -> dict[tuple[str, ...], float]:
    return {labels: value for (one, labels), value in found.items() if one == f"netqos_{name}"}


# ------------------------------------------------------------------ what is measured


def test_levels_have_their_promises_rates_and_ceilings() -> None:
    found = values(view())
    assert named(found, "level_guarantee_bits_per_second") == {
        ("tx", "L0"): 500 * M,
        ("tx", "L1"): 300 * M,
        ("tx", "L2"): 200 * M,
        ("rx", "L0"): 300 * M,
        ("rx", "L1"): 180 * M,
        ("rx", "L2"): 120 * M,
    }
    assert named(found, "level_rate_bits_per_second")["tx", "L1"] == 201_500_000
    assert named(found, "level_current_ceiling_bits_per_second")["tx", "L0"] == 600 * M
    assert named(found, "level_current_ceiling_bits_per_second")["rx", "L0"] == 210 * M
    assert named(found, "level_rate_bits_per_second")["rx", "L1"] == 177 * M
    assert named(found, "level_enforced")["tx", "L2"] == 1
    assert named(found, "level_enforced")["rx", "L2"] == 1
    assert named(found, "level_backlog_bytes")["tx", "L0"] == 3000
    assert named(found, "level_backlog_bytes")["rx", "L0"] == 1500
    assert named(found, "contention") == {("tx",): 1, ("rx",): 1}
    assert named(found, "contention_seconds") == {("tx",): 61.5, ("rx",): 7.25}
    assert named(found, "room_bits_per_second") == {("tx",): 1000 * M, ("rx",): 450 * M}
    assert named(found, "total_bits_per_second") == {
        ("tx", "nodeslo"): 1000 * M,
        ("rx", "speed of up0"): 600 * M,
    }


def test_a_direction_that_nobody_shapes_is_not_enforced() -> None:
    found = values(tx_only())
    assert named(found, "level_enforced")["rx", "L2"] == 0
    assert named(found, "level_current_ceiling_bits_per_second")["rx", "L0"] == math.inf
    assert named(found, "contention") == {("tx",): 1, ("rx",): 0}
    assert named(found, "room_bits_per_second")["rx",] == 600 * M
    assert named(found, "pod_limit_enforced")[CRUNCH, "batch", "crunch", "rx"] == 0


def test_pods_have_their_limits_with_source_and_enforcement() -> None:
    found = values(view())
    crunch = (CRUNCH, "batch", "crunch")
    limits = named(found, "pod_limit_bits_per_second")
    assert limits[*crunch, "tx", "annotation koordinator.sh/egress-bandwidth"] == 50 * M
    assert limits[*crunch, "rx", "annotation kubernetes.io/ingress-bandwidth"] == 20 * M
    assert len(limits) == 4
    assert named(found, "pod_limit_enforced")[*crunch, "tx"] == 1
    assert named(found, "pod_limit_enforced")[*crunch, "rx"] == 1
    assert named(found, "pod_sent_bytes")[*crunch, "tx"] == 555
    assert named(found, "pod_sent_bytes")[WEB, "", "web", "rx"] == 9_876_543


def test_backends_sources_and_findings_are_counted() -> None:
    found = values(view())
    assert named(found, "backend_operations")["tc", "create", "ok"] == 14
    assert named(found, "backend_operations")["tc", "delete", "error"] == 0
    assert named(found, "drift_repairs") == {("tc",): 2, ("terway",): 0, ("files",): 0}
    assert {state for state, value in named(found, "backend_state").items() if value} == {
        ("tc", "ok"),
        ("terway", "unavailable"),
        ("files", "ok"),
    }
    assert {state for state, value in named(found, "source_state").items() if value} == {
        ("file", "fresh"),
        ("nodeslo", "waiting"),
        ("pods", "stale"),
    }
    assert named(found, "source_age_seconds") == {("file",): 0.0, ("nodeslo",): math.inf, ("pods",): 120.0}
    assert named(found, "findings") == {("info",): 1, ("warning",): 2, ("error",): 2}
    assert named(found, "finding")["bad-limit", "warning"] == 1


def test_everything_without_a_subject_is_there_from_the_start() -> None:
    found = values(EMPTY)
    for name, count in (
        ("level_rate_bits_per_second", 6),
        ("level_guarantee_bits_per_second", 6),
        ("level_pods", 3),
        ("contention_seconds", 2),
        ("findings", 3),
        ("rejected_inputs", len(REASONS)),
        ("ticks", 1),
        ("pods_omitted", 1),
    ):
        assert list(named(found, name).values()) == [0] * count, name


def test_a_pod_that_is_gone_or_moved_leaves_no_series() -> None:
    moved = replace(PODS[0], level=Level.L1)
    before, after = values(view()), values(view(composition=composition(DESIRED, (moved,))))
    assert {labels[2:4] for labels in named(before, "pod_info")} >= {("web", "L0"), ("db", "L1")}
    assert [labels[2:4] for labels in named(after, "pod_info")] == [("web", "L1")]
    assert {labels[2] for (name, labels) in after if name.startswith("netqos_pod_")} == {"web"}


def test_two_pods_of_one_name_have_series_of_their_own() -> None:
    twin = replace(PODS[2], uid=workload_uid("twin"))
    samples = list(
        measure(
            view(composition=composition(DESIRED, (*PODS, twin))),
            COUNTERS,
            Recorder().read(),
            Moment.now(CLOCK),
        )
    )
    keys = [(one.name, one.labels) for one in samples]
    assert len(set(keys)) == len(keys)


def test_pods_beyond_the_bound_are_omitted_and_counted() -> None:
    many = tuple(
        replace(PODS[0], uid=workload_uid(f"w{i:04}"), name=f"w{i:04}") for i in range(MOST_PODS + 7)
    )
    found = values(view(composition=composition(DESIRED, many)))
    assert len(named(found, "pod_info")) == MOST_PODS
    assert named(found, "pods_omitted") == {(): 7}
    assert named(found, "level_pods")["L0",] == MOST_PODS + 7


def test_every_sample_is_of_the_table_and_every_metric_is_measured() -> None:
    samples = list(measure(view(), COUNTERS, Recorder().read(), Moment.now(CLOCK)))
    table = {metric.name: metric for metric in METRICS}
    assert {one.name for one in samples} == set(table)
    assert all(len(one.labels) == len(table[one.name].labels) for one in samples)


def test_the_documented_table_is_the_codes() -> None:
    rows = re.findall(
        r"^\| `(netqos_\w+)` \| (\w+) \| (.+?) \| (.+) \|$", DOCS.read_text(encoding="utf-8"), re.M
    )
    expected = [
        (
            metric.name + ("_total" if metric.kind == "counter" else ""),
            metric.kind,
            ", ".join(metric.labels) or "-",
            metric.help,
        )
        for metric in METRICS
    ]
    assert rows == expected


def test_every_metric_that_the_docs_query_exists() -> None:
    text = DOCS.read_text(encoding="utf-8")
    known = {metric.name + ("_total" if metric.kind == "counter" else "") for metric in METRICS}
    assert set(re.findall(r"netqos_\w+", text)) <= known


# ------------------------------------------------------------------ how it is served


async def fetch(port: int, target: str, **headers: str) -> Answer:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}\r\n".encode())
    raw = await reader.read()
    writer.close()
    await writer.wait_closed()
    return parse(raw)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def served(
    agent: SampleAgent, recorder: Recorder | None = None, *, port: int = 0
) -> AsyncIterator[tuple[int, list[Finding | None]]]:
    port = port or free_port()
    reports: list[Finding | None] = []
    task = asyncio.create_task(
        serve_metrics(
            f"127.0.0.1:{port}", agent, recorder or Recorder(), CLOCK, report=reports.append, retry_s=0.05
        )
    )
    try:
        await until(lambda: bool(reports) or task.done())
        await asyncio.sleep(0.02)
        yield port, reports
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def series(families: object) -> Mapping[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families  # type: ignore[attr-defined]
        for sample in family.samples
    }


async def test_a_scrape_is_what_was_measured() -> None:
    recorder = Recorder()
    recorder.tick(late_s=0.0004, took_s=0.0001)
    async with served(SampleAgent(), recorder) as (port, _):
        answer = await fetch(port, "/metrics")
    found = series(parse_text(answer.body.decode()))
    assert found["netqos_drift_repairs_total", (("backend", "tc"),)] == 2
    assert found["netqos_level_pods", (("level", "L2"),)] == 2
    assert found["netqos_tick_lateness_seconds_bucket", (("le", "0.0005"),)] == 1
    assert found["netqos_tick_lateness_seconds_bucket", (("le", "0.00025"),)] == 0
    assert found["netqos_tick_lateness_seconds_count", ()] == 1
    assert found["process_open_fds", ()] > 0
    assert answer.headers["content-type"].startswith("text/plain")


async def test_openmetrics_is_given_to_who_asks_for_it() -> None:
    async with served(SampleAgent()) as (port, _):
        answer = await fetch(port, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    families = parse_openmetrics(answer.body.decode())  # type: ignore[no-untyped-call]
    assert series(families)["netqos_ready", ()] == 1


async def test_hostile_label_values_are_escaped() -> None:
    evil = replace(PODS[0], name='a"b\\c\nd{}')
    async with served(SampleAgent(view(composition=composition(DESIRED, (evil,))))) as (port, _):
        answer = await fetch(port, "/metrics")
    names = {dict(labels).get("pod") for _, labels in series(parse_text(answer.body.decode()))}
    assert 'a"b\\c\nd{}' in names


async def test_counters_that_cannot_be_read_do_not_stop_a_scrape() -> None:
    class Broken(SampleAgent):
        async def all_counters(self):  # type: ignore[no-untyped-def]
            raise Retryable("busy")

    async with served(Broken()) as (port, _):
        answer = await fetch(port, "/metrics")
    assert answer.status == 200
    assert b"netqos_pod_sent_bytes_total{" not in answer.body
    assert b"netqos_pod_info{" in answer.body


async def test_health_and_readiness() -> None:
    shown = view()
    for agent, health, ready in (
        (SampleAgent(shown), 200, 200),
        (SampleAgent(EMPTY), 200, 503),
        (SampleAgent(view(loop=replace(shown.loop, last_tick_s=CLOCK.monotonic() - 6))), 503, 200),
        (SampleAgent(view(loop=replace(shown.loop, last_tick_s=None))), 200, 200),
    ):
        async with served(agent) as (port, _):
            statuses = [(await fetch(port, "/healthz")).status, (await fetch(port, "/readyz")).status]
        assert statuses == [health, ready]


async def test_who_is_waited_for_is_named_with_the_reason() -> None:
    waiting = view(ready=False, waited_for={"pods": "403: no", "node": "no Node w1 on this server"})
    async with served(SampleAgent(waiting)) as (port, _):
        answer = await fetch(port, "/readyz")
    assert answer.status == 503
    told = json.loads(answer.body)["error"]
    assert (told["message"], told["problems"]) == (
        "waiting for pods, node",
        ["source pods: 403: no", "source node: no Node w1 on this server"],
    )


async def test_only_the_three_paths_are_there() -> None:
    async with served(SampleAgent()) as (port, _):
        assert (await fetch(port, "/v1/status")).status == 404


async def test_a_taken_port_is_a_finding_until_it_is_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with structlog.testing.capture_logs() as lines:
            async with served(SampleAgent(), port=port) as (_, reports):
                await until(lambda: len(reports) >= 3)
                taken.close()
                await until(lambda: reports[-1] is None)
                await asyncio.sleep(0.02)
                assert (await fetch(port, "/healthz")).status == 200
    first = reports[0]
    assert first is not None
    assert (first.code, first.subject) == ("metrics-not-served", f"metrics.listen 127.0.0.1:{port}")
    assert [line["event"] for line in lines] == ["metrics_not_served", "metrics_served"]


async def test_rejected_findings_reach_the_counter() -> None:
    recorder = Recorder()
    recorder.saw([replace(BAD_VALUE, code="invalid-limit")])
    assert named(values(view(), recorder), "rejected_inputs")["invalid-limit",] == 1
