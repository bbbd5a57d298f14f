"""The commands of nft that make our table, mend it, and take it away. Pure; what is in it is `classify`'s."""

from __future__ import annotations

import re
from typing import Final

from netqos_tc.classify import (
    CHAINS,
    begins_at,
    has_cgroups,
    has_net_classes,
    has_sources,
    is_ruled,
    maps,
    rules,
)
from netqos_tc.keys import ADDRESS_MAPS
from netqos_tc.nfwire import RULES_MAP, TABLE
from netqos_tc.spec import TableSpec

PROBE_TABLE: Final = "netqos_probe"

_PLAIN_CHAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_KEY_TYPES: Final = {
    one: "ipv4_addr" if version == 4 else "ipv6_addr" for (_way, version), one in ADDRESS_MAPS.items()
}


def text_of(spec: TableSpec) -> str:
    """The commands that make a table of ours."""
    return setup_text(
        cgroups=has_cgroups(spec),
        begins_at=begins_at(spec),
        sources=has_sources(spec),
        net_classes=has_net_classes(spec),
        ruled=is_ruled(spec),
    )


def repair_text(met: TableSpec, after: TableSpec) -> str:
    """The commands, one transaction, that put the rest of a table right; maps that are there keep their elements.

    Chains that are not ours, or are under another hook, priority or policy, go, and so do maps of an earlier run that
    have no rule any more. Whoever gave a chain a name that is no plain word gets the whole table made anew, since names
    of others are not to be read as commands.
    """
    names = sorted(chain.name for chain in met.chains)
    wrong = sorted(chain.name for chain in met.chains - after.chains)
    unused = [f"delete map inet {TABLE} {name}\n" for name in sorted(met.maps - after.maps)]
    text = text_of(after)
    if not all(map(_PLAIN_CHAIN.fullmatch, names)):
        return removal_text() + text
    emptied = [f"flush chain inet {TABLE} {name}\n" for name in names]
    gone = [f"delete chain inet {TABLE} {name}\n" for name in wrong]
    return "".join([*emptied, *gone, *unused, text])


def setup_text(
    *,
    cgroups: bool,
    begins_at: int = 0,
    sources: bool = True,
    net_classes: bool = False,
    ruled: bool = False,
    table: str = TABLE,
) -> str:
    """The commands that make the table; maps that are there keep their elements."""
    lines = [f"add table inet {table}"]
    for one in maps(cgroups=cgroups):
        key_type = _KEY_TYPES.get(one, "cgroupsv2")
        lines.append(f"add map inet {table} {one.value} {{ type {key_type} : classid; }}")
    lines.append(f"add map inet {table} {RULES_MAP} {{ type classid : verdict; }}")
    for chain, made in CHAINS.items():
        base = (
            f" {{ type filter hook {chain} priority {made.priority}; policy accept; }}"
            if made.hook >= 0
            else ""
        )
        lines += [f"add chain inet {table} {chain}{base}", f"flush chain inet {table} {chain}"]
    texts = rules(cgroups=cgroups, begins_at=begins_at, sources=sources, net_classes=net_classes, ruled=ruled)
    for chain, name, text in texts:
        lines.append(f'add rule inet {table} {chain} {text} comment "{name}"')
    return "\n".join(lines) + "\n"


def removal_text(table: str = TABLE) -> str:
    """The command that removes the table with all that is in it."""
    return f"delete table inet {table}\n"


def probe_text(*, cgroups: bool, sources: bool = False) -> str:
    """What the kernel takes where the table could be made, of a table with another name."""
    return setup_text(cgroups=cgroups, sources=sources, table=PROBE_TABLE)
