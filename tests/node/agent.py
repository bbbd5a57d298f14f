"""netqosd from the checkout as a service of a node, with the paths that an installed one has."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netqos.testing.statusclient import NotReachable, StatusClient
from tests.apiserver.client import Document
from tests.node.realnode import RealNode
from tests.node.runtime import Service

CONFIGURATION = "/etc/netqos/netqos.yaml"
NET = "/run/koordinator/net"
STATE = "/var/lib/netqos"
SOCKET = "/run/netqos/netqosd.sock"

# The rights of systemd/netqosd.service.
_CONFINED = ("setpriv", "--bounding-set=-all,+net_admin", "--inh-caps=-all", "--no-new-privs")


class Agent(Service):
    """One configuration; started as often as wanted."""

    def __init__(self, node: RealNode, document: Mapping[str, Any] | None = None) -> None:
        """Write the configuration; nothing runs yet."""
        self._node = node
        self.client = StatusClient(node.machine.folder / SOCKET.lstrip("/"))
        command = [*_CONFINED, sys.executable, "-m", "netqos.cli.daemon", "--config", CONFIGURATION]
        super().__init__(node.machine, "netqosd", command, self._is_ready)
        self.configure(document or {})

    def configure(self, document: Mapping[str, Any]) -> None:
        """Replace the configuration, as an editor does. What the node decides is filled in; JSON is YAML."""
        own: Document = {
            "node": {"name": self._node.name},
            "kubernetes": {"enable": True, "kubeconfig": str(self._node.server.access.kubeconfig)},
            "metrics": {"listen": "127.0.0.1:9469"},
        }
        text = json.dumps({**own, **document, "node": {**own["node"], **document.get("node", {})}}, indent=1)
        file = self._node.machine.path(CONFIGURATION)
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.rename(file)

    def ctl(self, *arguments: str) -> str:
        """What netqosctl prints on the node; `CommandFailed` unless it exits with 0."""
        return self._node.machine.run([sys.executable, "-m", "netqos.cli.ctl", *arguments]).stdout

    def ask(self, *arguments: str) -> Document:
        """The same as JSON."""
        answer: Document = json.loads(self.ctl("--json", *arguments))
        return answer

    def metrics(self) -> str:
        """What Prometheus would read."""
        ask = ["busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:9469/metrics"]
        return self._node.machine.run(ask).stdout

    def file(self, name: str) -> Path:
        """The node or pods file, for this process to open."""
        return self._node.machine.path(f"{NET}/{name}")

    def stop(self) -> int:
        """SIGTERM, and wait for the end; its exit code."""
        code = super().stop()
        self._machine.drop_unit(self._unit)
        return code

    def cleanup(self) -> None:
        """As its documentation says for good: stop it, `netqosctl cleanup`, and remove its folders."""
        self.stop()
        self.ctl("cleanup")
        self._machine.run(["rm", "-rf", "/etc/netqos", STATE, "/run/netqos", "/run/koordinator"])

    def _is_ready(self) -> bool:
        try:
            return bool(self.client.get("/v1/status")["ready"])
        except NotReachable:
            return False
