"""What the host lacks is named, piece by piece, with what to do."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from unittest import mock

import pytest

from netqos.errors import NetqosError, Rejected, Unsupported
from netqos.host.files import AtomicFiles
from netqos.model.levels import Direction
from netqos.testing.filehosts import FolderHarness
from netqos_tc import cgroupspace, classify, trials
from netqos_tc.backend import TcBackend
from netqos_tc.cgroupspace import begins_at
from netqos_tc.layout import Facilities
from netqos_tc.netlink import Channel, Refused
from netqos_tc.netmsg import Request
from netqos_tc.probe import probe
from netqos_tc.trials import Answer


@dataclass(frozen=True, slots=True)
class RefusingChannel:
    """Refuses the three requests with broken options, htb's first."""

    htb: int = errno.EINVAL
    bfifo: int = errno.EINVAL
    fq_codel: int = errno.ENOENT

    def write(self, requests: Sequence[Request]) -> list[Refused | None]:
        assert len(requests) == 3
        return [Refused(code=one) for one in (self.htb, self.bfifo, self.fq_codel)]


@dataclass(frozen=True, slots=True)
class FakeNft:
    without_cgroups: NetqosError | None = None
    with_cgroups: NetqosError | None = None
    with_sources: NetqosError | None = None

    def check(self, commands: str) -> None:
        problem = self.with_cgroups if "cgroupv2" in commands else self.without_cgroups
        if "fib saddr . iif" in commands:
            problem = self.with_sources
        if problem is not None:
            raise problem

    def run(self, commands: str) -> None:
        raise NotImplementedError(commands)

    def query(self, command: str) -> dict[str, object]:
        raise NotImplementedError(command)


def probed(
    channel: RefusingChannel, nft: FakeNft | NetqosError, aside: dict[str, Answer] | None
) -> tuple[bool, Facilities, set[str]]:
    def make_nft() -> FakeNft:
        if isinstance(nft, NetqosError):
            raise nft
        return nft

    with mock.patch.object(trials, "_in_new_namespace", return_value=aside):
        capabilities, facilities = probe(channel, make_nft)  # type: ignore[arg-type]  # has what is called
    able = {Direction.TX, *({Direction.RX} if facilities.ingress else ())}
    assert capabilities.enforces == (able if capabilities.available else frozenset())
    assert all(one.message for one in capabilities.findings)
    return capabilities.available, facilities, {one.code for one in capabilities.findings}


ALL = dict.fromkeys(("htb", "bfifo", "u32", "ifb", "redirect"), Answer.YES)


@pytest.mark.parametrize(
    ("channel", "nft", "aside", "wanted"),
    [
        (RefusingChannel(), FakeNft(), ALL, (True, Facilities(), set())),
        (RefusingChannel(), FakeNft(), ALL | {"choosy": Answer.NO}, (True, Facilities(), {"no-program"})),
        (RefusingChannel(), FakeNft(), None, (True, Facilities(), {"u32-unknown"})),
        (RefusingChannel(fq_codel=errno.EINVAL), FakeNft(), ALL, (True, Facilities(fq_codel=True), set())),
        (RefusingChannel(fq_codel=errno.EEXIST), FakeNft(), ALL, (True, Facilities(), set())),
        (RefusingChannel(), FakeNft(), ALL | {"u32": Answer.NO}, (True, Facilities(u32=False), {"no-u32"})),
        (
            RefusingChannel(),
            FakeNft(),
            ALL | {"ifb": Answer.NO, "redirect": Answer.UNKNOWN},
            (True, Facilities(ingress=False), {"no-ifb"}),
        ),
        (
            RefusingChannel(),
            FakeNft(),
            ALL | {"redirect": Answer.NO},
            (True, Facilities(ingress=False), {"no-mirred"}),
        ),
        (
            RefusingChannel(htb=errno.ENOENT),
            FakeNft(),
            None,
            (False, Facilities(), {"no-htb", "u32-unknown"}),
        ),
        (RefusingChannel(), FakeNft(), {"htb": Answer.NO}, (False, Facilities(), {"no-htb", "u32-unknown"})),
        (
            RefusingChannel(bfifo=errno.ENOENT),
            FakeNft(),
            None,
            (False, Facilities(), {"no-bfifo", "u32-unknown"}),
        ),
        (RefusingChannel(errno.EEXIST, errno.EEXIST), FakeNft(), None, (True, Facilities(), {"u32-unknown"})),
        (RefusingChannel(errno.EPERM, errno.EPERM), FakeNft(), None, (False, Facilities(), {"no-right"})),
        (
            RefusingChannel(),
            Unsupported("libnftables.so.1 cannot be loaded", hint="install"),
            ALL,
            (False, Facilities(cgroups=False, sources=False), {"no-libnftables"}),
        ),
        (
            RefusingChannel(),
            FakeNft(with_cgroups=Rejected("socket")),
            ALL,
            (True, Facilities(cgroups=False), {"no-socket-cgroup"}),
        ),
        (
            RefusingChannel(),
            FakeNft(with_cgroups=Rejected("socket"), without_cgroups=Rejected("fib")),
            ALL,
            (False, Facilities(cgroups=False, sources=False), {"no-nft-maps"}),
        ),
        (
            RefusingChannel(),
            FakeNft(with_sources=Rejected("fib")),
            ALL,
            (True, Facilities(sources=False), {"source-not-verified"}),
        ),
    ],
)
def test_what_is_missing(
    channel: RefusingChannel,
    nft: FakeNft | NetqosError,
    aside: dict[str, Answer] | None,
    wanted: tuple[bool, Facilities, set[str]],
) -> None:
    assert probed(channel, nft, aside) == wanted


@dataclass(frozen=True, slots=True)
class ShiftingNft(FakeNft):
    """Takes every level but the deepest."""

    def check(self, commands: str) -> None:
        if "level 255" in commands:
            raise Unsupported("Operation not supported")


@pytest.mark.parametrize(
    ("begins_at", "nft", "told", "codes"),
    [
        (4, ShiftingNft(), (True, 4), ["cgroup-namespace"]),
        (4, FakeNft(), (True, 0), []),
        (0, ShiftingNft(), (True, 0), []),
        (7, ShiftingNft(), (False, 0), ["cgroup-namespace"]),
    ],
)
@pytest.mark.parametrize("made_at", [None, 0, 4])
def test_which_cgroups_are_told_apart_where_levels_are_shifted(
    *, begins_at: int, nft: FakeNft, told: tuple[bool, int], codes: list[str], made_at: int | None
) -> None:
    table = None if made_at is None else classify.table_spec(cgroups=True, begins_at=made_at)
    if (begins_at, made_at, nft) == (4, 4, FakeNft()):
        told, codes = (
            (True, 4),
            ["cgroup-namespace"],
        )  # a table that counts from there shows what the kernel does
    with (
        mock.patch.object(trials, "_in_new_namespace", return_value=ALL),
        mock.patch.object(cgroupspace, "begins_at", return_value=begins_at),
    ):
        capabilities, facilities = probe(
            RefusingChannel(),  # type: ignore[arg-type]  # has what is called
            lambda: nft,
            table=table,
        )
    assert capabilities.available
    assert ((facilities.cgroups, facilities.begins_at), [one.code for one in capabilities.findings]) == (
        told,
        codes,
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["38 30 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"], 0),
        (["38 30 0:38 /../../.. /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw"], 3),
        (["38 30 0:38 /../.. /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"], 2),
        (["38 30 0:38 /.. /mnt rw - cgroup2 cgroup2 rw"], 0),
        (["38 30 0:38 /.. /sys/fs/cgroup rw - tmpfs tmpfs rw"], 0),
        (
            [
                "38 30 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
                "garbage",
                "39 38 0:38 /.. /sys/fs/cgroup ro - cgroup2 cgroup2 rw",
            ],
            1,
        ),
    ],
)
def test_where_the_cgroup_namespace_begins(lines: list[str], expected: int) -> None:
    assert begins_at("") == 0
    assert begins_at("\n".join(lines)) == expected


@pytest.mark.parametrize(("cgroups", "asks"), [(True, False), (False, True)])
def test_a_whole_table_of_ours_proves_what_nft_can_do(*, cgroups: bool, asks: bool) -> None:
    asked = []

    def make_nft() -> FakeNft:
        asked.append(1)
        return FakeNft()

    with mock.patch.object(trials, "_in_new_namespace", return_value=ALL):
        capabilities, facilities = probe(
            RefusingChannel(),  # type: ignore[arg-type]  # has what is called
            make_nft,
            table=classify.table_spec(cgroups=cgroups),
        )
    assert (capabilities.available, facilities.cgroups, bool(asked)) == (True, True, asks)


def test_a_namespace_that_may_not_be_made_tells_nothing() -> None:
    with mock.patch("netqos_tc.trials.ctypes.CDLL", return_value=mock.Mock(unshare=lambda _flags: -1)):
        assert trials._in_new_namespace(lambda: ALL) is None


async def test_a_kernel_without_nfnetlink_makes_the_backend_unavailable_and_nothing_else() -> None:
    host = FolderHarness("tc", TcBackend, AtomicFiles())
    backend = TcBackend(host.context())
    with mock.patch.object(
        Channel, "netfilter", side_effect=Unsupported("netlink protocol 12", hint="modprobe")
    ):
        capabilities = await backend.probe()
    assert not capabilities.available
    assert [(one.code, one.hint) for one in capabilities.findings] == [("no-netlink", "modprobe")]
    await backend.close()
    host.close()


def test_importing_the_backend_loads_nothing_of_the_kernels() -> None:
    program = "import sys, netqos_tc; print(sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    for name in ("pyroute2", "netqos_tc.netlink", "netqos_tc.backend", "ctypes"):
        assert f"'{name}'" not in loaded
