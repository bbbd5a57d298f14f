"""A reader of the node and pods files as terway-qos is one, written from the contract alone (section 2).

It looks again and again, takes whole files only, and judges each version that it meets: what it could not use is a
problem. Nothing of netqos is used here but its files.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NODE_KEYS = {"hw_tx_bps_max", "hw_rx_bps_max"} | {
    f"l{level}_{way}_bps_{what}" for level in (1, 2) for way in ("tx", "rx") for what in ("min", "max")
}
_POD_KEYS = {"cgroup", "priority", "pod", "podUID", "qos-config"}


class FileReader:
    """Reads both files from a folder until told to stop; use it in a `with` statement."""

    def __init__(self, folder: Path, *, cgroups: Path) -> None:
        """`cgroups` is the tree in which a pod's cgroup must be found."""
        self._folder = folder
        self._cgroups = cgroups
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.problems: list[str] = []
        self.versions = 0
        self.node: Mapping[str, int] | None = None
        self.pods: Mapping[str, Any] = {}

    def __enter__(self) -> FileReader:
        """Read from now on."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Read no more."""
        self._ends.set()
        self._thread.join()

    def _look(self) -> None:
        seen: dict[str, str] = {}
        while not self._ends.is_set():
            for name, take in (("node", self._take_node), ("pods", self._take_pods)):
                text = self._text(name)
                if text != seen.get(name, ""):
                    seen[name] = text
                    self.versions += 1
                    take(text)
            time.sleep(0.002)

    def _text(self, name: str) -> str:
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def _take_node(self, text: str) -> None:
        """No file, no limits; else hw is the total, and what L1 and L2 leave is L0's."""
        if not text:
            self.node = None
            return
        found = self._parsed("node", text)
        if set(found) != NODE_KEYS or not all(type(one) is int and one >= 0 for one in found.values()):
            self.problems.append(f"node: {text}")
            return
        for way in ("tx", "rx"):
            total = found[f"hw_{way}_bps_max"]
            least = [found[f"l{level}_{way}_bps_min"] for level in (1, 2)]
            most = [found[f"l{level}_{way}_bps_max"] for level in (1, 2)]
            if sum(least) > total or any(low > high for low, high in zip(least, most, strict=True)):
                self.problems.append(f"node, {way}: {text}")
        self.node = found

    def _take_pods(self, text: str) -> None:
        found = self._parsed("pods", text) if text else {}
        for uid, pod in found.items():
            if set(pod) != _POD_KEYS or pod["podUID"] != uid or pod["priority"] not in {0, 1, 2}:
                self.problems.append(f"pod {uid}: {pod}")
        self.pods = found

    def _parsed(self, name: str, text: str) -> dict[str, Any]:
        try:
            document = json.loads(text)
        except ValueError as problem:
            self.problems.append(f"{name}: {problem}: {text}")
            return {}
        return document if isinstance(document, dict) else {}

    def missing_cgroups(self) -> list[str]:
        """Pods whose cgroup is not where the file says."""
        return [
            f"{pod['pod']}: {pod['cgroup']}"
            for pod in self.pods.values()
            if not pod["cgroup"] or not (self._cgroups / pod["cgroup"].lstrip("/")).is_dir()
        ]
