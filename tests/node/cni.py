"""How the pods of a node are connected: CNI configurations, as data. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BRIDGE = "cni0"
_BURST_BITS = 400_000
PODS = "10.88.0.0/16"
"""Every pod's address is in it, whatever the network; the wire has a route to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """One way to connect pods: `kind` is the plugin, `bridge` or `ptp`.

    `limits_bps`, of what comes from a pod and of what goes to it: the bandwidth plugin is chained and holds all pods to
    them. (By a pod's annotations containerd 1.6 would ask it for the largest burst there is, half an hour of 1 Mbit/s.)
    """

    name: str
    kind: str
    subnet: str
    masquerade: bool = False
    limits_bps: tuple[int, int] | None = None

    def configuration(self) -> str:
        """The text of a conflist. CNI 0.4.0 is what Debian 12's plugins and containerd both speak."""
        plugins = [self._main()]
        if self.limits_bps is not None:
            egress, ingress = self.limits_bps
            burst = {"egressBurst": _BURST_BITS, "ingressBurst": _BURST_BITS}
            plugins.append({"type": "bandwidth", "egressRate": egress, "ingressRate": ingress, **burst})
        return json.dumps({"cniVersion": "0.4.0", "name": self.name, "plugins": plugins}, indent=1)

    def _main(self) -> dict[str, Any]:
        routes = [{"dst": "0.0.0.0/0"}]
        ipam = {"type": "host-local", "ranges": [[{"subnet": self.subnet}]], "routes": routes}
        common = {"type": self.kind, "ipMasq": self.masquerade, "ipam": ipam}
        if self.kind == "bridge":
            return {**common, "bridge": BRIDGE, "isGateway": True, "hairpinMode": True}
        return common


NETWORKS: Mapping[str, Network] = {
    one.name: one
    for one in (
        Network(name="bridge", kind="bridge", subnet="10.88.0.0/24"),
        Network(name="bridge-masquerade", kind="bridge", subnet="10.88.0.0/24", masquerade=True),
        Network(
            name="bridge-bandwidth", kind="bridge", subnet="10.88.0.0/24", limits_bps=(9_000_000, 7_000_000)
        ),
        Network(name="ptp", kind="ptp", subnet="10.88.1.0/24"),
        Network(name="ptp-masquerade", kind="ptp", subnet="10.88.1.0/24", masquerade=True),
    )
}
"""Those on the bridge have one subnet, since the bridge keeps its address."""
