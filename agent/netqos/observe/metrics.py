"""Every metric of netqos: its name, kind, labels and meaning in one table. docs/metrics.md is checked against it.

Bandwidths are bits per second, as everywhere in netqos and in its configuration; volumes are bytes; times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter", "histogram"]

MOST_PODS = 500
"""Pods that have series of their own; those beyond are counted in netqos_pods_omitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. A counter's `_total` and a histogram's `_bucket`, `_sum`, `_count` are added by the exposition."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


POD = ("uid", "namespace", "pod")
LEVEL = ("direction", "level")


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=f"netqos_{name}", kind="gauge", help=text, labels=labels)


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=f"netqos_{name}", kind="counter", help=text, labels=labels)


def _histogram(name: str, text: str) -> Metric:
    return Metric(name=f"netqos_{name}", kind="histogram", help=text)


METRICS: tuple[Metric, ...] = (
    _gauge("build_info", "1; the version is the label's.", "version"),
    _gauge("start_time_seconds", "Unix time at which the daemon started."),
    _gauge("ready", "1 once every source has delivered since the start and a pass is done with that."),
    _gauge("enabled", "1 while network QoS is on."),
    _gauge("overrides", "Temporary overrides in force."),
    _gauge(
        "total_bits_per_second",
        "Total bandwidth of the node and where it is known from; 0 while it is unknown.",
        "direction",
        "source",
    ),
    _gauge(
        "room_bits_per_second",
        "What the pods may use of the total at this moment: less while the node itself receives much.",
        "direction",
    ),
    _gauge(
        "path_bits_per_second",
        "What the path behind a device was found to carry instead of its total; 0 while nothing speaks against that.",
        "device",
        "direction",
    ),
    _gauge("level_guarantee_bits_per_second", "What a level is guaranteed.", *LEVEL),
    _gauge(
        "level_ceiling_bits_per_second", "What a level may use at most; +Inf where it is not shaped.", *LEVEL
    ),
    _gauge(
        "level_current_ceiling_bits_per_second",
        "What a level may use at this moment, as the loop last decided; +Inf where nothing is steered.",
        *LEVEL,
    ),
    _gauge(
        "level_rate_bits_per_second",
        "Measured rate of a level in the last tick, Ethernet headers included.",
        *LEVEL,
    ),
    _gauge("level_backlogged", "1 while packets of a level wait.", *LEVEL),
    _gauge("level_enforced", "1 while a backend enforces a level.", *LEVEL),
    _gauge("level_backlog_bytes", "Bytes that wait in the queues of a level's pods.", *LEVEL),
    _gauge("level_pods", "Pods of a level.", "level"),
    _gauge("contention", "1 while the levels compete for a direction.", "direction"),
    _counter(
        "contention_seconds", "Time in contention, added up over the devices of a direction.", "direction"
    ),
    _gauge(
        "pod_info", "1 for each pod; level and its source are the labels'.", *POD, "level", "level_source"
    ),
    _gauge(
        "pod_limit_bits_per_second", "Limit of a pod and the input that gave it.", *POD, "direction", "source"
    ),
    _gauge("pod_limit_enforced", "1 while a backend enforces a pod's limit.", *POD, "direction"),
    _counter("pod_sent_bytes", "Bytes of a pod that passed its class.", *POD, "direction"),
    _counter("pod_sent_packets", "Packets of a pod that passed its class.", *POD, "direction"),
    _counter("pod_dropped_packets", "Packets of a pod that its queue dropped.", *POD, "direction"),
    _gauge("pod_backlog_bytes", "Bytes of a pod that wait in its queue.", *POD, "direction"),
    _gauge("pods_omitted", f"Pods without series of their own, beyond the first {MOST_PODS} by name."),
    _gauge("source_state", "1 for the state that an input is in, 0 for the others.", "source", "state"),
    _gauge(
        "source_age_seconds",
        "Time since an input was last known to be good: 0 while it is, +Inf before it ever was.",
        "source",
    ),
    _gauge("backend_state", "1 for the state that a backend is in, 0 for the others.", "backend", "state"),
    _gauge(
        "backend_enforces", "1 for a direction that a backend can shape on this host.", "backend", "direction"
    ),
    _gauge(
        "backend_applied_age_seconds", "Time since a backend last changed something; +Inf before.", "backend"
    ),
    _counter("backend_operations", "Changes that a backend attempted.", "backend", "verb", "result"),
    _counter("drift_repairs", "Passes that put back what somebody else had changed.", "backend"),
    _gauge("findings", "Present findings by severity.", "severity"),
    _gauge("finding", "Present findings by code, without a series where there is none.", "code", "severity"),
    _counter("rejected_inputs", "Inputs that were rejected, by the finding's code.", "reason"),
    _counter("ticks", "Ticks of the fast loop, glances with them."),
    _counter("tick_writes", "Writes that the fast loop made."),
    _histogram("tick_lateness_seconds", "How late a tick began."),
    _histogram("tick_duration_seconds", "How long a tick took."),
    _histogram("reconcile_duration_seconds", "How long a pass of the reconciler took."),
    _histogram("event_to_applied_seconds", "Time from an event to the last write that it caused."),
)
