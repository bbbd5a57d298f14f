"""packet-cost: the CPU that shaping adds to one packet, on a node with 500 leaves in each direction.

All work for a packet, up to the socket that receives it, is done by the one who sends it: on the rig's links nobody
else is interrupted. So his CPU time tells what a packet costs, whatever else the machine does; what a node adds is
the difference to one without netqos that takes turns with it. A merged packet is one of 43 segments, as TCP sends
them.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

from netqos.model.levels import Direction
from netqos.testing.analysis import median
from netqos.testing.netns import Rig
from tests.bench.figures import Figure, number
from tests.bench.options import Options, say
from tests.bench.shaping import LEAVES, by_hand, nodes

_PORT = 7400
_TURNS = 15
_UDP_SEGMENT, _UDP_GRO = 103, 104
_SEGMENT = 1400


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """One kind of packet: its bytes, whether the kernel parts it, and how many are sent at a time."""

    what: str
    payload: int
    is_merged: bool
    count: int


_KINDS = (
    _Kind(what="64 bytes", payload=64, is_merged=False, count=20_000),
    _Kind(what="merged of 60 KB", payload=43 * _SEGMENT, is_merged=True, count=4_000),
)


def packet_cost(options: Options) -> list[Figure]:
    """In each direction, against HTB by hand."""
    with nodes() as (shaped, bare), by_hand() as static:
        return [
            _figure(kind, way, (shaped, bare, static[way]), options) for way in Direction for kind in _KINDS
        ]


def _figure(kind: _Kind, way: Direction, rigs: tuple[Rig, Rig, Rig], options: Options) -> Figure:
    say(f"packet-cost: {way.pod_word}, {kind.what}")
    turns = [[_cost_ns(rig, way, kind) for rig in rigs] for _ in range(_TURNS * options.runs)]
    bare = median([one for _with_it, one, _static in turns])
    return Figure(
        bench="packet-cost",
        what=f"{way.pod_word}, {kind.what}: CPU that {LEAVES} leaves add",
        unit="ns",
        runs=(median([with_it for with_it, _bare, _static in turns]) - bare,),
        baseline=(median([static for _with_it, _bare, static in turns]) - bare,),
        baseline_name="HTB by hand",
        note=f"{number(bare)} ns without netqos, in a program of Python",
    )


def _cost_ns(rig: Rig, way: Direction, kind: _Kind) -> float:
    pod, wire = rig.pod("web"), rig.wire
    sender, receiver = (pod, wire) if way is Direction.TX else (wire, pod)
    with receiver.entered():
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sink:
        sink.setsockopt(socket.IPPROTO_UDP, _UDP_GRO, 1)
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sink.bind((receiver.address, _PORT))
        return sender.call(_send, receiver.address, kind.payload, kind.count, is_merged=kind.is_merged)


def _send(address: str, payload: int, count: int, *, is_merged: bool) -> float:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect((address, _PORT))
        if is_merged:
            sender.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, _SEGMENT)
        data = bytes(payload)
        began_s = time.process_time()
        for _ in range(count):
            sender.send(data)
        return (time.process_time() - began_s) / count * 1e9
