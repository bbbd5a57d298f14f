"""Totals, guarantees and ceilings that change while traffic runs in both directions.

What the kernel has is watched all the time and must be right at every moment; traffic is held to bounds for any
machine. `./dev bench live-changes` has the figures.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from netqos.model.levels import Direction, Level
from netqos.model.quantities import bits_per_s
from netqos.testing.netns import Rig
from netqos_tc import answers, numbers, wire
from netqos_tc.netlink import Channel
from tests.bench.livechanges import CHANGES, PODS, START, Change, Promise, measure, shaped

pytestmark = [pytest.mark.kernel("htb", "nft", "nft-fib", "nft-socket"), pytest.mark.serial]

_WATCH_S = 4.2


@dataclass(frozen=True, slots=True)
class Tree:
    """Rates and ceilings of one tree at one moment, bits per second."""

    total_bps: int
    rates_bps: Mapping[Level, int]
    ceilings_bps: Mapping[Level, int]

    def problems(self, before: Promise, after: Promise) -> list[str]:
        """What is neither right before nor after a change, nor a safe step from one to the other."""
        found = []
        if sum(self.rates_bps.values()) > self.total_bps:
            found.append("guarantees add up to more than the total")
        if self.total_bps > max(before.total_bps, after.total_bps):
            found.append("the total is above both")
        for place, level in enumerate((Level.L1, Level.L2)):
            least = min(one.percent(one.guarantees[place]) for one in (before, after))
            most = max(one.percent(one.ceilings[place]) for one in (before, after))
            if self.rates_bps[level] < 0.99 * least:
                found.append(f"{level.name} is guaranteed less than before and after")
            if self.ceilings_bps[level] > most:
                found.append(f"{level.name} may use more than before and after")
        return found


def watch(seconds: float, devices: Sequence[int]) -> list[list[Tree]]:
    """The states of the trees as they followed one another; runs in a child inside the node."""
    channel = Channel.route()
    seen: list[list[Tree]] = [[] for _ in devices]
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        for place, device in enumerate(devices):
            tree = read(channel, device)
            # One that is no more was perhaps read of two moments.
            if tree == read(channel, device) and seen[place][-1:] != [tree]:
                seen[place].append(tree)
        time.sleep(0.001)
    return seen


def read(channel: Channel, device: int) -> Tree:
    """The total and the levels, one after the other."""
    minors = (numbers.TOTAL, *numbers.LEVELS.values())
    total, *levels = (answers.read_class(channel.get(wire.get_class(device, one))).spec for one in minors)
    named = dict(zip(Level, levels, strict=True))
    return Tree(
        bits_per_s(total.ceil),
        {level: bits_per_s(one.rate) for level, one in named.items()},
        {level: bits_per_s(one.ceil) for level, one in named.items()},
    )


def is_smooth(change: Change) -> bool:
    """Nothing stands still, and nothing passes what it was or will be allowed."""
    return change.gap > 0.2 and change.over < 1.2


@pytest.mark.parametrize("name", ["total", "guarantees", "ceiling of L1"])
def test_a_change_and_its_way_back_are_safe_at_every_moment(name: str) -> None:
    with Rig(pods=tuple(PODS)) as rig, shaped(rig) as daemon:
        with rig.node.entered():
            uplink = socket.if_nametoindex(rig.uplink)
        watching = rig.node.fork(watch, _WATCH_S, (uplink, numbers.IFB_INDEX))
        changes = measure(rig, daemon, name, width_s=0.25)
        seen = dict(zip(Direction, watching.result(), strict=True))
    _levels, setting = CHANGES[name]
    for direction, trees in seen.items():
        before, after = START.promise(direction), setting.promise(direction)
        problems = {problem for tree in trees for problem in tree.problems(before, after)}
        assert (direction, problems) == (direction, set())
        assert max(tree.total_bps for tree in trees) == pytest.approx(before.total_bps, rel=0.01)
        assert any(is_in_force(tree, after) for tree in trees)
        assert is_in_force(trees[-1], before)
    assert [change for change in changes if not is_smooth(change)] == []


def is_in_force(tree: Tree, promise: Promise) -> bool:
    """Whether L1 and L2 have what is promised."""
    wanted = [promise.percent(share) for share in (*promise.guarantees, *promise.ceilings)]
    has = [one[level] for one in (tree.rates_bps, tree.ceilings_bps) for level in (Level.L1, Level.L2)]
    return has == pytest.approx(wanted, rel=0.01)
