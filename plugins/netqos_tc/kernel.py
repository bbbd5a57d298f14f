"""What the backend has open to the kernel, in the network namespace in which it was opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from netqos.backend import BackendContext, NftRunner
from netqos.errors import Unsupported
from netqos_tc.audit import Auditor
from netqos_tc.chooser import Chooser
from netqos_tc.netclasses import NetClasses
from netqos_tc.netlink import Channel
from netqos_tc.reader import Reader
from netqos_tc.renewal import Looker
from netqos_tc.surroundings import Surroundings
from netqos_tc.tools import Tools
from netqos_tc.vigil import Vigil


@dataclass(slots=True, kw_only=True)
class Kernel:
    """The channels, and those who read through them. `nft` is opened when it is first needed."""

    route: Channel
    netfilter: Channel
    reader: Reader
    auditor: Auditor
    looker: Looker
    surroundings: Surroundings
    vigil: Vigil
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
        auditor, surroundings = Auditor(route, netfilter, reader), Surroundings(route)
        looker = Looker(reader, auditor)
        return cls(
            route=route,
            netfilter=netfilter,
            reader=reader,
            auditor=auditor,
            looker=looker,
            surroundings=surroundings,
            vigil=Vigil(auditor, looker, surroundings),
            chooser=Chooser(),
        )

    def tools(
        self,
        context: BackendContext,
        nft: Callable[[], NftRunner],
        net_classes: NetClasses | None,
        sleep: Callable[[float], Awaitable[None]],
    ) -> Tools:
        """What a writer needs."""
        return Tools(
            route=self.route,
            netfilter=self.netfilter,
            nft=nft,
            state=context.state,
            reader=self.reader,
            net_classes=net_classes,
            sleep=sleep,
            monotonic=context.monotonic,
            program=self.chooser.descriptor,
            contents=self.reader.table.contents,
        )

    def close(self) -> None:
        """Close it all; the objects stay."""
        self.route.close()
        self.netfilter.close()
        self.surroundings.close()
        self.chooser.close()
