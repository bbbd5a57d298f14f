"""Every network that a rig can build: packets get through on each of its paths, and nothing of it stays."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path as Folder

import pytest

from netqos.errors import Unsupported
from netqos.model.levels import Direction
from netqos.testing.exchange import Talk, talk, transfer
from netqos.testing.hostpod import cgroup_tree
from netqos.testing.netns import Rig
from netqos.testing.networks import NETWORKS, Attachment, Network
from netqos.testing.paths import Path, between, outward

pytestmark = pytest.mark.kernel("veth", "nft")

ADDRESSES_OUT = {
    "routed": 2,
    "vxlan": 4,
    "vxlan-masquerade": 4,
    "vxlan-ipv6": 2,
    "services": 6,
    "ipv6": 1,
    "addresses": 6,
    "second-interface": 4,
    "second-uplink": 4,
}
"""How many ways a pod has out of the node; 2 in the networks that are not named."""


@pytest.fixture(params=NETWORKS)
def rig(request: pytest.FixtureRequest, require_kernel: Callable[..., None]) -> Iterator[Rig]:
    network = NETWORKS[request.param]
    if network.feature:
        require_kernel(network.feature)
    with Rig(pods=("web", "batch"), network=network) as rig:
        yield rig


def name_of(rig: Rig) -> str:
    return next(name for name, network in NETWORKS.items() if network == rig.network)


def sent_bytes(rig: Rig, pod: str) -> int:
    """What a pod's devices have sent, by /proc/net/dev."""

    def read() -> int:
        lines = Folder("/proc/thread-self/net/dev").read_text(encoding="ascii").splitlines()[2:]
        fields = [line.replace(":", " ").split() for line in lines]
        return sum(int(one[9]) for one in fields if one[0] != "lo")

    return rig.pod(pod).call(read)


def test_packets_get_through_on_every_path_and_are_as_many_as_said(rig: Rig) -> None:
    paths = outward(rig, "web")
    assert len(paths) == ADDRESSES_OUT.get(name_of(rig), 2)
    talks = [Talk(path=path, count=20, question=1000, answer=500) for path in paths]
    before = sent_bytes(rig, "web")
    talk(talks)
    expected = sum(one.pod_bytes(Direction.TX) for one in talks)
    assert sent_bytes(rig, "web") - before == pytest.approx(expected, rel=0.02)


def test_pods_reach_each_other(rig: Rig) -> None:
    for path in between(rig, "web", "batch"):
        assert transfer(path, 100_000) < 5


def test_a_pod_on_the_hosts_network_runs_in_its_own_cgroup() -> None:
    try:
        tree = cgroup_tree()
    except Unsupported as problem:
        pytest.skip(str(problem))
    try:
        with Rig(host_pods=("proxy",)) as rig:
            proxy = rig.place("proxy")
            found = proxy.call(lambda: Folder("/proc/self/cgroup").read_text(encoding="utf-8"))
            assert f"0::{rig.host_pods['proxy'].path}" in found
            talk([Talk(path=path, count=2, question=100, answer=50) for path in outward(rig, "proxy")])
            folder = rig.host_pods["proxy"].cgroup
            proxy.popen(["sleep", "1000"])
            assert folder.is_dir()
        assert not folder.exists()
    except Unsupported as problem:
        pytest.skip(f"{tree}: {problem}")


OWNER = """
import time
from netqos.testing.netns import Rig
with Rig(host_pods=("proxy",)) as rig:
    rig.place("proxy").popen(["sleep", "1000"])
    print(rig.host_pods["proxy"].cgroup, flush=True)
    time.sleep(1000)
"""


def test_the_next_rig_sweeps_the_cgroup_of_a_killed_owner() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    folder = owner.stdout.readline().strip()
    owner.kill()
    _, said = owner.communicate(timeout=20)
    if "Unsupported" in said:
        pytest.skip(said.splitlines()[-1])
    assert Folder(folder).is_dir()
    with Rig():
        assert not Folder(folder).exists()


def test_a_path_without_an_answer_is_told_by_its_name() -> None:
    with Rig(pods=("web",)) as rig:
        nowhere = Path(
            name="to nowhere",
            asker=rig.pod("web"),
            answerer=rig.wire,
            target="198.18.0.3",
            listens_at=rig.wire.address,
        )
        with pytest.raises(TimeoutError, match="to nowhere"):
            talk([Talk(path=nowhere, count=1, question=10, answer=10)], patience_s=0.2)


def test_what_nobody_builds_is_refused() -> None:
    with pytest.raises(ValueError, match="macvlan"):
        Network(attachment=Attachment.MACVLAN, overlay=True)
    with pytest.raises(ValueError, match="second uplink"):
        Network(uplinks=2)
