"""netqosctl slo apply: one NodeSLO for all nodes that a selector matches, judged before anything is written.

It speaks to the API server with the caller's own kubeconfig, from anywhere; the daemon is not asked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from netqos.cli.client import InputRejected, Problem
from netqos.cli.commands.common import DONE, FAILED, Call
from netqos.cli.render import Column, Screen, Span
from netqos.cli.units import count
from netqos.errors import Rejected
from netqos.runtime.cluster import is_in_cluster
from netqos.runtime.slofile import API_VERSION, KIND, read_slo
from netqos.sources.kube.answers import Broken
from netqos.sources.kube.connection import Connection
from netqos.sources.kube.sloapply import Applied, Spec, apply, existing, node_names

COLUMNS = (Column(head="node"), Column(head="result"), Column(head="because", wraps=True))
STYLES = {"created": "good", "changed": "good", "unchanged": "dim", "failed": "bad"}


def run(call: Call) -> int:
    """Apply; failed where a node did not get it."""
    arguments = call.arguments
    spec = _read(Path(arguments.file))
    connection = Connection(_kubeconfig(arguments.kubeconfig))
    nodes, before = _look(connection, arguments.nodes)
    document = {"apiVersion": API_VERSION, "kind": KIND, "spec": spec}
    dry_run = bool(arguments.dry_run)
    found = apply(connection, document, nodes, before, force=bool(arguments.force), dry_run=dry_run)
    ok = all(one.result != "failed" for one in found)
    if call.wants_json:
        listed = [{"name": one.node, "result": one.result, "message": one.message} for one in found]
        call.screen.json("slo", {"dry_run": dry_run, "ok": ok, "nodes": listed})
    else:
        _show(call.screen, found, dry_run=dry_run)
    _advise(call.screen, found)
    return DONE if ok else FAILED


def _read(path: Path) -> Mapping[str, object]:
    try:
        return read_slo(path.read_text(encoding="utf-8"), path.name)
    except Rejected as problem:
        raise InputRejected(problem.message, hint="nothing was written", problems=problem.problems) from None
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is no UTF-8 text"
        raise InputRejected(f"cannot read {path}: {reason}", hint="nothing was written") from None


def _kubeconfig(given: str | None) -> Path | None:
    """As kubectl looks for it; None: the pod's service account."""
    named = given or os.environ.get("KUBECONFIG")
    usual = Path.home() / ".kube" / "config"
    if named:
        return Path(named)
    if usual.exists():
        return usual
    if is_in_cluster():
        return None
    raise Problem(
        f"there is no kubeconfig: neither $KUBECONFIG nor {usual}", hint="give one with --kubeconfig"
    )


def _look(connection: Connection, selector: str) -> tuple[Sequence[str], Mapping[str, Spec]]:
    try:
        nodes = node_names(connection, selector)
        before = existing(connection) if nodes else {}
    except Broken as problem:
        failure = problem.failure
        if failure.code == 404:
            hint = "install Koordinator, or where there is none: kubectl apply -f daemonset/crd"
            raise Problem("the API server knows no NodeSLO", hint=hint) from None
        hint = "nothing was written"
        raise Problem(f"the API server could not be asked: {failure.detail}", hint=hint) from None
    if not nodes:
        raise Problem(
            f"no node matches {selector!r}", hint="kubectl get nodes --show-labels lists what there is"
        )
    return nodes, before


def _show(screen: Screen, found: Sequence[Applied], *, dry_run: bool) -> None:
    rows = [(one.node, Span(one.result, STYLES[one.result]), one.message) for one in found]
    screen.table(COLUMNS, rows)
    if dry_run:
        screen.line(f"nothing was written: a dry run for {count(len(found), 'node')}")


def _advise(screen: Screen, found: Sequence[Applied]) -> None:
    conflicts = [one for one in found if one.message.startswith("409")]
    if conflicts:
        screen.say(
            f"{count(len(conflicts), 'NodeSLO')} with values of another writer",
            hint="--force takes them over; where Koordinator writes NodeSLOs, change its ConfigMap instead",
        )
