"""The root qdisc that was there before: taken over or left alone, remembered, and put back as it was."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from netqos.model.desired import NOTHING, DesiredPod
from netqos.model.levels import Direction
from netqos.model.plan import Verb
from netqos.testing import states
from netqos.testing.filehosts import MemoryState
from netqos.testing.harness import converge
from netqos.testing.states import M
from netqos_tc.kept import document_name
from tests.kernel.tchost import UPLINK, UPLINK_INDEX, UplinkHost, make_backend, only

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket", "tbf")

DESIRED = only(states.node(uplinks=(UPLINK,)), Direction.TX)
TBF = "root handle 77: tbf rate 123mbit burst 17kb latency 33ms"
HTB = "root handle 7: htb default 1"


@pytest.fixture
def host() -> Iterator[UplinkHost]:
    made = UplinkHost()
    yield made
    made.close()


def tc(host: UplinkHost, *commands: str) -> None:
    for command in commands:
        host.namespace.run(["tc", *command.split()])


def qdiscs(host: UplinkHost) -> list[str]:
    """The qdiscs of the uplink, without the counters and numbers that the kernel chooses."""
    listed = host.namespace.run(["tc", "qdisc", "show", "dev", "up0"]).stdout
    return sorted(re.sub(r" refcnt \d+", "", line).strip() for line in listed.splitlines())


def roots(host: UplinkHost) -> dict[str, object]:
    """What the state folder keeps of earlier roots."""
    return {name: one for name, one in host.state.documents.items() if name.startswith("root-")}


async def there_and_back(host: UplinkHost, options: dict[str, object] | None = None) -> None:
    """Take over in one process, give back in another."""
    taker = make_backend(host.namespace, host.state, options)
    await converge(taker, DESIRED)
    assert any("htb 4e51:" in line for line in qdiscs(host))
    taker.shut()
    giver = make_backend(host.namespace, host.state, options)
    await converge(giver, NOTHING)
    giver.shut()


async def test_the_kernels_default_comes_back(host: UplinkHost) -> None:
    before = qdiscs(host)
    await there_and_back(host)
    assert qdiscs(host) == before
    assert host.state.documents == {}
    assert host.namespace.run(["nft", "list", "ruleset"]).stdout == ""


async def test_a_foreign_classful_root_is_left_alone_and_said_so(host: UplinkHost) -> None:
    tc(host, f"qdisc add dev up0 {HTB}", "class add dev up0 parent 7: classid 7:1 htb rate 50mbit")
    before = qdiscs(host)
    backend = host.backend()
    plan = backend.plan(DESIRED, await backend.observe())
    assert not plan
    (finding,) = [one for one in plan.findings if one.code == "foreign-root-qdisc"]
    assert "htb 7:" in finding.message
    assert "takeover: [htb]" in finding.hint
    assert qdiscs(host) == before
    assert host.namespace.run(["nft", "list", "ruleset"]).stdout == ""


async def test_when_the_foreign_root_goes_ours_comes(host: UplinkHost) -> None:
    tc(host, f"qdisc add dev up0 {TBF}")
    backend = host.backend()
    assert not backend.plan(DESIRED, await backend.observe())
    assert not await backend.is_untouched()  # the device was not watched before it was asked for
    assert not backend.plan(DESIRED, await backend.observe())
    assert await backend.is_untouched()
    tc(host, "qdisc del dev up0 root")
    assert not await backend.is_untouched()
    await converge(backend, DESIRED)
    assert any("htb 4e51:" in line for line in qdiscs(host))


@pytest.mark.parametrize(
    "root",
    [
        TBF,
        "root handle 8: pfifo limit 77",
        "root handle 8: bfifo limit 77777",
        "root handle 9: pfifo_fast",
    ],
)
async def test_a_root_is_taken_when_allowed_and_put_back_with_its_options(
    host: UplinkHost, root: str
) -> None:
    tc(host, f"qdisc add dev up0 {root}")
    before = qdiscs(host)
    await there_and_back(host, {"takeover": ["tbf", "pfifo", "bfifo"]})
    assert qdiscs(host) == before
    assert host.state.documents == {}


async def test_the_earlier_root_is_kept_before_ours_is_made_and_never_overwritten_by_ours(
    host: UplinkHost,
) -> None:
    """A crash between the two steps is harmless, and so is a start on our own tree."""
    tc(host, f"qdisc add dev up0 {TBF}")
    first = make_backend(host.namespace, host.state, {"takeover": ["tbf"]})
    plan = first.plan(DESIRED, await first.observe())
    root = next(one for one in plan.operations if one.subject == "root qdisc of up0")
    assert "instead of tbf 77:" in root.detail
    assert (await first.apply(plan)).ok
    kept = roots(host)
    again = make_backend(host.namespace, host.state, {"takeover": ["tbf"]})
    await converge(again, states.with_pods(DESIRED, states.pod("ns/new", addresses=("10.88.0.77",))))
    assert roots(host) == kept
    for backend in (first, again):
        backend.shut()


async def test_somebody_elses_root_over_ours_is_taken_again_if_it_is_a_default_kind(host: UplinkHost) -> None:
    backend = host.backend()
    await converge(backend, DESIRED)
    tc(host, "qdisc replace dev up0 root handle 9: pfifo_fast")
    assert not await backend.is_untouched()
    await converge(backend, DESIRED)
    assert any("htb 4e51:" in line for line in qdiscs(host))
    await converge(backend, NOTHING)
    assert [line.split()[:3] for line in qdiscs(host)] == [["qdisc", "pfifo_fast", "9:"]]


async def test_a_root_that_changed_between_plan_and_apply_is_not_destroyed(host: UplinkHost) -> None:
    backend = host.backend()
    plan = backend.plan(DESIRED, await backend.observe())
    tc(host, f"qdisc add dev up0 {TBF}")
    before = qdiscs(host)
    result = await backend.apply(plan)
    assert "Retryable" in {failure.code for failure in result.failures}
    assert {failure.code for failure in result.failures} == {"Retryable", "skipped"}
    assert qdiscs(host) == before


async def test_with_a_lost_state_folder_the_default_comes_back(host: UplinkHost) -> None:
    tc(host, f"qdisc add dev up0 {TBF}")
    taker = make_backend(host.namespace, host.state, {"takeover": ["tbf"]})
    await converge(taker, DESIRED)
    taker.shut()
    giver = make_backend(host.namespace, MemoryState())
    await converge(giver, NOTHING)
    giver.shut()
    assert [line.split()[:2] for line in qdiscs(host)] == [["qdisc", "noqueue"]]


@pytest.mark.parametrize(
    "document", [None, 7, {}, {"kind": "tbf"}, {"kind": "tbf", "handle": 1, "options": "xy"}]
)
async def test_a_damaged_document_is_no_reason_to_keep_our_tree(host: UplinkHost, document: object) -> None:
    await converge(host.backend(), DESIRED)
    host.state.documents["root-up0"] = document
    await converge(host.backend(), NOTHING)
    assert [line.split()[:2] for line in qdiscs(host)] == [["qdisc", "noqueue"]]


async def test_an_earlier_root_that_cannot_be_made_again_gives_the_default_and_says_so(
    host: UplinkHost,
) -> None:
    await converge(host.backend(), DESIRED)
    host.state.documents["root-up0"] = {"kind": "nosuch", "handle": 0x10000, "options": "", "children": []}
    backend = host.backend()
    result = await backend.apply(backend.plan(NOTHING, await backend.observe()))
    assert [failure.operation.subject for failure in result.failures] == ["root qdisc of up0"]
    assert [line.split()[:2] for line in qdiscs(host)] == [["qdisc", "noqueue"]]


async def test_our_handle_with_another_default_class_is_made_anew_when_all_is_known(host: UplinkHost) -> None:
    tc(
        host,
        "qdisc add dev up0 root handle 4e51: htb default 1f",
        "class add dev up0 parent 4e51: classid 4e51:1f htb rate 50mbit",
    )
    backend = host.backend()
    waiting = backend.plan(states.incomplete(DESIRED), await backend.observe())
    assert [one.code for one in waiting.findings if one.code == "wrong-default-class"]
    assert not [one for one in waiting.operations if "up0" in one.subject]
    plan = await converge(backend, DESIRED)
    assert [one.verb for one in plan.operations if one.subject == "root qdisc of up0"] == [Verb.CHANGE]
    observed = await backend.observe()
    assert not backend.plan(DESIRED, observed)
    assert not [one for one in backend.plan(DESIRED, observed).findings if one.code == "wrong-default-class"]


async def test_an_uplink_that_is_no_longer_one_is_given_back(host: UplinkHost) -> None:
    backend = host.backend()
    await converge(backend, DESIRED)
    with host.namespace.entered():
        other = socket.if_nametoindex("wire0")
    moved = replace(DESIRED, uplinks=(states.uplink("wire0", index=other),))
    await converge(backend, moved)
    assert [line.split()[:2] for line in qdiscs(host)] == [["qdisc", "noqueue"]]
    assert "htb 4e51:" in host.namespace.run(["tc", "qdisc", "show", "dev", "wire0"]).stdout
    assert set((await backend.observe()).names.values()) == {"wire0"}


async def test_off_and_without_limits_there_is_no_qdisc_of_ours(host: UplinkHost) -> None:
    backend = host.backend()
    await converge(backend, DESIRED)
    only_limits = states.switched_off(DESIRED)
    await converge(backend, only_limits)
    assert any("htb 4e51:" in line for line in qdiscs(host))
    unlimited = states.with_pods(only_limits, *(replace_limits(pod) for pod in only_limits.pods))
    await converge(backend, unlimited)
    assert [line.split()[:2] for line in qdiscs(host)] == [["qdisc", "noqueue"]]


def replace_limits(pod: DesiredPod) -> DesiredPod:
    """A limit for what comes in is none for what goes out."""
    return replace(pod, limits_bps=replace(pod.limits_bps, tx=None, rx=5 * M))


MULTIQUEUE = "numtxqueues 3 numrxqueues 3"


@pytest.fixture
def multiqueue() -> Iterator[UplinkHost]:
    made = UplinkHost()
    made.namespace.run(["ip", "link", "del", "up0"])
    words = f"link add index {UPLINK_INDEX} name up0 {MULTIQUEUE} type veth peer name wire0 {MULTIQUEUE}"
    made.namespace.run(["ip", *words.split()])
    yield made
    made.close()


async def test_mq_and_what_somebody_put_below_it_comes_back(multiqueue: UplinkHost) -> None:
    tc(
        multiqueue,
        "qdisc replace dev up0 root handle 100: mq",
        "qdisc replace dev up0 parent 100:2 handle 102: pfifo_fast",
    )
    multiqueue.namespace.run(["ip", "link", "set", "up0", "up"])
    before = qdiscs(multiqueue)
    assert len([line for line in before if "mq" in line or "parent 100:" in line]) >= 2
    await there_and_back(multiqueue)
    assert qdiscs(multiqueue) == before


async def test_mq_with_a_foreign_leaf_is_left_alone(multiqueue: UplinkHost) -> None:
    tc(
        multiqueue,
        "qdisc replace dev up0 root handle 100: mq",
        "qdisc replace dev up0 parent 100:2 handle 102: tbf rate 5mbit burst 10kb latency 10ms",
    )
    backend = multiqueue.backend()
    plan = backend.plan(DESIRED, await backend.observe())
    assert not plan
    assert [one.code for one in plan.findings if one.subject == "up0"] == ["foreign-root-qdisc"]


async def test_a_state_folder_that_is_emptied_while_running_is_filled_again(host: UplinkHost) -> None:
    tc(host, f"qdisc add dev up0 {TBF}")
    before = qdiscs(host)
    backend = make_backend(host.namespace, host.state, {"takeover": ["tbf"]})
    await converge(backend, DESIRED)
    await backend.observe()
    kept = roots(host)
    host.state.documents.clear()
    assert await backend.is_untouched()
    assert roots(host) == kept
    backend.shut()
    giver = make_backend(host.namespace, host.state)
    await converge(giver, NOTHING)
    giver.shut()
    assert qdiscs(host) == before


async def test_the_earlier_root_follows_a_device_to_its_new_name(host: UplinkHost) -> None:
    tc(host, f"qdisc add dev up0 {TBF}")
    backend = make_backend(host.namespace, host.state, {"takeover": ["tbf"]})
    await converge(backend, DESIRED)
    await backend.observe()
    host.namespace.run(["ip", "link", "set", "up0", "down"])
    host.namespace.run(["ip", "link", "set", "up0", "name", "enP2p1s0"])
    await backend.observe()
    assert list(roots(host)) == [document_name("enP2p1s0")]
    backend.shut()
    giver = make_backend(host.namespace, host.state)
    await converge(giver, NOTHING)
    giver.shut()
    assert "tbf 77: root" in host.namespace.run(["tc", "qdisc", "show", "dev", "enP2p1s0"]).stdout
    assert host.state.documents == {}
