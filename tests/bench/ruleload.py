"""`python -m tests.bench.ruleload`: what 2,000 rules inside 250 of 500 workloads cost, made, looked at and changed."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from unittest import mock

from netqos.host.nftables import Nftables
from netqos.model.desired import DesiredPod, DesiredState
from netqos.model.levels import Level, PerDirection
from netqos.model.rules import IpMatch, Match, PortMatch, PortRange, Protocol, Rule
from netqos.testing import states
from netqos.testing.states import G, M
from tests.kernel.tcnode import ShapedNode, shaped_node

PODS, RULED, RULES = 500, 250, 8
CHANGES = 9


@dataclass(slots=True)
class Clock:
    """The time that libnftables took."""

    took_s: list[float] = field(default_factory=list)

    def run(self, runner: Nftables, commands: str) -> None:
        began_s = time.perf_counter()
        RUN(runner, commands)
        self.took_s.append(time.perf_counter() - began_s)

    def spent_ms(self) -> float:
        spent = sum(self.took_s) * 1000
        self.took_s.clear()
        return spent


RUN = Nftables.run


def main() -> None:
    """Print a table, in milliseconds."""
    print(
        "| 2,000 rules of | made from nothing | of it nft | look | plan | audit | one workload changed | of it nft |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, matches in (("one protocol and port", _port), ("three networks and three ports", _lists)):
        clock = Clock()
        with mock.patch.object(Nftables, "run", lambda runner, text, clock=clock: clock.run(runner, text)):
            values = asyncio.run(_steps(matches, clock))
        print(f"| {name} | " + " | ".join(f"{value:.1f}" for value in values) + " |")


def _port(number: int) -> tuple[Match, ...]:
    return (PortMatch(ranges=(PortRange(low=8000 + number, high=8000 + number),), protocol=Protocol.TCP),)


def _lists(number: int) -> tuple[Match, ...]:
    ranges = tuple(PortRange(low=one + number, high=one + number) for one in (80, 443, 8000))
    return (
        IpMatch(networks=tuple(f"10.{one}.{number}.0/24" for one in range(3))),
        PortMatch(ranges=ranges),
    )


async def _steps(matches: Callable[[int], tuple[Match, ...]], clock: Clock) -> tuple[float, ...]:
    with shaped_node() as node:
        pods = [_pod(number, matches) for number in range(PODS)]
        desired = _node(node, pods)
        await node.backend.observe()
        clock.spent_ms()
        made_ms = await _ms(lambda: node.bring(desired))
        made_nft_ms = clock.spent_ms()
        look_ms = await _median_ms(node.backend.observe)
        observed = await node.backend.observe()
        plan_ms = statistics.median(
            _now_ms(lambda: node.backend.plan(desired, observed)) for _ in range(CHANGES)
        )
        audit_ms = await _median_ms(node.backend.is_untouched)
        clock.spent_ms()
        changed, spent = [], []
        for number in range(CHANGES):
            rules = pods[number].rules
            first = replace(rules.tx[0], matches=_port(1000 + number))
            pods[number] = replace(pods[number], rules=replace(rules, tx=(first, *rules.tx[1:])))
            plan = node.backend.plan(_node(node, pods), await node.backend.observe())
            changed.append(await _ms(lambda plan=plan: node.backend.apply(plan)))  # type: ignore[misc]
            spent.append(clock.spent_ms())
    return (
        made_ms,
        made_nft_ms,
        look_ms,
        plan_ms,
        audit_ms,
        statistics.median(changed),
        statistics.median(spent),
    )


def _pod(number: int, matches: Callable[[int], tuple[Match, ...]]) -> DesiredPod:
    some = tuple(Rule(matches=matches(one), maximum_bps=(5 + one) * M) for one in range(RULES // 2))
    rules = PerDirection(tx=some, rx=some) if number < RULED else states.NO_RULES
    address = f"10.1.{number // 250}.{number % 250 + 1}"
    limit_bps = 20 * M if number % 2 else None
    return states.pod(
        f"ns/p{number}", Level(number % 3), addresses=(address,), tx_bps=limit_bps, rules=rules, cgroup=None
    )


def _node(node: ShapedNode, pods: list[DesiredPod]) -> DesiredState:
    up = states.uplink(index=node.ifindex, tx_bps=10 * G, rx_bps=6 * G)
    return states.node(pods, uplinks=(up,), tx=states.direction(10 * G), rx=states.direction(6 * G))


async def _ms(step: Callable[[], Awaitable[object]]) -> float:
    began_s = time.perf_counter()
    await step()
    return (time.perf_counter() - began_s) * 1000


async def _median_ms(step: Callable[[], Awaitable[object]]) -> float:
    return statistics.median([await _ms(step) for _ in range(CHANGES)])


def _now_ms(step: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    step()
    return (time.perf_counter() - began_s) * 1000


if __name__ == "__main__":
    main()
