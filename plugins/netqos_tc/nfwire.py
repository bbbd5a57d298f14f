"""Our nft table as the kernel has it: its chains and rules read, its elements read and written. Pure.

Layouts are those of include/uapi/linux/netfilter/{nfnetlink,nf_tables}.h. The table itself is made from text through
libnftables (`classify`). Elements are not, since the library knows a cgroup only by its path: it cannot delete one
whose folder is gone, looks below /sys/fs/cgroup whatever is mounted elsewhere, and a listing searches there for the
number and finds another file of the same number where hierarchies of version 1 are mounted too. The kernel's own
messages are exact, name the element that is refused, and read 500 elements in 1 ms.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from netqos_tc import netmsg
from netqos_tc.keys import ElementKey, ElementMap
from netqos_tc.netmsg import Message, Request, attribute, attributes, each_attribute, string
from netqos_tc.numbers import KINDS, minor_of
from netqos_tc.spec import ChainSpec, ElementSpec, RuleSpec, element

TABLE: Final = "netqos"
RULES_MAP: Final = "rules"
"""The map from the classes of leaves to the chains with their workloads' rules."""

SET_NAME: Final = "s[0-9a-f]{16}"
"""What the names of sets that workloads' rules look up are like (`rulematch`)."""

_SUBSYSTEM: Final = 10 << 8
_SUBSYSTEM_IN_NETWORK_ORDER: Final = struct.unpack("=H", struct.pack(">H", 10))[0]
_INET: Final = 1
_GENMSG: Final = struct.Struct("=BBH")

_GETTABLE: Final = _SUBSYSTEM | 1
_GETCHAIN: Final = _SUBSYSTEM | 4
_GETRULE: Final = _SUBSYSTEM | 7
_GETSET: Final = _SUBSYSTEM | 10
_NEWSETELEM: Final = _SUBSYSTEM | 12
_GETSETELEM: Final = _SUBSYSTEM | 13
_DELSETELEM: Final = _SUBSYSTEM | 14
_GETGEN: Final = _SUBSYSTEM | 16
_BATCH_BEGIN: Final = 16
_BATCH_END: Final = 17

_NAME_OF_TABLE: Final = 1  # the first attribute of all of them
_CHAIN_NAME: Final = 3
_CHAIN_HOOK: Final = 4
_CHAIN_POLICY: Final = 5
_TABLE_FLAGS: Final = 2
_DORMANT: Final = 1
_RULE_CHAIN: Final = 2
_RULE_EXPRESSIONS: Final = 4
_RULE_USERDATA: Final = 7
_SET_NAME: Final = 2
_LIST_SET: Final = 2
_LIST_ELEMENTS: Final = 3
_LIST_ELEMENT: Final = 1
_ELEMENT_KEY: Final = 1
_ELEMENT_DATA: Final = 2
_ELEMENT_USERDATA: Final = 6
_DATA_VALUE: Final = 1
_DATA_VERDICT: Final = 2
_VERDICT_CHAIN: Final = 2
_GENERATION: Final = 1
_LOOKED_UP: Final = re.compile(re.escape(struct.pack("=HH", 22, 1)) + f"({SET_NAME})\0".encode())
"""NFTA_LOOKUP_SET, the first attribute of a lookup expression, with such a name."""
_COMMENT: Final = 0  # NFTNL_UDATA_RULE_COMMENT and NFTNL_UDATA_SET_ELEM_COMMENT of libnftnl


def get_generation() -> Request:
    """The number of the ruleset's last change in this namespace."""
    return Request(_GETGEN, 0, _GENMSG.pack(0, 0, 0))


def get_table() -> Request:
    """Our table itself; ENOENT where it is not there."""
    return Request(_GETTABLE, 0, _of_table())


def dump_chains() -> Request:
    """All chains of the family inet."""
    return Request(_GETCHAIN, netmsg.DUMP, _GENMSG.pack(_INET, 0, 0))


def dump_rules(chain: str = "") -> Request:
    """The rules of our table, or of one chain of it, in their order; none where that is not there."""
    return Request(_GETRULE, netmsg.DUMP, _of_table() + (string(_RULE_CHAIN, chain) if chain else b""))


def dump_maps() -> Request:
    """The maps of our table."""
    return Request(_GETSET, netmsg.DUMP, _of_table())


def dump_elements(which: ElementMap) -> Request:
    """The elements of one map; ENOENT where it is not there."""
    return Request(_GETSETELEM, netmsg.DUMP, _of_table() + string(_LIST_SET, which.value))


def dump_leads() -> Request:
    """The elements of the map that leads to workloads' chains; ENOENT where it is not there."""
    return Request(_GETSETELEM, netmsg.DUMP, _of_table() + string(_LIST_SET, RULES_MAP))


def batch_begin() -> Request:
    """Opens a transaction; what follows up to `batch_end` happens at once, or not at all."""
    return Request(_BATCH_BEGIN, 0, _GENMSG.pack(0, 0, _SUBSYSTEM_IN_NETWORK_ORDER))


def batch_end() -> Request:
    """Closes a transaction."""
    return Request(_BATCH_END, 0, _GENMSG.pack(0, 0, _SUBSYSTEM_IN_NETWORK_ORDER))


def add_element(key: ElementKey, spec: ElementSpec) -> Request:
    """Add an element; EBUSY where it is there with another class."""
    target = KINDS[key.map.direction].class_id(spec.minor)
    content = _element_key(key)
    content += _nested(_ELEMENT_DATA, attribute(_DATA_VALUE, struct.pack("=I", target)))
    owner = spec.owner.encode() + b"\0"
    content += attribute(_ELEMENT_USERDATA, bytes((_COMMENT, len(owner))) + owner)
    return Request(_NEWSETELEM, netmsg.CREATE, _element_list(key, content))


def delete_element(key: ElementKey) -> Request:
    """Delete an element; ENOENT where it is not there."""
    return Request(_DELSETELEM, 0, _element_list(key, _element_key(key)))


def read_generation(message: Message) -> int:
    """The generation number."""
    return int(struct.unpack(">I", _parts(message)[_GENERATION])[0])


def read_chain(message: Message) -> ChainSpec | None:
    """A chain of our table, None for one of another table."""
    parts = _parts(message)
    if _text(parts[_NAME_OF_TABLE]) != TABLE:
        return None
    hook = attributes(parts.get(_CHAIN_HOOK, b""))
    number, priority = (struct.unpack(">i", hook[kind])[0] if kind in hook else -1 for kind in (1, 2))
    policy = struct.unpack(">i", parts[_CHAIN_POLICY])[0] if _CHAIN_POLICY in parts else -1
    return ChainSpec(name=_text(parts[_CHAIN_NAME]), hook=number, priority=priority, policy=policy)


def is_dormant(message: Message) -> bool:
    """Whether a table is switched off."""
    flags = _parts(message).get(_TABLE_FLAGS)
    return flags is not None and bool(struct.unpack(">I", flags)[0] & _DORMANT)


def read_rule(message: Message) -> tuple[RuleSpec, bytes]:
    """A rule by its comment, empty for one that is not ours, and what it does as the kernel writes it.

    With the sets of workloads' rules that it looks up.
    """
    parts = _parts(message)
    expressions = parts.get(_RULE_EXPRESSIONS, b"")
    rule = RuleSpec(
        chain=_text(parts[_RULE_CHAIN]),
        comment=_comment(parts.get(_RULE_USERDATA, b"")),
        sets=tuple(map(_text, _LOOKED_UP.findall(expressions))),
    )
    return rule, expressions


def read_map_name(message: Message) -> str:
    """The name of a set or map."""
    return _text(_parts(message)[_SET_NAME])


def read_elements(message: Message) -> list[tuple[ElementKey, ElementSpec]]:
    """Some of a map's elements."""
    parts = _parts(message)
    which = ElementMap(_text(parts[_LIST_SET]))
    found = []
    for _kind, raw in each_attribute(parts.get(_LIST_ELEMENTS, b"")):
        met = attributes(raw)
        value = attributes(met[_ELEMENT_KEY])[_DATA_VALUE]
        (target,) = struct.unpack("=I", attributes(met[_ELEMENT_DATA])[_DATA_VALUE])
        spec = element(minor_of(target), _comment(met.get(_ELEMENT_USERDATA, b"")))
        found.append((ElementKey(which, _key(which, value)), spec))
    return found


def read_leads(message: Message) -> list[tuple[int, str, str]]:
    """Some elements of the map to chains: the full id of a class, the chain, and the comment."""
    found = []
    for _kind, raw in each_attribute(_parts(message).get(_LIST_ELEMENTS, b"")):
        element = attributes(raw)
        (source,) = struct.unpack("=I", attributes(element[_ELEMENT_KEY])[_DATA_VALUE])
        verdict = attributes(attributes(element[_ELEMENT_DATA]).get(_DATA_VERDICT, b""))
        chain = _text(verdict.get(_VERDICT_CHAIN, b""))
        found.append((int(source), chain, _comment(element.get(_ELEMENT_USERDATA, b""))))
    return found


def _element_list(key: ElementKey, content: bytes) -> bytes:
    elements = _nested(_LIST_ELEMENTS, _nested(_LIST_ELEMENT, content))
    return _of_table() + string(_LIST_SET, key.map.value) + elements


def _element_key(key: ElementKey) -> bytes:
    value = (
        ipaddress.ip_address(key.value).packed if isinstance(key.value, str) else struct.pack("=Q", key.value)
    )
    return _nested(_ELEMENT_KEY, attribute(_DATA_VALUE, value))


def _nested(kind: int, content: bytes) -> bytes:
    return attribute(kind | netmsg.NESTED, content)


def _of_table() -> bytes:
    return _GENMSG.pack(_INET, 0, 0) + string(_NAME_OF_TABLE, TABLE)


def _parts(message: Message) -> Mapping[int, bytes]:
    return attributes(message.body, _GENMSG.size)


@lru_cache(maxsize=4096)
def _key(which: ElementMap, value: bytes) -> str | int:
    """An address as text, a cgroup as its number (host order)."""
    if which.depth is None:
        return str(ipaddress.ip_address(value))
    return int(struct.unpack("=Q", value)[0])


def _comment(userdata: bytes) -> str:
    """The comment in a libnftnl user data area: type, length and value, one byte each for the first two."""
    offset = 0
    while offset + 2 <= len(userdata):
        kind, length = userdata[offset], userdata[offset + 1]
        if kind == _COMMENT:
            return _text(userdata[offset + 2 : offset + 2 + length])
        offset += 2 + length
    return ""


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")
