"""`python -m netqos.testing NETWORK`: build a rig, say how to get around in it, and run a shell on its node."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from netqos.testing.namespaces import Namespace
from netqos.testing.netns import Rig, reexec_in_user_namespace
from netqos.testing.networks import NETWORKS
from netqos.testing.paths import outward


def main() -> None:
    """Build it, and remove it when the shell ends."""
    parser = argparse.ArgumentParser(prog="python -m netqos.testing", description=__doc__)
    parser.add_argument("network", choices=NETWORKS, help="how the pods are connected")
    parser.add_argument(
        "pods", nargs="*", default=["web", "db", "batch"], help="names of pods (default: three)"
    )
    arguments = parser.parse_args()
    reexec_in_user_namespace()
    with Rig(arguments.pods, network=NETWORKS[arguments.network]) as rig:
        sys.stdout.write("\n".join(describe(rig)) + "\n")
        sys.stdout.flush()
        subprocess.run(rig.node.command([os.environ.get("SHELL", "sh")]), check=False)


def describe(rig: Rig) -> list[str]:
    """How to get into each namespace, and the ways that packets of the pods take."""
    found = {"wire": rig.wire, "node": rig.node, **({"remote": rig.remote} if rig.remote else {}), **rig.pods}
    lines = [f"{name:10} {_enter(namespace)}" for name, namespace in found.items()]
    for name in rig.pods:
        lines += ["", f"{name}: {', '.join(rig.addresses(name))}"]
        lines += [f"  {path.name}, by {path.uplink}" for path in outward(rig, name)]
    return lines


def _enter(namespace: Namespace) -> str:
    return f"nsenter --net={namespace.path} -- bash"


if __name__ == "__main__":
    main()
