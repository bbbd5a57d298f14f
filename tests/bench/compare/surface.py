"""What an enforcer is to the comparison: the policy it gets, what it offers, and how one of a stranger's is loaded.

The rig is `netqos.testing.netns.Rig` (docs/rig.md): an adapter starts its programs with `rig.node.popen`, asks the
kernel with `rig.node.run`, and finds the devices in `rig.uplink` and `rig.pod(name).link`.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from netqos.errors import Rejected
from netqos.model.desired import Band
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.testing.netns import Rig

M = 1_000_000
SENDERS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
RECEIVERS = {"shop": Level.L0, "mail": Level.L1, "backup": Level.L2}
ASKER = "lookup"
"""A pod of L0 that sends small requests and short flows while the others fill the link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is asked of every enforcer: totals and bands in bits per second, and each pod's level."""

    totals_bps: PerDirection[int]
    bands: PerDirection[PerLevel[Band]]
    pods: Mapping[str, Level] = field(default_factory=lambda: {**SENDERS, **RECEIVERS, ASKER: Level.L0})

    def guarantee_bps(self, direction: Direction, level: Level) -> int:
        """What a level is promised."""
        return self.bands[direction][level].guarantee_bps


def usual_bands(total_bps: int) -> PerLevel[Band]:
    """Guarantees of a half, a third and a sixth; L1 may have 80 percent of all, L2 70."""
    l1, l2 = total_bps // 3, total_bps // 6
    return PerLevel(
        Band(guarantee_bps=total_bps - l1 - l2, ceiling_bps=total_bps),
        Band(guarantee_bps=l1, ceiling_bps=total_bps * 8 // 10),
        Band(guarantee_bps=l2, ceiling_bps=total_bps * 7 // 10),
    )


def usual_policy() -> Policy:
    """Totals that two cores carry in both directions at once, unequal so that a swap would show.

    A packet of the greedy flows is up to 64 KB: of the smallest guarantee a bin of 100 ms holds more than ten.
    """
    totals = PerDirection(tx=600 * M, rx=480 * M)
    return Policy(totals_bps=totals, bands=totals.map(usual_bands))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an agent tells of itself at a moment, since its start; None where it does not tell."""

    writes: int | None = None
    late_p99_ms: float | None = None


@runtime_checkable
class Enforcer(Protocol):
    """One way to keep the policy on a rig's node. Used once: a new one is made for every run."""

    name: str
    how: str
    """One sentence for the page: what it is, and how it was set up."""

    def start(self, rig: Rig) -> None:
        """Get ready on a rig whose pods are there; nothing need be enforced yet."""
        ...

    def apply(self, policy: Policy) -> None:
        """Have the policy in force when this returns."""
        ...

    @property
    def pid(self) -> int | None:
        """The process whose CPU and memory count; None where nothing runs."""
        ...

    def reading(self) -> Reading:
        """What it tells of itself now."""
        ...

    def stop(self) -> None:
        """End what it started outside of the rig's namespaces; those are removed with all that is in them."""
        ...


class KernelOnly:
    """What adapters without a process have in common: nothing to stop, nothing to read."""

    name = ""
    how = ""

    def __init__(self) -> None:
        """No rig yet."""
        self._rig: Rig | None = None

    @property
    def rig(self) -> Rig:
        """Where it was started."""
        assert self._rig is not None
        return self._rig

    def start(self, rig: Rig) -> None:
        """Keep the rig for `apply`."""
        self._rig = rig

    @property
    def pid(self) -> int | None:
        """Nothing runs."""
        return None

    def reading(self) -> Reading:
        """Nothing is told."""
        return Reading()

    def stop(self) -> None:
        """The kernel's objects go with the rig."""


_PARTS = ("name", "how", "start", "apply", "pid", "reading", "stop")


def _has(made: object, part: str) -> bool:
    """Whether it has the part, without asking for it: a process that was not started yet has no pid."""
    found = inspect.getattr_static(made, part, None)
    return found is not None and found != ""


def load(path: Path) -> type[Enforcer]:
    """The class `Adapter` of a Python file; `Rejected` says what is missing."""
    spec = importlib.util.spec_from_file_location(f"adapter_{path.stem}", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):  # noqa: PTH113 - never an error
        raise Rejected("is no Python file", subject=str(path), hint="name a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        made = module.Adapter()
    except Exception as problem:  # a stranger's file may raise anything
        raise Rejected(f"cannot be used: {type(problem).__name__}: {problem}", subject=str(path)) from problem
    lacking = [one for one in _PARTS if not _has(made, one)]
    if lacking:
        raise Rejected(
            f"its class Adapter lacks {', '.join(lacking)}",
            subject=str(path),
            hint="docs/comparison.md has an example; KernelOnly brings all but name, how and apply",
        )
    adapter: type[Enforcer] = module.Adapter
    return adapter
