"""Thirty scenarios whose steady state is predicted and measured: data alone.

Totals are about a hundred megabits, so that two busy cores carry them; shares are asymmetric, so that a swapped level
or direction is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from netqos.model.levels import Direction
from netqos.testing.daemon import Document

TX, RX = Direction.TX, Direction.RX
LATER = "90M"
"""The total of the other direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """`count` pods that want the same."""

    name: str
    level: str
    wants: str
    limit: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One scenario. `shares` are percent of the total by level (`l1`): guarantee and ceiling; None: its default.

    `off` names a class that is not switched on.
    """

    name: str
    way: Direction
    total: str
    pods: tuple[Pod, ...]
    shares: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    off: str = ""

    @property
    def head(self) -> Document:
        """Totals and policy, as a configuration file and a scenario have them."""
        totals = {one.value: self.total if one is self.way else LATER for one in Direction}
        return {"node": {"bandwidth": totals}, "policy": self._policy()}

    @property
    def scenario(self) -> Document:
        """For `netqosctl simulate`."""
        word = self.way.pod_word
        workloads = [
            {
                "name": pod.name,
                "level": pod.level,
                "count": pod.count,
                word: [pod.wants],
                **({"limits": {word: pod.limit}} if pod.limit else {}),
            }
            for pod in self.pods
        ]
        return {**self.head, "length": "3s", "workloads": workloads}

    @property
    def each(self) -> Mapping[str, Pod]:
        """Every pod by the name that it has in the prediction."""
        return {
            pod.name if pod.count == 1 else f"{pod.name}-{number}": pod
            for pod in self.pods
            for number in range(1, pod.count + 1)
        }

    def _policy(self) -> Document:
        if self.off:
            return {"resourceQOSStrategy": self._classes()}
        keys = (f"{self.way.value}Min", f"{self.way.value}Max")
        levels: dict[str, Any] = {}
        for level, bounds in self.shares.items():
            given = zip(keys, bounds, strict=True)
            levels[level] = {key: f"{percent}%" for key, percent in given if percent is not None}
        return {"enable": True, "levels": levels}

    def _classes(self) -> Document:
        word = self.way.pod_word
        names = {"l0": "systemClass", "l1": "lsClass", "l2": "beClass"}
        found: Document = {}
        for level, name in names.items():
            low, high = self.shares.get(level, (None, None))
            bounds = {f"{word}Request": low, f"{word}Limit": high}
            given = {key: percent for key, percent in bounds.items() if percent is not None}
            found[name] = {"networkQOS": {"enable": level != self.off, **given}}
        return found


def pod(name: str, level: str, wants: str = "greedy", *, limit: str = "", count: int = 1) -> Pod:
    """A pod in one line."""
    return Pod(name=name, level=level, wants=wants, limit=limit, count=count)


WEB, API, BATCH = pod("web", "l0"), pod("api", "l1"), pod("batch", "l2")
USUAL: Mapping[str, tuple[int | None, int | None]] = {"l1": (30, None), "l2": (20, None)}


def case(
    name: str, way: Direction, total: str, *pods: Pod, off: str = "", **shares: tuple[int | None, int | None]
) -> Case:
    """A scenario in one line; without shares L1 is promised 30 percent and L2 20."""
    return Case(name=name, way=way, total=total, pods=pods, shares=shares or USUAL, off=off)


CASES: tuple[Case, ...] = (
    case("all greedy", TX, "80M", WEB, API, BATCH),
    case("L0 is promised least", TX, "120M", WEB, API, BATCH, l1=(60, None), l2=(28, None)),
    case("L0 idle", TX, "80M", API, BATCH),
    case("L1 idle", TX, "80M", WEB, BATCH),
    case("L2 idle", TX, "80M", WEB, API),
    case("L2 alone under its ceiling", TX, "80M", BATCH, l1=(30, None), l2=(20, 80)),
    case("L1 alone under its ceiling", TX, "100M", API, l1=(30, 60), l2=(20, None)),
    case("L0's ceiling is low", TX, "80M", WEB, API, BATCH, l0=(None, 40), l1=(30, None), l2=(20, None)),
    case("L0's ceiling is low, L1 idle", TX, "80M", WEB, BATCH, l0=(None, 40), l1=(30, None), l2=(20, None)),
    case("L1's ceiling is low, L0 idle", TX, "80M", API, BATCH, l1=(30, 50), l2=(20, None)),
    case("L0 wants little", TX, "80M", pod("web", "l0", "udp 16M"), API, BATCH),
    case("L1 wants little", TX, "80M", WEB, pod("api", "l1", "udp 14400k"), BATCH),
    case("L2 wants little", TX, "80M", WEB, API, pod("batch", "l2", "udp 9600k")),
    case("L2 floods", TX, "80M", WEB, API, pod("flood", "l2", "udp 120M")),
    case("L1 floods", TX, "80M", WEB, pod("flood", "l1", "udp 120M"), BATCH),
    case("all flood", TX, "60M", *(pod(f"flood{n}", f"l{n}", "udp 88M") for n in range(3))),
    case(
        "room for all",
        TX,
        "80M",
        pod("web", "l0", "udp 20M"),
        pod("api", "l1", "udp 16M"),
        pod("batch", "l2", "udp 24M"),
    ),
    case("a limit in L0", TX, "80M", pod("web", "l0", limit="18M"), BATCH),
    case("a limit under a flood in L1", TX, "80M", WEB, API, pod("slow", "l1", "udp 36M", limit="10M")),
    case(
        "limits on all",
        TX,
        "120M",
        pod("web", "l0", limit="32M"),
        pod("api", "l1", limit="24M"),
        pod("batch", "l2", limit="14M"),
    ),
    case("eight in L2 against one in L0", TX, "96M", WEB, pod("batch", "l2", count=8)),
    case("six in L0 against one in L2", TX, "96M", pod("web", "l0", count=6), BATCH),
    case(
        "sixteen flows beside one",
        TX,
        "96M",
        WEB,
        pod("many", "l1", "tcp flows=16"),
        pod("one", "l1", "tcp"),
    ),
    case("L1 is off", TX, "80M", WEB, API, BATCH, off="l1", l2=(20, None)),
    case("received: all greedy", RX, "120M", WEB, API, BATCH, l1=(25, None), l2=(15, None)),
    case("received: L2 floods", RX, "96M", WEB, pod("flood", "l2", "udp 120M"), l1=(25, None), l2=(15, None)),
    case("received: L0 idle", RX, "96M", API, BATCH, l1=(25, None), l2=(15, None)),
    case(
        "received: a limit in L1",
        RX,
        "96M",
        pod("slow", "l1", limit="12M"),
        BATCH,
        l1=(25, None),
        l2=(15, None),
    ),
    case(
        "received: five in L1, L0's ceiling is low",
        RX,
        "96M",
        WEB,
        pod("api", "l1", count=5),
        l0=(None, 50),
        l1=(25, None),
        l2=(15, None),
    ),
    case(
        "received: L2's ceiling, L1 wants little",
        RX,
        "96M",
        pod("api", "l1", "udp 12M"),
        BATCH,
        l1=(25, None),
        l2=(15, 60),
    ),
)
