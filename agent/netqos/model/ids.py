"""Identifiers with a meaning of their own."""

from __future__ import annotations

from typing import NewType

PodUid = NewType("PodUid", str)
"""A Kubernetes pod UID, or `workload:NAME` for a workload of the configuration file."""

IfName = NewType("IfName", str)
"""A network interface by its name (at most 15 bytes)."""

CgroupPath = NewType("CgroupPath", str)
"""A cgroup below the hierarchy's mount point, with a leading slash: `/system.slice/nginx.service`."""

WORKLOAD_PREFIX = "workload:"


def workload_uid(name: str) -> PodUid:
    """The uid under which a workload of the configuration file is known."""
    return PodUid(WORKLOAD_PREFIX + name)
