"""A meter at the receiving side: bytes by address, read in a child process with its own clock.

nft counts in each receiving namespace, where whole GSO packets arrive, so its bytes hold one IP header where the line
carries several packets. `Framing` turns them back into Ethernet bytes as HTB counts them (14 bytes of Ethernet header
a packet, no preamble, gap or FCS). For TCP over IPv4 with timestamps at MTU 1500 that is goodput / 0.956.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from types import TracebackType
from typing import Self

from netqos.testing.analysis import Series
from netqos.testing.counters import CounterReader
from netqos.testing.namespaces import Foothold
from netqos.testing.processes import Call

ETHERNET_HEADER = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """How a source's packets look on the line: bytes of IP and transport headers, payload of a full packet."""

    headers: int
    payload: int

    @property
    def frame(self) -> int:
        """Ethernet bytes of a full packet."""
        return self.payload + self.headers + ETHERNET_HEADER

    def ethernet_bytes(self, ip_bytes: int, packets: int) -> float:
        """Ethernet bytes of what nft counted as so many bytes in so many (GSO) packets."""
        payload = max(0, ip_bytes - packets * self.headers)
        return payload * self.frame / self.payload

    @property
    def goodput(self) -> float:
        """The share of Ethernet bytes that is payload."""
        return self.payload / self.frame


def tcp_framing(*, mtu: int = 1500, family: int = 4) -> Framing:
    """TCP with timestamps (32 bytes), full packets."""
    headers = (20 if family == 4 else 40) + 32
    return Framing(headers=headers, payload=mtu - headers)


def udp_framing(payload: int, *, family: int = 4) -> Framing:
    """Datagrams of one size."""
    return Framing(headers=(20 if family == 4 else 40) + 8, payload=payload)


TCP = tcp_framing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What one meter counts: packets from an address that came in at a namespace (None: the meter's own).

    `is_target`: packets to the address instead. `port`: those to this TCP port, from whatever address (empty then),
    which is all that is left to tell senders apart by behind a masquerade.
    """

    address: str = ""
    framing: Framing = TCP
    at: Foothold | None = None
    is_target: bool = False
    port: int | None = None


class Meter:
    """Reads counters every `interval_s` from `start` to `stop`; use it in a `with` statement.

    Moments are those of time.monotonic at the reading, so a late reading makes a longer bin, never a wrong rate.
    """

    def __init__(
        self, namespace: Foothold, sources: Mapping[str, Source], *, interval_s: float = 0.05
    ) -> None:
        """Count in this namespace; the sources' names become those of the series."""
        self._namespace = namespace
        self._sources = dict(sources)
        self._interval_s = interval_s
        self._record = struct.Struct(f"=d{2 * len(self._sources)}Q")
        self._call: Call[None] | None = None
        self._stop = self._data = -1
        self._rest = b""
        self._at_s: list[float] = []
        self._counts: dict[str, list[float]] = {name: [] for name in self._sources}

    def __enter__(self) -> Self:
        """Install the counters and start the reading child."""
        for namespace, sources in self._metered():
            namespace.run(["nft", "-f", "-"], text=_ruleset(sources))
        stop_reader, self._stop = os.pipe()
        self._data, data_writer = os.pipe()
        # A MiB holds minutes of readings, so the child is never stopped by a parent that does not look.
        fcntl.fcntl(self._data, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.set_blocking(self._data, False)
        self._call = self._namespace.fork(self._child, stop_reader, data_writer)
        os.close(stop_reader)
        os.close(data_writer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the child and remove the counters; what was read stays available."""
        self.stop()

    def series(self) -> Series:
        """All readings so far, in Ethernet bytes."""
        self._drain()
        return Series(
            at_s=tuple(self._at_s), counts={name: tuple(counts) for name, counts in self._counts.items()}
        )

    def stop(self) -> Series:
        """End the readings; all of them."""
        if self._call is not None:
            # A byte, not the end of the pipe: children forked meanwhile hold its writing end too.
            os.write(self._stop, b"!")
            os.close(self._stop)
            try:
                self._call.result(timeout_s=10)
            finally:
                self._drain()
                os.close(self._data)
                self._call = None
                for namespace, _ in self._metered():
                    namespace.run(["nft", "delete", "table", "inet", _TABLE], check=False)
        return self.series()

    def _metered(self) -> list[tuple[Foothold, dict[int, Source]]]:
        """The namespaces that are counted in, and the sources of each by their places among all."""
        found: dict[str, tuple[Foothold, dict[int, Source]]] = {}
        for place, source in enumerate(self._sources.values()):
            namespace = source.at or self._namespace
            found.setdefault(namespace.name, (namespace, {}))[1][place] = source
        return list(found.values())

    def _drain(self) -> None:
        if self._call is None:
            return
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self._data, 1 << 16):
                self._rest += part
        whole = len(self._rest) - len(self._rest) % self._record.size
        for at_s, *numbers in self._record.iter_unpack(self._rest[:whole]):
            self._at_s.append(at_s)
            for place, (name, source) in enumerate(self._sources.items()):
                counted = source.framing.ethernet_bytes(*numbers[2 * place : 2 * place + 2])
                self._counts[name].append(counted)
        self._rest = self._rest[whole:]

    def _child(self, stop: int, data: int) -> None:
        os.close(self._stop)
        readers = []
        for namespace, _ in self._metered():
            with namespace.entered():
                readers.append(CounterReader(_TABLE))
        names = [f"c{place}" for place in range(len(self._sources))]
        deadline_s = time.monotonic()
        while not select.select([stop], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
            found = {name: numbers for reader in readers for name, numbers in reader.read().items()}
            flat = [number for name in names for number in found[name]]
            os.write(data, self._record.pack(time.monotonic(), *flat))
            deadline_s += self._interval_s


_TABLE = "rig_meter"


def _ruleset(sources: Mapping[int, Source]) -> str:
    """One counter a source, named by its place; a map leads to it, so that a packet costs the same with many."""
    lines = [f"table inet {_TABLE} {{"]
    lines += [f"    counter c{place} {{ }}" for place in sources]
    rules = []
    for (kind, family), side in product((("ipv4_addr", "ip"), ("ipv6_addr", "ip6")), ("saddr", "daddr")):
        elements = [
            f'{source.address} : "c{place}"'
            for place, source in sources.items()
            if source.port is None
            and (":" in source.address, source.is_target) == (family == "ip6", side == "daddr")
        ]
        if elements:
            name = f"{family}_{side}"
            lines.append(
                f"    map {name} {{ type {kind} : counter; elements = {{ {', '.join(elements)} }}; }}"
            )
            rules.append(f"        counter name {family} {side} map @{name}")
    rules += [
        f'        tcp dport {source.port} counter name "c{place}"'
        for place, source in sources.items()
        if source.port is not None
    ]
    lines += [
        "    chain count {",
        "        type filter hook prerouting priority -350; policy accept;",
        *rules,
        "    }",
        "}",
    ]
    return "\n".join(lines) + "\n"
