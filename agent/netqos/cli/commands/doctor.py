"""netqosctl doctor: what this host can do, and what is in the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from netqos.cli.commands.common import DONE, FAILED, Call
from netqos.cli.doctor import daemon, host, network, others, scheduling
from netqos.cli.doctor.check import Check, Host, Verdict, unknown
from netqos.cli.local import quiet_log
from netqos.cli.render import Screen, Span

STYLES = {Verdict.OK: "good", Verdict.WARN: "warn", Verdict.FAIL: "bad", Verdict.UNKNOWN: "dim"}


def run(call: Call) -> int:
    """Check everything; failed when a promise cannot be kept here."""
    with quiet_log():
        checks = examine(call, Host())
    failed = any(one.verdict is Verdict.FAIL for one in checks)
    if call.wants_json:
        listed = [
            {"name": one.name, "verdict": one.verdict.value, "text": one.text, "hint": one.hint}
            for one in checks
        ]
        call.screen.json("doctor", {"ok": not failed, "checks": listed})
    else:
        show(call.screen, checks)
    return FAILED if failed else DONE


def examine(call: Call, where: Host) -> list[Check]:
    """All checks in their order; one that stumbles says so and the others go on."""
    checks, settings = daemon.configuration(call.arguments.config)
    checks = [*host.versions(where), *checks]
    found, links = network.uplinks(settings)
    steps: list[tuple[str, Callable[[], list[Check]]]] = [
        ("daemon", lambda: daemon.daemon(call.client)),
        ("scheduling", lambda: scheduling.scheduling(call.client.path)),
        ("rights", lambda: host.rights(where)),
        ("user namespaces", lambda: host.user_namespaces(where)),
        ("kernel options", lambda: host.kernel_options(where)),
        ("cgroups", lambda: host.cgroups(where, Path(settings.paths.cgroup))),
        ("uplinks", lambda: found),
        ("backends", lambda: daemon.backends(settings, links)),
        ("qdiscs", lambda: network.qdiscs(where)),
        ("neighbours", lambda: network.neighbours(links)),
        ("nft tables", lambda: network.nft_tables(where)),
        ("rp_filter", lambda: network.source_checks(where)),
        ("other agents", lambda: others.others(where)),
    ]
    for name, step in steps:
        checks += _attempt(name, step)
    return checks


def _attempt(name: str, step: Callable[[], list[Check]]) -> list[Check]:
    try:
        return step()
    except Exception as problem:  # noqa: BLE001 - a check that stumbles over this host must not hide the others
        return [unknown(name, f"the check stumbled: {type(problem).__name__}: {problem}", "please report it")]


def show(screen: Screen, checks: list[Check]) -> None:
    """One paragraph for each check, its next step below it."""
    width = max(len(one.name) for one in checks)
    for one in checks:
        verdict = Span(f"{one.verdict.value:7}", STYLES[one.verdict])
        screen.prose(verdict, f" {one.name:{width}}  {one.text}", hang=width + 10)
        if one.hint:
            screen.prose(" " * (width + 10), Span(f"-> {one.hint}", "dim"), hang=width + 13)
    totals = {verdict: sum(one.verdict is verdict for one in checks) for verdict in Verdict}
    screen.line()
    screen.line(", ".join(f"{number} {verdict.value}" for verdict, number in totals.items() if number))
