"""Hypothesis strategies for desired states: everything that `netqos.engine.compose` may hand to a backend.

Kept apart from `netqos.testing.states`, so that the builders work without hypothesis. Bandwidths are bits per second.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from netqos.model.desired import DesiredDirection, DesiredPod, DesiredState, DesiredUplink
from netqos.model.inputs import NO_LIMITS
from netqos.model.levels import Level, PerDirection
from netqos.model.rules import IpMatch, Match, PortMatch, PortRange, Protocol, Rule
from netqos.testing import states
from netqos.testing.states import G, M

NAMES = (
    "prod/web",
    "prod/db",
    "batch/crunch",
    "batch/scan",
    "dev/shell",
    "kube-system/dns",
    "nginx",
    "backup",
)
MOST_PODS = 5
MIN_L0_CEILING_BPS = 5 * M
"""Contract 1.5: L0's ceiling never goes under max(its guarantee, 5M)."""


def rates(low_bps: int, high_bps: int) -> st.SearchStrategy[int]:
    """Bandwidths between two bounds: round ones, odd ones, and the bounds themselves."""
    round_ones = [bps for bps in (M, 10 * M, 100 * M, G, 10 * G, 100 * G) if low_bps <= bps <= high_bps]
    return st.sampled_from([low_bps, high_bps, *round_ones]) | st.integers(low_bps, high_bps)


@st.composite
def directions(draw: st.DrawFn, total_bps: int | None = None) -> DesiredDirection:
    """A direction as compose makes it: every guarantee under its ceiling, 1 percent at least left for L0."""
    total = total_bps or draw(rates(10 * M, 400 * G))
    off = draw(st.sets(st.sampled_from([Level.L1, Level.L2]), max_size=1) | st.just(set[Level]()))
    l1 = 0 if Level.L1 in off else draw(rates(1, total * 60 // 100))
    l2 = 0 if Level.L2 in off else draw(rates(1, total * 99 // 100 - l1))
    ceil_1 = total if Level.L1 in off else draw(rates(l1, total))
    ceil_2 = total if Level.L2 in off else draw(rates(l2, total))
    ceil_0 = draw(st.just(total) | rates(min(total, MIN_L0_CEILING_BPS), total))
    l0 = min(total - l1 - l2, ceil_0)
    levels = states.bands((l0, l1, l2), (ceil_0, ceil_1, ceil_2), off=tuple(off))
    return DesiredDirection(total_bps=total, levels=levels)


def limits() -> st.SearchStrategy[PerDirection[int | None]]:
    """A pod's limits, most often none."""
    one = st.none() | rates(1_000, 40 * G)
    return st.just(NO_LIMITS) | st.builds(lambda tx, rx: PerDirection(tx=tx, rx=rx), one, one)


def matches() -> st.SearchStrategy[Match]:
    """Addresses or ports of the other side."""
    networks = st.sampled_from(["10.0.0.0/8", "192.0.2.1/32", "fd00::/8", "2001:db8::7/128"])
    ports = st.integers(0, 65535).flatmap(
        lambda low: st.integers(low, 65535).map(lambda high: PortRange(low=low, high=high))
    )
    return st.builds(
        lambda some: IpMatch(networks=tuple(some)), st.lists(networks, max_size=2, unique=True)
    ) | st.builds(
        lambda some, protocol: PortMatch(
            ranges=tuple(some),
            protocol=protocol,
            expression=",".join(f"{one.low}-{one.high}" for one in some),
        ),
        st.lists(ports, min_size=1, max_size=2),
        st.none() | st.sampled_from(Protocol),
    )


def rules() -> st.SearchStrategy[tuple[Rule, ...]]:
    """The rules of one direction of a pod: few, small and valid."""
    rule = st.builds(
        lambda some, level, dscp, most: Rule(matches=tuple(some), level=level, dscp=dscp, maximum_bps=most),
        st.lists(matches(), min_size=1, max_size=2),
        st.none() | st.sampled_from(Level),
        st.none() | st.integers(0, 63),
        st.none() | rates(100_000, G),
    )
    return st.lists(rule, max_size=2).map(tuple)


@st.composite
def pods(draw: st.DrawFn, names: Sequence[str] = NAMES, *, with_rules: bool = True) -> tuple[DesiredPod, ...]:
    """Pods with distinct names and addresses; some with two families, some without any, some on the host's network."""
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=MOST_PODS))
    made = []
    for name in chosen:
        number = 10 + names.index(name)
        limit = draw(limits())
        has_rules = with_rules and draw(st.integers(0, 3)) == 0
        given_rules = PerDirection(tx=draw(rules()), rx=draw(rules())) if has_rules else states.NO_RULES
        on_host = draw(st.integers(0, 9)) == 0
        addresses = () if on_host else tuple(f"{prefix}{number}" for prefix in draw(_families()))
        made.append(
            states.pod(
                name,
                draw(st.sampled_from(Level)),
                addresses=addresses,
                tx_bps=limit.tx,
                rx_bps=limit.rx,
                rules=given_rules,
                cgroup=draw(st.sampled_from(["", None])),
                host_network=on_host,
            )
        )
    return tuple(made)


def _families() -> st.SearchStrategy[tuple[str, ...]]:
    return st.sampled_from([("10.88.0.",), ("10.88.0.", "fd00:88::"), ("fd00:88::",), ()])


@st.composite
def desired_states(
    draw: st.DrawFn,
    uplink: DesiredUplink | None = None,
    *,
    with_rules: bool = True,
    complete: st.SearchStrategy[bool] | None = None,
) -> DesiredState:
    """Whole states of a node with one uplink: on or off, a total unknown, any mix of pods.

    `uplink` fixes the device (its totals are replaced); `complete` defaults to always.
    """
    device = uplink or states.uplink()
    tx, rx = draw(_maybe_directions()), draw(_maybe_directions())
    totals = PerDirection(tx=tx.total_bps, rx=rx.total_bps)
    state = states.node(
        draw(pods(with_rules=with_rules)),
        uplinks=(DesiredUplink(name=device.name, index=device.index, mtu=device.mtu, total_bps=totals),),
        tx=tx,
        rx=rx,
        complete=draw(complete) if complete is not None else True,
    )
    return states.switched_off(state) if draw(st.integers(0, 4)) == 0 else state


def _maybe_directions() -> st.SearchStrategy[DesiredDirection]:
    return st.integers(0, 9).flatmap(
        lambda dice: st.just(states.direction(None)) if dice == 0 else directions()
    )
