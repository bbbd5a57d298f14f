"""Before the chart is removed: turn its pods into ones that put their node back as it was, and wait for all of them.

Runs as the chart's pre-delete hook, in netqos's own image. The pods keep what they may do; the daemon, which would put
everything back at once, does not run in them any more.
"""

import json
import os
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT = Path(os.environ.get("ACCOUNT_FOLDER", "/var/run/secrets/kubernetes.io/serviceaccount"))
HOST, PORT = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
TIMEOUT_S = float(os.environ.get("TIMEOUT_SECONDS", "300"))
INTERVAL_S = float(os.environ.get("INTERVAL_SECONDS", "2"))
PATH = f"/apis/apps/v1/namespaces/{os.environ['NAMESPACE']}/daemonsets/netqos"

Document = dict[str, Any]


def main() -> int:
    """Exit code 0 when every node is clean, 1 when the time is over."""
    daemonset = call("GET")
    (container,) = daemonset["spec"]["template"]["spec"]["containers"]
    call("PATCH", cleanup_patch(container))
    print("netqos: waiting until every node is as it was before", flush=True)
    end_s = time.monotonic() + TIMEOUT_S
    while not is_complete(daemonset := look(daemonset)):
        if time.monotonic() > end_s:
            print(
                f"netqos: after {TIMEOUT_S:g} s {progress(daemonset)}; nothing was removed.", file=sys.stderr
            )
            print(
                "netqos: mend those nodes and try again, or leave them: helm uninstall --no-hooks",
                file=sys.stderr,
            )
            return 1
        time.sleep(INTERVAL_S)
    print(f"netqos: {progress(daemonset)}")
    return 0


def look(before: Document) -> Document:
    """The DaemonSet as it is now; as it was before where the server does not answer."""
    try:
        return call("GET")
    except OSError as problem:
        print(f"netqos: asking again: {problem}", file=sys.stderr)
        return before


def cleanup_patch(container: Document) -> Document:
    """A strategic merge patch: the work is an init container, so that a pod is ready when its node is clean."""
    kept = {
        key: container[key] for key in ("image", "imagePullPolicy", "securityContext", "volumeMounts", "env")
    }
    work = {
        "name": "cleanup",
        "command": ["netqosctl", "cleanup", "--config", "/etc/netqos/netqos.yaml"],
        **kept,
    }
    wait = {"name": container["name"], "command": ["sleep", "infinity"], "args": None}
    probes = dict.fromkeys(("startupProbe", "livenessProbe", "readinessProbe"))
    pod = {"initContainers": [work], "containers": [{**wait, **probes}], "terminationGracePeriodSeconds": 1}
    return {
        "spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "100%"}}, "template": {"spec": pod}}
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
