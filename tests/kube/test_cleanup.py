"""The chart's pre-delete hook against a real API server; the test is the controller of DaemonSets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.client import Document
from tests.apiserver.kube import Kube, pods_path
from tests.apiserver.server import ApiServer
from tests.kube.manifests import CHART, by_name, helm, kustomize

TIMEOUT_S = 20.0


class Installed:
    """The chart in a test's namespace, and the hook as Helm starts it."""

    def __init__(self, kube: Kube, server: ApiServer, renderer: Path, folder: Path) -> None:
        self.kube = kube
        objects = by_name(helm(renderer, kube.namespace))
        self.path = f"/apis/apps/v1/namespaces/{kube.namespace}/daemonsets/netqos"
        self.asked_for = objects["DaemonSet", "netqos"]
        kube.api.apply(self.path, self.asked_for)
        for kind in ("ServiceAccount", "Role", "RoleBinding"):
            one = objects[kind, "netqos-cleanup"]
            kube.api.apply(kube.api.path_of(one), one)
        folder.mkdir()
        (folder / "token").write_text(kube.request_token("netqos-cleanup"), encoding="ascii")
        shutil.copy(server.access.ca_file, folder / "ca.crt")
        host, port = server.access.url.removeprefix("https://").split(":")
        self.env = {
            **os.environ,
            "ACCOUNT_FOLDER": str(folder),
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "NAMESPACE": kube.namespace,
            "INTERVAL_SECONDS": "0.05",
        }

    def start(self, *, timeout_s: float) -> subprocess.Popen[str]:
        env = {**self.env, "TIMEOUT_SECONDS": str(timeout_s)}
        command = [sys.executable, str(CHART / "cleanup.py")]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def daemonset(self) -> Document:
        return self.kube.api.get(self.path)

    def report(self, *, generation: int, updated: int, ready: int) -> None:
        status = {
            "observedGeneration": generation,
            "desiredNumberScheduled": 3,
            "currentNumberScheduled": 3,
            "numberMisscheduled": 0,
            "updatedNumberScheduled": updated,
            "numberReady": ready,
        }
        self.kube.api.patch(f"{self.path}/status", {"status": status})

    def wait_for_patch(self, generation: int) -> Document:
        end_s = time.monotonic() + TIMEOUT_S
        while (found := self.daemonset())["metadata"]["generation"] == generation:
            assert time.monotonic() < end_s, "the hook changes nothing"
            time.sleep(0.05)
        return found


@pytest.fixture
def installed(kube: Kube, apiserver: ApiServer, renderer: Path, tmp_path: Path) -> Iterator[Installed]:
    installed = Installed(kube, apiserver, renderer, tmp_path / "account")
    installed.report(generation=1, updated=3, ready=3)
    yield installed
    kube.api.delete(installed.path)


def test_waits_until_every_node_is_clean(installed: Installed) -> None:
    hook = installed.start(timeout_s=TIMEOUT_S)
    patched = installed.wait_for_patch(1)["metadata"]["generation"]
    for generation, updated, ready in [(1, 3, 3), (patched, 3, 2), (patched, 2, 3)]:
        installed.report(generation=generation, updated=updated, ready=ready)
        time.sleep(0.2)
        assert hook.poll() is None
    installed.report(generation=patched, updated=3, ready=3)
    out, err = hook.communicate(timeout=TIMEOUT_S)
    assert (hook.returncode, err) == (0, "")
    assert "3 of 3 nodes are clean" in out


def test_its_pods_clean_up_with_the_daemons_rights_and_run_no_daemon(installed: Installed) -> None:
    before = installed.daemonset()["spec"]["template"]["spec"]["containers"][0]
    hook = installed.start(timeout_s=TIMEOUT_S)
    spec = installed.wait_for_patch(1)["spec"]
    hook.kill()
    hook.communicate()
    assert spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "100%"
    pod = spec["template"]["spec"]
    (work,), (wait,) = pod["initContainers"], pod["containers"]
    assert work["command"] == ["netqosctl", "cleanup", "--config", "/etc/netqos/netqos.yaml"]
    for key in ("image", "securityContext", "volumeMounts", "env"):
        assert work[key] == before[key]
    assert wait["command"] == ["sleep", "infinity"]
    assert not {"startupProbe", "livenessProbe", "readinessProbe"} & set(wait)
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    namespace = installed.kube.create_namespace(f"{installed.kube.namespace}-pod", labels=labels)
    body = {"metadata": {"name": "one"}, "spec": pod}
    assert installed.kube.api.create(pods_path(namespace), body, dryRun="All")["kind"] == "Pod"


def spec_of(daemonset: Document) -> tuple[Document, list[str]]:
    return daemonset["spec"], list(daemonset["metadata"]["annotations"])


def test_gives_up_puts_the_daemonset_back_and_says_what_to_do(installed: Installed) -> None:
    before = spec_of(installed.daemonset())
    hook = installed.start(timeout_s=1)
    patched = installed.wait_for_patch(1)["metadata"]["generation"]
    installed.report(generation=patched, updated=3, ready=2)
    _, err = hook.communicate(timeout=TIMEOUT_S)
    assert hook.returncode == 1
    assert "2 of 3 nodes are clean; nothing was removed" in err
    assert "--no-hooks" in err
    assert "its pods run the daemon again" in err
    assert spec_of(installed.daemonset()) == before


def test_without_a_daemonset_it_says_what_to_do(installed: Installed) -> None:
    installed.kube.api.delete(installed.path)
    _, err = installed.start(timeout_s=TIMEOUT_S).communicate(timeout=TIMEOUT_S)
    assert (err.count("\n"), "bring it back (helm upgrade)" in err) == (2, True)
    installed.kube.api.apply(installed.path, installed.asked_for)


def test_one_that_is_told_to_end_puts_the_daemonset_back(installed: Installed) -> None:
    before = spec_of(installed.daemonset())
    hook = installed.start(timeout_s=TIMEOUT_S)
    installed.wait_for_patch(1)
    hook.terminate()
    hook.communicate(timeout=TIMEOUT_S)
    assert hook.returncode == 1
    assert spec_of(installed.daemonset()) == before


def test_what_one_that_was_killed_left_the_next_one_knows_to_put_back(installed: Installed) -> None:
    before = spec_of(installed.daemonset())
    hook = installed.start(timeout_s=TIMEOUT_S)
    patched = installed.wait_for_patch(1)["metadata"]["generation"]
    hook.kill()
    hook.communicate(timeout=TIMEOUT_S)
    assert spec_of(installed.daemonset()) != before
    installed.report(generation=patched, updated=0, ready=0)
    installed.start(timeout_s=0).communicate(timeout=TIMEOUT_S)
    assert spec_of(installed.daemonset()) == before


def test_what_one_that_was_killed_left_undoes_no_update(installed: Installed) -> None:
    before = installed.daemonset()
    hook = installed.start(timeout_s=TIMEOUT_S)
    installed.wait_for_patch(1)
    hook.kill()
    hook.communicate(timeout=TIMEOUT_S)
    pod = {**before["spec"]["template"]["spec"], "initContainers": None, "terminationGracePeriodSeconds": 20}
    pod["containers"][0]["image"] = "netqos:0.2.0"
    strategy = {"rollingUpdate": {"maxUnavailable": "50%"}}
    spec = {"template": {"spec": pod}, "updateStrategy": strategy}
    updated = installed.kube.api.patch(installed.path, {"spec": spec})
    installed.report(generation=updated["metadata"]["generation"], updated=0, ready=0)
    installed.start(timeout_s=0).communicate(timeout=TIMEOUT_S)
    assert spec_of(installed.daemonset()) == (updated["spec"], spec_of(before)[1])
    assert updated["spec"]["template"]["spec"]["containers"][0]["image"] == "netqos:0.2.0"


def test_its_job_runs_wherever_the_daemon_does_and_ends(renderer: Path) -> None:
    toleration = {"operator": "Exists"}
    values = {"nodeSelector": {"pool": "a"}, "tolerations": [toleration], "cleanup": {"timeoutSeconds": 30}}
    job = by_name(helm(renderer, "ns", values))["Job", "netqos-cleanup"]["spec"]
    pod = job["template"]["spec"]
    assert (pod["nodeSelector"]["pool"], pod["tolerations"]) == ("a", [toleration])
    assert job["activeDeadlineSeconds"] == 150


def test_an_update_takes_back_what_a_cleanup_left(renderer: Path) -> None:
    """Helm and `kubectl apply` keep what a manifest does not name; null is a name."""
    for objects in (helm(renderer, "ns"), kustomize(renderer, "plain")):
        pod = by_name(objects)["DaemonSet", "netqos"]["spec"]["template"]["spec"]
        stated = {
            "initContainers": pod.get("initContainers", 7),
            "command": pod["containers"][0].get("command", 7),
        }
        assert stated == {"initContainers": None, "command": None}
