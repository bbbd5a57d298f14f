"""The configuration, the daemon, and what its backends can do here."""

from __future__ import annotations

import asyncio

import netqos
from netqos.backend import Backend, Capabilities
from netqos.cli.arguments import CONFIG
from netqos.cli.client import InputRejected, Problem, StatusClient
from netqos.cli.doctor.check import Check, fail, of_findings, ok, warn
from netqos.cli.local import NoSuchFile, all_backends, load_settings
from netqos.cli.units import count
from netqos.errors import NetqosError
from netqos.host.links import LinkReport
from netqos.model.desired import Band, DesiredDirection, DesiredState, DesiredUplink
from netqos.model.levels import Direction, PerDirection, PerLevel
from netqos.runtime.published import NAME
from netqos.settings.values import Settings

PROBE_S = 10.0
ASSUMED_BPS = 1_000_000_000


def configuration(given: str | None) -> tuple[list[Check], Settings]:
    """Whether it is right; the defaults go on where it is not. `NoSuchFile` where the one that was named is missing."""
    path = given or CONFIG
    try:
        settings, note = load_settings(given)
    except NoSuchFile:
        raise
    except InputRejected as problem:
        checks = [fail("configuration", one) for one in problem.problems]
        hint = f"netqosd --check-config --config {path}"
        return [*checks, fail("configuration", problem.message, hint)], Settings()
    if note:
        hint = "every key is explained in the source's systemd/netqos.yaml"
        return [warn("configuration", note, hint)], settings
    return [ok("configuration", f"{path} is right")], settings


def daemon(client: StatusClient) -> list[Check]:
    """Whether it answers, and what it says of itself."""
    try:
        status = client.get("/v1/status")
        version, ready = str(status["version"]), status["ready"] is True
        errors = [one for one in status["findings"] if one["severity"] == "error"]
    except Problem as problem:
        return [warn("daemon", problem.message, problem.hint)]
    except (KeyError, TypeError):
        return [fail("daemon", f"what answers at {client.path} is not netqosd")]
    checks = [ok("daemon", f"netqosd {version} answers at {client.path}")]
    if version != netqos.__version__:
        checks.append(
            warn(
                "daemon",
                f"it is {version}, this is {netqos.__version__}",
                "restart it: systemctl restart netqosd",
            )
        )
    if not ready:
        checks.append(warn("daemon", "it is not ready yet", "netqosctl status tells what it waits for"))
    if errors:
        checks.append(
            fail("daemon", f"it reports {count(len(errors), 'error')}", "netqosctl status shows them")
        )
    return checks


def backends(settings: Settings, links: LinkReport) -> list[Check]:
    """What every installed backend can do on this host, found out by trying."""
    made, problems = all_backends(settings)
    checks = of_findings("backends", problems)
    for backend in made:
        if backend.name != NAME:
            checks += asyncio.run(_probe(backend, _wanted(links), is_used=backend.name in settings.backends))
    return checks


async def _probe(backend: Backend, wanted: DesiredState, *, is_used: bool) -> list[Check]:
    name = f"backend {backend.name}"
    try:
        async with asyncio.timeout(PROBE_S):
            able = await backend.probe()
            found = list(able.findings)
            if able.available:
                found += backend.plan(wanted, await backend.observe()).findings
    except NetqosError as problem:
        return (
            [fail(name, problem.message, problem.hint)]
            if is_used
            else [warn(name, problem.message, problem.hint)]
        )
    except Exception as problem:  # noqa: BLE001 - a plugin's border: the other checks go on
        return [fail(name, f"{type(problem).__name__}: {problem}", "see docs/writing-a-backend.md")]
    finally:
        await backend.close()
    if not able.available and not is_used:
        reasons = "; ".join(one.message for one in able.findings) or "no reason given"
        return [ok(name, f"cannot work here, and is not asked to ({reasons})")]
    return [_able(name, able), *of_findings(name, dict.fromkeys(found))]


def _able(name: str, able: Capabilities) -> Check:
    if not able.available:
        return fail(name, "cannot work here", "the next lines say what is missing")
    words = [f"shapes {one.pod_word}" for one in Direction if one in able.enforces]
    words += ["limits pods"] * able.limits + ["enforces rules inside a pod"] * able.rules
    words += ["lends what is unused"] * able.lends
    return ok(name, ", ".join(words) or "publishes files")


def _wanted(links: LinkReport) -> DesiredState:
    """A node with network QoS on, to ask what a backend would say of it; nothing of it is applied."""
    third = ASSUMED_BPS // 3
    band = Band(guarantee_bps=third, ceiling_bps=ASSUMED_BPS)
    direction = DesiredDirection(total_bps=ASSUMED_BPS, levels=PerLevel(band, band, band))
    devices = [
        DesiredUplink(
            name=one.name,
            index=one.index,
            mtu=one.mtu,
            total_bps=PerDirection(tx=ASSUMED_BPS, rx=ASSUMED_BPS),
        )
        for one in links.uplinks
        if one.present
    ]
    return DesiredState(
        enabled=True,
        complete=True,
        uplinks=tuple(devices),
        directions=PerDirection(tx=direction, rx=direction),
        pods=(),
    )
