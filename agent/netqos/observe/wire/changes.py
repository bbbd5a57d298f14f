"""The wire of what changes something: overrides, plans, and what a reconcile did."""

from __future__ import annotations

from dataclasses import dataclass

from netqos.observe.wire.base import FindingWire, LevelName
from netqos.observe.wire.node import ResultWire


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideWire:
    """A temporary override; a limit of 0 means no limit. `pod` is null when no such pod is on the node now."""

    uid: str
    pod: str | None
    egress_bps: int | None
    ingress_bps: int | None
    level: LevelName | None
    expires_in_s: float
    expires_unix_s: float
    reason: str
    author_uid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OverridesWire:
    """All overrides in force."""

    overrides: list[OverrideWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedWire:
    """The override that is gone."""

    uid: str
    deleted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideBody:
    """What a client asks for.

    Limits are written as an annotation would hold them (`10M`; `0` is no limit), `ttl` as seconds or as `90s`, `10m`,
    `1h30m`. At least one of `egress`, `ingress` and `level` must be given.
    """

    egress: str | None = None
    ingress: str | None = None
    level: str | None = None
    ttl: float | str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationWire:
    """One change that would be made; `verb` is create, change or delete."""

    verb: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendPlanWire:
    """What one backend would change, in order."""

    backend: str
    operations: list[OperationWire]
    findings: list[FindingWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWire:
    """What the next reconcile would change; nothing was changed."""

    plans: list[BackendPlanWire]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileWire:
    """What each backend did."""

    ok: bool
    results: dict[str, ResultWire]
