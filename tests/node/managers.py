"""kube-controller-manager and kube-scheduler of a cluster, as services of a node's machine.

They make the pods of a DaemonSet and of a Job, bind them, and bring every namespace its default ServiceAccount and the
API server's certificate. No other controller runs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.apiserver.gobuild import built
from tests.apiserver.launch import Access
from tests.apiserver.programs import linker_flags
from tests.node.machine import Machine
from tests.node.runtime import Service

SOURCES = Path(__file__).parent / "controllers"
CONTROLLERS = (
    "daemonset-controller",
    "garbage-collector-controller",
    "job-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
)
_MANAGER_PORT, _SCHEDULER_PORT = 10257, 10259


def find_controllers(env: Mapping[str, str] = os.environ) -> Path:
    """The program of both, built where need be; `Unavailable` where it cannot be."""
    return built(SOURCES, linker_flags=linker_flags(SOURCES), env=env)


class Managers:
    """Both, on one machine."""

    def __init__(self, machine: Machine, program: Path, access: Access) -> None:
        """Nothing runs yet."""
        folder = machine.folder / "managers"
        folder.mkdir()
        authority = Path(shutil.copy(access.ca_file, folder / "ca.crt"))
        common = [f"--kubeconfig={access.kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1"]
        delegated = [
            f"--{what}-kubeconfig={access.kubeconfig}" for what in ("authentication", "authorization")
        ]
        manager = [str(program), "manager", *common, *delegated, f"--secure-port={_MANAGER_PORT}"]
        manager += [f"--controllers={','.join(CONTROLLERS)}", f"--root-ca-file={authority}"]
        scheduler = [str(program), "scheduler", *common, *delegated, f"--secure-port={_SCHEDULER_PORT}"]
        self._services = (
            Service(machine, "kube-controller-manager", manager, lambda: _is_healthy(machine, _MANAGER_PORT)),
            Service(machine, "kube-scheduler", scheduler, lambda: _is_healthy(machine, _SCHEDULER_PORT)),
        )

    def start(self) -> None:
        """Start both and wait until they say that they are healthy."""
        for one in self._services:
            one.start()

    def stop(self) -> None:
        """End both."""
        for one in self._services:
            one.process.stop()


def _is_healthy(machine: Machine, port: int) -> bool:
    ask = ["busybox", "wget", "-q", "--no-check-certificate", "-O", "/dev/null"]
    return machine.run([*ask, f"https://127.0.0.1:{port}/healthz"], check=False).returncode == 0
