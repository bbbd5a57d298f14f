"""containerd and the kubelet of a node, as services of its machine."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from netqos.errors import NetqosError
from tests.node.cni import Network
from tests.node.machine import Machine, Process
from tests.node.podimage import PAUSE
from tests.node.programs import CNI_FOLDER

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
CNI_CONFIGURATION = "/etc/cni/net.d/10-pods.conflist"
STATIC_PODS = "/etc/kubernetes/manifests"
START_S = 30.0


class Service:
    """A program that a unit of the machine runs: started, stopped and started again, its talk in one log."""

    def __init__(
        self, machine: Machine, name: str, command: Sequence[str], is_ready: Callable[[], bool]
    ) -> None:
        """`name` is its unit's without the suffix. `is_ready` is asked every 50 ms after a start."""
        self._machine = machine
        self._name = name
        self._unit = f"system.slice/{name}.service"
        self._command = list(command)
        self._is_ready = is_ready
        self._process: Process | None = None
        self.log = machine.folder / f"{name}.log"

    @property
    def process(self) -> Process:
        """The one that was started last."""
        assert self._process is not None, f"{self._name} was never started"
        return self._process

    def start(self) -> None:
        """Start it and wait until it is ready; `NetqosError` with the end of its log otherwise."""
        with self.log.open("ab") as log:
            self._process = self._machine.popen(self._command, unit=self._unit, output=log)
        end_s = time.monotonic() + START_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > end_s:
                raise NetqosError(f"not ready; its log ends with\n{self.log_end()}", subject=self._name)
            time.sleep(0.05)

    def stop(self) -> int:
        """SIGTERM, and wait for the end; its exit code. What it started goes on."""
        return self.process.stop()

    def restart(self) -> None:
        """Stop it and start it again, as `systemctl restart`."""
        self.stop()
        self.start()

    def log_end(self, lines: int = 20) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


class Containerd(Service):
    """containerd with its CRI service."""

    def __init__(self, machine: Machine) -> None:
        """Write its configuration; nothing runs yet."""
        file = machine.folder / "containerd.toml"
        file.write_text(_containerd_configuration(machine.folder), encoding="utf-8")
        super().__init__(machine, "containerd", ["containerd", "--config", str(file)], self._answers)

    def set_network(self, network: Network) -> None:
        """Connect the pods that come from now on in another way; it is watched. Let there be none of before."""
        file = self._machine.path(CNI_CONFIGURATION)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(network.configuration(), encoding="utf-8")

    def import_image(self, archive: Path) -> None:
        """Give it the images of an archive (docker's or OCI's form), under the names in there."""
        self.ctr("images", "import", str(archive), timeout_s=120)

    def ctr(self, *arguments: str, timeout_s: float = 30) -> str:
        """What `ctr` prints, in the namespace of Kubernetes."""
        command = ["ctr", "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", *arguments]
        return self._machine.run(command, timeout_s=timeout_s).stdout

    def _answers(self) -> bool:
        done = self._machine.run(["ctr", "--address", CONTAINERD_SOCKET, "version"], check=False)
        return done.returncode == 0


def kubelet(machine: Machine, program: Path, kubeconfig: Path, *, node: str, address: str) -> Service:
    """The kubelet, which registers the node under this name and address; ready once its own health check says so."""
    file = machine.folder / "kubelet.json"
    file.write_text(json.dumps(_kubelet_configuration()), encoding="utf-8")
    machine.path(STATIC_PODS).mkdir(parents=True)
    command = [str(program), "--config", str(file), "--kubeconfig", str(kubeconfig)]
    command += ["--hostname-override", node, "--node-ip", address]
    ask = ["busybox", "wget", "-q", "-O", "/dev/null", "http://127.0.0.1:10248/healthz"]
    return Service(machine, "kubelet", command, lambda: machine.run(ask, check=False).returncode == 0)


def _kubelet_configuration() -> dict[str, object]:
    """A kubelet of one small machine, which never evicts: how full a disk is here is no concern of a test."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}},
        "authorization": {"mode": "Webhook"},
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "syncFrequency": "5s",
        "nodeStatusUpdateFrequency": "2s",
        "evictionHard": dict.fromkeys(
            (
                "memory.available",
                "nodefs.available",
                "imagefs.available",
                "nodefs.inodesFree",
                "pid.available",
            ),
            "0%",
        ),
        "imageGCHighThresholdPercent": 100,
        "staticPodPath": STATIC_PODS,
        "resolvConf": "",
        "registryPullQPS": 0,
        "eventRecordQPS": 50,
    }


def _containerd_configuration(folder: Path) -> str:
    return f"""version = 2
root = "{folder}/containerd"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{_snapshotter(folder)}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_FOLDER}"
    conf_dir = "{Path(CNI_CONFIGURATION).parent}"
"""


def _snapshotter(folder: Path) -> str:
    """overlayfs, which does not lie on another overlay, as a folder in a container does."""
    command = ["stat", "--file-system", "--format", "%T", str(folder)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return "native" if said == "overlayfs" else "overlayfs"
