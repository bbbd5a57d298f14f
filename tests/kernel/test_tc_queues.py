"""The queues in the kernel: that of the IFB itself, and fq_codel where the kernel has it."""

from __future__ import annotations

import pytest

from netqos.model.levels import Direction, Level
from netqos_tc import numbers
from tests.kernel.tcnode import send, shaped_node

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket", "ifb", "clsact")


async def test_the_ifbs_own_queue_was_long_before_its_tree_could_take_a_packet() -> None:
    """HTB takes the length of its direct queue from the device once, when it is made (htb_init)."""
    with shaped_node("web") as node:
        await node.bring(node.both(node.pod("web", Level.L0)))
        shown = node.tc("qdisc", "show", "dev", numbers.IFB_NAME, "root")
        assert "direct_qlen 1000" in shown
        assert "qlen 1000" in node.rig.node.run(["ip", "link", "show", numbers.IFB_NAME]).stdout


async def test_a_kernel_without_fq_codel_has_bfifo_and_says_so() -> None:
    with shaped_node("web", options={"queue": "fq_codel"}) as node:
        await node.backend.probe()
        plan = await node.bring(node.both(node.pod("web", Level.L0)))
        has = "fq_codel" in node.tc("qdisc", "show", "dev", "up0")
        assert ("no-fq-codel" in {one.code for one in plan.findings}) is not has
        assert not await node.bring(node.desired)


@pytest.mark.kernel("fq_codel")
async def test_fq_codel_carries_reads_back_and_is_mended() -> None:
    with shaped_node("web", options={"queue": {"kind": "fq_codel", "target": "7ms"}}) as node:
        await node.backend.probe()
        await node.bring(node.both(node.pod("web", Level.L0)))
        assert not await node.bring(node.desired)
        minor, web = await node.minor("web"), node.rig.pod("web")
        shown = node.tc("qdisc", "show", "dev", "up0", "parent", f"4e51:{minor:x}")
        assert "flows 64" in shown
        assert "ecn" in shown
        web.call(send, node.rig.wire.address, 50)
        node.rig.wire.call(send, web.address, 60)
        assert node.packets()[minor] >= 50
        assert node.packets(Direction.RX)[minor] >= 60
        for harm in ("target 90ms", "noecn"):
            node.tc("qdisc", "change", "dev", "up0", "parent", f"4e51:{minor:x}", "fq_codel", *harm.split())
            assert (await node.repair()).applied == 1
            assert node.tc("qdisc", "show", "dev", "up0", "parent", f"4e51:{minor:x}") == shown
        node.tc("qdisc", "replace", "dev", "up0", "parent", f"4e51:{minor:x}", "bfifo", "limit", "9000")
        assert (await node.repair()).applied == 1
        assert not await node.bring(node.desired)
