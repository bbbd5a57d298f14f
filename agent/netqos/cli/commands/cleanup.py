"""netqosctl cleanup: take everything of ours off this node, and put back what was there before.

It does what the daemon would do when asked for nothing at all, with every installed backend, in use or not, and then
forgets what was kept for the next start. While it works it holds the daemon's socket, so that none can start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netqos.backend import Backend
from netqos.cli.client import Problem
from netqos.cli.commands.common import DONE, FAILED, Call
from netqos.cli.commands.plan import SIGNS
from netqos.cli.doctor.check import Host, Verdict
from netqos.cli.doctor.host import rights
from netqos.cli.local import all_backends, as_problem, load_settings_to_leave, quiet_log
from netqos.cli.render import Screen, Span
from netqos.cli.units import count
from netqos.errors import Fatal, NetqosError
from netqos.host.claim import Claim
from netqos.host.state import documents_in, forget
from netqos.model.desired import NOTHING
from netqos.model.health import Finding
from netqos.model.plan import Failure, Operation, Verb
from netqos.observe.listen import UnixListener, answers
from netqos.runtime.cluster import is_in_cluster

ROUNDS = 3
DEADLINE_S = 60.0

IN_CLUSTER = (
    "it is a DaemonSet's: helm uninstall puts every node back, and with kustomize onExit: restore does "
    "(daemonset/README.md, Update and remove)"
)


@dataclass(slots=True, kw_only=True)
class Swept:
    """What one backend had and lost. `problem`: why it could not be asked or did not end up with nothing."""

    backend: str
    operations: list[Operation] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    problem: str = ""

    @property
    def is_clean(self) -> bool:
        """Whether nothing of ours is left there."""
        return not self.problem and not self.failures


def run(call: Call) -> int:
    """Sweep the node; failed when something is left."""
    _need_rights()
    settings, note = load_settings_to_leave(call.arguments.config)
    if note:
        call.screen.say(note)
    dry_run = bool(call.arguments.dry_run)
    places = dict.fromkeys((Path(settings.paths.socket), Path(call.client.path)))
    with quiet_log(), _no_daemon(places, holds=not dry_run):
        backends, findings = all_backends(settings)
        swept = asyncio.run(_sweep(backends, dry_run=dry_run))
        if all(one.is_clean for one in swept):
            swept += _forgotten(Path(settings.paths.state), dry_run=dry_run)
    for finding in findings:
        call.screen.say(f"{finding.subject}: {finding.message}", hint=finding.hint)
    ok = all(one.is_clean for one in swept)
    if call.wants_json:
        call.screen.json(
            "cleanup", {"dry_run": dry_run, "ok": ok, "backends": [_as_json(one) for one in swept]}
        )
    else:
        for one in swept:
            _show(call.screen, one, dry_run=dry_run)
    return DONE if ok else FAILED


def _need_rights() -> None:
    for one in rights(Host()):
        if one.verdict is Verdict.FAIL:
            raise Problem(f"the network cannot be configured: {one.text}", hint=one.hint)


@contextmanager
def _no_daemon(places: dict[Path, None], *, holds: bool) -> Iterator[None]:
    """Refuse while a daemon runs in this network namespace, whatever its paths; keep one from starting meanwhile."""
    for path in places:
        if answers(path):
            raise Problem(
                f"netqosd answers at {path}; it would put everything back at once",
                hint=IN_CLUSTER if is_in_cluster() else "stop it first: systemctl stop netqosd",
            )
    with ExitStack() as held:
        try:
            held.callback(Claim().close)
            if holds:
                held.callback(UnixListener(next(iter(places))).close)
        except Fatal as problem:
            raise as_problem(problem) from None
        yield


async def _sweep(backends: list[Backend], *, dry_run: bool) -> list[Swept]:
    """One backend after the other, the published files last: they must not go before the enforcement has gone."""
    swept = []
    for backend in backends:
        one = Swept(backend=backend.name)
        try:
            async with asyncio.timeout(DEADLINE_S):
                await _sweep_one(backend, one, dry_run=dry_run)
        except TimeoutError:
            one.problem = f"no end within {DEADLINE_S:g} s"
        except NetqosError as problem:
            one.problem = str(problem)
        except Exception as problem:  # noqa: BLE001 - a plugin's border: the other backends are swept all the same
            one.problem = f"{type(problem).__name__}: {problem}"
        finally:
            await backend.close()
        swept.append(one)
    return swept


def _forgotten(folder: Path, *, dry_run: bool) -> list[Swept]:
    """What was kept over restarts, once nothing is left that it was kept for; nothing where there is none."""
    operations = [Operation(verb=Verb.DELETE, subject=str(one)) for one in documents_in(folder)]
    swept = Swept(backend="state", operations=operations)
    if not dry_run:
        try:
            forget(folder)
        except OSError as problem:
            swept.problem = f"{problem.filename}: {problem.strerror}"
    return [swept] if operations else []


async def _sweep_one(backend: Backend, swept: Swept, *, dry_run: bool) -> None:
    """Plan and apply until nothing is left to do; leaves the rest in `swept`."""
    capabilities = await backend.probe()
    for _ in range(ROUNDS):
        plan = backend.plan(NOTHING, await backend.observe())
        swept.findings = [*plan.findings]
        if not plan:
            return
        swept.operations += plan.operations
        if dry_run:
            return
        result = await backend.apply(plan)
        swept.failures = list(result.failures)
        if swept.failures:
            swept.findings += capabilities.findings
            return
    swept.problem = f"something is left after {ROUNDS} rounds"


def _show(screen: Screen, swept: Swept, *, dry_run: bool) -> None:
    told = _verdict(swept, dry_run=dry_run)
    screen.prose(Span(swept.backend, "head"), ": ", told, hang=2)
    for one in swept.operations:
        detail = f"  {one.detail}" if one.detail else ""
        screen.prose("  ", SIGNS[one.verb.value], f" {one.subject}", Span(detail, "dim"), hang=6)
    for failure in swept.failures:
        screen.say(f"{swept.backend}: {failure.operation.subject}: {failure.message} ({failure.code})")
    if not swept.is_clean:
        for finding in swept.findings:
            screen.say(f"{finding.subject}: {finding.message}", hint=finding.hint)


def _verdict(swept: Swept, *, dry_run: bool) -> Span:
    if swept.problem:
        return Span(f"failed: {swept.problem}", "bad")
    if swept.failures:
        return Span(f"{count(len(swept.failures), 'change')} failed", "bad")
    if not swept.operations:
        return Span("nothing of ours is there", "good")
    word = "would be made" if dry_run else "made"
    return Span(f"{count(len(swept.operations), 'change')} {word}", "good")


def _as_json(swept: Swept) -> dict[str, Any]:
    return {
        "backend": swept.backend,
        "ok": swept.is_clean,
        "problem": swept.problem,
        "operations": [
            {"verb": one.verb.value, "subject": one.subject, "detail": one.detail} for one in swept.operations
        ],
        "failures": [
            {"subject": one.operation.subject, "code": one.code, "message": one.message}
            for one in swept.failures
        ],
    }
