"""The node's wall clock jumps by hours, both ways: nothing of what follows the API server is led by it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from netqos.testing.faultreplies import status
from tests.apiserver.kube import Kube
from tests.apiserver.launch import write_kubeconfig
from tests.kube.kubenode import EGRESS, Node, fresh
from tests.kube.site import site
from tests.waiting import wait_until

pytestmark = pytest.mark.kernel("htb", "nft")

HOUR_S = 3600.0
# Wall time alone is moved, as by `date -s`; no other process is touched.
SITE = """
import datetime, time

real_time, real_datetime = time.time, datetime.datetime

def shift():
    with open({path!r}) as file:
        return float(file.read())

class Shifted(real_datetime):
    @classmethod
    def now(cls, tz=None):
        return real_datetime.now(tz) + datetime.timedelta(seconds=shift())

    @classmethod
    def utcnow(cls):
        return cls.now(datetime.timezone.utc).replace(tzinfo=None)

time.time = lambda: real_time() + shift()
time.time_ns = lambda: int(1e9 * time.time())
datetime.datetime = Shifted
"""


class WallClock:
    """The wall clock of one daemon."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "shift"
        self.shift(0)
        self.env = site(folder / "clock", SITE.format(path=str(self._file)))

    def shift(self, seconds: float) -> None:
        """Set it so many seconds from the truth."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(str(seconds), encoding="ascii")
        fresh.rename(self._file)


@pytest.fixture
def clock(node: Node, kube: Kube) -> WallClock:
    token = node.rig.folder / "token"
    token.write_text(kube.request_token("netqos"), encoding="ascii")
    kubeconfig = node.rig.folder / "kubeconfig"
    write_kubeconfig(kubeconfig, node.proxy.url, node.proxy.ca_file, tokenFile=str(token))
    kube.create_pod("web", ips=["10.88.0.11"], annotations={EGRESS: "11M"})
    clock = WallClock(node.rig.folder)
    node.daemon.start(env=clock.env)
    wait_until(lambda: fresh(node) and "ceil 11Mbit" in node.classes())
    return clock


def watches(node: Node) -> int:
    return sum(one.is_watch for one in node.proxy.requests)


def test_nothing_is_asked_anew_and_changes_arrive(node: Node, kube: Kube, clock: WallClock) -> None:
    wait_until(lambda: watches(node) == 3)
    asked = len(node.proxy.requests)
    for hours in (5, -5):
        clock.shift(hours * HOUR_S)
        time.sleep(1.5)
        assert (len(node.proxy.requests), fresh(node)) == (asked, True)
        kube.annotate_pod("web", {EGRESS: f"{12 + hours}M"})
        wait_until(lambda hours=hours: f"ceil {12 + hours}Mbit" in node.classes(), 3)  # type: ignore[misc] # the loop's own
        assert node.status()["sources"]["pods"]["age_s"] < 60
        assert node.codes() == set()


def test_an_outage_over_jumps_has_its_true_age_and_ends_at_once(
    node: Node, kube: Kube, clock: WallClock
) -> None:
    node.proxy.refuse()
    node.proxy.reset()
    wait_until(lambda: node.sources()["pods"] == "stale")
    kube.annotate_pod("web", {EGRESS: "12M"})
    for hours in (5, -5):
        clock.shift(hours * HOUR_S)
        time.sleep(1.5)
        assert 1 < node.status()["sources"]["pods"]["age_s"] < 60
    assert "ceil 11Mbit" in node.classes()
    node.proxy.restore()
    wait_until(lambda: "ceil 12Mbit" in node.classes(), 4)
    wait_until(lambda: fresh(node))


def test_a_token_is_renewed_by_what_the_server_says_of_it(node: Node, kube: Kube, clock: WallClock) -> None:
    seen = len(node.proxy.requests)
    for hours in (5, -5):
        clock.shift(hours * HOUR_S)
        token = kube.request_token("netqos", seconds=7200 + hours)
        (node.rig.folder / "token").write_text(token, encoding="ascii")
        node.proxy.answer(status(401), times=3)
        node.proxy.reset()
        kube.annotate_pod("web", {EGRESS: f"{12 + hours}M"})
        wait_until(lambda hours=hours: f"ceil {12 + hours}Mbit" in node.classes(), 4)  # type: ignore[misc] # as above
        wait_until(lambda: fresh(node))
        assert node.proxy.requests[-1].headers["authorization"].endswith(token)
    assert len(node.proxy.requests) - seen < 40


def test_a_jump_never_lengthens_an_override(node: Node, clock: WallClock) -> None:
    uid = node.pods()["web"]["uid"]
    path = f"/v1/overrides/{uid}"
    node.daemon.client.put(path, {"egress": "7M", "ttl": "1h"})
    wait_until(lambda: "ceil 7Mbit" in node.classes())
    clock.shift(5 * HOUR_S)
    wait_until(lambda: "ceil 11Mbit" in node.classes(), 3)
    node.daemon.client.put(path, {"egress": "7M", "ttl": "4s"})
    clock.shift(-5 * HOUR_S)
    wait_until(lambda: "ceil 7Mbit" in node.classes(), 2)
    wait_until(lambda: "ceil 11Mbit" in node.classes(), 8)


def test_a_file_of_another_time_is_taken(node: Node, clock: WallClock) -> None:
    clock.shift(5 * HOUR_S)
    path = node.daemon.paths.config
    document = json.loads(path.read_text(encoding="utf-8"))

    def ceiling() -> int:
        tx = node.status()["directions"]["tx"]
        return int(100 * tx["levels"]["L2"]["ceiling_bps"] / tx["total_bps"])

    for percent, moment in ((30, time.time() - 9 * HOUR_S), (40, time.time() + 9 * HOUR_S)):
        document["policy"]["levels"] = {"l2": {"txMax": f"{percent}%"}}
        fresh_file = path.with_suffix(".new")
        fresh_file.write_text(json.dumps(document), encoding="utf-8")
        os.utime(fresh_file, (moment, moment))
        fresh_file.rename(path)
        wait_until(lambda percent=percent: ceiling() == percent, 5)  # type: ignore[misc] # as above
