"""What nftables can tell of packets here, tried in transactions that the kernel only judges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from netqos.backend import NftRunner
from netqos.errors import NetqosError, Unsupported
from netqos.model.health import Finding, error, info, warning
from netqos_tc import cgroupspace, classify, tabletext
from netqos_tc.keys import CGROUP_MAPS
from netqos_tc.owners import Told
from netqos_tc.spec import TableSpec

Tried = tuple[Told | None, bool, tuple[Finding, ...]]
"""Which cgroups can be told, whether sources can be looked up, and what is to be said of both."""


def proven(table: TableSpec | None, begins_at: int) -> Tried | None:
    """What a table that was made before proves. One without cgroups may be from an older kernel: that is tried anew.

    So is one that a daemon in another place of the tree has made, and one that counts from the root.
    """
    if table is None:
        return None
    whole = classify.table_spec(
        cgroups=True,
        begins_at=begins_at,
        net_classes=classify.has_net_classes(table),
        ruled=classify.is_ruled(table),
    )
    if table != whole:
        return None
    return Told(begins_at=begins_at), True, _shifted(begins_at)


def try_nft(nft: Callable[[], NftRunner], begins_at: int) -> Tried:
    """What the table can tell, None where it cannot be made at all. Levels may count from `begins_at`."""
    try:
        runner = nft()
    except Unsupported as problem:
        return None, False, (error("no-libnftables", "backend tc", problem.message, hint=problem.hint),)
    problems = []
    for cgroups in (True, False):
        try:
            runner.check(tabletext.probe_text(cgroups=cgroups))
        except NetqosError as problem:
            problems.append(problem)
        else:
            sources = _try_sources(runner)
            counts_from = begins_at if cgroups and begins_at and _is_shifted(runner) else 0
            if counts_from > max(CGROUP_MAPS):
                return Told(cgroups=False), not sources, (*sources, _too_deep(counts_from))
            findings = (*sources, *map(_no_cgroups, problems), *_shifted(counts_from))
            return Told(cgroups=cgroups, begins_at=counts_from), not sources, findings
    return None, False, (_no_nft(problems[-1]),)


def _try_sources(runner: NftRunner) -> tuple[Finding, ...]:
    """What is to be said where the table cannot look up where a packet's source is."""
    try:
        runner.check(tabletext.probe_text(cgroups=False, sources=True))
    except NetqosError as problem:
        return (
            warning(
                "source-not-verified",
                "backend tc",
                "a workload that forges another's address sends in its name: this kernel cannot look up where a "
                f"source is; {problem.message}",
                hint="the kernel needs CONFIG_NFT_FIB_INET; net.ipv4.conf.all.rp_filter=1 drops forged packets too",
            ),
        )
    return ()


def mountinfo() -> str:
    """What is mounted where, as this process sees it; empty where that cannot be read."""
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _is_shifted(runner: NftRunner) -> bool:
    try:
        runner.check(cgroupspace.probe_text())
    except NetqosError:
        return True
    return False


def _shifted(begins_at: int) -> tuple[Finding, ...]:
    """What cannot be told from a container's cgroup namespace."""
    if not begins_at:
        return ()
    return (
        info(
            "cgroup-namespace",
            "backend tc",
            f"this container's cgroup namespace begins {begins_at} deep, and only cgroups as deep can be told apart: "
            "pods on the host's network are known by their containers, units of systemd count as the host",
            hint=_HOSTS_NAMESPACE,
        ),
    )


def _too_deep(begins_at: int) -> Finding:
    return warning(
        "cgroup-namespace",
        "backend tc",
        "not enforced: workloads known by their cgroup and pods on the host's network; this container's cgroup "
        f"namespace begins {begins_at} deep; allowed: up to {max(CGROUP_MAPS)}",
        hint=_HOSTS_NAMESPACE,
    )


_HOSTS_NAMESPACE: Final = (
    "run netqosd in the host's cgroup namespace (as a service of systemd, or privileged)"
)


def _no_cgroups(problem: NetqosError) -> Finding:
    return warning(
        "no-socket-cgroup",
        "backend tc",
        f"not enforced: workloads known by their cgroup; {problem.message}",
        hint="the kernel needs CONFIG_NFT_SOCKET (5.13 or newer), nftables 0.9.9 or newer",
    )


def _no_nft(problem: NetqosError) -> Finding:
    return error(
        "no-nft-maps",
        "backend tc",
        f"packets cannot be told apart: {problem.message}",
        hint=problem.hint
        or "the kernel needs CONFIG_NF_TABLES_INET and CONFIG_NFT_FIB_INET (modprobe nf_tables)",
    )
