"""The queues of leaves: bytes as tc sends them, what the kernel gives back, and which leaves have which."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.model.desired import Band
from netqos.model.levels import Level, PerLevel
from netqos.testing import states
from netqos_tc import layout, numbers, params, queues, uapi
from netqos_tc.ground import Ground, Member
from netqos_tc.keys import QueueKey
from netqos_tc.layout import Facilities
from netqos_tc.netmsg import attributes
from netqos_tc.observed import TcObserved
from netqos_tc.options import Options
from netqos_tc.spec import FQ_CODEL, FairSpec, LeafQueueSpec, Spec
from netqos_tc.tree import tree

M = 1_000_000
MINOR = 0x1001
FAIR = LeafQueueSpec(
    kind=FQ_CODEL,
    limit=278_704,
    fair=FairSpec(flows=64, quantum=1518, target_ticks=queues.codel_ticks(5000), ecn=True),
)
OF_TC = (
    b"\x08\x00\x02\x00\x00\x28\x00\x00"  # limit 10240
    b"\x08\x00\x05\x00\x40\x00\x00\x00"  # flows 64
    b"\x08\x00\x06\x00\xee\x05\x00\x00"  # quantum 1518
    b"\x08\x00\x01\x00\x88\x13\x00\x00"  # target 5ms
    b"\x08\x00\x04\x00\x01\x00\x00\x00"  # ecn
    b"\x08\x00\x09\x00\xb0\x40\x04\x00"  # memory_limit 278704
)
"""`tc qdisc replace ... fq_codel limit 10240 flows 64 quantum 1518 target 5ms memory_limit 278704 ecn`, traced."""


class FakeFqCodel:
    """One queue as the kernel keeps it: fq_codel_change and fq_codel_dump of net/sched/sch_fq_codel.c."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {}

    def take(self, options: bytes) -> int:
        """The errno of a change, 0 for success."""
        asked = {kind: struct.unpack("=I", value)[0] for kind, value in attributes(options).items()}
        if 5 in asked and (5 in self.values or not 0 < asked[5] <= 65536):
            return errno.EINVAL
        if 1 in asked:
            asked[1] = asked[1] * 1000 >> 10
        self.values |= asked
        return 0

    def dump(self) -> bytes:
        told = self.values | {1: (self.values[1] << 10) // 1000}
        return b"".join(struct.pack("=HHI", 8, kind, value) for kind, value in told.items())


def test_the_bytes_are_those_of_tc() -> None:
    assert queues.options(FAIR) == OF_TC
    request = queues.make(7, MINOR, FAIR)
    assert request.body == (
        uapi.TCMSG.pack(0, 7, 0, 0x4E511001, 0)
        + b"\x0d\x00\x01\x00fq_codel\x00\x00\x00\x00"
        + struct.pack("=HH", 4 + len(OF_TC), 2)
        + OF_TC
    )


FAIRS = st.builds(
    FairSpec,
    flows=st.integers(1, 65536),
    quantum=st.integers(256, 2**20),
    target_ticks=st.builds(queues.codel_ticks, st.integers(1, 1_000_000)),
    ecn=st.booleans(),
)


@given(st.builds(LeafQueueSpec, kind=st.just(FQ_CODEL), limit=st.integers(1, 2**32 - 1), fair=FAIRS))
def test_what_the_kernel_gives_back_is_what_was_asked_for(wanted: LeafQueueSpec) -> None:
    kernel = FakeFqCodel()
    assert kernel.take(queues.options(wanted)) == 0
    assert queues.read(FQ_CODEL, kernel.dump()) == wanted
    assert kernel.take(queues.options(wanted)) == errno.EINVAL
    assert kernel.take(queues.options(wanted, is_new=False)) == 0
    assert queues.read(FQ_CODEL, kernel.dump()) == wanted


def test_impossible_options_are_refused_before_anything_is_made() -> None:
    assert FakeFqCodel().take(queues.impossible()) == errno.EINVAL


def test_one_that_is_there_is_changed_and_other_flows_take_another_queue() -> None:
    assert FAIR.fair is not None
    plain = LeafQueueSpec(limit=FAIR.limit)
    longer = LeafQueueSpec(kind=FQ_CODEL, limit=400_000, fair=FAIR.fair)
    other = LeafQueueSpec(
        kind=FQ_CODEL, limit=1, fair=FairSpec(flows=9, quantum=1, target_ticks=1, ecn=False)
    )
    assert queues.requests(7, MINOR, None, FAIR) == [queues.make(7, MINOR, FAIR)]
    assert queues.requests(7, MINOR, plain, FAIR) == [queues.make(7, MINOR, FAIR)]
    assert queues.requests(7, MINOR, FAIR, plain) == [queues.make(7, MINOR, plain)]
    assert queues.requests(7, MINOR, longer, FAIR) == [queues.make(7, MINOR, FAIR, is_new=False)]
    assert queues.requests(7, MINOR, other, FAIR) == [
        queues.make(7, MINOR, plain),
        queues.make(7, MINOR, FAIR),
    ]


def planted(codel_ms: int | None, ifindex: int) -> dict[int, LeafQueueSpec]:
    band = Band(guarantee_bps=60 * M, ceiling_bps=300 * M, enabled=True)
    ground = Ground(
        ifindex=ifindex,
        mtu=1500,
        total_bps=300 * M,
        bands=PerLevel(band, band, band),
        queue_ms=20,
        codel_ms=codel_ms,
    )
    members = {MINOR: Member(level=Level.L2, limit_bps=None), 0x1002: Member(level=Level.L0, limit_bps=M)}
    specs = tree(ground, members, {}).specs
    return {key.minor: spec for key, spec in specs.items() if is_queue(key, spec)}  # type: ignore[misc, union-attr]


def is_queue(key: object, spec: Spec) -> bool:
    return isinstance(key, QueueKey) and isinstance(spec, LeafQueueSpec)


@pytest.mark.parametrize("ifindex", [7, numbers.IFB_INDEX])
def test_leaves_have_what_is_asked_for_and_control_and_local_stay_bfifo(ifindex: int) -> None:
    found = planted(5, ifindex)
    plain = {minor for minor, spec in found.items() if spec.fair is None}
    assert plain == ({numbers.LOCAL} if ifindex == numbers.IFB_INDEX else {numbers.CONTROL})
    assert found[MINOR] == LeafQueueSpec(
        kind=FQ_CODEL,
        limit=1_500_000,
        fair=FairSpec(flows=64, quantum=1518, target_ticks=queues.codel_ticks(5000), ecn=True),
    )
    assert found[0x1002] == LeafQueueSpec(
        kind=FQ_CODEL,
        limit=4 * params.gso_bytes(1500),
        fair=FairSpec(flows=64, quantum=1518, target_ticks=queues.codel_ticks(24_288), ecn=True),
    )
    assert {spec.kind for spec in planted(None, ifindex).values()} == {"bfifo"}


@pytest.mark.parametrize(
    ("has", "codes", "kinds"), [(False, ["no-fq-codel"], {"bfifo"}), (True, [], {"bfifo", "fq_codel"})]
)
def test_a_kernel_without_it_is_told_and_has_bfifo(has: bool, codes: list[str], kinds: set[str]) -> None:
    desired = states.node([states.pod("ns/web", Level.L0, addresses=["10.1.0.7"], cgroup=None)])
    made = layout.lay_out(desired, TcObserved(), Options(codel_ms=5), Facilities(fq_codel=has))
    assert [one.code for one in made.findings if one.code == "no-fq-codel"] == codes
    assert {spec.kind for spec in made.specs.values() if isinstance(spec, LeafQueueSpec)} == kinds
