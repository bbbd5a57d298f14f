"""The daemon with what the DaemonSet says by environment variables."""

from __future__ import annotations

import time

import pytest

from netqos.testing.daemon import Daemon, DaemonFailed
from netqos.testing.netns import Rig

pytestmark = pytest.mark.kernel("htb", "nft")


def listening(rig: Rig) -> set[str]:
    """The addresses of the node that a TCP server has, as `ss` writes them, as soon as there is one."""
    end_s = time.monotonic() + 15
    while time.monotonic() < end_s:
        lines = rig.node.run(["ss", "--tcp", "--listening", "--numeric", "--no-header"]).stdout.splitlines()
        if lines:
            return {line.split()[3] for line in lines}
    return set()


def test_metrics_are_served_on_the_address_of_the_variable_and_no_other() -> None:
    with Rig(pods=()) as rig:
        rig.node.run(["ip", "link", "set", "lo", "up"])
        daemon = Daemon(rig, {"metrics": {"listen": "0.0.0.0:9469"}})
        daemon.start(env={"NETQOS_METRICS_LISTEN": "[127.0.0.7]:9470"})
        assert listening(rig) == {"127.0.0.7:9470"}


def test_a_wrong_variable_is_told_and_the_daemon_does_not_start() -> None:
    with Rig(pods=()) as rig:
        daemon = Daemon(rig, {"metrics": {"listen": "0.0.0.0:9469"}})
        with pytest.raises(DaemonFailed, match=r"(?s)ended with 5;.*NETQOS_METRICS_LISTEN"):
            daemon.start(env={"NETQOS_METRICS_LISTEN": "[]:9470"})
