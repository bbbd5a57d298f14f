"""Names, paths and other small texts of the configuration file, each with a parser that raises `Rejected`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

from netqos.errors import Rejected
from netqos.model.quantities import parse_bandwidth, parse_percent
from netqos.model.texts import listed, shown
from netqos.settings.durations import format_duration, parse_duration
from netqos.settings.matching import parse_dscp
from netqos.settings.trees import BOOLEANS, boolean_hint
from netqos.settings.values import OnExit, Toggle

AUTO = "auto"

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_DNS_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
GLOB = re.compile(r"[-a-z0-9.*?\[\]!]{1,253}")
CLASS = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_UNIT = re.compile(r"[-A-Za-z0-9:_.\\@]{1,240}\.(?:service|scope|slice)")
ENTRY_POINT = re.compile(r"[a-z0-9](?:[-a-z0-9_.]{0,62}[a-z0-9])?")
_LISTEN = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[-a-z0-9.]+)):(?P<port>[0-9]{1,5})")


def text(value: object) -> str:
    """A text; a plain number in the file is one too. No control characters, at most 4096 characters."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value or len(value) > 4096 or not value.isprintable():
        raise Rejected(
            f"{shown(value)} is no text; allowed: 1 to 4096 printable characters", hint="put it in quotes"
        )
    return value


def boolean(value: object) -> bool:
    """A boolean, or one of the words yes, no, on, off in any case."""
    found = BOOLEANS.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise Rejected(f"{shown(value)}; allowed: true, false, yes, no, on, off", hint=boolean_hint(value))
    return found


def total(value: object) -> tuple[int | None, bool]:
    """A total: a quantity, `auto`, or both; the quantity in bits/s, and whether it follows what the path carries."""
    words = value.split() if isinstance(value, str) else []
    if not words or words[0].lower() != AUTO:
        return parse_bandwidth(value), False
    if len(words) > 2:
        raise Rejected(
            f"{shown(value)}; allowed: a quantity, auto, or auto and a quantity", hint="write auto 10G"
        )
    return (parse_bandwidth(words[1]) if len(words) == 2 else None), True


def matching(pattern: re.Pattern[str], allowed: str) -> Callable[[object], str]:
    """A parser of texts that match a pattern as a whole; `allowed` describes it."""

    def parse(value: object) -> str:
        found = text(value)
        if pattern.fullmatch(found) is None:
            raise Rejected(f"{shown(found)}; allowed: {allowed}", hint="correct the name")
        return found

    return parse


def one_of(*words: str) -> Callable[[object], str]:
    """A parser of a closed set of words, in any case."""

    def parse(value: object) -> str:
        found = str(value).lower() if isinstance(value, (str, bool)) else ""
        if found not in words:
            raise Rejected(f"{shown(value)}; allowed: {listed(words)}", hint="write one of them")
        return found

    return parse


def toggle(value: object) -> Toggle:
    """`auto`, or a boolean."""
    if isinstance(value, str) and value.lower() == Toggle.AUTO.value:
        return Toggle.AUTO
    try:
        return Toggle.ON if boolean(value) else Toggle.OFF
    except Rejected:
        hint = "write true, false or auto"
        raise Rejected(f"{shown(value)}; allowed: auto, true, false", hint=hint) from None


def on_exit(value: object) -> OnExit:
    """`keep` or `restore`."""
    return OnExit(one_of("keep", "restore")(value))


def duration(shortest_s: float, longest_s: float) -> Callable[[object], float]:
    """A parser of durations within bounds."""

    def parse(value: object) -> float:
        seconds = parse_duration(value)
        if not shortest_s <= seconds <= longest_s:
            allowed = f"{format_duration(shortest_s)} to {format_duration(longest_s)}"
            raise Rejected(
                f"{shown(value)} is out of range; allowed: {allowed}", hint="choose a value in between"
            )
        return seconds

    return parse


def share(value: object) -> float:
    """A percentage above 0% as a fraction of 1."""
    percent = parse_percent(value)
    if percent.value == 0:
        raise Rejected(
            f"{shown(value)} is no threshold; allowed: above 0% up to 100%", hint="write it as 95%"
        )
    return float(percent.value / 100)


def dns_name(value: object) -> str:
    """A name as Kubernetes takes it: lower-case labels of letters, digits and hyphens, joined by dots."""
    found = text(value)
    if len(found) > 253 or _DNS_NAME.fullmatch(found) is None:
        raise Rejected(
            f"{shown(found)} is no name; allowed: a-z, 0-9 and - in labels of up to 63, joined by dots",
            hint="write a DNS name in lower case",
        )
    return found


def short_name(value: object) -> str:
    """A name as `dns_name`, at most 63 characters."""
    found = dns_name(value)
    if len(found) > 63:
        raise Rejected(f"{shown(found)} has {len(found)} characters; allowed: 63", hint="shorten the name")
    return found


def interface(value: object) -> str:
    """A name that the kernel takes for an interface (dev_valid_name in net/core/dev.c)."""
    found = text(value)
    is_valid = len(found.encode()) <= 15 and found not in {".", ".."} and not re.search(r"[/:\s]", found)
    if not is_valid:
        raise Rejected(
            f"{shown(found)} is no interface; allowed: up to 15 bytes without /, : and spaces",
            hint="see `ip link` for names",
        )
    return found


def absolute_path(value: object) -> str:
    """An absolute path without `..`."""
    found = text(value)
    if not found.startswith("/") or ".." in found.split("/"):
        raise Rejected(
            f"{shown(found)} is no absolute path; allowed: such as /var/lib/netqos", hint="start it with /"
        )
    return found


def socket_path(value: object) -> str:
    """An absolute path that fits into a socket address (sun_path holds 107 bytes and a zero)."""
    found = absolute_path(value)
    if len(found.encode()) > 107:
        raise Rejected(
            f"a socket path of {len(found.encode())} bytes; allowed: 107", hint="choose a shorter path"
        )
    return found


def cgroup(value: object) -> str:
    """A cgroup below the mount point of its hierarchy, such as `/system.slice/nginx.service`; never the root."""
    found = absolute_path(value)
    parts = found.split("/")[1:]
    if found.startswith("/sys/fs/cgroup") or not all(parts) or "." in parts:
        raise Rejected(
            f"{shown(found)} is no cgroup; allowed: such as /system.slice/nginx.service",
            hint="leave out the mount point and a slash at the end",
        )
    return found


def unit(value: object) -> str:
    """A systemd unit that has processes: a service, a scope or a slice."""
    found = text(value)
    if _UNIT.fullmatch(found) is None:
        raise Rejected(
            f"{shown(found)} is no unit; allowed: a name that ends in .service, .scope or .slice",
            hint="write it as `systemctl status` shows it",
        )
    return found


def listen_address(value: object) -> str | None:
    """`address:port` or `[v6 address]:port`; null for off. Port 0 lets the kernel choose."""
    if value is None:
        return None
    found = _LISTEN.fullmatch(text(value))
    if found is None or int(found["port"]) > 65535 or not _is_host(found["v6"] or found["host"], found["v6"]):
        raise Rejected(
            f"{shown(value)} is no address to listen on; allowed: such as 127.0.0.1:9469, [::1]:9469, or null",
            hint="null switches it off",
        )
    return found[0]


def _is_host(host: str, v6: str | None) -> bool:
    try:
        return ipaddress.ip_address(host).version == (6 if v6 else 4)
    except ValueError:
        return not v6 and _DNS_NAME.fullmatch(host) is not None


def dscp_range(value: object) -> tuple[int, int]:
    """`0-39`, a single number, or a name, as an inclusive range."""
    low, separator, high = value.partition("-") if isinstance(value, str) else (value, "", value)
    first = parse_dscp(low)
    last = parse_dscp(high) if separator else first
    if first > last:
        raise Rejected(
            f"{shown(value)} runs backwards; allowed: such as 0-39", hint="write the lower end first"
        )
    return (first, last)
