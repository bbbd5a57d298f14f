"""Observed state, plans and results: what a backend found, would change, and changed.

Objects are a mapping from a stable key to a frozen spec. The desired specs of a backend use the same keys and types,
so that a plan is a keyed difference (`netqos.engine.reconcile`).
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from netqos.model.health import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedState:
    """What a backend found on this node: `ours` by key, and the foreign objects that stand where ours belong.

    Keys and specs are the backend's own types. `foreign` maps a readable name to a readable description. `trusted_s`:
    so long after it was looked at a plan may be made from it unasked, since a write that others have made wrong
    meanwhile is refused and the next look shows why; 0: ask `is_untouched` first.
    """

    ours: Mapping[Hashable, object] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    trusted_s: float = 0.0


class Verb(enum.Enum):
    """What an operation does to its object."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One change. `subject` and `detail` are for people (`class 4e51:1001 on eth0`, `ceil 10M -> 20M`).

    `incident` is the subject whose loss explains the operation: what goes with a lost root is one incident of the root,
    and so is what stands on a lost class. "": the backend tells none, so it is the subject. Whoever holds operations
    back holds all of an incident, else a part would be made without what it stands on. `awaits` are further incidents
    without which it cannot be done: held back while one of them is. `is_vital`: the object, as it was met, may cut the
    node off (contract 8), so this one is never held back. `concerns` are the subjects of findings
    for whom nothing is enforced while it is not applied (`pod default/web`, a device, `rx`); none: everybody. `denies`
    is what of them is not enforced then (`egress`, `ingress`, `rules-egress`, `rules-ingress`); "": all.

    `is_repair` False: it follows what came or went on the node by itself, and makes good nothing that somebody did.

    `payload` is the backend's own; only the backend that made the plan reads it.
    """

    verb: Verb
    subject: str
    detail: str = ""
    incident: str = ""
    awaits: tuple[str, ...] = ()
    is_vital: bool = False
    concerns: tuple[str, ...] = ()
    denies: str = ""
    is_repair: bool = True
    payload: object = None

    @property
    def denied(self) -> tuple[tuple[str, str], ...]:
        """Code and subject of a finding for each that it concerns."""
        code = f"not-enforced-{self.denies}" if self.denies else "not-enforced"
        return tuple((code, concern) for concern in self.concerns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Ordered operations of one backend; applied in this order, from first to last.

    `disturbs_loop`: an object that the fast loop writes is among them, so the loop lets go of it meanwhile.
    `findings` says what the backend will not enforce of the desired state, and why.
    """

    backend: str
    operations: tuple[Operation, ...] = ()
    disturbs_loop: bool = False
    findings: tuple[Finding, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.operations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An operation that did not succeed. `code` is an errno name or a word, `message` the whole reason."""

    operation: Operation
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyResult:
    """What `apply` did: the number of writes that succeeded, and those that failed."""

    applied: int = 0
    failures: tuple[Failure, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every operation succeeded."""
        return not self.failures
