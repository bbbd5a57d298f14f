"""Before the chart is removed: turn its pods into ones that put their node back as it was, and wait for all of them.

Runs as the chart's pre-delete hook, in netqos's own image. The pods keep what they may do; the daemon, which would put
everything back at once, does not run in them any more. Whoever gives up, or is told to end, makes the DaemonSet what it
was: that is kept in an annotation of it, so that the next one can where this one was killed.
"""

import json
import os
import signal
import ssl
import sys
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import Any

ACCOUNT = Path(os.environ.get("ACCOUNT_FOLDER", "/var/run/secrets/kubernetes.io/serviceaccount"))
HOST, PORT = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
TIMEOUT_S = float(os.environ.get("TIMEOUT_SECONDS", "300"))
INTERVAL_S = float(os.environ.get("INTERVAL_SECONDS", "2"))
PATH = f"/apis/apps/v1/namespaces/{os.environ['NAMESPACE']}/daemonsets/netqos"

WORK, BEFORE = "cleanup", "netqos.koordinator.sh/before-cleanup"
CHANGED = ("command", "args", "startupProbe", "livenessProbe", "readinessProbe")
"""What of the daemon's container is another while its node is put back."""

WAIT = {"command": ["sleep", "infinity"]}
ALL, GRACE_S = "100%", 1
"""What it is then, and how the pods are exchanged."""

TAKEN = ("image", "imagePullPolicy", "securityContext", "volumeMounts", "env")
"""What the work takes from it."""

Document = dict[str, Any]


def main() -> int:
    """Exit code 0 when every node is clean, 1 when the time is over, somebody ended it or there is no DaemonSet."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        daemonset = call("GET")
    except urllib.error.HTTPError as problem:
        if problem.code != HTTPStatus.NOT_FOUND:
            raise
        tell("the DaemonSet is gone, what it enforced on the nodes is still there; nothing was removed.")
        tell("bring it back (helm upgrade) and try again, or leave the nodes: helm uninstall --no-hooks")
        return 1
    is_done = False
    try:
        call("PATCH", cleanup_patch(kept_of(daemonset)))
        is_done = wait_until_clean(daemonset)
    finally:
        if not is_done:
            put_back()
    return 0 if is_done else 1


def wait_until_clean(daemonset: Document) -> bool:
    """Whether every node is clean in time."""
    print("netqos: waiting until every node is as it was before", flush=True)
    end_s = time.monotonic() + TIMEOUT_S
    while not is_complete(daemonset := look(daemonset)):
        if time.monotonic() > end_s:
            tell(f"after {TIMEOUT_S:g} s {progress(daemonset)}; nothing was removed.")
            tell("mend those nodes and try again, or leave them: helm uninstall --no-hooks")
            return False
        time.sleep(INTERVAL_S)
    print(f"netqos: {progress(daemonset)}")
    return True


def put_back() -> None:
    """Make the DaemonSet what it was, or what an update has made of it since, so that the nodes are shaped again."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        call("PATCH", back_patch(kept_of(call("GET"))))
    except OSError as problem:
        tell(f"the DaemonSet could not be put back ({problem}): helm upgrade or helm uninstall once more")
    else:
        tell("the DaemonSet is what it was; its pods run the daemon again")


def tell(text: str) -> None:
    """Say what is wrong."""
    print(f"netqos: {text}", file=sys.stderr, flush=True)


def kept_of(daemonset: Document) -> Document:
    """What the patch changes, as it was before: as it is now, or where an earlier try was killed as that kept it.

    That is believed only of what is still as the patch makes it. An update since then has brought what holds now.
    """
    now, before = state_of(daemonset), noted(daemonset)
    pod = daemonset["spec"]["template"]["spec"]
    if before is None or WORK not in [one["name"] for one in pod.get("initContainers") or ()]:
        return now
    container, earlier = now["container"], before["container"]
    untouched = [key for key in CHANGED if container[key] == WAIT.get(key)]
    is_all_at_once = now["updateStrategy"].get("rollingUpdate", {}).get("maxUnavailable") == ALL
    grace_s = "terminationGracePeriodSeconds"
    return {
        "updateStrategy": before["updateStrategy"] if is_all_at_once else now["updateStrategy"],
        grace_s: before[grace_s] if now[grace_s] == GRACE_S else now[grace_s],
        "container": {**container, **{key: earlier[key] for key in untouched}},
    }


def state_of(daemonset: Document) -> Document:
    """What the patch changes, as it is now."""
    spec = daemonset["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    return {
        "updateStrategy": spec["updateStrategy"],
        "terminationGracePeriodSeconds": pod.get("terminationGracePeriodSeconds"),
        "container": {key: container.get(key) for key in ("name", *CHANGED, *TAKEN)},
    }


def noted(daemonset: Document) -> Document | None:
    """What an earlier try kept; None without one, and for what it would not have written."""
    text = daemonset["metadata"].get("annotations", {}).get(BEFORE)
    try:
        found = json.loads(text or "null")
    except ValueError:
        return None
    is_ours = (
        isinstance(found, dict)
        and found.keys() == {"updateStrategy", "terminationGracePeriodSeconds", "container"}
        and isinstance(found["updateStrategy"], dict)
        and isinstance(found["container"], dict)
        and found["container"].keys() >= set(CHANGED)
    )
    return found if is_ours else None


def look(before: Document) -> Document:
    """The DaemonSet as it is now; as it was before where the server does not answer."""
    try:
        return call("GET")
    except OSError as problem:
        tell(f"asking again: {problem}")
        return before


def cleanup_patch(kept: Document) -> Document:
    """A strategic merge patch: the work is an init container, so that a pod is ready when its node is clean."""
    container = kept["container"]
    work = {
        "name": WORK,
        "command": ["netqosctl", "cleanup", "--config", "/etc/netqos/netqos.yaml"],
        **{key: container[key] for key in TAKEN},
    }
    wait = {**dict.fromkeys(CHANGED), "name": container["name"], **WAIT}
    pod = {"initContainers": [work], "containers": [wait], "terminationGracePeriodSeconds": GRACE_S}
    return {
        "metadata": {"annotations": {BEFORE: json.dumps(kept)}},
        "spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": ALL}}, "template": {"spec": pod}},
    }


def back_patch(kept: Document) -> Document:
    """The strategic merge patch that takes the other one back."""
    container = {key: kept["container"][key] for key in ("name", *CHANGED)}
    pod = {
        "initContainers": [{"$patch": "delete", "name": WORK}],
        "containers": [container],
        "terminationGracePeriodSeconds": kept["terminationGracePeriodSeconds"],
    }
    return {
        "metadata": {"annotations": {BEFORE: None}},
        "spec": {"updateStrategy": kept["updateStrategy"], "template": {"spec": pod}},
    }


def is_complete(daemonset: Document) -> bool:
    """Whether all pods are of the patched kind and ready."""
    status = daemonset.get("status", {})
    wanted: int = status.get("desiredNumberScheduled", 0)
    generation: int = daemonset["metadata"]["generation"]
    return bool(
        status.get("observedGeneration", 0) >= generation
        and status.get("updatedNumberScheduled", 0) >= wanted
        and status.get("numberReady", 0) >= wanted
    )


def progress(daemonset: Document) -> str:
    """How many nodes are clean, in words."""
    status = daemonset.get("status", {})
    done = min(status.get("updatedNumberScheduled", 0), status.get("numberReady", 0))
    return f"{done} of {status.get('desiredNumberScheduled', 0)} nodes are clean"


def call(method: str, body: Document | None = None) -> Document:
    """One request for the DaemonSet, with the token of this pod's service account."""
    token = (ACCOUNT / "token").read_text(encoding="ascii").strip()
    host = f"[{HOST}]" if ":" in HOST else HOST
    request = urllib.request.Request(
        f"https://{host}:{PORT}{PATH}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/strategic-merge-patch+json",
        },
    )
    context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=10, context=context) as response:  # noqa: S310 - as above
        answer: Document = json.load(response)
        return answer


if __name__ == "__main__":
    sys.exit(main())
