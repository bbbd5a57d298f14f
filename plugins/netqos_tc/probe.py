"""What this host can do, found out by trying, never by versions. Three-valued: yes, no, or it could not be told."""

from __future__ import annotations

from collections.abc import Callable

from netqos.backend import Capabilities, NftRunner
from netqos.model.levels import Direction
from netqos_tc import cgroupspace, nftprobe, trials
from netqos_tc.layout import Facilities
from netqos_tc.netlink import Channel
from netqos_tc.owners import Told
from netqos_tc.spec import TableSpec
from netqos_tc.trials import Answer, Trials


def probe(
    route: Channel, nft: Callable[[], NftRunner], *, table: TableSpec | None = None
) -> tuple[Capabilities, Facilities]:
    """What the backend can do here; nothing outlives the call.

    `table` is our table where it is there: a whole one proves what nft can do, so that a restart writes nothing.
    """
    tried = trials.try_kernel(route)
    begins_at = cgroupspace.begins_at(nftprobe.mountinfo())
    told, sources, nft_findings = nftprobe.proven(table, begins_at) or nftprobe.try_nft(nft, begins_at)
    findings = (*trials.findings(tried), *nft_findings)
    is_available = Answer.NO not in {tried.may_write, tried.htb, tried.bfifo} and told is not None
    told = told or Told(cgroups=False)
    capabilities = Capabilities(
        available=is_available,
        enforces=_directions(tried) if is_available else frozenset(),
        apart=frozenset({Direction.RX}),
        lends=True,
        limits=True,
        rules=is_available,
        findings=findings,
    )
    return capabilities, Facilities(
        u32=tried.u32 is not Answer.NO,
        cgroups=told.cgroups,
        begins_at=told.begins_at,
        ingress=tried.ingress,
        sources=sources,
        choosy=tried.choosy is Answer.YES,
        fq_codel=tried.fq_codel is Answer.YES,
    )


def _directions(tried: Trials) -> frozenset[Direction]:
    return frozenset(Direction) if tried.ingress else frozenset({Direction.TX})
