"""What a dry run tells, and whether that can be relied on."""

from __future__ import annotations

import pytest

from netqos.model.health import Finding, error, info, warning
from netqos.model.plan import Operation, Plan, Verb
from netqos.runtime.modes import _told

NO_RIGHT = error("no-right", "backend tc", "not allowed", hint="be root")
MAKES = Operation(verb=Verb.CREATE, subject="class 4e51:10 on eth0", detail="rate 1M")


@pytest.mark.parametrize(
    ("operations", "findings", "code", "lines"),
    [
        ((), [], 0, ["nothing to change"]),
        (
            (),
            [warning("w", "eth0", "m"), info("i", "x", "n")],
            0,
            ["nothing to change", "warning: eth0: m", "info: x: n"],
        ),
        ((MAKES,), [], 0, ["tc: create class 4e51:10 on eth0: rate 1M"]),
        (
            (),
            [NO_RIGHT],
            1,
            [
                "what would be changed cannot be told, see the errors",
                "error: backend tc: not allowed (be root)",
            ],
        ),
        (
            (MAKES,),
            [NO_RIGHT],
            1,
            ["tc: create class 4e51:10 on eth0: rate 1M", "error: backend tc: not allowed (be root)"],
        ),
    ],
)
def test_a_dry_run_fails_where_an_error_keeps_it_from_telling_all(
    operations: tuple[Operation, ...], findings: list[Finding], code: int, lines: list[str]
) -> None:
    plans = [Plan(backend="tc", operations=operations), Plan(backend="files")]
    assert _told(plans, findings) == (code, "\n".join(lines))
