"""`python -m tests.node [start | stop | env | run COMMAND...]`: a real node to play with (`./dev node`).

`start` leaves it running until `stop`, with netqosd from the checkout on it. `keep` is what runs meanwhile
(`keeper.py`) and has told where in .dev/node.json; $NETQOS_NODE_STATE names another file, and with it another node. It
ends with the process of $NETQOS_NODE_OWNER, where that is given.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from netqos.testing.namespaces import sweep
from tests.apiserver.gobuild import Unavailable
from tests.node import keeper
from tests.node.agent import SOCKET, Agent
from tests.node.branches import sweep_branches
from tests.node.machine import enter_command
from tests.node.programs import find_node_programs
from tests.node.realnode import NAME, RealNode

PORTS = range(5201, 5209)
START_S = 1800  # the first one builds a kubelet and perhaps an API server

_USAGE = "usage: ./dev node [start | stop | env | run COMMAND...]"


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    match list(arguments):
        case [] | ["start"]:
            return start()
        case ["stop"]:
            return stop()
        case ["env"]:
            return show_environment()
        case ["run", *command] if command:
            return run(command)
        case ["keep"]:
            return keep()
        case _:
            print(_USAGE, file=sys.stderr)
            return 2


def start() -> int:
    """Start one, unless it runs, and say what to type."""
    if keeper.told() is None:
        try:
            find_node_programs()
        except Unavailable as problem:
            print(f"node: {problem}", file=sys.stderr)
            return 1
        if not _wait_started():
            print(f"node: it did not start; {keeper.LOG} ends with\n{_log_end()}", file=sys.stderr)
            return 1
    print(_welcome())
    return 0


def stop() -> int:
    """End the one that runs or starts; what a killed one has left goes too."""
    was_there = keeper.end()
    _sweep()
    print("node: stopped" if was_there else "node: none is running")
    return 0


def show_environment() -> int:
    """Lines for a shell: eval "$(./dev node env)"."""
    state = keeper.told()
    if state is None:
        print("node: none is running; start one: ./dev node", file=sys.stderr)
        return 1
    for name in ("KUBECONFIG", "NETQOS_SOCKET", "WIRE"):
        print(f"export {name}={shlex.quote(state[name])}")
    print(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH")
    return 0


def run(command: Sequence[str]) -> int:
    """Run a program on the node."""
    state = keeper.told()
    if state is None:
        print("node: none is running; start one: ./dev node", file=sys.stderr)
        return 1
    return subprocess.run(enter_command(int(state["init"]), command), check=False).returncode


def keep() -> int:
    """Hold a node until SIGTERM."""
    signal.signal(signal.SIGTERM, _interrupted)
    keeper.enter()
    with contextlib.suppress(KeyboardInterrupt), RealNode(find_node_programs()) as node:
        agent = Agent(node, {"policy": {"enable": True}})
        agent.start()
        for port in PORTS:
            node.wire.popen(["iperf3", "--server", "--port", str(port)])
        state = {
            "init": str(node.machine.init),
            "KUBECONFIG": str(node.server.access.kubeconfig),
            "NETQOS_SOCKET": str(node.machine.folder / SOCKET.lstrip("/")),
            "WIRE": node.wire.address,
        }
        keeper.tell(state)
        owner = os.environ.get("NETQOS_NODE_OWNER")
        while owner is None or Path("/proc", owner).exists():
            time.sleep(1)
    return 0


def _interrupted(*_: object) -> NoReturn:
    """As Ctrl-C, and nothing interrupts what is put away then."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _wait_started() -> bool:
    """Start a keeper where there is none, and wait for what it tells; nothing is left of one that ended instead."""
    ours: subprocess.Popen[bytes] | None = None
    is_ours = False
    end_s = time.monotonic() + START_S
    try:
        while keeper.told() is None:
            if ours is None:
                is_ours = True  # what is interrupted in there may have begun
                ours = keeper.launch()
                is_ours = ours is not None
            if (ours is not None and ours.poll() is not None) or time.monotonic() > end_s:
                _sweep()
                return False
            time.sleep(0.05)
    except KeyboardInterrupt:
        if is_ours:
            keeper.end()
        _sweep()
        raise
    return True


def _sweep() -> None:
    """What a keeper has left that is gone, whatever it was about: it may have ended before it knew what it had made."""
    sweep()
    sweep_branches()


def _log_end() -> str:
    return "\n".join(keeper.LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])


def _welcome() -> str:
    return f"""The node {NAME} is Ready, and netqosd runs on it.
The world is at $WIRE; an iperf3 listens on each of its ports {PORTS[0]} to {PORTS[-1]}.

    eval "$(./dev node env)"
    kubectl get nodes
    netqosctl status
    ./dev node run ip -brief address      # any command, on the node
    ./dev node stop

A pod names its node ({NAME}) and the image test.local/pod:1; docs/tutorial.md has the first ones."""


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("node: interrupted", file=sys.stderr)
        sys.exit(130)
