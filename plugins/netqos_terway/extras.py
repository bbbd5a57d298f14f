"""The two objects beside the files, planned like them: the table that counts and the memo of the policy. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netqos.engine.reconcile import diff
from netqos.model.desired import DesiredState
from netqos.model.plan import ObservedState, Operation, Verb
from netqos_terway import meter
from netqos_terway.findings import NO_METER
from netqos_terway.memo import Memo, wanted_memo
from netqos_terway.meter import MeterSpec

METER = "nft table netqos_meter"
MEMO = "memory of the policy"

Spec = MeterSpec | Memo


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraChange:
    """The payload of an operation on the meter or the memo; None removes it."""

    spec: Spec | None


def operations(desired: DesiredState, observed: ObservedState) -> Sequence[Operation]:
    """What is to be made, changed and removed of both."""
    found = {
        key: spec for key in (METER, MEMO) if isinstance(spec := observed.ours.get(key), (MeterSpec, Memo))
    }
    difference = diff(_wanted(desired, found, _can_count(observed)), found)
    return [
        *(_operation(Verb.CREATE, key, spec) for key, spec in difference.creates.items()),
        *(_operation(Verb.CHANGE, key, change.new) for key, change in difference.changes.items()),
        *(_operation(Verb.DELETE, key, None) for key in difference.deletes),
    ]


def _can_count(observed: ObservedState) -> bool:
    return not any(finding.code == NO_METER for finding in observed.findings)


def _wanted(desired: DesiredState, found: Mapping[str, Spec], can_count: bool) -> dict[str, Spec]:  # noqa: FBT001
    wanted: dict[str, Spec] = {}
    table, memo = meter.wanted_meter(desired), wanted_memo(desired)
    if table is not None and can_count:
        wanted[METER] = table
    if memo is not None:
        wanted[MEMO] = memo
    return wanted if desired.complete else _with_what_is_there(wanted, found)


def _with_what_is_there(wanted: dict[str, Spec], found: Mapping[str, Spec]) -> dict[str, Spec]:
    """While a source has not delivered: no address goes, and the memo stays that of the limits in force."""
    table, there = wanted.get(METER), found.get(METER)
    merged = {**found, **wanted}
    if isinstance(table, MeterSpec) and isinstance(there, MeterSpec):
        merged[METER] = meter.merge(there, table)
    if MEMO in found:
        merged[MEMO] = found[MEMO]
    return merged


def _operation(verb: Verb, key: str, spec: Spec | None) -> Operation:
    if isinstance(spec, MeterSpec):
        detail = f"count {len(spec.levels)} addresses by level"
    else:
        detail = "remove" if spec is None else "keep what is asked for"
    return Operation(verb=verb, subject=key, detail=detail, payload=ExtraChange(spec=spec))
