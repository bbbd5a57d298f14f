from __future__ import annotations

import pytest

from netqos.testing.events import Watch
from netqos.testing.netns import Rig

pytestmark = pytest.mark.kernel("veth", "htb", "nft")


def test_changes_are_counted_by_kind_and_nothing_else_is() -> None:
    with Rig() as rig:
        with Watch(rig.node) as quiet:
            rig.node.run(["tc", "class", "show", "dev", rig.uplink])
            rig.node.run(["nft", "list", "ruleset"])
        with Watch(rig.node) as busy:
            rig.node.run(["tc", "qdisc", "add", "dev", rig.uplink, "root", "handle", "1:", "htb"])
            rig.node.run(["tc", "class", "add", "dev", rig.uplink, "classid", "1:1", "htb", "rate", "1mbit"])
            rig.node.run(["nft", "add", "table", "inet", "x"])
            rig.node.run(["tc", "qdisc", "del", "dev", rig.uplink, "root"])
        assert quiet.counts == {}
        assert busy.counts["nft transaction"] == 1
        assert busy.counts["class told"] == 1
        assert busy.counts["qdisc deleted"] >= busy.counts["root deleted"] >= 1
