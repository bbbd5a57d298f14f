"""What the host says of itself, in the words of the model: the node's facts, and its workloads as pods.

A workload of the configuration is treated in everything as a pod. One that is not there yet stands in the list with a
finding, and becomes known when its cgroup or unit appears.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from netqos.host import bypass, limiters
from netqos.host.cgroups import Cgroup, Cgroups
from netqos.host.links import LinkReport
from netqos.host.neighbours import NOTHING_SEEN, Neighbourhood
from netqos.model import addresses
from netqos.model.health import Finding, error, info, warning
from netqos.model.ids import CgroupPath, workload_uid
from netqos.model.inputs import NodeFacts, PodFacts
from netqos.settings.values import Settings, WorkloadSettings


def node_name(settings: Settings, environ: Mapping[str, str] = os.environ) -> str:
    """The configured name, else $NODE_NAME, else the host's name in lower case, by which the kubelet names its Node."""
    return settings.node_name or environ.get("NODE_NAME", "").strip() or socket.gethostname().lower()


def node_facts(
    name: str,
    links: LinkReport,
    cgroups: Cgroups,
    seen: Neighbourhood = NOTHING_SEEN,
    *,
    bandwidth_annotation: str | None = None,
) -> NodeFacts:
    """Everything known of the node. `bandwidth_annotation` comes from its Kubernetes object, None without one."""
    indexes = [one.index for one in links.uplinks if one.present]
    held = limiters.held_limits(seen, indexes)
    return NodeFacts(
        name=name,
        uplinks=tuple(
            replace(one, egress_program=bypass.egress_program(seen, one.index)) for one in links.uplinks
        ),
        bandwidth_annotation=bandwidth_annotation,
        critical_cgroups=cgroups.critical(),
        held=held,
        findings=(
            *links.findings,
            *cgroups.findings(),
            *limiters.findings(seen, held, indexes),
            *bypass.findings(seen, indexes),
        ),
    )


class WorkloadFacts:
    """The configured workloads as pods. Those known by addresses are made once, since only a setting changes them."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._made_from: tuple[Sequence[WorkloadSettings], frozenset[str]] = ((), frozenset())
        self._by_addresses: tuple[PodFacts | None, ...] = ()

    def look(
        self, workloads: Sequence[WorkloadSettings], cgroups: Cgroups, *, own_addresses: frozenset[str]
    ) -> tuple[PodFacts, ...]:
        """All in their order. `own_addresses` are the node's (`Links.local_addresses`)."""
        if self._made_from[0] is not workloads or self._made_from[1] != own_addresses:
            self._made_from = workloads, own_addresses
            self._by_addresses = tuple(
                None if _cgroup_wanted(one) else _by_addresses(one, own_addresses) for one in workloads
            )
        units = cgroups.units(one.match.unit for one in workloads if one.match.unit is not None)
        known = zip(self._by_addresses, workloads, strict=True)
        return tuple(made or _by_cgroup(one, cgroups, units) for made, one in known)


def _cgroup_wanted(one: WorkloadSettings) -> str | None:
    """The unit or cgroup that the workload is known by, as it was written; None: it is known by addresses."""
    return one.match.unit or one.match.cgroup


def _by_addresses(one: WorkloadSettings, own_addresses: frozenset[str]) -> PodFacts:
    refused = [text for text in one.match.addresses if addresses.plain(text) in own_addresses]
    kept = tuple(text for text in one.match.addresses if text not in refused)
    return _facts(one, addresses=kept, findings=[_own_address(one, text) for text in refused])


def _by_cgroup(one: WorkloadSettings, cgroups: Cgroups, units: Mapping[str, CgroupPath]) -> PodFacts:
    path = units.get(one.match.unit) if one.match.unit is not None else one.match.cgroup
    found = cgroups.locate(path) if path is not None else None
    return _facts(
        one,
        cgroup=found or (Cgroup(path=one.match.cgroup, id=None) if one.match.cgroup else None),
        host_network=True,
        findings=_cgroup_findings(one, cgroups, found),
    )


def _facts(
    one: WorkloadSettings,
    *,
    addresses: tuple[str, ...] = (),
    cgroup: Cgroup | None = None,
    host_network: bool = False,
    findings: Iterable[Finding],
) -> PodFacts:
    return PodFacts(
        uid=workload_uid(one.name),
        namespace="",
        name=one.name,
        addresses=addresses,
        cgroup=cgroup.path if cgroup is not None else None,
        cgroup_id=cgroup.id if cgroup is not None else None,
        inner_cgroups=cgroup.inner if cgroup is not None else (),
        host_network=host_network,
        direct_level=one.level,
        direct_limits=one.limits,
        direct_rules=one.rules,
        findings=tuple(findings),
    )


def _cgroup_findings(one: WorkloadSettings, cgroups: Cgroups, found: Cgroup | None) -> Iterator[Finding]:
    subject, wanted = f"workload {one.name}", _cgroup_wanted(one)
    if not cgroups.tells_packets():
        yield warning(
            "workload-not-enforced",
            subject,
            f"it is matched by {wanted}, and packets cannot be told apart by cgroup here (no cgroup v2)",
            hint="match it by its addresses",
        )
    elif found is None:
        yield info(
            "workload-pending",
            subject,
            f"{wanted} is not there yet; its packets are not known until it runs",
            hint=f"start it, or correct the name: `systemd-cgls` shows what runs (looked for: {wanted})",
        )
    elif cgroups.is_elsewhere(found.path):
        yield warning(
            "workload-in-another-namespace",
            subject,
            f"the processes of {found.path} are in another network namespace; their packets lose the cgroup on "
            "the way, so they count as unclaimed",
            hint="match it by its addresses",
        )
    elif cgroups.is_hidden(found.path):
        yield info(
            "workload-not-seen",
            subject,
            f"the processes of {found.path} cannot be seen from this container, so it is not known whether they are "
            "in another network namespace, where their packets would lose the cgroup",
            hint="match it by its addresses, or run netqosd with hostPID",
        )


def _own_address(one: WorkloadSettings, text: str) -> Finding:
    return error(
        "address-of-node",
        f"workload {one.name}",
        f"{text} is an address of this node: it would take the node's own traffic too; it is left out",
        hint="match it by unit or cgroup",
    )
