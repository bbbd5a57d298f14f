"""Two uplinks under one total, with the real daemon and traffic that moves from one to the other."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from netqos.model.levels import Direction, Level
from netqos.testing.daemon import Daemon, document, running
from netqos.testing.netns import Rig
from netqos.testing.networks import NETWORKS, OUTSIDE, SECOND_WIRE
from netqos.testing.traffic import TcpFlow
from tests.bench import uplinks

pytestmark = [pytest.mark.kernel("htb", "nft", "bridge", "nft-fib", "nft-socket"), pytest.mark.serial]

TOTAL_BPS = 100_000_000
PHASE_S = 1.6
SETTLED_S = 0.8
WINDOW_S = 0.2
FRAMES = 1500 / 1566
"""A veth counts the headers of a GSO train once, HTB those of each packet: 52 and 14 of 1566 bytes."""

Counts = tuple[float, int, int]


def watch(seconds: float) -> list[Counts]:
    """What the two uplinks have sent, every 10 ms; runs in a child inside the node."""
    seen: list[Counts] = []
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()[2:]
        sent = {name.strip(): int(rest.split()[8]) for name, _, rest in (one.partition(":") for one in lines)}
        seen.append((time.monotonic(), sent["up0"], sent["up1"]))
        time.sleep(0.01)
    return seen


@dataclass(frozen=True, slots=True)
class Seen:
    counts: list[Counts]

    def rates(self, from_s: float, to_s: float) -> tuple[float, float]:
        """Shares of the total that the uplinks sent, as HTB counts."""
        within = [one for one in self.counts if from_s <= one[0] <= to_s]
        (first_s, *first), (last_s, *last) = within[0], within[-1]
        up0, up1 = (
            (now - then) * 8 / (last_s - first_s) / TOTAL_BPS / FRAMES
            for then, now in zip(first, last, strict=True)
        )
        return up0, up1

    def sums(self) -> list[float]:
        """The sum of both in each window."""
        start_s, end_s = self.counts[0][0], self.counts[-1][0]
        count = int((end_s - start_s) / WINDOW_S) - 1
        return [
            sum(self.rates(start_s + place * WINDOW_S, start_s + (place + 1) * WINDOW_S))
            for place in range(count)
        ]


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig(pods=("web", "batch"), network=NETWORKS["second-uplink"]) as rig:
        yield rig


@contextlib.contextmanager
def shared(rig: Rig) -> Iterator[Daemon]:
    total = {"bandwidth": {"tx": "100M", "rx": "150M"}}
    with running(rig, document(rig, {"web": Level.L0, "batch": Level.L2}, node=total)) as daemon:
        yield daemon


def flow(rig: Rig, pod: str, port: int, *, second: bool) -> TcpFlow:
    address = SECOND_WIRE.host(OUTSIDE, 4) if second else rig.wire.address
    return TcpFlow(rig.pod(pod), rig.wire, port=port, address=address, congestion="cubic")


def test_parts_follow_traffic_and_guarantees_hold_across_uplinks(rig: Rig) -> None:
    """L0 on up0; it moves to up1; it is on both; then L0 on up0 against L2 on up1, who have 40 and 30 percent."""
    with shared(rig):
        first, moved = flow(rig, "web", 5301, second=False), flow(rig, "web", 5302, second=True)
        beside, batch = flow(rig, "web", 5303, second=False), flow(rig, "batch", 5304, second=True)
        watching = rig.node.fork(watch, 4 * PHASE_S + 0.5)
        ends = []
        for stops, starts in ((None, first), (first, moved), (None, beside), (moved, batch)):
            if stops is not None:
                stops.stop()
            starts.start()
            time.sleep(PHASE_S)
            ends.append(time.monotonic())
        seen = Seen(watching.result())
        for one in (beside, batch):
            one.stop()
    alone, elsewhere, both, levels = (seen.rates(end_s - SETTLED_S, end_s) for end_s in ends)
    assert alone[0] == pytest.approx(0.9, abs=0.1)
    assert elsewhere[1] == pytest.approx(0.9, abs=0.1)
    assert list(both) == pytest.approx([0.5, 0.5], abs=0.1)
    assert list(levels) == pytest.approx([0.7, 0.3], abs=0.1)
    assert max(seen.sums()) < 1.15


def test_a_restart_and_a_killed_daemon_leave_the_parts(rig: Rig) -> None:
    """Nobody moves them then, so together they must never be more than the total."""

    def totals() -> list[str]:
        lines = [
            rig.node.run(["tc", "class", "show", "dev", device, "classid", "4e51:1"]).stdout
            for device in rig.uplinks
        ]
        return [one.split("ceil ")[1].split()[0] for one in lines]

    with shared(rig) as daemon:
        batch = flow(rig, "batch", 5305, second=True)
        batch.start()
        end_s = time.monotonic() + 5
        while totals() != ["5Mbit", "95Mbit"] and time.monotonic() < end_s:
            time.sleep(0.05)
        daemon.kill()
        batch.stop()
        assert totals() == ["5Mbit", "95Mbit"]
        daemon.start()
        end_s = time.monotonic() + 5
        while totals() != ["50Mbit", "50Mbit"] and time.monotonic() < end_s:
            time.sleep(0.05)
        assert totals() == ["50Mbit", "50Mbit"]
        status = daemon.client.get("/v1/status")
        assert status["backends"]["tc"]["repairs"] == 0
        assert {one["code"] for one in status["findings"]} == {"uplinks-share-total"}


def test_what_arrives_by_two_uplinks_is_held_to_one_total() -> None:
    """L0 by one and L2 by the other, then all levels, L2 by both: 40, 30 and 30 percent of 100 Mbit/s."""
    phases = (uplinks.PHASES[3], uplinks.PHASES[5])
    with (
        Rig(pods=tuple(uplinks.PODS), network=uplinks.NETWORK) as rig,
        running(rig, uplinks.document(rig)),
    ):
        seen = uplinks.measure(rig, Direction.RX, phases)
    assert all(one.worst > 0.85 and one.used > 0.9 and one.second < 1.03 for one in seen), seen
