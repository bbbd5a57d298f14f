"""The keys of the configuration file under `policy`: who is promised what, and who may ask for what."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from netqos.model.levels import Level
from netqos.settings.fields import (
    DnsName,
    DscpRange,
    Flag,
    Glob,
    LevelName,
    PolicyAmount,
    PolicyCeiling,
    entries,
)
from netqos.settings.section import Section
from netqos.settings.values import Settings

_SETTINGS = Settings()


class LevelSection(Section):
    """Guarantee and ceiling of one level, as quantities in bits/s or as percentages of the total, all in one unit.

    A ceiling of 0 is no ceiling, as a limit of 0 is no limit; 0% would say "nothing at all", and is refused.
    """

    tx_min: PolicyAmount | None = Field(default=None, description="Guaranteed egress.")
    tx_max: PolicyCeiling | None = Field(default=None, description="Egress ceiling; 0 is no ceiling.")
    rx_min: PolicyAmount | None = Field(default=None, description="Guaranteed ingress.")
    rx_max: PolicyCeiling | None = Field(default=None, description="Ingress ceiling; 0 is no ceiling.")


class LevelsSection(Section):
    """The three levels; what is not said is 40:30:30 percent guaranteed, with ceilings of 100 percent."""

    l0: LevelSection = Field(
        default=LevelSection(), description="The highest level; its guarantee is what L1 and L2 leave."
    )
    l1: LevelSection = Field(
        default=LevelSection(), description="The middle level, where everything unknown goes."
    )
    l2: LevelSection = Field(default=LevelSection(), description="The lowest level.")


class NamespaceSection(Section):
    """What some namespaces may use."""

    match: Annotated[tuple[Glob, ...], entries(1000)] = Field(
        description="Namespaces (names, for workloads) by pattern: `prod-*`."
    )
    levels: tuple[LevelName, ...] = Field(
        default=tuple(Level), description="The levels that they may choose."
    )
    minimum: Flag = Field(default=False, description="Whether their rules may ask for `bandwidth_min`.")
    dscp: tuple[DscpRange, ...] = Field(
        default=((0, 39),), description="The DSCP that their rules may set: numbers, names and ranges."
    )


class PolicySection(Section):
    """Who is promised what. The NodeSLO beats it value by value."""

    enable: Flag | None = Field(
        default=None, description="Network QoS by level. Pod limits hold without it. Default: false."
    )
    levels: LevelsSection | None = Field(default=None, description="The levels' guarantees and ceilings.")
    network_qos_strategy: Any = Field(
        default=None,
        alias="networkQOSStrategy",
        description="In the place of `levels`: the shape of the early proposal, as a NodeSLO has it.",
    )
    resource_qos_strategy: Any = Field(
        default=None,
        alias="resourceQOSStrategy",
        description="In the place of `levels`: Koordinator's shape, as a NodeSLO has it.",
    )
    system_strategy: Any = Field(
        default=None, description="With resourceQOSStrategy: `totalNetworkBandwidth`, as a NodeSLO has it."
    )
    system_namespaces: tuple[DnsName, ...] = Field(
        default=_SETTINGS.system_namespaces,
        description="Where critical and static pods are L0 and more is allowed.",
    )
    system_pods: Flag = Field(
        default=_SETTINGS.system_pods,
        description="Whether critical and static pods of these namespaces are L0.",
    )
    namespaces: tuple[NamespaceSection, ...] | None = Field(
        default=None,
        description=(
            "What a namespace may use; the first match wins. Default: every level everywhere; minima and "
            "DSCP of 40 and more in systemNamespaces only."
        ),
    )
