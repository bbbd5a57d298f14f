"""Rules inside workloads as nft text, by whole values and against a model of what a packet meets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.model.levels import Direction
from netqos.model.rules import IpMatch, Match, PortMatch, PortRange, Protocol, Rule
from netqos_tc import podrules, rulematch
from netqos_tc.keys import RulesKey, SetKey
from netqos_tc.nfwire import RULES_MAP
from netqos_tc.spec import ChainSpec, RuleSpec, RulesSpec, SetSpec

TX, RX = Direction.TX, Direction.RX
KEY = RulesKey(TX, 0x1001)
WEB_PORTS = PortMatch(
    ranges=(PortRange(low=80, high=80), PortRange(low=8000, high=8100)), protocol=Protocol.TCP
)


def texts(*items: tuple[Rule, int], way: Direction = TX) -> tuple[str, ...]:
    return podrules.rules_spec(way, "uid", items, is_addressed=False).texts


def plain_texts(*items: tuple[Rule, int], way: Direction) -> tuple[str, ...]:
    """With the values of each set in the place of its name."""
    spec = podrules.rules_spec(way, "uid", items, is_addressed=False)
    known = {
        f"@{key.name}": f"{{ {', '.join(one.values)} }}"
        for key, one in podrules.sets_of([spec]).items()
        if isinstance(key, SetKey) and isinstance(one, SetSpec)
    }
    return tuple(" ".join(known.get(word, word) for word in text.split()) for text in spec.texts)


# ---------------------------------------------------------------- whole values


@pytest.mark.parametrize(
    ("rule", "minor", "way", "wanted"),
    [
        (Rule(matches=(IpMatch(),)), 0, TX, ["return"]),
        (Rule(matches=()), 0x1002, RX, ["meta priority set 4e52:1002 return"]),
        (
            Rule(matches=(WEB_PORTS,)),
            0x1002,
            TX,
            [
                "meta l4proto tcp th dport 80 meta priority set 4e51:1002 return",
                "meta l4proto tcp th dport 8000-8100 meta priority set 4e51:1002 return",
            ],
        ),
        (
            Rule(matches=(PortMatch(ranges=(PortRange(low=53, high=53),)),), dscp=46),
            0,
            RX,
            [
                f"meta nfproto ipv{version} meta l4proto {protocol} th sport 53 {ip} dscp set 46 return"
                for version, ip in ((4, "ip"), (6, "ip6"))
                for protocol in ("tcp", "udp")
            ],
        ),
        (
            Rule(matches=(IpMatch(networks=("10.0.0.0/9", "10.128.0.0/9", "192.0.2.7/32", "fd00::/8")),)),
            0,
            TX,
            ["ip daddr 10.0.0.0/8 return", "ip daddr 192.0.2.7 return", "ip6 daddr fd00::/8 return"],
        ),
        (Rule(matches=(IpMatch(networks=("0.0.0.0/0",)),)), 0, RX, ["meta nfproto ipv4 return"]),
        (
            Rule(
                matches=(
                    PortMatch(
                        ranges=tuple(PortRange(low=one, high=one) for one in (82, 80, 81, 84)),
                        protocol=Protocol.UDP,
                    ),
                )
            ),
            0,
            TX,
            ["meta l4proto udp th dport 80-82 return", "meta l4proto udp th dport 84 return"],
        ),
        (Rule(matches=(PortMatch(ranges=()),)), 0x1002, TX, []),
        (
            Rule(matches=(PortMatch(ranges=(PortRange(low=0, high=80), PortRange(low=81, high=65535))),)),
            0,
            TX,
            ["meta l4proto tcp return", "meta l4proto udp return"],
        ),
        (Rule(matches=(IpMatch(networks=("10.0.0.0/8",)), IpMatch(networks=("fd00::/8",)))), 0x1002, TX, []),
    ],
)
def test_an_item_in_nfts_words(rule: Rule, minor: int, way: Direction, wanted: list[str]) -> None:
    assert list(texts((rule, minor), way=way)) == wanted


LISTS = Rule(
    matches=(
        IpMatch(networks=("10.1.0.0/16", "10.2.0.0/16", "10.4.0.0/16")),
        PortMatch(ranges=tuple(PortRange(low=one, high=one) for one in (22, 80, 443))),
    )
)


def test_long_lists_are_sets_whose_names_say_their_values() -> None:
    spec = podrules.rules_spec(TX, "uid", [(LISTS, 0)], is_addressed=False)
    made = {key.name: rulematch.set_text(key, one) for key, one in spec.sets.items()}
    networks, protocols, ports = made
    assert spec.texts == (f"ip daddr @{networks} meta l4proto @{protocols} th dport @{ports} return",)
    assert [text.partition(" { ")[2] for text in made.values()] == [
        "type ipv4_addr; flags constant, interval; elements = { 10.1.0.0/16, 10.2.0.0/16, 10.4.0.0/16 }; }\n",
        "type inet_proto; flags constant; elements = { tcp, udp }; }\n",
        "type inet_service; flags constant; elements = { 22, 80, 443 }; }\n",
    ]
    assert all(map(rulematch.is_set, made))
    assert not any(map(rulematch.is_set, ("__set1", "tx4", "s123", "sABCDEF0123456789")))
    other = podrules.rules_spec(RX, "other", [(replace(LISTS, dscp=10), 0x1002)], is_addressed=True)
    assert other.sets == spec.sets
    longer = replace(
        LISTS, matches=(LISTS.matches[0], PortMatch(ranges=tuple(map(one_port, range(1, 9, 2)))))
    )
    assert (
        len(spec.sets.keys() & podrules.rules_spec(TX, "uid", [(longer, 0)], is_addressed=False).sets.keys())
        == 2
    )


def one_port(port: int) -> PortRange:
    return PortRange(low=port, high=port)


def test_what_is_outside_of_a_tunnel_is_left_alone() -> None:
    spec = podrules.rules_spec(TX, "uid", [(Rule(matches=()), 0)], is_addressed=True)
    assert spec.texts == ("fib saddr type local return", "return")
    assert podrules.rules_spec(RX, "uid", [(Rule(matches=()), 0)], is_addressed=True).texts == ("return",)


def test_comments_tell_item_class_and_text() -> None:
    rules = [(Rule(matches=(WEB_PORTS,)), 0x1002), (Rule(matches=(), dscp=10), 0), (Rule(matches=()), 0xFFFE)]
    spec = podrules.rules_spec(TX, "uid", rules, is_addressed=True)
    assert list(podrules.classes(spec)) == [(0, 0x1002), (0, 0x1002), (2, 0xFFFE)]
    assert not any(map(podrules.is_foreign, spec.comments))
    assert podrules.is_foreign("")
    other = podrules.rules_spec(TX, "uid", [(Rule(matches=(WEB_PORTS,), dscp=1), 0x1002)], is_addressed=True)
    assert not {*spec.comments[1:]} & {*other.comments[1:]}
    assert all(len(one.encode()) < 128 for one in spec.comments)


def test_a_change_is_one_transaction_and_touches_what_leads_there_only_where_that_is_wrong() -> None:
    old = podrules.rules_spec(TX, "uid", [(Rule(matches=()), 0)], is_addressed=False)
    new = podrules.rules_spec(TX, "uid", [(Rule(matches=()), 0x1002)], is_addressed=False)
    begin = "add chain inet netqos r1001tx\nflush chain inet netqos r1001tx\n"
    rule = f'add rule inet netqos r1001tx meta priority set 4e51:1002 return comment "{new.comments[0]}"\n'
    lead = f'add element inet netqos {RULES_MAP} {{ 4e51:1001 comment "uid" : jump r1001tx }}\n'
    gone = f"delete element inet netqos {RULES_MAP} {{ 4e51:1001 }}\n"
    assert podrules.change_text(KEY, None, new) == begin + rule + lead
    assert podrules.change_text(KEY, old, new) == begin + rule
    assert podrules.change_text(KEY, RulesSpec(owner="", comments=()), new) == begin + rule + lead
    astray = RulesSpec(owner="to r1fffrx", comments=())
    assert podrules.change_text(KEY, astray, new) == begin + gone + rule + lead
    assert podrules.change_text(KEY, old, None) == begin + gone + "delete chain inet netqos r1001tx\n"


@given(st.text(alphabet=st.characters(codec="ascii"), min_size=1, max_size=120))
def test_no_owner_is_read_as_a_command(owner: str) -> None:
    spec = podrules.rules_spec(TX, owner, [], is_addressed=False)
    (line,) = [one for one in podrules.change_text(KEY, None, spec).splitlines() if "element" in one]
    _, quoted, rest = line.split('"')
    assert (quoted, rest) == (spec.owner, " : jump r1001tx }")
    assert all(one.isalnum() or one in ":._/-" for one in quoted)


def test_chains_and_what_leads_to_them_are_read_together() -> None:
    own, base = (
        ChainSpec(name="r1001tx", hook=-1, priority=-1, policy=-1),
        ChainSpec(name="r1002tx", hook=4, priority=0),
    )
    foreign = ChainSpec(name="mine", hook=-1, priority=-1, policy=-1)
    assert podrules.chains_of([own, base, foreign]) == {own}
    rules = [
        RuleSpec(chain="r1001tx", comment="netqos 1 0 1002 0123456789abcdef"),
        RuleSpec(chain="output", comment="x"),
        RuleSpec(chain="r1001tx", comment=""),
    ]
    leads = [(0x4E511001, "r1001tx", "uid"), (0x4E521001, "r1001tx", "uid"), (0x10001, "r1001tx", "")]
    assert podrules.read([own], rules, leads) == {
        KEY: RulesSpec(owner="uid", comments=("netqos 1 0 1002 0123456789abcdef", "")),
        RulesKey(RX, 0x1001): RulesSpec(owner="to r1001tx", comments=()),
    }


@pytest.mark.parametrize("name", ["r1001", "r1001up", "r01001tx", "R1001tx", "rtx", "r10frx", "postrouting"])
def test_other_chains_are_nobodys(name: str) -> None:
    assert podrules.key_of(name) is None


# ---------------------------------------------------------------- for any rules


@dataclass(frozen=True, slots=True)
class Packet:
    """What rules look at: the other side's address and port. Protocols without ports have some bytes there too."""

    remote: str
    protocol: str
    port: int

    @property
    def version(self) -> int:
        return ip_address(self.remote).version


NETWORKS = st.sampled_from(
    [
        "10.0.0.0/8",
        "10.1.0.0/16",
        "10.1.2.3/32",
        "0.0.0.0/0",
        "fd00::/8",
        "fd00::7/128",
        "::/0",
        "192.0.2.0/25",
    ]
)
ADDRESSES = st.sampled_from(
    ["10.0.0.1", "10.1.2.3", "192.0.2.9", "192.0.2.200", "fd00::7", "fd00::8", "2001:db8::1"]
)
PORTS = st.sampled_from([0, 1, 79, 80, 81, 65535])


@st.composite
def port_ranges(draw: st.DrawFn) -> PortRange:
    low, high = sorted((draw(PORTS), draw(PORTS)))
    return PortRange(low=low, high=high)


MATCHES: st.SearchStrategy[Match] = st.builds(
    lambda some: IpMatch(networks=tuple(some)), st.lists(NETWORKS, max_size=4)
) | st.builds(
    lambda some, protocol: PortMatch(ranges=tuple(some), protocol=protocol),
    st.lists(port_ranges(), max_size=4),
    st.none() | st.sampled_from(Protocol),
)
RULES = st.builds(
    lambda some, dscp: Rule(matches=tuple(some), dscp=dscp),
    st.lists(MATCHES, max_size=3),
    st.none() | st.integers(0, 63),
)
PACKETS = st.builds(Packet, ADDRESSES, st.sampled_from(["tcp", "udp", "icmp", "sctp"]), PORTS)


def holds(match: Match, packet: Packet) -> bool:
    if isinstance(match, IpMatch):
        remote = ip_address(packet.remote)
        return not match.networks or any(remote in ip_network(one) for one in match.networks)
    protocols = {"tcp", "udp"} if match.protocol is None else {match.protocol.value}
    return packet.protocol in protocols and any(one.low <= packet.port <= one.high for one in match.ranges)


@given(st.lists(RULES, max_size=5), PACKETS, st.sampled_from(Direction))
def test_the_first_item_that_matches_decides(rules: list[Rule], packet: Packet, way: Direction) -> None:
    items = [(rule, 0x1001 + number) for number, rule in enumerate(rules)]
    first = next((one for one in items if all(holds(match, packet) for match in one[0].matches)), None)
    wanted = (None, None) if first is None else (f"{0x1001 + items.index(first):x}", first[0].dscp)
    assert met(plain_texts(*items, way=way), packet, way) == wanted


def met(lines: tuple[str, ...], packet: Packet, way: Direction) -> tuple[str | None, int | None]:
    """What becomes of a packet in a chain: the minor of its class, and its code point."""
    for line in lines:
        words = iter(line.split())
        minor, dscp = None, None
        for field in words:
            if field == "return":
                return minor, dscp
            kind = next(words)
            if kind == "dscp":
                next(words)
                dscp = int(next(words))
                assert field == {4: "ip", 6: "ip6"}[packet.version]
            elif kind == "priority":
                next(words)
                minor = next(words).partition(":")[2]
            elif not matches(f"{field} {kind}", list(values(words)), packet, way):
                break
    return None, None


def values(words: Iterator[str]) -> Iterator[str]:
    first = next(words)
    if first != "{":
        yield first
        return
    for word in words:
        if word == "}":
            return
        yield word.removesuffix(",")


def matches(field: str, known: list[str], packet: Packet, way: Direction) -> bool:
    """One test of an nft rule."""
    address, port = ("daddr", "dport") if way is TX else ("saddr", "sport")
    if field == "meta nfproto":
        return known == [f"ipv{packet.version}"]
    if field == "meta l4proto":
        return packet.protocol in known
    if field in {f"ip {address}", f"ip6 {address}"}:
        is_own = field == f"{ {4: 'ip', 6: 'ip6'}[packet.version] } {address}"
        return is_own and any(ip_address(packet.remote) in ip_network(one) for one in known)
    assert field == f"th {port}"
    bounds = [one.partition("-") for one in known]
    return any(int(low) <= packet.port <= int(high or low) for low, _, high in bounds)
