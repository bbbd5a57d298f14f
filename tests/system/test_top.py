"""netqosctl top on a terminal, beside a real daemon under traffic that is killed and comes back; and the history."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from netqos.model.levels import Level
from netqos.testing.daemon import Daemon, netqosctl, workload
from netqos.testing.netns import Rig
from netqos.testing.traffic import Traffic

pytestmark = pytest.mark.kernel("htb", "nft")

PATIENCE_S = 20.0


class Terminal:
    """What a command has drawn so far."""

    def __init__(self, descriptor: int) -> None:
        self.text = ""
        self._descriptor = descriptor
        self._reader = Thread(target=self._read)
        self._reader.start()

    def shows(self, words: str, *, after: int = 0) -> int:
        """Wait until words are drawn after a place in the text; the place where they end."""
        until_s = time.monotonic() + PATIENCE_S
        while words not in self.text[after:]:
            assert time.monotonic() < until_s, self.text[-2000:]
            time.sleep(0.05)
        return self.text.index(words, after) + len(words)

    def close(self) -> None:
        self._reader.join()
        os.close(self._descriptor)

    def _read(self) -> None:
        try:
            while piece := os.read(self._descriptor, 1 << 16):
                self.text += piece.decode(errors="replace")
        except OSError:
            pass  # the other end is closed


@contextmanager
def top(daemon: Daemon) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "60"}
    command = netqosctl(daemon, ["--color", "never", "top", "--interval", "0.3"])
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    terminal = Terminal(ours)
    try:
        yield terminal, process
    finally:
        process.kill()
        process.wait()
        terminal.close()


def test_decisions_are_seen_over_a_restart_of_the_daemon() -> None:
    with Rig(pods=("web", "batch")) as rig:
        workloads = [workload(rig, "web", Level.L0), workload(rig, "batch", Level.L2)]
        config = {"node": {"bandwidth": {"tx": "60M", "rx": "80M"}}, "policy": {"enable": True}}
        daemon = Daemon(rig, {**config, "workloads": workloads})
        daemon.start()
        with top(daemon) as (terminal, process):
            place = terminal.shows("no contention: ")
            traffic = Traffic(rig)
            traffic.tcp("web").start()
            traffic.tcp("batch").start()
            place = terminal.shows("last decisions", after=place)
            place = terminal.shows("contention for ", after=place)
            daemon.kill()
            place = terminal.shows("trying again", after=place)
            daemon.start()
            terminal.shows("contention for ", after=place)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=PATIENCE_S) == 0
        asked = netqosctl(daemon, ["history", "--direction", "egress", "--json"])
        told = json.loads(subprocess.run(asked, capture_output=True, check=True).stdout)
        traffic.stop()
        daemon.stop()
    assert any(one["reason_text"].startswith("contention") for one in told["decisions"])
    assert {one["direction"] for one in told["decisions"]} == {"tx"}
