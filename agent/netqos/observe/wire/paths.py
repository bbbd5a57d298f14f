"""The wire of what lies behind the uplinks."""

from __future__ import annotations

from dataclasses import dataclass

from netqos.observe.wire.base import Way


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStepWire:
    """A change of what is in force in the place of a total; `before_bps` and `after_bps` may be the same.

    `at_s` is of the node's monotonic clock, which was `unix_s` as Unix time. `reason` is a stable word, `reason_text`
    says it in words.
    """

    device: str
    direction: Way
    at_s: float
    unix_s: float
    reason: str
    reason_text: str
    before_bps: int
    after_bps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UplinkPathWire:
    """The path behind a device in one direction: whether it carries the total.

    `limit_bps` is in force instead since the path was shown to carry no more, null while the total is. `measured_bps`
    is what all levels together were seen to do while packets were lost beyond the node, null where that was not seen;
    `proposed_bps` the total that would fit, null while nothing speaks against the configured one. `follows`: the total
    is `auto`. A limit never goes under `floor_bps`. `steps` has the last changes, oldest first.
    """

    device: str
    direction: Way
    configured_bps: int
    follows: bool
    floor_bps: int
    limit_bps: int | None
    measured_bps: int | None
    proposed_bps: int | None
    steps: list[PathStepWire]
