"""What netqosd can be asked to do: check a configuration, show a plan, act once, or serve.

Each mode returns its exit code; `check_config`, `dry_run` and `once` also return what to print.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from netqos.errors import Rejected
from netqos.host.claim import Claim
from netqos.host.clock import SystemClock
from netqos.model.health import Finding, Severity, error
from netqos.model.plan import ApplyResult, Plan
from netqos.runtime.backends import build_backends
from netqos.runtime.cluster import credentials_missing, decided, follow_kubernetes, is_in_cluster
from netqos.runtime.inputs import HostFacts
from netqos.runtime.judging import doubts, parse_and_judge
from netqos.runtime.parts import Hooks, Parts, make_parts
from netqos.settings.values import Settings
from netqos.sources.reading import Reader, read_settings

if TYPE_CHECKING:
    from netqos.runtime.kube import KubeSources

DONE, FAILED, REJECTED = 0, 1, 5

Answer = tuple[int, str]


def check_config(config: Path) -> Answer:
    """Report everything for which the daemon would refuse the files; then what is doubtful without being wrong.

    Failed where the files are right, but a backend of theirs cannot be made on this host, or Kubernetes is to be
    followed and there are no credentials for it.
    """
    reading = Reader(config, parse_and_judge).read()
    settings = reading.settings
    if settings is None:
        refused = reading.problem or Rejected("the configuration was not read")
        told = refused.problems or (str(refused),)
        return REJECTED, "\n".join((*told, *map(_line, reading.findings)))
    _, of_backends = build_backends(settings, settings.backends)
    in_cluster = is_in_cluster()
    of_kubernetes = credentials_missing(decided(settings, in_cluster=in_cluster), in_cluster=in_cluster)
    findings = (*reading.findings, *doubts(settings), *of_backends, *of_kubernetes)
    is_failed = any(one.severity is Severity.ERROR for one in findings)
    told = (f"{config}: the configuration is right", *map(_line, findings))
    return FAILED if is_failed else DONE, "\n".join(told)


def dry_run(config: Path) -> Answer:
    """Show what one pass would change on this node; nothing is changed. Failed where `once` would meet an error."""
    return asyncio.run(_dry_run(_read(config)))


def once(config: Path) -> Answer:
    """Bring the node to the wanted state once; the enforcement stays when this returns."""
    return asyncio.run(_once(_read(config)))


def serve(config: Path) -> int:
    """Run the daemon until it is asked to stop."""
    from netqos.runtime.supervisor import serve as run  # noqa: PLC0415 - loads what only a server needs

    asyncio.run(run(config))
    return DONE


def _read(config: Path) -> Settings:
    return read_settings(config, parse_and_judge)


async def _dry_run(settings: Settings) -> Answer:
    parts, _, heard = await _look(settings)
    try:
        plans = await parts.reconciler.preview()
    finally:
        await parts.reconciler.close()
    findings = [*heard, *_of_inputs(parts), *(one for plan in plans for one in plan.findings)]
    return _told(plans, findings)


def _told(plans: Sequence[Plan], findings: Sequence[Finding]) -> Answer:
    """What a dry run answers; an error may hide changes, so that "nothing to change" can only be said without one."""
    lines = [line for plan in plans for line in _plan_lines(plan)]
    is_good = _has_no_error(findings)
    if not lines:
        lines = ["nothing to change" if is_good else "what would be changed cannot be told, see the errors"]
    return DONE if is_good else FAILED, "\n".join((*lines, *map(_line, findings)))


async def _once(settings: Settings) -> Answer:
    claim = Claim()
    parts, kube, heard = await _look(settings)
    try:
        results = await parts.reconciler.run_pass()
        views = [runner.view() for runner in parts.reconciler.all_runners().values()]
        await asyncio.to_thread(parts.memory.last_good.save, parts.reconciler.last_good)
        if kube is not None:
            await asyncio.to_thread(kube.remember, at_end=True)
    finally:
        await parts.reconciler.close()
        claim.close()
    findings = [
        *claim.findings,
        *heard,
        *_of_inputs(parts),
        *(one for view in views for one in view.findings),
    ]
    is_good = all(result.ok for result in results.values()) and _has_no_error(findings)
    lines = [_result_line(name, result) for name, result in results.items()]
    return DONE if is_good else FAILED, "\n".join((*lines, *map(_line, findings)))


async def _look(settings: Settings) -> tuple[Parts, KubeSources | None, list[Finding]]:
    """The parts with all inputs read once, the Kubernetes sources, ended, and what is wrong with these."""
    settings = decided(settings, in_cluster=is_in_cluster())
    parts = make_parts(settings, SystemClock(), Hooks())
    host = HostFacts(parts.node, settings, parts.clock)
    host.look(parts.world)
    kube = follow_kubernetes(parts, host, settings)
    if kube is None:
        return parts, None, []
    kube.start(parts.world)
    try:
        await kube.first()
        heard = _heard(kube)  # a source that is stopped counts as one that is away
    finally:
        kube.stop()
    return parts, kube, heard


def _heard(kube: KubeSources) -> list[Finding]:
    """The sources' findings. One that did not deliver is an error: what it has to say is missing in this pass."""
    missing = {f"source {name}": detail for name, detail in kube.undelivered().items()}
    errors = [
        error(
            "source-missing",
            subject,
            f"nothing came of it in time ({detail}): what is remembered of it holds, and nothing is removed",
            hint="see whether the API server is reachable and the service account has its rights",
        )
        for subject, detail in missing.items()
    ]
    return [*errors, *(one for one in kube.findings() if one.subject not in missing)]


def _of_inputs(parts: Parts) -> list[Finding]:
    """What is wrong with the inputs, those of single pods last."""
    composition = parts.reconciler.composition
    pods = composition.pods if composition is not None else ()
    return [*parts.reconciler.findings(), *(one for pod in pods for one in pod.findings)]


def _has_no_error(findings: Iterable[Finding]) -> bool:
    return not any(one.severity is Severity.ERROR for one in findings)


def _plan_lines(plan: Plan) -> list[str]:
    return [
        f"{plan.backend}: {one.verb.value} {one.subject}{': ' + one.detail if one.detail else ''}"
        for one in plan.operations
    ]


def _result_line(name: str, result: ApplyResult) -> str:
    failed = f", {len(result.failures)} failed" if result.failures else ""
    return f"{name}: {result.applied} written{failed}"


def _line(finding: Finding) -> str:
    hint = f" ({finding.hint})" if finding.hint else ""
    return f"{finding.severity.value}: {finding.subject}: {finding.message}{hint}"
