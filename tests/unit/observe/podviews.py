from __future__ import annotations

from netqos.model.composed import AppliedLimit, PodView
from netqos.model.health import Finding, warning
from netqos.model.ids import PodUid
from netqos.model.levels import Level, PerDirection
from netqos.observe.recorder import REASONS


def rejected(message: str = "no quantity") -> Finding:
    return warning(REASONS[0], "pod shop/web", message, hint="write 10M")


def view(*findings: Finding, uid: str = "u-1", namespace: str = "shop", name: str = "web") -> PodView:
    nothing = AppliedLimit(bps=None, source="none")
    return PodView(
        uid=PodUid(uid),
        namespace=namespace,
        name=name,
        level=Level.L1,
        level_source="default",
        level_choices=(),
        limits=PerDirection(tx=nothing, rx=nothing),
        addresses=(),
        cgroup=None,
        host_network=False,
        findings=findings,
    )
