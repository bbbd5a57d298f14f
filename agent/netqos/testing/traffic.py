"""Real traffic between the rig's namespaces: greedy TCP flows and UDP floods, started and stopped at will.

TCP is iperf3's, one server a flow, so that flows begin and end on their own. UDP floods are sent by a small program
here: iperf3 steers its UDP test through a TCP connection that lives in the flooded class and is lost with it, and it
takes a system call a packet, so that two cores measure themselves instead of the shaper.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from netqos.model.levels import Direction
from netqos.testing.meter import TCP, Framing, Source
from netqos.testing.namespaces import Foothold
from netqos.testing.netns import Rig
from netqos.testing.paths import Place, entered
from netqos.testing.processes import Call, CommandFailed

UDP_PAYLOAD = 1400
_UDP_SEGMENT = 103  # include/uapi/linux/udp.h, since 4.18
_UDP_HEADERS = 14 + 20 + 8
_LATE_S = 0.002
_LISTENING = "0A"
_FIRST_PORT = 5201
_FOR_EVER_S = 86400


class Site(Protocol):
    """What traffic is made on: pods by name, and the outside."""

    @property
    def wire(self) -> Foothold:
        """The outside."""

    def place(self, name: str) -> Place:
        """Where a pod's processes run."""


class Flow(Protocol):
    """Traffic of one source that can be started and stopped, each once."""

    def start(self) -> None:
        """Send from now on."""
        ...

    def stop(self) -> None:
        """Send no more; no error when it does not run."""
        ...


class TcpFlow:
    """One or more parallel greedy TCP connections from one namespace to another."""

    def __init__(
        self,
        source: Place,
        sink: Place,
        *,
        port: int,
        address: str,
        congestion: str,
        streams: int = 1,
    ) -> None:
        """Start the server, so that `start` needs a moment only. `congestion` is the kernel's name, e.g. cubic."""
        self.port = port
        self._source = source
        self._server = sink.popen(["iperf3", "--server", "--one-off", "--port", str(port)])
        self._command = [
            *("iperf3", "--client", address, "--port", str(port), "--congestion", congestion),
            *("--parallel", str(streams), "--time", str(_FOR_EVER_S), "--interval", "0"),
        ]
        self._client: subprocess.Popen[bytes] | None = None
        _wait_for_listener(self._server, port)

    def start(self) -> None:
        """Send from now on (the first data leaves some 20 ms later)."""
        self._client = self._source.popen(self._command, stderr=subprocess.PIPE)

    @property
    def pid(self) -> int:
        """The sending process."""
        assert self._client is not None
        return self._client.pid

    def check(self) -> None:
        """`CommandFailed` when the flow has ended by itself."""
        if self._client is not None and self._client.poll() is not None:
            assert self._client.stderr is not None
            said = self._client.stderr.read().decode(errors="replace").strip()
            raise CommandFailed(f"ended by itself: {said}", subject=" ".join(self._command))

    def stop(self) -> None:
        """Kill both ends; what the sender's kernel still holds is not waited for."""
        for process in (self._client, self._server):
            if process is not None:
                process.kill()
                process.wait()
                if process.stderr is not None:
                    process.stderr.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Datagrams:
    """A steady stream: Ethernet bits a second, payload bytes a datagram, datagrams a GSO packet (and system call)."""

    rate_bps: int
    payload: int = UDP_PAYLOAD
    segments: int = 8


class UdpFlood:
    """Datagrams at a steady rate, whatever becomes of them."""

    def __init__(self, source: Place, place: tuple[str, int], datagrams: Datagrams) -> None:
        """Nothing is sent yet; `place` is the address and port to send to."""
        self._source = source
        self._place = place
        self._datagrams = datagrams
        self._call: Call[None] | None = None

    def start(self) -> None:
        """Send from now on."""
        self._call = self._source.fork(_flood, self._place, self._datagrams)

    def stop(self) -> None:
        """Send no more."""
        if self._call is not None:
            self._call.kill()


def arriving(rig: Rig, pod: str, direction: Direction, *, framing: Framing = TCP) -> Source:
    """What a meter counts of a pod's traffic with the wire, where it arrives."""
    if direction is Direction.TX:
        return Source(address=rig.pod(pod).address, framing=framing)
    return Source(address=rig.wire.address, framing=framing, at=rig.pod(pod))


class Traffic:
    """Makes the flows of one rig, each with a port of its own; `stop` ends all of them."""

    def __init__(self, rig: Site) -> None:
        """Nothing runs yet."""
        self._rig = rig
        self._ports = itertools.count(_FIRST_PORT)
        self._flows: list[Flow] = []
        self._sinks: list[socket.socket] = []

    def tcp(
        self,
        pod: str,
        *,
        congestion: str = "cubic",
        streams: int = 1,
        towards_pod: bool = False,
        family: int = 4,
    ) -> TcpFlow:
        """A greedy flow from a pod to the wire, or from the wire to the pod."""
        source: Place = self._rig.place(pod)
        sink: Place = self._rig.wire
        if towards_pod:
            source, sink = sink, source
        flow = TcpFlow(
            source,
            sink,
            port=next(self._ports),
            address=sink.address if family == 4 else sink.address6,
            congestion=congestion,
            streams=streams,
        )
        self._flows.append(flow)
        return flow

    def udp(self, pod: str, datagrams: Datagrams, *, towards_pod: bool = False, family: int = 4) -> UdpFlood:
        """A flood from a pod to the wire, or from the wire to the pod, where a socket takes it and drops it."""
        source: Place = self._rig.place(pod)
        sink: Place = self._rig.wire
        if towards_pod:
            source, sink = sink, source
        place = (sink.address if family == 4 else sink.address6, next(self._ports))
        with entered(sink):
            taker = socket.socket(_family_of(place[0]), socket.SOCK_DGRAM)
        self._sinks.append(taker)
        taker.bind(place)
        flood = UdpFlood(source, place, datagrams)
        self._flows.append(flood)
        return flood

    def stop(self) -> None:
        """End all flows."""
        for flow in self._flows:
            flow.stop()
        for sink in self._sinks:
            sink.close()
        self._flows.clear()
        self._sinks.clear()


def _wait_for_listener(server: subprocess.Popen[bytes], port: int) -> None:
    """Wait until a process has a listening TCP socket, seen in /proc/PID/net, which shows that process's namespace."""
    wanted = f":{port:04X}"
    for _ in range(500):
        if server.poll() is not None:
            raise CommandFailed(
                f"ended with {server.returncode} before it listened", subject=f"server on port {port}"
            )
        for table in ("tcp", "tcp6"):
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{server.pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]
                fields = [line.split() for line in lines]
                if any(field[1].endswith(wanted) and field[3] == _LISTENING for field in fields):
                    return
        time.sleep(0.01)
    raise TimeoutError(f"nothing listens on port {port} after 5 s")


def _family_of(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _flood(place: tuple[str, int], datagrams: Datagrams) -> None:
    call_bits = (datagrams.payload + _UDP_HEADERS) * datagrams.segments * 8
    data = bytes(datagrams.payload * datagrams.segments)
    with socket.socket(_family_of(place[0]), socket.SOCK_DGRAM) as sender:
        if datagrams.segments > 1:
            sender.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, datagrams.payload)
        sender.connect(place)
        start_s, sent_bits = time.monotonic(), 0.0
        while True:
            due_bits = (time.monotonic() - start_s) * datagrams.rate_bps
            # What could not be sent in time (2 ms) is left out: a flood that catches up would be a burst.
            sent_bits = max(sent_bits, due_bits - datagrams.rate_bps * _LATE_S)
            while sent_bits < due_bits:
                with contextlib.suppress(OSError):  # a full queue on the way is a flood's business
                    sender.send(data)
                sent_bits += call_bits
            time.sleep(0.0002)
