"""The counter of losses of this host, where there can be one."""

from __future__ import annotations

from netqos.errors import NetqosError
from netqos.host.losses import LossCounter
from netqos.host.nftables import Nftables


def loss_counter() -> LossCounter | None:
    """A counter in the network namespace of the calling thread; None where nftables cannot be used."""
    try:
        return LossCounter(Nftables())
    except NetqosError:
        return None
