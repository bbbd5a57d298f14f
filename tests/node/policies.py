"""NodeSLOs of the tests, in both shapes, asymmetric in every value, and what they promise. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netqos.model.levels import Direction, Level

M = 1_000_000
TX, RX = Direction.TX, Direction.RX

Promise = Mapping[tuple[Level, Direction], float]

PROPOSAL: dict[str, Any] = {
    "networkQOSStrategy": {
        "enable": True,
        "nodeBandwidthLimit": {
            "hw": {"tx": 60, "rx": "45M"},
            "l1": {"txMin": "18M", "rxMin": "11M", "tx": "54M", "rx": "40M"},
            "l2": {"txMin": 12, "rxMin": "16M", "tx": 60, "rx": "45M"},
        },
    }
}
"""60 and 45 Mbit/s: 30, 18, 12 on the way out, 18, 11, 16 on the way in."""

PROPOSED = {
    (Level.L0, TX): 30 * M,
    (Level.L1, TX): 18 * M,
    (Level.L2, TX): 12 * M,
    (Level.L0, RX): 18 * M,
    (Level.L1, RX): 11 * M,
    (Level.L2, RX): 16 * M,
}

UPSTREAM: dict[str, Any] = {
    "resourceQOSStrategy": {
        "lsClass": {"networkQOS": {"enable": True, "egressRequest": 20, "ingressRequest": 30}},
        "beClass": {
            "networkQOS": {
                "enable": True,
                "egressRequest": 40,
                "ingressRequest": 20,
                "egressLimit": 60,
                "ingressLimit": 70,
            }
        },
    },
    "systemStrategy": {"totalNetworkBandwidth": "50M"},
}
"""50 Mbit/s: 20, 10, 20 on the way out, 25, 15, 10 on the way in."""

UPSTREAMED = {
    (Level.L0, TX): 20 * M,
    (Level.L1, TX): 10 * M,
    (Level.L2, TX): 20 * M,
    (Level.L0, RX): 25 * M,
    (Level.L1, RX): 15 * M,
    (Level.L2, RX): 10 * M,
}
