"""Pods that come and go on a node, and how soon the kernel knows each of them after the API does."""

from __future__ import annotations

import itertools
import re
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.apiserver.client import Api
from tests.apiserver.kube import pods_path
from tests.node.realnode import RealNode, wait_until
from tests.node.scene import Scene

CLASSES: tuple[Mapping[str, Any], ...] = (
    {"annotations": {"koordinator.sh/net-qos-class": "l0"}},
    {"labels": {"koordinator.sh/qosClass": "LS"}, "annotations": {"koordinator.sh/egress-bandwidth": "10M"}},
    {},
)
_ADDRESS = re.compile(r"\b10\.88\.\d+\.\d+\b")
_MAP = "netqos tx4 "
_PENDING = 4
_HEARD_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """When a pod's address was in the API and when in the kernel's map; moments of time.monotonic."""

    told_s: float
    classed_s: float

    @property
    def delay_s(self) -> float:
        """Negative is not possible but for the clock of a thread that waited for its turn."""
        return self.classed_s - self.told_s


class Listener:
    """Hears of a namespace's new pods from the API server and of addresses from the kernel, in a `with` statement."""

    def __init__(self, node: RealNode, namespace: str) -> None:
        """Nothing is listened to yet."""
        self._node = node
        self._namespace = namespace
        self._api = Api(node.server.access.url, node.server.access.ca_file, node.server.access.token)
        self._told: dict[str, float] = {}
        self._classed: dict[str, float] = {}
        self._monitor: subprocess.Popen[bytes] | None = None
        self._ends = False
        self._threads = [threading.Thread(target=one) for one in (self._hear_kernel, self._hear_api)]

    def __enter__(self) -> Listener:
        """Listen from now on."""
        monitor = ["stdbuf", "-oL", "nft", "monitor", "new", "elements"]
        self._monitor = self._node.node.popen(monitor, stdout=subprocess.PIPE)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        assert self._monitor is not None
        self._ends = True
        self._monitor.kill()
        self._monitor.wait()
        for thread in self._threads:
            thread.join()
        assert self._monitor.stdout is not None
        self._monitor.stdout.close()
        self._api.close()

    def known(self) -> list[Known]:
        """Every address that the API told of; `classed_s` inf where the kernel never knew it."""
        end_s = time.monotonic() + _HEARD_S
        while not self._told.keys() <= self._classed.keys() and time.monotonic() < end_s:
            time.sleep(0.02)
        return [
            Known(told_s=told_s, classed_s=self._classed.get(address, float("inf")))
            for address, told_s in self._told.items()
        ]

    def _hear_kernel(self) -> None:
        assert self._monitor is not None
        assert self._monitor.stdout is not None
        for line in self._monitor.stdout:
            now_s = time.monotonic()
            text = line.decode(errors="replace")
            for address in _ADDRESS.findall(text) if _MAP in text else ():
                self._classed.setdefault(address, now_s)

    def _hear_api(self) -> None:
        path = pods_path(self._namespace)
        listed = self._api.get(path)
        version = listed["metadata"]["resourceVersion"]
        known = {one["status"].get("podIP") for one in listed["items"]}
        while not self._ends:
            for event in self._api.watch(path, timeout_s=3, resourceVersion=version):
                now_s = time.monotonic()
                version = event["object"]["metadata"]["resourceVersion"]
                address = event["object"].get("status", {}).get("podIP")
                if address not in known | {None} and event["type"] != "DELETED":
                    self._told.setdefault(address, now_s)


def churn(scene: Scene, *, pods: int, seconds: float) -> int:
    """Keep so many pods, of three levels, and replace the oldest all the time; how many were made.

    At most a few are on their way at once, so that a slow machine makes fewer, not all of them late.
    """
    alive: list[str] = []
    began_s = time.monotonic()
    for number in itertools.count():
        name = f"churn-{number}"
        scene.pods.create(name, **CLASSES[number % len(CLASSES)])
        alive.append(name)
        wait_until(lambda: _pending(scene) <= _PENDING, "pods start", 60)
        if len(alive) < pods:
            began_s = time.monotonic()
        else:
            scene.pods.delete(alive.pop(0), wait=False)
        if time.monotonic() - began_s > seconds:
            return number + 1
    raise AssertionError("there is no last number")


def _pending(scene: Scene) -> int:
    listed = scene.kube.api.get(pods_path(scene.kube.namespace))["items"]
    return sum(one["status"].get("phase") == "Pending" for one in listed)
