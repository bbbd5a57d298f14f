"""`python -m tests.bench.hostfacts`: what one look at the host's links and routes costs, ours against libraries."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import psutil
from pyroute2 import IPRoute

from netqos.host.links import RECHECK_S, Links
from netqos.testing.namespaces import Namespace
from netqos.testing.processes import run_tool

SIZES = ((0, 0), (100, 100), (100, 5000))
"""veth pairs and routes of a node."""


def main() -> None:
    """Print a table of medians in milliseconds."""
    print("| veth pairs | routes | nothing new | everything anew | pyroute2 | psutil (speeds) |")
    print("|---|---|---|---|---|---|")
    for pairs, routes in SIZES:
        namespace = Namespace("bench")
        try:
            run_tool(["ip", "-n", namespace.name, "-batch", "-"], text=_lines(pairs, routes), timeout_s=120)
            quiet, anew, other, speeds = namespace.call(_measure)
        finally:
            namespace.remove()
        print(f"| {pairs} | {routes} | {quiet:.3f} | {anew:.2f} | {other:.1f} | {speeds:.1f} |")


def _lines(pairs: int, routes: int) -> str:
    lines = ["link add up0 type veth peer name far0", "link set up0 up", "link set far0 up"]
    lines += ["addr add 198.18.0.2/24 dev up0", "route add default via 198.18.0.1"]
    for number in range(pairs):
        lines += [f"link add pod{number} type veth peer name peer{number}", f"link set pod{number} up"]
    lines += [f"route add 10.{one >> 8}.{one & 255}.0/24 via 198.18.0.1" for one in range(routes)]
    return "\n".join(lines) + "\n"


def _measure() -> tuple[float, float, float, float]:
    links, now_s = Links(), 0.0

    def anew() -> None:
        nonlocal now_s
        now_s += RECHECK_S
        links.read(None, now_s=now_s)

    with IPRoute() as netlink:
        index = netlink.link_lookup(ifname="up0")[0]

        def library() -> None:
            list(netlink.get_routes(table=254))
            netlink.link("get", index=index)
            list(netlink.get_addr())

        anew()
        return (
            _median_ms(lambda: links.read(None, now_s=now_s), 500),
            _median_ms(anew, 20),
            _median_ms(library, 5),
            _median_ms(psutil.net_if_stats, 20),
        )


def _median_ms(work: Callable[[], object], times: int) -> float:
    took = []
    for _ in range(times):
        start_s = time.perf_counter()
        work()
        took.append(time.perf_counter() - start_s)
    return statistics.median(took) * 1e3


if __name__ == "__main__":
    main()
