"""Nothing of anyone else's is touched: by the daemon, --once, cleanup, the restore on exit, and a change between."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from netqos.model.levels import Level
from netqos.testing.daemon import Daemon, workload
from netqos.testing.netns import Rig
from tests.kernel import foreign

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "clsact", "cls-bpf", "tbf", "ifb")


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig(pods=("web", "batch")) as rig:
        foreign.limit_as_cni(rig, "batch", tx="7mbit", rx="9mbit")
        with foreign.everything(rig, "web"):
            yield rig


def document(rig: Rig, **more: Any) -> dict[str, Any]:
    return {
        "node": {"bandwidth": {"tx": "200M", "rx": "150M"}},
        "policy": {"enable": True},
        "workloads": [workload(rig, "web", Level.L0, limits={"egress": "30M", "ingress": "20M"})],
        **more,
    }


def run(rig: Rig, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return rig.node.run([sys.executable, "-m", f"netqos.cli.{module}", *arguments], check=False)


def lost(rig: Rig, before: frozenset[str]) -> frozenset[str]:
    return before - foreign.seen(rig)


def test_what_others_have_survives_start_change_kill_stop_and_cleanup(rig: Rig) -> None:
    before = foreign.seen(rig)
    daemon = Daemon(rig, document(rig))
    daemon.start()
    assert "htb 4e51:" in str(foreign.seen(rig))
    told = {one["code"] for one in daemon.client.get("/v1/status")["findings"]}
    assert {"limited-by-cni", "program-may-bypass", "xdp-may-bypass"} <= told
    assert lost(rig, before) == {f"qdisc noqueue 0: dev {rig.uplink} root"}
    doctor = json.loads(run(rig, "ctl", "doctor", "--json", "--config", str(daemon.paths.config)).stdout)
    texts = " ".join(one["text"] for one in doctor["checks"] if one["name"] == "neighbours")
    assert all(words in texts for words in ("a limiter of others holds", "XDP program", "eBPF program"))
    batch = workload(rig, "batch", Level.L2, limits={"egress": "5M", "ingress": "6M"})
    daemon.configure(document(rig, workloads=[batch], node={"bandwidth": {"tx": "100M", "rx": "90M"}}))
    daemon.kill()
    daemon.start()
    running = foreign.seen(rig)
    assert before - running == {f"qdisc noqueue 0: dev {rig.uplink} root"}
    daemon.stop()
    assert foreign.seen(rig) == running
    done = run(rig, "ctl", "cleanup", "--config", str(daemon.paths.config))
    assert (done.returncode, foreign.seen(rig)) == (0, before), done.stderr


def test_what_others_have_survives_a_single_pass_and_a_restore_on_exit(rig: Rig) -> None:
    before = foreign.seen(rig)
    daemon = Daemon(rig, document(rig, onExit="restore"))
    done = run(rig, "daemon", "--once", "--config", str(daemon.paths.config))
    assert done.returncode == 0, done.stderr
    assert lost(rig, before) == {f"qdisc noqueue 0: dev {rig.uplink} root"}
    daemon.start()
    daemon.stop()
    assert foreign.seen(rig) == before


def test_what_others_have_survives_switching_off_and_an_uplink_that_is_one_no_longer(rig: Rig) -> None:
    rig.node.run(["ip", *["link", "add", "spare0", "type", "veth", "peer", "name", "spare1"]])
    rig.node.run(["ip", *["link", "set", "spare0", "up"]])
    totals = {"bandwidth": {"tx": "100M", "rx": "90M"}}
    both = [{"name": name, **totals} for name in ("spare0", rig.uplink)]
    before = foreign.seen(rig)
    daemon = Daemon(rig, document(rig, node={"uplinks": both}))
    daemon.start()
    assert lost(rig, before) == {f"qdisc noqueue 0: dev {name} root" for name in ("spare0", rig.uplink)}
    daemon.configure(document(rig, node={"uplinks": both[:1]}))
    assert _eventually(lambda: lost(rig, before) == {"qdisc noqueue 0: dev spare0 root"})
    daemon.configure(document(rig, policy={"enable": False}, workloads=[]))
    assert _eventually(lambda: foreign.seen(rig) == before)
    daemon.stop()


def test_switching_to_another_backend_removes_what_was_ours_and_nothing_else(rig: Rig) -> None:
    net_cls = rig.folder / "cgroup" / "net_cls"
    net_cls.mkdir(parents=True)
    (net_cls / "net_cls.classid").write_text("0\n")
    more = {
        "backendOptions": {"terway": {"folder": str(rig.folder / "qos")}},
        "paths": {"cgroup": str(rig.folder / "cgroup")},
    }
    before = foreign.seen(rig)
    daemon = Daemon(rig, document(rig, **more))
    daemon.start()
    assert lost(rig, before)
    daemon.configure(document(rig, backends=["terway"], **more))
    assert _eventually(lambda: not lost(rig, before))
    others = {one for one in foreign.seen(rig) - before if "table inet netqos_meter" not in one}
    assert others == set()
    daemon.stop()


def _eventually(check: Callable[[], bool], timeout_s: float = 5.0) -> bool:
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        if check():
            return True
        time.sleep(0.1)
    return False
