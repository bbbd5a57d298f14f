"""Any order of changes and faults: once they end, what is known equals what a fresh start learns."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from netqos.testing.faultproxy import FaultProxy
from netqos.testing.faultreplies import Body, CutBody, HalfBody, HangUp, gone, status
from tests.apiserver.client import ApiError
from tests.apiserver.fixtures import MakeProxy
from tests.apiserver.kube import Kube
from tests.apiserver.launch import write_kubeconfig
from tests.apiserver.server import ApiServer
from tests.kube.followed import Followed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

EGRESS = "koordinator.sh/egress-bandwidth"
NAMES = st.sampled_from(["a", "b", "c", "d"])
REPLIES = st.sampled_from(
    [
        *(status(code) for code in (401, 403, 410, 500, 503)),
        status(429, retry_after_s=1),
        *(gone(), Body(content=b"garbage"), HalfBody(), CutBody(), HangUp()),
        Body(content=b'{"kind": "Status", "metadata": {"resourceVersion": "1"}}'),
    ]
)


def make_machine(  # noqa: C901 - each step is one call
    kube: Kube, proxy: FaultProxy, start: Callable[[], Followed]
) -> type[RuleBasedStateMachine]:
    """A machine on one cluster; each of its runs begins with what the one before left there."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            proxy.clear()
            proxy.restore()
            self.open = contextlib.ExitStack()
            self.followed = self.open.enter_context(start()).ready(30)
            self.ever = {pod.uid for pod in self.followed.world.pods.value}

        @rule(name=NAMES, number=st.integers(1, 250))
        def create(self, name: str, number: int) -> None:
            try:
                made = kube.create_pod(name, ips=[f"10.88.0.{number}"])
            except ApiError:
                kube.annotate_pod(name, {EGRESS: f"{number}M"})
            else:
                self.ever.add(made["metadata"]["uid"])

        @rule(name=NAMES)
        def remove(self, name: str) -> None:
            with contextlib.suppress(ApiError):
                kube.remove_pod(name)

        @rule(name=NAMES, phase=st.sampled_from(["Running", "Failed"]))
        def report(self, name: str, phase: str) -> None:
            with contextlib.suppress(ApiError):
                kube.report_pod(name, phase=phase)

        @rule(limit=st.sampled_from([None, 20, 50]))
        def slo(self, limit: int | None) -> None:
            spec = {
                "resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": limit}}}
            }
            try:
                kube.patch_slo(spec) if limit is not None else kube.delete_slo()
            except ApiError:
                kube.create_slo(spec)

        @rule()
        def reset(self) -> None:
            proxy.reset()

        @rule()
        def refuse(self) -> None:
            proxy.refuse()
            proxy.reset()

        @rule()
        def restore(self) -> None:
            proxy.restore()
            proxy.clear()

        @rule(reply=REPLIES, times=st.integers(1, 3), watch=st.booleans())
        def answer(self, reply: Body, times: int, watch: bool) -> None:
            proxy.answer(reply, watch=watch, times=times)

        @rule(seconds=st.sampled_from([0.01, 0.1, 0.5]))
        def wait(self, seconds: float) -> None:
            time.sleep(seconds)

        @invariant()
        def nothing_is_made_up(self) -> None:
            assert {pod.uid for pod in self.followed.world.pods.value} <= self.ever

        def teardown(self) -> None:
            proxy.clear()
            proxy.restore()
            with self.open, start() as fresh:
                fresh.ready(30)
                self.followed.until(lambda: known(self.followed) == known(fresh), 30)
                self.followed.ready(30)

    return Machine


def known(followed: Followed) -> tuple[object, ...]:
    pods = {pod.uid: pod for pod in followed.world.pods.value}
    return pods, followed.slo, followed.bandwidth


def test_faults_in_any_order(apiserver: ApiServer, kube: Kube, make_proxy: MakeProxy, tmp_path: Path) -> None:
    proxy, token = make_proxy(apiserver), apiserver.access.token
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", proxy.url, proxy.ca_file, token=token)
    machine = make_machine(kube, proxy, lambda: Followed(kubeconfig, kube.node))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=12,
            stateful_step_count=12,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
