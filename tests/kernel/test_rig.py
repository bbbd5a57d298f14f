"""The rig itself: what it builds works, and nothing of it stays, however its owner ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netqos.testing.netns import CommandFailed, Rig, sweep
from netqos.testing.networks import MASQUERADED

pytestmark = pytest.mark.kernel("veth")

OWNER = """
import sys, time
from netqos.testing.netns import Rig
with Rig(pods=("web",)) as rig:
    rig.pod("web").popen(["sleep", "1000"])
    while not rig.pod("web").pids():
        time.sleep(0.01)
    print(rig.folder, *(space.name for space in (rig.wire, rig.node, rig.pod("web"))), flush=True)
    time.sleep(1000)
"""


def serve_one(family: int, address: str) -> bytes:
    with socket.create_server((address, 7007), family=socket.AddressFamily(family)) as server:
        server.settimeout(10)
        connection, peer = server.accept()
        with connection:
            return connection.recv(100) + b" from " + str(peer[0]).encode()


def send_one(address: str) -> None:
    for _ in range(200):
        try:
            with socket.create_connection((address, 7007), timeout=5) as connection:
                connection.sendall(b"hello")
                return
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise TimeoutError("nobody listens")


def exchange(rig: Rig, family: int, address: str) -> bytes:
    answer = rig.wire.fork(serve_one, family, address)
    rig.pod("web").call(send_one, address)
    return answer.result()


def names_now() -> set[str]:
    folder = Path("/run/netns")
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def start_owner() -> tuple[subprocess.Popen[str], Path, set[str]]:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    folder, *names = owner.stdout.readline().split()
    owner.stdout.close()
    return owner, Path(folder), set(names)


def test_a_pod_reaches_the_wire_with_its_own_address() -> None:
    with Rig(pods=("web",)) as rig:
        assert exchange(rig, socket.AF_INET, rig.wire.address) == b"hello from 10.88.0.10"
        assert exchange(rig, socket.AF_INET6, rig.wire.address6) == b"hello from fd00:88::10"


@pytest.mark.kernel("nft")
def test_masquerade_shows_the_wire_the_nodes_address() -> None:
    with Rig(pods=("web",), network=MASQUERADED) as rig:
        assert exchange(rig, socket.AF_INET, rig.wire.address) == b"hello from 198.18.0.2"
        assert exchange(rig, socket.AF_INET6, rig.wire.address6) == b"hello from fd00:77::2"


def test_the_wire_reaches_a_pod_that_was_added_later() -> None:
    with Rig() as rig:
        pod = rig.add_pod("late")
        answer = pod.fork(serve_one, socket.AF_INET, pod.address)
        rig.wire.call(send_one, pod.address)
        assert answer.result() == b"hello from 198.18.0.1"


def test_a_removed_pod_takes_its_link_along_and_its_address_is_not_used_again() -> None:
    with Rig(pods=("old", "other")) as rig:
        old = rig.pod("old")
        rig.remove_pod("old")
        assert list(rig.pods) == ["other"]
        assert old.link not in rig.node.run(["ip", "-o", "link"]).stdout
        assert rig.add_pod("old").address not in {old.address, rig.pod("other").address}


def test_a_function_runs_inside_and_its_exception_comes_back() -> None:
    def devices() -> list[str]:
        return sorted(name for _, name in socket.if_nameindex())

    def fail() -> None:
        raise ValueError("no such thing")

    with Rig(pods=("web",)) as rig:
        assert rig.node.call(devices) == ["lo", rig.pod("web").link, "up0"]
        assert rig.pod("web").call(devices) == ["eth0", "lo"]
        with pytest.raises(ValueError, match="no such thing"):
            rig.node.call(fail)


def test_a_thread_enters_and_comes_back() -> None:
    home = Path("/proc/thread-self/ns/net").readlink()
    with Rig(pods=("web",)) as rig:
        with rig.node.entered():
            assert {name for _, name in socket.if_nameindex()} == {"lo", "up0", rig.pod("web").link}
        assert Path("/proc/thread-self/ns/net").readlink() == home


def test_a_program_can_have_a_sysfs_of_its_namespace() -> None:
    with Rig() as rig:
        shown = ["sh", "-c", "ls /sys/class/net; ls -d /sys/fs/cgroup"]
        process = rig.node.popen(shown, own_sysfs=True, stdout=subprocess.PIPE)
        words = process.communicate(timeout=10)[0].decode().split()
        assert words == ["lo", "up0", "/sys/fs/cgroup"]


def test_a_failing_program_is_told_with_its_words() -> None:
    with Rig() as rig, pytest.raises(CommandFailed, match="Cannot find device"):
        rig.node.run(["ip", "link", "set", "nothing0", "up"])


def test_nothing_stays_after_an_exception() -> None:
    names: set[str] = set()

    def build_and_fail() -> Path:
        with Rig(pods=("web",)) as rig:
            names.update(space.name for space in (rig.wire, rig.node, rig.pod("web")))
            sleeper = rig.pod("web").popen(["sleep", "1000"])
            (rig.folder / "file").write_text("x", encoding="ascii")
            folders.append(rig.folder)
            sleepers.append(sleeper)
            raise RuntimeError("on purpose")

    folders: list[Path] = []
    sleepers: list[subprocess.Popen[bytes]] = []
    with pytest.raises(RuntimeError, match="on purpose"):
        build_and_fail()
    assert len(names) == 3
    assert not names & names_now()
    assert sleepers[0].returncode == -signal.SIGKILL
    assert not folders[0].exists()


def test_ctrl_c_leaves_nothing() -> None:
    owner, folder, names = start_owner()
    owner.send_signal(signal.SIGINT)
    owner.wait(timeout=20)
    assert not names & names_now()
    assert not folder.exists()


def test_the_sweep_removes_what_a_killed_owner_left_and_nothing_of_the_living() -> None:
    with Rig() as rig:
        owner, folder, names = start_owner()
        assert names <= names_now()
        assert not names & set(sweep())
        owner.kill()
        owner.wait(timeout=20)
        assert names <= set(sweep())
        assert not names & names_now()
        assert not folder.exists()
        assert rig.node.name in names_now()
        assert rig.folder.exists()


def as_nobody() -> list[str]:
    """How to start a program without any right, where this process can lay its rights down."""
    is_real_root = os.geteuid() == 0 and "4294967295" in Path("/proc/self/uid_map").read_text(
        encoding="ascii"
    )
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if is_real_root else []


def test_an_ordinary_user_gets_a_rig_in_a_user_namespace() -> None:
    script = """
from netqos.testing.netns import Rig, reexec_in_user_namespace
reexec_in_user_namespace()
with Rig(pods=("web",)) as rig:
    print(rig.pod("web").run(["ip", "-o", "addr", "show", "dev", "eth0"]).stdout.count("10.88.0.10/32"))
"""
    done = subprocess.run(
        [*as_nobody(), sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_what_a_killed_owner_in_a_user_namespace_ran_ends_with_it() -> None:
    script = """
import time
from netqos.testing.netns import Rig, reexec_in_user_namespace
reexec_in_user_namespace()
with Rig(pods=("web",)) as rig:
    sleeper = rig.pod("web").popen(["sleep", "1000"])
    call = rig.node.fork(time.sleep, 1000)
    while len([*rig.pod("web").pids(), *rig.node.pids()]) < 2:
        time.sleep(0.01)
    print(sleeper.pid, call.pid, flush=True)
    time.sleep(1000)
"""
    before = {"PATH": os.environ["PATH"], "NETQOS_IN_USER_NAMESPACE": "1"} if not as_nobody() else None
    owner = subprocess.Popen(
        [*as_nobody(), sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=before
    )
    assert owner.stdout is not None
    with owner.stdout:
        pids = [int(word) for word in owner.stdout.readline().split()]
    owner.kill()
    owner.wait(timeout=20)
    end_s = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < end_s:
        time.sleep(0.01)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
