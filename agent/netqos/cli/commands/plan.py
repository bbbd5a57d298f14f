"""netqosctl plan and reconcile: what would be changed, and changing it now."""

from __future__ import annotations

from netqos.cli.client import Json
from netqos.cli.commands.common import DONE, FAILED, Call, known_shape, show_findings, tell
from netqos.cli.render import Screen, Span
from netqos.cli.units import count

SIGNS = {"create": Span("+", "good"), "change": Span("~", "warn"), "delete": Span("-", "bad")}


def run(call: Call) -> int:
    """Show what the next reconcile would change."""
    return tell(call, "plan", call.client.get("/v1/plan"), show)


def show(screen: Screen, answer: Json) -> None:
    """All backends' changes, and what is to say of them."""
    for plan in answer["plans"]:
        show_plan(screen, plan)
    show_findings(screen, [one for plan in answer["plans"] for one in plan["findings"]])


def show_plan(screen: Screen, plan: Json) -> None:
    """One backend's changes, in order."""
    operations = plan["operations"]
    told = count(len(operations), "change") if operations else "nothing to do"
    screen.line(Span(plan["backend"], "head"), f": {told}")
    for one in operations:
        detail = f"  {one['detail']}" if one["detail"] else ""
        screen.prose("  ", SIGNS[one["verb"]], f" {one['subject']}", Span(detail, "dim"), hang=6)


def reconcile(call: Call) -> int:
    """Reconcile now; failed when a backend failed."""
    answer = call.client.post("/v1/reconcile")
    with known_shape():
        ok = answer["ok"] is True
        if call.wants_json:
            call.screen.json("reconcile", answer)
        else:
            for name, result in answer["results"].items():
                show_result(call.screen, name, result)
    return DONE if ok else FAILED


def show_result(screen: Screen, name: str, result: Json) -> None:
    """What one backend did; failures are told on stderr."""
    verdict = Span("ok", "good") if result["ok"] else Span("failed", "bad")
    screen.line(Span(name, "head"), ": ", verdict, f", {count(result['applied'], 'change')} made")
    for one in result["failures"]:
        screen.say(f"{name}: {one['verb']} {one['subject']}: {one['message']} ({one['code']})")
