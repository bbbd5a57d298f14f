"""The keys of the configuration file under `workloads`: what is treated as a pod without being one."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from netqos.settings.fields import CgroupName, HostAddress, LevelName, Limit, UnitName, WorkloadName, entries
from netqos.settings.section import Section


class MatchSection(Section):
    """How the packets of a workload are known: one of the three."""

    addresses: Annotated[tuple[HostAddress, ...] | None, entries(64)] = Field(
        default=None, description="Its own addresses, v4 and v6."
    )
    cgroup: CgroupName | None = Field(default=None, description="Its cgroup: `/system.slice/nginx.service`.")
    unit: UnitName | None = Field(default=None, description="Its systemd unit: `nginx.service`.")


class LimitsSection(Section):
    """Limits of one workload."""

    egress: Limit | None = Field(
        default=None, description="What it may send, in bits/s: `10M`; 0 is no limit."
    )
    ingress: Limit | None = Field(default=None, description="What it may receive, in bits/s; 0 is no limit.")


class RulesSection(Section):
    """Rules inside one workload; the items are those of the annotation koordinator.sh/qos-config."""

    egress: Any = Field(
        default=None, description="Items of `matchs` and `actions` for what it sends; the first match wins."
    )
    ingress: Any = Field(default=None, description="The same for what it receives.")


class WorkloadSection(Section):
    """Something on this node that is treated as a pod."""

    name: WorkloadName = Field(description="Its name, unique among all files; at most 63 characters.")
    match: MatchSection = Field(description="How its packets are known.")
    level: LevelName | None = Field(default=None, description="Its level. Default: l1.")
    limits: LimitsSection = Field(default=LimitsSection(), description="What it may use at most.")
    rules: RulesSection = Field(default=RulesSection(), description="Rules for a part of its traffic.")
