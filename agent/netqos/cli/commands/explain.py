"""netqosctl explain: why a pod has what it has, from the inputs to what the kernel counts."""

from __future__ import annotations

from netqos.cli.client import Json
from netqos.cli.commands.common import Call, show_findings, tell
from netqos.cli.commands.pods import full_name
from netqos.cli.render import Column, Screen, Span
from netqos.cli.units import count, rate, size, span

VERDICT_STYLE = {"used": "good", "rejected": "bad", "shadowed": "dim", "absent": "dim"}
WAYS = {"tx": "egress", "rx": "ingress"}
CHOICES = (
    Column(head="verdict"),
    Column(head="input"),
    Column(head="value", flexible=True),
    Column(head="because", flexible=True, wraps=True),
)
ENFORCED = (
    Column(head="what"),
    Column(head="direction"),
    Column(head="enforced"),
    Column(head="because", flexible=True, wraps=True),
)
NOW = (
    Column(head="device"),
    Column(head="direction"),
    Column(head="rate", right=True),
    Column(head="waits"),
    Column(head="guarantee", right=True),
    Column(head="ceiling", right=True),
)
COUNTERS = (
    Column(head="direction"),
    Column(head="rule", right=True),
    Column(head="sent", right=True),
    Column(head="packets", right=True),
    Column(head="dropped", right=True),
    Column(head="waiting", right=True),
    Column(head="counted by", flexible=True),
)
RULES = (
    Column(head="direction"),
    Column(head="rule", right=True),
    Column(head="matches", flexible=True, wraps=True),
    Column(head="level"),
    Column(head="dscp", right=True),
    Column(head="minimum", right=True),
    Column(head="maximum", right=True),
    Column(head="not enforced", flexible=True, wraps=True),
)


def run(call: Call) -> int:
    """Explain one pod."""
    return tell(call, "explain", call.client.get("/v1/explain", pod=call.arguments.pod), show)


def show(screen: Screen, answer: Json) -> None:
    """The explanation for people."""
    pod = answer["pod"]
    screen.prose(Span(full_name(pod), "head"), f"  {pod['level']}  uid {pod['uid']}", hang=2)
    addresses = ", ".join(pod["addresses"]) or "none"
    screen.prose(f"  addresses {addresses}, cgroup {pod['cgroup'] or 'unknown'}", hang=4)
    if answer["override"] is not None:
        _show_override(screen, answer["override"])
    _section(screen, f"level {pod['level']} from {pod['level_source']}")
    screen.table(CHOICES, [_choice(one) for one in answer["choices"]["level"]], indent=2)
    for word in ("egress", "ingress"):
        limit = pod["limits"][word]
        told = f"{rate(limit['bps'])} from {limit['source']}" if limit["bps"] else "none"
        _section(screen, f"{word} limit {told}")
        screen.table(CHOICES, [_choice(one) for one in answer["choices"][word]], indent=2)
    _tables(screen, answer)
    show_findings(screen, answer["findings"])


def _tables(screen: Screen, answer: Json) -> None:
    if answer["rules"]:
        _section(screen, "rules")
        screen.table(RULES, [_rule(one) for one in answer["rules"]], indent=2)
    _section(screen, "enforcement")
    screen.table(ENFORCED, [_enforced(one) for one in answer["enforcement"]], indent=2)
    screen.prose("  ", Span(f"of {answer['scope']}", "dim"), hang=2)
    if answer["now"]:
        _section(screen, f"level {answer['pod']['level']} now")
        screen.table(NOW, [_now(one) for one in answer["now"]], indent=2)
        for one in answer["now"]:
            screen.prose("  ", Span(one["device"], "head"), "  ", one["reason_text"], hang=4)
    if answer["pod"]["counters"]:
        _section(screen, "counters")
        screen.table(COUNTERS, [_counter(one) for one in answer["pod"]["counters"]], indent=2)
    if answer["paths"]:
        _section(screen, "path on this node")
        for one in answer["paths"]:
            _show_path(screen, one)


def _section(screen: Screen, head: str) -> None:
    screen.line()
    screen.prose(Span(head, "head"), hang=2)


def _show_override(screen: Screen, override: Json) -> None:
    reason = f": {override['reason']}" if override["reason"] else ""
    left = span(override["expires_in_s"])
    told = f"overridden for {left} more by uid {override['author_uid']}"
    screen.prose("  ", Span(told, "warn"), reason, hang=4)


def _choice(choice: Json) -> list[Span | str]:
    verdict = Span(choice["verdict"], VERDICT_STYLE.get(choice["verdict"], ""))
    return [verdict, choice["source"], choice["value"], choice["reason"]]


def _enforced(one: Json) -> list[Span | str]:
    verdict = Span(f"by {', '.join(one['by'])}", "good") if one["enforced"] else Span("no", "warn")
    return [one["what"], one["direction"], verdict, one["reason"]]


def _now(one: Json) -> list[Span | str]:
    return [
        one["device"],
        one["direction"],
        rate(one["rate_bps"]),
        Span("yes", "warn") if one["backlogged"] else "",
        rate(one["guarantee_bps"]),
        rate(one["ceiling_bps"]),
    ]


def _counter(one: Json) -> list[Span | str]:
    return [
        WAYS[one["direction"]],
        "-" if one["rule"] is None else str(one["rule"]),
        size(one["sent_bytes"]),
        str(one["sent_packets"]),
        Span(str(one["drops"]), "warn" if one["drops"] else ""),
        size(one["backlog_bytes"]),
        one["where"],
    ]


def _show_path(screen: Screen, path: Json) -> None:
    """The steps, what knows the packets, and whether any went this way."""
    screen.prose(f"  {path['direction']:<8} ", " -> ".join(path["steps"]), hang=13)
    known = f"known by {', '.join(path['claims'])}; " if path["claims"] else "nothing leads here; "
    screen.prose(" " * 11, Span(known, "dim"), _use(path), hang=13)


def _use(path: Json) -> Span:
    moved = path["moved"]
    if not path["used"]:
        return Span("no packet yet", "warn")
    if moved is None:
        return Span("used", "good")
    drops = f", {count(moved['drops'], 'packet')} dropped" if moved["drops"] else ""
    what = f"{size(moved['sent_bytes'])} in {count(moved['sent_packets'], 'packet')}{drops}"
    style = "good" if moved["sent_packets"] else "dim"
    return Span(f"{what} since the last look {span(moved['seconds'])} ago", style)


def _rule(one: Json) -> list[Span | str]:
    dscp = "-" if one["dscp"] is None else str(one["dscp"])
    return [
        one["direction"],
        str(one["number"]),
        " and ".join(one["matches"]) or "everything",
        one["level"] or "-",
        dscp,
        rate(one["minimum_bps"]),
        rate(one["maximum_bps"]),
        Span(one["not_enforced"], "warn"),
    ]
