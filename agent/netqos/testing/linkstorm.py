"""Link events by the thousand, for tests and benchmarks of whoever listens to them."""

from __future__ import annotations

import itertools
import socket
import struct
import subprocess
import time

from netqos.testing.processes import tool_environment

_NEWLINK, _REQUEST = 16, 1
_IFALIAS = 20  # IFLA_IFALIAS: a change of it is told to everybody and does nothing else
_BATCH_S = 0.005
_PAIRS = 5


def storm(device: str, *, seconds: float, rate: float = 1000.0) -> int:
    """Change a link's alias `rate` times a second; how often it was done. Runs in the namespace of the link."""
    index = socket.if_nametoindex(device)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as route:
        route.bind((0, 0))
        began_s, done = time.monotonic(), 0
        for number in itertools.count():
            due_s = began_s + number * _BATCH_S
            if number * _BATCH_S >= seconds:
                return done
            time.sleep(max(0.0, due_s - time.monotonic()))
            while done < (number + 1) * _BATCH_S * rate:
                route.send(_change(index, f"storm {done}"))
                done += 1
    return done


def churn(*, seconds: float, pairs: float = 30.0) -> int:
    """Make veth pairs with a route each and remove them at once, as pods come and go; how many. Needs `ip`."""
    began_s, done = time.monotonic(), 0
    while time.monotonic() - began_s < seconds:
        lines = "".join(map(_pair, range(_PAIRS)))
        subprocess.run(["ip", "-batch", "-"], input=lines, text=True, check=True, env=tool_environment())
        done += _PAIRS
        time.sleep(max(0.0, began_s + done / pairs - time.monotonic()))
    return done


def _pair(number: int) -> str:
    name = f"storm{number}"
    return (
        f"link add {name} type veth peer name {name}p\nlink set {name} up\nlink set {name}p up\n"
        f"route add 198.18.200.{number} dev {name}\nlink del {name}\n"
    )


def _change(index: int, alias: str) -> bytes:
    value = alias.encode() + b"\0"
    attribute = struct.pack("=HH", 4 + len(value), _IFALIAS) + value + bytes(-len(value) % 4)
    body = struct.pack("=BxHiII", 0, 0, index, 0, 0) + attribute
    return struct.pack("=IHHII", 16 + len(body), _NEWLINK, _REQUEST, 0, 0) + body
