from __future__ import annotations

import json

from tests.node.cni import NETWORKS


def test_every_network_says_how_its_pods_are_connected() -> None:
    told = {
        name: [
            one.get("ipMasq", one.get("egressRate")) for one in json.loads(network.configuration())["plugins"]
        ]
        for name, network in NETWORKS.items()
    }
    assert told == {
        "bridge": [False],
        "bridge-masquerade": [True],
        "bridge-bandwidth": [False, 9_000_000],
        "ptp": [False],
        "ptp-masquerade": [True],
    }
