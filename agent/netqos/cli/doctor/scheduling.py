"""Whether the running daemon goes before other programs of the node, as the kernel has it."""

from __future__ import annotations

import os
import socket
import struct

from netqos.cli.doctor.check import Check, ok, unknown, warn

NAME = "scheduling"
HINT = (
    "netqosd asks for it while network QoS is on: give it CAP_SYS_NICE, in Kubernetes by the component realtime, or a "
    "limit of real-time priority, in systemd LimitRTPRIO=1"
)


def scheduling(path: str) -> list[Check]:
    """How the process at the other end of a status socket is scheduled; nothing where none answers."""
    pid = _owner(path)
    if pid is None:
        return []
    try:
        policy = os.sched_getscheduler(pid)
    except OSError:
        return [unknown(NAME, "netqosd is in another PID namespace, which cannot be looked into from here")]
    if policy in {os.SCHED_RR, os.SCHED_FIFO}:
        return [ok(NAME, "netqosd goes before all ordinary programs")]
    text = "netqosd is one program among others: its loop comes late on a node whose processors are all busy"
    return [warn(NAME, text, HINT)]


def _owner(path: str) -> int | None:
    """The process that made the socket, None where there is none to be seen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(5)
        try:
            asking.connect(path)
        except OSError:
            return None
        credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, _uid, _gid = struct.unpack("=3i", credentials)
    return pid or None
