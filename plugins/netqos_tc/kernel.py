"""What the backend has open to the kernel, in the network namespace in which it was opened."""

from __future__ import annotations

from dataclasses import dataclass

from netqos.backend import NftRunner
from netqos.errors import Unsupported
from netqos_tc.audit import Auditor
from netqos_tc.chooser import Chooser
from netqos_tc.netlink import Channel
from netqos_tc.reader import Reader
from netqos_tc.renewal import Looker
from netqos_tc.surroundings import Surroundings


@dataclass(slots=True, kw_only=True)
class Kernel:
    """The channels, and those who read through them. `nft` is opened when it is first needed."""

    route: Channel
    netfilter: Channel
    reader: Reader
    auditor: Auditor
    looker: Looker
    surroundings: Surroundings
    chooser: Chooser
    nft: NftRunner | None = None

    @classmethod
    def open(cls) -> Kernel:
        """Open everything but nftables. `Unsupported` where the kernel has no nf_tables."""
        route = Channel.route()
        try:
            netfilter = Channel.netfilter()
        except Unsupported:
            route.close()
            raise
        reader = Reader(route, netfilter)
        auditor = Auditor(route, netfilter, reader)
        return cls(
            route=route,
            netfilter=netfilter,
            reader=reader,
            auditor=auditor,
            looker=Looker(reader, auditor),
            surroundings=Surroundings(route),
            chooser=Chooser(),
        )

    def close(self) -> None:
        """Close it all; the objects stay."""
        self.route.close()
        self.netfilter.close()
        self.surroundings.close()
        self.chooser.close()
