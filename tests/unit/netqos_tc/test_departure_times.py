"""fq keeps departure times that an egress program sets: such a root is somebody's, whatever hook that is on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.testing import states
from netqos_tc.layout import Facilities, lay_out
from netqos_tc.observed import TcObserved
from netqos_tc.options import Options
from netqos_tc.root import Child, Root

UP = states.uplink(index=2)
FQ = Root(kind="fq", handle=0x80010000)
MQ = Root(
    kind="mq", handle=0x10000, children=(Child(parent=0x10001, kind="fq", handle=0x20000, options=b""),)
)


def codes(root: Root, program: str, *, takeover: frozenset[str] = frozenset()) -> set[str]:
    desired = states.node(uplinks=(replace(UP, egress_program=program),))
    layout = lay_out(desired, TcObserved(roots={2: root}), Options(takeover=takeover), Facilities())
    return {one.code for one in layout.findings if one.subject == UP.name}


@pytest.mark.parametrize("root", [FQ, MQ])
def test_fq_under_a_program_is_left_alone_unless_it_is_given_free(root: Root) -> None:
    assert "foreign-root-qdisc" in codes(root, "cil_to_netdev")
    assert "foreign-root-qdisc" not in codes(root, "cil_to_netdev", takeover=frozenset({"fq"}))
    assert "foreign-root-qdisc" not in codes(root, "")


def test_a_program_over_another_root_is_no_reason() -> None:
    assert "foreign-root-qdisc" not in codes(Root(kind="fq_codel", handle=0), "cil_to_netdev")
