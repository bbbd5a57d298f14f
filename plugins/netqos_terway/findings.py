"""What terway-qos does not keep of a desired state, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from netqos.model.desired import DesiredPod, DesiredState
from netqos.model.health import Finding, error, info, warning
from netqos.model.levels import Direction, Level
from netqos.model.quantities import bits_per_s, format_bandwidth
from netqos_terway.layout import Row, Rows, impossible, lowered_levels

SUBJECT = "backend terway"

LEAST_BPS = 8_000_000
"""terway-qos lets through what has a rate under 1 MB/s (`accept` in its bpf/qos_tc.c), and steps in whole MB/s."""

MOST_NAMES = 3
NO_METER = "terway-meter-unavailable"

FOREIGN = {
    "node.json": error(
        "terway-foreign-node-file",
        "node.json",
        "terway-qos reads this file instead of global_bps_config, so no level's limits of netqos are in force",
        hint="find out who writes it and stop that, then remove it",
    ),
    "per_cgroup_bps_limit": warning(
        "terway-foreign-limits",
        "per_cgroup_bps_limit",
        "terway-qos takes pod limits from this file too, so they change between its values and those of pod.json",
        hint="find out who writes it and stop that, then remove it",
    ),
}
"""Files of somebody else in the folder that change what ours do."""

NO_NET_CLS = error(
    "terway-no-net-cls",
    SUBJECT,
    "terway-qos cannot work on this node: it finds pods in the net_cls hierarchy of cgroup v1, which is not mounted",
    hint="use the tc backend, or boot the node with cgroup v1 and mount net_cls",
)


def no_meter(problem: str) -> Finding:
    """The table that counts cannot be had here."""
    return info(
        NO_METER,
        SUBJECT,
        f"traffic cannot be counted, so ceilings do not move with it: {problem}",
        hint="install libnftables, and a kernel with CONFIG_NF_TABLES_INET",
    )


def foreign(names: Iterable[str]) -> tuple[Finding, ...]:
    """One finding for each foreign file that is there."""
    return tuple(FOREIGN[name] for name in sorted(names) if name in FOREIGN)


def not_enforced(desired: DesiredState, rows: Rows | None) -> Iterator[Finding]:
    """What of the state terway-qos cannot be told, or does not do. `rows` is what the policy asks for."""
    if rows is not None:
        yield from map(_impossible, impossible(rows))
        yield from _slow_levels(rows)
    if desired.enabled and len(desired.uplinks) > 1:
        names = ", ".join(uplink.name for uplink in desired.uplinks)
        yield info(
            "terway-several-uplinks",
            SUBJECT,
            f"terway-qos has one total for {names} together; ceilings are not moved with the traffic",
        )
    pods = [pod for pod in desired.pods if desired.enabled or pod.is_limited]
    yield from _pods(
        "terway-pod-without-cgroup", [pod for pod in pods if not pod.cgroup], "have no cgroup (yet)"
    )
    yield from _pods("terway-rules-not-enforced", [pod for pod in pods if _has_rules(pod)], "have rules")
    slow = [pod for pod in pods if _is_slow(pod)]
    yield from _pods("terway-limit-too-small", slow, f"have limits under {format_bandwidth(LEAST_BPS)}bit/s")


def lowered(wanted: Rows, written: Rows) -> Iterator[Finding]:
    """Where ceilings are written lower than asked, because the reader would refuse the file."""
    for direction in Direction:
        levels = [
            level for level in lowered_levels(wanted[direction], written[direction]) if level is not Level.L0
        ]
        if levels:
            yield info(
                "terway-ceiling-lowered",
                f"{SUBJECT} {direction.value}",
                f"the ceilings of L1 and L2 are asked to be {_ceilings(wanted[direction])}, "
                f"written {_ceilings(written[direction])}: terway-qos refuses more than the total of "
                f"{_text(wanted[direction].total)} for both together; they move with the traffic",
                hint="nothing to do; ceilings of L1 and L2 that together stay under the total are written as asked",
            )


def _impossible(direction: Direction) -> Finding:
    return error(
        "terway-not-writable",
        f"{SUBJECT} {direction.value}",
        "the guarantees of L1 and L2 are more than the total, so there is no file that terway-qos would take; "
        "the last one stays",
        hint="lower the guarantees of L1 and L2",
    )


def _slow_levels(rows: Rows) -> Iterator[Finding]:
    for direction in Direction:
        row = rows[direction]
        slow = [level.name for level in Level if 0 < bits_per_s(row.levels[level].high) < LEAST_BPS]
        if slow:
            yield warning(
                "terway-ceiling-too-small",
                f"{SUBJECT} {direction.value}",
                f"the ceilings of {', '.join(slow)} are under {format_bandwidth(LEAST_BPS)}bit/s; "
                "terway-qos does not hold a level to so little",
                hint="use the tc backend for rates this small",
            )


def _pods(code: str, pods: Sequence[DesiredPod], what: str) -> Iterator[Finding]:
    if pods:
        names = ", ".join(pod.name for pod in pods[:MOST_NAMES])
        more = f" and {len(pods) - MOST_NAMES} more" if len(pods) > MOST_NAMES else ""
        yield warning(
            code,
            SUBJECT,
            f"not enforced by terway-qos: {names}{more} {what}",
            hint="use the tc backend where this matters",
        )


def _has_rules(pod: DesiredPod) -> bool:
    return bool(pod.rules.tx or pod.rules.rx)


def _is_slow(pod: DesiredPod) -> bool:
    return any(limit is not None and limit < LEAST_BPS for limit in (pod.limits_bps.tx, pod.limits_bps.rx))


def _ceilings(row: Row) -> str:
    return f"{_text(row.levels.l1.high)} and {_text(row.levels.l2.high)}"


def _text(bytes_per_second: int) -> str:
    return f"{format_bandwidth(bits_per_s(bytes_per_second))}bit/s"
