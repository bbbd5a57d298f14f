"""The fixtures of the API server do what tests of the sources rely on, and so does the server itself."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from netqos.testing.faultreplies import status
from netqos.testing.namespaces import sweep_folders
from tests.apiserver.client import Api, ApiError
from tests.apiserver.fixtures import MakeProxy, StartServer
from tests.apiserver.gobuild import ROOT
from tests.apiserver.kube import NODES, NODESLOS, Kube, pods_path
from tests.apiserver.programs import Programs
from tests.apiserver.server import ApiServer
from tests.apiserver.tokens import claims_of, resign


def test_each_test_has_a_namespace_and_a_node(kube: Kube) -> None:
    assert kube.api.get(f"/api/v1/namespaces/{kube.namespace}")["metadata"]["name"] == kube.namespace
    assert kube.api.get(f"{NODES}/{kube.node}")["metadata"]["name"] == kube.node
    selected = kube.api.get("/api/v1/pods", fieldSelector=f"spec.nodeName={kube.node}")
    assert selected["items"] == []


def test_a_pod_is_reported_as_by_a_kubelet(kube: Kube) -> None:
    pod = kube.create_pod("web", ips=["10.88.0.10", "fd00:88::10"], annotations={"a/b": "c"})
    assert pod["spec"]["nodeName"] == kube.node
    assert pod["metadata"]["annotations"] == {"a/b": "c"}
    assert {key: pod["status"][key] for key in ("phase", "podIP", "podIPs", "qosClass")} == {
        "phase": "Running",
        "podIP": "10.88.0.10",
        "podIPs": [{"ip": "10.88.0.10"}, {"ip": "fd00:88::10"}],
        "qosClass": "BestEffort",
    }


def test_many_pods_are_made_at_once(kube: Kube) -> None:
    made = kube.create_pods(20, prefix="web", annotations={"a": "b"})
    assert [pod["metadata"]["name"] for pod in made] == [f"web-{n}" for n in range(20)]
    assert [pod["status"]["podIP"] for pod in made] == [f"10.88.0.{n + 1}" for n in range(20)]
    listed = kube.api.get(pods_path(kube.namespace), limit=15)
    assert (len(listed["items"]), listed["metadata"]["remainingItemCount"]) == (15, 5)


def test_an_address_may_come_late_change_and_go(kube: Kube) -> None:
    assert "podIP" not in kube.create_pod("web", phase=None)["status"]
    assert kube.report_pod("web", ips=["10.88.0.1"], phase="Running")["status"]["podIP"] == "10.88.0.1"
    assert kube.report_pod("web", ips=["10.88.0.2"])["status"]["podIPs"] == [{"ip": "10.88.0.2"}]
    gone = kube.report_pod("web", ips=[], phase="Succeeded")["status"]
    assert ("podIP" in gone, gone["phase"]) == (False, "Succeeded")


def test_a_pod_may_be_of_any_class_and_priority(kube: Kube) -> None:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    container = {"name": "main", "image": "example.org/none:1", "resources": resources}
    pod = kube.create_pod(
        "dns",
        spec={"containers": [container], "priorityClassName": "system-node-critical", "hostNetwork": True},
    )
    assert (pod["status"]["qosClass"], pod["spec"]["priority"]) == ("Guaranteed", 2000001000)


def test_annotations_and_labels_change(kube: Kube) -> None:
    kube.create_pod("web", labels={"koordinator.sh/qosClass": "LS"}, annotations={"x": "1", "y": "2"})
    assert kube.annotate_pod("web", {"x": None, "z": "3"})["metadata"]["annotations"] == {"y": "2", "z": "3"}
    labels = kube.label_pod("web", {"koordinator.sh/qosClass": "BE"})["metadata"]["labels"]
    assert labels == {"koordinator.sh/qosClass": "BE"}


def test_a_pod_terminates_and_then_is_gone_and_its_name_is_free(kube: Kube) -> None:
    first = kube.create_pod("web-0")
    assert kube.terminate_pod("web-0")["metadata"]["deletionTimestamp"]
    kube.remove_pod("web-0")
    with pytest.raises(ApiError) as told:
        kube.api.get(pods_path(kube.namespace, "web-0"))
    assert told.value.status == 404
    assert kube.create_pod("web-0")["metadata"]["uid"] != first["metadata"]["uid"]


def test_a_watch_gives_events_and_ends(kube: Kube) -> None:
    version = kube.api.get(pods_path(kube.namespace))["metadata"]["resourceVersion"]
    kube.create_pod("web", phase=None)
    kube.remove_pod("web")
    events = [
        event["type"]
        for event in kube.api.watch(pods_path(kube.namespace), timeout_s=1, resourceVersion=version)
    ]
    assert events[:1] == ["ADDED"]
    assert events[-1] == "DELETED"


def test_a_service_account_may_do_what_its_rules_say(kube: Kube) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
    user = kube.create_service_account("reader", rules=rules)
    token = kube.request_token("reader")
    assert claims_of(token)["sub"] == user
    with kube.api.as_user(token) as reader:
        assert reader.get(f"{NODES}/{kube.node}")["metadata"]["name"] == kube.node
        with pytest.raises(ApiError) as told:
            reader.get(NODES)
    assert told.value.status == 403


def test_an_expired_token_is_refused(kube: Kube, apiserver: ApiServer) -> None:
    kube.create_service_account("reader")
    token = kube.request_token("reader")
    key, now = apiserver.folder / "sa.key", int(time.time())
    again = resign(token, key, exp=now + 300)
    expired = resign(token, key, exp=now - 120, iat=now - 1000, nbf=now - 1000)
    assert [refusal(kube.api, one) for one in (again, expired)] == [403, 401]


def refusal(api: Api, token: str) -> int:
    with api.as_user(token) as user, pytest.raises(ApiError) as told:
        user.get(NODES)
    return told.value.status


# ------------------------------------------------------------------ servers to break


def test_a_restarted_server_keeps_data_and_forgets_versions(start_apiserver: StartServer) -> None:
    server = start_apiserver(crd=False)
    kube = Kube(server.admin, "restart")
    kube.create_pod("web")
    before, version = server.access, server.admin.get("/api/v1/pods")["metadata"]["resourceVersion"]
    server.restart()
    assert server.access == before
    assert [pod["metadata"]["name"] for pod in server.admin.get("/api/v1/pods")["items"]] == ["web"]
    (event,) = server.admin.watch("/api/v1/pods", timeout_s=2, resourceVersion=version)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_a_killed_server_comes_back(start_apiserver: StartServer) -> None:
    server = start_apiserver()
    kube = Kube(server.admin, "kill")
    kube.create_slo({"networkQOSStrategy": {"enable": True}})
    server.kill()
    assert not server.is_running
    server.start()
    assert server.admin.get(f"{NODESLOS}/{kube.node}")["spec"] == {"networkQOSStrategy": {"enable": True}}


def test_compaction_makes_older_versions_gone(start_apiserver: StartServer) -> None:
    server = start_apiserver("--watch-cache-sizes=pods#0", crd=False)
    kube = Kube(server.admin, "compact")
    version = server.admin.get("/api/v1/pods")["metadata"]["resourceVersion"]
    for name in ("a", "b", "c"):
        kube.create_pod(name)
    first = server.admin.get("/api/v1/pods", limit=1)
    kube.remove_pod("a")
    server.compact()
    time.sleep(0.1)
    (event,) = server.admin.watch("/api/v1/pods", timeout_s=2, resourceVersion=version)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    with pytest.raises(ApiError) as told:
        server.admin.get("/api/v1/pods", limit=1, **{"continue": first["metadata"]["continue"]})
    assert told.value.status == 410


def test_a_frozen_server_is_silent_until_it_thaws(start_apiserver: StartServer) -> None:
    server = start_apiserver(crd=False)
    server.freeze()
    impatient = Api(server.access.url, server.access.ca_file, server.access.token, timeout_s=0.5)
    with impatient, pytest.raises(Exception, match="timed out"):
        impatient.get(NODES)
    server.thaw()
    assert server.admin.get(NODES)["kind"] == "NodeList"


def test_an_audited_server_tells_what_it_was_asked(start_apiserver: StartServer) -> None:
    server = start_apiserver(crd=False, audit=True)
    kube = Kube(server.admin, "audit")
    kube.create_service_account("curious")
    with kube.api.as_user(kube.request_token("curious")) as user, pytest.raises(ApiError):
        user.get("/api/v1/pods", fieldSelector="spec.nodeName=here")
    told = [
        (one["verb"], one["objectRef"]["resource"], one["responseStatus"]["code"])
        for one in server.requests()
        if one["user"]["username"].endswith(":curious") and one["stage"] == "ResponseComplete"
    ]
    assert told == [("list", "pods", 403)]


# ------------------------------------------------------------------ a proxy before the real server


@pytest.mark.parametrize("http", [True, False])
def test_a_proxy_is_a_way_to_the_server(
    kube: Kube, apiserver: ApiServer, make_proxy: MakeProxy, *, http: bool
) -> None:
    proxy = make_proxy(apiserver, http=http)
    kube.create_pod("web")
    with Api(proxy.url, proxy.ca_file, apiserver.access.token) as api:
        (pod,) = api.get(pods_path(kube.namespace))["items"]
        assert pod["metadata"]["name"] == "web"
        events = api.watch(pods_path(kube.namespace), timeout_s=2)
        assert next(events)["object"]["metadata"]["name"] == "web"
        kube.create_pod("late", phase=None)
        assert next(events)["object"]["metadata"]["name"] == "late"
        events.close()  # type: ignore[attr-defined] # it is a generator


def test_a_proxy_answers_for_the_server(kube: Kube, apiserver: ApiServer, make_proxy: MakeProxy) -> None:
    proxy = make_proxy(apiserver)
    proxy.answer(status(503), path="/pods", times=1)
    with Api(proxy.url, proxy.ca_file, apiserver.access.token) as api:
        assert api.get(f"{NODES}/{kube.node}")["kind"] == "Node"
        with pytest.raises(ApiError) as told:
            api.get(pods_path(kube.namespace))
        assert told.value.status == 503
        assert api.get(pods_path(kube.namespace))["kind"] == "PodList"
    assert [one.status for one in proxy.requests] == [200, 503, 200]


def test_a_killed_server_to_play_with_leaves_no_folder(apiserver_programs: Programs) -> None:
    command = [sys.executable, "-m", "tests.apiserver", "serve"]
    serving = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert serving.stdout is not None
    kubeconfig = Path(serving.stdout.readline().strip().partition("=")[2])
    assert kubeconfig.is_file()
    serving.kill()
    serving.communicate()
    sweep_folders()
    assert not kubeconfig.parent.exists()
