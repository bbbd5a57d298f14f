"""Taking over and giving back, however often and wherever a daemon is killed meanwhile: what was there comes back."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from netqos.backend import Backend
from netqos.host.nftables import Nftables
from netqos.model.desired import NOTHING, DesiredState
from netqos.model.levels import PerDirection
from netqos.model.rules import PortMatch, PortRange, Rule
from netqos.testing import states
from netqos.testing.filehosts import MemoryState
from netqos.testing.harness import converge
from netqos.testing.states import M
from netqos_tc.netlink import Channel
from tests.kernel.tchost import UPLINK, UPLINK_INDEX, UplinkHost, make_backend

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket")

DESIRED = states.node(uplinks=(UPLINK,))
OPTIONS = {"takeover": ["tbf", "pfifo", "bfifo", "prio", "fq_codel"]}
POD = (
    "link add pod0 type veth peer name eth0",
    "link set pod0 up",
    "link set eth0 up",
    "route add 10.88.0.10 dev pod0",
)
"""A pod of the desired state behind a device, whose ingress is led through the IFB."""

QUEUES = "numtxqueues 3 numrxqueues 3"

ROOTS = {
    "default": (),
    "pfifo_fast": ("qdisc add dev up0 root handle 9: pfifo_fast",),
    "tbf with a queue": (
        "qdisc add dev up0 root handle 77: tbf rate 123mbit burst 17kb latency 33ms",
        "qdisc add dev up0 parent 77:1 handle 78: pfifo limit 55",
    ),
    "mq": (
        "qdisc replace dev up0 root handle 100: mq",
        "qdisc replace dev up0 parent 100:2 handle 102: pfifo_fast",
        "qdisc replace dev up0 parent 100:3 handle 103: pfifo limit 66",
    ),
    "prio": ("qdisc add dev up0 root handle 6: prio bands 4",),
    "fq_codel": ("qdisc add dev up0 root handle 5: fq_codel flows 64 limit 500",),
}
FEATURES = {"tbf with a queue": "tbf", "prio": "prio", "fq_codel": "fq_codel"}


class Killed(BaseException):
    """The end of a process as kill -9 brings it: nothing is caught, nothing is tidied up."""


class Killer:
    """Ends whoever makes one write too many, to the kernel or to the state folder. The kernel carries out one datagram
    within one call, so that is where a kill can come between.
    """

    def __init__(self, after: int) -> None:
        self._left = after

    def _guard(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **named: Any) -> Any:
            if self._left == 0:
                raise Killed
            self._left -= 1
            return method(*arguments, **named)

        return guarded

    @contextlib.contextmanager
    def armed(self) -> Iterator[None]:
        places = [(Channel, "_write_once"), (Channel, "transact"), (Nftables, "run")]
        places += [(MemoryState, "save"), (MemoryState, "delete")]
        with contextlib.ExitStack() as stack:
            for owner, name in places:
                stack.enter_context(mock.patch.object(owner, name, self._guard(getattr(owner, name))))
            yield


async def killed(backend: Backend, desired: DesiredState, after: int) -> bool:
    """Converge and be killed after some writes; False when it came to its end before."""
    plan = backend.plan(desired, await backend.observe())
    try:
        with Killer(after).armed():
            await backend.apply(plan)
    except Killed:
        return True
    return False


@pytest.fixture(params=ROOTS)
def host(request: pytest.FixtureRequest, require_kernel: Callable[..., None]) -> Iterator[UplinkHost]:
    if request.param in FEATURES:
        require_kernel(FEATURES[request.param])
    made = UplinkHost()
    if request.param == "mq":
        made.namespace.run(["ip", "link", "del", "up0"])
        words = f"link add index {UPLINK_INDEX} name up0 {QUEUES} type veth peer name wire0 {QUEUES}"
        made.namespace.run(["ip", *words.split()])
    for command in ROOTS[request.param]:
        made.namespace.run(["tc", *command.split()])
    for command in ("link set up0 up", *POD):
        made.namespace.run(["ip", *command.split()])
    yield made
    made.close()


def seen(host: UplinkHost) -> tuple[list[str], str]:
    """All qdiscs without what the kernel chooses, all devices, and the ruleset."""
    listed = host.namespace.run(["tc", "qdisc", "show"]).stdout
    lines = sorted(re.sub(r" refcnt \d+", "", line).strip() for line in listed.splitlines())
    names = host.namespace.run(["ip", "-br", "link"]).stdout.splitlines()
    return [*lines, *sorted(line.split()[0] for line in names)], host.namespace.run(
        ["nft", "list", "ruleset"]
    ).stdout


async def bring(host: UplinkHost, desired: DesiredState) -> None:
    """Another generation of the daemon brings the node to a state and ends."""
    backend = make_backend(host.namespace, host.state, OPTIONS)
    try:
        for _ in range(2):
            await converge(backend, desired)
        assert not backend.plan(desired, await backend.observe())
    finally:
        backend.shut()


async def kill_within(host: UplinkHost, desired: DesiredState, after: int) -> bool:
    backend = make_backend(host.namespace, host.state, OPTIONS)
    try:
        return await killed(backend, desired, after)
    finally:
        backend.shut()


async def test_killed_at_any_write_of_taking_over_the_next_one_gives_back_what_was_there(
    host: UplinkHost,
) -> None:
    before = seen(host)
    after = 0
    while await kill_within(host, DESIRED, after):
        await bring(host, NOTHING)
        assert seen(host) == before, f"killed after {after} writes"
        after += 1
    assert after >= 6
    assert "netqos" in "".join(seen(host)[0]), "with ingress"
    await bring(host, NOTHING)
    assert (seen(host), host.state.documents) == (before, {})


async def test_killed_at_any_write_the_next_one_takes_over_and_a_third_killed_giving_back_loses_nothing(
    host: UplinkHost,
) -> None:
    before = seen(host)
    after = 0
    while await kill_within(host, DESIRED, after):
        await bring(host, DESIRED)
        await kill_within(host, NOTHING, after)
        await bring(host, NOTHING)
        assert seen(host) == before, f"killed after {after} writes"
        after += 1
    assert after >= 6
    await bring(host, NOTHING)
    assert seen(host) == before


@pytest.mark.parametrize("host", ["default"], indirect=True)
async def test_killed_at_any_write_of_rules_the_next_one_has_them_and_their_end_leaves_nothing(
    host: UplinkHost,
) -> None:
    """With lists that are sets: neither a set without its rules nor a rule without its class stays."""
    lists = PortMatch(ranges=tuple(PortRange(low=one, high=one) for one in range(80, 90, 2)))
    some = PerDirection(
        tx=(Rule(matches=(lists,), maximum_bps=8 * M), Rule(matches=(), dscp=10)),
        rx=(Rule(matches=(lists,), maximum_bps=9 * M),),
    )
    plain = DESIRED
    ruled = replace(plain, pods=tuple(replace(one, rules=some) for one in plain.pods))
    await bring(host, plain)
    before, after = seen(host), 0
    while await kill_within(host, ruled, after):
        await bring(host, ruled)
        assert "set s" in seen(host)[1]
        await kill_within(host, plain, after)
        await bring(host, plain)
        assert told(seen(host)) == told(before), f"killed after {after} writes"
        after += 1
    assert after >= 4
    await bring(host, NOTHING)


def told(one: tuple[list[str], str]) -> tuple[list[str], list[str]]:
    """Without numbers of leaves, which a workload changes with its first rule that has a class."""
    qdiscs, ruleset = one
    return sorted(re.sub(r"\b[0-9a-f]+:[0-9a-f]*", "", line) for line in qdiscs), sorted(
        re.sub(r"4e5[12]:[0-9a-f]+", "", line) for line in ruleset.splitlines()
    )
