"""Whatever an API server does: what was known stays, it is told, and the truth is reached soon after."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import psutil
import pytest

from netqos.model.inputs import Freshness
from netqos.sources.kube.asking import Pace
from netqos.sources.kube.nodes import BANDWIDTH_KEY as BANDWIDTH
from netqos.testing.faultproxy import FaultProxy
from netqos.testing.faultreplies import (
    Body,
    CutBody,
    HalfBody,
    HangUp,
    NoAnswer,
    Reply,
    Request,
    Silence,
    gone,
    status,
)
from tests.apiserver.fixtures import MakeProxy, StartServer
from tests.apiserver.kube import NODES, Kube
from tests.apiserver.launch import write_kubeconfig
from tests.apiserver.server import ApiServer
from tests.kube.conftest import Follow
from tests.kube.followed import Followed

EGRESS = "koordinator.sh/egress-bandwidth"
PODS = "/api/v1/pods"


@pytest.fixture
def proxy(make_proxy: MakeProxy, apiserver: ApiServer) -> FaultProxy:
    return make_proxy(apiserver)


@pytest.fixture
def followed(follow: Follow, apiserver: ApiServer, kube: Kube, proxy: FaultProxy) -> Followed:
    kube.create_pod("web", ips=["10.88.0.1"], annotations={EGRESS: "10M"})
    kube.create_slo({"networkQOSStrategy": {"enable": True}})
    return follow(apiserver, kube.node, proxy=proxy).ready()


def change(kube: Kube) -> None:
    """What happens while nobody sees it."""
    kube.annotate_pod("web", {EGRESS: "20M"})
    kube.create_pod("late", ips=["10.88.0.2"])


def has_caught_up(followed: Followed) -> bool:
    pods = followed.pods
    return set(pods) == {"web", "late"} and pods["web"].annotations == {EGRESS: "20M"}


def is_kept(followed: Followed) -> bool:
    web = followed.pods.get("web")
    return web is not None and web.annotations == {EGRESS: "10M"} and followed.slo is not None


@pytest.mark.parametrize("how", ["refuse", "reset"])
def test_a_server_that_was_away_is_caught_up_with_within_two_seconds(
    followed: Followed, kube: Kube, proxy: FaultProxy, how: str
) -> None:
    if how == "refuse":
        proxy.refuse()
    proxy.reset()
    if how == "refuse":
        followed.until(lambda: set(followed.freshness().values()) == {"stale"})
        change(kube)
        threading.Event().wait(3)
        assert is_kept(followed)
        assert {one.code for one in followed.findings} == {"source-away"}
        proxy.restore()
    else:
        change(kube)
    assert followed.until(lambda: has_caught_up(followed)) < 2
    followed.ready()
    assert followed.findings == ()
    assert len(whole_lists(proxy)) == 1


@pytest.mark.timeout(90)
def test_many_resets_on_end_cost_no_more_than_one(followed: Followed, kube: Kube, proxy: FaultProxy) -> None:
    """Wherever it cuts, also between two chunks of a watch: a lost connection, and asked again within a second."""
    met: set[str] = set()
    for _ in range(14):
        proxy.reset()
        followed.until(lambda: set(followed.freshness().values()) != {"fresh"})
        met |= {state.detail for state in followed.states.values() if state.freshness is Freshness.STALE}
        threading.Event().wait(0.25)
    change(kube)
    assert followed.until(lambda: has_caught_up(followed)) < 2
    followed.ready(2)
    assert not any("invalid literal" in detail for detail in met), met
    assert len(whole_lists(proxy)) == 1


def whole_lists(proxy: FaultProxy) -> list[Request]:
    """The requests for pods, and not for the list's version alone."""
    asked = (one for one in proxy.requests if one.path == PODS and not one.is_watch)
    return [one for one in asked if one.query["limit"] != "1"]


NO_LIST = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}

REPLIES: dict[str, Reply] = {
    **{str(code): status(code) for code in (400, 401, 403, 404, 409, 410, 429, 500, 503)},
    "429 with Retry-After": status(429, retry_after_s=1),
    "garbage": Body(content=b"<html>502 Bad Gateway</html>"),
    "garbage with a 502": Body(content=b"\xff\xfe\x00", status=502),
    "nothing": Body(content=b""),
    "null": Body(content=b"null"),
    "no list": Body(content=json.dumps(NO_LIST).encode()),
    "no list, with a version": Body(
        content=json.dumps({**NO_LIST, "metadata": {"resourceVersion": "7"}}).encode()
    ),
    "a list without items": Body(content=b'{"kind": "PodList", "metadata": {"resourceVersion": "7"}}'),
    "a list without version": Body(content=b'{"kind": "PodList", "metadata": {}, "items": []}'),
    "a list of another kind": Body(
        content=b'{"kind": "NodeList", "metadata": {"resourceVersion": "7"}, "items": []}'
    ),
    "a list of no objects": Body(
        content=b'{"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": ["x", null, {}]}'
    ),
    "half a JSON": HalfBody(),
    "half an answer": CutBody(),
    "half an answer, ended": CutBody(reset=False),
    "hang up": HangUp(),
}


@pytest.mark.parametrize("name", list(REPLIES))
def test_bad_answers_change_nothing_but_the_state(
    followed: Followed, kube: Kube, proxy: FaultProxy, name: str
) -> None:
    proxy.answer(REPLIES[name], path=PODS)
    proxy.reset()
    followed.until(lambda: followed.freshness()["pods"] == "stale")
    change(kube)
    threading.Event().wait(0.5)
    assert is_kept(followed)
    asked = sum(1 for one in proxy.requests if one.path == PODS)
    threading.Event().wait(1)
    assert sum(1 for one in proxy.requests if one.path == PODS) - asked < 30
    proxy.clear()
    followed.until(lambda: has_caught_up(followed), 15)
    followed.ready()


def test_an_empty_node_is_not_made_of_an_answer_that_is_no_list(
    followed: Followed, kube: Kube, proxy: FaultProxy
) -> None:
    for path in (PODS, "nodeslos", NODES):
        proxy.answer(REPLIES["no list"], path=path, watch=False)
        proxy.answer(gone(), path=path, watch=True, times=1)
    proxy.reset()
    followed.until(lambda: set(followed.freshness().values()) == {"stale"})
    assert is_kept(followed)
    assert {one.code for one in followed.findings} == {"source-away"}
    change(kube)
    proxy.clear()
    followed.until(lambda: has_caught_up(followed), 15)


def test_events_of_a_watch_that_are_none(followed: Followed, kube: Kube, proxy: FaultProxy) -> None:
    event = json.dumps({"type": "DELETED", "object": {"metadata": {"uid": followed.pods["web"].uid}}})
    proxy.answer(Body(content=event.encode() + b"\n"), path=PODS, watch=True)
    proxy.reset()
    followed.until(lambda: followed.freshness()["pods"] == "stale")
    assert is_kept(followed)
    change(kube)
    proxy.clear()
    followed.until(lambda: has_caught_up(followed), 15)


def test_a_watch_that_is_410_by_an_event_lists_again(
    followed: Followed, kube: Kube, proxy: FaultProxy
) -> None:
    proxy.answer(gone(), path=PODS, watch=True, times=2)
    proxy.refuse()
    proxy.reset()
    kube.remove_pod("web")
    kube.create_pod("late", ips=["10.88.0.2"])
    proxy.restore()
    followed.until(lambda: list(followed.pods) == ["late"])


def test_a_watch_that_is_always_gone_does_not_storm_the_server(followed: Followed, proxy: FaultProxy) -> None:
    proxy.answer(gone(), path=PODS, watch=True)
    proxy.reset()
    followed.until(lambda: followed.freshness()["pods"] == "stale")
    threading.Event().wait(1)
    asked = sum(1 for one in proxy.requests if one.path == PODS)
    threading.Event().wait(3)
    assert sum(1 for one in proxy.requests if one.path == PODS) - asked < 12
    assert is_kept(followed)


@pytest.mark.timeout(120)
def test_a_silent_loss_is_noticed_within_half_a_minute(
    followed: Followed, kube: Kube, proxy: FaultProxy
) -> None:
    proxy.blackhole()
    change(kube)
    assert followed.until(lambda: set(followed.freshness().values()) == {"stale"}, 40) < 30
    assert is_kept(followed)
    proxy.restore()
    assert followed.until(lambda: has_caught_up(followed), 40) < 10


@pytest.mark.timeout(90)
@pytest.mark.parametrize("reply", [Silence(), NoAnswer()], ids=["silence", "no answer"])
def test_an_endless_answer_without_data_to_a_list(
    followed: Followed, kube: Kube, proxy: FaultProxy, reply: Reply
) -> None:
    proxy.answer(reply, path=PODS, watch=False, times=1)
    proxy.answer(gone(), path=PODS, watch=True, times=1)
    proxy.reset()
    change(kube)
    followed.until(lambda: has_caught_up(followed), 40)


def test_a_certificate_that_changed(followed: Followed, kube: Kube, proxy: FaultProxy) -> None:
    proxy.change_certificate(trusted=True)
    proxy.reset()
    change(kube)
    assert followed.until(lambda: has_caught_up(followed)) < 3


def test_a_certificate_that_nobody_vouches_for_is_refused(
    followed: Followed, kube: Kube, proxy: FaultProxy
) -> None:
    proxy.change_certificate(trusted=False)
    proxy.reset()
    followed.until(lambda: set(followed.freshness().values()) == {"stale"})
    change(kube)
    threading.Event().wait(1)
    assert set(followed.freshness().values()) == {"stale"}
    assert is_kept(followed)
    proxy.change_certificate(trusted=True, forget=True)
    assert followed.until(lambda: has_caught_up(followed)) < 3


def test_watches_that_begin_well_and_then_say_nothing(
    follow: Follow, apiserver: ApiServer, kube: Kube, proxy: FaultProxy
) -> None:
    """Their connections live: nothing but the silence tells, again and again."""
    kube.create_pod("web", ips=["10.88.0.1"], annotations={EGRESS: "10M"})
    proxy.answer(Silence(), path=PODS, watch=True)
    followed = follow(apiserver, kube.node, proxy=proxy, pace=Pace(quiet_s=3)).ready()
    for name in ("late", "later"):
        kube.create_pod(name, ips=["10.88.0.2"])
        assert followed.until(lambda name=name: name in followed.pods, 20) < 10  # type: ignore[misc] # the loop's own
    proxy.clear()
    followed.ready()


def test_a_first_list_that_fails_is_not_complete(
    follow: Follow, apiserver: ApiServer, kube: Kube, proxy: FaultProxy
) -> None:
    kube.create_pod("web", ips=["10.88.0.1"])
    proxy.answer(status(403, message="no right"), path=PODS)
    followed = follow(apiserver, kube.node, proxy=proxy)
    followed.until(lambda: followed.freshness() == {"pods": "waiting", "nodeslo": "fresh", "node": "fresh"})
    followed.until(lambda: "403: no right" in followed.states["pods"].detail)
    assert (followed.complete, followed.pods) == (False, {})
    assert [one.subject for one in followed.findings] == ["source pods"]
    proxy.clear()
    followed.ready()
    assert list(followed.pods) == ["web"]


def test_a_list_that_breaks_between_pages(
    follow: Follow, apiserver: ApiServer, kube: Kube, proxy: FaultProxy
) -> None:
    kube.create_pods(60, prefix="p")
    proxy.cut(30_000)
    followed = follow(apiserver, kube.node, proxy=proxy)
    threading.Event().wait(1)
    assert followed.pods == {}
    proxy.restore()
    followed.ready()
    assert len(followed.pods) == 60


@pytest.mark.timeout(120)
def test_a_server_that_restarts_and_one_that_is_killed_in_a_list(
    start_apiserver: StartServer, follow: Follow
) -> None:
    server = start_apiserver()
    kube = Kube(server.admin, "restart")
    kube.create_pod("web", ips=["10.88.0.1"], annotations={EGRESS: "10M"})
    kube.create_slo({"networkQOSStrategy": {"enable": True}})
    followed = follow(server, kube.node).ready()
    server.restart()
    change(kube)
    followed.until(lambda: has_caught_up(followed), 15)
    followed.ready()
    server.kill()
    followed.until(lambda: set(followed.freshness().values()) == {"stale"})
    assert set(followed.pods) == {"web", "late"}
    server.start()
    kube.remove_pod("late")
    followed.until(lambda: list(followed.pods) == ["web"], 15)
    followed.ready()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_store_that_was_put_back(start_apiserver: StartServer, follow: Follow, is_killed: bool) -> None:
    """Its versions go on from below ours: a watch from ours would be silent, and no 410 (an etcd restore)."""
    server = start_apiserver()
    kube = Kube(server.admin, "back")
    kube.create_pod("web", ips=["10.88.0.1"], annotations={EGRESS: "10M"})
    kube.create_slo({"networkQOSStrategy": {"enable": True}})
    copy = server.back_up()
    followed = follow(server, kube.node).ready()
    for number in range(100):
        kube.annotate_node({"example.org/n": str(number), BANDWIDTH: "1G"})
    kube.delete_slo()
    change(kube)
    followed.until(lambda: has_caught_up(followed) and followed.slo is None and followed.bandwidth == "1G")
    if is_killed:
        server.kill()
    server.go_back(copy)
    followed.until(lambda: list(followed.pods) == ["web"] and followed.slo is not None, 10)
    assert (followed.pods["web"].annotations, followed.bandwidth) == ({EGRESS: "10M"}, None)
    kube.annotate_pod("web", {EGRESS: "30M"})
    followed.until(lambda: followed.pods["web"].annotations == {EGRESS: "30M"}, 2)
    followed.ready()


@pytest.mark.timeout(120)
def test_410_by_compaction(start_apiserver: StartServer, follow: Follow, make_proxy: MakeProxy) -> None:
    server = start_apiserver("--watch-cache-sizes=pods#0")
    proxy = make_proxy(server)
    kube = Kube(server.admin, "compaction")
    kube.create_pod("web", ips=["10.88.0.1"])
    followed = follow(server, kube.node, proxy=proxy).ready()
    proxy.refuse()
    proxy.reset()
    kube.remove_pod("web")
    kube.create_pod("late", ips=["10.88.0.2"])
    kube.create_pod("later", ips=["10.88.0.3"])
    server.compact()
    proxy.restore()
    followed.until(lambda: set(followed.pods) == {"late", "later"})


def test_a_rotated_token(follow: Follow, apiserver: ApiServer, kube: Kube, tmp_path: Path) -> None:
    """The file's token changes and the old one ends: 401, read again, go on (case K7)."""
    rules = [
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list", "watch"]},
        {"apiGroups": ["slo.koordinator.sh"], "resources": ["nodeslos"], "verbs": ["list", "watch"]},
    ]
    kube.create_pod("web", ips=["10.88.0.1"])
    kube.create_service_account("netqos", rules=rules)
    token = tmp_path / "token"
    token.write_text("expired", encoding="utf-8")
    access = apiserver.access
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", access.url, access.ca_file, tokenFile=str(token))
    with Followed(kubeconfig, kube.node) as followed:
        followed.until(lambda: "401" in followed.states["pods"].detail)
        assert not followed.complete
        token.write_text(kube.request_token("netqos"), encoding="utf-8")
        followed.ready()
        assert list(followed.pods) == ["web"]


def test_credentials_that_are_not_there_or_wrong_are_told_with_their_place(
    apiserver: ApiServer, kube: Kube, tmp_path: Path
) -> None:
    access, ca_file = apiserver.access, tmp_path / "ca.crt"
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", access.url, ca_file, token=access.token)
    right = kubeconfig.read_bytes()
    with Followed(kubeconfig, kube.node) as followed:
        for path, content in ((ca_file, b"garbage"), (kubeconfig, b"{{{")):
            path.write_bytes(content)
            followed.until(lambda path=path: str(path) in followed.states["pods"].detail)  # type: ignore[misc] # the loop's own
        assert "\n" not in followed.states["pods"].detail
        ca_file.write_bytes(Path(access.ca_file).read_bytes())
        kubeconfig.write_bytes(right)
        followed.ready()


def test_the_kubeconfig_may_come_later(apiserver: ApiServer, kube: Kube, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with Followed(kubeconfig, kube.node) as followed:
        followed.until(lambda: "no usable credentials" in followed.states["pods"].detail)
        access = apiserver.access
        write_kubeconfig(kubeconfig, access.url, access.ca_file, token=access.token)
        followed.ready()


@pytest.mark.timeout(150)
def test_nothing_grows_over_many_reconnects(
    follow: Follow, apiserver: ApiServer, kube: Kube, proxy: FaultProxy
) -> None:
    """Threads, descriptors and memory (case K6); each time of all three watches."""
    pace = Pace(first_s=0.001, lost_most_s=0.002)
    followed = follow(apiserver, kube.node, proxy=proxy, pace=pace).ready()
    process = psutil.Process(os.getpid())

    def measure() -> tuple[int, int]:
        return threading.active_count(), process.num_fds()

    def reconnect(times: int) -> None:
        for _ in range(times):
            before = len(proxy.requests)
            proxy.reset()
            followed.until(lambda before=before: len(proxy.requests) >= before + 3)  # type: ignore[misc] # the loop's own

    reconnect(10)
    before, memory = measure(), process.memory_info().rss
    reconnect(150)
    followed.ready()
    threads, descriptors = measure()
    assert threads <= before[0]
    assert descriptors <= before[1] + 8
    assert process.memory_info().rss - memory < 6 << 20


@pytest.mark.timeout(120)
def test_a_quiet_node_asks_little(
    follow: Follow, apiserver: ApiServer, kube: Kube, proxy: FaultProxy
) -> None:
    """With watches of 3 s in place of 10 to 20 minutes: one request a watch, and no list in between."""
    pace = Pace(watch_s=3)
    followed = follow(apiserver, kube.node, proxy=proxy, pace=pace).ready()
    began = len(proxy.requests)
    threading.Event().wait(10)
    asked = proxy.requests[began:]
    assert all(one.is_watch for one in asked)
    assert 3 <= len(asked) <= 12
    assert all(state.freshness is Freshness.FRESH for state in followed.states.values())


def test_bookmarks_keep_a_quiet_watch_young(
    follow: Follow, apiserver: ApiServer, kube: Kube, proxy: FaultProxy
) -> None:
    """The next watch starts from a bookmark's version, though no pod of ours changed."""
    followed = follow(apiserver, kube.node, proxy=proxy, pace=Pace(watch_s=3)).ready()
    followed.until(lambda: bool(_versions(proxy)))  # ready is the list; its watch follows
    first = _versions(proxy)[0]

    def is_younger() -> bool:
        kube.api.patch(f"{NODES}/{kube.node}", {"metadata": {"labels": {"n": str(time.monotonic_ns())}}})
        threading.Event().wait(0.25)
        return _versions(proxy)[-1] > first

    followed.until(is_younger, 30)
    assert followed.freshness()["pods"] == "fresh"


def _versions(proxy: FaultProxy) -> list[int]:
    return [int(one.query["resourceVersion"]) for one in proxy.requests if one.path == PODS and one.is_watch]
