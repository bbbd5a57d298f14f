"""Rules inside a pod: the normal form of the annotation `koordinator.sh/qos-config` (contract 1.3)."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from netqos.model.levels import Level


class Protocol(enum.Enum):
    """The transport protocol that a port match may name."""

    TCP = "tcp"
    UDP = "udp"


@dataclass(frozen=True, slots=True, kw_only=True)
class PortRange:
    """Ports `low` to `high`, both included, 0 to 65535."""

    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IpMatch:
    """Addresses of the other side in CIDR form (`10.0.0.0/8`, `fd00::/8`); empty means every address."""

    networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PortMatch:
    """Ports of the packet's remote side; `protocol` None means TCP and UDP. A `!=` is kept as the ranges that are left.

    `expression` is the text as it was written; the pods file hands it on.
    """

    ranges: tuple[PortRange, ...]
    protocol: Protocol | None = None
    expression: str = ""


Match = IpMatch | PortMatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One item: when all matches hold, all actions apply; None means that the action is not asked for.

    Bandwidths are bits per second.
    """

    matches: tuple[Match, ...]
    level: Level | None = None
    dscp: int | None = None
    minimum_bps: int | None = None
    maximum_bps: int | None = None


def level_of(rule: Rule, level: Level, limit_bps: int | None) -> Level:
    """The level whose bandwidth a rule takes, of a pod with a level and a limit.

    A rule never lets a pod out of its limit, so it leaves the pod's own level only where there is none (contract 1.3).
    """
    return level if rule.level is None or limit_bps is not None else rule.level
