"""`python -m tests.bench.tctree`: what the tc backend's own steps cost, and a short transfer over a short queue."""

from __future__ import annotations

import asyncio
import itertools
import math
import statistics
import time
from collections.abc import Awaitable, Callable
from unittest import mock

from pyroute2 import IPRoute

from netqos.model.levels import Level
from netqos.testing import states
from netqos.testing.namespaces import Namespace
from netqos.testing.states import G, M
from netqos_tc import params
from tests.kernel.tcnode import ShapedNode, shaped_node, take_all, transfers

LEAVES = (3, 100, 500)
QUEUES = (16 * 1024, 64 * 1024, params.gso_bytes(1500))
TRANSFERS = 6
PATIENCE_S = 15


def main() -> None:
    """Print two tables: milliseconds by the number of leaves, and transfer times by the shortest queue."""
    print("| leaves | made from nothing | observe | plan | audit | sample | dump by pyroute2 |")
    print("|---|---|---|---|---|---|---|")
    for count in LEAVES:
        print(f"| {count} | " + " | ".join(f"{value:.2f}" for value in asyncio.run(_steps(count))) + " |")
    print("\n| shortest queue, bytes | sender | 400 KB over 20 Mbit/s with BBR, median and worst of 6, s |")
    print("|---|---|---|")
    for least in QUEUES:
        asyncio.run(_short_transfers(least))


async def _steps(count: int) -> tuple[float, ...]:
    with shaped_node() as node:
        pods = [
            states.pod(f"ns/p{number}", Level(number % 3), addresses=(f"10.1.{number >> 8}.{number & 255}",))
            for number in range(count)
        ]
        desired = node.node(*pods, total_bps=10 * G)
        began_s = time.perf_counter()
        await node.bring(desired)
        made_ms = (time.perf_counter() - began_s) * 1000
        observed = await node.backend.observe()
        path = node.backend.fast_path()
        assert path is not None
        return (
            made_ms,
            await _median_ms(node.backend.observe),
            _median_now_ms(lambda: node.backend.plan(desired, observed)),
            await _median_ms(node.backend.is_untouched),
            _median_now_ms(path.sample),
            node.rig.node.call(_dump_by_pyroute2, node.ifindex),
        )


def _dump_by_pyroute2(ifindex: int) -> float:
    asyncio.set_event_loop(asyncio.new_event_loop())  # a forked child has its parent's, which runs
    asyncio._set_running_loop(None)
    with IPRoute() as netlink:
        return _median_now_ms(lambda: list(netlink.get_classes(index=ifindex)))


async def _median_ms(step: Callable[[], Awaitable[object]]) -> float:
    took = []
    for _ in range(15):
        began_s = time.perf_counter()
        await step()
        took.append(time.perf_counter() - began_s)
    return statistics.median(took) * 1000


def _median_now_ms(step: Callable[[], object]) -> float:
    took = []
    for _ in range(15):
        began_s = time.perf_counter()
        step()
        took.append(time.perf_counter() - began_s)
    return statistics.median(took) * 1000


async def _short_transfers(least: int) -> None:
    ports = itertools.count(7020)
    with shaped_node("web") as node, mock.patch.object(params, "gso_bytes", return_value=least):
        await node.bring(node.node(node.pod("web", Level.L1), total_bps=20 * M))
        for name, sender in (("the node", node.rig.node), ("a pod", node.rig.pod("web"))):
            took_s = sorted(_transfer(node, sender, next(ports)) for _ in range(TRANSFERS))
            print(
                f"| {least} | {name} | {_shown(statistics.median(took_s))}, {_shown(took_s[-1])} |",
                flush=True,
            )


def _transfer(node: ShapedNode, sender: Namespace, port: int) -> float:
    """Seconds for one, infinite when it takes longer than anybody waits."""
    taker = node.rig.wire.fork(take_all, node.rig.wire.address, port, 1)
    try:
        (took_s,) = sender.fork(transfers, node.rig.wire.address, port, 1, 400_000).result(
            timeout_s=PATIENCE_S
        )
    except TimeoutError:
        took_s = math.inf
    taker.kill()
    return took_s


def _shown(seconds: float) -> str:
    return f"over {PATIENCE_S}" if seconds == math.inf else f"{seconds:.2f}"


if __name__ == "__main__":
    main()
